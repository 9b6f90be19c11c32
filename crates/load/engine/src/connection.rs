//! One connection of a worker: its state, its outstanding calls, its deadlines.
//!
//! Between its calls, a connection is only a [`Conn`]. State needed only by calls in flight is in
//! [`Work`], which it takes from a list of its pool and returns, so that thousands of connections
//! of thinking users use memory only for the calls in flight.

mod gathering;
mod intake;
mod keepalive;
mod limits;
mod paced;
mod sockets;

use crate::call::{Call, NO_USER};
use crate::speaker::websocket::RestingSocket;
use crate::speaker::{
    EndpointKind, Event, Fault, Processed, Protocol, ProtocolFacts, ReadCaches, Request, Speaker,
};
use crate::transport::{Flushed, Transport};
use conduit::{Io, IoError, Slot, TlsError, TlsSession};
use protocol::http1::response::{
    Advance, Asked, HeadCache, Leniency, Limits, ResponseFacts, ResponseReader,
};
use sample::{ConnectionRecord, EarlyFacts, FailureClass, TlsFacts};
use stats::lives::ConnectionLife;
use std::collections::VecDeque;
use units::Nanos;

/// State of establishing a connection. Each state is entered at most once, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnState {
    /// No socket.
    Closed,
    /// The transport is being connected.
    Connecting,
    /// CONNECT was sent to a proxy.
    Tunnel,
    /// TLS handshake in progress.
    Handshake,
    /// Requests are sent, responses received.
    Open,
}

/// Requests are sent before the handshake is complete.
#[derive(Clone, Copy, Debug, Default)]
struct Early {
    allowed: bool,
    /// Number of the oldest calls whose requests were passed to TLS as early data, and how many of
    /// them the socket accepted.
    released: u32,
    calls: u32,
}

/// Resolution of idle times: about a millisecond, by a shift.
const IDLE_STEP: Nanos = Nanos(1 << 20);

fn idle_steps(span: Nanos) -> u32 {
    (span.0 >> 20) as u32
}

#[derive(Debug)]
pub(crate) struct Conn {
    work: Option<Box<Work>>,
    opened: Nanos,
    /// Instant from which requests could be sent; for the record.
    established: Nanos,
    /// Deadline entry of the slot; `NEVER` without an entry. The entry outlives the connection.
    armed: Nanos,
    /// Time with a call outstanding, for the conformity test: the connection's life less its think
    /// time.
    busy: Nanos,
    received: u64,
    /// Number of times this slot was opened.
    generation: u32,
    endpoint: u32,
    /// Row in the endpoint's addresses.
    address: u32,
    /// The user it belongs to, or [`NO_USER`].
    user: u32,
    /// Number of calls put on the connection so far, and of responses received.
    assigned: u32,
    served: u32,
    /// Instant at which its last call was removed, in steps of [`IDLE_STEP`] after its opening: a
    /// few bytes per slot.
    idle_from: u32,
    state: ConnState,
    /// Reason why no more requests can be sent, for the record.
    broken: Option<FailureClass>,
    /// Reason why a write failed. Data that the server sent before the failure is still read.
    unwritable: Option<FailureClass>,
    /// The server closed the connection, or announced the close.
    by_server: bool,
}

/// Working state of a connection: outstanding calls, pending output, partial responses. For HTTP/1
/// without TLS no part of it outlives its calls.
#[derive(Debug)]
pub(crate) struct Work {
    calls: VecDeque<Call>,
    speaker: Speaker,
    transport: Transport,
    /// Calls put on the connection since its last write, which the server cannot have answered yet.
    unflushed: u32,
    early: Early,
    /// Reads the proxy's response to CONNECT, until the tunnel is established.
    tunnel: Option<Box<ResponseReader>>,
    /// Instant at which `connect` returned, then that at which the transport was established.
    connected: Nanos,
    /// Connect and TLS time, until the first call takes them into its sample.
    setup: Option<(Nanos, Option<Nanos>)>,
    /// Instant at which bytes were last received, or more of a request was sent, or waiting for
    /// them began.
    progress: Nanos,
    busy_since: Nanos,
    kind: EndpointKind,
}

/// A connection to which a call was just assigned.
#[derive(Debug)]
pub(crate) struct Employed<'a> {
    /// Working state that receives the call.
    pub(crate) work: &'a mut Work,
    /// Number of calls assigned to the connection so far, including this one.
    pub(crate) assigned: u32,
    open: bool,
    armed: Nanos,
}

/// Decides whether a call just put on its connection needs a deadline entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PutCall {
    /// Instant at which the call was due.
    pub(crate) intended: Nanos,
    /// True if the connection is open.
    pub(crate) open: bool,
    /// Instant at which the slot's entry expires; `NEVER` without one.
    pub(crate) armed: Nanos,
}

impl Employed<'_> {
    /// Marks the call as outstanding; `written` bytes of its request were just written.
    #[inline(always)]
    pub(crate) fn put(self, mut call: Call, written: u64, now: Nanos) -> PutCall {
        call.bytes_sent += written;
        if self.open {
            call.sent = now;
        }
        let intended = call.intended;
        self.work.put(call, now);
        PutCall { intended, open: self.open, armed: self.armed }
    }
}

impl Work {
    pub(crate) fn new(protocol: Protocol, keeps_heads: bool, lenient: Leniency) -> Work {
        Work {
            // the default would reserve room for four, but most connections need one
            calls: VecDeque::with_capacity(1),
            speaker: Speaker::new(protocol, keeps_heads, lenient),
            transport: Transport::default(),
            unflushed: 0,
            early: Early::default(),
            tunnel: None,
            connected: Nanos::ZERO,
            setup: None,
            progress: Nanos::ZERO,
            busy_since: Nanos::ZERO,
            kind: EndpointKind::Plan,
        }
    }

    /// Sets the kind of endpoints that the state is for.
    pub(crate) fn of_kind(self, kind: EndpointKind) -> Work {
        Work { kind, ..self }
    }

    pub(crate) fn kind(&self) -> EndpointKind {
        self.kind
    }

    /// Prepares for a connection; buffers keep their memory. `direct`: the protocol has the
    /// transport to itself, without TLS or tunnel.
    #[inline]
    fn renew(&mut self, direct: bool, depth: u32) {
        self.calls.clear();
        self.unflushed = 0;
        (self.setup, self.tunnel) = (None, None);
        self.early = Early::default();
        self.transport.renew(direct);
        self.speaker.start(self.transport.plaintext());
        self.calls.reserve_exact(depth as usize);
    }

    /// Prepares for the next calls of an idle connection, at most `depth` at once; `socket`: it is
    /// a WebSocket with this state.
    pub(crate) fn resume(&mut self, depth: u32, socket: Option<RestingSocket>) {
        self.renew(true, depth);
        if let (Some(state), Some(speaker)) = (socket, self.speaker.socket()) {
            speaker.resume(state);
        }
    }

    /// Returns whether the state contains nothing that the next call of its connection needs.
    fn is_over(&self) -> bool {
        self.calls.is_empty()
            && self.setup.is_none()
            && self.transport.is_plain()
            && self.speaker.forgets()
    }

    #[inline(always)]
    fn take(&mut self, call: usize) -> Option<Call> {
        if call > 0 {
            self.bring_to_front(call);
        }
        // always taken from the front, so the compiler need not copy the call
        self.calls.pop_front()
    }

    /// Moves a call to the front. Earlier calls keep their order after it.
    #[cold]
    fn bring_to_front(&mut self, call: usize) {
        if let Some(call) = self.calls.remove(call) {
            self.calls.push_front(call);
        }
    }

    /// Resets the state of a connection that is closed or idle.
    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        self.transport.close();
        self.tunnel = None;
    }
}

impl Conn {
    pub(crate) fn new() -> Conn {
        Conn {
            work: None,
            opened: Nanos::ZERO,
            established: Nanos::ZERO,
            armed: Nanos::NEVER,
            busy: Nanos::ZERO,
            received: 0,
            generation: 0,
            endpoint: 0,
            address: 0,
            user: NO_USER,
            assigned: 0,
            served: 0,
            idle_from: 0,
            state: ConnState::Closed,
            broken: None,
            unwritable: None,
            by_server: false,
        }
    }

    /// Prepares the slot for a new connection, for which `connect` was called at `now`.
    pub(crate) fn renew(&mut self, endpoint: u32, address: usize, user: u32, now: Nanos) {
        self.state = ConnState::Connecting;
        self.generation = self.generation.wrapping_add(1);
        (self.endpoint, self.address, self.user) = (endpoint, address as u32, user);
        (self.assigned, self.served) = (0, 0);
        (self.established, self.broken, self.by_server) = (Nanos::ZERO, None, false);
        self.unwritable = None;
        self.opened = now;
        (self.busy, self.received) = (Nanos::ZERO, 0);
    }

    /// Handles the return of `connect`, at `now`. `direct`: the protocol has the transport to
    /// itself, without TLS or tunnel. At most `depth` calls will be outstanding. `take`: provides
    /// its working state, if the slot has none.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        take: impl FnOnce() -> Box<Work>,
        (direct, depth): (bool, u32),
        now: Nanos,
    ) {
        let work = self.work.get_or_insert_with(take);
        work.renew(direct, depth);
        (work.connected, work.progress, work.busy_since) = (now, self.opened, self.opened);
    }

    /// Assigns one more call to the connection. An idle connection continues with the state that
    /// `take` returns.
    #[inline(always)]
    pub(crate) fn assign_call(&mut self, take: impl FnOnce() -> Box<Work>) -> Employed<'_> {
        self.assigned += 1;
        let work = self.work.get_or_insert_with(take);
        let open = self.state == ConnState::Open;
        Employed { work, assigned: self.assigned, open, armed: self.armed }
    }

    /// Returns the working state if the connection is idle and no longer needs it.
    pub(crate) fn rest(&mut self) -> Option<Box<Work>> {
        let over = self.is_open() && self.work.as_ref().is_some_and(|work| work.is_over());
        if over { self.work.take() } else { None }
    }

    /// Returns the working state of a closed connection.
    pub(crate) fn take_work(&mut self) -> Option<Box<Work>> {
        self.work.take()
    }

    #[inline]
    pub(crate) fn state(&self) -> ConnState {
        self.state
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state == ConnState::Open
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.state == ConnState::Closed
    }

    /// Returns whether the slot still has the open connection with `generation`.
    #[inline]
    pub(crate) fn has_generation(&self, generation: u32) -> bool {
        self.generation == generation && self.state != ConnState::Closed
    }

    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    #[inline]
    pub(crate) fn endpoint(&self) -> u32 {
        self.endpoint
    }

    pub(crate) fn address(&self) -> usize {
        self.address as usize
    }

    #[inline]
    pub(crate) fn user(&self) -> u32 {
        self.user
    }

    /// Detaches the connection from its user; returns that user.
    pub(crate) fn release(&mut self) -> u32 {
        std::mem::replace(&mut self.user, NO_USER)
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.work.as_ref().is_none_or(|work| work.calls.is_empty())
    }

    #[inline]
    pub(crate) fn opened(&self) -> Nanos {
        self.opened
    }

    /// Returns whether the connection has carried its maximum number of calls.
    pub(crate) fn has_reached_limit(&self, calls_max: u32) -> bool {
        self.assigned >= calls_max
    }

    /// Returns whether one more call may be assigned to the connection.
    #[inline]
    pub(crate) fn takes(&self, depth: u32, calls_max: u32) -> bool {
        let fits = |work: &Work| (work.calls.len() as u32) < work.speaker.capacity(depth);
        self.state != ConnState::Closed
            && self.work.as_deref().is_none_or(fits)
            && self.assigned < calls_max
    }

    /// Returns whether the peer accepts no further calls.
    pub(crate) fn refuses_further_calls(&self, depth: u32) -> bool {
        self.work.as_deref().is_some_and(|work| work.speaker.capacity(depth) == 0)
    }
}

/// Outgoing calls.
impl Work {
    /// Writes a call's request; returns its bytes.
    #[inline(always)]
    pub(crate) fn send_request(&mut self, request: &Request<'_>) -> u64 {
        let out = self.transport.plaintext();
        let before = out.len();
        self.speaker.send_request(request, out);
        (out.len() - before) as u64
    }

    /// Submits a request that another component rendered; returns the result and its bytes.
    pub(crate) fn submit_rendered<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> (T, u64) {
        let out = self.transport.plaintext();
        let before = out.len();
        let result = write(out);
        (result, (out.len() - before) as u64)
    }

    /// Marks the call whose request was just written as outstanding.
    #[inline(always)]
    fn put(&mut self, call: Call, now: Nanos) {
        let first = self.calls.is_empty();
        self.calls.push_back(call);
        if first {
            self.busy_since = now;
            self.progress = now;
        }
        self.unflushed += 1;
    }
}

/// Outgoing bytes.
impl Conn {
    /// Returns whether bytes wait for the socket.
    #[inline]
    pub(crate) fn wants_to_write(&self) -> bool {
        self.state != ConnState::Closed
            && self.work.as_ref().is_some_and(|work| work.transport.has_unsent())
    }

    /// Returns whether bytes wait for the socket or for TLS.
    pub(crate) fn has_output(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.transport.has_output())
    }

    /// Writes pending data until the socket accepts no more. Returns true if these were the first
    /// bytes of the connection, so that the transport is established.
    ///
    /// # Errors
    /// Fails if the connection no longer exists.
    #[inline]
    pub(crate) fn flush<I: Io>(
        &mut self,
        io: &mut I,
        slot: Slot,
        now: Nanos,
    ) -> Result<bool, IoError> {
        let Some(work) = &mut self.work else { return Ok(false) };
        let open = self.state == ConnState::Open;
        if open {
            work.transport.release();
        } else if work.early.allowed {
            return self.flush_early(io, slot, now);
        }
        let Flushed::Taken { resumed, whole } = work.transport.flush(io, slot)? else {
            return Ok(false);
        };
        if open {
            work.unflushed = 0;
        }
        if resumed {
            // more of a pending request was sent; the start of a new request is not progress of
            // earlier ones
            work.progress = now;
        }
        if resumed
            && whole
            && let Some(call) = work.calls.back_mut()
        {
            call.written = now;
        }
        Ok(self.state == ConnState::Connecting)
    }
}

/// Before the handshake is complete.
impl Conn {
    /// Sets whether requests may be sent in the first flight of a handshake.
    pub(crate) fn allow_early(&mut self, allowed: bool) {
        if let Some(work) = &mut self.work {
            work.early.allowed = allowed;
        }
    }

    /// Like [`Conn::flush`], for the available requests, if the session can send them early.
    #[cold]
    fn flush_early<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) -> Result<bool, IoError> {
        let Some(work) = self.work.as_deref_mut() else { return Ok(false) };
        let Work { transport, early, calls, unflushed, .. } = work;
        if transport.release_early() {
            early.released = calls.len() as u32;
        }
        let Flushed::Taken { .. } = transport.flush(io, slot)? else { return Ok(false) };
        let before = early.calls as usize;
        early.calls = early.released;
        for call in calls.iter_mut().take(early.calls as usize).skip(before) {
            call.sent = now;
        }
        *unflushed = calls.len() as u32 - early.calls;
        Ok(self.state == ConnState::Connecting)
    }

    /// Returns the early data sent on a TCP connection; `None` without any.
    #[inline]
    pub(crate) fn early(&self) -> Option<EarlyFacts> {
        let work = self.work.as_ref()?;
        let sent = u64::from(work.early.calls);
        if sent == 0 {
            return None;
        }
        let read = work.transport.early_read();
        let of = |what| if read == Some(what) { sent } else { 0 };
        Some(EarlyFacts { sent, accepted: of(true), rejected: of(false), too_early: 0 })
    }
}

/// From the first byte sent to the first request.
impl Conn {
    /// Sends CONNECT to a proxy, before any other bytes.
    pub(crate) fn send_connect(&mut self, request: &[u8]) {
        if let Some(work) = &mut self.work {
            work.transport.send_bare(request);
        }
    }

    pub(crate) fn start_tls(&mut self, session: Box<dyn TlsSession>) {
        if let Some(work) = &mut self.work {
            work.transport.start_tls(session);
        }
    }

    /// Records that the transport is established: its first bytes were accepted at `now`. Returns
    /// when it was established. `tunnel`: a tunnel was requested from a proxy, whose response has
    /// these limits.
    pub(crate) fn connect(&mut self, tunnel: Option<Limits>, now: Nanos) -> Nanos {
        let Some(work) = &mut self.work else { return now };
        // done with the first flush: `connect` had completed; otherwise it completes now
        let at = work.connected.max(now);
        (work.connected, work.progress) = (at, at);
        if let Some(limits) = tunnel {
            self.state = ConnState::Tunnel;
            let mut reader = Box::new(ResponseReader::with_limits(false, limits));
            reader.start(Asked::Connect);
            work.tunnel = Some(reader);
        } else if work.transport.is_encrypted() {
            self.state = ConnState::Handshake;
        }
        at
    }

    /// Reads the proxy's response to CONNECT. Returns true if the tunnel is established.
    ///
    /// # Errors
    /// Fails if the proxy refuses, or sends an invalid response.
    pub(crate) fn receive_proxy_response(
        &mut self,
        bytes: &[u8],
        now: Nanos,
    ) -> Result<bool, FailureClass> {
        let Some(work) = &mut self.work else { return Err(FailureClass::Proxy) };
        let Some(reader) = &mut work.tunnel else { return Err(FailureClass::Proxy) };
        // once for each connection: caching would not help
        let advance = reader.advance(&mut HeadCache::new(), bytes);
        let advance = advance.map_err(|_| FailureClass::Proxy)?;
        if !advance.done {
            return Ok(false);
        }
        if !(200..300).contains(&reader.facts().status) || advance.consumed < bytes.len() {
            return Err(FailureClass::Proxy);
        }
        work.tunnel = None;
        work.connected = now;
        self.state = ConnState::Handshake;
        Ok(true)
    }

    /// Returns whether TLS negotiated a protocol other than the required one.
    pub(crate) fn has_wrong_protocol(&self, facts: Option<&TlsFacts>) -> bool {
        let demanded = self.work.as_ref().and_then(|work| work.speaker.demanded());
        demanded.is_some_and(|name| facts.is_none_or(|facts| facts.alpn != name))
    }

    pub(crate) fn is_multiplexed(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.speaker.is_multiplexed())
    }

    /// Returns whether the peer has closed and nothing is outstanding.
    pub(crate) fn is_abandoned_by_peer(&self) -> bool {
        self.is_open() && self.work.as_ref().is_some_and(|work| work.speaker.is_over())
    }

    /// Returns whether a call of the user waits here: the peer permits no further stream now, and
    /// the protocol holds the call back until one is free.
    pub(crate) fn holds_back(&self, calls_max: u32) -> bool {
        let holds = |speaker: &Speaker| speaker.is_multiplexed() && speaker.capacity(u32::MAX) > 0;
        self.state != ConnState::Closed
            && self.work.as_ref().is_some_and(|work| holds(&work.speaker))
            && self.assigned < calls_max
    }

    /// Returns the protocol's own counts and resets them.
    #[inline]
    pub(crate) fn take_protocol_facts(&mut self) -> Option<ProtocolFacts> {
        self.work.as_mut().filter(|work| !work.speaker.forgets())?.speaker.take_facts()
    }

    /// Decrypts ciphertext to plaintext.
    pub(crate) fn decrypt(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        let Some(work) = &mut self.work else { return Ok(()) };
        work.transport.decrypt(bytes, plain)
    }

    /// Returns duration and parameters of the TLS handshake that has just completed.
    pub(crate) fn take_handshake(&self, now: Nanos) -> Option<(Nanos, Option<TlsFacts>)> {
        let work = self.work.as_ref()?;
        let over = self.state == ConnState::Handshake && !work.transport.is_handshaking();
        over.then(|| (now - work.connected, work.transport.tls_facts()))
    }

    /// Returns whether the peer ended the stream inside TLS.
    pub(crate) fn is_tls_closed(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.transport.is_tls_closed())
    }

    /// Records that requests can be sent from `now` on; returns the connect times.
    pub(crate) fn establish(&mut self, tls: Option<Nanos>, now: Nanos) -> Nanos {
        self.state = ConnState::Open;
        self.established = now;
        let Some(work) = self.work.as_deref_mut() else { return Nanos::ZERO };
        work.unflushed = if tls.is_some() { work.unflushed } else { 0 };
        let connect = work.connected - self.opened;
        if let Some(socket) = work.speaker.socket() {
            socket.set_asked(now);
        }
        work.setup = Some((connect, tls));
        for call in work.calls.iter_mut().skip(work.early.calls as usize) {
            call.sent = now;
        }
        connect
    }

    /// Returns connect and TLS time, once.
    #[inline]
    pub(crate) fn take_setup_times(&mut self) -> Option<(Nanos, Option<Nanos>)> {
        self.work.as_mut()?.setup.take()
    }

    /// Keeps the setup times for the next sample, because the call that took them continues.
    #[cold]
    pub(crate) fn keep_setup_times(&mut self, times: Option<(Nanos, Option<Nanos>)>) {
        if let Some(work) = self.work.as_mut().filter(|_| self.state == ConnState::Open) {
            work.setup = work.setup.or(times);
        }
    }

    /// Returns whether the connection has answered exactly one call so far.
    pub(crate) fn has_served_once(&self) -> bool {
        self.served == 1
    }
}

/// Incoming responses.
impl Conn {
    /// Notes that bytes were received. Returns the establishment state, and whether the bytes are
    /// encrypted.
    #[inline]
    pub(crate) fn note_received(&mut self, now: Nanos) -> (ConnState, bool) {
        let Some(work) = &mut self.work else { return (self.state, false) };
        work.progress = now;
        (self.state, work.transport.is_encrypted())
    }

    /// Processes plaintext of in-order responses: a piece of the response to the oldest call. The
    /// first byte is timestamped.
    #[inline(always)]
    pub(crate) fn receive_in_order(
        &mut self,
        shared: &mut ReadCaches,
        input: &[u8],
        now: Nanos,
    ) -> Result<Advance, Fault> {
        let Some(Work { speaker, calls, unflushed, .. }) = self.work.as_deref_mut() else {
            return Err(Fault::Unasked);
        };
        let Speaker::Http1(http1) = speaker else { return Err(Fault::Unasked) };
        if calls.len() <= *unflushed as usize {
            return Err(Fault::Unasked);
        }
        let Some(call) = calls.front_mut() else { return Err(Fault::Unasked) };
        if call.first_byte.is_zero() {
            call.first_byte = now;
        }
        http1.process(shared, call.asked, input)
    }

    /// Processes the plaintext of one event; the first byte of the call's response is timestamped.
    pub(crate) fn process(&mut self, input: &[u8], now: Nanos) -> Result<Processed, Fault> {
        let Some(work) = &mut self.work else { return Err(Fault::Unasked) };
        let out = work.transport.plaintext();
        let heard = work.speaker.process(input, now, out);
        if let Ok(Processed { event: Event::Response { call, .. }, .. }) = &heard
            && let Some(call) = work.calls.get_mut(*call)
            && call.first_byte.is_zero()
        {
            call.first_byte = now;
        }
        heard
    }

    /// Handles the peer's close with calls outstanding. `Ok`: the response to the oldest call is
    /// complete.
    ///
    /// # Errors
    /// Fails with the failure of the oldest call that results.
    pub(crate) fn receive_end(&mut self) -> Result<(), FailureClass> {
        let Some(work) = &mut self.work else { return Err(FailureClass::ClosedEarly) };
        match self.state {
            ConnState::Open => {
                work.speaker.receive_end()?;
                // an unauthenticated close does not end a body (RFC 9112 section 9.8)
                let cut = work.transport.is_encrypted() && !work.transport.is_tls_closed();
                match self.unwritable {
                    None if cut => Err(FailureClass::ClosedEarly),
                    None => Ok(()),
                    Some(class) => Err(class),
                }
            }
            ConnState::Tunnel => Err(FailureClass::Proxy),
            ConnState::Handshake => Err(FailureClass::Tls),
            ConnState::Closed | ConnState::Connecting => Err(FailureClass::ClosedEarly),
        }
    }

    /// Returns facts, head and timings of the complete response.
    #[inline(always)]
    pub(crate) fn facts(&self) -> ResponseFacts {
        match &self.work {
            Some(work) => work.speaker.facts(),
            None => ResponseFacts::default(),
        }
    }

    /// Returns the bytes of the response's head, if heads are kept; the received part while the
    /// response is in progress.
    pub(crate) fn head(&self) -> &[u8] {
        self.work.as_ref().map_or(&[], |work| work.speaker.head())
    }

    /// Returns the trailers of the complete response, if heads are kept.
    pub(crate) fn trailers(&self) -> &[u8] {
        self.work.as_ref().map_or(&[], |work| work.speaker.trailers())
    }

    /// Returns the protocol's speaker, while calls are in flight.
    pub(crate) fn speaker(&self) -> Option<&Speaker> {
        self.work.as_ref().map(|work| &work.speaker)
    }

    pub(crate) fn call(&self, call: usize) -> Option<&Call> {
        self.work.as_ref()?.calls.get(call)
    }

    fn call_mut(&mut self, call: usize) -> Option<&mut Call> {
        self.work.as_mut()?.calls.get_mut(call)
    }

    /// Records that one of a call's several responses is complete. Returns whether more follow on
    /// this connection.
    pub(crate) fn take_partial_response(&mut self, call: usize, facts: &ResponseFacts) -> bool {
        let Some(call) = self.call_mut(call) else { return false };
        if call.responses_due <= 1 || !facts.persistent {
            return false;
        }
        call.responses_due -= 1;
        call.add(facts, facts.body_bytes);
        true
    }

    /// Removes a call with its complete response. `received`: bytes that count for conformity.
    #[inline(always)]
    pub(crate) fn take_served(&mut self, call: usize, received: u64, now: Nanos) -> Option<Call> {
        let work = self.work.as_mut()?;
        self.served += u32::from(call < work.calls.len());
        self.received += received;
        if work.calls.len() <= 1 {
            self.busy += now - work.busy_since;
            self.idle_from = idle_steps(now - self.opened);
        }
        // removed last, without moving it: a call is large, and each earlier access would copy it
        work.take(call)
    }

    /// Returns whether the server closes the connection after the completed response, or the
    /// connection has carried its maximum number of calls.
    #[inline]
    pub(crate) fn is_over(&mut self, persistent: bool, calls_max: u32) -> bool {
        let used_up = self.assigned >= calls_max && self.is_idle();
        if !persistent {
            self.by_server = !used_up;
        }
        !persistent || used_up
    }
}

/// Failures and the end of the connection.
impl Conn {
    /// Notes that the peer has ended its side.
    pub(crate) fn end_by_server(&mut self) {
        self.by_server = true;
    }

    /// Notes that a write failed; returns false if an earlier write failed too.
    pub(crate) fn note_unwritable(&mut self, class: FailureClass) -> bool {
        let first = self.unwritable.is_none();
        self.unwritable.get_or_insert(class);
        first
    }

    /// Returns why the first failed write failed.
    pub(crate) fn unwritable(&self) -> Option<FailureClass> {
        self.unwritable
    }

    pub(crate) fn break_with(&mut self, class: FailureClass) {
        self.broken = Some(class);
    }

    /// Returns whether the first-byte timeout of the oldest call has expired.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.call(0).is_some_and(|call| call.first_byte.is_zero())
    }

    /// Returns whether the connection has answered at least one call.
    pub(crate) fn has_served(&self) -> bool {
        self.served > 0
    }

    /// Returns whether the connection has served calls and sent no byte of its current ones: the
    /// cause of its end precedes them. If responses come in any order, calls are also removed in
    /// any order, and it is unknown which were written.
    pub(crate) fn is_unwritten(&self) -> bool {
        let unwritten = |work: &Work| {
            let known = !work.calls.is_empty() && !work.speaker.is_multiplexed();
            known && work.calls.len() <= work.unflushed as usize
        };
        self.is_open() && self.has_served() && self.work.as_deref().is_some_and(unwritten)
    }

    /// Reduces the count of sent bytes by the unsent requests at the end of a connection. Returns
    /// the excess of counted bytes over those of its calls. Over HTTP/2 and HTTP/3 a request counts
    /// once it is passed to an open connection, because pending data may be frames of the protocol.
    /// A retried call counts at most the bytes that all its attempts sent.
    pub(crate) fn take_back_unsent(&mut self) -> u64 {
        if self.is_open() && self.is_multiplexed() {
            return 0;
        }
        let Some(work) = self.work.as_deref_mut() else { return 0 };
        let mut unsent = work.transport.take_unsent();
        for call in work.calls.iter_mut().rev() {
            let own = call.bytes_sent.min(unsent);
            call.bytes_sent -= own;
            unsent -= own;
        }
        unsent
    }

    /// Settles bytes when the connection ends before its calls: they keep the sent bytes, and the
    /// received bytes of partial responses. Call this once, before any call is removed, because the
    /// protocol identifies calls by position.
    pub(crate) fn settle_bytes(&mut self) {
        self.take_back_unsent();
        let calls =
            if self.is_open() { self.work.as_ref().map_or(0, |work| work.calls.len()) } else { 0 };
        for call in 0..calls {
            self.count_partial(call);
        }
    }

    fn count_partial(&mut self, call: usize) {
        if let Some(Work { speaker, calls, .. }) = self.work.as_deref_mut()
            && let Some(facts) = speaker.partial(call)
            && let Some(call) = calls.get_mut(call)
        {
            call.add(&facts, facts.body_bytes);
        }
    }

    /// Removes the oldest call, which a failure of the connection affects.
    pub(crate) fn take_oldest_affected(&mut self) -> Option<Call> {
        self.work.as_mut()?.calls.pop_front()
    }

    /// Removes the calls with a partial response: if responses come in any order, a failure affects
    /// all of them.
    pub(crate) fn take_begun(&mut self) -> Vec<Call> {
        let Some(work) = self.work.as_mut().filter(|work| work.speaker.is_multiplexed()) else {
            return Vec::new();
        };
        // a message that was sent may have been processed, and is not resent
        let sent_is_begun = work.speaker.socket().is_some();
        let (begun, rest) = work.calls.drain(..).partition::<Vec<_>, _>(|call| {
            !call.first_byte.is_zero() || sent_is_begun && !call.sent.is_zero()
        });
        work.calls.extend(rest);
        begun
    }

    /// Removes a call that was refused, or abandoned after `came` bytes of its response.
    pub(crate) fn take_failed(
        &mut self,
        call: usize,
        came: &ResponseFacts,
        now: Nanos,
    ) -> Option<Call> {
        let work = self.work.as_mut()?;
        let mut taken = work.take(call)?;
        taken.add(came, came.body_bytes);
        if work.calls.is_empty() {
            self.busy += now - work.busy_since;
            self.idle_from = idle_steps(now - self.opened);
        }
        Some(taken)
    }

    /// Abandons the call. `Some(true)`: the connection continues without it.
    pub(crate) fn withdraw(&mut self, call: usize, now: Nanos) -> Option<(Call, bool)> {
        let open = self.is_open();
        let Work { speaker, transport, .. } = self.work.as_deref_mut()?;
        let came = speaker.partial(call).unwrap_or_default();
        if open && speaker.withdraw(call, transport.plaintext()) {
            return self.take_failed(call, &came, now).map(|call| (call, true));
        }
        self.settle_bytes();
        self.work.as_mut()?.take(call).map(|call| (call, false))
    }

    /// Removes all outstanding calls.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Call> + '_ {
        self.work.iter_mut().flat_map(|work| work.calls.drain(..))
    }

    /// Returns the record of the connection at its end; busy until `now` if calls are outstanding.
    pub(crate) fn life(&mut self, now: Nanos) -> ConnectionLife {
        let busy = self.work.as_ref().filter(|work| !work.calls.is_empty());
        let steps = idle_steps(now - self.opened).saturating_sub(self.idle_from);
        let idle = if busy.is_some() { Nanos::ZERO } else { IDLE_STEP * u64::from(steps) };
        if let Some(work) = busy {
            self.busy += now - work.busy_since;
        }
        ConnectionLife {
            idle,
            responses: self.served,
            busy: self.busy,
            open: now - self.established,
            asked: self.assigned > 0,
            by_server: self.by_server && !self.is_closed_by_client(),
        }
    }

    pub(crate) fn record(&self, user: Option<u64>, now: Nanos) -> ConnectionRecord {
        ConnectionRecord {
            user,
            opened: self.opened,
            established: self.established,
            closed: now,
            responses: self.served,
            class: self.broken,
        }
    }

    /// Returns the receive rate in bits per second while a call was outstanding; `None` without
    /// calls.
    pub(crate) fn bandwidth(&self) -> Option<f64> {
        if self.served == 0 || self.busy.is_zero() {
            return None;
        }
        Some(self.received as f64 * 8.0 / self.busy.as_secs_f64())
    }

    /// Sends close_notify, if it uses TLS.
    pub(crate) fn send_close<I: Io>(&mut self, io: &mut I, slot: Slot) {
        if let Some(work) = &mut self.work {
            if let Some(socket) = work.speaker.socket() {
                socket.send_close(work.transport.plaintext());
                work.transport.release();
                // bytes that the socket does not accept at once are dropped
                work.transport.flush(io, slot).ok();
            }
            work.transport.send_close(io, slot);
        }
    }

    pub(crate) fn close(&mut self) {
        self.state = ConnState::Closed;
        if let Some(work) = &mut self.work {
            work.clear();
        }
    }
}
