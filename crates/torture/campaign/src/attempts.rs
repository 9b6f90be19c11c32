//! The rule for failures: each is tried three times. It is a finding if every attempt fails, and
//! flaky if some pass; up to twenty more attempts then measure the rate (docs/guide/torture.md,
//! "Outcomes").

use crate::TRIES;
use units::show;

/// Attempts of a failure that does not always occur, to measure its rate.
const RATE_TRIES: u32 = 20;

/// Quantile of the normal distribution for an interval at 95 %.
const Z: f64 = 1.959_964;

/// Attempts at the same exchange, and the result to keep.
#[derive(Debug)]
pub(crate) struct Tries<T> {
    made: u32,
    failed: u32,
    /// Minimum number of attempts, even if the first ones pass.
    least: u32,
    /// Maximum number of attempts if some of them pass.
    most: u32,
    kept: Option<T>,
}

/// Number of attempts, and number of failed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) made: u32,
    pub(crate) failed: u32,
}

impl Rate {
    /// Rate of a failure that was observed once.
    pub(crate) const ONCE: Rate = Rate { made: 1, failed: 1 };

    /// Counts an attempt.
    pub(crate) fn count(&mut self, is_failure: bool) {
        self.made += 1;
        self.failed += u32::from(is_failure);
    }

    /// Returns the interval of the failure's probability at 95 %, by Wilson's score.
    pub(crate) fn interval(self) -> (f64, f64) {
        if self.made == 0 {
            return (0.0, 1.0);
        }
        let (made, failed) = (f64::from(self.made), f64::from(self.failed));
        let share = failed / made;
        let weight = Z * Z / made;
        let middle = share + weight / 2.0;
        let half = Z * (share * (1.0 - share) / made + weight / (4.0 * made)).sqrt();
        (((middle - half) / (1.0 + weight)).max(0.0), ((middle + half) / (1.0 + weight)).min(1.0))
    }

    /// Formats the rate with its interval: `3 of 60, which is 1.71 % to 13.7 % with 95 %
    /// confidence`.
    pub(crate) fn text(self) -> String {
        let (low, high) = self.interval();
        let count = |number: u32| show::count(u64::from(number));
        format!(
            "{} of {}, which is {} to {} with 95 % confidence",
            count(self.failed),
            count(self.made),
            show::share(low),
            show::share(high)
        )
    }

    /// Returns whether it fails in most attempts.
    pub(crate) fn is_usual(self) -> bool {
        self.failed * 2 > self.made
    }
}

/// Number of times that a failure recurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reproduced {
    /// No attempt failed.
    Never,
    /// Some attempts failed: flaky.
    Sometimes,
    /// Every attempt failed.
    Always,
}

impl<T> Default for Tries<T> {
    fn default() -> Tries<T> {
        Tries { made: 0, failed: 0, least: 1, most: TRIES, kept: None }
    }
}

impl<T> Tries<T> {
    /// Starts with a failure that was found already, which counts as the first attempt.
    pub(crate) fn after_failure() -> Tries<T> {
        Tries { made: 1, failed: 1, ..Tries::default() }
    }

    /// Starts attempts of a race, which fewer attempts may not show.
    pub(crate) fn at_least(least: u32) -> Tries<T> {
        Tries { least, ..Tries::default() }
    }

    /// Returns the number of the next attempt, counted from 1; `None` if the first attempts passed,
    /// or there were enough attempts.
    pub(crate) fn next(&self) -> Option<u32> {
        let undecided = self.made < self.least || self.failed > 0;
        let most = if self.failed < self.made { self.most.max(self.least) } else { TRIES };
        (undecided && self.made < most).then_some(self.made + 1)
    }

    /// Measures the rate of a failure that occurs only sometimes; attempts are quick.
    pub(crate) fn measure_rate(&mut self) {
        self.most = RATE_TRIES;
    }

    /// Counts an attempt.
    pub(crate) fn count(&mut self, is_failure: bool) {
        self.made += 1;
        self.failed += u32::from(is_failure);
    }

    /// Counts an attempt. Its result is kept if it is the first, or if it `replaces` the kept one.
    pub(crate) fn add(&mut self, is_failure: bool, replaces: bool, result: T) {
        self.count(is_failure);
        if self.kept.is_none() || replaces {
            self.kept = Some(result);
        }
    }

    pub(crate) fn attempt_count(&self) -> u32 {
        self.made
    }

    pub(crate) fn failed(&self) -> u32 {
        self.failed
    }

    /// Returns the result kept so far.
    pub(crate) fn kept(&mut self) -> Option<&mut T> {
        self.kept.as_mut()
    }

    /// Returns the kept result by value.
    pub(crate) fn into_kept(self) -> Option<T> {
        self.kept
    }

    pub(crate) fn reproduced(&self) -> Reproduced {
        match self.failed {
            0 => Reproduced::Never,
            failed if failed < self.made => Reproduced::Sometimes,
            _ => Reproduced::Always,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_tries(attempts: &[bool]) -> Tries<usize> {
        let mut tries = Tries::default();
        for (number, failed) in attempts.iter().enumerate() {
            assert_eq!(tries.next(), Some(number as u32 + 1));
            tries.add(*failed, *failed, number);
        }
        tries
    }

    #[test]
    fn a_failure_is_tried_three_times_and_a_pass_once() {
        assert_eq!(count_tries(&[]).next(), Some(1));
        assert_eq!(count_tries(&[false]).next(), None);
        assert_eq!(count_tries(&[true, false]).next(), Some(3));
        assert_eq!(count_tries(&[true, true, true]).next(), None);
        assert_eq!(Tries::<()>::after_failure().next(), Some(2));
    }

    #[test]
    fn a_race_is_tried_several_times_even_if_it_passes() {
        for (attempts, next) in [
            (&[false][..], Some(2)),
            (&[false, false], Some(3)),
            (&[false; 4], Some(5)),
            (&[false; 5], None),
            (&[false, false, false, true], Some(5)),
            (&[true, true, true], None),
        ] {
            let mut tries = Tries::at_least(5);
            attempts.iter().for_each(|failed| tries.add(*failed, *failed, ()));
            assert_eq!(tries.next(), next, "{attempts:?}");
        }
    }

    #[test]
    fn the_rate_of_a_failure_needs_more_attempts() {
        for (attempts, next) in [(&[true, false, true][..], Some(4)), (&[true; 3], None)] {
            let mut tries = count_tries(attempts);
            tries.measure_rate();
            assert_eq!(tries.next(), next, "{attempts:?}");
            (4..=RATE_TRIES).for_each(|_| tries.count(false));
            assert_eq!(tries.next(), None);
        }
    }

    #[test]
    fn a_rate_has_its_interval() {
        for (failed, made, text) in [
            (0, 60, "0 of 60, which is 0 % to 6.02 % with 95 % confidence"),
            (3, 60, "3 of 60, which is 1.71 % to 13.7 % with 95 % confidence"),
            (1, 1, "1 of 1, which is 20.7 % to 100 % with 95 % confidence"),
        ] {
            assert_eq!(Rate { made, failed }.text(), text);
        }
        assert_eq!(Rate::default().interval(), (0.0, 1.0));
    }

    #[test]
    fn only_constant_failures_are_findings() {
        assert_eq!(count_tries(&[false]).reproduced(), Reproduced::Never);
        assert_eq!(count_tries(&[true, true, true]).reproduced(), Reproduced::Always);
        for flaky in [[true, false, false], [true, true, false], [true, false, true]] {
            assert_eq!(count_tries(&flaky).reproduced(), Reproduced::Sometimes, "{flaky:?}");
        }
        // interrupted: the known result remains
        assert_eq!(count_tries(&[true]).reproduced(), Reproduced::Always);
    }

    #[test]
    fn the_first_result_is_kept_until_another_replaces_it() {
        assert_eq!(count_tries(&[true, false, true]).into_kept(), Some(2));
        assert_eq!(count_tries(&[true, false, false]).into_kept(), Some(0));
        assert_eq!(count_tries(&[]).into_kept(), None);
    }
}
