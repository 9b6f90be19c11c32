//! The interfaces between the pure worker and its environment. Two drivers implement them:
//! `reactor` (sockets and the monotonic clock) and `sim` (virtual time). Layer 1: traits and plain
//! data only.
#![forbid(unsafe_code)]

mod borrowed;
pub mod streams;

use sample::{FailureClass, QuicEnd, SocketFacts, TlsFacts};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use units::Nanos;

/// Size of a buffer for [`Io::take`]: room for a packet of 64 KiB with all headers after a few
/// short ones.
pub const READ_SIZE: usize = (68 << 10) + 512;

/// A worker's own number for a connection, which the driver maps to its own object.
pub type Slot = u32;

/// Destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// Datagrams to and from one address, sent and received by [`Io::send`] and [`Io::receive`].
    Udp(SocketAddr),
    /// A QUIC connection to a server whose certificate is for `name`. It carries [`streams`].
    Quic {
        address: SocketAddr,
        name: String,
    },
    /// A stream of a connection to `to` that several WebSockets share: HTTP/3 over QUIC (RFC 9220),
    /// HTTP/2 otherwise (RFC 8441).
    Tunnel {
        to: Box<Peer>,
        /// The server's name for TLS; `None`: no TLS, or QUIC, which has its own.
        name: Option<String>,
    },
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Tcp(address) => address.fmt(f),
            Peer::Unix(path) => path.display().fmt(f),
            Peer::Udp(address) | Peer::Quic { address, .. } => write!(f, "{address} (UDP)"),
            Peer::Tunnel { to, .. } => to.fmt(f),
        }
    }
}

impl Peer {
    /// Returns whether its connection is one of QUIC.
    pub fn is_over_quic(&self) -> bool {
        match self {
            Peer::Quic { .. } => true,
            Peer::Tunnel { to, .. } => to.is_over_quic(),
            Peer::Tcp(_) | Peer::Udp(_) | Peer::Unix(_) => false,
        }
    }

    /// Returns the address, if the slot has one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Peer::Tcp(address) | Peer::Udp(address) | Peer::Quic { address, .. } => Some(*address),
            Peer::Unix(_) => None,
            Peer::Tunnel { to, .. } => to.address(),
        }
    }
}

/// Options for opening a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Local address to bind to.
    pub bind: Option<IpAddr>,
    /// Local port, even if an earlier connection still lingers on it; `None` if the kernel chooses.
    pub port: Option<u16>,
    pub nodelay: bool,
    /// Size in bytes; `None` for the kernel's default.
    pub send_buffer: Option<u32>,
    pub recv_buffer: Option<u32>,
    /// True if requests may be sent before the handshake completes, if the transport performs the
    /// handshake itself.
    pub early: bool,
    /// The user whose TLS sessions are resumed, if the transport performs the handshake (QUIC) and
    /// each user has its own sessions.
    pub user: Option<u64>,
    /// QUIC: no connection is established; datagrams are sent and received, as defined in
    /// [`streams`].
    pub bare: bool,
    /// For QUIC: makes a crafted connection, among whose packets the worker can send its own. The
    /// bytes describe deviations of the handshake, as in [`streams::PieceKind::Shake`]; empty for a
    /// usual connection.
    pub by_hand: Option<Vec<u8>>,
}

/// Options for closing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// FIN: an orderly close.
    Orderly,
    /// RST: SO_LINGER of zero, so that no TIME_WAIT is left.
    Reset,
}

/// Reason why an operation was not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoError {
    /// Not now; a [`Ready`] event will follow.
    WouldBlock,
    /// The connection no longer exists.
    Failed(FailureClass),
}

/// A connection may make progress. Edge-triggered: reported once until an operation would block
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    pub slot: Slot,
    /// Bytes, the end of the stream or an error can be read.
    pub readable: bool,
    /// A pending connect is decided, or a write that would have blocked can continue.
    pub writable: bool,
    /// The peer has closed its side, or the connection broke: read until that shows, because no
    /// further event will report it.
    pub ended: bool,
}

/// Environment of one worker. Every call concerns only the worker's own connections.
///
/// Contract: after `open`, the worker may `write` at once. `write` on a connection whose connect is
/// still pending returns `WouldBlock` and is followed by a writable event, or by `Failed`. `read`
/// of `Ok(0)` is the end of the stream; a `read` or `take` shorter than the buffer has drained the
/// socket. After `close` no event for that slot is reported until it is opened again.
pub trait Io {
    /// Returns the current time of the monotonic clock.
    fn now(&mut self) -> Nanos;

    /// Starts a connection. `Err` when not even that could be done (descriptors, ports).
    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError>;

    /// Writes bytes; returns how many were accepted (at least one). Without bytes, checks whether
    /// the connection is open.
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError>;

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError>;

    /// Reads like `read`, and returns where in `buffer` the bytes are. A driver that has them in
    /// its own buffer, at least as long as this one, may swap the buffers instead of copying.
    fn take(&mut self, slot: Slot, buffer: &mut Box<[u8]>) -> Result<Range<usize>, IoError> {
        self.read(slot, buffer).map(|count| 0..count)
    }

    /// Sends datagrams, all of `each` bytes except the last, which may be shorter; returns the
    /// accepted bytes, in whole datagrams.
    fn send(&mut self, slot: Slot, datagrams: &[u8], each: usize) -> Result<usize, IoError> {
        let mut taken = 0;
        for datagram in datagrams.chunks(each.max(1)) {
            match self.write(slot, datagram) {
                Ok(count) => taken += count,
                Err(_) if taken > 0 => return Ok(taken),
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// Receives datagrams of one size; returns the total number of bytes and the size of each; the
    /// last may be shorter.
    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<(usize, usize), IoError> {
        self.read(slot, buffer).map(|count| (count, count))
    }

    fn close(&mut self, slot: Slot, how: Close);

    /// Closes our sending side (FIN); reading continues, writing is no longer possible.
    fn shutdown_write(&mut self, slot: Slot);

    /// Sends one byte as urgent data (RFC 9293 section 3.8.5), which most servers never see. Does
    /// nothing if the transport has no urgent data.
    fn send_urgent(&mut self, _slot: Slot, _byte: u8) {}

    /// Returns TCP_INFO and similar facts; `None` if the transport has none.
    fn facts(&mut self, slot: Slot) -> Option<SocketFacts>;

    /// Returns QUIC's state of an open connection; `None` for other transports.
    fn quic(&mut self, _slot: Slot) -> Option<QuicEnd> {
        None
    }

    /// Returns how many written bytes of a stream wait for the peer's credit, if the connection
    /// carries [`streams`].
    fn unsent(&mut self, _slot: Slot, _stream: u64) -> usize {
        0
    }

    /// Returns the number of connections opened since the last call that carry the connections of
    /// the worker, if several share one.
    fn carriers(&mut self) -> u64 {
        0
    }

    /// Returns the description of the failure that the last call for this slot reported, by the
    /// system or QUIC; `None` if only its class is known. Must be called before the slot is closed.
    fn failure_text(&mut self, _slot: Slot) -> Option<String> {
        None
    }

    /// Waits until something is ready or until `until`; may return early with an empty list. Clears
    /// `ready`, then fills it.
    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>);

    /// Returns the time spent spinning in `wait` since the start: burnt on purpose, not by work.
    fn spin(&self) -> Nanos {
        Nanos::ZERO
    }
}

/// Reason why a TLS session failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// `Certificate` or `Tls`.
    pub class: FailureClass,
    /// The library's message, for the log.
    pub text: String,
    /// Hint, if more is known than the class: a sentence.
    pub fix_text: Option<&'static str>,
}

/// One TLS session without I/O: bytes in, bytes out.
pub trait TlsSession: std::fmt::Debug + Send {
    /// Consumes all of `ciphertext` and appends the decrypted bytes to `plaintext`. Replies of the
    /// handshake wait in [`TlsSession::drain`]. An alert or a broken record is an error.
    fn feed(&mut self, ciphertext: &[u8], plaintext: &mut Vec<u8>) -> Result<(), TlsError>;

    /// Encrypts `plaintext`, or holds it until the handshake is over.
    fn send(&mut self, plaintext: &[u8]);

    /// Sends `plaintext` before the handshake completes (0-RTT, RFC 8446 section 2.3); data that
    /// the server rejects is resent afterwards. Returns whether all of it was sent (otherwise
    /// none): only a resumed session can, within the limits of the server's ticket, and only if
    /// requested.
    fn send_early(&mut self, _plaintext: &[u8]) -> bool {
        false
    }

    /// Returns whether the server accepted early data; `None` if there was none, or the handshake
    /// is not complete.
    fn early_read(&self) -> Option<bool> {
        None
    }

    /// Appends to `out` the bytes that wait to be sent.
    fn drain(&mut self, out: &mut Vec<u8>);

    fn handshaking(&self) -> bool;

    /// Returns whether the peer's close_notify has been read.
    fn closed(&self) -> bool;

    /// Queues our own close_notify.
    fn close(&mut self);

    /// Returns negotiated parameters; `None` during the handshake.
    fn facts(&self) -> Option<TlsFacts>;

    /// Returns the verify_data of our own Finished message (RFC 5246 section 7.4.9): renegotiation
    /// must repeat it (RFC 5746 section 3.5). `None` during the handshake, and for sessions without
    /// exposed keys.
    fn finished(&self) -> Option<Vec<u8>> {
        None
    }

    /// Encrypts a fragment as one record of any type (RFC 5246 section 6.2.1). Returns whether that
    /// was possible: only a session with exposed keys can, after its handshake.
    fn send_record(&mut self, _kind: u8, _fragment: &[u8]) -> bool {
        false
    }
}

/// Creates sessions; one per worker, so that it need not be shared between threads.
pub trait TlsFactory {
    /// Returns a new client session for `server_name` (SNI and certificate check).
    ///
    /// # Errors
    /// Fails if the name is neither a DNS name nor an address.
    fn session(&mut self, server_name: &str) -> Result<Box<dyn TlsSession>, TlsError>;

    /// Creates a session for a user that resumes only its own sessions.
    ///
    /// # Errors
    /// Fails like [`TlsFactory::session`].
    fn session_of(
        &mut self,
        server_name: &str,
        _user: u64,
    ) -> Result<Box<dyn TlsSession>, TlsError> {
        self.session(server_name)
    }

    /// Creates a client session that offers these protocols by ALPN, instead of those of the
    /// settings.
    ///
    /// # Errors
    /// Fails like [`TlsFactory::session`].
    fn session_offering(
        &mut self,
        server_name: &str,
        _protocols: &[&str],
    ) -> Result<Box<dyn TlsSession>, TlsError> {
        self.session(server_name)
    }

    /// Creates a client session with exposed keys, TLS 1.2 only: after the handshake, `feed`
    /// appends every complete record, decrypted, with its five-byte header, regardless of its type.
    ///
    /// # Errors
    /// Fails if the name is neither a DNS name nor an address, or the factory makes no such
    /// sessions.
    fn exposed_keys(&mut self, server_name: &str) -> Result<Box<dyn TlsSession>, TlsError> {
        Err(TlsError {
            class: FailureClass::Tls,
            text: format!("no session with {server_name} can export its keys here"),
            fix_text: None,
        })
    }
}
