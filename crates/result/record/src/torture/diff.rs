//! `loadstone.torture-diff/1`: two results of a torture compared case by case: new and fixed
//! findings, and changed limits and habits. A case that was changed between them is not compared.

mod compare;

pub use compare::compare;

use super::{LimitRecord, TortureRecord, ids};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use torture::judge::TestOutcome;

/// The schema that is written.
pub const SCHEMA: &str = "loadstone.torture-diff/1";

/// Change of a case from A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(any(test, feature = "schema"), schemars(inline))]
pub enum ChangeKind {
    /// A finding that did not exist before.
    New,
    /// A finding that is worse, or fails in more ways.
    Worse,
    /// A finding that is less severe, or fails in fewer ways.
    Eased,
    /// Tested, and no longer a finding.
    Fixed,
    /// The finding is the same.
    Still,
    /// No finding on either side, but a different outcome.
    Other,
    /// A finding of A that B did not test, or one of B that A did not.
    Untested,
    /// The case itself was changed: not compared.
    Version,
    OnlyA,
    OnlyB,
}

impl ChangeKind {
    pub const ALL: [ChangeKind; 10] = [
        ChangeKind::New,
        ChangeKind::Worse,
        ChangeKind::Eased,
        ChangeKind::Fixed,
        ChangeKind::Still,
        ChangeKind::Other,
        ChangeKind::Untested,
        ChangeKind::Version,
        ChangeKind::OnlyA,
        ChangeKind::OnlyB,
    ];

    /// Returns the word at the start of a line.
    pub fn word(self) -> &'static str {
        match self {
            ChangeKind::New => "new",
            ChangeKind::Worse => "worse",
            ChangeKind::Eased => "eased",
            ChangeKind::Fixed => "fixed",
            ChangeKind::Still => "still",
            ChangeKind::Other => "other",
            ChangeKind::Untested => "untested",
            ChangeKind::Version => "changed",
            ChangeKind::OnlyA => "only in A",
            ChangeKind::OnlyB => "only in B",
        }
    }
}

/// A case that differs between the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ChangeRecord {
    pub case: String,
    pub title: String,
    pub kind: ChangeKind,
    /// The outcome in A; null where the case is missing.
    #[serde(with = "ids::outcome_or_none")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::outcome_or_none::schema")
    )]
    pub a: Option<TestOutcome>,
    #[serde(with = "ids::outcome_or_none")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::outcome_or_none::schema")
    )]
    pub b: Option<TestOutcome>,
    /// Further details: exchanges, versions, reasons.
    pub detail: String,
    /// Reason why it does not count in B.
    pub waived: Option<String>,
}

impl ChangeRecord {
    /// Returns whether B is worse because of it.
    pub fn is_worse(&self) -> bool {
        matches!(self.kind, ChangeKind::New | ChangeKind::Worse) && self.waived.is_none()
    }
}

/// A number that moved, or is measured on one side only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct LimitChangeRecord {
    pub case: String,
    pub what: String,
    pub a: Option<LimitRecord>,
    pub b: Option<LimitRecord>,
}

/// A habit that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HabitChangeRecord {
    pub name: String,
    pub a: String,
    pub b: String,
}

/// Identification of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct DiffSideRecord {
    pub target: String,
    pub started: String,
    /// Version of the program that tested.
    pub version: String,
    pub seed: u64,
    /// Cases that ran.
    pub cases: u64,
    pub findings: u64,
}

impl DiffSideRecord {
    fn new(document: &TortureRecord) -> DiffSideRecord {
        DiffSideRecord {
            target: document.target.clone(),
            started: document.started.clone(),
            version: document.version.clone(),
            seed: document.seed,
            cases: document.tested_count(),
            findings: document.findings,
        }
    }
}

/// Two torture results compared with each other: `loadstone torture diff --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct DiffRecord {
    pub schema: String,
    pub a: DiffSideRecord,
    pub b: DiffSideRecord,
    /// Cases for which B is worse, except those waived there.
    pub worse: u64,
    /// Cases with the same outcome and no finding.
    pub unchanged: u64,
    /// Changes by kind, then by case.
    pub changes: Vec<ChangeRecord>,
    /// Numbers that moved or are measured on one side only.
    pub limits: Vec<LimitChangeRecord>,
    pub habits: Vec<HabitChangeRecord>,
    /// Reservations about the comparison.
    pub cautions: Vec<String>,
}
