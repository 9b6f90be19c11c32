//! Rounds of load with many connections and concurrent probes: armed, held, released and watched
//! until recovery. Only [`outcome`] judges the effect on well-behaved clients.

pub(crate) mod blame;
mod confirmation;
mod outcome;
mod recovery_watch;
mod round_director;

pub(crate) use crate::rounds::Plan;
pub(crate) use confirmation::{confirmed_round, round_with_confirmed_denial};
pub use outcome::{
    ARMED, BACK_WITHIN, CORRECT_HELD, DENIED_SHARE, DENIED_WINDOW, LATE_GRAVE, LATE_MAX, LOST_SHED,
    P99_FACTOR, P99_MORE, Pressed, PressureVerdict, REFUSED_MAX, SERVED_DEGRADED, SHED_SHARE,
    SLOW_FEW, health, outcome, slow_threshold,
};
pub(crate) use recovery_watch::RecoveryWatch;
pub(crate) use round_director::{Ended, RoundDirector};

use crate::Runner;
use crate::life::AffectedPart;
use torture::judge::PressureOutcome;
use torture::result::{Health, Probe, Seen};
use units::{Nanos, show};

/// Repetitions of a round after a problem of the client.
pub const UNHEALTHY_TRIES: u32 = 3;
/// Share of one core above which our own work interferes: slowness may then be ours.
pub const CPU_MAX: f64 = 0.8;
/// Time before the load, in which the kept probe gets its connection.
const LEAD: Nanos = Nanos::from_millis(500);

/// Minimum load time of a round, so that some probes are due.
const PRESS_MIN: Nanos = Nanos::SECOND;

/// A completed round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) outcome: PressureOutcome,
    pub(crate) notes: Vec<String>,
    pub(crate) health: Health,
    /// Results of the conversations of the load.
    pub(crate) ended: Vec<Ended>,
    /// True if the kept probe was served while all connections were open: it had its own slot.
    pub(crate) kept: bool,
    /// Time for which well-behaved clients were denied, from the first lost probe.
    pub(crate) denied_for: Nanos,
    /// Well-behaved clients were served again under load ...
    pub(crate) served_again: bool,
    /// ... because the server closed some of its connections.
    pub(crate) came_back: bool,
}

impl Round {
    /// Returns whether as many connections as wanted were open.
    pub(crate) fn is_armed(&self) -> bool {
        self.health.armed as f64 >= self.health.wanted as f64 * ARMED
    }

    /// Returns whether some well-behaved clients were not served.
    pub(crate) fn is_bound(&self) -> bool {
        matches!(
            self.outcome,
            PressureOutcome::Denied
                | PressureOutcome::Crashed
                | PressureOutcome::Leak
                | PressureOutcome::Shed
        )
    }
}

/// Reason for an inconclusive round that ended early with the run or the case.
const CUT_SHORT: &str = "the round was interrupted";

/// Runs one round, repeated after a problem of the client.
pub(crate) fn round(runner: &mut Runner<'_>, case: &str, plan: &Plan) -> Round {
    runner.pressed.remember(plan);
    round_outside_load(runner, case, plan)
}

/// Runs [`round`] with conversations other than the case's load.
pub(crate) fn round_outside_load(runner: &mut Runner<'_>, case: &str, plan: &Plan) -> Round {
    let mut tries = 1;
    loop {
        let round = round_once(runner, case, plan);
        let sick = round.outcome == PressureOutcome::Inconclusive;
        if !sick || tries == UNHEALTHY_TRIES || runner.must_end_run() {
            return round;
        }
        tries += 1;
    }
}

/// Returns the observations of an interrupted round: the recovery time is unknown.
pub(crate) fn cut_short(felt: Health) -> Health {
    Health { cut_short: true, recovery: None, ..felt }
}

/// Runs one round without repetition.
pub(crate) fn round_once(runner: &mut Runner<'_>, case: &str, plan: &Plan) -> Round {
    let base = runner.profile.quiet();
    runner.world.own_work();
    let every = runner.prober.every();
    let slow = slow_threshold(&base);
    let mut round_director = RoundDirector::new(
        plan.clone(),
        runner.profile.plain(),
        LEAD,
        slow,
        runner.prober.origin(),
        every,
    );
    let probes = runner.play_with_probes(case, &mut round_director);
    let work = runner.world.own_work();
    let wanted = plan.scripts.len() as u64;
    let pressed = round_director.round_facts(base, &probes, wanted);
    let mut felt = health(&pressed);
    let mut verdict = outcome(&pressed, &felt);
    let busy = work.filter(|share| *share > CPU_MAX);
    if let Some(share) = busy.filter(|_| verdict.outcome == PressureOutcome::Degraded) {
        let percent = show::share(share);
        verdict = PressureVerdict {
            outcome: PressureOutcome::Inconclusive,
            notes: vec![format!("our own work used {percent} of a core")],
        };
    }
    if runner.life.observe(runner.world) == AffectedPart::Server {
        verdict.outcome = PressureOutcome::Crashed;
    }
    let ends = runner.world.governor().case_ends();
    if round_director.is_cut_short(ends) {
        felt = cut_short(felt);
        if verdict.outcome != PressureOutcome::Crashed {
            verdict = PressureVerdict {
                outcome: PressureOutcome::Inconclusive,
                notes: vec![CUT_SHORT.to_owned()],
            };
        }
    }
    let (denied_for, served_again) = denial(&pressed);
    let (kept, was_cut_short) = (pressed.kept_served(), round_director.was_cut_short());
    let (ended, lints) = round_director.into_ended();
    runner.lints.add(lints);
    Round {
        outcome: verdict.outcome,
        notes: verdict.notes,
        health: felt,
        kept,
        denied_for,
        served_again,
        came_back: served_again && was_cut_short,
        ended,
    }
}

/// Returns why effects on well-behaved clients cannot be judged.
pub(crate) fn noise(runner: &Runner<'_>) -> Option<String> {
    if runner.settings.accept_noisy { None } else { runner.profile.quiet().trouble() }
}

/// Returns how long well-behaved clients were denied while armed, from the first lost probe until
/// one was served again or the release, and whether they were served again before the release.
fn denial(pressed: &Pressed<'_>) -> (Nanos, bool) {
    let worst = pressed.worst_kind();
    let mut lost = pressed.armed_probes(worst).filter(|probe| probe.seen == Seen::Lost);
    let Some(first) = lost.next() else { return (Nanos::ZERO, false) };
    let last = lost.last().unwrap_or(first);
    let served: Vec<&Probe> =
        pressed.armed_probes(worst).filter(|probe| probe.due > last.due).collect();
    let came_back = served.len() >= SLOW_FEW;
    let again = served.iter().map(|probe| probe.due + probe.over).min();
    let end = again.filter(|_| came_back).unwrap_or(pressed.released_at);
    (end - first.due, came_back)
}
