//! The background load: its observations for each case.

use super::case::Recovery;
use super::report::Beside;
use crate::run::RunRecord;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use torture::beside::{CaseEffect, Interval};

/// `beside` of a torture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct LoadRecord {
    /// Calls that fell due before the first case.
    pub base: IntervalRecord,
    /// Cases in the order in which they ran.
    pub cases: Vec<LoadedCase>,
    /// Calls that are assigned to no case because there were too many.
    pub left_out: u64,
    /// The load's own measurement: `loadstone.run/1`.
    pub run: Box<RunRecord>,
}

/// Calls that fell due during a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct LoadedCase {
    pub case: String,
    /// More calls were lost, or they were slower, than before the first case.
    pub felt: bool,
    #[serde(flatten)]
    pub during: IntervalRecord,
    /// Time until the first second that was as before.
    pub recovery_s: Recovery,
}

/// Calls of one part of the run. The response times are of those that were answered; zero without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct IntervalRecord {
    pub due: u64,
    pub answered: u64,
    pub lost: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p50_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p99_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub max_s: f64,
}

impl IntervalRecord {
    fn new(found: &Interval) -> IntervalRecord {
        IntervalRecord {
            due: found.due,
            answered: found.answered(),
            lost: found.lost,
            p50_s: found.p50.as_secs_f64(),
            p99_s: found.p99.as_secs_f64(),
            max_s: found.max.as_secs_f64(),
        }
    }

    /// Returns the share of all due calls that were lost, 0 to 1.
    pub fn lost_share(&self) -> f64 {
        if self.due == 0 { 0.0 } else { self.lost as f64 / self.due as f64 }
    }
}

impl LoadRecord {
    pub(super) fn new(beside: &Beside) -> LoadRecord {
        let felt = &beside.felt;
        let case = |one: &CaseEffect| LoadedCase {
            case: one.case.clone(),
            felt: felt.has_effect(one),
            during: IntervalRecord::new(&one.during),
            recovery_s: Recovery::new(one.recovery),
        };
        LoadRecord {
            base: IntervalRecord::new(&felt.base),
            cases: felt.cases.iter().map(case).collect(),
            left_out: felt.left_out,
            run: Box::new(beside.run.clone()),
        }
    }
}
