//! What became of kept failures: sent again, judged again, shrunk.

use super::words;
use crate::page::text::layout::Page;
use crate::words::counted;
use record::torture::ShrunkRecord;
use record::torture::rejudged::RejudgedRecord;
use record::torture::replay::{ReplayRecord, ReplayedRecord};
use torture::result::{ReplayVerdict, Shrunk};

/// A replay as text, with a line feed at its end.
pub fn replay_text(replay: &ReplayRecord) -> String {
    let sent = |row| -> Option<(&ReplayedRecord, ReplayVerdict)> { Some((row, row.verdict?)) };
    let rows: Vec<(&ReplayedRecord, ReplayVerdict)> =
        replay.failures.iter().filter_map(sent).collect();
    let mut page = Page::default();
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
    let said = if counts.is_empty() { "nothing was sent".to_owned() } else { counts.join(", ") };
    let number = counted(rows.len() as u64, "failure");
    let (target, class) = (words::safe(&replay.target), replay.class.id());
    page.wrapped("", &format!("{number} sent again to {target} ({class}): {said}."));
    if let Some(why) = &replay.ended_early {
        page.wrapped("", &format!("It ended early: {}.", words::safe(why)));
    }
    if replay.interrupted {
        page.wrapped("", "Interrupted before the end.");
    }
    if !rows.is_empty() {
        page.blank();
    }
    for (row, verdict) in rows {
        let head = format!("  {:<15} {}  ", verdict.text(), words::safe(&row.folder));
        let unlearned = verdict == ReplayVerdict::Unlearned && !row.why.is_empty();
        let seen = words::safe(if unlearned { &row.why } else { &row.seen });
        let tries = format!("failed in {} of {}", row.failed, row.tries);
        page.wrapped(&head, &format!("{}: {tries}; {seen}", words::safe(&row.name)));
    }
    notes(&mut page, &replay.notes);
    page.finish()
}

/// Remarks on other versions, a sentence each.
fn notes(page: &mut Page, notes: &[String]) {
    if !notes.is_empty() {
        page.blank();
    }
    notes.iter().for_each(|note| page.wrapped("", &format!("{}.", words::safe(note))));
}

/// The conversations of which the outcome is another one now, as text with a line feed at its end.
pub fn rejudged_text(record: &RejudgedRecord) -> String {
    let mut page = Page::default();
    let RejudgedRecord { judged, otherwise, conversations: rows, .. } = record;
    let gone = rows.iter().filter(|row| row.version_now.is_none()).count() as u64;
    let code = rows.len() as u64 - judged - gone;
    let mut left = String::new();
    if code > 0 {
        let many = counted(code, "conversation");
        left += &format!("; not judged: {many} of cases that are judged by code while they send");
    }
    if gone > 0 {
        let many = counted(gone, "conversation");
        left += &format!("; not judged: {many} of cases that this version does not have");
    }
    page.wrapped(
        "",
        &format!(
            "{} judged again: {} unchanged, {otherwise} changed{left}.",
            counted(*judged, "conversation"),
            judged - otherwise
        ),
    );
    for (index, row) in rows.iter().filter(|row| row.differs()).enumerate() {
        if index == 0 {
            page.blank();
        }
        let Some(now) = row.now else { continue };
        let head = format!("  {} {}  ", row.case, words::safe(&row.name));
        let why = if row.why.is_empty() { &row.seen } else { &row.why };
        let versions = match (row.version_then, row.version_now) {
            (then, Some(now)) if then != now => format!(" (version {then} → {now} of the case)"),
            _ => String::new(),
        };
        let outcomes = format!("{} → {}", row.then.id(), now.id());
        page.wrapped(&head, &format!("{outcomes}: {}{versions}", words::safe(why)));
    }
    notes(&mut page, &record.notes);
    page.finish()
}

/// What failures shrank to, as text with a line feed at its end; `folders` are their names.
pub fn shrunk_text(folders: &[String], found: &[Option<Shrunk>]) -> String {
    let mut page = Page::default();
    for (folder, shrunk) in folders.iter().zip(found) {
        let said = match shrunk {
            Some(shrunk) => words::shrunk(&ShrunkRecord::of(shrunk)),
            None => "it does not fail any more, or the budget was too small".to_owned(),
        };
        page.wrapped(&format!("{}  ", words::safe(folder)), &said);
    }
    let mut buckets: Vec<String> = found.iter().flatten().map(Shrunk::bucket).collect();
    let all = buckets.len() as u64;
    buckets.sort();
    buckets.dedup();
    page.blank();
    let buckets = counted(buckets.len() as u64, "cause");
    page.wrapped("", &format!("{} shrunk: {buckets} at most.", counted(all, "failure")));
    page.finish()
}
