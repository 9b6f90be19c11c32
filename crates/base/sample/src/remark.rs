//! Observations of a users' guide in addition to counted calls.

use units::Nanos;

/// Something noticed, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub at: Nanos,
    pub fact: Noticed,
}

/// An observation. Steps, captures, checks and feeders are identified by their rows in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// A capture found nothing; contains an excerpt of the searched text.
    Missed { capture: u32, example: String },
    /// Result of a check that is only counted; the difference if it was not met.
    Checked { step: u32, difference: Option<String> },
    /// A response is not as its step expects it; the first difference.
    Differed { step: u32, difference: String },
    /// A step was skipped, because a value of its request is missing.
    Skipped { step: u32, why: String },
    /// A step's response reported an expired login; the step is repeated after another login.
    Refreshed { step: u32 },
    /// A transaction ended: the sum of its steps' response times without think times, and whether
    /// a step failed.
    Together { transaction: u32, took: Nanos, failed: bool },
    /// A simultaneous connection ended, and whether it conformed.
    Judged { conforming: bool },
    /// A response had a value of a metric: in millionths, `None` if it is not a number in range.
    Measured { metric: u32, value: Option<i64> },
    /// A script requested the end of the run, for this reason.
    Aborted { why: String },
    /// A user needed a row of a feeder without remaining rows.
    RanDry { feeder: u32 },
}
