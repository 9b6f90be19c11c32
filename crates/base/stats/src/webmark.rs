//! WebMark's two figures: the weighted response time, and the conforming connection (SPECweb99's).

use units::Nanos;

/// T = ω·S + mean R: the cost of one file for a user, including its part of the connection's
/// set-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighted {
    /// ω: connections per call, 1 / (calls carried per connection).
    pub weight: f64,
    /// S: mean time to set a connection up (connect and TLS), in seconds.
    pub setup_s: f64,
    /// Mean R: from sending a request to the end of its response, in seconds.
    pub exchange_s: f64,
}

impl Weighted {
    /// Returns T in seconds.
    pub fn total_s(&self) -> f64 {
        self.weight * self.setup_s + self.exchange_s
    }
}

/// Returns the weighted response time of `calls` that succeeded; their times from sending to the
/// end sum to `exchange_sum`, over `established` connections whose set-ups took `setup_sum` in
/// total. Failed connects belong to neither. `None` without calls.
///
/// T = (Σ set-up + Σ R) / calls: WebMark's formula where all connections carry equally many calls,
/// and the only form that adds up over connections that do not.
pub fn weighted_response(
    setup_sum: Nanos,
    established: u64,
    exchange_sum: Nanos,
    calls: u64,
) -> Option<Weighted> {
    if calls == 0 {
        return None;
    }
    let setup_s = match established {
        0 => 0.0,
        _ => setup_sum.as_secs_f64() / established as f64,
    };
    Some(Weighted {
        weight: established as f64 / calls as f64,
        setup_s,
        exchange_s: exchange_sum.as_secs_f64() / calls as f64,
    })
}

/// SPECweb99's threshold for a conforming connection, in bits per second.
pub const CONFORMING_BPS: f64 = 320_000.0;

/// Returns whether a connection was above the threshold: `bytes` received over its open time less
/// the user's think time. `None` if it cannot be judged, because it received no bytes.
pub fn conforms(bytes: u64, open: Nanos, think: Nanos, threshold_bps: f64) -> Option<bool> {
    let busy_s = (open - think).as_secs_f64();
    (bytes > 0).then_some(bytes as f64 * 8.0 > threshold_bps * busy_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn total_ms(setup: u64, established: u64, exchange: u64, calls: u64) -> f64 {
        weighted_response(ms(setup), established, ms(exchange), calls).unwrap().total_s() * 1e3
    }

    /// S = 12 ms, R = 3, 5, 7 ms: 17 ms a file on a connection each, 9 ms on one for all three;
    /// the page of three files costs three times that, 51 and 27 ms.
    #[test]
    fn the_weighted_response_time_counts_connection_setup() {
        assert!((total_ms(36, 3, 15, 3) - 17.0).abs() < 1e-9);
        assert!((total_ms(12, 1, 15, 3) - 9.0).abs() < 1e-9);
        assert!((3.0 * total_ms(36, 3, 15, 3) - (36.0 + 15.0)).abs() < 1e-9);
        assert!((3.0 * total_ms(12, 1, 15, 3) - (12.0 + 15.0)).abs() < 1e-9);
        assert_eq!(weighted_response(ms(12), 1, ms(0), 0), None);
        assert!((total_ms(0, 0, 15, 3) - 5.0).abs() < 1e-9, "connections from before the window");
    }

    #[test]
    fn conforming_is_above_the_threshold_without_the_thinking() {
        // 40,000 bytes in a second are exactly 320 kbit/s.
        for (bytes, open, think, verdict) in [
            (40_000, 1000, 0, Some(false)),
            (40_001, 1000, 0, Some(true)),
            (20_001, 1000, 500, Some(true)),
            (40_000, 999, 0, Some(true)),
            (1, 0, 0, Some(true)),
            (0, 1000, 0, None),
        ] {
            assert_eq!(conforms(bytes, ms(open), ms(think), CONFORMING_BPS), verdict, "{bytes}");
        }
    }

    proptest! {
        /// n·T is the total time of the connections and the calls, however they are grouped.
        #[test]
        fn n_times_t_is_the_total_time(groups in prop::collection::vec((0u64..500, 1u64..9, 0u64..99), 1..20)) {
            let setup = groups.iter().map(|group| group.0).sum();
            let calls = groups.iter().map(|group| group.1).sum();
            let exchange = groups.iter().map(|group| group.1 * group.2).sum();
            let total = total_ms(setup, groups.len() as u64, exchange, calls);
            prop_assert!((total * calls as f64 - (setup + exchange) as f64).abs() < 1e-6);
        }
    }
}
