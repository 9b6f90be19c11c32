//! Counts more items than memory holds: a sample of them, each with its exact count, and the most
//! frequent ones.

use std::hash::{DefaultHasher, Hash, Hasher};
use units::NumberMap;

/// Maximum number of distinct items: the capacity of the table below, with 2^18 places.
pub(crate) const KEPT_MAX: usize = 229_000;
/// Number of most frequent items left after each cut; twice as many before it.
const FREQUENT: usize = 4_096;

/// Returns a hash that is the same in every run, so that a log is always described alike.
pub(crate) fn hash(thing: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// A uniform sample of distinct items by their hashes. All items are kept until there are more than
/// the bound; then every second one by a bit of its hash, and so on (Wegman's adaptive sampling).
/// The data of a kept item is complete from its first appearance on.
#[derive(Debug)]
pub(crate) struct Sampled<V> {
    kept: NumberMap<V>,
    /// Number of leading zero bits of the hashes in the sample.
    level: u32,
    max: usize,
}

impl<V: Default> Sampled<V> {
    pub(crate) fn new(max: usize) -> Sampled<V> {
        Sampled { kept: NumberMap::default(), level: 0, max }
    }

    fn is_sampled(hash: u64, level: u32) -> bool {
        level == 0 || hash >> (64 - level.min(63)) == 0
    }

    /// Returns the value of an item, which is added if it is new; `None` if it is not in the
    /// sample.
    pub(crate) fn entry(&mut self, hash: u64) -> Option<&mut V> {
        if !Self::is_sampled(hash, self.level) {
            return None;
        }
        while self.kept.len() >= self.max && !self.kept.contains_key(&hash) {
            self.level += 1;
            let level = self.level;
            self.kept.retain(|known, _| Self::is_sampled(*known, level));
            if !Self::is_sampled(hash, level) {
                return None;
            }
        }
        Some(self.kept.entry(hash).or_default())
    }

    /// Returns the number of items that each item in the sample represents: 1 while all are kept.
    pub(crate) fn weight(&self) -> u64 {
        1 << self.level.min(63)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.kept.iter().map(|(hash, value)| (*hash, value))
    }

    /// Returns the number of distinct items, and its standard error as a share of it.
    pub(crate) fn count(&self) -> (u64, f64) {
        let kept = self.kept.len() as u64;
        let error = if self.level == 0 { 0.0 } else { 1.0 / (kept.max(1) as f64).sqrt() };
        (kept.saturating_mul(self.weight()), error)
    }
}

/// Counts of the most frequent items (Misra and Gries, cut in batches). An item's true count is its
/// count here or up to [`Frequent::error`] more.
#[derive(Debug, Default)]
pub(crate) struct Frequent {
    counts: NumberMap<u64>,
    error: u64,
}

impl Frequent {
    /// Starts with known counts.
    pub(crate) fn new(known: impl Iterator<Item = (u64, u64)>) -> Frequent {
        let mut frequent = Frequent::default();
        known.for_each(|(hash, count)| frequent.add(hash, count));
        frequent
    }

    pub(crate) fn add(&mut self, hash: u64, count: u64) {
        *self.counts.entry(hash).or_default() += count;
        if self.counts.len() >= 2 * FREQUENT {
            self.prune();
        }
    }

    fn prune(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let (_, cut, _) = counts.select_nth_unstable_by(FREQUENT, |a, b| b.cmp(a));
        let cut = *cut;
        self.counts.retain(|_, count| {
            *count = count.saturating_sub(cut);
            *count > 0
        });
        self.error += cut;
    }

    pub(crate) fn error(&self) -> u64 {
        self.error
    }

    /// Returns the items whose count is far above the error.
    pub(crate) fn certain(&self) -> impl Iterator<Item = (u64, u64)> {
        /// Multiple of the error: at most a tenth of the count is missing.
        const ABOVE: u64 = 10;
        let least = self.error.saturating_mul(ABOVE);
        let all = self.counts.iter().map(|(hash, count)| (*hash, *count));
        all.filter(move |(_, count)| *count > least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_things_are_kept_until_there_are_too_many() {
        let mut sampled: Sampled<u64> = Sampled::new(1_000);
        for round in 1..=3 {
            for thing in 0..1_000_u64 {
                *sampled.entry(hash(thing)).unwrap() += 1;
            }
            assert!(sampled.iter().all(|(_, count)| *count == round));
        }
        assert_eq!((sampled.count(), sampled.weight()), ((1_000, 0.0), 1));
    }

    #[test]
    fn a_sample_estimates_how_many_there_are() {
        let mut sampled: Sampled<u64> = Sampled::new(1_000);
        for thing in 0..300_000_u64 {
            if let Some(count) = sampled.entry(hash(thing / 3)) {
                *count += 1;
            }
        }
        let (count, error) = sampled.count();
        assert!(sampled.iter().count() <= 1_000 && error > 0.03 && error < 0.05, "{error}");
        assert!((count as f64 / 100_000.0 - 1.0).abs() < 3.0 * error, "{count}");
        assert!(sampled.iter().all(|(_, count)| *count == 3), "counts are exact");
    }

    #[test]
    fn the_most_frequent_are_found_with_their_counts() {
        let mut frequent = Frequent::default();
        for thing in 0..400_000_u64 {
            frequent.add(hash(thing), 1);
            if thing % 4 == 0 {
                frequent.add(hash(("often", thing / 4 % 20)), 1);
            }
        }
        let certain: Vec<(u64, u64)> = frequent.certain().collect();
        assert_eq!(certain.len(), 20);
        for (_, count) in certain {
            assert!(count <= 5_000 && count + frequent.error() >= 5_000, "{count}");
        }
        assert!(frequent.error() < 500_000 / 4_096, "{}", frequent.error());
    }
}
