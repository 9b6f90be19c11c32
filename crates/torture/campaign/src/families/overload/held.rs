//! twice the rate of the knee, held for a while.

use super::course::{self, LoadPlan};
use super::load::Flow;
use super::steps::LoadStep;
use super::{GRAVE, found, load_effect, settle, unreached};
use crate::Runner;
use crate::pressure::SHED_SHARE;
use torture::case::{Case, OverloadHeld};
use torture::judge::PressureOutcome;
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Offered rate, in multiples of the knee.
const FACTOR: f64 = 2.0;
/// Held: the server sustains at least this share of its peak goodput. Below the second share it
/// collapses.
const KEPT_HELD: f64 = 0.8;
const KEPT_COLLAPSE: f64 = 0.5;

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &OverloadHeld,
    result: &mut CaseResult,
) {
    let Some(knee) = found(runner, case, with.search(), result) else { return };
    if unreached(&knee, result) {
        return;
    }
    let (rate, span) = (knee.times(FACTOR), with.hold);
    let factor = rate / knee.high.unwrap_or(rate);
    let flow = Flow::new(0, Nanos::ZERO, span, rate);
    let route = course::probed_route(runner);
    let played =
        course::play(runner, case, with.waiting, LoadPlan::new(vec![route], vec![flow], span));
    let step = LoadStep::new(played.load.calls(), 0, Nanos::ZERO, span);
    let (health, verdict) = load_effect(runner, &played, Nanos::ZERO);
    result.health = Some(health);
    let kept = step.goodput() / knee.peak.max(f64::MIN_POSITIVE);
    result.measures.push(Measure::exact(
        format!("goodput at {factor:.1} times the knee"),
        step.goodput(),
        Unit::PerSecond,
        format!(
            "{} offered, {} of the peak sustained",
            show::rate(step.offered()),
            show::share(kept)
        ),
    ));
    result.notes.extend(describe(kept, &step, factor));
    settle(&played, &step, verdict, &GRAVE, outcome_of(kept, &step), result);
}

/// Returns the verdict on the sustained share, if well-behaved clients were served.
fn outcome_of(kept: f64, step: &LoadStep) -> PressureOutcome {
    match kept {
        KEPT_HELD.. if step.share(step.shed) > SHED_SHARE => PressureOutcome::Shed,
        KEPT_HELD.. => PressureOutcome::Held,
        _ => PressureOutcome::Degraded,
    }
}

/// Returns the reason for a verdict below the best.
fn describe(kept: f64, step: &LoadStep, factor: f64) -> Option<String> {
    let at = format!("at {factor:.1} times the knee");
    let share = show::share(kept);
    match kept {
        KEPT_HELD.. if step.shed > 0 => {
            Some(format!("{at} {} of the requests were shed", show::share(step.share(step.shed))))
        }
        KEPT_HELD.. => None,
        KEPT_COLLAPSE.. => Some(format!("{at} it sustains {share} of its peak goodput")),
        _ => Some(format!("{at} it collapses: it sustains {share} of its peak goodput")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sustained_share_of_the_peak_has_a_verdict() {
        let step = |shed| LoadStep { due: 100, shed, ..LoadStep::default() };
        for (kept, shed, expected) in [
            (1.0, 0, PressureOutcome::Held),
            (0.8, 1, PressureOutcome::Held),
            (0.8, 2, PressureOutcome::Shed),
            (0.79, 50, PressureOutcome::Degraded),
            (0.5, 0, PressureOutcome::Degraded),
            (0.1, 0, PressureOutcome::Degraded),
        ] {
            assert_eq!(outcome_of(kept, &step(shed)), expected, "{kept} {shed}");
        }
        assert_eq!(describe(0.9, &step(0), 2.0), None);
        assert!(describe(0.49, &step(0), 2.0).unwrap().contains("collapses"));
        assert!(!describe(0.51, &step(0), 2.0).unwrap().contains("collapses"));
    }
}
