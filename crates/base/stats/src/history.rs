//! A figure over many runs, in chronological order: its latest change, and the size of it.
//!
//! The scan statistic is the largest standardized rank sum over all splits of the history (Pettitt
//! 1979), so outliers and the shape of the noise do not matter. Its probability without a change is
//! computed from permutations of the runs. The latest change is found by splitting the part after a
//! change again, until nothing is found (binary segmentation).

use units::Stream;

/// Minimum number of runs for detecting a change.
pub const RUNS_MIN: usize = 8;
/// Probability that a history without a change shows one. A gate tests again after every run.
pub const ALPHA: f64 = 0.01;
/// Number of permutations for each probability, and of resamples for each interval.
const PERMUTATIONS: usize = 4_000;
const RESAMPLES: usize = 1_000;
/// Number of permutations for each end of the interval of a place, and the level of each part's
/// test.
const PLACE_PERMUTATIONS: usize = 400;
const PLACE_LEVEL: f64 = 0.025;
/// Maximum number of changes searched in sequence.
const CHANGES_MAX: usize = 20;

/// The latest change of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first run after the change, with its 95 % interval.
    pub at: usize,
    pub first: usize,
    pub last: usize,
    /// Difference of the medians after and before, and its 95 % interval.
    pub size: f64,
    pub low: f64,
    pub high: f64,
    /// Probability of so large a statistic without a change.
    pub p_value: f64,
}

/// Returns the latest change in `values`, oldest first; `None` if there is no significant one.
/// `figures`: number of tested figures of the same runs, which share the level (Bonferroni).
pub fn latest_change(values: &[f64], figures: usize, stream: &mut Stream) -> Option<Change> {
    let starts = starts(values.len());
    let level = ALPHA / figures.max(1) as f64 / starts.len().max(1) as f64;
    let mut found: Option<Change> = None;
    // a rise followed by a fall cancels over the whole history, and shows in one of its parts
    for first in starts {
        let other: Option<Change> = latest_within(values, first, level, stream);
        found = match (found, other) {
            (Some(one), Some(other)) if later(&one, &other) => Some(one),
            (one, None) => one,
            (_, other) => other,
        };
    }
    found
}

fn later(one: &Change, other: &Change) -> bool {
    one.at >= other.at
}

/// Starts of the tested parts: all, the last half, the last quarter and so on.
fn starts(runs: usize) -> Vec<usize> {
    let mut lengths = vec![runs];
    while let Some(half) = lengths.last().map(|last| last / 2).filter(|half| *half >= RUNS_MIN) {
        lengths.push(half);
    }
    lengths.iter().map(|length| runs - length).collect()
}

/// Returns the latest change after `start`, split by split.
fn latest_within(
    values: &[f64],
    mut start: usize,
    level: f64,
    stream: &mut Stream,
) -> Option<Change> {
    let mut found = None;
    for _ in 0..CHANGES_MAX {
        let part = &values[start..];
        if part.len() < RUNS_MIN {
            break;
        }
        let at = split(part).0;
        let p_value = probability(part, PERMUTATIONS, stream);
        if p_value > level {
            break;
        }
        let change = measured(part, at, p_value, stream);
        found = Some(Change {
            at: start + change.at,
            first: start + change.first,
            last: start + change.last,
            ..change
        });
        start += at;
    }
    found
}

/// Returns the split with the largest standardized rank sum, as the index of the first value after
/// it.
fn split(values: &[f64]) -> (usize, f64) {
    let ranks = ranks(values);
    best(&ranks)
}

fn best(ranks: &[f64]) -> (usize, f64) {
    let n = ranks.len() as f64;
    let center = 0.5 * (n + 1.0);
    let squares: f64 = ranks.iter().map(|rank| (rank - center).powi(2)).sum();
    let (mut sum, mut best) = (0.0, (0, 0.0));
    if squares <= 0.0 {
        return best;
    }
    for (index, rank) in ranks.iter().enumerate().take(ranks.len() - 1) {
        sum += rank - center;
        let before = (index + 1) as f64;
        let variance = before * (n - before) / (n * (n - 1.0)) * squares;
        let statistic = sum.abs() / variance.sqrt();
        if statistic > best.1 {
            best = (index + 1, statistic);
        }
    }
    best
}

/// Ranks from 1; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut at = 0;
    while at < order.len() {
        let equal = |other: &&usize| values[**other].total_cmp(&values[order[at]]).is_eq();
        let count = order[at..].iter().take_while(equal).count();
        let rank = at as f64 + 0.5 * (count as f64 + 1.0);
        order[at..at + count].iter().for_each(|index| ranks[*index] = rank);
        at += count;
    }
    ranks
}

/// Returns the probability of so large a statistic without a change.
fn probability(values: &[f64], permutations: usize, stream: &mut Stream) -> f64 {
    let mut ranks = ranks(values);
    let statistic = best(&ranks).1;
    let mut as_large = 1;
    for _ in 0..permutations {
        for last in (1..ranks.len()).rev() {
            ranks.swap(last, stream.below(last as u64 + 1) as usize);
        }
        as_large += usize::from(best(&ranks).1 >= statistic * (1.0 - 1e-9));
    }
    as_large as f64 / (permutations + 1) as f64
}

/// Returns a change with its intervals: of its size by a bootstrap within the two parts, of its
/// place by the test itself.
fn measured(values: &[f64], at: usize, p_value: f64, stream: &mut Stream) -> Change {
    let (before, after) = values.split_at(at);
    let mut sizes: Vec<f64> = (0..RESAMPLES)
        .map(|_| median(&resampled_once(after, stream)) - median(&resampled_once(before, stream)))
        .collect();
    sizes.sort_by(f64::total_cmp);
    let cut = RESAMPLES / 40;
    let first = (1..at).rev().take_while(|place| fits(values, *place, stream)).last();
    let last = (at + 1..values.len()).take_while(|place| fits(values, *place, stream)).last();
    Change {
        at,
        first: first.unwrap_or(at),
        last: last.unwrap_or(at),
        size: median(after) - median(before),
        low: sizes[cut],
        high: sizes[RESAMPLES - 1 - cut],
        p_value,
    }
}

/// Returns whether the change may be at `place`: neither part, split there, shows a change.
fn fits(values: &[f64], place: usize, stream: &mut Stream) -> bool {
    let (before, after) = values.split_at(place);
    [before, after].iter().all(|part| probability(part, PLACE_PERMUTATIONS, stream) > PLACE_LEVEL)
}

fn resampled_once(values: &[f64], stream: &mut Stream) -> Vec<f64> {
    values.iter().map(|_| values[stream.below(values.len() as u64) as usize]).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = ((sorted.len() - 1) / 2, sorted.len() / 2);
    0.5 * (sorted[lower] + sorted[upper])
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Purpose, Seed};

    fn stream(index: u64) -> Stream {
        Seed(86).stream(Purpose::Bootstrap, index)
    }

    /// Returns normal noise with a standard deviation of 1 % around these levels.
    fn history(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut random = stream(1_000 + seed);
        let mut noise = || 0.01 * (0..12).map(|_| random.uniform(-0.5, 0.5)).sum::<f64>();
        let run = |(count, level): &(usize, f64)| vec![*level; *count];
        levels.iter().flat_map(run).map(|level| level + noise()).collect()
    }

    /// Of 400 histories without a change at most 12 show one: 1 % and three standard errors.
    #[test]
    fn a_history_without_a_change_shows_none() {
        let shown = (0..400u64)
            .filter(|seed| {
                latest_change(&history(&[(24, 0.0)], *seed), 1, &mut stream(*seed)).is_some()
            })
            .count();
        assert!(shown <= 10, "{shown}");
    }

    #[test]
    fn a_step_is_found_at_its_place() {
        let (mut held, mut placed) = (0, 0);
        for seed in 0..100 {
            let values = history(&[(20, 0.0), (8, 0.05)], seed);
            let change = latest_change(&values, 4, &mut stream(seed)).expect("a step of 5 sigma");
            assert!(change.at.abs_diff(20) <= 2, "{seed}: {change:?}");
            assert!((change.size - 0.05).abs() < 0.015, "{seed}: {change:?}");
            held += usize::from(change.low <= 0.05 && 0.05 <= change.high);
            placed += usize::from((change.first..=change.last).contains(&20));
            assert!(change.first >= 10, "{seed}: {change:?}");
        }
        assert!(placed >= 90, "{placed} of 100 intervals hold the place");
        assert!(held >= 85, "{held} of 100 intervals hold the step");
    }

    /// Up and down again: the latest change is the one down.
    #[test]
    fn the_latest_of_several_changes_is_found() {
        let values = history(&[(16, 0.0), (16, 0.1), (16, 0.0)], 3);
        let change = latest_change(&values, 1, &mut stream(3)).expect("two steps");
        assert!(change.at.abs_diff(32) <= 2 && change.size < 0.0, "{change:?}");
    }

    #[test]
    fn one_outlier_and_equal_values_are_not_a_change() {
        let mut values = history(&[(30, 0.0)], 5);
        values[15] = 100.0;
        assert_eq!(latest_change(&values, 1, &mut stream(5)), None);
        assert_eq!(latest_change(&[0.0; 30], 1, &mut stream(6)), None);
        assert_eq!(latest_change(&[0.0, 1.0], 1, &mut stream(7)), None);
    }

    /// One run after the change looks like an outlier; five of twenty-five do not.
    #[test]
    fn a_change_needs_some_runs_after_it() {
        let first = |count: usize| {
            let values = history(&[(25, 0.0), (count, 0.06)], 9);
            latest_change(&values, 1, &mut stream(9)).is_some()
        };
        assert!(!first(1));
        assert!(first(5));
    }
}
