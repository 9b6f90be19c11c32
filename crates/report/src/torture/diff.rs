//! Two results of a torture held against each other, as text and Markdown.

use crate::Style;
use crate::page::markdown::{plain, table};
use crate::page::text::ascii;
use crate::page::text::layout::Page;
use crate::torture::words::{found, measure, safe};
use crate::words::{counted, printable};
use record::torture::LimitRecord;
use record::torture::diff::{
    ChangeKind, ChangeRecord, DiffRecord, DiffSideRecord, LimitChangeRecord,
};
use units::show;

/// For people at a terminal.
pub fn text(diff: &DiffRecord, style: Style) -> String {
    let mut page = Page::default();
    page.wrapped("A  ", &side(&diff.a));
    page.wrapped("B  ", &side(&diff.b));
    page.blank();
    page.wrapped("", &summary(diff));
    for caution in &diff.cautions {
        page.wrapped("Caution: ", &safe(caution));
    }
    let shown = |change: &&ChangeRecord| !style.quiet || change.is_worse();
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

fn numbers(page: &mut Page, diff: &DiffRecord) {
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

fn side(side: &DiffSideRecord) -> String {
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
fn summary(diff: &DiffRecord) -> String {
    let verdict = match diff.worse {
        0 => "Nothing is worse in B".to_owned(),
        n => format!("{} worse in B", counted(n, "case")),
    };
    let mut parts = Vec::new();
    for kind in ChangeKind::ALL {
        let count = diff.changes.iter().filter(|change| change.kind == kind).count() as u64;
        if count > 0 {
            parts.push(format!("{} {}", show::count(count), many(kind)));
        }
    }
    parts.push(format!("{} unchanged", show::count(diff.unchanged)));
    format!("{verdict}: {}.", parts.join(", "))
}

fn many(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Still => "still a finding",
        ChangeKind::Other => "otherwise",
        ChangeKind::Untested => "untested on one side",
        ChangeKind::Version => "of another version",
        other => other.word(),
    }
}

/// `fail, was pass: title; detail`.
fn told(change: &ChangeRecord) -> String {
    let outcomes = match (change.a, change.b) {
        (Some(a), Some(b)) if a == b => a.id().to_owned(),
        (Some(a), Some(b)) => format!("{}, was {}", b.id(), a.id()),
        (Some(one), None) | (None, Some(one)) => one.id().to_owned(),
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

fn moved(one: &LimitChangeRecord) -> String {
    format!("{}; now {}", number(one.a.as_ref()), number(one.b.as_ref()))
}

/// For a pull request.
pub fn markdown(diff: &DiffRecord) -> String {
    let mut out = format!("### {}\n\n", plain(&summary(diff)));
    for (letter, one) in [("A", &diff.a), ("B", &diff.b)] {
        out += &format!("- {letter}: {}\n", plain(&printable(&side(one), 400)));
    }
    for caution in &diff.cautions {
        out += &format!("- ⚠️ {}\n", plain(&printable(caution, 1_000)));
    }
    out.push('\n');
    let row = |change: &ChangeRecord| {
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

fn limit_row(one: &LimitChangeRecord) -> Vec<String> {
    let ends = [number(one.a.as_ref()), number(one.b.as_ref())];
    [&one.what, &one.case, &ends[0], &ends[1]].map(|text| safe(text)).to_vec()
}
