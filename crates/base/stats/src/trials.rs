//! Tests of a share against a bound, from counts.
//!
//! Dependent trials count as fewer independent ones: both numbers are divided by the design effect,
//! the variance of the share over that of independent trials, before they are tested (Kish 1965;
//! Korn and Graubard, *Survey Methodology* 24, 1998).

// the probability of a wrong answer of each test: two of them make an interval
use crate::interval::TAIL;
use statrs::function::gamma::ln_gamma;

/// Number of times that a test is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Looks {
    /// Once, when the run is over: the exact binomial test (Clopper and Pearson 1934).
    #[default]
    Once,
    /// Valid at any number of checks: a likelihood ratio with a uniform mixture over the shares of
    /// the alternative (Robbins 1970), whose probability to exceed 1/α at any time is at most α
    /// (Ville 1939).
    Always,
}

/// Trials and those that count, not necessarily whole numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trials {
    pub(crate) found: f64,
    pub(crate) of: f64,
}

impl Trials {
    /// Converts counts of dependent trials: each counts as `1 / effect` independent ones. The
    /// effect is 1 or more.
    pub(crate) fn new(found: u64, of: u64, effect: f64) -> Trials {
        Trials { found: found as f64 / effect, of: of as f64 / effect }
    }

    /// Returns true if the true share is certain to be below `share`, 0..1.
    pub(crate) fn is_below(self, share: f64, looks: Looks) -> bool {
        self.ln_error(share, looks) <= TAIL.ln()
    }

    /// Returns the probability that the true share is below `share`: of all such answers, at most
    /// the rest is wrong.
    pub(crate) fn probability_below(self, share: f64, looks: Looks) -> f64 {
        1.0 - self.ln_error(share, looks).exp()
    }

    /// Returns the logarithm of the probability of an error if the true share is taken to be below
    /// `share`.
    fn ln_error(self, share: f64, looks: Looks) -> f64 {
        let (found, missing) = (self.found, self.of - self.found);
        if !(share > 0.0 && share < 1.0) || missing <= 0.0 {
            return 0.0;
        }
        match looks {
            // P(at most `found` | share) = I(1 - share; missing, found + 1)
            Looks::Once => ln_beta_share(missing, found + 1.0, 1.0 - share),
            Looks::Always => {
                let mixture = ln_beta_part(found + 1.0, missing + 1.0, share) - share.ln();
                (self.ln_likelihood(share) - mixture).min(0.0)
            }
        }
    }

    /// Returns true if the true share is certain to be above `share`.
    pub(crate) fn is_above(self, share: f64, looks: Looks) -> bool {
        Trials { found: self.of - self.found, of: self.of }.is_below(1.0 - share, looks)
    }

    fn ln_likelihood(self, share: f64) -> f64 {
        self.found * share.ln() + (self.of - self.found) * (-share).ln_1p()
    }

    /// Returns the shares that are not excluded: an interval of 95 %, at any time or once.
    pub(crate) fn interval(self, looks: Looks) -> (f64, f64) {
        let search = |mut inside: f64, mut outside: f64, excluded: &dyn Fn(f64) -> bool| {
            for _ in 0..60 {
                let middle = 0.5 * (inside + outside);
                if excluded(middle) { outside = middle } else { inside = middle }
            }
            outside
        };
        if self.of <= 0.0 {
            return (0.0, 1.0);
        }
        let share = self.found / self.of;
        let low = search(share, 0.0, &|at| self.is_above(at, looks));
        let high = search(share, 1.0, &|at| self.is_below(at, looks));
        (if low < 1e-15 { 0.0 } else { low }, if high > 1.0 - 1e-15 { 1.0 } else { high })
    }
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Returns the logarithm of the regularized incomplete beta function I(x; a, b).
fn ln_beta_share(a: f64, b: f64, x: f64) -> f64 {
    ln_beta_part(a, b, x) - ln_beta(a, b)
}

/// Returns the logarithm of the incomplete beta function: the integral of t^(a-1) (1-t)^(b-1) from
/// 0 to `x`. statrs has it without the logarithm, and stops after 140 terms: too few for a million
/// calls.
fn ln_beta_part(a: f64, b: f64, x: f64) -> f64 {
    let front = a * x.ln() + b * (-x).ln_1p();
    if x < (a + 1.0) / (a + b + 2.0) {
        return front + (fraction(a, b, x) / a).ln();
    }
    let rest = front + (fraction(b, a, 1.0 - x) / b).ln();
    let whole = ln_beta(a, b);
    whole + (-(rest - whole).exp().min(1.0)).ln_1p()
}

/// Evaluates the continued fraction of the incomplete beta function by Lentz's method (DLMF
/// 8.17.22).
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TERMS_MAX: u32 = 20_000;
    const TINY: f64 = 1e-300;
    let kept = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / kept(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for m in (1..TERMS_MAX).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / kept(1.0 + even * d);
        c = kept(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / kept(1.0 + odd * d);
        c = kept(1.0 + odd / c);
        result *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_on_a_share_needs_as_many_trials_as_a_quantile() {
        for (share, needed) in [(0.05, 72), (0.01, 368), (0.001, 3_688)] {
            assert_eq!(needed, crate::samples_needed(1.0 - share));
            assert!(Trials::new(0, needed, 1.0).is_below(share, Looks::Once), "{share}");
            assert!(!Trials::new(0, needed - 2, 1.0).is_below(share, Looks::Once), "{share}");
            assert!(!Trials::new(0, needed, 1.0).is_below(share, Looks::Always), "{share}");
            assert!(Trials::new(0, 2 * needed, 1.0).is_below(share, Looks::Always), "{share}");
        }
    }

    /// Intervals of Clopper and Pearson, from their tables.
    #[test]
    fn the_interval_is_exact() {
        for (found, of, low, high) in [
            (0, 10, 0.0, 0.308_5),
            (1, 10, 0.002_5, 0.445_0),
            (5, 10, 0.187_1, 0.812_9),
            (10, 10, 0.691_5, 1.0),
            (10_000, 1_000_000, 0.009_806, 0.010_197),
        ] {
            let (least, most) = Trials::new(found, of, 1.0).interval(Looks::Once);
            let near = |found: f64, wanted: f64| (found - wanted).abs() < 6e-5;
            assert!(near(least, low) && near(most, high), "{found} of {of}: {least} {most}");
            let (earlier, later) = Trials::new(found, of, 1.0).interval(Looks::Always);
            assert!(earlier <= least && later >= most, "{found} of {of}: {earlier} {later}");
        }
    }

    #[test]
    fn dependent_trials_are_worth_fewer() {
        assert!(Trials::new(0, 1_000, 2.0).is_below(0.01, Looks::Once));
        assert!(!Trials::new(0, 1_000, 4.0).is_below(0.01, Looks::Once));
        assert!(Trials::new(30, 1_000, 1.0).is_above(0.01, Looks::Once));
        assert!(!Trials::new(30, 1_000, 10.0).is_above(0.01, Looks::Once));
    }
}
