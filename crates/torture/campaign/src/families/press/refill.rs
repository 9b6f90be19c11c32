//! The refill: whether the server has as many slots after a case as before. It shows leaked slots
//! before well-behaved clients notice them.

use super::held::idle;
use super::{OPENS, pace};
use crate::pressure::Plan;
use crate::{Runner, bounds, pressure};
use torture::case::Case;
use torture::judge::{PressureOutcome, TestOutcome};
use torture::result::{CaseResult, Unit};
use units::{Nanos, show};

/// Minimum share that counts as "as many as before".
pub(super) const REFILLED: f64 = 0.95;
/// Maximum number of well-behaved connections of a fill.
const FILL_MAX: u64 = 100;
/// Waiting time for a full server: two measured timeouts, or this default.
const WAIT: Nanos = Nanos::from_secs(10);
const WAIT_MAX: Nanos = Nanos::from_secs(120);
/// Time that the last fill is held, so that a server that starts workers on demand has started
/// enough.
const GROW: Nanos = Nanos::from_secs(5);

/// Returns the minimum number of slots that still counts as `former` slots.
pub(super) fn enough(former: u64) -> u64 {
    (former as f64 * REFILLED).ceil() as u64
}

/// Returns how many of the wanted well-behaved connections, which then stay open, get a response;
/// `None` if inconclusive.
pub(super) fn fill(runner: &mut Runner<'_>, case: &Case, wanted: u64, hold: Nanos) -> Option<u64> {
    let count = bounds::connections_max(runner.world.governor(), wanted);
    let scripts = (0..count).map(|_| idle(runner)).collect();
    let pace = pace(bounds::opens_max(runner.world.governor(), OPENS));
    let round = pressure::round_outside_load(runner, &case.id, &Plan::paced(scripts, pace, hold));
    let known = round.outcome != PressureOutcome::Inconclusive && !runner.is_stopped();
    known.then(|| round.ended.iter().filter(|one| one.right).count() as u64)
}

/// Returns the slots before a case that may affect them.
pub(super) fn places(runner: &mut Runner<'_>, case: &Case) -> Option<u64> {
    // a third-party server is not filled for this
    if !runner.world.governor().may_repeat() {
        return None;
    }
    let hold = runner.prober.deadline();
    fill(runner, case, FILL_MAX, hold).filter(|former| *former > 0)
}

/// Counts how many of the former slots are found by connections held this long.
pub(super) type Again<'a> = &'a dyn Fn(&mut Runner<'_>, Nanos) -> Option<u64>;

/// Fills the slots again, and once more after the server had time to replace lost ones. If a server
/// changes its number of slots on its own, a loss cannot be judged.
pub(super) fn refill(
    runner: &mut Runner<'_>,
    result: &mut CaseResult,
    former: u64,
    again: Again<'_>,
) {
    let unsteady = matches!(result.outcome, TestOutcome::Inconclusive | TestOutcome::Flaky);
    if unsteady
        || result.outcome >= TestOutcome::Leak
        || runner.life.has_other_workers(runner.world)
    {
        return;
    }
    let (released, hold) = (runner.now(), runner.prober.deadline());
    if again(runner, hold).is_none_or(|found| found >= enough(former)) {
        return;
    }
    let measured = result.measures.iter().filter(|one| one.unit == Unit::Seconds);
    let deadline = measured.filter_map(|one| one.high).map(Nanos::from_secs_f64).max();
    let deadline = deadline.or_else(|| runner.states.longest());
    let wait = deadline.map_or(WAIT, |span| span * 2).clamp(WAIT, WAIT_MAX);
    let passed = runner.now() - released;
    runner.world.pause(Nanos(wait.0.saturating_sub(passed.0)));
    if runner.must_end_run() {
        return;
    }
    let found = again(runner, GROW).filter(|found| *found < enough(former));
    if let Some(found) = found.filter(|_| !runner.life.has_other_workers(runner.world)) {
        result.outcome = PressureOutcome::Leak.into();
        result.notes.push(format!(
            "of {former} connections that found a slot before, {found} do so {} after the case: \
            the other slots are lost",
            show::duration(wait)
        ));
    }
}
