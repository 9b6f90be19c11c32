//! A chart as SVG.

use super::axis::*;
use crate::section::Composition;
use crate::section::chart::{AxisUnit, Cells, Chart, Dash, Dots, Line, Range, SHADES, Tone};
use maud::{Markup, html};

/// Radius of a marked point.
const DOT: f64 = 3.2;

/// Columns of a heat map on paper; neighbors are merged.
const COLUMNS_MAX: usize = 160;

/// Returns the chart with its title and key; the script inserts its own drawing into `.plot`.
pub(crate) fn figure(chart: &Chart) -> Markup {
    let across = x_scale(chart);
    let up = y_scale(chart);
    html! {
        figure data-chart=(chart.id) {
            figcaption {
                strong { (chart.title) }
                span class="keys lines" { (line_keys(chart)) }
                span class="keys" { (other_keys(chart)) }
            }
            div class="wide chart still" {
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(chart.words) {
                    @for range in &chart.ranges {
                        (marked_range(range, &across, chart.under.is_some()))
                    }
                    @if let Some(cells) = &chart.cells { (heat(cells, &chart.at, &across, &up)) }
                    (left_axis(&up, &|value| chart.y.tick(value)))
                    (bottom_axis(&across, &bottom_ticks(chart, &across), &|at| chart.x.unit.tick(at)))
                    @match chart.stack {
                        Some(width) => (stacked(chart, width, &across, &up)),
                        None => @for line in &chart.lines { (draw_line(line, &chart.at, &across, &up)) },
                    }
                }
            }
        }
    }
}

fn x_scale(chart: &Chart) -> Scale {
    let ends = (LEFT, RIGHT);
    if chart.x.log {
        return Scale::log([chart.x.low, chart.x.high].into_iter(), ends);
    }
    Scale::exact(chart.x.low, chart.x.high, ends)
}

fn y_scale(chart: &Chart) -> Scale {
    let figures = chart.figures();
    if chart.log {
        return Scale::log(figures.into_iter(), (BOTTOM, TOP));
    }
    Scale::from_zero(figures.into_iter().fold(0.0, f64::max), (BOTTOM, TOP))
}

/// Quantiles labeled on the axis.
const QUANTILES: [f64; 10] =
    [0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.999_99, 0.999_999, 0.999_999_9];

fn bottom_ticks(chart: &Chart, across: &Scale) -> Vec<f64> {
    if chart.x.unit != AxisUnit::Quantile {
        return across.ticks();
    }
    let nines = QUANTILES.iter().map(|quantile| -(1.0 - quantile).log10());
    let mut last = f64::NEG_INFINITY;
    nines
        .filter(|nines| (chart.x.low..=chart.x.high).contains(nines))
        .filter(|nines| {
            let fits = across.place(*nines) - last >= LABEL_APART;
            last = if fits { across.place(*nines) } else { last };
            fits
        })
        .collect()
}

/// Minimum distance between two quantiles on the axis, so that their labels do not overlap.
const LABEL_APART: f64 = 40.0;

fn dash_class(dash: Dash) -> &'static str {
    match dash {
        Dash::None => "",
        Dash::Long => "d1",
        Dash::Short => "d2",
    }
}

fn line_class(line: &Line) -> String {
    let thin = if line.thin { "thin" } else { "" };
    ["curve", line.tone.class(), dash_class(line.dash), thin].join(" ").trim().to_owned()
}

/// Renders the key of the lines, for pages without the script, which draws its own key.
fn line_keys(chart: &Chart) -> Markup {
    html! {
        @for line in &chart.lines {
            span class="key" {
                svg viewBox="0 0 22 10" aria-hidden="true" {
                    @if chart.stack.is_some() { rect class=(fill(line.tone)) width="22" height="10" rx="2" {} }
                    @else if line.dots != Dots::Alone { path class=(line_class(line)) d="M0 5H22" {} }
                    @if matches!(line.dots, Dots::Joined | Dots::Alone) { circle class=(fill(line.tone)) cx="11" cy="5" r="3" {} }
                }
                (line.name)
            }
        }
    }
}

fn other_keys(chart: &Chart) -> Markup {
    html! {
        @for range in chart.ranges.iter().filter(|_| chart.under.is_none()) {
            span class="key" {
                svg viewBox="0 0 22 10" aria-hidden="true" {
                    rect class=(format!("{} range", fill(range.tone))) width="22" height="10" {}
                    @if range.at.is_some() {
                        path class=(format!("curve thin {}", range.tone.class())) d="M11 0V10" {}
                    }
                }
                (range.name)
            }
        }
        @if let Some(cells) = &chart.cells {
            span class="key" {
                "1 call"
                svg class="shades" viewBox=(format!("0 0 {} 10", 10 * SHADES)) aria-hidden="true" {
                    @for shade in 1..=SHADES {
                        rect class=(format!("h{shade}")) x=(10 * (shade - 1)) width="10" height="10" {}
                    }
                }
                (crate::words::counted(cells.most(), "call"))
            }
        }
    }
}

fn fill(tone: Tone) -> String {
    format!("fill {}", tone.class())
}

type Points<'a> = Vec<Option<(f64, f64)>>;

fn points(values: &[Option<f64>], at: &[f64], across: &Scale, up: &Scale) -> Points<'static> {
    let place = |(at, value): (&f64, &Option<f64>)| {
        value.filter(|value| value.is_finite()).map(|value| (across.place(*at), up.place(value)))
    };
    at.iter().zip(values).map(place).collect()
}

fn draw_line(line: &Line, at: &[f64], across: &Scale, up: &Scale) -> Markup {
    let mut curve = points(&line.values, at, across, up);
    if line.dots != Dots::None {
        curve.retain(Option::is_some);
    }
    let hollow = points(&line.hollow, at, across, up);
    html! {
        @if let Some((low, high)) = &line.band {
            @let edges = [points(low, at, across, up), points(high, at, across, up)];
            path class=(format!("{} band", fill(line.tone))) d=(band(&edges)) {}
        }
        @if line.area { path class=(format!("{} area", fill(line.tone))) d=(area(&curve)) {} }
        @if line.dots != Dots::Alone {
            path class=(line_class(line)) d=(path(curve.iter().copied())) {}
        }
        @if is_dotted(line) {
            @for (x, y) in curve.iter().flatten() {
                circle class=(fill(line.tone)) cx=(coordinate(*x)) cy=(coordinate(*y)) r=(DOT) {}
            }
        }
        @for (x, y) in hollow.iter().flatten() {
            circle class=(format!("hollow {}", line.tone.class()))
                cx=(coordinate(*x)) cy=(coordinate(*y)) r=(DOT) {}
        }
    }
}

/// Returns whether points are marked; a single point without a mark would be invisible.
fn is_dotted(line: &Line) -> bool {
    let single = || line.values.iter().flatten().count() == 1;
    matches!(line.dots, Dots::Joined | Dots::Alone) || single()
}

fn area(curve: &Points<'_>) -> String {
    let ends = curve.iter().flatten().next().zip(curve.iter().flatten().next_back());
    ends.map_or_else(String::new, |((from, _), (to, _))| {
        let (from, to, floor) = (coordinate(*from), coordinate(*to), coordinate(BOTTOM));
        format!("{}L{to} {floor}L{from} {floor}Z", path(curve.iter().flatten().copied().map(Some)))
    })
}

fn band([low, high]: &[Points<'_>; 2]) -> String {
    let there = low.iter().flatten().chain(high.iter().flatten().rev());
    let outline = path(there.copied().map(Some));
    if outline.is_empty() { outline } else { format!("{outline}Z") }
}

/// Width of a character of a range's name.
const NAME_WIDE: f64 = 7.0;

fn marked_range(range: &Range, across: &Scale, named: bool) -> Markup {
    let (low, high) = (across.place(range.low), across.place(range.high));
    let fits = high - low >= range.name.chars().count() as f64 * NAME_WIDE + 4.0;
    html! {
        rect class=(format!("{} range", fill(range.tone))) x=(coordinate(low)) y=(coordinate(TOP))
            width=(coordinate((high - low).max(1.0))) height=(coordinate(BOTTOM - TOP)) {
            @if named { title { (range.name) } }
        }
        @if named && fits {
            text x=(coordinate(low + 3.0)) y=(coordinate(TOP + 12.0)) { (range.name) }
        }
        @if let Some(at) = range.at {
            @let x = coordinate(across.place(at));
            path class=(format!("curve thin {}", range.tone.class()))
                d=(format!("M{x} {}V{}", coordinate(TOP), coordinate(BOTTOM))) {}
        }
    }
}

/// Minimum width of a part, so that it is always visible.
const PART_MIN: f64 = 1.0;

/// Draws stacked columns, the first part at the bottom, with one path for each part.
fn stacked(chart: &Chart, width: f64, across: &Scale, up: &Scale) -> Markup {
    let mut floors = vec![BOTTOM; chart.at.len()];
    let mut sums = vec![0.0; chart.at.len()];
    let mut paths = Vec::new();
    for line in &chart.lines {
        let mut outline = String::new();
        for (place, at) in chart.at.iter().enumerate() {
            let value = line.values.get(place).copied().flatten().unwrap_or(0.0);
            if value <= 0.0 {
                continue;
            }
            sums[place] += value;
            let floor = floors[place];
            let top = up.place(sums[place]).min(floor - PART_MIN);
            floors[place] = top;
            let (left, right) = (across.place(at - width / 2.0), across.place(at + width / 2.0));
            outline.push_str(&format!(
                "M{} {}H{}V{}H{}Z",
                coordinate(left),
                coordinate(top),
                coordinate(right),
                coordinate(floor),
                coordinate(left),
            ));
        }
        paths.push((fill(line.tone), outline));
    }
    html! {
        @for (class, outline) in &paths {
            @if !outline.is_empty() { path class=(class) d=(outline) {} }
        }
    }
}

/// Draws one path for each shade, to keep the markup of thousands of cells short.
fn heat(cells: &Cells, at: &[f64], across: &Scale, up: &Scale) -> Markup {
    let size = cells.columns.len().div_ceil(COLUMNS_MAX).max(1);
    let half = cells.width / 2.0;
    let columns: Vec<(f64, f64, stats::Spread)> = cells
        .columns
        .chunks(size)
        .zip(at.chunks(size))
        .map(|(columns, at)| {
            let spread = stats::Spread::from_counts(columns.iter().flatten().copied());
            (at[0] - half, at[at.len() - 1] + half, spread)
        })
        .collect();
    let counts = columns.iter().flat_map(|(_, _, spread)| spread.iter());
    let most = counts.map(|(_, count)| count).max().unwrap_or(1);
    let mut shades = vec![String::new(); SHADES];
    for (from, to, spread) in &columns {
        let (left, right) = (across.place(*from), across.place(*to));
        for (class, count) in spread.iter() {
            let (low, high) = stats::Spread::ends_s(class);
            let (top, bottom) = (up.place(high), up.place(low));
            shades[Cells::shade(count, most) - 1].push_str(&format!(
                "M{} {}H{}V{}H{}Z",
                coordinate(left),
                coordinate(top),
                coordinate(right),
                coordinate(bottom),
                coordinate(left),
            ));
        }
    }
    html! {
        @for (shade, outline) in shades.iter().enumerate() {
            @if !outline.is_empty() { path class=(format!("h{}", shade + 1)) d=(outline) {} }
        }
    }
}

/// Width and height of a small histogram, in pixels.
const BARS: (usize, usize) = (120, 20);

/// Returns the bars of equal width, each 0 to 100 of the height.
pub(super) fn bars(all: &[u8], words: &str) -> Markup {
    let (width, height) = BARS;
    let step = width as f64 / all.len().max(1) as f64;
    let bar = |(place, share): (usize, &u8)| {
        let (left, tall) = (place as f64 * step, f64::from(*share) * height as f64 / 100.0);
        let right = left + (step - 1.0).max(1.0);
        let (left, right) = (coordinate(left), coordinate(right));
        format!("M{left} {height}V{}H{right}V{height}Z", coordinate(height as f64 - tall))
    };
    let there = all.iter().enumerate().filter(|(_, share)| **share > 0);
    html! {
        svg class="bars" viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(words) {
            title { (words) }
            path class="fill t-blue" d=(there.map(bar).collect::<String>()) {}
        }
    }
}

/// Colors of the parts of a bar: wait, lag, connect, TLS, first byte, transfer.
const PARTS: [Tone; 6] =
    [Tone::Purple, Tone::Red, Tone::Green, Tone::Sky, Tone::Blue, Tone::Orange];

/// Draws seconds that add up to a whole as one bar.
pub(super) fn composition(one: &Composition) -> Markup {
    let (title, parts) = (one.title, &one.parts);
    let sum: f64 = parts.iter().map(|(_, _, seconds)| seconds).sum();
    let scale = Scale::exact(0.0, sum, (0.0, WIDTH));
    let mut from = 0.0;
    let bars: Vec<(String, f64, f64)> = parts
        .iter()
        .map(|(color, _, seconds)| {
            let start = scale.place(from);
            from += seconds;
            (fill(PARTS[color % PARTS.len()]), start, scale.place(from) - start)
        })
        .collect();
    html! {
        figure {
            figcaption {
                strong { (title) }
                @for ((class, ..), (_, name, seconds)) in bars.iter().zip(parts) {
                    span class="key" {
                        svg viewBox="0 0 22 10" aria-hidden="true" {
                            rect class=(class) width="22" height="10" rx="2" {}
                        }
                        (name) " " (crate::words::seconds(*seconds))
                        " (" (units::show::share(seconds / sum)) ")"
                    }
                }
            }
            div class="wide chart" {
                svg viewBox=(format!("0 0 {WIDTH} 28")) role="img" aria-label=(title) {
                    @for (class, start, width) in &bars {
                        rect class=(class) x=(coordinate(*start)) y="0"
                            width=(coordinate((width - 1.5).max(0.5))) height="28" rx="2" {}
                    }
                }
            }
        }
    }
}
