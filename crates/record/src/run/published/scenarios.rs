//! Several loads at once, as they are published.

use super::{OutcomesRecord, TimesRecord};
use crate::figures::ScenarioRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Hist, ScenarioTally};
use units::Nanos;

/// One of several loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioRecord {
    pub name: String,
    /// Its load in words.
    pub load: String,
    pub outcomes: OutcomesRecord,
    /// Arrivals that the plan wants of it; null for a closed loop.
    pub intended: Option<u64>,
    /// Calls that the client never issued.
    pub unissued: u64,
    /// Sessions, or iterations of journeys, that were begun.
    pub sessions: u64,
    pub throughput_per_s: f64,
    pub goodput_per_s: f64,
    /// Calls that ended inside the measured window.
    pub in_window: u64,
    pub good_in_window: u64,
    pub body_bytes: u64,
    pub response_time_s: TimesRecord,
}

impl ScenarioRecord {
    pub(crate) fn of(row: ScenarioRow, window: Nanos) -> ScenarioRecord {
        let ScenarioRow { name, load, tally } = row;
        let per_s = |count: u64| match window.as_secs_f64() {
            span if span > 0.0 => count as f64 / span,
            _ => 0.0,
        };
        ScenarioRecord {
            name,
            load,
            outcomes: OutcomesRecord::of(&tally.counts),
            intended: tally.intended,
            unissued: tally.unissued,
            sessions: tally.sessions_started,
            throughput_per_s: per_s(tally.in_window),
            goodput_per_s: per_s(tally.good_in_window),
            in_window: tally.in_window,
            good_in_window: tally.good_in_window,
            body_bytes: tally.body_bytes,
            response_time_s: TimesRecord::of(&tally.response),
        }
    }

    /// What it was made of; its times are kept apart.
    pub(crate) fn tally(&self, response: Hist) -> ScenarioTally {
        ScenarioTally {
            counts: self.outcomes.counts(),
            intended: self.intended,
            unissued: self.unissued,
            sessions_started: self.sessions,
            in_window: self.in_window,
            good_in_window: self.good_in_window,
            body_bytes: self.body_bytes,
            response,
        }
    }
}
