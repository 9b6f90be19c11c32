//! Transport settings of our side.

use crate::wire::number;
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{TransportConfig, VarInt};
use std::time::Duration;

/// The limits of our side for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes of one stream in flight.
    pub stream_window: u32,
    /// Window for all streams of a connection.
    pub connection_window: u32,
    /// Search for the largest datagram that the path accepts (RFC 9000 section 14.3), starting at
    /// 1,200 bytes. It initially takes two large datagrams and as many acknowledgments, which pays
    /// for uploads.
    pub search_mtu: bool,
    /// Idle connections are kept open by PING frames (RFC 9000 section 10.1.2), as RFC 9114 section
    /// 5.1 expects of a client whose responses are outstanding.
    pub keeps_alive: bool,
}

impl Default for Limits {
    /// Returns windows so large that they are not limits: a load test must find those of the
    /// server.
    fn default() -> Limits {
        let window = (1 << 30) - 1;
        Limits {
            stream_window: window,
            connection_window: window,
            search_mtu: true,
            keeps_alive: false,
        }
    }
}

/// Number of unidirectional streams that a server may open: HTTP/3 has three (RFC 9114 section 6.2
/// requires room for at least those), the rest is for unknown types.
const UNI_MAX: u32 = 16;

/// Maximum number of unacknowledged bytes. Further data waits on our side.
const SEND_WINDOW: u64 = 64 << 20;

/// Interval between PING frames: servers commonly close connections that are idle for 30 s.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

pub(crate) fn config(limits: &Limits) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_MAX))
        // the test measures the server's limit
        .max_idle_timeout(None)
        .stream_receive_window(VarInt::from_u32(limits.stream_window))
        .receive_window(VarInt::from_u32(limits.connection_window))
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None);
    if limits.keeps_alive {
        config.keep_alive_interval(Some(KEEP_ALIVE));
    }
    if !limits.search_mtu {
        config.mtu_discovery_config(None);
    }
    config
}

/// Returns the value of a transport parameter (RFC 9000 section 18).
pub(crate) fn parameter(known: &TransportParameters, wanted: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    known.write(&mut bytes);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (id, used) = number(rest)?;
        rest = &rest[used..];
        let (length, used) = number(rest)?;
        let (value, others) = rest[used..].split_at_checked(usize::try_from(length).ok()?)?;
        if id == wanted {
            return Some(value.to_vec());
        }
        rest = others;
    }
    None
}

/// Returns a parameter as an integer; 0 if absent.
pub(crate) fn number_of_parameter(known: &TransportParameters, wanted: u64) -> u64 {
    let value = parameter(known, wanted).and_then(|value| number(&value));
    value.map_or(0, |(value, _)| value)
}
