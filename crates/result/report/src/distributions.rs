//! Distributions of times in one picture: by quantile, each further nine as wide as the previous
//! one.

use crate::section::chart::{AxisUnit, Chart, Dash, Horizontal, Line, POINTS_MAX, Range, Tone};
use crate::section::{Block, Voice, text_block};
use stats::{Hist, samples_needed};
use units::show;

/// Distribution in a chart of several: its name and its style.
pub(crate) struct Distribution<'a> {
    pub(crate) name: &'a str,
    pub(crate) look: (Tone, Dash),
    pub(crate) hist: &'a Hist,
}

/// Draws times by quantile, each further nine as wide as the previous one. `None` below two
/// samples.
pub(crate) fn by_quantile(id: &str, title: &str, all: &[Distribution<'_>]) -> Option<Chart> {
    let n = all.iter().map(|one| one.hist.count()).max().filter(|n| *n >= 2)?;
    let nines = (n as f64).log10();
    let at: Vec<f64> =
        (0..=POINTS_MAX).map(|point| nines * point as f64 / POINTS_MAX as f64).collect();
    let x = Horizontal {
        name: "quantile",
        unit: AxisUnit::Quantile,
        log: false,
        low: 0.0,
        high: nines,
    };
    let mut chart = Chart::new(id, title, x, AxisUnit::Time);
    chart.log = true;
    for one in all {
        let count = one.hist.count();
        let value = |nines: &f64| {
            let share_above = 10_f64.powf(-nines);
            let time = one.hist.quantile(1.0 - share_above).as_secs_f64();
            // beyond its last sample a distribution is unknown
            (time > 0.0 && share_above * count as f64 >= 0.999).then_some(time)
        };
        let line = Line::new(one.name, one.look.0, at.iter().map(value).collect());
        chart.lines.push(line.dashed(one.look.1));
    }
    chart.at = at;
    // Beyond q = 0.025^(1/n) there are fewer samples than a quantile needs.
    let enough = -(1.0 - 0.025_f64.powf(1.0 / n as f64)).log10();
    if enough < nines {
        let name = "too few samples".to_owned();
        chart.ranges.push(Range { name, tone: Tone::Soft, at: None, low: enough, high: nines });
    }
    Some(chart)
}

/// Returns the text below every chart of quantiles.
pub(crate) fn few_samples() -> Block {
    let needed = [0.99, 0.999, 0.9999].map(|quantile| show::count(samples_needed(quantile)));
    let [p99, p99_9, p99_99] = needed;
    let text = format!(
        "Where it is shaded there are fewer samples than a quantile needs: p99 needs {p99}, p99.9 \
         {p99_9}, p99.99 {p99_99}."
    );
    text_block(Voice::Note, text)
}
