//! The propagation delay of a packet after it has left the transmitter.

use statrs::distribution::{ContinuousCDF, Normal};
use units::Nanos;

/// A delay and its variation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    pub base: Nanos,
    /// Zero: the delay is constant.
    pub jitter: Nanos,
    pub law: JitterLaw,
}

/// The distribution of the jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterLaw {
    /// Uniform, from base − jitter to base + jitter.
    #[default]
    Uniform,
    /// Normal, with the jitter as its standard deviation, clamped at `NORMAL_CUT` of them.
    Normal,
    /// Base plus an exponential excess with the jitter as its mean, clamped at `TAIL_CUT`.
    Exponential,
    /// Base plus a Pareto excess (Lomax, shape 3) with the jitter as its mean, clamped at
    /// `TAIL_CUT`.
    Pareto,
}

/// Standard deviations at which a normal jitter is clamped.
pub(crate) const NORMAL_CUT: f64 = 3.0;
/// Multiples of the mean at which an excess is clamped.
pub(crate) const TAIL_CUT: f64 = 20.0;
const PARETO_SHAPE: f64 = 3.0;

impl JitterLaw {
    pub(crate) const NAMED: [(&'static str, JitterLaw); 4] = [
        ("uniform", JitterLaw::Uniform),
        ("normal", JitterLaw::Normal),
        ("exp", JitterLaw::Exponential),
        ("pareto", JitterLaw::Pareto),
    ];
}

impl Delay {
    pub fn constant(base: Nanos) -> Delay {
        Delay { base, ..Delay::default() }
    }

    /// Returns the delay for a uniform number in 0..1; never negative.
    pub(crate) fn at(&self, unit: f64) -> Nanos {
        if self.jitter.is_zero() {
            return self.base;
        }
        let by = match self.law {
            JitterLaw::Uniform => 2.0 * unit - 1.0,
            JitterLaw::Normal => {
                let standard = Normal::standard();
                // 0 and 1 have no finite quantile; the clamp is well inside
                standard.inverse_cdf(unit.clamp(1e-6, 1.0 - 1e-6)).clamp(-NORMAL_CUT, NORMAL_CUT)
            }
            JitterLaw::Exponential => (-(1.0 - unit).ln()).min(TAIL_CUT),
            JitterLaw::Pareto => {
                let excess = (1.0 - unit).powf(-1.0 / PARETO_SHAPE) - 1.0;
                (excess * (PARETO_SHAPE - 1.0)).min(TAIL_CUT)
            }
        };
        let nanos = self.base.0 as f64 + by * self.jitter.0 as f64;
        Nanos(nanos.round().max(0.0) as u64)
    }

    /// Returns the minimum delay of a packet.
    pub(crate) fn least(&self) -> Nanos {
        match self.law {
            JitterLaw::Uniform => self.base - self.jitter,
            JitterLaw::Normal => self.base - self.jitter * NORMAL_CUT as u64,
            JitterLaw::Exponential | JitterLaw::Pareto => self.base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean of the distribution over a grid of 10,000 quantiles, and its extremes, in
    /// ms.
    fn shape(law: JitterLaw) -> String {
        let delay = Delay { base: Nanos::from_millis(50), jitter: Nanos::from_millis(10), law };
        let grid: Vec<f64> =
            (0..10_000).map(|step| delay.at((step as f64 + 0.5) / 1e4).as_millis_f64()).collect();
        let mean = grid.iter().sum::<f64>() / grid.len() as f64;
        let sd = grid.iter().map(|ms| (ms - mean).powi(2)).sum::<f64>() / grid.len() as f64;
        format!("{:.1} to {:.1}, mean {mean:.2}, sd {:.2}", grid[0], grid[9_999], sd.sqrt())
    }

    #[test]
    fn laws_have_the_mean_and_the_spread_that_they_state() {
        assert_eq!(shape(JitterLaw::Uniform), "40.0 to 60.0, mean 50.00, sd 5.77");
        assert_eq!(shape(JitterLaw::Normal), "20.0 to 80.0, mean 50.00, sd 9.98");
        assert_eq!(shape(JitterLaw::Exponential), "50.0 to 149.0, mean 60.00, sd 10.00");
        assert_eq!(shape(JitterLaw::Pareto), "50.0 to 250.0, mean 59.92, sd 15.24");
    }

    #[test]
    fn nothing_arrives_before_it_left_nor_before_the_least() {
        for (_, law) in JitterLaw::NAMED {
            let delay = Delay { base: Nanos::from_millis(5), jitter: Nanos::from_millis(10), law };
            for step in 0..1_000 {
                assert!(delay.at(step as f64 / 1e3) >= delay.least());
            }
        }
    }
}
