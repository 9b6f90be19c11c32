//! QUIC early data and port changes, in virtual time.

use plan::{HttpVersion, Load, Migrate, Plan, Think};
use sample::{EarlyFacts, FailureClass};
use sim::quic::{EarlyDataMode, QuicOutcome, QuicWorld, RequestTreatment, Way, execute_quic};
use sim::{Queue, Service, plan_for};
use units::Nanos;

const TRIP: Nanos = Nanos::from_millis(20);

/// Returns a plan of one user, one connection per call, and a round trip of 20 ms.
fn early(calls: u64) -> Plan {
    let mut plan = plan_for("https://sim.example/");
    plan.request.version = HttpVersion::Http3;
    plan.tls.early_data = true;
    plan.connection.calls = Some(1);
    plan.load = Load::Closed { users: 1, think: Think::None, session: None };
    plan.stop.duration = None;
    plan.stop.requests = Some(calls);
    plan
}

fn world(door: EarlyDataMode) -> QuicWorld {
    let queue = Queue::new(0, Service::Fixed(Nanos::from_millis(1)), 3);
    QuicWorld { delay: Nanos(TRIP.0 / 2), early: door, ..QuicWorld::new(queue) }
}

fn run(plan: Plan, world: QuicWorld) -> QuicOutcome {
    execute_quic(plan, world, std::time::Instant::now())
}

fn facts(ran: &QuicOutcome) -> EarlyFacts {
    ran.outcome.measurement.total.connections.early
}

/// Returns the response times of the calls, in the order of their indices, in whole milliseconds.
fn times(ran: &QuicOutcome) -> Vec<u64> {
    let mut calls: Vec<_> = ran.outcome.calls.iter().map(|(sample, _)| sample).collect();
    calls.sort_by_key(|sample| sample.index);
    calls.iter().map(|sample| (sample.done - sample.intended).0 / 1_000_000).collect()
}

/// The first connection has nothing to resume; the next two use its tickets, and save one round
/// trip. They are closed after their response, before the server can send tickets (it does so once
/// it has the client's Finished), so the connection after them starts without a ticket.
#[test]
fn early_data_saves_a_round_trip() {
    let ran = run(early(4), world(EarlyDataMode::Open));
    assert_eq!(times(&ran), [41, 21, 21, 41]);
    assert_eq!(facts(&ran), EarlyFacts { sent: 2, accepted: 2, ..EarlyFacts::default() });
    let total = &ran.outcome.measurement.total;
    assert_eq!((total.counts.succeeded, total.connections.http3.quic.resumed), (4, 0));
}

#[test]
fn early_data_needs_request_and_permission() {
    let ran = run(early(3), world(EarlyDataMode::Shut));
    assert_eq!((times(&ran), facts(&ran)), (vec![41, 41, 41], EarlyFacts::default()));
    let mut plan = early(3);
    plan.tls.early_data = false;
    let ran = run(plan, world(EarlyDataMode::Open));
    assert_eq!((times(&ran), facts(&ran)), (vec![41, 41, 41], EarlyFacts::default()));
}

/// A server that has forgotten the session rejects early data: everything is sent again, in the
/// same order, and each call has one response.
#[test]
fn rejected_early_data_is_resent() {
    let ran = run(early(4), world(EarlyDataMode::Forgetful));
    assert_eq!(times(&ran), [41, 41, 41, 41]);
    assert_eq!(facts(&ran), EarlyFacts { sent: 3, rejected: 3, ..EarlyFacts::default() });
    assert_eq!(ran.outcome.measurement.total.counts.succeeded, 4);
    let mut plan = early(40);
    plan.connection.calls = Some(8);
    plan.connection.pipeline = 8;
    let ran = run(plan, world(EarlyDataMode::Forgetful));
    assert_eq!(facts(&ran), EarlyFacts { sent: 32, rejected: 32, ..EarlyFacts::default() });
    assert_eq!(ran.outcome.measurement.total.counts.succeeded, 40);
    // on each connection: the client's control stream, and requests with the same numbers
    let requests = ran.heard.iter().filter(|(number, _)| number % 4 == 0).count();
    assert_eq!(requests, 40);
}

/// 425: sent again once, after the handshake is complete; the call's time includes both attempts.
#[test]
fn a_too_early_call_is_retried() {
    let mut plan = early(4);
    plan.connection.calls = Some(2);
    let ran = run(plan, world(EarlyDataMode::TooEarly));
    // 0: a handshake; 1: on the same connection; 2: early, 425 after 20 ms, and again; 3: a new one
    let all = facts(&ran);
    assert_eq!((all.too_early, all.rejected), (all.accepted, 0), "{all:?}");
    assert!(all.too_early > 0);
    let total = &ran.outcome.measurement.total;
    let seen: Vec<(u16, u64)> = total.status.seen().collect();
    assert_eq!((total.counts.succeeded, seen), (4, vec![(200, 4), (425, all.too_early)]));
    assert!(times(&ran).iter().all(|took| *took <= 62), "{:?}", times(&ran));
}

/// A lost datagram with early data is retransmitted like any other.
#[test]
fn early_data_may_be_lost() {
    let loses = |way, number| way == Way::Up && number % 7 == 5;
    let ran = run(early(30), QuicWorld { loses, ..world(EarlyDataMode::Open) });
    let all = facts(&ran);
    assert_eq!(ran.outcome.measurement.total.counts.succeeded, 30);
    assert!(all.sent >= 15 && all.accepted == all.sent, "{all:?}");
}

fn moving(when: Migrate, calls: u64) -> Plan {
    let mut plan = early(calls);
    plan.tls.early_data = false;
    plan.connection.calls = None;
    plan.connection.migrate = Some(when);
    plan
}

/// The server validates the new path within one round trip, and no call is lost; the open call
/// receives its response at the new port.
#[test]
fn a_connection_continues_from_another_port() {
    for (when, made) in [(Migrate::Every(Nanos::from_millis(500)), 9), (Migrate::Calls(20), 10)] {
        let ran = run(moving(when, 220), world(EarlyDataMode::Shut));
        let total = &ran.outcome.measurement.total;
        assert_eq!((total.counts.succeeded, total.connections.established), (220, 1));
        let moves = &total.connections.http3.migration;
        assert!(moves.made >= made - 1 && moves.made <= made + 1, "{when:?}: {moves:?}");
        assert_eq!((moves.validated, moves.forbidden), (moves.made, 0));
        assert!(moves.time_min >= TRIP && moves.time_max < Nanos::from_millis(100), "{moves:?}");
        assert_eq!(moves.calls_lost, 0);
    }
}

#[test]
fn a_server_may_forbid_it() {
    let ran =
        run(moving(Migrate::Calls(5), 50), QuicWorld { fixed: true, ..world(EarlyDataMode::Shut) });
    let total = &ran.outcome.measurement.total;
    let moves = &total.connections.http3.migration;
    assert_eq!((total.counts.succeeded, moves.made, moves.forbidden), (50, 0, 1));
}

/// Open calls that fail because of a port change are counted.
#[test]
fn calls_lost_to_a_change_are_counted() {
    let mut plan = moving(Migrate::Calls(1), 1);
    plan.timeouts.call = Nanos::from_secs(2);
    let world =
        QuicWorld { treatment: |_| RequestTreatment::Ignored, ..world(EarlyDataMode::Shut) };
    let ran = run(plan, world);
    let total = &ran.outcome.measurement.total;
    let moves = &total.connections.http3.migration;
    assert_eq!((total.counts.timed_out, moves.made, moves.calls), (1, 1, 1), "{moves:?}");
    assert!(!total.failures.contains_key(&FailureClass::Protocol));
}
