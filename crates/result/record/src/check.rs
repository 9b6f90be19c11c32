//! `loadstone.check/1`: the result of a check. Every key is always present; times are in seconds.

use crate::{document, timestamp};
use plan::check::{CheckResult, Difference, State, StepResult};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The schema that is written, and the only one that is accepted.
pub const SCHEMA: &str = "loadstone.check/1";

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CheckRecord {
    pub schema: String,
    /// Name of the plan.
    pub name: String,
    /// The base of relative URLs, without a password.
    pub base: String,
    /// Date and time, UTC.
    pub started: String,
    pub started_unix_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    /// Ended by a signal; missing steps were not started.
    pub interrupted: bool,
    /// Reason why the first connection failed, which ended the check.
    pub unreachable: Option<String>,
    pub counts: StepCounts,
    /// Steps in the order of the plan.
    pub steps: Vec<StepRecord>,
}

/// Steps by their state; the members of groups are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct StepCounts {
    pub steps: u64,
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

/// A step, or the member of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct StepRecord {
    pub name: String,
    /// Line in the plan file, from 1.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1)))]
    pub line: u64,
    pub state: StepState,
    /// Duration of the step; for a member of a group, from the common start to the end of its
    /// response.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    /// Method and URL, with ` over HTTP/2` or ` over HTTP/3` if it was used; or the path of a file;
    /// empty for a group.
    pub asked: String,
    /// Status of the last response.
    pub status: Option<u16>,
    /// Reason why it was skipped.
    pub reason: Option<String>,
    /// The first unmet expectation, if it failed.
    pub difference: Option<Mismatch>,
    /// Requests that went out together.
    pub members: Vec<StepRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    Passed,
    Failed,
    Skipped,
}

/// Something that was not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct Mismatch {
    /// `status`, `header Content-Type`, `body`, `time`, …
    pub what: String,
    pub expected: String,
    pub got: String,
}

/// Reads a record from JSON.
///
/// # Errors
/// Fails if the text is not JSON, or JSON of another kind or of a newer version.
pub fn read(text: &str) -> Result<CheckRecord, String> {
    document::read(text, SCHEMA, "loadstone check --json")
}

impl CheckRecord {
    /// Returns the record of a check that has ended.
    pub fn new(result: &CheckResult) -> CheckRecord {
        let steps: Vec<StepRecord> = result.steps.iter().map(StepRecord::new).collect();
        CheckRecord {
            schema: SCHEMA.to_owned(),
            name: result.name.clone(),
            base: result.base.clone(),
            started: timestamp(result.started_unix_s),
            started_unix_s: result.started_unix_s,
            elapsed_s: result.took.as_secs_f64(),
            interrupted: result.interrupted,
            unreachable: result.unreachable.clone(),
            counts: StepCounts::new(&steps),
            steps,
        }
    }
}

impl StepCounts {
    fn new(steps: &[StepRecord]) -> StepCounts {
        let count = |state| steps.iter().filter(|step| step.state == state).count() as u64;
        StepCounts {
            steps: steps.len() as u64,
            passed: count(StepState::Passed),
            failed: count(StepState::Failed),
            skipped: count(StepState::Skipped),
        }
    }
}

impl StepRecord {
    fn new(step: &StepResult) -> StepRecord {
        let (state, reason, difference) = match &step.state {
            State::Passed => (StepState::Passed, None, None),
            State::Failed(wrong) => (StepState::Failed, None, Some(Mismatch::new(wrong))),
            State::Skipped(why) => (StepState::Skipped, Some(why.clone()), None),
        };
        StepRecord {
            name: step.name.clone(),
            line: step.line as u64,
            state,
            elapsed_s: step.took.as_secs_f64(),
            asked: step.asked.clone(),
            status: step.status,
            reason,
            difference,
            members: step.members.iter().map(StepRecord::new).collect(),
        }
    }
}

impl Mismatch {
    fn new(difference: &Difference) -> Mismatch {
        let Difference { what, expected, got } = difference;
        Mismatch { what: what.clone(), expected: expected.clone(), got: got.clone() }
    }
}
