//! `loadstone.check/1`. Every key is always there; times are in seconds.

use crate::words::timestamp;
use plan::check::{CheckResult, Difference, State, StepResult};
use serde::Serialize;

/// The result as JSON, indented, with a line feed at its end.
pub fn json(result: &CheckResult) -> String {
    let (passed, failed, skipped) = result.counts();
    let document = Document {
        schema: "loadstone.check/1",
        name: &result.name,
        base: &result.base,
        started: timestamp(result.started_unix_s),
        started_unix_s: result.started_unix_s,
        elapsed_s: result.took.as_secs_f64(),
        interrupted: result.interrupted,
        unreachable: result.unreachable.as_deref(),
        counts: Counts { steps: result.steps.len(), passed, failed, skipped },
        steps: result.steps.iter().map(Step::of).collect(),
    };
    crate::json::printed(&document)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    name: &'a str,
    base: &'a str,
    started: String,
    started_unix_s: f64,
    elapsed_s: f64,
    interrupted: bool,
    unreachable: Option<&'a str>,
    counts: Counts,
    steps: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Counts {
    steps: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
}

#[derive(Serialize)]
struct Step<'a> {
    name: &'a str,
    line: usize,
    state: &'static str,
    elapsed_s: f64,
    asked: &'a str,
    status: Option<u16>,
    /// Why it was skipped.
    reason: Option<&'a str>,
    difference: Option<Wrong<'a>>,
    members: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Wrong<'a> {
    what: &'a str,
    expected: &'a str,
    got: &'a str,
}

impl<'a> Step<'a> {
    fn of(step: &'a StepResult) -> Step<'a> {
        let (state, reason, difference) = match &step.state {
            State::Passed => ("passed", None, None),
            State::Failed(difference) => ("failed", None, Some(Wrong::of(difference))),
            State::Skipped(why) => ("skipped", Some(why.as_str()), None),
        };
        Step {
            name: &step.name,
            line: step.line,
            state,
            elapsed_s: step.took.as_secs_f64(),
            asked: &step.asked,
            status: step.status,
            reason,
            difference,
            members: step.members.iter().map(Step::of).collect(),
        }
    }
}

impl<'a> Wrong<'a> {
    fn of(difference: &'a Difference) -> Wrong<'a> {
        let Difference { what, expected, got } = difference;
        Wrong { what, expected, got }
    }
}
