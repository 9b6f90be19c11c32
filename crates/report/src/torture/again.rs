//! What became of kept failures: sent again, judged again, shrunk.

use super::words;
use crate::text::layout::Page;
use crate::words::counted;
use torture::judge::Judgement;
use torture::safety::Class;
use torture::session::{ReplayResult, Replayed, Shrunk, Verdict};

/// A failure that was sent again.
#[derive(Clone, Debug)]
pub struct ReplayRow<'a> {
    /// Name of its folder.
    pub folder: String,
    pub name: &'a str,
    pub row: &'a Replayed,
}

/// A replay as text, with a line feed at its end.
pub fn replay_text(
    target: &str,
    class: Class,
    rows: &[ReplayRow<'_>],
    notes: &[String],
    result: &ReplayResult,
) -> String {
    let mut page = Page::default();
    let all = [Verdict::Failing, Verdict::Flaky, Verdict::Fixed, Verdict::Unlearned];
    let counts: Vec<String> = all
        .into_iter()
        .filter_map(|verdict| {
            let count = rows.iter().filter(|row| row.row.verdict == verdict).count();
            (count > 0).then(|| format!("{count} {}", verdict.text()))
        })
        .collect();
    let said = if counts.is_empty() { "nothing was sent".to_owned() } else { counts.join(", ") };
    let number = counted(rows.len() as u64, "failure");
    let target = words::safe(target);
    page.wrapped("", &format!("{number} sent again to {target} ({}): {said}.", class.id()));
    if let Some(why) = &result.ended_early {
        page.wrapped("", &format!("It ended early: {}.", words::safe(why)));
    }
    if result.interrupted {
        page.wrapped("", "Interrupted before its end.");
    }
    if !rows.is_empty() {
        page.blank();
    }
    for ReplayRow { folder, name, row } in rows {
        let head = format!("  {:<15} {}  ", row.verdict.text(), words::safe(folder));
        let seen = words::safe(&row.judgement.seen);
        let tries = format!("failed in {} of {}", row.failed, row.tries);
        page.wrapped(&head, &format!("{}: {tries}; {seen}", words::safe(name)));
    }
    if !notes.is_empty() {
        page.blank();
    }
    notes.iter().for_each(|note| page.wrapped("", &format!("{}.", words::safe(note))));
    page.finish()
}

/// A conversation that was judged again.
#[derive(Clone, Debug)]
pub struct Rejudged {
    pub case: String,
    pub name: String,
    /// Of the case: then, and now where there is such a case.
    pub versions: (u32, Option<u32>),
    pub then: Judgement,
    /// `None` where the case judges by code, or is gone.
    pub now: Option<Judgement>,
}

/// The conversations of which the outcome is another one now, as text with a line feed at its end.
pub fn rejudged_text(rows: &[Rejudged]) -> String {
    let mut page = Page::default();
    let differs =
        |row: &&Rejudged| row.now.as_ref().is_some_and(|now| now.outcome != row.then.outcome);
    let judged = rows.iter().filter(|row| row.now.is_some()).count() as u64;
    let otherwise = rows.iter().filter(differs).count() as u64;
    let code = rows.len() as u64 - judged;
    let left = if code > 0 {
        format!("; {} by code, which judges only while it sends", counted(code, "conversation"))
    } else {
        String::new()
    };
    page.wrapped(
        "",
        &format!(
            "{} judged again: {} as before, {otherwise} otherwise{left}.",
            counted(judged, "conversation"),
            judged - otherwise
        ),
    );
    for (index, row) in rows.iter().filter(differs).enumerate() {
        if index == 0 {
            page.blank();
        }
        let Some(now) = &row.now else { continue };
        let head = format!("  {} {}  ", row.case, words::safe(&row.name));
        let why = if now.why.is_empty() { &now.seen } else { &now.why };
        let versions = match row.versions {
            (then, Some(now)) if then != now => format!(" (version {then} → {now} of the case)"),
            _ => String::new(),
        };
        page.wrapped(
            &head,
            &format!(
                "{} → {}: {}{versions}",
                row.then.outcome.id(),
                now.outcome.id(),
                words::safe(why)
            ),
        );
    }
    page.finish()
}

/// What failures shrank to, as text with a line feed at its end; `folders` are their names.
pub fn shrunk_text(folders: &[String], found: &[Option<Shrunk>]) -> String {
    let mut page = Page::default();
    for (folder, shrunk) in folders.iter().zip(found) {
        let said = match shrunk {
            Some(shrunk) => words::shrunk(shrunk),
            None => "it fails no more, or the budget was too small".to_owned(),
        };
        page.wrapped(&format!("{}  ", words::safe(folder)), &said);
    }
    let mut buckets: Vec<String> = found.iter().flatten().map(Shrunk::bucket).collect();
    let all = buckets.len() as u64;
    buckets.sort();
    buckets.dedup();
    page.blank();
    let buckets = counted(buckets.len() as u64, "cause");
    page.wrapped(
        "",
        &format!("{} shrunk: {buckets}, as far as can be seen.", counted(all, "failure")),
    );
    page.finish()
}
