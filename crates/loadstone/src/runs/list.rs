//! The list of stored results, as text and as JSON (`loadstone.runs/1`).

use record::document;
use record::runs::RunsRecord;
use report::{printable, timestamp};
use session::console::stdout_is_terminal;
use stats::curve::Span;
use store::{ListEntry, Progress};
use units::{Nanos, show};

/// Columns for the text; `None` for lines of any length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width(Option<usize>);

/// Maximum length of a shown name in characters, if there is room.
const NAME_CHARS_MAX: usize = 200;
/// Minimum number of columns for names.
const NAME_COLUMNS_MIN: usize = 10;
/// Minimum number of columns for showing the year and the seconds of the start.
const WIDE_COLUMNS: usize = 100;

impl Width {
    /// Returns the width of the terminal, if standard output is one.
    pub(super) fn from_stdout() -> Width {
        if !stdout_is_terminal() {
            return Width(None);
        }
        Width(terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
    }
}

/// Formats a heading, and a line for each result.
pub(super) fn text(entries: &[ListEntry], width: Width) -> String {
    if entries.is_empty() {
        return "no stored result matches\n".to_owned();
    }
    let narrow = width.0.is_some_and(|columns| columns < WIDE_COLUMNS);
    let mut rows = vec![["ID", "STARTED (UTC)", "VERDICT", "RESULT", "NAME"].map(str::to_owned)];
    for entry in entries {
        rows.push([
            entry.id.to_string(),
            started(entry, narrow),
            state(entry),
            result(entry),
            name(entry),
        ]);
    }
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..4).map(|column| wide(column).unwrap_or(0)).collect();
    let left = width.0.map(|columns| {
        columns.saturating_sub(widths.iter().map(|width| width + 2).sum()).max(NAME_COLUMNS_MIN)
    });
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            text.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(&fitted(&row[4], left));
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Formats the line above a report that is shown again.
pub(super) fn heading(entry: &ListEntry) -> String {
    let progress = match entry.progress {
        Progress::Finished => String::new(),
        other => format!(", {}", other.id()),
    };
    let tags =
        if entry.tags.is_empty() { String::new() } else { format!(" [{}]", entry.tags.join(" ")) };
    let began = timestamp(entry.started_unix_s);
    let command = printable(&entry.command_line, NAME_CHARS_MAX);
    format!("{}{tags}, begun {began}{progress}: {command}\n\n", entry.id)
}

/// Shortens a name in its middle, because its end is more specific: `http://host/…/page`.
fn fitted(name: &str, columns: Option<usize>) -> String {
    let count = name.chars().count();
    match columns {
        Some(columns) if count > columns => {
            let keep = columns.saturating_sub(1);
            let front: String = name.chars().take(keep.div_ceil(2)).collect();
            let back: String = name.chars().skip(count - keep / 2).collect();
            format!("{front}…{back}")
        }
        _ => name.to_owned(),
    }
}

/// Formats the start: `2026-11-22 02:31:05`, or `11-22 02:31`.
fn started(entry: &ListEntry, narrow: bool) -> String {
    let whole = timestamp(entry.started_unix_s);
    let whole = whole.trim_end_matches(" UTC");
    let short = whole.get(5..16).filter(|_| narrow);
    short.unwrap_or(whole).to_owned()
}

fn state(entry: &ListEntry) -> String {
    match (entry.verdict, entry.tortured, entry.progress) {
        (Some(verdict), ..) => verdict.id().to_owned(),
        (None, Some(tortured), Progress::Finished) => tortured.worst.id().to_owned(),
        (None, _, progress) => progress.id().to_owned(),
    }
}

fn result(entry: &ListEntry) -> String {
    if let Some(run) = &entry.headline {
        let p99 = match run.has_times() {
            true => format!(", p99 {}", show::duration(Nanos::from_secs_f64(run.p99_s))),
            false => String::new(),
        };
        let failed = match run.failure_share > 0.0 {
            true => format!(", {} failed", show::share(run.failure_share)),
            false => String::new(),
        };
        let conduct = entry.conduct.filter(|conduct| !conduct.is_good());
        let conduct = conduct.map_or(String::new(), |conduct| format!("{}: ", conduct.word()));
        return format!("{conduct}{}{p99}{failed}", show::rate(run.throughput_per_s));
    }
    if let Some(judgement) = entry.judgement {
        return judgement.id().replace('-', " ");
    }
    if let Some(tortured) = entry.tortured {
        return tortured.words();
    }
    let axis = entry.axis.unwrap_or_default();
    let first = |spans: &[(String, Option<Span>)]| spans.iter().find_map(|(_, span)| *span);
    let knee = first(&entry.knees).map(|knee| report::ramp::knee_description(axis, &knee));
    let capacity = || {
        // without an objective the capacity equals the knee
        let capacity = first(&entry.capacities).filter(|_| entry.knees.is_empty())?;
        Some(format!("capacity {}", report::ramp::capacity_description(axis, &capacity)))
    };
    match (knee.or_else(capacity), entry.capacities.len()) {
        (Some(words), 0 | 1) => words,
        (Some(words), targets) => format!("{words} and {} more", targets - 1),
        (None, _) => "–".to_owned(),
    }
}

fn name(entry: &ListEntry) -> String {
    let name = printable(&entry.name, NAME_CHARS_MAX);
    let name = name.strip_prefix("http://").unwrap_or(&name).to_owned();
    if entry.tags.is_empty() { name } else { format!("[{}] {name}", entry.tags.join(" ")) }
}

/// Renders the list in the form of `docs/schema/runs.schema.json`.
pub(super) fn json(entries: &[ListEntry]) -> String {
    document::printed(&RunsRecord::new(entries.iter().map(ListEntry::record).collect()))
}
