//! Connections of our own TCP over a TUN device, behind [`conduit::Io`]: no descriptor for each of
//! them, and nothing of the client's kernel in what is measured. Layer 4.
#![forbid(unsafe_code)]

mod shared;

pub use shared::{OwnCounts, OwnNetwork};

use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use reactor::monotonic;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use sample::{FailureClass, SocketFacts};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tcp::{End, NotDone, TcpStack, VNET_HEAD};
use units::Nanos;

/// Packets that are read before the worker gets its turn.
const BATCH: usize = 256;
/// Packets that are written without waiting for the turn's end.
const PENDING_MAX: usize = 32;
/// A segment of 64 KiB with its heads; one buffer, which stays in the cache.
const BUFFER: usize = 70_000;

/// The connections of one worker.
pub struct OwnStack {
    stack: TcpStack,
    queue: OwnedFd,
    buffer: Vec<u8>,
    shared: Arc<OwnNetwork>,
    now: Nanos,
    spin_span: Nanos,
    spun: Nanos,
    /// Packets that the device did not take.
    refused: u64,
}

impl std::fmt::Debug for OwnStack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnStack").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl OwnStack {
    pub(crate) fn new(
        stack: TcpStack,
        queue: OwnedFd,
        shared: Arc<OwnNetwork>,
        spin_span: Nanos,
    ) -> OwnStack {
        let (buffer, now) = (vec![0; BUFFER], monotonic());
        OwnStack { stack, queue, buffer, shared, now, spin_span, spun: Nanos::ZERO, refused: 0 }
    }

    /// Hands over what is to be sent. What the device does not take is lost, as on any link.
    fn flush(&mut self) {
        for packet in self.stack.outgoing().packets() {
            let written = loop {
                match rustix::io::write(&self.queue, packet) {
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            self.refused += u64::from(written.is_err());
        }
        self.stack.sent();
    }

    /// Takes packets in; true when there were any.
    fn receive(&mut self) -> bool {
        for row in 0..BATCH {
            match rustix::io::read(&self.queue, &mut self.buffer[..]) {
                Ok(length) if length > VNET_HEAD => {
                    // NEEDS_CSUM or DATA_VALID: the sum is not there, or was looked at
                    let checked = self.buffer[0] & 3 != 0;
                    let packet = &self.buffer[VNET_HEAD..length];
                    self.stack.deliver(self.now, packet, checked);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return row > 0,
            }
        }
        true
    }

    fn gather(&mut self, ready: &mut Vec<Ready>) {
        self.stack.changes(|change| {
            ready.push(Ready {
                slot: change.slot,
                readable: change.readable,
                writable: change.writable,
                ended: change.ended,
            });
        });
    }

    /// One look at everything: what came, what is due, what is to go out.
    fn turn(&mut self, ready: &mut Vec<Ready>) {
        self.now = monotonic();
        self.receive();
        self.stack.tick(self.now);
        self.gather(ready);
    }

    /// Sleeps until a packet comes or `until`.
    fn sleep(&self, until: Nanos) {
        let span = (until != Nanos::NEVER).then(|| {
            let left = until - monotonic();
            Timespec {
                tv_sec: (left.0 / 1_000_000_000) as i64,
                tv_nsec: (left.0 % 1_000_000_000) as i64,
            }
        });
        let mut wanted = [PollFd::new(&self.queue, PollFlags::IN)];
        // interrupted, or a queue that is gone: the next turn tells
        poll(&mut wanted, span.as_ref()).ok();
    }
}

fn error(not: NotDone) -> IoError {
    match not {
        NotDone::WouldBlock => IoError::WouldBlock,
        NotDone::Failed(class) => IoError::Failed(class),
    }
}

impl Io for OwnStack {
    #[inline]
    fn now(&mut self) -> Nanos {
        self.now = monotonic();
        self.now
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        let Peer::Tcp(SocketAddr::V4(address)) = peer else {
            return Err(IoError::Failed(FailureClass::Unreachable));
        };
        let peer = End { address: *address.ip(), port: address.port() };
        let from = match options.bind {
            None => None,
            Some(IpAddr::V4(address)) => Some(address),
            Some(IpAddr::V6(_)) => return Err(IoError::Failed(FailureClass::AddressUnavailable)),
        };
        let opened = self.stack.open(self.now, slot, peer, options.nodelay, (from, options.port));
        opened.map_err(IoError::Failed)?;
        if self.stack.outgoing().len() >= PENDING_MAX {
            self.flush();
        }
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let written = self.stack.write(self.now, slot, bytes).map_err(error);
        if self.stack.outgoing().len() >= PENDING_MAX {
            self.flush();
        }
        written
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        self.stack.read(self.now, slot, buffer).map_err(error)
    }

    fn close(&mut self, slot: Slot, how: Close) {
        self.stack.close(self.now, slot, how == Close::Reset);
    }

    fn shut(&mut self, slot: Slot) {
        self.stack.shut(self.now, slot);
    }

    fn urgent(&mut self, slot: Slot, byte: u8) {
        self.stack.urgent(self.now, slot, byte);
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        self.stack.facts(slot)
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        self.flush();
        self.turn(ready);
        if !ready.is_empty() || self.now >= until {
            return;
        }
        self.flush();
        let wake = if until == Nanos::NEVER { until } else { until - self.spin_span };
        let due = wake.min(self.stack.next());
        if due > self.now {
            self.sleep(due);
            self.turn(ready);
        }
        let start = self.now;
        while until != Nanos::NEVER && self.now >= wake && self.now < until && ready.is_empty() {
            self.flush();
            self.turn(ready);
        }
        self.spun += self.now - start;
    }

    fn spin(&self) -> Nanos {
        self.spun
    }
}

impl Drop for OwnStack {
    /// No server is left waiting for a connection of ours.
    fn drop(&mut self) {
        self.flush();
        self.shared.add(self.stack.counts(), self.refused);
        self.stack.abandon(monotonic());
        self.flush();
    }
}
