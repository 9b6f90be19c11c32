//! Little's law on every run: N = X·R holds for any system over any window (Little, Operations
//! Research 9, 1961), so if the three figures disagree, one of them was counted incorrectly.

use crate::Snapshot;
use units::Nanos;

/// Mean concurrency as counted, and as throughput times service time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// N: the integral of the calls in flight over the window, divided by it.
    pub concurrency: f64,
    /// X·R: the service times of all calls issued in the measured phase, over the window.
    pub product: f64,
}

impl Little {
    /// Checks Little's law; `None` without a window. In flight counts from issue to outcome, so R
    /// is the service time, and failed calls count too. Calls that overlap an edge of the window
    /// (in flight at its beginning after a warm-up, followed past its end) belong to only one of
    /// the two sides: the deviation is of the order of service time / window, and grows for short
    /// windows.
    pub fn new(total: &Snapshot, window: Nanos) -> Option<Little> {
        if window.is_zero() {
            return None;
        }
        let served = total.service.count() as f64 * total.service.mean().0 as f64;
        Some(Little {
            concurrency: total.flight_integral as f64 / window.0 as f64,
            product: served / window.0 as f64,
        })
    }

    /// Returns the distance of the product from the count, as a share of the larger; 0..=1, 0 if
    /// both are 0.
    pub fn deviation(&self) -> f64 {
        let larger = self.concurrency.max(self.product);
        if larger > 0.0 { (self.concurrency - self.product).abs() / larger } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorder;
    use sample::{Outcome, Sample};

    /// Calls of `service_ms` every `gap_ms` for ten seconds; the last may end after the window.
    fn little(gap_ms: u64, service_ms: u64) -> Little {
        let window = Nanos::from_secs(10);
        let mut recorder = Recorder::new(1, (Nanos::ZERO, window));
        let mut events: Vec<(Nanos, Option<Nanos>)> = Vec::new();
        for issued in (0..10_000 / gap_ms).map(|index| Nanos::from_millis(index * gap_ms)) {
            recorder.due(issued);
            events.push((issued, None));
            events.push((issued + Nanos::from_millis(service_ms), Some(issued)));
        }
        events.sort();
        for (now, ended) in events {
            match ended {
                None => recorder.issued(now, now),
                Some(issued) => {
                    let sample =
                        Sample { intended: issued, issued, done: now, ..Sample::default() };
                    recorder.done(&sample, Outcome::Failed, true);
                }
            }
        }
        Little::new(&recorder.now, window).unwrap()
    }

    #[test]
    fn holds_for_separate_and_for_overlapping_calls() {
        for (gap_ms, service_ms) in [(10, 5), (10, 10), (1, 50)] {
            let little = little(gap_ms, service_ms);
            let expected = service_ms as f64 / gap_ms as f64;
            assert!((little.concurrency / expected - 1.0).abs() < 0.01, "{little:?}");
            assert!(little.deviation() < 0.01, "{little:?}");
        }
    }

    #[test]
    fn the_deviation_reveals_a_wrong_count() {
        let wrong = Little { concurrency: 8.0, product: 10.0 };
        assert!((wrong.deviation() - 0.2).abs() < 1e-12);
        assert!(Little { concurrency: 0.0, product: 0.0 }.deviation() < 1e-12);
        assert_eq!(Little::new(&Snapshot::default(), Nanos::ZERO), None);
    }
}
