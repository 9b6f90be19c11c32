//! Content of a chart, defined once: drawn as SVG for paper and for readers without script, and
//! passed as data to the script that draws it with a cursor and zoom.

use crate::words;
use serde::Serialize;
use serde_json::{Value, json};
use units::{Nanos, show};

/// Maximum number of points of one curve.
pub(crate) const POINTS_MAX: usize = 480;

/// An interval of few repeats may be so wide that the curve would look flat: it is drawn up to this
/// far above the highest figure.
const BAND_MAX: f64 = 1.25;

/// Quantity of an axis, which determines the format of its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AxisUnit {
    /// Seconds.
    Time,
    /// Per second.
    Rate,
    /// 0..=1.
    Share,
    Count,
    /// Nines: −log10(1 − q) of a quantile q.
    Quantile,
}

impl AxisUnit {
    /// Formats a figure for an axis.
    pub(crate) fn tick(self, value: f64) -> String {
        match self {
            AxisUnit::Time => words::span(Nanos::from_secs_f64(value)),
            AxisUnit::Rate => show::rate(value),
            // marks are round: they need no decimals
            AxisUnit::Share => format!("{} %", (value * 1e8).round() / 1e6),
            AxisUnit::Count => format!("{}", (value * 1e6).round() / 1e6),
            AxisUnit::Quantile => stats::quantile_name(1.0 - 10_f64.powf(-value)),
        }
    }
}

/// Range of figures on the horizontal axis; the vertical one fits its figures.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Horizontal {
    /// Name of a position next to the cursor.
    pub(crate) name: &'static str,
    pub(crate) unit: AxisUnit,
    pub(crate) log: bool,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Colors that the usual kinds of color blindness can distinguish; dashes distinguish lines as
/// well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tone {
    Blue,
    Orange,
    Green,
    Purple,
    Sky,
    Red,
    /// Color of text next to the figures.
    Soft,
    /// The color of the text.
    Ink,
}

impl Tone {
    const ALL: [Tone; 6] =
        [Tone::Blue, Tone::Orange, Tone::Green, Tone::Purple, Tone::Sky, Tone::Red];

    /// Returns color and dashes of the nth of many.
    pub(crate) fn nth(n: usize) -> (Tone, Dash) {
        let dash = [Dash::None, Dash::Long, Dash::Short][n / Tone::ALL.len() % 3];
        (Tone::ALL[n % Tone::ALL.len()], dash)
    }

    /// Returns the class of a line or fill.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Blue => "t-blue",
            Tone::Orange => "t-orange",
            Tone::Green => "t-green",
            Tone::Purple => "t-purple",
            Tone::Sky => "t-sky",
            Tone::Red => "t-red",
            Tone::Soft => "t-soft",
            Tone::Ink => "t-ink",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dash {
    #[default]
    None,
    Long,
    Short,
}

/// Marks of the points of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dots {
    #[default]
    None,
    /// Marked, and joined across positions without a value.
    Joined,
    /// Not marked, and joined across positions without a value.
    Bridged,
    /// Points that are marked but not joined.
    Alone,
}

/// A value for each position of a chart; `None` leaves a gap.
pub(crate) type Values = Vec<Option<f64>>;

/// One curve: a value for each position of the chart; `None` leaves a gap.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) tone: Tone,
    pub(crate) dash: Dash,
    pub(crate) values: Values,
    pub(crate) thin: bool,
    /// True if the area down to the axis is filled.
    pub(crate) area: bool,
    pub(crate) dots: Dots,
    /// Points that are only marked, because they do not describe the server.
    pub(crate) hollow: Values,
    /// Lower and upper end of an interval at each position.
    pub(crate) band: Option<(Values, Values)>,
}

impl Line {
    pub(crate) fn new(name: &str, tone: Tone, values: Values) -> Line {
        Line {
            name: name.to_owned(),
            tone,
            dash: Dash::None,
            values,
            thin: false,
            area: false,
            dots: Dots::None,
            hollow: Vec::new(),
            band: None,
        }
    }

    pub(crate) fn dashed(self, dash: Dash) -> Line {
        Line { dash, ..self }
    }

    pub(crate) fn thin(self) -> Line {
        Line { thin: true, ..self }
    }

    pub(crate) fn filled(self) -> Line {
        Line { area: true, ..self }
    }

    pub(crate) fn dotted(self, dots: Dots) -> Line {
        Line { dots, ..self }
    }

    /// Returns every figure that must fit into the chart; for a wide interval, part of it.
    fn figures(&self) -> impl Iterator<Item = f64> {
        let figures = || self.values.iter().chain(&self.hollow).copied().flatten();
        let most = figures().fold(0.0, f64::max) * BAND_MAX;
        let band = self.band.iter().flat_map(|(_, high)| high).copied().flatten();
        figures().chain(band.map(move |high| high.min(most)))
    }
}

/// A part of the horizontal axis that is marked from top to bottom, such as a knee's interval.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) name: String,
    pub(crate) tone: Tone,
    /// Position of a line, if any.
    pub(crate) at: Option<f64>,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Cells of a heat map: a column for each position, with the non-empty classes of [`stats::Spread`]
/// and their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    /// Width of a column, in the unit of the horizontal axis; the position is its middle.
    pub(crate) width: f64,
    pub(crate) columns: Vec<Vec<(usize, u64)>>,
}

impl Cells {
    pub(crate) fn most(&self) -> u64 {
        self.columns.iter().flatten().map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// Returns the lower end of the lowest class in use and the upper end of the highest, in
    /// seconds.
    pub(crate) fn ends_s(&self) -> (f64, f64) {
        let classes = || self.columns.iter().flatten().map(|(class, _)| *class);
        let low = classes().min().unwrap_or(0);
        let high = classes().max().unwrap_or(0);
        (stats::Spread::ends_s(low).0, stats::Spread::ends_s(high).1)
    }

    /// Returns the shade from 1, a single call, to [`SHADES`], the most calls in a cell;
    /// logarithmic, so that one slow call among thousands of fast ones is visible.
    pub(crate) fn shade(count: u64, most: u64) -> usize {
        let part = (count as f64 + 1.0).ln() / (most as f64 + 1.0).ln();
        ((part * SHADES as f64).ceil() as usize).clamp(1, SHADES)
    }
}

pub(crate) const SHADES: usize = 7;

#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Id, unique in the page.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Alternative text.
    pub(crate) words: String,
    pub(crate) x: Horizontal,
    pub(crate) y: AxisUnit,
    pub(crate) log: bool,
    /// The positions, in ascending order.
    pub(crate) at: Vec<f64>,
    pub(crate) lines: Vec<Line>,
    pub(crate) ranges: Vec<Range>,
    /// Name of the ranges next to the cursor; they are then named in the drawing and not in the
    /// key.
    pub(crate) under: Option<&'static str>,
    pub(crate) cells: Option<Cells>,
    /// The lines are parts of a whole, drawn as stacked columns of this width.
    pub(crate) stack: Option<f64>,
    /// The vertical axis extends at least to this.
    pub(crate) top: f64,
}

impl Chart {
    pub(crate) fn new(id: &str, title: &str, x: Horizontal, y: AxisUnit) -> Chart {
        Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            words: title.to_owned(),
            x,
            y,
            log: false,
            at: Vec::new(),
            lines: Vec::new(),
            ranges: Vec::new(),
            under: None,
            cells: None,
            stack: None,
            top: 0.0,
        }
    }

    pub(crate) fn with_places(self, at: Vec<f64>) -> Chart {
        Chart { at, ..self }
    }

    /// Returns every figure that the vertical axis must include.
    pub(crate) fn figures(&self) -> Vec<f64> {
        let lines = self.lines.iter().flat_map(Line::figures);
        let lines: Vec<f64> = match self.stack {
            Some(_) => (0..self.at.len()).map(|place| self.sum(place)).collect(),
            None => lines.collect(),
        };
        let cells = self.cells.iter().flat_map(|cells| <[f64; 2]>::from(cells.ends_s()));
        lines
            .into_iter()
            .chain(cells)
            .chain([self.top])
            .filter(|figure| figure.is_finite())
            .collect()
    }

    /// Returns the sum of all parts of a stack at one position.
    fn sum(&self, place: usize) -> f64 {
        self.lines.iter().filter_map(|line| *line.values.get(place)?).sum()
    }

    /// Returns the data for the script.
    pub(crate) fn data(&self) -> Value {
        let line = |line: &Line| {
            json!({
                "name": line.name, "tone": line.tone, "dash": line.dash, "thin": line.thin,
                "area": line.area, "dots": line.dots, "values": row(&line.values),
                "hollow": row(&line.hollow),
                "low": line.band.as_ref().map(|(low, _)| row(low)),
                "high": line.band.as_ref().map(|(_, high)| row(high)),
            })
        };
        let range = |range: &Range| {
            json!({
                "name": range.name, "tone": range.tone, "at": range.at,
                "low": finite(range.low), "high": finite(range.high),
            })
        };
        let at: Values = self.at.iter().copied().map(Some).collect();
        json!({
            "id": self.id, "title": self.title, "x": self.x, "y": self.y, "log": self.log,
            "top": self.top, "bandMax": BAND_MAX, "at": row(&at),
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
            "ranges": self.ranges.iter().map(range).collect::<Vec<_>>(),
            "under": self.under,
            "cells": self.cells.as_ref().map(cells), "stack": self.stack,
        })
    }
}

/// Returns the columns as flat lists: class, count, class, count.
fn cells(cells: &Cells) -> Value {
    let column = |column: &Vec<(usize, u64)>| -> Vec<u64> {
        column.iter().flat_map(|(class, count)| [*class as u64, *count]).collect()
    };
    let ends: Vec<f64> =
        (0..=stats::SPREAD_CLASSES).map(|class| digits(stats::Spread::ends_s(class).0)).collect();
    json!({
        "width": cells.width, "most": cells.most(), "shades": SHADES, "ends": ends,
        "columns": cells.columns.iter().map(column).collect::<Vec<_>>(),
    })
}

fn row(values: &[Option<f64>]) -> Values {
    values.iter().map(|value| value.and_then(finite)).collect()
}

/// Converts a missing end, such as that of a capacity that was never missed, to null.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then(|| digits(value))
}

/// Rounds to six significant digits: finer is invisible and only makes the page longer.
fn digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
