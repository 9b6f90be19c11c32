//! How far a ramp as a whole can be believed: the verdicts of the steps that it was made from.

use super::{Purpose, RampRecord, RampStep};
use stats::curve::{CapacityEnd, Curve, OF_THE_CLIENT, crumbs};
use stats::{Cause, CauseId, State, Verdict};

/// Causes that belong to a load beyond the knee, where queues grow and samples are few: they say
/// what is being looked for, not that the measurement is bad.
const BEYOND_THE_KNEE: [CauseId; 3] = [CauseId::Drift, CauseId::FewSamples, CauseId::AllFailed];

/// Over all targets. `died`: a sentence for each target that ended before its last step because
/// nobody answered any more. Steps that the client limited are used in no figure and so count only
/// where no other is left.
pub fn verdict(steps: &[RampStep], curves: &[Curve], died: &[&str], interrupted: bool) -> Verdict {
    let whole = |step: &&RampStep| !step.run.measurement.interrupted;
    let used: Vec<&RampStep> =
        steps.iter().filter(whole).filter(|step| !step.point.client_limited).collect();
    let mut causes: Vec<Cause> = died.iter().map(|why| death(why)).collect();
    if !interrupted {
        causes.extend(concluded_nothing(steps));
    }
    if used.is_empty() && !interrupted {
        causes.extend(unusable(steps));
    } else if !used.is_empty() && used.iter().all(|step| failed(step)) {
        causes.extend(merged(&used, &|_, cause| cause.id == CauseId::AllFailed));
    }
    let mut state = if causes.is_empty() { State::Valid } else { State::Invalid };
    let of_the_load = |step: &RampStep, cause: &Cause| {
        let curve = curves.get(step.label);
        let knee = curve.and_then(|curve| curve.knee.as_ref()).map(|knee| knee.at.at);
        let past = knee.is_some_and(|knee| step.point.level >= knee);
        let meant = matches!(step.purpose, Purpose::Overload | Purpose::Recovery);
        (past || meant) && BEYOND_THE_KNEE.contains(&cause.id)
    };
    let others = merged(&used, &|step, cause| {
        !of_the_load(step, cause) && !matches!(cause.id, CauseId::AllFailed | CauseId::Interrupted)
    });
    causes.extend(others);
    if interrupted {
        causes.push(Cause {
            id: CauseId::Interrupted,
            figure: steps.len() as f64,
            text: format!("interrupted at step {}", steps.len()),
            advice: "The steps before it stand; what the curve says may change with more.".into(),
        });
    }
    if !used.is_empty() {
        causes.extend(left_out(steps));
    }
    if !causes.is_empty() {
        state = state.max(State::Degraded);
    }
    Verdict { state, causes }
}

/// A target of which too few steps can be used.
fn concluded_nothing(steps: &[RampStep]) -> Option<Cause> {
    let targets = steps.iter().map(|step| step.label + 1).max().unwrap_or(0);
    let own = |label| steps.iter().filter(move |step| step.label == label);
    let points = |label| own(label).map(|step| (step.purpose, &step.point));
    let why = (0..targets).find_map(|label| crumbs(points(label)))?;
    let limited = steps.iter().filter(|step| step.point.client_limited).count();
    Some(Cause {
        id: CauseId::UnusableSteps,
        figure: limited as f64,
        text: why,
        advice:
            "Free this machine's cores for the client (--cpus, --nice), begin lower (--from), or \
                 hold each step longer (--hold)."
                .to_owned(),
    })
}

fn failed(step: &RampStep) -> bool {
    step.run.verdict.causes.iter().any(|cause| cause.id == CauseId::AllFailed)
}

fn death(why: &str) -> Cause {
    Cause {
        id: CauseId::AllFailed,
        figure: 1.0,
        text: why.to_owned(),
        advice: "The steps before it stand in the table; what lies beyond is not known. Start the \
                 server again and look into its log."
            .to_owned(),
    }
}

/// Whether the objectives are missed at every load, so far as that can be said: a step that cannot
/// be used below the lowest one that misses them leaves it open.
pub fn missed(report: &RampRecord) -> bool {
    let never = |(row, curve): (usize, &Curve)| {
        let capacity = curve.capacity.as_ref();
        let found = capacity
            .filter(|found| !found.objectives.is_empty() && found.how == CapacityEnd::NeverMet);
        found.is_some_and(|found| !untold_below(report, row, found.at.high))
    };
    report.curves().iter().enumerate().any(never)
}

/// Whether a step of the target below `level` cannot be used.
pub(super) fn untold_below(report: &RampRecord, row: usize, level: f64) -> bool {
    report.steps_of(row).any(|step| step.client_limited && step.level < level)
}

/// What kept steps from being used, beside others that could be.
fn left_out(steps: &[RampStep]) -> Vec<Cause> {
    let limited: Vec<&RampStep> = steps.iter().filter(|step| step.point.client_limited).collect();
    let count = limited.len();
    let invalid = |_: &RampStep, cause: &Cause| OF_THE_CLIENT.contains(&cause.id);
    let told = |cause: Cause| Cause {
        text: format!("{count} of {} steps cannot be used; {}", steps.len(), cause.text),
        ..cause
    };
    merged(&limited, &invalid).into_iter().take(1).map(told).collect()
}

/// No step can be used: the causes of all.
fn unusable(steps: &[RampStep]) -> Vec<Cause> {
    let all: Vec<&RampStep> = steps.iter().collect();
    merged(&all, &|_, cause| cause.id != CauseId::Interrupted)
}

/// Each cause once, at its worst, with the number of steps that have it.
fn merged(steps: &[&RampStep], wanted: &dyn Fn(&RampStep, &Cause) -> bool) -> Vec<Cause> {
    let mut found: Vec<(Cause, usize)> = Vec::new();
    for step in steps {
        for cause in step.run.verdict.causes.iter().filter(|cause| wanted(step, cause)) {
            match found.iter_mut().find(|(known, _)| known.id == cause.id) {
                Some((known, count)) => {
                    *count += 1;
                    if known.figure < cause.figure {
                        *known = cause.clone();
                    }
                }
                None => found.push((cause.clone(), 1)),
            }
        }
    }
    let total = steps.len();
    let told = |(cause, count): (Cause, usize)| {
        let text = match count == total {
            true => format!("in all {total} steps, at worst: {}", cause.text),
            false => format!("in {count} of {total} steps, at worst: {}", cause.text),
        };
        Cause { text: if total == 1 { cause.text.clone() } else { text }, ..cause }
    };
    found.into_iter().map(told).collect()
}
