//! Charts of a ramp: throughput, response, failures and the server's resources against load, and the
//! scalability law.

use super::watched::watched;
use super::{PAGE, RampRecord, RampStepRecord, of_target};
use crate::printable;
use crate::run::server::{self, Watched};
use crate::section::chart::{AxisUnit, Chart, Dash, Dots, Horizontal, Line, Range, Tone, Values};
use crate::section::{self, Block, Document, Voice, grid, text_block};
use stats::curve::{Axis, Level, Point, Purpose, levels};
use stats::{Hist, Metric, interval};

/// Purposes that make up the curve; steps after an overload belong to none.
const WHOLE: [Purpose; 4] = [Purpose::Up, Purpose::Search, Purpose::Confirm, Purpose::Overload];

/// Draws the quantity against load, with the meaning of the marks.
pub(super) fn against_load(document: &mut Document, report: &RampRecord) {
    document.add(PAGE, [section::placed("curve", "The curve")]);
    let charts = [throughput(report).into(), response(report).into(), failures(report)];
    document.add(PAGE, [grid(charts.into_iter().chain(resources(report).map(Block::from)))]);
    document.add(PAGE, [text_block(Voice::Note, marks(report)), Block::HowToLook]);
}

fn marks(report: &RampRecord) -> String {
    let repeated = match report.steps.iter().any(|step| step.repeat > 0) {
        true => {
            "; where it was repeated, the mean with its 95 % interval (Student's t), and the quantiles of \
             all its calls together"
        }
        false => "",
    };
    let limited = match report.steps.iter().filter(|step| step.client_limited).count() {
        0 => String::new(),
        n => format!(
            " Hollow points ({n}) were limited by the client, not by the server: they are excluded \
             from all figures."
        ),
    };
    format!("Each point is one measured load level{repeated}.{limited}")
}

/// Returns the steps of a label by level, with the given purposes.
fn points(report: &RampRecord, label: usize, of: &[Purpose]) -> Vec<Level> {
    let mine = report.steps_of(label).filter(|step| of.contains(&step.purpose));
    let points: Vec<Point> = mine.map(RampStepRecord::point).collect();
    levels(&points)
}

/// Returns every tested level, in ascending order, once.
fn places(report: &RampRecord) -> Vec<f64> {
    let mut all: Vec<f64> = report.steps.iter().map(|step| step.level).collect();
    all.retain(|level| level.is_finite());
    all.sort_by(f64::total_cmp);
    all.dedup_by(|a, b| same(*a, *b));
    all
}

/// Compares levels as in [`levels`]: a difference below a millionth is rounding.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
}

fn horizontal(axis: Axis, places: &[f64]) -> Horizontal {
    let (low, high) =
        (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(1.0));
    // repeatedly doubled levels would crowd together at the left
    let log = low > 0.0 && high / low > 20.0 && places.len() > 2 && geometric(places);
    let (name, unit) = match axis {
        Axis::Rate => ("load", AxisUnit::Rate),
        Axis::Population => ("users", AxisUnit::Count),
        Axis::Loss => ("loss", AxisUnit::Share),
        Axis::RoundTrip => ("round trip", AxisUnit::Time),
        Axis::LinkRate => ("bit/s of the link", AxisUnit::Count),
    };
    // the last point is not drawn on the edge
    let (low, high) = if log { (low / 1.1, high * 1.1) } else { (0.0, high * 1.04) };
    Horizontal { name, unit, log, low, high }
}

fn geometric(places: &[f64]) -> bool {
    let middle = places[places.len() / 2];
    let (low, high) = (places[0], places[places.len() - 1]);
    (middle / (low * high).sqrt()).ln().abs() < (middle / low.midpoint(high)).ln().abs()
}

fn chart(report: &RampRecord, id: &str, title: &str, y: AxisUnit) -> Chart {
    let at = places(report);
    let words = format!("{title}, against load");
    Chart { words, ..Chart::new(id, title, horizontal(report.axis, &at), y) }.with_places(at)
}

/// Returns the value of the level at each position.
fn placed(at: &[f64], levels: &[Level], value: impl Fn(&Level) -> Option<f64>) -> Values {
    let there = |place: &f64| levels.iter().find(|level| same(level.at, *place));
    at.iter().map(|place| there(place).and_then(&value)).collect()
}

/// Draws the points that the client limited.
fn limited(
    report: &RampRecord,
    label: usize,
    at: &[f64],
    of: fn(&RampStepRecord) -> f64,
) -> Values {
    let there = |place: &f64| {
        let mut steps = report.steps_of(label);
        steps.find(|step| step.client_limited && same(step.level, *place))
    };
    at.iter().map(|place| there(place).map(of).filter(|value| value.is_finite())).collect()
}

/// Adds the mean over the repeats and its Student's t interval to a line, if there are repeats.
fn with_band(line: Line, at: &[f64], levels: &[Level], figure: fn(&Point) -> f64) -> Line {
    let estimate = |level: &Level| {
        let values: Vec<f64> = level.points.iter().map(figure).collect();
        interval::t_mean(&values)
    };
    let low = placed(at, levels, |level| estimate(level).map(|found| found.low.max(0.0)));
    let high = placed(at, levels, |level| estimate(level).map(|found| found.high));
    let there = low.iter().any(Option::is_some);
    Line { band: there.then_some((low, high)), ..line }
}

fn throughput(report: &RampRecord) -> Chart {
    let mut chart = chart(report, "curve", "Throughput against load", AxisUnit::Rate);
    let at = chart.at.clone();
    let mut highest: f64 = 0.0;
    for n in 0..report.labels.len() {
        let (tone, dash) = Tone::nth(n);
        let whole = points(report, n, &WHOLE);
        let values = placed(&at, &whole, |level| Some(level.mean(|point| point.achieved_per_s)));
        highest = values.iter().flatten().fold(highest, |most, value| most.max(*value));
        let mut line = Line::new(&of_target(report, n, "achieved"), tone, values).dashed(dash);
        line = with_band(line.dotted(Dots::Joined), &at, &whole, |point| point.achieved_per_s);
        line.hollow = limited(report, n, &at, |step| step.point().achieved_per_s);
        chart.lines.push(line);
        if whole.iter().any(|level| level.mean(|point| point.failure_share) > 0.001) {
            let good = placed(&at, &whole, |level| Some(level.mean(|point| point.goodput_per_s)));
            let line = Line::new(&of_target(report, n, "good"), tone, good).dashed(Dash::Short);
            chart.lines.push(line.dotted(Dots::Joined).thin());
        }
        let down = points(report, n, &[Purpose::Down]);
        if !down.is_empty() {
            let back = placed(&at, &down, |level| Some(level.mean(|point| point.achieved_per_s)));
            let line = Line::new(&of_target(report, n, "on the way down"), tone, back);
            chart.lines.push(line.dashed(Dash::Long).dotted(Dots::Joined).thin());
        }
    }
    if report.axis == Axis::Rate {
        let offered = at.iter().map(|place| Some(*place).filter(|place| *place <= highest * 1.15));
        let line = Line::new("as offered", Tone::Soft, offered.collect());
        chart.lines.push(line.dashed(Dash::Short).thin());
    }
    chart.ranges = ranges(report, chart.x);
    chart
}

/// Returns the knees and capacities of every target.
fn ranges(report: &RampRecord, x: Horizontal) -> Vec<Range> {
    let mut ranges = Vec::new();
    let one = report.labels.len() == 1;
    let mut add = |name: String, tone, span: &stats::curve::Span| {
        let (low, high) = span.interval().unwrap_or((span.at, span.at));
        // without measurements, nothing is drawn
        let low = if span.is_open_below() { span.at } else { low };
        let (low, high) = (low.max(x.low), high.min(x.high));
        if span.at > 0.0 && span.at.is_finite() && low <= high {
            ranges.push(Range { name, tone, at: Some(span.at), low, high });
        }
    };
    for (n, curve) in report.curves().iter().enumerate() {
        let knee = curve.knee.as_ref().map(|knee| &knee.at);
        // without an objective the capacity is the knee again
        let found = curve.capacity.as_ref().filter(|found| !found.objectives.is_empty());
        let capacity = found.map(|found| &found.at);
        let (knee_tone, capacity_tone) = match one {
            true => (Tone::Orange, Tone::Green),
            false => (Tone::nth(n).0, Tone::nth(n).0),
        };
        // with several targets only one range each: more would hide the curves
        if let Some(knee) = knee.filter(|_| one || capacity.is_none()) {
            add(of_target(report, n, "knee"), knee_tone, knee);
        }
        if let Some(capacity) = capacity {
            add(of_target(report, n, "capacity"), capacity_tone, capacity);
        }
    }
    ranges
}

/// Merges the response times of all repeats of a level: histograms add, quantiles do not.
fn merge_repeats(report: &RampRecord, label: usize, level: f64) -> Hist {
    let mut all = Hist::new();
    let there = |step: &&RampStepRecord| {
        WHOLE.contains(&step.purpose) && !step.client_limited && same(step.level, level)
    };
    for step in report.steps_of(label).filter(there) {
        all.merge(&step.run.response());
    }
    all
}

fn response(report: &RampRecord) -> Chart {
    let title = "Response time against load (log scale)";
    let mut chart = chart(report, "response", title, AxisUnit::Time);
    chart.log = true;
    let at = chart.at.clone();
    for n in 0..report.labels.len() {
        let (tone, dash) = Tone::nth(n);
        let hists: Vec<Hist> = at.iter().map(|level| merge_repeats(report, n, *level)).collect();
        let of = |quantile: f64| -> Values {
            let value = |hist: &Hist| hist.quantile(quantile).as_secs_f64();
            hists.iter().map(|hist| Some(value(hist)).filter(|time| *time > 0.0)).collect()
        };
        let p99 = Line::new(&of_target(report, n, "p99"), tone, of(0.99)).dashed(Dash::Long);
        let p50 = Line::new(&of_target(report, n, "p50"), tone, of(0.5)).dashed(dash);
        let mut p99 = p99.dotted(Dots::Joined).thin();
        p99.hollow = limited(report, n, &at, |step| step.point().p99_s);
        chart.lines.extend([p99, p50.dotted(Dots::Joined)]);
    }
    for objective in objectives(report) {
        let bound = objective.bound;
        let line = Line::new(&objective.text, Tone::Soft, vec![Some(bound); at.len()]);
        chart.lines.push(line.dashed(Dash::Short).thin());
    }
    chart.ranges = ranges(report, chart.x);
    chart
}

/// Returns the objectives about times, once each.
fn objectives(report: &RampRecord) -> Vec<stats::Objective> {
    let mut all: Vec<stats::Objective> = Vec::new();
    let capacities = report.curves.iter().filter_map(|curve| curve.capacity.as_ref());
    for objective in capacities.flat_map(|capacity| &capacity.objectives) {
        let of_time = matches!(objective.metric, Metric::Response(_) | Metric::ResponseMean);
        if of_time && all.iter().all(|other| other.text != objective.text) {
            all.push(objective.clone());
        }
    }
    all
}

fn failures(report: &RampRecord) -> Block {
    if report.steps.iter().all(|step| step.run.failure_share <= 0.0) {
        return text_block(Voice::Plain, "No call failed, timed out or was dropped at any step.");
    }
    let title = "Failed, timed out or dropped, against load";
    let mut chart = chart(report, "failures", title, AxisUnit::Share);
    let at = chart.at.clone();
    for n in 0..report.labels.len() {
        let (tone, dash) = Tone::nth(if report.labels.len() == 1 { 5 } else { n });
        let whole = points(report, n, &WHOLE);
        let values = placed(&at, &whole, |level| Some(level.mean(|point| point.failure_share)));
        let line = Line::new(&of_target(report, n, "share of the calls due"), tone, values);
        chart.lines.push(line.dashed(dash).dotted(Dots::Joined));
    }
    chart.into()
}

/// Returns the resources used by the server at each load, if it was watched.
fn resources(report: &RampRecord) -> Option<Chart> {
    let watched = |n: usize| {
        let levels = watched(report, n);
        let name = report.labels.get(n).map_or_else(String::new, |one| printable(one, 60));
        (!levels.is_empty()).then_some(Watched { name, levels })
    };
    let all: Vec<Watched> = (0..report.labels.len()).filter_map(watched).collect();
    if all.is_empty() {
        return None;
    }
    let title = "The server's resources in use, against load";
    let mut chart = chart(report, "resources", title, AxisUnit::Share);
    chart.ranges = ranges(report, chart.x);
    server::against_load(chart, &all)
}

/// Number of points of the fitted law between the measured ones.
const FIT_POINTS: usize = 60;

/// Draws throughput against mean concurrency, with the scalability law through it.
pub(super) fn scalability(document: &mut Document, report: &RampRecord) {
    let curves = report.curves().into_iter().enumerate();
    let fits: Vec<_> = curves.filter_map(|(n, curve)| Some((n, curve.usl?))).collect();
    if fits.is_empty() {
        return;
    }
    let mine = |n: usize| -> Vec<Level> { points(report, n, &WHOLE) };
    let measured: Vec<(usize, f64, f64)> = fits
        .iter()
        .flat_map(|(n, _)| mine(*n).into_iter().flat_map(|level| level.points).map(|p| (*n, p)))
        .map(|(n, point)| (n, point.concurrency, point.goodput_per_s))
        .filter(|(_, concurrency, _)| concurrency.is_finite())
        .collect();
    let high = measured.iter().map(|(_, concurrency, _)| *concurrency).fold(1.0, f64::max);
    let mut at: Vec<f64> = (0..=FIT_POINTS).map(|n| high * n as f64 / FIT_POINTS as f64).collect();
    at.extend(measured.iter().map(|(_, concurrency, _)| *concurrency));
    at.sort_by(f64::total_cmp);
    at.dedup_by(|a, b| same(*a, *b));
    let x = Horizontal {
        name: "in flight",
        unit: AxisUnit::Count,
        log: false,
        low: 0.0,
        high: high * 1.02,
    };
    let title = "Throughput against calls in flight, and the scalability law";
    let mut chart = Chart::new("scalability", title, x, AxisUnit::Rate);
    for (n, fit) in fits {
        let (tone, dash) = Tone::nth(n);
        let law = at.iter().map(|place| Some(fit.throughput(*place)).filter(|x| x.is_finite()));
        let line = Line::new(&of_target(report, n, "law"), tone, law.collect());
        chart.lines.push(line.dashed(if dash == Dash::None { Dash::Long } else { dash }).thin());
        let there = |place: &f64| {
            measured.iter().find(|(label, c, _)| *label == n && same(*c, *place)).map(|(.., x)| *x)
        };
        let line =
            Line::new(&of_target(report, n, "measured"), tone, at.iter().map(there).collect());
        chart.lines.push(line.dotted(Dots::Alone));
    }
    let law = "X(N) = g N / (1 + a (N − 1) + b N (N − 1)): contention a makes calls wait for each other, \
               coherency b makes more of them slower than fewer (Gunther).";
    document.add(PAGE, [chart.with_places(at).into(), text_block(Voice::Note, law)]);
}
