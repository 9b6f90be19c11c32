//! A running test in the browser: the store's data of each second, as JSON.

use record::compare::SideRecord;
use record::run::{FailureRecord, RunRecord, SecondRecord, UrlRecord, VerdictRecord};
use sample::{AgentNow, AgentState};
use serde_json::{Value, json};
use stats::{CauseId, State};
use store::{Progress, Stored};
use units::{Nanos, show};

/// Maximum number of fleet machines with their own row.
const AGENTS_SHOWN: usize = 50;

/// Returns an event with the rows after the first `sent` ones and the current state, and the number
/// of rows now. `agents`: the machines of a fleet.
pub(crate) fn event(
    stored: &Stored,
    progress: Progress,
    sent: usize,
    agents: Vec<AgentNow>,
) -> (Value, usize) {
    let (mut event, rows) = match stored {
        Stored::Run(run) => {
            let fresh: Vec<Value> = run.series.iter().skip(sent).map(second).collect();
            let event = json!({
                "seconds": fresh,
                "facts": facts(run),
                "failures": failures(&run.failures),
                "urls": urls(run),
                "verdict": state(&run.verdict, progress).id(),
                "causes": causes(&run.verdict, progress),
            });
            (event, run.series.len())
        }
        Stored::Ramp(ramp) => {
            let fresh = ramp.steps.iter().skip(sent).map(|step| {
                let point = step.point();
                json!([
                    step.label,
                    show::rate(point.offered_per_s),
                    show::rate(point.achieved_per_s),
                    show::duration(Nanos::from_secs_f64(point.p99_s.max(0.0))),
                    show::share(point.failure_share),
                ])
            });
            (json!({ "steps": fresh.collect::<Vec<_>>() }), ramp.steps.len())
        }
        Stored::Compare(compare) => {
            let done = |side: &SideRecord| json!([side.label, show::count(side.runs.len() as u64)]);
            (json!({ "facts": [done(&compare.before), done(&compare.after)] }), 0)
        }
        Stored::Torture(torture) => {
            let cases = &torture.cases;
            let skipped = cases.iter().filter(|case| case.skipped.is_some()).count();
            let number = |count: usize| show::count(count as u64);
            let facts = json!([
                ["cases done", number(cases.len() - skipped)],
                ["skipped", number(skipped)],
                ["findings", show::count(torture.findings)],
                ["last", cases.last().map_or_else(String::new, |case| case.id.clone())],
            ]);
            (json!({ "facts": facts }), 0)
        }
    };
    if !agents.is_empty() {
        event["agents"] = fleet(agents);
    }
    event["progress"] = json!(progress.id());
    (event, rows)
}

/// Returns the rows of a fleet's machines, lost ones first, then the slowest; the last row counts
/// the omitted ones.
fn fleet(mut agents: Vec<AgentNow>) -> Value {
    agents.sort_by_key(|agent| (agent.state != AgentState::Lost, std::cmp::Reverse(agent.p99)));
    let left_out = agents.len().saturating_sub(AGENTS_SHOWN);
    let row = |agent: &AgentNow| {
        let p99 = agent.p99.map_or_else(|| "–".to_owned(), show::duration);
        json!([
            format!("{} {}", agent.number, agent.host),
            agent.labels,
            agent.state.id(),
            show::rate(agent.calls_per_s),
            p99,
            show::count(agent.in_flight),
            show::count(agent.offered),
            show::count(agent.lost),
        ])
    };
    let mut rows: Vec<Value> = agents.iter().take(AGENTS_SHOWN).map(row).collect();
    if left_out > 0 {
        rows.push(json!([format!("and {} more", show::count(left_out as u64))]));
    }
    rows.into()
}

/// Returns the state; a test is not degraded only because it is still running.
fn state(verdict: &VerdictRecord, progress: Progress) -> State {
    // nor if other programs use the cores: that is only a note
    let is_note =
        |cause: &CauseId| is_only_running(*cause, progress) || *cause == CauseId::ForeignCpu;
    match verdict.causes.iter().all(|cause| is_note(&cause.id)) {
        true if verdict.state == State::Degraded => State::Valid,
        _ => verdict.state,
    }
}

/// Returns all causes except the note that the test has not ended yet.
fn causes(verdict: &VerdictRecord, progress: Progress) -> Value {
    let causes = verdict.causes.iter().filter(|cause| !is_only_running(cause.id, progress));
    causes.map(|cause| json!(cause.text)).collect()
}

/// Returns whether a cause means only that the test has not ended yet. Once it has ended, it was
/// interrupted.
fn is_only_running(cause: CauseId, progress: Progress) -> bool {
    cause == CauseId::Interrupted && progress == Progress::Running
}

/// Returns the figures of a second, with times in seconds; null if nothing was timed.
fn second(second: &SecondRecord) -> Value {
    let span = second.span_s.max(1e-9);
    let time = |value: Option<f64>| value.filter(|_| !second.warm_up);
    json!({
        "at": second.at_s + second.span_s,
        "due": second.outcomes.due as f64 / span,
        "done": second.outcomes.done() as f64 / span,
        "p50": time(second.response_p50_s),
        "p90": time(second.response_p90_s),
        "p99": time(second.response_p99_s),
    })
}

/// Returns names and formatted figures, for the tables of the page.
fn facts(run: &RunRecord) -> Value {
    let (counts, last) = (&run.outcomes, run.series.last());
    let response = run.response();
    let time = |q: f64| show::duration(response.quantile(q));
    let passed = last.map_or(0.0, |second| (second.at_s + second.span_s).max(0.0));
    json!([
        ["measured", show::duration(Nanos::from_secs_f64(passed))],
        ["calls due", show::count(counts.due)],
        ["succeeded", show::count(counts.succeeded)],
        ["failed", show::count(counts.bad())],
        ["in flight", show::count(last.map_or(0, |second| second.in_flight))],
        ["connections", show::count(last.map_or(0, |second| second.open_connections))],
        ["p50", time(0.5)],
        ["p90", time(0.9)],
        ["p99", time(0.99)],
        ["max", show::duration(response.max())],
        ["received", show::bytes(run.bytes.received)],
    ])
}

/// Maximum number of rows of steps or URLs.
const URLS_SHOWN: usize = 50;

/// Returns a row for each step or URL; empty if there is only one.
fn urls(run: &RunRecord) -> Value {
    let row = |row: &UrlRecord| {
        let time = |seconds: f64| match row.response_time_s.count {
            0 => "–".to_owned(),
            _ => show::duration(Nanos::from_secs_f64(seconds.max(0.0))),
        };
        json!([
            row.label(),
            show::count(row.count),
            show::count(row.failed + row.timed_out),
            time(row.response_time_s.p50),
            time(row.response_time_s.p99),
        ])
    };
    run.per_url.iter().take(URLS_SHOWN).map(row).collect()
}

fn failures(failures: &[FailureRecord]) -> Value {
    let mut all: Vec<&FailureRecord> = failures.iter().collect();
    all.sort_by_key(|failure| (std::cmp::Reverse(failure.count), failure.class));
    let row = |failure: &FailureRecord| {
        json!([failure.class.id(), failure.blame.id(), show::count(failure.count)])
    };
    all.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::run::CauseRecord;

    #[test]
    fn a_running_test_is_not_degraded_because_it_runs() {
        let shown_in = |progress, state_now, ids: &[CauseId]| {
            let cause = |id: &CauseId| CauseRecord {
                id: *id,
                figure: None,
                text: String::new(),
                advice: String::new(),
            };
            let causes = ids.iter().map(cause).collect();
            let verdict = VerdictRecord { state: state_now, causes };
            let named = super::causes(&verdict, progress).as_array().map_or(0, Vec::len);
            (state(&verdict, progress), named)
        };
        let shown = |state_now, ids: &[CauseId]| shown_in(Progress::Running, state_now, ids).0;
        let (degraded, ended) = (State::Degraded, CauseId::Interrupted);
        assert_eq!(shown(degraded, &[ended]), State::Valid);
        assert_eq!(shown(degraded, &[ended, CauseId::ForeignCpu]), State::Valid);
        assert_eq!(shown(degraded, &[ended, CauseId::Drift]), degraded);
        assert_eq!(shown(State::Invalid, &[CauseId::AllFailed, ended]), State::Invalid);
        // the last event of a test that the user interrupted, or that was killed
        for over in [Progress::Interrupted, Progress::Killed] {
            assert_eq!(shown_in(over, degraded, &[ended]), (degraded, 1));
        }
    }

    fn agent(number: u32, state: AgentState, p99_ms: u64) -> AgentNow {
        let p99 = Some(Nanos::from_millis(p99_ms));
        AgentNow { number, host: "vm".into(), state, p99, offered: 1_200, ..AgentNow::default() }
    }

    #[test]
    fn lost_machines_are_first_and_then_the_slowest() {
        let (running, lost) = (AgentState::Running, AgentState::Lost);
        let rows = fleet(vec![agent(1, running, 2), agent(2, running, 9), agent(3, lost, 0)]);
        let names: Vec<&str> =
            rows.as_array().unwrap().iter().filter_map(|r| r[0].as_str()).collect();
        assert_eq!(names, ["3 vm", "2 vm", "1 vm"]);
        let second = json!(["2 vm", "", "running", "0/s", "9.00 ms", "0", "1,200", "0"]);
        assert_eq!(rows[1], second);
    }

    #[test]
    fn a_large_fleet_is_cut_and_counted() {
        let many = (1..=53).map(|number| agent(number, AgentState::Running, 1)).collect();
        let rows = fleet(many);
        assert_eq!(rows.as_array().unwrap().len(), 51);
        assert_eq!(rows[50], json!(["and 3 more"]));
    }
}
