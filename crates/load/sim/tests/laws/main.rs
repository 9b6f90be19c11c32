//! The laws of measurement, tested on the production worker.

mod fleet;

use plan::{Arrivals, Gaps, Load, Plan, SessionPlan, Think};
use proptest::prelude::*;
use sample::{FailureClass, Outcome};
use sim::{
    Action, Admission, Client, ClosureServer, Queue, Server, Service, World, execute, execute_with,
    plan_for,
};
use stats::Endings;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{Nanos, Rate};

const URL: &str = "http://sim.example/path?q=1";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn open(rate: f64, seconds: u64) -> Plan {
    let mut plan = plan_for(URL);
    let rate = Rate(rate);
    let arrivals = Arrivals { gaps: Gaps::Poisson, ..Arrivals::constant(rate) };
    plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    plan.stop.duration = Some(Nanos::from_secs(seconds));
    plan
}

fn count_only(users: u32, calls: u64) -> Plan {
    let mut plan = plan_for(URL);
    plan.load = Load::Closed { users, think: Think::None, session: None };
    plan.stop.duration = None;
    plan.stop.requests = Some(calls);
    plan
}

fn quick() -> Box<Queue> {
    Box::new(Queue::new(0, Service::Fixed(Nanos::from_millis(1)), 1))
}

fn script<F>(react: F) -> Box<dyn Server>
where
    F: FnMut(Nanos, Client, &[u8]) -> Vec<(Nanos, Action)> + 'static,
{
    Box::new(ClosureServer { admit: Admission::Accept, react })
}

fn reply(now: Nanos, bytes: &[u8]) -> (Nanos, Action) {
    (now + Nanos::from_millis(1), Action::Bytes(bytes.to_vec()))
}

/// Returns the failure classes of a run's calls, with their counts.
fn classes(run: &sim::Simulated) -> Vec<(FailureClass, u64)> {
    run.measurement.total.failures.iter().map(|(class, count)| (*class, *count)).collect()
}

#[test]
fn a_count_is_met_exactly_by_any_number_of_workers() {
    for workers in [1, 2, 3, 8] {
        let run = execute(count_only(8, 1_003), quick(), workers);
        let counts = run.measurement.total.counts;
        assert_eq!((counts.due, counts.succeeded), (1_003, 1_003), "{workers} workers");
    }
}

/// Law 7: the same seed gives the same bytes and the same due instants; for 1 worker or 8 the same
/// multiset.
#[test]
fn content_and_instants_do_not_depend_on_the_workers() {
    let look = |workers| {
        let mut plan = open(200.0, 5);
        plan.targets = (0..7)
            .map(|n| {
                let url = url::Url::parse(&format!("http://sim.example/{n}")).unwrap();
                plan::TargetPlan { weight: f64::from(n) + 1.0, ..plan::TargetPlan::new(url) }
            })
            .collect();
        plan.order = plan::Order::Random;
        let run = execute(plan, quick(), workers);
        let mut calls: Vec<_> =
            run.calls.iter().map(|(s, _)| (s.index, s.intended, s.target)).collect();
        calls.sort_unstable();
        calls
    };
    let alone = look(1);
    assert!(alone.len() > 900, "{}", alone.len());
    assert_eq!(alone, look(8));
}

/// The bytes of a seed, pinned: changing them changes the requests of old plans.
#[test]
fn bytes_on_the_wire_are_pinned() {
    let mut world = World::new(quick(), Nanos::ZERO, Nanos::from_secs(1_000));
    world.keep_sent = true;
    let run = execute_with(count_only(1, 2), world, 1, None);
    let version = env!("CARGO_PKG_VERSION");
    let one = format!(
        "GET /path?q=1 HTTP/1.1\r\nHost: sim.example\r\nUser-Agent: loadstone/{version}\r\n\r\n"
    );
    assert_eq!(String::from_utf8(run.sent).unwrap(), one.repeat(2));
}

/// A run that ends on an edge of the series adds no further row.
#[test]
fn no_row_of_the_series_is_without_a_span() {
    for (workers, millis) in [(1, 2_000), (2, 2_000), (1, 2_500)] {
        let mut plan = open(100.0, 2);
        plan.stop.duration = Some(Nanos::from_millis(millis));
        let run = execute(plan, quick(), workers);
        let rows = &run.measurement.series;
        let spans: Vec<f64> = rows.iter().map(|row| row.span_s).collect();
        assert!(spans.iter().all(|span| *span > 0.0), "{millis} ms: {spans:?}");
        let due: u64 = rows.iter().map(|row| row.counts.due).sum();
        assert_eq!(due, run.measurement.total.counts.due, "a row that is left out loses no call");
    }
}

/// A server that starts to fail halfway is reported in the right second.
#[test]
fn each_second_counts_its_outcomes() {
    const BAD: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let treatment =
        |now: Nanos, _: Client, _: &[u8]| match (now.0 / 1_000_000_000).saturating_sub(1_000) {
            0..4 => vec![reply(now, RESPONSE)],
            4..6 => vec![reply(now, BAD)],
            _ => vec![(now + Nanos::from_millis(1), Action::Reset)],
        };
    for workers in [1, 3] {
        let run = execute(open(300.0, 8), script(treatment), workers);
        let (series, total) = (&run.measurement.series, &run.measurement.total);
        let mut sum = Endings::default();
        for row in series {
            let endings = row.endings.as_ref().unwrap();
            sum.merge(endings);
            let count = |status| endings.with_status(status);
            let (ok, bad, reset) = (count(200), count(503), endings.of_class(FailureClass::Reset));
            assert_eq!(endings.of_class(FailureClass::Status), bad, "{row:?}");
            assert_eq!(row.counts.done(), ok + bad + reset, "{row:?}");
            // requests sent at the end of a second may be answered in the next
            let near = |part: u64| part > 200 && part + 3 >= row.counts.done();
            match row.at_s.round() as i64 {
                0..4 => assert!(near(ok), "{row:?}"),
                4..6 => assert!(near(bad), "{row:?}"),
                6..8 => assert!(near(reset), "{row:?}"),
                _ => {}
            }
        }
        assert_eq!(sum, total.endings(), "{workers} workers");
    }
}

#[test]
fn the_warm_up_is_counted_separately() {
    let mut plan = open(1_000.0, 4);
    plan.stop.warm_up = Nanos::from_secs(2);
    let run = execute(plan, quick(), 2);
    let total = &run.measurement.total;
    assert_eq!(total.counts.due, run.measurement.intended.unwrap());
    assert!((1_800..2_200).contains(&total.warm_up.due), "{}", total.warm_up.due);
    assert_eq!(total.response().count(), total.counts.succeeded);
    let warm = run.measurement.series.iter().filter(|second| second.warm_up).count();
    assert_eq!(warm, 2);
}

/// Calls that cannot be issued are dropped and counted. The window of `-n` lasts until the last
/// response; the intended and offered load is not diluted by that wait.
#[test]
fn a_count_at_a_rate_is_intended_and_offered_at_that_rate() {
    let seconds = Nanos::from_secs;
    let measure = |gaps, duration: Option<u64>| {
        let mut plan = open(100.0, 0);
        plan.stop.duration = duration.map(seconds);
        plan.stop.requests = Some(500);
        plan.stop.warm_up = seconds(1);
        if let Load::Open { arrivals, .. } = &mut plan.load {
            arrivals.gaps = gaps;
        }
        let server = Queue::new(0, Service::Fixed(seconds(2)), 1);
        execute(plan, Box::new(server), 2).measurement
    };
    for gaps in [Gaps::Constant, Gaps::Poisson] {
        let run = measure(gaps, None);
        assert_eq!((run.intended, run.due_span()), (Some(500), seconds(5)), "{gaps:?}");
        assert!(run.window > seconds(6), "{gaps:?}: {:?}", run.window);
        // time ends it before the count does
        let run = measure(gaps, Some(4));
        assert_eq!(run.intended, Some(run.total.counts.due), "{gaps:?}");
        assert_eq!((run.due_span(), run.window), (seconds(4), seconds(4)), "{gaps:?}");
    }
    // the last of 500 falls due one gap before the end of its second
    assert_eq!(measure(Gaps::Constant, None).window, Nanos::from_millis(6_990));
}

#[test]
fn a_full_queue_drops_and_counts() {
    let mut plan = open(1_000.0, 2);
    let Load::Open { connections_max, queue_max, .. } = &mut plan.load else { unreachable!() };
    (*connections_max, *queue_max) = (Some(1), Some(5));
    let slow = Box::new(Queue::new(1, Service::Fixed(Nanos::from_millis(100)), 1));
    let run = execute(plan, slow, 1);
    let counts = run.measurement.total.counts;
    assert!(counts.dropped > 1_900, "{counts:?}");
    assert_eq!(counts.due, counts.succeeded + counts.dropped);
    assert_eq!(classes(&run), [(FailureClass::ConnectionLimit, counts.dropped)]);
    assert_eq!(run.measurement.total.response().count(), counts.succeeded, "a drop has no time");
}

/// Law 3: a timed-out call enters the headline histogram with its full age.
#[test]
fn a_timed_out_call_has_its_full_age() {
    let mut plan = count_only(2, 4);
    plan.timeouts.call = Nanos::from_secs(3);
    let run = execute(plan, script(|_, _, _| Vec::new()), 1);
    let total = &run.measurement.total;
    assert_eq!(total.counts.timed_out, 4);
    assert_eq!(total.response().count(), 4);
    assert!(total.response().min() >= Nanos::from_millis(2_995), "{:?}", total.response().min());
    assert_eq!(classes(&run), [(FailureClass::ClientTimeout, 4)]);
}

#[test]
fn each_timeout_has_its_own_class() {
    let second = Nanos::SECOND;
    let mut plan = count_only(1, 1);
    plan.timeouts.first_byte = Some(second);
    let silent = execute(plan.clone(), script(|_, _, _| Vec::new()), 1);
    assert_eq!(classes(&silent), [(FailureClass::FirstByteTimeout, 1)]);

    plan.timeouts.first_byte = None;
    plan.timeouts.progress = Some(second);
    let half = script(|now, _, _| vec![reply(now, b"HTTP/1.1 200 OK\r\nContent-Le")]);
    assert_eq!(classes(&execute(plan.clone(), half, 1)), [(FailureClass::ProgressTimeout, 1)]);
    plan.timeouts.first_byte = Some(Nanos::from_secs(3));
    let both = execute(plan.clone(), script(|_, _, _| Vec::new()), 1);
    assert_eq!(classes(&both), [(FailureClass::ProgressTimeout, 1)]);
    plan.timeouts.connect = second;
    let nobody =
        Box::new(ClosureServer { admit: Admission::Ignore, react: |_, _, _: &[u8]| Vec::new() });
    let unconnected = execute(plan, nobody, 1);
    assert_eq!(classes(&unconnected), [(FailureClass::ConnectTimeout, 1)]);
    let (sample, _) = &unconnected.calls[0];
    assert_eq!(sample.done - sample.intended, second);
}

/// The server takes 500 of 4,000 bytes of content every 400 ms; then it answers, or stops in the
/// middle.
#[test]
fn an_upload_with_progress_does_not_time_out() {
    let upload = |gives_up: bool| {
        let mut plan = count_only(1, 2);
        plan.request.method = "POST".into();
        plan.request.body = Some(vec![b'x'; 4_000]);
        plan.timeouts.progress = Some(Nanos::SECOND);
        let mut come = 0;
        let server = script(move |now, _, bytes| {
            come += bytes.len();
            let whole = come >= 4_000 && bytes.len() < 500;
            let silent = gives_up || !whole;
            come = if whole { 0 } else { come };
            if silent { Vec::new() } else { vec![reply(now, RESPONSE)] }
        });
        let mut world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
        world.limit_intake(500, Nanos::from_millis(400));
        execute_with(plan, world, 1, None)
    };
    let run = upload(false);
    assert_eq!((classes(&run), run.measurement.total.counts.succeeded), (vec![], 2));
    let (sample, _) = &run.calls[0];
    assert!(sample.written - sample.sent >= Nanos::from_secs(3), "{sample:?}");
    // a silent server that has received everything is given this time, from the last byte sent
    let run = upload(true);
    assert_eq!(classes(&run), [(FailureClass::ProgressTimeout, 2)]);
    let (sample, _) = &run.calls[0];
    let waited = sample.done - sample.written;
    assert!(waited >= Nanos::SECOND && waited < Nanos::from_millis(1_100), "{waited:?}");
}

/// The limit on a started response is shorter than the limit on waiting for it.
#[test]
fn a_limit_that_begins_with_the_first_byte_is_kept() {
    let mut plan = count_only(1, 1);
    (plan.timeouts.answer, plan.timeouts.progress) =
        (Some(Nanos::from_secs(20)), Some(Nanos::from_secs(2)));
    let stalls =
        script(|now, _, _| vec![reply(now + Nanos::SECOND, b"HTTP/1.1 200 OK\r\nContent-Le")]);
    let run = execute(plan, stalls, 1);
    assert_eq!(classes(&run), [(FailureClass::ProgressTimeout, 1)]);
    let (sample, _) = &run.calls[0];
    let took = sample.done - sample.intended;
    assert!(took >= Nanos::from_secs(3) && took < Nanos::from_millis(3_100), "{took:?}");
}

/// The second call of a group: its turn comes when the first one's slow response ends.
#[test]
fn a_queued_call_keeps_its_limits() {
    let mut plan = count_only(1, 2);
    plan.connection.group = Some(2);
    plan.timeouts.first_byte = Some(Nanos::SECOND);
    let mut begun = false;
    let slow_then_silent = script(move |now, _, _| {
        if std::mem::replace(&mut begun, true) {
            return Vec::new();
        }
        let head = reply(now, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
        vec![head, reply(now + Nanos::from_millis(1_500), b"b")]
    });
    let run = execute(plan, slow_then_silent, 1);
    assert_eq!(run.measurement.total.counts.succeeded, 1);
    assert_eq!(classes(&run), [(FailureClass::FirstByteTimeout, 1)]);
    let (sample, _) = &run.calls[1];
    let took = sample.done - sample.intended;
    assert!(took >= Nanos::from_millis(2_500) && took < Nanos::from_millis(2_600), "{took:?}");
}

/// A redirected call queues after a call that was due later, and is next when that call has its
/// response.
#[test]
fn an_older_call_that_is_the_next_has_its_own_limit() {
    let mut plan = count_only(1, 4);
    plan.connection.pipeline = 2;
    plan.request.follow_max = 1;
    plan.timeouts.call = Nanos::from_secs(10);
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let away = "HTTP/1.1 302 Found\r\nLocation: /away\r\nContent-Length: 0\r\n\r\n";
    let mut responses = [(1_000, ok), (2_000, ok), (9_000, away), (10_500, ok)].into_iter();
    let mut start = None;
    let server = script(move |now, _, bytes| {
        let start = *start.get_or_insert(now);
        let asked = bytes.windows(4).filter(|four| four == b"\r\n\r\n").count();
        let due = responses.by_ref().take(asked);
        due.map(|(after, text)| reply(start + Nanos::from_millis(after), text.as_bytes())).collect()
    });
    let run = execute(plan, server, 1);
    assert_eq!(run.measurement.total.counts.succeeded, 3);
    assert_eq!(classes(&run), [(FailureClass::ClientTimeout, 1)]);
    let (sample, _) = &run.calls[3];
    let took = sample.done - sample.intended;
    assert!(took >= Nanos::from_secs(10) && took < Nanos::from_millis(10_100), "{took:?}");
}

/// Of two requests in one pipeline the first is not answered: the time limit of both passes at
/// once, and neither is sent again.
#[test]
fn an_expired_call_is_not_retried() {
    let mut plan = count_only(1, 2);
    plan.connection.pipeline = 2;
    plan.timeouts.call = Nanos::from_secs(3);
    let heard = Rc::new(Cell::new(0));
    let hears = heard.clone();
    let server = script(move |_, _, bytes| {
        hears.set(hears.get() + bytes.windows(4).filter(|four| four == b"\r\n\r\n").count());
        Vec::new()
    });
    let run = execute(plan, server, 1);
    assert_eq!(classes(&run), [(FailureClass::ClientTimeout, 2)]);
    assert_eq!((heard.get(), run.measurement.total.connections.attempted), (2, 1));
    let took: Vec<_> = run.calls.iter().map(|(sample, _)| sample.done - sample.intended).collect();
    assert_eq!(took, [Nanos::from_secs(3); 2]);
}

#[test]
fn a_refused_connection_is_a_failure_and_no_success() {
    let mut plan = count_only(2, 10);
    plan.stop.duration = Some(Nanos::SECOND);
    let server =
        Box::new(ClosureServer { admit: Admission::Refuse, react: |_, _, _: &[u8]| Vec::new() });
    let run = execute(plan, server, 1);
    assert_eq!(run.measurement.total.counts.failed, 10);
    assert_eq!(classes(&run), [(FailureClass::Refused, 10)]);
    assert!(run.measurement.total.response().is_empty(), "a fast failure improves no quantile");
    assert_eq!(run.measurement.total.failed.count(), 10);
}

/// Makes ten calls of one user; returns the failures by class, and the time of all calls. The link
/// takes no time.
fn ten_calls(server: Box<dyn Server>, pause: Option<Nanos>) -> (Vec<(FailureClass, u64)>, Nanos) {
    let mut plan = count_only(1, 10);
    plan.stop.duration = Some(Nanos::SECOND);
    if let Some(pause) = pause {
        plan.connection.reconnect_pause = pause;
    }
    let run = execute(plan, server, 1);
    let first =
        run.calls.iter().map(|(sample, _)| sample.intended).min().expect("ten calls were made");
    let last = run.calls.iter().map(|(sample, _)| sample.done).max().expect("ten calls were made");
    (classes(&run), last - first)
}

#[test]
fn a_user_pauses_only_where_no_connection_opened() {
    let refuses = || -> Box<dyn Server> {
        Box::new(ClosureServer { admit: Admission::Refuse, react: |_, _, _: &[u8]| Vec::new() })
    };
    let (refused, took) = ten_calls(refuses(), None);
    assert_eq!(refused, [(FailureClass::Refused, 10)]);
    assert!(took >= Nanos::from_millis(90), "nine pauses of 10 ms: {took:?}");
    let (refused, took) = ten_calls(refuses(), Some(Nanos::from_millis(2)));
    assert_eq!(refused, [(FailureClass::Refused, 10)]);
    assert!(
        took >= Nanos::from_millis(18) && took < Nanos::from_millis(90),
        "nine pauses of 2 ms: {took:?}"
    );
    let (refused, took) = ten_calls(refuses(), Some(Nanos::ZERO));
    assert_eq!(refused, [(FailureClass::Refused, 10)]);
    assert!(took < Nanos::from_millis(9), "no pause: {took:?}");
    // each call costs the server 1 ms; a pause after it would be the client's, not the server's
    let resets = script(|now, _, _| vec![(now + Nanos::from_millis(1), Action::Reset)]);
    let (reset, took) = ten_calls(resets, None);
    assert_eq!(reset, [(FailureClass::Reset, 10)]);
    assert!(took < Nanos::from_millis(20), "no pause after a reset: {took:?}");
}

/// Makes calls of a user to a server that ends each connection this long after responses that it
/// sends at once, without announcing it. Returns failures by class, successful calls, connections,
/// and requests sent.
fn ended_after_each_response(
    (after, end): (Nanos, Action),
    (calls, pipeline): (u64, u32),
    resend: bool,
) -> (Vec<(FailureClass, u64)>, [u64; 3]) {
    let heard = Rc::new(Cell::new((0, 0)));
    let hears = heard.clone();
    let server = script(move |now, _, bytes| {
        let asked = bytes.windows(4).filter(|four| four == b"\r\n\r\n").count();
        let (requests, length) = hears.get();
        hears.set((requests + asked as u64, length + bytes.len() as u64));
        let mut actions: Vec<_> = (0..asked).map(|_| reply(now, RESPONSE)).collect();
        actions.push((actions[0].0 + after, end.clone()));
        actions
    });
    let mut plan = count_only(1, calls);
    plan.connection.resend = resend;
    plan.connection.pipeline = pipeline;
    let run = execute(plan, server, 1);
    let total = &run.measurement.total;
    assert_eq!((total.counts.due, total.counts.in_flight), (calls, 0));
    let (requests, length) = heard.get();
    assert_eq!(total.bytes_sent, length, "what went out counts, and nothing else");
    (classes(&run), [total.counts.succeeded, total.connections.established, requests])
}

/// A close that arrives with a response is noticed before the next request is written: it does not
/// fail that call.
#[test]
fn a_close_with_a_response_fails_no_call() {
    for end in [Action::End, Action::Reset] {
        let together = (Nanos::ZERO, end);
        let one = ended_after_each_response(together.clone(), (10, 1), false);
        assert_eq!(one, (vec![], [10, 10, 10]), "{together:?}");
        let three = ended_after_each_response(together.clone(), (12, 3), false);
        assert_eq!(three, (vec![], [12, 4, 12]), "{together:?}");
    }
}

/// A request that crosses the close may have been executed (RFC 9110 section 9.2.2): the plan
/// decides whether it is resent.
#[test]
fn a_request_crossing_a_close_is_resent_on_request() {
    let crossing = (Nanos(1), Action::End);
    let failed = vec![(FailureClass::ClosedEarly, 5)];
    assert_eq!(ended_after_each_response(crossing.clone(), (10, 1), false), (failed, [5, 5, 10]));
    // nine were sent twice
    assert_eq!(ended_after_each_response(crossing, (10, 1), true), (vec![], [10, 10, 19]));
}

/// Requests of connections that were never established were not sent.
#[test]
fn requests_without_a_connection_are_not_sent() {
    let mut plan = count_only(2, 6);
    plan.timeouts.connect = Nanos::from_millis(100);
    for admit in [Admission::Refuse, Admission::Ignore] {
        let server = ClosureServer { admit, react: |_, _, _: &[u8]| vec![] };
        let run = execute(plan.clone(), Box::new(server), 1);
        let total = &run.measurement.total;
        assert_eq!((total.counts.due, total.counts.succeeded, total.bytes_sent), (6, 0, 0));
    }
}

/// Output of a faulty server, and its failure class.
#[test]
fn every_kind_of_bad_response_has_its_class() {
    let end = |now: Nanos| (now + Nanos::from_millis(2), Action::End);
    let cases: Vec<(&str, Box<dyn Server>, FailureClass)> = vec![
        (
            "no HTTP",
            script(|now, _, _| vec![reply(now, b"220 smtp ready\r\n")]),
            FailureClass::NotHttp,
        ),
        ("closed early", script(move |now, _, _| vec![end(now)]), FailureClass::ClosedEarly),
        (
            "truncated",
            script(move |now, _, _| vec![reply(now, &RESPONSE[..RESPONSE.len() - 2]), end(now)]),
            FailureClass::Truncated,
        ),
        ("reset", script(|now, _, _| vec![(now + Nanos(1), Action::Reset)]), FailureClass::Reset),
        (
            "bad length",
            script(|now, _, _| vec![reply(now, b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")]),
            FailureClass::BadFraming,
        ),
        (
            "server error",
            script(|now, _, _| vec![reply(now, b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")]),
            FailureClass::Status,
        ),
    ];
    for (name, server, class) in cases {
        let run = execute(count_only(1, 3), server, 1);
        assert_eq!(classes(&run), [(class, 3)], "{name}");
        assert_eq!(run.measurement.total.counts.failed, 3, "{name}");
    }
}

/// A histogram per name, of the measured phase alone, from heads and trailers, including failed
/// calls.
#[test]
fn server_timings_are_counted() {
    let mut number = 0;
    let server = script(move |now, _, _| {
        number += 1;
        let status = if number % 4 == 0 { 500 } else { 200 };
        let text = format!(
            "HTTP/1.1 103 Hints\r\nServer-Timing: hint;dur=1\r\n\r\n\
             HTTP/1.1 {status} S\r\nServer-Timing: app;dur={number}, cache;desc=\"hit\", bad;dur=x\r\n\
             Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nServer-Timing: db;dur=0.5\r\n\r\n"
        );
        vec![(now + Nanos::from_millis(100), Action::Bytes(text.into_bytes()))]
    });
    let mut plan = count_only(2, 40);
    plan.stop.warm_up = Nanos::SECOND;
    let total = execute(plan, server, 1).measurement.total;
    assert_eq!((total.counts.due, total.counts.failed), (40, 10));
    let named: Vec<_> = total.server_timings.named().collect();
    let counts: Vec<_> = named.iter().map(|(name, hist)| (*name, hist.count())).collect();
    assert_eq!(counts, [("app", 40), ("db", 40)]);
    // 20 calls of two users fell into the second of the warm-up
    let app = named[0].1;
    let near = |time: Nanos, ms: f64| (time.as_millis_f64() / ms - 1.0).abs() < 1e-3;
    assert!(near(app.min(), 21.0) && near(app.max(), 60.0), "{:?}", app.summary());
    assert!(near(named[1].1.quantile(0.5), 0.5));
    assert_eq!(total.server_timings.malformed(), 40);
    assert!(total.server_timings.other().is_empty());
}

#[test]
fn an_unsolicited_response_is_reported() {
    let length = Rc::new(Cell::new(0));
    let hears = length.clone();
    let twice = script(move |now, _, bytes| {
        hears.set(hears.get() + bytes.len() as u64);
        vec![reply(now, &[RESPONSE, RESPONSE].concat())]
    });
    let run = execute(count_only(1, 4), twice, 1);
    let total = &run.measurement.total;
    assert_eq!(total.counts.succeeded, 4);
    assert_eq!(total.failures.get(&FailureClass::Unasked), Some(&4));
    // the next request was rendered for the connection that ends this way, and is sent on another
    assert_eq!(total.bytes_sent, length.get());
}

/// Two responses arrive together, and the second announces the end: the next request of the first
/// one's user, already rendered, is sent only on another connection. The same applies to the rest
/// of a request that is answered before it is complete.
#[test]
fn a_request_cut_off_by_an_announced_close_is_not_sent() {
    let length = Rc::new(Cell::new(0));
    let hears = length.clone();
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let server = script(move |now, _, bytes| {
        hears.set(hears.get() + bytes.len() as u64);
        vec![reply(now, &[RESPONSE, closing].concat())]
    });
    let mut plan = count_only(1, 9);
    plan.connection.pipeline = 2;
    let total = execute(plan, server, 1).measurement.total;
    assert_eq!(total.bytes_sent, length.replace(0));
    assert!(total.counts.succeeded >= 8, "{:?}", total.counts);

    let hears = length.clone();
    let server = script(move |now, _, bytes| {
        hears.set(hears.get() + bytes.len() as u64);
        let begins = bytes.starts_with(b"POST");
        if begins { vec![reply(now, closing)] } else { Vec::new() }
    });
    let mut plan = count_only(1, 3);
    plan.request.method = "POST".into();
    plan.request.body = Some(vec![b'x'; 4_000]);
    let mut world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
    world.limit_intake(500, Nanos::from_millis(400));
    let total = execute_with(plan, world, 1, None).measurement.total;
    assert_eq!((total.counts.succeeded, total.bytes_sent), (3, 3 * 500));
    assert_eq!(length.get(), 3 * 500);
}

/// Half a response counts each of its bytes once, however its call ends.
#[test]
fn bytes_of_a_truncated_response_count() {
    let half = &RESPONSE[..RESPONSE.len() - 3];
    let run = |end: Option<Action>, stop_after, pipeline| {
        let come = Rc::new(Cell::new(0));
        let sends = come.clone();
        let mut answered = BTreeSet::new();
        let server = script(move |now, client, _| {
            if !answered.insert(client) {
                return Vec::new();
            }
            sends.set(sends.get() + half.len() as u64);
            let end = end.clone().map(|end| (now + Nanos::from_millis(5), end));
            [reply(now, half)].into_iter().chain(end).collect()
        });
        let mut plan = count_only(1, 4);
        plan.timeouts.call = Nanos::from_secs(2);
        plan.connection.pipeline = pipeline;
        let world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
        let total = execute_with(plan, world, 1, stop_after).measurement.total;
        (total.bytes_received, total.body_bytes, come.get(), total.counts)
    };
    let ends = [(Some(Action::End), None), (Some(Action::Reset), None), (None, None)];
    for (end, stop_after) in ends.into_iter().chain([(None, Some(Nanos::SECOND))]) {
        for pipeline in [1, 2] {
            let (received, body, come, counts) = run(end.clone(), stop_after, pipeline);
            assert_eq!(
                (received, counts.succeeded),
                (come, 0),
                "{end:?} {stop_after:?}: {counts:?}"
            );
            assert_eq!(body * half.len() as u64, come * 2, "two bytes of content in each");
        }
    }
}

/// A call abandoned on request counts as sent as far as the socket accepted it.
#[test]
fn an_abandoned_call_counts_its_sent_bytes() {
    let mut plan = count_only(1, 3);
    plan.request.method = "POST".into();
    plan.request.body = Some(vec![b'x'; 4_000]);
    let server = script(|_, _, _| Vec::new());
    let mut world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
    world.limit_intake(500, Nanos::from_millis(400));
    let run = execute_with(plan, world, 1, Some(Nanos::SECOND));
    let total = &run.measurement.total;
    assert_eq!((total.counts.abandoned, total.bytes_sent), (1, 1_500));
}

#[test]
fn close_delimited_and_chunked_responses_are_whole() {
    let bodies: [&[u8]; 2] = [
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: 1\r\n\r\n",
    ];
    for body in bodies {
        let server = script(move |now, _, _| {
            let close = (now + Nanos::from_millis(2), Action::End);
            let mut acts = vec![reply(now, body)];
            acts.extend(body.starts_with(b"HTTP/1.0").then_some(close));
            acts
        });
        let run = execute(count_only(1, 5), server, 1);
        assert_eq!(run.measurement.total.counts.succeeded, 5);
        assert_eq!(run.measurement.total.body_bytes, 25);
    }
}

/// A response that arrives in two pieces, cut anywhere, is the same response.
#[test]
fn a_cut_anywhere_changes_nothing() {
    for cut in 1..RESPONSE.len() {
        let server = script(move |now, _, _| {
            let later = now + Nanos::from_millis(3);
            vec![reply(now, &RESPONSE[..cut]), (later, Action::Bytes(RESPONSE[cut..].to_vec()))]
        });
        let run = execute(count_only(1, 2), server, 1);
        let total = &run.measurement.total;
        assert_eq!(total.counts.succeeded, 2, "cut at {cut}");
        assert_eq!(total.bytes_received, 2 * RESPONSE.len() as u64);
        assert_eq!(total.first_byte.count(), 2);
    }
}

#[test]
fn pipelined_calls_share_a_connection_and_keep_their_order() {
    let mut plan = count_only(2, 320);
    plan.connection.pipeline = 16;
    let run = execute(plan, quick(), 1);
    assert_eq!(run.measurement.total.counts.succeeded, 320);
    assert_eq!(run.measurement.connections_peak, 2);
    assert_eq!(run.measurement.total.flight_peak, 32);
}

/// WebMark's group B: ten calls per connection in two groups of five; the second group is sent when
/// the first is answered.
#[test]
fn groups_go_out_together_and_wait_for_each_other() {
    let mut plan = count_only(1, 20);
    plan.connection.group = Some(5);
    plan.connection.calls = Some(10);
    let run = execute(plan, quick(), 1);
    let total = &run.measurement.total;
    assert_eq!(total.counts.succeeded, 20);
    assert_eq!(total.connections.established, 2);
    assert_eq!(total.flight_peak, 5);
    let mut sent: Vec<_> = run.calls.iter().map(|(sample, _)| sample.issued).collect();
    sent.dedup();
    assert_eq!(sent.len(), 4, "four groups: {sent:?}");
}

#[test]
fn calls_per_connection_open_new_ones() {
    let mut plan = count_only(1, 9);
    plan.connection.calls = Some(3);
    let run = execute(plan, quick(), 1);
    assert_eq!(run.measurement.total.connections.established, 3);
    assert_eq!(run.measurement.total.counts.succeeded, 9);
}

/// A server that ends the connection after a response strands the queued calls: they are put on
/// another connection and none is lost.
#[test]
fn stranded_calls_are_answered_elsewhere() {
    let mut plan = count_only(1, 30);
    plan.connection.pipeline = 3;
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let server = script(move |now, _, _| {
        vec![reply(now, closing), (now + Nanos::from_millis(1), Action::End)]
    });
    let run = execute(plan, server, 1);
    assert_eq!(run.measurement.total.counts.succeeded, 30);
    assert_eq!(run.measurement.total.connections.established, 30);
}

#[test]
fn sessions_run_their_calls_and_end() {
    let mut plan = open(50.0, 4);
    let Load::Open { session, .. } = &mut plan.load else { unreachable!() };
    *session = Some(SessionPlan::new(5, Think::Fixed(Nanos::from_millis(20))));
    let run = execute(plan, quick(), 2);
    let total = &run.measurement.total;
    assert_eq!(total.sessions.started, run.measurement.intended.unwrap());
    assert_eq!(total.sessions.completed, total.sessions.started);
    assert_eq!(total.counts.succeeded, 5 * total.sessions.completed);
    assert_eq!(total.connections.established, total.sessions.started);
}

/// Found by the random command lines of the program's tests: `--think=10000d -d 30ms` never ended.
#[test]
fn think_times_end_with_the_run() {
    let think = Think::Fixed(Nanos::from_secs(1_000_000));
    let mut closed = count_only(5, 1_000);
    closed.load = Load::Closed { users: 5, think, session: None };
    closed.stop.duration = Some(Nanos::from_secs(2));
    let run = execute(closed, quick(), 2);
    assert_eq!(run.measurement.total.counts.succeeded, 5);
    assert!(run.ended_at < Nanos::from_secs(3), "{:?}", run.ended_at);
    let mut sessions = open(10.0, 2);
    let Load::Open { session, .. } = &mut sessions.load else { unreachable!() };
    *session = Some(SessionPlan::new(3, think));
    let limit = Nanos::from_secs(3) + sessions.timeouts.call;
    let run = execute(sessions, quick(), 1);
    assert!(run.measurement.total.counts.succeeded > 0);
    assert!(run.ended_at < limit, "{:?}", run.ended_at);
}

#[test]
fn an_order_to_abandon_leaves_nothing_open() {
    let run = execute_with(
        open(500.0, 60),
        World::new(
            Box::new(Queue::new(1, Service::Fixed(Nanos::from_millis(50)), 1)),
            Nanos::ZERO,
            Nanos::from_secs(7),
        ),
        2,
        Some(Nanos::from_millis(2_345)),
    );
    let counts = run.measurement.total.counts;
    assert!(counts.abandoned > 0);
    assert_eq!((counts.queued, counts.in_flight), (0, 0));
    assert!(run.ended_at < Nanos::from_secs(3));
    assert!(run.measurement.interrupted);
}

#[test]
fn an_immediate_end_abandons_calls_in_flight() {
    let never = || script(|_, _, _| Vec::new());
    let mut plan = count_only(5, 1_000);
    plan.stop.duration = Some(Nanos::from_secs(2));
    let patient = execute(plan.clone(), never(), 2);
    assert_eq!(patient.measurement.total.counts.timed_out, 5);
    plan.stop.at_once = true;
    let hard = execute(plan, never(), 2);
    let counts = hard.measurement.total.counts;
    assert_eq!((counts.due, counts.abandoned), (5, 5));
    assert_eq!(hard.ended_at, Nanos::from_secs(2));
}

#[test]
fn a_raw_request_is_sent_unchanged() {
    let raw = b"GET /x HTTP/1.0\r\nHOST: other\r\n\r\n";
    let mut plan = count_only(1, 3);
    plan.targets[0].raw = Some(raw.to_vec());
    let mut world = World::new(quick(), Nanos::ZERO, Nanos::from_secs(1));
    world.keep_sent = true;
    let run = execute_with(plan, world, 1, None);
    assert_eq!(run.sent, raw.repeat(3));
}

#[test]
fn a_rule_ends_a_bad_run() {
    let mut plan = open(100.0, 60);
    plan.stop.abort_if = Some(plan::AbortRule {
        objective: stats::Objective::parse("failures>50%").unwrap(),
        hold: Nanos::from_secs(3),
        text: "failures>50% for 3s".into(),
    });
    let bad = script(|now, _, _| vec![reply(now, b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")]);
    let run = execute(plan, bad, 1);
    assert_eq!(run.measurement.aborted.as_deref(), Some("failures>50% for 3s"));
    assert!((3..=5).contains(&(run.ended_at.0 / 1_000_000_000)), "{:?}", run.ended_at);
}

/// 400 calls per second, one in `every` of which takes 80 ms instead of 10 ms.
#[test]
fn a_run_ends_as_soon_as_its_objectives_are_decided() {
    let run_at = |rate: f64, seconds: u64, objectives: &str, every: u64| {
        let mut plan = open(rate, seconds);
        plan.measure.slo = stats::parse_objectives(objectives).unwrap();
        plan.stop.until_sure = true;
        let mut calls = 0;
        let server = script(move |now, _, _| {
            calls += 1;
            let took = if calls % every == 0 { 80 } else { 10 };
            vec![reply(now + Nanos::from_millis(took), RESPONSE)]
        });
        let run = execute(plan.clone(), server, 2).measurement;
        (run.window, stats::rulings(&plan.measure.slo, &run))
    };
    let run = |objectives: &str, every: u64| {
        let (window, rulings) = run_at(400.0, 60, objectives, every);
        (window, rulings.iter().map(|one| (one.met, one.undecided)).collect::<Vec<_>>())
    };
    let yes = (true, None);
    // at least five rows, however clear the result is
    let (window, rulings) = run("p99<50ms, failures<1%", 1_000_000);
    assert!(window < Nanos::from_secs(7) && window > Nanos::from_secs(4), "{window:?}");
    assert_eq!(rulings, [yes, yes]);
    let (window, rulings) = run("p99<50ms", 20);
    assert!(window < Nanos::from_secs(7), "{window:?}");
    assert_eq!(rulings, [(false, None)]);
    // one call in a hundred is slow, which is exactly the bound
    let (window, rulings) = run("p99<50ms, p50<50ms", 100);
    assert_eq!(window, Nanos::from_secs(60));
    assert!(!rulings[0].0 && rulings[0].1.is_some(), "{rulings:?}");
    assert_eq!(rulings[1], yes);
    // none is slow: met, but not certain enough to end the run
    let (window, rulings) = run_at(40.0, 10, "p99<50ms", 1_000_000);
    assert_eq!(window, Nanos::from_secs(10));
    assert!(rulings[0].met && rulings[0].unsure.is_some(), "{rulings:?}");
}

/// Warm-up calls are in no figure, and no calls are due after the window: neither makes the server
/// look slow.
#[test]
fn a_rule_judges_only_rows_of_the_window() {
    let (seconds, start) = (Nanos::from_secs, Nanos::from_secs(1_000));
    let aborted = |rule: &str, warm_up, hangs: Nanos| {
        let mut plan = open(100.0, 4);
        plan.stop.warm_up = warm_up;
        plan.timeouts.call = seconds(10);
        plan.stop.abort_if = Some(plan::AbortRule {
            objective: stats::Objective::parse(rule).unwrap(),
            hold: seconds(2),
            text: rule.into(),
        });
        let server = script(move |now, _, _| match now < start + hangs {
            true => vec![reply(now, RESPONSE)],
            false => Vec::new(),
        });
        let run = execute(plan, server, 2);
        (run.measurement.aborted, run.ended_at)
    };
    let slow = "throughput<50/s";
    assert_eq!(aborted(slow, seconds(3), seconds(60)).0, None, "a warm-up");
    let (tail, ended) = aborted(slow, Nanos::ZERO, Nanos::from_millis(3_900));
    assert_eq!(tail, None, "what hangs after the end");
    assert!(ended > seconds(10), "it was waited for: {ended:?}");
    // from the end of the warm-up on, and no earlier
    let (bad, ended) = aborted("throughput>50/s", seconds(3), seconds(60));
    assert_eq!(bad.as_deref(), Some("throughput>50/s"));
    assert!(ended >= seconds(5) && ended < seconds(6), "{ended:?}");
}

/// Returns one of the behaviors of a random server for one request.
fn random_actions(kind: u64, now: Nanos) -> Vec<(Nanos, Action)> {
    let at = |ms: u64| now + Nanos::from_millis(ms);
    match kind % 11 {
        0..=4 => vec![(at(kind % 40), Action::Bytes(RESPONSE.to_vec()))],
        5 => vec![(at(1), Action::End)],
        6 => vec![(at(2), Action::Reset)],
        7 => vec![(at(1), Action::Bytes(RESPONSE[..20].to_vec())), (at(9), Action::End)],
        8 => Vec::new(),
        9 => vec![(at(1), Action::Bytes(b"nonsense".to_vec()))],
        _ => vec![(at(3), Action::Bytes([RESPONSE, RESPONSE].concat()))],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Law 2 under a server with random behavior: the collector asserts each snapshot's counts, and
    /// at the end no call is queued or in flight.
    #[test]
    fn calls_are_conserved_for_any_server(
        seed in any::<u64>(),
        workers in 1u32..4,
        pipeline in 1u32..5,
        calls in prop::option::of(1u32..6),
        limited in any::<bool>(),
        closed in any::<bool>(),
    ) {
        let mut plan = open(300.0, 2);
        plan.timeouts.call = Nanos::from_millis(400);
        plan.connection.pipeline = pipeline;
        plan.connection.calls = calls;
        if closed {
            plan.load = Load::Closed { users: 7, think: Think::Exponential(Nanos::from_millis(5)), session: None };
        } else if let (true, Load::Open { connections_max, queue_max, .. }) = (limited, &mut plan.load) {
            (*connections_max, *queue_max) = (Some(4), Some(10));
        }
        let mut random = units::Seed(seed).stream(units::Purpose::Simulation, 1);
        let server = script(move |now, _, _| random_actions(random.next_u64(), now));
        let mut world = World::new(server, Nanos(seed % 1_000_000), Nanos::from_secs(50));
        world.limit_writes(17 + (seed % 90) as usize);
        let run = execute_with(plan, world, workers, None);
        let counts = run.measurement.total.counts;
        prop_assert!(counts.conserved().is_ok());
        prop_assert_eq!((counts.queued, counts.in_flight, counts.abandoned), (0, 0, 0));
        let by_call = |outcome| run.calls.iter().filter(|(_, one)| *one == outcome).count() as u64;
        prop_assert_eq!(by_call(Outcome::Succeeded), counts.succeeded);
        prop_assert_eq!(by_call(Outcome::Failed), counts.failed);
        prop_assert_eq!(by_call(Outcome::TimedOut), counts.timed_out);
        for (sample, _) in &run.calls {
            prop_assert!(sample.intended <= sample.done);
        }
    }
}
