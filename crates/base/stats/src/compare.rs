//! Compares two sets of runs: whether they differ, how large the difference is, and which
//! differences could have been detected.
//!
//! The unit is the run, never the call: calls of one run depend on each other. Runs of both sides
//! are in blocks (A B B A or B A A B) of random order, so that slow changes on the machines affect
//! both alike; two sets that were recorded separately are one block. Differences are those of the
//! means over runs; for times and rates, of their logarithms, which makes them ratios.
//!
//! A difference must meet three conditions: random labels within the blocks rarely give one as
//! large (a permutation test over all figures together, so that testing eight figures does not find
//! differences eight times as often: Westfall & Young 1993); its interval (a bootstrap over blocks,
//! or over runs if there is a single block) excludes zero; and it is larger than the first target's
//! difference from itself.

mod interval;
mod permutation;

pub use permutation::{LABELINGS_MAX, Labelings, Labels, labelings};

use crate::interval::{CONFIDENCE, mean_and_stdev};
use statrs::distribution::{ContinuousCDF, StudentsT};
use units::Stream;

/// Minimum number of blocks, or of runs on each side of a single block, for any conclusion: with
/// fewer, no labels could be rare enough and no interval would have its coverage.
pub const BLOCKS_MIN: usize = 5;
pub const RUNS_MIN: usize = 4;

/// Scale of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Positive; differences are ratios, after/before − 1.
    Ratio,
    /// A share; differences are after − before.
    Points,
}

/// One figure of every run.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub scale: Scale,
    /// Values of the runs of each block. All series of a comparison have the same form.
    pub blocks: Vec<Block>,
}

/// Runs of both sides in one block, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub before: Vec<f64>,
    pub after: Vec<f64>,
}

/// Result for one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Mean over the runs: geometric for [`Scale::Ratio`], arithmetic for [`Scale::Points`].
    pub before: f64,
    pub after: f64,
    /// The difference on its [`Scale`], and its interval at [`CONFIDENCE`]; the interval is NaN
    /// with too few runs.
    pub change: f64,
    pub low: f64,
    pub high: f64,
    /// Noise floor: half the width of the interval of the first target compared with itself, on the
    /// same scale; NaN with too few runs.
    pub noise: f64,
    /// A difference of this size would be found four times in five; NaN where unknown.
    pub detectable: f64,
    /// Cliff's delta over all pairs of runs, −1..=1: the probability that a run of the second is
    /// above one of the first, less the probability that it is below.
    pub effect: f64,
    /// Probability of a difference as rare in any figure of this comparison if there were none,
    /// 0..=1.
    pub p_value: f64,
    /// True if all three conditions hold.
    pub different: bool,
    /// There were enough runs for a conclusion.
    pub enough: bool,
}

/// Effort of a comparison, and the number of comparisons in its family.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of resamples for each interval, at most
    /// [`RESAMPLES_MAX`](crate::interval::RESAMPLES_MAX).
    pub resamples: u32,
    /// Number of comparisons in one result, including this one, at least 1: each p-value is
    /// multiplied by it, so that testing several does not find something several times as often
    /// (Bonferroni).
    pub family: usize,
}

/// Compares every series. A series with values that are not finite (or, as ratios, not positive)
/// has NaN for missing results and is never called different.
pub fn compare(series: &[Series], effort: Effort, stream: &mut Stream) -> Vec<Compared> {
    let scaled: Vec<Option<Vec<Block>>> = series.iter().map(scaled).collect();
    let sound: Vec<&[Block]> = scaled.iter().flatten().map(Vec::as_slice).collect();
    let enough = sound.first().is_some_and(|blocks| enough(blocks));
    let mut p_values = match enough {
        true => permutation::p_values(&sound, stream)
            .into_iter()
            .map(|p| (p * effort.family.max(1) as f64).min(1.0))
            .collect(),
        false => vec![f64::NAN; sound.len()],
    }
    .into_iter();
    let figures = sound.len();
    let mut one = |(series, scaled): (&Series, &Option<Vec<Block>>)| {
        let Some(blocks) = scaled else { return unknown(series) };
        let p_value = p_values.next().unwrap_or(f64::NAN);
        judge_difference(series.scale, blocks, enough, p_value, figures, effort, stream)
    };
    series.iter().zip(&scaled).map(&mut one).collect()
}

fn enough(blocks: &[Block]) -> bool {
    match blocks {
        [only] => only.before.len().min(only.after.len()) >= RUNS_MIN,
        all => all.len() >= BLOCKS_MIN,
    }
}

fn judge_difference(
    scale: Scale,
    blocks: &[Block],
    enough: bool,
    p_value: f64,
    figures: usize,
    effort: Effort,
    stream: &Stream,
) -> Compared {
    let all = |side: fn(&Block) -> &Vec<f64>| -> Vec<f64> {
        blocks.iter().flat_map(side).copied().collect()
    };
    let (before, after) = (all(|block| &block.before), all(|block| &block.after));
    let change = difference(blocks);
    let (low, high) = match enough {
        // every figure is resampled alike
        true => interval::bootstrap_interval(blocks, effort.resamples, &mut stream.clone()),
        false => (f64::NAN, f64::NAN),
    };
    let noise = noise(blocks);
    let off_zero = low > 0.0 || high < 0.0;
    let different = enough && p_value <= 1.0 - CONFIDENCE && off_zero && change.abs() > noise;
    Compared {
        before: reported_mean(scale, mean(&before)),
        after: reported_mean(scale, mean(&after)),
        change: reported_difference(scale, change),
        low: reported_difference(scale, low),
        high: reported_difference(scale, high),
        noise: reported_difference(scale, noise),
        detectable: reported_difference(
            scale,
            if enough { detectable(blocks, figures, effort.family) } else { f64::NAN },
        ),
        effect: cliffs_delta(&before, &after),
        p_value,
        different,
        enough,
    }
}

fn unknown(series: &Series) -> Compared {
    let all = |side: fn(&Block) -> &Vec<f64>| -> f64 {
        let values: Vec<f64> = series.blocks.iter().flat_map(side).copied().collect();
        mean(&values)
    };
    let nan = f64::NAN;
    Compared {
        before: all(|block| &block.before),
        after: all(|block| &block.after),
        change: nan,
        low: nan,
        high: nan,
        noise: nan,
        detectable: nan,
        effect: nan,
        p_value: nan,
        different: false,
        enough: false,
    }
}

/// Returns the values on the scale of the differences; `None` if a value is not on that scale, or a
/// block lacks a side.
fn scaled(series: &Series) -> Option<Vec<Block>> {
    let value = |value: &f64| match series.scale {
        Scale::Ratio => (*value > 0.0).then(|| value.ln()),
        Scale::Points => Some(*value),
    };
    let values = |values: &[f64]| -> Option<Vec<f64>> {
        let scaled: Option<Vec<f64>> = values.iter().map(value).collect();
        scaled.filter(|all| !all.is_empty() && all.iter().all(|value| value.is_finite()))
    };
    let block = |block: &Block| {
        Some(Block { before: values(&block.before)?, after: values(&block.after)? })
    };
    let blocks: Option<Vec<Block>> = series.blocks.iter().map(block).collect();
    blocks.filter(|blocks| !blocks.is_empty())
}

/// Returns a difference in its reported form: e^d − 1 for logarithms.
fn reported_difference(scale: Scale, difference: f64) -> f64 {
    match scale {
        Scale::Ratio => difference.exp_m1(),
        Scale::Points => difference,
    }
}

fn reported_mean(scale: Scale, mean: f64) -> f64 {
    match scale {
        Scale::Ratio => mean.exp(),
        Scale::Points => mean,
    }
}

fn mean(values: &[f64]) -> f64 {
    mean_and_stdev(values).map_or(f64::NAN, |(mean, _)| mean)
}

/// Returns the mean over the blocks of (mean after − mean before).
fn difference(blocks: &[Block]) -> f64 {
    let sum: f64 = blocks.iter().map(|block| mean(&block.after) - mean(&block.before)).sum();
    sum / blocks.len() as f64
}

/// Returns the sum of squares about the means of each side and block, and the degrees of freedom:
/// the spread between unchanged runs.
fn spread(blocks: &[Block], sides: &[fn(&Block) -> &Vec<f64>]) -> (f64, f64) {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for values in blocks.iter().flat_map(|block| sides.iter().map(move |side| side(block))) {
        if let Some((_, stdev)) = mean_and_stdev(values) {
            squares += stdev * stdev * (values.len() - 1) as f64;
            freedom += (values.len() - 1) as f64;
        }
    }
    (squares, freedom)
}

/// Returns the standard error of the difference for runs whose variance is 1.
fn unit_error(blocks: &[Block]) -> f64 {
    let one = |block: &Block| 1.0 / block.before.len() as f64 + 1.0 / block.after.len() as f64;
    blocks.iter().map(one).sum::<f64>().sqrt() / blocks.len() as f64
}

/// Returns t·s·(standard error for s = 1), with s from runs of the first target in the same block.
fn noise(blocks: &[Block]) -> f64 {
    let (squares, freedom) = spread(blocks, &[|block| &block.before]);
    let t = student(freedom, 0.5 * (1.0 + CONFIDENCE));
    t * (squares / freedom).sqrt() * unit_error(blocks)
}

/// Returns the detectable difference: (t of the test + t for a power of 80 %)·s·(standard error for
/// s = 1), with s from runs of both sides. The test's level is divided by the square root of the
/// number of figures, not by the number (Bonferroni), because the figures are correlated.
/// Comparisons of a family are not, so it is divided by their number.
fn detectable(blocks: &[Block], figures: usize, family: usize) -> f64 {
    let (squares, freedom) = spread(blocks, &[|block| &block.before, |block| &block.after]);
    let level = (1.0 - CONFIDENCE) / (figures.max(1) as f64).sqrt() / family.max(1) as f64;
    let test_freedom = match blocks.len() {
        1 => freedom,
        count => (count - 1) as f64,
    };
    let t = student(test_freedom, 1.0 - 0.5 * level) + student(test_freedom, 0.8);
    t * (squares / freedom).sqrt() * unit_error(blocks)
}

/// Returns the quantile of Student's distribution; NaN without freedom.
fn student(freedom: f64, quantile: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |student| student.inverse_cdf(quantile))
}

/// Returns Cliff's delta (Cliff, Psychological Bulletin 114, 1993): the share of pairs in which the
/// second is larger less the share in which it is smaller; NaN without pairs.
pub fn cliffs_delta(before: &[f64], after: &[f64]) -> f64 {
    let sign = |a: f64, b: f64| f64::from(i8::from(b > a) - i8::from(b < a));
    let sum: f64 = before.iter().map(|a| after.iter().map(|b| sign(*a, *b)).sum::<f64>()).sum();
    sum / (before.len() * after.len()) as f64
}

#[cfg(test)]
mod tests;
