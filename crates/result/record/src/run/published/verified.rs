//! Bodies that were compared with those of their targets.

use crate::words::target_name;
use plan::Plan;
use sample::{BodyPrint, FailureClass, WrongBody};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Snapshot;

/// Reference for comparing bodies.
pub(crate) const VERIFIED_AGAINST: [&str; 3] = ["first", "files", "manifest"];

/// `verified` of a run; null if the plan does not request it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct VerifiedRecord {
    /// `first`, `files` or `manifest`.
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "crate::schema::verified_against")
    )]
    pub against: String,
    /// Bodies that were compared.
    pub compared: u64,
    /// Of these, bodies that belong to no target, and to another one.
    pub differing: u64,
    /// Bodies that belong to another target.
    pub of_other_targets: u64,
    /// The first wrong bodies, 8 at most.
    pub examples: Vec<WrongBodyRecord>,
}

/// A wrong body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct WrongBodyRecord {
    /// End of the call, from the start of the measured phase.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub at_s: f64,
    /// The requested target: its row in the plan, and its URL.
    pub target: u32,
    pub url: String,
    /// The target that has this body.
    pub of_target: Option<u32>,
    pub of_url: Option<String>,
    pub expected: BodyPrintRecord,
    pub got: BodyPrintRecord,
}

/// Length and hash of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BodyPrintRecord {
    /// Null if a manifest does not define it.
    pub bytes: Option<u64>,
    /// As printed by `xxh128sum`.
    pub xxh128: String,
}

impl VerifiedRecord {
    pub(crate) fn new(plan: &Plan, total: &Snapshot) -> Option<VerifiedRecord> {
        let [first, files, manifest] = VERIFIED_AGAINST;
        let against = match plan.expect.verify.as_ref()? {
            plan::Verify::First => first,
            plan::Verify::Files { .. } => files,
            plan::Verify::Manifest(_) => manifest,
        };
        let count = |class| total.failures.get(&class).copied().unwrap_or_default();
        let examples = total.verified.wrong.iter();
        Some(VerifiedRecord {
            against: against.to_owned(),
            compared: total.verified.compared,
            differing: count(FailureClass::Differs),
            of_other_targets: count(FailureClass::OtherTarget),
            examples: examples.map(|wrong| WrongBodyRecord::new(plan, wrong)).collect(),
        })
    }
}

impl WrongBodyRecord {
    fn new(plan: &Plan, wrong: &WrongBody) -> WrongBodyRecord {
        WrongBodyRecord {
            at_s: wrong.at.as_secs_f64(),
            target: wrong.target,
            url: target_name(plan, wrong.target),
            of_target: wrong.of,
            of_url: wrong.of.map(|of| target_name(plan, of)),
            expected: BodyPrintRecord::new(&wrong.expected),
            got: BodyPrintRecord::new(&wrong.got),
        }
    }
}

impl BodyPrintRecord {
    fn new(print: &BodyPrint) -> BodyPrintRecord {
        BodyPrintRecord { bytes: print.length, xxh128: format!("{:032x}", print.hash) }
    }
}
