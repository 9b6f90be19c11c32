//! One connection of a worker: where it stands, what is outstanding on it, when it must move.

use crate::call::{Call, NOBODY};
use crate::intake::Intake;
use crate::speaker::{Event, Fault, Heard, Protocol, ProtocolFacts, ReadCaches, Request, Speaker};
use crate::transport::{Flushed, Transport};
use conduit::{Io, IoError, Slot, TlsError, TlsSession};
use plan::Timeouts;
use sample::{ConnectionRecord, EarlyFacts, FailureClass, TlsFacts};
use stats::lives::ConnectionLife;
use std::collections::VecDeque;
use units::Nanos;
use wire::answer::{Advance, AnswerFacts, AnswerReader, Asked, HeadCache};

/// Where a connection stands. Each state is entered at most once, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnState {
    /// No socket.
    Closed,
    /// The transport is being connected.
    Connecting,
    /// CONNECT was sent to a proxy.
    Tunnel,
    /// TLS is shaking hands.
    Handshake,
    /// Requests go out, responses come in.
    Open,
}

/// Requests that go out before the handshake is over.
#[derive(Clone, Copy, Debug, Default)]
struct Early {
    allowed: bool,
    /// Calls, the oldest, whose requests are handed to TLS as early data; and those of them whose bytes
    /// the socket took.
    released: u32,
    calls: u32,
}

#[derive(Debug)]
pub(crate) struct Conn {
    state: ConnState,
    /// Counts openings of this slot.
    generation: u32,
    endpoint: u32,
    /// Row of the endpoint's addresses.
    address: usize,
    /// The user it belongs to, or [`NOBODY`].
    user: u32,
    /// Calls put on it so far, and responses had from it.
    assigned: u32,
    served: u32,
    /// Calls put on it since bytes last went out: nothing can have been answered of these.
    unflushed: u32,
    calls: VecDeque<Call>,
    speaker: Speaker,
    transport: Transport,
    early: Early,
    /// Reads the proxy's response to CONNECT, until the tunnel stands.
    tunnel: Option<Box<AnswerReader>>,
    opened: Nanos,
    /// When requests could go out, and why none can any more; for the record.
    established: Nanos,
    broken: Option<FailureClass>,
    /// The server ended it, or said that it would.
    by_server: bool,
    /// When `connect` had returned, then when the transport stood.
    connected: Nanos,
    /// Connect and TLS time, until the first call takes them into its sample.
    setup: Option<(Nanos, Option<Nanos>)>,
    /// When bytes last came in, or were last waited for from now on.
    progress: Nanos,
    /// The slot's entry among the deadlines; `NEVER`: it has none. It outlives the connection.
    armed: Nanos,
    /// Time with a call outstanding, for conformity: the connection's life less its think time.
    busy_since: Nanos,
    busy: Nanos,
    received: u64,
}

impl Conn {
    pub(crate) fn new(protocol: Protocol, keeps_heads: bool, headless: bool) -> Conn {
        Conn {
            state: ConnState::Closed,
            generation: 0,
            endpoint: 0,
            address: 0,
            user: NOBODY,
            assigned: 0,
            served: 0,
            unflushed: 0,
            // by itself it would make room for four, of which most connections need one
            calls: VecDeque::with_capacity(1),
            speaker: Speaker::new(protocol, keeps_heads, headless),
            transport: Transport::default(),
            early: Early::default(),
            tunnel: None,
            opened: Nanos::ZERO,
            established: Nanos::ZERO,
            broken: None,
            by_server: false,
            connected: Nanos::ZERO,
            setup: None,
            progress: Nanos::ZERO,
            armed: Nanos::NEVER,
            busy_since: Nanos::ZERO,
            busy: Nanos::ZERO,
            received: 0,
        }
    }

    /// Makes the slot ready for a new connection, which `connect` was called for at `now`; buffers
    /// keep their memory. `direct`: the protocol has the transport to itself, without TLS or tunnel.
    pub(crate) fn renew(&mut self, endpoint: u32, address: usize, user: u32, now: Nanos) {
        self.state = ConnState::Connecting;
        self.generation = self.generation.wrapping_add(1);
        (self.endpoint, self.address, self.user) = (endpoint, address, user);
        (self.assigned, self.served, self.unflushed) = (0, 0, 0);
        self.calls.clear();
        (self.setup, self.tunnel) = (None, None);
        self.early = Early::default();
        (self.established, self.broken, self.by_server) = (Nanos::ZERO, None, false);
        (self.opened, self.connected, self.progress) = (now, now, now);
        (self.busy_since, self.busy, self.received) = (now, Nanos::ZERO, 0);
    }

    /// `connect` has returned, at `now`. `direct`: the protocol has the transport to itself, without
    /// TLS or tunnel. At most `depth` calls will be outstanding.
    pub(crate) fn begin(&mut self, direct: bool, depth: u32, now: Nanos) {
        self.transport.renew(direct);
        self.speaker.start(self.transport.plaintext());
        self.calls.reserve_exact(depth as usize);
        self.connected = now;
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

    /// Whether this is still the connection that had `generation`, and not closed.
    #[inline]
    pub(crate) fn is_still(&self, generation: u32) -> bool {
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
        self.address
    }

    #[inline]
    pub(crate) fn user(&self) -> u32 {
        self.user
    }

    /// It belongs to nobody from now on; gives back to whom it belonged.
    pub(crate) fn release(&mut self) -> u32 {
        std::mem::replace(&mut self.user, NOBODY)
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// It has carried as many calls as one connection is to carry.
    pub(crate) fn is_used_up(&self, calls_max: u32) -> bool {
        self.assigned >= calls_max
    }

    /// Whether one more call may be put on it.
    #[inline]
    pub(crate) fn takes(&self, depth: u32, calls_max: u32) -> bool {
        self.state != ConnState::Closed
            && (self.calls.len() as u32) < self.speaker.capacity(depth)
            && self.assigned < calls_max
    }
}

/// Calls going out.
impl Conn {
    /// Writes a call's request; gives back its bytes.
    #[inline(always)]
    pub(crate) fn ask(&mut self, request: &Request<'_>) -> u64 {
        let out = self.transport.plaintext();
        let before = out.len();
        self.speaker.ask(request, out);
        (out.len() - before) as u64
    }

    /// A request that somebody else renders; gives back what that one says, and the bytes.
    pub(crate) fn ask_as_written<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> (T, u64) {
        let out = self.transport.plaintext();
        let before = out.len();
        let said = write(out);
        (said, (out.len() - before) as u64)
    }

    /// Whether the next call is the last that it carries.
    #[inline]
    pub(crate) fn is_last(&self, calls_max: u32) -> bool {
        self.assigned + 1 >= calls_max
    }

    /// The call whose request was just written is outstanding from now on.
    #[inline(always)]
    pub(crate) fn put(&mut self, call: Call, now: Nanos) {
        self.assigned += 1;
        if self.calls.is_empty() {
            self.busy_since = now;
            self.progress = now;
        }
        self.unflushed += 1;
        self.calls.push_back(call);
    }

    /// Bytes wait for the socket.
    #[inline]
    pub(crate) fn wants_to_write(&self) -> bool {
        self.state != ConnState::Closed && self.transport.has_unsent()
    }

    /// Bytes wait for the socket or for TLS.
    pub(crate) fn has_output(&self) -> bool {
        self.transport.has_output()
    }

    /// Writes out what waits, as far as the socket takes it. True: these were its first bytes, so
    /// the transport stands.
    ///
    /// # Errors
    /// The connection is no more.
    #[inline]
    pub(crate) fn flush<I: Io>(
        &mut self,
        io: &mut I,
        slot: Slot,
        now: Nanos,
    ) -> Result<bool, IoError> {
        if self.is_open() {
            self.transport.release();
        } else if self.early.allowed {
            return self.flush_early(io, slot, now);
        }
        let Flushed::Taken { resumed, whole } = self.transport.flush(io, slot)? else {
            return Ok(false);
        };
        if self.is_open() {
            self.unflushed = 0;
        }
        if resumed
            && whole
            && let Some(call) = self.calls.back_mut()
        {
            call.written = now;
        }
        Ok(self.state == ConnState::Connecting)
    }
}

/// Before the handshake is over.
impl Conn {
    /// Requests may go out with the first flight of a handshake.
    pub(crate) fn allow_early(&mut self, allowed: bool) {
        self.early.allowed = allowed;
    }

    /// As [`Conn::flush`], with the requests that are there, if the session can have them early.
    #[cold]
    fn flush_early<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) -> Result<bool, IoError> {
        if self.transport.release_early() {
            self.early.released = self.calls.len() as u32;
        }
        let Flushed::Taken { .. } = self.transport.flush(io, slot)? else { return Ok(false) };
        let before = self.early.calls as usize;
        self.early.calls = self.early.released;
        for call in self.calls.iter_mut().take(self.early.calls as usize).skip(before) {
            call.sent = now;
        }
        self.unflushed = self.calls.len() as u32 - self.early.calls;
        Ok(self.state == ConnState::Connecting)
    }

    /// What went out early on a connection of TCP; `None`: nothing did.
    #[inline]
    pub(crate) fn early(&self) -> Option<EarlyFacts> {
        let sent = u64::from(self.early.calls);
        if sent == 0 {
            return None;
        }
        let read = self.transport.early_read();
        let of = |what| if read == Some(what) { sent } else { 0 };
        Some(EarlyFacts { sent, accepted: of(true), rejected: of(false), too_early: 0 })
    }
}

/// From the first byte out to the first request.
impl Conn {
    /// Sends CONNECT to a proxy, ahead of everything else.
    pub(crate) fn send_connect(&mut self, request: &[u8]) {
        self.transport.send_bare(request);
    }

    pub(crate) fn start_tls(&mut self, session: Box<dyn TlsSession>) {
        self.transport.start_tls(session);
    }

    /// The transport stands: its first bytes were taken at `now`. Gives back when it came to stand;
    /// `tunnelled`: a proxy was asked for a tunnel.
    pub(crate) fn connect(&mut self, tunnelled: bool, now: Nanos) -> Nanos {
        // taken with the first flush: `connect` had done it all; later: it is done now
        let at = self.connected.max(now);
        (self.connected, self.progress) = (at, at);
        if tunnelled {
            self.state = ConnState::Tunnel;
            let mut reader = Box::new(AnswerReader::new(false));
            reader.start(Asked::Connect);
            self.tunnel = Some(reader);
        } else if self.transport.is_encrypted() {
            self.state = ConnState::Handshake;
        }
        at
    }

    /// Reads the proxy's response to CONNECT. True when the tunnel stands.
    ///
    /// # Errors
    /// The proxy refuses, or says what it should not.
    pub(crate) fn hear_proxy(&mut self, bytes: &[u8], now: Nanos) -> Result<bool, FailureClass> {
        let Some(reader) = &mut self.tunnel else { return Err(FailureClass::Proxy) };
        // once for each connection: nothing is gained by a cache
        let advance = reader.advance(&mut HeadCache::new(), bytes);
        let advance = advance.map_err(|_| FailureClass::Proxy)?;
        if !advance.done {
            return Ok(false);
        }
        if !(200..300).contains(&reader.facts().status) || advance.consumed < bytes.len() {
            return Err(FailureClass::Proxy);
        }
        self.tunnel = None;
        self.connected = now;
        self.state = ConnState::Handshake;
        Ok(true)
    }

    /// TLS agreed on another protocol than the one that the connection is to speak.
    pub(crate) fn is_misled(&self, facts: Option<&TlsFacts>) -> bool {
        let demanded = self.speaker.demanded();
        demanded.is_some_and(|name| facts.is_none_or(|facts| facts.alpn != name))
    }

    pub(crate) fn is_multiplexed(&self) -> bool {
        self.speaker.is_multiplexed()
    }

    /// The peer has gone away, and nothing is outstanding.
    pub(crate) fn is_left(&self) -> bool {
        self.is_open() && self.speaker.is_over()
    }

    /// Counts what went out at `now` of requests that had to wait for room, or for a stream.
    pub(crate) fn credit_late(&mut self, now: Nanos) {
        while let Some(call) = self.speaker.take_opened() {
            if let Some(call) = self.calls.get_mut(call) {
                // its wait ends now, unless its connection was not there before
                if call.issued >= self.established {
                    (call.admitted, call.issued) = (now, now);
                }
                call.sent = now;
            }
        }
        while let Some(late) = self.speaker.take_late() {
            if let Some(call) = self.calls.get_mut(late.place) {
                call.bytes_sent += late.bytes;
                if late.begins {
                    call.sent = now;
                }
            }
        }
    }

    /// A call of its user waits here, though the peer allows no further stream now: the protocol
    /// holds it back until one is free.
    pub(crate) fn holds_back(&self, calls_max: u32) -> bool {
        self.state != ConnState::Closed
            && self.speaker.is_multiplexed()
            && self.speaker.capacity(u32::MAX) > 0
            && self.assigned < calls_max
    }

    /// What was counted of the protocol itself.
    pub(crate) fn take_protocol_facts(&mut self) -> Option<ProtocolFacts> {
        self.speaker.take_facts()
    }

    /// Ciphertext in, plaintext out.
    pub(crate) fn decrypt(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        self.transport.decrypt(bytes, plain)
    }

    /// TLS has just agreed: what it took, and on what.
    pub(crate) fn take_handshake(&self, now: Nanos) -> Option<(Nanos, Option<TlsFacts>)> {
        let over = self.state == ConnState::Handshake && !self.transport.is_handshaking();
        over.then(|| (now - self.connected, self.transport.tls_facts()))
    }

    /// The peer ended the stream inside TLS.
    pub(crate) fn is_tls_closed(&self) -> bool {
        self.transport.is_tls_closed()
    }

    #[inline]
    pub(crate) fn is_encrypted(&self) -> bool {
        self.transport.is_encrypted()
    }

    /// Requests can go out from `now` on; gives back what connecting took.
    pub(crate) fn establish(&mut self, tls: Option<Nanos>, now: Nanos) -> Nanos {
        self.state = ConnState::Open;
        self.unflushed = if tls.is_some() { self.unflushed } else { 0 };
        let connect = self.connected - self.opened;
        self.setup = Some((connect, tls));
        self.established = now;
        for call in self.calls.iter_mut().skip(self.early.calls as usize) {
            call.sent = now;
        }
        connect
    }

    /// Connect and TLS time, once.
    #[inline]
    pub(crate) fn take_setup_times(&mut self) -> Option<(Nanos, Option<Nanos>)> {
        self.setup.take()
    }
}

/// Responses coming in.
impl Conn {
    /// Bytes came off the transport.
    #[inline]
    pub(crate) fn touch(&mut self, now: Nanos) {
        self.progress = now;
    }

    /// Takes plaintext in where responses come in order: a piece of the oldest call's. Its first byte
    /// is stamped.
    #[inline(always)]
    pub(crate) fn hear_in_order(
        &mut self,
        shared: &mut ReadCaches,
        input: &[u8],
        now: Nanos,
    ) -> Result<Advance, Fault> {
        let Speaker::Http1(http1) = &mut self.speaker else { return Err(Fault::Unasked) };
        if self.calls.len() <= self.unflushed as usize {
            return Err(Fault::Unasked);
        }
        let Some(call) = self.calls.front_mut() else { return Err(Fault::Unasked) };
        if call.first_byte.is_zero() {
            call.first_byte = now;
        }
        http1.hear(shared, call.asked, input)
    }

    /// Takes plaintext in, one event's worth; the call's first byte is stamped.
    pub(crate) fn hear(&mut self, input: &[u8], now: Nanos) -> Result<Heard, Fault> {
        let out = self.transport.plaintext();
        let heard = self.speaker.hear(input, out);
        if let Ok(Heard { event: Event::Response { call, .. }, .. }) = &heard
            && let Some(call) = self.calls.get_mut(*call)
            && call.first_byte.is_zero()
        {
            call.first_byte = now;
        }
        heard
    }

    /// The peer ended its side with calls outstanding. `Ok`: the oldest has its whole response.
    ///
    /// # Errors
    /// What that means to the oldest call.
    pub(crate) fn hear_end(&mut self) -> Result<(), FailureClass> {
        match self.state {
            ConnState::Open => self.speaker.hear_end(),
            ConnState::Tunnel => Err(FailureClass::Proxy),
            ConnState::Handshake => Err(FailureClass::Tls),
            ConnState::Closed | ConnState::Connecting => Err(FailureClass::ClosedEarly),
        }
    }

    /// Facts, head and timings of the response that is done.
    #[inline(always)]
    pub(crate) fn facts(&self) -> AnswerFacts {
        self.speaker.facts()
    }

    pub(crate) fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    pub(crate) fn call(&self, call: usize) -> Option<&Call> {
        self.calls.get(call)
    }

    /// Takes away what is gathered of the call's response; [`Conn::give_intake`] gives it back.
    pub(crate) fn take_intake(&mut self, call: usize) -> Option<Box<Intake>> {
        self.calls.get_mut(call)?.intake.take()
    }

    pub(crate) fn give_intake(&mut self, call: usize, intake: Option<Box<Intake>>) {
        if let Some(call) = self.calls.get_mut(call) {
            call.intake = intake;
        }
    }

    /// One of a call's several responses is there. True when more are to come on this connection.
    pub(crate) fn take_one_of_many(&mut self, call: usize, facts: &AnswerFacts) -> bool {
        let Some(call) = self.calls.get_mut(call) else { return false };
        if call.responses_due <= 1 || !facts.persistent {
            return false;
        }
        call.responses_due -= 1;
        call.add(facts, facts.body_bytes);
        true
    }

    /// The call has its whole response, and leaves. `received`: bytes that count for conformity.
    #[inline(always)]
    pub(crate) fn take_served(&mut self, call: usize, received: u64, now: Nanos) -> Option<Call> {
        self.served += u32::from(call < self.calls.len());
        self.received += received;
        if self.calls.len() <= 1 {
            self.busy += now - self.busy_since;
        }
        // last, and as it came off the list: a call is long, and each look at it would copy it
        self.take(call)
    }

    #[inline(always)]
    fn take(&mut self, call: usize) -> Option<Call> {
        if call > 0 {
            self.bring_to_front(call);
        }
        // always from the front, so that the compiler need not copy the call on its way
        self.calls.pop_front()
    }

    /// The calls before it keep their order behind it.
    #[cold]
    fn bring_to_front(&mut self, call: usize) {
        if let Some(call) = self.calls.remove(call) {
            self.calls.push_front(call);
        }
    }

    /// The server closes it after the response that is done, or it has carried all it is to carry.
    #[inline]
    pub(crate) fn is_over(&mut self, persistent: bool, calls_max: u32) -> bool {
        let used_up = self.calls.is_empty() && self.assigned >= calls_max;
        if !persistent {
            self.by_server = !used_up;
        }
        !persistent || used_up
    }
}

/// Trouble, and the end.
impl Conn {
    /// The peer has ended its side.
    pub(crate) fn end_by_server(&mut self) {
        self.by_server = true;
    }

    pub(crate) fn break_with(&mut self, class: FailureClass) {
        self.broken = Some(class);
    }

    /// The oldest call has waited in vain for its response's first byte.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.calls.front().is_some_and(|call| call.first_byte.is_zero())
    }

    /// It has answered at least one call.
    pub(crate) fn has_served(&self) -> bool {
        self.served > 0
    }

    /// Takes off the call that a break of the connection hits: the oldest. What has come of its
    /// response came over the wire all the same.
    pub(crate) fn take_hit(&mut self) -> Option<Call> {
        let mut call = self.calls.pop_front()?;
        if self.is_open()
            && let Some(facts) = self.speaker.partial(0)
        {
            call.add(&facts, facts.body_bytes);
        }
        Some(call)
    }

    /// Where responses come in any order, a break hits every call whose response has begun.
    pub(crate) fn take_begun(&mut self) -> Vec<Call> {
        let mut hit = Vec::new();
        if self.speaker.is_multiplexed() {
            let (begun, rest) =
                self.calls.drain(..).partition::<Vec<_>, _>(|call| !call.first_byte.is_zero());
            hit = begun;
            self.calls.extend(rest);
        }
        hit
    }

    /// Takes a call off that the peer has refused or given up.
    pub(crate) fn take_failed(&mut self, call: usize, now: Nanos) -> Option<Call> {
        let taken = self.take(call)?;
        if self.calls.is_empty() {
            self.busy += now - self.busy_since;
        }
        Some(taken)
    }

    /// Gives the call up. `Some(true)`: the connection goes on without it.
    pub(crate) fn withdraw(&mut self, call: usize, now: Nanos) -> Option<(Call, bool)> {
        let goes_on = self.is_open() && self.speaker.withdraw(call, self.transport.plaintext());
        if goes_on {
            return self.take_failed(call, now).map(|call| (call, true));
        }
        self.take(call).map(|call| (call, false))
    }

    /// The calls that are still outstanding, all of them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Call> + '_ {
        self.calls.drain(..)
    }

    /// What it looks like at its end; busy until `now` where calls are outstanding.
    pub(crate) fn life(&mut self, now: Nanos) -> ConnectionLife {
        if !self.calls.is_empty() {
            self.busy += now - self.busy_since;
        }
        ConnectionLife {
            answers: self.served,
            busy: self.busy,
            open: now - self.established,
            asked: self.assigned > 0,
            by_server: self.by_server,
        }
    }

    pub(crate) fn record(&self, user: Option<u64>, now: Nanos) -> ConnectionRecord {
        ConnectionRecord {
            user,
            opened: self.opened,
            established: self.established,
            closed: now,
            answers: self.served,
            class: self.broken,
        }
    }

    /// Bits per second that came in while a call was outstanding; `None` when nothing was asked.
    pub(crate) fn bandwidth(&self) -> Option<f64> {
        if self.served == 0 || self.busy.is_zero() {
            return None;
        }
        Some(self.received as f64 * 8.0 / self.busy.as_secs_f64())
    }

    /// Says goodbye in TLS, where there is any.
    pub(crate) fn say_goodbye<I: Io>(&mut self, io: &mut I, slot: Slot) {
        self.transport.say_goodbye(io, slot);
    }

    pub(crate) fn close(&mut self) {
        self.state = ConnState::Closed;
        self.transport.close();
    }
}

/// Deadlines.
impl Conn {
    /// The next instant at which something must have happened; `NEVER` when nothing is awaited.
    #[inline]
    pub(crate) fn deadline(&self, limits: &Timeouts) -> Nanos {
        let Some(call) = self.calls.front() else { return Nanos::NEVER };
        if self.state < ConnState::Open {
            return (call.intended + limits.call).min(self.opened + limits.connect);
        }
        let mut at = self.deadline_of(call, limits);
        if self.speaker.is_multiplexed() {
            at = at.min(self.deadline_of_streams(limits));
        }
        at
    }

    /// Each call has deadlines of its own. Where there is an entry already, it is for the earliest of
    /// those that were there: only the newest call can be in more of a hurry, and a look at all
    /// would cost each call as many.
    fn deadline_of_streams(&self, limits: &Timeouts) -> Nanos {
        let looked_at = if self.armed == Nanos::NEVER { self.calls.len() } else { 1 };
        let newest = self.calls.iter().rev().take(looked_at);
        newest.map(|call| self.deadline_of(call, limits)).min().unwrap_or(Nanos::NEVER)
    }

    /// Of a call whose response may come now.
    #[inline]
    fn deadline_of(&self, call: &Call, limits: &Timeouts) -> Nanos {
        let mut at = call.intended + limits.call;
        if let Some(limit) = limits.first_byte
            && call.first_byte.is_zero()
            && !call.sent.is_zero()
        {
            at = at.min(call.sent.max(self.progress) + limit);
        }
        let awaited = limits.answer.filter(|_| call.first_byte.is_zero());
        if let Some(limit) = awaited.or(limits.progress) {
            at = at.min(self.progress.max(call.sent) + limit);
        }
        at
    }

    /// The call whose deadline has passed, and what it waited for.
    pub(crate) fn expired(&self, limits: &Timeouts, now: Nanos) -> Option<(usize, FailureClass)> {
        let over = |call: &Call| self.deadline_of(call, limits) <= now;
        let row = match self.state {
            ConnState::Open => self.calls.iter().position(over)?,
            _ => 0,
        };
        let call = self.calls.get(row)?;
        let class = if call.intended + limits.call <= now {
            FailureClass::ClientTimeout
        } else if self.state < ConnState::Open {
            FailureClass::ConnectTimeout
        } else if call.first_byte.is_zero() && limits.first_byte.is_some() {
            FailureClass::FirstByteTimeout
        } else {
            FailureClass::ProgressTimeout
        };
        Some((row, class))
    }

    /// Its entry among the deadlines comes up before any deadline of its only call, which fell due at
    /// `intended`; `shortest`: the shortest of the limits.
    #[inline]
    pub(crate) fn is_watched(&self, intended: Nanos, shortest: Nanos) -> bool {
        let since = if self.is_open() { intended } else { intended.min(self.opened) };
        self.armed <= since + shortest
    }

    /// Sets the instant of its entry among the deadlines, if it needs an earlier one than it has.
    pub(crate) fn arm(&mut self, limits: &Timeouts) -> Option<Nanos> {
        let at = self.deadline(limits);
        if at < self.armed {
            self.armed = at;
            return Some(at);
        }
        None
    }

    /// The slot's entry for `at` came up. Whether it is the current one.
    pub(crate) fn disarm(&mut self, at: Nanos) -> bool {
        let current = self.armed == at;
        if current {
            self.armed = Nanos::NEVER;
        }
        current
    }
}
