//! Validity of a whole ramp, from the verdicts of its steps.

use super::{RampRecord, RampStepRecord};
use crate::run::{CauseRecord, VerdictRecord};
use stats::curve::{CapacityEnd, Curve, OF_THE_CLIENT, Point, Purpose, inconclusive_reason};
use stats::{CauseId, State};

/// Causes of a load beyond the knee, where queues grow and samples are few: a ramp searches for
/// them, so they are not flaws of the measurement.
const BEYOND_THE_KNEE: [CauseId; 3] = [CauseId::Drift, CauseId::FewSamples, CauseId::AllFailed];

impl RampRecord {
    /// Adds the verdict over all targets. `died`: a sentence for each target that ended before its
    /// last step because the server no longer answered. Steps limited by the client are used in no
    /// figure, so they count only if there are no others.
    pub fn with_verdict(self, died: &[&str], interrupted: bool) -> RampRecord {
        let verdict = verdict(&self, died, interrupted);
        RampRecord { verdict, ..self }
    }

    /// Returns whether a step of the target below `level` is unusable.
    pub fn is_unknown_below(&self, row: usize, level: f64) -> bool {
        self.steps_of(row).any(|step| step.client_limited && step.level < level)
    }
}

/// Returns the cause for objectives that every usable step misses, while a lower step is unusable:
/// a load that meets them may exist.
fn undecided_objectives(ramp: &RampRecord) -> Option<CauseRecord> {
    let open = |(row, curve): (usize, &Curve)| {
        let found = curve.capacity.as_ref()?;
        let never = found.how == CapacityEnd::NeverMet && !found.objectives.is_empty();
        let rules = found.objectives.iter().map(|objective| objective.text.as_str());
        let rules: Vec<&str> = rules.collect();
        (never && ramp.is_unknown_below(row, found.at.high)).then(|| rules.join(", "))
    };
    let rules = ramp.curves().iter().enumerate().find_map(open)?;
    let limited = ramp.steps.iter().filter(|step| step.client_limited).count();
    Some(CauseRecord {
        id: CauseId::UnusableSteps,
        figure: Some(limited as f64),
        text: format!(
            "{rules} is undecided: missed at every usable step, and lower steps are unusable"
        ),
        advice:
            "Free this machine's cores for the client (--cpus, --nice), or hold each step longer \
                 (--hold)."
                .to_owned(),
    })
}

fn verdict(ramp: &RampRecord, died: &[&str], interrupted: bool) -> VerdictRecord {
    let steps = &ramp.steps;
    let curves = ramp.curves();
    let used: Vec<&RampStepRecord> =
        steps.iter().filter(|step| !step.run.interrupted && !step.client_limited).collect();
    let mut causes: Vec<CauseRecord> = died.iter().map(|why| death_cause(why)).collect();
    if !interrupted {
        causes.extend(unusable_target_cause(ramp).or_else(|| undecided_objectives(ramp)));
    }
    if used.is_empty() && !interrupted {
        causes.extend(unusable(steps));
    } else if !used.is_empty() && used.iter().all(|step| failed(step)) {
        causes.extend(merged(&used, &|_, cause| cause.id == CauseId::AllFailed));
    }
    let mut state = if causes.is_empty() { State::Valid } else { State::Invalid };
    let of_the_load = |step: &RampStepRecord, cause: &CauseRecord| {
        let curve: Option<&Curve> = ramp.row_of(step).and_then(|row| curves.get(row));
        let knee = curve.and_then(|curve| curve.knee.as_ref()).map(|knee| knee.at.at);
        let past = knee.is_some_and(|knee| step.level >= knee);
        let meant = matches!(step.purpose, Purpose::Overload | Purpose::Recovery);
        (past || meant) && BEYOND_THE_KNEE.contains(&cause.id)
    };
    let others = merged(&used, &|step, cause| {
        !of_the_load(step, cause) && !matches!(cause.id, CauseId::AllFailed | CauseId::Interrupted)
    });
    // the causes of a VALID step are notes
    let noted = |cause: &CauseRecord| {
        let serious = |step: &&RampStepRecord| {
            step.run.verdict.state != State::Valid
                && step.run.verdict.causes.iter().any(|known| known.id == cause.id)
        };
        !used.iter().any(serious)
    };
    let only_notes = causes.is_empty() && others.iter().all(noted);
    causes.extend(others);
    let before = causes.len();
    if interrupted {
        causes.push(CauseRecord {
            id: CauseId::Interrupted,
            figure: Some(steps.len() as f64),
            text: format!("interrupted at step {}", steps.len()),
            advice: "The earlier steps are valid; more steps may change the curve.".into(),
        });
    }
    if !used.is_empty() {
        causes.extend(unusable_step_causes(steps));
    }
    if causes.len() > before || !only_notes {
        state = state.max(State::Degraded);
    }
    VerdictRecord { state, causes }
}

/// Returns the cause for a target with too few usable steps, if there is one.
fn unusable_target_cause(ramp: &RampRecord) -> Option<CauseRecord> {
    let targets = ramp.steps.iter().filter_map(|step| ramp.row_of(step)).max();
    let why = |row| {
        let own = ramp.steps_of(row).map(|step| (step.purpose, step.point()));
        let points: Vec<(Purpose, Point)> = own.collect();
        inconclusive_reason(points.iter().map(|(purpose, point)| (*purpose, point)))
    };
    let why = (0..=targets?).find_map(why)?;
    let limited = ramp.steps.iter().filter(|step| step.client_limited).count();
    Some(CauseRecord {
        id: CauseId::UnusableSteps,
        figure: Some(limited as f64),
        text: why,
        advice: "Free this machine's cores for the client (--cpus, --nice), start at a lower load \
             (--from), or hold each step longer (--hold)."
            .to_owned(),
    })
}

fn failed(step: &RampStepRecord) -> bool {
    step.run.verdict.causes.iter().any(|cause| cause.id == CauseId::AllFailed)
}

fn death_cause(why: &str) -> CauseRecord {
    CauseRecord {
        id: CauseId::AllFailed,
        figure: Some(1.0),
        text: why.to_owned(),
        advice: "The earlier steps are in the table; higher loads are unknown. Restart the server \
            and check its log."
            .to_owned(),
    }
}

/// Returns the reasons why steps were unusable, while others were usable.
fn unusable_step_causes(steps: &[RampStepRecord]) -> Vec<CauseRecord> {
    let limited: Vec<&RampStepRecord> = steps.iter().filter(|step| step.client_limited).collect();
    let count = limited.len();
    let invalid = |_: &RampStepRecord, cause: &CauseRecord| OF_THE_CLIENT.contains(&cause.id);
    let describe = |cause: CauseRecord| CauseRecord {
        text: format!("{count} of {} steps are unusable; {}", steps.len(), cause.text),
        ..cause
    };
    merged(&limited, &invalid).into_iter().take(1).map(describe).collect()
}

/// Returns the causes of all steps, if no step is usable.
fn unusable(steps: &[RampStepRecord]) -> Vec<CauseRecord> {
    let all: Vec<&RampStepRecord> = steps.iter().collect();
    merged(&all, &|_, cause| cause.id != CauseId::Interrupted)
}

/// Merges the causes: each once, with its worst figure and the number of its steps.
fn merged(
    steps: &[&RampStepRecord],
    wanted: &dyn Fn(&RampStepRecord, &CauseRecord) -> bool,
) -> Vec<CauseRecord> {
    let mut found: Vec<(CauseRecord, usize)> = Vec::new();
    for step in steps {
        for cause in step.run.verdict.causes.iter().filter(|cause| wanted(step, cause)) {
            match found.iter_mut().find(|(known, _)| known.id == cause.id) {
                Some((known, count)) => {
                    *count += 1;
                    // if one is unavailable, the first is used
                    if known.figure.zip(cause.figure).is_some_and(|(known, other)| known < other) {
                        *known = cause.clone();
                    }
                }
                None => found.push((cause.clone(), 1)),
            }
        }
    }
    let total = steps.len();
    let describe = |(cause, count): (CauseRecord, usize)| {
        let text = match count == total {
            true => format!("in all {total} steps, at worst: {}", cause.text),
            false => format!("in {count} of {total} steps, at worst: {}", cause.text),
        };
        CauseRecord { text: if total == 1 { cause.text.clone() } else { text }, ..cause }
    };
    found.into_iter().map(describe).collect()
}
