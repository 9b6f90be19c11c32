//! The difference as text, JSON and Markdown.

use super::{Change, Diff, Kind, LimitChange, Side};
use crate::Style;
use crate::markdown::{plain, table};
use crate::text::ascii;
use crate::text::layout::Page;
use crate::torture::words::{found, measure, safe};
use crate::words::{counted, printable};
use record::torture::LimitRecord;
use units::show;

/// `loadstone.torture-diff/1`, indented, with a line feed at its end.
pub fn json(diff: &Diff) -> String {
    let mut text =
        serde_json::to_string_pretty(diff).expect("strings, numbers and lists always serialise");
    text.push('\n');
    text
}

/// For people at a terminal.
pub fn text(diff: &Diff, style: Style) -> String {
    let mut page = Page::default();
    page.wrapped("A  ", &side(&diff.a));
    page.wrapped("B  ", &side(&diff.b));
    page.blank();
    page.wrapped("", &summary(diff));
    for caution in &diff.cautions {
        page.wrapped("Caution: ", &safe(caution));
    }
    let shown = |change: &&Change| !style.quiet || change.is_worse();
    for (row, change) in diff.changes.iter().filter(shown).enumerate() {
        if row == 0 {
            page.blank();
        }
        page.wrapped(&format!("  {:<10} {} ", change.kind.word(), change.case), &told(change));
    }
    if !style.quiet {
        numbers(&mut page, diff);
    }
    let text = page.finish();
    if style.unicode { text } else { ascii(&text) }
}

fn numbers(page: &mut Page, diff: &Diff) {
    if !diff.limits.is_empty() {
        page.heading("Limits and deadlines");
    }
    for one in &diff.limits {
        let head = format!("  {} {}  ", one.case, safe(&one.what));
        page.wrapped(&head, &safe(&moved(one)));
    }
    if !diff.habits.is_empty() {
        page.heading("Habits");
    }
    for one in &diff.habits {
        page.wrapped(
            &format!("  {:<28}  ", safe(&one.name)),
            &safe(&format!("{}; now {}", one.a, one.b)),
        );
    }
}

fn side(side: &Side) -> String {
    let version = if side.version.is_empty() { "of unknown version" } else { &side.version };
    safe(&format!(
        "{}, {}, loadstone {version}, seed {}: {}",
        side.target,
        side.started,
        side.seed,
        found(side.findings, side.cases)
    ))
}

/// One sentence on the whole.
fn summary(diff: &Diff) -> String {
    let verdict = match diff.worse {
        0 => "Nothing is worse in B".to_owned(),
        n => format!("{} worse in B", counted(n, "case")),
    };
    let mut parts = Vec::new();
    for kind in Kind::ALL {
        let count = diff.changes.iter().filter(|change| change.kind == kind).count() as u64;
        if count > 0 {
            parts.push(format!("{} {}", show::count(count), many(kind)));
        }
    }
    parts.push(format!("{} unchanged", show::count(diff.unchanged)));
    format!("{verdict}: {}.", parts.join(", "))
}

fn many(kind: Kind) -> &'static str {
    match kind {
        Kind::Still => "still a finding",
        Kind::Other => "otherwise",
        Kind::Untested => "untested on one side",
        Kind::Version => "of another version",
        other => other.word(),
    }
}

/// `fail, was pass: title; detail`.
fn told(change: &Change) -> String {
    let outcomes = match (change.a, change.b) {
        (Some(a), Some(b)) if a == b => a.to_owned(),
        (Some(a), Some(b)) => format!("{b}, was {a}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    };
    let mut parts = vec![format!("{outcomes}: {}", change.title)];
    parts.extend(Some(change.detail.clone()).filter(|detail| !detail.is_empty()));
    parts.extend(change.waived.as_ref().map(|why| format!("waived: {why}")));
    safe(&parts.join("; "))
}

fn number(limit: Option<&LimitRecord>) -> String {
    let Some(limit) = limit else { return "not measured".to_owned() };
    let number = measure(limit);
    if limit.note.is_empty() { number } else { format!("{number} ({})", limit.note) }
}

fn moved(one: &LimitChange) -> String {
    format!("{}; now {}", number(one.a.as_ref()), number(one.b.as_ref()))
}

/// For a pull request.
pub fn markdown(diff: &Diff) -> String {
    let mut out = format!("### {}\n\n", plain(&summary(diff)));
    for (letter, one) in [("A", &diff.a), ("B", &diff.b)] {
        out += &format!("- {letter}: {}\n", plain(&printable(&side(one), 400)));
    }
    for caution in &diff.cautions {
        out += &format!("- ⚠️ {}\n", plain(&printable(caution, 1_000)));
    }
    out.push('\n');
    let row = |change: &Change| {
        let mark = if change.is_worse() { "❌ " } else { "" };
        vec![format!("{mark}{}", change.kind.word()), change.case.clone(), told(change)]
    };
    let rows: Vec<Vec<String>> = diff.changes.iter().map(row).collect();
    if !rows.is_empty() {
        out += &table(&["", "Case", "Outcome"].map(str::to_owned), &rows);
    }
    let limits: Vec<Vec<String>> = diff.limits.iter().map(limit_row).collect();
    if !limits.is_empty() {
        out += &table(&["Limit", "Case", "A", "B"].map(str::to_owned), &limits);
    }
    let habits: Vec<Vec<String>> = diff
        .habits
        .iter()
        .map(|one| [&one.name, &one.a, &one.b].map(|text| safe(text)).to_vec())
        .collect();
    if !habits.is_empty() {
        out += &table(&["Habit", "A", "B"].map(str::to_owned), &habits);
    }
    out
}

fn limit_row(one: &LimitChange) -> Vec<String> {
    let ends = [number(one.a.as_ref()), number(one.b.as_ref())];
    [&one.what, &one.case, &ends[0], &ends[1]].map(|text| safe(text)).to_vec()
}
