//! Times that a server reports about its own work, by name: a histogram each, for a bounded number
//! of names.

use crate::Hist;
use units::Nanos;

/// Maximum number of names with their own histogram; additional names share one.
pub const TIMING_NAMES_MAX: usize = 32;

/// Merging is associative and commutative in spite of the bound, because the kept names do not
/// depend on the order of arrival: they are the first in byte order. A name among the first of the
/// whole is among the first of every part that has it.
#[derive(Clone, Debug, Default)]
pub struct ServerTimings {
    /// Rows by name. A row without recordings keeps its memory for the next interval.
    rows: Vec<(Box<str>, Hist)>,
    /// Names beyond the maximum number.
    other: Hist,
    malformed: u64,
}

impl ServerTimings {
    /// Builds them from the results of [`ServerTimings::named`], [`ServerTimings::other`] and
    /// [`ServerTimings::malformed`].
    pub fn from_parts(
        named: impl IntoIterator<Item = (String, Hist)>,
        other: Hist,
        malformed: u64,
    ) -> ServerTimings {
        let mut timings = ServerTimings { other, malformed, ..ServerTimings::default() };
        for (name, hist) in named {
            timings.hist(&name).merge(&hist);
        }
        timings
    }

    #[inline]
    pub fn record(&mut self, name: &str, duration: Nanos) {
        self.hist(name).record(duration);
    }

    /// Counts a malformed one.
    pub fn count_malformed(&mut self) {
        self.malformed += 1;
    }

    /// Returns the names and their times, in the order of the names.
    pub fn named(&self) -> impl Iterator<Item = (&str, &Hist)> {
        let seen = self.rows.iter().filter(|(_, hist)| !hist.is_empty());
        seen.map(|(name, hist)| (name.as_ref(), hist))
    }

    /// Returns the times of all names beyond [`TIMING_NAMES_MAX`].
    pub fn other(&self) -> &Hist {
        &self.other
    }

    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    pub fn merge(&mut self, other: &ServerTimings) {
        for (name, hist) in other.named() {
            self.hist(name).merge(hist);
        }
        self.other.merge(&other.other);
        self.malformed += other.malformed;
    }

    /// Clears the counts and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.iter_mut().for_each(|(_, hist)| hist.clear());
        self.other.clear();
        self.malformed = 0;
    }

    /// Returns the row that counts the times of this name.
    #[inline]
    fn hist(&mut self, name: &str) -> &mut Hist {
        match self.rows.binary_search_by(|(known, _)| known.as_ref().cmp(name)) {
            Ok(row) => &mut self.rows[row].1,
            Err(row) => self.new_row(row, name),
        }
    }

    /// Adds a row. If full, replaces an empty row or, if `name` sorts before it, the last row.
    fn new_row(&mut self, row: usize, name: &str) -> &mut Hist {
        let mut hist = Hist::new();
        let mut row = row;
        if self.rows.len() == TIMING_NAMES_MAX {
            let empty = self.rows.iter().position(|(_, hist)| hist.is_empty());
            let last = TIMING_NAMES_MAX - 1;
            let Some(leaves) = empty.or((row <= last).then_some(last)) else {
                return &mut self.other;
            };
            hist = self.rows.remove(leaves).1;
            self.other.merge(&hist);
            hist.clear();
            row -= usize::from(leaves < row);
        }
        self.rows.insert(row, (name.into(), hist));
        &mut self.rows[row].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(timings: &ServerTimings) -> Vec<(String, Vec<(Nanos, u64)>)> {
        let named = timings.named().map(|(name, hist)| (name.to_owned(), hist.buckets()));
        named.chain([("(other)".to_owned(), timings.other().buckets())]).collect()
    }

    fn recorded(events: &[(u8, u64)]) -> ServerTimings {
        let mut timings = ServerTimings::default();
        record(&mut timings, events);
        timings
    }

    fn record(timings: &mut ServerTimings, events: &[(u8, u64)]) {
        for (name, micros) in events {
            timings.record(&format!("n{name:03}"), Nanos::from_micros(*micros));
        }
    }

    #[test]
    fn a_name_has_its_own_times() {
        let mut timings = recorded(&[(7, 30), (3, 10), (7, 50), (9, 0)]);
        timings.count_malformed();
        let seen: Vec<_> = timings.named().map(|(name, hist)| (name, hist.count())).collect();
        assert_eq!(seen, [("n003", 1), ("n007", 2), ("n009", 1)]);
        assert_eq!((timings.malformed(), timings.other().count()), (1, 0));
        timings.clear();
        assert_eq!((timings.named().count(), timings.malformed()), (0, 0));
    }

    #[test]
    fn names_beyond_the_bound_share_a_row_whatever_their_order() {
        let many: Vec<(u8, u64)> = (0..50).map(|name| (name, 1_000)).collect();
        let backwards: Vec<(u8, u64)> = many.iter().rev().copied().collect();
        for events in [many, backwards] {
            let mut timings = recorded(&events);
            let names: Vec<_> = timings.named().map(|(name, _)| name.to_owned()).collect();
            let wanted: Vec<_> = (0..32).map(|name| format!("n{name:03}")).collect();
            assert_eq!(names, wanted);
            assert_eq!(timings.other().count(), 18);
            // rows that are empty in this interval do not block other names
            timings.clear();
            timings.record("z", Nanos::SECOND);
            assert_eq!(timings.named().map(|(name, _)| name).collect::<Vec<_>>(), ["z"]);
            assert!(timings.other().is_empty());
        }
    }

    /// Generates zeros only: a histogram takes no memory for them, and how histograms add up is
    /// tested there.
    fn events() -> impl Strategy<Value = Vec<(u8, u64)>> {
        prop::collection::vec((0u8..60, Just(0u64)), 0..90)
    }

    proptest! {
        #[test]
        fn merging_is_associative_and_commutative(a in events(), b in events(), c in events()) {
            let whole = counted(&recorded(&[&a[..], &b, &c].concat()));
            let [a, b, c] = [a, b, c].map(|events| recorded(&events));
            let sum = |parts: &[&ServerTimings]| {
                let mut sum = ServerTimings::default();
                parts.iter().for_each(|part| sum.merge(part));
                sum
            };
            prop_assert_eq!(counted(&sum(&[&sum(&[&a, &b]), &c])), whole.clone());
            prop_assert_eq!(counted(&sum(&[&a, &sum(&[&b, &c])])), whole.clone());
            prop_assert_eq!(counted(&sum(&[&c, &b, &a])), whole);
        }

        #[test]
        fn cleared_is_as_new(before in events(), after in events()) {
            let mut timings = recorded(&before);
            timings.clear();
            record(&mut timings, &after);
            prop_assert_eq!(counted(&timings), counted(&recorded(&after)));
        }
    }
}
