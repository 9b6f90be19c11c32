//! The response times of one second at low resolution: data for a heat map over time.

use crate::{Block, Cumulative, Hist};
use units::Nanos;

/// Classes of a [`Spread`]: eight per decade, from 1 µs to beyond the hour at which [`Hist`] ends.
pub const SPREAD_CLASSES: usize = 77;

const PER_DECADE: f64 = 8.0;

/// Lower end of the first class, in nanoseconds.
const LOWEST: f64 = 1_000.0;

/// Calls by class of response time. Class `i` holds times above 10^(i/8) µs and at or below
/// 10^((i+1)/8) µs; the first also holds shorter times, the last longer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    counts: [u32; SPREAD_CLASSES],
}

impl Default for Spread {
    fn default() -> Spread {
        Spread { counts: [0; SPREAD_CLASSES] }
    }
}

impl Spread {
    pub fn new(hist: &Hist) -> Spread {
        let mut spread = Spread::default();
        for (value, count) in hist.buckets() {
            spread.add(Spread::class(value), count);
        }
        spread
    }

    /// Builds it from the counts by class, as returned by [`Spread::iter`]; empty classes are
    /// omitted.
    pub fn from_counts(counts: impl IntoIterator<Item = (usize, u64)>) -> Spread {
        let mut spread = Spread::default();
        for (class, count) in counts.into_iter().filter(|(class, _)| *class < SPREAD_CLASSES) {
            spread.add(class, count);
        }
        spread
    }

    fn add(&mut self, class: usize, count: u64) {
        let row = &mut self.counts[class];
        *row = row.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    pub fn merge(&mut self, other: &Spread) {
        other.iter().for_each(|(class, count)| self.add(class, count));
    }

    /// Returns the non-empty classes, in ascending order, each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(class, count)| (class, u64::from(*count)))
    }

    /// Converts it to a block of a run; the times are the upper ends of their classes.
    pub fn block(&self) -> Block {
        let value = |class: usize| Nanos::from_secs_f64(Spread::ends_s(class).1);
        let times = Cumulative::new(self.iter().map(|(class, count)| (value(class), count)));
        Block { times, ..Block::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    /// Returns the class of a time.
    pub fn class(time: Nanos) -> usize {
        let place = (time.0.max(1) as f64 / LOWEST).log10() * PER_DECADE;
        // a power of ten belongs to the class that ends with it, regardless of how its logarithm is
        // rounded
        ((place - 1e-9).ceil() as usize).clamp(1, SPREAD_CLASSES) - 1
    }

    /// Returns the lower and upper end of a class, in seconds.
    pub fn ends_s(class: usize) -> (f64, f64) {
        let end = |class: usize| LOWEST * 1e-9 * 10_f64.powf(class as f64 / PER_DECADE);
        (end(class), end(class + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_class_whose_ends_are_around_it() {
        for ns in [1_001, 1_333, 1_334, 10_000, 10_001, 999_999, 123_456_789, 3_600_000_000_000] {
            let (low, high) = Spread::ends_s(Spread::class(Nanos(ns)));
            let seconds = ns as f64 * 1e-9;
            assert!(low < seconds && seconds <= high * (1.0 + 1e-9), "{low} {seconds} {high}");
        }
        assert_eq!([0, 1, 1_000].map(|ns| Spread::class(Nanos(ns))), [0, 0, 0]);
        assert_eq!(Spread::class(Nanos(10_000)), 7);
        assert_eq!(Spread::class(Nanos::NEVER), SPREAD_CLASSES - 1);
    }

    #[test]
    fn a_histogram_loses_no_call() {
        let mut hist = Hist::new();
        (0..5_000).for_each(|n| hist.record(Nanos::from_micros(n * n)));
        let spread = Spread::new(&hist);
        assert_eq!(spread.iter().map(|(_, count)| count).sum::<u64>(), 5_000);
        let mut twice = Spread::from_counts(spread.iter());
        assert_eq!(twice, spread);
        twice.merge(&spread);
        assert!(twice.iter().eq(spread.iter().map(|(class, count)| (class, 2 * count))));
        assert!(!twice.is_empty() && Spread::default().is_empty());
    }

    #[test]
    fn counts_saturate_and_unknown_classes_are_ignored() {
        let spread = Spread::from_counts([(3, u64::MAX), (3, 1), (SPREAD_CLASSES, 9)]);
        assert_eq!(spread.iter().collect::<Vec<_>>(), [(3, u64::from(u32::MAX))]);
    }
}
