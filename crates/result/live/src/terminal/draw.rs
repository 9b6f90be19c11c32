//! Draws the model on a grid of cells. Pure: equal model, size and style give equal cells.

mod agents;
mod graphs;
mod histogram;
mod panels;
mod steps;

use crate::terminal::model::Model;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::symbols::border;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use report::SloRecord;
use stats::State;
use units::{Nanos, show};

/// Capabilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub color: bool,
    /// Frames and dots beyond ASCII.
    pub unicode: bool,
    /// The help page is shown on top.
    pub help: bool,
}

/// A smaller window shows only the headline.
const WIDTH_MIN: u16 = 40;
const HEIGHT_MIN: u16 = 10;
/// Minimum width for three panels side by side.
const THREE_COLUMNS: u16 = 72;
/// Rows of the panels' content, without their frames.
const PANEL_ROWS: u16 = 8;
const GRAPH_ROWS_MIN: u16 = 6;
const VERDICT_ROWS: u16 = 4;

/// Colors that color-blind readers can distinguish (Okabe and Ito's, by their nearest of the
/// sixteen): each is always shown with a name.
pub(crate) const BLUE: Color = Color::Blue;
pub(crate) const ORANGE: Color = Color::Yellow;
pub(crate) const PURPLE: Color = Color::Magenta;
/// Color of server failures.
pub(crate) const RED: Color = Color::Red;

impl Look {
    pub(crate) fn tint(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Returns the style of explanatory text.
    pub(crate) fn faint(self) -> Style {
        if self.color { Style::new().add_modifier(Modifier::DIM) } else { Style::new() }
    }

    pub(crate) fn marker(self, ascii: char) -> Marker {
        if self.unicode { Marker::Braille } else { Marker::Custom(ascii) }
    }

    pub(crate) fn block(self, title: Line<'_>) -> Block<'_> {
        let set = border::ROUNDED;
        Block::bordered().border_set(set).border_style(self.faint()).title(title)
    }
}

/// Draws the whole window.
pub fn draw(frame: &mut Frame<'_>, model: &Model, look: Look) {
    everything(frame, model, look);
    if !look.unicode {
        to_ascii(frame.buffer_mut());
    }
}

/// Replaces frames, axes and µ by their nearest ASCII.
fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let nearest = match cell.symbol() {
            "│" => '|',
            "─" => '-',
            "µ" => 'u',
            "…" => '.',
            "≤" => '<',
            symbol if histogram::is_bar(symbol) => '#',
            "╭" | "╮" | "╰" | "╯" | "└" => '+',
            _ => '?',
        };
        cell.set_char(nearest);
    }
}

fn everything(frame: &mut Frame<'_>, model: &Model, look: Look) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text = Text::from(vec![
            headline_remaining(model, look),
            progress(model, look),
            Line::from(format!("a window of {WIDTH_MIN} by {HEIGHT_MIN} shows more")),
        ]);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let narrow = area.width < THREE_COLUMNS;
    let panel_rows = PANEL_ROWS + 2;
    let fixed = 2 + panel_rows + VERDICT_ROWS + 1;
    let fleet = agents::rows(model, area.height.saturating_sub(fixed));
    let steps = steps::rows(model, area.height.saturating_sub(fixed + fleet));
    let graphs = area.height.saturating_sub(fixed + fleet + steps);
    let graphs = if graphs >= GRAPH_ROWS_MIN { graphs } else { 0 };
    let [head, graph_area, steps_area, fleet_area, panel_area, verdict, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(graphs),
        Constraint::Length(steps),
        Constraint::Length(fleet),
        Constraint::Max(if narrow { PANEL_ROWS + 1 } else { panel_rows }),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    header(frame, head, model, look);
    if graphs > 0 {
        let picture = if narrow { 0 } else { area.width / 3 };
        let widths = [Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(picture)];
        let [rate, times, picture] = Layout::horizontal(widths).areas(graph_area);
        graphs::rates(frame, rate, model, look);
        graphs::quantiles(frame, times, model, look);
        histogram::draw(frame, picture, model, look);
    }
    steps::draw(frame, steps_area, model, look);
    agents::draw(frame, fleet_area, model, look);
    panels::panels(frame, panel_area, model, look, narrow);
    frame.render_widget(
        Paragraph::new(verdict_lines(model, look)).wrap(Wrap { trim: true }),
        verdict,
    );
    let text = if model.stopping { "stopping: the report follows" } else { "q stop   ? help" };
    frame.render_widget(Line::styled(text, look.faint()), keys);
    if look.help {
        help(frame, area, look);
    }
}

fn header(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let right = progress(model, look);
    let width = right.width() as u16;
    let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let all = all_steps(model);
    let [name, in_all] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(all.len() as u16)])
            .areas(first);
    frame.render_widget(headline_remaining(model, look), name);
    frame.render_widget(Line::styled(all, look.faint()), in_all);
    let [load, state] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).areas(second);
    let (run, runs) = model.subject.repeat;
    let which = match &model.subject.climb {
        Some(climb) => format!("{}   ", show::safe(&climb.step)),
        None if runs > 1 => format!("run {run} of {runs}   "),
        None => String::new(),
    };
    let room = usize::from(area.width.saturating_sub(width + 2));
    let load_text = shortened(format!("{which}{}", model.subject.load), room);
    frame.render_widget(Line::styled(load_text, look.faint()), load);
    frame.render_widget(right, state);
}

/// Returns the remaining time of a ramp, all its steps together; empty for other runs.
fn all_steps(model: &Model) -> String {
    let left = model.subject.climb.as_ref().and_then(|climb| climb.left);
    left.map_or_else(String::new, |left| {
        format!("  all steps: {} left", left.after(model.passed_s().unwrap_or(0.0)))
    })
}

/// Truncates to `room` characters, with a mark if anything was cut; prefers to cut after a complete
/// part of the load.
fn shortened(text: String, room: usize) -> String {
    if text.chars().count() <= room {
        return text;
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    match kept.rfind(", ") {
        Some(end) => format!("{} …", &kept[..end]),
        None => format!("{}…", kept.trim_end_matches([' ', ','])),
    }
}

fn headline_remaining(model: &Model, look: Look) -> Line<'static> {
    let name = show::safe(&model.subject.name);
    Line::from(vec![Span::styled("loadstone ", look.faint()), Span::styled(name, look.strong())])
}

/// Renders the current phase of the run, with its remaining time.
fn progress(model: &Model, look: Look) -> Line<'static> {
    let Some(passed) = model.passed_s() else {
        return Line::styled("starting", look.strong());
    };
    let time = |seconds: f64| show::duration(Nanos::from_secs_f64(seconds.max(0.0)));
    let (phase, rest) =
        match (model.latest.as_ref().is_some_and(|s| s.warm_up), model.subject.span_s) {
            (true, _) => ("warm-up", format!("{} left of it", time(-passed))),
            // in a ramp's step the wait for the last responses is the start of the pause before the
            // next step
            (false, Some(span)) if passed >= span && model.subject.climb.is_some() => {
                ("settling", format!("{} measured", time(span)))
            }
            (false, Some(span)) if passed >= span => {
                ("waiting for the last responses", format!("{} measured", time(span)))
            }
            (false, Some(span)) => {
                let share = show::share((passed / span).clamp(0.0, 1.0));
                ("measuring", format!("{} left, {share} done", time(span - passed)))
            }
            (false, None) => ("measuring", calls_to_go(model, passed)),
        };
    Line::from(vec![Span::styled(phase, look.strong()), Span::raw(format!("  {rest}"))])
}

fn calls_to_go(model: &Model, passed: f64) -> String {
    let after = show::duration(Nanos::from_secs_f64(passed.max(0.0)));
    match model.subject.calls_max {
        Some(max) => {
            let left = max.saturating_sub(model.so_far.counts.due);
            format!("{} calls to go after {after}", show::count(left))
        }
        None => format!("for {after}"),
    }
}

fn verdict_lines(model: &Model, look: Look) -> Text<'static> {
    let Some(judged) = &model.judged else {
        return Text::styled("no verdict before the first measured second", look.faint());
    };
    let state = judged.verdict.state;
    let color = match state {
        State::Valid => BLUE,
        State::Degraded => ORANGE,
        State::Invalid => PURPLE,
    };
    let mut first = vec![
        Span::styled(state.id(), look.tint(color).add_modifier(Modifier::BOLD)),
        Span::raw(" so far"),
    ];
    for slo in judged.slo.iter().map(SloRecord::new) {
        let text = format!("   {} {} ({})", slo.objective.text, slo.word(), slo.figure_text());
        first.push(Span::raw(text));
    }
    let (server, good) = &judged.server;
    let mark = if *good { look.tint(BLUE) } else { look.tint(RED).add_modifier(Modifier::BOLD) };
    let server = vec![Span::raw("server "), Span::styled(server.clone(), mark)];
    let mut lines = vec![Line::from(server), Line::from(first)];
    for cause in &judged.verdict.causes {
        lines.push(Line::raw(format!("{}: {}", cause.id, cause.text)));
    }
    Text::from(lines)
}

const KEYS: [(&str, &str); 4] = [
    ("q, Ctrl-C", "stop: open calls are abandoned, the report follows"),
    ("twice", "quit at once, without a report"),
    ("?", "this page; Esc closes it"),
    ("Ctrl-L", "redraw the screen"),
];

const WORDS: [&str; 7] = [
    "due       calls that fell due under the plan",
    "completed succeeded, failed or timed out",
    "in flight issued and not yet answered",
    "slip      p99 of how late calls were issued",
    "Response time counts from the instant a call was due.",
    "Rates and times of the last second are shown alongside those",
    "of the whole measured part; the warm-up is kept apart.",
];

fn help(frame: &mut Frame<'_>, area: Rect, look: Look) {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (key, does) in KEYS {
        lines.push(Line::from(vec![
            Span::styled(format!("{key:<10}"), look.strong()),
            Span::raw(does),
        ]));
    }
    lines.push(Line::default());
    lines.extend(WORDS.map(Line::from));
    let width = area.width.min(64);
    let height = area.height.min(lines.len() as u16 + 2);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    frame.render_widget(text.block(look.block(Line::from(" Keys and words "))), place);
}
