//! The record of a comparison with a model: text, JSON (`loadstone.fit/1`, described by
//! `docs/schema/fit.schema.json`) and a page with its plots.

use crate::Style;
use crate::html::chart::{Chart, Dash, Dots, Horizontal, Line, Tone, Unit};
use crate::html::page::{self, Plots};
use crate::text::ascii;
use crate::text::layout::Page;
use crate::words::{counted, printable};
use maud::{Markup, html as markup};
use record::fit::{FitKind, FitRecord, FittedFigure, FittedUnit, PlotRecord, PropertyRecord};
use units::{Nanos, show};

/// Characters of a name that somebody gave to a file.
const NAME_MAX: usize = 200;

/// The record as JSON, indented, with a line feed at its end.
pub fn json(record: &FitRecord) -> String {
    record::document::printed(record)
}

/// A table for each property: found, the model's, and what the tests say.
pub fn text(record: &FitRecord, style: Style) -> String {
    let mut page = Page::default();
    page.wrapped("", &summary(record));
    for property in &record.properties {
        if style.quiet && property.fits != Some(false) {
            continue;
        }
        page.blank();
        page.wrapped("", &format!("{}: {}", property.name, verdict(property)));
        property.against.iter().for_each(|why| page.wrapped("  ", why));
        if property.untold.is_some() {
            continue;
        }
        page.wrapped("  model: ", &property.law);
        let mut rows = vec![vec![counted(property.count, "value"), "found".into(), "model".into()]];
        rows.extend(property.figures.iter().map(|figure| {
            vec![figure.name.clone(), found(figure), shown(figure.model, figure.unit)]
        }));
        page.table(&rows);
        tests(property).iter().for_each(|test| page.wrapped("  ", test));
    }
    if style.unicode { page.finish() } else { ascii(&page.finish()) }
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
        "nothing can be told about"
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
        (Some(why), _) => format!("cannot be told; {why}"),
        (None, Some(false)) => "does not fit".to_owned(),
        _ => "fits".to_owned(),
    }
}

fn found(figure: &FittedFigure) -> String {
    figure.found.map_or_else(|| "-".to_owned(), |value| shown(value, figure.unit))
}

fn shown(value: f64, unit: FittedUnit) -> String {
    match unit {
        FittedUnit::Bytes => show::bytes(value.round() as u64),
        FittedUnit::Seconds => show::duration(Nanos::from_secs_f64(value)),
        FittedUnit::Share => show::share(value),
        FittedUnit::Number if value >= 100.0 => show::count(value.round() as u64),
        FittedUnit::Number => format!("{value:.2}"),
    }
}

/// What the tests of the whole law say, with their caveats.
fn tests(property: &PropertyRecord) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(test) = &property.anderson_darling {
        said.push(format!(
            "Anderson-Darling: {} of {} sub-samples of {} above 2.492 (5 %; up to {} are chance); A² of \
             all {}: {:.1} (of many values it rejects every law)",
            test.rejected, test.samples, test.size, test.rejected_max, show::count(property.count),
            test.whole
        ));
    }
    if let Some(lambda) = property.lambda_squared {
        let bins = counted(property.bins, "bin");
        let most = property.lambda_squared_max;
        said.push(format!("λ² {lambda:.4} over {bins} (0 is the law; our bound is {most})"));
    }
    said
}

/// The page.
pub fn html(record: &FitRecord) -> String {
    let mut plots = Plots::default();
    let body = body(record, &mut plots);
    page::page(&summary(record), &body, plots)
}

fn body(record: &FitRecord, plots: &mut Plots) -> Markup {
    markup! {
        header {
            p class="kicker" { "A workload and its model" }
            h1 { (summary(record)) }
        }
        div class="wide" { table {
            tr { th { "Property" } th class="text" { "" } th { "values" } th class="text" { "model" } }
            @for property in &record.properties {
                tr {
                    td { (property.name) } td class="text" { (verdict(property)) }
                    td { (show::count(property.count)) } td class="text" { (property.law) }
                }
            }
        } }
        @for property in record.properties.iter().filter(|property| property.untold.is_none()) {
            h2 { (property.name) ": " (verdict(property)) }
            @for why in &property.against { p { (why) } }
            div class="wide" { table class="narrow" {
                tr { th { "" } th { "found" } th { "model" } }
                @for figure in &property.figures {
                    tr {
                        td { (figure.name) } td { (found(figure)) }
                        td { (shown(figure.model, figure.unit)) }
                    }
                }
            } }
            @for test in tests(property) { p class="note" { (test) } }
        }
        h2 { "Pictures" }
        @for plot in &record.plots { (plots.figure(&chart(plot))) }
        p class="note" {
            "Both axes are logarithmic. A Pareto tail is a straight line in P(X > x), Zipf's law one in the "
            "requests by rank; of the variance, a Poisson process falls along the dashed line, and bursts at "
            "every scale fall more slowly."
        }
    }
}

fn chart(plot: &PlotRecord) -> Chart {
    let (first, last) = (plot.at.first().copied(), plot.at.last().copied());
    let x = Horizontal {
        // the axis wants a name that lives as long as the program
        name: match plot.across.as_str() {
            "bytes" => "bytes",
            "rank" => "rank",
            "distance" => "distance",
            "seconds" => "seconds",
            _ => "span",
        },
        unit: if plot.across_seconds { Unit::Time } else { Unit::Count },
        log: true,
        low: first.unwrap_or(1.0),
        high: last.unwrap_or(10.0),
    };
    let y = if plot.along_share { Unit::Share } else { Unit::Count };
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
