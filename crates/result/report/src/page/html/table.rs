//! Tables of the page.

use super::inline;
use crate::section::{CellLook, ColumnKind, DataTable, Forms, RowLook, TableCell, TableRow};
use maud::{Markup, html};

pub(super) fn table(table: &DataTable) -> Markup {
    let class = match (table.sortable, table.narrow) {
        (true, _) if table.chosen_by.is_some() => Some("sortable filtered"),
        (true, _) => Some("sortable"),
        (false, true) => Some("narrow"),
        (false, false) => None,
    };
    html! {
        @if !table.title.is_empty() { h3 { (table.title) } }
        div class="wide" { table class=[class] {
            // on paper, the head is repeated on each page
            thead { tr {
                @for (_, column) in table.columns(Forms::PAGE) {
                    th class=[head_class(column.kind)] { (column.head) }
                }
            } }
            tbody { @for one in &table.rows { (row(table, one)) } }
        } }
    }
}

fn row(table: &DataTable, row: &TableRow) -> Markup {
    let class = match row.look {
        RowLook::Plain => None,
        RowLook::Part => Some("part"),
        RowLook::Sum => Some("sum"),
        RowLook::Rest => Some("rest"),
        RowLook::SetAside => Some("set-aside"),
    };
    let kind = table.chosen_by.and_then(|column| row.cells.get(column));
    let kind = kind.map(|cell| cell.words.bare());
    html! {
        tr class=[class] data-outcome=[kind] {
            @for (at, column) in table.columns(Forms::PAGE) {
                @if let Some(one) = row.cells.get(at) { (cell(one, column.kind)) }
            }
        }
    }
}

fn cell(cell: &TableCell, kind: ColumnKind) -> Markup {
    let look = match cell.look {
        CellLook::Plain => "",
        CellLook::Met => "met",
        CellLook::Missed => "missed",
        CellLook::Soft | CellLook::Remark => "soft",
        CellLook::Fine => "load",
        CellLook::State(mood) => super::class(mood),
    };
    let kind = if kind == ColumnKind::Name { "url" } else { head_class(kind).unwrap_or("") };
    let class = [look, kind].join(" ").trim().to_owned();
    let class = Some(class).filter(|class| !class.is_empty());
    html! { td class=[class] data-v=[cell.sort] { (inline(&cell.words)) } }
}

fn head_class(kind: ColumnKind) -> Option<&'static str> {
    match kind {
        ColumnKind::Figure | ColumnKind::Name => None,
        ColumnKind::Word => Some("word"),
        ColumnKind::Text => Some("text"),
    }
}
