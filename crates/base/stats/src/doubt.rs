//! Bounds on the client's own lateness in a response time.
//!
//! The response time of an open load counts from the instant at which a call was due, so it
//! includes the client's lateness (*lag*). A punctual client would have seen a value between the
//! response time and the response time without the lag, if the server would have answered the same
//! call no slower at its due instant: docs/measuring.md states when that does not hold.

use crate::{Hist, Snapshot, Summary};
use units::Nanos;

/// The response times of a run, with and without the client's lateness.
#[derive(Clone, Debug)]
pub struct Doubt {
    response: Hist,
    punctual: Hist,
}

impl Doubt {
    /// Returns `None` if no call was answered, or lag was not recorded for each.
    pub fn new(snapshot: &Snapshot) -> Option<Doubt> {
        Doubt::between(snapshot.response(), snapshot.without_lag()?)
    }

    /// Returns the doubt: the difference between response times and those of the same calls without
    /// lag; `None` without calls.
    pub fn between(response: Hist, punctual: Hist) -> Option<Doubt> {
        (!punctual.is_empty()).then_some(Doubt { response, punctual })
    }

    /// Returns the maximum that lateness can have added to the response time at quantile `q`,
    /// 0..=1.
    pub fn at(&self, q: f64) -> Nanos {
        self.response.quantile(q) - self.punctual.quantile(q)
    }

    /// Returns the maximum that lateness can have added to the mean.
    pub fn of_mean(&self) -> Nanos {
        self.response.mean() - self.punctual.mean()
    }

    /// Returns [`Doubt::at`] as a share of the response time, 0..=1.
    pub fn share(&self, q: f64) -> f64 {
        let whole = self.response.quantile(q);
        if whole.is_zero() { 0.0 } else { self.at(q).0 as f64 / whole.0 as f64 }
    }

    /// Returns whether the doubt at `q` exceeds the precision of three digits: half a per cent,
    /// which is also the precision of the histograms.
    pub fn shows(&self, q: f64) -> bool {
        self.share(q) > SHOWN_MIN
    }

    /// Returns the response times without lateness: the lower bound.
    pub fn lowest(&self) -> Summary {
        self.punctual.summary()
    }

    /// Returns the response time at quantile `q` without lateness.
    pub fn lowest_at(&self, q: f64) -> Nanos {
        self.punctual.quantile(q)
    }
}

/// Minimum share that is shown: less doubt changes the third digit of a figure by at most one.
const SHOWN_MIN: f64 = 0.005;

#[cfg(test)]
mod tests {
    use super::*;
    use sample::{Outcome, Sample};

    /// Returns a hundred calls of 10 ms; the last `late` of them were issued `lag_ms` after they
    /// were due and were answered as fast as the others.
    fn snapshot(late: u64, lag_ms: u64) -> Snapshot {
        let end = Nanos::from_secs(10);
        let mut recorder = crate::Recorder::new(1, (Nanos::ZERO, end));
        for index in 0..100 {
            let intended = Nanos::from_millis(20 * (index + 1));
            let lag = if index >= 100 - late { Nanos::from_millis(lag_ms) } else { Nanos::ZERO };
            let issued = intended + lag;
            let done = issued + Nanos::from_millis(10);
            let sample = Sample {
                index,
                intended,
                admitted: intended,
                issued,
                sent: issued,
                first_byte: done,
                done,
                ..Sample::default()
            };
            recorder.due(intended);
            recorder.issued(intended, issued);
            recorder.done(&sample, Outcome::Succeeded, true);
        }
        let mut total = Snapshot::default();
        total.merge(&recorder.swap(end, Box::default()));
        total
    }

    #[test]
    fn a_punctual_client_leaves_no_doubt() {
        let doubt = Doubt::new(&snapshot(0, 0)).unwrap();
        assert_eq!((doubt.at(0.5), doubt.at(1.0), doubt.of_mean()), Default::default());
        assert!(!doubt.shows(0.99));
    }

    #[test]
    fn doubt_is_limited_to_the_late_calls() {
        let doubt = Doubt::new(&snapshot(5, 30)).unwrap();
        assert_eq!(doubt.at(0.5), Nanos::ZERO);
        assert!(!doubt.shows(0.5) && doubt.shows(0.99));
        let off = doubt.at(0.99).0.abs_diff(Nanos::from_millis(30).0);
        assert!(off <= 60_000, "within the exactness of the histograms: {off} ns");
        assert!((doubt.share(0.99) - 0.75).abs() < 0.01);
    }

    #[test]
    fn unrecorded_times_are_unknown() {
        let mut early = snapshot(5, 30);
        early.punctual.clear();
        early.plain.clear();
        assert!(Doubt::new(&early).is_none());
        assert!(Doubt::new(&Snapshot::default()).is_none());
    }
}
