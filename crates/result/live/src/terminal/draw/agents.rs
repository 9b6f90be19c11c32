//! The machines of a fleet, one row each, conspicuous ones first.

use super::{Look, RED};
use crate::terminal::model::Model;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use sample::{AgentNow, AgentState};
use units::show;

/// Maximum number of agents' rows, and the rows of the frame.
const SHOWN: u16 = 8;
const FRAME: u16 = 2;
/// Width of a host and its labels in characters.
const NAME: usize = 24;

/// Returns how many of the remaining rows the agents use: 0 without a fleet or without room.
pub(super) fn rows(model: &Model, left: u16) -> u16 {
    let wanted = u16::try_from(model.agents.len()).unwrap_or(u16::MAX).min(SHOWN) + FRAME;
    let given = wanted.min(left);
    if model.agents.is_empty() || given <= FRAME { 0 } else { given }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    if area.height <= FRAME {
        return;
    }
    let mut order: Vec<&AgentNow> = model.agents.iter().collect();
    order.sort_by_key(|agent| (agent.state != AgentState::Lost, std::cmp::Reverse(agent.p99)));
    let room = usize::from(area.height - FRAME);
    let lines: Vec<Line<'_>> = order.iter().take(room).map(|agent| line(agent, look)).collect();
    let running = order.iter().filter(|agent| agent.state == AgentState::Running).count();
    let title = format!(" {running} of {} agents running ", order.len());
    let block = look.block(Line::styled(title, look.strong()));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn line(agent: &AgentNow, look: Look) -> Line<'static> {
    let labels = match agent.labels.as_str() {
        "" => String::new(),
        labels => format!(" [{labels}]"),
    };
    let name: String = show::safe(&format!("{} {}{labels}", agent.number, agent.host))
        .chars()
        .take(NAME)
        .collect();
    let lost = match agent.lost {
        0 => String::new(),
        lost => format!("{} lost", show::count(lost)),
    };
    let p99 = agent.p99.map_or_else(|| "-".to_owned(), show::duration);
    let text = format!(
        "{name:<NAME$}  {:<7}  {lost:>10}  {:>9}  p99 {p99:>8}  {:>5} in flight",
        agent.state.id(),
        show::rate(agent.calls_per_s),
        show::count(agent.in_flight),
    );
    let style = if agent.state == AgentState::Lost { look.tint(RED) } else { Default::default() };
    Line::styled(text, style)
}
