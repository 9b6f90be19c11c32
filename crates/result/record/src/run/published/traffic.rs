//! Bytes, connections and sessions.

use super::{EarlyDataRecord, RunRecord, known};
use crate::figures::{Figures, ratio};
use crate::run::RunReport;
use crate::words::printable;
use sample::TlsFacts;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Measurement, Snapshot};

use super::times::TimesRecord;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BytesRecord {
    /// Requests as far as they were sent, before encryption. The sent part of a partial TLS record
    /// is unknown, and over HTTP/2 and HTTP/3 a request counts once it is passed to an open
    /// connection.
    pub sent: u64,
    /// Responses with heads and framing, including incomplete ones.
    pub received: u64,
    pub body: u64,
    /// Body bytes after content decoding.
    pub decoded: u64,
}

impl BytesRecord {
    pub(crate) fn new(total: &Snapshot) -> BytesRecord {
        BytesRecord {
            sent: total.bytes_sent,
            received: total.bytes_received,
            body: total.body_bytes,
            decoded: total.decoded_bytes,
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ConcurrencyRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub mean: f64,
    pub peak: u64,
    /// Throughput times mean service time: the sum of the service times of all calls issued in the measured
    /// phase, over the window.
    pub by_littles_law: Option<f64>,
    /// Difference between the two, as a share of the larger.
    pub deviation: Option<f64>,
}

impl ConcurrencyRecord {
    pub(crate) fn new(figures: &Figures, total: &Snapshot) -> ConcurrencyRecord {
        ConcurrencyRecord {
            mean: figures.little.map_or(0.0, |little| little.concurrency),
            peak: total.flight_peak,
            by_littles_law: figures.little.map(|little| little.product),
            deviation: figures.little.map(|little| little.deviation()),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ConformingRecord {
    pub count: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub share: Option<f64>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub threshold_bps: f64,
    pub judged: u64,
    /// True if heads count as well as bodies.
    pub counts_heads: bool,
}

impl ConformingRecord {
    pub(crate) fn new(report: &RunReport) -> ConformingRecord {
        let connections = &report.measurement.total.connections;
        ConformingRecord {
            count: connections.conforming,
            share: known(ratio(connections.conforming as f64, connections.judged as f64)),
            threshold_bps: report.plan.measure.conforming_bps,
            judged: connections.judged,
            counts_heads: report.plan.measure.conforming_counts_heads,
        }
    }
}
/// Most frequent combination of negotiated parameters, and every combination seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TlsRecord {
    pub version: String,
    pub cipher: String,
    pub group: String,
    /// Connections that resumed a session.
    pub resumed: u64,
    /// Every combination seen, the most frequent first.
    pub agreed: Vec<AgreedRecord>,
    /// Calls that were sent before the handshake was over (--early-data); null where none could be.
    #[serde(default)]
    pub early_data: Option<EarlyDataRecord>,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct AgreedRecord {
    pub version: String,
    pub cipher: String,
    pub group: String,
    pub alpn: String,
    pub resumed: bool,
    pub connections: u64,
}

impl AgreedRecord {
    /// Returns the agreements, most frequent first.
    pub(crate) fn sorted(total: &Snapshot) -> impl Iterator<Item = (&TlsFacts, u64)> {
        let seen = total.connections.tls.iter().map(|(facts, count)| (facts, *count));
        let mut seen: Vec<(&TlsFacts, u64)> = seen.collect();
        seen.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        seen.into_iter()
    }
}

impl RunRecord {
    /// Returns TLS facts of the connections that negotiated the first parameters, by name; `None`
    /// without TLS.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        let bits = self.measured.iter().flat_map(|measured| &measured.key_bits);
        let facts = |(agreed, key_bits): (&AgreedRecord, &u32)| TlsFacts {
            version: agreed.version.clone(),
            cipher: agreed.cipher.clone(),
            group: agreed.group.clone(),
            resumed: agreed.resumed,
            key_bits: *key_bits,
            alpn: agreed.alpn.clone(),
        };
        self.tls.agreed.iter().zip(bits).map(facts).min()
    }
}

impl TlsRecord {
    /// Returns the record of handshakes.
    /// `early`: the plan has early data.
    pub(crate) fn new(total: &Snapshot, early: bool) -> TlsRecord {
        let agreed = |(facts, count): (&TlsFacts, u64)| AgreedRecord {
            version: facts.version.clone(),
            cipher: facts.cipher.clone(),
            group: facts.group.clone(),
            alpn: printable(&facts.alpn, 64),
            resumed: facts.resumed,
            connections: count,
        };
        let agreed: Vec<AgreedRecord> = AgreedRecord::sorted(total).map(agreed).collect();
        let most = agreed.first().cloned();
        // A resumed session without a key exchange names no group: take one that does.
        let group = agreed.iter().map(|one| &one.group).find(|group| !group.is_empty());
        TlsRecord {
            version: most.as_ref().map_or_else(String::new, |one| one.version.clone()),
            cipher: most.as_ref().map_or_else(String::new, |one| one.cipher.clone()),
            group: group.cloned().unwrap_or_default(),
            resumed: agreed.iter().filter(|one| one.resumed).map(|one| one.connections).sum(),
            agreed,
            early_data: EarlyDataRecord::new(&total.connections.early, early),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TcpRecord {
    pub retransmits: u64,
    /// Smoothed round-trip time at the end of the connections sampled.
    pub rtt_s: TimesRecord,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub sampled_share: f64,
}

impl TcpRecord {
    pub(crate) fn new(report: &RunReport) -> TcpRecord {
        let connections = &report.measurement.total.connections;
        TcpRecord {
            retransmits: connections.retransmits,
            rtt_s: TimesRecord::new(&connections.rtt),
            sampled_share: report.plan.measure.tcp_info_share,
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SessionsRecord {
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub dropped: u64,
    pub intended_per_s: Option<f64>,
}

impl SessionsRecord {
    pub(crate) fn new(sessions: &stats::Sessions, figures: &Figures) -> SessionsRecord {
        SessionsRecord {
            started: sessions.started,
            completed: sessions.completed,
            failed: sessions.failed,
            dropped: sessions.dropped,
            intended_per_s: figures.sessions_intended,
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ConnectionsRecord {
    pub attempted: u64,
    pub established: u64,
    pub closed: u64,
    pub peak: u64,
    /// Waits of calls for a stream of HTTP/2 or HTTP/3 because all streams of their connections
    /// were in use; calls that did not wait are not in it. Null without streams.
    #[serde(default)]
    pub stream_wait_s: Option<TimesRecord>,
}

impl ConnectionsRecord {
    pub(crate) fn new(measurement: &Measurement) -> ConnectionsRecord {
        let connections = &measurement.total.connections;
        let has_streams = !connections.http2.is_empty() || connections.http3.streams > 0;
        let waits = &connections.stream_wait;
        ConnectionsRecord {
            attempted: connections.attempted,
            established: connections.established,
            closed: connections.closed,
            peak: measurement.connections_peak,
            stream_wait_s: has_streams.then(|| TimesRecord::new(waits)),
        }
    }
}
