//! Two results of a torture held against each other, case by case: what is new, what is gone, which
//! limits and habits moved. Only what can be compared is: a case that was changed between them is not.

mod compare;
mod show;

pub use compare::compare;
pub use show::{json, markdown, text};

use record::torture::{LimitRecord, TortureRecord};
use serde::Serialize;

/// What became of a case from A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A finding where there was none.
    New,
    /// A finding that is worse, or fails in more ways.
    Worse,
    /// A finding that is less bad, or fails in fewer ways.
    Eased,
    /// No finding any more, and tested.
    Fixed,
    /// The finding is the same.
    Still,
    /// No finding on either side, and not the same outcome.
    Other,
    /// A finding of A that B did not test, or one of B that A did not.
    Untested,
    /// The case itself was changed: not compared.
    Version,
    OnlyA,
    OnlyB,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::New,
        Kind::Worse,
        Kind::Eased,
        Kind::Fixed,
        Kind::Still,
        Kind::Other,
        Kind::Untested,
        Kind::Version,
        Kind::OnlyA,
        Kind::OnlyB,
    ];

    /// As the head of a line.
    fn word(self) -> &'static str {
        match self {
            Kind::New => "new",
            Kind::Worse => "worse",
            Kind::Eased => "eased",
            Kind::Fixed => "fixed",
            Kind::Still => "still",
            Kind::Other => "other",
            Kind::Untested => "untested",
            Kind::Version => "changed",
            Kind::OnlyA => "only in A",
            Kind::OnlyB => "only in B",
        }
    }
}

/// A case that is not the same in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub case: String,
    pub title: String,
    pub kind: Kind,
    /// Outcomes; `None` where it is missing.
    pub a: Option<&'static str>,
    pub b: Option<&'static str>,
    /// What else there is to say: exchanges, versions, reasons.
    pub detail: String,
    /// Why it does not count in B.
    pub waived: Option<String>,
}

impl Change {
    /// Whether B is worse for it.
    pub fn is_worse(&self) -> bool {
        matches!(self.kind, Kind::New | Kind::Worse) && self.waived.is_none()
    }
}

/// A number that moved, or is measured on one side only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitChange {
    pub case: String,
    pub what: String,
    pub a: Option<LimitRecord>,
    pub b: Option<LimitRecord>,
}

/// Something that the server does otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HabitChange {
    pub name: String,
    pub a: String,
    pub b: String,
}

/// Which result it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    pub target: String,
    pub started: String,
    pub version: String,
    pub seed: u64,
    /// Those that were carried out.
    pub cases: u64,
    pub findings: u64,
}

impl Side {
    fn of(document: &TortureRecord) -> Side {
        Side {
            target: document.target.clone(),
            started: document.started.clone(),
            version: document.version.clone(),
            seed: document.seed,
            cases: document.tested_count(),
            findings: document.findings,
        }
    }
}

/// What differs between two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    schema: &'static str,
    pub a: Side,
    pub b: Side,
    /// Cases for which B is worse.
    pub worse: u64,
    /// Cases with the same outcome and no finding.
    pub unchanged: u64,
    /// By kind, then by case.
    pub changes: Vec<Change>,
    pub limits: Vec<LimitChange>,
    pub habits: Vec<HabitChange>,
    /// What makes the two hard to compare.
    pub cautions: Vec<String>,
}
