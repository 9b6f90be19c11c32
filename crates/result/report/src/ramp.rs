//! The whole curve as a result: its steps in the order they were run, and their conclusions; as
//! text, a page, Markdown, JSON (`loadstone.ramp/1`) and CSV.

mod answer;
mod charts;
mod csv;
mod picture;
mod prose;
mod steps;
mod verdict;
mod watched;

use crate::blocks::{self, findings, verdict_heading};
use crate::page::text::Style;
use crate::section::{
    Block, Caution, Column, DataTable, Document, Forms, TableCell, Tile, Title, Voice, facts,
    heading, placed, subheading, text_block, title,
};
use crate::{page, words};
use sample::Blame;
use stats::curve::{Axis, Curve};
use units::show;
use words::printable;

pub use answer::{answer, capacity_description, knee_description, load, steps_sentence};
pub use csv::csv;
pub use record::ramp::{RampRecord, RampReport, RampStep, RampStepRecord};
pub use stats::curve::Purpose;
pub use verdict::missed;

const PAGE: Forms = Forms::PAGE;
const MARKDOWN: Forms = Forms::MARKDOWN;
/// Text in any form except the brief one.
const LONG: Forms = Forms::LONG;

/// Returns the number of calls of a step that failed, timed out or were dropped because of `blame`.
fn blamed(step: &RampStepRecord, blame: Blame) -> u64 {
    let failures = step.run.failures.iter().filter(|failure| failure.blame == blame);
    failures.map(|failure| failure.count).sum()
}

/// Renders the ramp as `loadstone.ramp/1`, indented, with a line feed at its end.
pub fn json(ramp: &RampRecord) -> String {
    record::document::printed(ramp)
}

/// Renders the report as text, with a line feed at its end. Quiet: the verdict and the answers.
pub fn text(report: &RampRecord, style: Style) -> String {
    let answers = prose::answers(report).into_iter().map(|text| text_block(Voice::Plain, text));
    let result = answers.chain([blocks::verdict_line(&report.verdict)]);
    page::text::text_with_result(&document(report, style.form()), result, style)
}

/// Renders the page.
pub fn html(report: &RampRecord) -> String {
    page::html::page(&document(report, PAGE))
}

/// Renders a ramp as Markdown: the curve's conclusions, and its steps.
pub fn markdown_of_ramp(report: &RampRecord) -> String {
    page::markdown::markdown(&document(report, MARKDOWN))
}

/// Returns the parts for `read`; for other forms only parts that do not need every step's
/// histograms.
fn document(report: &RampRecord, read: Forms) -> Document {
    let state = report.verdict.state.id();
    let mut page = Document::new(format!("{state}: ramp of {}", name(report)));
    head(&mut page, report);
    answers(&mut page, report);
    describe_setup(&mut page, report);
    figures(&mut page, report);
    page.add(PAGE | MARKDOWN, findings(&report.findings));
    if read.has(PAGE) {
        charts::against_load(&mut page, report);
    }
    if read.has(LONG) {
        page.add(LONG, picture::picture(report));
        steps::by_purpose(&mut page, report);
    }
    laws(&mut page, report);
    if read.has(PAGE) {
        charts::scalability(&mut page, report);
    }
    steps::steps(&mut page, report, read);
    page.add(LONG, findings(&report.findings));
    plan(&mut page, report);
    let measured = words::measured(report.started_unix_s, &report.environment);
    let protocol = words::protocol(report.plan.plan());
    page.add(MARKDOWN, [Block::Foot(format!("{protocol}. {measured}"))]);
    page.add(PAGE, [Block::Foot(measured)]);
    page
}

/// Returns the ramp's name, or those of its targets.
fn name(report: &RampRecord) -> String {
    match report.name.as_str() {
        "" => {
            let labels = report.labels.iter().map(|label| printable(label, 80));
            labels.collect::<Vec<_>>().join(", ")
        }
        name => printable(name, 200),
    }
}

/// Prefixes text about a target with its name, if there are several: `what`, or `name: what`.
fn of_target(report: &RampRecord, row: usize, what: &str) -> String {
    match (report.labels.len(), report.labels.get(row)) {
        (0 | 1, _) | (_, None) => what.to_owned(),
        (_, Some(label)) => format!("{}: {what}", printable(label, 60)),
    }
}

/// Returns the heading of a target's text: its name, if there are several.
fn target_heading(report: &RampRecord, row: usize) -> Block {
    match report.labels.get(row).filter(|_| report.labels.len() > 1) {
        Some(label) => subheading(printable(label, 76)),
        None => Block::Gap,
    }
}

/// Renders the measurement, its validity, and whether it ended early.
fn head(document: &mut Document, report: &RampRecord) {
    let protocol = words::protocol(report.plan.plan());
    let done = match report.steps.is_empty() {
        true => protocol,
        false => format!("{} · {protocol}", steps_sentence(report)),
    };
    let kicker = "The curve of a web server";
    document
        .add(PAGE, [Block::Title(Title { kicker, name: name(report), lines: vec![done.into()] })]);
    let of = format!("ramp of {}", name(report));
    document.add(MARKDOWN, [title(verdict_heading(&report.verdict, &[], &of))]);
    document.add(Forms::TEXT | PAGE, [verdict(report)]);
    let Some(why) = report.ended_early.as_ref().map(|why| printable(why, 400)) else { return };
    document.add(Forms::TEXT, [Block::Gap, facts([("Ended early", why.as_str())])]);
    document.add(PAGE | MARKDOWN, [Block::Caution(Caution { word: "Ended early", text: why })]);
}

fn verdict(report: &RampRecord) -> Block {
    blocks::verdict(&report.verdict, blocks::ALL_CAUSES)
}

/// Renders the results of each target: as facts in text, in sentences elsewhere.
fn answers(document: &mut Document, report: &RampRecord) {
    for row in 0..report.labels.len() {
        let known = answer(report, row);
        if !known.is_empty() {
            document.add(Forms::TEXT, [target_heading(report, row), facts(known)]);
        }
    }
    let sentences = prose::answers(report).into_iter();
    document.add(PAGE | MARKDOWN, sentences.map(|sentence| text_block(Voice::Answer, sentence)));
    document.add(MARKDOWN, [verdict(report)]);
}

fn describe_setup(document: &mut Document, report: &RampRecord) {
    let name = match report.name.as_str() {
        "" => words::target(report.plan.plan()),
        name => printable(name, 400),
    };
    let when = words::timestamp(report.started_unix_s);
    let at = format!("{when}, {}", words::machine(&report.environment));
    let done = [
        ("Target", name),
        ("Steps", steps_sentence(report)),
        ("Request", words::protocol(report.plan.plan())),
        ("Measured", at.trim_end_matches(", ").to_owned()),
    ];
    document.add(LONG, [Block::Gap, facts(done)]);
}

/// Renders the figures of each target: in frames for a single target, side by side for several.
fn figures(document: &mut Document, report: &RampRecord) {
    let curves = report.curves();
    let targets = [Column::from("target").only(Forms::WIDE), Column::from("").only(LONG)];
    let columns = prose::FIGURES.map(|(name, forms, _)| Column::from(name).only(forms));
    let rows = report.labels.iter().zip(&curves).map(|(label, curve)| {
        let figures = prose::FIGURES.map(|(.., figure)| {
            let (value, text) = figure(report.axis, curve);
            TableCell::by(value, text)
        });
        let names = [80, 40].map(|room| TableCell::from(printable(label, room)));
        names.into_iter().chain(figures).collect::<Vec<_>>()
    });
    let columns = targets.into_iter().chain(columns);
    let table = DataTable::new(columns).sortable().with(rows);
    let mut forms = MARKDOWN;
    if report.labels.len() > 1 {
        document.add(LONG, [heading("Side by side")]);
        forms = forms | LONG;
    }
    if curves.len() != 1 {
        forms = forms | PAGE;
    }
    document.add(forms, [Block::Table(table)]);
    if let [curve] = &curves[..] {
        document.add(PAGE, [Block::Tiles(tiles(report.axis, curve))]);
    }
}

fn tiles(axis: Axis, curve: &Curve) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let mut tile = |label: &str, value: String, sub: String| {
        tiles.push(Tile { label: label.to_owned(), value, sub });
    };
    let level = answer::level;
    let ends = |axis, span| answer::ends(axis, span, answer::TO);
    if let Some(peak) = &curve.peak {
        tile("Peak goodput", level(Axis::Rate, peak.at), ends(Axis::Rate, peak));
    }
    match &curve.knee {
        Some(knee) => tile("Knee", level(axis, knee.at.at), ends(axis, &knee.at)),
        None if axis.is_load() => tile("Knee", "-".to_owned(), "not reached".to_owned()),
        None => {}
    }
    if let Some(capacity) = curve.capacity.as_ref().filter(|one| !one.objectives.is_empty()) {
        tile("Capacity", level(axis, capacity.at.at), format!("at {}", answer::rules(capacity)));
    }
    let overload = &curve.overload;
    if overload.kept_share.is_finite() {
        let at = level(axis, overload.at_level);
        let sub = format!("{}, at {at}", prose::shape(overload));
        tile("Kept in overload", show::share(overload.kept_share), sub);
    }
    tiles
}

/// Renders further results of each target's curve, and undetermined ones.
fn laws(document: &mut Document, report: &RampRecord) {
    document.add(PAGE, [placed("laws", "Conclusions from the curve")]);
    for (row, curve) in report.curves().iter().enumerate() {
        let law = answer::law(report.axis, curve);
        let head = target_heading(report, row);
        let all = answer(report, row).into_iter().chain(law.clone());
        document.add(PAGE, [head.clone(), facts(all)]);
        document.add(PAGE, curve.notes.iter().map(|note| text_block(Voice::Note, note.as_str())));
        let notes = curve.notes.iter().map(|note| ("Note", note.clone()));
        let described: Vec<(&str, String)> = law.into_iter().chain(notes).collect();
        if !described.is_empty() {
            document.add(LONG, [head, facts(described)]);
        }
    }
}

fn plan(document: &mut Document, report: &RampRecord) {
    let toml = report.plan.toml();
    if !toml.is_empty() {
        document.add(PAGE, crate::run::parts::plan(toml));
    }
}
