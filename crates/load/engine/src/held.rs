//! Idle connections that are kept open during a load, by a wrapper around any driver, so that the
//! worker does not see them. They are opened in batches, watched, and counted if the server closes
//! one. They are not reopened.

use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use sample::{FailureClass, HeldFacts, QuicEnd, SocketFacts};
use std::ops::Range;
use units::Nanos;

/// Maximum number of pending opens: more would overflow a listener's queue.
const PENDING_MAX: u32 = 64;
/// Read size for unsolicited data.
const SCRATCH: usize = 4 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldState {
    Pending,
    /// Open since this instant.
    Open(Nanos),
    Over,
}

/// [`HeldState`] in eight bytes; there may be a million of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeldLine(Nanos);

impl HeldLine {
    /// Marker of an ended connection: the instant just before `Nanos::NEVER`, which does not
    /// occur.
    const OVER: Nanos = Nanos::NEVER;
    const PENDING: Nanos = Nanos(Nanos::NEVER.0 - 1);

    fn held_state(self) -> HeldState {
        match self.0 {
            HeldLine::PENDING => HeldState::Pending,
            HeldLine::OVER => HeldState::Over,
            since => HeldState::Open(since),
        }
    }
}

impl From<HeldState> for HeldLine {
    fn from(held_state: HeldState) -> HeldLine {
        HeldLine(match held_state {
            HeldState::Pending => HeldLine::PENDING,
            HeldState::Open(since) => since,
            HeldState::Over => HeldLine::OVER,
        })
    }
}

/// Driver with held connections: they use the slots from 0 on, the worker's connections the slots
/// after them.
#[derive(Debug)]
pub struct WithHeldConnections<I> {
    io: I,
    count: u32,
    peers: Vec<Peer>,
    nodelay: bool,
    /// One entry for each connection that was opened.
    lines: Vec<HeldLine>,
    pending: u32,
    since: Nanos,
    facts: HeldFacts,
    ages: Vec<Nanos>,
    heard: Vec<Ready>,
}

impl<I: Io> WithHeldConnections<I> {
    /// Wraps a driver; adds `count` connections, to each of `peers` in turn.
    pub fn new(io: I, count: u32, peers: Vec<Peer>, nodelay: bool) -> WithHeldConnections<I> {
        let facts = HeldFacts { wanted: count.into(), ..HeldFacts::default() };
        WithHeldConnections {
            io,
            count: if peers.is_empty() { 0 } else { count },
            peers,
            nodelay,
            lines: Vec::with_capacity(count as usize),
            pending: 0,
            since: Nanos::ZERO,
            facts,
            ages: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// Returns their states so far.
    pub fn facts(&mut self) -> HeldFacts {
        self.ages.sort_unstable();
        let ages = &self.ages;
        HeldFacts {
            age_min: ages.first().copied().unwrap_or_default(),
            age_p50: ages.get(ages.len() / 2).copied().unwrap_or_default(),
            age_max: ages.last().copied().unwrap_or_default(),
            ..self.facts.clone()
        }
    }

    fn held_state(&self, slot: Slot) -> Option<HeldState> {
        self.lines.get(slot as usize).map(|line| line.held_state())
    }

    fn open_more(&mut self) {
        while (self.lines.len() as u32) < self.count && self.pending < PENDING_MAX {
            let slot = self.lines.len() as Slot;
            if slot == 0 {
                self.since = self.io.now();
            }
            let peer = &self.peers[self.lines.len() % self.peers.len()];
            let options = OpenOptions { nodelay: self.nodelay, ..OpenOptions::default() };
            if self.io.open(slot, peer, &options).is_err() {
                self.lines.push(HeldState::Over.into());
                self.facts.failed += 1;
                continue;
            }
            self.lines.push(HeldState::Pending.into());
            self.pending += 1;
            self.settle(slot);
        }
    }

    /// Checks whether a pending connection is established or has failed.
    fn settle(&mut self, slot: Slot) {
        match self.io.write(slot, &[]) {
            Err(IoError::WouldBlock) => {}
            Ok(_) => {
                let now = self.io.now();
                self.pending -= 1;
                self.lines[slot as usize] = HeldState::Open(now).into();
                self.facts.stood += 1;
                self.facts.open += 1;
                self.facts.peak = self.facts.peak.max(self.facts.open);
                self.facts.setup = now - self.since;
            }
            Err(IoError::Failed(_)) => {
                self.pending -= 1;
                self.facts.failed += 1;
                self.lines[slot as usize] = HeldState::Over.into();
                self.io.close(slot, Close::Reset);
            }
        }
    }

    fn process(&mut self, event: Ready) {
        if self.held_state(event.slot) != Some(HeldState::Pending) {
            return self.listen(event);
        }
        self.settle(event.slot);
        if event.readable || event.ended {
            self.listen(event);
        }
    }

    /// Reads unsolicited data from the server.
    fn listen(&mut self, event: Ready) {
        let Some(HeldState::Open(since)) = self.held_state(event.slot) else { return };
        let mut scratch = [0; SCRATCH];
        let in_order = loop {
            match self.io.read(event.slot, &mut scratch) {
                Ok(0) => break true,
                Ok(count) => self.facts.bytes += count as u64,
                Err(IoError::WouldBlock) => return,
                Err(IoError::Failed(_)) => break false,
            }
        };
        if in_order {
            self.facts.closed += 1;
        } else {
            self.facts.reset += 1;
        }
        self.facts.open -= 1;
        self.ages.push(self.io.now() - since);
        self.lines[event.slot as usize] = HeldState::Over.into();
        self.io.close(event.slot, Close::Orderly);
    }
}

impl<I: Io> Io for WithHeldConnections<I> {
    #[inline]
    fn now(&mut self) -> Nanos {
        self.io.now()
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        let slot = slot.checked_add(self.count);
        self.io.open(slot.ok_or(IoError::Failed(FailureClass::OtherIo))?, peer, options)
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        self.io.write(slot + self.count, bytes)
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        self.io.read(slot + self.count, buffer)
    }

    fn take(&mut self, slot: Slot, buffer: &mut Box<[u8]>) -> Result<Range<usize>, IoError> {
        self.io.take(slot + self.count, buffer)
    }

    fn send(&mut self, slot: Slot, datagrams: &[u8], each: usize) -> Result<usize, IoError> {
        self.io.send(slot + self.count, datagrams, each)
    }

    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<(usize, usize), IoError> {
        self.io.receive(slot + self.count, buffer)
    }

    fn close(&mut self, slot: Slot, how: Close) {
        self.io.close(slot + self.count, how);
    }

    fn shutdown_write(&mut self, slot: Slot) {
        self.io.shutdown_write(slot + self.count);
    }

    fn send_urgent(&mut self, slot: Slot, byte: u8) {
        self.io.send_urgent(slot + self.count, byte);
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        self.io.facts(slot + self.count)
    }

    fn quic(&mut self, slot: Slot) -> Option<QuicEnd> {
        self.io.quic(slot + self.count)
    }

    fn failure_text(&mut self, slot: Slot) -> Option<String> {
        self.io.failure_text(slot + self.count)
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        self.open_more();
        let mut heard = std::mem::take(&mut self.heard);
        self.io.wait(until, &mut heard);
        for event in heard.drain(..) {
            match event.slot.checked_sub(self.count) {
                Some(slot) => ready.push(Ready { slot, ..event }),
                None => self.process(event),
            }
        }
        self.heard = heard;
    }

    fn spin(&self) -> Nanos {
        self.io.spin()
    }
}

#[cfg(test)]
mod tests;
