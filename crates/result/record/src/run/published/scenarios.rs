//! Several simultaneous loads, in published form.

use super::{OutcomesRecord, TimesRecord};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of several loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ScenarioRecord {
    pub name: String,
    /// Description of its load.
    pub load: String,
    pub outcomes: OutcomesRecord,
    /// Arrivals that the plan intends for it; null for a closed loop.
    pub intended: Option<u64>,
    /// Calls that the client never issued.
    pub unissued: u64,
    /// Sessions, or iterations of journeys, that were started.
    pub sessions: u64,
    pub throughput_per_s: f64,
    pub goodput_per_s: f64,
    /// Calls that ended inside the measured window.
    pub in_window: u64,
    pub good_in_window: u64,
    pub body_bytes: u64,
    pub response_time_s: TimesRecord,
}
