//! ghz's formats: summary, CSV, JSON, lines of InfluxDB, Prometheus' text format, a page.

mod html;
mod influx;
mod json;
mod prometheus;
mod summary;

use super::options::Options;
use super::tally::{GhzFigures, Tally};
use crate::Date;
use serde_json::Value;
use units::Nanos;

/// Everything that a report shows.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) options: &'a Options,
    /// Request and metadata as given; `None` without metadata.
    pub(super) data: Value,
    pub(super) metadata: Option<Value>,
    pub(super) is_binary: bool,
    /// Number of requested calls; 2147483647 if a time bounds the run.
    pub(super) total: u64,
    pub(super) tally: &'a Tally,
    pub(super) figures: GhzFigures,
    pub(super) end: EndReason,
    pub(super) date: Date,
    /// End of the run, on the clock of samples.
    pub(super) ended: Nanos,
}

/// Reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    Normal,
    Cancel,
    Timeout,
}

impl EndReason {
    fn name(self) -> &'static str {
        match self {
            EndReason::Normal => "normal",
            EndReason::Cancel => "cancel",
            EndReason::Timeout => "timeout",
        }
    }
}

impl Report<'_> {
    /// Returns the report in the format that the options name.
    pub(super) fn text(&self) -> String {
        match self.options.format.as_str() {
            "csv" => summary::csv(self),
            "json" => json::text(self),
            "pretty" => super::go::indented(&json::text(self)),
            "html" => html::page(self),
            "influx-summary" => influx::summary(self),
            "influx-details" => influx::details(self),
            "prometheus" => prometheus::text(self),
            _ => summary::text(self),
        }
    }

    /// Returns the options as JSON.
    pub(super) fn options_text(&self) -> String {
        json::options(self)
    }

    /// Converts an instant of the sample clock to nanoseconds since 1970.
    fn unix_ns(&self, at: Nanos) -> u64 {
        unix_ns(&self.date, at)
    }

    /// Returns the folders searched for imports, as ghz lists them.
    fn import_paths(&self) -> Vec<String> {
        super::messages::import_paths(self.options)
    }

    fn error_count(&self) -> u64 {
        self.tally.errors.values().sum()
    }
}

/// Converts an instant of the sample clock to nanoseconds since 1970.
pub(super) fn unix_ns(date: &Date, at: Nanos) -> u64 {
    let from_origin = at.0 as f64 - date.at.0 as f64;
    // convert whole seconds separately: f64 would lose the nanoseconds
    let seconds = date.unix_s.floor();
    let rest = (date.unix_s - seconds) * 1e9 + from_origin;
    (seconds as i64 * 1_000_000_000).saturating_add(rest as i64).max(0) as u64
}
