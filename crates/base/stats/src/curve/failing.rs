//! A server that already fails at the lowest load: the load does not cause its failures, and no
//! conclusion is drawn from them.

use super::{Level, Point};

/// Share of failures above which a level fails, without an objective for failures.
pub const FAILURES_MAX: f64 = 0.001;

impl Point {
    /// Returns whether more calls fail than are allowed.
    pub fn fails(&self) -> bool {
        self.failure_share > self.failures_max.unwrap_or(FAILURES_MAX)
    }
}

impl Level {
    /// Returns whether at least half of the repeats fail.
    pub fn fails(&self) -> bool {
        self.points.iter().filter(|point| point.fails()).count() * 2 >= self.points.len()
    }
}

/// Returns the lowest level of a server that fails there; `None` if it serves the lowest load.
/// Levels are in ascending order.
pub fn failing_from(levels: &[Level]) -> Option<f64> {
    levels.first().filter(|level| level.fails()).map(|level| level.at)
}

/// A second failing step with at least this many times the share of successes of the first shows that
/// the load matters.
const IMPROVED_MIN: f64 = 1.2;

/// Minimum number of calls at the lowest levels whose share of failures is compared with the levels
/// above.
const CALLS_MIN: f64 = 20.0;

/// Returns whether the steps fail alike at different loads, so that the load is not the cause: the
/// first two usable levels or, if these have few calls, the lowest levels and those above.
pub fn fails_alike(steps: &[Point]) -> bool {
    let usable: Vec<&Point> = steps.iter().filter(|point| !point.client_limited).collect();
    if let [first, second] = usable[..] {
        let (low, high) =
            if first.level < second.level { (first, second) } else { (second, first) };
        return low.level < high.level && both_fail(&[low], &[high]);
    }
    let mut sorted = usable;
    sorted.sort_by(|a, b| a.level.total_cmp(&b.level));
    let mut calls = 0.0;
    let enough = sorted.iter().position(|point| {
        calls += point.achieved_per_s * point.window_s;
        calls >= CALLS_MIN
    });
    let Some(last) = enough else { return false };
    let above = sorted.partition_point(|point| point.level <= sorted[last].level);
    let (low, high) = sorted.split_at(above);
    !high.is_empty() && both_fail(low, high)
}

/// Returns whether both groups fail, and the lower one fails nearly as much.
fn both_fail(low: &[&Point], high: &[&Point]) -> bool {
    let pooled = |points: &[&Point]| {
        let calls = |point: &&Point| (point.achieved_per_s * point.window_s).max(1.0);
        let failed: f64 = points.iter().map(|point| calls(point) * point.failure_share).sum();
        failed / points.iter().map(calls).sum::<f64>()
    };
    let (below, above) = (pooled(low), pooled(high));
    let fails = |point: &&Point, failure_share| Point { failure_share, ..**point }.fails();
    let both = fails(&low[0], below) && fails(&high[0], above);
    both && 1.0 - below < IMPROVED_MIN * (1.0 - above).max(1e-9)
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
        // a server with a capacity of 1,000/s
        assert!(!fails_alike(&[at(5_000.0, 0.8), at(2_500.0, 0.6)]));
        assert!(!fails_alike(&[at(10.0, 0.3), at(5.0, 0.0)]));
        assert!(!fails_alike(&[at(10.0, 0.3)]));
        assert!(!fails_alike(&[at(10.0, 0.3), at(10.0, 0.3)]), "the same load twice");
    }

    /// Steps of half a second: the first had five calls, all of them successful.
    #[test]
    fn a_few_good_calls_do_not_hide_a_failing_server() {
        let at = |level: f64, failure_share| Point {
            achieved_per_s: level,
            window_s: 0.5,
            ..at(level, failure_share)
        };
        let mut steps = vec![at(10.0, 0.0), at(20.0, 0.3)];
        assert!(!fails_alike(&steps));
        steps.extend([at(14.0, 0.28), at(17.0, 0.25), at(40.0, 0.3)]);
        assert!(fails_alike(&steps));
        // a server with a capacity of 30/s
        let good = [10.0, 20.0, 30.0].map(|level| at(level, 0.0));
        assert!(!fails_alike(&[&good[..], &[at(40.0, 0.25), at(60.0, 0.5)]].concat()));
    }

    #[test]
    fn an_objective_sets_the_allowed_failures() {
        let allowed = |share| Point { failures_max: Some(0.02), ..at(10.0, share) };
        assert!(!allowed(0.02).fails() && allowed(0.021).fails());
        assert!(!at(10.0, 0.001).fails() && at(10.0, 0.0011).fails());
    }
}
