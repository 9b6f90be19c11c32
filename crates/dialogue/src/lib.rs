//! Conversations with a server, byte by byte: what is said on a connection and when, what came of
//! it, and the governor that bounds all of it. Layer 2: sockets and the clock are handed in.
//!
//! It never uses a well-behaved client: what it sends is what a script says, and what comes back is
//! read by a reader of its own that expects anything.
#![forbid(unsafe_code)]

pub mod front;
pub mod governor;
pub mod hello;
pub mod http2;
pub mod http3;
pub mod packets;
pub mod replies;
pub mod talk;
pub mod text;
