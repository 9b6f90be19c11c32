//! Tables: the load, response times, responses by status, failures, and the phases of a call.

use super::{Look, RED};
use crate::terminal::model::{Climb, Model, TimesRow};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use sample::FailureClass;
use units::{Nanos, show};

/// Columns of the panels: the load, the times; responses, failures and phases take the rest.
const LOAD_WIDTH: u16 = 30;
const TIMES_WIDTH: u16 = 24;
const PHASES_WIDTH: u16 = 30;
/// Widths of their first columns.
const LOAD_NAME: usize = 9;
const TIMES_NAME: usize = 5;
const PHASES_NAME: usize = 8;
const STEPS_NAME: usize = 6;
const STATUS_NAME: usize = 6;
const FAILURES: &str = "Failures";
/// Minimum width for a separate column of phases.
const FOUR_COLUMNS: u16 = 120;

type TableCells = [String; 3];

/// Draws the panels. `narrow`: the load and the times only, with statuses and failures in one line
/// below.
pub(super) fn panels(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look, narrow: bool) {
    if narrow {
        let [tables, below] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(tables);
        table(frame, left, "Load", (LOAD_NAME, load(model)), look);
        table(frame, right, "Response time", (TIMES_NAME, times(model)), look);
        frame.render_widget(endings_line(model, look), below);
        return;
    }
    let phases_width = if area.width >= FOUR_COLUMNS { PHASES_WIDTH } else { 0 };
    let [left, middle, endings_area, phases_area] = Layout::horizontal([
        Constraint::Length(LOAD_WIDTH),
        Constraint::Length(TIMES_WIDTH),
        Constraint::Fill(1),
        Constraint::Length(phases_width),
    ])
    .areas(area);
    table(frame, left, "Load", (LOAD_NAME, load(model)), look);
    table(frame, middle, "Response time", (TIMES_NAME, times(model)), look);
    if let Some(climb) = &model.subject.climb {
        if phases_width > 0 {
            endings(frame, endings_area, model, Vec::new(), look);
        }
        curve(frame, if phases_width > 0 { phases_area } else { endings_area }, climb, look);
    } else if phases_width > 0 {
        endings(frame, endings_area, model, Vec::new(), look);
        table(frame, phases_area, "Phases of a call", (PHASES_NAME, phases(model)), look);
    } else {
        let inner = usize::from(endings_area.width.saturating_sub(2));
        let mut rows = phases(model);
        rows[0][0] = s("Phases");
        let below = columns(rows, PHASES_NAME, inner, look);
        endings(frame, endings_area, model, below, look);
    }
}

fn load(model: &Model) -> Vec<TableCells> {
    let mut rows = vec![row("", "last s", "so far")];
    let Some(second) = &model.latest else { return rows };
    let (now, all) = (second.counts, model.so_far.counts);
    let span = second.span_s.max(1e-9);
    let rate = |count: u64| show::rate((count as f64 / span).round());
    rows.push([s("due"), rate(now.due), show::count(all.due)]);
    rows.push([s("completed"), rate(now.done()), show::count(all.done())]);
    rows.push([s("succeeded"), rate(now.succeeded), show::count(all.succeeded)]);
    rows.push([s("failed"), rate(now.unsuccessful()), show::count(all.unsuccessful())]);
    rows.push([s("in flight"), show::count(second.in_flight), String::new()]);
    let opened = show::count(model.so_far.established);
    rows.push([s("connected"), show::count(second.open_connections), opened]);
    let received = show::bytes((second.bytes_received as f64 / span) as u64);
    rows.push([s("received"), received, show::bytes(model.so_far.received)]);
    rows.push([s("our CPU"), show::share(second.driver_cpu.clamp(0.0, 1.0)), String::new()]);
    rows
}

fn times(model: &Model) -> Vec<TableCells> {
    let mut rows = vec![row("", "last s", "so far")];
    let Some(second) = model.latest.as_ref().filter(|second| !second.warm_up) else { return rows };
    let so_far = model.so_far.response;
    for (name, now, all) in [
        ("p50", second.p50, so_far.p50),
        ("p90", second.p90, so_far.p90),
        ("p99", second.p99, so_far.p99),
        ("max", second.max, so_far.max),
    ] {
        rows.push([s(name), time(now, second.max), time(all, so_far.max)]);
    }
    rows.push([s("slip"), show::duration(second.slip_p99), String::new()]);
    rows
}

/// Formats a time; a dash without a value.
fn time(value: Nanos, max: Nanos) -> String {
    if max.is_zero() { "-".to_owned() } else { show::duration(value) }
}

fn phases(model: &Model) -> Vec<TableCells> {
    let line = |(name, times): &(&str, TimesRow)| {
        [s(name), show::duration(times.p50), show::duration(times.p99)]
    };
    std::iter::once(row("", "p50", "p99")).chain(model.so_far.phases.iter().map(line)).collect()
}

/// Draws the last steps of a ramp, and the conclusions from all of them.
fn curve(frame: &mut Frame<'_>, area: Rect, climb: &Climb, look: Look) {
    let inner = usize::from(area.width.saturating_sub(2));
    let space = usize::from(area.height.saturating_sub(2)).saturating_sub(climb.known.len() + 1);
    let fitting = climb.steps.len().min(space);
    let mut rows = vec![row("load", "achieved", "p99")];
    rows.extend_from_slice(&climb.steps[climb.steps.len() - fitting..]);
    let mut lines = columns(rows, STEPS_NAME, inner, look);
    lines.resize(space + 1, Line::default());
    lines.extend(climb.known.iter().map(|text| Line::raw(text.clone())));
    let text = Paragraph::new(lines);
    frame.render_widget(text.block(look.block(Line::from(" Curve so far "))), area);
}

/// Draws responses by status, then failures by class; `spare`: shown below them if everything fits.
fn endings(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    spare: Vec<Line<'static>>,
    look: Look,
) {
    let block = look.block(Line::from(" Responses and failures "));
    let inner = block.inner(area);
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    let failed = failures(model, width, look);
    let status = statuses(model, width, look);
    let half = height.div_ceil(2);
    let room = half.max(height.saturating_sub(failed.len()));
    let mut lines = limit_lines(status, room, look);
    lines.extend(limit_lines(failed, height.saturating_sub(lines.len()), look));
    if lines.len() + spare.len() <= height {
        lines.resize(height - spare.len(), Line::default());
        lines.extend(spare);
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Returns at most `room` lines; if there are more, the last line counts the others.
fn limit_lines(mut lines: Vec<Line<'static>>, room: usize, look: Look) -> Vec<Line<'static>> {
    if lines.len() > room {
        let kept = room.saturating_sub(1);
        let more = format!("and {} more", lines.len() - kept);
        lines.truncate(kept);
        lines.push(Line::styled(more, look.faint()));
    }
    lines
}

/// Renders a heading, and a line for each status, most frequent first.
fn statuses(model: &Model, width: usize, look: Look) -> Vec<Line<'static>> {
    let latest = model.latest.as_ref();
    let rate = |status: u16| {
        let second = latest.filter(|second| !second.warm_up)?;
        let count = second.endings.as_ref()?.with_status(status);
        Some(show::rate((count as f64 / second.span_s.max(1e-9)).round()))
    };
    let mut rows = vec![row("Status", "last s", "so far")];
    rows.extend(model.so_far.statuses.iter().map(|(status, count)| {
        [status.to_string(), rate(*status).unwrap_or_else(|| s("-")), show::count(*count)]
    }));
    let unexpected = model.so_far.failures.iter().any(|(class, _)| *class == FailureClass::Status);
    let mut lines = columns(rows, STATUS_NAME, width, look);
    for (line, (status, _)) in lines.iter_mut().skip(1).zip(&model.so_far.statuses) {
        let wrong = unexpected && *status >= 400;
        line.spans[0].style = if wrong { look.tint(RED) } else { Style::new() };
    }
    lines
}

/// Renders a heading, and a line for each class, most frequent first, with the party to blame.
fn failures(model: &Model, width: usize, look: Look) -> Vec<Line<'static>> {
    let all = &model.so_far.failures;
    if all.is_empty() {
        let room = width.saturating_sub(FAILURES.len());
        return vec![Line::styled(format!("{FAILURES}{:>room$}", "none"), look.faint())];
    }
    let line = |(class, count): &(FailureClass, u64)| {
        let blame = format!("{} {}", class.blame().id(), show::count(*count));
        let room = width.saturating_sub(blame.len());
        // the figure is not cut: if both do not fit, the name is cut
        let id: String = class.id().chars().take(room.saturating_sub(1)).collect();
        let name = Span::styled(format!("{id:<room$}"), look.tint(RED));
        Line::from(vec![name, Span::raw(blame)])
    };
    let heading = Line::styled(FAILURES, look.faint());
    std::iter::once(heading).chain(all.iter().map(line)).collect()
}

/// Renders statuses and failures on one line, for a window without room for their panels.
fn endings_line(model: &Model, look: Look) -> Line<'static> {
    let so_far = &model.so_far;
    let listed = |parts: Vec<String>| if parts.is_empty() { s("none") } else { parts.join(", ") };
    let statuses =
        so_far.statuses.iter().map(|(status, n)| format!("{status} {}", show::count(*n)));
    let failures = so_far.failures.iter();
    let failures = failures.map(|(class, count)| format!("{} {}", class.id(), show::count(*count)));
    let (statuses, failures) = (listed(statuses.collect()), listed(failures.collect()));
    let style = if so_far.failures.is_empty() { look.faint() } else { Style::new() };
    Line::styled(format!("status {statuses}; failures {failures}"), style)
}

fn s(text: &str) -> String {
    text.to_owned()
}

fn row(name: &str, second: &str, third: &str) -> TableCells {
    [s(name), s(second), s(third)]
}

/// Draws three columns in a frame; the rows set the name's width, and the first row is the heading.
fn table(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    (name_width, rows): (usize, Vec<TableCells>),
    look: Look,
) {
    let block = look.block(Line::from(format!(" {title} ")));
    let inner = usize::from(block.inner(area).width);
    let lines = columns(rows, name_width, inner, look);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Renders a name, and two right-aligned figures.
fn columns(
    rows: Vec<TableCells>,
    name_width: usize,
    inner: usize,
    look: Look,
) -> Vec<Line<'static>> {
    let rest = inner.saturating_sub(name_width);
    let (first, second) = (rest - rest / 2, rest / 2);
    let mut lines = Vec::new();
    for (index, [name, now, all]) in rows.into_iter().enumerate() {
        let style = if index == 0 { look.faint() } else { Style::new() };
        lines.push(Line::from(vec![
            Span::styled(format!("{name:<name_width$}"), look.faint()),
            Span::styled(format!("{now:>first$}"), style),
            Span::styled(format!("{all:>second$}"), style),
        ]));
    }
    lines
}
