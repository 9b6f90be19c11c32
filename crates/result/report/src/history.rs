//! The history of one name as text and JSON (`loadstone.history/1`).

use crate::words::{counted, printable};
use record::history::HistoryRecord;

/// Renders the record as `loadstone.history/1`, indented, with a line feed at its end.
pub fn json(record: &HistoryRecord) -> String {
    record::document::printed(record)
}

/// Renders the answer, and a line for each figure.
pub fn text(record: &HistoryRecord) -> String {
    let mut text = format!("{}\n\n", record.answer);
    let runs = counted(record.runs.len() as u64, "run");
    let span = match (record.runs.first(), record.runs.last()) {
        (Some(first), Some(last)) if first.id != last.id => {
            format!(", {} to {}", first.id, last.id)
        }
        _ => String::new(),
    };
    text += &format!("{}: {runs}{span}", printable(&record.name, 200));
    if record.invalid > 0 {
        text += &format!("; {} left out as INVALID", counted(record.invalid, "run"));
    }
    text.push('\n');
    for figure in &record.figures {
        text += &format!("  {}\n", figure.text);
    }
    text
}
