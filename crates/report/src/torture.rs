//! The record of a torture: one line a group, then the findings with the bytes to send again, then
//! numbers, limits and habits; as text, as a page, as JSON (`loadstone.torture/1`) and as JUnit's XML.

mod again;
pub(crate) mod beside;
mod case_file;
pub(crate) mod costs;
pub mod diff;
mod dry_run;
mod emit;
mod explain;
mod junit;
mod markdown;
mod probes;
mod run_file;
pub(crate) mod send;
pub(crate) mod server;
mod text;
pub(crate) mod words;

pub use again::{
    Rejudged, Replay, ReplayRow, rejudged_json, rejudged_text, replay_json, replay_text,
    shrunk_text,
};
pub use case_file::case_file;
pub use dry_run::{DryRun, dry_run};
pub use emit::{Form, capture, emit};
pub use explain::{explain, list};
pub use junit::junit;
pub use markdown::markdown;
pub use probes::{PROBES_HEAD, probe_line, probes_csv};
pub use run_file::{CaseOutcome, RunEnd, execution_line, failure_text, run_file};
pub use text::text;
pub use words::found;

pub use crate::html::torture::html;
pub use crate::words::timestamp;

use record::torture::{Applied, Source, Torture};
use sample::Environment;
use std::net::IpAddr;
use torture::beside::Felt;
use torture::judge::{Severity, severity};
use torture::result::{CaseResult, RunResult};
use torture::safety::Class;

/// The record as JSON, indented, with a line feed at its end.
pub fn json(torture: &Torture) -> String {
    record::document::printed(&torture.record)
}

/// A torture as the program has it, from before its first case to its end.
#[derive(Clone, Debug)]
pub struct Report {
    /// The URL as typed.
    pub target: String,
    /// Addresses of its name; the first is the one that is tested.
    pub addresses: Vec<IpAddr>,
    pub class: Class,
    /// In seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// Of everything random.
    pub seed: u64,
    /// Findings as grave as this fail the run.
    pub fail_on: Severity,
    /// The machine that tests.
    pub environment: Environment,
    pub result: RunResult,
    /// The waivers, compared with the result.
    pub waivers: Vec<Applied>,
    /// The background load.
    pub beside: Option<Beside>,
}

/// A background load that went on during a torture.
#[derive(Clone, Debug)]
pub struct Beside {
    pub felt: Felt,
    /// Its own measurement, from before the first case to after the last.
    pub run: crate::RunReport,
}

impl Report {
    /// What is published of it, and what stands beside that.
    pub fn record(&self) -> Torture {
        let run = self.beside.as_ref().map(|beside| crate::json::value(&beside.run));
        Torture::of(&Source {
            target: &self.target,
            addresses: &self.addresses,
            class: self.class,
            started_unix_s: self.started_unix_s,
            seed: self.seed,
            fail_on: self.fail_on,
            environment: &self.environment,
            result: &self.result,
            waivers: &self.waivers,
            load: self.beside.as_ref().map(|beside| &beside.felt).zip(run.as_ref()),
        })
    }

    /// Cases that count against the server, the worst first: findings that are not waived.
    pub fn findings(&self) -> Vec<&CaseResult> {
        let waived = |case: &CaseResult| {
            let used = |one: &Applied| {
                one.state == record::torture::WaiverState::Used && one.waiver.case == case.case.id
            };
            self.waivers.iter().any(used)
        };
        let cases = self.result.cases.iter();
        let mut all: Vec<&CaseResult> =
            cases.filter(|case| case.outcome.is_finding() && !waived(case)).collect();
        let grave = |case: &CaseResult| severity::of_case(case).map(|weight| weight.severity);
        all.sort_by_key(|case| std::cmp::Reverse((grave(case), case.outcome)));
        all
    }

    /// Whether any of them is grave enough to fail the run.
    pub fn fails(&self) -> bool {
        let grave = |case: &&CaseResult| {
            severity::of_case(case).is_some_and(|weight| weight.severity >= self.fail_on)
        };
        self.findings().iter().any(grave)
    }
}
