//! Two servers, or one before and after a change: the difference of each figure with its interval,
//! as text, JSON (`loadstone.compare/1`, described by `docs/schema/compare.schema.json`) and CSV.
//! The arithmetic is `stats::compare`'s.

mod csv;
mod page;
mod protocols;
mod text;

use crate::figures::{FigureKind, RUN_FIGURES};
pub use csv::csv;
pub use page::html;
use record::compare::{CompareRecord, DifferenceRecord, SideRecord};
pub(crate) use text::COMMAND_CHARS_MAX;
pub use text::text;

/// `loadstone.compare/1`, indented, with a line feed at its end.
pub fn json(report: &CompareRecord) -> String {
    record::document::printed(report)
}

/// A value of a difference's figure with its unit.
pub(crate) fn shown(one: &DifferenceRecord, value: f64) -> String {
    let kind = RUN_FIGURES.iter().find(|(figure, ..)| *figure == one.figure);
    let kind = kind.map_or(FigureKind::Time, |(.., kind)| *kind);
    if value.is_finite() { kind.show(value) } else { "-".to_owned() }
}

/// Its p, to three digits.
pub(crate) fn p_value(one: &DifferenceRecord) -> String {
    match one.p_value {
        p if !p.is_finite() => "-".to_owned(),
        p if p < 0.001 => "<0.001".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// `A is …, B is ….`
pub(crate) fn sides_in_words(report: &CompareRecord) -> String {
    let side = |(letter, side): (char, &SideRecord)| {
        format!("{letter} is {}", crate::words::printable(&side.label, 120))
    };
    let sides: Vec<String> = report.lettered().map(side).collect();
    format!("{}.", sides.join(", "))
}
