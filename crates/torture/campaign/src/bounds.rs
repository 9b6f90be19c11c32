//! Shares of the run's limits available for load, after subtracting probes and accompanying
//! requests.

use dialogue::governor::Governor;
use units::Nanos;

/// Connections open at once, and new connections per second, reserved for probes: twice the
/// governor's own reserve.
const PROBES_OPEN: u64 = 8;
const PROBES_OPENED: u64 = 20;
/// Requests per second reserved for beacons, which announce cases in the server's log.
const BEACONS: u64 = 4;
const ROUNDS_MAX: Nanos = Nanos::from_secs(120);

/// Returns the number of simultaneous connections available for load, at most `most`.
pub(crate) fn connections_max(governor: &Governor, most: u64) -> u64 {
    let bound = governor.bounds().map(|bounds| bounds.connections_max);
    bound.map_or(most, |bound| most.min(bound.saturating_sub(PROBES_OPEN))).max(1)
}

/// Returns the number of new connections per second available for load, at most `most`.
pub(crate) fn opens_max(governor: &Governor, most: u64) -> u64 {
    let bound = governor.bounds().map(|bounds| bounds.opens_max);
    let left = |bound: u64| bound.saturating_sub(PROBES_OPENED).max(bound / 2);
    bound.map_or(most, |bound| most.min(left(bound))).max(1)
}

/// Returns the number of requests that may start at the same instant without waiting, at most
/// `most`: a request that is admitted but can only be written a moment later counts twice.
pub(crate) fn requests_max(governor: &Governor, most: u64) -> u64 {
    let bound = governor.bounds().and_then(|bounds| bounds.requests_max);
    bound.map_or(most, |bound| most.min(bound.saturating_sub(BEACONS) / 2)).max(1)
}

/// Returns the time available for all rounds of a case.
pub(crate) fn rounds_max(governor: &Governor) -> Nanos {
    let bound = governor.bounds().map(|bounds| bounds.case_max);
    bound.map_or(ROUNDS_MAX, |bound| Nanos(bound.0 / 3 * 2).min(ROUNDS_MAX))
}

/// Returns whether the server belongs to a third party: soon after it stops responding, it gets no
/// more requests.
pub(crate) fn must_be_spared(governor: &Governor) -> bool {
    governor.bounds().is_some_and(|bounds| bounds.lost_max.is_some())
}
