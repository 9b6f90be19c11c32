//! Comparison of two torture results, as text and Markdown.

use crate::Style;
use crate::page;
use crate::section::{
    Block, Caution, Column, DataTable, Document, Forms, Voice, aligned, heading, text_block, title,
    with_lead,
};
use crate::torture::words::{found, measure, safe};
use crate::words::counted;
use record::torture::LimitRecord;
use record::torture::diff::{
    ChangeKind, ChangeRecord, DiffRecord, DiffSideRecord, HabitChangeRecord, LimitChangeRecord,
};
use units::show;

/// Renders text for a terminal.
pub fn text(diff: &DiffRecord, style: Style) -> String {
    page::text::text(&document(diff), style)
}

/// Renders Markdown for a pull request.
pub fn markdown(diff: &DiffRecord) -> String {
    page::markdown::markdown(&document(diff))
}

fn document(diff: &DiffRecord) -> Document {
    let mut document = Document::default();
    let (both, summary) = (Forms::TEXT | Forms::MARKDOWN, summary(diff));
    document.add(Forms::MARKDOWN, [title(summary.as_str())]);
    document.add(both, [aligned(0, 3, [("A", side(&diff.a)), ("B", side(&diff.b))])]);
    document.add(Forms::TEXT, [Block::Gap, text_block(Voice::Plain, summary)]);
    for caution in &diff.cautions {
        let text = safe(caution);
        document.add(Forms::TEXT, [with_lead("Caution: ", Voice::Plain, text.as_str())]);
        document.add(Forms::MARKDOWN, [Block::Caution(Caution { word: "", text })]);
    }
    changes(&mut document, diff);
    limits(&mut document, diff);
    habits(&mut document, diff);
    document
}

fn changes(document: &mut Document, diff: &DiffRecord) {
    for (forms, all) in [(Forms::QUIET, false), (Forms::LONG | Forms::MARKDOWN, true)] {
        let shown = diff.changes.iter().filter(|change| all || change.is_worse());
        let rows: Vec<Vec<String>> = shown.map(row).collect();
        if rows.is_empty() {
            continue;
        }
        let columns = [
            Column::word("").at_least(10).only(Forms::TEXT),
            Column::from("").only(Forms::MARKDOWN),
            Column::word("Case"),
            Column::text("Outcome"),
        ];
        let table = DataTable::new(columns).listed().with(rows);
        document.add(forms, [Block::Gap, Block::Table(table)]);
    }
}

fn row(change: &ChangeRecord) -> Vec<String> {
    let word = change.kind.word().to_owned();
    let mark = if change.is_worse() { "❌ " } else { "" };
    let marked = format!("{mark}{word}");
    vec![word, marked, change.case.clone(), change_text(change)]
}

fn limits(document: &mut Document, diff: &DiffRecord) {
    let rows: Vec<Vec<String>> = diff.limits.iter().map(limit_row).collect();
    if rows.is_empty() {
        return;
    }
    let columns = [
        Column::word("").only(Forms::TEXT),
        Column::text("Limit"),
        Column::word("Case").only(Forms::MARKDOWN),
    ];
    document.add(Forms::LONG, [heading("Limits and deadlines")]);
    document.add(Forms::LONG | Forms::MARKDOWN, [sides(columns.into(), rows)]);
}

fn habits(document: &mut Document, diff: &DiffRecord) {
    let row = |one: &HabitChangeRecord| vec![one.name.clone(), one.a.clone(), one.b.clone()];
    let rows: Vec<Vec<String>> = diff.habits.iter().map(row).collect();
    if !rows.is_empty() {
        document.add(Forms::LONG, [heading("Habits")]);
        let columns = vec![Column::text("Habit").at_least(28)];
        document.add(Forms::LONG | Forms::MARKDOWN, [sides(columns, rows)]);
    }
}

/// Returns a table with the values of A and B at the end of each row; in text both form a sentence.
fn sides(mut columns: Vec<Column>, rows: Vec<Vec<String>>) -> Block {
    columns.extend(["A", "B"].map(|side| Column::from(side).only(Forms::MARKDOWN)));
    columns.push(Column::text("").only(Forms::TEXT));
    let rows = rows.into_iter().map(|mut row| {
        let moved = match &row[..] {
            [.., a, b] => format!("{a}; now {b}"),
            _ => String::new(),
        };
        row.push(moved);
        row.iter().map(|cell| safe(cell)).collect::<Vec<_>>()
    });
    Block::Table(DataTable::new(columns).listed().with(rows))
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

/// Returns one sentence about the whole.
fn summary(diff: &DiffRecord) -> String {
    let verdict = match diff.worse {
        0 => "Nothing is worse in B".to_owned(),
        n => format!("{} worse in B", counted(n, "case")),
    };
    let mut parts = Vec::new();
    for kind in ChangeKind::ALL {
        let count = diff.changes.iter().filter(|change| change.kind == kind).count() as u64;
        if count > 0 {
            parts.push(format!("{} {}", show::count(count), plural(kind)));
        }
    }
    parts.push(format!("{} unchanged", show::count(diff.unchanged)));
    format!("{verdict}: {}.", parts.join(", "))
}

fn plural(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Still => "still a finding",
        ChangeKind::Other => "otherwise",
        ChangeKind::Untested => "untested on one side",
        ChangeKind::Version => "of another version",
        other => other.word(),
    }
}

/// Describes a change: `fail, was pass: title; detail`.
fn change_text(change: &ChangeRecord) -> String {
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

fn limit_row(one: &LimitChangeRecord) -> Vec<String> {
    let [a, b] = [&one.a, &one.b].map(|limit| number(limit.as_ref()));
    vec![one.case.clone(), one.what.clone(), one.case.clone(), a, b]
}
