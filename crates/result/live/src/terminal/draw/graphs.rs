//! Two graphs over time: the rates, and quantiles of the response time on a logarithmic scale.

use super::{BLUE, Look, ORANGE, PURPLE};
use crate::terminal::model::Model;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};
use units::{Nanos, show};

/// The graphs start with the width of the run, at most a minute, and grow with it.
const WIDTH_MIN_S: f64 = 10.0;
const WIDTH_FIRST_S: f64 = 60.0;
/// Decades of seconds of response times: 1 µs to an hour.
const DECADE_MIN: f64 = -6.0;
const DECADE_MAX: f64 = 4.0;

struct Curve<'a> {
    name: &'a str,
    latest: String,
    color: Color,
    ascii: char,
    points: Vec<(f64, f64)>,
}

pub(super) fn rates(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let latest = model.history.back().copied().unwrap_or_default();
    let of = |pick: fn(&crate::terminal::model::GraphPoint) -> f64| {
        model.history.iter().map(|point| (point.at_s, pick(point))).collect::<Vec<_>>()
    };
    let due = Curve {
        name: "due",
        latest: show::rate(latest.due.round()),
        color: ORANGE,
        ascii: '.',
        points: of(|point| point.due),
    };
    let done = Curve {
        name: "completed",
        latest: show::rate(latest.done.round()),
        color: BLUE,
        ascii: 'o',
        points: of(|point| point.done),
    };
    let highest = due.points.iter().chain(&done.points).map(|(_, y)| *y).fold(0.0, f64::max);
    let top = round_up(highest);
    let labels = [0.0, top / 2.0, top].map(show::rate);
    chart(frame, area, model, look, &[due, done], ([0.0, top], labels.to_vec()));
}

pub(super) fn quantiles(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let names = [("p50", BLUE, '.'), ("p90", ORANGE, 'o'), ("p99", PURPLE, '#')];
    let mut curves = Vec::new();
    for (index, (name, color, ascii)) in names.into_iter().enumerate() {
        let known = |point: &crate::terminal::model::GraphPoint| {
            Some((point.at_s, point.quantiles?[index]))
        };
        let points: Vec<(f64, f64)> = model.history.iter().filter_map(known).collect();
        let latest = points
            .last()
            .map_or("-".to_owned(), |(_, seconds)| show::duration(Nanos::from_secs_f64(*seconds)));
        let log = |(at, seconds): (f64, f64)| (at, seconds.max(1e-9).log10());
        let points = points.into_iter().map(log).collect();
        curves.push(Curve { name, latest, color, ascii, points });
    }
    let all = || curves.iter().flat_map(|curve| &curve.points).map(|(_, y)| *y);
    let low = all().fold(f64::INFINITY, f64::min).floor().clamp(DECADE_MIN, DECADE_MAX - 1.0);
    let high = all().fold(f64::NEG_INFINITY, f64::max).ceil().clamp(low + 1.0, DECADE_MAX);
    let (low, high) = if all().next().is_none() { (-3.0, 0.0) } else { (low, high) };
    // one row for each label; the frame, the axis and its labels take four
    let rows = f64::from(area.height.saturating_sub(4)).max(2.0);
    let step = ((high - low) / (rows - 1.0)).ceil().max(1.0);
    let mut labels = Vec::new();
    let mut decade = low;
    // every label marks its own value: the top of the axis moves up to the next one
    while decade < high + step {
        labels.push(decade_name(decade));
        decade += step;
    }
    let top = low + step * (labels.len() - 1) as f64;
    chart(frame, area, model, look, &curves, ([low, top], labels));
}

/// Formats a power of ten in seconds: `1 ms` for -3, `10 s` for 1.
fn decade_name(decade: f64) -> String {
    let units = [(-6.0, "µs"), (-3.0, "ms"), (0.0, "s")];
    let (base, unit) =
        units.into_iter().rev().find(|(base, _)| decade >= *base).unwrap_or(units[0]);
    format!("{:.0} {unit}", 10_f64.powf(decade - base))
}

/// Returns the next round number with some room above `value`; at least 2.
fn round_up(value: f64) -> f64 {
    let wanted = (value * 1.05).max(2.0);
    let decade = 10_f64.powf(wanted.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * decade).find(|step| *step >= wanted).unwrap_or(wanted)
}

fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    look: Look,
    curves: &[Curve<'_>],
    (bounds, labels): ([f64; 2], Vec<String>),
) {
    // a point is at the end of its second
    let start = model.history.front().map_or(0.0, |point| point.at_s - 1.0);
    let span = model.subject.span_s.unwrap_or(WIDTH_FIRST_S);
    let wide_enough = span.clamp(start + WIDTH_MIN_S, start + WIDTH_FIRST_S);
    let end = model.history.back().map_or(0.0, |point| point.at_s).max(wide_enough);
    let title = title(curves, usize::from(area.width.saturating_sub(2)), look);
    let datasets = curves.iter().map(|curve| {
        Dataset::default()
            .marker(look.marker(curve.ascii))
            .graph_type(GraphType::Line)
            .style(look.tint(curve.color))
            .data(&curve.points)
    });
    let seconds = |at: f64| {
        let size = show::duration(Nanos::from_secs_f64(at.abs().round()));
        if at < -0.5 { format!("-{size}") } else { size }
    };
    let x_labels = [seconds(start), seconds(end)];
    let chart = Chart::new(datasets.collect())
        .block(look.block(title))
        .legend_position(None)
        .x_axis(Axis::default().style(look.faint()).bounds([start, end]).labels(x_labels))
        .y_axis(Axis::default().style(look.faint()).bounds(bounds).labels(labels));
    frame.render_widget(chart, area);
}

/// Returns the names of the curves with their latest figures, or without them if there is no room.
fn title(curves: &[Curve<'_>], room: usize, look: Look) -> Line<'static> {
    let texts: Vec<String> =
        curves.iter().map(|curve| format!("{} {}  ", curve.name, curve.latest)).collect();
    let wide = 1 + texts.iter().map(|text| text.chars().count()).sum::<usize>();
    let mut title = vec![Span::raw(" ")];
    for (curve, text) in curves.iter().zip(texts) {
        // the two spaces after the last figure may be cut off
        let text = if wide <= room + 2 { text } else { format!("{}  ", curve.name) };
        title.push(Span::styled(text, look.tint(curve.color)));
    }
    Line::from(title)
}
