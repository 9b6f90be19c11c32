//! Several runs side by side: their figures, their distributions and their course in one chart
//! each, and in the page every run in full below.

use crate::blocks;
use crate::distributions::{Distribution, by_quantile, few_samples};
use crate::figures::{self, Bucket, FigureKind, RUN_FIGURES};
use crate::many::Named;
use crate::section::chart::{
    AxisUnit, Chart, Dash, Dots, Horizontal, Line, POINTS_MAX, Tone, Values,
};
use crate::section::{
    Block, CellLook, DataTable, Details, Document, Forms, TableCell, TableRow, Title, Voice, Words,
    heading, text_block, title,
};
use crate::{Headline, RunTimes, page, words};
use units::show;

/// Renders one page for several runs, in the order given. A single run has the page of
/// [`crate::html`].
pub fn html_of_many(runs: &[Named<'_>]) -> String {
    match runs {
        [only] => super::html(only.report),
        _ => page::html::page(&document(runs, Forms::PAGE)),
    }
}

/// Renders several runs as Markdown, with a column for each.
pub fn markdown_of_many(runs: &[Named<'_>]) -> String {
    match runs {
        [only] => super::markdown(only.report),
        _ => page::markdown::markdown(&document(runs, Forms::MARKDOWN)),
    }
}

/// Returns the parts for `read`; for other forms, only the inexpensive ones.
fn document(runs: &[Named<'_>], read: Forms) -> Document {
    let mut page = Document::new(format!("{} runs side by side", runs.len()));
    let name = format!("{} side by side", words::counted(runs.len() as u64, "run"));
    page.add(Forms::MARKDOWN, [title(&name)]);
    let kicker = "Measurements of web servers";
    page.add(Forms::PAGE, [Block::Title(Title { kicker, name, lines: Vec::new() })]);
    let drawn = if read.has(Forms::PAGE) { runs } else { &[] };
    let times: Vec<RunTimes> = drawn.iter().map(|run| RunTimes::new(run.report)).collect();
    for (run, all) in runs.iter().zip(&times) {
        let answer = words::answer(run.report, all);
        let name = Words::default().strong(format!("{}: ", self::name(run)));
        page.add(Forms::PAGE, [text_block(Voice::Answer, name.plain(answer))]);
    }
    let note = Words::from("A difference between single runs may be noise: only ");
    let note = note
        .code("loadstone compare")
        .plain(" shows whether a difference is larger than the noise.");
    page.add(Forms::ALL, [Block::Table(table(runs)), text_block(Voice::Note, note)]);
    for run in runs.iter().filter(|run| !run.report.findings.is_empty()) {
        page.add(Forms::MARKDOWN, [heading(self::name(run))]);
        page.add(Forms::MARKDOWN, blocks::findings(&run.report.findings));
    }
    if !read.has(Forms::PAGE) {
        return page;
    }
    page.add(Forms::PAGE, [heading("Response times")]);
    page.add(Forms::PAGE, distributions(runs, &times));
    let over_time = over_time(runs);
    if !over_time.is_empty() {
        page.add(Forms::PAGE, [heading("Over time")]);
        page.add(Forms::PAGE, over_time);
        page.add(Forms::PAGE, [Block::HowToLook]);
    }
    page.add(Forms::PAGE, [heading("Each run")]);
    let each = runs.iter().zip(&times).enumerate();
    page.add(Forms::PAGE, each.map(|(n, (run, all))| whole(n, run, all)));
    page
}

fn name(run: &Named<'_>) -> String {
    words::printable(&run.name, 80)
}

/// Returns a table with a row for each figure and a column for each run.
fn table(runs: &[Named<'_>]) -> DataTable {
    let headlines: Vec<Headline> = runs.iter().map(|run| run.report.headline()).collect();
    let row = |name: &str, cell: &dyn Fn(&Named<'_>) -> TableCell| -> TableRow {
        std::iter::once(name.into()).chain(runs.iter().map(cell)).collect::<Vec<_>>().into()
    };
    let state = |run: &Named<'_>| blocks::state_cell(run.report.verdict.state);
    let when = |run: &Named<'_>| {
        TableCell::new(CellLook::Fine, words::timestamp(run.report.started_unix_s))
    };
    let figure = |(name, of, kind): &(&str, fn(&Headline) -> f64, FigureKind)| {
        let cells =
            headlines.iter().map(|headline| format_figure(*kind, of(headline), headline).into());
        TableRow::from(std::iter::once((*name).into()).chain(cells).collect::<Vec<TableCell>>())
    };
    DataTable::new(std::iter::once(String::new()).chain(runs.iter().map(name)))
        .with([row("server", &|run| run.report.server.state.word().into())])
        .with([
            row("verdict", &state),
            row("load", &|run| TableCell::new(CellLook::Fine, run.report.load.as_str())),
        ])
        .with([row("calls due", &|run| show::count(run.report.outcomes.due).into())])
        .with(RUN_FIGURES.iter().map(figure))
        .with([row("measured", &when)])
}

/// Formats a figure of a run; `-` for the times of a run without a response.
fn format_figure(kind: FigureKind, value: f64, headline: &Headline) -> String {
    if kind == FigureKind::Time && headline.max_s <= 0.0 {
        "-".to_owned()
    } else {
        kind.show(value)
    }
}

fn distributions(runs: &[Named<'_>], times: &[RunTimes]) -> Vec<Block> {
    let names: Vec<String> = runs.iter().map(name).collect();
    let all: Vec<Distribution<'_>> = times
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(n, (all, name))| Distribution { name, look: Tone::nth(n), hist: &all.response })
        .collect();
    match by_quantile("spectrum", "Response time by quantile (log scales)", &all) {
        Some(chart) => vec![chart.into(), few_samples()],
        None => vec![text_block(Voice::Plain, "There are no response times to show.")],
    }
}

/// Draws throughput and p99 of all runs, aligned at their starts.
fn over_time(runs: &[Named<'_>]) -> Vec<Block> {
    let rows: Vec<Vec<Bucket>> = runs
        .iter()
        .map(|run| figures::buckets(run.report, POINTS_MAX / runs.len().max(1)))
        .collect();
    if rows.iter().all(|rows| rows.len() < 2) {
        return Vec::new();
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
    vec![throughput.with_places(at.clone()).into(), p99.with_places(at).into()]
}

fn whole(n: usize, run: &Named<'_>, all: &RunTimes) -> Block {
    let report = run.report;
    let mut body = Document::default();
    body.add(Forms::PAGE, [text_block(Voice::Soft, super::done_sentence(report))]);
    super::figures(&mut body, report, all);
    let summary = format!("{} · {} · {}", name(run), report.name, report.verdict.state.id()).into();
    let charts = format!("run-{}-", n + 1);
    Block::Details(Details { summary, charts, body, ..Details::default() })
}
