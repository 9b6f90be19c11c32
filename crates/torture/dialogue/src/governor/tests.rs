use super::*;
use crate::replies::Replies;

const MIB: u64 = 1 << 20;

/// Returns limits similar to those for public, private and local targets.
fn narrow() -> Bounds {
    Bounds {
        connections_max: 32,
        opens_max: 5,
        requests_max: Some(10),
        bytes_max: Some(256 << 10),
        message_max: MIB,
        case_max: Nanos::from_secs(75),
        run_max: Some(Nanos::from_secs(1_800)),
        lost_max: Some(ms(2_500)),
    }
}

fn medium() -> Bounds {
    Bounds {
        connections_max: 128,
        opens_max: 50,
        requests_max: Some(100),
        bytes_max: Some(2 * MIB),
        message_max: 4 * MIB,
        case_max: Nanos::from_secs(120),
        run_max: Some(Nanos::from_secs(3_600)),
        lost_max: Some(Nanos::from_secs(15)),
    }
}

fn wide() -> Bounds {
    Bounds {
        connections_max: 256,
        opens_max: 200,
        requests_max: Some(500),
        bytes_max: Some(8 * MIB),
        message_max: 16 * MIB,
        case_max: Nanos::from_secs(180),
        run_max: None,
        lost_max: None,
    }
}

fn governor(bounds: Bounds) -> Governor {
    Governor::new(bounds, Vec::new(), false)
}

fn peer() -> Peer {
    Peer::Tcp("203.0.113.1:80".parse().unwrap())
}

const fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

fn talk(head: &str, end: TalkEnd, at: Nanos) -> Talk {
    let mut replies = Replies::new(&["GET".to_owned()]);
    replies.take(head.as_bytes());
    Talk {
        start: Nanos::ZERO,
        connected: None,
        over: at,
        end,
        replies,
        steps: Vec::new(),
        before_follow_up: None,
        sent: 0,
        received: 0,
        raw: Vec::new(),
        events: Vec::new(),
        all_sent: true,
    }
}

#[test]
fn new_connections_respect_the_rate_and_probe_reserve() {
    let mut one = governor(narrow());
    for _ in 0..3 {
        assert_eq!(one.admit(ms(100), &peer(), false), Admission::Now);
    }
    assert_eq!(one.admit(ms(600), &peer(), false), Admission::At(ms(1_100)));
    for _ in 0..2 {
        assert_eq!(one.admit(ms(600), &peer(), true), Admission::Now);
    }
    assert_eq!(one.admit(ms(600), &peer(), true), Admission::At(ms(1_100)));
    assert_eq!(one.admit(ms(1_100), &peer(), false), Admission::Now);
}

#[test]
fn preparatory_connections_count_too() {
    let mut one = governor(narrow());
    let early = |one: &mut Governor, at| one.admit_after(ms(at), &peer(), false, 1);
    assert_eq!(early(&mut one, 100), Admission::Now);
    assert_eq!(one.admit(ms(200), &peer(), false), Admission::Now);
    assert_eq!(one.admit(ms(300), &peer(), false), Admission::At(ms(1_100)));
    assert_eq!(early(&mut one, 1_100), Admission::Now);
    assert_eq!(early(&mut one, 1_150), Admission::At(ms(2_100)));
    assert_eq!(one.spent().connections, 5);
}

#[test]
fn open_connections_are_counted_until_they_are_closed() {
    let mut one = governor(Bounds { connections_max: 8, ..wide() });
    for _ in 0..4 {
        assert_eq!(one.admit(ms(1), &peer(), false), Admission::Now);
    }
    assert_eq!(one.admit(ms(1), &peer(), false), Admission::At(ms(11)));
    assert_eq!(one.admit(ms(1), &peer(), true), Admission::Now);
    one.closed();
    one.closed();
    assert_eq!(one.admit(ms(1), &peer(), false), Admission::Now);
    assert_eq!((one.open(), one.spent().connections), (4, 6));
}

#[test]
fn bytes_and_requests_wait_for_the_limit() {
    let mut one = governor(Bounds { requests_max: Some(2), bytes_max: Some(1_000), ..medium() });
    assert_eq!(one.request(ms(0), false), Ok(()));
    assert_eq!(one.request(ms(10), false), Ok(()));
    assert_eq!(one.request(ms(20), false), Err(ms(1_000)));
    assert_eq!(one.request(ms(20), true), Ok(()), "probes are not counted");
    assert_eq!(one.grant(ms(0), 5_000, false), Ok(750), "a quarter is kept for probes");
    one.sent(ms(0), 750);
    assert_eq!(one.grant(ms(1), 5_000, false), Err(ms(1_000)));
    assert_eq!(one.grant(ms(1), 100, true), Ok(100));
    assert_eq!(one.grant(ms(1_000), 5_000, false), Ok(750));
}

#[test]
fn only_the_pinned_addresses_are_reached() {
    let pinned = vec!["203.0.113.1:80".parse().unwrap()];
    let mut one = Governor::new(narrow(), pinned, false);
    assert_eq!(one.admit(ms(0), &peer(), false), Admission::Now);
    let other = Peer::Tcp("203.0.113.2:80".parse().unwrap());
    assert_eq!(one.admit(ms(0), &other, false), Admission::Never);
    let why = one.stopped().unwrap();
    assert_eq!(why.id(), "permission");
    assert!(why.why().contains("203.0.113.2:80 was requested without permission"), "{why:?}");
    assert_eq!(one.admit(ms(0), &peer(), true), Admission::Never, "nothing goes out after a stop");
}

#[test]
fn the_target_can_stop_the_run() {
    for (head, id) in [
        ("HTTP/1.1 200 OK\r\nLoadstone-Torture: Stop\r\nContent-Length: 0\r\n\r\n", Some("wish")),
        ("HTTP/1.1 429 No\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n", Some("wish")),
        ("HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n", None),
        ("HTTP/1.1 503 No\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n", None),
        ("HTTP/1.1 200 OK\r\nLoadstone-Torture: go on\r\nContent-Length: 0\r\n\r\n", None),
    ] {
        let mut one = governor(wide());
        one.heard(&talk(head, TalkEnd::Open, ms(3)));
        assert_eq!(one.stopped().map(Stop::id), id, "{head}");
    }
}

#[test]
fn lost_probes_stop_a_public_run_within_three_seconds() {
    let right = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let mut one = governor(narrow());
    one.admit(ms(0), &peer(), true);
    one.heard(&talk("", TalkEnd::Silent, ms(2_000)));
    one.heard(&talk(right, TalkEnd::Open, ms(2_100)));
    one.look(ms(10_000));
    assert_eq!(one.stopped(), None, "one that is answered again is no window");
    one.heard(&talk("", TalkEnd::Silent, ms(12_000)));
    one.heard(&talk("", TalkEnd::Closed, ms(13_000)));
    assert_eq!(one.due(), Some(ms(14_500)));
    one.look(ms(14_499));
    assert_eq!(one.stopped(), None);
    one.look(ms(14_500));
    assert_eq!(one.stopped(), Some(&Stop::Bound("no probe got a response for 2.50 s".into())));
}

#[test]
fn a_run_ends_at_its_time_limit() {
    let mut one = governor(Bounds { run_max: Some(ms(5_000)), ..wide() });
    one.look(ms(9_000));
    assert_eq!(one.stopped(), None, "it begins with its first connection");
    one.admit(ms(10_000), &peer(), false);
    one.look(ms(14_999));
    assert_eq!((one.stopped(), one.due()), (None, Some(ms(15_000))));
    one.look(ms(15_000));
    assert!(one.stopped().unwrap().why().contains("time limit of a run, 5.00 s, was reached"));
}

#[test]
fn third_party_machines_in_front_bar_stress_cases() {
    let mut one = governor(narrow());
    one.bar_if_third_party(vec!["W-01".into()]);
    let plain = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    one.heard(&talk(plain, TalkEnd::Open, ms(3)));
    assert_eq!(one.why_forbidden("W-01"), None);
    let fronted = "HTTP/1.1 200 OK\r\nCF-Ray: 8\r\nContent-Length: 0\r\n\r\n";
    one.heard(&talk(fronted, TalkEnd::Open, ms(3)));
    assert!(one.why_forbidden("W-01").unwrap().starts_with("Cloudflare responds in front"));
    assert_eq!(one.why_forbidden("F-01"), None);
}

#[test]
fn a_run_stops_if_the_server_becomes_unreachable() {
    let right = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let refused = talk("", TalkEnd::Unconnected(FailureClass::Refused), ms(1));
    for end in [TalkEnd::Unconnected, TalkEnd::Broken].map(|end| end(FailureClass::Unreachable)) {
        let mut one = governor(medium());
        // the server was never reached: reported elsewhere
        one.heard(&talk("", end, ms(1)));
        assert_eq!(one.stopped(), None);
        one.heard(&talk(right, TalkEnd::Open, ms(2)));
        one.heard(&refused);
        assert_eq!(one.stopped(), None, "it is there, and refuses");
        one.heard(&talk("", end, ms(3)));
        assert_eq!(one.stopped().map(Stop::id), Some("bound"));
        assert!(
            one.stopped().unwrap().why().contains("this machine can no longer reach the server")
        );
        assert_eq!(one.admit(ms(4), &peer(), true), Admission::Never);
    }
}

#[test]
fn a_request_sent_a_moment_after_its_grant_counts_once() {
    let bounds = Bounds { requests_max: Some(3), ..wide() };
    let mut one = governor(bounds);
    let us = Nanos::from_micros;
    assert_eq!(one.request(us(10), false), Ok(()));
    assert_eq!(one.renew(us(10), us(40), 1, false), Ok(()));
    assert_eq!(one.request(us(50), false), Ok(()));
    // too late to be the same: it counts again
    assert_eq!(one.renew(us(50), us(1_010), 1, false), Ok(()));
    assert_eq!(one.request(us(1_020), false), Err(us(1_000_050)));
    // a moved entry expires relative to its new instant
    assert_eq!(one.request(us(1_000_049), false), Err(us(1_000_050)));
    assert_eq!(one.request(us(1_000_050), false), Ok(()));
}

#[test]
fn a_case_gets_its_requested_time() {
    let mut one = governor(wide());
    one.begin_case();
    one.lengthen_case(Nanos::from_secs(3_600));
    assert_eq!(one.admit(ms(5), &peer(), false), Admission::Now);
    assert_eq!(one.case_ends(), Some(ms(5) + Nanos::from_secs(3_600)));
    one.end_case();
    one.begin_case();
    assert_eq!(one.admit(ms(6), &peer(), false), Admission::Now);
    assert_eq!(one.case_ends(), Some(ms(6) + Nanos::from_secs(180)));
}

#[test]
fn a_case_is_limited_by_its_own_time_or_by_that_of_all_cases() {
    let (at, opened) = (Nanos::from_secs, ms(500));
    for (lengthened, all, limit) in [
        (Nanos::ZERO, None, Some(at(180))),
        (at(600), None, Some(at(600))),
        (Nanos::ZERO, Some(at(100)), None),
        (Nanos::ZERO, Some(at(300)), Some(at(180))),
    ] {
        let mut one = governor(wide());
        all.into_iter().for_each(|all| one.end_cases_at(all));
        one.begin_case();
        one.lengthen_case(lengthened);
        assert_eq!(one.admit(opened, &peer(), false), Admission::Now);
        assert_eq!(one.case_limit(), limit);
    }
}
