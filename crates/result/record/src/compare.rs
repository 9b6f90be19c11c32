//! A comparison: two servers, or one before and after a change, figure by figure. The arithmetic is
//! in `stats::compare`.

mod amount;
mod assemble;
mod bounds;
mod failing;
mod gate;
mod gate_record;
mod plans;
mod protocols;
mod published;
mod sentences;
mod sequential;

pub use amount::{amount, interval, unsigned};
pub use assemble::{Comparison, OF_A_BLOCK, SideFigures, assemble, put_together};
pub use bounds::FailIf;
pub use failing::REFUSED_SHARE_MAX;
pub use gate::{BlockRuns, Gate, GateEnd, pilot_spread};
pub use gate_record::{GateAnswer, GateBoundRecord, GateRecord};
pub use plans::{Scope, plan_differences};
pub use protocols::{ProtocolRecord, protocols};
pub use published::{
    BoundRecord, CompareRecord, DifferenceRecord, FurtherRecord, SCHEMA, SideRecord, read,
};
pub use sentences::{answer, sentence, verdict, wider};

use crate::ids::by_id;

/// Comparison of one side with the first, as shown.
#[derive(Clone, Copy, Debug)]
pub struct Contrast<'a> {
    /// `B`, `C`, …
    pub letter: char,
    pub label: &'a str,
    pub differences: &'a [DifferenceRecord],
    pub bounds: &'a [BoundRecord],
}

impl Contrast<'_> {
    /// Returns the prefix of text about this side, if there are several sides: its letter and a
    /// comma.
    pub fn mark(&self, report: &CompareRecord) -> String {
        if report.further.is_empty() { String::new() } else { format!("{}, ", self.letter) }
    }
}

/// Names of the sides in tables; their number is the maximum.
pub const LETTERS: &str = "ABC";

/// Classification of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judgement {
    /// The interval excludes zero, the difference exceeds the noise floor, and random labels on the
    /// runs rarely give one as large.
    Better,
    Worse,
    /// No difference is shown; one larger than the interval's wider end can be excluded.
    #[default]
    NoneShown,
    /// Too few runs for a decision, or a run without the figure.
    TooFew,
}

by_id!(judgement_id, Judgement, Judgement::ALL, Judgement::id, "a judgement");

impl Judgement {
    pub const ALL: [Judgement; 4] =
        [Judgement::Better, Judgement::Worse, Judgement::NoneShown, Judgement::TooFew];

    /// Returns a stable name.
    pub fn id(self) -> &'static str {
        match self {
            Judgement::Better => "better",
            Judgement::Worse => "worse",
            Judgement::NoneShown => "none-shown",
            Judgement::TooFew => "too-few",
        }
    }
}
