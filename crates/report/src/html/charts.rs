//! The charts, as SVG. Curves differ in dashes as well as in colour.

use super::axis::*;
use crate::figures::{self, Bucket};
use crate::{Figures, RunReport, words};
use maud::{Markup, html};
use plan::Load;
use stats::samples_needed;
use units::{Nanos, show};

/// Points of one curve at most.
const POINTS_MAX: usize = 480;

/// One entry of a chart's key: classes of its line and its name.
type Key<'a> = (&'a str, &'a str);

fn chart(title: &str, keys: &[Key<'_>], height: f64, words: &str, drawing: &Markup) -> Markup {
    html! {
        figure {
            figcaption {
                strong { (title) }
                @for (class, name) in keys {
                    span class="key" {
                        svg viewBox="0 0 22 10" aria-hidden="true" {
                            path class=(class) d="M0 5H22" {}
                        }
                        (name)
                    }
                }
            }
            div class="wide chart" {
                svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(words) {
                    (drawing)
                }
            }
        }
    }
}

/// Throughput and response quantiles along the window; nothing for a run of a single interval.
pub(super) fn over_time(report: &RunReport) -> Option<Markup> {
    let buckets = figures::buckets(&report.measurement, POINTS_MAX);
    let [first, .., last] = &buckets[..] else { return None };
    let time = Scale::exact(first.at_s, last.at_s + last.span_s, (LEFT, RIGHT));
    let length = words::span(Nanos::from_secs_f64(first.span_s));
    Some(html! {
        (throughput(&buckets, &time, intended(report)))
        (quantiles(&buckets, &time))
        p class="note" {
            "A point is " (length) "; its quantiles are of the calls that ended in it"
            @if figures::in_window(&report.measurement).count() > buckets.len() {
                ", the highest of its rows"
            }
            "."
        }
    })
}

/// Calls per second that the plan asks for at the beginning and at the end of the window. `None`
/// where nothing is asked for, where it is sessions, and for runs in a row of which each ramps.
fn intended(report: &RunReport) -> Option<(f64, f64)> {
    let Load::Open { arrivals, session: None, .. } = &report.plan.load else { return None };
    let (from, to) = (arrivals.from.0, arrivals.to.0);
    let steady = arrivals.from == arrivals.to;
    (steady || report.runs.is_empty()).then_some((from, to))
}

fn seconds_axis(time: &Scale) -> Markup {
    bottom_axis(time, &time.ticks(), &|at| words::span(Nanos::from_secs_f64(at)))
}

fn middle(bucket: &Bucket) -> f64 {
    bucket.at_s + bucket.span_s / 2.0
}

fn throughput(buckets: &[Bucket], time: &Scale, intended: Option<(f64, f64)>) -> Markup {
    let rates = buckets.iter().map(|bucket| bucket.per_s(bucket.done));
    let top = rates.chain(intended.map(|(from, to)| from.max(to))).fold(0.0, f64::max);
    let scale = Scale::from_zero(top, (BOTTOM, TOP));
    let curve = |count: &dyn Fn(&Bucket) -> u64| {
        path(buckets.iter().map(|bucket| {
            Some((time.place(middle(bucket)), scale.place(bucket.per_s(count(bucket)))))
        }))
    };
    let done = curve(&|bucket| bucket.done);
    let ends = buckets.first().zip(buckets.last());
    let ends = ends.map(|(first, last)| (time.place(middle(first)), time.place(middle(last))));
    let area = ends.map_or_else(String::new, |(from, to)| {
        let (from, to, floor) = (coordinate(from), coordinate(to), coordinate(BOTTOM));
        format!("{done}L{to} {floor}L{from} {floor}Z")
    });
    let bad = buckets.iter().any(|bucket| bucket.bad > 0);
    let mut keys = vec![("curve c0", "ended")];
    keys.extend(intended.map(|_| ("curve c1 d1", "intended")));
    keys.extend(bad.then_some(("curve c3 d2", "failed, timed out or dropped")));
    let drawing = html! {
        (left_axis(&scale, &show::rate))
        (seconds_axis(time))
        path class="area" d=(area) {}
        path class="curve c0" d=(done) {}
        @if let Some((from, to)) = intended {
            @let ends = [(LEFT, scale.place(from)), (RIGHT, scale.place(to))];
            path class="curve c1 d1" d=(path(ends.into_iter().map(Some))) {}
        }
        @if bad { path class="curve c3 d2" d=(curve(&|bucket| bucket.bad)) {} }
    };
    chart("Calls per second", &keys, HEIGHT, "Throughput over time", &drawing)
}

type BucketTime = fn(&Bucket) -> Nanos;

fn quantiles(buckets: &[Bucket], time: &Scale) -> Markup {
    let curves: [(&str, &str, BucketTime); 4] = [
        ("curve c3 d2 thin", "max", |bucket| bucket.max),
        ("curve c2", "p99", |bucket| bucket.p99),
        ("curve c1 d1", "p90", |bucket| bucket.p90),
        ("curve c0", "p50", |bucket| bucket.p50),
    ];
    let all = buckets.iter().flat_map(|bucket| [bucket.p50, bucket.max]);
    let scale = Scale::log(all.map(Nanos::as_secs_f64), (BOTTOM, TOP));
    let curve = |of: BucketTime| {
        path(buckets.iter().map(|bucket| {
            let figure = of(bucket).as_secs_f64();
            (figure > 0.0).then(|| (time.place(middle(bucket)), scale.place(figure)))
        }))
    };
    let drawing = html! {
        (left_axis(&scale, &tick_time))
        (seconds_axis(time))
        @for (class, _, of) in curves { path class=(class) d=(curve(of)) {} }
    };
    let keys: Vec<Key<'_>> = curves.iter().map(|(class, name, _)| (*class, *name)).collect();
    chart("Response time (log scale)", &keys, HEIGHT, "Response time over time", &drawing)
}

fn tick_time(seconds: f64) -> String {
    words::span(Nanos::from_secs_f64(seconds))
}

/// Response and service time by quantile, each further nine as wide as the one before.
pub(super) fn spectrum(report: &RunReport, figures: &Figures) -> Option<Markup> {
    let (response, service) = (&figures.response, &report.measurement.total.service);
    let n = response.count();
    if n < 2 {
        return None;
    }
    let nines = (n as f64).log10();
    let axis = Scale::exact(0.0, nines, (LEFT, RIGHT));
    let quantile = |point: usize| 1.0 - 10_f64.powf(-nines * point as f64 / POINTS_MAX as f64);
    let sampled = |hist: &stats::Hist| -> Vec<f64> {
        (0..=POINTS_MAX).map(|point| hist.quantile(quantile(point)).as_secs_f64()).collect()
    };
    let (response_s, service_s) = (sampled(response), sampled(service));
    let scale = Scale::log(response_s.iter().chain(&service_s).copied(), (BOTTOM, TOP));
    let curve = |values: &[f64]| {
        let step = (RIGHT - LEFT) / POINTS_MAX as f64;
        path(values.iter().enumerate().map(|(point, value)| {
            (*value > 0.0).then(|| (LEFT + step * point as f64, scale.place(*value)))
        }))
    };
    // Beyond q = 0.025^(1/n) there are fewer samples than a quantile needs.
    let enough = axis.place(-(1.0 - 0.025_f64.powf(1.0 / n as f64)).log10());
    let ticks: Vec<f64> = TICKS.iter().copied().filter(|q| -(1.0 - q).log10() <= nines).collect();
    let places: Vec<f64> = ticks.iter().map(|q| -(1.0 - q).log10()).collect();
    let name = |place: f64| stats::quantile_name(1.0 - 10_f64.powf(-place));
    let drawing = html! {
        rect class="few" x=(coordinate(enough)) y=(coordinate(TOP))
            width=(coordinate(RIGHT - enough)) height=(coordinate(BOTTOM - TOP)) {}
        (left_axis(&scale, &tick_time))
        (bottom_axis(&axis, &places, &name))
        path class="curve c2 d1" d=(curve(&service_s)) {}
        path class="curve c0" d=(curve(&response_s)) {}
    };
    let keys =
        [("curve c0", "response (from the due instant)"), ("curve c2 d1", "service (from issue)")];
    let words = "Response and service time by quantile";
    Some(html! {
        (chart("Quantiles (log scales)", &keys, HEIGHT, words, &drawing))
        p class="note" {
            "Where it is shaded there are fewer samples than a quantile needs: p99 needs "
            (show::count(samples_needed(0.99))) ", p99.9 " (show::count(samples_needed(0.999)))
            ", p99.99 " (show::count(samples_needed(0.9999))) "."
        }
    })
}

const TICKS: [f64; 10] =
    [0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.999_99, 0.999_999, 0.999_999_9];

/// What a mean call's time went on, as one bar.
pub(super) fn composition(report: &RunReport, figures: &Figures) -> Option<Markup> {
    let parts = figures::composition(report, figures);
    let sum: f64 = parts.iter().map(|(_, _, seconds)| seconds).sum();
    if sum <= 0.0 {
        return None;
    }
    let scale = Scale::exact(0.0, sum, (0.0, WIDTH));
    let mut from = 0.0;
    let bars: Vec<(usize, f64, f64)> = parts
        .iter()
        .map(|(color, _, seconds)| {
            let start = scale.place(from);
            from += seconds;
            (*color, start, scale.place(from) - start)
        })
        .collect();
    Some(html! {
        figure {
            figcaption {
                strong { "Where the time of a mean call goes" }
                @for (color, name, seconds) in &parts {
                    span class="key" {
                        svg viewBox="0 0 22 10" aria-hidden="true" {
                            rect class=(format!("f{color}")) width="22" height="10" rx="2" {}
                        }
                        (name) " " (words::seconds(*seconds)) " (" (show::share(seconds / sum)) ")"
                    }
                }
            }
            div class="wide chart" {
                svg viewBox=(format!("0 0 {WIDTH} 28")) role="img"
                    aria-label="Parts of the mean response time" {
                    @for (color, start, width) in bars {
                        rect class=(format!("f{color}")) x=(coordinate(start)) y="0"
                            width=(coordinate((width - 1.5).max(0.5))) height="28" rx="2" {}
                    }
                }
            }
        }
    })
}
