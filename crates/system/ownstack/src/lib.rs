//! Connections of our own TCP over a TUN device, or over an Ethernet device through AF_XDP, for
//! [`conduit::Io`]: no descriptor per connection, and measurements without the client's kernel TCP.
//! Layer 4.
//!
//! Unsafe code is in two files, each with its reason: `uring.rs` and `xdp/raw.rs`.
#![deny(unsafe_code)]

mod addresses;
mod depth;
mod links;
mod port;
mod raw;
mod reads;
mod shared;
mod uring;
mod xdp;

pub use raw::RawLink;
pub use shared::{
    BatchUse, Ground, Handover, InsidePaths, NetworkRequest, NetworkTrouble, OwnNetwork,
};
pub use tcp::TcpSettings;
pub use xdp::{Mac, QUEUES_MAX, XdpAsk, XdpHook, XdpTrouble};

use conduit::{Close, Io, IoError, OpenOptions, Peer, READ_SIZE, Ready, Slot};
use links::Links;
use net::reactor::monotonic;
use netpath::Lanes;
use port::{PacketPort, has_no_sum};
use reads::BATCH;
use rustix::io::Errno;
use sample::{FailureClass, SocketFacts};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tcp::{End, NotDone, TcpStack, VNET_HEAD};
use units::Nanos;
use wan::Direction;

/// Packets written before the end of a turn.
const PENDING_MAX: usize = 32;
/// Number of bytes received as one batch, within one packet: acknowledgments are sent after it.
const BATCH_BYTES: usize = 512 << 10;
/// Maximum number of packets without an event for the worker before its turn.
const IDLE_TURNS: u32 = 4;
/// Maximum time for both sides to close connections.
const GOODBYE: Nanos = Nanos::from_millis(500);
/// Polls without waiting.
const NOW: Option<Duration> = Some(Duration::ZERO);

/// Connections of one worker.
pub struct OwnStack {
    stack: TcpStack,
    port: PacketPort,
    /// The emulated links that all packets pass, if any. The device then carries real packets,
    /// without virtio headers.
    links: Option<Links>,
    shared: Arc<OwnNetwork>,
    /// Number of the worker.
    id: u32,
    /// Packets that the device queue had dropped before the start.
    dropped: u64,
    now: Nanos,
    /// Bytes of the current batch; 0 without one.
    batch: usize,
    spin_span: Nanos,
    /// Time before a packet on a link is due in which the worker spins instead of sleeping.
    links_spin: Nanos,
    spun: Nanos,
}

impl std::fmt::Debug for OwnStack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnStack").field("port", &self.port).finish_non_exhaustive()
    }
}

impl OwnStack {
    pub(crate) fn new(
        stack: TcpStack,
        port: PacketPort,
        links: Option<Links>,
        (shared, id): (Arc<OwnNetwork>, u32),
        spin_span: Nanos,
    ) -> OwnStack {
        let now = monotonic();
        let spun = Nanos::ZERO;
        let dropped = shared.dropped(id);
        let links_spin = links.as_ref().map_or(Nanos::ZERO, |_| Lanes::spin());
        let batch = 0;
        OwnStack {
            stack,
            port,
            links,
            shared,
            id,
            dropped,
            now,
            batch,
            spin_span,
            links_spin,
            spun,
        }
    }

    /// Returns the first of the local addresses.
    pub fn first_address(&self) -> IpAddr {
        self.stack.first_address()
    }

    /// Waits a short time until all closed connections are finished; everything else is reset.
    pub fn finish_connections(&mut self) {
        let end = monotonic() + GOODBYE;
        let mut ready = Vec::new();
        while self.stack.connections() > 0 && monotonic() < end {
            self.wait(end, &mut ready);
        }
    }

    /// Sends outgoing packets. Packets that the device does not accept are lost, as on any link.
    fn flush(&mut self) {
        if self.links.is_some() {
            return self.move_packets();
        }
        self.port.send(self.now, self.stack.outgoing().packets());
        self.stack.sent();
    }

    /// Adds outgoing packets to their links and delivers everything due, until nothing more
    /// happens.
    fn move_packets(&mut self) {
        let OwnStack { links: Some(links), stack, port, .. } = self else { return };
        loop {
            links.send(monotonic(), stack.outgoing().packets());
            stack.sent();
            links.deliver_packets(|now, direction, packet| match direction {
                Direction::Up => port.write(now, packet),
                Direction::Down => stack.deliver(now, packet, false),
            });
            if stack.outgoing().is_empty() {
                return;
            }
        }
    }

    /// Receives packets. If they are read one by one, a long one ends the turn: it is processed
    /// while it is in the cache and in its place.
    fn receive(&mut self) {
        let OwnStack { port, stack, now, links, batch, .. } = self;
        if let Some(links) = links {
            return links.receive(|room| port.read(room));
        }
        if port.receive(*now, |packet, checked| stack.deliver(*now, packet, checked)) {
            // packets read one by one may have left a batch open
            *batch = 0;
            return;
        }
        let mut came = 0;
        let mut lent = false;
        while came < BATCH && *batch < BATCH_BYTES && !lent {
            let room = stack.room(READ_SIZE);
            match port.read(room) {
                Ok(length) if length > VNET_HEAD => {
                    let checked = has_no_sum(room);
                    lent = stack.deliver_here(*now, VNET_HEAD..length, checked);
                    *batch += length;
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            came += 1;
        }
        port.end_turn(came);
        if !lent || *batch >= BATCH_BYTES {
            *batch = 0;
        }
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

    /// Runs one pass: sends, receives and handles due timers. If packets are batched and none has
    /// arrived, waits for one, for at most `span`.
    fn turn(&mut self, span: Option<Duration>, ready: &mut Vec<Ready>) {
        if self.links.is_none() {
            self.port.exchange(self.now, self.stack.outgoing().packets(), span);
            self.stack.sent();
        }
        self.now = monotonic();
        self.receive();
        self.move_packets();
        self.stack.tick(self.now);
        self.gather(ready);
    }

    /// Returns when the next packet on a link is due.
    fn next_packet_due(&mut self) -> Nanos {
        self.links.as_mut().and_then(Links::next_due).unwrap_or(Nanos::NEVER)
    }

    /// Adds time spent spinning.
    fn spent(&mut self, span: Nanos) {
        self.spun += span;
        if let Some(links) = &mut self.links {
            links.record_rest(Nanos::ZERO, span);
        }
    }

    /// Sends and sleeps until a packet arrives, in one system call for batches.
    fn wait_once(&mut self, wake: Nanos, ready: &mut Vec<Ready>) {
        for _ in 0..IDLE_TURNS {
            let span = match self.stack.has_changes() {
                true => NOW,
                false => span_until(wake.min(self.stack.next_due(self.now))),
            };
            self.turn(span, ready);
            if !ready.is_empty() || self.now >= wake {
                return;
            }
        }
    }

    /// Waits with one system call per packet; returns true if the worker gets its turn.
    fn wait_by_calls(&mut self, wake: Nanos, until: Nanos, ready: &mut Vec<Ready>) -> bool {
        self.move_packets();
        self.turn(NOW, ready);
        if !ready.is_empty() || self.now >= until {
            return true;
        }
        self.stack.arm(self.now);
        self.flush();
        let carried = self.next_packet_due();
        let due = wake.min(self.stack.next_due(self.now)).min(early(carried, self.links_spin));
        if due > self.now {
            self.sleep(due);
            self.turn(NOW, ready);
        } else if carried <= self.now + self.links_spin {
            // a packet of a link is due soon
            self.spin_until(carried.min(until), ready);
            return true;
        }
        false
    }

    /// Polls until there is an event for the worker or the time is reached, and counts this as
    /// spinning, without the work of the last pass.
    fn spin_until(&mut self, end: Nanos, ready: &mut Vec<Ready>) {
        let start = monotonic();
        loop {
            self.turn(NOW, ready);
            if !ready.is_empty() || self.now >= end {
                break;
            }
            // acknowledgments that wait for the end of a batch are sent in the next pass
            self.stack.arm(self.now);
        }
        self.spent(self.now - start);
    }

    /// Sleeps until a packet arrives or `until`.
    fn sleep(&mut self, until: Nanos) {
        // work done since `now` was read is not sleep
        let start = monotonic();
        self.port.sleep(span_until(until));
        if let Some(links) = &mut self.links {
            links.record_rest(monotonic() - start, Nanos::ZERO);
        }
    }
}

/// Returns the time from now until then; `None` if it never happens.
fn span_until(instant: Nanos) -> Option<Duration> {
    (instant != Nanos::NEVER).then(|| Duration::from_nanos((instant - monotonic()).0))
}

/// Returns the instant this long before a time, if it ever happens.
fn early(instant: Nanos, span: Nanos) -> Nanos {
    if instant == Nanos::NEVER { instant } else { instant - span }
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
        let Peer::Tcp(address) = peer else {
            return Err(IoError::Failed(FailureClass::Unreachable));
        };
        if self.port.is_gone() {
            // same as the kernel without a route once the device is gone
            return Err(IoError::Failed(FailureClass::Unreachable));
        }
        let peer = End { address: address.ip(), port: address.port() };
        let from = (options.bind, options.port);
        let opened = self.stack.open(self.now, slot, peer, options.nodelay, from);
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

    fn take(&mut self, slot: Slot, buffer: &mut Box<[u8]>) -> Result<Range<usize>, IoError> {
        self.stack.take(self.now, slot, buffer).map_err(error)
    }

    fn close(&mut self, slot: Slot, how: Close) {
        self.stack.close(self.now, slot, how == Close::Reset);
    }

    fn shutdown_write(&mut self, slot: Slot) {
        self.stack.shutdown_write(self.now, slot);
    }

    fn send_urgent(&mut self, slot: Slot, byte: u8) {
        self.stack.send_urgent(self.now, slot, byte);
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        self.stack.facts(slot)
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        if self.batch == 0 {
            self.stack.arm(self.now);
        }
        let wake = early(until, self.spin_span);
        if self.port.has_batches() {
            self.wait_once(wake, ready);
        } else if self.wait_by_calls(wake, until, ready) {
            return;
        }
        if until != Nanos::NEVER && self.now >= wake && self.now < until && ready.is_empty() {
            self.spin_until(until, ready);
        }
    }

    fn spin(&self) -> Nanos {
        self.spun
    }
}

impl Drop for OwnStack {
    /// Resets connections so that no server waits for them. These packets bypass the links: the
    /// measurement is over.
    fn drop(&mut self) {
        self.flush();
        self.port.exchange(self.now, std::iter::empty(), NOW);
        self.port.settle_all();
        let mut carried = self.links.take().map(|mut links| links.take_tally(monotonic()));
        let mut counts = self.stack.counts();
        counts += self.port.counts();
        let dropped = self.shared.dropped(self.id).saturating_sub(self.dropped);
        counts.missed += dropped;
        if let Some(carried) = &mut carried {
            carried.overflow(dropped);
        }
        self.shared.add(counts, carried);
        let mut from = Some(0);
        while let Some(row) = from {
            from = self.stack.abandon(monotonic(), row);
            self.flush();
        }
    }
}
