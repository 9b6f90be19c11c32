//! What HTTP/2 adds to a run.

use sample::{Http2Facts, http2_code, http2_code_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Http2Record {
    pub streams: u64,
    /// Most streams outstanding on one connection.
    pub streams_peak: u64,
    /// The least SETTINGS_MAX_CONCURRENT_STREAMS of the server; null: it sets none.
    pub streams_max: Option<u32>,
    /// Requests that the server said it had not processed; each was sent again, or given up.
    pub refused: u64,
    /// Frames of the server by the names of their error codes.
    pub resets: BTreeMap<String, u64>,
    /// GOAWAY of the server by error code.
    pub goaways: BTreeMap<String, u64>,
    pub pings: u64,
    /// Bytes of names and values, and of what their compression (HPACK) made of them.
    pub fields: FieldsRecord,
    /// Why connections were broken off, with the section of the standard; at most 8 reasons.
    pub violations: BTreeMap<String, u64>,
    /// Requests that waited on their connection until the server allowed another stream.
    #[serde(default)]
    pub held_back: u64,
    /// Streams that a connection had begun when the server's GOAWAY with NO_ERROR came.
    #[serde(default)]
    pub goaway_streams: Option<GoawayRecord>,
    /// Bytes of the server's frames that carry neither fields nor content.
    #[serde(default)]
    pub control_received: u64,
}

/// The fewest and the most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoawayRecord {
    pub fewest: u64,
    pub most: u64,
}

/// Bytes of names and values, and of what their compression made of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldsRecord {
    pub sent: u64,
    pub sent_coded: u64,
    pub received: u64,
    pub received_coded: u64,
}

impl Http2Record {
    pub(crate) fn of(facts: &Http2Facts) -> Option<Http2Record> {
        let named = |codes: &BTreeMap<u32, u64>| {
            codes.iter().map(|(code, count)| (http2_code_name(*code), *count)).collect()
        };
        (!facts.is_empty()).then(|| Http2Record {
            streams: facts.streams,
            streams_peak: facts.streams_peak,
            streams_max: facts.streams_max.filter(|max| *max != u32::MAX),
            refused: facts.refused,
            resets: named(&facts.resets),
            goaways: named(&facts.goaways),
            pings: facts.pings,
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

    /// What was counted.
    ///
    /// # Errors
    /// A name that no error code has.
    pub(crate) fn facts(&self) -> Result<Http2Facts, String> {
        Ok(Http2Facts {
            streams: self.streams,
            streams_peak: self.streams_peak,
            // a server that sent no settings at all is published alike
            streams_max: Some(self.streams_max.unwrap_or(u32::MAX)),
            refused: self.refused,
            resets: codes(&self.resets)?,
            goaways: codes(&self.goaways)?,
            pings: self.pings,
            fields_sent: self.fields.sent,
            coded_sent: self.fields.sent_coded,
            fields_received: self.fields.received,
            coded_received: self.fields.received_coded,
            control_received: self.control_received,
            held_back: self.held_back,
            goaway_streams: self.goaway_streams.map(|both| (both.fewest, both.most)),
            violations: self.violations.clone(),
        })
    }
}

fn codes(named: &BTreeMap<String, u64>) -> Result<BTreeMap<u32, u64>, String> {
    let code = |(name, count): (&String, &u64)| {
        let code = http2_code(name)
            .ok_or_else(|| format!("http2: {} is not an error code", units::quoted(name)))?;
        Ok((code, *count))
    };
    named.iter().map(code).collect()
}
