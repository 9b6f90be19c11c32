//! The worker over a multiplexed protocol: pool, deadlines and journal handle responses that do
//! not arrive in request order.

mod endings;
mod gathering;
mod queue;

use super::*;
use crate::speaker::Protocol;
use crate::speaker::numbered::frame;
use crate::{Endpoint, Row, endpoint_key};
use conduit::{Close, IoError, OpenOptions, Peer, Ready, Slot};
use plan::{Arrivals, Load, Plan, Think};
use sample::{CallRecord, FailureClass, Outcome, SocketFacts};
use stats::Snapshot;
use std::collections::VecDeque;
use units::Rate;
use url::Url;

const START: Nanos = Nanos::from_secs(1_000);

/// Stream opened by a client: number of its connection, and its own number.
type Asked = (Slot, u8);

/// Receives every frame at once and returns the replies on that connection, with their times.
type Peers = Box<dyn FnMut(&mut Vec<Asked>, Slot, &[u8]) -> Vec<(u64, Vec<u8>)>>;

/// A server whose connections take no time. Times are milliseconds from the start.
struct Pipes {
    now: Nanos,
    peer: Peers,
    asked: Vec<Asked>,
    /// Replies: content, time, and connection.
    coming: Vec<(Nanos, Slot, Vec<u8>)>,
    arrived: VecDeque<(Slot, Vec<u8>)>,
    /// All sent data, frame by frame.
    sent: Vec<(Slot, u8, u8)>,
    opened: u32,
}

impl Pipes {
    fn new(peer: Peers) -> Pipes {
        Pipes {
            now: START,
            peer,
            asked: Vec::new(),
            coming: Vec::new(),
            arrived: VecDeque::new(),
            sent: Vec::new(),
            opened: 0,
        }
    }
}

impl Io for Pipes {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        self.opened += 1;
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let mut rest = bytes;
        while let [number, kind, length, _, ..] = *rest {
            self.sent.push((slot, number, kind));
            if kind == b'?' {
                self.asked.push((slot, number));
            }
            let whole = 4 + usize::from(length);
            for (after, frames) in (self.peer)(&mut self.asked, slot, &rest[..whole]) {
                self.coming.push((START + Nanos::from_millis(after), slot, frames));
            }
            rest = &rest[whole..];
        }
        Ok(bytes.len())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let at = self.arrived.iter().position(|(of, _)| *of == slot);
        let Some((_, bytes)) = at.and_then(|at| self.arrived.remove(at)) else {
            return Err(IoError::WouldBlock);
        };
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn close(&mut self, slot: Slot, _: Close) {
        self.coming.retain(|(_, of, _)| *of != slot);
        self.arrived.retain(|(of, _)| *of != slot);
    }

    fn shutdown_write(&mut self, _: Slot) {}

    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        let next = self.coming.iter().map(|(at, ..)| *at).min().unwrap_or(Nanos::NEVER);
        self.now = self.now.max(next.min(until));
        let now = self.now;
        for (_, slot, bytes) in self.coming.extract_if(.., |(at, ..)| *at <= now) {
            self.arrived.push_back((slot, bytes));
            ready.push(Ready { slot, readable: true, writable: false, ended: false });
        }
    }
}

/// Records every call.
#[derive(Default)]
struct Notes {
    total: Snapshot,
    calls: Vec<CallRecord>,
}

impl Link for Notes {
    fn order(&mut self) -> Order {
        Order::Go
    }

    fn row(&mut self, row: Row) -> Box<Snapshot> {
        self.total.merge(&row.snapshot);
        Box::new(Snapshot::prepared(1))
    }

    fn log(&mut self, calls: &mut Vec<CallRecord>) {
        self.calls.append(calls);
    }

    fn report_script_failure(&mut self, text: String) {
        panic!("there is no script: {text}");
    }
}

/// Returns a plan of `users` users that share the connections, with `depth` calls on each; `calls`
/// in total.
fn plan_of(users: u32, depth: u32, calls: u64) -> Plan {
    let mut plan = Plan::for_url(Url::parse("http://peer.example/").unwrap());
    plan.load = Load::Closed { users, think: Think::None, session: None };
    plan.connection.pipeline = depth;
    plan.stop.duration = None;
    plan.stop.requests = Some(calls);
    plan.timeouts.call = Nanos::from_millis(100);
    plan
}

fn setup(plan: Plan) -> Arc<Setup> {
    let key = endpoint_key(&plan.targets[0].url);
    let peers = vec![Peer::Tcp(([127, 0, 0, 1], 1).into())];
    let endpoint = Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false };
    let mut setup = Setup::new(plan, vec![endpoint], 1, START).unwrap();
    setup.protocol = Protocol::Numbered;
    setup.logging.calls = true;
    Arc::new(setup)
}

fn run(plan: Plan, peer: Peers) -> (Notes, Pipes) {
    let (mut notes, mut io) = (Notes::default(), Pipes::new(peer));
    drive(&mut Worker::new(setup(plan), 0, None), &mut io, &mut notes);
    notes.total.counts.conserved().unwrap();
    (notes, io)
}

/// Returns for each call, by index: milliseconds from its due instant to its first byte and to its
/// end, the bytes of its body, and its outcome.
fn outcomes(notes: &Notes) -> Vec<(u64, u64, u64, u64, Outcome)> {
    let since = |at: Nanos, from: Nanos| if at.is_zero() { 0 } else { (at - from).0 / 1_000_000 };
    let mut rows: Vec<_> = notes
        .calls
        .iter()
        .map(|call| {
            let sample = &call.sample;
            let (first, done) = (sample.first_byte, sample.done);
            let from = sample.intended;
            (sample.index, since(first, from), since(done, from), sample.body_bytes, call.outcome)
        })
        .collect();
    rows.sort_by_key(|row| row.0);
    rows
}

/// Answers once both streams have arrived: the second first, and the first in two pieces around it.
fn swapped() -> Peers {
    Box::new(|asked, _, _| {
        if asked.len() < 2 {
            return Vec::new();
        }
        let ((_, one), (_, two)) = (asked[0], asked[1]);
        asked.clear();
        vec![
            (10, frame(one, b'.', b"abc")),
            (20, frame(two, b'!', b"hello")),
            (30, frame(one, b'!', b"de")),
        ]
    })
}

#[test]
fn calls_that_finish_in_swapped_order_are_counted_right() {
    let (notes, io) = run(plan_of(1, 2, 2), swapped());
    let done = Outcome::Succeeded;
    assert_eq!(outcomes(&notes), [(0, 10, 30, 5, done), (1, 20, 20, 5, done)]);
    assert_eq!((io.opened, notes.total.counts.succeeded), (1, 2));
    assert_eq!(notes.total.body_bytes, 10);
    assert_eq!(notes.total.connections.lives.answered, 1, "both on one connection");
}

#[test]
fn bodies_of_interleaved_responses_are_judged_separately() {
    let mut plan = plan_of(1, 2, 2);
    plan.expect.body = Some(plan::BodyRule::Exact(b"abcde".to_vec()));
    let (notes, _) = run(plan, swapped());
    let wrong: Vec<_> = outcomes(&notes).iter().map(|row| (row.0, row.4)).collect();
    assert_eq!(wrong, [(0, Outcome::Succeeded), (1, Outcome::Failed)]);
    assert_eq!(notes.total.failures.get(&FailureClass::Body), Some(&1));
}

#[test]
fn a_call_that_times_out_takes_no_other_with_it() {
    let peer: Peers = Box::new(|asked, _, _| {
        // the first stream's response stops after its start, the others arrive at once
        asked.drain(..).fold(Vec::new(), |mut all, (_, number)| {
            all.push((5, frame(number, if number == 1 { b'.' } else { b'!' }, b"hello")));
            all
        })
    });
    let (notes, io) = run(plan_of(1, 2, 2), peer);
    assert_eq!(
        outcomes(&notes),
        [(0, 5, 100, 5, Outcome::TimedOut), (1, 5, 5, 5, Outcome::Succeeded)]
    );
    assert_eq!(notes.total.body_bytes, 10);
    assert_eq!(io.opened, 1, "the connection goes on");
    assert!(io.sent.contains(&(0, 1, b'x')), "the stream was withdrawn: {:?}", io.sent);
}

/// Responses to other calls do not count as the start of a call's own response.
#[test]
fn a_busy_connection_does_not_put_off_the_first_byte() {
    let mut plan = plan_of(1, 2, 40);
    plan.timeouts.first_byte = Some(Nanos::from_millis(20));
    let mut last = 0;
    let peer: Peers = Box::new(move |asked, _, _| {
        asked.drain(..).fold(Vec::new(), |mut all, (_, number)| {
            if number != 1 {
                last += 5;
                all.push((last, frame(number, b'!', b"hello")));
            }
            all
        })
    });
    let (notes, io) = run(plan, peer);
    let (_, first, done, _, outcome) = outcomes(&notes)[0];
    assert_eq!((first, done, outcome), (0, 20, Outcome::TimedOut));
    assert_eq!(notes.total.failures.get(&FailureClass::FirstByteTimeout), Some(&1));
    assert_eq!((notes.total.counts.succeeded, io.opened), (39, 1));
}

#[test]
fn a_refused_call_is_put_on_another_connection() {
    let peer: Peers = Box::new(|asked, slot, _| {
        let Some((_, number)) = asked.pop() else { return Vec::new() };
        if slot == 0 && number == 2 {
            return vec![(5, [frame(0, b'g', b""), frame(2, b'r', b"")].concat())];
        }
        vec![(20, frame(number, b'!', b"hello"))]
    });
    let (notes, io) = run(plan_of(1, 2, 2), peer);
    assert_eq!(notes.total.counts.succeeded, 2);
    assert_eq!(io.opened, 2, "the first takes no more streams");
}

#[test]
fn an_abandoned_stream_fails_alone() {
    let peer: Peers = Box::new(|asked, _, _| {
        let Some((_, number)) = asked.pop() else { return Vec::new() };
        let kind = if number == 1 { b'x' } else { b'!' };
        vec![(5, frame(number, b'.', b"abc")), (10, frame(number, kind, b""))]
    });
    let (notes, io) = run(plan_of(1, 2, 2), peer);
    let ends: Vec<_> = outcomes(&notes).iter().map(|row| (row.4, row.3)).collect();
    assert_eq!(ends, [(Outcome::Failed, 3), (Outcome::Succeeded, 3)], "what came of it counts");
    assert_eq!((io.opened, notes.total.failures.get(&FailureClass::Reset)), (1, Some(&1)));
}

#[test]
fn the_peer_limits_the_streams_and_is_replied_to() {
    let peer: Peers = Box::new(|asked, _, heard| match heard[1] {
        b'h' => vec![(0, frame(9, b'p', b""))],
        b'?' => {
            let (_, number) = asked[asked.len() - 1];
            vec![(10, frame(number, b'!', b""))]
        }
        _ => Vec::new(),
    });
    let (notes, io) = run(plan_of(1, 20, 20), peer);
    assert_eq!(notes.total.counts.succeeded, 20);
    assert!(io.sent.contains(&(0, 9, b'P')), "the protocol's own reply went out");
    let on_first = io.asked.iter().filter(|(slot, _)| *slot == 0).count();
    assert_eq!(on_first, 20, "its user's calls wait there for a stream");
}

#[test]
fn a_break_fails_started_calls_and_repeats_the_rest() {
    let mut broken = false;
    let peer: Peers = Box::new(move |asked, _, _| {
        if asked.len() == 3 && !broken {
            broken = true;
            let begun = [asked[0].1, asked[2].1].map(|number| frame(number, b'.', b"ab"));
            // not a frame
            return vec![(10, begun.concat()), (20, vec![0])];
        }
        let responses = asked.iter().filter(|_| broken);
        responses.map(|(_, number)| (40, frame(*number, b'!', b""))).collect()
    });
    let (notes, _) = run(plan_of(1, 3, 3), peer);
    let ends: Vec<_> = outcomes(&notes).iter().map(|row| (row.0, row.4, row.3)).collect();
    let (failed, done) = (Outcome::Failed, Outcome::Succeeded);
    assert_eq!(ends, [(0, failed, 2), (1, done, 0), (2, failed, 2)]);
    assert_eq!(notes.total.body_bytes, 4, "what came of the broken ones counts");
}

#[test]
fn closes_of_connections_are_handled_first() {
    let event = |slot, ended| Ready { slot, readable: true, writable: false, ended };
    let order = |ready: &[(Slot, bool)]| {
        let ready: Vec<Ready> = ready.iter().map(|it| event(it.0, it.1)).collect();
        ends_first(&ready).map(|it| it.slot).collect::<Vec<_>>()
    };
    assert_eq!(order(&[(3, false), (1, false), (2, false)]), [3, 1, 2]);
    assert_eq!(order(&[(3, false), (1, true), (2, false), (0, true)]), [1, 0, 3, 2]);
}

/// A rate that no machine can send must leave time to read: a worker that only created arrivals
/// would measure itself.
#[test]
fn a_late_worker_looks_for_responses_between_its_arrivals() {
    let mut plan = plan_of(1, 1, 1);
    let arrivals = Arrivals::constant(Rate(1e6));
    plan.load = Load::Open { arrivals, session: None, connections_max: Some(1), queue_max: None };
    (plan.stop.duration, plan.stop.requests) = (Some(Nanos::SECOND), None);
    let (mut notes, mut io) = (Notes::default(), Pipes::new(Box::new(|_, _, _| Vec::new())));
    let mut worker = Worker::new(setup(plan), 0, None);
    io.now = START + Nanos::from_millis(20);
    for _ in 0..10 {
        let turn = worker.turn(&mut io, &mut notes);
        assert!(worker.arrivals_this_turn <= 256, "{}", worker.arrivals_this_turn);
        assert!(matches!(turn, Turn::Wait(until) if until <= io.now), "{turn:?}");
    }
}
