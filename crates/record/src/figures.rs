//! The figures of a run that every output prints, derived once.

use crate::finished::{Headline, RunReport, in_window, per_second};
use crate::words;
use plan::Plan;
use plan::scenario::ScenarioPlan;
use stats::webmark::{Weighted, weighted_response};
use stats::{
    Doubt, Endings, Estimate, Hist, Little, Measurement, ScenarioTally, Second, Snapshot, Spread,
    interval, samples_needed,
};
use units::Nanos;

/// Derived figures of a run. Rates per second, times in seconds, shares 0..=1; NaN where there is
/// nothing to take a figure from.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Completions inside the window over its length; those that succeeded.
    pub throughput: f64,
    pub goodput: f64,
    /// Calls handed to the server over the time in which they fell due: the window, or with `-n` and
    /// `--rate` as long as the rate takes for them.
    pub offered: f64,
    /// The rate that the plan asked for; `None` in a closed loop and where it asks for sessions.
    pub intended: Option<f64>,
    /// Sessions that the plan asked for; `None` where it asks for calls.
    pub sessions_intended: Option<f64>,
    /// Headline: succeeded and timed out.
    pub response: Hist,
    /// What of it may be the client's own lateness; `None` where that was not recorded.
    pub doubt: Option<Doubt>,
    /// Name look-ups.
    pub dns: Hist,
    /// Calls that were issued and ended.
    pub issued: u64,
    pub calls_per_connection: f64,
    /// Mean concurrency and Little's check of it; `None` without a window.
    pub little: Option<Little>,
    /// WebMark's T = w·S + mean R; `None` when no call succeeded.
    pub weighted: Option<Weighted>,
    pub conforming_share: f64,
    /// Client CPU per call, spinning excluded.
    pub cpu_per_call: f64,
    pub quantiles: Vec<QuantileRow>,
}

/// One row of the list of quantiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileRow {
    /// 0..=1.
    pub quantile: f64,
    pub response: Nanos,
    /// The same without the client's own lateness.
    pub without_lag: Option<Nanos>,
    /// Its interval by order statistics, which takes the calls as independent of each other.
    pub interval: Option<(Nanos, Nanos)>,
    pub service: Nanos,
    /// False when so few calls were recorded that the value is a guess.
    pub enough: bool,
}

impl Figures {
    /// The figures of a run, from its measurement and plan.
    pub fn new(report: &RunReport) -> Figures {
        let measurement = &report.measurement;
        let (total, window) = (&measurement.total, measurement.window);
        let response = total.response();
        let issued = total.service.count();
        let mut dns = Hist::new();
        report.resolved.iter().for_each(|lookup| dns.record(lookup.took));
        let driver = &report.driver;
        let cpu_s = driver.cpu_user_s + driver.cpu_system_s - driver.spin_s;
        let connections = &total.connections;
        let due_span = measurement.due_span();
        let intended = measurement.intended.map(|count| per_second(count, due_span));
        // the calls of a session fall due long after it: only its beginning is on the schedule
        let (intended, sessions_intended, offered_span) = match has_sessions(&report.plan) {
            true => (None, intended, window),
            false => (intended, None, due_span),
        };
        // Connections are counted over the whole run, so the calls of the warm-up belong here too.
        let carried = (issued + total.warm_up.done()) as f64;
        Figures {
            throughput: per_second(total.in_window, window),
            goodput: per_second(total.good_in_window, window),
            offered: per_second(stats::offered(total), offered_span),
            intended,
            sessions_intended,
            calls_per_connection: ratio(carried, connections.established as f64),
            little: Little::of(total, window),
            weighted: weighted_response(
                connections.setup_sum,
                connections.established,
                total.exchange_sum,
                total.counts.succeeded,
            ),
            conforming_share: ratio(connections.conforming as f64, connections.judged as f64),
            cpu_per_call: ratio(cpu_s.max(0.0), issued as f64),
            quantiles: quantiles(&report.plan.measure.quantiles, &response, total),
            doubt: Doubt::of(total),
            response,
            dns,
            issued,
        }
    }
}

/// Whether the plan asks for sessions rather than calls; not where it has several loads.
pub fn has_sessions(plan: &Plan) -> bool {
    plan.scenarios.is_empty() && plan.load.session().is_some()
}

fn quantiles(wanted: &[f64], response: &Hist, total: &Snapshot) -> Vec<QuantileRow> {
    let doubt = Doubt::of(total);
    let row = |&quantile: &f64| QuantileRow {
        quantile,
        response: response.quantile(quantile),
        without_lag: doubt.as_ref().map(|doubt| doubt.lowest_at(quantile)),
        interval: interval::hist_quantile(response, quantile),
        service: total.service.quantile(quantile),
        enough: response.count() >= samples_needed(quantile),
    };
    wanted.iter().filter(|quantile| quantile.is_finite()).map(row).collect()
}

/// NaN when there is no whole.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

/// Rows after the window.
pub fn after_window(measurement: &Measurement) -> impl Iterator<Item = &Second> {
    let end_s = measurement.window.as_secs_f64();
    measurement.series.iter().filter(move |row| !row.warm_up && row.at_s >= end_s - 5e-7)
}

/// Calls that ended in a second of the series, by its length.
pub fn completions_per_s(second: &Second) -> f64 {
    second.counts.done() as f64 / second.span_s
}

/// Some neighbouring rows of the series as one point of a chart.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    pub at_s: f64,
    pub span_s: f64,
    pub due: u64,
    pub done: u64,
    /// Failed, timed out or dropped.
    pub bad: u64,
    /// From here the highest of the rows: quantiles have no mean.
    pub p50: Nanos,
    pub p90: Nanos,
    pub p99: Nanos,
    pub max: Nanos,
    pub slip_p99: Nanos,
    pub in_flight: u64,
    pub open_connections: u64,
    /// Share of its core that a worker was busy, 0..=1.
    pub driver_cpu: f64,
    pub spread: Spread,
    /// Empty where it was not recorded.
    pub endings: Endings,
}

impl Bucket {
    /// A count of the bucket per second.
    pub fn per_s(&self, count: u64) -> f64 {
        ratio(count as f64, self.span_s)
    }
}

/// The window in at most `count_max` buckets of equally many rows (the last may have fewer).
pub fn buckets(measurement: &Measurement, count_max: usize) -> Vec<Bucket> {
    let rows: Vec<&Second> = in_window(measurement).collect();
    let size = rows.len().div_ceil(count_max).max(1);
    let bucket = |rows: &[&Second]| {
        let start = Bucket { at_s: rows[0].at_s, ..Bucket::default() };
        rows.iter().fold(start, |mut bucket, row| {
            let counts = &row.counts;
            bucket.span_s += row.span_s;
            bucket.due += counts.due;
            bucket.done += counts.done();
            bucket.bad += counts.failed + counts.timed_out + counts.dropped;
            bucket.p50 = bucket.p50.max(row.p50);
            bucket.p90 = bucket.p90.max(row.p90);
            bucket.p99 = bucket.p99.max(row.p99);
            bucket.max = bucket.max.max(row.max);
            bucket.slip_p99 = bucket.slip_p99.max(row.slip_p99);
            bucket.in_flight = bucket.in_flight.max(row.in_flight);
            bucket.open_connections = bucket.open_connections.max(row.open_connections);
            bucket.driver_cpu = bucket.driver_cpu.max(row.driver_cpu);
            bucket.spread.merge(&row.spread);
            row.endings.iter().for_each(|endings| bucket.endings.merge(endings));
            bucket
        })
    };
    rows.chunks(size).map(bucket).collect()
}

/// What the server said of its own work: a row per name, names beyond the bound in one.
pub fn server_timings(total: &Snapshot) -> Vec<(&str, &Hist)> {
    let timings = &total.server_timings;
    // no name can be this: parentheses are no characters of a token
    let other = [("(other)", timings.other())].into_iter().filter(|(_, hist)| !hist.is_empty());
    timings.named().chain(other).collect()
}

/// The calls of one target.
#[derive(Clone, Debug)]
pub struct UrlRow {
    /// Its row in the list of targets, from 0; the per-call log names it. Where patterns put targets
    /// together, its row in what they left.
    pub target: usize,
    /// What it is called, where it has a name: a step of a journey.
    pub name: Option<String>,
    /// Or the pattern that these targets match.
    pub url: String,
    /// Targets that a pattern put together here; 0: it is one target's own row.
    pub folded: u64,
    pub count: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub body_bytes: u64,
    pub response: Hist,
}

/// One row per target or pattern, the most called first, steps of journeys in the plan's order; empty
/// with a single target.
pub fn url_rows(report: &RunReport) -> Vec<UrlRow> {
    let tallies = &report.measurement.total.targets;
    let plan = &report.plan;
    let shared_row = plan.row_count() > tallies.len();
    let row = |(index, tally): (usize, &stats::TargetTally)| {
        let shared = shared_row && index + 1 == tallies.len();
        let part = plan.row(index).filter(|_| !shared);
        let fold = part.and_then(|part| part.fold);
        let target = part.and_then(|part| plan.targets.get(part.first));
        let url = match (fold, target) {
            (Some(fold), _) => plan.measure.folds.patterns[fold].text.clone(),
            (None, Some(target)) => words::shown_url(&target.url),
            (None, None) => "other".to_owned(),
        };
        UrlRow {
            target: index,
            name: target.and_then(|target| target.name.clone()),
            url,
            folded: part.filter(|part| part.fold.is_some()).map_or(0, |part| part.targets),
            count: tally.succeeded + tally.failed + tally.timed_out,
            succeeded: tally.succeeded,
            failed: tally.failed,
            timed_out: tally.timed_out,
            body_bytes: tally.body_bytes,
            response: tally.response.clone(),
        }
    };
    let mut rows: Vec<UrlRow> = tallies.iter().enumerate().map(row).collect();
    // steps are read in their order, which is the plan's
    if report.plan.journeys.is_none() {
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    }
    rows
}

/// One of several loads.
#[derive(Clone, Debug)]
pub struct ScenarioRow {
    pub name: String,
    /// Its load in words.
    pub load: String,
    pub tally: ScenarioTally,
}

/// One row per scenario, in the plan's order; empty where the plan has none.
pub fn scenario_rows(report: &RunReport) -> Vec<ScenarioRow> {
    let tallies = &report.measurement.total.scenarios;
    let row = |(row, scenario): (usize, &ScenarioPlan)| ScenarioRow {
        name: scenario.name.clone(),
        load: words::scenario(&report.plan, scenario),
        tally: tallies.get(row).cloned().unwrap_or_default(),
    };
    report.plan.scenarios.iter().enumerate().map(row).collect()
}

/// The calls of one kind of clients.
#[derive(Clone, Debug)]
pub struct ClientsRow {
    pub name: String,
    /// How many clients are of this kind.
    pub clients: u32,
    pub succeeded: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub body_bytes: u64,
    pub response: Hist,
}

/// One row per kind of clients, in the plan's order; empty where the plan has none.
pub fn clients_rows(report: &RunReport) -> Vec<ClientsRow> {
    let Some(population) = &report.plan.connection.clients else { return Vec::new() };
    let tallies = &report.measurement.total.clients;
    let counts = population.counts(report.plan.client_count());
    let row = |(row, (name, clients)): (usize, (String, u32))| {
        let tally = tallies.get(row).cloned().unwrap_or_default();
        ClientsRow {
            name,
            clients,
            succeeded: tally.succeeded,
            failed: tally.failed,
            timed_out: tally.timed_out,
            body_bytes: tally.body_bytes,
            response: tally.response,
        }
    };
    report.plan.client_names().into_iter().zip(counts).enumerate().map(row).collect()
}

impl ClientsRow {
    /// Its calls that ended.
    pub fn count(&self) -> u64 {
        self.succeeded + self.failed + self.timed_out
    }
}

impl UrlRow {
    /// What stands at its head.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.url)
    }
}

/// What is shown of several runs: name, the figure of one run, and whether it is a rate.
pub type RunFigure = (&'static str, fn(&Headline) -> f64, FigureKind);

/// What a figure of several runs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Per second.
    Rate,
    /// 0..=1.
    Share,
    /// Seconds.
    Time,
}

/// In the order in which they are printed.
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
    /// The figure with its unit.
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

/// Mean contribution of each part of a call to its response time, in seconds per issued call:
/// waiting for a connection, our own lateness, and the phases, each with the number of its colour.
/// They add up to the mean time of issued calls, but for calls without a first byte and what follows
/// the first byte of those that did not succeed.
pub fn composition(report: &RunReport, figures: &Figures) -> Vec<(usize, &'static str, f64)> {
    let total = &report.measurement.total;
    let parts = [
        ("wait", &total.wait),
        ("lag", &total.lag),
        ("connect", &total.connect),
        ("TLS", &total.tls),
        ("first byte", &total.first_byte),
        ("transfer", &total.transfer),
    ];
    let per_call =
        |hist: &Hist| ratio(hist.mean().as_secs_f64() * hist.count() as f64, figures.issued as f64);
    let parts = parts.into_iter().enumerate();
    let parts = parts.map(|(color, (name, hist))| (color, name, per_call(hist)));
    parts.filter(|(_, _, seconds)| *seconds > 0.0).collect()
}
