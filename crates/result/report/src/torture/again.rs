//! Results of recorded failures: replayed, judged again, shrunk.

use super::words;
use crate::page;
use crate::section::{Block, Column, DataTable, Document, Forms, Voice, text_block, with_lead};
use crate::words::counted;
use record::torture::ShrunkRecord;
use record::torture::rejudged::{ConversationRecord, RejudgedRecord};
use record::torture::replay::{ReplayRecord, ReplayedRecord};
use torture::result::{ReplayVerdict, Shrunk};

/// Returns a replay as text, with a final line feed.
pub fn replay_text(replay: &ReplayRecord) -> String {
    let sent = |row| -> Option<(&ReplayedRecord, ReplayVerdict)> { Some((row, row.verdict?)) };
    let rows: Vec<(&ReplayedRecord, ReplayVerdict)> =
        replay.failures.iter().filter_map(sent).collect();
    let mut document = Document::default();
    let all = [
        ReplayVerdict::Failing,
        ReplayVerdict::Flaky,
        ReplayVerdict::Fixed,
        ReplayVerdict::Unlearned,
    ];
    let counts: Vec<String> = all
        .into_iter()
        .filter_map(|verdict| {
            let count = rows.iter().filter(|(_, one)| *one == verdict).count();
            (count > 0).then(|| format!("{count} {}", verdict.text()))
        })
        .collect();
    let message = if counts.is_empty() { "nothing was sent".to_owned() } else { counts.join(", ") };
    let number = counted(rows.len() as u64, "failure");
    let (target, class) = (words::safe(&replay.target), replay.class.id());
    let summary = format!("{number} sent again to {target} ({class}): {message}.");
    document.add(Forms::TEXT, [text_block(Voice::Plain, summary)]);
    document.add(
        Forms::TEXT,
        words::early_end_reasons(replay.ended_early.as_deref(), replay.interrupted),
    );
    if !rows.is_empty() {
        let columns = [Column::word("").at_least(15), Column::text(""), Column::text("")];
        let table = DataTable::new(columns).listed().with(rows.into_iter().map(replayed));
        document.add(Forms::TEXT, [Block::Gap, Block::Table(table)]);
    }
    notes(&mut document, &replay.notes);
    page::text::whole(&document)
}

fn replayed((row, verdict): (&ReplayedRecord, ReplayVerdict)) -> Vec<String> {
    let unlearned = verdict == ReplayVerdict::Unlearned && !row.why.is_empty();
    let seen = words::safe(if unlearned { &row.why } else { &row.seen });
    let message =
        format!("{}: failed in {} of {}; {seen}", words::safe(&row.name), row.failed, row.tries);
    vec![verdict.text().to_owned(), words::safe(&row.folder), message]
}

/// Adds remarks about other versions, one sentence each.
fn notes(document: &mut Document, notes: &[String]) {
    if !notes.is_empty() {
        document.add(Forms::TEXT, [Block::Gap]);
    }
    let sentence = |note: &String| text_block(Voice::Plain, format!("{}.", words::safe(note)));
    document.add(Forms::TEXT, notes.iter().map(sentence));
}

/// Returns the conversations whose outcome has changed, as text with a final line feed.
pub fn rejudged_text(record: &RejudgedRecord) -> String {
    let mut document = Document::default();
    let RejudgedRecord { judged, otherwise, conversations: rows, .. } = record;
    let gone = rows.iter().filter(|row| row.version_now.is_none()).count() as u64;
    let code = rows.len() as u64 - judged - gone;
    let mut left = String::new();
    if code > 0 {
        let many = counted(code, "conversation");
        left += &format!("; not judged: {many} of cases that only a live run can judge");
    }
    if gone > 0 {
        let many = counted(gone, "conversation");
        left += &format!("; not judged: {many} of cases unknown to this version");
    }
    let summary = format!(
        "{} judged again: {} unchanged, {otherwise} changed{left}.",
        counted(*judged, "conversation"),
        judged - otherwise
    );
    document.add(Forms::TEXT, [text_block(Voice::Plain, summary)]);
    let lines: Vec<Block> = rows.iter().filter(|row| row.differs()).filter_map(rejudged).collect();
    if !lines.is_empty() {
        document.add(Forms::TEXT, [Block::Gap]);
    }
    document.add(Forms::TEXT, lines);
    notes(&mut document, &record.notes);
    page::text::whole(&document)
}

/// Formats a conversation whose outcome has changed.
fn rejudged(row: &ConversationRecord) -> Option<Block> {
    let now = row.now?;
    let why = if row.why.is_empty() { &row.seen } else { &row.why };
    let versions = match (row.version_then, row.version_now) {
        (then, Some(now)) if then != now => format!(" (version {then} → {now} of the case)"),
        _ => String::new(),
    };
    let lead = format!("  {} {}  ", row.case, words::safe(&row.name));
    let outcomes = format!("{} → {}", row.then.id(), now.id());
    Some(with_lead(&lead, Voice::Plain, format!("{outcomes}: {}{versions}", words::safe(why))))
}

/// Returns the shrunk failures as text with a final line feed; `folders` are their names.
pub fn shrunk_text(folders: &[String], found: &[Option<Shrunk>]) -> String {
    let mut document = Document::default();
    for (folder, shrunk) in folders.iter().zip(found) {
        let message = match shrunk {
            Some(shrunk) => words::shrunk(&ShrunkRecord::new(shrunk)),
            None => "it no longer fails, or the budget was too small".to_owned(),
        };
        let lead = format!("{}  ", words::safe(folder));
        document.add(Forms::TEXT, [with_lead(&lead, Voice::Plain, message)]);
    }
    let mut buckets: Vec<String> = found.iter().flatten().map(Shrunk::bucket).collect();
    let all = buckets.len() as u64;
    buckets.sort();
    buckets.dedup();
    let buckets = counted(buckets.len() as u64, "cause");
    let summary = format!("{} shrunk: {buckets} at most.", counted(all, "failure"));
    document.add(Forms::TEXT, [Block::Gap, text_block(Voice::Plain, summary)]);
    page::text::whole(&document)
}
