//! What came of a torture: one line a group, then the findings with the bytes to send again, then
//! numbers, limits and habits; as text, as a page, as JSON (`loadstone.torture/1`) and as JUnit's XML.

mod again;
pub(crate) mod beside;
mod case_file;
pub(crate) mod costs;
pub mod diff;
pub(crate) mod document;
mod dry_run;
mod emit;
mod explain;
mod junit;
mod markdown;
mod probes;
mod record;
pub(crate) mod send;
pub(crate) mod server;
mod text;
pub mod waivers;
pub(crate) mod words;

pub use again::{
    Rejudged, Replay, ReplayRow, rejudged_json, rejudged_text, replay_json, replay_text,
    shrunk_text,
};
pub use beside::Beside;
pub use case_file::case_file;
pub use document::{Document, json, read};
pub use dry_run::{DryRun, dry_run};
pub use emit::{Form, capture, emit};
pub use explain::{explain, list};
pub use junit::junit;
pub use markdown::markdown;
pub use probes::{PROBES_HEAD, probe_line, probes_csv};
pub use record::{CaseOutcome, RunEnd, execution_line, failure_text, run_file};
pub use text::text;

pub use crate::html::torture::html;
pub use crate::words::timestamp;

use sample::Environment;
use std::net::IpAddr;
use torture::result::{CaseResult, RunResult};
use torture::safety::Class;

/// A torture that is over.
#[derive(Clone, Debug)]
pub struct Report {
    /// The URL as typed.
    pub target: String,
    /// Where its name leads; the first is the one that was tested.
    pub addresses: Vec<IpAddr>,
    pub class: Class,
    /// In seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// Of everything random.
    pub seed: u64,
    /// The machine that tested.
    pub environment: Environment,
    pub result: RunResult,
    /// What is known and put up with, held against the result.
    pub waivers: Vec<waivers::Applied>,
    /// The load that went on meanwhile.
    pub beside: Option<Beside>,
}

impl Report {
    /// Cases that count against the server, the worst first: findings that are not waived.
    pub fn findings(&self) -> Vec<&CaseResult> {
        let counts =
            |case: &&CaseResult| case.outcome.is_finding() && self.waived(&case.case.id).is_none();
        let mut all: Vec<&CaseResult> = self.result.cases.iter().filter(counts).collect();
        all.sort_by_key(|case| std::cmp::Reverse(case.outcome));
        all
    }

    /// The waiver by which this case does not count.
    pub(crate) fn waived(&self, id: &str) -> Option<&waivers::Applied> {
        let holds =
            |one: &&waivers::Applied| one.waiver.case == id && one.state == waivers::State::Used;
        self.waivers.iter().find(holds)
    }

    fn waived_count(&self) -> u64 {
        let waived =
            |case: &&CaseResult| case.outcome.is_finding() && self.waived(&case.case.id).is_some();
        self.result.cases.iter().filter(waived).count() as u64
    }
}
