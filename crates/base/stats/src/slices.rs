//! Response times of each target over time, in a bounded number of slices.

use crate::target_tally::TargetTally;
use units::Nanos;

/// Maximum number of slices of a run; beyond it, neighbors are merged.
pub const SLICES_MAX: usize = 48;
/// Maximum number of targets with slices.
const TARGETS_MAX: usize = 1_000;

/// Calls of one target in one slice that have a response time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slice {
    count: u64,
    sum_ns: f64,
}

/// Slices of a run: each of the same number of rows of the series, the last of fewer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetSlices {
    /// Rows of a slice, and of the last one so far.
    width: u32,
    filled: u32,
    /// Sums by slice, then by target.
    slices: Vec<Vec<Slice>>,
}

impl TargetSlices {
    /// Adds a row of the series.
    pub fn push(&mut self, targets: &[TargetTally]) {
        if targets.is_empty() {
            return;
        }
        if self.slices.is_empty() || self.filled == self.width {
            if self.slices.len() == SLICES_MAX {
                self.halve();
            }
            self.slices.push(Vec::new());
            (self.width, self.filled) = (self.width.max(1), 0);
        }
        self.filled += 1;
        let Some(last) = self.slices.last_mut() else { return };
        let known = targets.len().min(TARGETS_MAX);
        last.resize(last.len().max(known), Slice::default());
        for (slice, tally) in last.iter_mut().zip(targets) {
            let count = tally.response.count();
            slice.count += count;
            slice.sum_ns += tally.response.mean().0 as f64 * count as f64;
        }
    }

    /// Merges neighboring slices.
    fn halve(&mut self) {
        let joined = self.slices.chunks(2).map(|pair| {
            let mut all = pair[0].clone();
            for more in pair.iter().skip(1) {
                all.resize(all.len().max(more.len()), Slice::default());
                for (slice, more) in all.iter_mut().zip(more) {
                    slice.count += more.count;
                    slice.sum_ns += more.sum_ns;
                }
            }
            all
        });
        self.slices = joined.collect();
        self.width *= 2;
    }

    /// Returns the mean response time of a target in each slice; `None` without a call.
    pub fn means(&self, target: usize) -> Vec<Option<Nanos>> {
        let mean = |slices: &Vec<Slice>| {
            let slice = slices.get(target).filter(|slice| slice.count > 0)?;
            Some(Nanos((slice.sum_ns / slice.count as f64).round() as u64))
        };
        self.slices.iter().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(times_ms: &[u64]) -> Vec<TargetTally> {
        let tally = |ms: &u64| {
            let mut tally = TargetTally::default();
            if *ms > 0 {
                tally.response.record(Nanos::from_millis(*ms));
            }
            tally
        };
        times_ms.iter().map(tally).collect()
    }

    fn shown(slices: &TargetSlices, target: usize) -> Vec<u64> {
        let means = slices.means(target).into_iter();
        // a histogram's times are a little below those recorded
        let tens = |mean: Nanos| (mean.as_millis_f64() / 10.0 + 0.01).round() as u64;
        means.map(|mean| mean.map_or(0, tens)).collect()
    }

    #[test]
    fn a_long_run_has_wider_slices_and_the_same_mean() {
        let mut slices = TargetSlices::default();
        slices.push(&[]);
        for at in 0..SLICES_MAX as u64 {
            slices.push(&row(&[(at + 1) * 10, 0]));
        }
        assert_eq!(shown(&slices, 0), (1..=48).collect::<Vec<_>>());
        assert_eq!(shown(&slices, 1), [0; 48]);
        assert_eq!(shown(&slices, 7), [0; 48]);
        slices.push(&row(&[490, 20]));
        assert_eq!(shown(&slices, 0).len(), 25);
        assert_eq!(shown(&slices, 0)[..3], [2, 4, 6]);
        assert_eq!(shown(&slices, 0)[24], 49);
        slices.push(&row(&[510, 20]));
        assert_eq!(shown(&slices, 0)[24], 50);
        for _ in 0..1_000 {
            slices.push(&row(&[20, 20]));
        }
        assert!((24..=48).contains(&shown(&slices, 0).len()));
    }
}
