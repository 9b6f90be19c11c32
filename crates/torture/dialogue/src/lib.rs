//! Conversations with a server, byte by byte: what is sent on a connection and when, the result,
//! and the governor that limits everything. Layer 2: sockets and the clock are parameters.
//!
//! It never uses a regular client: it sends exactly the bytes of a script, and its parser accepts
//! any bytes.
#![forbid(unsafe_code)]

pub mod calls;
pub mod front;
pub mod governor;
pub mod hello;
pub mod http2;
pub mod http3;
pub mod packets;
pub mod replies;
pub mod talk;
pub mod text;
