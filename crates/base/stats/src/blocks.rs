//! Measures how much the calls of a run depend on each other, from blocks of the run.
//!
//! Calls that queue after one another, and calls delayed by one disturbance, are slow together. A
//! row of the series is a block: if a share of calls differs more between blocks than independent
//! calls explain, the calls count as fewer independent ones. The ratio of the two variances is the
//! design effect.

use crate::Cumulative;
use crate::interval::mean_and_stdev;

/// Maximum number of blocks; beyond it, two neighbors are merged.
const BLOCKS_MAX: usize = 64;
/// Fewer blocks show no dependence: calls count as independent of each other.
pub const BLOCKS_MIN: usize = 5;

/// Part of an objective's figure that one row of the series contributes.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Times, of an objective on a quantile or a mean.
    pub times: Cumulative,
    /// Sum of the times in seconds.
    pub sum_s: f64,
    /// For an objective on a share, the calls that count, and all calls.
    pub found: u64,
    pub of: u64,
}

impl Block {
    fn merge(&mut self, other: &Block) {
        self.times.merge(&other.times);
        self.sum_s += other.sum_s;
        self.found += other.found;
        self.of += other.of;
    }
}

/// The blocks of an objective, of equal length, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    all: Vec<Block>,
    /// Rows in each block but the last, and in the last one.
    rows_each: usize,
    rows_last: usize,
}

impl Blocks {
    /// Adds a row of the series.
    pub fn push(&mut self, row: Block) {
        self.rows_each = self.rows_each.max(1);
        match self.all.last_mut() {
            Some(last) if self.rows_last < self.rows_each => {
                last.merge(&row);
                self.rows_last += 1;
            }
            _ => {
                self.all.push(row);
                self.rows_last = 1;
            }
        }
        if self.all.len() > BLOCKS_MAX {
            self.halve();
        }
    }

    /// Adds the calls that ended after the last due instant to the last block.
    pub fn extend_last(&mut self, row: &Block) {
        match self.all.last_mut() {
            Some(last) => last.merge(row),
            None => self.push(row.clone()),
        }
    }

    /// Adds the blocks of another run.
    pub fn append(&mut self, other: &Blocks) {
        other.all.iter().for_each(|block| self.push(block.clone()));
    }

    fn halve(&mut self) {
        let pairs = self.all.chunks(2).map(|pair| {
            let mut both = pair[0].clone();
            pair[1..].iter().for_each(|block| both.merge(block));
            both
        });
        // one more than an even number of blocks: the last one is alone, and has room for more rows
        self.rows_each *= 2;
        self.all = pairs.collect();
    }

    /// Returns the number of blocks.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.all.iter()
    }

    /// Returns the design effect of a share, 1 or more: counts found, and of how many, by block.
    pub(crate) fn effect(&self, counts: impl Fn(&Block) -> (u64, u64)) -> f64 {
        let rows: Vec<(f64, f64)> =
            self.iter().map(&counts).map(|(found, of)| (found as f64, of as f64)).collect();
        let found: f64 = rows.iter().map(|row| row.0).sum();
        let of: f64 = rows.iter().map(|row| row.1).sum();
        let share = found / of;
        let single = share * (1.0 - share) / of;
        match ratio_variance(&rows).filter(|_| single > 0.0) {
            Some(variance) => (variance / single).max(1.0),
            None => 1.0,
        }
    }

    /// Returns the variance of the mean of all times, from the blocks; `None` with too few of them.
    pub(crate) fn mean_variance(&self) -> Option<f64> {
        let rows: Vec<(f64, f64)> =
            self.iter().map(|block| (block.sum_s, block.times.total() as f64)).collect();
        ratio_variance(&rows)
    }
}

/// Returns the variance of Σ part / Σ whole over blocks, by linearization (Cochran 1977, section
/// 6.3); `None` with fewer than [`BLOCKS_MIN`] blocks.
fn ratio_variance(rows: &[(f64, f64)]) -> Option<f64> {
    let whole: f64 = rows.iter().map(|row| row.1).sum();
    let ratio = rows.iter().map(|row| row.0).sum::<f64>() / whole;
    if rows.len() < BLOCKS_MIN || !ratio.is_finite() {
        return None;
    }
    let away: Vec<f64> = rows.iter().map(|(part, of)| part - ratio * of).collect();
    let (_, deviation) = mean_and_stdev(&away)?;
    Some(deviation.powi(2) * rows.len() as f64 / whole.powi(2))
}
