//! Idle connections held open during a load.

use sample::HeldFacts;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HeldRecord {
    /// Number requested.
    pub wanted: u64,
    /// Number established at some time.
    pub stood: u64,
    /// Number never established.
    pub failed: u64,
    /// Most that were open at once.
    pub peak: u64,
    /// Number open when the load ended.
    pub open: u64,
    /// Ended by the server in order.
    pub closed: u64,
    /// Ended by a reset.
    pub reset: u64,
    /// Bytes that the server sent on them without a request.
    pub bytes: u64,
    /// Time from opening the first connection to establishing the last.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub setup_s: f64,
    /// Ages of connections that the server closed; null if there are none.
    pub age_s: Option<HeldAgeRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HeldAgeRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub min: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p50: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub max: f64,
}

impl HeldRecord {
    pub fn new(facts: &HeldFacts) -> HeldRecord {
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
}
