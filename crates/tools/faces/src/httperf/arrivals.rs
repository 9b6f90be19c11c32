//! Start times of connections or sessions: the same instants as the original's for the same
//! options.

use super::options::Period;
use units::Nanos;

/// The 48-bit linear congruential generator of `erand48` (POSIX): x ← a·x + c modulo 2^48, divided
/// by 2^48.
#[derive(Clone, Debug)]
pub(super) struct Lcg48(u64);

impl Lcg48 {
    const MASK: u64 = (1 << 48) - 1;

    /// Returns the state that every client of a test begins with; its number makes it differ.
    pub(super) fn for_client(id: u64) -> Lcg48 {
        let word = |number: u64| number & 0xffff;
        let low = word(0x1234 ^ id);
        let middle = word(0x5678 ^ (id << 8));
        let high = word(0x9abc ^ !id);
        Lcg48(high << 32 | middle << 16 | low)
    }

    /// Returns a random number in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & Self::MASK;
        self.0 as f64 / (1u64 << 48) as f64
    }
}

/// Consecutive gaps in seconds.
#[derive(Clone, Debug)]
struct Gaps<'a> {
    period: &'a Period,
    random: Lcg48,
    /// For a varying period, the current pair and its elapsed time.
    pair: usize,
    held: f64,
}

impl Gaps<'_> {
    fn next(&mut self) -> f64 {
        match self.period {
            Period::Sequential => 0.0,
            Period::Fixed { gap, .. } => *gap,
            Period::Uniform { low, high } => low + (high - low) * self.random.unit(),
            Period::Exponential { mean } => -mean * (1.0 - self.random.unit()).ln(),
            Period::Varying(pairs) => {
                let (gap, span) = pairs[self.pair];
                self.held += gap;
                if self.held >= span {
                    self.pair = (self.pair + 1) % pairs.len();
                    self.held = 0.0;
                }
                gap
            }
        }
    }
}

/// Returns the first `count` instants, from the start: the first at 0, each later one a gap after
/// the previous one. `None` for consecutive connections, whose instants are unknown in advance.
pub(super) fn instants(period: &Period, client: u64, count: u64) -> Option<Vec<Nanos>> {
    if *period == Period::Sequential {
        return None;
    }
    let random = Lcg48::for_client(client);
    let mut gaps = Gaps { period, random, pair: 0, held: 0.0 };
    let mut at = 0.0;
    let mut all = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for _ in 0..count {
        all.push(Nanos::from_secs_f64(at));
        at += gaps.next().max(0.0);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(period: &Period, client: u64, count: u64) -> Vec<f64> {
        let all = instants(period, client, count).unwrap();
        all.iter().map(|at| (at.as_millis_f64() * 1000.0).round() / 1000.0).collect()
    }

    const CLIENT_0: [&str; 4] =
        ["0.808007324689", "0.275682427780", "0.087791393285", "0.432083930659"];
    const CLIENT_1: [&str; 4] =
        ["0.833387216406", "0.341144383754", "0.191924167285", "0.432961798198"];

    /// Seeds 0x1234, 0x5678, 0x9abc ^ ~0 for client 0; the numbers are those of glibc's `erand48`.
    #[test]
    fn the_generator_is_that_of_the_c_library() {
        let mut first = Lcg48::for_client(0);
        let mut second = Lcg48::for_client(1);
        let drawn: Vec<String> = (0..4).map(|_| format!("{:.12}", first.unit())).collect();
        assert_eq!(drawn, CLIENT_0);
        let drawn: Vec<String> = (0..4).map(|_| format!("{:.12}", second.unit())).collect();
        assert_eq!(drawn, CLIENT_1);
    }

    #[test]
    fn fixed_periods_are_at_multiples() {
        let fixed = Period::Fixed { gap: 0.1, rate: 10.0 };
        assert_eq!(millis(&fixed, 0, 4), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(instants(&Period::Sequential, 0, 4), None);
        assert_eq!(millis(&fixed, 0, 0), [0.0; 0]);
    }

    #[test]
    fn random_periods_follow_the_generator() {
        let mut random = Lcg48::for_client(3);
        let (mut uniform, mut exponential) = (vec![0.0], vec![0.0]);
        for at in 0..3 {
            let drawn = random.unit();
            uniform.push(uniform[at] + 1_000.0 + 2_000.0 * drawn);
            exponential.push(exponential[at] - 500.0 * (1.0 - drawn).ln());
        }
        let near = |found: Vec<f64>, wanted: &[f64]| {
            found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 0.002)
        };
        assert!(near(millis(&Period::Uniform { low: 1.0, high: 3.0 }, 3, 4), &uniform));
        assert!(near(millis(&Period::Exponential { mean: 0.5 }, 3, 4), &exponential));
    }

    #[test]
    fn varying_periods_hold_for_their_time_and_begin_again() {
        let varying = Period::Varying(vec![(0.1, 0.25), (1.0, 2.0)]);
        let wanted = [0.0, 100.0, 200.0, 300.0, 1_300.0, 2_300.0, 2_400.0];
        assert_eq!(millis(&varying, 0, 7), wanted);
    }
}
