//! Connections that were held beside a load.

use sample::HeldFacts;
use serde::{Deserialize, Serialize};
use units::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldRecord {
    pub wanted: u64,
    pub stood: u64,
    pub failed: u64,
    pub peak: u64,
    pub open: u64,
    pub closed: u64,
    pub reset: u64,
    pub bytes: u64,
    pub setup_s: f64,
    /// Null where the server ended none.
    pub age_s: Option<HeldAgeRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldAgeRecord {
    pub min: f64,
    pub p50: f64,
    pub max: f64,
}

impl HeldRecord {
    pub(crate) fn of(facts: &HeldFacts) -> HeldRecord {
        let age = HeldAgeRecord {
            min: facts.age_min.as_secs_f64(),
            p50: facts.age_p50.as_secs_f64(),
            max: facts.age_max.as_secs_f64(),
        };
        HeldRecord {
            wanted: facts.wanted,
            stood: facts.stood,
            failed: facts.failed,
            peak: facts.peak,
            open: facts.open,
            closed: facts.closed,
            reset: facts.reset,
            bytes: facts.bytes,
            setup_s: facts.setup.as_secs_f64(),
            age_s: (facts.ended() > 0).then_some(age),
        }
    }

    pub(crate) fn facts(&self) -> HeldFacts {
        let age = |of: fn(&HeldAgeRecord) -> f64| {
            self.age_s.as_ref().map_or(Nanos::ZERO, |age| Nanos::from_secs_f64(of(age)))
        };
        HeldFacts {
            wanted: self.wanted,
            stood: self.stood,
            failed: self.failed,
            peak: self.peak,
            open: self.open,
            closed: self.closed,
            reset: self.reset,
            bytes: self.bytes,
            setup: Nanos::from_secs_f64(self.setup_s),
            age_min: age(|age| age.min),
            age_p50: age(|age| age.p50),
            age_max: age(|age| age.max),
        }
    }
}
