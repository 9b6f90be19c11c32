//! Tables: the load, response times, failures and the phases of a call.

use super::Look;
use crate::model::{Climb, Model, TimesRow};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use units::{Nanos, show};

/// Columns of the panels: the load, the times; failures and phases take the rest.
const LOAD_WIDTH: u16 = 30;
const TIMES_WIDTH: u16 = 24;
const PHASES_WIDTH: u16 = 30;
/// Widths of their first columns.
const LOAD_NAME: usize = 9;
const TIMES_NAME: usize = 5;
const PHASES_NAME: usize = 8;
const STEPS_NAME: usize = 6;
/// From here on the phases have a column of their own.
const FOUR_COLUMNS: u16 = 120;

type TableCells = [String; 3];

/// `narrow`: the load and the times only, failures in one line below.
pub(super) fn panels(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look, narrow: bool) {
    if narrow {
        let [tables, below] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(tables);
        table(frame, left, "Load", (LOAD_NAME, load(model)), look);
        table(frame, right, "Response time", (TIMES_NAME, times(model)), look);
        frame.render_widget(failure_line(model, look), below);
        return;
    }
    let phases_width = if area.width >= FOUR_COLUMNS { PHASES_WIDTH } else { 0 };
    let [left, middle, failures_area, phases_area] = Layout::horizontal([
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
            failures(frame, failures_area, model, Vec::new(), look);
        }
        curve(frame, if phases_width > 0 { phases_area } else { failures_area }, climb, look);
    } else if phases_width > 0 {
        failures(frame, failures_area, model, Vec::new(), look);
        table(frame, phases_area, "Phases of a call", (PHASES_NAME, phases(model)), look);
    } else {
        let inner = usize::from(failures_area.width.saturating_sub(2));
        let mut rows = phases(model);
        rows[0][0] = s("Phases");
        let below = columns(rows, PHASES_NAME, inner, look);
        failures(frame, failures_area, model, below, look);
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
    let bad = |counts: &stats::Counts| counts.failed + counts.timed_out + counts.dropped;
    rows.push([s("failed"), rate(bad(&now)), show::count(bad(&all))]);
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

/// A dash when nothing was timed.
fn time(value: Nanos, max: Nanos) -> String {
    if max.is_zero() { "-".to_owned() } else { show::duration(value) }
}

fn phases(model: &Model) -> Vec<TableCells> {
    let line = |(name, times): &(&str, TimesRow)| {
        [s(name), show::duration(times.p50), show::duration(times.p99)]
    };
    std::iter::once(row("", "p50", "p99")).chain(model.so_far.phases.iter().map(line)).collect()
}

/// The last steps of a ramp, and what all of them say.
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

/// `below`: lines at the bottom of the same panel.
fn failures(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    below: Vec<Line<'static>>,
    look: Look,
) {
    let all = &model.so_far.failures;
    let space = usize::from(area.height.saturating_sub(2)).saturating_sub(below.len());
    let width = usize::from(area.width.saturating_sub(2));
    let fitting = if all.len() > space { space.saturating_sub(1) } else { all.len() };
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (class, count) in &all[..fitting] {
        let count = show::count(*count);
        let blame = format!("{} {count}", class.blame().id());
        let room = width.saturating_sub(blame.len());
        let name = class.id();
        lines.push(Line::raw(format!("{name:<room$}{blame}")));
    }
    if all.len() > fitting {
        lines.push(Line::styled(format!("and {} more", all.len() - fitting), look.faint()));
    }
    if all.is_empty() {
        lines.push(Line::styled("none", look.faint()));
    }
    lines.resize(space, Line::default());
    lines.extend(below);
    let text = Paragraph::new(lines);
    frame.render_widget(text.block(look.block(Line::from(" Failures by class "))), area);
}

fn failure_line(model: &Model, look: Look) -> Line<'static> {
    let said: Vec<String> = model
        .so_far
        .failures
        .iter()
        .map(|(class, count)| format!("{} {}", class.id(), show::count(*count)))
        .collect();
    let style = if said.is_empty() { look.faint() } else { Style::new() };
    let said = if said.is_empty() { "none".to_owned() } else { said.join(", ") };
    Line::styled(format!("failures: {said}"), style)
}

fn s(text: &str) -> String {
    text.to_owned()
}

fn row(name: &str, second: &str, third: &str) -> TableCells {
    [s(name), s(second), s(third)]
}

/// Three columns in a frame; the name's width comes with the rows, of which the first is the heading.
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

/// A name, and two figures that end under each other.
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
