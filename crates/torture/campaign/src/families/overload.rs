//! Overload: the rate from which the server no longer keeps up, how it behaves beyond that, and how
//! it recovers. The load is open: requests are due regardless of earlier responses.

mod climb;
mod course;
pub(super) mod held;
mod load;
pub(super) mod mixed;
pub(super) mod restart;
pub(super) mod soak;
pub(super) mod spike;
pub(super) mod starve;
mod steps;
pub(super) mod storm;

use crate::knee::{Knee, Limit};
use crate::pressure::{LATE_GRAVE, Pressed, PressureVerdict, health, outcome};
use crate::{GATE, Runner, pressure};
use course::Played;
use steps::LoadStep;
use torture::case::{Case, KneeSearch};
use torture::judge::{LoadOutcome, PressureOutcome, TestOutcome};
use torture::result::{CaseResult, Health, Measure, Probe, ProbeKind};
use units::Nanos;

/// Returns the effect of a load on well-behaved clients, and its verdict; instants count from the
/// start of the load.
fn load_effect(runner: &Runner<'_>, played: &Played, from: Nanos) -> (Health, PressureVerdict) {
    let (load, origin) = (&played.load, runner.prober.origin());
    let own = |at: Nanos| at - origin;
    // the kept probe sends its next request after the response: if every response is late, the
    // probe delays itself, which shows nothing about other clients
    let new: Vec<Probe> =
        played.probes.iter().filter(|probe| probe.kind == ProbeKind::New).cloned().collect();
    let pressed = Pressed {
        base: runner.profile.quiet(),
        every: runner.prober.every(),
        probes: &new,
        armed_at: own(load.start() + from),
        released_at: own(load.released_at()),
        over_at: own(load.over_at()),
        back_at: load.recovered_at(),
        wanted: load.established(),
        armed: load.established(),
        short: load.is_short(),
        broken_at: load.broken_at().iter().map(|at| own(*at)).collect(),
    };
    let felt = health(&pressed);
    let verdict = outcome(&pressed, &felt);
    let felt = if played.cut_short { pressure::cut_short(felt) } else { felt };
    // there is one round, and no effect to confirm
    (Health { rounds: 0, ..felt }, verdict)
}

/// Records the recovery time, unless the watch was interrupted.
fn measure_recovery(result: &mut CaseResult, what: &str, health: &Health, note: String) {
    if !health.cut_short {
        result.measures.push(Measure::recovery(what, health.recovery, GATE, note));
    }
}

/// Finds the knee; the first time, also records its figures. `None` if the result explains why it
/// is unknown.
fn found(
    runner: &mut Runner<'_>,
    case: &Case,
    search: KneeSearch,
    result: &mut CaseResult,
) -> Option<Knee> {
    if let Some(why) = pressure::noise(runner) {
        result.outcome = PressureOutcome::Inconclusive.into();
        result.notes.push(why);
        return None;
    }
    let known = runner.profile.knee().is_some();
    let knee = climb::knee(runner, case, search);
    if !known {
        result.measures.extend(knee.measures());
    }
    if let Some(why) = &knee.crashed {
        result.outcome = PressureOutcome::Crashed.into();
        result.notes.push(why.clone());
        return None;
    }
    Some(knee)
}

/// If the server was not overloaded, records this with a hint and returns true.
fn unreached(knee: &Knee, result: &mut CaseResult) -> bool {
    let Some(why) = knee.unreached() else { return false };
    let ours = matches!(knee.limit, Some(Limit::Ourselves(_) | Limit::Time));
    let nothing = LoadOutcome::from(PressureOutcome::Inconclusive);
    result.show(if ours { nothing } else { LoadOutcome::Unseen });
    result.notes.insert(0, why);
    true
}

const CUT_SHORT: &str = "the time limit was reached before its end";

/// Returns why a bad load result is not caused by the server.
fn is_ours(played: &Played, step: &LoadStep) -> Option<String> {
    match played.cut_short {
        true => Some(CUT_SHORT.to_owned()),
        false => step.lateness().map(|late| format!("{late}: this machine was too busy")),
    }
}

/// Effects on well-behaved clients that are worse than any verdict on goodput or recovery.
const GRAVE: [PressureOutcome; 3] =
    [PressureOutcome::Denied, PressureOutcome::Leak, PressureOutcome::Crashed];

/// Combines the effect on well-behaved clients with the verdict on the load, unless we are at
/// fault. Under overload, late responses do not count against the server.
fn settle(
    played: &Played,
    step: &LoadStep,
    felt: PressureVerdict,
    grave: &[PressureOutcome],
    word: PressureOutcome,
    result: &mut CaseResult,
) {
    let worst = if grave.contains(&felt.outcome) { felt.outcome } else { word };
    let late = || played.probes.iter().any(|probe| probe.late > LATE_GRAVE);
    let sick = felt.outcome == PressureOutcome::Inconclusive && (played.load.is_short() || late());
    let bad = TestOutcome::from(worst).is_finding() || played.cut_short;
    let ours = is_ours(played, step).filter(|_| bad);
    if sick || grave.contains(&felt.outcome) {
        result.notes.splice(0..0, felt.notes);
    }
    result.notes.splice(0..0, ours.clone());
    let nothing = sick || ours.is_some();
    let word = if nothing { PressureOutcome::Inconclusive } else { worst };
    result.outcome = word.into();
}
