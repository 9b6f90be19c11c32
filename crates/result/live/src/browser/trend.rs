//! The runs of one name over time: a chart for each figure, with its change point.

use super::list::began;
use super::pages::page;
use maud::{Markup, html};
use record::run::Headline;
use stats::State;
use store::ListEntry;
use units::show::safe;
use units::{Nanos, show};

/// Width and height of a chart, and the space for its labels.
const CHART: (f64, f64) = (600.0, 180.0);
const LEFT: f64 = 70.0;
const EDGE: f64 = 12.0;
/// Width and height of a sparkline.
const SPARK: (f64, f64) = (90.0, 20.0);
/// Minimum number of runs for marking a change.
const CHANGE_RUNS_MIN: usize = 8;
/// Significance level of a change.
const CHANGE_P_MAX: f64 = 0.01;

/// A figure of runs: its name, and how it is read and formatted.
struct Figure {
    title: &'static str,
    of: fn(&Headline) -> f64,
    shown: fn(f64) -> String,
}

const FIGURES: [Figure; 4] = [
    Figure { title: "Response time p99", of: |run| run.p99_s, shown: time },
    Figure { title: "Response time p50", of: |run| run.p50_s, shown: time },
    Figure { title: "Goodput", of: |run| run.goodput_per_s, shown: show::rate },
    Figure { title: "Failures", of: |run| run.failure_share, shown: show::share },
];

fn time(seconds: f64) -> String {
    show::duration(Nanos::from_secs_f64(seconds.max(0.0)))
}

/// The page of the runs of a name, the oldest first.
pub(crate) fn trend(name: &str, runs: &[ListEntry]) -> Markup {
    let known: Vec<(&ListEntry, &Headline)> =
        runs.iter().filter_map(|run| Some((run, run.headline.as_ref()?))).collect();
    let body = html! {
        main {
            h1 { "Trend of " span class="name" { (safe(name)) } }
            @if let ([first, ..], [.., last]) = (&known[..], &known[..]) {
                p class="soft" {
                    (show::count(known.len() as u64)) " runs, from " (began(first.0.started_unix_s))
                    " to " (began(last.0.started_unix_s))
                }
                div class="graphs" {
                    @for figure in &FIGURES { (chart(figure, &known)) }
                }
                p class="soft" {
                    "A dashed line marks a change that is unlikely to be chance (Pettitt's test, p below "
                    (show::share(CHANGE_P_MAX)) ", at least " (CHANGE_RUNS_MIN)
                    " runs). Hollow points: the measurement is INVALID."
                }
            } @else {
                p id="nothing" { "No finished run has this name." }
            }
        }
    };
    page("Trend", Some("/list.js"), &body)
}

fn chart(figure: &Figure, runs: &[(&ListEntry, &Headline)]) -> Markup {
    let values: Vec<f64> = runs.iter().map(|(_, run)| (figure.of)(run)).collect();
    let (width, height) = CHART;
    let most = values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let step = (width - LEFT - EDGE) / (values.len().max(2) - 1) as f64;
    let x = |place: usize| LEFT + step * place as f64;
    let y = |value: f64| height - EDGE - (height - 2.0 * EDGE) * (value / most).clamp(0.0, 1.0);
    let points: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(place, value)| format!("{:.1},{:.1}", x(place), y(*value)))
        .collect();
    let changed = change(&values);
    html! {
        figure {
            figcaption {
                (figure.title) " "
                @if let Some(last) = values.last() { b { ((figure.shown)(*last)) } }
                @if let Some(at) = changed {
                    " · changed at " a href=(format!("/result/{}", runs[at].0.id)) { (runs[at].0.id) }
                    ", median " ((figure.shown)(median(&values[..at]))) " before, "
                    ((figure.shown)(median(&values[at..]))) " since"
                }
            }
            svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(figure.title) {
                @for part in [0.0, 0.5, 1.0] {
                    line class="grid" x1=(LEFT) x2=(width - EDGE) y1=(y(most * part)) y2=(y(most * part)) {}
                    text x=(LEFT - 6.0) y=(y(most * part) + 4.0) text-anchor="end" {
                        ((figure.shown)(most * part))
                    }
                }
                @if let Some(at) = changed {
                    @let middle = x(at) - step / 2.0;
                    line class="change" x1=(middle) x2=(middle) y1=(EDGE) y2=(height - EDGE) {}
                }
                polyline class="line0" points=(points.join(" ")) {}
                @for (place, (entry, _)) in runs.iter().enumerate() {
                    a href=(format!("/result/{}", entry.id)) {
                        circle class=[(entry.verdict == Some(State::Invalid)).then_some("hollow")]
                            cx=(format!("{:.1}", x(place))) cy=(format!("{:.1}", y(values[place]))) r="4" {
                            title { (entry.id) ": " ((figure.shown)(values[place])) }
                        }
                    }
                }
            }
        }
    }
}

/// Figures in order as a sparkline, scaled from the minimum to the maximum.
pub(crate) fn sparkline(values: &[f64]) -> Markup {
    let (width, height) = SPARK;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(low, f64::max);
    let span = if high > low { high - low } else { 1.0 };
    let step = (width - 6.0) / (values.len().max(2) - 1) as f64;
    let place = |(place, value): (usize, &f64)| {
        let y = height - 3.0 - (height - 6.0) * (value - low) / span;
        (3.0 + step * place as f64, y)
    };
    let points: Vec<(f64, f64)> = values.iter().enumerate().map(place).collect();
    let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    html! {
        svg class="sparkline" viewBox=(format!("0 0 {width} {height}")) role="img"
            aria-label=(format!("p99 from {} to {}", time(low), time(high))) {
            polyline class="line0" points=(line.join(" ")) {}
            @if let Some((x, y)) = points.last() {
                circle cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="2.5" {}
            }
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// The first run after a change of level, by Pettitt's rank test; `None` if it may be chance.
fn change(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < CHANGE_RUNS_MIN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let sign = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
    let score = |at: usize| -> f64 {
        let (before, after) = values.split_at(at);
        before.iter().flat_map(|a| after.iter().map(move |b| sign(*a, *b))).sum()
    };
    let scores = (1..n).map(|at| (at, score(at).abs()));
    let (at, most) = scores.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let n = n as f64;
    let p = 2.0 * (-6.0 * most * most / (n.powi(3) + n.powi(2))).exp();
    (p < CHANGE_P_MAX).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_and_noise_is_not() {
        let noise = [5.0, 7.0, 6.0, 5.5, 6.5, 7.5, 5.2, 6.8, 6.1, 5.9, 7.1, 6.3];
        assert_eq!(change(&noise), None);
        let mut stepped = noise.to_vec();
        stepped.extend(noise.iter().map(|value| value + 3.0));
        assert_eq!(change(&stepped), Some(noise.len()));
        assert_eq!(change(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0]), None, "too few runs");
        assert_eq!(change(&[3.0; 20]), None);
        assert_eq!(change(&[f64::NAN; 20]), None);
    }

    #[test]
    fn the_median_of_both_parities() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])), (2.0, 2.5, 0.0));
    }

    #[test]
    fn a_sparkline_of_equal_figures_has_no_nan() {
        for values in [&[1.0, 1.0, 1.0][..], &[2.0], &[]] {
            let drawn = sparkline(values).into_string();
            assert!(!drawn.contains("NaN"), "{drawn}");
        }
    }
}
