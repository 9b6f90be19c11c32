//! All connections of one worker: lookup of segments, timers and free tuples.

use crate::arrive::FromSegment;
use crate::connection::{Context, Spares, Tcb, TcpState, WITH_BATCH, bit};
use crate::output::fitting;
use crate::packet::{
    ArrivedPacket, Checksums, End, Flow, Head, Outbox, flag, low_bits, read, with_low_bits,
};
use crate::seq::{before, not_after};
use crate::settings::{PATH_MSS_MIN, TcpSettings};
use sample::{FailureClass, SocketFacts, StackFacts};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::net::IpAddr;
use std::ops::Range;
use units::{Nanos, Purpose, Seed, room_for_more};

/// The local addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources {
    /// First address; all addresses are of its family and differ from it only in the last 32 bits.
    pub first: IpAddr,
    /// Number of addresses from the first on; at least 1.
    pub addresses: u32,
    pub port_first: u16,
    pub port_last: u16,
}

impl Sources {
    /// Returns the maximum number of simultaneous connections, to all servers together.
    pub fn tuples(&self) -> u64 {
        u64::from(self.addresses) * self.ports()
    }

    fn ports(&self) -> u64 {
        u64::from(self.port_last.saturating_sub(self.port_first)) + 1
    }

    fn holds(&self, end: End) -> bool {
        self.has(end.address) && (self.port_first..=self.port_last).contains(&end.port)
    }

    #[inline]
    fn has(&self, address: IpAddr) -> bool {
        let offset = low_bits(address).wrapping_sub(low_bits(self.first));
        offset < self.addresses && with_low_bits(self.first, low_bits(address)) == address
    }

    /// Returns the tuple with this number: all addresses are used before a port is used again.
    fn nth(&self, number: u64) -> End {
        let number = number % self.tuples().max(1);
        let addresses = u64::from(self.addresses.max(1));
        let host = low_bits(self.first).wrapping_add((number % addresses) as u32);
        let port = self.port_first.wrapping_add((number / addresses) as u16);
        End { address: with_low_bits(self.first, host), port }
    }
}

/// A connection may make progress; with the semantics of edge-triggered readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    pub slot: u32,
    pub readable: bool,
    pub writable: bool,
    pub ended: bool,
}

/// Reason why an operation was not performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The operation would block; a [`Readiness`] follows.
    WouldBlock,
    Failed(FailureClass),
}

const UNUSED: u32 = u32::MAX;

#[derive(Debug)]
struct ConnectionRow {
    connection: Tcb,
    /// The owner's slot.
    owner: u32,
    /// Events not yet reported to the owner.
    pending: FromSegment,
    /// Instant at which the connection is examined again.
    scheduled: Nanos,
    /// The row is in the list of rows whose timers must be examined.
    touched: bool,
}

impl ConnectionRow {
    /// Returns the earliest time at which the connection has something to do.
    fn due(&self) -> Nanos {
        self.connection.cold.as_ref().map_or(Nanos::NEVER, |cold| cold.deadline())
    }
}

/// The remaining state of a connection that we closed first.
#[derive(Clone, Copy, Debug)]
struct Lingering {
    since: Nanos,
    snd_nxt: u32,
    rcv_nxt: u32,
    stamps: bool,
    /// The last timestamp of the peer.
    stamp: u32,
}

#[derive(Debug)]
struct PeerRow {
    end: End,
    /// The packet size that a router reported for the path, and when.
    path_mss: u16,
    narrowed: Nanos,
}

impl PeerRow {
    /// Returns the payload of a segment that the path accepts, if known. An old report does not
    /// apply to the current path.
    fn path_mss(&self, now: Nanos) -> u16 {
        let is_old = now >= self.narrowed + PATH_MSS_FOR;
        if self.path_mss < u16::MAX && is_old { u16::MAX } else { self.path_mss }
    }

    fn narrow(&mut self, fits: u16, now: Nanos) {
        self.path_mss = self.path_mss(now).min(fits);
        self.narrowed = now;
    }
}

/// Time for which a path MTU is valid (RFC 1191 section 6.3: 10 minutes; Linux: `mtu_expires`).
const PATH_MSS_FOR: Nanos = Nanos::from_secs(600);

/// Maximum number of challenge ACKs per second, and of replies to segments without a connection
/// (RFC 5961 section 7 requires a limit but no particular number).
const ANSWERS_A_SECOND: u32 = 1_000;
/// Time after which tuples of a connection that we closed may be reused, if timestamps distinguish
/// old segments from new ones (RFC 6191; tcp_tw_reuse of Linux).
const REUSE_AFTER: Nanos = Nanos::from_secs(1);
/// Maximum number of TIME-WAIT tuples.
const RESTING_MAX: usize = 1 << 20;
/// Maximum number of packets per call of [`TcpStack::abandon`]: those of 300,000 connections would
/// take more memory than the connections.
const RESETS_AT_ONCE: usize = 256;
/// Minimum capacity of the timer heap.
const TIMERS_KEPT: usize = 4_096;
/// Data of at least this many bytes is read in place in its packet; shorter data is copied.
const LENT_MIN: usize = 4_096;
/// Number of bytes before a packet in its buffer: for shorter data that arrived before it, such as
/// the header section of a response.
const HEADROOM: usize = LENT_MIN;
/// Maximum number of servers per stack.
const PEERS_MAX: usize = 1 << 15;

/// Replies left in the current second.
#[derive(Clone, Copy, Debug)]
struct AnswersLeft {
    second: u64,
    /// Number of challenge ACKs.
    challenges: u32,
    /// To segments without a connection.
    strangers: u32,
}

impl AnswersLeft {
    fn new(second: u64) -> AnswersLeft {
        AnswersLeft { second, challenges: ANSWERS_A_SECOND, strangers: ANSWERS_A_SECOND }
    }
}

/// The connections of one worker.
#[derive(Debug)]
pub struct TcpStack {
    settings: TcpSettings,
    sources: Sources,
    seed: Seed,
    peers: Vec<PeerRow>,
    rows: Vec<ConnectionRow>,
    free: Vec<u32>,
    /// Row number by owner's slot.
    slots: Vec<u32>,
    table: HashMap<TableKey, u32, BuildHasherDefault<Mixer>>,
    resting: HashMap<u64, Lingering, BuildHasherDefault<Mixer>>,
    /// Tuples without timestamps and tuples with them, each ordered by expiry.
    rest_order: [VecDeque<(Nanos, u64)>; 2],
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Rows whose timers may have become earlier since [`TcpStack::arm`].
    touched: Vec<u32>,
    changed: Vec<u32>,
    /// The last packet, if it was read into [`TcpStack::room`].
    packet: Box<[u8]>,
    /// Row whose connection still has bytes in the packet buffer.
    lent: Option<u32>,
    out: Outbox,
    spare: Spares,
    counts: StackFacts,
    answers: AnswersLeft,
    cursor: u64,
    stamp_offset: u32,
}

/// Returns a local endpoint as a table key.
fn key(end: End) -> u64 {
    u64::from(low_bits(end.address)) << 16 | u64::from(end.port)
}

/// Key in two halves, like [`key`]: with its row it takes 12 bytes of the table instead of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TableKey([u32; 2]);

const _: () = assert!(size_of::<(TableKey, u32)>() == 12);

impl TableKey {
    fn new(end: End) -> TableKey {
        TableKey([low_bits(end.address), u32::from(end.port)])
    }
}

impl Hash for TableKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let TableKey([address, port]) = *self;
        hasher.write_u64(u64::from(address) << 16 | u64::from(port));
    }
}

/// Hash function for keys that are not chosen by an attacker.
#[derive(Clone, Copy, Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

/// The parts of a stack that a connection needs, without the rows.
macro_rules! context {
    ($stack:ident, $now:expr, $peer:expr) => {{
        let peer = &$stack.peers[usize::from($peer)];
        Context {
            now: $now,
            settings: &$stack.settings,
            out: &mut $stack.out,
            spare: &mut $stack.spare,
            counts: &mut $stack.counts,
            challenges: &mut $stack.answers.challenges,
            stamp: stamp_of($now, $stack.stamp_offset),
            first: $stack.sources.first,
            peer: peer.end,
            path_mss: peer.path_mss($now),
            stays_at: None,
        }
    }};
}

fn stamp_of(now: Nanos, offset: u32) -> u32 {
    ((now.0 / 1_000_000) as u32).wrapping_add(offset)
}

impl TcpStack {
    /// Creates a stack without connections. `seed` determines its sequence numbers, timestamps and
    /// first port.
    pub fn new(settings: TcpSettings, sources: Sources, checksums: Checksums, seed: Seed) -> Self {
        let mut draw = seed.stream(Purpose::Paths, u64::from(low_bits(sources.first)));
        TcpStack {
            settings,
            sources,
            seed: Seed(draw.next_u64()),
            peers: Vec::new(),
            rows: Vec::new(),
            free: Vec::new(),
            slots: Vec::new(),
            table: HashMap::default(),
            resting: HashMap::default(),
            rest_order: Default::default(),
            timers: BinaryHeap::new(),
            touched: Vec::new(),
            changed: Vec::new(),
            packet: Box::default(),
            lent: None,
            out: Outbox::new(checksums),
            spare: Vec::new(),
            counts: StackFacts::default(),
            answers: AnswersLeft::new(0),
            cursor: draw.below(sources.tuples().max(1)),
            stamp_offset: draw.next_u64() as u32,
        }
    }

    /// Opens a connection for a free slot. `from`: the required local address and port.
    ///
    /// # Errors
    /// Fails if no such tuple is free, or the peer's address has a different family than the stack.
    pub fn open(
        &mut self,
        now: Nanos,
        slot: u32,
        peer: End,
        nodelay: bool,
        from: (Option<IpAddr>, Option<u16>),
    ) -> Result<(), FailureClass> {
        if peer.address.is_ipv4() != self.sources.first.is_ipv4() {
            return Err(FailureClass::Unreachable);
        }
        self.forget_after_time_wait(now);
        let Some(end) = self.tuple(now, from) else {
            self.counts.tuples_out += 1;
            return Err(FailureClass::AddressUnavailable);
        };
        let peer = self.peer(peer).ok_or(FailureClass::AddressUnavailable)?;
        let mut iss = self.initial_number(now, end, self.peers[usize::from(peer)].end);
        if let Some(rest) = self.resting.remove(&key(end)) {
            let least = rest.snd_nxt.wrapping_add(0x1_0001);
            iss = if before(iss, least) { least } else { iss };
        }
        let connection = Tcb::open(end, peer, iss, nodelay, &mut context!(self, now, peer));
        let row = ConnectionRow {
            connection,
            owner: slot,
            pending: FromSegment::default(),
            scheduled: Nanos::NEVER,
            touched: false,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.rows[index as usize] = row;
                index
            }
            None => {
                if self.rows.len() == self.rows.capacity() {
                    self.rows.reserve_exact(room_for_more(self.rows.len()));
                }
                self.rows.push(row);
                self.rows.len() as u32 - 1
            }
        };
        if self.slots.len() <= slot as usize {
            let more = slot as usize + 1 - self.slots.len();
            if self.slots.capacity() <= slot as usize {
                self.slots.reserve_exact(more.max(room_for_more(self.slots.len())));
            }
            self.slots.resize(slot as usize + 1, UNUSED);
        }
        self.slots[slot as usize] = index;
        self.table.insert(TableKey::new(end), index);
        self.schedule(index);
        Ok(())
    }

    /// Returns whether no tuple is free, without examining each of them: there may be millions.
    fn are_used_up(&mut self, now: Nanos) -> bool {
        // reused tuples are no longer in TIME-WAIT
        let [_, stamped] = &mut self.rest_order;
        while let Some((since, key)) = stamped.front().copied()
            && self.resting.get(&key).is_none_or(|rest| rest.since != since)
        {
            stamped.pop_front();
        }
        let taken = (self.table.len() + self.resting.len()) as u64;
        // the others are reused only after they expire
        let oldest = stamped.front().map(|(since, _)| *since);
        taken >= self.sources.tuples() && oldest.is_none_or(|since| now - since < REUSE_AFTER)
    }

    /// Returns a free tuple.
    fn tuple(&mut self, now: Nanos, from: (Option<IpAddr>, Option<u16>)) -> Option<End> {
        let pool = match from {
            (None, None) if self.are_used_up(now) => return None,
            (None, None) => self.sources,
            (Some(address), None) => Sources { first: address, addresses: 1, ..self.sources },
            (None, Some(port)) => Sources { port_first: port, port_last: port, ..self.sources },
            (Some(address), Some(port)) => {
                Sources { first: address, addresses: 1, port_first: port, port_last: port }
            }
        };
        for _ in 0..pool.tuples() {
            let end = pool.nth(self.cursor);
            self.cursor = self.cursor.wrapping_add(1);
            let inside = self.sources.holds(end) || from.1.is_some() && self.owns(end.address);
            if !inside {
                return None;
            }
            let rests = self.resting.get(&key(end));
            let rested = rests.is_none_or(|rest| rest.stamps && now - rest.since >= REUSE_AFTER);
            if rested && !self.table.contains_key(&TableKey::new(end)) {
                return Some(end);
            }
        }
        None
    }

    fn owns(&self, address: IpAddr) -> bool {
        self.sources.has(address)
    }

    fn peer(&mut self, end: End) -> Option<u16> {
        if let Some(row) = self.peers.iter().position(|peer| peer.end == end) {
            return Some(row as u16);
        }
        if self.peers.len() >= PEERS_MAX {
            return None;
        }
        self.peers.push(PeerRow { end, path_mss: u16::MAX, narrowed: Nanos::ZERO });
        Some(self.peers.len() as u16 - 1)
    }

    /// Returns the initial sequence number: a clock in units of 64 ns plus a number that depends on
    /// the tuple (RFC 6528).
    fn initial_number(&self, now: Nanos, from: End, to: End) -> u32 {
        let mut there = Mixer::default();
        to.hash(&mut there);
        let tuple = key(from) ^ there.finish().rotate_left(24);
        let salt = self.seed.stream(Purpose::Paths, tuple).next_u64() as u32;
        salt.wrapping_add((now.0 / 64) as u32)
    }

    fn row(&self, slot: u32) -> Option<u32> {
        self.slots.get(slot as usize).copied().filter(|row| *row != UNUSED)
    }

    /// Calls a function on the connection of a slot and processes the consequences.
    fn with<T>(
        &mut self,
        now: Nanos,
        index: u32,
        act: impl FnOnce(&mut Tcb, &mut Context<'_>) -> T,
    ) -> T {
        self.refill(now);
        let row = &mut self.rows[index as usize];
        let peer = row.connection.peer;
        let done = act(&mut row.connection, &mut context!(self, now, peer));
        self.settle(now, index);
        done
    }

    fn refill(&mut self, now: Nanos) {
        let second = now.0 / 1_000_000_000;
        if self.answers.second != second {
            self.answers = AnswersLeft::new(second);
        }
    }

    /// Handles the end of any operation: updates the timer and removes finished connections without
    /// an owner.
    fn settle(&mut self, now: Nanos, index: u32) {
        let row = &self.rows[index as usize];
        let over = matches!(row.connection.state, TcpState::Done | TcpState::TimeWait);
        if !(over && row.owner == UNUSED) {
            return self.schedule(index);
        }
        let connection = &mut self.rows[index as usize].connection;
        let end = connection.own_end(self.sources.first);
        let rest = (connection.state == TcpState::TimeWait).then(|| Lingering {
            since: now,
            snd_nxt: connection.snd_nxt,
            rcv_nxt: connection.rcv_nxt,
            stamps: connection.has(bit::STAMPS),
            stamp: connection.ts_recent,
        });
        connection.state = TcpState::Done;
        connection.release(&mut self.spare);
        self.rows[index as usize].scheduled = Nanos::NEVER;
        self.table.remove(&TableKey::new(end));
        self.free.push(index);
        if let Some(rest) = rest {
            self.rest(end, rest);
        }
    }

    fn rest(&mut self, end: End, rest: Lingering) {
        let order = &mut self.rest_order[usize::from(rest.stamps)];
        let oldest = if order.len() >= RESTING_MAX { order.pop_front() } else { None };
        order.push_back((rest.since, key(end)));
        if let Some((since, key)) = oldest {
            self.forget(since, key);
        }
        self.resting.insert(key(end), rest);
    }

    fn forget(&mut self, since: Nanos, key: u64) {
        if self.resting.get(&key).is_some_and(|rest| rest.since == since) {
            self.resting.remove(&key);
        }
    }

    fn forget_after_time_wait(&mut self, now: Nanos) {
        for row in 0..self.rest_order.len() {
            while let Some((since, key)) = self.rest_order[row].front().copied()
                && now - since >= self.settings.time_wait
            {
                self.rest_order[row].pop_front();
                self.forget(since, key);
            }
        }
    }

    fn schedule(&mut self, index: u32) {
        let row = &mut self.rows[index as usize];
        if !row.touched && row.due() < row.scheduled {
            row.touched = true;
            self.touched.push(index);
        }
    }

    /// Sets the timers for everything done since the last call, and acknowledges data that arrived
    /// in packets longer than a segment. Must be called after the owner has processed the last
    /// changes: the acknowledgment of a response is nearly always sent with the next request, so
    /// that a timer would be set and canceled for every call.
    pub fn arm(&mut self, now: Nanos) {
        for at in 0..self.touched.len() {
            let index = self.touched[at];
            if self.rows[index as usize].due() == WITH_BATCH {
                self.with(now, index, |connection, c| connection.acknowledge(c));
            }
            let row = &mut self.rows[index as usize];
            row.touched = false;
            let due = row.due();
            // one entry that is not later is enough; it is inserted again if nothing is due
            if due < row.scheduled {
                row.scheduled = due;
                self.timers.push(Reverse((due, index)));
            }
        }
        self.touched.clear();
    }

    /// Writes bytes; returns how many were accepted.
    ///
    /// # Errors
    /// Fails if the connection is not established yet, the send buffer is full, or the connection
    /// is finished.
    pub fn write(&mut self, now: Nanos, slot: u32, bytes: &[u8]) -> Result<usize, NotDone> {
        let Some(index) = self.row(slot) else {
            return Err(NotDone::Failed(FailureClass::OtherIo));
        };
        let connection = &self.rows[index as usize].connection;
        if let Some(class) = connection.cold.as_ref().and_then(|cold| cold.failed) {
            return Err(NotDone::Failed(class));
        }
        if connection.has(bit::FIN_DUE) || connection.state == TcpState::Done {
            return Err(NotDone::Failed(FailureClass::Reset));
        }
        let taken = self.with(now, index, |connection, c| connection.write(bytes, c));
        taken.ok_or(NotDone::WouldBlock)
    }

    /// Copies received data; 0 is the end of the stream.
    ///
    /// # Errors
    /// Fails if there is no data yet, or the connection failed.
    pub fn read(&mut self, now: Nanos, slot: u32, into: &mut [u8]) -> Result<usize, NotDone> {
        let Some(index) = self.row(slot) else {
            return Err(NotDone::Failed(FailureClass::OtherIo));
        };
        if self.lent == Some(index) {
            self.keep();
        }
        if let Some(count) = self.with(now, index, |connection, c| connection.read(into, c)) {
            return Ok(count);
        }
        let connection = &self.rows[index as usize].connection;
        match connection.cold.as_ref().and_then(|cold| cold.failed) {
            Some(class) => Err(NotDone::Failed(class)),
            None => Err(NotDone::WouldBlock),
        }
    }

    /// Returns received data, as [`TcpStack::read`]. If the last of it is in the last packet, the
    /// packet's buffer is swapped with `buffer`, which then receives the next packet. Returns where
    /// the bytes are.
    ///
    /// # Errors
    /// Fails like [`TcpStack::read`].
    pub fn take(
        &mut self,
        now: Nanos,
        slot: u32,
        buffer: &mut Box<[u8]>,
    ) -> Result<Range<usize>, NotDone> {
        if let Some(index) = self.lent.filter(|_| buffer.len() >= self.packet.len())
            && self.row(slot) == Some(index)
        {
            let mut packet = std::mem::take(&mut self.packet);
            let taken = self.with(now, index, |connection, c| connection.take_lent(&mut packet, c));
            if taken.is_some() {
                self.lent = None;
                std::mem::swap(buffer, &mut packet);
            }
            self.packet = packet;
            if let Some(range) = taken {
                return Ok(range);
            }
        }
        self.read(now, slot, buffer).map(|count| 0..count)
    }

    /// Closes the connection of the slot: with a FIN after the written data, or at once with a
    /// reset.
    pub fn close(&mut self, now: Nanos, slot: u32, reset: bool) {
        let Some(index) = self.row(slot) else { return };
        self.slots[slot as usize] = UNUSED;
        self.rows[index as usize].owner = UNUSED;
        self.rows[index as usize].pending = FromSegment::default();
        self.with(now, index, |connection, c| match reset {
            true => connection.abort(c),
            false => connection.orphan(c),
        });
    }

    /// Closes our side; received data can still be read.
    pub fn shutdown_write(&mut self, now: Nanos, slot: u32) {
        if let Some(index) = self.row(slot) {
            self.with(now, index, |connection, c| connection.shutdown_write(c));
        }
    }

    pub fn send_urgent(&mut self, now: Nanos, slot: u32, byte: u8) {
        if let Some(index) = self.row(slot) {
            self.with(now, index, |connection, c| connection.send_urgent(byte, c));
        }
    }

    pub fn facts(&self, slot: u32) -> Option<SocketFacts> {
        let connection = &self.rows[self.row(slot)? as usize].connection;
        Some(SocketFacts {
            retransmits: u64::from(connection.retransmitted),
            rtt: Nanos::from_micros(u64::from(connection.srtt)),
        })
    }

    /// Returns memory for the next packet, for [`TcpStack::deliver_here`]: the end of a buffer of
    /// `size` bytes, as long as those it is swapped with in [`TcpStack::take`].
    pub fn room(&mut self, size: usize) -> &mut [u8] {
        self.keep();
        if self.packet.len() < size {
            self.packet = vec![0; size].into_boxed_slice();
        }
        &mut self.packet[HEADROOM.min(size)..]
    }

    /// Delivers the packet at `at` of the last [`TcpStack::room`]. Its data may stay there; returns
    /// true if so. It is copied when room for the next packet is requested, so the reader should
    /// run first.
    pub fn deliver_here(&mut self, now: Nanos, at: Range<usize>, checked: bool) -> bool {
        let packet = std::mem::take(&mut self.packet);
        let at = at.start + HEADROOM..at.end + HEADROOM;
        self.take_in(now, &packet[at.clone()], checked, Some(at.start));
        self.packet = packet;
        self.lent.is_some()
    }

    /// Delivers a packet. `checked`: its TCP checksum need not be verified.
    pub fn deliver(&mut self, now: Nanos, packet: &[u8], checked: bool) {
        self.keep();
        self.take_in(now, packet, checked, None);
    }

    /// Copies the unread bytes of the last packet.
    fn keep(&mut self) {
        if let Some(index) = self.lent.take()
            && let Some(cold) = &mut self.rows[index as usize].connection.cold
        {
            cold.keep(&self.packet);
        }
    }

    /// Processes a received packet.
    /// `stays_at`: offset of the packet in the memory in which it stays.
    fn take_in(&mut self, now: Nanos, packet: &[u8], checked: bool, stays_at: Option<usize>) {
        match read(packet, checked) {
            Some(ArrivedPacket::Segment { flow, head, payload }) => {
                self.counts.received += 1;
                let offset = payload.as_ptr().addr() - packet.as_ptr().addr();
                let stays_at = stays_at.filter(|_| payload.len() >= LENT_MIN);
                let stays_at = stays_at.map(|at| (at + offset) as u32);
                self.segment(now, &flow, &head, payload, stays_at);
            }
            Some(ArrivedPacket::TooLarge { ours, seq, mtu }) => {
                if let Some(index) = self.quoted(&ours, seq) {
                    let peer = usize::from(self.rows[index as usize].connection.peer);
                    let fits = fitting(mtu, ours.to).max(PATH_MSS_MIN);
                    self.peers[peer].narrow(fits, now);
                    self.with(now, index, |connection, c| connection.too_large(mtu, c));
                }
            }
            Some(ArrivedPacket::Unreachable { ours, seq }) => {
                if let Some(index) = self.quoted(&ours, seq)
                    && self.rows[index as usize].connection.state == TcpState::SynSent
                {
                    // an established connection is not closed by it (RFC 5927 section 6)
                    let class = FailureClass::Unreachable;
                    self.with(now, index, |connection, c| connection.fail(class, c));
                    self.notify(index, FromSegment { readable: true, writable: true, ended: true });
                }
            }
            None => {}
        }
    }

    /// Returns the connection of a quoted packet of ours; a forger does not know its sequence
    /// number.
    fn quoted(&self, ours: &Flow, seq: u32) -> Option<u32> {
        if !self.owns(ours.from.address) {
            return None;
        }
        let index = *self.table.get(&TableKey::new(ours.from))?;
        let connection = &self.rows[index as usize].connection;
        let under_way = match &connection.cold {
            Some(cold) => not_after(connection.snd_una, seq) && before(seq, cold.snd_max),
            None => false,
        };
        let ours = self.peers[usize::from(connection.peer)].end == ours.to;
        (ours && under_way).then_some(index)
    }

    fn segment(
        &mut self,
        now: Nanos,
        flow: &Flow,
        head: &Head,
        payload: &[u8],
        stays_at: Option<u32>,
    ) {
        if !self.owns(flow.to.address) {
            return;
        }
        self.refill(now);
        match self.table.get(&TableKey::new(flow.to)).copied() {
            Some(index) if self.is_peer(index, flow.from) => {
                let (reported, lent) = self.with(now, index, |connection, c| {
                    c.stays_at = stays_at;
                    let reported = connection.arrive(head, payload, c);
                    (reported, connection.cold.as_ref().is_some_and(|cold| !cold.lent.is_empty()))
                });
                if lent {
                    self.lent = Some(index);
                }
                self.notify(index, reported);
            }
            _ => self.answer_unknown(flow, head, payload, stamp_of(now, self.stamp_offset)),
        }
    }

    fn is_peer(&self, index: u32, from: End) -> bool {
        let peer = self.rows[index as usize].connection.peer;
        self.peers[usize::from(peer)].end == from
    }

    /// Handles a segment without a connection: acknowledges again if we closed first, otherwise
    /// resets (RFC 9293 section 3.10.7.1).
    fn answer_unknown(&mut self, flow: &Flow, head: &Head, payload: &[u8], stamp: u32) {
        let length = payload.len() as u32 + u32::from(head.has(flag::FIN | flag::SYN));
        if head.has(flag::RST) || self.answers.strangers == 0 {
            return;
        }
        let back = Flow { from: flow.to, to: flow.from };
        let answer = match self.resting.get(&key(flow.to)) {
            Some(_) if length == 0 => return,
            Some(rest) => Head {
                seq: rest.snd_nxt,
                ack: rest.rcv_nxt,
                flags: flag::ACK,
                window: 0xffff,
                stamps: rest.stamps.then_some((stamp, rest.stamp)),
                ..Head::default()
            },
            None if head.has(flag::ACK) => {
                Head { seq: head.ack, flags: flag::RST, ..Head::default() }
            }
            None => Head {
                ack: head.seq.wrapping_add(length),
                flags: flag::RST | flag::ACK,
                ..Head::default()
            },
        };
        self.answers.strangers -= 1;
        self.counts.resets_sent += u64::from(answer.has(flag::RST));
        self.counts.sent += 1;
        self.out.push(&back, &answer, [&[], &[]]);
    }

    fn notify(&mut self, index: u32, reported: FromSegment) {
        let row = &mut self.rows[index as usize];
        if row.owner == UNUSED || reported == FromSegment::default() {
            return;
        }
        if row.pending == FromSegment::default() {
            self.changed.push(index);
        }
        row.pending.readable |= reported.readable;
        row.pending.writable |= reported.writable;
        row.pending.ended |= reported.ended;
    }

    /// Reports the changes since the last call, each slot once.
    pub fn changes(&mut self, mut each: impl FnMut(Readiness)) {
        for index in self.changed.drain(..) {
            let row = &mut self.rows[index as usize];
            let FromSegment { readable, writable, ended } = std::mem::take(&mut row.pending);
            if row.owner != UNUSED && (readable || writable || ended) {
                each(Readiness { slot: row.owner, readable, writable, ended });
            }
        }
    }

    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Returns when [`TcpStack::tick`] is due; it may find nothing to do.
    pub fn next_due(&mut self, now: Nanos) -> Nanos {
        self.arm(now);
        self.timers.peek().map_or(Nanos::NEVER, |Reverse((due, _))| *due)
    }

    /// Performs everything that is due.
    pub fn tick(&mut self, now: Nanos) {
        while let Some(Reverse((due, index))) = self.timers.peek().copied()
            && due <= now
        {
            self.timers.pop();
            let row = &mut self.rows[index as usize];
            if row.scheduled != due {
                continue;
            }
            row.scheduled = Nanos::NEVER;
            let was_whole = row.connection.state != TcpState::Done;
            self.with(now, index, |connection, c| connection.tick(c));
            let row = &self.rows[index as usize];
            if was_whole && row.connection.state == TcpState::Done {
                self.notify(index, FromSegment { readable: true, writable: true, ended: true });
            }
        }
        self.free_expired_timers();
    }

    /// Frees the memory of expired timers: an established connection had one for its SYN, and an
    /// idle one has none.
    fn free_expired_timers(&mut self) {
        let held = self.timers.len();
        let room = self.timers.capacity();
        if room > TIMERS_KEPT && held < room / 8 {
            self.timers.shrink_to(2 * held);
        }
    }

    /// Resets open connections so that no server waits for them: the rows from `from` on, until
    /// some hundreds of packets are waiting. Returns the row at which to continue, if there are
    /// more.
    pub fn abandon(&mut self, now: Nanos, from: u32) -> Option<u32> {
        self.slots.clear();
        for index in from..self.rows.len() as u32 {
            if self.out.len() >= RESETS_AT_ONCE {
                return Some(index);
            }
            self.rows[index as usize].owner = UNUSED;
            if self.rows[index as usize].connection.state != TcpState::Done {
                self.with(now, index, |connection, c| connection.abandon(c));
            }
        }
        None
    }

    /// Returns the first of the local addresses.
    pub fn first_address(&self) -> IpAddr {
        self.sources.first
    }

    /// Returns the outgoing packets.
    pub fn outgoing(&self) -> &Outbox {
        &self.out
    }

    /// Records that the outgoing packets were sent.
    pub fn sent(&mut self) {
        self.out.clear();
    }

    pub fn counts(&self) -> StackFacts {
        self.counts
    }

    /// Returns the number of unfinished connections, including those without an owner.
    pub fn connections(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of tuples in TIME-WAIT.
    pub fn resting(&self) -> usize {
        self.resting.len()
    }

    /// Returns the distance of the last recovery mark and the last congestion mark behind the
    /// acknowledged data.
    #[cfg(test)]
    pub(crate) fn marks_after(&self, slot: u32) -> Option<(u32, u32)> {
        let connection = &self.rows[self.row(slot)? as usize].connection;
        let cold = connection.cold.as_ref()?;
        let behind = |mark: u32| connection.snd_una.wrapping_sub(mark);
        Some((behind(cold.recover), behind(cold.eased)))
    }

    /// Returns the number of tuples examined in the search for free ones.
    #[cfg(test)]
    pub(crate) fn tuples_examined(&self) -> u64 {
        self.cursor
    }

    /// Returns the number of bytes used by the buffers of all connections.
    #[cfg(test)]
    pub(crate) fn buffers(&self) -> usize {
        let buffers = |row: &ConnectionRow| row.connection.cold.as_ref().map(|cold| cold.buffers());
        self.rows.iter().filter_map(buffers).sum()
    }

    /// Returns the number of bytes used by the stack for idle connections: tables and rows, without
    /// buffers.
    pub fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<ConnectionRow>()
            + self.slots.capacity() * size_of::<u32>()
            + self.free.capacity() * size_of::<u32>()
            // a bucket of the table has its key, its value and one byte
            + self.table.capacity() * 8 / 7 * (size_of::<(TableKey, u32)>() + 1)
            + self.timers.capacity() * size_of::<(Nanos, u32)>()
    }
}
