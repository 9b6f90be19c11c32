//! The record of a check, for people, for programs and for build servers: a tree of marks, JSON
//! (`loadstone.check/1`, described by `docs/schema/check.schema.json`) and JUnit's XML.

mod junit;

pub use junit::junit;

use crate::Style;
use crate::text::WIDTH;
use crate::text::ascii;
use crate::text::layout::{Page, shortened};
use crate::words::counted;
use record::check::{CheckRecord, Mismatch, StepRecord, StepState};
use units::{Nanos, show};

/// The record as JSON, indented, with a line feed at its end.
pub fn json(record: &CheckRecord) -> String {
    record::document::printed(record)
}

/// The tree as text, with a line feed at its end. Quiet: what failed, and the last line.
pub fn text(record: &CheckRecord, style: Style) -> String {
    let mut page = Page::default();
    page.wrapped("", &safe(&format!("{} · {}", record.name, record.base)));
    page.blank();
    // without a connection no step was tried, and "skipped" in each line would say nothing
    let quiet = style.quiet || record.unreachable.is_some();
    let shown = || record.steps.iter().filter(|step| !quiet || failed(step));
    shown().for_each(|step| tree(&mut page, step, 1, quiet));
    if shown().next().is_some() {
        page.blank();
    }
    page.wrapped("", &summary(record));
    let text = if style.unicode { page.finish() } else { ascii(&page.finish()) };
    if style.color { coloured(&text) } else { text }
}

fn failed(step: &StepRecord) -> bool {
    step.state == StepState::Failed
}

/// A step, what was not as expected of it, its members.
fn tree(page: &mut Page, step: &StepRecord, depth: usize, quiet: bool) {
    let indent = " ".repeat(depth * 2);
    let duration = || show::duration(Nanos::from_secs_f64(step.elapsed_s));
    let (mark, duration) = match step.state {
        StepState::Passed => ('✓', duration()),
        StepState::Failed => ('✗', duration()),
        StepState::Skipped => ('–', String::new()),
    };
    let room = WIDTH - indent.len() - 2 - 1 - duration.chars().count();
    let name = shortened(&safe(&step.name), room);
    page.line(&format!("{indent}{mark} {name:<room$} {duration}"));
    let inner = format!("{indent}    ");
    if let Some(why) = &step.reason {
        page.wrapped(&inner, &safe(why));
    }
    if let Some(difference) = &step.difference {
        if !step.asked.is_empty() {
            page.wrapped(&inner, &safe(&step.asked));
        }
        show_difference(page, &inner, difference);
    }
    for member in &step.members {
        if !quiet || failed(member) {
            tree(page, member, depth + 1, quiet);
        }
    }
}

fn show_difference(page: &mut Page, indent: &str, difference: &Mismatch) {
    page.wrapped(indent, &safe(&difference.what));
    page.wrapped(&format!("{indent}  expected  "), &safe(&difference.expected));
    page.wrapped(&format!("{indent}  got       "), &safe(&difference.got));
}

/// One sentence on the whole.
fn summary(record: &CheckRecord) -> String {
    let counts = record.counts;
    let (passed, failed) = (counts.passed, counts.failed);
    let steps = counted(counts.steps, "step");
    let mut said = format!("{steps}: {passed} passed, {failed} failed");
    if counts.skipped > 0 {
        said.push_str(&format!(", {} skipped", counts.skipped));
    }
    let elapsed = show::duration(Nanos::from_secs_f64(record.elapsed_s));
    said.push_str(&format!(", in {elapsed}"));
    if let Some(why) = &record.unreachable {
        said.push_str(&format!("; no connection could be made: {}", safe(why)));
    }
    if record.interrupted {
        said.push_str("; interrupted before the end");
    }
    said
}

/// Without control characters: a terminal would obey them.
fn safe(text: &str) -> String {
    let one = |c: char| match c {
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(one).collect()
}

/// Green and red marks; the marks themselves say the same without colour.
fn coloured(text: &str) -> String {
    let line = |line: &str| {
        let bare = line.trim_start();
        let code = match bare.chars().next() {
            Some('✓' | '+') => "32",
            Some('✗' | 'x') if bare.chars().nth(1) == Some(' ') => "1;31",
            _ => return format!("{line}\n"),
        };
        let (indent, rest) = line.split_at(line.len() - bare.len());
        let mut chars = rest.chars();
        let mark = chars.next().unwrap_or(' ');
        format!("{indent}\u{1b}[{code}m{mark}\u{1b}[0m{}\n", chars.as_str())
    };
    text.lines().map(line).collect()
}
