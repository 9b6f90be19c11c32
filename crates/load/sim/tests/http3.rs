//! HTTP/3 in virtual time: the same laws and outcomes over QUIC, whose datagrams may be lost.

use plan::{Arrivals, Gaps, HttpVersion, Load, Plan, Think};
use sample::{FailureClass, Outcome};
use sim::quic::{QuicOutcome, QuicWorld, RequestTreatment, Way, execute_quic};
use sim::{Queue, Service, execute, plan_for};
use stats::Little;
use units::{Nanos, Rate};

const URL: &str = "https://sim.example/";

fn http3(streams: u32) -> Plan {
    let mut plan = plan_for(URL);
    plan.request.version = HttpVersion::Http3;
    plan.connection.pipeline = streams;
    plan
}

fn open(mut plan: Plan, rate: f64, gaps: Gaps, calls: u64, connections: Option<u32>) -> Plan {
    let arrivals = Arrivals { gaps, ..Arrivals::constant(Rate(rate)) };
    plan.load =
        Load::Open { arrivals, session: None, connections_max: connections, queue_max: None };
    plan.stop.duration = None;
    plan.stop.requests = Some(calls);
    plan
}

fn closed(mut plan: Plan, users: u32, calls: u64) -> Plan {
    plan.load = Load::Closed { users, think: Think::None, session: None };
    plan.stop.duration = None;
    plan.stop.requests = Some(calls);
    plan
}

fn fixed(servers: usize, millis: u64) -> QuicWorld {
    QuicWorld::new(Queue::new(servers, Service::Fixed(Nanos::from_millis(millis)), 3))
}

/// Runs the plan; no call may be lost in any case.
fn run(plan: Plan, world: QuicWorld) -> QuicOutcome {
    let ran = execute_quic(plan, world, std::time::Instant::now());
    let counts = &ran.outcome.measurement.total.counts;
    assert_eq!(
        counts.due,
        counts.succeeded + counts.failed + counts.timed_out + counts.dropped + counts.abandoned
    );
    ran
}

fn failures(ran: &QuicOutcome) -> Vec<(FailureClass, u64)> {
    let failures = &ran.outcome.measurement.total.failures;
    failures.iter().map(|(class, count)| (*class, *count)).collect()
}

/// Returns the service times of the calls, in the order of their indices.
fn services(ran: &QuicOutcome) -> Vec<Nanos> {
    let mut calls: Vec<_> = ran.outcome.calls.iter().map(|(sample, _)| sample).collect();
    calls.sort_by_key(|sample| sample.index);
    calls.iter().map(|sample| sample.done - sample.sent).collect()
}

#[test]
fn users_keep_their_number_of_streams_busy() {
    let ran = run(closed(http3(8), 4, 3_200), fixed(0, 10));
    let total = &ran.outcome.measurement.total;
    assert_eq!((total.counts.succeeded, total.connections.established), (3_200, 4));
    let facts = &total.connections.http3;
    assert_eq!((facts.streams, facts.streams_peak, facts.streams_max), (3_200, 8, Some(100)));
    assert_eq!((facts.quic.handshakes, facts.quic.packets_lost), (4, 0));
    assert!(facts.coded_sent * 2 < facts.fields_sent, "{facts:?}");
    assert!(services(&ran).iter().all(|took| *took == Nanos::from_millis(10)));
    // 32 in flight, 10 ms each, and no gaps
    assert_eq!(ran.outcome.ended_at.0 / 1_000_000, 1_000);
}

/// The handshake takes one round trip, and is the connect phase.
#[test]
fn connecting_is_the_handshake() {
    let world = QuicWorld { delay: Nanos::from_millis(10), ..fixed(0, 1) };
    let ran = run(closed(http3(1), 1, 3), world);
    let total = &ran.outcome.measurement.total;
    let connect = total.connect.quantile(0.5);
    assert!(connect >= Nanos::from_millis(20) && connect < Nanos::from_millis(21), "{connect:?}");
    assert_eq!(total.tls.count(), 0, "TLS is part of it");
    assert!(services(&ran).iter().all(|took| *took == Nanos::from_millis(21)));
}

/// M/D/1 does not depend on the transport: response times are those of HTTP/1.1.
#[test]
fn streams_of_one_connection_are_an_m_d_1_queue() {
    let plan = || open(http3(1_000), 800.0, Gaps::Poisson, 8_000, None);
    let ran = run(plan(), QuicWorld { streams_max: 1_000, ..fixed(1, 1) });
    let mut over_tcp = plan();
    over_tcp.request.version = HttpVersion::Http11;
    over_tcp.connection.pipeline = 1;
    let http1 =
        execute(over_tcp, Box::new(Queue::new(1, Service::Fixed(Nanos::from_millis(1)), 3)), 1);
    let (a, b) = (&ran.outcome.measurement.total, &http1.measurement.total);
    assert_eq!((a.counts.succeeded, a.connections.established), (8_000, 1));
    assert!(b.connections.established > 5);
    for share in [0.5, 0.9, 0.99] {
        assert_eq!(a.response().quantile(share), b.response().quantile(share), "{share}");
    }
}

/// One lost datagram delays only its own response: data on other streams is processed meanwhile
/// (RFC 9000 section 2).
#[test]
fn a_lost_datagram_delays_one_response_only() {
    // one response per millisecond, each in its own datagram
    let plan = open(http3(100), 1_000.0, Gaps::Constant, 100, Some(1));
    let world =
        |loses| QuicWorld { delay: Nanos::from_millis(5), body: 1_000, loses, ..fixed(0, 1) };
    let sound = run(plan.clone(), world(|_, _| false));
    // after the handshake and before the last ones, so that others follow
    let lossy = run(plan, world(|way, number| way == Way::Down && number == 40));
    let (before, after) = (services(&sound), services(&lossy));
    let usual = Nanos::from_millis(11);
    assert!(before.iter().skip(20).all(|took| *took == usual), "{before:?}");
    let late: Vec<usize> = (20..100).filter(|call| after[*call] > usual).collect();
    assert_eq!(late.len(), 1, "{after:?}");
    let facts = &lossy.outcome.measurement.total.connections.http3;
    assert_eq!(lossy.outcome.measurement.total.counts.succeeded, 100);
    // it was retransmitted one round trip later, after three others had arrived
    let took = after[late[0]];
    assert!(took > Nanos::from_millis(20) && took < Nanos::from_millis(40), "{took:?} {facts:?}");
}

/// Every tenth datagram is lost, in both directions: all calls still succeed, and lost datagrams of
/// the client are reported.
#[test]
fn losses_are_counted_and_made_good() {
    let plan = open(http3(100), 200.0, Gaps::Poisson, 400, Some(1));
    let world = QuicWorld {
        delay: Nanos::from_millis(2),
        loses: |_, number| number % 10 == 9,
        ..fixed(0, 1)
    };
    let ran = run(plan, world);
    let total = &ran.outcome.measurement.total;
    assert_eq!(total.counts.succeeded, 400);
    let quic = &total.connections.http3.quic;
    assert!(quic.packets_lost > quic.packets_sent / 20, "{quic:?}");
    assert!(quic.rtt_min >= Nanos::from_millis(4), "{quic:?}");
}

/// Five concurrent streams: the sixth call waits on its connection, and its wait is reported.
#[test]
fn the_server_s_limit_of_streams_is_kept() {
    let plan = open(http3(100), 4_500.0, Gaps::Poisson, 4_500, Some(1));
    let ran = run(plan, QuicWorld { streams_max: 5, ..fixed(0, 1) });
    let total = &ran.outcome.measurement.total;
    assert_eq!(total.counts.succeeded, 4_500);
    let facts = &total.connections.http3;
    assert_eq!((facts.streams_max, facts.refused), (Some(5), 0));
    assert!(facts.waited > 1_000, "{facts:?}");
    let waited = ran.outcome.calls.iter().filter(|(sample, _)| sample.admitted > sample.intended);
    assert!(waited.count() as u64 >= facts.waited - 5);
    // a call is in flight from its start, even while it waits for a stream
    let little = Little::new(total, ran.outcome.measurement.window).unwrap();
    assert!(little.deviation() < 0.05, "{little:?}");
    // the server itself is constant: the wait for a stream is not part of its time
    let services = services(&ran);
    assert!(services.iter().skip(10).all(|took| *took == Nanos::from_millis(1)), "{services:?}");
}

/// The wait of a call that times out while it waits for a stream is counted.
#[test]
fn a_wait_for_a_stream_that_ends_in_a_timeout_is_measured() {
    let mut plan = closed(http3(2), 1, 2);
    plan.timeouts.call = Nanos::SECOND;
    let ran = run(plan, QuicWorld { streams_max: 1, ..fixed(0, 10_000) });
    let total = &ran.outcome.measurement.total;
    assert_eq!(total.counts.timed_out, 2);
    let waits = &total.connections.stream_wait;
    assert_eq!(waits.count(), 1);
    let mean = waits.mean().as_secs_f64();
    assert!((0.9..1.01).contains(&mean), "{mean}");
}

/// A worker with far more calls than streams sends them in the order in which they were due.
#[test]
fn calls_that_wait_for_streams_go_out_in_their_order() {
    let ran = run(closed(http3(4_000), 1, 8_000), QuicWorld { streams_max: 50, ..fixed(0, 1) });
    let total = &ran.outcome.measurement.total;
    assert_eq!((total.counts.succeeded, total.connections.established), (8_000, 1));
    let requests = ran.heard.iter().map(|(stream, _)| *stream).filter(|stream| stream & 3 == 0);
    assert!(requests.eq((0..8_000).map(|index| 4 * index)));
}

/// H3_MISSING_SETTINGS: the violation is sent to the server, even while the first request has no
/// stream.
#[test]
fn the_code_of_a_violation_reaches_the_server() {
    let goaway_first = |_| vec![0, 7, 1, 0];
    for streams_max in [0, 100] {
        let world = QuicWorld { streams_max, control: goaway_first, ..fixed(0, 1) };
        let mut plan = closed(http3(1), 1, 3);
        plan.timeouts.call = Nanos::from_secs(1);
        let ran = run(plan, world);
        assert_eq!(failures(&ran), [(FailureClass::Protocol, 3)], "{streams_max} streams");
        assert_eq!(ran.closed.first(), Some(&0x10a), "{streams_max} streams: {:?}", ran.closed);
    }
}

#[test]
fn goaway_is_a_keep_alive_limit_and_no_failure() {
    for plan in [closed(http3(4), 3, 400), open(http3(50), 2_000.0, Gaps::Poisson, 400, None)] {
        let ran = run(plan, QuicWorld { calls_max: Some(10), ..fixed(0, 2) });
        let total = &ran.outcome.measurement.total;
        assert_eq!(total.counts.succeeded, 400, "{:?}", failures(&ran));
        assert!(total.connections.established >= 30, "{}", total.connections.established);
        let facts = &total.connections.http3;
        assert!(facts.goaways >= 30, "{facts:?}");
        assert_eq!(facts.violations, [].into());
    }
}

#[test]
fn rejected_requests_are_retried() {
    let treatment = |number| {
        if number % 4 == 3 { RequestTreatment::Rejected } else { RequestTreatment::Served }
    };
    let ran = run(closed(http3(2), 2, 300), QuicWorld { treatment, ..fixed(0, 1) });
    let total = &ran.outcome.measurement.total;
    let facts = &total.connections.http3;
    assert_eq!(total.counts.succeeded + total.counts.failed, 300);
    assert!(total.counts.succeeded > 290, "{:?}", failures(&ran));
    assert!(facts.refused >= 90, "{facts:?}");
    assert_eq!(facts.resets.keys().copied().collect::<Vec<_>>(), [0x10b]);
}

#[test]
fn a_failed_stream_fails_alone() {
    let treatment =
        |number| if number % 10 == 9 { RequestTreatment::Failed } else { RequestTreatment::Served };
    let ran = run(closed(http3(5), 2, 200), QuicWorld { treatment, ..fixed(0, 1) });
    let total = &ran.outcome.measurement.total;
    assert_eq!(failures(&ran), [(FailureClass::StreamReset, 20)]);
    assert_eq!((total.counts.succeeded, total.connections.established), (180, 2));
    assert_eq!(total.connections.http3.resets, [(0x102, 20)].into());
}

/// A call that times out cancels its stream, and does not affect the others.
#[test]
fn a_timed_out_call_cancels_its_stream() {
    let mut plan = closed(http3(5), 1, 100);
    plan.timeouts.call = Nanos::from_millis(50);
    let treatment = |number| {
        if number % 20 == 19 { RequestTreatment::Ignored } else { RequestTreatment::Served }
    };
    let ran = run(plan, QuicWorld { treatment, ..fixed(0, 1) });
    let total = &ran.outcome.measurement.total;
    assert_eq!((total.counts.succeeded, total.counts.timed_out), (95, 5));
    assert_eq!(total.connections.established, 1);
    let late: Vec<Nanos> = ran
        .outcome
        .calls
        .iter()
        .filter(|(_, outcome)| *outcome == Outcome::TimedOut)
        .map(|(sample, _)| sample.done - sample.intended)
        .collect();
    assert_eq!(late, [Nanos::from_millis(50); 5]);
}

/// The connection window has room for three bodies at a time, so that it sometimes ends inside a
/// body: that body also continues when there is room again.
#[test]
fn uploads_go_on_when_their_connection_has_room_again() {
    let mut plan = open(http3(100), 2_000.0, Gaps::Constant, 40, Some(1));
    plan.request.method = "POST".into();
    plan.request.body = Some(vec![b'b'; 10_000]);
    let delay = Nanos::from_millis(5);
    let ran = run(plan, QuicWorld { delay, upload_window: Some(35_000), ..fixed(0, 1) });
    assert_eq!(ran.outcome.measurement.total.counts.succeeded, 40, "{:?}", failures(&ran));
}

/// The server's credit allows a body to be sent in parts, one round trip apart: each part is
/// progress, and the time to the first byte starts with the last part.
#[test]
fn an_upload_without_credit_resumes() {
    let mut plan = open(http3(100), 10.0, Gaps::Constant, 1, Some(1));
    plan.request.method = "POST".into();
    plan.request.body = Some(vec![b'b'; 100_000]);
    let limit = Some(Nanos::from_millis(250));
    (plan.timeouts.progress, plan.timeouts.first_byte) = (limit, limit);
    let delay = Nanos::from_millis(50);
    let ran = run(plan, QuicWorld { delay, upload_window: Some(10_000), ..fixed(0, 1) });
    assert_eq!(failures(&ran), []);
    assert!(services(&ran)[0] > Nanos::from_secs(1), "{:?}", services(&ran));
}

/// The port is closed: ICMP reports it at once; without ICMP the connect timeout expires.
#[test]
fn a_missing_server_gets_no_connection() {
    let ran = run(closed(http3(1), 1, 1), QuicWorld { closed_port: true, ..fixed(0, 1) });
    assert_eq!(failures(&ran), [(FailureClass::Refused, 1)]);
    let mut plan = closed(http3(1), 1, 1);
    plan.timeouts.connect = Nanos::from_secs(2);
    let ran = run(plan, QuicWorld { loses: |_, _| true, ..fixed(0, 1) });
    assert_eq!(failures(&ran), [(FailureClass::ConnectTimeout, 1)]);
    let (sample, _) = &ran.outcome.calls[0];
    assert_eq!(sample.done - sample.intended, Nanos::from_secs(2));
    assert!(ran.datagrams[Way::Up as usize] > 2, "QUIC asks more than once: {:?}", ran.datagrams);
}

/// Ciphertext differs, because the keys do; its content does not.
#[test]
fn the_same_seed_sends_the_same_bytes() {
    let plan = |seed| {
        let mut plan = open(http3(20), 500.0, Gaps::Poisson, 300, Some(3));
        plan.seed = seed;
        plan.request.cookies = true;
        plan
    };
    let ran = |seed| run(plan(seed), fixed(2, 3));
    let (one, other, third) = (ran(1), ran(1), ran(2));
    assert!(one.heard.len() > 300);
    assert_eq!(one.heard, other.heard);
    let instants = |ran: &QuicOutcome| {
        let calls = ran.outcome.calls.iter();
        calls.map(|(sample, _)| (sample.index, sample.sent, sample.done)).collect::<Vec<_>>()
    };
    assert_eq!(instants(&one), instants(&other));
    assert_ne!(instants(&one), instants(&third));
}
