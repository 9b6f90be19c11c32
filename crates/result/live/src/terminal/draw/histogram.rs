//! The response times of the whole measured part, as bars.

use super::Look;
use crate::terminal::model::Model;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;

/// Maximum number of classes, however high the window is.
const ROWS_MAX: usize = 16;

/// Returns whether a cell is part of a bar: the blocks of eighths, U+2588 to U+258F.
pub(super) fn is_bar(symbol: &str) -> bool {
    symbol.chars().all(|c| ('\u{2588}'..='\u{258f}').contains(&c))
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let block = look.block(Line::from(" Calls by response time "));
    let inner = block.inner(area);
    let rows = usize::from(inner.height).min(ROWS_MAX);
    let lines = report::histogram_lines(&model.so_far.times, usize::from(inner.width), rows);
    let text = match lines.is_empty() {
        true => Text::styled("fewer than two so far", look.faint()),
        false => Text::from_iter(lines),
    };
    frame.render_widget(Paragraph::new(text).block(block), area);
}
