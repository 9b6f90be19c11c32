//! More than a server can serve: where it no longer follows, what it does beyond, and how it comes
//! back. The load is open: requests fall due whether those before were answered or not.

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

/// What well-behaved clients observed of a load, and the word for it; instants count from the load's beginning.
fn felt(runner: &Runner<'_>, played: &Played, from: Nanos) -> (Health, PressureVerdict) {
    let (load, origin) = (&played.load, runner.prober.origin());
    let own = |at: Nanos| at - origin;
    // the kept probe asks once it has been answered: where every response is late it would wait for
    // itself, and tell of nobody else
    let new: Vec<Probe> =
        played.probes.iter().filter(|probe| probe.kind == ProbeKind::New).cloned().collect();
    let pressed = Pressed {
        base: runner.profile.quiet(),
        every: runner.prober.every(),
        probes: &new,
        armed_at: own(load.start() + from),
        released_at: own(load.released_at()),
        over_at: own(load.over_at()),
        back_at: load.back_at(),
        wanted: load.stood(),
        armed: load.stood(),
        short: load.is_short(),
        broken_at: load.broken_at().iter().map(|at| own(*at)).collect(),
    };
    let felt = health(&pressed);
    let verdict = outcome(&pressed, &felt);
    let felt = if played.cut_short { pressure::cut_short(felt) } else { felt };
    // there is one round, and nothing that it could follow
    (Health { rounds: 0, ..felt }, verdict)
}

/// How long the recovery took, where the watch for it was not cut short.
fn measure_recovery(result: &mut CaseResult, what: &str, health: &Health, note: String) {
    if !health.cut_short {
        result.measures.push(Measure::recovery(what, health.recovery, GATE, note));
    }
}

/// Where the server no longer follows, with its measures in the result the first time. `None`: the
/// result says why nothing can be said.
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

/// The server was not overloaded: the result says so, and what would change that.
fn unreached(knee: &Knee, result: &mut CaseResult) -> bool {
    let Some(why) = knee.unreached() else { return false };
    let ours = matches!(knee.limit, Some(Limit::Ourselves(_) | Limit::Time));
    let nothing = LoadOutcome::from(PressureOutcome::Inconclusive);
    result.show(if ours { nothing } else { LoadOutcome::Unseen });
    result.notes.insert(0, why);
    true
}

const CUT_SHORT: &str = "the time was up before its end";

/// Why a load that came out badly says nothing of the server.
fn is_ours(played: &Played, step: &LoadStep) -> Option<String> {
    match played.cut_short {
        true => Some(CUT_SHORT.to_owned()),
        false => step.lateness().map(|late| format!("{late}: this machine was too busy")),
    }
}

/// What well-behaved clients observed that is worse than any word for goodput or recovery.
const GRAVE: [PressureOutcome; 3] =
    [PressureOutcome::Denied, PressureOutcome::Leak, PressureOutcome::Crashed];

/// The outcome of a load: of what well-behaved clients observed and of what was served the worse, as far as it
/// is not our fault. In an overload late responses are no fault of the server's either.
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
