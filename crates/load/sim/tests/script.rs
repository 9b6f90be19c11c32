//! Workers whose requests a script creates.

use conduit::Peer;
use plan::{Load, Plan, Think};
use protocol::http1::response::Asked;
use sample::FailureClass;
use sim::{
    Action, Admission, Client, ClosureServer as ServerScript, Server, World, execute_scripted,
    plan_for,
};
use units::Nanos;
use workload::{Script, ScriptError, Wants};

const REQUEST: &[u8] = b"GET /made HTTP/1.1\r\nHost: h\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const FAREWELL: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/// A script that sends numbers.
#[derive(Clone, Debug, Default)]
struct Numbers {
    together: u16,
    pause: Nanos,
    /// Fails at this request, or stops after that many responses; 0: never.
    fail_at: u64,
    stop_after: u64,
    asked: u64,
    answered: u64,
    bodies: Vec<u8>,
}

impl Script for Numbers {
    fn wants(&self) -> Wants {
        Wants { pauses: !self.pause.is_zero(), responses: true, requests: self.together.max(1) }
    }

    fn pause(&mut self) -> Result<Nanos, ScriptError> {
        Ok(self.pause)
    }

    fn request(&mut self, out: &mut Vec<u8>) -> Result<Asked, ScriptError> {
        self.asked += 1;
        if self.asked == self.fail_at {
            return Err(ScriptError("at its fifth".into()));
        }
        (0..self.together.max(1)).for_each(|_| out.extend_from_slice(REQUEST));
        Ok(Asked::Ordinary)
    }

    fn response(&mut self, status: u16, head: &[u8], body: &[u8]) -> Result<(), ScriptError> {
        assert_eq!((status, body), (200, &b"hello"[..]));
        assert!(head.starts_with(b"HTTP/1.1 200") && head.ends_with(b"\r\n\r\n"));
        self.answered += 1;
        self.bodies.extend_from_slice(body);
        Ok(())
    }

    fn peer(&mut self) -> Option<Peer> {
        None
    }

    fn stopped(&self) -> bool {
        self.stop_after > 0 && self.answered >= self.stop_after
    }
}

fn closed(users: u32, millis: u64) -> Plan {
    let mut plan = plan_for("http://sim.example/");
    plan.load = Load::Closed { users, think: Think::None, session: None };
    plan.stop.duration = Some(Nanos::from_millis(millis));
    plan
}

/// Answers each request a millisecond after its arrival, in one piece.
fn server(response: &'static [u8]) -> Box<dyn Server> {
    let react = move |now: Nanos, _: Client, bytes: &[u8]| {
        let count = bytes.len() / REQUEST.len();
        let sent = (now + Nanos::from_millis(1), Action::Bytes(response.repeat(count)));
        vec![sent]
    };
    Box::new(ServerScript { admit: Admission::Accept, react })
}

fn run(plan: Plan, response: &'static [u8], script: &Numbers) -> sim::Simulated {
    let start = Nanos::from_secs(1_000);
    let world = World::new(server(response), Nanos::ZERO, start);
    execute_scripted(plan, world, vec![Box::new(script.clone())])
}

#[test]
fn a_text_of_three_requests_is_one_call_with_three_responses() {
    let script = Numbers { together: 3, ..Numbers::default() };
    let total = run(closed(2, 100), RESPONSE, &script).measurement.total;
    assert_eq!((total.counts.due, total.counts.succeeded), (200, 200));
    assert_eq!(total.answers_in_window, 600);
    assert_eq!(total.bytes_in_window, 600 * RESPONSE.len() as u64);
    assert_eq!(total.status.seen().collect::<Vec<_>>(), [(200, 600)]);
    assert_eq!(total.bytes_sent, 600 * REQUEST.len() as u64);
}

#[test]
fn a_connection_that_ends_between_the_responses_fails_the_call() {
    let script = Numbers { together: 3, ..Numbers::default() };
    let total = run(closed(1, 20), FAREWELL, &script).measurement.total;
    assert_eq!((total.counts.succeeded, total.counts.failed), (0, total.counts.due));
    assert_eq!(total.failures.get(&FailureClass::ClosedEarly), Some(&total.counts.due));
    assert_eq!(total.answers_in_window, total.counts.due);
}

#[test]
fn pauses_precede_every_call() {
    let script = Numbers { pause: Nanos::from_millis(9), ..Numbers::default() };
    let run = run(closed(1, 100), RESPONSE, &script);
    let first = run.calls.iter().map(|(call, _)| call.intended).min().unwrap();
    assert_eq!(first, Nanos::from_secs(1_000) + Nanos::from_millis(9));
    // 9 ms of pause, 1 ms of response
    assert_eq!(run.measurement.total.counts.due, 10);
}

#[test]
fn a_script_that_fails_ends_the_run_and_loses_no_call() {
    let script = Numbers { fail_at: 5, ..Numbers::default() };
    let run = run(closed(1, 10_000), RESPONSE, &script);
    let counts = run.measurement.total.counts;
    assert_eq!((counts.due, counts.succeeded, counts.abandoned), (5, 4, 1));
    assert_eq!(run.broken.as_deref(), Some("at its fifth"));
}

#[test]
fn a_script_that_stops_ends_the_run_early() {
    let script = Numbers { stop_after: 7, ..Numbers::default() };
    let run = run(closed(1, 10_000), RESPONSE, &script);
    assert_eq!(run.measurement.total.counts.succeeded, 7);
    // rates refer to the time that the run took
    assert_eq!(run.measurement.window, Nanos::from_millis(7));
}
