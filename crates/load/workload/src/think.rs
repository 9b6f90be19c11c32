//! The user's pause between a response and the next call.

use units::{Nanos, Purpose, Seed};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Think {
    None,
    Fixed(Nanos),
    /// Uniform in [low, high).
    Uniform(Nanos, Nanos),
    /// Exponential with this mean.
    Exponential(Nanos),
    /// Lognormal: its median, and the standard deviation of its logarithm.
    Lognormal(Nanos, f64),
}

/// Maximum pause: a lognormal law has no maximum.
const PAUSE_MAX_S: f64 = 86_400.0;

impl Think {
    /// Returns the pause before call `turn` of user `user`.
    pub fn pause(self, seed: Seed, user: u64, turn: u64) -> Nanos {
        match self {
            Think::None => Nanos::ZERO,
            Think::Fixed(span) => span,
            Think::Uniform(low, high) => {
                let drawn = stream(seed, user, turn).uniform(low.as_secs_f64(), high.as_secs_f64());
                Nanos::from_secs_f64(drawn)
            }
            Think::Exponential(mean) => {
                let drawn = stream(seed, user, turn).exponential(mean.as_secs_f64());
                Nanos::from_secs_f64(drawn)
            }
            Think::Lognormal(median, sigma) => {
                let normal = normal(&mut stream(seed, user, turn));
                let drawn = median.as_secs_f64() * (sigma * normal).exp();
                Nanos::from_secs_f64(drawn.min(PAUSE_MAX_S))
            }
        }
    }
}

/// Returns a standard normal number (Box and Muller, 1958).
fn normal(stream: &mut units::Stream) -> f64 {
    let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * stream.unit()).cos()
}

/// Returns a separate random stream for each user and turn: 2^24 users exist before two of them
/// could share one.
fn stream(seed: Seed, user: u64, turn: u64) -> units::Stream {
    seed.stream(Purpose::Think, user.wrapping_shl(40).wrapping_add(turn))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(think: Think) -> f64 {
        let pauses = (0..20_000).map(|turn| think.pause(Seed(7), 3, turn).as_secs_f64());
        pauses.sum::<f64>() / 20_000.0
    }

    #[test]
    fn pauses_have_the_mean_they_are_named_for() {
        let second = Nanos::SECOND;
        assert_eq!(Think::None.pause(Seed(1), 0, 0), Nanos::ZERO);
        assert_eq!(Think::Fixed(second).pause(Seed(1), 9, 9), second);
        assert!((mean_of(Think::Exponential(second)) - 1.0).abs() < 0.02);
        assert!((mean_of(Think::Uniform(second, second * 3)) - 2.0).abs() < 0.02);
        // the mean of a lognormal law is its median times exp(σ²/2)
        let wanted = (0.5f64 * 0.5 / 2.0).exp();
        assert!((mean_of(Think::Lognormal(second, 0.5)) - wanted).abs() < 0.02);
    }

    #[test]
    fn a_pause_depends_on_seed_user_and_turn_only() {
        let think = Think::Exponential(Nanos::SECOND);
        assert_eq!(think.pause(Seed(5), 2, 8), think.pause(Seed(5), 2, 8));
        assert_ne!(think.pause(Seed(5), 2, 8), think.pause(Seed(5), 2, 9));
        assert_ne!(think.pause(Seed(5), 2, 8), think.pause(Seed(5), 3, 8));
        assert_ne!(think.pause(Seed(5), 2, 8), think.pause(Seed(6), 2, 8));
    }
}
