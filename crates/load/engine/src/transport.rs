//! The bytes below a connection's protocol: unsent data, and the TLS session in between.

use conduit::{Io, IoError, Slot, TlsError, TlsSession};
use sample::TlsFacts;

#[derive(Debug, Default)]
pub(crate) struct Transport {
    /// Output for the socket; `out_at` bytes of it have been written.
    out: Vec<u8>,
    out_at: usize,
    /// Plaintext that waits until the connection is established, or for TLS to encrypt it.
    held: Vec<u8>,
    /// Number of plaintext bytes that TLS has encrypted since `out` was last empty. They count as
    /// unsent while no byte of `out` is sent.
    sealed: usize,
    tls: Option<Box<dyn TlsSession>>,
    /// True if the protocol's output goes to the socket unchanged: no TLS, and no tunnel before it.
    direct: bool,
}

/// A larger buffer is freed when idle.
const BUFFER_KEPT_MAX: usize = 16 << 10;

/// Result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// There were no bytes to send.
    Nothing,
    /// The socket accepts no bytes now.
    Blocked,
    /// Some bytes were accepted; `resumed`: some of them were left over from the previous flush,
    /// `whole`: no bytes are left.
    Taken { resumed: bool, whole: bool },
}

impl Transport {
    /// Resets for another connection; buffers keep their memory.
    pub(crate) fn renew(&mut self, direct: bool) {
        self.out.clear();
        self.out_at = 0;
        self.held.clear();
        self.sealed = 0;
        self.tls = None;
        self.direct = direct;
    }

    /// Returns the output buffer of the protocol.
    #[inline]
    pub(crate) fn plaintext(&mut self) -> &mut Vec<u8> {
        if self.direct { &mut self.out } else { &mut self.held }
    }

    /// Sends bytes unencrypted, before TLS begins.
    pub(crate) fn send_bare(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Adds a TLS session to the connection and sends its first flight.
    pub(crate) fn start_tls(&mut self, mut session: Box<dyn TlsSession>) {
        session.drain(&mut self.out);
        self.tls = Some(session);
    }

    /// Returns whether bytes wait for the socket.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.out_at < self.out.len()
    }

    /// Returns whether bytes wait for the socket or for TLS.
    pub(crate) fn has_output(&self) -> bool {
        !self.held.is_empty() || self.has_unsent()
    }

    /// Returns the number of unsent bytes of the protocol; reported once, because the connection
    /// ends. Once the socket has accepted any TLS data, the accepted part is unknown: everything
    /// counts as sent.
    pub(crate) fn take_unsent(&mut self) -> u64 {
        if self.direct {
            let count = self.out.len() - self.out_at;
            self.out.truncate(self.out_at);
            return count as u64;
        }
        let sealed = std::mem::take(&mut self.sealed);
        let count = self.held.len() + if self.out_at == 0 { sealed } else { 0 };
        self.held.clear();
        count as u64
    }

    /// Returns whether no bytes are queued and none will be encrypted: only the memory is still
    /// needed.
    pub(crate) fn is_plain(&self) -> bool {
        self.direct && !self.has_output()
    }

    /// Releases held data to TLS. Without TLS it stays unchanged.
    #[inline]
    pub(crate) fn release(&mut self) {
        if !self.held.is_empty()
            && let Some(tls) = &mut self.tls
        {
            tls.send(&self.held);
            self.sealed += self.held.len();
            self.held.clear();
            tls.drain(&mut self.out);
        }
    }

    /// Sends all held data as early data, if the session can; returns whether it did.
    pub(crate) fn release_early(&mut self) -> bool {
        let Some(tls) = self.tls.as_mut().filter(|_| !self.held.is_empty()) else { return false };
        if !tls.send_early(&self.held) {
            return false;
        }
        self.sealed += self.held.len();
        self.held.clear();
        tls.drain(&mut self.out);
        true
    }

    /// Returns whether the server accepted early data.
    pub(crate) fn early_read(&self) -> Option<bool> {
        self.tls.as_ref()?.early_read()
    }

    /// Decrypts ciphertext; replies of TLS are queued for sending.
    pub(crate) fn decrypt(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let fed = tls.feed(bytes, plain);
        tls.drain(&mut self.out);
        fed
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.handshaking())
    }

    /// Returns whether the peer's close_notify has been read.
    pub(crate) fn is_tls_closed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.closed())
    }

    pub(crate) fn tls_facts(&self) -> Option<TlsFacts> {
        self.tls.as_ref()?.facts()
    }

    /// Writes queued bytes until none are left or the socket accepts no more.
    ///
    /// # Errors
    /// Fails if the first write fails. An error of a later write is not returned: reading the
    /// connection reports it again, with its reason.
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
        (self.out_at, self.sealed) = (0, 0);
        Ok(Flushed::Taken { resumed, whole: true })
    }

    /// Sends close_notify. If the socket does not accept it at once, or encrypted bytes wait, the
    /// connection closes without it: withdrawn requests would otherwise be sent before
    /// close_notify.
    pub(crate) fn send_close<I: Io>(&mut self, io: &mut I, slot: Slot) {
        if self.has_unsent() {
            return;
        }
        if let Some(tls) = &mut self.tls {
            tls.close();
            tls.drain(&mut self.out);
            io.write(slot, &self.out[self.out_at..]).ok();
        }
    }

    /// Releases keys and buffers of large requests when the connection is closed or idle; other
    /// buffers keep their memory.
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

#[cfg(test)]
mod tests {
    use super::*;
    use conduit::{Close, OpenOptions, Peer, Ready};
    use sample::{FailureClass, SocketFacts};
    use units::Nanos;

    /// A record is its length and the unchanged bytes.
    #[derive(Debug, Default)]
    struct BareRecords {
        out: Vec<u8>,
    }

    impl TlsSession for BareRecords {
        fn feed(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<(), TlsError> {
            Ok(())
        }

        fn send(&mut self, plaintext: &[u8]) {
            self.out.push(plaintext.len() as u8);
            self.out.extend_from_slice(plaintext);
        }

        fn drain(&mut self, out: &mut Vec<u8>) {
            out.append(&mut self.out);
        }

        fn handshaking(&self) -> bool {
            false
        }

        fn closed(&self) -> bool {
            false
        }

        fn close(&mut self) {
            self.out.push(0);
        }

        fn facts(&self) -> Option<TlsFacts> {
            None
        }
    }

    /// Accepts this many bytes per write, in order; then the transport is broken.
    struct Breaking(usize);

    impl Io for Breaking {
        fn now(&mut self) -> Nanos {
            Nanos::ZERO
        }

        fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
            Ok(())
        }

        fn write(&mut self, _: Slot, bytes: &[u8]) -> Result<usize, IoError> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken > 0 { Ok(taken) } else { Err(IoError::Failed(FailureClass::Reset)) }
        }

        fn read(&mut self, _: Slot, _: &mut [u8]) -> Result<usize, IoError> {
            Err(IoError::WouldBlock)
        }

        fn close(&mut self, _: Slot, _: Close) {}

        fn shutdown_write(&mut self, _: Slot) {}

        fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
            None
        }

        fn wait(&mut self, _: Nanos, ready: &mut Vec<Ready>) {
            ready.clear();
        }
    }

    /// Returns, for two requests of five bytes each over a socket that accepts this number: the
    /// unsent bytes, queried twice, and how many bytes of a following close_notify the socket
    /// accepted.
    fn unsent(takes: usize) -> (u64, u64) {
        let mut transport = Transport::default();
        transport.start_tls(Box::new(BareRecords::default()));
        let mut io = Breaking(takes);
        for request in [b"one..", b"two.."] {
            transport.plaintext().extend_from_slice(request);
            transport.release();
            transport.flush(&mut io, 0).ok();
        }
        let unsent = (transport.take_unsent(), transport.take_unsent());
        io.0 = 100;
        transport.send_close(&mut io, 0);
        let goodbye = if takes >= 12 { 99 } else { 100 };
        assert_eq!(io.0, goodbye, "a goodbye is sent when nothing else is unsent");
        unsent
    }

    #[test]
    fn encrypted_unwritten_bytes_do_not_count_as_sent() {
        assert_eq!(unsent(0), (10, 0));
        assert_eq!(unsent(6), (5, 0), "the first went out whole");
        assert_eq!(unsent(8), (0, 0), "the second went out in part");
        assert_eq!(unsent(12), (0, 0));
    }
}
