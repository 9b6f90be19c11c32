//! QUIC (RFC 9000) between a worker and the network: an [`Io`] over another one. Below it are
//! datagrams, with a UDP socket per connection; above it are pieces of streams, as in
//! [`conduit::streams`]. Layer 3: it opens no socket and reads no clock, so it runs in virtual time
//! as well as over the reactor.
//!
//! The protocol implementation is quinn-proto, a state machine without I/O; only crafted
//! connections are our own. A connection counts as connected once its handshake is complete; until
//! then a write would block. Its timers, for loss, acknowledgments, pacing and idleness, wake the
//! worker through [`Io::wait`]. Not supported: connections opened by others, bidirectional streams
//! opened by the server, and QUIC datagrams (RFC 9221).
#![forbid(unsafe_code)]

mod bare;
mod clock;
mod early;
mod hand;
pub mod ignoring;
mod inbox;
mod link;
mod loss;
mod migration;
pub mod session;
mod transport;
mod wire;

pub use migration::Moves;
pub use transport::Limits;

use bare::Bare;
use clock::Clock;
use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use hand::{Hand, HandOut, Shake};
use link::{Debt, QuicLink};
use quinn_proto::{ClientConfig, DatagramEvent, Endpoint, EndpointConfig, crypto};
use sample::{FailureClass, QuicEnd, SocketFacts};
use session::{HandSessions, Tickets};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use units::Nanos;

/// The TLS client configuration of connections.
pub type Handshakes = Arc<dyn crypto::ClientConfig>;

/// The TLS client configuration of a user, by user number.
pub type UserHandshakes = Box<dyn FnMut(u64) -> Handshakes>;

/// Maximum wait for a server's ticket.
const TICKET: Nanos = Nanos::from_secs(3);
/// Maximum wait for SETTINGS after a ticket.
const CONTROL: Nanos = Nanos::from_millis(500);

/// Bytes of datagrams read at once.
const DATAGRAMS_SIZE: usize = 64 << 10;
/// Maximum number of datagram reads for a crafted connection before its worker gets a turn.
const READS_MAX: usize = 256;

/// QUIC connections of one worker.
pub struct Quic<I> {
    io: I,
    clock: Clock,
    endpoint: Endpoint,
    config: ClientConfig,
    moves: Option<Moves>,
    /// The TLS configuration of users with their own sessions.
    of_users: Option<UserHandshakes>,
    transport: Arc<quinn_proto::TransportConfig>,
    handshakes: Handshakes,
    by_hand: Option<HandSessions>,
    lanes: Vec<LaneSlot>,
    alarms: BinaryHeap<Reverse<(Nanos, Slot, u32)>>,
    /// Readiness to be reported at once.
    news: Vec<(Ready, u32)>,
    /// Connections that have received data: their replies wait for what the worker writes in
    /// response, so that an acknowledgment and the next request, or the close, share a datagram.
    heard: Vec<(Slot, u32)>,
    /// Receive and send buffers, shared by all connections.
    datagrams: Box<[u8]>,
    out: Vec<u8>,
}

impl<I: std::fmt::Debug> std::fmt::Debug for Quic<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quic").field("io", &self.io).finish_non_exhaustive()
    }
}

/// One slot.
#[derive(Default)]
struct LaneSlot {
    /// Counts openings, so that an alarm of an earlier connection is recognized.
    generation: u32,
    lane: Lane,
}

/// Content of one slot.
#[derive(Default)]
enum Lane {
    /// The slot has no QUIC state: it belongs to the underlying I/O.
    #[default]
    Free,
    Link(Box<QuicLink>),
    /// Datagrams without a connection.
    Bare(Box<Bare>),
    /// A crafted connection, how its socket is opened, and its current alarm.
    Hand(Box<ByHand>),
}

impl LaneSlot {
    fn link(&mut self) -> Option<&mut QuicLink> {
        match &mut self.lane {
            Lane::Link(link) => Some(link),
            Lane::Free | Lane::Bare(_) | Lane::Hand(_) => None,
        }
    }

    fn bare(&mut self) -> Option<&mut Bare> {
        match &mut self.lane {
            Lane::Bare(bare) => Some(bare),
            Lane::Free | Lane::Link(_) | Lane::Hand(_) => None,
        }
    }

    fn hand(&mut self) -> Option<&mut ByHand> {
        match &mut self.lane {
            Lane::Hand(hand) => Some(hand),
            Lane::Free | Lane::Link(_) | Lane::Bare(_) => None,
        }
    }
}

/// Events of a crafted connection that the worker was notified of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reported {
    established: bool,
    closed: bool,
}

struct ByHand {
    hand: Hand,
    remote: SocketAddr,
    name: String,
    /// Set if the connection only obtains a ticket; the requested one follows.
    fetches: Option<Fetch>,
    options: OpenOptions,
    armed: Nanos,
    reported: Reported,
}

/// The purpose of a connection that only obtains a ticket.
struct Fetch {
    /// The handshake options of the following connection.
    shake: Shake,
    /// Instant at which to stop waiting.
    until: Nanos,
    /// Instant at which the ticket was first seen.
    seen: Option<Nanos>,
}

impl<I: Io> Quic<I> {
    /// Creates QUIC over `io`. `instant`: current time of the library's monotonic clock; only
    /// differences to it are used. `tls`: TLS client configuration. `seed`: for connection IDs and
    /// the like; drawn from the system if `None`.
    pub fn new(
        mut io: I,
        instant: Instant,
        tls: Handshakes,
        limits: &Limits,
        seed: Option<[u8; 32]>,
    ) -> Quic<I> {
        let mut config = ClientConfig::new(tls.clone());
        let transport = Arc::new(transport::config(limits));
        config.transport_config(transport.clone());
        let mut endpoint = EndpointConfig::default();
        endpoint.rng_seed(seed);
        let clock = Clock::new(instant, io.now());
        Quic {
            io,
            clock,
            endpoint: Endpoint::new(Arc::new(endpoint), None, true, None),
            config,
            moves: None,
            of_users: None,
            transport,
            handshakes: tls,
            by_hand: None,
            lanes: Vec::new(),
            alarms: BinaryHeap::new(),
            news: Vec::new(),
            heard: Vec::new(),
            datagrams: vec![0; DATAGRAMS_SIZE].into_boxed_slice(),
            out: Vec::new(),
        }
    }

    /// Returns when connections change their local port.
    #[must_use]
    pub fn moving(self, moves: Option<Moves>) -> Quic<I> {
        Quic { moves, ..self }
    }

    /// Makes connections opened for a user resume only sessions of that user.
    #[must_use]
    pub fn with_users(mut self, of_users: UserHandshakes) -> Quic<I> {
        self.of_users = Some(of_users);
        self
    }

    /// Permits crafted connections, with these TLS sessions.
    #[must_use]
    pub fn by_hand(self, sessions: HandSessions) -> Quic<I> {
        Quic { by_hand: Some(sessions), ..self }
    }

    /// Returns the underlying I/O.
    pub fn inner(&mut self) -> &mut I {
        &mut self.io
    }

    fn link(&mut self, slot: Slot) -> Option<&mut QuicLink> {
        self.lanes.get_mut(slot as usize)?.link()
    }

    /// Returns the lane of a slot, created if needed.
    fn lane(&mut self, slot: Slot) -> &mut LaneSlot {
        let index = slot as usize;
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, LaneSlot::default);
        }
        let lane = &mut self.lanes[index];
        lane.generation = lane.generation.wrapping_add(1);
        lane
    }

    fn connect(
        &mut self,
        slot: Slot,
        address: SocketAddr,
        name: &str,
        options: &OpenOptions,
    ) -> Result<(), IoError> {
        let now = self.clock.instant(self.io.now());
        let config = match (&mut self.of_users, options.user) {
            (Some(of_users), Some(user)) => {
                let mut config = ClientConfig::new(of_users(user));
                config.transport_config(self.transport.clone());
                config
            }
            _ => self.config.clone(),
        };
        let made = self.endpoint.connect(now, config, address, name);
        // a name that no certificate can have, or connection IDs exhausted
        let (handle, connection) = made.map_err(|_| IoError::Failed(FailureClass::Tls))?;
        let moves = self.moves.map(|moves| (moves, options.clone()));
        let link = QuicLink::new(handle, connection, address, options.early, moves);
        self.lane(slot).lane = Lane::Link(Box::new(link));
        self.advance(slot);
        Ok(())
    }

    fn connect_by_hand(
        &mut self,
        slot: Slot,
        remote: SocketAddr,
        name: &str,
        options: &OpenOptions,
    ) -> Result<(), IoError> {
        let now = self.io.now();
        let refused = IoError::Failed(FailureClass::Tls);
        let sessions = self.by_hand.as_ref().ok_or(refused)?;
        let shake = Shake::parse(options.by_hand.as_deref().unwrap_or_default());
        let tickets = shake.tickets();
        if shake.is_fresh() {
            sessions.forget(name, tickets);
        }
        let wants = tickets != Tickets::None && !sessions.has_ticket(name, tickets);
        let fetches =
            wants.then(|| Fetch { shake: shake.clone(), until: now + TICKET, seen: None });
        let shake = if fetches.is_some() { Shake::default() } else { shake };
        let hand = Hand::new(sessions, name, shake, tickets, now).ok_or(refused)?;
        self.lane(slot).lane = Lane::Hand(Box::new(ByHand {
            hand,
            remote,
            name: name.to_owned(),
            fetches,
            options: options.clone(),
            armed: Nanos::NEVER,
            reported: Reported::default(),
        }));
        self.advance_hand(slot);
        Ok(())
    }

    /// Starts the requested connection, once there is a ticket for it or none will arrive.
    fn begin_early(&mut self, slot: Slot) {
        let now = self.io.now();
        let Quic { lanes, io, by_hand, .. } = self;
        let (Some(one), Some(sessions)) = (lanes[slot as usize].hand(), by_hand) else {
            return;
        };
        let Some(Fetch { shake, until, seen }) = &mut one.fetches else { return };
        let tickets = shake.tickets();
        let has = sessions.has_ticket(&one.name, tickets);
        if has {
            seen.get_or_insert(now);
        }
        // the SETTINGS to compare arrive before the ticket or soon after it, unless the client must
        // send first
        let waits = shake.compares()
            && !one.hand.has_settings()
            && seen.is_some_and(|at| now < at + CONTROL);
        let complete = has && !waits;
        if !complete && !one.hand.is_over() && now < *until {
            return;
        }
        one.hand.close();
        while let Some(HandOut::Datagram(datagram)) = one.hand.next_out() {
            // datagrams without room in the socket are lost, as on any path
            io.write(slot, &datagram).ok();
        }
        let shake = one.fetches.take().map(|fetch| fetch.shake).unwrap_or_default();
        let fresh = OpenOptions { port: None, ..one.options.clone() };
        let opened = io.open(slot, &Peer::Udp(one.remote), &fresh);
        let compares = shake.compares();
        if let Some(hand) = Hand::new(sessions, &one.name, shake, tickets, now) {
            let before = std::mem::replace(&mut one.hand, hand);
            if compares {
                one.hand.remember(before.control().to_vec());
            }
            one.reported = Reported::default();
        }
        if let Err(IoError::Failed(class)) = opened {
            one.hand.lose_path(class);
        }
    }

    /// Sends the output of a crafted connection, and reports what can be read.
    fn advance_hand(&mut self, slot: Slot) {
        self.begin_early(slot);
        let Quic { lanes, io, news, alarms, .. } = self;
        let lane = &mut lanes[slot as usize];
        let (generation, Some(by_hand)) = (lane.generation, lane.hand()) else {
            return;
        };
        let ByHand { hand, remote, options, armed, reported, fetches, .. } = by_hand;
        while let Some(out) = hand.next_out() {
            let done = match out {
                // datagrams without room in the socket are lost, as on any path
                HandOut::Datagram(datagram) => io.write(slot, &datagram).map(|_| ()),
                HandOut::Port => {
                    let fresh = OpenOptions { port: None, ..options.clone() };
                    io.open(slot, &Peer::Udp(*remote), &fresh)
                }
            };
            if let Err(IoError::Failed(class)) = done {
                hand.lose_path(class);
            }
        }
        // a connection that fetches a ticket is not reported
        let state = Reported { established: hand.takes(), closed: hand.is_over() };
        let over = state.closed;
        let writable = fetches.is_none() && state != std::mem::replace(reported, state);
        if writable || hand.waiting() > 0 && fetches.is_none() {
            news.push((Ready { slot, readable: true, writable, ended: over }, generation));
        }
        let due = fetches.as_ref().map_or(hand.due(), |Fetch { until, seen, .. }| {
            let next = seen.map_or(*until, |at| (at + CONTROL).min(*until));
            hand.due().min(next)
        });
        if due < *armed {
            *armed = due;
            alarms.push(Reverse((due, slot, generation)));
        }
    }

    fn read_by_hand(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        self.gather_by_hand(slot, buffer.len());
        self.advance_hand(slot);
        let lane = &mut self.lanes[slot as usize];
        let (generation, Some(by_hand)) = (lane.generation, lane.hand()) else {
            return Err(IoError::WouldBlock);
        };
        if by_hand.fetches.is_some() {
            return Err(IoError::WouldBlock);
        }
        let read = by_hand.hand.read(buffer);
        if matches!(read, Ok(count) if count > 0) {
            // a short read is taken for the last one
            let ended = by_hand.hand.is_over();
            self.news.push((Ready { slot, readable: true, writable: false, ended }, generation));
        }
        read
    }

    /// Reads datagrams of a crafted connection from its socket, as `gather` does, but at most
    /// [`READS_MAX`] times: most of them do not concern the worker, and would delay its turn
    /// indefinitely.
    fn gather_by_hand(&mut self, slot: Slot, enough: usize) {
        let mut buffer = std::mem::take(&mut self.datagrams);
        for round in 0..=READS_MAX {
            let lane = &mut self.lanes[slot as usize];
            let Some(ByHand { hand, fetches, .. }) = lane.hand() else { break };
            if hand.waiting() >= enough || hand.is_over() {
                break;
            }
            if round == READS_MAX {
                // a socket reports readability once
                let ready = Ready { slot, readable: true, writable: false, ended: false };
                self.news.push((ready, lane.generation));
                break;
            }
            let fetched = fetches.is_some();
            match self.io.receive(slot, &mut buffer) {
                Ok((count, each)) => {
                    let now = self.io.now();
                    for datagram in buffer[..count].chunks(each.max(1)) {
                        hand.take(now, datagram);
                    }
                }
                Err(IoError::WouldBlock) => break,
                Err(IoError::Failed(class)) => {
                    hand.lose_path(class);
                    break;
                }
            }
            self.advance_hand(slot);
            let next = self.lanes[slot as usize].hand();
            if fetched && next.is_some_and(|one| one.fetches.is_none()) {
                // the requested connection has started: its early data is sent before anything is
                // received
                break;
            }
        }
        self.datagrams = buffer;
    }

    /// Handles the consequences of any event of a connection: events, outgoing datagrams, the next
    /// alarm.
    fn advance(&mut self, slot: Slot) {
        self.follow(slot);
        let now = self.io.now();
        let lane = &mut self.lanes[slot as usize];
        let (generation, Some(link)) = (lane.generation, lane.link()) else { return };
        let was_alive = !link.has_ended();
        link.send(&mut self.io, slot, self.clock.instant(now), &mut self.out);
        if was_alive && link.has_ended() {
            self.news
                .push((Ready { slot, readable: true, writable: true, ended: true }, generation));
        }
        let alarm = link.next_alarm(&self.clock, now);
        if let Some(at) = alarm {
            self.alarms.push(Reverse((at, slot, generation)));
        }
    }

    /// Processes the events of a connection, without sending replies.
    fn follow(&mut self, slot: Slot) {
        let now = self.io.now();
        let lane = &mut self.lanes[slot as usize];
        let (generation, Some(link)) = (lane.generation, lane.link()) else { return };
        let news = link.pump(&mut self.endpoint, now);
        link.move_if_due(&mut self.io, slot, now);
        if news.any() {
            let ended = link.has_ended();
            let readable = news.readable;
            let writable = news.writable;
            self.news.push((Ready { slot, readable, writable, ended }, generation));
        }
    }

    /// Postpones replies to received data until the next wait, so that they are sent together with
    /// what the worker writes.
    fn postpone_replies(&mut self, slot: Slot) {
        let lane = &mut self.lanes[slot as usize];
        if let Some(link) = lane.link()
            && link.postpone_replies()
        {
            self.heard.push((slot, lane.generation));
        }
    }

    /// Sends the pending replies to data received before the worker's last turn.
    fn send_postponed_replies(&mut self) {
        let mut heard = std::mem::take(&mut self.heard);
        heard.retain(|&(slot, generation)| {
            let lane = &mut self.lanes[slot as usize];
            let current = lane.generation == generation;
            match lane.link().filter(|_| current).map(QuicLink::send_postponed_replies) {
                Some(Debt::Due) => self.advance(slot),
                Some(Debt::NextTime) => return true,
                Some(Debt::Paid) | None => {}
            }
            false
        });
        self.heard = heard;
    }

    /// Handles expired timers.
    fn fire(&mut self, now: Nanos) {
        while let Some(Reverse((at, slot, generation))) = self.alarms.peek().copied() {
            if at > now {
                return;
            }
            self.alarms.pop();
            let lane = &mut self.lanes[slot as usize];
            let current = lane.generation == generation;
            if let Some(by_hand) = lane.hand().filter(|_| current) {
                // an earlier one was set since, and fired
                if by_hand.armed != at {
                    continue;
                }
                by_hand.armed = Nanos::NEVER;
                by_hand.hand.tick(now);
                self.advance_hand(slot);
                continue;
            }
            let Some(link) = lane.link().filter(|_| current) else { continue };
            if link.timer_fired(at, now, &self.clock) {
                link.time_out(self.clock.instant(now));
            }
            self.advance(slot);
        }
    }

    /// Reads datagrams from the socket, until it is drained or the worker must process the data.
    fn gather(&mut self, slot: Slot, enough: usize) {
        let mut buffer = std::mem::take(&mut self.datagrams);
        while let Some(link) = self.lanes[slot as usize].link() {
            if link.waiting() >= enough || link.has_ended() {
                break;
            }
            match self.io.receive(slot, &mut buffer) {
                Ok((count, each)) => {
                    let at = self.io.now();
                    let now = self.clock.instant(at);
                    for datagram in buffer[..count].chunks(each.max(1)) {
                        let bytes = bytes::BytesMut::from(datagram);
                        let remote = link.remote();
                        let found =
                            self.endpoint.handle(now, remote, None, None, bytes, &mut self.out);
                        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = found {
                            link.process(handle, event);
                        }
                    }
                    // their content may fill the worker's buffer
                    let news = link.pump(&mut self.endpoint, at);
                    if news.writable {
                        let generation = self.lanes[slot as usize].generation;
                        let ready = Ready { slot, readable: true, writable: true, ended: false };
                        self.news.push((ready, generation));
                    }
                }
                Err(IoError::WouldBlock) => break,
                Err(IoError::Failed(class)) => link.lose_path(class),
            }
        }
        self.datagrams = buffer;
    }
}

impl<I: Io> Io for Quic<I> {
    fn now(&mut self) -> Nanos {
        self.io.now()
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        let Peer::Quic { address, name } = peer else {
            return self.io.open(slot, peer, options);
        };
        self.io.open(slot, &Peer::Udp(*address), options)?;
        if options.bare {
            let Some(bare) = Bare::new(&self.handshakes, name) else {
                self.io.close(slot, Close::Orderly);
                return Err(IoError::Failed(FailureClass::Tls));
            };
            self.lane(slot).lane = Lane::Bare(Box::new(bare));
            return Ok(());
        }
        if options.by_hand.is_some() {
            let made = self.connect_by_hand(slot, *address, name, options);
            return made.inspect_err(|_| self.io.close(slot, Close::Orderly));
        }
        self.connect(slot, *address, name, options)
            .inspect_err(|_| self.io.close(slot, Close::Orderly))
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        if let Some(lane) = self.lanes.get_mut(slot as usize)
            && let Some(bare) = lane.bare()
        {
            let written = bare.write(&mut self.io, slot, bytes);
            if bare.waits() {
                let ready = Ready { slot, readable: true, writable: false, ended: false };
                self.news.push((ready, lane.generation));
            }
            return written;
        }
        let by_hand = self.lanes.get_mut(slot as usize).and_then(LaneSlot::hand);
        if let Some(by_hand) = by_hand {
            if by_hand.fetches.is_some() {
                return Err(IoError::WouldBlock);
            }
            by_hand.hand.write(bytes, self.io.now())?;
            self.advance_hand(slot);
            return Ok(bytes.len());
        }
        let Some(link) = self.link(slot) else { return self.io.write(slot, bytes) };
        link.write(bytes)?;
        self.advance(slot);
        Ok(bytes.len())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        if let Some(bare) = self.lanes.get_mut(slot as usize).and_then(LaneSlot::bare) {
            let read = bare.read(&mut self.io, slot, &mut self.datagrams, buffer);
            if read.is_ok() {
                // a short read is taken for the last one
                let generation = self.lanes[slot as usize].generation;
                let ready = Ready { slot, readable: true, writable: false, ended: false };
                self.news.push((ready, generation));
            }
            return read;
        }
        if self.lanes.get_mut(slot as usize).is_some_and(|lane| lane.hand().is_some()) {
            return self.read_by_hand(slot, buffer);
        }
        if self.link(slot).is_none() {
            return self.io.read(slot, buffer);
        }
        self.gather(slot, buffer.len());
        self.follow(slot);
        self.postpone_replies(slot);
        let lane = &mut self.lanes[slot as usize];
        let (generation, Some(link)) = (lane.generation, lane.link()) else {
            return Err(IoError::WouldBlock);
        };
        let read = link.read(buffer);
        if matches!(read, Ok(count) if count > 0) && link.has_ended() && link.waiting() == 0 {
            // a short read is taken for the last one: the end is a separate event
            let ready = Ready { slot, readable: true, writable: false, ended: true };
            self.news.push((ready, generation));
        }
        read
    }

    fn close(&mut self, slot: Slot, how: Close) {
        if let Some(by_hand) = self.lanes.get_mut(slot as usize).and_then(LaneSlot::hand) {
            by_hand.hand.close();
            self.advance_hand(slot);
        }
        let place = self.lanes.get_mut(slot as usize);
        let lane = place.map(|place| std::mem::take(&mut place.lane)).unwrap_or_default();
        if let Lane::Link(mut link) = lane {
            let now = self.clock.instant(self.io.now());
            link.close(&mut self.io, slot, now, &mut self.out);
            link.forget(&mut self.endpoint);
        }
        self.io.close(slot, how);
    }

    fn shutdown_write(&mut self, slot: Slot) {
        if self.link(slot).is_none() {
            self.io.shutdown_write(slot);
        }
    }

    fn send_urgent(&mut self, slot: Slot, byte: u8) {
        if self.link(slot).is_none() {
            self.io.send_urgent(slot, byte);
        }
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        // `quic` reports what QUIC knows
        if self.link(slot).is_some() { None } else { self.io.facts(slot) }
    }

    fn quic(&mut self, slot: Slot) -> Option<QuicEnd> {
        self.link(slot).map(|link| link.end())
    }

    fn unsent(&mut self, slot: Slot, stream: u64) -> usize {
        self.link(slot).map_or(0, |link| link.unsent(stream))
    }

    fn failure_text(&mut self, slot: Slot) -> Option<String> {
        match self.link(slot) {
            Some(link) => link.failure_text(),
            None => self.io.failure_text(slot),
        }
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        self.send_postponed_replies();
        let alarm = self.alarms.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at);
        let until = if self.news.is_empty() { until.min(alarm) } else { Nanos::ZERO };
        self.io.wait(until, ready);
        for event in ready.iter().filter(|event| event.writable) {
            let blocked = self.lanes.get_mut(event.slot as usize).and_then(LaneSlot::link);
            if blocked.is_some_and(|link| link.is_blocked()) {
                self.advance(event.slot);
            }
        }
        if alarm != Nanos::NEVER {
            let now = self.io.now();
            self.fire(now);
        }
        let lanes = &self.lanes;
        let current = |(ready, generation): (Ready, u32)| {
            let lane = &lanes[ready.slot as usize];
            let held = !matches!(lane.lane, Lane::Free);
            (lane.generation == generation && held).then_some(ready)
        };
        ready.extend(self.news.drain(..).filter_map(current));
    }

    fn spin(&self) -> Nanos {
        self.io.spin()
    }
}
