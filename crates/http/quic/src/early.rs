//! Requests sent before the handshake is complete (0-RTT, RFC 9001 section 4.6).

use sample::EarlyFacts;

/// Early data of one connection.
#[derive(Debug, Default)]
pub(crate) struct Early {
    /// All bytes written by the worker, until the server has accepted or rejected early data.
    written: Vec<u8>,
    /// Number of requests in the window.
    requests: u64,
    read: Option<bool>,
}

impl Early {
    /// Keeps bytes that the worker wrote before the handshake was complete.
    pub(crate) fn keep(&mut self, pieces: &[u8]) {
        self.written.extend_from_slice(pieces);
    }

    /// Counts a request that was opened in the window.
    pub(crate) fn count_request(&mut self) {
        self.requests += 1;
    }

    /// Handles the end of the handshake. Returns the bytes that must be written again.
    pub(crate) fn settle(&mut self, read: bool) -> Vec<u8> {
        let written = std::mem::take(&mut self.written);
        if self.requests > 0 {
            self.read = Some(read);
        }
        if read { Vec::new() } else { written }
    }

    pub(crate) fn facts(&self) -> EarlyFacts {
        let of = |what| if self.read == Some(what) { self.requests } else { 0 };
        EarlyFacts { sent: self.requests, accepted: of(true), rejected: of(false), too_early: 0 }
    }
}
