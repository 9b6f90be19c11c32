//! Renderings of a finished run: the text, JSON, CSV, HTML, HdrHistogram log and per-call log lines
//! of its [`RunRecord`]. Every output is a pure function of the same record, just measured or read
//! from a file, so that no two of them can disagree. Layer 5: writes no file and reads no clock;
//! peer data is made printable before it reaches a terminal or a page.
#![forbid(unsafe_code)]

mod blocks;
pub mod check;
pub mod compare;
mod csv;
mod distributions;
mod facts;
mod figures;
pub mod fit;
mod fleet;
mod hdr;
mod held;
pub mod history;
mod log;
mod many;
mod page;
pub mod path;
pub mod ramp;
mod run;
mod run_times;
mod section;
mod stack;
pub mod survey;
pub mod torture;
mod words;

pub use compare::markdown_of_compare;
pub use csv::csv;
pub use hdr::hdr_log;
pub use log::{LOG_HEADER, log_line};
pub use many::{Named, combine_ramps};
pub use page::text::Style;
pub use page::text::picture::histogram_lines;
pub use ramp::markdown_of_ramp;
pub use record::run::{
    Driver, DummyRun, Finding, FirstCall, Headline, Resolved, RunHist, RunRecord, RunReport,
    SloRecord, SloResult, merged, merged_paths, merged_stacks,
};
pub use record::{findings, ramp_findings};
pub use run::many::{html_of_many, markdown_of_many};
pub use run::{html, junit, line, markdown, text};
pub(crate) use run_times::RunTimes;
pub use words::{load as load_in_words, printable, timestamp};

/// Renders the run as `loadstone.run/1`, indented, with a line feed at its end.
pub fn json(run: &RunRecord) -> String {
    record::document::printed(run)
}

#[cfg(test)]
mod tests;
