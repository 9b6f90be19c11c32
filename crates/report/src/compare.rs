//! Two servers, or one before and after a change: the difference of each figure with its interval.

use crate::RunReport;

/// What was compared, and what came of it.
#[derive(Clone, Debug)]
pub struct CompareReport {
    pub name: String,
    /// What the two are called.
    pub labels: [String; 2],
    /// In seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// The runs of each, in the order of their blocks.
    pub runs: [Vec<RunReport>; 2],
    /// Confidence of every interval, 0..1, and the resamples behind them.
    pub confidence: f64,
    pub resamples: u32,
    /// One for each figure, in the order they are printed.
    pub differences: Vec<Difference>,
    /// The bounds of `--fail-if` and whether each was crossed.
    pub bounds: Vec<BoundResult>,
    /// What speaks against the comparison as a whole: plans differ, a run is INVALID, too few blocks.
    pub cautions: Vec<String>,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `p99`, `throughput`, `failures`, …
    pub figure: String,
    /// In seconds, per second, or a share 0..=1.
    pub before: f64,
    pub after: f64,
    /// after/before − 1 with its interval; NaN where it cannot be had.
    pub relative: f64,
    pub low: f64,
    pub high: f64,
    /// Relative half-width that two halves of the same target differ by: the noise floor.
    pub noise: f64,
    /// Size in units of the spread between runs (Cliff's delta, −1..=1).
    pub effect: f64,
    /// Chance of such a difference if there were none, 0..=1.
    pub p_value: f64,
    pub judgement: Judgement,
}

/// What can be said of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judgement {
    /// The interval lies on one side of zero, and beyond the noise floor.
    Better,
    Worse,
    /// No difference is shown; one larger than the interval's wider end can be excluded.
    #[default]
    NoneShown,
    /// Too few runs to say anything.
    TooFew,
}

/// One rule of `--fail-if`, such as `p99 +5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundResult {
    /// As typed.
    pub text: String,
    pub crossed: bool,
    /// Why, in words.
    pub why: String,
}
