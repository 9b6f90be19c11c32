//! What of the bounds of a run may be used by those who press, probes and the requests beside taken off.

use dialogue::governor::Governor;
use units::Nanos;

/// Connections, and new ones a second, that are left for probes: twice what the governor keeps.
const PROBES_OPEN: u64 = 8;
const PROBES_OPENED: u64 = 20;
/// Requests a second that are left for those which name a case to the server's log.
const BEACONS: u64 = 4;
const ROUNDS_MAX: Nanos = Nanos::from_secs(120);

/// Connections that may press at once, so many at most.
pub(crate) fn connections_max(governor: &Governor, most: u64) -> u64 {
    let bound = governor.bounds().map(|bounds| bounds.connections_max);
    bound.map_or(most, |bound| most.min(bound.saturating_sub(PROBES_OPEN))).max(1)
}

/// New connections a second that may press, so many at most.
pub(crate) fn opens_max(governor: &Governor, most: u64) -> u64 {
    let bound = governor.bounds().map(|bounds| bounds.opens_max);
    let left = |bound: u64| bound.saturating_sub(PROBES_OPENED).max(bound / 2);
    bound.map_or(most, |bound| most.min(left(bound))).max(1)
}

/// Requests that begin at the same instant without one waiting, so many at most: who is granted one
/// and can write only an instant later asks twice.
pub(crate) fn requests_max(governor: &Governor, most: u64) -> u64 {
    let bound = governor.bounds().and_then(|bounds| bounds.requests_max);
    bound.map_or(most, |bound| most.min(bound.saturating_sub(BEACONS) / 2)).max(1)
}

/// Time that all rounds of a case may take together.
pub(crate) fn rounds_max(governor: &Governor) -> Nanos {
    let bound = governor.bounds().map(|bounds| bounds.case_max);
    bound.map_or(ROUNDS_MAX, |bound| Nanos(bound.0 / 3 * 2).min(ROUNDS_MAX))
}

/// A server of others, which is left alone soon after it has ceased to answer.
pub(crate) fn is_spared(governor: &Governor) -> bool {
    governor.bounds().is_some_and(|bounds| bounds.lost_max.is_some())
}
