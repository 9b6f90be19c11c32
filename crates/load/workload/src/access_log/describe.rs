//! Figures that tell what a log's load is like.

use crate::access_log::Log;
use stats::fit::{slope, variance, variance_time};
use std::collections::BTreeMap;
use units::Nanos;

/// A log in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    pub visits: u64,
    /// Requests of a visit, one or more.
    pub mean_visit: f64,
    pub median_visit: u64,
    pub longest_visit: u64,
    pub model: Model,
    /// s of a count that falls as rank^−s, by least squares over the logarithms of the ranks that
    /// were asked for five times or more; `None` below ten such ranks.
    pub zipf: Option<f64>,
    /// What the most popular tenth of the targets has of all requests, 0..=1.
    pub top_tenth: f64,
    /// Requests by the first digit of their status, 1 to 5; other statuses are in none.
    pub statuses: [u64; 5],
    /// Sizes of the bodies of responses at 10, 50, 90 and 99 %, in bytes.
    pub sizes: [u64; 4],
    /// Of requests; `None` where no whole second has any.
    pub arrivals: Option<Arrivals>,
}

/// Which load behaves as the log's users do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Visits are short: about five requests or fewer.
    Open,
    /// Visits are long: ten requests or more.
    Closed,
    /// Neither.
    PartlyOpen,
}

/// How requests come, by their counts in each whole second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals {
    /// Requests in a second.
    pub mean: f64,
    pub peak: u64,
    /// Variance over mean: 1 for a Poisson process, more for bursts.
    pub dispersion: f64,
    /// H of a self-similar process from the slope of the variance–time plot: 0.5 for a Poisson
    /// process; `None` below ten minutes.
    pub hurst: Option<f64>,
}

/// Visits with a mean of this many requests or fewer behave openly, with that many or more closed (Schroeder, Wierman and Harchol-Balter, NSDI 2006).
const OPEN_MAX: f64 = 5.0;
const CLOSED_MIN: f64 = 10.0;
/// A rank that was asked for less often says little of the law.
const COUNT_MIN: u64 = 5;
const RANKS_MIN: usize = 10;
/// Seconds that a variance–time plot needs.
pub(crate) const HURST_SECONDS: usize = 600;

/// `pause`: what ends a visit.
pub fn describe(log: &Log, pause: Nanos) -> Description {
    let mut visits = log.visit_lengths(pause);
    visits.sort_unstable();
    let mean_visit = mean(&visits);
    let mut counts = vec![0_u64; log.asks.len()];
    let mut statuses = [0; 5];
    let mut sizes = Sizes::default();
    for access in &log.accesses {
        counts[access.ask as usize] += 1;
        if let Some(class) = statuses.get_mut(usize::from(access.status / 100).wrapping_sub(1)) {
            *class += 1;
        }
        sizes.count(access.bytes);
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let tenth = counts.len().div_ceil(10);
    let top: u64 = counts[..tenth].iter().sum();
    Description {
        visits: visits.len() as u64,
        mean_visit,
        median_visit: at(&visits, 0.5),
        longest_visit: at(&visits, 1.0),
        model: model(mean_visit),
        zipf: zipf(&counts),
        top_tenth: top as f64 / (log.accesses.len().max(1)) as f64,
        statuses,
        sizes: [0.1, 0.5, 0.9, 0.99].map(|share| sizes.at(share)),
        arrivals: arrivals(&log.cells(Nanos::SECOND)),
    }
}

/// Sizes by their first 12 binary digits, which is exact below 4 KiB and within 0.05 % above: as many cells
/// as there are such sizes, however long the log.
#[derive(Debug, Default)]
struct Sizes {
    cells: BTreeMap<u32, u64>,
    sum: u64,
}

impl Sizes {
    fn count(&mut self, size: u32) {
        let low = u32::BITS.saturating_sub(size.leading_zeros() + 12);
        *self.cells.entry(size >> low << low).or_default() += 1;
        self.sum += 1;
    }

    /// The size that the share is not above; 0 of none.
    fn at(&self, share: f64) -> u64 {
        let row = ((self.sum as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let cell = self.cells.iter().find(|(_, count)| {
            seen += **count;
            seen >= row
        });
        cell.map_or(0, |(size, _)| u64::from(*size))
    }
}

fn model(mean_visit: f64) -> Model {
    match mean_visit {
        short if short <= OPEN_MAX => Model::Open,
        long if long >= CLOSED_MIN => Model::Closed,
        _ => Model::PartlyOpen,
    }
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len().max(1) as f64
}

/// The value that the share is not above; 0 of none.
fn at(sorted: &[u64], share: f64) -> u64 {
    let row = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(row.saturating_sub(1)).copied().unwrap_or(0)
}

/// `counts` fall.
fn zipf(counts: &[u64]) -> Option<f64> {
    let known = counts.iter().take_while(|count| **count >= COUNT_MIN);
    let points: Vec<(f64, f64)> = (1..)
        .zip(known)
        .map(|(rank, count)| (f64::from(rank).ln(), (*count as f64).ln()))
        .collect();
    (points.len() >= RANKS_MIN).then(|| -slope(&points)).filter(|slope| slope.is_finite())
}

/// Cells that are counted at most: three years of seconds.
const CELLS_MAX: u64 = 100_000_000;

impl Log {
    /// Requests in each whole cell of time. The last one, which the log may end in, is left out; where
    /// the log's clock counts whole seconds, so is the first, which it may begin in. None of more than a
    /// hundred million cells.
    pub fn cells(&self, cell: Nanos) -> Vec<u64> {
        let whole = self.span().0 / cell.0.max(1);
        if whole > CELLS_MAX {
            return Vec::new();
        }
        let mut counts = vec![0; whole as usize];
        for access in &self.accesses {
            if let Some(count) = counts.get_mut((access.at.0 / cell.0.max(1)) as usize) {
                *count += 1;
            }
        }
        let first = usize::from(!self.fine).min(counts.len());
        counts.split_off(first)
    }
}

fn arrivals(counts: &[u64]) -> Option<Arrivals> {
    // without a request there is no ratio of variance to mean
    let peak = counts.iter().copied().max().filter(|peak| *peak > 0)?;
    let mean = mean(counts);
    let values: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    let dispersion = variance(&values)? / mean;
    let hurst = variance_time(&values, HURST_SECONDS).map(|found| found.hurst);
    Some(Arrivals { mean, peak, dispersion, hurst })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::{Access, LoggedRequest};
    use units::{Purpose, Seed};

    fn log(accesses: Vec<Access>) -> Log {
        let count = accesses.iter().map(|access| access.ask + 1).max().unwrap_or(0);
        let ask = |row: u32| LoggedRequest { method: "GET".to_owned(), target: format!("/{row}") };
        Log { asks: (0..count).map(ask).collect(), accesses, ..Log::default() }
    }

    fn access(at: f64, client: u32, ask: u32) -> Access {
        Access { at: Nanos::from_secs_f64(at), client, ask, status: 200, bytes: 100 }
    }

    /// Poisson arrivals at 20/s for an hour: dispersion 1, H 0.5.
    #[test]
    fn a_poisson_process_is_told() {
        let mut stream = Seed(1).stream(Purpose::Arrivals, 0);
        let mut at = 0.0;
        let times = std::iter::from_fn(|| {
            at += stream.exponential(0.05);
            (at < 3_600.0).then_some(at)
        });
        let log = log(times.zip(0..).map(|(at, client)| access(at, client, 0)).collect());
        let found = describe(&log, Nanos::from_secs(1_800));
        let arrivals = found.arrivals.unwrap();
        assert!((arrivals.mean - 20.0).abs() < 0.5, "{arrivals:?}");
        assert!((arrivals.dispersion - 1.0).abs() < 0.1, "{arrivals:?}");
        assert!((arrivals.hurst.unwrap() - 0.5).abs() < 0.06, "{arrivals:?}");
        assert_eq!(found.model, Model::Open);
        assert_eq!(found.zipf, None);
    }

    /// Sources that are on and off for times of a Pareto law (a = 1.4): H = (3 − a)/2 = 0.8
    /// (Willinger et al., 1997); over two hours an estimate is lower, and clearly above Poisson's.
    #[test]
    fn a_self_similar_process_is_told() {
        let mut accesses = Vec::new();
        for source in 0..50 {
            let mut stream = Seed(3).stream(Purpose::Arrivals, source);
            let mut pareto = || (1.0 - stream.unit()).powf(-1.0 / 1.4);
            let mut at = 0.0;
            while at < 7_200.0 {
                let on = pareto();
                let calls = (on * 2.0) as u32;
                accesses.extend(
                    (0..calls).map(|call| access(at + f64::from(call) / 2.0, source as u32, 0)),
                );
                at += on + pareto();
            }
        }
        accesses.sort_by_key(|access| access.at);
        let found = describe(&log(accesses), Nanos::from_secs(1_800)).arrivals.unwrap();
        assert!(found.hurst.unwrap() > 0.65, "{found:?}");
    }

    #[test]
    fn popularity_has_the_exponent_that_it_was_made_with() {
        let mut accesses = Vec::new();
        for rank in 1..=200_u32 {
            let count = (20_000.0 / f64::from(rank).powf(0.8)) as u32;
            accesses.extend((0..count).map(|call| access(f64::from(call), rank, rank - 1)));
        }
        let found = describe(&log(accesses), Nanos::from_secs(1));
        assert!((found.zipf.unwrap() - 0.8).abs() < 0.01, "{found:?}");
        assert_eq!(found.longest_visit, 20_000);
        assert!(found.top_tenth > 0.4 && found.top_tenth < 0.6, "{found:?}");
    }

    #[test]
    fn the_length_of_visits_tells_the_model() {
        let of = |calls: u32| {
            let calls = (0..100).flat_map(|client| (0..calls).map(move |call| (client, call)));
            let calls = calls.map(|(client, call)| access(f64::from(call), client, call));
            let mut accesses: Vec<Access> = calls.collect();
            accesses.sort_by_key(|access| access.at);
            describe(&log(accesses), Nanos::from_secs(1_800)).model
        };
        assert_eq!(
            [1, 5, 7, 10].map(of),
            [Model::Open, Model::Open, Model::PartlyOpen, Model::Closed]
        );
    }

    /// Both seconds with a request are those that may be cut off: nothing was counted in the others.
    #[test]
    fn whole_seconds_without_requests_have_no_arrivals() {
        let found = describe(&log(vec![access(0.0, 0, 0), access(100.0, 0, 0)]), Nanos::SECOND);
        assert_eq!(found.arrivals, None);
    }

    #[test]
    fn sizes_are_kept_to_a_part_in_two_thousand() {
        let mut sizes = Sizes::default();
        (0..100_000_u32).for_each(|row| sizes.count(row * 40_000));
        for (share, exact) in [(0.1, 400e6), (0.5, 2e9), (0.99, 3.96e9)] {
            let found = sizes.at(share) as f64;
            assert!((found / exact - 1.0).abs() < 1e-3, "{share}: {found}");
        }
        assert!(sizes.cells.len() < 60_000);
        (0..50).for_each(|_| sizes.count(7));
        assert_eq!((sizes.at(0.0), Sizes::default().at(0.5)), (0, 0));
        sizes.count(4_095);
        assert!(sizes.cells.contains_key(&4_095));
    }

    #[test]
    fn an_empty_log_has_figures() {
        let found = describe(&log(Vec::new()), Nanos::SECOND);
        assert_eq!((found.visits, found.arrivals, found.sizes), (0, None, [0; 4]));
    }
}
