//! A comparison: two servers, or one before and after a change, figure by figure. The arithmetic is
//! `stats::compare`'s.

mod amount;
mod assemble;
mod bounds;
mod plans;
mod protocols;
mod published;
mod read_back;
mod sentences;

pub use amount::{amount, interval, unsigned};
pub use assemble::{Comparison, assemble, headlines};
pub use bounds::FailIf;
pub use plans::{Scope, plan_differences};
pub use protocols::{ProtocolRecord, protocols};
pub use published::{
    BoundRecord, CompareRecord, DifferenceRecord, FurtherRecord, SCHEMA, SideRecord, read,
};
pub use sentences::{answer, sentence, verdict, wider};

use crate::ids::by_id;
use crate::run::RunReport;

/// What was compared, and what came of it.
#[derive(Clone, Debug)]
pub struct CompareReport {
    pub name: String,
    /// What the sides are called: two, or more that are all held against the first.
    pub labels: Vec<String>,
    /// The commands that started the servers anew for each run, where there were any.
    pub commands: Vec<Option<String>>,
    /// In seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// The runs of each, in the order of their blocks.
    pub runs: Vec<Vec<RunReport>>,
    /// The order of the runs, a word for each block, such as `ABBA BAAB`; empty for two sets that
    /// were recorded apart.
    pub order: String,
    /// Confidence of every interval, 0..1, and the resamples behind them.
    pub confidence: f64,
    pub resamples: u32,
    /// Of the second side to the first: one for each figure, in the order they are printed.
    pub differences: Vec<Difference>,
    /// The bounds of `--fail-if` and whether the second side crossed each.
    pub bounds: Vec<BoundResult>,
    /// The third side and those after it, each to the first.
    pub further: Vec<FurtherSide>,
    /// What each side took, where the sides speak different protocols; otherwise empty.
    pub protocols: Vec<ProtocolRecord>,
    /// What speaks against the comparison as a whole: plans differ, a run is INVALID, too few blocks.
    pub cautions: Vec<String>,
    /// Why it ended before its last block; the blocks before are whole.
    pub ended_early: Option<String>,
}

/// What came of a third side, or a later one, against the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FurtherSide {
    pub differences: Vec<Difference>,
    pub bounds: Vec<BoundResult>,
}

/// One side against the first, as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Contrast<'a> {
    /// `B`, `C`, …
    pub letter: char,
    pub label: &'a str,
    pub differences: &'a [Difference],
    pub bounds: &'a [BoundResult],
}

impl CompareReport {
    /// Every side after the first against it, in their order.
    pub fn contrasts(&self) -> impl Iterator<Item = Contrast<'_>> {
        let second = (self.differences.as_slice(), self.bounds.as_slice());
        let further = self.further.iter().map(|one| (&one.differences[..], &one.bounds[..]));
        let found = std::iter::once(second).chain(further);
        let sides = self.labels.iter().zip(LETTERS.chars()).skip(1);
        sides.zip(found).map(|((label, letter), (differences, bounds))| Contrast {
            letter,
            label,
            differences,
            bounds,
        })
    }
}

impl Contrast<'_> {
    /// Before what concerns this side, where there are several: its letter and a comma.
    pub fn mark(&self, report: &CompareReport) -> String {
        if report.further.is_empty() { String::new() } else { format!("{}, ", self.letter) }
    }
}

/// What the sides are called in tables; as many as there may be.
pub const LETTERS: &str = "ABC";

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
