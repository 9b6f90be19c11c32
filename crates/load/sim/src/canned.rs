//! The simplest world: every request is answered at once with the same bytes. It counts the
//! worker's own cost in instructions and allocations; its clock is a counter.

use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use engine::{Link, Order, Row};
use sample::{CallRecord, SocketFacts};
use stats::Snapshot;
use units::Nanos;

/// Answers at once; one response for each `request` bytes written.
#[derive(Debug)]
pub struct Canned {
    response: Vec<u8>,
    request: usize,
    now: Nanos,
    /// Number of bytes written by each slot that have not been answered.
    written: Vec<usize>,
    pending: Vec<Slot>,
    /// Nanoseconds that pass with every reading of the clock.
    tick: u64,
    /// Positions of the number of each response, of eight digits, and the next number.
    number_at: Option<usize>,
    next: u64,
}

/// Placeholder of eight digits in a response for its number.
const NUMBER: &[u8] = b"########";

impl Canned {
    /// Creates a server that answers each request with `response`.
    /// `request`: length of one request in bytes; `slots`: maximum number of connections.
    /// `########` in the response is replaced by each response's number.
    pub fn new(response: &[u8], request: usize, slots: usize, start: Nanos) -> Canned {
        Canned {
            response: response.to_vec(),
            request,
            now: start,
            written: vec![0; slots],
            pending: Vec::with_capacity(slots),
            tick: 1_000,
            number_at: response.windows(NUMBER.len()).position(|window| window == NUMBER),
            next: 0,
        }
    }

    fn write_number(&mut self, response: &mut [u8]) {
        let Some(at) = self.number_at else { return };
        let mut left = self.next;
        self.next += 1;
        for digit in response[at..at + NUMBER.len()].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
    }
}

impl Io for Canned {
    fn now(&mut self) -> Nanos {
        self.now += Nanos(self.tick);
        self.now
    }

    fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        if self.written[slot as usize] == 0 {
            self.pending.push(slot);
        }
        self.written[slot as usize] += bytes.len();
        Ok(bytes.len())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let mut count = 0;
        while self.written[slot as usize] >= self.request {
            self.written[slot as usize] -= self.request;
            let place = &mut buffer[count..count + self.response.len()];
            place.copy_from_slice(&self.response);
            count += self.response.len();
            self.write_number(place);
        }
        if count == 0 { Err(IoError::WouldBlock) } else { Ok(count) }
    }

    fn close(&mut self, slot: Slot, _: Close) {
        self.written[slot as usize] = 0;
    }

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

/// Keeps one total and returns the same memory each time.
#[derive(Debug, Default)]
pub struct Keep {
    pub total: Snapshot,
    spare: Option<Box<Snapshot>>,
    /// Called when the first row ends: earlier allocations are not the steady state.
    pub rows: u64,
}

impl Link for Keep {
    fn order(&mut self) -> Order {
        Order::Go
    }

    fn row(&mut self, mut row: Row) -> Box<Snapshot> {
        self.rows += 1;
        self.total.merge(&row.snapshot);
        row.snapshot.clear();
        self.spare.replace(row.snapshot).unwrap_or_else(|| Box::new(Snapshot::prepared(1)))
    }

    fn report_script_failure(&mut self, text: String) {
        panic!("nothing here has a script that could fail: {text}");
    }

    fn log(&mut self, _: &mut Vec<CallRecord>) {}
}

/// A canned response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannedResponse {
    /// The response of the null server in bench/, which the budgets use. Always the same.
    Plain,
    /// Each response has a different head: a field contains its number.
    Numbered,
    /// Each response has a different value of Server-Timing.
    Timed,
}

const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nServer: null\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, world!";

const NUMBERED: &[u8] = b"HTTP/1.1 200 OK\r\nServer: null\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nX-Request-Id: ########\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, world!";
const TIMED: &[u8] = b"HTTP/1.1 200 OK\r\nServer: null\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer-Timing: db;dur=########\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, world!";

/// Makes `calls` calls from 64 connections of one worker, into `keep`.
///
/// # Panics
/// Panics if the plan cannot be prepared, which its constants exclude.
pub fn calls_against(
    calls: u64,
    pipeline: u32,
    per_connection: Option<u32>,
    response: CannedResponse,
    keep: &mut Keep,
) {
    let (mut worker, mut io) = canned_worker(calls, pipeline, per_connection, response);
    engine::drive(&mut worker, &mut io, keep);
}

/// Kind of steps in a canned journey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannedSteps {
    /// Constant requests: the plan's targets unchanged.
    Static,
    /// A value of a feeder in the path and in a field of each request.
    Templates,
}

const STEPS: &str = "
[[feeder]]
name = 'f'
generate = { key = 'hex:8' }
[[journey]]
name = 'visit'
";

/// Returns a worker whose 64 users make `calls` calls in iterations of four steps, and its world.
///
/// # Panics
/// Panics like [`calls_against`].
pub fn canned_journey(calls: u64, steps: CannedSteps) -> (engine::Worker, Canned) {
    let value = match steps {
        CannedSteps::Static => "01234567",
        CannedSteps::Templates => "{{f.key}}",
    };
    let mut text = format!(
        "version = 1\nurl = 'http://127.0.0.1:18080/'\n[load]\nusers = 64\n[stop]\nrequests = {}\n{STEPS}",
        calls / STEPS_PER_ITERATION
    );
    for step in 0..STEPS_PER_ITERATION {
        text.push_str(&format!(
            "[[journey.step]]\nname = 's{step}'\nurl = '/{step}/{value}'\nheaders = {{ X-Key = \
             '{value}' }}\n"
        ));
    }
    let plan = plan::from_toml(&text, &plan::NoFiles).expect("the constants are valid");
    let start = Nanos::from_secs(1_000);
    let endpoints = crate::run::endpoints_of(&plan);
    // every request has as many bytes as this one
    let url = "http://127.0.0.1:18080/0/01234567".parse().expect("a URL");
    let own = [("X-Key".to_owned(), "01234567".to_owned())];
    let model = engine::build_template(&plan, &url, "GET", &own, None, 0, false);
    let length = model.expect("a request can be made of it").bytes.len();
    let travel = engine::journey::Travel::new(&plan, &std::collections::BTreeMap::new());
    let travel = travel.expect("the plan has journeys");
    let setup = engine::Setup::new(plan, endpoints, 1, start).expect("the constants are valid");
    let guide = travel.guide(engine::Share::new(0, 1));
    let worker = engine::Worker::new(std::sync::Arc::new(setup), 0, None);
    let worker = worker.with_guide(guide, Box::new(crate::run::Nowhere));
    (worker, Canned::new(PLAIN, length, 64, start))
}

/// Number of steps of one iteration of a canned journey.
pub const STEPS_PER_ITERATION: u64 = 4;

/// Returns the worker and the world of [`calls_against`], for a caller that drives them itself.
///
/// # Panics
/// Panics like [`calls_against`].
pub fn canned_worker(
    calls: u64,
    pipeline: u32,
    per_connection: Option<u32>,
    response: CannedResponse,
) -> (engine::Worker, Canned) {
    let mut plan = closed_plan(PAGE, 64, plan::Think::None, calls);
    plan.connection.pipeline = pipeline;
    plan.connection.calls = per_connection;
    let response = match response {
        CannedResponse::Plain => PLAIN,
        CannedResponse::Numbered => NUMBERED,
        CannedResponse::Timed => TIMED,
    };
    worker_of(plan, response, 64)
}

/// Returns a worker whose `users` users each think for `pause` after each of the `calls` calls, and
/// its world.
///
/// # Panics
/// Panics like [`calls_against`].
pub fn canned_thinkers(users: u32, pause: Nanos, calls: u64) -> (engine::Worker, Canned) {
    worker_of(closed_plan(PAGE, users, plan::Think::Fixed(pause), calls), PLAIN, users as usize)
}

/// Returns a worker whose 64 users make `calls` calls to a list of ten URLs, and its world: the
/// reference for a journey.
///
/// # Panics
/// Panics like [`calls_against`].
pub fn canned_list(calls: u64) -> (engine::Worker, Canned) {
    let mut plan = closed_plan(PAGE, 64, plan::Think::None, calls);
    let url = |row: u32| format!("http://127.0.0.1:18080/{row}/01234567").parse();
    plan.targets = (0..10).map(|row| plan::TargetPlan::new(url(row).expect("a URL"))).collect();
    worker_of(plan, PLAIN, 64)
}

const PAGE: &str = "http://127.0.0.1:18080/hw";

pub(crate) fn closed_plan(url: &str, users: u32, think: plan::Think, calls: u64) -> plan::Plan {
    let mut plan = crate::plan_for(url);
    plan.load = plan::Load::Closed { users, think, session: None };
    plan.stop.duration = None;
    plan.stop.requests = Some(calls);
    plan
}

fn worker_of(plan: plan::Plan, response: &[u8], slots: usize) -> (engine::Worker, Canned) {
    let alone = plan.connection.calls == Some(1);
    let start = Nanos::from_secs(1_000);
    let endpoints = crate::run::endpoints_of(&plan);
    let setup = engine::Setup::new(plan, endpoints, 1, start).expect("the constants are valid");
    let template = setup.targets.template(0);
    let length = if alone { template.last.len() } else { template.bytes.len() };
    let io = Canned::new(response, length, slots, start);
    (engine::Worker::new(std::sync::Arc::new(setup), 0, None), io)
}
