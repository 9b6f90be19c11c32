//! The runs of one name over time: a chart for each figure, with its latest change.

use super::list::began;
use super::pages::page;
use maud::{Markup, html};
use record::history::{HistoryChangeRecord, HistoryRecord, HistoryRun, RUNS_LAST, assemble};
use record::run::Headline;
use stats::State;
use units::show::safe;
use units::{Nanos, show};

/// Width and height of a chart, and the space for its labels.
const CHART: (f64, f64) = (600.0, 180.0);
const LEFT: f64 = 70.0;
const EDGE: f64 = 12.0;
/// Width and height of a sparkline.
const SPARK: (f64, f64) = (90.0, 20.0);

/// A figure of runs: its title, its name in a history, and how it is read and formatted.
struct Figure {
    title: &'static str,
    name: &'static str,
    of: fn(&Headline) -> f64,
    shown: fn(f64) -> String,
}

const FIGURES: [Figure; 4] = [
    Figure { title: "Response time p99", name: "p99", of: |run| run.p99_s, shown: time },
    Figure { title: "Response time p50", name: "p50", of: |run| run.p50_s, shown: time },
    Figure {
        title: "Throughput",
        name: "throughput",
        of: |run| run.throughput_per_s,
        shown: show::rate,
    },
    Figure { title: "Failures", name: "failures", of: |run| run.failure_share, shown: show::share },
];

fn time(seconds: f64) -> String {
    show::duration(Nanos::from_secs_f64(seconds.max(0.0)))
}

/// Renders the runs of a name, oldest first. The latest change of each figure is the change that
/// `loadstone runs gate` finds.
pub(crate) fn trend(name: &str, runs: &[HistoryRun]) -> Markup {
    let history = assemble(name, &runs[runs.len().saturating_sub(RUNS_LAST)..]);
    let body = html! {
        main {
            h1 { "Trend of " span class="name" { (safe(name)) } }
            @if let ([first, ..], [.., last]) = (runs, runs) {
                p class="soft" {
                    (show::count(runs.len() as u64)) " runs, from " (began(first.started_unix_s))
                    " to " (began(last.started_unix_s))
                }
                p id="answer" { (history.answer) }
                div class="graphs" {
                    @for figure in &FIGURES { (chart(figure, runs, &history)) }
                }
                p class="soft" {
                    "A dashed line marks the latest change of the last " (RUNS_LAST)
                    " runs, and the area around it where it may lie (95 %), as "
                    code { "loadstone runs gate" } " judges them. Hollow points: the measurement is \
                     INVALID."
                }
            } @else {
                p id="nothing" { "No finished run has this name." }
            }
        }
    };
    page("Trend", Some("/list.js"), &body)
}

/// Returns the positions of a change on the horizontal axis: its run, and the range of runs in
/// which it may lie.
fn places(runs: &[HistoryRun], change: &HistoryChangeRecord) -> Option<[usize; 3]> {
    let place = |id: &str| runs.iter().position(|run| run.id == id);
    Some([place(&change.run)?, place(&change.earliest_run)?, place(&change.latest_run)?])
}

fn chart(figure: &Figure, runs: &[HistoryRun], history: &HistoryRecord) -> Markup {
    let values: Vec<f64> = runs.iter().map(|run| (figure.of)(&run.headline)).collect();
    let judged = history.figures.iter().find(|one| one.figure == figure.name);
    let changed = judged.and_then(|one| places(runs, one.change.as_ref()?));
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
    html! {
        figure {
            figcaption {
                (figure.title) " "
                @if let Some(last) = values.last() { b { ((figure.shown)(*last)) } }
                @if let Some(one) = judged { " · " (one.text) }
            }
            svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(figure.title) {
                @for part in [0.0, 0.5, 1.0] {
                    line class="grid" x1=(LEFT) x2=(width - EDGE) y1=(y(most * part)) y2=(y(most * part)) {}
                    text x=(LEFT - 6.0) y=(y(most * part) + 4.0) text-anchor="end" {
                        ((figure.shown)(most * part))
                    }
                }
                @if let Some([at, first, last]) = changed {
                    @let middle = x(at) - step / 2.0;
                    @let from = (x(first) - step).max(LEFT);
                    rect class="place" x=(format!("{from:.1}")) width=(format!("{:.1}", x(last) - from))
                        y=(EDGE) height=(height - 2.0 * EDGE) {}
                    line class="change" x1=(middle) x2=(middle) y1=(EDGE) y2=(height - EDGE) {}
                }
                polyline class="line0" points=(points.join(" ")) {}
                @for (place, run) in runs.iter().enumerate() {
                    a href=(format!("/result/{}", run.id)) {
                        circle class=[(run.headline.state == State::Invalid).then_some("hollow")]
                            cx=(format!("{:.1}", x(place))) cy=(format!("{:.1}", y(values[place]))) r="4" {
                            title { (run.id) ": " ((figure.shown)(values[place])) }
                        }
                    }
                }
            }
        }
    }
}

/// Draws figures in order as a sparkline, scaled from the minimum to the maximum.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns runs of one name whose p50 is 10 ms, and 15 ms from the twelfth on.
    fn runs() -> Vec<HistoryRun> {
        let run = |number: u32| HistoryRun {
            id: format!("run-{number}"),
            started_unix_s: 1_795_000_000.0 + 3_600.0 * f64::from(number),
            headline: Headline {
                state: State::Valid,
                throughput_per_s: 100.0,
                goodput_per_s: 100.0,
                failure_share: 0.0,
                mean_s: 0.01,
                p50_s: (10.0 + 0.01 * f64::from(number * 7 % 10))
                    * if number > 11 { 1.5e-3 } else { 1e-3 },
                p90_s: 0.02,
                p99_s: 0.03,
                p99_9_s: 0.04,
                max_s: 0.05,
                conforming: 0,
            },
        };
        (1..=24).map(run).collect()
    }

    #[test]
    fn the_trend_shows_the_change_and_its_interval() {
        let runs = runs();
        let shown = trend("http://a/", &runs).into_string();
        assert_eq!(shown.matches("class=\"change\"").count(), 1, "{shown}");
        assert_eq!(shown.matches("class=\"place\"").count(), 1, "{shown}");
        assert!(shown.contains("p50 is worse by +49.9 %"), "{shown}");
        assert!(shown.contains("since run-12"), "{shown}");
        assert!(shown.contains("p99: no change was found."), "{shown}");
        let few = trend("http://a/", &runs[..3]).into_string();
        assert!(few.contains("Too few runs") && !few.contains("class=\"change\""), "{few}");
    }

    #[test]
    fn a_sparkline_of_equal_figures_has_no_nan() {
        for values in [&[1.0, 1.0, 1.0][..], &[2.0], &[]] {
            let drawn = sparkline(values).into_string();
            assert!(!drawn.contains("NaN"), "{drawn}");
        }
    }
}
