//! What became of kept failures: sent again, judged again, shrunk.

use super::words;
use crate::text::layout::Page;
use crate::words::counted;
use record::torture::ShrunkRecord;
use serde::Serialize;
use torture::judge::Judgement;
use torture::record::Transcript;
use torture::result::{ReplayResult, ReplayVerdict, Replayed, Shrunk};
use torture::safety::Class;

/// Characters of a version that are shown.
const VERSION_MAX: usize = 40;

/// A failure that was to be sent again.
#[derive(Clone, Debug)]
pub struct ReplayRow<'a> {
    /// Name of its folder.
    pub folder: String,
    pub kept: &'a Transcript,
    /// Of the case by which it is judged.
    pub version: u32,
    /// `None` where the replay ended before it.
    pub row: Option<&'a Replayed>,
}

/// Failures that were sent again, and to whom.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    pub target: &'a str,
    pub class: Class,
    /// All that were to be sent.
    pub rows: &'a [ReplayRow<'a>],
    /// What is worth a word: of other versions.
    pub notes: &'a [String],
    pub result: &'a ReplayResult,
}

/// A replay as text, with a line feed at its end.
pub fn replay_text(replay: &Replay<'_>) -> String {
    let Replay { target, class, rows, notes, result } = *replay;
    let rows: Vec<(&ReplayRow<'_>, &Replayed)> =
        rows.iter().filter_map(|row| Some((row, row.row?))).collect();
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
            let count = rows.iter().filter(|(_, row)| row.verdict == verdict).count();
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
        page.wrapped("", "Interrupted before the end.");
    }
    if !rows.is_empty() {
        page.blank();
    }
    for (ReplayRow { folder, kept, .. }, row) in rows {
        let head = format!("  {:<15} {}  ", row.verdict.text(), words::safe(folder));
        let judgement = &row.judgement;
        let unlearned = row.verdict == ReplayVerdict::Unlearned && !judgement.why.is_empty();
        let seen = words::safe(if unlearned { &judgement.why } else { &judgement.seen });
        let tries = format!("failed in {} of {}", row.failed, row.tries);
        page.wrapped(&head, &format!("{}: {tries}; {seen}", words::safe(&kept.name)));
    }
    if !notes.is_empty() {
        page.blank();
    }
    notes.iter().for_each(|note| page.wrapped("", &format!("{}.", words::safe(note))));
    page.finish()
}

#[derive(Serialize)]
struct ReplayFile<'a> {
    schema: &'static str,
    version: &'static str,
    target: &'a str,
    class: &'static str,
    interrupted: bool,
    ended_early: Option<&'a str>,
    notes: &'a [String],
    failures: Vec<ReplayedFile<'a>>,
}

#[derive(Serialize)]
struct ReplayedFile<'a> {
    folder: &'a str,
    case: &'a str,
    case_version: u32,
    kept_by: &'a str,
    name: &'a str,
    verdict: &'static str,
    tries: u32,
    failed: u32,
    outcome: Option<&'static str>,
    seen: &'a str,
    expected: &'a str,
    why: &'a str,
}

/// A replay as `loadstone.torture-replay/1`, indented, with a line feed at its end.
pub fn replay_json(replay: &Replay<'_>) -> String {
    let failures = replay.rows.iter().map(|row| {
        let judgement = row.row.map(|row| &row.judgement);
        let text = |of: fn(&Judgement) -> &String| judgement.map_or("", |known| of(known).as_str());
        ReplayedFile {
            folder: &row.folder,
            case: &row.kept.case,
            case_version: row.version,
            kept_by: &row.kept.loadstone,
            name: &row.kept.name,
            verdict: row.row.map_or("not-sent", |row| row.verdict.id()),
            tries: row.row.map_or(0, |row| row.tries),
            failed: row.row.map_or(0, |row| row.failed),
            outcome: judgement.map(|known| known.outcome.id()),
            seen: text(|known| &known.seen),
            expected: text(|known| &known.expected),
            why: text(|known| &known.why),
        }
    });
    pretty(&ReplayFile {
        schema: "loadstone.torture-replay/1",
        version: env!("CARGO_PKG_VERSION"),
        target: replay.target,
        class: replay.class.id(),
        interrupted: replay.result.interrupted,
        ended_early: replay.result.ended_early.as_deref(),
        notes: replay.notes,
        failures: failures.collect(),
    })
}

fn pretty(file: &impl Serialize) -> String {
    let mut text =
        serde_json::to_string_pretty(file).expect("strings, numbers and lists always serialise");
    text.push('\n');
    text
}

/// A conversation that was judged again.
#[derive(Clone, Debug)]
pub struct Rejudged {
    /// Path of its transcript.
    pub file: String,
    /// Version of the program that had it.
    pub kept_by: String,
    pub case: String,
    pub name: String,
    /// Of the case: then, and now where there is such a case.
    pub versions: (u32, Option<u32>),
    pub then: Judgement,
    /// `None` where the case judges by code, or is gone.
    pub now: Option<Judgement>,
}

impl Rejudged {
    fn differs(&self) -> bool {
        self.now.as_ref().is_some_and(|now| now.outcome != self.then.outcome)
    }
}

/// The conversations of which the outcome is another one now, as text with a line feed at its end.
pub fn rejudged_text(rows: &[Rejudged]) -> String {
    let mut page = Page::default();
    let judged = rows.iter().filter(|row| row.now.is_some()).count() as u64;
    let otherwise = rows.iter().filter(|row| row.differs()).count() as u64;
    let gone = rows.iter().filter(|row| row.versions.1.is_none()).count() as u64;
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
            counted(judged, "conversation"),
            judged - otherwise
        ),
    );
    for (index, row) in rows.iter().filter(|row| row.differs()).enumerate() {
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
    let notes = rejudged_notes(rows);
    if !notes.is_empty() {
        page.blank();
    }
    notes.iter().for_each(|note| page.wrapped("", &format!("{}.", words::safe(note))));
    page.finish()
}

/// What is worth a word: cases and programs of another version.
fn rejudged_notes(rows: &[Rejudged]) -> Vec<String> {
    let ours = env!("CARGO_PKG_VERSION");
    let mut notes = std::collections::BTreeSet::new();
    for row in rows {
        if row.kept_by != ours {
            notes.insert(format!(
                "kept by loadstone {}, this is {ours}: judged by the rules of this one",
                crate::words::printable(&row.kept_by, VERSION_MAX)
            ));
        }
        match row.versions {
            (then, Some(now)) if then != now => notes.insert(format!(
                "{} was version {then} and is {now} in this program: judged by version {now}",
                row.case
            )),
            _ => false,
        };
    }
    notes.into_iter().collect()
}

#[derive(Serialize)]
struct RejudgedFile<'a> {
    schema: &'static str,
    version: &'static str,
    judged: u64,
    otherwise: u64,
    notes: Vec<String>,
    conversations: Vec<RejudgedRow<'a>>,
}

#[derive(Serialize)]
struct RejudgedRow<'a> {
    file: &'a str,
    case: &'a str,
    version_then: u32,
    version_now: Option<u32>,
    kept_by: &'a str,
    name: &'a str,
    then: &'static str,
    now: Option<&'static str>,
    seen: &'a str,
    why: &'a str,
}

/// Conversations that were judged again, as `loadstone.torture-judge/1`, indented, with a line feed
/// at its end.
pub fn rejudged_json(rows: &[Rejudged]) -> String {
    let conversations = rows.iter().map(|row| {
        let shown = row.now.as_ref().unwrap_or(&row.then);
        RejudgedRow {
            file: &row.file,
            case: &row.case,
            version_then: row.versions.0,
            version_now: row.versions.1,
            kept_by: &row.kept_by,
            name: &row.name,
            then: row.then.outcome.id(),
            now: row.now.as_ref().map(|now| now.outcome.id()),
            seen: &shown.seen,
            why: &shown.why,
        }
    });
    pretty(&RejudgedFile {
        schema: "loadstone.torture-judge/1",
        version: env!("CARGO_PKG_VERSION"),
        judged: rows.iter().filter(|row| row.now.is_some()).count() as u64,
        otherwise: rows.iter().filter(|row| row.differs()).count() as u64,
        notes: rejudged_notes(rows),
        conversations: conversations.collect(),
    })
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
