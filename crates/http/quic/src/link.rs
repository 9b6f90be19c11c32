//! One connection: the state of the library, data waiting for the worker, data waiting for the
//! peer.

use crate::clock::Clock;
use crate::early::Early;
use crate::inbox::Inbox;
use crate::loss::Loss;
use crate::migration::{Migration, Moves};
use crate::transport::{number_of_parameter, parameter};
use bytes::Bytes;
use conduit::streams::{self, Cutter, Head, PieceKind};
use conduit::{Io, IoError, OpenOptions, Peer, Slot};
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, Dir, Endpoint, EndpointEvent, Event, ReadError,
    SendStream, Side, StreamEvent, StreamId, VarInt, WriteError,
};
use sample::{FailureClass, QuicEnd, QuicFacts, TlsFacts};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;
use units::Nanos;

/// Maximum number of datagrams per system call.
const BATCH: usize = 10;

/// Maximum number of bytes of a stream read at once.
const CHUNK_MAX: usize = 64 << 10;

/// A timer that expires later is checked earlier: it moves with each datagram, and outdated entries
/// would accumulate for as long as a connection may be idle.
const RECHECK_INTERVAL: Nanos = Nanos::from_secs(1);

/// H3_NO_ERROR: the code with which our side closes a connection without an error.
const NO_ERROR: u64 = 0x100;

/// initial_max_streams_bidi (RFC 9000 section 18.2).
const MAX_STREAMS_BIDI: u64 = 0x8;
/// disable_active_migration (RFC 9000 section 18.2).
const DISABLE_ACTIVE_MIGRATION: u64 = 0xc;

pub(crate) struct QuicLink {
    handle: ConnectionHandle,
    connection: Connection,
    remote: SocketAddr,
    /// Pieces for the worker.
    inbox: Inbox,
    /// The handshake is complete; and the worker has written since.
    is_established: bool,
    greeted: bool,
    loss: Option<Loss>,
    /// Parser of the worker's writes.
    cutter: Cutter,
    code: Vec<u8>,
    /// Stream data held back by the peer's windows.
    held: BTreeMap<u64, HeldBytes>,
    /// Streams that the peer does not permit yet, with their order, bidirectional and
    /// unidirectional.
    unopened: BTreeMap<u64, HeldBytes>,
    queues: [VecDeque<u64>; 2],
    /// Number of our streams opened: bidirectional, unidirectional.
    opened: [u64; 2],
    /// The code with which the worker wants to close the connection.
    closing: Option<u64>,
    /// Datagrams that the socket did not accept.
    unsent: Unsent,
    /// The entry among the alarms; `NEVER` without an entry.
    armed: Nanos,
    /// Number of waits until the pending replies are due; 0: none are pending.
    owes: u8,
    /// True if requests may be sent before the handshake is complete.
    may_be_early: bool,
    early: Early,
    /// Changes of the local port, and how sockets for them are opened.
    migration: Option<Box<(Migration, OpenOptions)>>,
}

/// Unwritten data of a stream.
#[derive(Debug, Default)]
struct HeldBytes {
    bytes: Vec<u8>,
    at: usize,
    last: bool,
    /// Code with which the stream was canceled before it was opened: it is opened nevertheless,
    /// because stream numbers may not be skipped.
    given_up: Option<u64>,
}

#[derive(Debug, Default)]
struct Unsent {
    bytes: Vec<u8>,
    at: usize,
    each: usize,
}

/// State of the replies to received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Debt {
    Paid,
    Due,
    NextTime,
}

/// Events for the worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl News {
    pub(crate) fn any(self) -> bool {
        self.readable || self.writable
    }
}

impl QuicLink {
    pub(crate) fn new(
        handle: ConnectionHandle,
        connection: Connection,
        remote: SocketAddr,
        may_be_early: bool,
        moves: Option<(Moves, OpenOptions)>,
    ) -> QuicLink {
        let migration = moves.map(|(moves, options)| Box::new((Migration::new(moves), options)));
        QuicLink {
            handle,
            connection,
            remote,
            inbox: Inbox::default(),
            is_established: false,
            greeted: false,
            loss: None,
            cutter: Cutter::default(),
            code: Vec::new(),
            held: BTreeMap::new(),
            unopened: BTreeMap::new(),
            queues: <[VecDeque<u64>; 2]>::default(),
            opened: [0; 2],
            closing: None,
            unsent: Unsent::default(),
            armed: Nanos::NEVER,
            owes: 0,
            may_be_early,
            early: Early::default(),
            migration,
        }
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.loss.is_some()
    }

    /// Returns the number of bytes waiting for the worker.
    pub(crate) fn waiting(&self) -> usize {
        self.inbox.waiting()
    }

    /// Returns whether the socket did not accept all datagrams.
    pub(crate) fn is_blocked(&self) -> bool {
        self.unsent.at < self.unsent.bytes.len()
    }

    /// Records that the socket itself has failed.
    pub(crate) fn lose_path(&mut self, class: FailureClass) {
        let was_established = self.is_established;
        self.loss.get_or_insert_with(|| Loss::on_path(class, was_established));
    }

    /// Processes a received datagram that the endpoint assigns to `handle`.
    pub(crate) fn process(&mut self, handle: ConnectionHandle, event: ConnectionEvent) {
        if handle == self.handle {
            self.connection.handle_event(event);
        }
    }

    /// Handles received data. The worker has one turn to write in response, and one more if it must
    /// first be notified that it may write. Returns whether no reply was pending before.
    pub(crate) fn postpone_replies(&mut self) -> bool {
        let turns = if self.is_established && !self.greeted { 2 } else { 1 };
        let owed = self.owes;
        self.owes = owed.max(turns);
        owed == 0
    }

    /// Handles the start of a wait; returns whether pending replies are due.
    pub(crate) fn send_postponed_replies(&mut self) -> Debt {
        match self.owes {
            0 => Debt::Paid,
            1 => Debt::Due,
            _ => {
                self.owes -= 1;
                Debt::NextTime
            }
        }
    }

    /// Returns how many written bytes of a stream wait for the peer.
    pub(crate) fn unsent(&self, number: u64) -> usize {
        let held = self.held.get(&number).or_else(|| self.unopened.get(&number));
        held.map_or(0, |held| held.bytes.len() - held.at)
    }

    pub(crate) fn time_out(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }
}

/// Writes as much of `bytes` as a stream accepts, and returns the length. Called until the stream
/// refuses: when the connection has credit again, the library reports only streams that were
/// refused.
fn write_to(stream: &mut SendStream<'_>, bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        match stream.write(&bytes[at..]) {
            Ok(written) => at += written,
            Err(WriteError::Blocked) => break,
            // stopped or finished: its data is not wanted
            Err(_) => return bytes.len(),
        }
    }
    at
}

/// Methods that the worker calls.
impl QuicLink {
    /// Processes pieces of the worker.
    ///
    /// # Errors
    /// Fails with `WouldBlock` before the handshake is complete, and with `Failed` if the
    /// connection is closed.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        if let Some(loss) = &self.loss {
            return loss.after_close(()).and(Err(IoError::Failed(FailureClass::ClosedEarly)));
        }
        if !self.is_established {
            if !self.may_be_early || !self.connection.has_0rtt() {
                return Err(IoError::WouldBlock);
            }
            self.early.keep(bytes);
        }
        self.greeted = true;
        self.take_pieces(bytes)
    }

    fn take_pieces(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        let mut at = 0;
        while at < bytes.len() {
            let Ok(head_bytes) = self.cutter.open(&bytes[at..]) else {
                return Err(IoError::Failed(FailureClass::OtherIo));
            };
            at += head_bytes;
            let Some(head) = self.cutter.current() else { break };
            let payload = self.cutter.payload(&bytes[at..]);
            at += payload.len();
            if head.kind != PieceKind::Data {
                self.code.extend_from_slice(payload);
            }
            let whole = self.cutter.pass(payload.len());
            match head.kind {
                PieceKind::Data if whole || !payload.is_empty() => {
                    self.put(head.stream, payload, head.last && whole);
                }
                _ if whole => self.command(head),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends data of a stream, which its first bytes open.
    fn put(&mut self, number: u64, bytes: &[u8], last: bool) {
        if let Some(held) = self.unopened.get_mut(&number) {
            return held.add(bytes, last);
        }
        if !self.is_open(number) && !self.open_next(number) {
            let mut held = HeldBytes::default();
            held.add(bytes, last);
            self.unopened.insert(number, held);
            return self.queues[id_of(number).dir() as usize].push_back(number);
        }
        if let Some(held) = self.held.get_mut(&number) {
            return held.add(bytes, last);
        }
        let mut stream = self.connection.send_stream(id_of(number));
        let written = write_to(&mut stream, bytes);
        if written == bytes.len() {
            if last {
                // fails if the peer no longer wants it: its response shows why
                stream.finish().ok();
            }
            return;
        }
        let mut held = HeldBytes::default();
        held.add(&bytes[written..], last);
        self.held.insert(number, held);
    }

    fn is_open(&self, number: u64) -> bool {
        let id = id_of(number);
        id.index() < self.opened[id.dir() as usize]
    }

    /// Opens the stream with this number, if the peer permits so many; unopened lower-numbered
    /// streams are opened with it (RFC 9000 section 2.1).
    fn open_next(&mut self, number: u64) -> bool {
        let dir = id_of(number).dir();
        let queued = !self.queues[dir as usize].is_empty();
        while !queued && !self.is_open(number) {
            if self.connection.streams().open(dir).is_none() {
                return false;
            }
            self.opened[dir as usize] += 1;
        }
        if !queued {
            self.note_opened(number);
        }
        !queued
    }

    /// Records that a stream was opened.
    fn note_opened(&mut self, number: u64) {
        if id_of(number).dir() == Dir::Uni {
            return;
        }
        if !self.is_established {
            self.early.count_request();
        }
        if let Some(moving) = &mut self.migration {
            moving.0.opened(number);
        }
    }

    /// Counts a request that has its response, or was canceled.
    fn count_ended(&mut self, number: u64) {
        if let Some(moving) = &mut self.migration {
            moving.0.ended(number);
        }
    }

    /// Handles the end of the handshake: writes rejected early data again.
    fn settle_early(&mut self) {
        let read = self.connection.accepted_0rtt();
        let again = self.early.settle(read);
        if again.is_empty() {
            return;
        }
        // the library has forgotten its streams
        self.opened = [0; 2];
        self.held.clear();
        self.unopened.clear();
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.cutter = Cutter::default();
        self.code.clear();
        self.take_pieces(&again).expect("pieces that were taken before are taken again");
    }

    /// Opens waiting streams, after the peer has permitted more.
    fn open_waiting(&mut self, dir: Dir) {
        while let Some(&number) = self.queues[dir as usize].front() {
            while !self.is_open(number) {
                if self.connection.streams().open(dir).is_none() {
                    return;
                }
                self.opened[dir as usize] += 1;
            }
            self.queues[dir as usize].pop_front();
            let held = self.unopened.remove(&number).expect("a stream in a queue is unopened");
            self.note_opened(number);
            if let Some(code) = held.given_up {
                self.give_up(number, code);
                continue;
            }
            streams::put_code(self.inbox.pieces(), PieceKind::Opened, number, None);
            self.held.insert(number, held);
            self.write_held(number);
        }
    }

    fn give_up(&mut self, number: u64, code: u64) {
        self.count_ended(number);
        let id = id_of(number);
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        // either side of it may be finished already
        self.connection.send_stream(id).reset(code).ok();
        self.connection.recv_stream(id).stop(code).ok();
    }

    fn command(&mut self, head: Head) {
        let number = head.stream;
        let code = streams::code(&self.code).unwrap_or(0);
        self.code.clear();
        // for the connection, not a stream, although its number is that of the first
        if head.kind == PieceKind::Close {
            self.closing = Some(code);
            return;
        }
        if let Some(held) = self.unopened.get_mut(&number) {
            *held = HeldBytes { given_up: Some(code), ..HeldBytes::default() };
            return;
        }
        let id = id_of(number);
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        match head.kind {
            PieceKind::Reset => {
                self.count_ended(number);
                self.held.remove(&number);
                self.connection.send_stream(id).reset(code).ok();
            }
            PieceKind::Stop => {
                self.connection.recv_stream(id).stop(code).ok();
            }
            PieceKind::Data
            | PieceKind::Opened
            | PieceKind::Allowed
            | PieceKind::Close
            | PieceKind::Datagram
            | PieceKind::Initial
            | PieceKind::Sent
            | PieceKind::Packet
            | PieceKind::Limit
            | PieceKind::Port
            | PieceKind::Frame
            | PieceKind::Shake
            | PieceKind::Hello
            | PieceKind::Action
            | PieceKind::Went => {}
        }
    }

    fn write_held(&mut self, number: u64) {
        let Some(held) = self.held.get_mut(&number) else { return };
        let mut stream = self.connection.send_stream(id_of(number));
        let written = write_to(&mut stream, &held.bytes[held.at..]);
        if written > 0 {
            streams::put_code(self.inbox.pieces(), PieceKind::Went, number, None);
        }
        held.at += written;
        if held.at == held.bytes.len() {
            if held.last {
                stream.finish().ok();
            }
            self.held.remove(&number);
        }
    }

    /// Reads pieces for the worker; returns their length.
    ///
    /// # Errors
    /// Fails if there is no data now, or the connection is closed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        // data that a server sends with its last handshake message is delivered after the worker's
        // first write
        let hold = self.is_established && !self.greeted && self.loss.is_none();
        let count = if hold { 0 } else { self.inbox.read(buffer) };
        if count == 0 {
            return match &self.loss {
                Some(loss) => loss.after_close(0),
                None => Err(IoError::WouldBlock),
            };
        }
        Ok(count)
    }
}

/// Calls into the QUIC library.
impl QuicLink {
    /// Processes the output of the library.
    pub(crate) fn pump(&mut self, endpoint: &mut Endpoint, now: Nanos) -> News {
        let before = self.inbox.waiting();
        let ended = self.has_ended();
        let mut news = News::default();
        loop {
            while let Some(event) = self.connection.poll_endpoint_events() {
                if let Some(answer) = endpoint.handle_event(self.handle, event) {
                    self.connection.handle_event(answer);
                }
            }
            let Some(event) = self.connection.poll() else { break };
            match event {
                Event::Connected => {
                    self.complete_handshake(now);
                    news.writable = true;
                    let allowed = allowed(&self.connection);
                    streams::put_code(self.inbox.pieces(), PieceKind::Allowed, 0, Some(allowed));
                }
                Event::ConnectionLost { reason } => {
                    let was_established = self.is_established;
                    if self.loss.is_none() {
                        self.loss = Some(Loss::new(&reason, was_established));
                        if let Some(code) = Loss::code_of(&reason) {
                            streams::put_code(self.inbox.pieces(), PieceKind::Close, 0, Some(code));
                        }
                        if let Some(fault) = Loss::fault_of(&reason).filter(|_| was_established) {
                            streams::put(self.inbox.pieces(), PieceKind::Frame, fault, &[]);
                        }
                    }
                }
                Event::Stream(event) => self.stream_event(&event),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                }
            }
        }
        let lost = self.has_ended() && !ended;
        news.writable |= lost;
        news.readable = lost || news.writable || self.inbox.waiting() > before;
        news
    }

    /// Handles the end of the handshake.
    fn complete_handshake(&mut self, now: Nanos) {
        self.is_established = true;
        self.settle_early();
        if let Some(moving) = &mut self.migration {
            let allowed = of_peer(&self.connection, DISABLE_ACTIVE_MIGRATION).is_none();
            moving.0.begin(allowed, now);
        }
    }

    /// Continues from another local port, if due: datagrams on their way to the old one are lost.
    pub(crate) fn move_if_due<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let Some(moving) = &mut self.migration else { return };
        let (migration, options) = &mut **moving;
        let asked = self.connection.stats().frame_rx.path_challenge;
        migration.process(asked, now);
        if self.loss.is_some() || !migration.is_due(now) {
            return;
        }
        let fresh = OpenOptions { port: None, ..options.clone() };
        match io.open(slot, &Peer::Udp(self.remote), &fresh) {
            Ok(()) => {
                migration.note_change(asked, now);
                self.unsent = Unsent::default();
                self.connection.local_address_changed();
            }
            Err(_) => migration.stop(),
        }
    }

    fn stream_event(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.connection.streams().accept(*dir) {
                    self.take_in(id);
                }
            }
            StreamEvent::Readable { id } => self.take_in(*id),
            StreamEvent::Writable { id } => self.write_held(number_of(*id)),
            StreamEvent::Stopped { id, error_code } => {
                let number = number_of(*id);
                self.held.remove(&number);
                self.connection.send_stream(*id).reset(*error_code).ok();
                let code = Some(error_code.into_inner());
                streams::put_code(self.inbox.pieces(), PieceKind::Stop, number, code);
            }
            StreamEvent::Available { dir } => self.open_waiting(*dir),
            StreamEvent::Finished { .. } => {}
        }
    }

    /// Turns readable stream data into pieces for the worker.
    fn take_in(&mut self, id: StreamId) {
        let number = number_of(id);
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut newest = None;
        let mut over = false;
        loop {
            match chunks.next(CHUNK_MAX) {
                Ok(Some(chunk)) => {
                    newest = Some(self.inbox.pieces().len());
                    streams::put_data(self.inbox.pieces(), number, &chunk.bytes, false);
                }
                Ok(None) => {
                    over = true;
                    match newest {
                        // the piece before was the last one
                        Some(at) => self.inbox.pieces()[at + 1] = 1,
                        None => streams::put_data(self.inbox.pieces(), number, &[], true),
                    }
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    over = true;
                    let code = Some(code.into_inner());
                    streams::put_code(self.inbox.pieces(), PieceKind::Reset, number, code);
                    break;
                }
            }
        }
        // credit for the peer is sent with the next datagrams
        let _sent_with_the_next = chunks.finalize().should_transmit();
        if over {
            self.count_ended(number);
        }
    }

    /// Sends the output of the library, until the socket accepts no more.
    pub(crate) fn send<I: Io>(&mut self, io: &mut I, slot: Slot, now: Instant, out: &mut Vec<u8>) {
        self.owes = 0;
        loop {
            if self.is_blocked() {
                let rest = &self.unsent.bytes[self.unsent.at..];
                match io.send(slot, rest, self.unsent.each) {
                    Ok(taken) => self.unsent.at += taken,
                    Err(IoError::WouldBlock) => return,
                    Err(IoError::Failed(class)) => return self.lose_path(class),
                }
                continue;
            }
            out.clear();
            let Some(transmit) = self.connection.poll_transmit(now, BATCH, out) else { return };
            let bytes = &out[..transmit.size];
            let each = transmit.segment_size.unwrap_or(transmit.size);
            let taken = match io.send(slot, bytes, each) {
                Ok(taken) => taken,
                Err(IoError::WouldBlock) => 0,
                Err(IoError::Failed(class)) => return self.lose_path(class),
            };
            self.unsent.bytes.clear();
            self.unsent.bytes.extend_from_slice(&bytes[taken..]);
            self.unsent.at = 0;
            self.unsent.each = each;
        }
    }

    /// Returns the time for a new entry among the alarms, if an earlier one is needed.
    pub(crate) fn next_alarm(&mut self, clock: &Clock, now: Nanos) -> Option<Nanos> {
        let timer = self.connection.poll_timeout().map_or(Nanos::NEVER, |at| clock.nanos(at));
        let due = self.migration.as_ref().map_or(Nanos::NEVER, |moving| moving.0.due());
        // a change that waits for the server's PATH_CHALLENGE for the one before is checked again
        // later
        let due = if due <= now { Nanos::NEVER } else { due };
        let next = timer.min(due);
        if next == Nanos::NEVER {
            return None;
        }
        let at = next.min(now + RECHECK_INTERVAL);
        if at >= self.armed {
            return None;
        }
        self.armed = at;
        Some(at)
    }

    /// Handles the expiry of the entry for `at`. Returns whether a timer has expired by `now`.
    pub(crate) fn timer_fired(&mut self, at: Nanos, now: Nanos, clock: &Clock) -> bool {
        if self.armed == at {
            self.armed = Nanos::NEVER;
        }
        self.connection.poll_timeout().is_some_and(|timer| clock.nanos(timer) <= now)
    }

    /// Sends CONNECTION_CLOSE, if the socket accepts it at once.
    pub(crate) fn close<I: Io>(&mut self, io: &mut I, slot: Slot, now: Instant, out: &mut Vec<u8>) {
        if self.loss.is_none() {
            let code = self.closing.unwrap_or(NO_ERROR);
            let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
            self.connection.close(now, code, Bytes::new());
            self.send(io, slot, now, out);
        }
    }

    /// Passes the remaining events to the endpoint, which then forgets the connection.
    pub(crate) fn forget(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            let last = event.is_drained();
            endpoint.handle_event(self.handle, event);
            if last {
                return;
            }
        }
        endpoint.handle_event(self.handle, EndpointEvent::drained());
    }

    /// Returns why it ended, as text, if the failure class does not state everything.
    pub(crate) fn failure_text(&self) -> Option<String> {
        self.loss.as_ref().and_then(|loss| loss.why.clone())
    }

    /// Returns the current facts.
    pub(crate) fn end(&self) -> QuicEnd {
        let stats = self.connection.stats();
        let session = self.connection.crypto_session();
        let known = session.handshake_data().and_then(|data| data.downcast::<TlsFacts>().ok());
        let tls = known.map(|facts| *facts).filter(|_| self.is_established);
        let rtt = |span: std::time::Duration| {
            if self.is_established { Nanos(span.as_nanos() as u64) } else { Nanos::ZERO }
        };
        let smoothed = rtt(stats.path.rtt);
        let facts = QuicFacts {
            handshakes: u64::from(self.is_established),
            resumed: u64::from(tls.as_ref().is_some_and(|facts| facts.resumed)),
            packets_sent: stats.path.sent_packets,
            packets_lost: stats.path.lost_packets,
            datagrams_received: stats.udp_rx.datagrams,
            bytes_sent: stats.udp_tx.bytes,
            bytes_received: stats.udp_rx.bytes,
            congestion_events: stats.path.congestion_events,
            rtt_sum: smoothed,
            rtt_min: rtt(stats.path.min_rtt),
            rtt_max: smoothed,
        };
        let why = self.failure_text();
        let broken = self.loss.as_ref().is_some_and(|loss| loss.class.is_some());
        let moving = self.migration.as_ref();
        let migration = moving.map(|moving| moving.0.facts(broken)).unwrap_or_default();
        QuicEnd { facts, migration, early: self.early.facts(), tls, why }
    }
}

impl HeldBytes {
    fn add(&mut self, bytes: &[u8], last: bool) {
        if self.given_up.is_none() {
            self.bytes.extend_from_slice(bytes);
            self.last |= last;
        }
    }
}

/// Returns the number of request streams that the peer initially permits.
fn allowed(connection: &Connection) -> u64 {
    let parameters = connection.crypto_session().transport_parameters().ok().flatten();
    parameters.map_or(0, |known| number_of_parameter(&known, MAX_STREAMS_BIDI))
}

/// Returns the value of a transport parameter of the peer (RFC 9000 section 18).
fn of_peer(connection: &Connection, wanted: u64) -> Option<Vec<u8>> {
    parameter(&connection.crypto_session().transport_parameters().ok()??, wanted)
}

/// Returns the library's identifier of a stream (RFC 9000 section 2.1).
fn id_of(number: u64) -> StreamId {
    let side = if number & 1 == 0 { Side::Client } else { Side::Server };
    let dir = if number & 2 == 0 { Dir::Bi } else { Dir::Uni };
    StreamId::new(side, dir, number >> 2)
}

fn number_of(id: StreamId) -> u64 {
    let side = id.initiator() == Side::Server;
    let dir = id.dir() == Dir::Uni;
    id.index() << 2 | u64::from(dir) << 1 | u64::from(side)
}
