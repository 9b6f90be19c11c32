//! The whole curve as a result: its steps in the order they were run, and what they say.

mod answer;
mod csv;
mod verdict;
mod watched;

pub use crate::html::ramp::html;
pub use crate::json::ramp::json;
pub use crate::text::ramp::text;
pub use answer::{answer, capacity_in_words, load, steps_sentence};
pub use csv::csv;
pub use verdict::{missed, verdict};
pub(crate) use watched::watched;

use crate::{Finding, RunReport};
use plan::Plan;
use sample::{Blame, Environment};
use stats::Verdict;
pub use stats::curve::Purpose;
use stats::curve::{Axis, Curve, Point};

/// A finished ramp, of one target or of several in one session.
#[derive(Clone, Debug)]
pub struct RampReport {
    /// As [`RunReport::name`].
    pub name: String,
    pub axis: Axis,
    /// What each target is called, in the order given: its label, or its URL.
    pub labels: Vec<String>,
    /// The plan that every step shares (of the first target), and it as TOML with secrets masked.
    pub plan: Plan,
    pub plan_toml: String,
    /// In seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    pub environment: Environment,
    /// In the order they were run.
    pub steps: Vec<Step>,
    /// One for each label.
    pub curves: Vec<Curve>,
    /// Of the ramp as a whole: the verdicts of the steps that were used.
    pub verdict: Verdict,
    /// Why it ended before its last step: interrupted, the target died at step 7 of 20.
    pub ended_early: Option<String>,
    pub findings: Vec<Finding>,
}

/// One load held, measured as `run` measures.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its row in [`RampReport::labels`].
    pub label: usize,
    pub purpose: Purpose,
    /// From 0, among the steps of the same label, purpose and level.
    pub repeat: u32,
    pub point: Point,
    /// Seconds that the target needed to come to rest before it.
    pub settled_s: f64,
    pub run: RunReport,
}

/// Calls of a step that failed, timed out or were dropped by the fault of `blame`.
pub fn blamed(step: &Step, blame: Blame) -> u64 {
    let failures = &step.run.measurement.total.failures;
    failures.iter().filter(|(class, _)| class.blame() == blame).map(|(_, count)| count).sum()
}
