//! The exact loop's own log of its lateness: a measurement of 12 ms for a 10 ms server is wrong
//! only if the server was punctual.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use units::Nanos;

/// Lateness of responses relative to their due instants, over all responses since the start. All
/// zero without responses, for the null server and for pages without faults, which have no due
/// instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    pub responses: u64,
    pub p50: Nanos,
    pub p99: Nanos,
    pub max: Nanos,
}

/// Log of the loop; bounded.
#[derive(Debug)]
pub(crate) struct LatenessLog(Mutex<Histogram<u64>>);

/// Maximum recorded lateness: one minute.
const LATEST_NS: u64 = 60_000_000_000;

impl LatenessLog {
    pub(crate) fn new() -> LatenessLog {
        let histogram = Histogram::new_with_bounds(1, LATEST_NS, 3)
            .expect("the bounds are constants that the histogram allows");
        LatenessLog(Mutex::new(histogram))
    }

    pub(crate) fn record(&self, late: Nanos) {
        let mut histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        histogram.saturating_record(late.0.min(LATEST_NS));
    }

    pub(crate) fn read(&self) -> Lateness {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Lateness {
            responses: histogram.len(),
            p50: Nanos(histogram.value_at_quantile(0.5)),
            p99: Nanos(histogram.value_at_quantile(0.99)),
            max: Nanos(histogram.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_recorded_values() {
        let log = LatenessLog::new();
        assert_eq!(log.read(), Lateness::default());
        for late in 1..=1000 {
            log.record(Nanos(late));
        }
        log.record(Nanos::NEVER);
        let read = log.read();
        assert_eq!((read.responses, read.p50, read.p99), (1001, Nanos(501), Nanos(991)));
        assert!(read.max >= Nanos::from_secs(60), "{read:?}");
    }
}
