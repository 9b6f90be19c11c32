//! Servers with known true figures: queueing models with theory, and scripts.

use crate::world::{Action, Admission, Client, Server};
use std::collections::BTreeMap;
use units::{Nanos, Purpose, Seed, Stream};

/// Distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Constant: the D of M/D/1.
    Fixed(Nanos),
    /// The M of M/M/1: exponential with this mean.
    Exponential(Nanos),
}

/// The server freezes for `length` at `first`, and again every `period` after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub first: Nanos,
    pub length: Nanos,
    pub period: Nanos,
}

impl Stall {
    /// Returns the end of the stall at the instant `at`.
    pub(crate) fn end_of(&self, at: Nanos) -> Option<Nanos> {
        if at < self.first {
            return None;
        }
        let into = Nanos((at - self.first).0 % self.period.0.max(1));
        (into < self.length).then(|| at - into + self.length)
    }
}

/// First come, first served, by `servers` equal servers; one response per request head.
#[derive(Debug)]
pub struct Queue {
    service: Service,
    random: Stream,
    /// Instants at which each server is free.
    free: Vec<Nanos>,
    /// True for an unlimited number of servers: each request has its own.
    endless: bool,
    stall: Option<Stall>,
    response: Vec<u8>,
    heads: BTreeMap<Client, usize>,
    /// Number of responses sent, for comparison with the client's count.
    pub served: u64,
}

impl Queue {
    /// Creates the queue; `servers` of 0: as many as there are requests.
    pub fn new(servers: usize, service: Service, seed: u64) -> Queue {
        Queue {
            service,
            random: Seed(seed).stream(Purpose::Simulation, 0),
            free: vec![Nanos::ZERO; servers.max(1)],
            endless: servers == 0,
            stall: None,
            response: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec(),
            heads: BTreeMap::new(),
            served: 0,
        }
    }

    pub fn with_stall(mut self, stall: Stall) -> Queue {
        self.stall = Some(stall);
        self
    }

    fn service(&mut self) -> Nanos {
        match self.service {
            Service::Fixed(span) => span,
            Service::Exponential(mean) => {
                Nanos::from_secs_f64(self.random.exponential(mean.as_secs_f64()))
            }
        }
    }

    /// Returns when a request that arrives now is answered.
    pub(crate) fn finish(&mut self, now: Nanos) -> Nanos {
        let service = self.service();
        let done = if self.endless {
            now + service
        } else {
            let Some(first) = self.free.iter_mut().min() else { return now };
            let done = now.max(*first) + service;
            *first = done;
            done
        };
        self.stall.and_then(|stall| stall.end_of(done)).unwrap_or(done)
    }

    /// Returns the number of request heads completed by `bytes`: each is a request without body.
    fn requests(&mut self, client: Client, bytes: &[u8]) -> usize {
        let seen = self.heads.entry(client).or_default();
        let mut count = 0;
        for byte in bytes {
            *seen = match (*seen, byte) {
                (0 | 2, b'\r') => *seen + 1,
                (1, b'\n') => 2,
                (3, b'\n') => {
                    count += 1;
                    0
                }
                _ => 0,
            };
        }
        count
    }
}

impl Server for Queue {
    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let count = self.requests(client, bytes);
        self.served += count as u64;
        (0..count).map(|_| (self.finish(now), Action::Bytes(self.response.clone()))).collect()
    }

    fn ended(&mut self, _now: Nanos, client: Client) {
        self.heads.remove(&client);
    }
}

/// A server defined by a closure, for behavior that no model covers.
pub struct ClosureServer<F> {
    pub admit: Admission,
    pub react: F,
}

impl<F> std::fmt::Debug for ClosureServer<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClosureServer").field("admit", &self.admit).finish_non_exhaustive()
    }
}

impl<F: FnMut(Nanos, Client, &[u8]) -> Vec<(Nanos, Action)>> Server for ClosureServer<F> {
    fn connect(&mut self, _now: Nanos, _client: Client) -> Admission {
        self.admit
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        (self.react)(now, client, bytes)
    }
}
