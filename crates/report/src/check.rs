//! What came of a check, for people, for programs and for build servers: a tree of marks, JSON
//! (`loadstone.check/1`, described by `docs/schema/check.schema.json`) and JUnit's XML.

mod json;
mod junit;

pub use json::json;
pub use junit::junit;

use crate::Style;
use crate::text::WIDTH;
use crate::text::ascii;
use crate::text::layout::{Page, shortened};
use crate::words::counted;
use plan::check::{CheckResult, Difference, State, StepResult};
use units::show;

/// The tree as text, with a line feed at its end. Quiet: what failed, and the last line.
pub fn text(result: &CheckResult, style: Style) -> String {
    let mut page = Page::default();
    page.wrapped("", &safe(&format!("{} · {}", result.name, result.base)));
    page.blank();
    // where nobody is there, what was not even tried says nothing
    let quiet = style.quiet || result.unreachable.is_some();
    let shown = || result.steps.iter().filter(|step| !quiet || step.state.failed());
    shown().for_each(|step| tree(&mut page, step, 1, quiet));
    if shown().next().is_some() {
        page.blank();
    }
    page.wrapped("", &summary(result));
    let text = if style.unicode { page.finish() } else { ascii(&page.finish()) };
    if style.color { coloured(&text) } else { text }
}

/// A step, what was not as expected of it, its members.
fn tree(page: &mut Page, step: &StepResult, depth: usize, quiet: bool) {
    let indent = " ".repeat(depth * 2);
    let mark = match step.state {
        State::Passed => '✓',
        State::Failed(_) => '✗',
        State::Skipped(_) => '–',
    };
    let took = match step.state {
        State::Skipped(_) => String::new(),
        _ => show::duration(step.took),
    };
    let room = WIDTH - indent.len() - 2 - 1 - took.chars().count();
    let name = shortened(&safe(&step.name), room);
    page.line(&format!("{indent}{mark} {name:<room$} {took}"));
    let inner = format!("{indent}    ");
    match &step.state {
        State::Passed => {}
        State::Skipped(why) => page.wrapped(&inner, &safe(why)),
        State::Failed(difference) => {
            if !step.asked.is_empty() {
                page.wrapped(&inner, &safe(&step.asked));
            }
            show_difference(page, &inner, difference);
        }
    }
    for member in &step.members {
        if !quiet || member.state.failed() {
            tree(page, member, depth + 1, quiet);
        }
    }
}

fn show_difference(page: &mut Page, indent: &str, difference: &Difference) {
    page.wrapped(indent, &safe(&difference.what));
    page.wrapped(&format!("{indent}  expected  "), &safe(&difference.expected));
    page.wrapped(&format!("{indent}  got       "), &safe(&difference.got));
}

/// One sentence on the whole.
fn summary(result: &CheckResult) -> String {
    let (passed, failed, skipped) = result.counts();
    let steps = counted(result.steps.len() as u64, "step");
    let mut said = format!("{steps}: {passed} passed, {failed} failed");
    if skipped > 0 {
        said.push_str(&format!(", {skipped} skipped"));
    }
    said.push_str(&format!(", in {}", show::duration(result.took)));
    if let Some(why) = &result.unreachable {
        said.push_str(&format!("; nobody is there: {}", safe(why)));
    }
    if result.interrupted {
        said.push_str("; interrupted before its end");
    }
    said
}

/// Without control characters, which would move about on a terminal.
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
