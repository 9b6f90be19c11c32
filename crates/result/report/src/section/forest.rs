//! Differences as points with their intervals: one row each, on one axis of percentages.

use super::chart::Tone;

/// The chart, for pages; other forms have only the table.
#[derive(Clone, Debug)]
pub(crate) struct Forest {
    pub(crate) title: String,
    /// Alternative text.
    pub(crate) label: String,
    pub(crate) rows: Vec<ForestRow>,
}

/// One difference, relative to the first side.
#[derive(Clone, Debug)]
pub(crate) struct ForestRow {
    pub(crate) name: String,
    pub(crate) tone: Tone,
    pub(crate) change: f64,
    /// Ends of its interval; not finite: unknown.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The interval as text: `+5.9 to +8.2 %`.
    pub(crate) interval: String,
    /// Difference of the first side from itself.
    pub(crate) noise: f64,
}
