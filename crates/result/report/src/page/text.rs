//! Documents for people at a terminal: at most 80 columns, readable in black and white.

pub(crate) mod layout;
pub(crate) mod picture;
pub(crate) mod spark;

use crate::section::{
    Block, CellLook, Column, ColumnKind, DataTable, Document, FactList, Forms, Inline, MarkedStep,
    Mood, Notice, Remedy, RowLook, Sentence, TableRow,
};
use layout::{LABEL, Page, shortened};

/// Widest line, in characters.
pub(crate) const WIDTH: usize = 80;
/// Lines of a terminal, minus the prompt's.
pub(crate) const LINES: usize = 23;

/// Style of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// True for `µ`, `·` and block characters; otherwise plain ASCII.
    pub unicode: bool,
    /// The verdict in color (ANSI escapes).
    pub color: bool,
    /// Verdict and headline only.
    pub quiet: bool,
    /// The list of quantiles as well.
    pub percentiles: bool,
    /// True for everything instead of one screen.
    pub full: bool,
    /// Columns of the terminal; 0: the width of a page.
    pub columns: usize,
}

impl Style {
    /// Returns the form of the text: brief, or complete.
    pub(crate) fn form(self) -> Forms {
        if self.quiet { Forms::QUIET } else { Forms::FULL }
    }
}

/// Renders the document as text, brief or complete, with a line feed at its end.
pub(crate) fn text(document: &Document, style: Style) -> String {
    let mut page = Page::default().with_color(style.color);
    write(&mut page, document, style.form());
    finished(page, style)
}

/// Renders the document. If it is longer than the terminal, the last lines repeat its result,
/// because the first ones have scrolled off.
pub(crate) fn text_with_result(
    document: &Document,
    result: impl IntoIterator<Item = Block>,
    style: Style,
) -> String {
    let mut page = Page::default().with_color(style.color);
    write(&mut page, document, style.form());
    if style.columns > 0 && page.lines() > LINES {
        let mut last = Document::default();
        last.add(Forms::TEXT, [Block::Gap]);
        last.add(Forms::TEXT, result);
        write(&mut page, &last, style.form());
    }
    finished(page, style)
}

/// Renders the whole document as text, with our non-ASCII characters.
pub(crate) fn whole(document: &Document) -> String {
    text(document, Style { unicode: true, ..Style::default() })
}

/// Renders the text of a page in the character set of the terminal.
pub(crate) fn finished(page: Page, style: Style) -> String {
    if style.unicode { page.finish() } else { ascii(&page.finish()) }
}

/// Appends the content of a document for a form.
pub(crate) fn write(page: &mut Page, document: &Document, form: Forms) {
    document.blocks(form).for_each(|block| write_block(page, block, form));
}

fn write_block(page: &mut Page, block: &Block, form: Forms) {
    match block {
        Block::Gap => page.blank(),
        Block::Heading(heading) => page.heading(&heading.text),
        Block::Sentence(one) => sentence(page, one),
        Block::Caution(caution) => {
            let word = match caution.word {
                "" => String::new(),
                word => format!("{word}: "),
            };
            page.wrapped("  ! ", &format!("{word}{}", caution.text));
        }
        Block::Checked { good, text } => {
            page.wrapped(if *good { "  ✓ " } else { "  ✗ " }, text);
        }
        Block::Notice(one) => notice(page, one),
        Block::Facts(list) => facts(page, list),
        Block::Table(table) if table.listed => listed(page, table, form),
        Block::Table(table) => self::table(page, table, form),
        Block::Lines(lines) => lines.iter().for_each(|line| page.line(line)),
        Block::List(items) => {
            items.iter().for_each(|item| page.wrapped("  - ", &item.bare()));
        }
        Block::Findings(all) => findings(page, all),
        Block::Details(details) => write(page, &details.body, form),
        Block::Grid(groups) => groups.iter().flatten().for_each(|one| write_block(page, one, form)),
        Block::Histogram(hist, rows) => picture::histogram(page, hist, *rows),
        Block::Sparks(rows) => rows.iter().for_each(|row| page.line(&spark::line(row))),
        Block::Steps(steps) => self::steps(page, steps, 1),
        Block::Title(_)
        | Block::Code(_)
        | Block::Places(_)
        | Block::Tiles(_)
        | Block::Marks(_)
        | Block::Chart(_)
        | Block::Forest(_)
        | Block::Composition(_)
        | Block::HowToLook
        | Block::Foot(_) => {}
    }
}

/// Writes a sentence after its lead, with colored badges.
fn sentence(page: &mut Page, sentence: &Sentence) {
    let begin = page.mark();
    page.wrapped(&sentence.lead.bare(), &sentence.words.bare());
    for piece in &sentence.lead.0 {
        if let Inline::Badge(mood, word) = piece {
            page.paint(begin, word, code(*mood));
        }
    }
}

/// Returns a sentence in the form that follows a colon.
fn clause(sentence: &str) -> String {
    let mut chars = sentence.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// Writes the word in its column and in color, then this number of reasons, the first of them with
/// advice.
fn notice(page: &mut Page, notice: &Notice) {
    let text = match notice.sentence.as_str() {
        "" if notice.mood != Mood::Good && !notice.meaning.is_empty() => {
            format!("{}: {}", notice.word, clause(notice.meaning))
        }
        "" => notice.word.clone(),
        sentence => sentence.to_owned(),
    };
    let begin = page.mark();
    page.fact(notice.label, &text);
    page.paint(begin, &notice.word, code(notice.mood));
    if let Some(example) = &notice.example {
        page.fact("", &format!("sample response: {example}"));
    }
    let (shown, advised) = notice.shown;
    for (index, reason) in notice.reasons.iter().take(shown).enumerate() {
        page.fact("", &format!("{}: {}", reason.id, reason.text));
        if index < advised && !reason.advice.is_empty() {
            page.wrapped(&" ".repeat(LABEL + 2), &reason.advice);
        }
    }
    let causes = notice.reasons.iter().skip(shown).filter(|reason| reason.id != "note");
    match causes.count() {
        0 => {}
        1 => page.fact("", "1 more cause with --full"),
        more => page.fact("", &format!("{more} more causes with --full")),
    }
}

fn facts(page: &mut Page, list: &FactList) {
    let width = list.width;
    for (label, words) in &list.rows {
        let lead = format!("{:indent$}{label:<width$}", "", indent = list.indent);
        match &words.0[..] {
            [Inline::Command(line)] => page.line(&format!("{lead}{line}")),
            _ => page.wrapped(&lead, &words.bare()),
        }
    }
}

/// Writes a table; its name, if any, is the heading at the margin of its head.
fn table(page: &mut Page, table: &DataTable, form: Forms) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    if !table.bare {
        rows.push(table.columns(form).map(|(_, column)| column.head.clone()).collect());
    }
    rows.extend(table.rows.iter().map(|row| cells(table, row, form)));
    if table.name.is_empty() {
        return page.table(&rows);
    }
    if let Some(first) = rows.first_mut().and_then(|heads| heads.first_mut()) {
        first.clone_from(&table.name);
    }
    page.blank();
    page.headed_table(&rows);
}

/// Maximum width of a list column in characters, except for columns that need more.
const LISTED_MAX: usize = 30;
/// Minimum width in characters that the last column of a list needs.
const LAST_MIN: usize = 24;

/// Writes a line for each row: words are followed by one space, other cells by two.
fn listed(page: &mut Page, table: &DataTable, form: Forms) {
    let columns: Vec<&Column> = table.columns(form).map(|(_, column)| column).collect();
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| cells(table, row, form)).collect();
    let width = |at: usize| {
        let widths = rows.iter().map(|row| row[at].chars().count());
        widths.max().unwrap_or(0).min(LISTED_MAX).max(columns[at].least)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    for row in &rows {
        let Some((last, before)) = row.split_last() else { continue };
        let mut head = "  ".to_owned();
        for ((cell, column), width) in before.iter().zip(&columns).zip(&widths) {
            let gap = if column.kind == ColumnKind::Word { 1 } else { 2 };
            head += &format!("{cell:<width$}{:gap$}", "");
        }
        // a narrow column is unreadable
        let narrow = head.chars().count() + LAST_MIN > WIDTH && last.chars().count() >= LAST_MIN;
        if narrow {
            page.line(&std::mem::replace(&mut head, " ".repeat(7)));
        }
        page.wrapped(&head, last);
    }
}

fn cells(table: &DataTable, row: &TableRow, form: Forms) -> Vec<String> {
    let cell = |(at, _): (usize, &Column)| match row.cells.get(at) {
        Some(cell) if cell.look != CellLook::Remark => cell.words.bare(),
        _ => String::new(),
    };
    let mut cells: Vec<String> = table.columns(form).map(cell).collect();
    let before = match row.look {
        RowLook::Plain | RowLook::Rest | RowLook::SetAside => "",
        RowLook::Part => "  ",
        RowLook::Sum => "= ",
    };
    if let Some(first) = cells.first_mut() {
        first.insert_str(0, before);
    }
    cells
}

fn findings(page: &mut Page, all: &[Remedy]) {
    for one in all {
        page.wrapped("  ", &format!("{} ({}): {}", one.id, one.sure, one.evidence));
        page.wrapped("    try: ", &one.advice);
    }
}

/// Writes a line for each step with its mark in color, then its remarks, then its members.
fn steps(page: &mut Page, all: &[MarkedStep], depth: usize) {
    let indent = " ".repeat(depth * 2);
    for step in all {
        let (mark, code) = match step.met {
            Some(true) => ("✓", "32"),
            Some(false) => ("✗", code(Mood::Bad)),
            None => ("–", ""),
        };
        let room = WIDTH - indent.len() - 2 - 1 - step.took.chars().count();
        let (begin, name) = (page.mark(), shortened(&step.name, room));
        page.line(&format!("{indent}{mark} {name:<room$} {}", step.took));
        if step.met.is_some() {
            page.paint(begin, mark, code);
        }
        for (lead, text) in &step.notes {
            page.wrapped(&format!("{indent}    {lead}"), text);
        }
        steps(page, &step.members, depth + 1);
    }
}

/// Returns the terminal color of a mood; the text without color has the same meaning.
pub(crate) fn code(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => "1;32",
        Mood::Doubtful => "1;33",
        Mood::Bad => "1;31",
        Mood::Unknown => "1",
    }
}

/// Replaces each non-ASCII character by one ASCII character, so that columns stay aligned.
pub(crate) fn ascii(text: &str) -> String {
    let fold = |c: char| match c {
        'µ' => 'u',
        '·' => '|',
        '−' => '-',
        '×' => 'x',
        '÷' => '/',
        '±' => '~',
        '≤' => '<',
        c if picture::is_bar(c) => '#',
        '✓' => '+',
        '✗' => 'x',
        '–' => '-',
        c if c.is_ascii() => c,
        c => spark::ascii_level(c).unwrap_or('?'),
    };
    text.chars().map(fold).collect()
}
