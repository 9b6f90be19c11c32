//! Requests of guided users whose bodies grow after they are sent, in virtual time.

use conduit::Peer;
use engine::{Directory, Endpoint, endpoint_key};
use plan::{AddressOrder, Load, Plan, Think};
use protocol::http1::response::Asked;
use sample::{FailureClass, Note, Outcome};
use sim::grpc::{Answered, ChatServer};
use sim::http2::{RST_STREAM, SETTINGS, frame};
use sim::{Action, Admission, Client, Queue, Server, Service, World, execute_guided, plan_for};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use units::Nanos;
use url::Url;
use workload::{CallEnd, Guide, GuideCall, Step, Stripped, Template};

const URL: &str = "grpc://sim.example:1/s.S/Chat";
/// Empty message of gRPC: flag and length.
const MESSAGE: [u8; 5] = [0; 5];

/// Observations of a user: bytes of parts, and ends with their statuses.
#[derive(Debug, Default)]
struct Seen {
    parts: usize,
    ends: Vec<(u16, Outcome, Option<FailureClass>)>,
}

/// User that makes these steps and leaves after the end of its call.
#[derive(Debug)]
struct Sender {
    steps: VecDeque<Step>,
    seen: Arc<Mutex<Seen>>,
}

fn open_call(timeout: Nanos) -> Step {
    let bytes = b"POST /s.S/Chat HTTP/1.1\r\nHost: sim.example\r\nte: trailers\r\n\r\n".to_vec();
    let mut template = Template {
        endpoint: 0,
        method: "POST".into(),
        asked: Asked::Ordinary,
        cookie_at: bytes.len(),
        cookie_at_last: bytes.len(),
        http2: None,
        http3: None,
        stripped: Stripped::default(),
        socket: None,
        lane: 1,
        timeout: Some(timeout),
        last: bytes.clone(),
        bytes,
        url: Url::parse(URL).expect("a test's URL is well formed").into(),
    };
    template.add_http2("http").expect("a valid request");
    template.http2.as_mut().expect("just added").keep_open();
    Step::Call(GuideCall { wait: Nanos::ZERO, row: 0, template: Box::new(template) })
}

fn more(bytes: &[u8], ends: bool) -> Step {
    Step::Extend { lane: 1, bytes: bytes.to_vec(), ends }
}

impl Guide for Sender {
    fn keeps_bodies(&self) -> bool {
        true
    }

    fn sees_every_response(&self) -> bool {
        true
    }

    fn ends_with_its_users(&self) -> bool {
        true
    }

    fn makes_simultaneous_calls(&self) -> bool {
        true
    }

    fn next(&mut self, _: u64, _: Nanos) -> Step {
        let over = !self.seen.lock().expect("one thread").ends.is_empty();
        self.steps.pop_front().unwrap_or(if over { Step::Leave } else { Step::Await })
    }

    fn part(&mut self, _: u64, _: u32, body: &[u8]) {
        self.seen.lock().expect("one thread").parts += body.len();
    }

    fn note_call_end(&mut self, _: u64, came: &CallEnd<'_>) -> Option<Note> {
        let end = (came.sample.status, came.outcome, came.sample.class);
        self.seen.lock().expect("one thread").ends.push(end);
        None
    }
}

/// Directory of a name with two addresses.
#[derive(Debug)]
struct TwoAddresses;

impl Directory for TwoAddresses {
    fn endpoint(&mut self, url: &Url) -> Option<Endpoint> {
        let peers = [1, 2].map(|port| Peer::Tcp(([127, 0, 0, 1], port).into())).to_vec();
        let key = endpoint_key(url);
        Some(Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false })
    }
}

/// Server with admissions for the first attempts.
#[derive(Debug)]
struct Admitting<S> {
    server: S,
    first: VecDeque<Admission>,
}

impl<S: Server> Server for Admitting<S> {
    fn connect(&mut self, _: Nanos, _: Client) -> Admission {
        self.first.pop_front().unwrap_or(Admission::Accept)
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        self.server.receive(now, client, bytes)
    }
}

/// Runs one user; the plan's own limit on calls is shorter than a connection attempt.
fn seen(steps: Vec<Step>, server: impl Server + 'static, first: &[Admission]) -> Seen {
    let mut plan: Plan = plan_for("http://sim.example/");
    plan.load = Load::Closed { users: 1, think: Think::None, session: None };
    (plan.stop.requests, plan.stop.duration) = (Some(u64::MAX), None);
    plan.connection.per_user = 10;
    plan.connection.addresses = AddressOrder::FirstThatAnswers;
    plan.timeouts.call = Nanos::from_millis(1);
    let server = Box::new(Admitting { server, first: first.iter().copied().collect() });
    let world = World::new(server, Nanos::from_millis(5), Nanos::from_secs(1_000));
    let seen = Arc::<Mutex<Seen>>::default();
    let guide = Sender { steps: steps.into(), seen: seen.clone() };
    execute_guided(plan, world, Box::new(guide), Box::new(TwoAddresses));
    std::mem::take(&mut *seen.lock().expect("one thread"))
}

fn queue() -> Queue {
    Queue::new(0, Service::Fixed(Nanos::from_millis(1)), 1)
}

#[test]
fn an_open_request_moves_to_the_next_address_with_its_messages() {
    let steps = || vec![open_call(Nanos::SECOND), more(&MESSAGE, false), more(&MESSAGE, true)];
    for first in [&[][..], &[Admission::Refuse]] {
        let seen = seen(steps(), ChatServer::new(queue(), &Answered::default()), first);
        assert_eq!(seen.ends, [(200, Outcome::Succeeded, None)], "{first:?}");
        assert_eq!(seen.parts, 2 * MESSAGE.len(), "{first:?}");
    }
    let refused = seen(steps(), ChatServer::silent(queue()), &[Admission::Refuse; 2]);
    assert_eq!(refused.ends, [(0, Outcome::Failed, Some(FailureClass::Refused))]);
}

#[test]
fn too_many_messages_that_a_server_does_not_take_fail_the_call() {
    let half = vec![0; (16 << 20) - 1];
    let steps = || vec![open_call(Nanos::SECOND), more(&half, false), more(&MESSAGE, false)];
    let full = (0, Outcome::Failed, Some(FailureClass::SendQueue));
    let waiting = seen(steps(), ChatServer::silent(queue()), &[Admission::Ignore]);
    assert_eq!(waiting.ends, [full], "while the connection is opened");
}

/// Server that refuses the first stream of each connection.
#[derive(Debug)]
struct Refusing;

impl Server for Refusing {
    fn receive(&mut self, now: Nanos, _: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        const REFUSED_STREAM: u32 = 7;
        if !bytes.starts_with(b"PRI") {
            return Vec::new();
        }
        let refusal = frame(RST_STREAM, 0, 1, &REFUSED_STREAM.to_be_bytes());
        vec![(now, Action::Bytes([frame(SETTINGS, 0, 0, &[]), refusal].concat()))]
    }
}

#[test]
fn an_open_request_that_the_server_refuses_is_not_repeated() {
    let seen = seen(vec![open_call(Nanos::SECOND), more(&MESSAGE, false)], Refusing, &[]);
    assert_eq!(seen.ends, [(0, Outcome::Failed, Some(FailureClass::StreamRefused))]);
}

#[test]
fn an_abandoned_request_ends_before_its_connection_is_open() {
    let steps = vec![open_call(Nanos::SECOND), more(&MESSAGE, false), Step::Cancel { lane: 1 }];
    let seen = seen(steps, ChatServer::silent(queue()), &[Admission::Ignore]);
    assert_eq!(seen.ends, [(0, Outcome::Abandoned, None)]);
}
