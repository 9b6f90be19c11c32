//! A measured run with its plan and its verdict, from which its record is made.

use crate::ids;
use plan::Plan;
use sample::{
    Environment, FailureClass, FleetFacts, HeldFacts, PathDirection, PathFacts, PostFacts,
    StackFacts, SutSeries, TokenFacts,
};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::diagnosis::Confidence;
use stats::{
    Blocks, FigureInterval, Measurement, Objective, Ruling, Second, State, Unsure, Verdict, rulings,
};
use std::net::IpAddr;
use units::Nanos;

/// A finished run with its verdict.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Name of the run: the plan's name or the URL as typed (a password in it is masked); empty for
    /// the first target.
    pub name: String,
    pub plan: Plan,
    /// The plan as TOML with every secret masked; printed in JSON and HTML as it is.
    pub plan_toml: String,
    /// Start of the measured phase, in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    pub environment: Environment,
    /// The only run; with repeats, all runs [merged].
    pub measurement: Measurement,
    pub verdict: Verdict,
    pub driver: Driver,
    /// Name look-ups made before the run.
    pub resolved: Vec<Resolved>,
    pub first_call: Option<FirstCall>,
    /// One entry for each run of a repeated plan; otherwise empty.
    pub runs: Vec<Headline>,
    pub slo: Vec<SloResult>,
    pub findings: Vec<Finding>,
    /// The server's resources, if they were watched (`--sut`).
    pub sut: Option<SutSeries>,
    /// Figures of the emulated path that everything used (`--path`).
    pub path: Option<PathFacts>,
    /// Figures of our own TCP, if it was used (`--stack own`).
    pub stack: Option<StackFacts>,
    /// Connections held open during the load (`--idle`); of the last run.
    pub held: Option<HeldFacts>,
    /// POSTs compared with the server's log (`--workload specweb99-like`); of all runs.
    pub posts: Option<PostFacts>,
    /// Token requests during the run, if the plan has tokens.
    pub tokens: Option<TokenFacts>,
    /// The machines that carried it out together (`loadstone fleet`).
    pub fleet: Option<FleetFacts>,
}

/// Resources used by the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Driver {
    /// Interface for reading and writing connections: `epoll`, `kernel TCP by io_uring`, `own TCP
    /// over TUN` and further forms of our own TCP; `kernel TCP` if a fleet's machines chose it.
    /// With `, SCHED_RR 1` after it if the threads do not use the default scheduling.
    pub io: String,
    pub threads: u32,
    /// CPU seconds of the measured phase; spinning is part of them.
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    /// Busy waiting on purpose, before due instants.
    pub spin_s: f64,
    /// Share of its core that each thread was busy, spinning excluded, 0..=1.
    pub busy: Vec<f64>,
    pub dummy: Option<DummyRun>,
}

/// The dummy run: the same client against the null server of this machine, by `calibrate`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "DummyRecord"))]
pub struct DummyRun {
    /// Median service time of a call that costs the server next to nothing, in seconds.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub call_s: f64,
    /// Date of the measurement, in seconds since 1970-01-01 UTC.
    pub taken_unix_s: f64,
}

/// One name lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub host: String,
    pub addresses: Vec<IpAddr>,
    pub took: Nanos,
}

/// The plain first call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstCall {
    /// 0 without a response.
    pub status: u16,
    /// `1.1`.
    pub http_version: String,
    /// The server was left the choice among these, by their names in ALPN; none without TLS.
    pub negotiated: Option<Vec<String>>,
    /// Bytes of body.
    pub length: u64,
    /// The `Server` field as received: not trusted, made printable by each output.
    pub server: Option<String>,
    /// Time from the start of the connect to the end of the response.
    pub took: Nanos,
    /// Reason why there was no good response, and the message of the system or library.
    pub failure: Option<(FailureClass, String)>,
    /// Hint, if more is known than the class: a sentence.
    pub fix_text: Option<String>,
    /// The beginning of the response, fit for one line: status, fields, first bytes of the body.
    pub excerpt: Option<String>,
    /// The `Alt-Svc` field as received (RFC 7838): where else, and how, the server can be asked.
    pub alt_svc: Option<String>,
}

impl FirstCall {
    /// Returns whether a request was sent or could not be sent: false for a connection alone.
    pub fn request_was_attempted(&self) -> bool {
        self.status > 0 || self.failure.is_some()
    }
}

/// One objective of `--slo` with its figure.
#[derive(Clone, Debug, PartialEq)]
pub struct SloResult {
    pub objective: Objective,
    /// Value in the unit of the objective's bound; NaN if not available.
    pub figure: f64,
    /// Interval; `None` if the figure describes only the calls that were made.
    pub interval: Option<FigureInterval>,
    /// The figure without the client's lateness, of a part of the run a lower bound; `None` if
    /// lateness does not apply to it, or is unknown.
    pub without_lag: Option<f64>,
    pub met: bool,
    /// Set if no call is beyond the bound, and the calls are fewer than the interval needs.
    pub unsure: Option<Unsure>,
    /// The interval contains the bound, there are too few samples, or a punctual client might have a
    /// different result.
    pub undecided: bool,
}

impl RunReport {
    /// Takes the objectives that lack samples into the verdict.
    pub fn require_samples(&mut self) {
        let objectives = &self.plan.measure.slo;
        stats::verdict::require_samples(&mut self.verdict, objectives, &self.measurement);
    }
}

impl SloResult {
    /// Holds a measurement against each objective.
    pub fn judge(objectives: &[Objective], measurement: &Measurement) -> Vec<SloResult> {
        let judge = |(objective, ruling): (&Objective, Ruling)| SloResult {
            objective: objective.clone(),
            figure: ruling.figure,
            interval: ruling.interval,
            without_lag: ruling.without_lag,
            met: ruling.met,
            unsure: ruling.unsure,
            undecided: ruling.undecided.is_some(),
        };
        objectives.iter().zip(rulings(objectives, measurement)).map(judge).collect()
    }
}

/// A bottleneck of the server, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "FindingRecord"))]
pub struct Finding {
    /// Stable name: `nagle-delayed-ack`.
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "crate::schema::finding"))]
    pub id: String,
    #[serde(with = "ids::confidence")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::confidence::schema"))]
    pub confidence: Confidence,
    pub evidence: String,
    /// Advice.
    #[serde(rename = "try")]
    pub advice: String,
}

/// The headline figures of one run of several. Times in seconds, rates per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "HeadlineRecord"))]
pub struct Headline {
    #[serde(with = "ids::state")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::state::schema"))]
    pub state: State,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub throughput_per_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub goodput_per_s: f64,
    /// (failed + timed out + dropped) / due.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub failure_share: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub mean_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p50_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p90_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p99_s: f64,
    #[serde(rename = "p99.9_s")]
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p99_9_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub max_s: f64,
    /// Connections that conformed.
    #[serde(default)]
    pub conforming: u64,
}

impl Headline {
    /// Returns whether a call succeeded: otherwise there are no response times.
    pub fn has_times(&self) -> bool {
        self.max_s > 0.0
    }

    pub fn new(measurement: &Measurement, state: State) -> Headline {
        let total = &measurement.total;
        let response = total.response().summary();
        Headline {
            state,
            throughput_per_s: per_second(total.in_window, measurement.rate_span()),
            goodput_per_s: per_second(total.good_in_window, measurement.rate_span()),
            failure_share: total.counts.failure_share(),
            mean_s: response.mean.as_secs_f64(),
            p50_s: response.p50.as_secs_f64(),
            p90_s: response.p90.as_secs_f64(),
            p99_s: response.p99.as_secs_f64(),
            p99_9_s: response.p99_9.as_secs_f64(),
            max_s: response.max.as_secs_f64(),
            conforming: total.connections.conforming,
        }
    }
}

/// Sums the runs of one plan: histograms and counts are added, peaks are the highest, windows and
/// their rows of the series are concatenated. Nothing is averaged (law 6).
pub fn merged(runs: &[Measurement]) -> Measurement {
    let mut all = Measurement::default();
    for run in runs {
        let offset = all.window.as_secs_f64();
        let shift = |row: &Second| Second { at_s: row.at_s + offset, ..row.clone() };
        all.series.extend(in_window(run).map(shift));
        all.total.merge(&run.total);
        all.intended_span = Some(all.due_span() + run.due_span());
        all.window += run.window;
        all.elapsed += run.elapsed;
        all.intended = match (all.intended, run.intended) {
            (Some(before), Some(now)) => Some(before + now),
            (before, now) => before.or(now),
        };
        all.connections_peak = all.connections_peak.max(run.connections_peak);
        all.interrupted |= run.interrupted;
        all.aborted = all.aborted.take().or_else(|| run.aborted.clone());
        all.blocks.resize_with(all.blocks.len().max(run.blocks.len()), Blocks::default);
        all.blocks.iter_mut().zip(&run.blocks).for_each(|(all, more)| all.append(more));
        all.looks = run.looks;
    }
    all
}

/// Sums the facts of a path over several runs: counts are added, lateness is the worst.
pub fn merged_paths(runs: impl Iterator<Item = PathFacts>) -> Option<PathFacts> {
    runs.reduce(|mut all, run| {
        for (kind, more) in all.kinds.iter_mut().zip(&run.kinds) {
            add_direction(&mut kind.up, &more.up);
            add_direction(&mut kind.down, &more.down);
        }
        let worked = all.busy * all.span.as_secs_f64() + run.busy * run.span.as_secs_f64();
        all.span += run.span;
        all.busy = if all.span.is_zero() { 0.0 } else { worked / all.span.as_secs_f64() };
        all.late_p50 = all.late_p50.max(run.late_p50);
        all.late_p99 = all.late_p99.max(run.late_p99);
        all.late_max = all.late_max.max(run.late_max);
        all.spun += run.spun;
        all.overflowed += run.overflowed;
        all.foreign += run.foreign;
        all
    })
}

/// Sums figures of our own TCP over several runs.
pub fn merged_stacks(runs: impl Iterator<Item = StackFacts>) -> Option<StackFacts> {
    runs.reduce(|mut all, run| {
        all += run;
        all
    })
}

fn add_direction(all: &mut PathDirection, more: &PathDirection) {
    all.arrived += more.arrived;
    all.delivered += more.delivered;
    all.delivered_bytes += more.delivered_bytes;
    all.duplicated += more.duplicated;
    all.corrupted += more.corrupted;
    all.lost_to_model += more.lost_to_model;
    all.lost_to_outage += more.lost_to_outage;
    all.lost_to_queue += more.lost_to_queue;
    all.lost_to_codel += more.lost_to_codel;
}

/// Returns a count over the length of a window; zero for a window of no length.
pub fn per_second(count: u64, window: Nanos) -> f64 {
    if window.is_zero() { 0.0 } else { count as f64 / window.as_secs_f64() }
}

/// Returns the rows inside the measured window: without the warm-up, and without the time after the
/// window, in which due calls are only completed.
pub fn in_window(measurement: &Measurement) -> impl Iterator<Item = &Second> {
    let end_s = measurement.window.as_secs_f64();
    measurement.series.iter().filter(move |row| {
        // A row begins at a multiple of the interval; half a microsecond is rounding.
        !row.warm_up && row.span_s > 0.0 && row.at_s < end_s - 5e-7
    })
}
