//! A measured ramp: its steps in the order in which they ran, and the result of all.

mod figures;
mod published;
mod verdict;

pub use published::*;

use crate::run::{Finding, RunReport};
use plan::Plan;
use sample::Environment;
use stats::curve::{Axis, Curve, Point, Purpose};

/// Finished ramp, of one target or of several in one session.
#[derive(Clone, Debug)]
pub struct RampReport {
    /// Like [`RunReport::name`].
    pub name: String,
    pub axis: Axis,
    /// Names of the targets, in the given order: label or URL.
    pub labels: Vec<String>,
    /// The plan that every step shares (of the first target), and it as TOML with secrets masked.
    pub plan: Plan,
    pub plan_toml: String,
    /// Start in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    pub environment: Environment,
    /// Steps in the order they were run.
    pub steps: Vec<RampStep>,
    /// One curve for each label.
    pub curves: Vec<Curve>,
    /// Reason why it ended before its last step: interrupted, the target died at step 7 of 20.
    pub ended_early: Option<String>,
    pub findings: Vec<Finding>,
}

/// One held load, measured as `run` does.
#[derive(Clone, Debug)]
pub struct RampStep {
    /// Row in [`RampReport::labels`].
    pub label: usize,
    pub purpose: Purpose,
    /// Number of the repeat, from 0, among the steps of the same label, purpose and level.
    pub repeat: u32,
    pub point: Point,
    /// Seconds that the target needed to become idle before it.
    pub settled_s: f64,
    pub run: RunReport,
}
