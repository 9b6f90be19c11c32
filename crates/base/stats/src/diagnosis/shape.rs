//! Shapes of histograms and series that the rules search for.

use crate::Hist;
use units::Nanos;

/// Returns the number of recordings above `low`, up to `high`.
pub(crate) fn between(hist: &Hist, low: Nanos, high: Nanos) -> u64 {
    hist.count_at_or_below(high).saturating_sub(hist.count_at_or_below(low))
}

/// A narrow crowd of recordings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cluster {
    pub(crate) count: u64,
    /// Recordings around it: within twice its width on either side.
    pub(crate) beside: u64,
}

/// Returns the recordings between `low` and `high`, and those close to them on either side.
pub(crate) fn line(hist: &Hist, low: Nanos, high: Nanos) -> Cluster {
    let width = high - low;
    let reach = Nanos(width.0 * 2);
    Cluster {
        count: between(hist, low, high),
        beside: between(hist, low - reach, low) + between(hist, high, high + reach),
    }
}

impl Cluster {
    /// Returns whether a count is at least `count`, and four times the surrounding ones, over four
    /// times the width.
    pub(crate) fn is_peak(&self, count: u64) -> bool {
        self.count >= count.max(1) && self.beside * 4 <= self.count
    }
}

/// Returns the share of `count` in `of`; 0 if `of` is 0.
pub(crate) fn ratio(count: f64, of: f64) -> f64 {
    if of > 0.0 { count / of } else { 0.0 }
}

/// Returns the standard deviation over mean; infinite for fewer than two values or a mean of 0.
pub(crate) fn variation(values: &[f64]) -> f64 {
    let mean = mean(values);
    if values.len() < 2 || mean <= 0.0 {
        return f64::INFINITY;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt() / mean
}

/// Returns the mean; 0 without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    ratio(values.iter().sum(), values.len() as f64)
}

/// Returns the median; 0 without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() { 0.0 } else { crate::interval::middle(&sorted) }
}

/// Mantissas of round figures.
const ROUND: &[f64] = &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0, 10.0];

/// Returns the round figure within `tolerance` (a share) of `value`, if any.
pub(crate) fn round(value: f64, tolerance: f64) -> Option<f64> {
    if !(value.is_finite() && value > 0.0) {
        return None;
    }
    let scale = 10f64.powf(value.log10().floor());
    let near = ROUND.iter().map(|mantissa| mantissa * scale);
    near.filter(|figure| (value / figure - 1.0).abs() <= tolerance)
        .min_by(|a, b| (value / a - 1.0).abs().total_cmp(&(value / b - 1.0).abs()))
}
