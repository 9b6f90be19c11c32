//! HTTP/3 (RFC 9114), client side of one connection: requests in, pieces of streams out; pieces of
//! streams in, stream events out. Layer 2: no socket, no clock, no QUIC.
//!
//! The carrier of streams follows the contract of [`conduit::streams`]. Fields are compressed by
//! QPACK without a dynamic table (RFC 9204), which our side announces; requests are encoded once,
//! when they are rendered. Every list and buffer that a peer can grow is bounded. Pushes, which our
//! side does not permit, and everything that the standard forbids a server are refused with the
//! section.

mod control;
mod frame;

mod qpack;
mod request;
mod session;
mod stream;
pub mod varint;
mod violation;

pub use qpack::{
    DynamicTable, Malformed, TableSection, TableUse, USES_MAX, read_section, write_section,
};
pub use request::Coded;
pub use session::{Fed, GoneStream, Part, Session};
pub use stream::StreamFacts;
pub use violation::Violation;

/// The protocol's name in ALPN.
pub const ALPN: &str = "h3";

/// Error codes (RFC 9114 section 8.1).
pub mod code {
    pub const NO_ERROR: u64 = 0x100;
    pub(crate) const INTERNAL_ERROR: u64 = 0x102;
    pub(crate) const STREAM_CREATION_ERROR: u64 = 0x103;
    pub(crate) const CLOSED_CRITICAL_STREAM: u64 = 0x104;
    pub(crate) const FRAME_UNEXPECTED: u64 = 0x105;
    pub(crate) const FRAME_ERROR: u64 = 0x106;
    pub(crate) const EXCESSIVE_LOAD: u64 = 0x107;
    pub(crate) const ID_ERROR: u64 = 0x108;
    pub(crate) const SETTINGS_ERROR: u64 = 0x109;
    pub(crate) const MISSING_SETTINGS: u64 = 0x10a;
    pub const REQUEST_REJECTED: u64 = 0x10b;
    pub const REQUEST_CANCELLED: u64 = 0x10c;
    pub(crate) const MESSAGE_ERROR: u64 = 0x10e;
    /// RFC 9204 section 6.
    pub(crate) const DECOMPRESSION_FAILED: u64 = 0x200;
    pub(crate) const ENCODER_STREAM_ERROR: u64 = 0x201;
}

/// Settings and limits of our side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// Maximum size of one list of fields in bytes, names and values and 32 for each (RFC 9114
    /// section 4.2.2). A larger response is abandoned.
    pub section_max: u32,
    /// The fields of responses are kept, to be had when a response is done.
    pub keeps_heads: bool,
}

impl Default for SessionSettings {
    fn default() -> SessionSettings {
        SessionSettings { section_max: 64 << 10, keeps_heads: false }
    }
}

#[cfg(test)]
mod tests;
