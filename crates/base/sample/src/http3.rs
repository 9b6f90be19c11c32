//! HTTP/3 and QUIC facts of connections, not of calls.

use crate::TlsFacts;
use std::collections::BTreeMap;
use units::Nanos;

/// Counts, summed over connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http3Facts {
    /// Number of opened request streams, and maximum outstanding on one connection.
    pub streams: u64,
    pub streams_peak: u64,
    /// Smallest number of streams that a server allowed initially (initial_max_streams_bidi, RFC
    /// 9000 section 18.2).
    pub streams_max: Option<u64>,
    /// Calls that waited on their connection until the server allowed a further stream.
    pub waited: u64,
    /// Requests that the peer reported as unprocessed; each was retried or abandoned.
    pub refused: u64,
    /// Streams that the peer reset or stopped, by its code (RFC 9114 section 8.1).
    pub resets: BTreeMap<u64, u64>,
    /// Connections that the peer ended by GOAWAY: a graceful shutdown sends it twice.
    pub goaways: u64,
    /// Bytes of names and values of fields, before and after compression.
    pub fields_sent: u64,
    pub coded_sent: u64,
    pub fields_received: u64,
    pub coded_received: u64,
    /// Reasons why either side broke connections; at most [`crate::VIOLATIONS_MAX`] different ones.
    pub violations: BTreeMap<String, u64>,
    pub quic: QuicFacts,
    pub migration: MigrationFacts,
}

/// Figures of QUIC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuicFacts {
    /// Connections with a completed handshake, and how many of them resumed a session.
    pub handshakes: u64,
    pub resumed: u64,
    /// Packets sent by our side, and how many of them were lost.
    pub packets_sent: u64,
    pub packets_lost: u64,
    /// Received UDP datagrams, and bytes of both directions, including QUIC's overhead.
    pub datagrams_received: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Times at which the congestion window shrank.
    pub congestion_events: u64,
    /// Sum of the connections' smoothed round-trip times at their end, with the least and the most.
    pub rtt_sum: Nanos,
    pub rtt_min: Nanos,
    pub rtt_max: Nanos,
}

/// Connections that migrated to another local port (RFC 9000 section 9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationFacts {
    /// Changes of the local port, and how many of them the server validated (PATH_CHALLENGE, RFC
    /// 9000 section 8.2).
    pub made: u64,
    pub validated: u64,
    /// Connections whose server forbids migration (disable_active_migration, RFC 9000 section
    /// 18.2).
    pub forbidden: u64,
    /// Time from a change until the server's path challenge arrived at the new port: sum, minimum,
    /// maximum.
    pub time_sum: Nanos,
    pub time_min: Nanos,
    pub time_max: Nanos,
    /// Calls in flight during a change, and how many of them lost their connection before the
    /// response.
    pub calls: u64,
    pub calls_lost: u64,
}

/// Calls whose requests were sent before the handshake completed (0-RTT, RFC 8446 section 2.3).
/// Calls neither accepted nor rejected belonged to a connection that was never established.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlyFacts {
    pub sent: u64,
    pub accepted: u64,
    /// Calls that the server refused to read; they were sent again after the handshake.
    pub rejected: u64,
    /// Responses of 425 (Too Early, RFC 8470 section 5.2), after each of which its call was
    /// retried.
    pub too_early: u64,
}

/// Facts of a QUIC connection at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuicEnd {
    pub facts: QuicFacts,
    pub migration: MigrationFacts,
    pub early: EarlyFacts,
    /// Negotiated parameters; `None` if the handshake did not complete.
    pub tls: Option<TlsFacts>,
    /// Reason why it ended, if not in order.
    pub why: Option<String>,
}

/// Error codes by number, from 0x100 on (RFC 9114 section 8.1).
const NAMES: [&str; 17] = [
    "H3_NO_ERROR",
    "H3_GENERAL_PROTOCOL_ERROR",
    "H3_INTERNAL_ERROR",
    "H3_STREAM_CREATION_ERROR",
    "H3_CLOSED_CRITICAL_STREAM",
    "H3_FRAME_UNEXPECTED",
    "H3_FRAME_ERROR",
    "H3_EXCESSIVE_LOAD",
    "H3_ID_ERROR",
    "H3_SETTINGS_ERROR",
    "H3_MISSING_SETTINGS",
    "H3_REQUEST_REJECTED",
    "H3_REQUEST_CANCELLED",
    "H3_REQUEST_INCOMPLETE",
    "H3_MESSAGE_ERROR",
    "H3_CONNECT_ERROR",
    "H3_VERSION_FALLBACK",
];
const FIRST: u64 = 0x100;

/// Names from 0x200 on (RFC 9204 section 6).
const QPACK_NAMES: [&str; 3] =
    ["QPACK_DECOMPRESSION_FAILED", "QPACK_ENCODER_STREAM_ERROR", "QPACK_DECODER_STREAM_ERROR"];
const QPACK_FIRST: u64 = 0x200;

/// Returns the name of an error code in the standards; an unknown code as a number.
pub fn http3_code_name(code: u64) -> String {
    let of = |names: &[&'static str], first: u64| {
        let row = usize::try_from(code.checked_sub(first)?).ok()?;
        names.get(row).copied()
    };
    let known = of(&NAMES, FIRST).or_else(|| of(&QPACK_NAMES, QPACK_FIRST));
    known.map_or_else(|| format!("{code:#x}"), str::to_owned)
}

/// Returns the code with this name, as returned by [`http3_code_name`].
pub fn http3_code(name: &str) -> Option<u64> {
    let of = |names: &[&str], first: u64| {
        names.iter().position(|known| *known == name).map(|row| row as u64 + first)
    };
    let known = of(&NAMES, FIRST).or_else(|| of(&QPACK_NAMES, QPACK_FIRST));
    known.or_else(|| u64::from_str_radix(name.strip_prefix("0x")?, 16).ok())
}

impl Http3Facts {
    pub fn merge(&mut self, other: &Http3Facts) {
        self.streams += other.streams;
        self.streams_peak = self.streams_peak.max(other.streams_peak);
        self.streams_max = match (self.streams_max, other.streams_max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.waited += other.waited;
        self.refused += other.refused;
        for (code, count) in &other.resets {
            *self.resets.entry(*code).or_default() += count;
        }
        self.goaways += other.goaways;
        self.fields_sent += other.fields_sent;
        self.coded_sent += other.coded_sent;
        self.fields_received += other.fields_received;
        self.coded_received += other.coded_received;
        for (why, count) in &other.violations {
            self.add_violation(why, *count);
        }
        self.quic.merge(&other.quic);
        self.migration.merge(&other.migration);
    }

    /// Keeps the reason why a connection was broken off, if there is room.
    pub fn add_violation(&mut self, why: &str, count: u64) {
        if let Some(sum) = self.violations.get_mut(why) {
            *sum += count;
        } else if self.violations.len() < crate::VIOLATIONS_MAX {
            self.violations.insert(why.to_owned(), count);
        }
    }

    /// Returns whether nothing was counted: no connection spoke HTTP/3.
    pub fn is_empty(&self) -> bool {
        *self == Http3Facts::default()
    }
}

impl QuicFacts {
    pub fn merge(&mut self, other: &QuicFacts) {
        self.rtt_min = match (self.handshakes, other.handshakes) {
            (_, 0) => self.rtt_min,
            (0, _) => other.rtt_min,
            _ => self.rtt_min.min(other.rtt_min),
        };
        self.rtt_max = self.rtt_max.max(other.rtt_max);
        self.rtt_sum += other.rtt_sum;
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.packets_sent += other.packets_sent;
        self.packets_lost += other.packets_lost;
        self.datagrams_received += other.datagrams_received;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.congestion_events += other.congestion_events;
    }
}

impl QuicEnd {
    /// Returns the counts added since an earlier state of the same connection.
    #[must_use]
    pub fn since(self, before: &QuicEnd) -> QuicEnd {
        let (facts, had) = (&self.facts, &before.facts);
        let is_new = had.handshakes == 0;
        let facts = QuicFacts {
            handshakes: facts.handshakes - had.handshakes,
            resumed: facts.resumed - had.resumed,
            packets_sent: facts.packets_sent - had.packets_sent,
            packets_lost: facts.packets_lost.saturating_sub(had.packets_lost),
            datagrams_received: facts.datagrams_received - had.datagrams_received,
            bytes_sent: facts.bytes_sent - had.bytes_sent,
            bytes_received: facts.bytes_received - had.bytes_received,
            congestion_events: facts.congestion_events - had.congestion_events,
            // of one connection they are counted once
            rtt_sum: if is_new { facts.rtt_sum } else { Nanos::ZERO },
            ..*facts
        };
        let (moved, had) = (&self.migration, &before.migration);
        let migration = MigrationFacts {
            made: moved.made - had.made,
            validated: moved.validated - had.validated,
            forbidden: moved.forbidden - had.forbidden,
            time_sum: moved.time_sum - had.time_sum,
            calls: moved.calls - had.calls,
            calls_lost: moved.calls_lost - had.calls_lost,
            ..*moved
        };
        let tls = self.tls.filter(|_| before.tls.is_none());
        QuicEnd { facts, migration, early: EarlyFacts::default(), tls, why: self.why }
    }
}

impl MigrationFacts {
    pub fn merge(&mut self, other: &MigrationFacts) {
        self.time_min = match (self.validated, other.validated) {
            (_, 0) => self.time_min,
            (0, _) => other.time_min,
            _ => self.time_min.min(other.time_min),
        };
        self.time_max = self.time_max.max(other.time_max);
        self.time_sum += other.time_sum;
        self.made += other.made;
        self.validated += other.validated;
        self.forbidden += other.forbidden;
        self.calls += other.calls;
        self.calls_lost += other.calls_lost;
    }

    /// Records that a change was validated after this time.
    pub fn add_validated(&mut self, took: Nanos) {
        let (validated, made) = (1, 0);
        let (time_sum, time_min, time_max) = (took, took, took);
        self.merge(&MigrationFacts {
            made,
            validated,
            time_sum,
            time_min,
            time_max,
            ..MigrationFacts::default()
        });
    }

    /// Returns whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == MigrationFacts::default()
    }
}

impl EarlyFacts {
    pub fn merge(&mut self, other: &EarlyFacts) {
        self.sent += other.sent;
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.too_early += other.too_early;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_add_up_in_any_order() {
        let quic = |handshakes, min, max| QuicFacts {
            handshakes,
            rtt_sum: Nanos(min + max),
            rtt_min: Nanos(min),
            rtt_max: Nanos(max),
            packets_lost: 2,
            ..QuicFacts::default()
        };
        let one = Http3Facts {
            streams: 3,
            streams_peak: 2,
            streams_max: Some(100),
            resets: [(0x10c, 1)].into(),
            quic: quic(2, 5, 9),
            ..Http3Facts::default()
        };
        let other = Http3Facts {
            streams: 4,
            streams_peak: 7,
            streams_max: Some(10),
            resets: [(0x10c, 2), (0x10b, 1)].into(),
            quic: quic(1, 7, 12),
            ..Http3Facts::default()
        };
        let (mut a, mut b) = (one.clone(), other.clone());
        a.merge(&other);
        b.merge(&one);
        assert_eq!(a, b);
        assert_eq!((a.streams, a.streams_peak, a.streams_max), (7, 7, Some(10)));
        assert_eq!(a.resets, [(0x10b, 1), (0x10c, 3)].into());
        assert_eq!((a.quic.rtt_min, a.quic.rtt_max, a.quic.packets_lost), (Nanos(5), Nanos(12), 4));
        // a connection that was never established has no round trip
        a.merge(&Http3Facts::default());
        assert_eq!(a.quic.rtt_min, Nanos(5));
    }

    #[test]
    fn codes_have_the_names_of_the_standards() {
        for (code, name) in [
            (0x100, "H3_NO_ERROR"),
            (0x10b, "H3_REQUEST_REJECTED"),
            (0x110, "H3_VERSION_FALLBACK"),
            (0x200, "QPACK_DECOMPRESSION_FAILED"),
            (0x111, "0x111"),
            (7, "0x7"),
        ] {
            assert_eq!(http3_code_name(code), name);
            assert_eq!(http3_code(name), Some(code));
        }
        assert_eq!(http3_code("H3_NOTHING"), None);
    }
}
