//! WebSocket (RFC 6455) with permessage-deflate (RFC 7692), client and server side, without I/O.
//!
//! Bytes are read from and written to buffers that the caller owns; nothing here opens a socket,
//! reads a clock or draws a random number. [`handshake`] makes and checks the HTTP/1.1 upgrade,
//! [`WebSocket`] is one open connection, [`frame`] is the layer below for callers that write frames
//! themselves. WebSocket over HTTP/2 and HTTP/3 has another handshake and the same [`WebSocket`].
#![forbid(unsafe_code)]

pub mod close;
pub mod deflate;
pub mod frame;
pub mod handshake;
mod mask;
mod socket;
pub mod utf8;

pub use mask::{Masking, apply_mask};
pub use socket::{
    MessageLimits, Payload, Received, Side, SocketEvent, SocketOptions, Violation, WebSocket,
};
