//! Bodies that are compared with those of their targets, in virtual time: a server that mixes up
//! its responses is found, and a correct one has no finding.

use plan::{HttpVersion, Load, Plan, TargetPlan, Think, Verify};
use sample::FailureClass;
use sim::http2::Streams;
use sim::{Action, Admission, Client, ClosureServer, Queue, Server, Service, execute, plan_for};
use stats::{Measurement, WRONG_BODIES_MAX};
use units::Nanos;

/// Returns a plan of three pages, all bodies of which are compared with the first.
fn three_pages(users: u32, calls: u64) -> Plan {
    let mut plan = plan_for("http://sim.example/0");
    let page = |n: u32| url::Url::parse(&format!("http://sim.example/{n}")).expect("it is a URL");
    plan.targets = (0..3).map(|n| TargetPlan::new(page(n))).collect();
    plan.load = Load::Closed { users, think: Think::None, session: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(calls));
    plan.expect.verify = Some(Verify::First);
    plan
}

fn one_page(users: u32, calls: u64) -> Plan {
    let mut plan = three_pages(users, calls);
    plan.targets.truncate(1);
    plan
}

/// Answers each request with the status and the body that `say` returns for the number of the
/// request and its page; the body arrives in two pieces.
fn pages(mut say: impl FnMut(u64, u8) -> (u16, Vec<u8>) + 'static) -> Box<dyn Server> {
    let mut seen = 0;
    let react = move |now: Nanos, _: Client, bytes: &[u8]| {
        let at = bytes.iter().position(|byte| *byte == b'/').expect("a request has a path");
        let (status, body) = say(seen, bytes[at + 1] - b'0');
        seen += 1;
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\n\r\n");
        let (first, rest) = body.split_at(body.len() / 2);
        let at = now + Nanos::from_millis(1);
        let more = at + Nanos::from_millis(u64::from(length > 1_000));
        vec![
            (at, Action::Bytes([head.as_bytes(), first].concat())),
            (more, Action::Bytes(rest.to_vec())),
        ]
    };
    Box::new(ClosureServer { admit: Admission::Accept, react })
}

fn page(number: u8) -> Vec<u8> {
    format!("this is page {number} ").into_bytes().repeat(1 + 200 * usize::from(number))
}

fn failures(measured: &Measurement) -> Vec<(&'static str, u64)> {
    measured.total.failures.iter().map(|(class, count)| (class.id(), *count)).collect()
}

#[test]
fn a_server_that_mixes_its_responses_is_found_out() {
    for workers in [1, 3] {
        // every fiftieth response is that of the next page
        let server =
            pages(|n, asked| (200, page(if n % 50 == 49 { (asked + 1) % 3 } else { asked })));
        let measured = execute(three_pages(6, 1_000), server, workers).measurement;
        assert_eq!(failures(&measured), [("other-target", 20)], "{workers} workers");
        assert_eq!(measured.total.counts.succeeded, 980);
        let verified = &measured.total.verified;
        assert_eq!((verified.compared, verified.wrong.len()), (1_000, WRONG_BODIES_MAX));
        for wrong in &verified.wrong {
            assert_eq!(wrong.of, Some((wrong.target + 1) % 3), "{wrong:?}");
            assert_ne!(wrong.expected, wrong.got);
        }
    }
}

#[test]
fn an_unknown_body_differs() {
    let server = pages(|n, asked| match n {
        // the same length with another letter; then shorter
        100 => {
            (200, page(asked).iter().map(|byte| if *byte == b'p' { b'P' } else { *byte }).collect())
        }
        200 => (200, page(asked)[1..].to_vec()),
        _ => (200, page(asked)),
    });
    let measured = execute(three_pages(6, 1_000), server, 2).measurement;
    assert_eq!(failures(&measured), [("differs", 2)]);
    let lengths: Vec<_> = measured
        .total
        .verified
        .wrong
        .iter()
        .map(|wrong| (wrong.expected.length, wrong.got.length))
        .collect();
    assert_eq!(lengths[0].0, lengths[0].1);
    assert_eq!(lengths[1].0, lengths[1].1.map(|length| length + 1));
}

#[test]
fn correct_bodies_cause_no_finding() {
    // a redirect, an error page and an empty response are not bodies of the target
    let server = pages(|n, asked| match n {
        0 => (500, b"an error".to_vec()),
        1 => (204, Vec::new()),
        n if n % 10 == 0 => (503, b"another error".to_vec()),
        _ => (200, page(asked)),
    });
    let measured = execute(three_pages(6, 600), server, 3).measurement;
    assert_eq!(failures(&measured), [("status", 60)]);
    assert_eq!(measured.total.verified.compared, 539);
    assert_eq!(measured.total.verified.wrong, []);
}

/// Workers share learned bodies: two servers with one name differ.
#[test]
fn the_first_response_counts_for_all_workers() {
    let bodies = |client: Client| if client.worker == 0 { "one" } else { "other" };
    let react = move |now: Nanos, client: Client, _: &[u8]| {
        let body = bodies(client);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        vec![(now + Nanos::from_millis(1), Action::Bytes(head.into_bytes()))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let measured = execute(one_page(2, 100), server, 2).measurement;
    assert_eq!(failures(&measured), [("differs", 50)]);
}

#[test]
fn streams_are_compared_too() {
    let queue = || Queue::new(4, Service::Fixed(Nanos::from_millis(1)), 1);
    let plan = || {
        let mut plan = one_page(8, 400);
        plan.request.version = HttpVersion::Http2;
        plan.connection.pipeline = 8;
        plan
    };
    let right = execute(plan(), Box::new(Streams::new(queue())), 1).measurement;
    assert_eq!((failures(&right), right.total.verified.compared), (vec![], 400));
    let bodies: fn(u64) -> &'static [u8] = |n| if n % 40 == 39 { b"HELLO" } else { b"hello" };
    let server = Streams::new(queue()).with_bodies(bodies);
    let wrong = execute(plan(), Box::new(server), 1).measurement;
    assert_eq!(wrong.total.failures.get(&FailureClass::Differs), Some(&10));
}

#[test]
fn bodies_are_compared_only_on_request() {
    let mut plan = one_page(4, 100);
    plan.expect.verify = None;
    let server = pages(|n, _| (200, page((n % 3) as u8)));
    let measured = execute(plan, server, 1).measurement;
    assert_eq!((failures(&measured), measured.total.verified.compared), (vec![], 0));
}

/// A truncated body is shown like any failed response: its head and first bytes.
#[test]
fn a_truncated_response_is_a_sample() {
    let mut plan = plan_for("http://sim.example/0");
    plan.load = Load::Closed { users: 1, think: Think::None, session: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(50));
    let mut seen = 0;
    let react = move |now: Nanos, _: Client, _: &[u8]| {
        seen += 1;
        let head = b"HTTP/1.1 200 Yes\r\nContent-Length: 10\r\n\r\n".to_vec();
        let at = now + Nanos::from_millis(1);
        match seen {
            7 => vec![(at, Action::Bytes([&head[..], b"half"].concat())), (at, Action::End)],
            _ => vec![(at, Action::Bytes([&head[..], b"0123456789"].concat()))],
        }
    };
    let measured =
        execute(plan, Box::new(ClosureServer { admit: Admission::Accept, react }), 1).measurement;
    let kinds = &measured.total.failed_responses.kinds;
    let [((class, status), kept)] = &kinds.iter().collect::<Vec<_>>()[..] else {
        panic!("{kinds:?}")
    };
    assert_eq!((*class, *status, kept.len()), (FailureClass::Truncated, 200, 1));
    assert!(kept[0].start.ends_with(b"\r\n\r\nhalf"), "{:?}", kept[0].start);
    assert_eq!(kept[0].length, 4);
}

/// Each target's mean times over the run, for the small chart in the table of URLs.
#[test]
fn each_targets_times_are_known_over_time() {
    let mut plan = three_pages(3, 1);
    plan.expect.verify = None;
    (plan.stop.duration, plan.stop.requests) = (Some(Nanos::from_secs(6)), None);
    let react = |now: Nanos, _: Client, request: &[u8]| {
        // page 1 becomes slower in the second half; the clock begins at 1,000 s
        let slow = request.starts_with(b"GET /1") && now > Nanos::from_secs(1_003);
        let at = now + Nanos::from_millis(if slow { 40 } else { 10 });
        vec![(at, Action::Bytes(b"HTTP/1.1 200 Yes\r\nContent-Length: 0\r\n\r\n".to_vec()))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let measured = execute(plan, server, 2).measurement;
    let means = |target: usize| {
        let means = measured.slices.means(target).into_iter();
        means.map(|mean| mean.map_or(0, |it| (it.0 + 500_000) / 1_000_000)).collect::<Vec<u64>>()
    };
    assert_eq!(means(0), [10; 6]);
    let slow = means(1);
    assert_eq!((&slow[..3], &slow[4..]), (&[10; 3][..], &[40; 2][..]), "{slow:?}");
    assert_eq!(means(3), [0; 6]);
}
