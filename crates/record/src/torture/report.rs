//! A torture as it was carried out, from before its first case to its end.

use super::{Applied, Source, Torture, WaiverState};
use crate::run::RunRecord;
use crate::words::counted;
use sample::{Environment, PathFacts};
use std::net::IpAddr;
use torture::beside::Felt;
use torture::judge::{Severity, severity};
use torture::result::{CaseResult, RunResult};
use torture::safety::Class;

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
    /// What the emulated path did that the cases went through.
    pub path: Option<PathFacts>,
}

/// A background load that went on during a torture.
#[derive(Clone, Debug)]
pub struct Beside {
    pub felt: Felt,
    /// Its own measurement, from before the first case to after the last.
    pub run: RunRecord,
}

impl Report {
    /// What is published of it, and what stands beside that.
    pub fn record(&self) -> Torture {
        let run = self.beside.as_ref().map(|beside| run_value(&beside.run));
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
            path: self.path.as_ref(),
        })
    }

    /// Cases that count against the server, the worst first: findings that are not waived.
    pub fn findings(&self) -> Vec<&CaseResult> {
        let waived = |case: &CaseResult| {
            let used =
                |one: &Applied| one.state == WaiverState::Used && one.waiver.case == case.case.id;
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

/// The record of a run as a part of another one.
fn run_value(run: &RunRecord) -> serde_json::Value {
    serde_json::to_value(run).expect("strings, numbers and lists always serialise")
}

/// `no finding in 1 case`, `2 findings in 85 cases`: alike in every list, report and difference.
/// `cases`: those that were carried out.
pub fn found(findings: u64, cases: u64) -> String {
    let findings = match findings {
        0 => "no finding".to_owned(),
        n => counted(n, "finding"),
    };
    format!("{findings} in {}", counted(cases, "case"))
}
