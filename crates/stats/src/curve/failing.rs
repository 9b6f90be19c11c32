//! A server that fails at the lowest load already: its failures are not the load's doing, and nothing
//! is concluded from them.

use super::{Level, Point};

/// Share of failures above which a level fails, where no objective says how many are allowed.
pub const FAILURES_MAX: f64 = 0.001;

impl Point {
    /// Whether more calls fail than are allowed.
    pub fn fails(&self) -> bool {
        self.failure_share > self.failures_max.unwrap_or(FAILURES_MAX)
    }
}

impl Level {
    /// Whether half of the repeats fail, or more.
    pub fn fails(&self) -> bool {
        self.points.iter().filter(|point| point.fails()).count() * 2 >= self.points.len()
    }
}

/// The lowest level of a server that fails there; `None` if it serves the lowest load. Levels are in
/// ascending order.
pub fn failing_from(levels: &[Level]) -> Option<f64> {
    levels.first().filter(|level| level.fails()).map(|level| level.at)
}

/// A second failing step with at least this many times the share of successes of the first shows that
/// the load matters.
const IMPROVED_MIN: f64 = 1.2;

/// Whether the first two usable steps fail alike at different loads: the load is not the cause.
pub fn fails_alike(steps: &[Point]) -> bool {
    let usable: Vec<&Point> = steps.iter().filter(|point| !point.client_limited).collect();
    let [first, second] = usable[..] else { return false };
    let good = |point: &Point| 1.0 - point.failure_share;
    let (low, high) = match first.level < second.level {
        true => (first, second),
        false => (second, first),
    };
    first.fails()
        && second.fails()
        && low.level < high.level
        && good(low) < IMPROVED_MIN * good(high).max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(level: f64, failure_share: f64) -> Point {
        Point { level, failure_share, ..Point::default() }
    }

    #[test]
    fn failures_that_the_load_does_not_change_are_not_its_doing() {
        assert!(fails_alike(&[at(10.0, 0.3), at(5.0, 0.31)]));
        assert!(fails_alike(&[at(10.0, 1.0), at(5.0, 1.0)]));
        assert!(fails_alike(&[at(5.0, 0.3), at(10.0, 0.29)]));
        // a server that can do 1,000/s
        assert!(!fails_alike(&[at(5_000.0, 0.8), at(2_500.0, 0.6)]));
        assert!(!fails_alike(&[at(10.0, 0.3), at(5.0, 0.0)]));
        assert!(!fails_alike(&[at(10.0, 0.3)]));
        assert!(!fails_alike(&[at(10.0, 0.3), at(10.0, 0.3)]), "the same load twice");
    }

    #[test]
    fn an_objective_says_how_many_failures_are_failing() {
        let allowed = |share| Point { failures_max: Some(0.02), ..at(10.0, share) };
        assert!(!allowed(0.02).fails() && allowed(0.021).fails());
        assert!(!at(10.0, 0.001).fails() && at(10.0, 0.0011).fails());
    }
}
