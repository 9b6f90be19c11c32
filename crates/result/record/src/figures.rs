//! The figures of a run's record, and of several runs.

use crate::finished::{Headline, RunReport, per_second};
use plan::Plan;
use stats::webmark::{Weighted, weighted_response};
use stats::{Estimate, Hist, Little, interval};
use units::Nanos;

/// Derived figures of a run. Rates per second, times in seconds, shares 0..=1; NaN for figures
/// without data.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// Completions inside the window over its length; those that succeeded.
    pub(crate) throughput: f64,
    pub(crate) goodput: f64,
    /// Calls presented to the server over the time in which they fell due: the window, or with `-n`
    /// and `--rate` the time that the rate takes for them.
    pub(crate) offered: f64,
    /// The rate that the plan intends; `None` in a closed loop and for sessions.
    pub(crate) intended: Option<f64>,
    /// Sessions that the plan intends; `None` if it intends calls.
    pub(crate) sessions_intended: Option<f64>,
    /// Headline: succeeded and timed out.
    pub(crate) response: Hist,
    /// Name look-ups.
    pub(crate) dns: Hist,
    pub(crate) calls_per_connection: f64,
    /// Mean concurrency and its check by Little's law; `None` without a window.
    pub(crate) little: Option<Little>,
    /// WebMark's T = w·S + mean R; `None` if no call succeeded.
    pub(crate) weighted: Option<Weighted>,
    /// Client CPU per call, spinning excluded.
    pub(crate) cpu_per_call: f64,
}

impl Figures {
    /// Returns the figures of a run, from its measurement and plan.
    pub(crate) fn new(report: &RunReport) -> Figures {
        let measurement = &report.measurement;
        let (total, window) = (&measurement.total, measurement.window);
        let response = total.response();
        let issued = total.service.count();
        let mut dns = Hist::new();
        report.resolved.iter().for_each(|lookup| dns.record(lookup.took));
        let driver = &report.driver;
        let cpu_s = driver.cpu_user_s + driver.cpu_system_s - driver.spin_s;
        let connections = &total.connections;
        let (due_span, rate_span) = (measurement.due_span(), measurement.rate_span());
        let intended = measurement.intended.map(|count| per_second(count, due_span));
        let intended = intended.map(|realized| given_rate(&report.plan).unwrap_or(realized));
        // the calls of a session fall due long after it: only its beginning is on the schedule
        let (intended, sessions_intended, offered_span) = match has_sessions(&report.plan) {
            true => (None, intended, window),
            false => (intended, None, due_span),
        };
        // Connections are counted over the whole run, so the calls of the warm-up belong here too.
        let carried = (issued + total.warm_up.done()) as f64;
        Figures {
            throughput: per_second(total.in_window, rate_span),
            goodput: per_second(total.good_in_window, rate_span),
            offered: per_second(stats::offered(total), offered_span),
            intended,
            sessions_intended,
            calls_per_connection: ratio(carried, connections.established as f64),
            little: Little::new(total, window),
            weighted: weighted_response(
                connections.setup_sum,
                connections.established,
                total.exchange_sum,
                total.counts.succeeded,
            ),
            cpu_per_call: ratio(cpu_s.max(0.0), issued as f64),
            response,
            dns,
        }
    }
}

/// Returns the rate that the plan sets, if it is constant.
fn given_rate(plan: &Plan) -> Option<f64> {
    let plan::Load::Open { arrivals, .. } = &plan.load else { return None };
    let holds = arrivals.from == arrivals.to && arrivals.at.is_none() && plan.stages.is_none();
    (holds && plan.scenarios.is_empty()).then_some(arrivals.from.0)
}

/// Returns whether the plan intends sessions rather than calls; false for several loads.
pub fn has_sessions(plan: &Plan) -> bool {
    plan.scenarios.is_empty() && plan.load.session().is_some()
}

/// Returns `part` as a share of `whole`; NaN if `whole` is 0.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

/// Figures shown for several runs: name, the figure of one run, and whether it is a rate.
pub type RunFigure = (&'static str, fn(&Headline) -> f64, FigureKind);

/// Value of a figure in several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Per second.
    Rate,
    /// 0..=1.
    Share,
    /// Seconds.
    Time,
}

/// Figures in printing order.
pub const RUN_FIGURES: [RunFigure; 8] = [
    ("throughput", |run| run.throughput_per_s, FigureKind::Rate),
    ("goodput", |run| run.goodput_per_s, FigureKind::Rate),
    ("failures", |run| run.failure_share, FigureKind::Share),
    ("mean", |run| run.mean_s, FigureKind::Time),
    ("p50", |run| run.p50_s, FigureKind::Time),
    ("p90", |run| run.p90_s, FigureKind::Time),
    ("p99", |run| run.p99_s, FigureKind::Time),
    ("p99.9", |run| run.p99_9_s, FigureKind::Time),
];

impl FigureKind {
    /// Formats the figure with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            FigureKind::Rate => units::show::rate(value.max(0.0)),
            FigureKind::Share => units::show::share(value.clamp(0.0, 1.0)),
            FigureKind::Time => units::show::duration(Nanos::from_secs_f64(value)),
        }
    }
}

/// Means across runs with their intervals; empty below two runs.
pub fn estimates(runs: &[Headline]) -> Vec<(&'static str, Estimate, FigureKind)> {
    let estimate = |(name, figure, kind): &RunFigure| {
        let values: Vec<f64> = runs.iter().map(figure).collect();
        interval::t_mean(&values).map(|estimate| (*name, estimate, *kind))
    };
    RUN_FIGURES.iter().filter_map(estimate).collect()
}
