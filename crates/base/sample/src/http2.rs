//! HTTP/2 facts of connections, not of calls.

use std::collections::BTreeMap;

/// Counts, summed over connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http2Facts {
    /// Number of opened streams, and maximum outstanding on one connection.
    pub streams: u64,
    pub streams_peak: u64,
    /// Smallest SETTINGS_MAX_CONCURRENT_STREAMS of a peer (RFC 9113 section 6.5.2); 2^32 − 1 is "no
    /// limit". `None` without SETTINGS.
    pub streams_max: Option<u32>,
    /// Requests that the peer reported as unprocessed; each was retried or abandoned.
    pub refused: u64,
    /// RST_STREAM frames from the peer by their code (section 7).
    pub resets: BTreeMap<u32, u64>,
    /// GOAWAY frames from the peer by code. With NO_ERROR only the first of a connection counts: a
    /// graceful shutdown sends it twice.
    pub goaways: BTreeMap<u32, u64>,
    /// Debug data of GOAWAY frames with an error code; at most [`VIOLATIONS_MAX`] different ones.
    pub goaway_reasons: BTreeMap<String, u64>,
    /// PING frames from the peer.
    pub pings: u64,
    /// PING frames of our side, and those that the peer acknowledged.
    pub pings_sent: u64,
    pub pings_answered: u64,
    /// Bytes of names and values of fields, before and after compression.
    pub fields_sent: u64,
    pub coded_sent: u64,
    pub fields_received: u64,
    pub coded_received: u64,
    /// Requests that waited on their connection until the peer permitted another stream.
    pub held_back: u64,
    /// Streams started on a connection before the peer's GOAWAY with NO_ERROR: minimum and maximum.
    pub goaway_streams: Option<(u64, u64)>,
    /// Bytes of the peer's frames without fields or content, including their headers of nine bytes.
    pub control_received: u64,
    /// Reasons why our side broke connections; at most [`VIOLATIONS_MAX`] different ones.
    pub violations: BTreeMap<String, u64>,
}

/// Names of the error codes, from 0 on (RFC 9113 section 7).
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// Returns the name of an error code in the standard; an unknown code as a number.
pub fn http2_code_name(code: u32) -> String {
    CODES.get(code as usize).map_or_else(|| format!("{code:#x}"), |name| (*name).to_owned())
}

/// Returns the code with this name, as returned by [`http2_code_name`].
pub fn http2_code(name: &str) -> Option<u32> {
    let known = CODES.iter().position(|known| *known == name).map(|code| code as u32);
    known.or_else(|| u32::from_str_radix(name.strip_prefix("0x")?, 16).ok())
}

/// Maximum number of stored reasons.
pub const VIOLATIONS_MAX: usize = 8;

impl Http2Facts {
    pub fn merge(&mut self, other: &Http2Facts) {
        self.streams += other.streams;
        self.streams_peak = self.streams_peak.max(other.streams_peak);
        self.streams_max = match (self.streams_max, other.streams_max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.refused += other.refused;
        for (sum, add) in [(&mut self.resets, &other.resets), (&mut self.goaways, &other.goaways)] {
            for (code, count) in add {
                *sum.entry(*code).or_default() += count;
            }
        }
        self.pings += other.pings;
        self.pings_sent += other.pings_sent;
        self.pings_answered += other.pings_answered;
        self.fields_sent += other.fields_sent;
        self.coded_sent += other.coded_sent;
        self.fields_received += other.fields_received;
        self.coded_received += other.coded_received;
        self.control_received += other.control_received;
        self.held_back += other.held_back;
        self.goaway_streams = match (self.goaway_streams, other.goaway_streams) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        for (why, count) in &other.violations {
            self.add_violation(why, *count);
        }
        for (why, count) in &other.goaway_reasons {
            self.add_goaway_reason(why, *count);
        }
    }

    /// Keeps the reason why a connection was broken off, if there is room.
    pub fn add_violation(&mut self, why: &str, count: u64) {
        add_bounded(&mut self.violations, why, count);
    }

    /// Keeps the debug data of a GOAWAY, if there is room.
    pub fn add_goaway_reason(&mut self, why: &str, count: u64) {
        add_bounded(&mut self.goaway_reasons, why, count);
    }

    /// Returns whether nothing was counted: no connection used HTTP/2.
    pub fn is_empty(&self) -> bool {
        *self == Http2Facts::default()
    }
}

fn add_bounded(all: &mut BTreeMap<String, u64>, why: &str, count: u64) {
    if let Some(sum) = all.get_mut(why) {
        *sum += count;
    } else if all.len() < VIOLATIONS_MAX {
        all.insert(why.to_owned(), count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_add_up_in_any_order() {
        let one = Http2Facts {
            streams: 3,
            streams_peak: 2,
            streams_max: Some(100),
            resets: [(8, 1)].into(),
            ..Http2Facts::default()
        };
        let other = Http2Facts {
            streams: 4,
            streams_peak: 7,
            streams_max: Some(10),
            resets: [(8, 2), (7, 1)].into(),
            ..Http2Facts::default()
        };
        let (mut a, mut b) = (one.clone(), other.clone());
        a.merge(&other);
        b.merge(&one);
        assert_eq!(a, b);
        assert_eq!((a.streams, a.streams_peak, a.streams_max), (7, 7, Some(10)));
        assert_eq!(a.resets, [(7, 1), (8, 3)].into());
    }

    #[test]
    fn reasons_are_bounded() {
        let mut facts = Http2Facts::default();
        (0..100).for_each(|number| facts.add_violation(&format!("reason {number}"), 1));
        facts.add_violation("reason 0", 5);
        assert_eq!(facts.violations.len(), VIOLATIONS_MAX);
        assert_eq!(facts.violations["reason 0"], 6);
    }
}
