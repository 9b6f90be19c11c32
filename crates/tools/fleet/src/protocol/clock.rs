//! Offset of another machine's clock, as in NTP (RFC 5905 section 8), and the bound of its error:
//! half of the exchange's time on the network, for any path.

use std::collections::VecDeque;
use units::Nanos;

/// Number of exchanges from which the best one is chosen.
const KEPT: usize = 64;
/// Number of exchanges at the start; later ones are occasional, to track drift. The first are sent
/// at once; pauses between the others leave time to the server and to agents that still join.
const PROBES: u64 = 40;
const PROBES_AT_ONCE: u64 = 8;
/// Query interval per machine: all machines together send at most 2,000 queries a second.
const PAUSE_PER_MACHINE: Nanos = Nanos::from_micros(500);
const PROBE_PAUSE: Nanos = Nanos::from_millis(50);
const PROBE_PAUSE_LATER: Nanos = Nanos::from_secs(10);
/// Maximum drift of two clocks: one nanosecond in this many (100 ppm). RFC 5905 assumes 15 ppm per
/// clock; a clock being adjusted runs faster or slower for a while.
const DRIFT_DIVISOR: u64 = 10_000;

/// Exchange: sent and received by our clock, received and answered by the other's.
#[derive(Clone, Copy, Debug)]
pub struct ClockExchange {
    pub sent: Nanos,
    pub received: Nanos,
    pub returned: Nanos,
    pub answered: Nanos,
}

/// Estimate: the other clock is ahead of ours by `ahead`, within `bound`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// Nanoseconds; negative if the other clock is behind.
    pub ahead: i64,
    pub bound: Nanos,
}

/// Exchanges with one machine.
#[derive(Clone, Debug, Default)]
pub struct ClockEstimate {
    /// The estimates, and when each was made.
    recent: VecDeque<(Nanos, Offset)>,
    first: Option<Offset>,
    exchanges: u64,
}

impl ClockEstimate {
    /// Adds an exchange; a reply from before its request is ignored.
    pub fn add(&mut self, exchange: ClockExchange) {
        let ClockExchange { sent, received, returned, answered } = exchange;
        if answered < sent || returned < received {
            return;
        }
        let there = returned - received;
        let here = answered - sent;
        let delay = here - there;
        let half = |one: Nanos, other: Nanos| i128::from(one.0) + i128::from(other.0);
        let ahead = (half(received, returned) - half(sent, answered)) / 2;
        let Ok(ahead) = i64::try_from(ahead) else { return };
        // rounding to half a nanosecond is within the bound
        let offset = Offset { ahead, bound: Nanos(delay.0 / 2 + 1) };
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back((sent, offset));
        self.exchanges += 1;
        if self.exchanges == KEPT as u64 / 4 {
            self.first = self.best(answered);
        }
    }

    /// Returns the best estimate at `now`: its bound is half of the delay plus the possible drift
    /// since. `None` before the first exchange.
    pub fn best(&self, now: Nanos) -> Option<Offset> {
        let aged = |(begun, offset): &(Nanos, Offset)| {
            let parted = Nanos((now - *begun).0 / DRIFT_DIVISOR);
            Offset { bound: offset.bound + parted, ..*offset }
        };
        self.recent.iter().map(aged).min_by_key(|offset| offset.bound)
    }

    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// Returns the pause before the next exchange, if this number of machines query the same
    /// manager.
    pub fn pause(&self, machines: u32) -> Nanos {
        let room = Nanos(PAUSE_PER_MACHINE.0 * u64::from(machines)).max(PROBE_PAUSE);
        match self.exchanges {
            ..PROBES_AT_ONCE => PROBE_PAUSE,
            PROBES_AT_ONCE..PROBES => room.min(PROBE_PAUSE_LATER),
            _ => PROBE_PAUSE_LATER,
        }
    }

    /// Returns the drift of the clocks since the first exchanges, in nanoseconds: reported, never
    /// applied to an instant.
    pub fn drift(&self) -> Option<i64> {
        let (first, (_, last)) = (self.first?, self.recent.back()?);
        Some(last.ahead.saturating_sub(first.ahead))
    }
}

impl Offset {
    /// Returns our clock's reading when the other shows `there`.
    pub fn here(&self, there: Nanos) -> Nanos {
        Nanos(there.0.saturating_sub_signed(self.ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_bound(
            ahead in -3_000_000_000_000_i64..3_000_000_000_000,
            ways in prop::collection::vec((0_u64..90_000_000, 0_u64..90_000_000, 0_u64..5_000_000), 1..90),
        ) {
            let mut clock = ClockEstimate::default();
            let begin = 10_000_000_000_000_u64;
            let mut now = begin;
            // the other clock runs fast by 50 ppm, measured for a quarter of an hour
            let ahead_at = |at: u64| ahead + ((at - begin) / 20_000) as i64;
            let other = |at: u64| Nanos(at.saturating_add_signed(ahead_at(at)));
            for (there, back, work) in ways {
                clock.add(ClockExchange {
                    sent: Nanos(now),
                    received: other(now + there),
                    returned: other(now + there + work),
                    answered: Nanos(now + there + work + back),
                });
                now += 10_000_000_000;
                let best = clock.best(Nanos(now)).unwrap();
                let ahead = ahead_at(now);
                prop_assert!(best.ahead.abs_diff(ahead) <= best.bound.0, "{best:?} {ahead}");
                prop_assert!(best.here(other(now)).0.abs_diff(now) <= best.bound.0);
            }
        }
    }

    #[test]
    fn the_exchange_with_the_least_delay_is_used() {
        let mut clock = ClockEstimate::default();
        let exchange = |sent, received, answered| ClockExchange {
            sent: Nanos(sent),
            received: Nanos(received),
            returned: Nanos(received),
            answered: Nanos(answered),
        };
        clock.add(exchange(1_000, 6_000, 9_000));
        clock.add(exchange(20_000, 21_100, 20_200));
        clock.add(exchange(9, 8, 5));
        let best = |at| clock.best(Nanos(at));
        assert_eq!(best(21_000), Some(Offset { ahead: 1_000, bound: Nanos(101) }));
        // a second later the clocks may have parted by 100 µs
        let later = Offset { ahead: 1_000, bound: Nanos(100_101) };
        assert_eq!(best(1_000_020_000), Some(later));
        assert_eq!(clock.exchanges(), 2);
    }
}
