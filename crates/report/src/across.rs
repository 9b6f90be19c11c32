//! Repeats: runs added up, and the figures of each for the interval across them.

use crate::{Figures, figures};
use stats::{Measurement, Second, State};

/// The headline figures of one run of several. Times in seconds, rates per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headline {
    pub state: State,
    pub throughput_per_s: f64,
    pub goodput_per_s: f64,
    /// (failed + timed out + dropped) / due, 0..=1.
    pub failure_share: f64,
    pub mean_s: f64,
    pub p50_s: f64,
    pub p90_s: f64,
    pub p99_s: f64,
    pub p99_9_s: f64,
    pub max_s: f64,
}

impl Headline {
    pub fn of(measurement: &Measurement, state: State) -> Headline {
        let total = &measurement.total;
        let response = total.response().summary();
        Headline {
            state,
            throughput_per_s: Figures::per_second(total.in_window, measurement.window),
            goodput_per_s: Figures::per_second(total.good_in_window, measurement.window),
            failure_share: total.counts.failure_share(),
            mean_s: response.mean.as_secs_f64(),
            p50_s: response.p50.as_secs_f64(),
            p90_s: response.p90.as_secs_f64(),
            p99_s: response.p99.as_secs_f64(),
            p99_9_s: response.p99_9.as_secs_f64(),
            max_s: response.max.as_secs_f64(),
        }
    }
}

/// Runs of one plan added up: histograms and counts are summed, peaks are the highest, windows and
/// the rows of the series inside them are put one after the other. Nothing is averaged (law 6).
pub fn merged(runs: &[Measurement]) -> Measurement {
    let mut all = Measurement::default();
    for run in runs {
        let offset = all.window.as_secs_f64();
        let shift = |row: &Second| Second { at_s: row.at_s + offset, ..*row };
        all.series.extend(figures::in_window(run).map(shift));
        all.total.merge(&run.total);
        all.intended_span = Some(all.due_span() + run.due_span());
        all.window += run.window;
        all.elapsed += run.elapsed;
        all.intended = match (all.intended, run.intended) {
            (Some(before), Some(now)) => Some(before + now),
            (before, now) => before.or(now),
        };
        all.connections_peak = all.connections_peak.max(run.connections_peak);
        all.interrupted |= run.interrupted;
        all.aborted = all.aborted.take().or_else(|| run.aborted.clone());
    }
    all
}
