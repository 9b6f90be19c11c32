//! The published form of a comparison's gate.

use crate::ids::by_id;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::sequential::MarginAnswer;

/// Answer of a gate or of one of its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GateAnswer {
    /// Certainly no worse than the bound.
    Pass,
    /// Certainly worse than the bound.
    Fail,
    /// Neither answer is certain within the budget.
    #[default]
    Undecidable,
}

by_id!(gate_answer_id, GateAnswer, GateAnswer::ALL, GateAnswer::id, "an answer of a gate");

impl GateAnswer {
    pub const ALL: [GateAnswer; 3] = [GateAnswer::Pass, GateAnswer::Fail, GateAnswer::Undecidable];

    /// Returns a stable name.
    pub fn id(self) -> &'static str {
        match self {
            GateAnswer::Pass => "pass",
            GateAnswer::Fail => "fail",
            GateAnswer::Undecidable => "undecidable",
        }
    }

    pub(super) fn new(answer: MarginAnswer) -> GateAnswer {
        match answer {
            MarginAnswer::Pass => GateAnswer::Pass,
            MarginAnswer::Fail => GateAnswer::Fail,
            MarginAnswer::Undecided => GateAnswer::Undecidable,
        }
    }
}

/// A gate, judged after every block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct GateRecord {
    #[serde(with = "gate_answer_id")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "gate_answer_id::schema"))]
    pub answer: GateAnswer,
    /// The answer in one sentence.
    pub sentence: String,
    /// Highest probability of a wrong fail, and of a wrong pass.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub alpha: f64,
    pub budget_s: f64,
    pub spent_s: f64,
    /// Blocks that count for a bound.
    pub blocks: u64,
    /// Blocks that count for none, because a run of them is INVALID or has too few calls.
    pub blocks_invalid: u64,
    /// Servers started for each side; 0 where they were already running.
    pub restarts: Vec<u32>,
    /// Design of the blocks. turns: one side after the other; duet: both at the same moment.
    pub design: String,
    /// Result of the pilot that chose the design; empty where it was given.
    pub pilot: String,
    pub bounds: Vec<GateBoundRecord>,
    /// Changes that would make an undecidable gate decidable.
    pub help: Vec<String>,
}

/// One bound of a gate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct GateBoundRecord {
    /// The bound as typed.
    pub bound: String,
    pub figure: String,
    #[serde(with = "gate_answer_id")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "gate_answer_id::schema"))]
    pub answer: GateAnswer,
    /// Changes are differences of shares, not ratios.
    pub points: bool,
    /// The bound as a signed share.
    pub limit: f64,
    /// Median over the blocks.
    pub change: Option<f64>,
    /// Confidence sequence of the change, valid at every block; null: not bounded yet.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The tightest bound that these blocks show to be met; null if they show none.
    pub decidable: Option<f64>,
    /// Blocks that count for it.
    #[serde(default)]
    pub blocks: u64,
    /// Blocks that do not count for it, because a run of them is INVALID or has too few calls.
    /// Bounds on `failures` count runs with a late client.
    #[serde(default)]
    pub blocks_invalid: u64,
    /// Blocks that would probably decide it; null where decided or unknown.
    pub blocks_needed: Option<u64>,
    /// The result in one sentence.
    pub text: String,
}
