//! The worker's side of a tunnel.

use crate::head;
use conduit::{IoError, OpenOptions, Peer, Ready, Slot};
use sample::{FailureClass, QuicEnd, SocketFacts};

/// A larger buffer is freed when it is empty.
const KEPT_MAX: usize = 4 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelStage {
    Closed,
    /// No stream may be opened for it yet.
    Waiting,
    /// A stream is reserved for it.
    Admitted,
    /// Its stream is open; the response may be outstanding.
    Open,
    /// Not a tunnel: an underlying connection.
    Direct,
}

/// The server sends nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelEnd {
    Orderly,
    Failed(FailureClass),
}

#[derive(Debug)]
pub(crate) struct TunnelEndpoint {
    pub(crate) stage: TunnelStage,
    pub(crate) peer: Peer,
    pub(crate) options: OpenOptions,
    /// Slot of its connection below.
    pub(crate) trunk: Slot,
    pub(crate) id: u64,
    /// The partial head of an upgrade.
    pub(crate) head: Vec<u8>,
    /// Key of the upgrade.
    pub(crate) key: String,
    /// The response has arrived.
    pub(crate) answered: bool,
    /// Received bytes, of which `input_at` are read.
    pub(crate) input: Vec<u8>,
    input_at: usize,
    pub(crate) end: Option<TunnelEnd>,
    pub(crate) why: Option<String>,
    /// Facts of its connection, which has ended.
    pub(crate) facts: Option<SocketFacts>,
    pub(crate) quic: Option<QuicEnd>,
    /// Readiness to be reported.
    readable: bool,
    writable: bool,
}

impl Default for TunnelEndpoint {
    fn default() -> TunnelEndpoint {
        let nowhere = Peer::Unix(std::path::PathBuf::new());
        let options = OpenOptions::default();
        TunnelEndpoint { stage: TunnelStage::Closed, ..TunnelEndpoint::new(&nowhere, &options) }
    }
}

impl TunnelEndpoint {
    pub(crate) fn new(peer: &Peer, options: &OpenOptions) -> TunnelEndpoint {
        TunnelEndpoint {
            stage: TunnelStage::Waiting,
            peer: peer.clone(),
            options: options.clone(),
            trunk: Slot::MAX,
            id: 0,
            head: Vec::new(),
            key: String::new(),
            answered: false,
            input: Vec::new(),
            input_at: 0,
            end: None,
            why: None,
            facts: None,
            quic: None,
            readable: false,
            writable: false,
        }
    }

    /// Notes readiness; returns whether there was none.
    pub(crate) fn note(&mut self, readable: bool, writable: bool) -> bool {
        let first = !self.readable && !self.writable && self.stage != TunnelStage::Closed;
        self.readable |= readable;
        self.writable |= writable;
        first
    }

    pub(crate) fn take_ready(&mut self, slot: Slot) -> Option<Ready> {
        let readable = std::mem::take(&mut self.readable);
        let writable = std::mem::take(&mut self.writable);
        let open = self.stage != TunnelStage::Closed;
        open.then_some(Ready { slot, readable, writable, ended: self.end.is_some() })
    }

    pub(crate) fn receive_head(&mut self, response: &[u8]) {
        self.answered = true;
        head::put_response(response, &self.key, &mut self.input);
        self.key = String::new();
    }

    /// Returns the number of bytes that were received and not read.
    pub(crate) fn unread(&self) -> usize {
        self.input.len() - self.input_at
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        let waiting = self.input.get(self.input_at..).unwrap_or_default();
        let count = waiting.len().min(buffer.len());
        if count == 0 {
            return match self.end {
                Some(TunnelEnd::Orderly) => Ok(0),
                Some(TunnelEnd::Failed(class)) => Err(IoError::Failed(class)),
                None => Err(IoError::WouldBlock),
            };
        }
        buffer[..count].copy_from_slice(&waiting[..count]);
        self.input_at += count;
        if self.input_at == self.input.len() {
            self.input_at = 0;
            self.input.clear();
            if self.input.capacity() > KEPT_MAX {
                self.input = Vec::new();
            }
        }
        Ok(count)
    }
}
