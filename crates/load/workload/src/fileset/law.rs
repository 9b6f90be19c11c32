//! Distributions of sizes and times, by inversion: one random number per value.

use statrs::distribution::{ContinuousCDF, Normal};
use units::Stream;

/// A distribution of positive values.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// ln x is normal with mean `m` and standard deviation `s`.
    Lognormal { m: f64, s: f64 },
    /// P(X > x) = (k/x)^a for x ≥ k.
    Pareto { k: f64, a: f64 },
    /// A law truncated at `max`.
    UpTo { law: Box<Law>, max: f64 },
    /// Laws by their shares, which add up to 1.
    Mix(Vec<(f64, Law)>),
}

impl Law {
    pub fn up_to(self, max: f64) -> Law {
        Law::UpTo { law: Box::new(self), max }
    }

    /// Returns P(X ≤ x), 0..=1.
    pub fn cdf(&self, x: f64) -> f64 {
        match self {
            _ if x <= 0.0 => 0.0,
            Law::Lognormal { m, s } => standard().cdf((x.ln() - m) / s),
            Law::Pareto { k, .. } if x <= *k => 0.0,
            Law::Pareto { k, a } => 1.0 - (k / x).powf(*a),
            Law::UpTo { max, .. } if x >= *max => 1.0,
            Law::UpTo { law, max } => law.cdf(x) / law.cdf(*max),
            Law::Mix(parts) => parts.iter().map(|(share, law)| share * law.cdf(x)).sum(),
        }
    }

    /// Draws a value. A mixture takes two random numbers or more, every other law takes one.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Law::Mix(parts) => {
                let mut left = stream.unit();
                let chosen = parts.iter().find(|(share, _)| {
                    left -= share;
                    left < 0.0
                });
                // rounding may leave a remainder above the last share
                let (_, law) = chosen.or(parts.last()).expect("a mixture has a part");
                law.draw(stream)
            }
            // inside (0, 1), where a quantile is finite
            law => law.quantile(stream.unit() + f64::EPSILON / 8.0),
        }
    }

    /// Returns the quantile at the share `p`, inside (0, 1). Mixtures have no closed form: their
    /// quantile is found by bisection.
    pub fn quantile(&self, p: f64) -> f64 {
        match self {
            Law::Lognormal { m, s } => (m + s * standard().inverse_cdf(p)).exp(),
            Law::Pareto { k, a } => k * (1.0 - p).powf(-1.0 / a),
            Law::UpTo { law, max } => law.quantile(p * law.cdf(*max)).min(*max),
            Law::Mix(parts) => {
                let all = parts.iter().map(|(_, law)| law.quantile(p));
                let (low, high) = all.fold((f64::MAX, 0.0_f64), |(low, high), value| {
                    (low.min(value), high.max(value))
                });
                self.bisected(p, low, high)
            }
        }
    }

    fn bisected(&self, p: f64, mut low: f64, mut high: f64) -> f64 {
        /// Number of bisection steps: more than a double has bits.
        const STEPS: usize = 64;
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if self.cdf(middle) < p {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

fn standard() -> Normal {
    Normal::standard()
}

/// Draws a row of the weights, by their shares.
pub(crate) fn by_weight(weights: &[f64], stream: &mut Stream) -> usize {
    let mut left = stream.unit() * weights.iter().sum::<f64>();
    let found = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    found.unwrap_or(weights.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Purpose, Seed};

    fn near(value: f64, wanted: f64, share: f64) {
        assert!((value / wanted - 1.0).abs() <= share, "{value} is not {wanted}");
    }

    /// Returns the mean as the integral of P(X > x) over a grid of logarithms.
    fn mean(law: &Law) -> f64 {
        const STEP: f64 = 1e-3;
        let above = |row: i32| {
            let x = (f64::from(row) * STEP).exp();
            (1.0 - law.cdf(x)) * x * STEP
        };
        (-12_000..60_000).map(above).sum()
    }

    /// S2 of the reference values: the derived means. Active OFF times (Weibull) are not among them: objects
    /// took their place in SURGE 1.1.
    #[test]
    fn means_are_those_of_the_paper_s_parameters() {
        for (law, wanted) in [
            (Law::Lognormal { m: 9.357, s: 1.318 }.up_to(133.0 * 1024.0), 20_205.0),
            (Law::Lognormal { m: 1.5, s: 0.8 }, 6.17),
            // inactive OFF times, and embedded references
            (Law::Pareto { k: 1.0, a: 1.5 }, 3.0),
            (Law::Pareto { k: 1.0, a: 2.43 }, 1.70),
        ] {
            near(mean(&law), wanted, 0.002);
        }
        // for a mixture, the mean of its parts weighted by their shares
        let parts = [Law::Lognormal { m: 7.11, s: 1.139 }, Law::Lognormal { m: 11.122, s: 1.144 }];
        let by_shares = 0.657 * mean(&parts[0]) + 0.343 * mean(&parts[1]);
        let [one, two] = parts;
        near(mean(&Law::Mix(vec![(0.657, one), (0.343, two)])), by_shares, 1e-6);
    }

    /// S2 of the reference values. SURGE's laws of 1998: the derived quantiles.
    #[test]
    fn quantiles_are_those_of_the_paper_s_parameters() {
        let body = Law::Lognormal { m: 9.357, s: 1.318 };
        near(body.quantile(0.5), 11_580.0, 0.001);
        near(body.cdf(133.0 * 1024.0), 0.9693, 0.0005);
        let stack = Law::Lognormal { m: 1.5, s: 0.8 };
        for (p, wanted) in [(0.5, 4.48), (0.9, 12.5), (0.99, 28.8)] {
            near(stack.quantile(p), wanted, 0.005);
        }
        near(Law::Pareto { k: 1.0, a: 1.5 }.quantile(0.5), 1.587, 0.001);
    }

    #[test]
    fn a_quantile_is_the_inverse_of_the_distribution_function() {
        let laws = [
            Law::Lognormal { m: 7.63, s: 1.001 },
            Law::Pareto { k: 10_240.0, a: 1.0 },
            Law::Lognormal { m: 7.63, s: 1.001 }.up_to(10_240.0),
            Law::Mix(vec![
                (0.657, Law::Lognormal { m: 7.11, s: 1.139 }),
                (0.343, Law::Lognormal { m: 11.122, s: 1.144 }),
            ]),
        ];
        for law in &laws {
            for p in [0.001, 0.1, 0.5, 0.9, 0.999] {
                near(law.cdf(law.quantile(p)), p, 1e-6);
            }
        }
    }

    /// The Kolmogorov-Smirnov distance of the draws stays below its 0.1 % bound, 1.95/√n.
    #[test]
    fn draws_follow_their_law() {
        let law = Law::Mix(vec![
            (0.93, Law::Lognormal { m: 7.63, s: 1.001 }.up_to(10_240.0)),
            (0.07, Law::Pareto { k: 10_240.0, a: 1.0 }),
        ]);
        let mut stream = Seed(7).stream(Purpose::Files, 0);
        let mut drawn: Vec<f64> = (0..100_000).map(|_| law.draw(&mut stream)).collect();
        drawn.sort_by(f64::total_cmp);
        let n = drawn.len() as f64;
        let gaps = drawn.iter().enumerate().map(|(i, x)| (law.cdf(*x) - i as f64 / n).abs());
        let widest = gaps.fold(0.0, f64::max);
        assert!(widest < 1.95 / n.sqrt(), "{widest}");
    }
}
