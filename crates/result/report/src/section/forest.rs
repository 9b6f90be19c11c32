//! Differences as points with their intervals: a row each, on one axis of percentages.

use super::chart::Tone;

/// The picture; a page draws it, other forms have its table alone.
#[derive(Clone, Debug)]
pub(crate) struct Forest {
    pub(crate) title: String,
    /// Alternative text.
    pub(crate) told: String,
    pub(crate) rows: Vec<ForestRow>,
}

/// One difference, as a share of what it differs from.
#[derive(Clone, Debug)]
pub(crate) struct ForestRow {
    pub(crate) name: String,
    pub(crate) tone: Tone,
    pub(crate) change: f64,
    /// Ends of its interval; not finite: it is not known.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The same as text: `+5.9 to +8.2 %`.
    pub(crate) interval: String,
    /// The first side's difference from itself.
    pub(crate) noise: f64,
}
