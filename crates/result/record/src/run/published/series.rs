//! The rows of the time series.

use super::times::OutcomesRecord;
use sample::FailureClass;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Endings;
use std::collections::BTreeMap;
use units::Nanos;

/// A row of the time series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SecondRecord {
    /// Start of the row, from the start of the measured phase; negative in the warm-up.
    pub at_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub span_s: f64,
    pub warm_up: bool,
    pub outcomes: OutcomesRecord,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_mean_s: Option<f64>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_p50_s: Option<f64>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_p90_s: Option<f64>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_p99_s: Option<f64>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_max_s: Option<f64>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub slip_p99_s: f64,
    /// Calls in flight at the end of the row.
    pub in_flight: u64,
    pub open_connections: u64,
    pub bytes_received: u64,
    pub body_bytes: u64,
    /// Share of one core that the client used, per worker thread.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub driver_cpu: f64,
    /// Responses to calls of the measured phase that ended in the row, by status number; other:
    /// statuses beyond the sixteen most frequent of the row. Null in results of versions that did
    /// not record it.
    pub statuses: Option<BTreeMap<String, u64>>,
    /// Calls of the measured phase that failed, timed out or were dropped in the row, by class.
    /// Null in results of versions that did not record it.
    pub failures: Option<BTreeMap<String, u64>>,
    /// Events of streams that arrived in the row. Null without any.
    pub events: Option<u64>,
    /// Times of the first events that arrived in the row, from due; null without any.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub first_event_p99_s: Option<f64>,
    /// Times between events that ended in the row; null without any.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub event_gap_p99_s: Option<f64>,
    /// Messages on WebSockets sent and received in the row. Null without any.
    pub messages_sent: Option<u64>,
    pub messages_received: Option<u64>,
    /// Times between messages of the server that ended in the row; null without any.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub message_gap_p99_s: Option<f64>,
}

impl SecondRecord {
    pub(crate) fn new(row: &stats::Second) -> SecondRecord {
        let seconds = Nanos::as_secs_f64;
        // without a response there is no time
        let time = |time: Nanos| (!row.max.is_zero()).then(|| seconds(time));
        let stream_time = |of: fn(&stats::SecondStreams) -> Nanos| {
            row.streams.as_ref().map(of).filter(|time| !time.is_zero()).map(seconds)
        };
        SecondRecord {
            at_s: row.at_s,
            span_s: row.span_s,
            warm_up: row.warm_up,
            outcomes: OutcomesRecord::new(&row.counts),
            response_mean_s: time(row.mean),
            response_p50_s: time(row.p50),
            response_p90_s: time(row.p90),
            response_p99_s: time(row.p99),
            response_max_s: time(row.max),
            slip_p99_s: seconds(row.slip_p99),
            in_flight: row.in_flight,
            open_connections: row.open_connections,
            bytes_received: row.bytes_received,
            body_bytes: row.body_bytes,
            driver_cpu: row.driver_cpu,
            events: row.streams.map(|streams| streams.events),
            first_event_p99_s: stream_time(|streams| streams.first_p99),
            event_gap_p99_s: stream_time(|streams| streams.gap_p99),
            messages_sent: row.messages.map(|messages| messages.sent),
            messages_received: row.messages.map(|messages| messages.received),
            message_gap_p99_s: row
                .messages
                .map(|messages| messages.gap_p99)
                .filter(|gap| !gap.is_zero())
                .map(seconds),
            statuses: row.endings.as_ref().map(statuses),
            failures: row.endings.as_ref().map(|endings| {
                endings
                    .failures
                    .iter()
                    .map(|(class, count)| (class.id().to_owned(), *count))
                    .collect()
            }),
        }
    }

    /// Returns how calls ended in the row; `None` if not recorded. Failure classes that only a
    /// later version knows are dropped.
    pub fn endings(&self) -> Option<Endings> {
        let (statuses, failures) = (self.statuses.as_ref()?, self.failures.as_ref()?);
        let numbered = statuses.iter().filter_map(|(status, n)| Some((status.parse().ok()?, *n)));
        let class = |id: &str| FailureClass::ALL.iter().find(|class| class.id() == id);
        let classed = failures.iter().filter_map(|(id, count)| Some((*class(id)?, *count)));
        let mut endings = Endings {
            statuses: numbered.collect(),
            other_statuses: statuses.get(OTHER_STATUSES).copied().unwrap_or(0),
            failures: classed.collect(),
        };
        endings.statuses.sort_unstable();
        endings.failures.sort_unstable();
        Some(endings)
    }
}

/// Statuses that a row does not distinguish.
const OTHER_STATUSES: &str = "other";

/// Returns the responses by status number, and `other` for those that the row does not distinguish.
fn statuses(endings: &Endings) -> BTreeMap<String, u64> {
    let numbered = endings.statuses.iter().map(|(status, count)| (status.to_string(), *count));
    let other =
        Some((OTHER_STATUSES.to_owned(), endings.other_statuses)).filter(|(_, count)| *count > 0);
    numbered.chain(other).collect()
}
