//! Confirmation of an effect on well-behaved clients: other programs of this machine can slow or
//! block a server too. An equal time without load must not show the effect, and most rounds of the
//! load must.

use super::{Plan, Round, round, round_outside_load};
use crate::{Runner, scripts};
use torture::judge::PressureOutcome;
use units::Nanos;

/// Duration of the control, which depends on that of the load.
const CONTROL_MIN: Nanos = Nanos::from_secs(2);
const CONTROL_MAX: Nanos = Nanos::from_secs(10);

/// Runs one round like [`round`], and repeats it if well-behaved clients are served slowly or not at
/// all.
pub(crate) fn confirmed_round(runner: &mut Runner<'_>, case: &str, plan: &Plan) -> Round {
    confirmed_from(runner, case, plan, PressureOutcome::Degraded)
}

/// Runs one round like [`round`], and repeats it if it denies service. The caller judges slow rounds.
pub(crate) fn round_with_confirmed_denial(
    runner: &mut Runner<'_>,
    case: &str,
    plan: &Plan,
) -> Round {
    confirmed_from(runner, case, plan, PressureOutcome::Denied)
}

/// `least`: the least effect that is confirmed.
fn confirmed_from(
    runner: &mut Runner<'_>,
    case: &str,
    plan: &Plan,
    least: PressureOutcome,
) -> Round {
    let mut first = round(runner, case, plan);
    // a crash, or a server that does not recover, needs no confirmation
    let is_passing = (least..=PressureOutcome::Denied).contains(&first.outcome);
    if !is_passing || runner.must_end_run() {
        return first;
    }
    if !runner.world.governor().may_repeat() {
        first.notes.push("not repeated, to spare the server (--confirm repeats it)".to_owned());
        return first;
    }
    let calm = control(runner, plan);
    let control = round_outside_load(runner, case, &calm);
    if control.outcome >= least || control.outcome == PressureOutcome::Inconclusive {
        return uncertain(first, CONTROL_AFFECTED);
    }
    let mut rounds = vec![first];
    while must_repeat(&rounds, least) && !runner.must_end_run() {
        rounds.push(round(runner, case, plan));
    }
    confirmed(rounds, least)
}

/// Reasons for an inconclusive round.
const CONTROL_AFFECTED: &str = "well-behaved clients were not served as usual during an equal time \
    without load either: the load is not shown to be the cause";
const UNCONFIRMED: &str =
    "this is not confirmed: a further round was inconclusive, or the run ended before it";

/// Returns an equal time with one plain request as its load.
fn control(runner: &mut Runner<'_>, plan: &Plan) -> Plan {
    let last = plan.scripts.iter().map(|(at, _)| *at).max().unwrap_or_default();
    let span = (last + plan.hold).clamp(CONTROL_MIN, CONTROL_MAX);
    Plan { armed_early: true, ..Plan::paced(vec![scripts::plain(runner)], Nanos::ZERO, span) }
}

/// Returns whether another round decides: one repetition that shows the effect suffices, and a third
/// round decides if it does not.
fn must_repeat(rounds: &[Round], least: PressureOutcome) -> bool {
    match rounds {
        [_] => true,
        [_, second] => second.outcome < least && second.outcome != PressureOutcome::Inconclusive,
        _ => false,
    }
}

/// Returns the conclusion of rounds of one load, of which the first has at least this effect.
fn confirmed(mut rounds: Vec<Round>, least: PressureOutcome) -> Round {
    let made = rounds.len();
    let is_affected = |round: &Round| round.outcome >= least;
    let affected = rounds.iter().filter(|round| is_affected(round)).count();
    if rounds.iter().any(|round| round.outcome == PressureOutcome::Inconclusive) || made == 1 {
        return uncertain(rounds.swap_remove(0), UNCONFIRMED);
    }
    let is_usual = affected * 2 > made;
    let last = rounds.iter().rposition(|round| is_affected(round) == is_usual).unwrap_or_default();
    let mut shown = rounds.swap_remove(last);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    (shown.health.rounds, shown.health.followed) = (count(made), count(affected));
    if !is_usual {
        let text = "well-behaved clients were affected in";
        shown.notes.push(format!("{text} {affected} of {made} rounds"));
    }
    shown
}

/// Returns a round whose effect was not confirmed.
fn uncertain(first: Round, why: &str) -> Round {
    let mut round = Round { outcome: PressureOutcome::Inconclusive, ..first };
    round.notes.push(why.to_owned());
    round
}

#[cfg(test)]
mod tests {
    use super::*;
    use PressureOutcome::{Degraded, Denied, Held, Inconclusive, Leak};
    use torture::result::Health;

    fn played(outcomes: &[PressureOutcome]) -> Vec<Round> {
        let one = |outcome: &PressureOutcome| Round {
            outcome: *outcome,
            notes: Vec::new(),
            health: Health::default(),
            ended: Vec::new(),
            kept: false,
            denied_for: Nanos::ZERO,
            served_again: false,
            came_back: false,
        };
        outcomes.iter().map(one).collect()
    }

    #[test]
    fn most_rounds_must_show_the_effect() {
        for (outcomes, least, outcome, counts) in [
            (&[Denied, Denied][..], Denied, Denied, (2, 2)),
            (&[Denied, Held, Denied], Denied, Denied, (3, 2)),
            (&[Denied, Held, Held], Denied, Held, (3, 1)),
            (&[Denied, Leak], Denied, Leak, (2, 2)),
            (&[Degraded, Degraded], Degraded, Degraded, (2, 2)),
            (&[Degraded, Held, Denied], Degraded, Denied, (3, 2)),
            (&[Degraded, Held, Held], Degraded, Held, (3, 1)),
            (&[Denied, Degraded, Held], Denied, Held, (3, 1)),
            (&[Denied, Inconclusive], Denied, Inconclusive, (0, 0)),
            // the run ended
            (&[Denied], Denied, Inconclusive, (0, 0)),
        ] {
            let rounds = played(outcomes);
            assert!(!must_repeat(&rounds, least) || outcomes.len() == 1, "{outcomes:?}");
            let shown = confirmed(rounds, least);
            assert_eq!(shown.outcome, outcome, "{outcomes:?}");
            if outcome != Inconclusive {
                assert_eq!((shown.health.rounds, shown.health.followed), counts, "{outcomes:?}");
            }
            assert_eq!(shown.notes.is_empty(), shown.outcome >= least, "{outcomes:?}");
        }
        assert!(must_repeat(&played(&[Denied, Held]), Denied));
        assert!(must_repeat(&played(&[Denied, Degraded]), Denied));
        assert!(!must_repeat(&played(&[Denied, Degraded]), Degraded));
    }
}
