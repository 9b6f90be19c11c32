//! A torture run from before its first case to its end.

use super::{Applied, TortureRecord};
use crate::run::RunRecord;
use crate::words::counted;
use sample::{Environment, PathFacts};
use std::net::IpAddr;
use torture::beside::LoadEffect;
use torture::judge::Severity;
use torture::result::RunResult;
use torture::safety::Class;

/// A torture in the program, from before its first case to its end: the source of its record.
#[derive(Clone, Debug)]
pub struct Report {
    /// The URL as typed.
    pub target: String,
    /// Addresses of its name; the first is the tested one.
    pub addresses: Vec<IpAddr>,
    pub class: Class,
    /// Start in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// Seed of all random choices.
    pub seed: u64,
    /// The page that accepts bodies.
    pub post: Option<String>,
    /// Further options that a repetition of a case needs, in order.
    pub options: Vec<String>,
    /// Lowest severity of findings that fail the run.
    pub fail_on: Severity,
    /// The machine that tests.
    pub environment: Environment,
    pub result: RunResult,
    /// The waivers, compared with the result.
    pub waivers: Vec<Applied>,
    /// The background load.
    pub beside: Option<Beside>,
    /// Figures of the emulated path of the cases.
    pub path: Option<PathFacts>,
}

/// A background load during a torture.
#[derive(Clone, Debug)]
pub struct Beside {
    pub felt: LoadEffect,
    /// The load's own measurement, from before the first case to after the last.
    pub run: RunRecord,
}

impl Report {
    /// Returns the published part.
    pub fn record(&self) -> TortureRecord {
        TortureRecord::new(self)
    }
}

/// Formats `no finding in 1 case` or `2 findings in 85 cases`, equally in every list, report and
/// difference. `cases`: executed cases.
pub fn found(findings: u64, cases: u64) -> String {
    let findings = match findings {
        0 => "no finding".to_owned(),
        n => counted(n, "finding"),
    };
    format!("{findings} in {}", counted(cases, "case"))
}
