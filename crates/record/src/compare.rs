//! A comparison: two servers, or one before and after a change, figure by figure. The arithmetic is
//! `stats::compare`'s.

mod amount;
mod assemble;
mod bounds;
mod published;
mod read_back;
mod sentences;

pub use amount::{amount, interval, unsigned};
pub use assemble::{Comparison, assemble, headlines};
pub use bounds::FailIf;
pub use published::{BoundRecord, CompareRecord, DifferenceRecord, SCHEMA, SideRecord, read};
pub use sentences::{answer, sentence, wider};

use crate::ids::by_id;
use crate::run::RunReport;

/// What was compared, and what came of it.
#[derive(Clone, Debug)]
pub struct CompareReport {
    pub name: String,
    /// What the two are called.
    pub labels: [String; 2],
    /// The commands that started the servers anew for each run, where there were any.
    pub commands: [Option<String>; 2],
    /// In seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// The runs of each, in the order of their blocks.
    pub runs: [Vec<RunReport>; 2],
    /// The order of the runs, a word for each block, such as `ABBA BAAB`; empty for two sets that
    /// were recorded apart.
    pub order: String,
    /// Confidence of every interval, 0..1, and the resamples behind them.
    pub confidence: f64,
    pub resamples: u32,
    /// One for each figure, in the order they are printed.
    pub differences: Vec<Difference>,
    /// The bounds of `--fail-if` and whether each was crossed.
    pub bounds: Vec<BoundResult>,
    /// What speaks against the comparison as a whole: plans differ, a run is INVALID, too few blocks.
    pub cautions: Vec<String>,
    /// Why it ended before its last block; the blocks before are whole.
    pub ended_early: Option<String>,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `p99`, `throughput`, `failures`, …
    pub figure: String,
    /// In seconds, per second, or a share 0..=1: means over the runs, geometric for all but shares.
    pub before: f64,
    pub after: f64,
    /// after/before − 1 with its interval; NaN where it cannot be had. For a share (`points`) it is
    /// after − before.
    pub relative: f64,
    pub low: f64,
    pub high: f64,
    /// `relative` and its kin are differences of shares, not ratios.
    pub points: bool,
    /// Half-width of the interval that A would have shown against itself: the noise floor.
    pub noise: f64,
    /// A difference of this size would be found four times in five; NaN where unknown.
    pub detectable: f64,
    /// How far the runs of the two lie apart (Cliff's delta, −1..=1).
    pub effect: f64,
    /// Chance of such a difference in any figure if there were none, 0..=1.
    pub p_value: f64,
    pub judgement: Judgement,
}

/// What can be said of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judgement {
    /// The interval lies on one side of zero, the difference is beyond the noise floor, and it is
    /// rare among what other labels on the runs would show.
    Better,
    Worse,
    /// No difference is shown; one larger than the interval's wider end can be excluded.
    #[default]
    NoneShown,
    /// Too few runs to say anything, or no figure in one of them.
    TooFew,
}

by_id!(judgement_id, Judgement, Judgement::ALL, Judgement::id, "a judgement");

impl Judgement {
    pub const ALL: [Judgement; 4] =
        [Judgement::Better, Judgement::Worse, Judgement::NoneShown, Judgement::TooFew];

    /// Its stable name.
    pub fn id(self) -> &'static str {
        match self {
            Judgement::Better => "better",
            Judgement::Worse => "worse",
            Judgement::NoneShown => "none-shown",
            Judgement::TooFew => "too-few",
        }
    }
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
