//! What came of a torture: one line a group, then the findings with the bytes to send again, then
//! numbers, limits and habits; as text, as a page, as JSON (`loadstone.torture/1`) and as JUnit's XML.

pub(crate) mod costs;
mod document;
mod explain;
mod junit;
mod probes;
mod record;
pub(crate) mod send;
mod text;
pub(crate) mod words;

pub use document::{Document, json, read};
pub use explain::{dry_run, explain, list};
pub use junit::junit;
pub use probes::{PROBES_HEAD, probe_line, probes_csv};
pub use record::{RunEnd, execution_line, failure_text, run_file};
pub use text::text;

pub use crate::html::torture::html;

use sample::Environment;
use std::net::IpAddr;
use torture::safety::Class;
use torture::session::RunResult;

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
}
