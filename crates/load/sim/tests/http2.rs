//! HTTP/2 in virtual time: the same laws, theory and outcomes, over streams of shared connections.

use plan::{Arrivals, Gaps, HttpVersion, Load, Pace, Plan, SessionPlan, Think};
use sample::{FailureClass, Outcome};
use sim::grpc::{Answered, ChatServer};
use sim::http2::{StreamTreatment, Streams, frame};
use sim::{
    Action, Admission, ClosureServer, Queue, Server, Service, World, execute, execute_with,
    plan_for,
};
use stats::Measurement;
use stats::diagnosis::{Evidence, of_run};
use units::{Nanos, Rate};

const URL: &str = "http://sim.example/";

fn http2(mut plan: Plan, streams: u32) -> Plan {
    plan.request.version = HttpVersion::Http2;
    plan.connection.pipeline = streams;
    plan
}

fn open(rate: f64, gaps: Gaps, seconds: u64, connections: Option<u32>) -> Plan {
    let mut plan = plan_for(URL);
    let arrivals = Arrivals { gaps, ..Arrivals::constant(Rate(rate)) };
    plan.load =
        Load::Open { arrivals, session: None, connections_max: connections, queue_max: None };
    plan.stop.duration = Some(Nanos::from_secs(seconds));
    plan
}

fn closed(users: u32, seconds: u64) -> Plan {
    let mut plan = plan_for(URL);
    plan.load = Load::Closed { users, think: Think::None, session: None };
    plan.stop.duration = Some(Nanos::from_secs(seconds));
    plan
}

fn fixed(servers: usize, millis: u64) -> Streams {
    Streams::new(Queue::new(servers, Service::Fixed(Nanos::from_millis(millis)), 3))
}

/// Runs the plan; no call may be lost in any case.
fn run(plan: Plan, server: impl Server + 'static) -> Measurement {
    let measurement = execute(plan, Box::new(server), 1).measurement;
    let counts = &measurement.total.counts;
    assert_eq!(
        counts.due,
        counts.succeeded + counts.failed + counts.timed_out + counts.dropped + counts.abandoned
    );
    measurement
}

/// Runs the plan and returns every byte that was sent.
fn recorded(plan: Plan, server: impl Server + 'static) -> sim::Simulated {
    let mut world = World::new(Box::new(server), Nanos::ZERO, Nanos::from_secs(1_000));
    world.keep_sent = true;
    execute_with(plan, world, 1, None)
}

fn failures(measurement: &Measurement) -> Vec<(FailureClass, u64)> {
    measurement.total.failures.iter().map(|(class, count)| (*class, *count)).collect()
}

/// M/D/c does not depend on the number of connections: over a single HTTP/2 connection the response
/// times equal those of HTTP/1.1 over as many as it needs.
#[test]
fn streams_of_one_connection_are_an_m_d_c_queue() {
    for servers in [1, 4] {
        let rate = 800.0 * servers as f64;
        let plan = || open(rate, Gaps::Poisson, 20, None);
        let service = Service::Fixed(Nanos::from_millis(1));
        let http1 = execute(plan(), Box::new(Queue::new(servers, service, 3)), 1).measurement;
        let streams = run(http2(plan(), 1_000), fixed(servers, 1));
        assert_eq!(streams.total.connections.established, 1);
        assert!(http1.total.connections.established > 5);
        assert_eq!(streams.total.counts.succeeded, http1.total.counts.succeeded);
        for share in [0.5, 0.99] {
            let (a, b) = (streams.total.response(), http1.total.response());
            assert_eq!(a.quantile(share), b.quantile(share), "{servers} servers, {share}");
        }
    }
}

#[test]
fn users_keep_their_number_of_streams_busy() {
    let measured = run(http2(closed(4, 10), 8), fixed(0, 10));
    // 32 in flight, each for 10 ms
    assert_eq!(measured.total.counts.succeeded, 32_000);
    assert_eq!(measured.total.connections.established, 4);
    let facts = &measured.total.connections.http2;
    assert_eq!((facts.streams, facts.streams_peak), (32_000, 8));
    assert!(facts.coded_sent * 5 < facts.fields_sent, "repeated fields cost a byte each");
}

/// 5 streams of one connection at a server of 1 ms each: the sixth call waits for a stream.
#[test]
fn the_server_s_limit_of_streams_is_kept() {
    let plan = http2(open(4_500.0, Gaps::Poisson, 10, Some(1)), 100);
    let server = fixed(0, 1).with_streams_max(5);
    let measured = run(plan, server);
    let facts = &measured.total.connections.http2;
    assert_eq!((facts.streams_max, facts.streams_peak, facts.refused), (Some(5), 5, 0));
    assert_eq!(measured.total.counts.succeeded, measured.total.counts.due);
    let (response, service) = (measured.total.response(), &measured.total.service);
    assert_eq!(service.quantile(0.99), service.quantile(0.01), "the server itself is constant");
    assert!(response.quantile(0.99) > service.quantile(0.99), "what is waited for a stream counts");
}

/// The same in figures: the waits are counted, and the finding names the single connection.
#[test]
fn waits_for_a_stream_are_measured() {
    let limited = |rate: f64| {
        let plan = http2(open(rate, Gaps::Constant, 2, Some(1)), 100);
        run(plan, fixed(0, 10).with_streams_max(5))
    };
    // 5 streams of 10 ms carry 500/s
    let measured = limited(600.0);
    let (waits, total) = (&measured.total.connections.stream_wait, &measured.total);
    let waited: f64 = waits.mean().as_secs_f64() * waits.count() as f64;
    let slip = total.slip.mean().as_secs_f64() * total.slip.count() as f64;
    assert!(waits.count() > 1_000, "{}", waits.count());
    assert!((waited / slip - 1.0).abs() < 0.01, "{waited} of {slip}");
    assert_eq!(total.connections.backends.addresses.len(), 1);
    let calls: u64 = total.connections.backends.addresses.values().map(|it| it.calls).sum();
    assert_eq!(calls, total.counts.succeeded);
    let found = of_run(&Evidence::new(&measured));
    let ids: Vec<&str> = found.iter().map(|one| one.rule.id).collect();
    assert!(ids.contains(&"one-channel") && !ids.contains(&"stream-limit"), "{ids:?}");
    let enough = limited(400.0);
    assert!(enough.total.connections.stream_wait.is_empty());
    assert!(of_run(&Evidence::new(&enough)).iter().all(|one| one.rule.id != "one-channel"));
}

/// Makes the plan's calls gRPC calls with this number of empty messages.
fn chat(mut plan: Plan, messages: usize) -> Plan {
    plan.use_grpc();
    plan.request.body = Some(vec![0; 5 * messages]);
    plan
}

/// Runs a call with keepalive; returns the seconds after the start at which the server was pinged,
/// and the run.
fn pinged(server: ChatServer, timeout: Nanos) -> (Vec<u64>, Measurement) {
    let pings = Answered::default();
    let mut plan = chat(http2(closed(1, 1), 1), 1);
    plan.grpc.keepalive = Some(Nanos::from_secs(30));
    (plan.stop.duration, plan.stop.requests) = (None, Some(1));
    plan.timeouts.call = timeout;
    let measured = run(plan, server.with_pings(&pings));
    let pings = pings.lock().expect("no thread panicked");
    (pings.iter().map(|at| at.0 / 1_000_000_000 - 1_000).collect(), measured)
}

/// A call without an answer for 20 minutes: two pings, then one in more than five minutes, which a
/// server that enforces gRPC's limits accepts.
#[test]
fn keepalive_pings_are_never_too_many() {
    let queue = Queue::new(0, Service::Fixed(Nanos::ZERO), 3);
    let (pings, measured) = pinged(ChatServer::silent(queue), Nanos::from_secs(1_200));
    assert_eq!(pings, [30, 60, 370, 680, 990]);
    let facts = &measured.total.connections.http2;
    assert_eq!((facts.pings_sent, facts.pings_answered), (5, 5));
    assert_eq!(facts.goaways, [].into());
    assert_eq!(failures(&measured), [(FailureClass::ClientTimeout, 1)]);
}

#[test]
fn a_connection_without_acknowledgments_is_broken_off() {
    let queue = Queue::new(0, Service::Fixed(Nanos::ZERO), 3);
    let server = ChatServer::silent(queue).without_acknowledgments();
    let (pings, measured) = pinged(server, Nanos::from_secs(1_200));
    assert_eq!(pings, [30]);
    assert_eq!(failures(&measured), [(FailureClass::KeepaliveTimeout, 1)]);
    assert!((measured.total.failed.max().as_secs_f64() - 50.0).abs() < 0.5);
}

/// Messages on a schedule at a serial server with random times: each answer is measured from the
/// instant at which its message was due, as in the server's own log.
#[test]
fn answers_to_paced_messages_are_timed_within_5_percent() {
    let answered = Answered::default();
    let service = Service::Exponential(Nanos::from_millis(8));
    let server = ChatServer::new(Queue::new(1, service, 3), &answered);
    let mut plan = chat(http2(closed(1, 1), 1), 2_000);
    plan.grpc.message_rate = Some(Rate(100.0));
    plan.grpc.answers = true;
    (plan.stop.duration, plan.stop.requests) = (None, Some(1));
    let measured = run(plan, server);
    let (total, streams) = (&measured.total, &measured.total.streams);
    assert_eq!((total.counts.succeeded, streams.sent, streams.answer.count()), (1, 1_999, 2_000));
    let at = answered.lock().unwrap();
    // the last message is due 19.99 s after the first
    let start = at[0].as_secs_f64() - streams.first.max().as_secs_f64();
    let due = |number: usize| start + number as f64 / 100.0;
    let mut truth: Vec<f64> =
        at.iter().enumerate().map(|(number, at)| at.as_secs_f64() - due(number)).collect();
    truth.sort_by(f64::total_cmp);
    for quantile in [0.5, 0.9, 0.99, 1.0] {
        let rank = (quantile * 2_000.0_f64).ceil() as usize - 1;
        let (found, right) = (streams.answer.quantile(quantile).as_secs_f64(), truth[rank]);
        assert!((found / right - 1.0).abs() < 0.05, "{quantile}: {found} of {right}");
    }
}

/// The report of load in a trailer (ORCA): 25 % of the CPU.
#[test]
fn load_reports_and_names_of_back_ends_are_counted() {
    let server =
        ChatServer::new(Queue::new(0, Service::Fixed(Nanos::ZERO), 3), &Answered::default())
            .with_trailer("endpoint-load-metrics-bin", "CQAAAAAAANA/".to_owned())
            .with_trailer("x-served-by", "pod-a".to_owned());
    let mut plan = chat(http2(closed(1, 1), 1), 1);
    plan.grpc.backend = Some("x-served-by".to_owned());
    (plan.stop.duration, plan.stop.requests) = (None, Some(20));
    let backends = run(plan, server).total.connections.backends;
    assert_eq!(backends.names["pod-a"].calls, 20);
    assert_eq!((backends.load.reports, backends.load.malformed), (20, 0));
    assert_eq!(backends.load.cpu.mean(), Some(0.25));
}

/// Server that answers the messages of all streams one by one, or all at once.
fn answering(servers: usize) -> ChatServer {
    let service = Service::Fixed(Nanos::from_millis(2));
    ChatServer::new(Queue::new(servers, service, 3), &Answered::default())
}

/// The client ends each stream after three of ten answers: the call succeeds, and the connection
/// serves the next one. The rest of the response is still in flight.
#[test]
fn a_stream_ends_after_its_number_of_messages() {
    for (users, streams, servers) in [(1, 1, 1), (2, 8, 1), (1, 4, 0)] {
        let server = answering(servers);
        let mut plan = chat(http2(closed(users, 1), streams), 10);
        plan.grpc.response_messages = Some(3);
        (plan.stop.duration, plan.stop.requests) = (None, Some(40));
        let measured = run(plan, server);
        let (total, tally) = (&measured.total, &measured.total.streams);
        assert_eq!((total.counts.succeeded, failures(&measured)), (40, vec![]));
        assert_eq!((tally.whole, tally.in_window, tally.grpc.unsent), (40, 120, 0));
        // with all answers at once, the server's status arrives too: OK instead of CANCELLED
        let status = u32::from(servers > 0);
        assert_eq!(tally.grpc.statuses, [(status, 40)].into());
        let connections = &total.connections;
        assert_eq!(
            (connections.established, connections.http2.resets.len()),
            (u64::from(users), 0)
        );
    }
}

/// One call per connection: each connection closes when the client ends its stream.
#[test]
fn a_connection_closes_after_a_stream_that_its_client_ends() {
    let server = answering(1);
    let mut plan = chat(http2(closed(1, 1), 1), 10);
    plan.grpc.response_messages = Some(1);
    plan.connection.calls = Some(1);
    (plan.stop.duration, plan.stop.requests) = (None, Some(5));
    let total = run(plan, server).total;
    assert_eq!((total.counts.succeeded, total.connections.established), (5, 5));
}

/// A message above the maximum length ends only its own call, before the whole message arrives.
#[test]
fn a_message_above_the_maximum_length_ends_its_call() {
    for (most, failed, servers) in [(40, 0, 1), (39, 20, 1), (39, 20, 0)] {
        let server = answering(servers);
        let mut plan = chat(http2(closed(2, 1), 1), 10);
        plan.grpc.response_message_max = Some(most);
        (plan.stop.duration, plan.stop.requests) = (None, Some(20));
        let measured = run(plan, server.with_length(40));
        let (total, grpc) = (&measured.total, &measured.total.streams.grpc);
        assert_eq!((total.counts.failed, total.connections.established), (failed, 2));
        if failed > 0 {
            assert_eq!(failures(&measured), [(FailureClass::GrpcStatus, 20)]);
            let text = "RESOURCE_EXHAUSTED: grpc: received message larger than max (40 vs. 39)";
            assert_eq!(grpc.messages, [(text.to_owned(), 20)].into());
        } else {
            assert_eq!(grpc.statuses, [(0, 20)].into());
        }
    }
}

/// Streams refused from a user's first flight wait on the same connection: no second connection is
/// opened, and nothing fails.
#[test]
fn a_user_waits_on_its_own_connection_for_a_stream() {
    let measured = run(http2(closed(1, 2), 20), fixed(0, 1).with_streams_max(5));
    let (total, facts) = (&measured.total, &measured.total.connections.http2);
    assert_eq!(failures(&measured), []);
    assert_eq!(total.connections.established, 1);
    assert!(facts.held_back > 0, "{facts:?}");
    assert!(total.counts.succeeded > 5_000, "five streams are always busy: {:?}", total.counts);
}

/// Calls of a session that fall due by the clock do not wait for others: with one stream and 150 ms
/// each, due every 100 ms, the fifth has waited for 200 ms.
#[test]
fn a_session_keeps_its_pace() {
    let mut plan = http2(closed(2, 1), 1);
    let mut session = SessionPlan::new(5, Think::None);
    session.pace = Some(Pace::Every(Rate(10.0)));
    plan.load = Load::Closed { users: 2, think: Think::None, session: Some(session) };
    (plan.stop.duration, plan.stop.requests) = (None, Some(2));
    let measured = run(plan, fixed(0, 150));
    assert_eq!((measured.total.counts.due, measured.total.counts.succeeded), (10, 10));
    let longest = measured.total.response().quantile(1.0).as_secs_f64();
    assert!((longest - 0.35).abs() < 0.005, "{longest}");
    assert!((measured.elapsed.as_secs_f64() - 0.75).abs() < 0.01, "{:?}", measured.elapsed);
}

#[test]
fn goaway_is_a_keep_alive_limit_and_no_failure() {
    for plan in [http2(closed(3, 2), 4), http2(open(2_000.0, Gaps::Poisson, 2, None), 50)] {
        let measured = run(plan, fixed(0, 2).with_calls_max(10));
        let total = &measured.total;
        assert_eq!(failures(&measured), []);
        assert_eq!(total.counts.succeeded, total.counts.due);
        let goaways = total.connections.http2.goaways.get(&0).copied().unwrap_or(0);
        assert!(goaways >= total.counts.due / 10 - 3, "{goaways} of {}", total.counts.due);
        assert!(total.connections.established >= goaways);
    }
}

#[test]
fn a_refused_stream_is_retried_and_counted() {
    let every_third = |number: u64| {
        if number.is_multiple_of(3) { StreamTreatment::Refused } else { StreamTreatment::Served }
    };
    let measured = run(http2(closed(2, 2), 4), fixed(0, 1).with_treatment(every_third));
    let total = &measured.total;
    assert_eq!((failures(&measured), total.counts.failed), (Vec::new(), 0));
    assert!(total.connections.http2.refused > total.counts.succeeded / 3);

    let mut plan = http2(closed(1, 1), 1);
    plan.stop.requests = Some(10);
    let measured = run(plan, fixed(0, 1).with_treatment(|_| StreamTreatment::Refused));
    assert_eq!(failures(&measured), [(FailureClass::StreamRefused, 10)]);
    assert_eq!(measured.total.connections.http2.refused, 40, "four tries each");
}

#[test]
fn a_reset_stream_fails_alone() {
    let tenth = |number: u64| {
        if number % 10 == 9 { StreamTreatment::Reset } else { StreamTreatment::Served }
    };
    let measured = run(http2(closed(1, 1), 5), fixed(0, 1).with_treatment(tenth));
    let total = &measured.total;
    assert_eq!(failures(&measured), [(FailureClass::StreamReset, total.counts.failed)]);
    assert_eq!(total.counts.failed, total.counts.due / 10);
    assert_eq!(total.connections.established, 1);
    assert_eq!(total.connections.http2.resets, [(2, total.counts.failed)].into());
}

/// h2load's client: one connection, whose streams fail individually.
#[test]
fn a_session_survives_a_failed_stream() {
    let client = || {
        let mut plan = http2(closed(1, 1), 5);
        let session = SessionPlan {
            one_connection: true,
            survives: true,
            ..SessionPlan::new(50, Think::None)
        };
        plan.load = Load::Closed { users: 1, think: Think::None, session: Some(session) };
        (plan.stop.duration, plan.stop.requests, plan.connection.tries) = (None, Some(1), 1);
        plan
    };
    let tenth: [fn(u64) -> StreamTreatment; 2] = [
        |number| if number % 10 == 9 { StreamTreatment::Reset } else { StreamTreatment::Served },
        |number| if number % 10 == 9 { StreamTreatment::Refused } else { StreamTreatment::Served },
    ];
    for treatment in tenth {
        let measured = run(client(), fixed(0, 1).with_treatment(treatment));
        let total = &measured.total;
        assert_eq!((total.counts.succeeded, total.counts.failed), (45, 5));
        assert_eq!(total.connections.established, 1);
    }
}

/// h2load's client ends at a GOAWAY, even if it arrives between two calls: with the last response,
/// with no call in flight, or during the next call.
#[test]
fn a_session_ends_at_a_goaway_between_two_calls() {
    let client = |streams, think| {
        let mut plan = http2(closed(1, 1), streams);
        let session =
            SessionPlan { one_connection: true, survives: true, ..SessionPlan::new(50, think) };
        plan.load = Load::Closed { users: 1, think, session: Some(session) };
        (plan.stop.duration, plan.stop.requests, plan.connection.tries) = (None, Some(1), 1);
        plan
    };
    let millis = Nanos::from_millis;
    let (pause, mut wrong) = (Think::Fixed(millis(20)), Vec::new());
    for (streams, think, after, made) in [
        // with the response, when the next call is already requested, or while it is in flight
        (1, Think::None, Nanos::ZERO, (10, 1)),
        (1, Think::None, millis(1), (10, 1)),
        (1, pause, Nanos::ZERO, (10, 0)),
        (1, pause, millis(10), (10, 0)),
        (1, pause, millis(21), (10, 1)),
        // two more were answered with the last request that the server counts
        (4, Think::None, millis(1), (12, 4)),
    ] {
        let server = fixed(0, 5).with_calls_max(10).with_goaway_after(after);
        let total = run(client(streams, think), server).total;
        let goaways = total.connections.http2.goaways.values().sum::<u64>();
        let came = (total.counts.succeeded, total.counts.failed);
        if (came, total.connections.established, goaways) != (made, 1, 1) {
            wrong.push(format!("{streams} streams, {think:?}, {after:?}: {came:?}, {goaways}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// A call that times out ends its stream, but not its connection.
#[test]
fn a_stream_without_response_times_out_alone() {
    let mut plan = http2(open(100.0, Gaps::Constant, 10, None), 100);
    plan.timeouts.call = Nanos::from_secs(1);
    let tenth = |number: u64| {
        if number % 10 == 9 { StreamTreatment::Ignored } else { StreamTreatment::Served }
    };
    let outcome = recorded(plan, fixed(0, 1).with_treatment(tenth));
    let total = &outcome.measurement.total;
    assert_eq!((total.counts.timed_out, total.counts.succeeded), (100, 900));
    assert_eq!(total.connections.established, 1);
    let cancelled = frame(3, 0, 0, &8u32.to_be_bytes());
    let resets = outcome
        .sent
        .windows(13)
        .filter(|bytes| bytes[..5] == cancelled[..5] && bytes[9..] == cancelled[9..]);
    assert_eq!(resets.count(), 100);
}

/// A connection that breaks: started calls fail, the others move to another connection.
#[test]
fn a_closed_connection_fails_only_started_calls() {
    let mut inner = fixed(0, 5);
    let mut calls = 0;
    let server = ClosureServer {
        admit: Admission::Accept,
        react: move |now, client, bytes: &[u8]| {
            let mut sent = inner.receive(now, client, bytes);
            calls += 1;
            if calls % 100 == 0 {
                sent.push((now + Nanos::from_millis(2), Action::End));
            }
            sent
        },
    };
    let measured = run(http2(open(1_000.0, Gaps::Constant, 3, None), 100), server);
    assert_eq!(
        failures(&measured).iter().map(|(_, n)| n).sum::<u64>(),
        measured.total.counts.failed
    );
    assert!(measured.total.counts.succeeded > measured.total.counts.due * 9 / 10);
    assert!(measured.total.connections.established > 10);
}

#[test]
fn a_peer_without_http2_is_reported() {
    let cases: [(&[u8], &str); 3] = [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "speaks HTTP/1.x"),
        (b"\0\0\x08\x06\0\0\0\0\0pingpong", "SETTINGS"),
        // SETTINGS, then DATA on stream 0
        (b"\0\0\0\x04\0\0\0\0\0\0\0\x01\0\0\0\0\0\0x", "RFC 9113 section 6.1"),
    ];
    for (bytes, sent) in cases {
        let bytes = bytes.to_vec();
        let server = ClosureServer {
            admit: Admission::Accept,
            react: move |now, _, _: &[u8]| vec![(now, Action::Bytes(bytes.clone()))],
        };
        let mut plan = http2(closed(1, 1), 1);
        plan.stop.requests = Some(3);
        let measured = run(plan, server);
        assert_eq!(failures(&measured), [(FailureClass::Protocol, 3)], "{sent}");
        let violations = &measured.total.connections.http2.violations;
        assert!(violations.keys().all(|why| why.contains(sent)), "{sent}: {violations:?}");
        assert_eq!(violations.values().sum::<u64>(), 3);
    }
}

/// A window that is never opened: the request's body is not sent, and the call's deadline ends it.
#[test]
fn a_closed_window_times_out() {
    let closed_window = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let server = ClosureServer {
        admit: Admission::Accept,
        react: move |now, _, bytes: &[u8]| match bytes.starts_with(b"PRI") {
            true => vec![(now, Action::Bytes(closed_window.clone()))],
            false => Vec::new(),
        },
    };
    let mut plan = http2(closed(2, 5), 1);
    plan.request.method = "POST".into();
    plan.request.body = Some(vec![b'x'; 200_000]);
    plan.timeouts.call = Nanos::from_secs(1);
    plan.stop.requests = Some(4);
    let outcome = execute(plan, Box::new(server), 1);
    assert_eq!(outcome.measurement.total.counts.timed_out, 4);
}

#[test]
fn the_same_seed_sends_the_same_bytes() {
    let sent = || {
        let plan = http2(open(500.0, Gaps::Poisson, 2, None), 20);
        recorded(plan, fixed(2, 3).with_streams_max(7)).sent
    };
    let bytes = sent();
    assert!(bytes.len() > 1_000 * 10);
    assert_eq!(bytes, sent());
}

#[test]
fn a_call_s_phases_are_those_of_its_stream() {
    let mut plan = http2(closed(1, 1), 1);
    plan.stop.requests = Some(5);
    let outcome = execute(plan, Box::new(fixed(0, 7)), 1);
    let total = &outcome.measurement.total;
    assert_eq!(total.counts.succeeded, 5);
    assert_eq!(total.response().quantile(0.5), total.first_byte.quantile(0.5));
    assert_eq!(outcome.calls.iter().filter(|(_, how)| *how != Outcome::Succeeded).count(), 0);
}

/// Calls that wait on a connection, and again on the next one because the first goes away, have one
/// wait each.
#[test]
fn a_call_that_waits_twice_for_a_stream_has_one_wait() {
    let plan = http2(open(600.0, Gaps::Constant, 2, Some(1)), 100);
    let measured = run(plan, fixed(0, 10).with_streams_max(5).with_calls_max(10));
    let total = &measured.total;
    let waits = &total.connections.stream_wait;
    assert!(total.connections.established > 10, "{:?}", total.connections.established);
    assert!(waits.count() > 200 && waits.count() <= total.counts.due, "{}", waits.count());
    let sum = |hist: &stats::Hist| hist.mean().as_secs_f64() * hist.count() as f64;
    assert!(sum(waits) < sum(&total.response()), "{} of {}", sum(waits), sum(&total.response()));
}
