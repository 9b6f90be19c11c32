//! Converts the steps into the record.

use super::RampSession;
use super::lane::Lane;
use args::{RampTarget, RampTask};
use engine::ramp::Range;
use report::ramp::{RampRecord, RampReport, RampStep};
use stats::curve::Axis;
use units::show;

pub(super) fn assemble(
    task: &RampTask,
    session: &RampSession,
    lanes: Vec<Lane>,
    steps: Vec<RampStep>,
    started_unix_s: f64,
) -> RampRecord {
    let (mut curves, mut ended) = (Vec::new(), Vec::new());
    for lane in lanes {
        let (curve, early) = lane.finish();
        curves.push(curve);
        ended.extend(early);
    }
    let died: Vec<&str> =
        ended.iter().filter(|(_, died)| *died).map(|(why, _)| why.as_str()).collect();
    let interrupted = crate::signals::received_signal() > 0;
    let mut early: Vec<String> = ended.iter().map(|(why, _)| why.clone()).collect();
    if interrupted {
        early.push(format!("interrupted at step {}", steps.len()));
    }
    let labels = super::labels(task);
    let findings = report::ramp_findings(&steps, &labels, &curves);
    let first = &task.targets[0];
    let mut plan = first.plan.clone();
    plan.request.version = session.version.unwrap_or(plan.request.version);
    let report = RampReport {
        name: names(task),
        axis: first.course.axis,
        labels,
        plan_toml: plan::to_toml(&plan, plan::Secrets::Masked),
        plan,
        started_unix_s,
        environment: session.env.environment.clone(),
        steps,
        curves,
        ended_early: (!early.is_empty()).then(|| early.join("; ")),
        findings,
    };
    RampRecord::new(&report).with_verdict(&died, interrupted)
}

fn names(task: &RampTask) -> String {
    let name = |target: &RampTarget| match target.label == target.name {
        true => target.name.clone(),
        false => format!("{}={}", target.label, target.name),
    };
    task.targets.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Columns of a comment above a plan.
const COLUMNS: usize = 80;

/// Formats the steps as a comment above the plan: as text and, if known in advance, as a list.
pub(super) fn steps_comment(target: &RampTarget) -> String {
    let course = &target.course;
    let load = |level: f64| report::ramp::load(course.axis, level);
    let number = |level: &f64| match course.axis {
        Axis::Population => show::count(*level as u64),
        _ => load(*level),
    };
    let mut parts = vec![match (&course.range, course.find.is_some()) {
        (_, true) => "a search for the capacity".to_owned(),
        (Range::Given(levels), _) => match levels.as_slice() {
            [only] => format!("one step, {}", load(*only)),
            all => format!("{} steps", show::count(all.len() as u64)),
        },
        (Range::Automatic { from, .. }, _) => {
            format!("doubled from {} until the server cannot keep up", load(*from))
        }
    }];
    parts.push(format!("each held {}", show::duration(course.hold)));
    if course.repeat > 1 {
        parts.push(format!("{} times over", show::count(u64::from(course.repeat))));
    }
    for (asked, words) in [
        (course.shuffle.is_some(), "in random order"),
        (course.down, "then down the same way"),
        (course.overload, "then deliberate overload, and recovery"),
    ] {
        parts.extend(asked.then(|| words.to_owned()));
    }
    let label = report::printable(&target.label, 200);
    let words = format!("{label}: {}; the plan shows the highest known load", parts.join(", "));
    let mut text = wrapped("# ", words.split(' '));
    if let (Range::Given(levels), None) = (&course.range, &course.find)
        && levels.len() > 1
    {
        let unit = if course.axis == Axis::Population { "users: " } else { "" };
        let levels = levels.iter().map(number).collect::<Vec<_>>().join(", ");
        text.push_str(&wrapped("#   ", format!("{unit}{levels}").split(' ')));
    }
    text
}

/// Wraps words into lines of at most [`COLUMNS`], each after a mark.
fn wrapped<'a>(mark: &str, words: impl Iterator<Item = &'a str>) -> String {
    let mut lines = vec![mark.to_owned()];
    for word in words {
        let line = lines.last_mut().expect("there is a first line");
        let begun = line.len() > mark.len();
        match begun && line.len() + 1 + word.len() > COLUMNS {
            true => lines.push(format!("{mark}{word}")),
            false => line.push_str(&if begun { format!(" {word}") } else { word.to_owned() }),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_wrapped() {
        let numbers = (1..=30).map(|n| format!("{}/s,", n * 10)).collect::<Vec<_>>().join(" ");
        let text = wrapped("#   ", numbers.split(' '));
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().all(|line| line.starts_with("#   ") && line.len() <= COLUMNS));
        let again: Vec<&str> = text.split_whitespace().filter(|word| *word != "#").collect();
        assert_eq!(again.join(" "), numbers);
        let long = "x".repeat(100);
        assert_eq!(wrapped("# ", [long.as_str(), "y"].into_iter()), format!("# {long}\n# y\n"));
    }
}
