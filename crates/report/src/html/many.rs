//! Several runs on one page: their figures side by side, their distributions and their course in one
//! picture each, and every run whole below.

use super::chart::{AxisUnit, Chart, Dash, Dots, Horizontal, Line, POINTS_MAX, Tone, Values};
use super::charts::{Distribution, by_quantile, few_samples};
use super::page::{self, Plots};
use super::sections;
use crate::figures::{self, Bucket, FigureKind, RUN_FIGURES};
use crate::many::Named;
use crate::{Headline, RunTimes, text, words};
use maud::{Markup, html};
use stats::Hist;
use units::show;

/// One page for several runs, in the order given. A single run has the page of [`crate::html`].
pub fn html_of_many(runs: &[Named<'_>]) -> String {
    if let [only] = runs {
        return super::html(only.report);
    }
    let mut plots = Plots::default();
    let body = body(runs, &mut plots);
    page::page(&format!("{} runs side by side", runs.len()), &body, plots)
}

fn body(runs: &[Named<'_>], plots: &mut Plots) -> Markup {
    html! {
        header {
            p class="kicker" { "Measurements of web servers" }
            h1 { (words::counted(runs.len() as u64, "run")) " side by side" }
        }
        @for run in runs {
            p class="answer" { strong { (name(run)) ": " } (answer(run)) }
        }
        (table(runs))
        p class="note" {
            "A difference between single runs may be noise: only "
            code { "loadstone compare" } " says how large a difference must be to mean something."
        }
        h2 { "Response times" }
        (distributions(runs, plots))
        @if let Some(charts) = over_time(runs, plots) {
            h2 { "Over time" }
            (charts)
            (sections::how_to_look())
        }
        h2 { "Each run" }
        @for (n, run) in runs.iter().enumerate() { (whole(n, run, plots)) }
    }
}

fn name(run: &Named<'_>) -> String {
    words::printable(&run.name, 80)
}

fn answer(run: &Named<'_>) -> String {
    words::answer(run.report, &RunTimes::of(run.report))
}

/// A row for each figure, a column for each run.
fn table(runs: &[Named<'_>]) -> Markup {
    let headlines: Vec<Headline> = runs.iter().map(|run| run.report.headline()).collect();
    let calls = |run: &Named<'_>| show::count(run.report.outcomes.due);
    html! {
        div class="wide" { table class="side" {
            tr { th { "" } @for run in runs { th { (name(run)) } } }
            tr { td { "verdict" } @for run in runs {
                td class=(run.report.verdict.state.id().to_lowercase()) {
                    (run.report.verdict.state.id())
                }
            } }
            tr { td { "load" } @for run in runs { td class="load" { (run.report.load) } } }
            tr { td { "calls due" } @for run in runs { td { (calls(run)) } } }
            @for (figure, of, kind) in RUN_FIGURES {
                tr {
                    td { (figure) }
                    @for headline in &headlines {
                        td { (shown(kind, of(headline), headline)) }
                    }
                }
            }
            tr { td { "measured" } @for run in runs {
                td class="load" { (words::timestamp(run.report.started_unix_s)) }
            } }
        } }
    }
}

/// A time of a run without a response is no time.
fn shown(kind: FigureKind, value: f64, headline: &Headline) -> String {
    if kind == FigureKind::Time && headline.max_s <= 0.0 {
        "-".to_owned()
    } else {
        kind.show(value)
    }
}

fn distributions(runs: &[Named<'_>], plots: &mut Plots) -> Markup {
    let hists: Vec<Hist> = runs.iter().map(|run| run.report.response()).collect();
    let names: Vec<String> = runs.iter().map(name).collect();
    let all: Vec<Distribution<'_>> = hists
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(n, (hist, name))| Distribution { name, look: Tone::nth(n), hist })
        .collect();
    match by_quantile("spectrum", "Response time by quantile (log scales)", &all) {
        Some(chart) => html! { (plots.figure(&chart)) (few_samples()) },
        None => html! { p { "There are no response times to show." } },
    }
}

/// Throughput and p99 of all runs from the beginning of each.
fn over_time(runs: &[Named<'_>], plots: &mut Plots) -> Option<Markup> {
    let rows: Vec<Vec<Bucket>> = runs
        .iter()
        .map(|run| figures::buckets(run.report, POINTS_MAX / runs.len().max(1)))
        .collect();
    if rows.iter().all(|rows| rows.len() < 2) {
        return None;
    }
    let middle = |row: &Bucket| row.at_s + row.span_s / 2.0;
    let mut at: Vec<f64> = rows.iter().flatten().map(middle).collect();
    at.sort_by(f64::total_cmp);
    at.dedup_by(|a, b| (*a - *b).abs() < 1e-6);
    let end = rows.iter().flatten().map(|row| row.at_s + row.span_s).fold(0.0, f64::max);
    let x = Horizontal { name: "time", unit: AxisUnit::Time, log: false, low: 0.0, high: end };
    let lines = |of: &dyn Fn(&Bucket) -> Option<f64>| -> Vec<Line> {
        let line = |(n, rows): (usize, &Vec<Bucket>)| {
            let there = |place: &f64| {
                rows.iter().find(|row| (middle(row) - place).abs() < 1e-6).and_then(of)
            };
            let (tone, dash): (Tone, Dash) = Tone::nth(n);
            let values: Values = at.iter().map(there).collect();
            Line::new(&name(&runs[n]), tone, values).dashed(dash).dotted(Dots::Bridged)
        };
        rows.iter().enumerate().map(line).collect()
    };
    let mut throughput = Chart::new("throughput", "Calls per second", x, AxisUnit::Rate);
    throughput.lines = lines(&|row| Some(row.per_s(row.done)).filter(|rate| rate.is_finite()));
    let mut p99 = Chart::new("p99", "Response time p99 (log scale)", x, AxisUnit::Time);
    p99.log = true;
    p99.lines = lines(&|row| Some(row.p99.as_secs_f64()).filter(|time| *time > 0.0));
    Some(html! {
        (plots.figure(&throughput.with_places(at.clone())))
        (plots.figure(&p99.with_places(at)))
    })
}

fn whole(n: usize, run: &Named<'_>, plots: &mut Plots) -> Markup {
    plots.part(format!("run-{}-", n + 1));
    let report = run.report;
    html! {
        details {
            summary { (name(run)) " · " (report.name) " · " (report.verdict.state.id()) }
            div {
                p class="soft" { (text::done_sentence(report)) }
                (super::figures_of(report, plots))
            }
        }
    }
}
