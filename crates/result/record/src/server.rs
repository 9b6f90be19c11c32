//! State of the server during the run, in one sentence: the first line of every output. The
//! validity of the figures is the subject of the verdict.

use crate::figures::ratio;
use crate::finished::{FirstCall, RunReport, SloResult};
use crate::ids::by_id;
use crate::words::printable;
use plan::Plan;
use sample::{Blame, FailureClass};
use stats::lives::{BEAT, BEATS_MAX};
use stats::{Measurement, Metric, Snapshot};
use units::{Nanos, show};

/// A server fails when it is to blame for this share of the calls that ended, if no objective
/// defines failing.
pub const FAILING_SHARE_MIN: f64 = 0.01;
/// No response for this long, with calls in flight, is a stall.
pub const STALL_MIN: Nanos = Nanos::SECOND;
/// A row of failures at the end of a run has its own cause when failures as frequent as before would
/// make it less likely than this.
pub const CHANCE_MAX: f64 = 1e-6;
/// Statuses and errors that the sentence names.
const NAMED_MAX: usize = 3;

/// States of a server, most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conduct {
    /// Connections broke, and new ones are refused to the end of the run.
    Gone,
    /// Connections are refused to the end of the run.
    Refusing,
    /// No response was received until the end of the run.
    Stalled,
    /// Responses miss an explicit expectation of the plan.
    Unexpected,
    /// A share of the calls fails through the server's fault, or gets no connection.
    Failing,
    /// Fewer calls are answered than fall due, to the end of the run.
    Overloaded,
    /// An objective is missed, independent of the client's lateness.
    Slow,
    /// No call reached the server.
    Unreached,
    Serving,
}

by_id!(conduct_id, Conduct, Conduct::ALL, Conduct::id, "a state of a server");

impl Conduct {
    pub const ALL: [Conduct; 9] = [
        Conduct::Gone,
        Conduct::Refusing,
        Conduct::Stalled,
        Conduct::Unexpected,
        Conduct::Failing,
        Conduct::Overloaded,
        Conduct::Slow,
        Conduct::Unreached,
        Conduct::Serving,
    ];

    /// Returns a stable name for JSON and the list of results.
    pub fn id(self) -> &'static str {
        match self {
            Conduct::Gone => "gone",
            Conduct::Refusing => "refusing",
            Conduct::Stalled => "stalled",
            Conduct::Unexpected => "not-as-expected",
            Conduct::Failing => "failing",
            Conduct::Overloaded => "overloaded",
            Conduct::Slow => "slow",
            Conduct::Unreached => "not-reached",
            Conduct::Serving => "serving",
        }
    }

    /// Returns the name of the state for readers.
    pub fn word(self) -> &'static str {
        match self {
            Conduct::Unexpected => "not as expected",
            Conduct::Unreached => "not reached",
            Conduct::Overloaded => "cannot keep up",
            other => other.id(),
        }
    }

    /// Returns whether the server had stopped serving by the end of the run.
    pub fn has_stopped_serving(self) -> bool {
        matches!(self, Conduct::Gone | Conduct::Refusing | Conduct::Stalled)
    }

    /// Returns whether it is a good state.
    pub fn is_good(self) -> bool {
        self == Conduct::Serving
    }
}

/// The server's side of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    pub conduct: Conduct,
    /// Describes it in one sentence, without [`Conduct::word`] and without a full stop.
    pub detail: String,
    /// Start in seconds from the start of the window; `None` if throughout.
    pub since_s: Option<f64>,
    /// Share of the ended calls that failed through the server's fault or on the way to it, 0..=1;
    /// NaN without calls.
    pub failing_share: f64,
    /// Unexpected statuses with their counts, most frequent first.
    pub statuses: Vec<(u16, u64)>,
    /// Other failures caused by the server or the path to it, most frequent first.
    pub errors: Vec<(FailureClass, u64)>,
    /// Connections that broke with a call in flight.
    pub broken: u64,
    /// One real response, if the responses are wrong: status line, fields and first bytes.
    pub example: Option<String>,
}

/// Data of a run about its server.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub measurement: &'a Measurement,
    pub plan: &'a Plan,
    pub slo: &'a [SloResult],
    pub first_call: Option<&'a FirstCall>,
}

impl Server {
    /// Reads the server's conduct off a finished run.
    pub fn new(report: &RunReport) -> Server {
        Server::observed(&Inputs {
            measurement: &report.measurement,
            plan: &report.plan,
            slo: &report.slo,
            first_call: report.first_call.as_ref(),
        })
    }

    /// Determines it from the available data, also during a run.
    pub fn observed(run: &Inputs<'_>) -> Server {
        let observed = Observed::new(run);
        let (conduct, since_s, detail) = observed.conduct(run);
        let wrong = matches!(conduct, Conduct::Unexpected | Conduct::Failing);
        let example = run.first_call.filter(|_| wrong);
        Server {
            conduct,
            detail,
            since_s,
            failing_share: observed.share(),
            example: example.and_then(|call| {
                let shown = observed.statuses.iter().any(|(status, _)| *status == call.status);
                (shown || observed.missed > 0).then(|| call.excerpt.clone()).flatten()
            }),
            statuses: observed.statuses,
            errors: observed.errors,
            broken: observed.broken,
        }
    }

    /// Formats the conduct: `failing: 30.0 % of 2,000 calls (600 answered 500)`.
    pub fn sentence(&self) -> String {
        let gap = if self.detail.starts_with("since ") { " " } else { ": " };
        format!("{}{gap}{}", self.conduct.word(), self.detail)
    }
}

/// Counts of a run about its server.
struct Observed {
    done: u64,
    /// Calls in flight when the run was stopped.
    abandoned: u64,
    succeeded: u64,
    /// Calls that failed through the server's fault or on the way to it.
    failed: u64,
    /// Failures that only the server caused.
    failed_by_server: u64,
    /// Connections that received bytes without a request. Their calls did not fail.
    unasked: u64,
    statuses: Vec<(u16, u64)>,
    errors: Vec<(FailureClass, u64)>,
    refused: u64,
    broken: u64,
    /// Calls on which an explicit expectation was missed.
    missed: u64,
    tail: Option<Tail>,
    silence: Option<(Nanos, u64)>,
    /// Answered and due calls per second at the end, if the server answers fewer calls than are
    /// due.
    behind: Option<(f64, f64)>,
}

/// Failures without a success between them, to the end of the window.
struct Tail {
    /// Start in seconds of the window; `None` if no call succeeded before.
    since_s: Option<f64>,
}

const BROKEN: [FailureClass; 3] =
    [FailureClass::Reset, FailureClass::ClosedEarly, FailureClass::Truncated];

impl Observed {
    fn new(run: &Inputs<'_>) -> Observed {
        let total = &run.measurement.total;
        let count = |class: &FailureClass| total.failures.get(class).copied().unwrap_or(0);
        // the losses of an emulated path are configured
        let emulated = run.plan.connection.path.is_some() || run.plan.connection.clients.is_some();
        let fails = |class: FailureClass| match class.blame() {
            Blame::Server => class != FailureClass::Unasked,
            Blame::Path => !emulated,
            Blame::Driver | Blame::Plan => false,
        };
        let failures = total.failures.iter().map(|(class, count)| (*class, *count));
        let mut errors: Vec<(FailureClass, u64)> =
            failures.filter(|(class, _)| fails(*class)).collect();
        let failed = errors.iter().map(|(_, count)| count).sum();
        let of_server = errors.iter().filter(|(class, _)| class.blame() == Blame::Server);
        let failed_by_server = of_server.map(|(_, count)| count).sum();
        errors.retain(|(class, _)| *class != FailureClass::Status);
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Observed {
            done: total.counts.done(),
            abandoned: total.counts.abandoned,
            succeeded: total.counts.succeeded,
            failed,
            failed_by_server,
            unasked: count(&FailureClass::Unasked),
            statuses: wrong_statuses(run),
            errors,
            refused: count(&FailureClass::Refused),
            broken: BROKEN.iter().map(count).sum(),
            missed: missed_expectations(run.plan, |class| {
                run.measurement.total.failures.get(&class).copied().unwrap_or(0)
            }),
            tail: tail(run.measurement),
            silence: silence(run.measurement),
            behind: unserved_load(run),
        }
    }

    fn share(&self) -> f64 {
        ratio(self.failed as f64, self.called() as f64)
    }

    /// Returns the number of calls that shares of failures refer to, including those of an
    /// interruption, as in the report's line of failures.
    fn called(&self) -> u64 {
        // calls that died in the queue have failed and count as failures of the server's, too
        (self.done + self.abandoned).max(self.failed)
    }

    fn conduct(&self, run: &Inputs<'_>) -> (Conduct, Option<f64>, String) {
        if let Some(tail) = &self.tail
            && self.refused > 0
        {
            return self.refusing_at_end(run, tail);
        }
        if let Some(silence) = self.silence {
            return self.stalled(run, silence);
        }
        if self.failed_by_server == 0 && self.succeeded == 0 {
            return (Conduct::Unreached, None, not_reached(run));
        }
        if self.failed > 0 && self.missed * 2 >= self.failed {
            return (Conduct::Unexpected, self.since_s(), self.failures(run));
        }
        // where another objective is missed, the failures are the better explanation
        let allowed = allowed_failures(run.slo).filter(|_| missed_objectives(run.slo).is_none());
        let too_many = self.share() >= FAILING_SHARE_MIN && allowed.is_none();
        if too_many || (self.failed > 0 && misses_failures(run.slo)) {
            let behind = self.behind.map_or(String::new(), |behind| {
                format!("; cannot keep up: {}", shortfall_text(behind))
            });
            let text = format!("{}{behind}", self.failures(run));
            return (Conduct::Failing, self.since_s(), text);
        }
        if let Some(behind) = self.behind {
            return (Conduct::Overloaded, None, shortfall_text(behind));
        }
        match missed_objectives(run.slo) {
            Some(text) => (Conduct::Slow, None, text),
            None => (Conduct::Serving, None, self.serving(allowed)),
        }
    }

    fn since_s(&self) -> Option<f64> {
        self.tail.as_ref().and_then(|tail| tail.since_s)
    }

    /// Returns the conduct of a server that refuses connections at the end: if others broke before,
    /// the process has ended.
    fn refusing_at_end(&self, run: &Inputs<'_>, tail: &Tail) -> (Conduct, Option<f64>, String) {
        let refused = format!("{} connections were refused", show::count(self.refused));
        let Some(since_s) = tail.since_s else {
            let first = run.first_call.and_then(|call| call.failure.as_ref());
            let text = match first {
                Some((_, text)) if !text.is_empty() => printable(text, 160),
                _ => format!("{refused}, from the first to the last"),
            };
            return (Conduct::Refusing, None, text);
        };
        let since = format!("since {}", at(since_s));
        if self.broken > 0 {
            let ended: Vec<String> = BROKEN
                .iter()
                .filter_map(|class| self.errors.iter().find(|(known, _)| known == class))
                .map(|error| error_text(*error))
                .collect();
            let text = format!("{since} (died: {}; then {refused})", ended.join(", "));
            return (Conduct::Gone, Some(since_s), text);
        }
        // connections of one call end by themselves
        let kept = run.plan.connection.calls != Some(1);
        let idle = open_until(run.measurement, since_s);
        if kept && idle > 0 {
            let ended = crate::words::counted(idle, "idle connection");
            let text = format!("{since} (died: {ended} ended; then {refused})");
            return (Conduct::Gone, Some(since_s), text);
        }
        (Conduct::Refusing, Some(since_s), format!("{since}: {refused}"))
    }

    fn stalled(
        &self,
        run: &Inputs<'_>,
        (silence, waiting): (Nanos, u64),
    ) -> (Conduct, Option<f64>, String) {
        let calls = crate::words::counted(waiting, "call");
        if self.succeeded == 0 && self.statuses.is_empty() {
            return (Conduct::Stalled, None, format!("no response to any of {calls}"));
        }
        let since_s = (run.measurement.window - silence).as_secs_f64();
        let text = format!(
            "since {}: no response in the last {}, to {calls}",
            at(since_s),
            show::duration(silence)
        );
        (Conduct::Stalled, Some(since_s), text)
    }

    /// Formats `30.0 % of 2,000 calls (600 answered 500, 3 × connection refused)`.
    fn failures(&self, run: &Inputs<'_>) -> String {
        // a status that only a step of a journey did not expect
        let unnamed = self.statuses.is_empty() && self.errors.is_empty();
        let unnamed = unnamed.then_some((FailureClass::Status, self.failed));
        let statuses = self.statuses.iter().map(|(status, count)| {
            let wanted = expectation_text(run.plan);
            format!("{} answered {status}{wanted}", show::count(*count))
        });
        let mut parts: Vec<String> = statuses
            .chain(self.errors.iter().chain(&unnamed).map(|error| error_text(*error)))
            .collect();
        let more = parts.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            parts.truncate(NAMED_MAX);
            parts.push(format!("{more} more kinds"));
        }
        let since = self.since_s().map_or(String::new(), |s| format!("all since {}; ", at(s)));
        format!(
            "{since}{} of {} ({})",
            show::share(self.share()),
            crate::words::counted(self.called(), "call"),
            parts.join(", ")
        )
    }

    /// Describes a server that serves. `allowed`: the objective that this share of failures meets.
    fn serving(&self, allowed: Option<&str>) -> String {
        let calls = crate::words::counted(self.done, "call");
        let unasked = match self.unasked {
            0 => String::new(),
            count => {
                format!("; {} × {}", show::count(count), FailureClass::Unasked.explain())
            }
        };
        if self.failed == 0 {
            return format!("{calls}, all of them as expected{unasked}");
        }
        let worst = self
            .statuses
            .iter()
            .map(|(status, count)| (*count, format!("{} answered {status}", show::count(*count))));
        let errors = self.errors.iter().map(|error| (error.1, error_text(*error)));
        let worst = worst.chain(errors).max_by_key(|(count, _)| *count);
        let worst = worst.map_or(String::new(), |(_, text)| format!(", mostly {text}"));
        let failed = match allowed.filter(|_| self.share() >= FAILING_SHARE_MIN) {
            Some(text) => format!("{} failed, within {text}", show::share(self.share())),
            None => {
                format!("{} failed ({})", show::share(self.share()), show::count(self.failed))
            }
        };
        format!("{calls}, {failed}{worst}{unasked}")
    }
}

/// Returns the objective on failures of the whole run, if there is one and it is met: it then
/// defines a failing server.
fn allowed_failures(slo: &[SloResult]) -> Option<&str> {
    let mut all = slo.iter().filter(|result| bounds_failures(result));
    let kept = all.clone().all(|result| result.met && !result.undecided);
    all.next().filter(|_| kept).map(|result| result.objective.text.as_str())
}

/// Returns whether it is an objective on the failures of the whole run.
fn bounds_failures(result: &SloResult) -> bool {
    result.objective.metric == Metric::Failures && result.objective.of.is_none()
}

/// Returns whether an objective on the failures of the whole run is missed.
fn misses_failures(slo: &[SloResult]) -> bool {
    slo.iter().filter(|result| bounds_failures(result)).any(|one| !one.met && !one.undecided)
}

/// Formats `869/s answered of 3,000/s due`.
fn shortfall_text((answered, due): (f64, f64)) -> String {
    format!("{} answered of {} due", show::rate(answered), show::rate(due))
}

/// Formats `3 × connection refused`.
fn error_text((class, count): (FailureClass, u64)) -> String {
    format!("{} × {}", show::count(count), class.explain())
}

/// Formats an instant of the window: `0.9 s`, `1 m 5 s`.
fn at(seconds: f64) -> String {
    show::duration(Nanos::from_secs_f64(seconds))
}

/// Formats ` where 200 was expected`, if the plan has an expectation.
fn expectation_text(plan: &Plan) -> String {
    let ranges = &plan.expect.status;
    if ranges.is_empty() {
        return String::new();
    }
    let range = |(low, high): &(u16, u16)| match low == high {
        true => low.to_string(),
        false => format!("{low}-{high}"),
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    format!(" where {} was expected", ranges.join(" or "))
}

fn not_reached(run: &Inputs<'_>) -> String {
    let total = &run.measurement.total;
    let worst = total.failures.iter().max_by_key(|(_, count)| **count);
    let first = run.first_call.and_then(|call| call.failure.as_ref());
    match (worst, first) {
        (Some(worst), _) => error_text((*worst.0, *worst.1)),
        (None, Some((_, text))) => printable(text, 160),
        (None, None) => "no call ended".to_owned(),
    }
}

/// Returns the statuses that a plan counts as failures.
fn wrong_statuses(run: &Inputs<'_>) -> Vec<(u16, u64)> {
    let ranges = &run.plan.expect.status;
    let expected = |status: u16| match ranges.is_empty() {
        // 101 answers a request to switch protocols, which only WebSocket sends
        true => status < 400 && (status != 101 || run.plan.speaks_websocket()),
        false => ranges.iter().any(|(low, high)| (*low..=*high).contains(&status)),
    };
    let total: &Snapshot = &run.measurement.total;
    if !total.failures.contains_key(&FailureClass::Status) {
        return Vec::new();
    }
    let mut wrong: Vec<(u16, u64)> =
        total.status.seen().filter(|(status, _)| !expected(*status)).collect();
    wrong.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    wrong
}

/// Returns the number of calls that failed an explicit expectation of the plan. A status of 400 or
/// above without one is a failure, but not of an expectation.
pub(crate) fn missed_expectations(plan: &Plan, failed: impl Fn(FailureClass) -> u64) -> u64 {
    let expect = &plan.expect;
    let asked = [
        (FailureClass::Status, !expect.status.is_empty()),
        (FailureClass::Length, expect.length.is_some()),
        (FailureClass::Body, expect.body.is_some()),
        (FailureClass::Differs, expect.verify.is_some()),
        (FailureClass::OtherTarget, expect.verify.is_some()),
    ];
    asked.into_iter().filter(|(_, asked)| *asked).map(|(class, _)| failed(class)).sum()
}

/// Describes the first objective that is missed regardless of the client's lateness, and by how
/// much.
fn missed_objectives(slo: &[SloResult]) -> Option<String> {
    let mut missed = slo.iter().filter(|result| !result.met && !result.undecided);
    let worst = missed.next()?;
    let (figure, bound) = (worst.figure, worst.objective.bound);
    let metric = match worst.objective.metric {
        Metric::Response(quantile) => stats::quantile_name(quantile),
        Metric::ResponseMean => "mean".to_owned(),
        Metric::Failures => "failures".to_owned(),
        Metric::Throughput => "throughput".to_owned(),
        Metric::Goodput => "goodput".to_owned(),
        Metric::Conforming => "conforming".to_owned(),
        Metric::FirstEvent(quantile) => format!("first-event-{}", stats::quantile_name(quantile)),
        Metric::EventGap(quantile) => format!("event-gap-{}", stats::quantile_name(quantile)),
        Metric::Events => "events".to_owned(),
        Metric::TokenTime(quantile) => format!("tpot-{}", stats::quantile_name(quantile)),
        Metric::Tokens => "tokens".to_owned(),
        Metric::Handshake(quantile) => format!("handshake-{}", stats::quantile_name(quantile)),
        Metric::AbnormalCloses => "abnormal-closes".to_owned(),
        Metric::Messages => "messages".to_owned(),
        Metric::Number(quantile) => stats::quantile_name(quantile),
        Metric::NumberMean => "mean".to_owned(),
        Metric::Reach => "reach".to_owned(),
        Metric::StatusOk => "status-ok".to_owned(),
    };
    let name = match &worst.objective.of {
        Some(subject) => format!("{}: {metric}", printable(&subject.name, 60)),
        None => metric,
    };
    let off = ratio((figure - bound).abs(), bound);
    let by = match off {
        // above twice the bound a percentage is hard to read
        1.0.. if off.is_finite() && figure > bound => {
            format!(": {} × the bound", times(figure / bound))
        }
        _ if off.is_finite() && off > 0.0 => format!(" by {}", show::share(off)),
        _ => String::new(),
    };
    let more = match missed.count() {
        0 => String::new(),
        n => format!("; {n} more missed"),
    };
    let text = printable(&worst.objective.text, 60);
    Some(format!("{name} {} misses {text}{by}{more}", worst.objective.metric.show(worst.figure)))
}

/// Formats a factor with two significant digits, as a whole number from 10 up.
fn times(factor: f64) -> String {
    format!("{factor:.*}", usize::from(factor < 9.95))
}

/// Returns completions in time steps: (end in seconds of the window, calls that ended, that
/// succeeded). Uses the kept beats, followed by rows of the series; only rows if there are no
/// beats.
fn steps(measurement: &Measurement) -> Vec<(f64, u64, u64)> {
    let beat_s = BEAT.as_secs_f64();
    let mut beats = measurement.total.beats.all();
    let kept_s = if beats.is_empty() { 0.0 } else { beat_s * BEATS_MAX as f64 };
    // half a microsecond is rounding
    let behind = |row: &&stats::Second| row.at_s + row.span_s > kept_s + 5e-7;
    let mut rows = crate::finished::in_window(measurement).filter(behind).peekable();
    if let Some(row) = rows.peek() {
        // the part of a row before the last beat must not count twice
        beats.truncate((row.at_s / beat_s).round() as usize);
    }
    let beat = |(index, (done, good)): (usize, (u32, u32))| {
        (beat_s * (index + 1) as f64, u64::from(done), u64::from(good))
    };
    let row =
        |row: &stats::Second| (row.at_s + row.span_s, row.counts.done(), row.counts.succeeded);
    beats.into_iter().enumerate().map(beat).chain(rows.map(row)).collect()
}

/// Returns the number of connections that were open before an instant of the window, if none is
/// open after it; otherwise 0. A process that dies takes its idle connections with it.
fn open_until(measurement: &Measurement, at_s: f64) -> u64 {
    let rows: Vec<&stats::Second> = crate::finished::in_window(measurement).collect();
    let before = rows.iter().rev().find(|row| row.at_s + row.span_s <= at_s);
    let mut after = rows.iter().filter(|row| row.at_s >= at_s);
    let ended = after.clone().count() > 0 && after.all(|row| row.open_connections == 0);
    before.map_or(0, |row| row.open_connections).saturating_mul(u64::from(ended))
}

fn tail(measurement: &Measurement) -> Option<Tail> {
    let steps = steps(measurement);
    let last_good = steps.iter().rposition(|(_, _, good)| *good > 0);
    let (before, after) = steps.split_at(last_good.map_or(0, |at| at + 1));
    let failed: u64 = after.iter().map(|(_, done, _)| done).sum();
    if last_good.is_none() {
        let all = &measurement.total.counts;
        let failed = failed.max(all.failed + all.timed_out);
        return (failed > 0 && all.succeeded == 0).then_some(Tail { since_s: None });
    }
    let done: u64 = before.iter().map(|(_, done, _)| done).sum();
    let good: u64 = before.iter().map(|(_, _, good)| good).sum();
    // Laplace's estimate: never 0, so that one more failure is not impossible
    let usual = (done - good + 1) as f64 / (done + 2) as f64;
    let by_chance = usual.powf(failed as f64);
    let since_s = before.last().map(|(end, _, _)| *end);
    (failed > 0 && by_chance < CHANCE_MAX).then_some(Tail { since_s })
}

/// Number of rows at the end of the window that must all fall short: half of them, and at least
/// three.
const SLOW_ROWS_MIN: usize = 3;
/// Share of the due calls in a row below which the row falls short, if also by three standard
/// errors.
const KEPT_UP_SHARE: f64 = 0.97;

/// Returns the calls answered and due per second at the end of the window of an open load, if in
/// every row fewer are answered than due. A server with long response times answers as many as are
/// due; a server that pauses catches up. `None` if the client itself was late by half of the median
/// response time.
fn unserved_load(run: &Inputs<'_>) -> Option<(f64, f64)> {
    let measurement = run.measurement;
    let total = &measurement.total;
    measurement.intended.filter(|_| !run.plan.is_ramped())?;
    if total.lag.quantile(0.5).0 * 2 > total.response().quantile(0.5).0 {
        return None;
    }
    let rows: Vec<&stats::Second> = crate::finished::in_window(measurement).collect();
    let count = rows.len().div_ceil(2).max(SLOW_ROWS_MIN);
    // the first row has the calls that a quiet server would still have in flight
    let last = rows.get(rows.len().checked_sub(count).filter(|from| *from > 0)?..)?;
    let ended = |row: &stats::Second| row.counts.done() + row.counts.dropped;
    let short = |row: &&stats::Second| {
        let due = row.counts.due as f64;
        let missing = due - ended(row) as f64;
        missing > (1.0 - KEPT_UP_SHARE) * due && missing > 3.0 * due.sqrt()
    };
    let span: f64 = last.iter().map(|row| row.span_s).sum();
    let per_s = |count: fn(&stats::Second) -> u64| {
        last.iter().map(|row| count(row)).sum::<u64>() as f64 / span
    };
    let answered = per_s(|row| row.counts.succeeded);
    last.iter().all(short).then(|| (answered, per_s(|row| row.counts.due)))
}

/// Returns the time without a response at the end of the window, and the number of calls that
/// waited then.
fn silence(measurement: &Measurement) -> Option<(Nanos, u64)> {
    let total = &measurement.total;
    let counts = &total.counts;
    if total.connections.established == 0 {
        return None;
    }
    let steps = steps(measurement);
    // a call that timed out does not show that the server is alive; a failed call does
    let fails = counts.failed > counts.timed_out;
    let alive = steps.iter().rposition(|(_, done, good)| *good > 0 || (fails && *done > 0));
    // calls that failed before the last sign of life were no longer waiting
    let before = &steps[..alive.map_or(0, |at| at + 1)];
    let ended: u64 = before.iter().map(|(_, done, good)| done.saturating_sub(*good)).sum();
    let timed_out = (counts.failed + counts.timed_out).saturating_sub(ended).min(counts.timed_out);
    // during a run, calls in flight may still be answered
    let waiting = timed_out + counts.abandoned + counts.in_flight.max(0).unsigned_abs();
    let last = alive.map_or(0.0, |at| steps[at].0);
    let silent = measurement.window - Nanos::from_secs_f64(last);
    let slow = Nanos(total.succeeded.quantile(0.99).0.saturating_mul(3));
    (waiting > 0 && silent >= STALL_MIN.max(slow)).then_some((silent, waiting))
}

#[cfg(test)]
pub(crate) mod tests;
