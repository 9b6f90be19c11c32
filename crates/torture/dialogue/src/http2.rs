//! HTTP/2 by hand (RFC 9113): valid or invalid frames as bytes, and a parser of all received
//! frames. A library would refuse to send most test cases.

mod block;
mod read;
mod windows;
pub mod write;

pub use read::{FRAMES_MAX, FrameReader, FrameSeen};
pub(crate) use read::{Got, OWED_MAX};

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    #[default]
    Http1,
    /// HTTP/2 as a well-behaved client uses it: SETTINGS are acknowledged and PING answered on
    /// arrival, and DATA waits for the server's windows.
    Http2,
    /// HTTP/2 with exactly the bytes of the script.
    Http2Raw,
    /// HTTP/3, where a client need not reply to anything: pieces of streams are sent and read.
    Http3,
    /// QUIC datagrams without a connection.
    Datagrams,
}

impl Protocol {
    pub fn is_http2(self) -> bool {
        matches!(self, Protocol::Http2 | Protocol::Http2Raw)
    }

    pub fn is_http3(self) -> bool {
        matches!(self, Protocol::Http3 | Protocol::Datagrams)
    }

    /// Returns the HTTP version, as options name it.
    pub fn version(self) -> &'static str {
        match self {
            Protocol::Http1 => "1.1",
            Protocol::Http2 | Protocol::Http2Raw => "2",
            Protocol::Http3 | Protocol::Datagrams => "3",
        }
    }

    /// Returns whether data is sent and parsed as frames.
    pub fn has_frames(self) -> bool {
        self != Protocol::Http1
    }
}

/// The first bytes of a connection (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Size of a frame header in bytes.
pub const FRAME_HEAD: usize = 9;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// Types of frames by their names (RFC 9113 section 6, RFC 9218 section 7.1).
pub const KINDS: [(&str, u8); 11] = [
    ("DATA", DATA),
    ("HEADERS", HEADERS),
    ("PRIORITY", PRIORITY),
    ("RST_STREAM", RST_STREAM),
    ("SETTINGS", SETTINGS),
    ("PUSH_PROMISE", PUSH_PROMISE),
    ("PING", PING),
    ("GOAWAY", GOAWAY),
    ("WINDOW_UPDATE", WINDOW_UPDATE),
    ("CONTINUATION", CONTINUATION),
    ("PRIORITY_UPDATE", 16),
];

pub const ACK: u8 = 0x1;
pub const END_STREAM: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const PRIORITIZED: u8 = 0x20;

/// Flags by their names (RFC 9113 section 6).
pub const FLAGS: [(&str, u8); 5] = [
    ("ACK", ACK),
    ("END_STREAM", END_STREAM),
    ("END_HEADERS", END_HEADERS),
    ("PADDED", PADDED),
    ("PRIORITY", PRIORITIZED),
];

/// Payload of the PING whose reply shows that everything before it was read.
pub const OCTETS: [u8; 8] = *b"lodstone";

/// Stream of the WebSocket of a conversation (RFC 8441).
pub const SOCKET: u32 = 1;

/// Stream of the valid follow-up request; cases use lower ones.
pub const FOLLOW_UP: u32 = 0x10_0001;
