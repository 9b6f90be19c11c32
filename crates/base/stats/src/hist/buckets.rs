//! Counts by bucket, in HdrHistogram's layout with bounds known at compile time: recording happens
//! for every call, and costs a third of the library's time with bounds chosen at run time.
//!
//! The unit is 512 ns, the largest power of two within a microsecond. The first 2,048 buckets are one
//! unit wide; above, each doubling of the value has 1,024 buckets.

use hdrhistogram::Histogram;

/// Lowest discernible and highest trackable value, in nanoseconds.
pub(super) const LOW: u64 = 1_000;
pub(super) const HIGH: u64 = 3_600_000_000_000;
pub(super) const SIGNIFICANT_DIGITS: u8 = 3;

const UNIT_BITS: u32 = 9;
const HALF_BITS: u32 = 10;
/// Number of units in the first bucket group, less one.
const FINE_MASK: u64 = (2 << HALF_BITS) - 1;
/// Buckets up to the next power of two above [`HIGH`].
pub(super) const BUCKETS: usize = bucket((1 << 42) - 1) + 1;

/// Counts in a page of memory. A histogram has 48 pages, few of which are used: the others are only
/// read, so the kernel allocates no memory for them.
const PAGE: usize = 4096 / size_of::<u64>();

/// Number of recorded values in each bucket.
#[derive(Debug)]
pub(super) struct BucketCounts {
    counts: Box<[u64; BUCKETS]>,
    /// Sum of the counts.
    total: u64,
}

/// Returns the index of the bucket for a value in nanoseconds; it may be beyond the last one.
#[inline]
pub(super) const fn bucket(value: u64) -> usize {
    let units = value >> UNIT_BITS;
    // 0 in the first group, 1 in the next doubling
    let group = (units | FINE_MASK).ilog2() - HALF_BITS;
    ((group as usize) << HALF_BITS) + (units >> group) as usize
}

/// Returns the lowest value that a bucket counts, and how many values it counts.
const fn span(bucket: usize) -> (u64, u64) {
    let group = (bucket >> HALF_BITS).saturating_sub(1);
    let units = (bucket - (group << HALF_BITS)) as u64;
    let bits = group as u32 + UNIT_BITS;
    (units << bits, 1 << bits)
}

/// Returns the lowest and the highest value that a bucket counts.
pub(super) const fn ends(bucket: usize) -> (u64, u64) {
    let (low, width) = span(bucket);
    (low, low + (width - 1))
}

/// Returns whether a page holds a recording. A sum of bits is faster than a search that stops.
fn is_used(page: &[u64]) -> bool {
    page.iter().fold(0, |bits, count| bits | count) != 0
}

impl Clone for BucketCounts {
    fn clone(&self) -> BucketCounts {
        let mut copy = BucketCounts::new();
        for (mine, theirs) in copy.counts.chunks_mut(PAGE).zip(self.counts.chunks(PAGE)) {
            if is_used(theirs) {
                mine.copy_from_slice(theirs);
            }
        }
        copy.total = self.total;
        copy
    }
}

impl BucketCounts {
    pub(super) fn new() -> BucketCounts {
        let counts = vec![0; BUCKETS].into_boxed_slice();
        BucketCounts { counts: counts.try_into().expect("as many as the array has"), total: 0 }
    }

    /// Values beyond the last bucket count as [`HIGH`].
    #[inline(always)]
    pub(super) fn record(&mut self, value: u64) {
        self.total += 1;
        match self.counts.get_mut(bucket(value)) {
            Some(count) => *count += 1,
            None => self.counts[bucket(HIGH)] += 1,
        }
    }

    pub(super) fn record_n(&mut self, value: u64, count: u64) {
        self.add(bucket(value), count);
    }

    /// Counts a value; a bucket beyond the last counts as [`HIGH`].
    pub(super) fn add(&mut self, row: usize, count: u64) {
        let place = &mut self.counts[if row < BUCKETS { row } else { bucket(HIGH) }];
        *place = place.saturating_add(count);
        self.total = self.total.saturating_add(count);
    }

    pub(super) fn merge(&mut self, other: &BucketCounts) {
        for (mine, theirs) in self.counts.chunks_mut(PAGE).zip(other.counts.chunks(PAGE)) {
            if is_used(theirs) {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine = mine.saturating_add(*theirs);
                }
            }
        }
        self.total = self.total.saturating_add(other.total);
    }

    pub(super) fn clear(&mut self) {
        for page in self.counts.chunks_mut(PAGE).filter(|page| is_used(page)) {
            page.fill(0);
        }
        self.total = 0;
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the non-empty buckets, in order, each with its count.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, u64)> {
        let rows = self.counts.iter().copied().enumerate();
        rows.filter(|(_, count)| *count > 0)
    }

    /// Returns the bucket of the `rank`-th recording, counted from 1; the very last bucket for a
    /// rank beyond the total.
    pub(super) fn at_rank(&self, rank: u64) -> usize {
        let mut sum = 0_u64;
        let reached = self.counts.iter().position(|count| {
            sum = sum.saturating_add(*count);
            sum >= rank
        });
        reached.unwrap_or(BUCKETS - 1)
    }

    /// Returns the lowest value of the first non-empty bucket, and the highest of the last.
    pub(super) fn extremes(&self) -> Option<(u64, u64)> {
        let first = self.counts.iter().position(|count| *count > 0)?;
        let last = self.counts.iter().rposition(|count| *count > 0)?;
        Some((ends(first).0, ends(last).1))
    }

    /// Returns the number of recordings in the buckets up to that of `value`.
    pub(super) fn up_to(&self, value: u64) -> u64 {
        let last = bucket(value).min(BUCKETS - 1);
        self.counts[..=last].iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub(super) fn mean(&self) -> f64 {
        let total = self.total as f64;
        self.rows().fold(0.0, |sum, (row, count)| sum + middle(row) as f64 * count as f64 / total)
    }

    /// Returns Σ count · (middle − mean)² over the buckets.
    pub(super) fn squares(&self, mean: f64) -> f64 {
        self.rows().map(|(row, count)| (middle(row) as f64 - mean).powi(2) * count as f64).sum()
    }

    pub(super) fn to_hdr(&self) -> Histogram<u64> {
        let mut hdr = empty();
        for (row, count) in self.rows() {
            hdr.saturating_record_n(ends(row).1, count);
        }
        hdr
    }

    /// Builds it from a histogram with these bounds.
    pub(super) fn from_hdr(hdr: &Histogram<u64>) -> BucketCounts {
        let mut counts = BucketCounts::new();
        for step in hdr.iter_recorded() {
            counts.record_n(step.value_iterated_to(), step.count_since_last_iteration());
        }
        counts
    }
}

/// Returns the value that represents all of a bucket.
fn middle(bucket: usize) -> u64 {
    let (low, width) = span(bucket);
    low + width / 2
}

pub(super) fn empty() -> Histogram<u64> {
    let made = Histogram::new_with_bounds(LOW, HIGH, SIGNIFICANT_DIGITS);
    made.expect("the bounds are constants that fit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = u64> {
        prop_oneof![0..2_000_u64, 1_000..5_000_000_u64, 1_000_000..HIGH, HIGH..u64::MAX]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// The library returns the same results for the same values.
        #[test]
        fn counts_are_those_of_the_library(all in prop::collection::vec(values(), 1..200)) {
            let (mut ours, mut theirs) = (BucketCounts::new(), empty());
            for value in &all {
                ours.record(*value);
                theirs.saturating_record(*value);
            }
            prop_assert_eq!(ours.total(), theirs.len());
            let rows = ours.rows().map(|(row, count)| (ends(row).1, count));
            let steps = theirs.iter_recorded();
            let steps = steps.map(|it| (it.value_iterated_to(), it.count_since_last_iteration()));
            prop_assert!(rows.eq(steps));
            prop_assert_eq!(ours.extremes(), Some((theirs.min(), theirs.max())));
            prop_assert_eq!(ours.mean().to_bits(), theirs.mean().to_bits());
            prop_assert_eq!(ours.to_hdr(), theirs.clone());
            for value in all.iter().take(3) {
                prop_assert_eq!(ours.up_to(*value), theirs.count_between(0, *value));
            }
            let again = BucketCounts::from_hdr(&theirs);
            prop_assert!(again.rows().eq(ours.rows()) && again.total() == ours.total());
        }

        #[test]
        fn ranks_are_those_of_the_library(
            all in prop::collection::vec(values(), 1..200),
            part in 1_u64..=1_000,
        ) {
            let (mut ours, mut theirs) = (BucketCounts::new(), empty());
            for value in &all {
                ours.record_n(*value, 3);
                theirs.saturating_record_n(*value, 3);
            }
            let rank = (part * theirs.len()).div_ceil(1_000);
            let share = (rank as f64 - 0.5) / theirs.len() as f64;
            prop_assert_eq!(ends(ours.at_rank(rank)).1, theirs.value_at_quantile(share));
        }
    }

    /// Merging, copying and clearing skip pages: counts in the first and the last one, at a page's ends.
    #[test]
    fn every_page_is_merged_copied_and_cleared() {
        let ends_of_pages = [0, PAGE - 1, PAGE, 7 * PAGE - 1, BUCKETS - PAGE, BUCKETS - 1];
        let (mut one, mut other) = (BucketCounts::new(), BucketCounts::new());
        for row in ends_of_pages {
            one.add(row, 2);
            other.add(row, 3);
        }
        other.add(3 * PAGE, 1);
        one.merge(&other);
        let mut expected: Vec<(usize, u64)> = ends_of_pages.map(|row| (row, 5)).into();
        expected.insert(3, (3 * PAGE, 1));
        assert!(one.rows().eq(expected.iter().copied()));
        let copy = one.clone();
        assert!(copy.rows().eq(one.rows()) && copy.total() == one.total());
        one.clear();
        assert!(one.is_empty() && one.rows().next().is_none());
        assert_eq!(copy.total(), 31);
    }

    #[test]
    fn the_last_bucket_is_the_librarys() {
        assert_eq!(BUCKETS, empty().distinct_values());
        assert_eq!(ends(BUCKETS - 1).1, (1 << 42) - 1);
        assert_eq!([0, 511, 512, 1 << 20].map(bucket), [0, 0, 1, 2_048]);
    }
}
