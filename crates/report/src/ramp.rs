//! The whole curve as a result: its steps in the order they were run, and what they say.

use crate::{Finding, RunReport};
use plan::Plan;
use sample::Environment;
use stats::Verdict;
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

/// Why a step was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A step of the staircase on its way up.
    #[default]
    Up,
    /// The same level again on the way down.
    Down,
    /// A trial of the search for the capacity; a long one that confirms or refutes.
    Search,
    Confirm,
    /// Beyond the capacity on purpose; what follows it, until the server answers as before.
    Overload,
    Recovery,
}

impl Purpose {
    /// Its stable name.
    pub fn id(self) -> &'static str {
        match self {
            Purpose::Up => "up",
            Purpose::Down => "down",
            Purpose::Search => "search",
            Purpose::Confirm => "confirm",
            Purpose::Overload => "overload",
            Purpose::Recovery => "recovery",
        }
    }

    /// The purpose with this name.
    pub fn named(id: &str) -> Option<Purpose> {
        let all = [
            Purpose::Up,
            Purpose::Down,
            Purpose::Search,
            Purpose::Confirm,
            Purpose::Overload,
            Purpose::Recovery,
        ];
        all.into_iter().find(|purpose| purpose.id() == id)
    }
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
