//! From the steps to the report.

use super::lane::Lane;
use crate::args::{RampTarget, RampTask};
use crate::run::trial::Session;
use engine::ramp::Range;
use report::ramp::{RampReport, Step};
use stats::curve::Axis;
use units::show;

pub(super) fn assemble(
    task: &RampTask,
    session: &Session,
    lanes: Vec<Lane>,
    steps: Vec<Step>,
    started_unix_s: f64,
) -> RampReport {
    let (mut curves, mut ended) = (Vec::new(), Vec::new());
    for lane in lanes {
        let (curve, early) = lane.finish();
        curves.push(curve);
        ended.extend(early);
    }
    let died: Vec<&str> =
        ended.iter().filter(|(_, died)| *died).map(|(why, _)| why.as_str()).collect();
    let interrupted = crate::signals::caught() > 0;
    let verdict = report::ramp::verdict(&steps, &curves, &died, interrupted);
    let mut early: Vec<String> = ended.iter().map(|(why, _)| why.clone()).collect();
    if interrupted {
        early.push(format!("interrupted at step {}", steps.len()));
    }
    let labels: Vec<String> = task.targets.iter().map(|target| target.label.clone()).collect();
    let findings = report::ramp_findings(&steps, &labels, &curves);
    let first = &task.targets[0];
    RampReport {
        name: names(task),
        axis: first.course.axis,
        labels,
        plan: first.plan.clone(),
        plan_toml: plan::to_toml(&first.plan, plan::Secrets::Masked),
        started_unix_s,
        environment: session.environment.clone(),
        steps,
        curves,
        verdict,
        ended_early: (!early.is_empty()).then(|| early.join("; ")),
        findings,
    }
}

fn names(task: &RampTask) -> String {
    let name = |target: &RampTarget| match target.label == target.name {
        true => target.name.clone(),
        false => format!("{}={}", target.label, target.name),
    };
    task.targets.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// What the steps will be: `10 steps from 100/s to 350/s, each held 5.00 s`.
pub(super) fn steps_in_words(target: &RampTarget) -> String {
    let course = &target.course;
    let load = |level: f64| match course.axis {
        Axis::Rate => show::rate(level),
        Axis::Population => format!("{} users", show::count(level as u64)),
    };
    let hold = show::duration(course.hold);
    let what = match (&course.range, course.find.is_some()) {
        (_, true) => "a search for the capacity".to_owned(),
        (Range::Given(levels), _) => {
            let list: Vec<String> = levels.iter().map(|level| load(*level)).collect();
            format!("steps of {}", list.join(", "))
        }
        (Range::Automatic { from, .. }, _) => {
            format!("doubled from {} until the server no longer follows", load(*from))
        }
    };
    format!("{what}, each held {hold}; the plan shows one load")
}
