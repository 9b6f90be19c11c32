//! Result of a check: plain data for renderers.

use units::Nanos;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckResult {
    pub name: String,
    /// The base URL, without a password.
    pub base: String,
    /// Seconds since 1970 when it began.
    pub started_unix_s: f64,
    pub took: Nanos,
    pub steps: Vec<StepResult>,
    /// True if a signal ended the check; missing steps were not started.
    pub interrupted: bool,
    /// Reason why nothing could be checked: no connection could be made.
    pub unreachable: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepResult {
    pub name: String,
    /// Line of the plan file, from 1.
    pub line: usize,
    pub state: State,
    pub took: Nanos,
    /// Method and URL of a request, or path of a file; empty for a group.
    pub asked: String,
    /// Status of the last response.
    pub status: Option<u16>,
    /// Members of a group.
    pub members: Vec<StepResult>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Passed,
    Failed(Difference),
    /// Skipped, with the reason.
    Skipped(String),
}

/// The first unmet requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `status`, `header Content-Type`, `body`, `time`, …
    pub what: String,
    pub expected: String,
    pub got: String,
}

impl Difference {
    pub fn new(
        what: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Difference {
        Difference { what: what.into(), expected: expected.into(), got: got.into() }
    }
}

impl State {
    pub fn new(difference: Option<Difference>) -> State {
        difference.map_or(State::Passed, State::Failed)
    }

    pub fn failed(&self) -> bool {
        matches!(self, State::Failed(_))
    }
}
