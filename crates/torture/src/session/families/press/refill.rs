//! The refill: whether as many connections find a place after a case as before it. What a server did
//! not get back shows here before polite clients miss it.

use super::held::idle;
use super::{OPENS, pace};
use crate::case::Case;
use crate::judge::Outcome;
use crate::session::pressure::Plan;
use crate::session::{CaseResult, Runner, Unit};
use units::{Nanos, show};

/// As many as before: at least this share of them.
pub(super) const REFILLED: f64 = 0.95;
/// Polite connections of a fill at most.
const FILL_MAX: u64 = 100;
/// Two measured deadlines are given to a server that is full; or this, where none was measured.
const WAIT: Nanos = Nanos::from_secs(10);
const WAIT_MAX: Nanos = Nanos::from_secs(120);

/// The fewest of `former` places that are as many as before.
pub(super) fn enough(former: u64) -> u64 {
    (former as f64 * REFILLED).ceil() as u64
}

/// How many polite connections, that then stay, are answered of those that were to be; `None` where
/// nothing can be said.
pub(super) fn fill(runner: &mut Runner<'_>, case: &Case, wanted: u64) -> Option<u64> {
    let count = runner.connections_max(wanted);
    let scripts = (0..count).map(|_| idle(runner)).collect();
    let pace = pace(runner.opens_max(OPENS));
    // what fills the places is not what the case presses with
    let pressed = runner.pressed.take();
    let round = runner.round(&case.id, &Plan::paced(scripts, pace, runner.probing.deadline));
    runner.pressed = pressed;
    let known = round.outcome != Outcome::Inconclusive && !runner.is_stopped();
    known.then(|| round.ended.iter().filter(|one| one.right).count() as u64)
}

/// Places before a case whose effect on them is to be seen.
pub(super) fn places(runner: &mut Runner<'_>, case: &Case) -> Option<u64> {
    // a server that is others' is not filled for that
    if !runner.may_repeat() {
        return None;
    }
    fill(runner, case, FILL_MAX).filter(|former| *former > 0)
}

/// Fills the places again, as `again` says how many of them it finds, and once more when the server
/// has had time to miss those that are gone.
pub(super) fn refill(
    runner: &mut Runner<'_>,
    result: &mut CaseResult,
    former: u64,
    again: &mut dyn FnMut(&mut Runner<'_>) -> Option<u64>,
) {
    if result.outcome >= Outcome::Leak || result.outcome == Outcome::Inconclusive {
        return;
    }
    let released = runner.now();
    if again(runner).is_none_or(|found| found >= enough(former)) {
        return;
    }
    let measured = result.measures.iter().filter(|one| one.unit == Unit::Seconds);
    let deadline = measured.filter_map(|one| one.high).map(Nanos::from_secs_f64).max();
    let deadline = deadline.or_else(|| runner.meter.longest());
    let wait = deadline.map_or(WAIT, |span| span * 2).clamp(WAIT, WAIT_MAX);
    let passed = runner.now() - released;
    runner.world.pause(Nanos(wait.0.saturating_sub(passed.0)));
    if runner.is_stopped() || runner.case_is_over() {
        return;
    }
    if let Some(found) = again(runner).filter(|found| *found < enough(former)) {
        result.outcome = Outcome::Leak;
        result.notes.push(format!(
            "of {former} connections that found a place before, {found} do {} after the case: the \
             others' places are lost",
            show::duration(wait)
        ));
    }
}
