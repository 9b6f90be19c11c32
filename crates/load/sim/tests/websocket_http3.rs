//! WebSockets over HTTP/3 in virtual time: streams of QUIC connections that may lose datagrams.

use plan::{Arrivals, HttpVersion, Load, Plan, Think};
use sample::{FailureClass, SocketClose};
use sim::plan_for;
use sim::quic::{QuicOutcome, QuicWorld, Way, execute_quic};
use units::{Nanos, Rate};

fn plan(per_connection: u32) -> Plan {
    let mut plan = plan_for("wss://sim.example/ws");
    plan.request.version = HttpVersion::Http3;
    plan.websocket.per_connection = Some(per_connection);
    plan.stop.duration = Some(Nanos::from_secs(10));
    plan
}

fn closed(users: u32, per_connection: u32) -> Plan {
    let mut plan = plan(per_connection);
    plan.load = Load::Closed { users, think: Think::None, session: None };
    plan.settle_websocket();
    plan
}

fn run(plan: Plan, world: QuicWorld) -> QuicOutcome {
    let ran = execute_quic(plan, world, std::time::Instant::now());
    ran.outcome.measurement.total.counts.conserved().expect("counts are conserved");
    ran
}

fn delayed(millis: u64) -> QuicWorld {
    QuicWorld { delay: Nanos::from_millis(millis), ..QuicWorld::echoing() }
}

#[test]
fn an_echo_takes_a_round_trip_on_shared_connections() {
    let ran = run(closed(20, 8), delayed(10));
    let total = &ran.outcome.measurement.total;
    let messages = &total.messages;
    assert_eq!((messages.counts.opened, messages.counts.carriers), (20, 3));
    assert_eq!((total.counts.failed, total.counts.timed_out), (0, 0));
    let response = total.response();
    // half a round trip each way
    let round = |at| (response.quantile(at).as_millis_f64() - 20.0).abs() < 0.1;
    assert!(round(0.5) && round(0.99), "{:?}", response.quantile(0.99));
    // each user: about 10 s of 20 ms each, after QUIC, SETTINGS and the upgrade
    assert!((9_800..=10_000).contains(&messages.counts.received), "{:?}", messages.counts);
    assert_eq!(messages.closes.get(&SocketClose::Client(1000)), Some(&20));
    let quic = &total.connections.http3.quic;
    assert_eq!((quic.handshakes, quic.packets_lost), (3, 0));
}

#[test]
fn a_server_that_allows_few_streams_gets_more_connections() {
    let world = QuicWorld { streams_max: 4, ..delayed(1) };
    let ran = run(closed(20, 100), world);
    let total = &ran.outcome.measurement.total;
    assert_eq!((total.messages.counts.opened, total.messages.counts.carriers), (20, 5));
    assert_eq!(total.counts.failed, 0);
}

#[test]
fn a_lost_datagram_delays_messages_and_loses_none() {
    let mut plan = plan(100);
    let arrivals = Arrivals::constant(Rate(1_000.0));
    let connections_max = Some(10);
    plan.load = Load::Open { arrivals, session: None, connections_max, queue_max: None };
    plan.settle_websocket();
    let world =
        QuicWorld { loses: |way, number| way == Way::Down && number % 500 == 499, ..delayed(5) };
    let ran = run(plan, world);
    let total = &ran.outcome.measurement.total;
    assert_eq!(total.counts.succeeded, 10_000);
    assert_eq!((total.messages.counts.unmatched, total.messages.abnormal()), (0, 0));
    let response = total.response();
    assert!((response.quantile(0.5).as_millis_f64() - 10.0).abs() < 0.2);
    assert!(response.max() > Nanos::from_millis(15), "{:?}", response.max());
}

/// quinn-proto's server closes connections that are idle for 30 s.
#[test]
fn idle_sockets_stay_open() {
    let mut plan = plan(100);
    plan.stop.duration = Some(Nanos::from_secs(200));
    plan.load = Load::Closed { users: 5, think: Think::None, session: None };
    plan.websocket.ping = Some(Nanos::from_secs(90));
    plan.settle_websocket();
    let ran = run(plan, delayed(1));
    let messages = &ran.outcome.measurement.total.messages;
    assert_eq!((messages.counts.opened, messages.abnormal()), (5, 0));
    assert!(messages.counts.pongs >= 5, "{:?}", messages.counts);
}

#[test]
fn a_silent_server_is_lost_with_all_its_sockets() {
    // nothing arrives from it after some datagrams
    let world = QuicWorld { loses: |way, number| way == Way::Down && number > 200, ..delayed(1) };
    let mut plan = closed(4, 100);
    plan.timeouts.call = Nanos::from_secs(1);
    let ran = run(plan, world);
    let total = &ran.outcome.measurement.total;
    assert!(total.counts.succeeded > 0 && total.counts.timed_out >= 4, "{:?}", total.counts);
    assert!(!total.failures.contains_key(&FailureClass::OtherIo), "{:?}", total.failures);
}

#[test]
fn storms_and_lifetimes_reopen_streams() {
    let mut storm = closed(50, 100);
    storm.websocket.storm = Some(Nanos::from_secs(3));
    let ran = run(storm, delayed(5));
    let messages = &ran.outcome.measurement.total.messages;
    let back = &messages.reconnects;
    assert_eq!((back.lost, back.restored(), back.failed), (50, 50, 0));
    assert_eq!((messages.counts.opened, messages.counts.carriers), (100, 1));
    assert!(back.times.max() < Nanos::from_millis(100), "{:?}", back.times.max());
    let mut churn = closed(10, 100);
    churn.websocket.live = Some(Nanos::SECOND);
    let ran = run(churn, delayed(5));
    let messages = &ran.outcome.measurement.total.messages;
    let opened = messages.counts.opened;
    assert!((80..=125).contains(&opened), "{opened}");
    assert_eq!(messages.closes.get(&SocketClose::Client(1000)), Some(&opened));
    assert_eq!(messages.counts.carriers, 1);
}

#[test]
fn connections_with_sockets_migrate() {
    let mut plan = closed(4, 100);
    plan.connection.migrate = Some(plan::Migrate::Every(Nanos::SECOND));
    let ran = run(plan, delayed(5));
    let total = &ran.outcome.measurement.total;
    assert_eq!((total.counts.failed, total.messages.abnormal()), (0, 0));
    let moved = &total.connections.http3.migration;
    assert!(moved.made >= 8 && moved.validated >= 8, "{moved:?}");
}
