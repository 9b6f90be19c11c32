//! HTTP/2 (RFC 9113), client side of one connection: requests in, bytes out; bytes in, stream
//! events out. Layer 2: no socket, no clock.
//!
//! The protocol is libnghttp2's. [`Session`] is a safe wrapper around one of its sessions; no panic
//! crosses into C, and every list and buffer that a peer can make grow has a bound.
#![deny(unsafe_code)]

mod callbacks;
mod code;
mod memory;
mod request;
mod session;
mod stream;

pub use code::section;
pub use request::{NotTranslated, Request};
pub use sample::http2_code_name as code_name;
pub use session::{Fed, Gone, Late, Part, Session, TUNNEL_QUEUE_MAX};
pub use stream::{ReleasedMessage, StreamFacts};

/// The bytes with which a client begins (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol's name in ALPN.
pub const ALPN: &str = "h2";

/// Bytes before each frame's payload (section 4.1).
const FRAME_HEADER: usize = 9;

/// Streams that may be open before the peer's SETTINGS arrive.
pub const STREAMS_AT_FIRST: u32 = 100;

/// The largest flow-control window (RFC 9113 section 6.9.1).
pub const WINDOW_MAX: u32 = (1 << 31) - 1;

/// Defaults of the standard (RFC 9113 section 6.5.2): the size of a table for fields in bytes, and
/// of a frame's payload.
const TABLE_AT_FIRST: u32 = 4_096;
const FRAME_AT_FIRST: u32 = 1 << 14;

/// Settings that our side announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// Receive window for a response's content, 0 to [`WINDOW_MAX`].
    pub stream_window: u32,
    /// Window for all responses of a connection together: at least 65,535, the initial value of the
    /// standard.
    pub connection_window: u32,
    /// Bytes of the table with which the peer may compress fields.
    pub header_table: u32,
    /// Size in bytes of the table with which our side compresses fields, if the peer permits it.
    pub encoder_table: u32,
    /// Maximum payload of a frame that the peer may send, 2^14 to 2^24 − 1 bytes.
    pub frame_max: u32,
    /// Maximum size of one list of fields in bytes, names and values and 32 for each (RFC 9113
    /// section 6.5.2). A larger response is reset.
    pub header_list_max: u32,
    /// Use the priorities of RFC 9218: announce it, and send the priority of each request with a
    /// field `priority` in a frame too, if the peer supports it.
    pub prioritises: bool,
    /// The fields of responses are kept, to be had when a response is done.
    pub keeps_heads: bool,
}

impl Default for SessionSettings {
    /// Windows so large that they do not limit a transfer: a load test must find those of the
    /// server.
    fn default() -> SessionSettings {
        SessionSettings {
            stream_window: (1 << 30) - 1,
            connection_window: (1 << 30) - 1,
            header_table: TABLE_AT_FIRST,
            encoder_table: TABLE_AT_FIRST,
            frame_max: FRAME_AT_FIRST,
            header_list_max: 64 << 10,
            prioritises: false,
            keeps_heads: false,
        }
    }
}

#[cfg(test)]
mod tests;
