//! Lines, wrapped text and aligned tables within the width of the page.

use super::WIDTH;
use super::picture::COLUMNS_MAX;

/// Text under construction.
#[derive(Debug, Default)]
pub(crate) struct Page {
    out: String,
    /// Characters of a line; 0: [`WIDTH`].
    width: usize,
    /// Some words are colored (ANSI escapes).
    color: bool,
}

pub(crate) use crate::section::LABEL;

impl Page {
    /// Returns the layout for a terminal of this many columns, up to a readable line length.
    pub(crate) fn for_columns(columns: usize) -> Page {
        Page { width: columns.clamp(WIDTH, COLUMNS_MAX), ..Page::default() }
    }

    /// Returns an empty page for a part of the same terminal.
    pub(crate) fn of_width(&self, width: usize) -> Page {
        Page { width, ..self.empty_copy() }
    }

    /// Enables or disables colors.
    pub(crate) fn with_color(self, color: bool) -> Page {
        Page { color, ..self }
    }

    /// Returns an empty page for the same terminal.
    pub(crate) fn empty_copy(&self) -> Page {
        Page { width: self.width, color: self.color, ..Page::default() }
    }

    /// Returns the start of the next line, for [`Page::paint`].
    pub(crate) fn mark(&self) -> usize {
        self.out.len()
    }

    /// Colors the first `word` after a mark, if colors are enabled.
    pub(crate) fn paint(&mut self, from: usize, word: &str, code: &str) {
        if let (true, Some(at)) = (self.color, self.out[from..].find(word)) {
            let painted = format!("\u{1b}[{code}m{word}\u{1b}[0m");
            let at = from + at;
            self.out.replace_range(at..at + word.len(), &painted);
        }
    }

    pub(crate) fn width(&self) -> usize {
        if self.width == 0 { WIDTH } else { self.width }
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.out.push_str(&text.trim_end().replace(GLUE, " "));
        self.out.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.out.push('\n');
    }

    /// Writes a blank line and a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        self.blank();
        self.line(text);
    }

    /// Writes `prefix`, then the words of `text`; further lines are indented by the prefix's width.
    pub(crate) fn wrapped(&mut self, prefix: &str, text: &str) {
        let indent = prefix.chars().count();
        let mut line = prefix.to_owned();
        let (mut used, mut fresh) = (indent, true);
        let room = self.width().saturating_sub(indent).max(1);
        let with_fixed_units = with_fixed_units(text);
        for word in with_fixed_units.split([' ', '\n']).flat_map(|word| split_word(word, room)) {
            let width = word.chars().count();
            if !fresh && used + 1 + width > self.width() {
                self.line(&line);
                line = " ".repeat(indent);
                (used, fresh) = (indent, true);
            }
            if !fresh {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += width;
            fresh = false;
        }
        self.line(&line);
    }

    /// Writes a label in its column, with wrapped text next to it.
    pub(crate) fn fact(&mut self, label: &str, text: &str) {
        self.wrapped(&format!("{label:<LABEL$}"), text);
    }

    /// Writes rows whose first cell is text and whose others are right-aligned numbers. If a row is
    /// too wide, the gaps shrink, then the first column.
    pub(crate) fn table(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let digits: usize = widths.iter().skip(1).sum();
        let wanted = widths.first().copied().unwrap_or(0).max(LABEL - 2);
        let labels = widths.first().copied().unwrap_or(0).clamp(LABEL - 2, LABEL);
        let fits =
            |gap: usize| 2 + labels + digits + gap * columns.saturating_sub(1) <= self.width();
        let gap = if fits(2) { 2 } else { 1 };
        let room = self.width().saturating_sub(2 + digits + gap * columns.saturating_sub(1));
        let first = wanted.min(room).max(4);
        for row in rows {
            let label = row.first().map_or("", String::as_str);
            let mut line = format!("  {:<first$}", shortened(label, first));
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line.push_str(&format!("{:gap$}{cell:>width$}", ""));
            }
            self.line(&line);
        }
    }

    /// Writes a table whose first header cell is at the margin, as the section's heading.
    pub(crate) fn headed_table(&mut self, rows: &[Vec<String>]) {
        let mut table = self.empty_copy();
        table.table(rows);
        let heading = rows.first().and_then(|row| row.first()).cloned().unwrap_or_default();
        for (index, line) in table.finish().lines().enumerate() {
            let line = match (index, line.split_once(&heading)) {
                (0, Some((_, rest))) => format!("{heading}  {rest}"),
                _ => line.to_owned(),
            };
            self.line(&line);
        }
    }

    /// Returns the number of lines so far.
    pub(crate) fn lines(&self) -> usize {
        self.out.lines().count()
    }

    /// Appends the lines of another page.
    pub(crate) fn append(&mut self, other: Page) {
        self.out.push_str(&other.out);
    }

    /// Appends two pages side by side, `gap` spaces apart.
    pub(crate) fn append_next_to(&mut self, left: Page, right: Page, gap: usize) {
        let column = left.width() + gap;
        let (left, right) = (left.finish(), right.finish());
        let (mut left, mut right) = (left.lines(), right.lines());
        loop {
            match (left.next(), right.next()) {
                (None, None) => break,
                (left, None | Some("")) => self.line(left.unwrap_or_default()),
                (left, Some(right)) => {
                    let left = left.unwrap_or_default();
                    let blank = column.saturating_sub(visible(left));
                    self.line(&format!("{left}{:blank$}{right}", ""));
                }
            }
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// Returns the length of a line in characters, without its colors.
fn visible(line: &str) -> usize {
    let mut in_escape = false;
    let seen = |c: &char| {
        let hidden = in_escape || *c == '\u{1b}';
        in_escape = hidden && *c != 'm';
        !hidden
    };
    line.chars().filter(seen).count()
}

/// A space at which lines do not break.
const GLUE: char = '\u{a0}';

/// Keeps a number with its unit: `12.3 ms`, `200 × 7`.
fn with_fixed_units(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let near = |index: usize| chars.get(index).copied().unwrap_or(' ');
    let glue = |(index, c): (usize, &char)| match *c {
        ' ' if index == 0 => ' ',
        ' ' if near(index + 1) == '×' || near(index - 1) == '×' => GLUE,
        ' ' if is_unit(near(index + 1)) && is_number(&chars[..index]) => GLUE,
        other => other,
    };
    chars.iter().enumerate().map(glue).collect()
}

/// Returns whether a text ends with a number that is not part of a name as in `Q-02`.
fn is_number(chars: &[char]) -> bool {
    let word = chars.rsplit(|c| c.is_whitespace() || *c == GLUE).next().unwrap_or_default();
    let first = word.iter().find(|c| c.is_alphanumeric());
    first.is_some_and(char::is_ascii_digit) && word.last().is_some_and(char::is_ascii_digit)
}

fn is_unit(c: char) -> bool {
    c.is_alphabetic() || c == '%'
}

/// Splits a word into pieces of at most `room` characters.
fn split_word(word: &str, room: usize) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    chars.chunks(room).map(|piece| piece.iter().collect()).collect()
}

/// Shortens text to `room` characters by omitting the middle: both ends of a URL are the most
/// informative.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(3);
    let (head, tail) = (kept - kept * 2 / 3, kept * 2 / 3);
    let start: String = chars[..head].iter().collect();
    let end: String = chars[chars.len() - tail..].iter().collect();
    format!("{start}...{end}")
}

#[cfg(test)]
mod tests {
    use super::with_fixed_units;

    #[test]
    fn a_number_stays_with_its_unit_and_a_name_with_nothing() {
        let shown = |text| with_fixed_units(text).replace(super::GLUE, "_");
        assert_eq!(
            shown("in 12.3 ms, 200 × 7 (6.54e-5 to 1)"),
            "in 12.3_ms, 200_×_7 (6.54e-5_to 1)"
        );
        assert_eq!(shown("failed: Q-02 Q-10 HTTP/1.1 is"), "failed: Q-02 Q-10 HTTP/1.1 is");
    }
}
