//! A server with one or more weaknesses that a diagnosis must name. Each weakness is exact, so that
//! a test knows the required evidence.

use crate::servers::{Service, Stall};
use crate::world::{Action, Admission, Client, Server};
use std::collections::BTreeMap;
use units::{Nanos, Purpose, Seed, Stream};

/// A limiter of calls per second.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    pub per_s: f64,
    pub burst: f64,
    /// Status of calls beyond the limit; `None` if they wait for their turn.
    pub status: Option<u16>,
}

/// A line of this many bytes per second.
#[derive(Clone, Copy, Debug)]
pub struct SharedLine {
    pub bytes_per_s: f64,
    /// True if all responses share the line; otherwise each has its own.
    pub shared: bool,
    /// Bytes of each response's body.
    pub body: usize,
}

/// Weaknesses of the server. [`Ailments::default`] answers each call at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ailments {
    pub work: Option<Service>,
    /// Maximum number of concurrently processed calls; 0: unlimited.
    pub workers: usize,
    /// Responses are sent at whole multiples of this time after their call.
    pub quantum: Option<Nanos>,
    /// Responses are sent at the ticks of a clock with this interval: at the same instants for all.
    pub tick: Option<Nanos>,
    /// Mean of an exponential law by which responses are received late: a busy machine.
    pub lateness: Nanos,
    /// From this response of a connection on, the body arrives 40 ms after the head.
    pub delayed_ack_from: Option<u64>,
    /// Number of connections that are served at once; the others wait, unanswered.
    pub served_at_once: Option<usize>,
    /// Maximum number of open connections; the others are closed.
    pub connection_cap: Option<usize>,
    pub limiter: Option<Limiter>,
    pub stall: Option<Stall>,
    /// Duration after the first call during which calls take a multiple of their time, and that
    /// multiple.
    pub cold: Option<(Nanos, f64)>,
    /// Warm-up time, and the factor on the duration of the first call, which falls linearly to 1
    /// within that time.
    pub warming: Option<(Nanos, f64)>,
    /// Time by which each call takes longer than the previous one.
    pub leak: Nanos,
    pub close_after: Option<u64>,
    pub line: Option<SharedLine>,
    /// Contention and coherency of the universal scalability law.
    pub contention: Option<(f64, f64)>,
    /// A share of the calls is answered 504 after this time.
    pub late: Option<(f64, Nanos)>,
    /// The law of every other connection; replaces `work`.
    pub other_backend: Option<Service>,
    /// One in this number of connects needs its SYN repeated: after 1 s and, for one in four of
    /// those, 3 s.
    pub lost_connects: Option<u64>,
    /// A share of the responses is sent again after 200 ms.
    pub lost_responses: f64,
}

/// Connection as seen by the server.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    number: u64,
    responses: u64,
    /// Number of bytes of the end of a request head seen so far.
    seen: usize,
    free: Nanos,
    waits: bool,
}

/// The server with these weaknesses.
#[derive(Debug)]
pub struct Ailing {
    ails: Ailments,
    random: Stream,
    free: Vec<Nanos>,
    peers: BTreeMap<Client, Peer>,
    /// End times of the calls in progress.
    in_work: Vec<Nanos>,
    connects: u64,
    calls: u64,
    began: Option<Nanos>,
    tokens: f64,
    filled: Nanos,
    line_free: Nanos,
}

/// Maximum random addition to every response: real servers are never exact.
const JITTER: Nanos = Nanos::from_micros(150);
/// Duration of a refusal, which slows down users that call again at once.
const REFUSAL: Nanos = Nanos::from_millis(10);
const DELAYED_ACK: Nanos = Nanos::from_millis(40);
const RETRANSMISSION: Nanos = Nanos::from_millis(201);

impl Ailing {
    pub fn new(ails: Ailments, seed: u64) -> Ailing {
        Ailing {
            random: Seed(seed).stream(Purpose::Simulation, 1),
            free: vec![Nanos::ZERO; ails.workers],
            peers: BTreeMap::new(),
            in_work: Vec::new(),
            connects: 0,
            calls: 0,
            began: None,
            tokens: ails.limiter.map_or(0.0, |limiter| limiter.burst),
            filled: Nanos::ZERO,
            line_free: Nanos::ZERO,
            ails,
        }
    }

    fn draw(&mut self, law: Service) -> Nanos {
        match law {
            Service::Fixed(span) => span,
            Service::Exponential(mean) => {
                Nanos::from_secs_f64(self.random.exponential(mean.as_secs_f64()))
            }
        }
    }

    /// Returns the work of one call that arrives at `now` on connection `number`.
    fn work(&mut self, now: Nanos, number: u64) -> Nanos {
        let law = match self.ails.other_backend {
            Some(other) if number % 2 == 1 => Some(other),
            _ => self.ails.work,
        };
        let mut work = law.map_or(Nanos::ZERO, |law| self.draw(law));
        work += self.ails.leak * self.calls;
        let began = *self.began.get_or_insert(now);
        if let Some((span, times)) = self.ails.cold
            && now - began < span
        {
            work = Nanos((work.0 as f64 * times) as u64);
        }
        if let Some((span, times)) = self.ails.warming {
            let left = 1.0 - ((now - began).as_secs_f64() / span.as_secs_f64()).min(1.0);
            work = Nanos((work.0 as f64 * (1.0 + (times - 1.0) * left)) as u64);
        }
        if let Some((a, b)) = self.ails.contention {
            self.in_work.retain(|end| *end > now);
            let n = self.in_work.len() as f64 + 1.0;
            work = Nanos((work.0 as f64 * (1.0 + a * (n - 1.0) + b * n * (n - 1.0))) as u64);
            self.in_work.push(now + work);
        }
        work + Nanos((self.random.unit() * JITTER.0 as f64) as u64)
    }

    /// Returns when work that starts at `now` at the earliest is done.
    fn finish(&mut self, now: Nanos, work: Nanos) -> Nanos {
        let done = match self.free.iter_mut().min() {
            None => now + work,
            Some(first) => {
                *first = now.max(*first) + work;
                *first
            }
        };
        let done = self.ails.stall.and_then(|stall| stall.end_of(done)).unwrap_or(done);
        let done = match self.ails.quantum {
            Some(tick) => now + tick * ((done - now).0.div_ceil(tick.0).max(1)),
            None => done,
        };
        let done = match self.ails.tick {
            Some(tick) => tick * (done.0.div_ceil(tick.0)).max(now.0 / tick.0 + 1),
            None => done,
        };
        done + Nanos::from_secs_f64(self.random.exponential(self.ails.lateness.as_secs_f64()))
    }

    /// Returns the decision of the limiter: when the call passes, or the status of its refusal.
    fn admit(&mut self, now: Nanos) -> Result<Nanos, u16> {
        let Some(limiter) = self.ails.limiter else { return Ok(now) };
        let gained = (now - self.filled).as_secs_f64() * limiter.per_s;
        self.tokens = (self.tokens + gained).min(limiter.burst);
        self.filled = self.filled.max(now);
        if self.tokens >= 1.0 || limiter.status.is_none() {
            self.tokens -= 1.0;
            let wait = (-self.tokens).max(0.0) / limiter.per_s;
            return Ok(now + Nanos::from_secs_f64(wait));
        }
        limiter.status.map_or(Ok(now), Err)
    }

    fn answer(&mut self, now: Nanos, client: Client) -> Vec<(Nanos, Action)> {
        let mut peer = self.peers.get(&client).copied().unwrap_or_default();
        if peer.waits {
            return Vec::new();
        }
        peer.responses += 1;
        let (mut status, mut at) = match self.admit(now) {
            Err(refused) => (refused, now + REFUSAL),
            Ok(admitted) => {
                let work = self.work(admitted, peer.number);
                (200, self.finish(admitted, work))
            }
        };
        self.calls += 1;
        if let Some((share, span)) = self.ails.late
            && self.random.unit() < share
        {
            (status, at) = (504, now + span + Nanos((self.random.unit() * JITTER.0 as f64) as u64));
        }
        if self.random.unit() < self.ails.lost_responses {
            at += RETRANSMISSION;
        }
        // responses keep their order on a connection
        at = at.max(peer.free);
        let last = self.ails.close_after.is_some_and(|most| peer.responses >= most);
        let actions = self.send(at, status, &peer, last);
        peer.free = actions.last().map_or(at, |(end, _)| *end);
        self.peers.insert(client, peer);
        actions
    }

    fn send(&mut self, at: Nanos, status: u16, peer: &Peer, last: bool) -> Vec<(Nanos, Action)> {
        let body = self.ails.line.map_or(5, |line| line.body);
        let close = if last { "Connection: close\r\n" } else { "" };
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {body}\r\n{close}\r\n");
        let body = vec![b'x'; body];
        let mut end = at;
        let late = self.ails.delayed_ack_from.is_some_and(|from| peer.responses >= from);
        let mut actions = if late {
            end = at + DELAYED_ACK + Nanos((self.random.unit() * JITTER.0 as f64) as u64);
            vec![(at, Action::Bytes(head.into_bytes())), (end, Action::Bytes(body))]
        } else if let Some(line) = self.ails.line {
            let takes = Nanos::from_secs_f64(body.len() as f64 / line.bytes_per_s);
            let start = if line.shared { at.max(self.line_free) } else { at };
            end = start + takes;
            self.line_free = end;
            vec![(at, Action::Bytes(head.into_bytes())), (end, Action::Bytes(body))]
        } else {
            vec![(at, Action::Bytes([head.as_bytes(), &body].concat()))]
        };
        if last {
            actions.push((end, Action::End));
        }
        actions
    }
}

impl Server for Ailing {
    fn connect(&mut self, _now: Nanos, client: Client) -> Admission {
        self.connects += 1;
        let open = self.peers.len();
        let waits = self.ails.served_at_once.is_some_and(|most| open >= most);
        let peer = Peer { number: self.connects, waits, ..Peer::default() };
        self.peers.insert(client, peer);
        match self.ails.lost_connects {
            Some(every) if self.connects.is_multiple_of(every) => {
                let again = if (self.connects / every).is_multiple_of(4) { 3 } else { 1 };
                Admission::AcceptAfter(Nanos::from_secs(again) + JITTER * again)
            }
            _ => Admission::Accept,
        }
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let cap = self.ails.connection_cap.unwrap_or(usize::MAX);
        let rank = self.peers.keys().filter(|other| **other < client).count();
        if self.peers.len() > cap && rank >= cap {
            self.peers.remove(&client);
            return vec![(now, Action::End)];
        }
        let Some(peer) = self.peers.get_mut(&client) else { return Vec::new() };
        let mut calls = 0;
        for byte in bytes {
            peer.seen = match (peer.seen, byte) {
                (0 | 2, b'\r') => peer.seen + 1,
                (1, b'\n') => 2,
                (3, b'\n') => {
                    calls += 1;
                    0
                }
                _ => 0,
            };
        }
        (0..calls).flat_map(|_| self.answer(now, client)).collect()
    }

    fn ended(&mut self, _now: Nanos, client: Client) {
        self.peers.remove(&client);
    }
}
