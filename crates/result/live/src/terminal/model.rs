//! Model of the view: figures updated each second, within bounds.

use report::SloResult;
use sample::{AgentNow, FailureClass};
use stats::{Counts, Hist, Second, Snapshot, TargetTally, Verdict};
use std::collections::VecDeque;
use units::{Nanos, show};

/// Maximum number of rows in the graphs; older ones are dropped on the left.
pub const HISTORY_MAX: usize = 600;

/// The measured target; constant during the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The URL or file as typed, without a password.
    pub name: String,
    /// The load as text: "64 users", "2,000/s".
    pub load: String,
    /// Length of the measured part in seconds; `None` if a number of calls ends the run.
    pub span_s: Option<f64>,
    /// Calls of the whole run, if a count can end it.
    pub calls_max: Option<u64>,
    /// Number of the run and of all runs, counted from 1.
    pub repeat: (u32, u32),
    /// The ramp that the run is a step of.
    pub climb: Option<Climb>,
    /// Names of a journey's steps, in the order of the rows of [`Snapshot::targets`].
    pub steps: Vec<String>,
}

/// A ramp and its progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Climb {
    /// Name of this step: "step 7 of 20, search".
    pub step: String,
    /// The steps so far in order: load, achieved, p99, as texts.
    pub steps: Vec<[String; 3]>,
    /// Conclusion of earlier steps: "knee 190/s".
    pub known: Vec<String>,
    /// Remaining time at the start of this step, including it.
    pub left: Option<TimeLeft>,
}

/// Duration of an activity, at its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeLeft {
    pub span: Nanos,
    /// The ramp may end earlier, depending on results.
    pub at_most: bool,
}

impl TimeLeft {
    /// Formats the remaining time after this many seconds: `about 2 m 30 s`.
    pub fn after(self, passed_s: f64) -> String {
        let passed = Nanos::from_secs_f64(passed_s.max(0.0));
        // the estimate is not finer than a second
        let whole = (self.span.0.saturating_sub(passed.0)).div_ceil(Nanos::SECOND.0);
        let how = if self.at_most { "at most" } else { "about" };
        match whole {
            0..60 => format!("{how} {whole} s"),
            _ => {
                let span = Nanos(whole.saturating_mul(Nanos::SECOND.0));
                format!("{how} {}", show::duration(span))
            }
        }
    }
}

/// The server and the verdict as of now, and the objectives.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// `failing: 30 % of 2,000 calls …`, and whether that is good.
    pub server: (String, bool),
    pub verdict: Verdict,
    pub slo: Vec<SloResult>,
}

/// One second of the graphs: rates per second, times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GraphPoint {
    /// End of the second, from the start of the measured part; negative in the warm-up.
    pub(crate) at_s: f64,
    pub(crate) due: f64,
    pub(crate) done: f64,
    /// p50, p90 and p99; `None` if no call ended in the second.
    pub(crate) quantiles: Option<[f64; 3]>,
}

/// A histogram's figures for a row of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimesRow {
    pub(crate) count: u64,
    pub(crate) p50: Nanos,
    pub(crate) p90: Nanos,
    pub(crate) p99: Nanos,
    pub(crate) max: Nanos,
}

impl TimesRow {
    fn new(hist: &Hist) -> TimesRow {
        TimesRow {
            count: hist.count(),
            p50: hist.quantile(0.5),
            p90: hist.quantile(0.9),
            p99: hist.quantile(0.99),
            max: hist.max(),
        }
    }
}

/// Everything since the start of the measured part.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasuredTotals {
    pub(crate) counts: Counts,
    pub(crate) response: TimesRow,
    /// Data of the histogram of response times.
    pub(crate) times: Hist,
    /// Responses by status, most frequent first.
    pub(crate) statuses: Vec<(u16, u64)>,
    /// Name and times of each completed phase.
    pub(crate) phases: Vec<(&'static str, TimesRow)>,
    /// Failures, most frequent first.
    pub(crate) failures: Vec<(FailureClass, u64)>,
    pub(crate) established: u64,
    pub(crate) received: u64,
    /// Rows of the targets.
    pub(crate) rows: Vec<TargetRow>,
}

/// Outcomes of the calls of one target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TargetRow {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) times: TimesRow,
}

impl TargetRow {
    fn new(tally: &TargetTally) -> TargetRow {
        let failed = tally.failed + tally.timed_out;
        TargetRow { done: tally.succeeded + failed, failed, times: TimesRow::new(&tally.response) }
    }
}

impl MeasuredTotals {
    fn new(total: &Snapshot) -> MeasuredTotals {
        let phases = [
            ("connect", &total.connect),
            ("TLS", &total.tls),
            ("1st byte", &total.first_byte),
            ("transfer", &total.transfer),
        ];
        let phases = phases.into_iter().filter(|(_, hist)| !hist.is_empty());
        let mut failures: Vec<_> = total.failures.iter().map(|(class, n)| (*class, *n)).collect();
        failures.sort_by_key(|(class, count)| (std::cmp::Reverse(*count), *class));
        let mut statuses: Vec<_> = total.status.seen().collect();
        statuses.sort_by_key(|(status, count)| (std::cmp::Reverse(*count), *status));
        let times = total.response();
        MeasuredTotals {
            counts: total.counts,
            response: TimesRow::new(&times),
            times,
            statuses,
            phases: phases.map(|(name, hist)| (name, TimesRow::new(hist))).collect(),
            failures,
            established: total.connections.established,
            received: total.bytes_received,
            rows: total.targets.iter().map(TargetRow::new).collect(),
        }
    }
}

/// The whole model.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(crate) subject: Subject,
    pub(crate) history: VecDeque<GraphPoint>,
    pub(crate) latest: Option<Second>,
    pub(crate) so_far: MeasuredTotals,
    pub(crate) judged: Option<Judged>,
    /// Machines of a fleet.
    pub(crate) agents: Vec<AgentNow>,
    /// The user requested the end.
    pub(crate) stopping: bool,
}

impl Model {
    pub fn new(subject: Subject) -> Model {
        Model { subject, ..Model::default() }
    }

    /// Adds a complete second, with everything measured up to its end.
    pub fn second(&mut self, second: &Second, total: &Snapshot) {
        let span = second.span_s.max(1e-9);
        let counts = second.counts;
        let times = [second.p50, second.p90, second.p99];
        let answered = !second.max.is_zero() && !second.warm_up;
        let point = GraphPoint {
            at_s: second.at_s + second.span_s,
            due: counts.due as f64 / span,
            done: counts.done() as f64 / span,
            quantiles: answered.then(|| times.map(Nanos::as_secs_f64)),
        };
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(point);
        self.latest = Some(second.clone());
        self.so_far = MeasuredTotals::new(total);
    }

    pub fn set_verdict(&mut self, judged: Judged) {
        self.judged = Some(judged);
    }

    /// Sets the current machines of a fleet.
    pub fn agents(&mut self, agents: Vec<AgentNow>) {
        self.agents = agents;
    }

    /// Records that the user requested the end of the run.
    pub fn stopping(&mut self) {
        self.stopping = true;
    }

    /// Returns the elapsed seconds of the measured part; negative in the warm-up.
    pub(crate) fn passed_s(&self) -> Option<f64> {
        self.latest.as_ref().map(|second| second.at_s + second.span_s)
    }
}
