//! Sockets and TLS for the interfaces of `conduit`.

pub mod reactor;
pub mod tls;
