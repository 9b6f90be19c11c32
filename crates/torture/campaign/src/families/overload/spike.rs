//! a spike far beyond the knee, and the recovery from it.

use super::course::{self, LoadPlan};
use super::load::Flow;
use super::steps::LoadStep;
use super::{found, load_effect, measure_recovery, settle, unreached};
use crate::{GATE, Runner};
use torture::case::{Case, OverloadSpike};
use torture::judge::{PressureOutcome, TestOutcome};
use torture::result::CaseResult;
use units::{Nanos, show};

/// Rate during the spike, and before and after it, in multiples of the knee.
const FACTOR: f64 = 5.0;
const EASY: f64 = 0.3;
const BEFORE: Nanos = Nanos::from_secs(2);
/// Held: probes recover within this time after the spike.
const BACK_HELD: Nanos = Nanos::from_secs(5);

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &OverloadSpike,
    result: &mut CaseResult,
) {
    let Some(knee) = found(runner, case, with.search(), result) else { return };
    let (rate, easy, span) = (knee.times(FACTOR), knee.sustainable_rate(EASY), with.spike);
    let end = BEFORE + span;
    let flows = vec![
        Flow::new(0, Nanos::ZERO, BEFORE, easy),
        Flow::new(0, BEFORE, span, rate),
        Flow::new(0, end, GATE, easy),
    ];
    let route = course::probed_route(runner);
    let played = course::play(runner, case, with.waiting, LoadPlan::new(vec![route], flows, end));
    let step = LoadStep::new(played.load.calls(), 0, BEFORE, end);
    let (health, verdict) = load_effect(runner, &played, BEFORE);
    result.health = Some(health);
    let note = format!(
        "after {} of {}, {} before and after",
        show::duration(span),
        show::rate(step.offered()),
        show::rate(easy)
    );
    measure_recovery(result, "recovery from a spike", &health, note);
    let word = match health.recovery {
        Some(span) if span <= BACK_HELD => PressureOutcome::Held,
        _ => PressureOutcome::Degraded,
    };
    if word == PressureOutcome::Degraded {
        // the verdict reports probes that never recover
        let late = health.recovery.map(show::duration);
        result.notes.extend(late.map(|span| format!("probes recovered only after {span}")));
    }
    // during the spike no client must be served
    let grave = [PressureOutcome::Leak, PressureOutcome::Crashed];
    settle(&played, &step, verdict, &grave, word, result);
    if result.outcome == TestOutcome::Held {
        unreached(&knee, result);
    }
}
