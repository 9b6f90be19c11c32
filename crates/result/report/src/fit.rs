//! The record of a comparison with a model: text, JSON (`loadstone.fit/1`, described by
//! `docs/schema/fit.schema.json`) and a page with its plots.

use crate::Style;
use crate::page;
use crate::section::chart::{AxisUnit, Chart, Dash, Dots, Horizontal, Line, Tone};
use crate::section::{
    Block, Column, DataTable, Document, Forms, Title, Voice, heading, text_block, with_lead,
};
use crate::words::{counted, printable};
use record::fit::{FitKind, FitRecord, FittedFigure, FittedUnit, PlotRecord, PropertyRecord};
use units::{Nanos, show};

/// Maximum characters of a user's file name.
const NAME_MAX: usize = 200;

/// Renders the record as JSON, indented, with a line feed at its end.
pub fn json(record: &FitRecord) -> String {
    record::document::printed(record)
}

/// Renders a table for each property: the measured values, those of the model, and the test
/// results.
pub fn text(record: &FitRecord, style: Style) -> String {
    page::text::text(&document(record), style)
}

/// Renders the page.
pub fn html(record: &FitRecord) -> String {
    page::html::page(&document(record))
}

fn document(record: &FitRecord) -> Document {
    let name = summary(record);
    let mut page = Document::new(name.clone());
    page.add(Forms::TEXT, [text_block(Voice::Plain, name.as_str())]);
    let kicker = "A workload and its model";
    page.add(Forms::PAGE, [Block::Title(Title { kicker, name, lines: Vec::new() })]);
    page.add(Forms::PAGE, [short_form(record)]);
    for property in &record.properties {
        one_property(&mut page, property);
    }
    page.add(Forms::PAGE, [heading("Pictures")]);
    page.add(Forms::PAGE, record.plots.iter().map(|plot| chart(plot).into()));
    let note = "Both axes are logarithmic. A Pareto tail is a straight line in P(X > x), Zipf's law one in the \
                requests by rank; of the variance, a Poisson process falls along the dashed line, and bursts \
                at every scale fall more slowly.";
    page.add(Forms::PAGE, [text_block(Voice::Note, note)]);
    page
}

fn short_form(record: &FitRecord) -> Block {
    let columns = ["Property".into(), Column::text(""), "values".into(), Column::text("model")];
    let row = |one: &PropertyRecord| {
        vec![one.name.clone(), verdict(one), show::count(one.count), one.law.clone()]
    };
    Block::Table(DataTable::new(columns).with(record.properties.iter().map(row)))
}

/// Renders a property; brief text has only those that do not fit.
fn one_property(document: &mut Document, property: &PropertyRecord) {
    let text = if property.fits == Some(false) { Forms::TEXT } else { Forms::LONG };
    let forms = if property.untold.is_none() { text | Forms::PAGE } else { text };
    let named = format!("{}: {}", property.name, verdict(property));
    document.add(forms & Forms::PAGE, [heading(named.as_str())]);
    document.add(text, [Block::Gap, text_block(Voice::Plain, named)]);
    document
        .add(forms, property.against.iter().map(|why| with_lead("  ", Voice::Plain, why.as_str())));
    if property.untold.is_some() {
        return;
    }
    document.add(text, [with_lead("  model: ", Voice::Plain, property.law.as_str())]);
    let head = [counted(property.count, "value"), "found".into(), "model".into()];
    let row = |figure: &FittedFigure| {
        vec![figure.name.clone(), found(figure), format_fit_value(figure.model, figure.unit)]
    };
    let table = DataTable::new(head).narrow().with(property.figures.iter().map(row));
    document.add(forms, [Block::Table(table)]);
    document.add(forms, tests(property).into_iter().map(|test| with_lead("  ", Voice::Note, test)));
}

fn summary(record: &FitRecord) -> String {
    let what = match record.kind {
        FitKind::Files => "Files in",
        FitKind::Sequence => "Sequence",
        FitKind::Log => "Log",
    };
    let how = if record.fits {
        "as"
    } else if record.properties.iter().any(|property| property.fits == Some(false)) {
        "no fit to"
    } else {
        "nothing is known about"
    };
    let of = printable(&record.of, NAME_MAX);
    let broken = match record.broken {
        0 => String::new(),
        broken => format!("; {} could not be read", counted(broken, "line")),
    };
    format!("{what} {of}: {how} {} (seed {}){broken}", record.model, record.seed)
}

fn verdict(property: &PropertyRecord) -> String {
    match (&property.untold, property.fits) {
        (Some(why), _) => format!("unknown; {why}"),
        (None, Some(false)) => "does not fit".to_owned(),
        _ => "fits".to_owned(),
    }
}

fn found(figure: &FittedFigure) -> String {
    figure.found.map_or_else(|| "-".to_owned(), |value| format_fit_value(value, figure.unit))
}

fn format_fit_value(value: f64, unit: FittedUnit) -> String {
    match unit {
        FittedUnit::Bytes => show::bytes(value.round() as u64),
        FittedUnit::Seconds => show::duration(Nanos::from_secs_f64(value)),
        FittedUnit::Share => show::share(value),
        FittedUnit::Number if value >= 100.0 => show::count(value.round() as u64),
        FittedUnit::Number => format!("{value:.2}"),
    }
}

/// Renders the results of the tests of the whole distribution, with their caveats.
fn tests(property: &PropertyRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(test) = &property.anderson_darling {
        lines.push(format!(
            "Anderson-Darling: {} of {} sub-samples of {} above 2.492 (5 %; up to {} are chance); \
             A² of all {}: {:.1} (with many values it rejects every law)",
            test.rejected,
            test.samples,
            test.size,
            test.rejected_max,
            show::count(property.count),
            test.whole
        ));
    }
    if let Some(lambda) = property.lambda_squared {
        let bins = counted(property.bins, "bin");
        let most = property.lambda_squared_max;
        lines.push(format!("λ² {lambda:.4} over {bins} (0 is the law; our bound is {most})"));
    }
    lines
}

fn chart(plot: &PlotRecord) -> Chart {
    let (first, last) = (plot.at.first().copied(), plot.at.last().copied());
    let x = Horizontal {
        // the axis needs a static name
        name: match plot.across.as_str() {
            "bytes" => "bytes",
            "rank" => "rank",
            "distance" => "distance",
            "seconds" => "seconds",
            _ => "span",
        },
        unit: if plot.across_seconds { AxisUnit::Time } else { AxisUnit::Count },
        log: true,
        low: first.unwrap_or(1.0),
        high: last.unwrap_or(10.0),
    };
    let y = if plot.along_share { AxisUnit::Share } else { AxisUnit::Count };
    let mut chart = Chart::new(&plot.id, &plot.title, x, y).with_places(plot.at.clone());
    chart.log = true;
    let positive = |values: &[Option<f64>]| {
        values.iter().map(|value| value.filter(|value| *value > 0.0)).collect::<Vec<_>>()
    };
    let model = Line::new(&plot.model_name, Tone::Orange, positive(&plot.model));
    chart.lines = vec![
        Line::new("found", Tone::Blue, positive(&plot.found)).dotted(Dots::Bridged),
        model.dashed(Dash::Long).dotted(Dots::Bridged),
    ];
    chart
}
