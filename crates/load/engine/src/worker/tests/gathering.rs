//! Requests that are written together while responses arrive one by one.

use super::endings::Sessions;
use super::{Notes, START, plan_of};
use crate::speaker::Protocol;
use crate::speaker::numbered::frame;
use crate::worker::*;
use crate::{Endpoint, endpoint_key};
use conduit::{Close, IoError, OpenOptions, Peer, Ready, Slot, TlsFactory};
use plan::Plan;
use sample::SocketFacts;
use std::collections::VecDeque;
use url::Url;

/// A server that writes each response by itself, so that each read finds one.
struct OneByOne {
    now: Nanos,
    answers: VecDeque<Vec<u8>>,
    /// The stream whose response never ends: each read is followed by more of it.
    endless: Option<u8>,
    /// For each write, the number of reads since the previous one, and of requests in it.
    writes: Vec<(usize, usize)>,
    reads: usize,
}

impl Io for OneByOne {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        Ok(())
    }

    fn write(&mut self, _: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        // the first flight of the TLS session, whose reply is any frame
        let mut rest = bytes.strip_prefix(b"hello").unwrap_or(bytes);
        if rest.len() < bytes.len() {
            self.answers.push_back(frame(0, b'p', b""));
        }
        let mut requests = 0;
        while let [number, kind, length, _, ref after @ ..] = *rest {
            requests += usize::from(kind == b'?');
            match kind {
                b'?' if self.endless != Some(number) => {
                    self.answers.push_back(frame(number, b'!', b""));
                }
                // abandoned
                b'x' => {
                    self.endless = None;
                    self.answers.clear();
                }
                _ => {}
            }
            rest = &after[usize::from(length)..];
        }
        self.writes.push((std::mem::take(&mut self.reads), requests));
        Ok(bytes.len())
    }

    fn read(&mut self, _: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let Some(bytes) = self.answers.pop_front() else { return Err(IoError::WouldBlock) };
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.reads += 1;
        self.answers.extend(self.endless.map(|number| frame(number, b'.', b"more")));
        Ok(bytes.len())
    }

    fn close(&mut self, _: Slot, _: Close) {}

    fn shutdown_write(&mut self, _: Slot) {}

    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }

    fn wait(&mut self, _: Nanos, ready: &mut Vec<Ready>) {
        self.now += Nanos::from_millis(1);
        ready.clear();
        ready.push(Ready { slot: 0, readable: true, writable: false, ended: false });
    }
}

/// Runs the plan on one connection. Returns, for each write with requests, the number of reads since
/// the previous write and of requests.
fn writes(mut plan: Plan, url: &str, endless: Option<u8>) -> (Notes, Vec<(usize, usize)>) {
    plan.targets[0].url = Url::parse(url).unwrap();
    let secure = url.starts_with("https");
    let endpoint = Endpoint {
        key: endpoint_key(&plan.targets[0].url),
        peers: vec![Peer::Tcp(([127, 0, 0, 1], 1).into())],
        tls_name: secure.then(|| "peer.example".to_owned()),
        tunnel: None,
        absolute: false,
    };
    let mut setup = Setup::new(plan, vec![endpoint], 1, START).unwrap();
    setup.protocol = Protocol::Numbered;
    let tls = secure.then(|| Box::new(Sessions) as Box<dyn TlsFactory + Send>);
    let (answers, writes) = (VecDeque::new(), Vec::new());
    let mut io = OneByOne { now: START, answers, endless, writes, reads: 0 };
    let mut notes = Notes::default();
    drive(&mut Worker::new(Arc::new(setup), 0, tls), &mut io, &mut notes);
    notes.total.counts.conserved().unwrap();
    io.writes.retain(|(_, requests)| *requests > 0);
    (notes, io.writes)
}

const PLAIN: &str = "http://peer.example/";
const ENCRYPTED: &str = "https://peer.example/";

/// Requests wait until the server has no call left to answer. Without TLS they do not wait, and each
/// response causes a write of one request.
#[test]
fn requests_over_tls_wait_for_responses_that_have_arrived() {
    let (notes, together) = writes(plan_of(1, 4, 40), ENCRYPTED, None);
    assert_eq!(notes.total.counts.succeeded, 40);
    assert_eq!(together, [vec![(1, 4)], vec![(4, 4); 9]].concat());
    let (notes, alone) = writes(plan_of(1, 4, 40), PLAIN, None);
    assert_eq!(notes.total.counts.succeeded, 40);
    assert_eq!(alone, [vec![(0, 4)], vec![(1, 1); 36]].concat());
}

#[test]
fn requests_of_a_single_stream_are_written_at_once() {
    let (_, writes) = writes(plan_of(1, 1, 4), ENCRYPTED, None);
    assert_eq!(writes, [(1, 1), (1, 1), (1, 1), (1, 1)]);
}

/// The next request is written after eight further reads. Each request adds one more piece of the
/// long response.
#[test]
fn a_long_response_holds_requests_back_for_a_few_reads() {
    let (notes, writes) = writes(plan_of(1, 2, 5), ENCRYPTED, Some(2));
    let counts = &notes.total.counts;
    assert_eq!((counts.succeeded, counts.timed_out), (4, 1));
    let reads: Vec<_> = writes.iter().skip(1).map(|(reads, _)| *reads).collect();
    assert!(reads.iter().all(|reads| (9..=12).contains(reads)), "{writes:?}");
}
