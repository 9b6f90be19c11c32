//! The interval of a difference: a bootstrap over whole blocks, or over whole runs of a single
//! block.

use super::{Block, difference, mean, student};
use crate::interval::{CONFIDENCE, RESAMPLES_MAX};
use statrs::distribution::{ContinuousCDF, Normal};
use units::Stream;

/// Percentiles of the resampled differences, moved outwards for small samples: a bootstrap's spread
/// is too small by √((n − 1)/n), and Student's t is wider than the normal (Hesterberg, The American
/// Statistician 69, 2015: the expanded percentile interval). NaN if undefined.
pub(super) fn bootstrap_interval(
    blocks: &[Block],
    resamples: u32,
    stream: &mut Stream,
) -> (f64, f64) {
    let resamples = resamples.clamp(40, RESAMPLES_MAX) as usize;
    let mut found: Vec<f64> = match blocks {
        [only] => (0..resamples).map(|_| of_runs(only, stream)).collect(),
        all => {
            let each: Vec<f64> =
                all.iter().map(|block| difference(std::slice::from_ref(block))).collect();
            (0..resamples).map(|_| redrawn_mean(&each, stream)).collect()
        }
    };
    found.sort_by(f64::total_cmp);
    let tail = tail(blocks);
    if !tail.is_finite() {
        return (f64::NAN, f64::NAN);
    }
    let cut = ((tail * resamples as f64).floor() as usize).min(resamples / 2);
    (found[cut], found[resamples - 1 - cut])
}

/// Returns the share of resamples cut off at either end.
fn tail(blocks: &[Block]) -> f64 {
    let (freedom, n) = match blocks {
        [only] => {
            let (before, after) = (only.before.len(), only.after.len());
            ((before + after) as f64 - 2.0, before.min(after) as f64)
        }
        all => (all.len() as f64 - 1.0, all.len() as f64),
    };
    let outwards = student(freedom, 0.5 * (1.0 + CONFIDENCE)) * (n / (n - 1.0)).sqrt();
    Normal::new(0.0, 1.0).map_or(f64::NAN, |normal| normal.cdf(-outwards))
}

fn of_runs(block: &Block, stream: &mut Stream) -> f64 {
    redrawn_mean(&block.after, stream) - redrawn_mean(&block.before, stream)
}

fn redrawn_mean(values: &[f64], stream: &mut Stream) -> f64 {
    let draw = |_: &f64| values[stream.below(values.len() as u64) as usize];
    mean(&values.iter().map(draw).collect::<Vec<_>>())
}
