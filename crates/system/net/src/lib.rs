//! Sockets and TLS behind the interfaces of `conduit`.

pub mod reactor;
pub mod tls;
