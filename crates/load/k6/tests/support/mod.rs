//! Runs the users of a test in virtual time against a simulated server.

#![allow(dead_code, reason = "each test file uses a part")]

use k6::guide::ScriptGuides;
use k6::program::LogLine;
use k6::summary::TestSummary;
use k6::test::Test;
use sample::{FailureClass, Outcome, Sample};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;
use units::Nanos;
use workload::{CallEnd, Guide, Guides as _, SocketAction, SocketCall, Step, Template, opcode};

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

    fn summarized<T>(&self, full: bool, with: impl FnOnce(&TestSummary<'_>) -> T) -> T {
        let all = self.test.collected();
        with(&TestSummary { test: &self.test, all: &all, elapsed_s: self.elapsed_s(), full })
    }

    /// Returns the text of a full summary.
    pub(crate) fn full_text(&self) -> String {
        self.summarized(true, |summary| summary.text())
    }

    pub(crate) fn data(&self) -> Value {
        self.summarized(false, |summary| summary.data())
    }

    pub(crate) fn text(&self) -> String {
        self.summarized(false, |summary| summary.text())
    }

    pub(crate) fn count(&self, metric: &str) -> u64 {
        self.data()["metrics"][metric]["values"]["count"].as_f64().unwrap_or(0.0) as u64
    }

    pub(crate) fn log(&self) -> Vec<String> {
        let error = |line: &LogLine| {
            let found = line.fields.iter().find(|(name, _)| *name == "error");
            found.map_or_else(String::new, |(_, value)| format!(" error={value}"))
        };
        let lines = self.test.program.take_log().into_iter();
        lines.map(|line| format!("{}{}", line.text, error(&line))).collect()
    }
}

/// Call that ends.
struct Ending {
    sample: Sample,
    lane: u32,
    head: String,
    body: Vec<u8>,
    /// True if it is a part of a response, and the call continues.
    is_part: bool,
}

/// Events of users by their instants: ends of calls, or of pauses.
#[derive(Default)]
struct Events {
    due: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    /// Ends of calls; `None` for a pause, or if another end has replaced it.
    all: Vec<Option<Ending>>,
    /// Users that have left.
    left: BTreeSet<u64>,
}

impl Events {
    fn put(&mut self, at: Nanos, user: u64, ending: Option<Ending>) -> usize {
        self.all.push(ending);
        self.due.push(Reverse((at, user, self.all.len() - 1)));
        self.all.len() - 1
    }
}

/// Runs all users of a test on one worker.
pub(crate) fn run(test: Test, server: Server<'_>) -> Ran {
    run_from(test, server, |_| Nanos::SECOND)
}

/// The same, with the instants at which the guide is first queried for each user.
pub(crate) fn run_from(test: Test, server: Server<'_>, first: impl Fn(u64) -> Nanos) -> Ran {
    let test = Arc::new(test);
    let own = test.new_store();
    let mut guide = ScriptGuides(test.clone()).guide();
    let mut world = World {
        events: Events::default(),
        sent: Vec::new(),
        sockets: Sockets::new(),
        streams: BTreeMap::new(),
    };
    for user in 0..test.users() {
        world.events.put(first(user), user, None);
    }
    while let Some(Reverse((now, user, event))) = world.events.due.pop() {
        assert!(now < Nanos::from_secs(100_000), "the test does not end");
        let ending = world.events.all[event].take();
        if let Some(Ending { lane, body, is_part: true, .. }) = &ending {
            guide.part(user, *lane, body);
        } else if let Some(Ending { sample, lane, head, body, .. }) = ending {
            let (head, body) = (head.as_bytes(), &body[..]);
            let outcome = Outcome::Succeeded;
            guide.note_call_end(user, &CallEnd { sample: &sample, outcome, head, body, lane });
        }
        if world.events.left.contains(&user) {
            continue;
        }
        world.take(&mut *guide, user, now, server);
    }
    if let Some(base) = test.base() {
        let dropped: u64 = test.progress.iter().map(|it| it.take_dropped(test.end() - base)).sum();
        if dropped > 0 {
            let row = k6::metrics::row::DROPPED;
            let mut own = own.lock().unwrap();
            own.add(test.program.metrics(), row, dropped as f64, test.end(), &[]);
        }
    }
    Ran { test, sent: world.sent }
}

/// Message, with its arrival.
type Arriving = (Nanos, Vec<u8>);

/// WebSocket: messages in transit from the server, with their arrival.
#[derive(Default)]
struct Socket {
    waiting: VecDeque<Arriving>,
    /// Call that listens, and the message that it will receive.
    listening: Option<(usize, Option<Arriving>)>,
}

/// WebSockets by user and number.
type Sockets = BTreeMap<(u64, u32), Socket>;

struct World {
    events: Events,
    sent: Vec<(u64, String)>,
    sockets: Sockets,
    /// Open requests by user and lane.
    streams: BTreeMap<(u64, u32), Template>,
}

/// Simulates a server that echoes after 10 ms, answers a ping after 5 ms, and closes after "bye".
fn on_socket(
    call: &SocketCall,
    payload: &[u8],
    now: Nanos,
    socket: &mut Socket,
) -> (Nanos, Vec<u8>, Option<FailureClass>) {
    let in_ms = |ms: u64| now + Nanos::from_millis(ms);
    let heard = |kind: u8, payload: &[u8]| [&[kind], payload].concat();
    let waiting = &mut socket.waiting;
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

impl World {
    /// Follows a user until it waits.
    fn take(&mut self, guide: &mut dyn Guide, user: u64, now: Nanos, server: Server<'_>) {
        loop {
            match guide.next(user, now) {
                Step::Pause { wait } => {
                    self.events.put(now + wait, user, None);
                    return;
                }
                Step::Call(call) => match call.template.socket.clone() {
                    Some(socket) => {
                        self.call_socket(user, now, &socket, &call.template);
                        guide.take_back(call.template);
                    }
                    None if call.template.http2.as_ref().is_some_and(|http2| http2.is_open()) => {
                        self.streams.insert((user, call.template.lane), *call.template);
                    }
                    None => {
                        self.call(user, now, &call.template, server);
                        guide.take_back(call.template);
                    }
                },
                Step::Extend { lane, bytes, ends } => {
                    self.extend(user, now, lane, (&bytes, ends), server);
                }
                Step::Cancel { lane } => self.cancel(user, now, lane),
                Step::Await => return,
                Step::Disconnect => self.sent.push((0, "disconnect".to_owned())),
                Step::Leave => {
                    self.events.left.insert(user);
                    return;
                }
                Step::Target { .. } => panic!("a script has no targets"),
            }
        }
    }

    fn call_socket(&mut self, user: u64, now: Nanos, call: &SocketCall, template: &Template) {
        let socket = self.sockets.entry((user, call.socket)).or_default();
        // another call ends the listening one, which has received nothing yet
        if let Some((event, message)) = socket.listening.take()
            && let Some(mut ending) = self.events.all[event].take()
        {
            if let Some(message) = message {
                socket.waiting.push_front(message);
            }
            ending.sample.class = Some(FailureClass::ClientTimeout);
            ending.body.clear();
            self.events.put(now, user, Some(ending));
        }
        let (done, body, class) = on_socket(call, &template.bytes, now, socket);
        let mut head = String::new();
        if call.opens() {
            let request = String::from_utf8_lossy(&template.bytes).into_owned();
            self.sent.push(((now - Nanos::SECOND).0 / 1_000_000, request));
            head =
                "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Protocol: chat\r\n\r\n".into();
        }
        let status = if class.is_none() { 101 } else { 0 };
        let sample =
            Sample { user: Some(user), intended: now, done, status, class, ..Sample::default() };
        let message = class.is_none().then(|| (done, body.clone()));
        let ending = Ending { sample, lane: template.lane, head, body, is_part: false };
        let event = self.events.put(done, user, Some(ending));
        if matches!(call.action, SocketAction::Listen) {
            let socket = self.sockets.entry((user, call.socket)).or_default();
            socket.listening = Some((event, message));
        }
    }

    fn call(&mut self, user: u64, now: Nanos, template: &Template, server: Server<'_>) {
        let request = String::from_utf8_lossy(&template.bytes).into_owned();
        self.sent.push(((now - Nanos::SECOND).0 / 1_000_000, request.clone()));
        let done = now + Nanos::from_millis(10);
        let mut sample = Sample {
            user: Some(user),
            intended: now,
            issued: now,
            admitted: now,
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
            (sample.sent, sample.first_byte) = (now, done);
            sample.status = head.split(' ').nth(1).unwrap()[..3].parse().unwrap();
            sample.bytes_sent = request.len() as u64;
            sample.bytes_received = (head.len() + body.len()) as u64;
        }
        let (lane, body) = (template.lane, body.into_bytes());
        let ending = Ending { sample, lane, head, body, is_part: false };
        self.events.put(done, user, Some(ending));
    }

    /// Ends a call without a response.
    fn cancel(&mut self, user: u64, now: Nanos, lane: u32) {
        self.sent.push((0, format!("cancel {lane}")));
        if self.streams.remove(&(user, lane)).is_some() {
            let sample = Sample { user: Some(user), intended: now, done: now, ..Sample::default() };
            let (head, body) = (String::new(), Vec::new());
            self.events.put(now, user, Some(Ending { sample, lane, head, body, is_part: false }));
        }
    }

    /// Answers each message on an open request after 10 ms with the body of the server's reply, and
    /// its end with the head.
    fn extend(
        &mut self,
        user: u64,
        now: Nanos,
        lane: u32,
        (bytes, ends): (&[u8], bool),
        server: Server<'_>,
    ) {
        let Some(template) = self.streams.get(&(user, lane)) else { return };
        let request = [&template.bytes[..], bytes].concat();
        let Reply::Whole(head, body) = server(&String::from_utf8_lossy(&request)) else { return };
        let done = now + Nanos::from_millis(10);
        let sample =
            Sample { user: Some(user), intended: now, done, status: 200, ..Sample::default() };
        // in two parts, which cut the message
        for part in body.as_bytes().chunks((body.len() / 2).max(4)).filter(|_| !ends) {
            let (sample, head, body) = (sample.clone(), String::new(), part.to_vec());
            let ending = Ending { sample, lane, head, body, is_part: true };
            self.events.put(done, user, Some(ending));
        }
        if ends {
            let ending = Ending { sample, lane, head, body: Vec::new(), is_part: false };
            self.events.put(done, user, Some(ending));
        }
    }
}
