//! Counts requests in each second; only the last hour is in memory.

use std::collections::VecDeque;
use units::Nanos;

/// Maximum delay of a line in seconds: servers log a request when it ends.
const OPEN_MAX: usize = 3_600;
/// Maximum length of a log in seconds: three years.
const CELLS_MAX: u64 = 100_000_000;
/// Number of means over the longest spans, and of seconds, that a variance-time plot needs (as
/// [`stats::fit::variance_time`]).
const BLOCKS_MIN: u64 = 20;
pub(super) const HURST_SECONDS: u64 = 600;

/// The arrivals of requests, by their counts in each whole second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals {
    /// Mean requests per second.
    pub mean: f64,
    pub peak: u64,
    /// Variance over mean: 1 for a Poisson process, more for bursts.
    pub dispersion: f64,
    /// Hurst parameter H of a self-similar process, from the slope of the variance–time plot: 0.5
    /// for a Poisson process; `None` below ten minutes.
    pub hurst: Option<f64>,
}

/// Requests counted by second.
#[derive(Debug, Default)]
pub(super) struct SampledCells {
    /// The second of the first open cell, counted from the first line.
    from: i64,
    open: VecDeque<u64>,
    closed: Closed,
    /// Lines whose second was already closed.
    late: u64,
    /// True if the log spans more seconds than can be counted.
    too_long: bool,
}

impl SampledCells {
    /// Counts a request, `at` nanoseconds after the first line; negative: before it.
    pub(super) fn count(&mut self, at: i64) {
        let second = at.div_euclid(Nanos::SECOND.0 as i64);
        if self.too_long {
            return;
        }
        if second < self.from && !self.grow_back(second) {
            self.late += 1;
        }
        let place = second.max(self.from).abs_diff(self.from);
        if place > CELLS_MAX || self.closed.count > CELLS_MAX {
            self.too_long = true;
            return;
        }
        while second.max(self.from).abs_diff(self.from) as usize >= OPEN_MAX {
            let oldest = self.open.pop_front().unwrap_or(0);
            self.closed.push(oldest);
            self.from += 1;
        }
        let place = second.max(self.from).abs_diff(self.from) as usize;
        if self.open.len() <= place {
            self.open.resize(place + 1, 0);
        }
        self.open[place] += 1;
    }

    /// Opens the seconds from this one to the first. Returns false if a second is closed, or too
    /// many would be open.
    fn grow_back(&mut self, second: i64) -> bool {
        let more = self.from.abs_diff(second) as usize;
        if self.closed.count > 0 || self.open.len() + more > OPEN_MAX {
            return false;
        }
        (0..more).for_each(|_| self.open.push_front(0));
        self.from = second;
        true
    }

    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// Omits the last second: the log may end in it. If the log's clock counts whole seconds, omits
    /// the first too, as the log may begin in it.
    pub(super) fn arrivals(mut self, fine: bool) -> Option<Arrivals> {
        if self.too_long {
            return None;
        }
        self.open.pop_back();
        for count in self.open {
            self.closed.push(count);
        }
        self.closed.arrivals(!fine)
    }
}

/// Sums over the completed seconds.
#[derive(Debug, Default)]
struct Closed {
    count: u64,
    first: u64,
    peak: u64,
    peak_after_first: u64,
    /// Means over 1, 2, 4, ... seconds, of all seconds and of those after the first.
    all: Levels,
    after_first: Levels,
}

impl Closed {
    fn push(&mut self, value: u64) {
        self.count += 1;
        self.peak = self.peak.max(value);
        self.all.push(value);
        if self.count == 1 {
            self.first = value;
        } else {
            self.peak_after_first = self.peak_after_first.max(value);
            self.after_first.push(value);
        }
    }

    fn arrivals(&self, without_first: bool) -> Option<Arrivals> {
        let (levels, peak) = match without_first {
            true => (&self.after_first, self.peak_after_first),
            false => (&self.all, self.peak),
        };
        // without a request there is no ratio of variance to mean
        let single = levels.0.first().filter(|_| peak > 0)?;
        let (mean, variance) = (single.mean, single.variance()?);
        Some(Arrivals { mean, peak, dispersion: variance / mean, hurst: levels.hurst() })
    }
}

/// Variances of means over spans that double.
#[derive(Debug, Default)]
struct Levels(Vec<SampleSpread>);

impl Levels {
    fn push(&mut self, value: u64) {
        let mut carried = value;
        for level in 0.. {
            if self.0.len() == level {
                self.0.push(SampleSpread::default());
            }
            let spread = &mut self.0[level];
            spread.push(carried as f64 / (1_u64 << level) as f64);
            match spread.half.take() {
                Some(half) => carried += half,
                None => return spread.half = Some(carried),
            }
        }
    }

    fn hurst(&self) -> Option<f64> {
        let seconds = self.0.first()?.count;
        if seconds < HURST_SECONDS {
            return None;
        }
        let single = self.0.first()?.variance().filter(|single| *single > 0.0)?;
        let long = (0..).zip(&self.0).take_while(|(level, _)| seconds >> level >= BLOCKS_MIN);
        let points = long.filter_map(|(level, spread)| {
            let variance = spread.variance().filter(|variance| *variance > 0.0)?;
            Some((f64::from(level) * std::f64::consts::LN_2, (variance / single).ln()))
        });
        let points: Vec<(f64, f64)> = points.collect();
        (points.len() > 2).then(|| 1.0 + stats::fit::slope(&points) / 2.0)
    }
}

/// Mean and variance of values, computed one by one (Welford, 1962).
#[derive(Clone, Copy, Debug, Default)]
struct SampleSpread {
    count: u64,
    mean: f64,
    squares: f64,
    /// The sum of a block that waits for its neighbor.
    half: Option<u64>,
}

impl SampleSpread {
    fn push(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::fit::{variance, variance_time};
    use units::{Purpose, Seed};

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    /// Computes the reference values with all counts in memory.
    fn reference(counts: &[f64]) -> (f64, Option<f64>) {
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let hurst = variance_time(counts, HURST_SECONDS as usize).map(|found| found.hurst);
        (variance(counts).unwrap() / mean, hurst)
    }

    #[test]
    fn figures_are_those_of_all_counts_in_memory() {
        for seconds in [2_u64, 50, 599, 600, 601, 5_000, 20_003] {
            let mut stream = Seed(seconds).stream(Purpose::Arrivals, 0);
            let mut counts: Vec<u64> = (0..seconds).map(|_| stream.below(9)).collect();
            // a log begins with a request
            counts[0] += 1;
            let mut cells = SampledCells::default();
            for (second, count) in (0..).zip(&counts) {
                (0..*count).for_each(|_| cells.count(second * Nanos::SECOND.0 as i64 + 7));
            }
            cells.count(seconds as i64 * Nanos::SECOND.0 as i64);
            let counts: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
            let (dispersion, hurst) = reference(&counts);
            let found = cells.arrivals(true).unwrap();
            assert!(near(found.dispersion, dispersion), "{seconds}: {found:?}");
            assert_eq!(found.hurst.is_some(), hurst.is_some(), "{seconds}");
            assert!(found.hurst.zip(hurst).is_none_or(|(a, b)| near(a, b)), "{seconds}");
        }
    }

    #[test]
    fn lines_out_of_order_are_counted_in_their_second() {
        let second = Nanos::SECOND.0 as i64;
        let mut in_order = SampledCells::default();
        let mut shuffled = SampledCells::default();
        for at in 0..5_000 {
            in_order.count(at * second);
            // each ten seconds backwards
            shuffled.count((at / 10 * 10 + 9 - at % 10) * second);
        }
        assert_eq!(shuffled.late(), 0);
        let (a, b) = (in_order.arrivals(true).unwrap(), shuffled.arrivals(true).unwrap());
        assert!(near(a.mean, b.mean) && a.peak == b.peak && near(a.dispersion, b.dispersion));
    }

    #[test]
    fn lines_more_than_an_hour_late_count_as_late() {
        let second = Nanos::SECOND.0 as i64;
        let mut cells = SampledCells::default();
        (0..10_000).for_each(|at| cells.count(at * second));
        cells.count(100 * second);
        cells.count(9_990 * second);
        assert_eq!((cells.late(), cells.open.len()), (1, OPEN_MAX));
    }

    #[test]
    fn a_log_of_a_thousand_years_takes_no_memory() {
        let mut cells = SampledCells::default();
        cells.count(0);
        cells.count(i64::MAX);
        cells.count(i64::MIN);
        assert!(cells.open.len() <= OPEN_MAX);
        assert_eq!(cells.arrivals(true), None);
    }
}
