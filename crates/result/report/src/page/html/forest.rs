//! Differences with their intervals as a chart: labels next to them, or above them on a phone.

use super::axis::{Scale, coordinate};
use crate::section::forest::{Forest, ForestRow};
use maud::{Markup, html};
use record::compare::amount;

/// Layout of the differences, in units of the view box.
#[derive(Clone, Copy, Debug)]
struct ForestFrame {
    /// CSS name of the layout.
    class: &'static str,
    width: f64,
    /// Start and end of the axis.
    axis: (f64, f64),
    /// Height of a figure's row, and of the space above the first.
    row: f64,
    head: f64,
    /// Distance from the top of a row to its interval.
    middle: f64,
    /// True if names and values are above their intervals instead of next to them.
    stacked: bool,
}

/// Layout with names left of the axis.
const BROAD: ForestFrame = ForestFrame {
    class: "broad",
    width: 912.0,
    axis: (150.0, 880.0),
    row: 30.0,
    head: 34.0,
    middle: 15.0,
    stacked: false,
};

/// Screen width of a phone in pixels: below it the axis uses the full width, so its right half,
/// where regressions of times are, needs no scrolling.
const NARROW: ForestFrame = ForestFrame {
    class: "narrow",
    width: 358.0,
    axis: (10.0, 336.0),
    row: 50.0,
    head: 34.0,
    middle: 32.0,
    stacked: true,
};

/// Maximum of the axis of differences: +200 %. Values beyond it are marked at its edge. No figure
/// falls by more than 100 %.
const REACH_MAX: f64 = 2.0;
const FALL_MAX: f64 = 1.0;

/// Draws each difference as a point with its interval, above the noise floor.
pub(super) fn figure(forest: &Forest) -> Markup {
    let rows = &forest.rows;
    let ends = rows.iter().flat_map(|one| [one.change, one.low, one.high, one.noise]);
    let reach = ends.filter(|end| end.is_finite()).fold(0.01, |most: f64, end| most.max(end.abs()));
    let reach = (reach * 1.05).min(REACH_MAX);
    html! {
        figure {
            figcaption {
                strong { (forest.title) }
                span class="key" { "gray: difference between runs of A" }
            }
            (draw_forest(rows, reach, &forest.label, &BROAD))
            (draw_forest(rows, reach, &forest.label, &NARROW))
        }
    }
}

fn draw_forest(rows: &[ForestRow], reach: f64, label: &str, frame: &ForestFrame) -> Markup {
    let scale = Scale::exact(-reach.min(FALL_MAX), reach, frame.axis);
    let bottom = frame.head + frame.row * rows.len() as f64;
    html! {
        div class=(format!("wide chart {}", frame.class)) {
            svg viewBox=(format!("0 0 {} {}", frame.width, bottom + 6.0)) role="img"
                aria-label=(label) {
                @for tick in ticks(&scale, frame) {
                    @let place = scale.place(tick);
                    @let x = coordinate(place);
                    line class=(if tick.abs() < 1e-12 { "axis" } else { "grid" })
                        x1=(x) x2=(x) y1=(coordinate(frame.head - 10.0)) y2=(coordinate(bottom)) {}
                    @let half = TICK_WIDTH / 2.0;
                    @let inside = place.clamp(half, frame.width - half);
                    text x=(coordinate(inside)) y="16" text-anchor="middle" { (percent(tick)) }
                }
                @for (n, one) in rows.iter().enumerate() {
                    @let top = frame.head + frame.row * n as f64;
                    (names(one, top, reach, frame))
                    (interval(one, top + frame.middle, &scale, reach, frame))
                }
            }
        }
    }
}

/// Returns the marks of the axis: every second one if all would overlap.
fn ticks(scale: &Scale, frame: &ForestFrame) -> Vec<f64> {
    let all = scale.ticks();
    let apart = (frame.axis.1 - frame.axis.0) / all.len().max(1) as f64;
    let zero = all.iter().position(|tick| tick.abs() < 1e-12).unwrap_or(0);
    let step = if apart < TICK_WIDTH { 2 } else { 1 };
    all.into_iter().enumerate().filter(|(n, _)| n % step == zero % step).map(|(_, t)| t).collect()
}

/// Width of a mark such as `+150 %`.
const TICK_WIDTH: f64 = 52.0;

/// Renders the name of the figure, and values outside the axis; if stacked, the difference as text
/// as well.
fn names(one: &ForestRow, top: f64, reach: f64, frame: &ForestFrame) -> Markup {
    let (name_x, anchor) = match frame.stacked {
        true => (frame.axis.0, "start"),
        false => (frame.axis.0 - 16.0, "end"),
    };
    let name_y = top + if frame.stacked { 12.0 } else { frame.middle };
    let words = match frame.stacked {
        true => format!("{} ({})", amount(one.change, false), one.interval),
        false => beyond(one, reach),
    };
    let words_y = top + if frame.stacked { 16.0 } else { frame.middle - 5.0 };
    let class = match frame.stacked {
        true => format!("change {}", one.tone.class()),
        false => "beyond".to_owned(),
    };
    html! {
        text x=(coordinate(name_x)) y=(coordinate(name_y)) dy="4" text-anchor=(anchor) { (one.name) }
        @if !words.is_empty() {
            text class=(class) x=(coordinate(frame.axis.1 - 4.0)) y=(coordinate(words_y))
                text-anchor="end" { (words) }
        }
    }
}

/// Marks are round: they need no decimals.
fn percent(share: f64) -> String {
    let percent = (share * 1e6).round() / 1e4;
    let sign = if percent > 0.0 { "+" } else { "" };
    format!("{sign}{percent} %")
}

/// Draws the interval of a difference, its point, and the noise floor behind both.
fn interval(one: &ForestRow, y: f64, scale: &Scale, reach: f64, frame: &ForestFrame) -> Markup {
    let class = one.tone.class();
    let noise = Some(one.noise).filter(|noise| noise.is_finite());
    let ends = one.low.is_finite() && one.high.is_finite();
    let end = frame.axis.1;
    html! {
        @if let Some(noise) = noise {
            @let (low, high) = (scale.place(-noise.abs()), scale.place(noise.abs()));
            rect class="fill t-soft range" x=(coordinate(low)) y=(coordinate(y - 9.0))
                width=(coordinate((high - low).max(1.0))) height="18" rx="2" {}
        }
        @if ends {
            path class=(format!("curve {class}"))
                d=(format!("M{} {y}H{}", coordinate(scale.place(one.low)),
                    coordinate(scale.place(one.high)))) {}
        }
        @if one.change <= reach {
            circle class=(format!("fill {class}")) cx=(coordinate(scale.place(one.change)))
                cy=(coordinate(y)) r="4.5" {}
        }
        @if one.change > reach || (ends && one.high > reach) {
            path class=(format!("fill {class} beyond"))
                d=(format!("M{0} {1}L{2} {y}L{0} {3}Z", coordinate(end), coordinate(y - 6.0),
                    coordinate(end + ARROW), coordinate(y + 6.0))) {}
        }
    }
}

/// Length of the arrow at the axis's end.
const ARROW: f64 = 12.0;

/// Describes the part of a difference that the axis cannot show.
fn beyond(one: &ForestRow, reach: f64) -> String {
    let change = |share: f64| amount(share, false);
    let point = (one.change > reach).then(|| change(one.change));
    let end = one.high.is_finite() && one.high > reach;
    let end = end.then(|| format!("to {}", change(one.high)));
    let noise = one.noise.is_finite() && one.noise > reach;
    let noise =
        noise.then(|| format!("A against A ±{}", change(one.noise).trim_start_matches('+')));
    let moved = [point, end].into_iter().flatten().collect::<Vec<_>>().join(" ");
    [Some(moved), noise]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}
