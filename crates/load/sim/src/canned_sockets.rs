//! WebSockets whose server echoes every message at once: they count the worker's own cost of a
//! message, and its memory of an idle connection.

use crate::canned::closed_plan;
use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use plan::{MaskRule, Plan, Think};
use sample::SocketFacts;
use std::sync::Arc;
use units::Nanos;
use websocket::handshake::read_request;

/// Maximum number of bytes that wait for the worker on one connection.
const UNREAD_MAX: usize = 256;
/// Bytes of a client's frame before its payload, up to 125 bytes of payload (RFC 6455 section 5.2).
const CLIENT_HEADER: usize = 6;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// Nanoseconds that pass with every reading of the clock.
const TICK: Nanos = Nanos(1_000);

/// The server's side of all connections.
#[derive(Debug)]
pub struct EchoSockets {
    now: Nanos,
    sockets: Vec<EchoSocket>,
    pending: Vec<Slot>,
}

#[derive(Clone, Debug)]
struct EchoSocket {
    open: bool,
    unread: [u8; UNREAD_MAX],
    length: usize,
}

impl EchoSocket {
    const CLOSED: EchoSocket = EchoSocket { open: false, unread: [0; UNREAD_MAX], length: 0 };

    fn put(&mut self, bytes: &[u8]) {
        self.unread[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Answers whole frames of at most 125 bytes of payload, or the upgrade.
    fn take(&mut self, input: &[u8]) {
        if !self.open {
            let (_, request) = read_request(input).expect("an upgrade is written whole");
            let request = request.expect("the worker's upgrade is valid");
            self.open = true;
            return self.put(&request.response(None, false));
        }
        let mut rest = input;
        while let [first, length, key @ ..] = rest {
            let length = usize::from(length & 0x7f);
            let kind = if *first == PING { PONG } else { *first };
            self.put(&[kind, length as u8]);
            let at = self.length;
            self.put(&rest[CLIENT_HEADER..][..length]);
            websocket::apply_mask(
                [key[0], key[1], key[2], key[3]],
                0,
                &mut self.unread[at..at + length],
            );
            rest = &rest[CLIENT_HEADER + length..];
        }
    }
}

impl Io for EchoSockets {
    fn now(&mut self) -> Nanos {
        self.now += TICK;
        self.now
    }

    fn open(&mut self, slot: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        self.sockets[slot as usize] = EchoSocket::CLOSED;
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        if !bytes.is_empty() {
            self.sockets[slot as usize].take(bytes);
            self.pending.push(slot);
        }
        Ok(bytes.len())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let socket = &mut self.sockets[slot as usize];
        let count = std::mem::take(&mut socket.length);
        buffer[..count].copy_from_slice(&socket.unread[..count]);
        if count == 0 { Err(IoError::WouldBlock) } else { Ok(count) }
    }

    fn close(&mut self, _: Slot, _: Close) {}

    fn shutdown_write(&mut self, _: Slot) {}

    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        let readable = |slot| Ready { slot, readable: true, writable: false, ended: false };
        ready.extend(self.pending.drain(..).map(readable));
        if ready.is_empty() {
            self.now = self.now.max(until);
        }
    }
}

fn plan_of(users: u32, calls: u64) -> Plan {
    closed_plan("ws://127.0.0.1:18080/ws", users, Think::None, calls)
}

fn worker_of(plan: Plan, slots: u32) -> (engine::Worker, EchoSockets) {
    let now = Nanos::from_secs(1_000);
    let endpoints = crate::run::endpoints_of(&plan);
    let setup = engine::Setup::new(plan, endpoints, 1, now).expect("the constants are valid");
    let sockets = vec![EchoSocket::CLOSED; slots as usize];
    let io = EchoSockets { now, sockets, pending: Vec::with_capacity(slots as usize) };
    (engine::Worker::new(Arc::new(setup), 0, None), io)
}

/// Returns a worker that sends `calls` messages of 64 bytes on 64 WebSockets, each after the echo
/// of the one before, and its world.
///
/// # Panics
/// Panics if the plan cannot be prepared, which its constants exclude.
pub fn canned_messages(calls: u64) -> (engine::Worker, EchoSockets) {
    let mut plan = plan_of(64, calls);
    plan.websocket.message = Some(vec![b'x'; 64]);
    plan.websocket.mask = MaskRule::Zero;
    worker_of(plan, 64)
}

/// Returns a worker that holds `users` WebSockets and sends a ping on each twice, and its world.
///
/// # Panics
/// Panics like [`canned_messages`].
pub fn canned_pings(users: u32) -> (engine::Worker, EchoSockets) {
    let mut plan = plan_of(users, 2 * u64::from(users));
    plan.websocket.ping = Some(Nanos::from_secs(30));
    plan.settle_websocket();
    worker_of(plan, users)
}
