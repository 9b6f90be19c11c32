//! One connection of the fault loop.
//!
//! ```text
//! bytes → requests → pending (until due) → sending → bytes
//! ```
//!
//! Responses keep the order of their requests: on one connection, no response is due before the
//! previous one. A connection holds at most [`PIPELINE_MAX`] requests and one head's worth of
//! input; beyond that it stops reading, and TCP slows the client down.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown, sockopt};
use units::Nanos;

use super::core::{Core, Duty, SCRATCH_LEN};
use super::outgoing::{After, Outgoing};
use super::poller::{Interest, Poller};
use super::request::{ExactRequest, HEAD_MAX, Parsed, parse};
use super::slab::Id;
use crate::faults::Misbehaviour;
use crate::proper::PassedConnection;
use crate::script::Treatment;

/// Maximum number of requests of one connection in progress.
const PIPELINE_MAX: usize = 1_024;
/// Maximum number of bytes that a client may send while the server waits for it to close.
const LINGER_BYTES_MAX: usize = 1 << 20;
const LINGER_MAX: Nanos = Nanos::SECOND;
/// Maximum number of reads of a slow body in a row.
const DRIP_STEP: Nanos = Nanos::from_millis(1);

/// The head with which HTTP/2 begins (RFC 9113 section 3.4).
const HTTP2_HEAD: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

#[derive(Debug)]
pub(super) struct Connection {
    fd: OwnedFd,
    peer: Option<SocketAddr>,
    /// Number of connections accepted before it.
    number: u64,
    input: Vec<u8>,
    scanned: usize,
    /// A request whose body is incomplete.
    unfinished: Option<ExactRequest>,
    pending: VecDeque<Pending>,
    sending: VecDeque<Outgoing>,
    last_due: Nanos,
    requests: u64,
    state: ConnectionState,
    peer_done: bool,
    blocked: bool,
    dripping: bool,
    interest: Interest,
}

/// A request that waits for its instant.
#[derive(Debug)]
struct Pending {
    due: Nanos,
    line: String,
    act: Act,
}

#[derive(Debug)]
enum Act {
    Send(Outgoing),
    Reset,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    Reading,
    /// No further request is read; requests in work are finished.
    Finishing,
    /// Our side is closed; this number of bytes is still discarded until the client closes.
    Lingering {
        left: usize,
    },
    /// Its next request is for a page that this loop does not have.
    Leaving,
}

/// State of a connection after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Open,
    Over,
}

impl Connection {
    pub(super) fn new(fd: OwnedFd, peer: Option<SocketAddr>, number: u64) -> Connection {
        Connection {
            fd,
            peer,
            number,
            input: Vec::new(),
            scanned: 0,
            unfinished: None,
            pending: VecDeque::new(),
            sending: VecDeque::new(),
            last_due: Nanos::ZERO,
            requests: 0,
            state: ConnectionState::Reading,
            peer_done: false,
            blocked: false,
            dripping: false,
            interest: Interest::READ,
        }
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Returns whether the connection must be passed on.
    pub(super) fn leaves(&self) -> bool {
        self.state == ConnectionState::Leaving
    }

    /// Returns the connection with its unread input.
    pub(super) fn passed(self, is_tcp: bool) -> PassedConnection {
        let Connection { fd, peer, number, input, .. } = self;
        PassedConnection { fd, is_tcp, input, peer, number }
    }

    /// Handles readiness.
    pub(super) fn wake(&mut self, id: Id, broken: bool, core: &mut Core) -> Life {
        if self.blocked {
            if self.flush(id, core) == Life::Over {
                return Life::Over;
            }
            self.resume(id, core);
        }
        if self.interest.read { self.read(id, core) } else { Life::when(!broken) }
    }

    /// Handles a timer of this connection.
    pub(super) fn due(&mut self, id: Id, duty: Duty, core: &mut Core) -> Life {
        let life = match duty {
            Duty::Answer => self.act(id, core),
            Duty::Drip => {
                self.dripping = false;
                self.flush(id, core)
            }
            Duty::Linger => Life::Over,
        };
        if life == Life::Open {
            self.resume(id, core);
        }
        life
    }

    /// Processes input that waited for room.
    fn resume(&mut self, id: Id, core: &mut Core) {
        if !self.input.is_empty() {
            self.understand(id, core);
        }
    }

    /// Registers the wanted events with epoll. Must be called last.
    pub(super) fn settle(&mut self, id: Id, poller: &Poller) -> Life {
        let idle = self.pending.is_empty() && self.sending.is_empty();
        if self.peer_done && idle {
            return Life::Over;
        }
        let read = match self.state {
            ConnectionState::Reading => {
                !self.peer_done && self.has_room() && self.input.len() <= HEAD_MAX
            }
            ConnectionState::Finishing | ConnectionState::Leaving => false,
            ConnectionState::Lingering { .. } => true,
        };
        let interest = Interest { read, write: self.blocked };
        if interest != self.interest {
            if poller.modify(&self.fd, id, interest).is_err() {
                return Life::Over;
            }
            self.interest = interest;
        }
        Life::Open
    }

    fn read(&mut self, id: Id, core: &mut Core) -> Life {
        core.scratch.resize(SCRATCH_LEN, 0);
        let count = match rustix::io::read(&self.fd, &mut core.scratch[..]) {
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Life::Open,
            Err(_) => return Life::Over,
        };
        core.shared.counters.received(count);
        if let ConnectionState::Lingering { left } = &mut self.state {
            *left = left.saturating_sub(count);
            return Life::when(count > 0 && *left > 0);
        }
        if count == 0 {
            // the client may have closed only its own side and still wait for responses, also to
            // requests that were read and wait for room
            self.peer_done = true;
            return Life::Open;
        }
        self.input.extend_from_slice(&core.scratch[..count]);
        self.understand(id, core);
        if self.sending.is_empty() || self.blocked { Life::Open } else { self.flush(id, core) }
    }

    /// Turns input into pending requests.
    fn understand(&mut self, id: Id, core: &mut Core) {
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        while self.state == ConnectionState::Reading && self.has_room() {
            let rest = &input[at..];
            if let Some(mut request) = self.unfinished.take() {
                match request.body.take(rest) {
                    Err(status) => self.refuse(id, status, core),
                    Ok((taken, over)) => {
                        at += taken;
                        if !over {
                            self.unfinished = Some(request);
                            break;
                        }
                        self.admit(id, &request, core);
                    }
                }
                continue;
            }
            if rest.starts_with(HTTP2_HEAD) && self.requests == 0 && core.passes_on() {
                self.state = ConnectionState::Leaving;
                break;
            }
            match parse(rest, &mut self.scanned, core.body_max) {
                Parsed::Partial => break,
                Parsed::Bad(status) => {
                    core.shared.counters.requests(1);
                    self.refuse(id, status, core);
                }
                Parsed::Whole { request, .. } if request.is_elsewhere() && core.passes_on() => {
                    // earlier responses are sent first
                    if self.pending.is_empty() && self.sending.is_empty() {
                        self.state = ConnectionState::Leaving;
                    }
                    break;
                }
                Parsed::Whole { request, head_len } => {
                    at += head_len;
                    core.shared.counters.requests(1);
                    self.invite(&request, at < input.len(), core);
                    self.unfinished = Some(request);
                }
            }
        }
        self.input = input;
        self.input.drain(..at);
        if !matches!(self.state, ConnectionState::Reading | ConnectionState::Leaving) {
            self.input = Vec::new();
        }
    }

    /// Sends 100 (Continue) to a client that waits for it, unless the body is already arriving (RFC
    /// 9110 §10.1.1) or earlier responses are not sent yet.
    fn invite(&mut self, request: &ExactRequest, body_comes: bool, core: &Core) {
        let silent = core.faults.misbehaviour == Some(Misbehaviour::NeverAnswer);
        let first = self.pending.is_empty() && self.sending.is_empty();
        if request.expects && !body_comes && first && !silent {
            self.sending.push_back(Outgoing::interim_continue());
        }
    }

    /// Decides the treatment of a whole request and sets its timer.
    fn admit(&mut self, id: Id, request: &ExactRequest, core: &mut Core) {
        let now = net::reactor::monotonic();
        if let Some(stall) = &mut core.stall {
            stall.on_request(now);
        }
        self.requests += 1;
        let treatment = core.script.lock().treatment(now);
        let act = match (treatment, core.faults.misbehaviour) {
            (Treatment::Reset, _) => Act::Reset,
            (_, Some(Misbehaviour::NeverAnswer)) => {
                core.book(self.peer, &request.line, None, None);
                core.count_finished();
                return;
            }
            (_, Some(Misbehaviour::CloseEarly)) => Act::Close,
            (_, Some(Misbehaviour::Garbage)) => {
                Act::Send(Outgoing::garbage(core.script.lock().garbage()))
            }
            _ => {
                let spent = core.faults.close_after.is_some_and(|most| self.requests >= most);
                Act::Send(core.answer(request, treatment.status(), spent || !request.keep))
            }
        };
        let (dripping, stays) = match &act {
            Act::Send(outgoing) => (outgoing.dripping_len(), outgoing.after == After::Keep),
            Act::Reset | Act::Close => (0, false),
        };
        let drip = core.faults.drip.map_or(Nanos::ZERO, |rate| span_of(dripping, rate));
        let due = core.script.lock().due(now, drip, treatment, self.number);
        self.queue(id, Pending { due, line: request.line.clone(), act }, core);
        if !stays {
            self.state = ConnectionState::Finishing;
        }
    }

    fn refuse(&mut self, id: Id, status: u16, core: &mut Core) {
        let act = Act::Send(core.refusal(status));
        let due = net::reactor::monotonic();
        self.queue(id, Pending { due, line: String::new(), act }, core);
        self.state = ConnectionState::Finishing;
    }

    fn queue(&mut self, id: Id, mut pending: Pending, core: &mut Core) {
        pending.due = pending.due.max(self.last_due);
        self.last_due = pending.due;
        core.set_timer(pending.due, Duty::Answer, id);
        self.pending.push_back(pending);
    }

    /// Performs the due action of the first pending request.
    fn act(&mut self, id: Id, core: &mut Core) -> Life {
        let Some(Pending { due, line, act }) = self.pending.pop_front() else { return Life::Open };
        let outgoing = match act {
            Act::Send(outgoing) => outgoing,
            Act::Reset | Act::Close => {
                if matches!(act, Act::Reset) {
                    // fails only on a connection that is gone already
                    sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO)).ok();
                }
                core.book(self.peer, &line, None, None);
                core.count_finished();
                return Life::Over;
            }
        };
        let due = due.max(core.frozen_until);
        core.shared.lateness.record(net::reactor::monotonic() - due);
        core.book(self.peer, &line, outgoing.status, outgoing.body_len);
        let mut outgoing = outgoing;
        if let Some(start) = core.begin_on_line(due, outgoing.dripping_len()) {
            outgoing.begin_at(start);
        }
        self.sending.push_back(outgoing);
        self.flush(id, core)
    }

    /// Writes everything that may be sent now.
    fn flush(&mut self, id: Id, core: &mut Core) -> Life {
        if self.state_is_lingering() {
            return Life::Open;
        }
        self.blocked = false;
        loop {
            self.gather(core);
            if core.scratch.is_empty() {
                break;
            }
            match send(&self.fd, &core.scratch, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    core.shared.counters.sent(sent);
                    match self.sent(sent as u64, core) {
                        After::Keep => {}
                        After::Drop => return Life::Over,
                        After::Close => return self.linger(id, core),
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    return Life::Open;
                }
                Err(_) => return Life::Over,
            }
        }
        if let (Some(outgoing), Some(drip), false) =
            (self.sending.front(), core.faults.body_rate(), self.dripping)
        {
            let now = net::reactor::monotonic();
            core.set_timer(outgoing.next_drip(now, drip, DRIP_STEP), Duty::Drip, id);
            self.dripping = true;
        }
        Life::Open
    }

    /// Fills the scratch buffer with permitted output, over as many responses as are completely
    /// permitted.
    fn gather(&mut self, core: &mut Core) {
        core.scratch.clear();
        let drip = core.faults.body_rate();
        let apart = core.faults.weak.nagle;
        let now = if drip.is_some() { net::reactor::monotonic() } else { Nanos::ZERO };
        for outgoing in &mut self.sending {
            let room = (SCRATCH_LEN - core.scratch.len()) as u64;
            let mut allowed = outgoing.allowed(now, drip).min(room);
            if apart {
                allowed = allowed.min(outgoing.part_left());
            }
            let copied = outgoing.copy(allowed, &mut core.scratch);
            if apart || !outgoing.ends_after(copied) || outgoing.after != After::Keep {
                break;
            }
        }
    }

    /// Books `sent` bytes on the responses in front.
    fn sent(&mut self, mut sent: u64, core: &mut Core) -> After {
        while let Some(outgoing) = self.sending.front_mut() {
            sent -= outgoing.advance(sent);
            if !outgoing.is_sent() {
                break;
            }
            let (after, is_final) = (outgoing.after, outgoing.is_final);
            self.sending.pop_front();
            if is_final {
                core.count_finished();
            }
            if after != After::Keep {
                return after;
            }
        }
        After::Keep
    }

    /// Closes our side and waits for the client to close its own, so that unread input does not
    /// turn the close into a reset that could destroy the response (RFC 9112 §9.6).
    fn linger(&mut self, id: Id, core: &mut Core) -> Life {
        self.sending.clear();
        self.pending.clear();
        if self.peer_done || shutdown(&self.fd, Shutdown::Write).is_err() {
            return Life::Over;
        }
        self.state = ConnectionState::Lingering { left: LINGER_BYTES_MAX };
        core.set_timer(net::reactor::monotonic() + LINGER_MAX, Duty::Linger, id);
        Life::Open
    }

    fn state_is_lingering(&self) -> bool {
        matches!(self.state, ConnectionState::Lingering { .. })
    }

    fn has_room(&self) -> bool {
        self.pending.len() + self.sending.len() < PIPELINE_MAX
    }
}

impl Life {
    fn when(open: bool) -> Life {
        if open { Life::Open } else { Life::Over }
    }
}

/// Returns the transmission time of `bytes` at `rate` bytes per second.
fn span_of(bytes: u64, rate: u64) -> Nanos {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}
