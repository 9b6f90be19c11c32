//! The refill: whether as many connections find a place after a case as before it. What a server did
//! not get back shows here before well-behaved clients miss it.

use super::held::idle;
use super::{OPENS, pace};
use crate::pressure::Plan;
use crate::{Runner, bounds, pressure};
use torture::case::Case;
use torture::judge::{PressureOutcome, TestOutcome};
use torture::result::{CaseResult, Unit};
use units::{Nanos, show};

/// As many as before: at least this share of them.
pub(super) const REFILLED: f64 = 0.95;
/// Well-behaved connections of a fill at most.
const FILL_MAX: u64 = 100;
/// Two measured deadlines are given to a server that is full; or this, where none was measured.
const WAIT: Nanos = Nanos::from_secs(10);
const WAIT_MAX: Nanos = Nanos::from_secs(120);
/// The last fill stands for so long: a server that starts workers as it needs them has started enough
/// by then.
const GROW: Nanos = Nanos::from_secs(5);

/// The fewest of `former` places that are as many as before.
pub(super) fn enough(former: u64) -> u64 {
    (former as f64 * REFILLED).ceil() as u64
}

/// How many well-behaved connections, that then stay, are answered of those that were to be; `None` where
/// nothing can be said.
pub(super) fn fill(runner: &mut Runner<'_>, case: &Case, wanted: u64, hold: Nanos) -> Option<u64> {
    let count = bounds::connections_max(runner.world.governor(), wanted);
    let scripts = (0..count).map(|_| idle(runner)).collect();
    let pace = pace(bounds::opens_max(runner.world.governor(), OPENS));
    let round = pressure::round_apart(runner, &case.id, &Plan::paced(scripts, pace, hold));
    let known = round.outcome != PressureOutcome::Inconclusive && !runner.is_stopped();
    known.then(|| round.ended.iter().filter(|one| one.right).count() as u64)
}

/// Places before a case whose effect on them is to be seen.
pub(super) fn places(runner: &mut Runner<'_>, case: &Case) -> Option<u64> {
    // a server that is others' is not filled for that
    if !runner.world.governor().may_repeat() {
        return None;
    }
    let hold = runner.prober.deadline();
    fill(runner, case, FILL_MAX, hold).filter(|former| *former > 0)
}

/// How many of the former places are found, by connections that stand for so long.
pub(super) type Again<'a> = &'a dyn Fn(&mut Runner<'_>, Nanos) -> Option<u64>;

/// Fills the places again, and once more when the server has had time to miss those that are gone. A
/// server whose places come and go of themselves has none that could be lost.
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
    if runner.has_to_end() {
        return;
    }
    let found = again(runner, GROW).filter(|found| *found < enough(former));
    if let Some(found) = found.filter(|_| !runner.life.has_other_workers(runner.world)) {
        result.outcome = PressureOutcome::Leak.into();
        result.notes.push(format!(
            "of {former} connections that found a place before, {found} do {} after the case: the \
             others' places are lost",
            show::duration(wait)
        ));
    }
}
