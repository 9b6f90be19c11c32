//! TLS for the worker: rustls as [`conduit::TlsSession`] and [`conduit::TlsFactory`].
//!
//! Bytes in, bytes out, without sockets. A [`Client`] is created from the plan and checked once;
//! each worker creates its own [`Factory`] from it, so threads share no lock and no ticket. Early
//! data is sent only if the plan requests it, because a server may process it twice. Not supported:
//! renegotiation, anything below TLS 1.2. A session with exposed keys may request a new handshake
//! to see it refused; it completes none.

mod client;
mod error;
mod key_bits;
mod names;
mod open;
mod pem;
mod roots;
mod session;
mod tickets;
mod verify;

pub use client::{Client, Factory};
pub use error::{FileRole, SetupError};
pub use session::ClientSession;

/// Protocol versions offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// 1.2 and 1.3.
    #[default]
    Any,
    Tls12,
    Tls13,
}

/// TLS settings of the plan. Files are passed as read; this crate opens none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// True to accept any certificate. The handshake's signatures are still checked, so that a
    /// server with a broken key is not mistaken for a working one.
    pub insecure: bool,
    /// PEM: certificates trusted instead of the system's.
    pub ca: Option<Vec<u8>>,
    /// True to trust the system's certificates in addition to `ca`.
    pub system_ca_too: bool,
    /// PEM: our certificate with its chain, sent when the server asks.
    pub cert: Option<Vec<u8>>,
    /// Key that belongs to `cert`, as PEM; `None` if `cert` contains it.
    pub key: Option<Vec<u8>>,
    /// True to resume sessions, within one worker.
    pub resumption: bool,
    /// True to permit requests in the first flight of a resumed handshake (0-RTT).
    pub early_data: bool,
    /// Factories also create sessions with exposed keys.
    pub exposed_keys: bool,
    /// True to send no SNI.
    pub nameless: bool,
    pub versions: Versions,
    /// Protocols offered by ALPN (RFC 7301), the preferred first; empty: the extension is not sent.
    pub alpn: Vec<String>,
    /// Key-exchange groups, the preferred first; empty: the library's choice.
    pub groups: Vec<String>,
    /// Cipher suites in order of preference, by the names of rustls, IANA or OpenSSL; one list for
    /// both versions; empty for the library's choice.
    pub ciphers: Vec<String>,
}

impl std::fmt::Debug for Settings {
    /// Formats without file contents: one of them is a private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("insecure", &self.insecure)
            .field("ca", &self.ca.is_some())
            .field("system_ca_too", &self.system_ca_too)
            .field("cert", &self.cert.is_some())
            .field("key", &self.key.is_some())
            .field("resumption", &self.resumption)
            .field("early_data", &self.early_data)
            .field("exposed_keys", &self.exposed_keys)
            .field("nameless", &self.nameless)
            .field("versions", &self.versions)
            .field("alpn", &self.alpn)
            .field("groups", &self.groups)
            .field("ciphers", &self.ciphers)
            .finish()
    }
}

#[cfg(test)]
mod tests;
