//! The instants at which a bounded number of calls fell due and were answered: unlike a histogram
//! of service times, they show whether responses are sent at the ticks of a clock.

use sample::Sample;
use units::Nanos;

/// Maximum number of calls kept of one worker's interval, and of a whole run: the first ones.
const KEPT_OF_ROW: usize = 1_024;
const KEPT: usize = 4_096;
/// Maximum number of followed users: a few show the same clock as many, and for longer.
const FOLLOWED: u64 = 16;

/// Instants at which calls were due and were answered, and the earliest responses of the followed
/// users. Instants are from the driver's monotonic clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instants {
    /// (answered, due): in order once merged.
    rows: Vec<(Nanos, Nanos)>,
}

impl Instants {
    /// Allocates memory for one worker's interval.
    pub(crate) fn prepared() -> Instants {
        Instants { rows: Vec::with_capacity(KEPT_OF_ROW) }
    }

    /// Keeps a call that was answered; does not allocate when prepared.
    #[inline(always)]
    pub(crate) fn add(&mut self, sample: &Sample) {
        if self.rows.len() < KEPT_OF_ROW && sample.user.is_none_or(|user| user < FOLLOWED) {
            self.rows.push((sample.done, sample.intended));
        }
    }

    /// Builds it from the result of [`Instants::all`]; if there are too many, keeps the earliest.
    pub fn from_rows(mut rows: Vec<(Nanos, Nanos)>) -> Instants {
        rows.sort_unstable();
        rows.truncate(KEPT);
        Instants { rows }
    }

    /// Shifts every instant by `ahead` nanoseconds, from the clock of another machine.
    pub fn shift(&mut self, ahead: i64) {
        for (done, due) in &mut self.rows {
            *done = Nanos(done.0.saturating_add_signed(ahead));
            *due = Nanos(due.0.saturating_add_signed(ahead));
        }
    }

    /// Returns (answered, due), in order of the responses, at most some four thousand.
    pub fn all(&self) -> &[(Nanos, Nanos)] {
        &self.rows
    }

    /// Keeps the earliest of both, for any order in which rows are merged.
    pub(crate) fn merge(&mut self, other: &Instants) {
        if other.rows.is_empty() {
            return;
        }
        self.rows.extend_from_slice(&other.rows);
        self.rows.sort_unstable();
        self.rows.truncate(KEPT);
    }

    /// Forgets the calls and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(done: u64, user: Option<u64>) -> Sample {
        Sample { done: Nanos(done), intended: Nanos(done / 2), user, ..Sample::default() }
    }

    #[test]
    fn the_earliest_are_kept_in_any_order_of_merging() {
        let part = |from: u64| {
            let mut part = Instants::prepared();
            (0..3_000).for_each(|turn| part.add(&sample(from + 7 * turn, None)));
            part
        };
        let parts = [part(1), part(3), part(5), part(2), part(6), part(4)];
        let merged = |order: [usize; 6]| {
            let mut all = Instants::default();
            order.iter().for_each(|at| all.merge(&parts[*at]));
            all
        };
        let all = merged([0, 1, 2, 3, 4, 5]);
        assert_eq!(all, merged([5, 3, 1, 0, 4, 2]));
        assert_eq!(all.all().len(), KEPT);
        assert!(all.all().is_sorted());
        // the first ones of six workers are adjacent
        assert_eq!(all.all()[7].0, Nanos(9));
    }

    #[test]
    fn of_many_users_the_first_are_followed() {
        let mut kept = Instants::prepared();
        (0..50).for_each(|user| kept.add(&sample(user, Some(user))));
        assert_eq!(kept.all().len() as u64, FOLLOWED);
    }
}
