//! Runs the users of a test in virtual time against a simulated server.

#![allow(dead_code, reason = "each test file uses a part")]

use k6::guide::ScriptGuides;
use k6::summary::TestSummary;
use k6::test::Test;
use sample::{FailureClass, Outcome, Sample};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use units::Nanos;
use workload::{CallEnd, Guide, Guides as _, SocketAction, SocketCall, Step, opcode};

/// Reaction of the server to a request.
pub(crate) enum Reply {
    /// Head and body, after 10 ms.
    Whole(String, String),
    Failed(FailureClass),
}

/// Decides by the text of the request.
pub(crate) type Server<'a> = &'a dyn Fn(&str) -> Reply;

/// Output of a run.
pub(crate) struct Ran {
    pub(crate) test: Arc<Test>,
    /// Requests as sent, with their instants in milliseconds.
    pub(crate) sent: Vec<(u64, String)>,
}

impl Ran {
    pub(crate) fn elapsed_s(&self) -> f64 {
        (self.test.end() - self.test.origin()).as_secs_f64()
    }

    fn summarized<T>(&self, with: impl FnOnce(&TestSummary<'_>) -> T) -> T {
        let all = self.test.collected();
        with(&TestSummary { test: &self.test, all: &all, elapsed_s: self.elapsed_s(), full: false })
    }

    pub(crate) fn data(&self) -> Value {
        self.summarized(|summary| summary.data())
    }

    pub(crate) fn text(&self) -> String {
        self.summarized(|summary| summary.text())
    }

    pub(crate) fn count(&self, metric: &str) -> u64 {
        self.data()["metrics"][metric]["values"]["count"].as_f64().unwrap_or(0.0) as u64
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.test.program.take_log().into_iter().map(|line| line.text).collect()
    }
}

/// Due instants of users.
type Due = BinaryHeap<Reverse<(Nanos, u64)>>;

/// Runs all users of a test on one worker.
pub(crate) fn run(test: Test, server: Server<'_>) -> Ran {
    let test = Arc::new(test);
    let own = test.new_store();
    let mut guide = ScriptGuides(test.clone()).guide();
    let mut due: Due = (0..test.users()).map(|user| Reverse((Nanos::SECOND, user))).collect();
    let mut sent = Vec::new();
    let mut sockets = Sockets::new();
    while let Some(Reverse((now, user))) = due.pop() {
        assert!(now < Nanos::from_secs(100_000), "the test does not end");
        take(&mut *guide, user, now, (&mut due, &mut sent), (server, &mut sockets));
    }
    if let Some(base) = test.base() {
        let dropped: u64 = test.progress.iter().map(|it| it.take_dropped(test.end() - base)).sum();
        if dropped > 0 {
            let row = k6::metrics::row::DROPPED;
            let mut own = own.lock().unwrap();
            own.add(test.program.metrics(), row, dropped as f64, test.end(), &[]);
        }
    }
    Ran { test, sent }
}

/// By user: messages in transit from the server, and their arrival times.
type Sockets = BTreeMap<u64, VecDeque<(Nanos, Vec<u8>)>>;

/// A server that echoes after 10 ms, answers a ping after 5 ms, and closes after "bye".
fn on_socket(
    call: &SocketCall,
    payload: &[u8],
    now: Nanos,
    waiting: &mut VecDeque<(Nanos, Vec<u8>)>,
) -> (Nanos, Vec<u8>, Option<FailureClass>) {
    let in_ms = |ms: u64| now + Nanos::from_millis(ms);
    let heard = |kind: u8, payload: &[u8]| [&[kind], payload].concat();
    match &call.action {
        SocketAction::Connect => {
            waiting.clear();
            (in_ms(10), Vec::new(), None)
        }
        SocketAction::Send { text, .. } => {
            let kind = if *text { opcode::TEXT } else { opcode::BINARY };
            waiting.push_back((in_ms(10), heard(kind, payload)));
            if payload == b"bye" {
                waiting.push_back((in_ms(10), heard(opcode::CLOSE, &4000_u16.to_be_bytes())));
            }
            (now, Vec::new(), None)
        }
        SocketAction::Ping => {
            waiting.push_back((in_ms(5), heard(opcode::PONG, b"")));
            (now, Vec::new(), None)
        }
        SocketAction::Listen => {
            let limit = now + call.timeout.unwrap_or(Nanos::from_secs(60));
            match waiting.pop_front_if(|(at, _)| *at <= limit) {
                Some((at, heard)) => (at.max(now), heard, None),
                None => (limit, Vec::new(), Some(FailureClass::ClientTimeout)),
            }
        }
        SocketAction::Close { .. } => (in_ms(10), Vec::new(), None),
        SocketAction::Expect(_) => panic!("a script listens"),
    }
}

fn take(
    guide: &mut dyn Guide,
    user: u64,
    now: Nanos,
    (due, sent): (&mut Due, &mut Vec<(u64, String)>),
    (server, sockets): (Server<'_>, &mut Sockets),
) {
    match guide.next(user, now) {
        Step::Pause { wait } => due.push(Reverse((now + wait, user))),
        Step::Call(call) => {
            let request = String::from_utf8_lossy(&call.template.bytes).into_owned();
            let at = now + call.wait;
            if let Some(socket) = &call.template.socket {
                let (done, body, class) =
                    on_socket(socket, &call.template.bytes, at, sockets.entry(user).or_default());
                if socket.opens() {
                    sent.push(((at - Nanos::SECOND).0 / 1_000_000, request));
                }
                let status = if class.is_none() { 101 } else { 0 };
                let sample = Sample {
                    user: Some(user),
                    intended: at,
                    done,
                    status,
                    class,
                    ..Sample::default()
                };
                let head =
                    b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Protocol: chat\r\n\r\n";
                let head = if socket.opens() { &head[..] } else { b"" };
                let outcome = Outcome::Succeeded;
                guide.ended(user, &CallEnd { sample: &sample, outcome, head, body: &body });
                return due.push(Reverse((done, user)));
            }
            sent.push(((at - Nanos::SECOND).0 / 1_000_000, request.clone()));
            let done = at + Nanos::from_millis(10);
            let mut sample = Sample {
                user: Some(user),
                intended: at,
                issued: at,
                admitted: at,
                done,
                ..Sample::default()
            };
            let (head, body) = match server(&request) {
                Reply::Whole(head, body) => (head, body),
                Reply::Failed(class) => {
                    sample.class = Some(class);
                    (String::new(), String::new())
                }
            };
            if !head.is_empty() {
                (sample.sent, sample.first_byte) = (at, done);
                sample.status = head[9..12].parse().unwrap();
                sample.bytes_sent = request.len() as u64;
                sample.bytes_received = (head.len() + body.len()) as u64;
            }
            let outcome = Outcome::Succeeded;
            let came =
                CallEnd { sample: &sample, outcome, head: head.as_bytes(), body: body.as_bytes() };
            guide.ended(user, &came);
            due.push(Reverse((done, user)));
        }
        Step::Leave => {}
        Step::Target { .. } => panic!("a script has no targets"),
    }
}
