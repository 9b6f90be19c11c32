//! The steps of a journey, one row each.

use super::{GRAPH_ROWS_MIN, Look, RED};
use crate::terminal::model::{Model, TargetRow};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use units::show;

/// Rows of the frame and the heading.
const FIXED: u16 = 3;
/// Maximum number of steps; the others are in the report.
const SHOWN: u16 = 12;
/// Minimum number of steps for the table.
const STEPS_MIN: u16 = 2;
/// Width of a step's name in characters.
const NAME: usize = 26;

/// Returns how many of the remaining rows the steps use. The graphs keep theirs if both fit.
pub(super) fn rows(model: &Model, left: u16) -> u16 {
    if model.subject.steps.is_empty() {
        return 0;
    }
    let steps = u16::try_from(model.subject.steps.len()).unwrap_or(u16::MAX).min(SHOWN);
    let next_to_graphs = left.saturating_sub(GRAPH_ROWS_MIN);
    let room = if next_to_graphs >= FIXED + STEPS_MIN { next_to_graphs } else { left };
    let given = (steps + FIXED).min(room);
    if given < FIXED + STEPS_MIN.min(steps) { 0 } else { given }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    if area.height < FIXED {
        return;
    }
    let steps = &model.subject.steps;
    let room = usize::from(area.height - FIXED);
    let heading = text("", ["calls", "failed", "p50", "p99", "max"].map(str::to_owned));
    let mut lines = vec![Line::styled(heading, look.faint())];
    let named = steps.iter().zip(&model.so_far.rows);
    lines.extend(named.take(room).map(|(name, row)| line(name, row, look)));
    let title = match steps.len().saturating_sub(room) {
        0 => " Per step ".to_owned(),
        hidden => format!(" Per step ({hidden} more in the report) "),
    };
    let block = look.block(Line::from(title));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn line(name: &str, row: &TargetRow, look: Look) -> Line<'static> {
    let time = |time| if row.times.count == 0 { "-".to_owned() } else { show::duration(time) };
    let times = [row.times.p50, row.times.p99, row.times.max].map(time);
    let [p50, p99, max] = times;
    let cells = [show::count(row.done), show::count(row.failed), p50, p99, max];
    let style = if row.failed > 0 { look.tint(RED) } else { Default::default() };
    Line::styled(text(name, cells), style)
}

fn text(name: &str, [calls, failed, p50, p99, max]: [String; 5]) -> String {
    let name: String = show::safe(name).chars().take(NAME).collect();
    format!("{name:<NAME$} {calls:>10} {failed:>8} {p50:>9} {p99:>9} {max:>9}")
}
