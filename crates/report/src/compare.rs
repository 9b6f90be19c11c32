//! Two servers, or one before and after a change: the difference of each figure with its interval,
//! as text, JSON (`loadstone.compare/1`, described by `docs/schema/compare.schema.json`) and CSV.
//! The arithmetic is `stats::compare`'s.

mod csv;
mod page;
mod protocols;
mod text;

pub use csv::csv;
pub use page::html;
pub use record::compare::{
    BoundResult, CompareReport, Comparison, Contrast, Difference, FailIf, FurtherSide, Judgement,
    LETTERS, ProtocolRecord, Scope, assemble, plan_differences,
};
pub(crate) use record::compare::{amount, headlines, interval};
pub use record::compare::{answer, sentence, verdict};
pub(crate) use text::COMMAND_CHARS_MAX;
pub use text::text;

/// `loadstone.compare/1`, indented, with a line feed at its end.
pub fn json(report: &CompareReport) -> String {
    record::document::printed(&record::compare::CompareRecord::of(report))
}

/// `A is …, B is ….`
pub(crate) fn sides_in_words(report: &CompareReport) -> String {
    let side = |(letter, label): (char, &String)| {
        format!("{letter} is {}", crate::words::printable(label, 120))
    };
    let sides: Vec<String> = LETTERS.chars().zip(&report.labels).map(side).collect();
    format!("{}.", sides.join(", "))
}
