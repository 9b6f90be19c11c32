//! Tables: columns, and rows of typed cells.

use super::{Forms, Mood, Words};

/// A table; each form shows its own columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataTable {
    /// Heading in text, at the margin of its head; may be empty.
    pub(crate) name: String,
    /// Heading elsewhere; may be empty.
    pub(crate) title: String,
    /// Text omits the heads: its rows are self-explanatory.
    pub(crate) bare: bool,
    /// Readers of a page may sort it.
    pub(crate) sortable: bool,
    /// True if it is as wide as its cells instead of the page.
    pub(crate) narrow: bool,
    /// Readers of a page may filter rows by the words in this column.
    pub(crate) chosen_by: Option<usize>,
    /// True if text omits its head and left-aligns its columns, the last wrapped.
    pub(crate) listed: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<TableRow>,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) head: String,
    pub(crate) kind: ColumnKind,
    pub(crate) forms: Forms,
    /// Minimum number of characters in a list of text.
    pub(crate) least: usize,
}

/// Alignment of a column's cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// Right-aligned.
    #[default]
    Figure,
    /// Left-aligned, in one line.
    Word,
    /// Left-aligned, wrapped.
    Text,
    /// A name that may be long, such as a URL.
    Name,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TableRow {
    pub(crate) look: RowLook,
    pub(crate) cells: Vec<TableCell>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RowLook {
    #[default]
    Plain,
    /// Part of the row above.
    Part,
    Sum,
    /// Summary of all omitted rows, which stays the last in any sorting.
    Rest,
    /// Excluded from all figures.
    SetAside,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TableCell {
    pub(crate) words: Words,
    pub(crate) look: CellLook,
    /// Sort key if different from its text.
    pub(crate) sort: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CellLook {
    #[default]
    Plain,
    /// As expected.
    Met,
    Missed,
    Soft,
    /// Subdued, and shown only if there is room: on a terminal the cell is empty.
    Remark,
    /// Small, wrapped.
    Fine,
    State(Mood),
}

impl DataTable {
    /// Creates a table with a column for each head.
    pub(crate) fn new<C: Into<Column>>(columns: impl IntoIterator<Item = C>) -> DataTable {
        let columns = columns.into_iter().map(Into::into).collect();
        DataTable { columns, ..DataTable::default() }
    }

    pub(crate) fn with<R: Into<TableRow>>(
        mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> DataTable {
        self.rows.extend(rows.into_iter().map(Into::into));
        self
    }

    /// Adds a heading: a short one at the margin of text, and one for other forms.
    pub(crate) fn named(self, name: &str, title: &str) -> DataTable {
        DataTable { name: name.to_owned(), title: title.to_owned(), ..self }
    }

    pub(crate) fn bare(self) -> DataTable {
        DataTable { bare: true, ..self }
    }

    pub(crate) fn narrow(self) -> DataTable {
        DataTable { narrow: true, ..self }
    }

    pub(crate) fn listed(self) -> DataTable {
        DataTable { listed: true, ..self }
    }

    pub(crate) fn chosen_by(self, column: usize) -> DataTable {
        DataTable { chosen_by: Some(column), ..self }
    }

    pub(crate) fn sortable(self) -> DataTable {
        DataTable { sortable: true, ..self }
    }

    /// Returns the columns of a form, with their indices.
    pub(crate) fn columns(&self, form: Forms) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(move |(_, column)| column.forms.has(form))
    }
}

impl Column {
    pub(crate) fn new(kind: ColumnKind, head: impl Into<String>) -> Column {
        Column { kind, ..head.into().into() }
    }

    pub(crate) fn word(head: impl Into<String>) -> Column {
        Column::new(ColumnKind::Word, head)
    }

    pub(crate) fn text(head: impl Into<String>) -> Column {
        Column::new(ColumnKind::Text, head)
    }

    /// Sets the minimum number of characters in a list of text.
    pub(crate) fn at_least(self, least: usize) -> Column {
        Column { least, ..self }
    }

    /// Restricts it to these forms.
    pub(crate) fn only(self, forms: Forms) -> Column {
        Column { forms, ..self }
    }
}

impl From<String> for Column {
    fn from(head: String) -> Column {
        Column { head, kind: ColumnKind::Figure, forms: Forms::ALL, least: 0 }
    }
}

impl From<&str> for Column {
    fn from(head: &str) -> Column {
        head.to_owned().into()
    }
}

impl TableCell {
    pub(crate) fn new(look: CellLook, words: impl Into<Words>) -> TableCell {
        TableCell { words: words.into(), look, sort: None }
    }

    /// Returns a cell that is sorted by a figure.
    pub(crate) fn by(sort: f64, words: impl Into<Words>) -> TableCell {
        TableCell { words: words.into(), look: CellLook::Plain, sort: Some(sort) }
    }
}

impl<W: Into<Words>> From<W> for TableCell {
    fn from(words: W) -> TableCell {
        TableCell::new(CellLook::Plain, words)
    }
}

impl<C: Into<TableCell>> From<Vec<C>> for TableRow {
    fn from(cells: Vec<C>) -> TableRow {
        let cells = cells.into_iter().map(Into::into).collect();
        TableRow { look: RowLook::Plain, cells }
    }
}
