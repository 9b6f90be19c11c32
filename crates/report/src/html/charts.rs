//! The charts of a run: which figures they show.

use super::chart::{
    AxisUnit, Cells, Chart, Dash, Horizontal, Line, POINTS_MAX, Range, Tone, Values,
};
use super::endings;
use super::page::Plots;
use crate::figures::{self, Bucket};
use crate::{RunRecord, words};
use maud::{Markup, html};
use record::run::RunHist;
use stats::{Hist, Metric, samples_needed};
use units::{Nanos, show};

/// The rows of a run along its window, and the axis they lie on. `None` for a single interval.
pub(crate) struct Along {
    pub(crate) buckets: Vec<Bucket>,
    x: Horizontal,
}

impl Along {
    fn of(report: &RunRecord) -> Option<Along> {
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

    /// Times above zero: the axis is logarithmic.
    fn times(&self, of: fn(&Bucket) -> Nanos) -> Values {
        let time = |bucket| Some(of(bucket).as_secs_f64()).filter(|time| *time > 0.0);
        self.buckets.iter().map(time).collect()
    }
}

/// The horizontal axis of everything along a run's window.
pub(crate) fn time_axis(report: &RunRecord) -> Option<Horizontal> {
    Along::of(report).map(|along| along.x)
}

/// Throughput, how the calls ended, response quantiles, the heat map and what was open along the
/// window; nothing for a run of a single interval.
pub(crate) fn over_time(report: &RunRecord, plots: &mut Plots) -> Option<Markup> {
    let along = Along::of(report)?;
    let length = words::span(Nanos::from_secs_f64(along.buckets[0].span_s));
    let joined = along.buckets.iter().any(|bucket| bucket.rows > 1);
    Some(html! {
        (plots.figure(&throughput(&along, report.intended_rates())))
        @if let Some(chart) = endings::chart(&along) { (plots.figure(&chart)) }
        (plots.figure(&quantiles(&along, report)))
        @if let Some(chart) = heat(&along) { (plots.figure(&chart)) }
        (plots.figure(&concurrency(&along)))
        p class="note" {
            "A point is " (length) "; its quantiles are of the calls that ended in it"
            @if joined { ", the highest of its rows" }
            ". In the heat map each column is that long and each cell a class of response times."
        }
    })
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

fn heat(along: &Along) -> Option<Chart> {
    let columns: Vec<Vec<(usize, u64)>> =
        along.buckets.iter().map(|bucket| bucket.spread.iter().collect()).collect();
    if columns.iter().all(Vec::is_empty) {
        return None;
    }
    let mut chart = along.chart("heat", "Where the response times lay (log scale)", AxisUnit::Time);
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

/// The client's own health along the window: CPU of its workers, and how late its calls were issued.
pub(crate) fn client(report: &RunRecord, plots: &mut Plots) -> Option<Markup> {
    let along = Along::of(report)?;
    let mut cpu = along.chart("driver-cpu", "CPU of the client, per worker", AxisUnit::Share);
    cpu.top = 1.0;
    let busy = along.values(|bucket| bucket.driver_cpu.clamp(0.0, 1.0));
    cpu.lines = vec![Line::new("busy, spinning excluded", Tone::Purple, busy).filled()];
    let mut slip = along.chart("slip", "Slip p99: from due to issued", AxisUnit::Time);
    let late = along.values(|bucket| bucket.slip_p99.as_secs_f64());
    slip.lines = vec![Line::new("slip p99", Tone::Orange, late)];
    Some(html! { (plots.figure(&cpu)) (plots.figure(&slip)) })
}

/// One distribution in a chart of several: what it is called, and how it is drawn.
pub(crate) struct Distribution<'a> {
    pub(crate) name: &'a str,
    pub(crate) look: (Tone, Dash),
    pub(crate) hist: &'a Hist,
}

/// Times by quantile, each further nine as wide as the one before. `None` below two samples.
pub(crate) fn by_quantile(id: &str, title: &str, all: &[Distribution<'_>]) -> Option<Chart> {
    let n = all.iter().map(|one| one.hist.count()).max().filter(|n| *n >= 2)?;
    let nines = (n as f64).log10();
    let at: Vec<f64> =
        (0..=POINTS_MAX).map(|point| nines * point as f64 / POINTS_MAX as f64).collect();
    let x = Horizontal {
        name: "quantile",
        unit: AxisUnit::Quantile,
        log: false,
        low: 0.0,
        high: nines,
    };
    let mut chart = Chart::new(id, title, x, AxisUnit::Time);
    chart.log = true;
    for one in all {
        let count = one.hist.count();
        let value = |nines: &f64| {
            let share_above = 10_f64.powf(-nines);
            let time = one.hist.quantile(1.0 - share_above).as_secs_f64();
            // beyond its last sample a distribution says nothing
            (time > 0.0 && share_above * count as f64 >= 0.999).then_some(time)
        };
        let line = Line::new(one.name, one.look.0, at.iter().map(value).collect());
        chart.lines.push(line.dashed(one.look.1));
    }
    chart.at = at;
    // Beyond q = 0.025^(1/n) there are fewer samples than a quantile needs.
    let enough = -(1.0 - 0.025_f64.powf(1.0 / n as f64)).log10();
    if enough < nines {
        let name = "too few samples".to_owned();
        chart.ranges.push(Range { name, tone: Tone::Soft, at: None, low: enough, high: nines });
    }
    Some(chart)
}

/// Response and service time by quantile.
pub(crate) fn spectrum(report: &RunRecord, response: &Hist, plots: &mut Plots) -> Option<Markup> {
    let service = report.hist(RunHist::Service);
    let one = |name, look, hist| Distribution { name, look, hist };
    let both = [
        one("response (from the due instant)", (Tone::Blue, Dash::None), response),
        one("service (from issue)", (Tone::Orange, Dash::Long), &service),
    ];
    if response.count() < 2 {
        return None;
    }
    let chart = by_quantile("spectrum", "Quantiles (log scales)", &both)?;
    Some(html! { (plots.figure(&chart)) (few_samples()) })
}

/// What is said below every chart of quantiles.
pub(crate) fn few_samples() -> Markup {
    html! {
        p class="note" {
            "Where it is shaded there are fewer samples than a quantile needs: p99 needs "
            (show::count(samples_needed(0.99))) ", p99.9 " (show::count(samples_needed(0.999)))
            ", p99.99 " (show::count(samples_needed(0.9999))) "."
        }
    }
}

/// What a mean call's time went on, as one bar.
pub(crate) fn composition(report: &RunRecord) -> Option<Markup> {
    let parts = figures::composition(report);
    let sum: f64 = parts.iter().map(|(_, _, seconds)| seconds).sum();
    (sum > 0.0).then(|| super::draw::bar("Where the time of a mean call goes", &parts, sum))
}
