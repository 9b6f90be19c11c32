//! Scales, ticks and the frame of a chart.

use maud::{Markup, html};

/// The drawing area of every chart, in units of its view box.
pub(crate) const WIDTH: f64 = 640.0;
pub(crate) const LEFT: f64 = 66.0;
pub(crate) const RIGHT: f64 = 628.0;
pub(crate) const TOP: f64 = 10.0;
pub(crate) const BOTTOM: f64 = 210.0;
pub(crate) const HEIGHT: f64 = 236.0;

/// Maps figures to positions, linearly or logarithmically.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    /// Positions of low and high.
    at: (f64, f64),
    log: bool,
}

impl Scale {
    /// Returns an axis from 0 to a round number at or above `high`.
    pub(crate) fn from_zero(high: f64, at: (f64, f64)) -> Scale {
        let high = if high > 0.0 { high } else { 1.0 };
        let step = round_step(high);
        Scale { low: 0.0, high: (high / step).ceil() * step, at, log: false }
    }

    /// Returns an axis exactly from `low` to `high`.
    pub(crate) fn exact(low: f64, high: f64, at: (f64, f64)) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, at, log: false }
    }

    /// Returns a logarithmic axis, from at or below the smallest to at or above the largest
    /// positive figure, on the marks 1, 2 and 5 of a decade.
    pub(crate) fn log(figures: impl Iterator<Item = f64>, at: (f64, f64)) -> Scale {
        let positive = figures.filter(|figure| *figure > 0.0 && figure.is_finite());
        let ends = positive.fold(None, |ends: Option<(f64, f64)>, figure| {
            let (low, high) = ends.unwrap_or((figure, figure));
            Some((low.min(figure), high.max(figure)))
        });
        let (low, high) = ends.unwrap_or((1e-3, 1e-2));
        let low = marks(low / 10.0, low).pop().unwrap_or(low);
        let high = marks(high, high * 10.0).first().copied().unwrap_or(high);
        let high = if high > low { high } else { low * 2.0 };
        Scale { low, high, at, log: true }
    }

    /// Returns the position of a figure; values outside are drawn at the edge.
    pub(crate) fn place(&self, figure: f64) -> f64 {
        let of = |value: f64| if self.log { value.max(1e-12).ln() } else { value };
        let (low, high) = (of(self.low), of(self.high));
        let part = ((of(figure) - low) / (high - low)).clamp(0.0, 1.0);
        self.at.0 + part * (self.at.1 - self.at.0)
    }

    pub(crate) fn ticks(&self) -> Vec<f64> {
        if !self.log {
            let step = round_step(self.high - self.low);
            let first = (self.low / step - 1e-9).ceil() as i64;
            let last = (self.high / step + 1e-9).floor() as i64;
            return (first..=last).map(|n| n as f64 * step).collect();
        }
        let all = marks(self.low, self.high);
        if all.len() <= 8 {
            return all;
        }
        all.into_iter().filter(|mark| (mark.log10() - mark.log10().round()).abs() < 1e-6).collect()
    }
}

/// Returns 1, 2 or 5 times a power of ten, so that the span has 3 to 7 steps.
fn round_step(span: f64) -> f64 {
    let rough = span / 5.0;
    let decade = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * decade >= rough * 0.999);
    step.unwrap_or(10.0) * decade
}

/// Returns 1, 2 and 5 of every decade from `low` to `high`.
fn marks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let all = (first..=last).flat_map(|decade| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(decade)));
    all.filter(|mark| *mark >= low * 0.999_999 && *mark <= high * 1.000_001).collect()
}

/// Returns the lines and labels of the vertical axis.
pub(crate) fn left_axis(scale: &Scale, label: &dyn Fn(f64) -> String) -> Markup {
    html! {
        @for tick in scale.ticks() {
            @let y = coordinate(scale.place(tick));
            line class="grid" x1=(coordinate(LEFT)) x2=(coordinate(RIGHT)) y1=(y) y2=(y) {}
            text x=(coordinate(LEFT - 8.0)) y=(y) dy="4" text-anchor="end" { (label(tick)) }
        }
    }
}

/// Labels of the horizontal axis; the first and the last are kept inside the frame.
pub(crate) fn bottom_axis(scale: &Scale, ticks: &[f64], label: &dyn Fn(f64) -> String) -> Markup {
    html! {
        line class="axis" x1=(coordinate(LEFT)) x2=(coordinate(RIGHT))
            y1=(coordinate(BOTTOM)) y2=(coordinate(BOTTOM)) {}
        @for tick in ticks {
            @let x = scale.place(*tick);
            @let anchor = if x > RIGHT - 14.0 { "end" } else { "middle" };
            line class="axis" x1=(coordinate(x)) x2=(coordinate(x))
                y1=(coordinate(BOTTOM)) y2=(coordinate(BOTTOM + 5.0)) {}
            text x=(coordinate(x)) y=(coordinate(BOTTOM + 19.0)) text-anchor=(anchor) {
                (label(*tick))
            }
        }
    }
}

/// Renders a path through the points; `None` interrupts it.
pub(crate) fn path(points: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    let mut path = String::new();
    let mut command = 'M';
    for point in points {
        command = match point {
            Some((x, y)) => {
                path.push_str(&format!("{command}{} {}", coordinate(x), coordinate(y)));
                'L'
            }
            None => 'M',
        };
    }
    path
}

/// Rounds to a tenth of a unit: finer is invisible and only makes the page longer.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
