//! The firing range in virtual time: timeouts, slots, crashes.

use super::*;

const SECOND: Nanos = Nanos::SECOND;

/// The firing range, and its actions: seconds since the start, connection, action.
struct Harness {
    range: FaultyServer,
    seen: Vec<(f64, u64, String)>,
    now: Nanos,
}

const START: Nanos = Nanos::from_secs(100);

impl Harness {
    fn new(defects: &[Defect]) -> Harness {
        let defects: Defects = defects.iter().copied().collect();
        Harness { range: FaultyServer::new(&defects), seen: Vec::new(), now: START }
    }

    fn connect(&mut self, id: u64) -> Entry {
        self.range.connect(self.now, id)
    }

    fn say(&mut self, id: u64, text: &str) {
        self.range.receive(self.now, id, text.as_bytes());
        self.until(Nanos::ZERO);
    }

    /// Advances the time.
    fn until(&mut self, span: Nanos) {
        let end = self.now + span;
        while self.range.due() <= end {
            self.now = self.now.max(self.range.due());
            for (id, act) in self.range.acts(self.now) {
                let text = match act {
                    Act::Send(bytes) => {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        text.lines().next().unwrap_or_default().to_owned()
                    }
                    other => format!("{other:?}"),
                };
                self.seen.push(((self.now - START).as_secs_f64(), id, text));
            }
        }
        self.now = end;
    }

    /// Returns the bytes that a connection received, with the time of the last one in seconds.
    fn got(&self, id: u64) -> (f64, String) {
        let own: Vec<_> = self.seen.iter().filter(|(_, owner, _)| *owner == id).collect();
        let texts: Vec<&str> = own.iter().map(|(_, _, text)| text.as_str()).collect();
        (own.last().map_or(-1.0, |(at, ..)| *at), texts.join(", "))
    }
}

const GET: &str = "GET /page HTTP/1.1\r\nHost: h\r\n\r\n";
const POST_HEAD: &str = "POST /post HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n";
const NEVER: (f64, &str) = (-1.0, "");

/// Sends `begin`, then `drip` every 5 s; returns the data received within 200 s.
fn held(defects: &[Defect], begin: &str, drip: &str) -> (f64, String) {
    let mut harness = Harness::new(defects);
    harness.connect(1);
    if !begin.is_empty() {
        harness.say(1, begin);
    }
    for _ in 0..40 {
        harness.until(Nanos::from_secs(5));
        if !drip.is_empty() {
            harness.say(1, drip);
        }
    }
    harness.got(1)
}

#[test]
fn every_wait_has_a_timeout_and_a_switch_to_disable_it() {
    let refused = "HTTP/1.1 408 Request Timeout, Close";
    let head = "GET /page HTTP/1.1\r\n";
    let own = |(at, text): (f64, &str)| (at, text.to_owned());
    for (begin, drip, by_default, switch, lifted) in [
        ("", "", (20.0, "Close"), Defect::WaitsForSilent, NEVER),
        (head, "", (20.0, refused), Defect::WaitsForHeads, NEVER),
        (head, "A: b\r\n", (20.0, refused), Defect::WaitsForHeads, NEVER),
        (head, "", (20.0, refused), Defect::HeadPerRead, (20.0, refused)),
        (head, "A: b\r\n", (20.0, refused), Defect::HeadPerRead, NEVER),
        (POST_HEAD, "x", (20.0, refused), Defect::WaitsForBodies, NEVER),
        (POST_HEAD, "x", (20.0, refused), Defect::BodyPerRead, NEVER),
        (GET, "", (10.0, "HTTP/1.1 200 OK, Close"), Defect::WaitsForIdle, (0.0, "HTTP/1.1 200 OK")),
    ] {
        assert_eq!(held(&[], begin, drip), own(by_default), "{begin:?} {drip:?}");
        assert_eq!(held(&[switch], begin, drip), own(lifted), "{begin:?} {}", switch.id());
    }
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    for (defects, slow, expected) in [
        (vec![], false, (20.0, "GiveUp")),
        (vec![], true, (120.0, "GiveUp")),
        (vec![Defect::WaitsForReaders], false, (0.0, "HTTP/1.1 200 OK")),
        (vec![Defect::TooStrict], true, (1.0, "GiveUp")),
    ] {
        let mut harness = Harness::new(&defects);
        harness.connect(1);
        harness.say(1, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
        harness.range.unsent(harness.now, 1, BIG_LEN as u64);
        for step in 1..=10 {
            harness.until(Nanos::from_secs(10));
            if slow {
                harness.range.unsent(harness.now, 1, (BIG_LEN - step) as u64);
            }
        }
        harness.until(Nanos::from_secs(100));
        let (at, text) = harness.got(1);
        assert!(
            (at - expected.0).abs() < 1e-9 && text.ends_with(expected.1),
            "{defects:?}: {at} {text}"
        );
    }
}

#[test]
fn slots_are_occupied_released_and_leaked() {
    let few = |defects: &[Defect], half: bool| {
        let mut harness = Harness::new(defects);
        for id in 0..POOL as u64 {
            harness.connect(id);
            harness.say(id, if half { "GET /page HT" } else { GET });
        }
        harness.connect(99);
        harness.say(99, GET);
        let at_once = harness.got(99).1;
        harness.until(Nanos::from_secs(60));
        (at_once, harness.got(99))
    };
    let served = "HTTP/1.1 200 OK, Close";
    let (none, ok) = (String::new(), "HTTP/1.1 200 OK".to_owned());
    assert_eq!(few(&[], true).0, ok);
    assert_eq!(few(&[Defect::FewSlots], false), (none.clone(), (20.0, served.into())));
    assert_eq!(few(&[Defect::FewSlots], true), (none.clone(), (30.0, served.into())));
    assert_eq!(few(&[Defect::FewWorkers], false).0, ok, "idle connections cost nothing");
    assert_eq!(few(&[Defect::FewWorkers], true), (none.clone(), (30.0, served.into())));
    let for_ever = few(&[Defect::FewWorkers, Defect::WaitsForHeads], true);
    assert_eq!(for_ever, (none.clone(), (-1.0, none.clone())));
    let shed = "HTTP/1.1 503 Service Unavailable, Close".to_owned();
    assert_eq!(few(&[Defect::Sheds], false).0, shed);
    assert_eq!(few(&[Defect::RecoversSlowly], true).0, none);

    for (defect, reset) in [(Defect::LosesSlotsToResets, true), (Defect::LosesSlotsToCloses, false)]
    {
        let mut harness = Harness::new(&[defect]);
        for id in 0..LEAKY_POOL as u64 {
            harness.connect(id);
            harness.say(id, "GET /page HT");
            harness.range.remove_connection(harness.now, id, !reset);
            harness.connect(id);
            harness.range.remove_connection(harness.now, id, reset);
        }
        harness.connect(99);
        harness.say(99, GET);
        harness.until(Nanos::from_secs(100));
        assert_eq!(harness.got(99).1, "", "{}", defect.id());
    }
}

#[test]
fn a_crash_closes_all_connections_and_is_followed_by_a_restart() {
    let mut harness = Harness::new(&[Defect::CrashesOnThirdNul]);
    for id in 1..=4 {
        harness.connect(id);
        harness.say(id, "GET /page?%00 HTTP/1.1\r\nHost: h\r\n\r\n");
        if id == 3 {
            assert_eq!(harness.connect(9), Entry::Refuse);
            harness.until(RESTART);
        }
    }
    assert_eq!(harness.got(1).1, "HTTP/1.1 200 OK, Reset");
    assert_eq!(harness.got(3).1, "Reset");
    assert_eq!(harness.got(4).1, "HTTP/1.1 200 OK");
}

#[test]
fn work_blocks_clients_and_a_short_queue_drops_attempts() {
    let mut harness = Harness::new(&[Defect::SlowFields]);
    harness.connect(1);
    harness.connect(2);
    harness.say(1, &format!("GET /page HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(99)));
    harness.say(2, GET);
    harness.until(SECOND);
    // 100 fields: 100² × 50 µs
    assert_eq!(harness.got(1), (0.5, "HTTP/1.1 200 OK".into()));
    assert!((harness.got(2).0 - 0.50005).abs() < 1e-9, "{:?}", harness.got(2));

    let mut harness = Harness::new(&[Defect::ShortBacklog]);
    let entries: Vec<Entry> = (0..10).map(|id| harness.connect(id)).collect();
    assert_eq!(entries.iter().filter(|entry| **entry == Entry::Accept).count(), 6);
    (0..10).for_each(|id| harness.say(id, GET));
    harness.until(Nanos::from_secs(2));
    assert_eq!(harness.got(5), (0.05, "HTTP/1.1 200 OK".into()));
    assert_eq!(harness.got(9), (1.0, "HTTP/1.1 200 OK".into()));
}

#[test]
fn limits_are_enforced_and_disabled() {
    let response = |defects: &[Defect], request: &str| {
        let mut harness = Harness::new(defects);
        harness.connect(1);
        harness.say(1, request);
        harness.until(SECOND);
        harness.got(1).1
    };
    let line = |bytes: usize| {
        let pad = "a".repeat(bytes - "GET /page? HTTP/1.1\r\n".len());
        format!("GET /page?{pad} HTTP/1.1\r\nHost: h\r\n\r\n")
    };
    let fields = |count: usize, length: usize| {
        let one = format!("X: {}\r\n", "a".repeat(length - "X: ".len()));
        format!("GET /page HTTP/1.1\r\nHost: h\r\n{}\r\n", one.repeat(count - 1))
    };
    let ok = "HTTP/1.1 200 OK";
    for (request, at_limit, beyond, lifts) in [
        (&line as &dyn Fn(usize) -> String, LINE_MAX, "414", Defect::LineOfAnyLength),
        (&|length| fields(2, length), FIELD_MAX, "431", Defect::FieldOfAnyLength),
        (&|count| fields(count, 10), FIELDS_MAX, "431", Defect::AnyFields),
        (&|length| fields(12, length / 11), HEAD_MAX - 40, "431", Defect::HeadOfAnyLength),
    ] {
        assert_eq!(response(&[], &request(at_limit)), ok);
        let over = request(at_limit + if at_limit == HEAD_MAX - 40 { 200 } else { 1 });
        assert!(response(&[], &over).contains(beyond), "{beyond}");
        assert_eq!(response(&[lifts], &over), ok, "{}", lifts.id());
        assert!(response(&[Defect::FailsAtLimits], &over).contains("500"));
        assert_eq!(response(&[Defect::LosesErrors], &over), "Reset");
        assert_eq!(response(&[Defect::HangsAtLimits], &over), "");
    }
    let post = |field: &str, body: &str| {
        format!("POST /post HTTP/1.1\r\nHost: h\r\n{field}\r\nConnection: close\r\n\r\n{body}")
    };
    let long = BODY_MAX + 1;
    let declared = post(&format!("Content-Length: {long}"), "");
    assert!(response(&[], &declared).contains("413"));
    assert_eq!(
        response(&[Defect::ReadsTooLongBodies], &declared),
        "",
        "the server waits for the body"
    );
    let sent = declared.clone() + &"x".repeat(long as usize);
    assert!(response(&[Defect::ReadsTooLongBodies], &sent).contains("413"));
    assert_eq!(response(&[Defect::BodyOfAnyLength], &sent), "HTTP/1.1 200 OK, Close");
    let chunked = |body: &str| post("Transfer-Encoding: chunked", body);
    let extensions = format!("1;{}\r\nx\r\n", "e".repeat(1_000)).repeat(9) + "0\r\n\r\n";
    let trailers = "0\r\n".to_owned() + &format!("X: {}\r\n", "t".repeat(1_000)).repeat(9) + "\r\n";
    for (body, beyond, lifts) in [
        (extensions, "413", Defect::AnyExtensions),
        (trailers, "431", Defect::AnyTrailers),
        (
            format!("{long:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(long as usize)),
            "413",
            Defect::BodyOfAnyLength,
        ),
    ] {
        assert!(response(&[], &chunked(&body)).contains(beyond), "{}", lifts.id());
        assert_eq!(response(&[lifts], &chunked(&body)), "HTTP/1.1 200 OK, Close");
    }
}

#[test]
fn arbitrary_bytes_and_calls_do_not_panic() {
    let mut state = 7_u64;
    let mut next = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let pieces = [GET, POST_HEAD, "GET /page?%00 HTTP/1.1\r\n", "Host: h\r\n\r\n", "\0\r\n", "xx"];
    for defect in Defect::ALL {
        let mut harness = Harness::new(&[*defect, Defect::FewSlots]);
        for _ in 0..300 {
            let id = next(12);
            match next(9) {
                0 => _ = harness.connect(id),
                1 => harness.range.remove_connection(harness.now, id, next(2) == 0),
                2 => harness.range.half_closed(harness.now, id),
                3 => harness.range.unsent(harness.now, id, next(2)),
                4 => harness.until(Nanos::from_secs(next(12))),
                _ => harness.say(id, pieces[next(pieces.len() as u64) as usize]),
            }
        }
    }
}

/// RFC 9112 sections 3.2.2 and 3.2.4.
#[test]
fn an_absolute_target_needs_no_path() {
    let answer = |target: &str| {
        let mut harness = Harness::new(&[]);
        harness.connect(1);
        harness.say(1, &format!("{target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        harness.got(1).1.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    for (target, status) in [
        ("GET http://h/page", "200"),
        ("GET HTTP://h/page", "200"),
        ("GET http://h/page?to=/x", "200"),
        ("GET http://h", "404"),
        ("GET http://h?to=/page", "404"),
        ("OPTIONS http://h:8001", "200"),
        ("OPTIONS http://h?x", "404"),
        ("GET http://", "400"),
        ("GET http:///page", "400"),
    ] {
        assert_eq!(answer(target), status, "{target}");
    }
}
