//! Connect times of calls whose connection's first call is redirected.

use plan::{Load, Plan, Think};
use sim::{Action, Admission, Client, ClosureServer, Simulated, World, execute_with, plan_for};
use units::Nanos;

const AWAY: &str = "HTTP/1.1 302 Found\r\nLocation: /away\r\nContent-Length: 0\r\n\r\n";
const AWAY_AND_CLOSED: &str =
    "HTTP/1.1 302 Found\r\nLocation: /away\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Makes five calls of one user, each redirected once by `away`; 1 ms per response, 5 ms of link
/// delay each way.
fn five_calls(calls_max: Option<u32>, away: &'static str) -> Simulated {
    let mut plan: Plan = plan_for("http://sim.example/path");
    plan.load = Load::Closed { users: 1, think: Think::None, session: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(5));
    plan.request.follow_max = 1;
    plan.connection.calls = calls_max;
    let react = move |now: Nanos, _: Client, bytes: &[u8]| {
        let text = if bytes.starts_with(b"GET /away") { RESPONSE } else { away };
        vec![(now + Nanos::from_millis(1), Action::Bytes(text.into()))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let world = World::new(server, Nanos::from_millis(5), Nanos::from_secs(1_000));
    execute_with(plan, world, 1, None)
}

/// The call that opened a connection has its connect time, even if it was redirected first, on the
/// same connection.
#[test]
fn a_redirect_keeps_its_connect_time() {
    let run = five_calls(Some(4), AWAY);
    let total = &run.measurement.total;
    assert_eq!((total.counts.succeeded, total.redirects, total.connections.established), (5, 5, 3));
    // two calls on each connection, of two requests each
    let opened: Vec<_> = run.calls.iter().map(|(sample, _)| sample.connect.is_some()).collect();
    assert_eq!(opened, [true, false, true, false, true]);
    // the first response of a connection is the redirect, and arrives 11 ms after its request
    let first = &total.connections.lives.first;
    assert_eq!(first.count(), 3);
    assert!(first.max() < Nanos::from_millis(12), "{first:?}");
}

/// If the connection ends with the redirect, the call has the connect time of its final connection;
/// the totals have both.
#[test]
fn a_redirect_that_closes_leaves_connecting_in_the_totals() {
    let run = five_calls(None, AWAY_AND_CLOSED);
    let millis = |span: Nanos| span.0 / 1_000_000;
    let lines: Vec<_> = run
        .calls
        .iter()
        .map(|(sample, _)| (sample.connect.map(millis), millis(sample.done - sample.intended)))
        .collect();
    // the first call connects twice, the others reuse the previous connection
    let once = (Some(10), 32);
    assert_eq!(lines, [(Some(10), 42), once, once, once, once]);
    let total = &run.measurement.total;
    assert_eq!((total.counts.succeeded, total.redirects), (5, 5));
    assert_eq!((total.connections.established, total.connect.count()), (6, 6));
    assert_eq!(millis(total.connections.setup_sum), 60);
    assert_eq!(total.connections.lives.first.count(), 6);
}
