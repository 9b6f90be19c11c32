//! The contracts between the pure worker and the world. Two drivers keep them: `reactor` (sockets
//! and the monotonic clock) and `sim` (virtual time). Layer 1: traits and plain data only.
#![forbid(unsafe_code)]

mod borrowed;
pub mod streams;

use sample::{FailureClass, QuicEnd, SocketFacts, TlsFacts};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use units::Nanos;

/// Bytes of a buffer for [`Io::take`]: a packet of 64 KiB with all heads has room in it, behind some short ones.
pub const READ_SIZE: usize = (68 << 10) + 512;

/// A worker's own number for a connection; the driver maps it to whatever it holds.
pub type Slot = u32;

/// Where a connection goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// Datagrams to and from one address. They are sent and received by [`Io::send`] and
    /// [`Io::receive`].
    Udp(SocketAddr),
    /// A QUIC connection, to a server whose certificate is for `name`. What passes over it is
    /// [`streams`].
    Quic {
        address: SocketAddr,
        name: String,
    },
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Tcp(address) => address.fmt(f),
            Peer::Unix(path) => path.display().fmt(f),
            Peer::Udp(address) | Peer::Quic { address, .. } => write!(f, "{address} (UDP)"),
        }
    }
}

impl Peer {
    /// The address, where it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Peer::Tcp(address) | Peer::Udp(address) | Peer::Quic { address, .. } => Some(*address),
            Peer::Unix(_) => None,
        }
    }
}

/// How a connection is to be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Local address to bind to.
    pub bind: Option<IpAddr>,
    /// Local port, used again although a connection of before still lingers there; the kernel's
    /// choice when `None`.
    pub port: Option<u16>,
    pub nodelay: bool,
    /// Bytes; the kernel's default when `None`.
    pub send_buffer: Option<u32>,
    pub recv_buffer: Option<u32>,
    /// Requests may go out before the handshake is over, where the transport shakes hands itself.
    pub early: bool,
    /// The user whose TLS sessions it resumes, where the handshake is the connection's own (QUIC) and each
    /// user has sessions of its own.
    pub user: Option<u64>,
    /// Of QUIC: no connection is made; what is said and read is datagrams, as [`streams`] has them.
    pub bare: bool,
    /// Of QUIC: the connection is made by hand, so that packets of the worker's making can go among its own. What is
    /// odd about its handshake is as [`streams::PieceKind::Shake`] has it; nothing is where it is empty.
    pub by_hand: Option<Vec<u8>>,
}

/// How a connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// FIN: the orderly end.
    Orderly,
    /// RST: SO_LINGER of zero, so that no TIME_WAIT is left.
    Reset,
}

/// Why an operation did not do all it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoError {
    /// Not now; a [`Ready`] event will follow.
    WouldBlock,
    /// The connection is no more.
    Failed(FailureClass),
}

/// A connection may make progress. Edge-triggered: said once until an operation would block again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    pub slot: Slot,
    /// Bytes, the end of the stream or an error can be read.
    pub readable: bool,
    /// A pending connect is decided, or a write that would have blocked can go on.
    pub writable: bool,
    /// The peer has ended its side, or the connection broke: read until that shows, because no
    /// further event will tell.
    pub ended: bool,
}

/// The world as one worker sees it. Every call concerns the worker's own connections only.
///
/// Contract: after `open`, the worker may `write` at once. `write` on a connection whose connect is
/// still pending answers `WouldBlock` and is followed by a writable event, or by `Failed`. `read` of
/// `Ok(0)` is the end of the stream; a `read` or `take` shorter than the buffer has drained the socket. After
/// `close` no event for that slot is reported until it is opened again.
pub trait Io {
    /// The monotonic clock.
    fn now(&mut self) -> Nanos;

    /// Starts a connection. `Err` when not even that could be done (descriptors, ports).
    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError>;

    /// Hands bytes over; says how many were taken (at least one). Without bytes it tells whether the
    /// connection stays open.
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError>;

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError>;

    /// As `read`, and says where in `buffer` the bytes are. A driver that has them in a buffer of its own, as long
    /// as this one at least, may put that in its place, so that nobody copies them.
    fn take(&mut self, slot: Slot, buffer: &mut Box<[u8]>) -> Result<Range<usize>, IoError> {
        self.read(slot, buffer).map(|count| 0..count)
    }

    /// Hands datagrams over, all of `each` bytes but the last, which may be shorter; says how many bytes
    /// were taken, whole datagrams.
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

    /// Takes datagrams in, as many as there are of one size: says how many bytes in all, and how many
    /// each of them has; the last may be shorter.
    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<(usize, usize), IoError> {
        self.read(slot, buffer).map(|count| (count, count))
    }

    fn close(&mut self, slot: Slot, how: Close);

    /// Ends our sending side (FIN) and goes on reading; nothing can be written any more.
    fn shut(&mut self, slot: Slot);

    /// Sends one byte as urgent data (RFC 9293 section 3.8.5), which most servers never see. Nothing
    /// where there is no such thing.
    fn urgent(&mut self, _slot: Slot, _byte: u8) {}

    /// TCP_INFO and the like; `None` where there is no such thing.
    fn facts(&mut self, slot: Slot) -> Option<SocketFacts>;

    /// What QUIC knows of a connection, while it is open; `None` where it is none of QUIC's.
    fn quic(&mut self, _slot: Slot) -> Option<QuicEnd> {
        None
    }

    /// What there is to say of the failure that the last call for this slot told, in the system's own words or
    /// in QUIC's; `None` where nobody knows more than its class. To be asked before the slot is closed.
    fn why(&mut self, _slot: Slot) -> Option<String> {
        None
    }

    /// Waits until something is ready or `until` has come, whichever is first; may return early
    /// with nothing. Clears `ready`, then fills it.
    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>);

    /// Time spent spinning in `wait` since the start: burnt on purpose, not by work.
    fn spin(&self) -> Nanos {
        Nanos::ZERO
    }
}

/// Why a TLS session failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// `Certificate` or `Tls`.
    pub class: FailureClass,
    /// What the library said, for the log.
    pub text: String,
    /// What to do about it, where more is known than the class tells: a sentence.
    pub way_out: Option<&'static str>,
}

/// One TLS session without I/O: bytes in, bytes out.
pub trait TlsSession: std::fmt::Debug + Send {
    /// Takes all of `ciphertext` in and appends what it decrypts to `plaintext`. Answers to the
    /// handshake wait in [`TlsSession::drain`]. An alert or a broken record is an error.
    fn feed(&mut self, ciphertext: &[u8], plaintext: &mut Vec<u8>) -> Result<(), TlsError>;

    /// Encrypts `plaintext`, or holds it until the handshake is over.
    fn send(&mut self, plaintext: &[u8]);

    /// Sends `plaintext` before the handshake is over (0-RTT, RFC 8446 section 2.3); what the server will
    /// not read is sent again when it is. Says whether that was done, of all of it or of nothing: only a
    /// session that is resumed can, as far as the server's ticket allows, and where it was asked for.
    fn send_early(&mut self, _plaintext: &[u8]) -> bool {
        false
    }

    /// Whether the server has read what was sent early; `None`: nothing was, or the handshake is not over.
    fn early_read(&self) -> Option<bool> {
        None
    }

    /// Appends to `out` whatever is waiting to go over the wire.
    fn drain(&mut self, out: &mut Vec<u8>);

    fn handshaking(&self) -> bool;

    /// True once the peer's close_notify has been read.
    fn closed(&self) -> bool;

    /// Queues our own close_notify.
    fn close(&mut self);

    /// What was agreed on; `None` while shaking hands.
    fn facts(&self) -> Option<TlsFacts>;

    /// The verify_data of our own Finished message (RFC 5246 section 7.4.9): who asks for a new
    /// handshake within this one has to repeat it (RFC 5746 section 3.5). `None` while shaking hands,
    /// and for sessions that are not laid open.
    fn finished(&self) -> Option<Vec<u8>> {
        None
    }

    /// Encrypts a fragment as one record of this type (RFC 5246 section 6.2.1), whatever it is. Says
    /// whether it was done: only a session that is laid open does it, and only after its handshake.
    fn send_record(&mut self, _kind: u8, _fragment: &[u8]) -> bool {
        false
    }
}

/// Makes sessions; one per worker, so that it need not be shared between threads.
pub trait TlsFactory {
    /// A new client session for `server_name` (SNI and certificate check).
    ///
    /// # Errors
    /// A name that is neither a DNS name nor an address.
    fn session(&mut self, server_name: &str) -> Result<Box<dyn TlsSession>, TlsError>;

    /// The same for a user who resumes its own sessions and nobody else's.
    ///
    /// # Errors
    /// As [`TlsFactory::session`].
    fn session_of(
        &mut self,
        server_name: &str,
        _user: u64,
    ) -> Result<Box<dyn TlsSession>, TlsError> {
        self.session(server_name)
    }

    /// A new client session that is laid open, of TLS 1.2 alone: once the handshake is over, `feed`
    /// appends every record whole, decrypted behind its header of five bytes, whatever its type.
    ///
    /// # Errors
    /// A name that is neither a DNS name nor an address; a factory that makes no such sessions.
    fn laid_open(&mut self, server_name: &str) -> Result<Box<dyn TlsSession>, TlsError> {
        Err(TlsError {
            class: FailureClass::Tls,
            text: format!("no session with {server_name} can be laid open here"),
            way_out: None,
        })
    }
}
