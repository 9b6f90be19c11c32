//! A histogram of times: HdrHistogram, three significant digits from 1 µs to one hour.

mod buckets;

use buckets::{BUCKETS, BucketCounts, HIGH, LOW, SIGNIFICANT_DIGITS, ends};
use hdrhistogram::Histogram;
use units::Nanos;

/// Times in nanoseconds, to three significant digits; longer than an hour counts as an hour. Zeros
/// are counted separately, because most slips and transfers are zero and should cost nothing on the
/// hot path. Memory is allocated on the first recording above zero.
#[derive(Clone, Debug, Default)]
pub struct Hist {
    zeros: u64,
    above: Option<BucketCounts>,
}

impl Hist {
    pub fn new() -> Hist {
        Hist::default()
    }

    /// Allocates its memory now, so that recording does not.
    pub fn prepared() -> Hist {
        Hist { zeros: 0, above: Some(BucketCounts::new()) }
    }

    #[inline(always)]
    pub fn record(&mut self, value: Nanos) {
        if value.is_zero() {
            self.zeros += 1;
        } else {
            self.above.get_or_insert_with(BucketCounts::new).record(value.0);
        }
    }

    pub fn record_n(&mut self, value: Nanos, count: u64) {
        if value.is_zero() {
            self.zeros += count;
        } else if count > 0 {
            self.above.get_or_insert_with(BucketCounts::new).record_n(value.0, count);
        }
    }

    /// Adds another histogram's counts; associative and commutative.
    pub fn merge(&mut self, other: &Hist) {
        self.zeros += other.zeros;
        if let Some(theirs) = other.filled() {
            self.above.get_or_insert_with(BucketCounts::new).merge(theirs);
        }
    }

    /// Clears the counts and keeps the memory.
    pub fn clear(&mut self) {
        self.zeros = 0;
        if let Some(above) = self.above.as_mut().filter(|above| !above.is_empty()) {
            above.clear();
        }
    }

    /// Clears the histogram and moves it out, with its memory.
    pub(crate) fn take_cleared(&mut self) -> Hist {
        self.clear();
        std::mem::take(self)
    }

    /// Returns the range of buckets with recordings above zero, if any.
    fn filled(&self) -> Option<&BucketCounts> {
        self.above.as_ref().filter(|above| !above.is_empty())
    }

    pub fn count(&self) -> u64 {
        self.zeros + self.above.as_ref().map_or(0, BucketCounts::total)
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns the value at or below which a share `q` (0..=1) of the recordings lies: the highest
    /// value equivalent to that of rank ceil(q·n). Zero without recordings.
    pub fn quantile(&self, q: f64) -> Nanos {
        let Some(above) = self.filled() else { return Nanos::ZERO };
        let total = self.count();
        // q and the product are rounded: 0.55 · 100 is 55.00000000000001, whose rank is still 55.
        let exact = q.clamp(0.0, 1.0) * total as f64 * (1.0 - 2.0 * f64::EPSILON);
        let rank = (exact.ceil() as u64).clamp(1, total);
        if rank <= self.zeros {
            return Nanos::ZERO;
        }
        Nanos(ends(above.at_rank(rank - self.zeros)).1)
    }

    pub fn mean(&self) -> Nanos {
        let Some(above) = self.filled() else { return Nanos::ZERO };
        Nanos((above.mean() * above.total() as f64 / self.count() as f64).round() as u64)
    }

    pub fn max(&self) -> Nanos {
        Nanos(self.extremes().map_or(0, |(_, highest)| highest))
    }

    pub fn min(&self) -> Nanos {
        if self.zeros > 0 {
            return Nanos::ZERO;
        }
        Nanos(self.extremes().map_or(0, |(lowest, _)| lowest))
    }

    /// Returns the extremes of recordings above zero.
    fn extremes(&self) -> Option<(u64, u64)> {
        self.above.as_ref()?.extremes()
    }

    /// Returns the population standard deviation, from bucket midpoints.
    pub fn stdev(&self) -> Nanos {
        let (mean, total) = (self.mean().0 as f64, self.count() as f64);
        let Some(above) = self.filled() else { return Nanos::ZERO };
        let squares = above.squares(mean);
        Nanos(((squares + mean * mean * self.zeros as f64) / total).sqrt().round() as u64)
    }

    /// Returns the number of recordings at or below `value` (to the histogram's resolution).
    pub fn count_at_or_below(&self, value: Nanos) -> u64 {
        self.zeros + self.filled().map_or(0, |above| above.up_to(value.0))
    }

    /// Returns [`Hist::count_at_or_below`] for many values: each costs a binary search instead of a
    /// walk over all buckets.
    pub fn cumulative(&self) -> Cumulative {
        let mut count = self.zeros;
        let mut rows = vec![(Nanos::ZERO, count)];
        for (row, more) in self.above.iter().flat_map(BucketCounts::rows) {
            count += more;
            rows.push((Nanos(ends(row).0), count));
        }
        Cumulative(rows)
    }

    /// Number of buckets above zero.
    pub const ROWS: usize = BUCKETS;

    /// Returns the number of zeros, and number and count of each non-empty bucket above zero.
    pub fn rows(&self) -> (u64, impl Iterator<Item = (usize, u64)>) {
        (self.zeros, self.above.iter().flat_map(BucketCounts::rows))
    }

    /// Adds to the count of a bucket; beyond the last one, to the last.
    pub fn add_row(&mut self, row: usize, count: u64) {
        if count > 0 {
            self.above.get_or_insert_with(BucketCounts::new).add(row, count);
        }
    }

    /// Returns every recorded bucket as (highest equivalent value, count), in order; zeros first.
    pub fn buckets(&self) -> Vec<(Nanos, u64)> {
        let mut out = Vec::new();
        if self.zeros > 0 {
            out.push((Nanos::ZERO, self.zeros));
        }
        let rows = self.above.iter().flat_map(BucketCounts::rows);
        out.extend(rows.map(|(row, count)| (Nanos(ends(row).1), count)));
        out
    }

    /// Builds the same histogram again from counts by value, as returned by [`Hist::buckets`].
    pub fn from_buckets(buckets: impl IntoIterator<Item = (Nanos, u64)>) -> Hist {
        let mut hist = Hist::new();
        buckets.into_iter().for_each(|(value, count)| hist.record_n(value, count));
        hist
    }

    /// Returns the number of recordings of zero, and the others as a plain HdrHistogram; `None` if
    /// there are no others.
    pub fn parts(&self) -> (u64, Option<Histogram<u64>>) {
        (self.zeros, self.filled().map(BucketCounts::to_hdr))
    }

    /// Builds a histogram from the result of [`Hist::parts`].
    ///
    /// # Errors
    /// Fails for a histogram with other bounds or another precision.
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
            above => Ok(Hist { zeros, above: above.as_ref().map(BucketCounts::from_hdr) }),
        }
    }

    /// Converts to a plain HdrHistogram (including zeros), for the public file formats.
    pub fn to_hdr(&self) -> Histogram<u64> {
        let mut all = self.above.as_ref().map_or_else(buckets::empty, BucketCounts::to_hdr);
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

/// Numbers of recordings of a histogram at or below any value; made by [`Hist::cumulative`].
/// Contains the lowest value of the zeros and of each bucket in use, and the recordings up to
/// there.
#[derive(Clone, Debug, Default)]
pub struct Cumulative(Vec<(Nanos, u64)>);

impl Cumulative {
    /// Sums the counts of values, which are in ascending order.
    pub fn new(values: impl IntoIterator<Item = (Nanos, u64)>) -> Cumulative {
        let mut sum = 0;
        let counted = values.into_iter().map(|(value, count)| {
            sum += count;
            (value, sum)
        });
        Cumulative(counted.collect())
    }

    /// Like [`Hist::count_at_or_below`] of the histogram.
    pub fn count_at_or_below(&self, value: Nanos) -> u64 {
        let below = self.0.partition_point(|(lowest, _)| *lowest <= value);
        below.checked_sub(1).map_or(0, |row| self.0[row].1)
    }

    /// Returns the number of all recordings.
    pub fn total(&self) -> u64 {
        self.0.last().map_or(0, |(_, count)| *count)
    }

    /// Adds the recordings of another histogram.
    pub fn merge(&mut self, other: &Cumulative) {
        let values = self.0.iter().chain(&other.0).map(|(value, _)| *value);
        let values: std::collections::BTreeSet<Nanos> = values.collect();
        let sum = |value| self.count_at_or_below(value) + other.count_at_or_below(value);
        self.0 = values.into_iter().map(|value| (value, sum(value))).collect();
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

#[cfg(test)]
mod tests;
