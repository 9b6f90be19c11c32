//! Comparison of two servers that may be checked after every block: whether one is worse than the
//! other by more than a margin.
//!
//! A block measures both sides in a random order (A B B A or B A A B). If B differs from A by a
//! constant θ (of the logarithms, for times and rates), then swapping the labels of a block changes
//! only the sign of `D - θ`, so that sign is a fair coin given the past and given everything that
//! does not depend on the labels. No distribution, no independence of the noise and no finite
//! variance is assumed. A bet on that coin,
//!
//! ```text
//! f(x) = ε + (1 - ε) · 2 / (1 + exp(-2 λ x)),   x = D - margin,   λ > 0 from the past
//! ```
//!
//! has a mean of at most 1 while θ ≤ margin: `f` grows with `x`, and for symmetric `x` its mean
//! is 1. The product over the blocks is a test martingale, and so is the mean of several products with
//! different λ. It exceeds 1/α at any time with a probability of at most α (Ville 1939), however
//! often one looks and whenever one stops. The base is exp(λx)/cosh(λx) of Ramdas, Ruf, Larsson and
//! Koolen (2020), which dominates the self-normalized exp(λx - λ²x²/2) of de la Peña (1999) and of
//! Howard, Ramdas, McAuliffe and Sekhon (2020, 2021). docs/measuring.md has the derivation.

use crate::compare::{Block, Scale};

/// Upper bound on the probability of a wrong pass, and of a wrong fail, over all looks of a gate.
pub const ALPHA: f64 = 0.05;

/// Sizes of the bets in standard deviations of a block: effects of an eighth to four of them.
const BETS: [f64; 6] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0];
/// Share of the wealth that is not bet: a block that contradicts all previous blocks costs a factor
/// of at most ten.
const KEPT: f64 = 0.1;
/// Smallest scale: figures that are equal in every run have no spread.
const SCALE_MIN: f64 = 1e-6;
/// Median absolute deviation of a normal distribution to its standard deviation.
const MAD: f64 = 1.482_602_218_505_602;
/// Earlier differences before their own spread is used.
const PAST_MIN: usize = 4;

/// The blocks of one figure so far.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Difference of each block, and the scale of its bets.
    steps: Vec<(f64, f64)>,
    /// Differences between runs of the same side and block, as standard deviations of one run.
    within: Vec<f64>,
}

/// Direction of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Above,
    Below,
}

impl Sequence {
    /// Adds a block whose values are on the scale of the differences (see [`scaled`]).
    pub fn push(&mut self, block: &Block) {
        let difference = mean(&block.after) - mean(&block.before);
        for side in [&block.before, &block.after] {
            let steps = side.windows(2).map(|two| (two[0] - two[1]).abs());
            self.within.extend(steps.map(|step| step / std::f64::consts::SQRT_2));
        }
        // swapping the labels of this block leaves both parts of the scale as they are
        let unit = (1.0 / block.before.len() as f64 + 1.0 / block.after.len() as f64).sqrt();
        let runs = MAD * median(&self.within).unwrap_or(0.0) * unit;
        let scale = runs.max(self.differences_deviation()).max(SCALE_MIN);
        self.steps.push((difference, scale));
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.steps.len()
    }

    /// Returns the median of the differences; NaN without blocks.
    pub fn estimate(&self) -> f64 {
        median(&self.differences()).unwrap_or(f64::NAN)
    }

    /// Returns the standard deviation of a block's difference, estimated from all blocks; NaN below
    /// two.
    pub fn spread(&self) -> f64 {
        if self.steps.len() < 2 {
            return f64::NAN;
        }
        deviation(&self.differences())
    }

    /// Returns evidence that the difference lies in `direction` of `margin`: the logarithm of a
    /// test martingale under the opposite hypothesis.
    pub fn evidence(&self, direction: Direction, margin: f64) -> f64 {
        let sign = match direction {
            Direction::Above => 1.0,
            Direction::Below => -1.0,
        };
        let product = |bet: f64| -> f64 {
            let one = |(difference, scale): &(f64, f64)| {
                let z = bet * sign * (difference - margin) / scale;
                (KEPT + (1.0 - KEPT) * 2.0 / (1.0 + (-2.0 * z).exp())).ln()
            };
            self.steps.iter().map(one).sum()
        };
        let products = BETS.map(product);
        let largest = products.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = products.iter().map(|one| (one - largest).exp()).sum();
        largest + (sum / BETS.len() as f64).ln()
    }

    /// Returns whether the difference is certain, at level `alpha`, to lie in `direction` of `margin`.
    pub fn shows(&self, direction: Direction, margin: f64, alpha: f64) -> bool {
        self.evidence(direction, margin) >= -alpha.ln()
    }

    /// Returns the end of the confidence sequence in `direction`, at level `alpha` for this end
    /// alone: every margin beyond it is excluded. Infinite while no margin is excluded.
    pub fn end(&self, direction: Direction, alpha: f64) -> f64 {
        let (outwards, other) = match direction {
            Direction::Above => (1.0, Direction::Below),
            Direction::Below => (-1.0, Direction::Above),
        };
        let extreme = self.differences().iter().map(|one| one * outwards).fold(f64::MIN, f64::max);
        let scale = self.steps.iter().map(|(_, scale)| *scale).fold(SCALE_MIN, f64::max);
        // beyond this margin every bet is won almost fully
        let far = extreme + 1e3 * scale;
        let excluded = |at: f64| self.shows(other, at * outwards, alpha);
        if self.steps.is_empty() || !excluded(far) {
            return outwards * f64::INFINITY;
        }
        // from below the smallest difference, where nothing is excluded, to where everything is
        let least = self.differences().iter().map(|one| one * outwards).fold(f64::MAX, f64::min);
        let (mut inside, mut outside) = (least - 1e3 * scale, far);
        for _ in 0..100 {
            let middle = 0.5 * (inside + outside);
            if excluded(middle) { outside = middle } else { inside = middle }
        }
        outwards * outside
    }

    fn differences(&self) -> Vec<f64> {
        self.steps.iter().map(|(difference, _)| *difference).collect()
    }

    fn differences_deviation(&self) -> f64 {
        if self.steps.len() < PAST_MIN { 0.0 } else { deviation(&self.differences()) }
    }
}

/// Returns the fewest blocks after which a gate at level `alpha` can answer: all bets won fully.
pub fn blocks_min(alpha: f64) -> usize {
    let most = (KEPT + (1.0 - KEPT) * 2.0).ln();
    (-alpha.ln() / most).ceil() as usize
}

/// Returns the values of a block on the scale of the differences: logarithms, or unchanged. `None`
/// if a value is not on that scale or a side has none.
pub fn scaled(scale: Scale, block: &Block) -> Option<Block> {
    let value = |value: &f64| match scale {
        Scale::Ratio => (*value > 0.0).then(|| value.ln()),
        Scale::Points => Some(*value),
    };
    let values = |values: &[f64]| -> Option<Vec<f64>> {
        let scaled: Option<Vec<f64>> = values.iter().map(value).collect();
        scaled.filter(|all| !all.is_empty() && all.iter().all(|value| value.is_finite()))
    };
    Some(Block { before: values(&block.before)?, after: values(&block.after)? })
}

/// Margin for one figure, judged after every block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    pub scale: Scale,
    /// Signed share: 0.05 for `+5%`, -0.03 for `-3%`; for a share, points of it.
    pub limit: f64,
    /// Growth of the figure is worse.
    pub rises: bool,
}

/// Answer of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarginAnswer {
    /// No worse than the margin.
    Pass,
    /// Worse than the margin.
    Fail,
    #[default]
    Undecided,
}

/// A margin, to the extent that the blocks decide it. Changes are as reported: shares or points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedMargin {
    pub answer: MarginAnswer,
    pub change: f64,
    /// Confidence sequence, each end at its level; infinite ends are NaN.
    pub low: f64,
    pub high: f64,
    /// Tightest bound that these blocks could have decided, with the sign of the limit.
    pub decidable: f64,
    /// Number of blocks that would probably decide this margin; `None` if unknown or already
    /// decided.
    pub blocks_needed: Option<u64>,
}

impl Margin {
    fn direction(&self) -> [Direction; 2] {
        match self.rises {
            true => [Direction::Above, Direction::Below],
            false => [Direction::Below, Direction::Above],
        }
    }

    /// Returns the limit on the scale of the differences.
    fn at(&self) -> f64 {
        match self.scale {
            Scale::Ratio => self.limit.ln_1p(),
            Scale::Points => self.limit,
        }
    }

    fn reported_difference(&self, difference: f64) -> f64 {
        match self.scale {
            Scale::Ratio => difference.exp_m1(),
            Scale::Points => difference,
        }
    }

    /// Returns the answer of the blocks so far. `figures`: margins of the gate, including this one.
    /// A gate fails with any of them, so each has its share of the level for that (Bonferroni); it
    /// passes with all of them, so each may pass at the whole level.
    pub fn answer(&self, sequence: &Sequence, figures: usize) -> MarginAnswer {
        let [worse, better] = self.direction();
        if sequence.shows(worse, self.at(), ALPHA / figures.max(1) as f64) {
            MarginAnswer::Fail
        } else if sequence.shows(better, self.at(), ALPHA) {
            MarginAnswer::Pass
        } else {
            MarginAnswer::Undecided
        }
    }

    /// Returns the answer with the underlying figures.
    pub fn judge_margin(&self, sequence: &Sequence, figures: usize) -> JudgedMargin {
        let answer = self.answer(sequence, figures);
        let [worse, better] = self.direction();
        let bad = sequence.end(worse, ALPHA);
        let good = sequence.end(better, ALPHA / figures.max(1) as f64);
        let estimate = sequence.estimate();
        let (low, high) = if self.rises { (good, bad) } else { (bad, good) };
        let finite =
            |end: f64| if end.is_finite() { self.reported_difference(end) } else { f64::NAN };
        JudgedMargin {
            answer,
            change: self.reported_difference(estimate),
            low: finite(low),
            high: finite(high),
            decidable: finite(bad),
            blocks_needed: match answer {
                MarginAnswer::Undecided => self.needed(sequence, estimate, bad),
                _ => None,
            },
        }
    }

    /// Estimates the number of blocks that decide the margin: the width of the sequence shrinks
    /// roughly with the root of the blocks.
    fn needed(&self, sequence: &Sequence, estimate: f64, bad: f64) -> Option<u64> {
        /// Beyond this factor the extrapolation is meaningless.
        const MOST: f64 = 1e4;
        let (width, distance) = ((bad - estimate).abs(), (self.at() - estimate).abs());
        let factor = (width / distance).powi(2).max(1.0);
        let known = width.is_finite() && factor.is_finite() && factor <= MOST;
        known.then(|| (sequence.blocks() as f64 * factor).ceil() as u64)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation by the median absolute deviation.
fn deviation(values: &[f64]) -> f64 {
    let Some(center) = median(values) else { return 0.0 };
    let away: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    MAD * median(&away).unwrap_or(0.0)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(0.5 * (lower + upper))
}

#[cfg(test)]
mod tests;
