//! HTTP/2 facts of a run.

use sample::{Http2Facts, http2_code_name};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct Http2Record {
    pub streams: u64,
    /// Maximum number of outstanding streams on one connection.
    pub streams_peak: u64,
    /// Smallest SETTINGS_MAX_CONCURRENT_STREAMS of the server; null: the server sets no limit.
    pub streams_max: Option<u32>,
    /// No connection received the server's settings; omitted if one did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_settings: bool,
    /// Requests that the server reported as unprocessed; each was retried or abandoned.
    pub refused: u64,
    /// Frames of the server by the names of their error codes.
    pub resets: BTreeMap<String, u64>,
    /// GOAWAY of the server by error code.
    pub goaways: BTreeMap<String, u64>,
    /// Debug data of GOAWAY frames with an error code, such as `too_many_pings`; at most 8.
    #[serde(default)]
    pub goaway_reasons: BTreeMap<String, u64>,
    pub pings: u64,
    /// PING frames of the client, and those that the server acknowledged.
    #[serde(default)]
    pub pings_sent: u64,
    #[serde(default)]
    pub pings_answered: u64,
    /// Bytes of names and values, before and after compression (HPACK).
    pub fields: FieldsRecord,
    /// Reasons why connections were broken, with the section of the standard; at most 8 reasons.
    pub violations: BTreeMap<String, u64>,
    /// Requests that waited on their connection until the server allowed another stream.
    #[serde(default)]
    pub held_back: u64,
    /// Streams started on a connection before the server's GOAWAY with NO_ERROR.
    #[serde(default)]
    pub goaway_streams: Option<GoawayRecord>,
    /// Bytes of the server's frames that carry neither fields nor content.
    #[serde(default)]
    pub control_received: u64,
}

/// Minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct GoawayRecord {
    pub fewest: u64,
    pub most: u64,
}

/// Bytes of names and values, before and after compression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FieldsRecord {
    pub sent: u64,
    pub sent_coded: u64,
    pub received: u64,
    pub received_coded: u64,
}

impl Http2Record {
    pub fn new(facts: &Http2Facts) -> Option<Http2Record> {
        let named = |codes: &BTreeMap<u32, u64>| {
            codes.iter().map(|(code, count)| (http2_code_name(*code), *count)).collect()
        };
        (!facts.is_empty()).then(|| Http2Record {
            streams: facts.streams,
            streams_peak: facts.streams_peak,
            streams_max: facts.streams_max.filter(|max| *max != u32::MAX),
            no_settings: facts.streams_max.is_none(),
            refused: facts.refused,
            resets: named(&facts.resets),
            goaways: named(&facts.goaways),
            goaway_reasons: facts.goaway_reasons.clone(),
            pings: facts.pings,
            pings_sent: facts.pings_sent,
            pings_answered: facts.pings_answered,
            fields: FieldsRecord {
                sent: facts.fields_sent,
                sent_coded: facts.coded_sent,
                received: facts.fields_received,
                received_coded: facts.coded_received,
            },
            violations: facts.violations.clone(),
            held_back: facts.held_back,
            goaway_streams: facts
                .goaway_streams
                .map(|(fewest, most)| GoawayRecord { fewest, most }),
            control_received: facts.control_received,
        })
    }
}
