//! A histogram of times: HdrHistogram, three significant digits from 1 µs to one hour.

use hdrhistogram::Histogram;
use units::Nanos;

/// Times in nanoseconds, to three significant digits; what is longer than an hour counts as an
/// hour. Zeros are counted apart, because most slips and transfers are zero and the hot path should
/// not pay for them. Memory is taken on the first recording above zero.
#[derive(Clone, Debug, Default)]
pub struct Hist {
    zeros: u64,
    above: Option<Box<Histogram<u64>>>,
}

/// Lowest discernible and highest trackable value, in nanoseconds.
const LOW: u64 = 1_000;
const HIGH: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

impl Hist {
    pub fn new() -> Hist {
        Hist::default()
    }

    /// Takes its memory now, so that recording allocates nothing.
    pub fn prepared() -> Hist {
        Hist { zeros: 0, above: Some(empty()) }
    }

    #[inline]
    pub fn record(&mut self, value: Nanos) {
        if value.is_zero() {
            self.zeros += 1;
        } else {
            self.above.get_or_insert_with(empty).saturating_record(value.0);
        }
    }

    pub fn record_n(&mut self, value: Nanos, count: u64) {
        if value.is_zero() {
            self.zeros += count;
        } else if count > 0 {
            self.above.get_or_insert_with(empty).saturating_record_n(value.0, count);
        }
    }

    /// Adds another histogram's counts; associative and commutative.
    pub fn merge(&mut self, other: &Hist) {
        self.zeros += other.zeros;
        if let Some(theirs) = other.above.as_deref().filter(|theirs| !theirs.is_empty()) {
            let mine = self.above.get_or_insert_with(empty);
            mine.add(theirs).expect("all histograms have the same bounds");
        }
    }

    /// Forgets the counts and keeps the memory.
    pub fn clear(&mut self) {
        self.zeros = 0;
        if let Some(above) = self.above.as_deref_mut().filter(|above| !above.is_empty()) {
            above.reset();
        }
    }

    pub fn count(&self) -> u64 {
        self.zeros + self.above.as_ref().map_or(0, |above| above.len())
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The value at or below which a share `q` (0..=1) of the recordings lies: the highest value
    /// equivalent to the one of rank ceil(q·n). Zero when nothing was recorded.
    pub fn quantile(&self, q: f64) -> Nanos {
        let Some(above) = self.above.as_deref().filter(|above| !above.is_empty()) else {
            return Nanos::ZERO;
        };
        let total = self.count();
        // q and the product are rounded: 0.55 · 100 is 55.00000000000001, whose rank is still 55.
        let exact = q.clamp(0.0, 1.0) * total as f64 * (1.0 - 2.0 * f64::EPSILON);
        let rank = (exact.ceil() as u64).clamp(1, total);
        if rank <= self.zeros {
            return Nanos::ZERO;
        }
        // Half a rank lower, for the same reason: the histogram rounds up to the rank again.
        let q_above = ((rank - self.zeros) as f64 - 0.5) / above.len() as f64;
        Nanos(above.value_at_quantile(q_above).min(above.max()))
    }

    pub fn mean(&self) -> Nanos {
        let Some(above) = self.above.as_deref().filter(|above| !above.is_empty()) else {
            return Nanos::ZERO;
        };
        Nanos((above.mean() * above.len() as f64 / self.count() as f64).round() as u64)
    }

    pub fn max(&self) -> Nanos {
        Nanos(self.above.as_ref().filter(|above| !above.is_empty()).map_or(0, |above| above.max()))
    }

    pub fn min(&self) -> Nanos {
        if self.zeros > 0 {
            return Nanos::ZERO;
        }
        Nanos(self.above.as_ref().filter(|above| !above.is_empty()).map_or(0, |above| above.min()))
    }

    /// Population standard deviation, from bucket midpoints.
    pub fn stdev(&self) -> Nanos {
        let (mean, total) = (self.mean().0 as f64, self.count() as f64);
        let Some(above) = self.above.as_deref().filter(|above| !above.is_empty()) else {
            return Nanos::ZERO;
        };
        let squares: f64 = above
            .iter_recorded()
            .map(|step| {
                let value = above.median_equivalent(step.value_iterated_to()) as f64;
                (value - mean).powi(2) * step.count_since_last_iteration() as f64
            })
            .sum();
        Nanos(((squares + mean * mean * self.zeros as f64) / total).sqrt().round() as u64)
    }

    /// How many recordings are at or below `value` (to the histogram's resolution).
    pub fn count_at_or_below(&self, value: Nanos) -> u64 {
        let above = self.above.as_deref().filter(|above| !above.is_empty());
        self.zeros + above.map_or(0, |above| above.count_between(0, value.0.min(HIGH)))
    }

    /// [`Hist::count_at_or_below`] for many values: each costs a binary search in place of a walk over
    /// all buckets.
    pub fn cumulative(&self) -> Cumulative {
        let mut count = self.zeros;
        let mut rows = vec![(Nanos::ZERO, count)];
        if let Some(above) = self.above.as_deref() {
            for step in above.iter_recorded() {
                count += step.count_since_last_iteration();
                rows.push((Nanos(above.lowest_equivalent(step.value_iterated_to())), count));
            }
        }
        Cumulative(rows)
    }

    /// Every recorded bucket as (highest equivalent value, count), in order; zeros first.
    pub fn buckets(&self) -> Vec<(Nanos, u64)> {
        let mut out = Vec::new();
        if self.zeros > 0 {
            out.push((Nanos::ZERO, self.zeros));
        }
        if let Some(above) = self.above.as_deref() {
            let steps = above.iter_recorded();
            out.extend(
                steps.map(|s| (Nanos(s.value_iterated_to()), s.count_since_last_iteration())),
            );
        }
        out
    }

    /// From counts by value, as [`Hist::buckets`] gives them: the same histogram again.
    pub fn from_buckets(buckets: impl IntoIterator<Item = (Nanos, u64)>) -> Hist {
        let mut hist = Hist::new();
        buckets.into_iter().for_each(|(value, count)| hist.record_n(value, count));
        hist
    }

    /// How many recordings are of zero, and what the others are counted in; `None` when there are no
    /// others.
    pub fn parts(&self) -> (u64, Option<&Histogram<u64>>) {
        (self.zeros, self.above.as_deref().filter(|above| !above.is_empty()))
    }

    /// From what [`Hist::parts`] gives.
    ///
    /// # Errors
    /// A histogram of other bounds or another precision.
    pub fn from_parts(zeros: u64, above: Option<Histogram<u64>>) -> Result<Hist, String> {
        let fits = |above: &Histogram<u64>| {
            (above.low(), above.high(), above.sigfig()) == (LOW, HIGH, SIGNIFICANT_DIGITS)
        };
        match above {
            Some(above) if !fits(&above) => Err(format!(
                "a histogram from {} to {} ns with {} digits, in place of {LOW} to {HIGH} with \
                 {SIGNIFICANT_DIGITS}",
                above.low(),
                above.high(),
                above.sigfig()
            )),
            above => Ok(Hist { zeros, above: above.map(Box::new) }),
        }
    }

    /// The same counts as a plain HdrHistogram (zeros included), for the public file formats.
    pub fn to_hdr(&self) -> Histogram<u64> {
        let mut all = self.above.as_deref().cloned().unwrap_or_else(|| *empty());
        all.saturating_record_n(0, self.zeros);
        all
    }

    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count(),
            mean: self.mean(),
            stdev: self.stdev(),
            min: self.min(),
            p50: self.quantile(0.5),
            p75: self.quantile(0.75),
            p90: self.quantile(0.9),
            p95: self.quantile(0.95),
            p99: self.quantile(0.99),
            p99_9: self.quantile(0.999),
            max: self.max(),
        }
    }
}

/// How many recordings of a histogram are at or below a value; made by [`Hist::cumulative`].
/// Of the zeros and each recorded bucket the lowest value, and the recordings up to there.
#[derive(Clone, Debug)]
pub struct Cumulative(Vec<(Nanos, u64)>);

impl Cumulative {
    /// As [`Hist::count_at_or_below`] of the histogram.
    pub fn count_at_or_below(&self, value: Nanos) -> u64 {
        // the first row's is never above it
        let below = self.0.partition_point(|(lowest, _)| *lowest <= value);
        self.0[below - 1].1
    }
}

/// The usual figures of one histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub count: u64,
    pub mean: Nanos,
    pub stdev: Nanos,
    pub min: Nanos,
    pub p50: Nanos,
    pub p75: Nanos,
    pub p90: Nanos,
    pub p95: Nanos,
    pub p99: Nanos,
    pub p99_9: Nanos,
    pub max: Nanos,
}

fn empty() -> Box<Histogram<u64>> {
    let made = Histogram::new_with_bounds(LOW, HIGH, SIGNIFICANT_DIGITS);
    Box::new(made.expect("the bounds are constants that fit"))
}

#[cfg(test)]
mod tests;
