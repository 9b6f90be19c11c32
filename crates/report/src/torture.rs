//! The record of a torture: one line a group, then the findings with the bytes to send again, then
//! numbers, limits and habits; as text, as a page, as JSON (`loadstone.torture/1`) and as JUnit's XML.

mod again;
pub(crate) mod beside;
mod case_file;
mod chain;
pub(crate) mod costs;
pub mod diff;
mod dry_run;
mod emit;
mod explain;
mod junit;
mod markdown;
mod page;
mod probes;
mod run_file;
pub(crate) mod send;
pub(crate) mod server;
mod text;
pub(crate) mod words;

pub use again::{rejudged_text, replay_text, shrunk_text};
pub use case_file::case_file;
pub use chain::chain_text;
pub use dry_run::{DryRun, dry_run};
pub use emit::{ProbeForm, capture, emit};
pub use explain::{explain, list};
pub use junit::junit;
pub use markdown::markdown;
pub use page::html;
pub use probes::{PROBES_HEAD, probe_line, probes_csv};
pub use run_file::{CaseOutcome, RunEnd, execution_line, failure_text, run_file};
pub use text::text;

pub use crate::words::timestamp;
pub use record::torture::{Beside, Report, found};

use record::torture::TortureRecord;

/// The record as JSON, indented, with a line feed at its end.
pub fn json(torture: &TortureRecord) -> String {
    record::document::printed(torture)
}
