//! Two servers, or one before and after a change: the difference of each figure with its interval,
//! as text, JSON (`loadstone.compare/1`, described by `docs/schema/compare.schema.json`) and CSV.
//! The arithmetic is `stats::compare`'s.

mod csv;
mod page;
mod protocols;
mod text;

pub use csv::csv;
pub use page::html;
use record::compare::{CompareRecord, SideRecord};
pub(crate) use text::COMMAND_CHARS_MAX;
pub use text::text;

/// `loadstone.compare/1`, indented, with a line feed at its end.
pub fn json(report: &CompareRecord) -> String {
    record::document::printed(report)
}

/// `A is …, B is ….`
pub(crate) fn sides_in_words(report: &CompareRecord) -> String {
    let side = |(letter, side): (char, &SideRecord)| {
        format!("{letter} is {}", crate::words::printable(&side.label, 120))
    };
    let sides: Vec<String> = report.lettered().map(side).collect();
    format!("{}.", sides.join(", "))
}
