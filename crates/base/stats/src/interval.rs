//! Intervals of estimates: how much a figure may differ from the result of many more repeats.
//!
//! All are two-sided at [`CONFIDENCE`]. Single calls of one run depend on each other; intervals
//! across runs are computed from one figure per run, never from pooled calls.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};
use units::Stream;

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Probability beyond each end of an interval.
pub(crate) const TAIL: f64 = 0.025;

/// Most resamples of a bootstrap.
pub const RESAMPLES_MAX: u32 = 100_000;

/// An estimate with its interval, at [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// Number of observations.
    pub count: usize,
    pub method: Method,
}

/// Method by which an interval was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    StudentT,
    OrderStatistics,
    Bootstrap,
}

impl Method {
    pub const ALL: [Method; 3] = [Method::StudentT, Method::OrderStatistics, Method::Bootstrap];

    pub fn id(self) -> &'static str {
        match self {
            Method::StudentT => "student-t",
            Method::OrderStatistics => "order-statistics",
            Method::Bootstrap => "bootstrap",
        }
    }
}

/// Returns the mean and standard deviation (n − 1) of the values, in two passes over deviations
/// from the first value: one-pass sums of squares lose all digits if the mean is large relative to
/// the spread. `None` without values; the deviation of one value is 0.
pub fn mean_and_stdev(values: &[f64]) -> Option<(f64, f64)> {
    let first = *values.first()?;
    let n = values.len() as f64;
    let offset = values.iter().map(|value| value - first).sum::<f64>() / n;
    let squares = |shift: f64| move |value: &f64| (value - first - shift).powi(2);
    let sum: f64 = values.iter().map(squares(offset)).sum();
    let stdev = if values.len() > 1 { (sum / (n - 1.0)).sqrt() } else { 0.0 };
    Some((first + offset, stdev))
}

/// Returns the interval of a mean by Student's t: mean ± t(n−1)·s/√n. `None` for fewer than two
/// values or values that are not finite.
pub fn t_mean(values: &[f64]) -> Option<Estimate> {
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let (mean, stdev) = mean_and_stdev(values)?;
    let half = student_t(values.len() as u64 - 1) * stdev / (values.len() as f64).sqrt();
    Some(Estimate {
        value: mean,
        low: mean - half,
        high: mean + half,
        count: values.len(),
        method: Method::StudentT,
    })
}

/// Returns the quantile of Student's t that leaves 2.5 % above it, for one degree of freedom or
/// more.
pub fn student_t(freedom: u64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom.max(1) as f64).expect("freedom of one or more");
    student.inverse_cdf(1.0 - TAIL)
}

/// Returns the smallest number of observations whose maximum bounds quantile `q` from above with
/// 97.5 %: ⌈ln 0.025 / ln q⌉, since all n lie below it with probability qⁿ. With fewer, a printed
/// quantile is a guess. 1 for 0, 1 and invalid quantiles.
pub fn samples_needed(q: f64) -> u64 {
    if !(q > 0.0 && q < 1.0) {
        return 1;
    }
    (TAIL.ln() / q.ln()).ceil().max(1.0) as u64
}

/// Returns the median and its interval from the exact binomial ranks. `None` below six values, for
/// which no finite interval of this confidence exists, or if one is not finite.
pub fn median(values: &[f64]) -> Option<Estimate> {
    if values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let ranks = MedianRanks::for_runs(values.len())?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Estimate {
        value: middle(&sorted),
        low: sorted[ranks.lower - 1],
        high: sorted[ranks.upper - 1],
        count: values.len(),
        method: Method::OrderStatistics,
    })
}

/// Ranks (from 1) of the order statistics that enclose the median of `n` values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianRanks {
    pub lower: usize,
    pub upper: usize,
    /// Probability that the ends contain the true value; at least [`CONFIDENCE`].
    pub coverage: f64,
}

impl MedianRanks {
    /// Returns the narrowest symmetric pair: the number of values below the median is binomial(n,
    /// 1/2). `None` below six values.
    pub fn for_runs(n: usize) -> Option<MedianRanks> {
        let below = Binomial::new(0.5, n as u64).ok()?;
        if n == 0 || below.cdf(0) > TAIL {
            return None;
        }
        // The largest k with P(fewer than k below) within the tail.
        let (mut low, mut high) = (1, n as u64 / 2 + 1);
        while high - low > 1 {
            let k = low.midpoint(high);
            if below.cdf(k - 1) <= TAIL { low = k } else { high = k }
        }
        let lower = low as usize;
        let coverage = 1.0 - 2.0 * below.cdf(low - 1);
        Some(MedianRanks { lower, upper: n + 1 - lower, coverage })
    }
}

/// Returns the percentile interval of any statistic (Efron, Annals of Statistics 7, 1979): the
/// statistic of `resamples` (at most [`RESAMPLES_MAX`]) samples drawn with replacement, cut at both
/// tails. `None` for fewer than two values, fewer than 40 resamples (whose tails are empty), or a
/// statistic that is not finite.
pub fn bootstrap(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    resamples: u32,
    stream: &mut Stream,
) -> Option<Estimate> {
    let resamples = resamples.min(RESAMPLES_MAX) as usize;
    if values.len() < 2 || resamples < 40 {
        return None;
    }
    let mut drawn = vec![0.0; values.len()];
    let mut found = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for slot in &mut drawn {
            *slot = values[stream.below(values.len() as u64) as usize];
        }
        found.push(statistic(&drawn));
    }
    let value = statistic(values);
    if !value.is_finite() || found.iter().any(|one| !one.is_finite()) {
        return None;
    }
    found.sort_by(f64::total_cmp);
    let cut = (TAIL * resamples as f64).floor() as usize;
    Some(Estimate {
        value,
        low: found[cut],
        high: found[resamples - 1 - cut],
        count: values.len(),
        method: Method::Bootstrap,
    })
}

/// Returns the median of sorted values; NaN without values.
pub(crate) fn middle(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    match n {
        0 => f64::NAN,
        _ if n % 2 == 1 => sorted[n / 2],
        _ => 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests;
