//! Several loads at once.

use super::Problems;
use crate::scenario::ScenarioPlan;
use crate::{Load, Order, Plan};

/// Checks combinations with scenarios, and each scenario. `check_one` checks one load as if it were
/// the plan's.
pub(super) fn check(plan: &Plan, problems: &mut Problems, check_one: fn(&Plan, &mut Problems)) {
    let stop = &plan.stop;
    for (wrong, option, why) in [
        (stop.requests.is_some(), "-n", "the count does not belong to one of them; give -d"),
        (stop.bytes.is_some(), "--bytes-max", "the run ends by time; give -d"),
        (plan.script.is_some(), "--script", "a script has one load; drop one"),
        (plan.order != Order::InOrder, "--random or --once", "targets are taken in order; drop it"),
        (!plan.sequence.is_empty(), "sequence", "each scenario names its targets; drop it"),
        (plan.stages.is_some(), "--stages", "each scenario has its own; drop one"),
        (
            plan.connection.clients.is_some(),
            "--clients",
            "the whole load uses one path: give --path, or drop one",
        ),
    ] {
        if wrong {
            problems.add(
                "scenario",
                format!("a plan with scenarios cannot be used with {option}: {why}"),
            );
        }
    }
    for (scenario, mut lane) in plan.scenarios.iter().zip(plan.lanes()) {
        check_times(plan, scenario, problems);
        // the time before its start is not reported
        lane.stages.clone_from(&scenario.stages);
        let mut own = Problems(Vec::new());
        check_one(&lane, &mut own);
        for problem in own.0 {
            problems.add(problem.option, format!("scenario {}: {}", scenario.name, problem.text));
        }
    }
}

fn check_times(plan: &Plan, scenario: &ScenarioPlan, problems: &mut Problems) {
    let timed = !scenario.start.is_zero() || scenario.duration.is_some();
    let (trace, sessions) = match &scenario.load {
        Load::Open { arrivals, .. } => (arrivals.at.is_some(), false),
        Load::Closed { session, .. } => (false, session.is_some()),
    };
    let end = plan.stop.duration;
    for (wrong, why) in [
        (
            end.is_some_and(|end| scenario.start >= end),
            "starts after the end of the run; give an earlier start, or a longer -d",
        ),
        (
            scenario.duration.is_some_and(units::Nanos::is_zero),
            "has the duration 0; give one such as 10s",
        ),
        (timed && trace, "is a trace (at), which has its own times; drop start and duration"),
        (
            timed && sessions,
            "has sessions of a closed loop, which go on for the whole run; drop start and duration",
        ),
        (scenario.parts.is_empty(), "makes no requests"),
    ] {
        if wrong {
            problems.add("scenario", format!("scenario {} {why}", scenario.name));
        }
    }
}
