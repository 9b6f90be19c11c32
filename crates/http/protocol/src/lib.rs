//! Protocol state machines without I/O: HTTP/1.x, HTTP/3, field compression, gRPC and logins.
//!
//! Bytes and instants are arguments; nothing here opens a socket or reads a clock. HTTP/2 is a
//! separate crate, because it wraps a C library.
#![forbid(unsafe_code)]

pub mod grpc;
pub mod hpack;
pub mod http1;
pub mod http3;
pub mod login;
