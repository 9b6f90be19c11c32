//! Figures over time as rows of small bars.

use crate::section::{LABEL, Spark};

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// Returns the plain character for a bar.
pub(crate) fn ascii_level(bar: char) -> Option<char> {
    LEVELS.iter().position(|level| *level == bar).map(|level| ASCII_LEVELS[level])
}

/// Draws a row followed by its ends.
pub(super) fn line(row: &Spark) -> String {
    let top = row.values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let level = if top > 0.0 { (value / top * 8.0).ceil() as usize } else { 0 };
        LEVELS[level.clamp(1, 8) - 1]
    };
    let bars: String = row.values.iter().map(bar).collect();
    let width = LABEL - 2;
    format!("  {:<width$}{bars}  {}", row.label, row.ends)
}
