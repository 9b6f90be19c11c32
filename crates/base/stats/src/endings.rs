//! Ends of the calls of one second: data for a chart of statuses over time.

use sample::FailureClass;
use std::cmp::Reverse;

/// Maximum number of statuses that one second counts separately: a server that answers with every
/// possible number cannot make the rows of a long run grow without bound.
pub const ENDINGS_STATUSES_MAX: usize = 16;

/// Responses by status and failures by class, of the calls of the measured phase that ended in one
/// second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endings {
    /// (status, responses) of the most frequent statuses, by status.
    pub statuses: Vec<(u16, u64)>,
    /// Responses with any other status.
    pub other_statuses: u64,
    /// (class, calls), in order of the class. Calls with a response are among the statuses too: see
    /// [`FailureClass::has_complete_response`].
    pub failures: Vec<(FailureClass, u64)>,
}

impl Endings {
    /// Returns the counts of one interval, from (status, responses) and (class, calls), the latter in
    /// order of the class.
    pub(crate) fn new(
        statuses: impl Iterator<Item = (u16, u64)>,
        failures: impl Iterator<Item = (FailureClass, u64)>,
    ) -> Endings {
        let mut statuses: Vec<(u16, u64)> = statuses.collect();
        statuses.sort_by_key(|(status, count)| (Reverse(*count), *status));
        let rest = statuses.split_off(statuses.len().min(ENDINGS_STATUSES_MAX));
        statuses.sort_unstable();
        Endings {
            statuses,
            other_statuses: rest.iter().map(|(_, count)| count).sum(),
            failures: failures.collect(),
        }
    }

    /// Adds another second. Statuses that either counts separately stay separate.
    pub fn merge(&mut self, other: &Endings) {
        add(&mut self.statuses, &other.statuses);
        add(&mut self.failures, &other.failures);
        self.other_statuses += other.other_statuses;
    }

    /// Returns the number of responses with one status.
    pub fn with_status(&self, status: u16) -> u64 {
        count_of(&self.statuses, status)
    }

    /// Returns the number of failures of one class.
    pub fn of_class(&self, class: FailureClass) -> u64 {
        count_of(&self.failures, class)
    }

    /// Returns whether no call ended, or the ends are unknown.
    pub fn is_empty(&self) -> bool {
        *self == Endings::default()
    }
}

/// Merges counts; `mine` stays sorted by key.
fn add<K: Copy + Ord>(mine: &mut Vec<(K, u64)>, theirs: &[(K, u64)]) {
    for (key, count) in theirs {
        match mine.binary_search_by_key(key, |(key, _)| *key) {
            Ok(at) => mine[at].1 += count,
            Err(at) => mine.insert(at, (*key, *count)),
        }
    }
}

fn count_of<K: Copy + Ord>(counts: &[(K, u64)], key: K) -> u64 {
    counts.binary_search_by_key(&key, |(key, _)| *key).map_or(0, |at| counts[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(statuses: impl Iterator<Item = (u16, u64)>) -> Endings {
        Endings::new(statuses, std::iter::empty())
    }

    #[test]
    fn the_rarest_statuses_are_one() {
        let endings = answered((0..20).map(|n| (100 + n, 1_000 - u64::from(n))));
        assert_eq!(endings.statuses.len(), ENDINGS_STATUSES_MAX);
        assert_eq!((endings.with_status(100), endings.with_status(115)), (1_000, 985));
        assert_eq!((endings.with_status(116), endings.other_statuses), (0, 984 + 983 + 982 + 981));
    }

    #[test]
    fn seconds_add_up_in_order() {
        let mut sum = answered([(503, 2), (200, 5)].into_iter());
        sum.failures = vec![(FailureClass::Reset, 1)];
        let mut next = answered([(404, 1), (200, 3)].into_iter());
        next.failures = vec![(FailureClass::Refused, 4), (FailureClass::Reset, 1)];
        next.other_statuses = 7;
        sum.merge(&next);
        assert_eq!(sum.statuses, [(200, 8), (404, 1), (503, 2)]);
        assert_eq!(
            (sum.of_class(FailureClass::Reset), sum.of_class(FailureClass::Refused)),
            (2, 4)
        );
        assert_eq!((sum.other_statuses, sum.of_class(FailureClass::Tls)), (7, 0));
        assert!(!sum.is_empty() && Endings::default().is_empty());
    }
}
