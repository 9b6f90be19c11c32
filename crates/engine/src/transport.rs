//! The bytes below a connection's protocol: what waits to be sent, and the TLS session in between.

use conduit::{Io, IoError, Slot, TlsError, TlsSession};
use sample::TlsFacts;

#[derive(Debug, Default)]
pub(crate) struct Transport {
    /// Bytes for the socket, of which `out_at` are gone.
    out: Vec<u8>,
    out_at: usize,
    /// Plaintext that waits until the connection is established, or for TLS to encrypt it.
    held: Vec<u8>,
    tls: Option<Box<dyn TlsSession>>,
    /// What the protocol sends goes to the socket as it is: no TLS, no tunnel before it.
    direct: bool,
}

/// A buffer that has grown beyond this is given back when nobody works with it.
const BUFFER_KEPT_MAX: usize = 16 << 10;

/// What became of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// There was nothing to send.
    Nothing,
    /// The socket takes nothing now.
    Blocked,
    /// Some bytes were taken; `resumed`: some had been left over by the flush before, `whole`: none
    /// are left now.
    Taken { resumed: bool, whole: bool },
}

impl Transport {
    /// Ready for another connection; buffers keep their memory.
    pub(crate) fn renew(&mut self, direct: bool) {
        self.out.clear();
        self.out_at = 0;
        self.held.clear();
        self.tls = None;
        self.direct = direct;
    }

    /// Where the protocol writes what it has to say.
    #[inline]
    pub(crate) fn plaintext(&mut self) -> &mut Vec<u8> {
        if self.direct { &mut self.out } else { &mut self.held }
    }

    /// Sends bytes as they are, before TLS begins.
    pub(crate) fn send_bare(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Puts a TLS session on the connection and its first flight on the way.
    pub(crate) fn start_tls(&mut self, mut session: Box<dyn TlsSession>) {
        session.drain(&mut self.out);
        self.tls = Some(session);
    }

    /// Bytes wait for the socket.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.out_at < self.out.len()
    }

    /// Bytes wait for the socket or for TLS.
    pub(crate) fn has_output(&self) -> bool {
        !self.held.is_empty() || self.has_unsent()
    }

    /// Encrypted bytes wait for the socket.
    pub(crate) fn has_sealed(&self) -> bool {
        self.tls.is_some() && self.has_unsent()
    }

    /// Bytes of the protocol that neither the socket nor TLS has had.
    pub(crate) fn unsent_plaintext(&self) -> u64 {
        let count = if self.direct { self.out.len() - self.out_at } else { self.held.len() };
        count as u64
    }

    /// Nothing waits and nothing will be encrypted: of what is here only the memory is of use.
    pub(crate) fn is_plain(&self) -> bool {
        self.direct && !self.has_output()
    }

    /// Encrypts what was held back. Without TLS it stays where it is.
    #[inline]
    pub(crate) fn release(&mut self) {
        if !self.held.is_empty()
            && let Some(tls) = &mut self.tls
        {
            tls.send(&self.held);
            self.held.clear();
            tls.drain(&mut self.out);
        }
    }

    /// Sends what is held back as early data, all of it, if the session can; says whether it did.
    pub(crate) fn release_early(&mut self) -> bool {
        let Some(tls) = self.tls.as_mut().filter(|_| !self.held.is_empty()) else { return false };
        if !tls.send_early(&self.held) {
            return false;
        }
        self.held.clear();
        tls.drain(&mut self.out);
        true
    }

    /// Whether the server has read what was sent early.
    pub(crate) fn early_read(&self) -> Option<bool> {
        self.tls.as_ref()?.early_read()
    }

    /// Ciphertext in, plaintext out; what TLS has to say to it waits to be sent.
    pub(crate) fn decrypt(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let fed = tls.feed(bytes, plain);
        tls.drain(&mut self.out);
        fed
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.handshaking())
    }

    /// The peer's close_notify has been read.
    pub(crate) fn is_tls_closed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.closed())
    }

    pub(crate) fn tls_facts(&self) -> Option<TlsFacts> {
        self.tls.as_ref()?.facts()
    }

    /// Writes what waits, until all is gone or the socket takes no more.
    ///
    /// # Errors
    /// The first write failed. An error of a later one shows again, with its reason, when the
    /// connection is read.
    #[inline]
    pub(crate) fn flush<I: Io>(&mut self, io: &mut I, slot: Slot) -> Result<Flushed, IoError> {
        if !self.has_unsent() {
            return Ok(Flushed::Nothing);
        }
        let resumed = self.out_at > 0;
        match io.write(slot, &self.out[self.out_at..]) {
            Ok(count) => self.out_at += count,
            Err(IoError::WouldBlock) => return Ok(Flushed::Blocked),
            Err(error) => return Err(error),
        }
        while self.has_unsent() {
            match io.write(slot, &self.out[self.out_at..]) {
                Ok(count) => self.out_at += count,
                Err(_) => return Ok(Flushed::Taken { resumed, whole: false }),
            }
        }
        self.out.clear();
        self.out_at = 0;
        Ok(Flushed::Taken { resumed, whole: true })
    }

    /// Says goodbye in TLS: if the socket does not take it at once, the connection goes without.
    pub(crate) fn say_goodbye<I: Io>(&mut self, io: &mut I, slot: Slot) {
        if let Some(tls) = &mut self.tls {
            tls.close();
            tls.drain(&mut self.out);
            io.write(slot, &self.out[self.out_at..]).ok();
        }
    }

    /// The connection is closed, or at rest: keys go, and buffers of large requests; others keep their
    /// memory.
    pub(crate) fn close(&mut self) {
        self.tls = None;
        if self.out.capacity() > BUFFER_KEPT_MAX {
            self.out = Vec::new();
        }
        if self.held.capacity() > BUFFER_KEPT_MAX {
            self.held = Vec::new();
        }
    }
}
