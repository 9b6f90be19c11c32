//! Steady state: whether the measurement is uniform or changed over time.

use crate::Second;
use crate::interval::middle;
use statrs::distribution::{ContinuousCDF, Normal};
use units::Nanos;

/// Minimum number of rows of the time series for detecting a drift.
pub const DRIFT_ROWS_MIN: usize = 8;
/// Smallest change, from the first to the last third, that counts as drift.
pub const DRIFT_CHANGE_MIN: f64 = 0.10;
/// Largest p-value of the trend that counts as drift.
pub const DRIFT_P_MAX: f64 = 0.01;
/// Longer series are averaged into at most this many rows: the test compares every pair of rows.
const DRIFT_ROWS_MAX: usize = 500;

/// A change that ran through the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    pub figure: Drifting,
    /// Median over the first and over the last third of the rows: seconds, or per second.
    pub first: f64,
    pub last: f64,
    /// p-value of the Mann-Kendall test.
    pub p_value: f64,
    /// Number of rows in the test.
    pub rows: usize,
}

/// Figure that drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drifting {
    ResponseP50,
    Throughput,
}

impl Drift {
    /// Returns last / first − 1.
    pub fn change(&self) -> f64 {
        self.last / self.first - 1.0
    }
}

/// Applies the drift test: over the rows of the measured window, the median response time or the
/// throughput has a monotonic trend (Mann-Kendall, p ≤ [`DRIFT_P_MAX`]) and changed by at least
/// [`DRIFT_CHANGE_MIN`] from the first third of the rows to the last. Both conditions are needed:
/// in a long run a negligible trend is significant, and in a short one chance makes large changes.
/// Returns the larger change if both figures drift; `None` also for fewer than [`DRIFT_ROWS_MIN`]
/// rows.
///
/// Rows of the warm-up, rows that reach past the end of the `window` and rows shorter than half the
/// longest row are excluded. Not for a load that changes by plan.
pub fn drift(series: &[Second], window: Nanos) -> Option<Drift> {
    let longest = series.iter().map(|row| row.span_s).fold(0.0, f64::max);
    // Rows end where the interval's timer fell, which is a little off the exact end.
    let end_s = window.as_secs_f64() + 0.25 * longest;
    let rows = series.iter().filter(|row| {
        let inside = !row.warm_up && row.at_s >= 0.0 && row.at_s + row.span_s <= end_s;
        inside && row.span_s > 0.0 && row.span_s >= 0.5 * longest
    });
    let rows: Vec<&Second> = rows.collect();
    let p50s = rows.iter().filter(|row| row.p50 > Nanos::ZERO).map(|row| row.p50.as_secs_f64());
    let throughputs = rows.iter().map(|row| row.counts.done() as f64 / row.span_s);
    let found = [
        drift_of(Drifting::ResponseP50, p50s.collect()),
        drift_of(Drifting::Throughput, throughputs.collect()),
    ];
    found.into_iter().flatten().max_by(|a, b| a.change().abs().total_cmp(&b.change().abs()))
}

fn drift_of(figure: Drifting, values: Vec<f64>) -> Option<Drift> {
    let values = shortened(values);
    let rows = values.len();
    if rows < DRIFT_ROWS_MIN {
        return None;
    }
    let third = rows / 3;
    let (first, last) = (median_of(&values[..third]), median_of(&values[rows - third..]));
    let p_value = mann_kendall(&values)?.p_value;
    let drift = Drift { figure, first, last, p_value, rows };
    let drifts = first > 0.0 && drift.change().abs() >= DRIFT_CHANGE_MIN && p_value <= DRIFT_P_MAX;
    drifts.then_some(drift)
}

/// Means of neighboring rows, so that at most [`DRIFT_ROWS_MAX`] are left.
fn shortened(values: Vec<f64>) -> Vec<f64> {
    let batch = values.len().div_ceil(DRIFT_ROWS_MAX).max(1);
    values.chunks(batch).map(|rows| rows.iter().sum::<f64>() / rows.len() as f64).collect()
}

fn median_of(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

/// Result of the Mann-Kendall test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Pairs that rise minus pairs that fall.
    pub score: i64,
    /// Two-sided probability of a score this far from 0 without a trend.
    pub p_value: f64,
}

/// Computes the Mann-Kendall test for a monotonic trend (Mann, Econometrica 13, 1945; Kendall, Rank
/// Correlation Methods, 1975), by the normal approximation with corrections for continuity and for
/// ties. `None` for fewer than three values, all equal values, or values that are not finite.
/// Compares every pair: the caller bounds the length.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    if values.len() < 3 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut score = 0_i64;
    for (index, early) in values.iter().enumerate() {
        for late in &values[index + 1..] {
            score += i64::from(late > early) - i64::from(late < early);
        }
    }
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a >= b).map(|tied| spread(tied.len() as f64)).sum();
    let variance = (spread(values.len() as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return None;
    }
    let z = (score.unsigned_abs().saturating_sub(1)) as f64 / variance.sqrt();
    let p_value = (2.0 * Normal::new(0.0, 1.0).ok()?.sf(z)).min(1.0);
    Some(Trend { score, p_value })
}

/// Returns the Theil-Sen estimate of a slope (Theil, Indagationes Mathematicae 12, 1950; Sen,
/// Journal of the American Statistical Association 63, 1968): the median of the slopes between all
/// pairs of points `(x, y)` with different x, in units of y per unit of x. `None` without such a
/// pair, or if a value is not finite. Examines every pair: the caller limits their number.
pub fn theil_sen(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let later = points[index + 1..].iter().filter(|(other, _)| (other - x).abs() > 0.0);
        slopes.extend(later.map(|(other, value)| (value - y) / (other - x)));
    }
    let finite = !slopes.is_empty() && slopes.iter().all(|slope: &f64| slope.is_finite());
    finite.then(|| median_of(&slopes))
}

#[cfg(test)]
mod tests;
