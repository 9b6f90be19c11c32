//! Determines whether a ramp's objectives are missed, which decides the exit code.

use super::RampRecord;
use stats::curve::{CapacityEnd, Curve};

/// Returns whether the objectives are missed at every tested load: an unusable step below the
/// lowest one that misses them leaves the question open.
pub fn missed(report: &RampRecord) -> bool {
    let never = |(row, curve): (usize, &Curve)| {
        let capacity = curve.capacity.as_ref();
        let found = capacity
            .filter(|found| !found.objectives.is_empty() && found.how == CapacityEnd::NeverMet);
        found.is_some_and(|found| !report.is_unknown_below(row, found.at.high))
    };
    report.curves().iter().enumerate().any(never)
}
