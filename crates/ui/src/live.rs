//! A running test as the browser sees it: what the store knows each second, as JSON.

use serde_json::{Value, json};
use stats::{CauseId, Second, Snapshot};
use store::{Progress, Stored};
use units::{Nanos, show};

/// What has come since the first `sent` rows, and how things stand; and how many rows there are now.
pub(crate) fn event(stored: &Stored, progress: Progress, sent: usize) -> (Value, usize) {
    let (mut told, rows) = match stored {
        Stored::Run(report) => {
            let series = &report.measurement.series;
            let fresh: Vec<Value> = series.iter().skip(sent).map(second).collect();
            let total = &report.measurement.total;
            let told = json!({
                "seconds": fresh,
                "facts": facts(total, series.last()),
                "failures": failures(total),
                "verdict": report.verdict.state.id(),
                "causes": causes(&report.verdict),
            });
            (told, series.len())
        }
        Stored::Ramp(report) => {
            let fresh = report.steps.iter().skip(sent).map(|step| {
                json!([
                    report.labels.get(step.label).cloned().unwrap_or_default(),
                    show::rate(step.point.offered_per_s),
                    show::rate(step.point.achieved_per_s),
                    show::duration(Nanos::from_secs_f64(step.point.p99_s.max(0.0))),
                    show::share(step.point.failure_share),
                ])
            });
            (json!({ "steps": fresh.collect::<Vec<_>>() }), report.steps.len())
        }
        Stored::Compare(report) => {
            let done = |side: usize| {
                json!([report.labels[side].clone(), show::count(report.runs[side].len() as u64)])
            };
            (json!({ "facts": [done(0), done(1)] }), 0)
        }
        Stored::Torture(report) => {
            let cases = &report.result.cases;
            let skipped = cases.iter().filter(|case| case.skipped.is_some()).count();
            let number = |count: usize| show::count(count as u64);
            let facts = json!([
                ["cases done", number(cases.len() - skipped)],
                ["skipped", number(skipped)],
                ["findings", number(report.findings().len())],
                ["last", cases.last().map_or_else(String::new, |case| case.case.id.clone())],
            ]);
            (json!({ "facts": facts }), 0)
        }
    };
    told["progress"] = json!(progress.id());
    (told, rows)
}

/// All but that the test has not ended yet.
fn causes(verdict: &stats::Verdict) -> Value {
    let causes = verdict.causes.iter().filter(|cause| cause.id != CauseId::Interrupted);
    causes.map(|cause| json!(cause.text)).collect()
}

/// Times in seconds; null where nothing was timed.
fn second(second: &Second) -> Value {
    let span = second.span_s.max(1e-9);
    let counts = second.counts;
    let timed = !second.max.is_zero() && !second.warm_up;
    let time = |value: Nanos| if timed { json!(value.as_secs_f64()) } else { Value::Null };
    json!({
        "at": second.at_s + second.span_s,
        "due": counts.due as f64 / span,
        "done": counts.done() as f64 / span,
        "p50": time(second.p50),
        "p90": time(second.p90),
        "p99": time(second.p99),
    })
}

/// Name and figure, in words: what the tables of the page hold.
fn facts(total: &Snapshot, last: Option<&Second>) -> Value {
    let counts = &total.counts;
    let response = total.response();
    let time = |q: f64| show::duration(response.quantile(q));
    let passed = last.map_or(0.0, |second| (second.at_s + second.span_s).max(0.0));
    json!([
        ["measured", show::duration(Nanos::from_secs_f64(passed))],
        ["calls due", show::count(counts.due)],
        ["succeeded", show::count(counts.succeeded)],
        ["failed", show::count(counts.failed + counts.timed_out + counts.dropped)],
        ["in flight", show::count(last.map_or(0, |second| second.in_flight))],
        ["connections", show::count(last.map_or(0, |second| second.open_connections))],
        ["p50", time(0.5)],
        ["p90", time(0.9)],
        ["p99", time(0.99)],
        ["max", show::duration(response.max())],
        ["received", show::bytes(total.bytes_received)],
    ])
}

fn failures(total: &Snapshot) -> Value {
    let mut all: Vec<_> = total.failures.iter().collect();
    all.sort_by_key(|(class, count)| (std::cmp::Reverse(**count), **class));
    let row = |(class, count): (&sample::FailureClass, &u64)| {
        json!([class.id(), class.blame().id(), show::count(*count)])
    };
    Value::Array(all.into_iter().map(row).collect())
}
