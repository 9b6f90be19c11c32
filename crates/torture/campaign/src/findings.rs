//! Failures of a run that are shrunk later.

use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::judge::FailureKind;
use units::Nanos;

/// Maximum number of failures shrunk per run.
const FINDINGS_MAX: usize = 32;
/// A failed conversation.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) case: Case,
    pub(crate) name: String,
    pub(crate) script: TalkScript,
    pub(crate) kind: FailureKind,
    /// Duration, if it is too long.
    pub(crate) slow: Option<Nanos>,
}

/// Failures to shrink, the first of each kind in its case.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn add(&mut self, finding: Finding) {
        let known = |one: &Finding| one.case.id == finding.case.id && one.kind == finding.kind;
        if self.0.len() < FINDINGS_MAX && !self.0.iter().any(known) {
            self.0.push(finding);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.0)
    }
}
