//! Two servers, or one before and after a change: the difference of each figure with its interval,
//! as text, a page, Markdown, JSON (`loadstone.compare/1`, described by
//! `docs/schema/compare.schema.json`) and CSV. The arithmetic is in `stats::compare`.

mod csv;
mod gate;
mod protocols;

use crate::Style;
use crate::distributions::{Distribution, by_quantile, few_samples};
use crate::figures::{FigureKind, RUN_FIGURES};
use crate::page;
use crate::section::chart::{Dash, Tone};
use crate::section::forest::{Forest, ForestRow};
use crate::section::{
    Block, Caution, CellLook, Column, DataTable, Document, Forms, TableCell, Title, Voice, Words,
    placed, subheading, text_block, title, with_lead,
};
use crate::words::{self, counted, printable};
pub use csv::csv;
pub use gate::junit;
use record::compare::{
    BoundRecord, CompareRecord, Contrast, DifferenceRecord, Judgement, SideRecord, amount,
    interval, unsigned, wider,
};
use stats::Hist;
use units::show;

/// Characters shown of a command that starts a server.
const COMMAND_CHARS_MAX: usize = 1_000;
/// Maximum number of blocks whose order text spells out.
const BLOCKS_SHOWN: usize = 6;

/// Renders the comparison as `loadstone.compare/1`, indented, with a line feed at its end.
pub fn json(report: &CompareRecord) -> String {
    record::document::printed(report)
}

/// Renders the comparison as text, with a line feed at its end. Quiet: the answer, the bounds and
/// reservations.
pub fn text(report: &CompareRecord, style: Style) -> String {
    let result = [text_block(Voice::Plain, report.answer.as_str())];
    page::text::text_with_result(&document(report), result, style)
}

/// Renders the page.
pub fn html(report: &CompareRecord) -> String {
    page::html::page(&document(report))
}

/// Renders a comparison as Markdown: the answer, the bounds and each difference.
pub fn markdown_of_compare(report: &CompareRecord) -> String {
    page::markdown::markdown(&document(report))
}

fn document(report: &CompareRecord) -> Document {
    let mut page = Document::new(format!("Compared: {}", name(report)));
    head(&mut page, report);
    cautions(&mut page, report);
    bounds(&mut page, report);
    gate::gate(&mut page, report);
    sides(&mut page, report);
    protocols::protocols(&mut page, report);
    page.add(Forms::PAGE, [placed("differences", "Differences")]);
    for contrast in report.contrasts() {
        differences(&mut page, report, contrast);
    }
    power(&mut page, report);
    distributions(&mut page, report);
    runs(&mut page, report);
    let machine = report.environment.as_ref().filter(|_| report.runs().next().is_some());
    let foot = machine.map(|machine| words::measured(report.started_unix_s, machine));
    page.add(Forms::PAGE, foot.map(Block::Foot));
    page
}

fn name(report: &CompareRecord) -> String {
    match report.name.is_empty() {
        true => format!("{} against {}", label(&report.after), label(&report.before)),
        false => printable(&report.name, 200),
    }
}

fn label(side: &SideRecord) -> String {
    printable(&side.label, 120)
}

/// Renders the answer, below the compared subjects.
fn head(document: &mut Document, report: &CompareRecord) {
    let sides: Vec<String> =
        report.lettered().map(|(letter, side)| format!("{letter} is {}", label(side))).collect();
    let mut lines: Vec<Words> = vec![format!("{}.", sides.join(", ")).into()];
    lines.extend(report.lettered().filter_map(|(letter, side)| {
        let command = printable(side.command.as_ref()?, COMMAND_CHARS_MAX);
        let restarted = format!("{letter}'s server was restarted for each run: ");
        Some(Words::from(restarted).code(command))
    }));
    document.add(Forms::MARKDOWN, [title(&report.answer)]);
    document.add(Forms::MARKDOWN, lines.iter().map(|line| text_block(Voice::Plain, line.clone())));
    let kicker = "Comparison of web servers";
    document.add(Forms::PAGE, [Block::Title(Title { kicker, name: name(report), lines })]);
    document.add(Forms::TEXT | Forms::PAGE, [text_block(Voice::Answer, report.answer.as_str())]);
}

fn cautions(document: &mut Document, report: &CompareRecord) {
    let caution =
        |word, text: &String| Block::Caution(Caution { word, text: printable(text, 1_000) });
    document.add(Forms::ALL, report.ended_early.as_ref().map(|why| caution("Ended early", why)));
    document.add(Forms::ALL, report.cautions.iter().map(|text| caution("", text)));
}

/// Bounds on the differences, and whether they hold.
fn bounds(document: &mut Document, report: &CompareRecord) {
    let all: Vec<(String, &BoundRecord)> = report
        .contrasts()
        .flat_map(|contrast| {
            contrast.bounds.iter().map(move |bound| (contrast.mark(report), bound))
        })
        .collect();
    let line = |(of, bound): &(String, &BoundRecord)| {
        let text = format!("{of}{}: {}", bound.text, bound.why);
        match bound.undecided {
            true => Block::Caution(Caution { word: "Undecided", text }),
            false => Block::Checked { good: !bound.crossed, text },
        }
    };
    document.add(Forms::TEXT | Forms::MARKDOWN, all.iter().map(line));
    if all.is_empty() {
        return;
    }
    let table = DataTable::new([Column::from("Bound"), Column::word(""), Column::text("why")]);
    let table = table.with(all.iter().map(|(of, bound)| {
        let judged = match (bound.crossed, bound.undecided) {
            (true, _) => TableCell::new(CellLook::Missed, "✗ crossed"),
            (false, true) => TableCell::new(CellLook::Remark, "undecided"),
            (false, false) => TableCell::new(CellLook::Met, "✓ kept"),
        };
        let named = Words::from(of.as_str()).code(&bound.text);
        vec![named.into(), judged, bound.why.as_str().into()]
    }));
    document.add(Forms::PAGE, [placed("bounds", "Bounds"), Block::Table(table)]);
}

/// Renders the measurements of each side, and their order.
fn sides(document: &mut Document, report: &CompareRecord) {
    let mut lines = vec![Block::Gap];
    let mut add = |lead: &str, text: String| lines.push(with_lead(lead, Voice::Plain, text));
    for (letter, side) in report.lettered() {
        let count = counted(side.runs.len() as u64, "run");
        let load = side.plan.as_ref().map(|plan| words::load(plan.plan())).unwrap_or_default();
        let name = printable(&side.label, 200);
        add(&format!("{letter}   "), format!("{name} · {count} · {load}"));
        if let Some(command) = &side.command {
            let command = printable(command, COMMAND_CHARS_MAX);
            let by = if command == side.label { String::new() } else { format!(": {command}") };
            add("    ", format!("restarted for each run{by}"));
        }
    }
    let blocks = &report.order;
    if !blocks.is_empty() {
        let shown = blocks[..blocks.len().min(BLOCKS_SHOWN)].join(" ");
        let more = if blocks.len() > BLOCKS_SHOWN { " ..." } else { "" };
        add("    ", format!("in random order: {shown}{more}"));
    }
    document.add(Forms::LONG, lines);
}

/// Renders each difference between one side and the first.
fn differences(document: &mut Document, report: &CompareRecord, contrast: Contrast<'_>) {
    let letter = contrast.letter;
    if !contrast.differences.is_empty() && letter == 'B' && report.gate.is_none() {
        document.add(Forms::LONG, [Block::Gap, text_block(Voice::Plain, noise_floor(contrast))]);
    }
    if !report.further.is_empty() {
        let of = format!("{letter}, {}, to A", printable(contrast.label, 120));
        document.add(Forms::PAGE, [subheading(of)]);
    }
    document.add(Forms::PAGE, [forest(contrast)]);
    if contrast.differences.is_empty() {
        return;
    }
    let share = format!("{} % interval", (report.confidence * 1e4).round() / 1e2);
    let mut columns: Vec<Column> = ["", "A"].map(Column::from).to_vec();
    columns.extend(
        [letter.to_string(), format!("{letter} to A"), share, "p".into()].map(Column::from),
    );
    columns.push(Column::word(""));
    let rows = contrast.differences.iter().map(difference);
    let table = DataTable::new(columns).with(rows);
    document.add(Forms::LONG, [Block::Gap]);
    document.add(Forms::LONG | Forms::PAGE | Forms::MARKDOWN, [Block::Table(table)]);
}

fn difference(one: &DifferenceRecord) -> Vec<TableCell> {
    let judged = match one.judgement {
        Judgement::Better => TableCell::new(CellLook::Met, "better"),
        Judgement::Worse => TableCell::new(CellLook::Missed, "worse"),
        Judgement::NoneShown => TableCell::new(CellLook::Remark, "no significant difference"),
        Judgement::TooFew => TableCell::new(CellLook::Remark, "too few runs"),
    };
    vec![
        one.figure.as_str().into(),
        format_value(one, one.before).into(),
        format_value(one, one.after).into(),
        short(&amount(one.change, one.points())).into(),
        short(&interval(one)).into(),
        p_value(one).into(),
        judged,
    ]
}

/// Formats a value of a difference's figure with its unit.
fn format_value(one: &DifferenceRecord, value: f64) -> String {
    let kind = RUN_FIGURES.iter().find(|(figure, ..)| *figure == one.figure);
    let kind = kind.map_or(FigureKind::Time, |(.., kind)| *kind);
    if value.is_finite() { kind.show(value) } else { "-".to_owned() }
}

/// Formats the p-value with three decimals.
fn p_value(one: &DifferenceRecord) -> String {
    match one.p_value {
        p if !p.is_finite() => "-".to_owned(),
        p if p < 0.001 => "<0.001".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// Abbreviates a difference for a cell: narrow columns leave two spaces between them, so that
/// headings of several words stay distinguishable.
fn short(text: &str) -> String {
    text.replace(" points", " pp")
}

/// Renders the difference of A from itself, for the main figures.
fn noise_floor(contrast: Contrast<'_>) -> String {
    let first =
        |one: &&DifferenceRecord| ["throughput", "p50", "p99"].contains(&one.figure.as_str());
    let known = contrast.differences.iter().filter(first).filter(|one| one.noise.is_finite());
    let noise = known.map(|one| format!("{} ±{}", one.figure, unsigned(one.noise, one.points())));
    let noise: Vec<String> = noise.collect();
    match noise.is_empty() {
        true => "Noise floor: unknown; A has too few runs to be compared with itself.".to_owned(),
        false => format!("Noise floor, A against itself: {}.", noise.join(", ")),
    }
}

/// Draws each ratio with its interval.
fn forest(contrast: Contrast<'_>) -> Block {
    let tone = |one: &DifferenceRecord| match one.judgement {
        Judgement::Better => Tone::Green,
        Judgement::Worse => Tone::Red,
        Judgement::NoneShown | Judgement::TooFew => Tone::Blue,
    };
    let known = |one: &&DifferenceRecord| one.change.is_finite() && !one.points();
    let row = |one: &DifferenceRecord| ForestRow {
        name: one.figure.clone(),
        tone: tone(one),
        change: one.change,
        low: one.low,
        high: one.high,
        interval: interval(one),
        noise: one.noise,
    };
    let rows: Vec<ForestRow> = contrast.differences.iter().filter(known).map(row).collect();
    if rows.is_empty() {
        return text_block(Voice::Plain, "There are no differences.");
    }
    let letter = contrast.letter;
    Block::Forest(Forest {
        title: format!("{letter} to A, with the interval"),
        label: format!("Differences of {letter} to A with their intervals"),
        rows,
    })
}

/// Renders the differences that the comparison excludes, those it could have found, and how.
fn power(document: &mut Document, report: &CompareRecord) {
    let forms = Forms::LONG | Forms::PAGE;
    if report.gate.is_some() {
        document.add(forms | Forms::MARKDOWN, [text_block(Voice::Note, gate::METHOD)]);
        return;
    }
    let judged = |one: &&DifferenceRecord| one.judgement != Judgement::TooFew;
    let mut any = false;
    for contrast in report.contrasts() {
        let rows: Vec<Vec<String>> =
            contrast.differences.iter().filter(judged).map(power_row).collect();
        if rows.is_empty() {
            continue;
        }
        any = true;
        let of = match report.further.is_empty() {
            true => String::new(),
            false => format!(", {} to A", contrast.letter),
        };
        let head = ["", "A against A", "found in 4 of 5 cases", "excluded beyond", "Cliff's delta"];
        let table = DataTable::new(head).with(rows);
        document
            .add(forms, [subheading(format!("What these runs can show{of}")), Block::Table(table)]);
    }
    if any {
        // text at the margin must not look like another row
        document.add(Forms::LONG, [Block::Gap]);
        document.add(forms, [text_block(Voice::Note, method(report, DELTA))]);
        // Markdown has the table of differences alone
        document.add(Forms::MARKDOWN, [text_block(Voice::Note, method(report, ""))]);
    }
}

fn power_row(one: &DifferenceRecord) -> Vec<String> {
    let excluded = match one.judgement {
        Judgement::NoneShown => unsigned(wider(one), one.points()),
        _ => String::new(),
    };
    vec![
        one.figure.clone(),
        short(&format!("±{}", unsigned(one.noise, one.points()))),
        short(&unsigned(one.detectable, one.points())),
        short(&excluded),
        format!("{:+.2}", one.effect),
    ]
}

/// Meaning of the last column of [`power`].
const DELTA: &str =
    "Cliff's delta: 1 when every run of B lies above every run of A, -1 when below; ";

/// Renders the method and the meaning of signs; `more` precedes the text on units.
fn method(report: &CompareRecord, more: &str) -> String {
    let (within, over) = match report.order.is_empty() {
        true => ("over all runs", "runs"),
        false => ("within the blocks", "blocks"),
    };
    let family = match report.further.len() + 1 {
        1 => String::new(),
        count => {
            format!(" Each p is multiplied by {count}, the number of comparisons (Bonferroni).")
        }
    };
    let resamples = show::count(u64::from(report.resamples));
    format!(
        "p: how often randomly reassigned labels make any of these figures differ as much, {within}; intervals: \
         bootstrap over {over}, {resamples} resamples. {more}pp: percentage points.{family}"
    )
}

/// Style of each side's distribution.
const LOOKS: [(Tone, Dash); 3] =
    [(Tone::Blue, Dash::None), (Tone::Orange, Dash::Long), (Tone::Green, Dash::Short)];

fn distributions(document: &mut Document, report: &CompareRecord) {
    let side = |(letter, side): (char, &SideRecord)| {
        (format!("{letter}: {}", label(side)), side.response())
    };
    let sides: Vec<(String, Hist)> = report.lettered().map(side).collect();
    let both = if report.further.is_empty() { "both" } else { "all" };
    document.add(Forms::PAGE, [placed("response-times", &format!("Response times of {both}"))]);
    let all: Vec<Distribution<'_>> = sides
        .iter()
        .zip(LOOKS)
        .map(|((name, hist), look)| Distribution { name, look, hist })
        .collect();
    match by_quantile("spectrum", "Response time by quantile (log scales)", &all) {
        Some(chart) => document.add(Forms::PAGE, [chart.into(), Block::HowToLook, few_samples()]),
        None => {
            let none = "There are no response times to show.";
            document.add(Forms::PAGE, [text_block(Voice::Plain, none)]);
        }
    }
}

fn runs(document: &mut Document, report: &CompareRecord) {
    document.add(Forms::PAGE, [placed("runs", "Runs")]);
    if !report.order.is_empty() {
        let order = printable(&report.order.join(" "), 400);
        document.add(
            Forms::PAGE,
            [text_block(Voice::Soft, format!("Order of the runs (drawn at random): {order}"))],
        );
    }
    let mut columns: Vec<Column> = ["Side", "run"].map(Column::from).to_vec();
    columns.extend(RUN_FIGURES.iter().map(|(name, ..)| Column::from(*name)));
    columns.push(Column::word("verdict"));
    let mut table = DataTable::new(columns).sortable();
    for (letter, side) in report.lettered() {
        table = table.with(side.runs.iter().enumerate().map(|(n, headline)| {
            let number = TableCell::by((n + 1) as f64, (n + 1).to_string());
            let mut cells = vec![letter.to_string().into(), number];
            cells.extend(RUN_FIGURES.iter().map(|(_, figure, kind)| {
                let value = figure(headline);
                TableCell::by(value, kind.show(value))
            }));
            cells.push(headline.state.id().into());
            cells
        }));
    }
    document.add(Forms::PAGE, [Block::Table(table)]);
}
