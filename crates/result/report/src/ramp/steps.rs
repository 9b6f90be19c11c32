//! The steps as tables: in text by purpose and load, elsewhere in run order; and each step in full.

use super::answer::{axis_word, level};
use super::{LONG, MARKDOWN, PAGE, Purpose, RampRecord, RampStepRecord, blamed, load};
use crate::blocks::{count_cell, findings, quantile_cell, verdict};
use crate::run::charts::{Along, over_time};
use crate::section::{
    Block, Column, DataTable, Details, Document, Forms, RowLook, TableCell, TableRow, Voice, Words,
    heading, placed, text_block, with_lead,
};
use crate::words::{self, counted, printable};
use crate::{RunTimes, facts, run};
use record::run::SutRecord;
use sample::Blame;
use stats::curve::Axis;
use stats::{Hist, samples_needed};
use units::{Nanos, show};

/// Steps in the table of Markdown.
const MARKDOWN_MAX: usize = 100;
/// Maximum number of steps with details in the page, and with charts over time.
const DETAILS_MAX: usize = 200;
const DETAIL_CHARTS_MAX: usize = 30;
/// Maximum number of steps whose client-side causes are listed individually.
const CAUSES_MAX: usize = 5;

const SECTIONS: [(&str, &[Purpose]); 4] = [
    ("Steps", &[Purpose::Up]),
    ("Search", &[Purpose::Search, Purpose::Confirm]),
    ("Way down", &[Purpose::Down]),
    ("Overload and recovery", &[Purpose::Overload, Purpose::Recovery]),
];

const BLAMES: [Blame; 4] = [Blame::Server, Blame::Path, Blame::Driver, Blame::Plan];

/// Renders all steps of each target, for a terminal.
pub(super) fn by_purpose(document: &mut Document, report: &RampRecord) {
    for row in 0..report.labels.len() {
        let mut limited = Vec::new();
        for (name, purposes) in SECTIONS {
            let of = |step: &&RampStepRecord| purposes.contains(&step.purpose);
            let mut steps: Vec<&RampStepRecord> = report.steps_of(row).filter(of).collect();
            if steps.is_empty() {
                continue;
            }
            // in the table by load; the order they were run in is that of the JSON
            steps.sort_by(|a, b| {
                let later = |step: &RampStepRecord| step.purpose == Purpose::Recovery;
                let order = later(a).cmp(&later(b));
                order.then(a.level.total_cmp(&b.level))
            });
            limited.extend(steps.iter().copied().filter(|step| step.client_limited));
            let label = match report.labels.len() > 1 {
                true => format!("  {}", printable(&report.labels[row], 50)),
                false => String::new(),
            };
            let lines = Block::Lines(lines(report.axis, &steps));
            document.add(LONG, [heading(format!("{name}{label}")), lines]);
        }
        document.add(LONG, legend(report, row, &limited));
    }
}

fn lines(axis: Axis, steps: &[&RampStepRecord]) -> Vec<String> {
    let first = match axis {
        Axis::Rate => "offered/s",
        other => axis_word(other),
    };
    let head = ["achieved", "goodput", "p50", "p99", "p99.9", "conns"];
    let mut lines = vec![line("", first, head, "failed")];
    let mut before = f64::NAN;
    for step in steps {
        let same = (step.level - before).abs() <= 1e-6 * before.abs();
        before = step.level;
        let level = if same { String::new() } else { bare(axis, step.level) };
        let response = step.run.response();
        let cells = [
            &per_s(step.point().achieved_per_s),
            &per_s(step.point().goodput_per_s),
            &quantile(&response, 0.5),
            &quantile(&response, 0.99),
            &quantile(&response, 0.999),
            &show::count(step.run.connections.peak),
        ];
        let failed = failures(step);
        let first_failure = failed.first().map_or("0", String::as_str);
        lines.push(line(mark(step), &level, cells.map(String::as_str), first_failure));
        lines.extend(failed.iter().skip(1).map(|more| line("", "", [""; 6], more)));
    }
    lines
}

/// Formats a row of the table, at most 80 characters.
fn line(mark: &str, level: &str, cells: [&str; 6], failed: &str) -> String {
    let [achieved, goodput, p50, p99, p99_9, peak] = cells;
    format!(
        "{mark:1} {level:>9} {achieved:>9} {goodput:>9} {p50:>8} {p99:>8} {p99_9:>8} {peak:>6}  \
         {failed}"
    )
}

/// Returns `*` if the client was the limit; otherwise whether the objectives were met.
fn mark(step: &RampStepRecord) -> &'static str {
    match (step.client_limited, step.met) {
        (true, _) => "*",
        (false, Some(true)) => "✓",
        (false, Some(false)) => "✗",
        (false, None) => "",
    }
}

/// Formats a load without its unit, which is in the column's heading.
fn bare(axis: Axis, level: f64) -> String {
    let text = load(axis, level);
    if !axis.is_load() {
        return text.replace(' ', "");
    }
    text.trim_end_matches("/s").split(' ').next().unwrap_or_default().to_owned()
}

fn per_s(rate: f64) -> String {
    show::rate(rate).trim_end_matches("/s").to_owned()
}

/// Formats a quantile; `-` with too few samples.
fn quantile(hist: &Hist, q: f64) -> String {
    match hist.count() >= samples_needed(q) {
        true => show::duration(hist.quantile(q)),
        false => "-".to_owned(),
    }
}

/// Formats `12 server`, one for each blamed party.
fn failures(step: &RampStepRecord) -> Vec<String> {
    let describe = |blame: Blame| match blamed(step, blame) {
        0 => None,
        count => Some(format!("{} {}", show::count(count), blame.id())),
    };
    BLAMES.into_iter().filter_map(describe).collect()
}

fn legend(report: &RampRecord, row: usize, limited: &[&RampStepRecord]) -> Vec<Block> {
    let line = |text: String| Block::Lines(vec![text]);
    let mut legend = Vec::new();
    if report.steps_of(row).any(|step| step.met.is_some()) {
        legend.push(line("  ✓ objectives met   ✗ missed".to_owned()));
    }
    if limited.is_empty() {
        return legend;
    }
    let text = "  * the client was late, or at its own limit: not used in any figure above";
    legend.push(line(text.to_owned()));
    legend.extend(limited.iter().take(CAUSES_MAX).map(|step| {
        let cause = step.run.verdict.causes.first();
        let why = cause.map_or_else(String::new, |cause| format!("{}: {}", cause.id, cause.text));
        let level = load(report.axis, step.level);
        with_lead("    ", Voice::Note, format!("{level}: {}", printable(&why, 300)))
    }));
    if limited.len() > CAUSES_MAX {
        legend.push(line(format!("    and {} more", limited.len() - CAUSES_MAX)));
    }
    legend
}

/// Renders all steps in run order, and each of them in full.
pub(super) fn steps(document: &mut Document, report: &RampRecord, read: Forms) {
    if !read.has(PAGE | MARKDOWN) {
        return;
    }
    let mut all = table(report);
    document.add(PAGE, [placed("steps", "Steps"), Block::Table(all.clone())]);
    document.add(PAGE, [placed("each-step", "Each step")]);
    let detailed = if read.has(PAGE) { DETAILS_MAX } else { 0 };
    for (n, step) in report.steps.iter().take(detailed).enumerate() {
        document.add(PAGE, [Block::Details(whole(report, n, step))]);
    }
    document.add(PAGE, more(report, DETAILS_MAX).map(|text| text_block(Voice::Note, text)));
    all.rows.truncate(MARKDOWN_MAX);
    let mut body = Document::default();
    body.add(MARKDOWN, [Block::Table(all)]);
    body.add(MARKDOWN, more(report, MARKDOWN_MAX).map(|text| text_block(Voice::Note, text)));
    let summary = "Steps".into();
    document.add(MARKDOWN, [Block::Details(Details { summary, body, ..Details::default() })]);
}

/// Describes how many steps a form omits; `None` if it omits none.
fn more(report: &RampRecord, shown: usize) -> Option<String> {
    match report.steps.len().saturating_sub(shown) {
        0 => None,
        n => Some(format!("{} more in the JSON.", counted(n as u64, "step"))),
    }
}

fn table(report: &RampRecord) -> DataTable {
    let mut columns = vec![Column::from("step").only(PAGE), Column::from("step").only(MARKDOWN)];
    if report.labels.len() > 1 {
        columns.push(Column::word("target"));
    }
    let load = if report.axis.is_load() { "load" } else { axis_word(report.axis) };
    columns.extend([
        Column::word("part").only(PAGE),
        load.into(),
        Column::from("offered").only(PAGE),
        "achieved".into(),
        "good".into(),
        "p50".into(),
        "p99".into(),
        Column::from("p99.9").only(PAGE),
        Column::from("connections").only(PAGE),
        "failures".into(),
        Column::word("blame").only(PAGE),
        Column::word("verdict"),
    ]);
    let rows = report.steps.iter().enumerate().map(|(n, step)| step_row(report, n, step));
    DataTable::new(columns).sortable().with(rows)
}

fn step_row(report: &RampRecord, n: usize, step: &RampStepRecord) -> TableRow {
    let (point, response) = (step.point(), step.run.response());
    let rate = |rate: f64| TableCell::by(rate, show::rate(rate));
    let (number, part) = (n + 1, step.purpose.id());
    let mut cells: Vec<TableCell> =
        vec![TableCell::by(number as f64, number.to_string()), format!("{number} {part}").into()];
    if report.labels.len() > 1 {
        cells.push(printable(&step.label, 80).into());
    }
    let state = step.run.verdict.state.id();
    cells.extend([
        part.into(),
        TableCell::by(point.level, level(report.axis, point.level)),
        rate(point.offered_per_s),
        rate(point.achieved_per_s),
        rate(point.goodput_per_s),
        quantile_cell(&response, 0.5),
        quantile_cell(&response, 0.99),
        quantile_cell(&response, 0.999),
        count_cell(step.run.connections.peak),
        TableCell::by(point.failure_share, show::share(point.failure_share)),
        facts::blames(&step.run).into(),
        match point.client_limited {
            true => format!("{state}, client-limited").into(),
            false => state.into(),
        },
    ]);
    let look = if point.client_limited { RowLook::SetAside } else { RowLook::Plain };
    TableRow { look, cells }
}

/// Renders one step like the page of a run, shortened.
fn whole(report: &RampRecord, n: usize, step: &RampStepRecord) -> Details {
    let run = &step.run;
    let times = RunTimes::new(run);
    let settled = words::span(Nanos::from_secs_f64(step.settled_s.unwrap_or(0.0).max(0.0)));
    let mut body = Document::default();
    body.add(PAGE, [verdict(&run.verdict, (0, 0))]);
    let answer = words::answer(run, &times);
    body.add(PAGE, [text_block(Voice::Plain, format!("{answer} Idle before it for {settled}."))]);
    run::tables::times(&mut body, PAGE, run, &times);
    run::parts::outcomes(&mut body, PAGE, run);
    run::parts::failures(&mut body, PAGE, run);
    let drawn = n < DETAIL_CHARTS_MAX;
    let along = if drawn { Along::new(run) } else { None };
    body.add(PAGE, along.iter().flat_map(|along| over_time(along, run)));
    if let Some(sut) = &run.sut.as_ref().map(SutRecord::series) {
        let text = format!("The server: {}", words::sentence(&facts::server(sut)));
        body.add(PAGE, [text_block(Voice::Plain, text)]);
        if drawn {
            body.add(PAGE, run::server::over_time(sut, along.as_ref().map(|along| along.x)));
        }
    }
    body.add(PAGE, findings(&run.findings));
    let charts = format!("step-{}-", n + 1);
    Details { summary: summary(report, n, step), charts, body, ..Details::default() }
}

fn summary(report: &RampRecord, n: usize, step: &RampStepRecord) -> Words {
    let name = match report.labels.len() {
        0 | 1 => String::new(),
        _ => format!("{} · ", printable(&step.label, 80)),
    };
    let repeat = match step.repeat {
        0 => String::new(),
        n => format!(", repeat {}", n + 1),
    };
    let (load, state) = (level(report.axis, step.level), step.run.verdict.state.id());
    format!("Step {} · {name}{load} · {}{repeat} · {state}", n + 1, step.purpose.id()).into()
}
