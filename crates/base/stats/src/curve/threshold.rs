//! Load that begins to miss objectives, estimated from trials that each met or missed them by
//! chance.
//!
//! A trial at level L meets the objectives with probability Φ((ln c − ln L)/s): c, the capacity, is
//! the load that half of the trials keep; s, the blur of the edge by chance, is unknown too. Both
//! have a flat prior over their logarithms (s from 0.1 % to 20 %), two in a hundred trials fail for
//! other reasons, and the interval is the central part of the resulting distribution of c. This is
//! the estimator of thresholds in psychophysics (Watson & Pelli, QUEST, 1983; Kontsevich & Tyler
//! 1999), and like there it takes few trials for a sharp edge and more for a blurred one.

use super::Span;
use std::borrow::Cow;

/// Trial with its result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Level, above zero.
    pub level: f64,
    pub met: bool,
    /// Length in units of the longest trial: chance blurs the result by 1/√length.
    pub length: f64,
}

/// Share of trials with an uninformative result.
const ASTRAY: f64 = 0.02;
/// Cells of the grid of capacities, and of blurs.
const CELLS: usize = 800;
const BLURS: usize = 12;
const BLUR_LOW: f64 = 0.001;
const BLUR_HIGH: f64 = 0.2;
/// Factor by which the grid extends beyond the highest level met and the lowest one missed.
const REACH: f64 = 2.0;
/// Maximum number of trials used: those about the edge.
const TRIALS_MAX: usize = 100;

/// Posterior distribution of the capacity: levels, ascending, with the probability of each.
#[derive(Clone, Debug)]
pub(super) struct Belief {
    levels: Vec<f64>,
    probability: Vec<f64>,
}

impl Belief {
    /// Returns the distribution after these trials; `None` without a trial that met the objectives
    /// and one that missed them.
    pub(super) fn new(tried: &[Tried]) -> Option<Belief> {
        let tried = trials_near_edge(tried);
        let all_met = tried.iter().all(|one| one.met);
        if all_met || tried.iter().all(|one| !one.met) {
            return None;
        }
        let levels =
            |met: bool| tried.iter().filter(move |one| one.met == met).map(|one| one.level);
        let (met, missed) =
            (levels(true).fold(0.0, f64::max), levels(false).fold(f64::INFINITY, f64::min));
        let (low, high) = ((met.min(missed) / REACH).ln(), (met.max(missed) * REACH).ln());
        let step = (high - low) / (CELLS - 1) as f64;
        let logs: Vec<f64> = (0..CELLS).map(|cell| low + step * cell as f64).collect();
        let mut weights = vec![0.0; CELLS];
        let blur_step = (BLUR_HIGH / BLUR_LOW).ln() / (BLURS - 1) as f64;
        for blur in 0..BLURS {
            let blur = BLUR_LOW * (blur_step * blur as f64).exp();
            for (weight, at) in weights.iter_mut().zip(&logs) {
                *weight += tried.iter().map(|one| likelihood(one, *at, blur)).product::<f64>();
            }
        }
        let sum: f64 = weights.iter().sum();
        let sound = sum > 0.0 && sum.is_finite();
        sound.then(|| Belief {
            levels: logs.iter().map(|log| log.exp()).collect(),
            probability: weights.iter().map(|weight| weight / sum).collect(),
        })
    }

    /// Returns the level below which the capacity is with this probability.
    pub(super) fn quantile(&self, q: f64) -> f64 {
        let mut below = 0.0;
        for (cell, share) in self.probability.iter().enumerate() {
            if below + share >= q {
                let into = if *share > 0.0 { (q - below) / share } else { 0.5 };
                let next = self.levels[(cell + 1).min(CELLS - 1)];
                return self.levels[cell] + into.clamp(0.0, 1.0) * (next - self.levels[cell]);
            }
            below += share;
        }
        self.levels[CELLS - 1]
    }

    pub(super) fn span(&self, confidence: f64) -> Span {
        let tail = 0.5 * (1.0 - confidence);
        Span { at: self.quantile(0.5), low: self.quantile(tail), high: self.quantile(1.0 - tail) }
    }
}

/// Returns at most [`TRIALS_MAX`] trials, from both sides of the level with the fewest misplaced
/// ones: trials far from the edge contribute least, and trials of a single side nothing.
fn trials_near_edge(tried: &[Tried]) -> Cow<'_, [Tried]> {
    if tried.len() <= TRIALS_MAX {
        return Cow::Borrowed(tried);
    }
    let mut sorted = tried.to_vec();
    sorted.sort_by(|a, b| a.level.total_cmp(&b.level));
    let mut wrong = sorted.iter().filter(|one| one.met).count();
    let (mut fewest, mut edge) = (wrong, 0);
    for (index, one) in sorted.iter().enumerate() {
        if one.met {
            wrong -= 1
        } else {
            wrong += 1
        }
        if wrong < fewest {
            (fewest, edge) = (wrong, index + 1);
        }
    }
    let from = edge.saturating_sub(TRIALS_MAX / 2).min(sorted.len() - TRIALS_MAX);
    Cow::Owned(sorted[from..from + TRIALS_MAX].to_vec())
}

fn likelihood(one: &Tried, log_capacity: f64, blur: f64) -> f64 {
    let blur = blur / one.length.max(1e-3).sqrt();
    // the logistic curve closest to the normal one
    let kept = 1.0 / (1.0 + (-1.702 * (log_capacity - one.level.ln()) / blur).exp());
    let kept = if one.met { kept } else { 1.0 - kept };
    0.5 * ASTRAY + (1.0 - ASTRAY) * kept
}

/// Returns the capacity with its interval at `confidence` (0..1) by the method of this module.
/// `None` without a trial that met the objectives and one that missed them.
pub fn threshold(tried: &[Tried], confidence: f64) -> Option<Span> {
    let positive: Vec<Tried> =
        tried.iter().filter(|one| one.level > 0.0 && one.level.is_finite()).copied().collect();
    Belief::new(&positive).map(|belief| belief.span(confidence))
}
