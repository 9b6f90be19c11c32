//! Counts like siege, transaction by transaction.

use super::call_report::CallReport;
use sample::Sample;
use units::Nanos;

/// siege's clock, `times`, counts hundredths of a second.
const TICK_NS: u64 = 10_000_000;

/// Counts and times of all transactions so far, as siege adds them up.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) hits: u64,
    pub(super) failed: u64,
    pub(super) success: u64,
    pub(super) okay: u64,
    pub(super) bytes: u64,
    /// Total, in seconds.
    pub(super) total: f64,
    pub(super) longest: f64,
    pub(super) shortest: Option<f64>,
}

impl Tally {
    pub(super) fn take(&mut self, call_report: &CallReport, seconds: f64, bytes: u64) {
        self.hits += u64::from(call_report.hits);
        self.failed += u64::from(call_report.failed);
        if call_report.timed {
            self.total += seconds;
        }
        if call_report.measured {
            self.bytes += bytes;
            self.longest = self.longest.max(seconds);
            self.shortest = Some(self.shortest.map_or(seconds, |least| least.min(seconds)));
        }
        self.success += u64::from(call_report.success);
        self.okay += u64::from(call_report.okay);
    }
}

/// Returns the duration of a transaction, in seconds; by siege's clock if `strict`.
pub(super) fn seconds(sample: &Sample, strict: bool) -> f64 {
    span(sample.intended, sample.done, strict)
}

/// Returns the seconds between two instants, by the same clock as [`seconds`].
pub(super) fn span(from: Nanos, to: Nanos, strict: bool) -> f64 {
    if strict {
        return (to.0 / TICK_NS).saturating_sub(from.0 / TICK_NS) as f64 / 100.0;
    }
    (to - from).as_secs_f64()
}

/// siege's output at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SiegeFigures {
    pub(super) hits: u64,
    /// Availability, in percent.
    pub(super) availability: f64,
    /// Elapsed time, in seconds.
    pub(super) elapsed: f64,
    /// Data in MB of 1024² bytes.
    pub(super) megabytes: f64,
    pub(super) response: f64,
    pub(super) rate: f64,
    pub(super) throughput: f64,
    pub(super) concurrency: f64,
    pub(super) success: u64,
    pub(super) okay: u64,
    pub(super) failed: u64,
    pub(super) longest: f64,
    pub(super) shortest: f64,
}

impl SiegeFigures {
    /// Computes the figures. `elapsed`: seconds from the beginning of the first transaction to the
    /// end of the last one.
    pub(super) fn new(tally: &Tally, elapsed: f64) -> SiegeFigures {
        let over = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
        let hits = tally.hits as f64;
        let megabytes = tally.bytes as f64 / (1_024.0 * 1_024.0);
        SiegeFigures {
            hits: tally.hits,
            availability: over(hits, hits + tally.failed as f64) * 100.0,
            elapsed,
            megabytes,
            response: over(tally.total, hits),
            rate: over(hits, elapsed),
            throughput: over(megabytes, elapsed),
            concurrency: over(tally.total, elapsed),
            success: tally.success,
            okay: tally.okay,
            failed: tally.failed,
            longest: tally.longest,
            shortest: if tally.success > 0 { tally.shortest.unwrap_or(0.0) } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_siege_sees_ticks() {
        let at = |ms| Nanos::from_millis(ms);
        let exact = [(3, 9), (9, 11), (0, 25)].map(|(from, to)| span(at(from), at(to), false));
        let ticks = [(3, 9), (9, 11), (0, 25)].map(|(from, to)| span(at(from), at(to), true));
        assert_eq!(exact.map(|s| (s * 1e3).round() as i64), [6, 2, 25]);
        assert_eq!(ticks.map(|s| (s * 1e2).round() as i64), [0, 1, 2]);
    }

    #[test]
    fn figures_follow_from_the_counts() {
        let mut tally = Tally::default();
        let good = CallReport {
            hits: 2,
            timed: true,
            measured: true,
            success: true,
            ..CallReport::default()
        };
        tally.take(&good, 0.5, 1 << 20);
        tally.take(&CallReport { failed: 1, ..CallReport::default() }, 9.0, 77);
        let figures = SiegeFigures::new(&tally, 2.0);
        let close = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(close(figures.availability, 200.0 / 3.0) && close(figures.megabytes, 1.0));
        assert!(close(figures.response, 0.25) && close(figures.concurrency, 0.25));
        assert!(close(figures.longest, 0.5) && close(figures.shortest, 0.5));
        assert!(close(SiegeFigures::new(&Tally::default(), 0.0).availability, 0.0));
    }
}
