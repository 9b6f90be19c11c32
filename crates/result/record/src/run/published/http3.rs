//! HTTP/3 and QUIC facts of a run.

use super::FieldsRecord;
use sample::{EarlyFacts, Http3Facts, MigrationFacts, QuicFacts, http3_code_name};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct Http3Record {
    pub streams: u64,
    /// Maximum number of outstanding streams on one connection.
    pub streams_peak: u64,
    /// Smallest number of streams that a server allowed initially (initial_max_streams_bidi); null:
    /// no connection was established.
    pub streams_max: Option<u64>,
    /// Calls that waited on their connection until the server allowed a further stream.
    pub waited: u64,
    /// Requests that the server reported as unprocessed; each was retried or abandoned.
    pub refused: u64,
    /// Streams that the server reset or stopped, by the names of its error codes.
    pub resets: BTreeMap<String, u64>,
    pub goaways: u64,
    /// Bytes of names and values, before and after compression (QPACK).
    pub fields: FieldsRecord,
    /// Reasons why connections were broken, with the section of the standard or the server's text;
    /// at most 8 reasons.
    pub violations: BTreeMap<String, u64>,
    pub quic: QuicRecord,
    /// Changes of the local port; null if none was requested.
    #[serde(default)]
    pub migration: Option<MigrationRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct QuicRecord {
    /// Connections with a completed handshake.
    pub handshakes: u64,
    /// Of these, connections that resumed a session.
    pub resumed: u64,
    pub packets_sent: u64,
    /// Of those sent, packets that QUIC considers lost.
    pub packets_lost: u64,
    pub datagrams_received: u64,
    /// Bytes in UDP datagrams.
    pub bytes_sent: u64,
    /// Bytes in UDP datagrams.
    pub bytes_received: u64,
    pub congestion_events: u64,
    /// Round-trip times of connections at their end: minimum observed, mean and maximum of the
    /// smoothed values.
    pub rtt_s: Option<RttRecord>,
}

/// Connections that migrated to another local port (RFC 9000 section 9).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct MigrationRecord {
    pub made: u64,
    /// Of these, connections whose new port the server validated with a PATH_CHALLENGE.
    pub validated: u64,
    /// Connections whose server forbids migration (disable_active_migration); they did not migrate.
    pub forbidden: u64,
    /// Time from the change until the server's PATH_CHALLENGE arrived; null if none did.
    pub time_s: Option<ValidationRecord>,
    /// Calls in flight during a change.
    pub calls: u64,
    /// Of these, calls whose connection broke before their response was complete.
    pub calls_lost: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ValidationRecord {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

/// Calls whose requests were sent before the handshake completed (0-RTT).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct EarlyDataRecord {
    pub sent: u64,
    pub accepted: u64,
    /// Rejected by the server, and resent after the handshake.
    pub rejected: u64,
    /// Responses of 425 (Too Early); each call was then retried.
    pub too_early: u64,
}

impl EarlyDataRecord {
    /// Returns the record of early data.
    /// `asked`: the plan has early data.
    pub(crate) fn new(facts: &EarlyFacts, asked: bool) -> Option<EarlyDataRecord> {
        let EarlyFacts { sent, accepted, rejected, too_early } = *facts;
        (asked || *facts != EarlyFacts::default()).then_some(EarlyDataRecord {
            sent,
            accepted,
            rejected,
            too_early,
        })
    }
}

impl MigrationRecord {
    fn new(facts: &MigrationFacts) -> Option<MigrationRecord> {
        (!facts.is_empty()).then(|| MigrationRecord {
            made: facts.made,
            validated: facts.validated,
            forbidden: facts.forbidden,
            time_s: (facts.validated > 0).then(|| ValidationRecord {
                min: facts.time_min.as_secs_f64(),
                mean: facts.time_sum.as_secs_f64() / facts.validated as f64,
                max: facts.time_max.as_secs_f64(),
            }),
            calls: facts.calls,
            calls_lost: facts.calls_lost,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct RttRecord {
    /// Minimum observed; mean and maximum of the smoothed ones.
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

impl Http3Record {
    pub fn new(facts: &Http3Facts) -> Option<Http3Record> {
        let resets = facts.resets.iter();
        (!facts.is_empty()).then(|| Http3Record {
            streams: facts.streams,
            streams_peak: facts.streams_peak,
            streams_max: facts.streams_max,
            waited: facts.waited,
            refused: facts.refused,
            resets: resets.map(|(code, count)| (http3_code_name(*code), *count)).collect(),
            goaways: facts.goaways,
            fields: FieldsRecord {
                sent: facts.fields_sent,
                sent_coded: facts.coded_sent,
                received: facts.fields_received,
                received_coded: facts.coded_received,
            },
            violations: facts.violations.clone(),
            quic: QuicRecord::new(&facts.quic),
            migration: MigrationRecord::new(&facts.migration),
        })
    }
}

impl QuicRecord {
    fn new(facts: &QuicFacts) -> QuicRecord {
        let rtt = (facts.handshakes > 0).then(|| RttRecord {
            min: facts.rtt_min.as_secs_f64(),
            mean: facts.rtt_sum.as_secs_f64() / facts.handshakes as f64,
            max: facts.rtt_max.as_secs_f64(),
        });
        QuicRecord {
            handshakes: facts.handshakes,
            resumed: facts.resumed,
            packets_sent: facts.packets_sent,
            packets_lost: facts.packets_lost,
            datagrams_received: facts.datagrams_received,
            bytes_sent: facts.bytes_sent,
            bytes_received: facts.bytes_received,
            congestion_events: facts.congestion_events,
            rtt_s: rtt,
        }
    }
}
