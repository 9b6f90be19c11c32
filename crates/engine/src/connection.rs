//! One connection of a worker: where it stands, what is outstanding on it, when it must move.

use crate::call::{Call, NOBODY};
use crate::inspect::Inspect;
use conduit::TlsSession;
use plan::Timeouts;
use sample::FailureClass;
use std::collections::VecDeque;
use units::Nanos;
use wire::answer::AnswerReader;

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
    /// Requests go out, answers come in.
    Open,
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) state: ConnState,
    /// Counts openings of this slot.
    pub(crate) generation: u32,
    pub(crate) endpoint: u32,
    /// Row of the endpoint's addresses.
    pub(crate) address: usize,
    /// The user it belongs to, or [`NOBODY`].
    pub(crate) user: u32,
    /// Calls put on it so far, and answers had from it.
    pub(crate) assigned: u32,
    pub(crate) served: u32,
    /// It stands in the worker's list of connections with work to write; in its endpoint's list of
    /// connections that can take a call.
    pub(crate) dirty: bool,
    /// Requests go to the transport as they are: no TLS, no tunnel before it.
    pub(crate) direct: bool,
    pub(crate) listed: bool,
    /// Calls put on it since bytes last went out: nothing can have been answered of these.
    pub(crate) unflushed: u32,
    pub(crate) calls: VecDeque<Call>,
    pub(crate) reader: AnswerReader,
    /// Bytes for the transport, of which `out_at` are gone; plaintext that waits for the handshake.
    pub(crate) out: Vec<u8>,
    pub(crate) out_at: usize,
    pub(crate) held: Vec<u8>,
    pub(crate) tls: Option<Box<dyn TlsSession>>,
    pub(crate) inspect: Option<Box<Inspect>>,
    /// The body of the answer under way, where a script wants it.
    pub(crate) body: Vec<u8>,
    pub(crate) opened: Nanos,
    /// When requests could go out, and why none can any more; for the record.
    pub(crate) established: Nanos,
    pub(crate) broken: Option<FailureClass>,
    /// The server ended it, or said that it would.
    pub(crate) by_server: bool,
    /// When `connect` had returned, then when the transport stood.
    pub(crate) connected: Nanos,
    /// Connect and TLS time, until the first call takes them into its sample.
    pub(crate) setup: Option<(Nanos, Option<Nanos>)>,
    pub(crate) progress: Nanos,
    pub(crate) armed: Nanos,
    /// Time with a call outstanding, for conformity: the connection's life less its think time.
    pub(crate) busy_since: Nanos,
    pub(crate) busy: Nanos,
    pub(crate) received: u64,
    /// The beginning of the answer under way, where answers are kept.
    pub(crate) kept: Vec<u8>,
}

impl Conn {
    pub(crate) fn new(keep_head: bool) -> Conn {
        Conn {
            state: ConnState::Closed,
            generation: 0,
            endpoint: 0,
            address: 0,
            user: NOBODY,
            assigned: 0,
            served: 0,
            dirty: false,
            direct: true,
            listed: false,
            unflushed: 0,
            calls: VecDeque::new(),
            reader: AnswerReader::new(keep_head),
            out: Vec::new(),
            out_at: 0,
            held: Vec::new(),
            tls: None,
            inspect: None,
            body: Vec::new(),
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
            kept: Vec::new(),
        }
    }

    /// Makes the slot ready for a new connection; buffers keep their memory.
    pub(crate) fn renew(&mut self, endpoint: u32, user: u32, now: Nanos) {
        self.state = ConnState::Connecting;
        self.generation = self.generation.wrapping_add(1);
        (self.endpoint, self.user) = (endpoint, user);
        (self.assigned, self.served, self.unflushed) = (0, 0, 0);
        (self.dirty, self.listed) = (false, false);
        self.calls.clear();
        self.out.clear();
        self.out_at = 0;
        self.held.clear();
        self.body.clear();
        self.kept.clear();
        (self.tls, self.setup) = (None, None);
        (self.established, self.broken, self.by_server) = (Nanos::ZERO, None, false);
        (self.opened, self.connected, self.progress) = (now, now, now);
        self.armed = Nanos::NEVER;
        (self.busy_since, self.busy, self.received) = (now, Nanos::ZERO, 0);
    }

    /// Keeps a piece of the answer under way, as far as there is room.
    pub(crate) fn keep(&mut self, piece: &[u8]) {
        let room = crate::setup::ANSWER_KEPT_MAX - self.kept.len();
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Whether one more call may be put on it.
    #[inline]
    pub(crate) fn takes(&self, depth: u32, calls_max: u32) -> bool {
        self.state != ConnState::Closed
            && (self.calls.len() as u32) < depth
            && self.assigned < calls_max
    }

    /// Calls whose bytes have gone out and that wait for an answer.
    #[inline]
    pub(crate) fn awaited(&self) -> usize {
        self.calls.len().saturating_sub(self.unflushed as usize)
    }

    /// The next instant at which something must have happened; `NEVER` when nothing is awaited.
    #[inline]
    pub(crate) fn deadline(&self, limits: &Timeouts) -> Nanos {
        let Some(call) = self.calls.front() else { return Nanos::NEVER };
        let mut at = call.intended + limits.call;
        if self.state < ConnState::Open {
            return at.min(self.opened + limits.connect);
        }
        if let Some(span) = limits.first_byte
            && call.first_byte.is_zero()
            && !call.sent.is_zero()
        {
            at = at.min(call.sent.max(self.progress) + span);
        }
        let awaited = limits.answer.filter(|_| call.first_byte.is_zero());
        if let Some(span) = awaited.or(limits.progress) {
            at = at.min(self.progress.max(call.sent) + span);
        }
        at
    }

    /// Bits per second that came in while a call was outstanding; `None` when nothing was asked.
    pub(crate) fn bandwidth(&self) -> Option<f64> {
        if self.served == 0 || self.busy.is_zero() {
            return None;
        }
        Some(self.received as f64 * 8.0 / self.busy.as_secs_f64())
    }
}
