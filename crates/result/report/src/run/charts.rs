//! The charts of a run: the figures in each.

use super::endings;
use crate::distributions::{Distribution, by_quantile, few_samples};
use crate::figures::{self, Bucket};
use crate::section::chart::{
    AxisUnit, Cells, Chart, Dash, Horizontal, Line, POINTS_MAX, Tone, Values,
};
use crate::section::{Block, Composition, Voice, grid, text_block};
use crate::{RunRecord, words};
use record::run::RunHist;
use stats::{Hist, Metric};
use units::Nanos;

/// The rows of a run along its window, and their axis. `None` for a single interval.
pub(crate) struct Along {
    pub(crate) buckets: Vec<Bucket>,
    pub(crate) x: Horizontal,
}

impl Along {
    pub(crate) fn new(report: &RunRecord) -> Option<Along> {
        let buckets = figures::buckets(report, POINTS_MAX);
        let [first, .., last] = &buckets[..] else { return None };
        let (low, high) = (first.at_s, last.at_s + last.span_s);
        let x = Horizontal { name: "time", unit: AxisUnit::Time, log: false, low, high };
        Some(Along { buckets, x })
    }

    pub(crate) fn chart(&self, id: &str, title: &str, y: AxisUnit) -> Chart {
        let at = self.buckets.iter().map(|bucket| bucket.at_s + bucket.span_s / 2.0).collect();
        Chart { at, words: format!("{title} over time"), ..Chart::new(id, title, self.x, y) }
    }

    pub(crate) fn values(&self, of: impl Fn(&Bucket) -> f64) -> Values {
        self.buckets.iter().map(|bucket| Some(of(bucket))).collect()
    }

    /// Returns the times above zero, because the axis is logarithmic.
    fn times(&self, of: fn(&Bucket) -> Nanos) -> Values {
        let time = |bucket| Some(of(bucket).as_secs_f64()).filter(|time| *time > 0.0);
        self.buckets.iter().map(time).collect()
    }
}

/// Draws throughput, outcomes of the calls, response quantiles, the heat map and open connections
/// along the window.
pub(crate) fn over_time(along: &Along, report: &RunRecord) -> Vec<Block> {
    let length = words::span(Nanos::from_secs_f64(along.buckets[0].span_s));
    let joined = along.buckets.iter().any(|bucket| bucket.rows > 1);
    let joined = if joined { ", the highest of its rows" } else { "" };
    let note = format!(
        "A point is {length}; its quantiles are of the calls that ended in it{joined}. In the heat map \
         each column is that long and each cell a class of response times."
    );
    let charts = [
        Some(throughput(along, report.intended_rates())),
        Some(quantiles(along, report)),
        endings::chart(along),
        heat(along),
        streams(along, report),
        messages(along),
        Some(concurrency(along)),
    ];
    let charts = charts.into_iter().flatten().map(Block::from);
    vec![grid(charts), text_block(Voice::Note, note)]
}

fn throughput(along: &Along, intended: Option<(f64, f64)>) -> Chart {
    let mut chart = along.chart("throughput", "Calls per second", AxisUnit::Rate);
    let ended = along.values(|bucket| bucket.per_s(bucket.done));
    chart.lines.push(Line::new("ended", Tone::Blue, ended).filled());
    if let Some((from, to)) = intended {
        let at = |bucket: &Bucket| {
            let middle = bucket.at_s + bucket.span_s / 2.0;
            from + (to - from) * (middle - along.x.low) / (along.x.high - along.x.low)
        };
        let line = Line::new("intended", Tone::Sky, along.values(at)).dashed(Dash::Long);
        chart.lines.push(line);
    }
    if along.buckets.iter().any(|bucket| bucket.bad > 0) {
        let bad = along.values(|bucket| bucket.per_s(bucket.bad));
        let line = Line::new("failed, timed out or dropped", Tone::Red, bad);
        chart.lines.push(line.dashed(Dash::Short));
    }
    chart
}

fn quantiles(along: &Along, report: &RunRecord) -> Chart {
    let mut chart = along.chart("response", "Response time (log scale)", AxisUnit::Time);
    chart.log = true;
    let line = |name, tone, of| Line::new(name, tone, along.times(of));
    chart.lines = vec![
        line("max", Tone::Red, |bucket| bucket.max).dashed(Dash::Short).thin(),
        line("p99", Tone::Orange, |bucket| bucket.p99),
        line("p90", Tone::Sky, |bucket| bucket.p90).dashed(Dash::Long),
        line("p50", Tone::Blue, |bucket| bucket.p50),
    ];
    for objective in report.slo.iter().map(|result| &result.objective) {
        let of_run = objective.of.is_none();
        if of_run && matches!(objective.metric, Metric::Response(_) | Metric::ResponseMean) {
            let name = format!("objective {}", words::printable(&objective.text, 40));
            let bound = along.values(|_| objective.bound);
            chart.lines.push(Line::new(&name, Tone::Purple, bound).dashed(Dash::Short).thin());
        }
    }
    chart
}

/// Draws times of events in streams; nothing without streams.
fn streams(along: &Along, report: &RunRecord) -> Option<Chart> {
    let of_tokens = report.bodies.streams.as_ref()?.tokens.is_some();
    let [title, first, between] = match of_tokens {
        true => ["Tokens, p99 (log scale)", "to the first token", "between tokens"],
        false => ["Events of streams, p99 (log scale)", "to the first event", "between events"],
    };
    let mut chart = along.chart("streams", title, AxisUnit::Time);
    chart.log = true;
    chart.lines = vec![
        Line::new(first, Tone::Blue, along.times(|bucket| bucket.first_event_p99)),
        Line::new(between, Tone::Orange, along.times(|bucket| bucket.event_gap_p99))
            .dashed(Dash::Long),
    ];
    let any = along.buckets.iter().any(|bucket| !bucket.first_event_p99.is_zero());
    any.then_some(chart)
}

/// Renders messages on WebSockets; nothing without any.
fn messages(along: &Along) -> Option<Chart> {
    along.buckets.iter().find(|bucket| bucket.sent + bucket.received > 0)?;
    let mut chart = along.chart("messages", "Messages per second", AxisUnit::Rate);
    let sent = along.values(|bucket| bucket.per_s(bucket.sent));
    let received = along.values(|bucket| bucket.per_s(bucket.received));
    chart.lines = vec![
        Line::new("sent", Tone::Blue, sent),
        Line::new("received", Tone::Orange, received).dashed(Dash::Long),
    ];
    Some(chart)
}

fn heat(along: &Along) -> Option<Chart> {
    let columns: Vec<Vec<(usize, u64)>> =
        along.buckets.iter().map(|bucket| bucket.spread.iter().collect()).collect();
    if columns.iter().all(Vec::is_empty) {
        return None;
    }
    let mut chart =
        along.chart("heat", "Distribution of response times (log scale)", AxisUnit::Time);
    chart.log = true;
    chart.cells = Some(Cells { width: along.buckets[0].span_s, columns });
    Some(chart)
}

fn concurrency(along: &Along) -> Chart {
    let mut chart = along.chart("concurrency", "In flight and open", AxisUnit::Count);
    let open = along.values(|bucket| bucket.open_connections as f64);
    let flight = along.values(|bucket| bucket.in_flight as f64);
    chart.lines = vec![
        Line::new("open connections", Tone::Sky, open).dashed(Dash::Long),
        Line::new("calls in flight", Tone::Blue, flight),
    ];
    chart
}

/// Renders the client's own health over the window: CPU of its workers, and lateness of its calls.
pub(super) fn client(along: &Along) -> [Block; 2] {
    let mut cpu = along.chart("driver-cpu", "CPU of the client, per worker", AxisUnit::Share);
    cpu.top = 1.0;
    let busy = along.values(|bucket| bucket.driver_cpu.clamp(0.0, 1.0));
    cpu.lines = vec![Line::new("busy, spinning excluded", Tone::Purple, busy).filled()];
    let mut slip = along.chart("slip", "Slip p99: from due to issued", AxisUnit::Time);
    let late = along.values(|bucket| bucket.slip_p99.as_secs_f64());
    slip.lines = vec![Line::new("slip p99", Tone::Orange, late)];
    [cpu.into(), slip.into()]
}

/// Draws response and service time by quantile.
pub(crate) fn spectrum(report: &RunRecord, response: &Hist) -> Vec<Block> {
    let service = report.hist(RunHist::Service);
    let one = |name, look, hist| Distribution { name, look, hist };
    let both = [
        one("response (from the due instant)", (Tone::Blue, Dash::None), response),
        one("service (from issue)", (Tone::Orange, Dash::Long), &service),
    ];
    if response.count() < 2 {
        return Vec::new();
    }
    let chart = by_quantile("spectrum", "Quantiles (log scales)", &both);
    chart.map_or_else(Vec::new, |chart| vec![chart.into(), few_samples()])
}

/// Renders the parts of a mean call's time as one bar.
pub(crate) fn composition(report: &RunRecord) -> Option<Block> {
    let parts = figures::composition(report);
    let title = "Where the time of a mean call goes";
    (!parts.is_empty()).then_some(Block::Composition(Composition { title, parts }))
}
