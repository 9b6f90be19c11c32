//! HTTP/3 by hand (RFC 9114): frames and field sections as bytes, whether they may be sent or not. On a
//! connection they go in pieces of streams, as [`conduit::streams`] has them; QUIC below is a library's, so
//! that packets are always right and what is on the streams need not be.

pub mod write;

/// Types of frames (RFC 9114 section 7.2).
pub const DATA: u64 = 0x0;
pub const HEADERS: u64 = 0x1;
pub const SETTINGS: u64 = 0x4;
pub const GOAWAY: u64 = 0x7;

/// Types of frames by their names; those of HTTP/2 alone are reserved here (section 7.2.8).
pub const KINDS: [(&str, u64); 12] = [
    ("DATA", DATA),
    ("HEADERS", HEADERS),
    ("PRIORITY", 0x2),
    ("CANCEL_PUSH", 0x3),
    ("SETTINGS", SETTINGS),
    ("PUSH_PROMISE", 0x5),
    ("PING", 0x6),
    ("GOAWAY", GOAWAY),
    ("WINDOW_UPDATE", 0x8),
    ("CONTINUATION", 0x9),
    ("MAX_PUSH_ID", 0xd),
    ("PRIORITY_UPDATE", 0xf_0700),
];

/// Types of streams in one direction (RFC 9114 section 6.2, RFC 9204 section 4.2).
pub const CONTROL: u64 = 0x0;
pub const ENCODER: u64 = 0x2;
pub const DECODER: u64 = 0x3;

/// Our first streams in one direction (RFC 9000 section 2.1): what a polite client opens.
pub const CONTROL_STREAM: u64 = 2;
pub const ENCODER_STREAM: u64 = 6;
pub const DECODER_STREAM: u64 = 10;

/// The stream of the valid request that follows a case; cases use smaller ones.
pub const FOLLOW_UP_STREAM: u64 = 16;
