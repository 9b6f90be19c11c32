//! Limits, stop signals and permissions in virtual time: the traffic of torture is counted at the
//! server.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use campaign::probes::Probing;
use campaign::{Settings, TestTarget, Unwatched, World as _};
use conduit::{OpenOptions, Peer};
use dialogue::governor::Stop;
use dialogue::governor::{Bounds, Governor};
use dialogue::talk::{Move, TalkEnd, TalkScript};
use dialogue::text::Values;
use faulty::Defects;
use proptest::prelude::*;
use sim::World;
use sim::torture::{Field, FiringRange};
use sim::{Action, Admission, Client, Server};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use torture::catalogue;
use torture::result::RunResult;
use torture::safety::permit::ProofMonitor;
use torture::safety::proof::{Claim, Sources, find};
use torture::safety::{Asked, Class};
use units::Nanos;

const LATENCY: Nanos = Nanos::from_millis(1);
/// 2026-12-01T01:00:00Z.
const START_UNIX_S: i64 = 1_796_086_800;
const PUBLIC: &str = "203.0.113.7:80";

fn address() -> SocketAddr {
    PUBLIC.parse().unwrap()
}

/// The traffic seen by the server, with times.
#[derive(Debug, Default)]
struct Books {
    opened: Vec<Nanos>,
    /// Opened and closed connections, at the times at which the client acted: a FIN arrives with a
    /// delay and a SYN at once.
    changes: Vec<(Nanos, i64)>,
    bytes: Vec<(Nanos, u64)>,
    requests: Vec<Nanos>,
    /// The maximum number of bytes sent on a connection without a response.
    message_most: u64,
    text: String,
}

impl Books {
    /// Returns the maximum number of simultaneous connections.
    fn open_most(&self) -> u64 {
        let mut changes = self.changes.clone();
        changes.sort_unstable();
        let (mut open, mut most) = (0, 0);
        for (_, change) in changes {
            open += change;
            most = most.max(open);
        }
        u64::try_from(most).unwrap()
    }
}

/// Counts the traffic, and responds as configured.
struct Counter {
    books: Rc<RefCell<Books>>,
    received: BTreeMap<Client, Vec<u8>>,
    response: Rc<RefCell<Option<&'static str>>>,
}

/// Counts the requests of a connection by a different rule than the tested one: one for any byte at
/// all, and one for each empty line except the first.
fn requests(bytes: &[u8]) -> usize {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let begun = lines.iter().position(|line| !line.trim_matches(['\r', '\n']).is_empty());
    let empty = |line: &&&str| **line == "\n" || **line == "\r\n";
    let heads = lines[begun.unwrap_or(lines.len())..].iter().filter(empty).count();
    usize::from(!bytes.is_empty()) + heads.saturating_sub(1)
}

impl Server for Counter {
    fn connect(&mut self, now: Nanos, client: Client) -> Admission {
        let mut books = self.books.borrow_mut();
        books.opened.push(now);
        books.changes.push((now, 1));
        self.received.insert(client, Vec::new());
        Admission::Accept
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let Some(received) = self.received.get_mut(&client) else { return Vec::new() };
        let before = requests(received);
        received.extend_from_slice(bytes);
        let mut books = self.books.borrow_mut();
        books.bytes.push((now, bytes.len() as u64));
        for _ in before..requests(received) {
            books.requests.push(now);
        }
        books.message_most = books.message_most.max(received.len() as u64);
        books.text.push_str(&String::from_utf8_lossy(bytes));
        match *self.response.borrow() {
            Some(response) if received.ends_with(b"\r\n\r\n") => {
                vec![(now, Action::Bytes(response.as_bytes().to_vec())), (now, Action::End)]
            }
            _ => Vec::new(),
        }
    }

    fn half_closed(&mut self, _: Nanos, _: Client) -> Vec<(Nanos, Action)> {
        Vec::new()
    }

    fn ended(&mut self, now: Nanos, client: Client) {
        if self.received.remove(&client).is_some() {
            self.books.borrow_mut().changes.push((now - LATENCY, -1));
        }
    }
}

type Answer = Rc<RefCell<Option<&'static str>>>;

fn counted(response: Option<&'static str>) -> (World, Rc<RefCell<Books>>, Answer) {
    let books = Rc::new(RefCell::new(Books::default()));
    let response = Rc::new(RefCell::new(response));
    let server =
        Counter { books: books.clone(), received: BTreeMap::new(), response: response.clone() };
    (World::new(Box::new(server), LATENCY, Nanos::ZERO), books, response)
}

/// Returns the maximum within any second.
fn most(of: &[(Nanos, u64)]) -> u64 {
    let (mut from, mut sum, mut most) = (0, 0, 0);
    for (at, count) in of {
        sum += count;
        while of[from].0 + Nanos::SECOND <= *at {
            sum -= of[from].1;
            from += 1;
        }
        most = most.max(sum);
    }
    most
}

fn ones(of: &[Nanos]) -> Vec<(Nanos, u64)> {
    of.iter().map(|at| (*at, 1)).collect()
}

fn script(start: Nanos, steps: Vec<Move>, probe: bool) -> TalkScript {
    TalkScript {
        peer: Peer::Tcp(address()),
        options: OpenOptions::default(),
        tls_name: None,
        protocol: Default::default(),
        start,
        steps,
        methods: vec!["GET".into()],
        deadline: Nanos::from_secs(20),
        follow_up: None,
        grace: Nanos::ZERO,
        linger: Nanos::ZERO,
        hold: false,
        probe,
    }
}

/// Two SYNs were lost: the connection is established after 3 s, and the response arrives late.
struct Late;

impl Server for Late {
    fn connect(&mut self, _: Nanos, _: Client) -> Admission {
        Admission::AcceptAfter(Nanos::from_secs(3))
    }

    fn receive(&mut self, now: Nanos, _: Client, _: &[u8]) -> Vec<(Nanos, Action)> {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
        vec![(now + Nanos::from_millis(1_500), Action::Bytes(response))]
    }
}

/// A conversation of at most 2 s over a path that loses packets: the handshake does not count as
/// time of the server, and no missing connection is reported.
#[test]
fn a_lossy_path_gets_more_time() {
    let asked = |patience| {
        let mut field =
            Field::new(World::new(Box::new(Late), LATENCY, Nanos::ZERO)).patient(patience);
        let get = Move::Send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec());
        let brief =
            TalkScript { deadline: Nanos::from_secs(2), ..script(Nanos::ZERO, vec![get], false) };
        let talk = field.talk(vec![brief]).remove(0);
        (talk.replies.responses.len(), talk.end)
    };
    let timeout = sample::FailureClass::ConnectTimeout;
    assert_eq!(asked(Nanos::ZERO), (0, TalkEnd::Unconnected(timeout)));
    assert_eq!(asked(Nanos::from_secs(16)), (1, TalkEnd::Open));
    // but an unreachable server is eventually reported
    assert_eq!(asked(Nanos::from_millis(400)), (0, TalkEnd::Unconnected(timeout)));
}

#[test]
fn nothing_is_opened_when_the_time_of_a_case_is_up() {
    let case_max = Some(Nanos::from_secs(2));
    let asked = Asked { connections_max: Some(1), case_max, ..Asked::default() };
    let bounds = asked.bounds(Class::Local, None).unwrap();
    let (world, books, _) = counted(None);
    let mut field = Field::governed(world, Governor::new(bounds, vec![address()], true));
    field.governor().begin_case();
    let silent = |_| script(Nanos::ZERO, vec![], false);
    let talks = field.talk((0..3).map(silent).collect());
    assert!(talks.iter().all(|talk| talk.end == TalkEnd::Bounded));
    assert_eq!(books.borrow().opened.len(), 1);
}

fn any_class() -> impl Strategy<Value = Class> {
    prop_oneof![Just(Class::Local), Just(Class::Private), Just(Class::Public)]
}

prop_compose! {
    /// Returns options below every maximum, including small ones.
    fn any_asked()(
        connections_max in proptest::option::of(1_u64..200),
        opens_max in proptest::option::of(1_u64..100),
        requests_max in proptest::option::of(1_u64..200),
        bytes_max in proptest::option::of(100_u64..1_000_000),
        message_max in proptest::option::of(10_u64..100_000),
        case_max in proptest::option::of(1_u64..60),
    ) -> Asked {
        let case_max = case_max.map(Nanos::from_secs);
        Asked { connections_max, opens_max, requests_max, bytes_max, message_max, case_max, run_max: None }
    }
}

fn any_step() -> impl Strategy<Value = Move> {
    let get = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
    prop_oneof![
        (1_usize..30).prop_map(move |count| Move::Send(get.repeat(count))),
        (1_usize..200_000).prop_map(|len| Move::Send(vec![b'x'; len])),
        proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'a')], 1..60)
            .prop_map(Move::Send),
        (1_u64..3_000).prop_map(|ms| Move::Pause(Nanos::from_millis(ms))),
        Just(Move::HalfClose),
    ]
}

fn any_scripts() -> impl Strategy<Value = Vec<TalkScript>> {
    let one = (0_u64..4_000, proptest::collection::vec(any_step(), 0..6), any::<bool>())
        .prop_map(|(at, steps, probe)| script(Nanos::from_millis(at), steps, probe));
    proptest::collection::vec(one, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn neither_options_nor_scripts_exceed_the_limits(
        class in any_class(), asked in any_asked(), scripts in any_scripts(), responses in any::<bool>()
    ) {
        let bounds = asked.bounds(class, None).unwrap();
        let ceiling = class.ceiling();
        let response = responses.then_some("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let (world, books, _) = counted(response);
        let mut field = Field::governed(world, Governor::new(bounds.clone(), vec![address()], true));
        field.governor().begin_case();
        let probes = scripts.iter().filter(|script| script.probe).count();
        let talks = field.talk(scripts);
        let books = books.borrow();
        prop_assert!(books.open_most() <= bounds.connections_max.min(ceiling.connections_max));
        prop_assert!(most(&ones(&books.opened)) <= bounds.opens_max.min(ceiling.opens_max));
        if let Some(max) = bounds.bytes_max {
            prop_assert!(most(&books.bytes) <= max);
        }
        if let Some(max) = bounds.requests_max && probes == 0 {
            prop_assert!(most(&ones(&books.requests)) <= max);
        }
        if !responses {
            prop_assert!(books.message_most <= bounds.message_max);
        }
        let first = books.opened.first().copied().unwrap_or_default();
        let last = books.bytes.last().map_or(first, |(at, _)| *at);
        if probes == 0 {
            prop_assert!(last <= first + bounds.case_max);
        }
        prop_assert_eq!(field.governor().open(), 0, "every connection is accounted for");
        if field.stopped().is_none() {
            prop_assert!(talks.iter().all(|talk| talk.end != TalkEnd::Ours));
        }
    }

    #[test]
    fn no_option_exceeds_a_maximum(class in any_class(), numbers in any::<[u64; 5]>()) {
        let asked = Asked {
            connections_max: Some(numbers[0]),
            opens_max: Some(numbers[1]),
            requests_max: Some(numbers[2]),
            bytes_max: Some(numbers[3]),
            message_max: Some(numbers[4]),
            ..Asked::default()
        };
        let top = class.ceiling();
        let over = numbers[0] > top.connections_max
            || numbers[1] > top.opens_max
            || top.requests_max.is_some_and(|max| numbers[2] > max)
            || top.bytes_max.is_some_and(|max| numbers[3] > max)
            || numbers[4] > top.message_max;
        match asked.bounds(class, None) {
            Ok(_) => prop_assert!(!over && !numbers.contains(&0)),
            Err(why) => prop_assert!((over || numbers.contains(&0)) && why.starts_with("--")),
        }
    }
}

fn target() -> TestTarget {
    TestTarget {
        peer: Peer::Tcp(address()),
        tls_name: None,
        protocol: Default::default(),
        values: Values {
            scheme: "http".into(),
            path: faulty::PATH.into(),
            host: "www.example.org".into(),
            post: faulty::POST.into(),
            ..Values::default()
        },
        takes_bodies: true,
        fields: "User-Agent: loadstone-torture/0 (run 7)\r\n".into(),
        secrets: Vec::new(),
    }
}

fn run(field: &mut Field, only: &[&str]) -> RunResult {
    run_with(field, &settings(), only)
}

fn run_with(field: &mut Field, settings: &Settings, only: &[&str]) -> RunResult {
    let mut cases = catalogue::cases().unwrap();
    cases.retain(|case| only.contains(&case.id.as_str()));
    campaign::run(&target(), settings, &cases, field, &mut Unwatched)
}

fn settings() -> Settings {
    let probing = Probing { every: Nanos::SECOND, ..Probing::default() };
    Settings {
        seed: 1,
        executions_max: u64::MAX,
        probing,
        baseline: Nanos::SECOND,
        big: None,
        slots: None,
        search: None,
        ..Settings::default()
    }
}

fn governor(class: Class) -> Governor {
    Governor::new(class.usual(), vec![address()], false)
}

/// A simulated internet whose proof is withdrawn at some time.
struct Net {
    now: Rc<RefCell<Nanos>>,
    gone_at: Nanos,
}

impl Sources for Net {
    fn unix_seconds(&mut self) -> i64 {
        START_UNIX_S + i64::try_from(self.now.borrow().0 / 1_000_000_000).unwrap()
    }

    fn file(&mut self, address: SocketAddr) -> Result<Vec<u8>, String> {
        assert_eq!(address.to_string(), PUBLIC);
        if *self.now.borrow() >= self.gone_at {
            return Err("404".into());
        }
        let text = format!(
            "loadstone-torture/1\ntester: {}\nhost: www.example.org:80\ngroups: fuzz syntax\n\
             max-connections: 9\nmax-new-connections-per-second: 5\nmax-bytes-per-second: 1MiB\n\
             window: any\nnot-after: 2026-12-09\ncontact: ops\nbehind: none\n",
            "0".repeat(64)
        );
        Ok(text.into_bytes())
    }

    fn txt(&mut self, _: &str) -> Result<Vec<Vec<u8>>, String> {
        Ok(Vec::new())
    }
}

#[test]
fn a_withdrawn_proof_stops_the_run_within_a_minute() {
    let claim = Claim {
        tester: "0".repeat(64),
        host: "www.example.org:80".into(),
        addresses: vec![address()],
    };
    let gone_at = Nanos::from_secs(100);
    let now = Rc::new(RefCell::new(Nanos::ZERO));
    let mut net = Net { now: now.clone(), gone_at };
    let found = find(&claim, &mut net).unwrap();
    let mut vigil = ProofMonitor::new(Nanos::ZERO, claim, found);
    let server = Box::new(FiringRange::new(&Defects::default()));
    let world = World::new(server, LATENCY, Nanos::ZERO);
    let outside = Box::new(move |at: Nanos| {
        *now.borrow_mut() = at;
        vigil.look(at, &mut net)
    });
    let mut field = Field::governed(world, governor(Class::Public)).watched(outside);
    let result = run(&mut field, &["F-01", "F-02", "F-05"]);
    let why = field.stopped().unwrap();
    assert!(matches!(&why, Stop::Permission(why) if why.contains("the permission was withdrawn")));
    assert_eq!(result.ended_early.as_deref(), Some(why.why()));
    assert!(result.took > gone_at, "{:?}", result.took);
    assert!(result.took <= gone_at + Nanos::from_secs(61), "{:?}", result.took);
    assert_eq!(field.governor().open(), 0);
}

const RIGHT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Runs against a server that changes its response at some time; returns how much later the run
/// stopped.
fn stopped_after(class: Class, then: Option<&'static str>) -> (Stop, Nanos) {
    let (world, books, response) = counted(Some(RIGHT));
    let at = Nanos::from_secs(30);
    let outside = Box::new(move |now: Nanos| {
        if now >= at {
            *response.borrow_mut() = then;
        }
        None
    });
    let mut field = Field::governed(world, governor(class)).watched(outside);
    run(&mut field, &["F-01", "S-01"]);
    let last = books.borrow().bytes.last().unwrap().0;
    (field.stopped().unwrap(), last - at)
}

#[test]
fn a_stop_request_by_the_server_works_within_a_second() {
    for response in [
        "HTTP/1.1 200 OK\r\nLoadstone-Torture: stop\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 429 No\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n",
    ] {
        let (world, books, _) = counted(Some(response));
        let mut field = Field::governed(world, governor(Class::Local));
        let result = run(&mut field, &["F-01", "S-01"]);
        assert!(matches!(field.stopped(), Some(Stop::TargetRequest(_))), "{response}");
        assert!(result.took < Nanos::SECOND, "{:?}", result.took);
        assert_eq!(books.borrow().opened.len(), 1, "one plain request, and no more");
    }
}

#[test]
fn a_lost_public_server_stops_the_run_within_three_seconds() {
    let (why, after) = stopped_after(Class::Public, None);
    assert!(matches!(&why, Stop::Bound(why) if why.contains("no probe got a response")), "{why:?}");
    // 5 s for the current case, and 5 s for the plain request after it, which is the first that is
    // lost
    assert!(after <= Nanos::from_secs(5 + 5 + 3), "{after:?}");
}

#[test]
fn odd_traffic_is_announced_in_the_server_log() {
    let (world, books, _) = counted(Some(RIGHT));
    let mut field = Field::governed(world, governor(Class::Public));
    let result = run(&mut field, &["F-01", "S-01"]);
    // at three per second, a thousand executions exceed the time of a case
    let note = &result.cases[0].notes[0];
    assert_eq!(note, "stopped by the time limit of a case, 1 m 15 s");
    let text = &books.borrow().text;
    let agents: Vec<&str> = text.lines().filter(|line| line.contains("(run 7) (")).collect();
    // cases of a single conversation run first
    assert!(agents[0].ends_with("(before S-01)"), "{agents:?}");
    assert!(agents.iter().any(|line| line.contains("(during F-01: ")), "{agents:?}");
    assert!(agents.iter().any(|line| line.contains("(after S-01: ")), "{agents:?}");
    assert!(agents.last().unwrap().contains("(after F-01: "), "{agents:?}");
}

#[test]
fn cases_beyond_the_time_for_all_cases_are_counted() {
    let (world, _, _) = counted(Some(RIGHT));
    // three requests per second
    let mut field = Field::governed(world, governor(Class::Public));
    let budget = Some(Nanos::from_secs(40));
    let settings = Settings { budget, ..settings() };
    let result = run_with(&mut field, &settings, &["S-01", "F-01", "F-02"]);
    let rows = result.cases.iter().map(|case| (case.case.id.as_str(), case.out_of_time));
    assert_eq!(rows.collect::<Vec<_>>(), [("F-01", true), ("F-02", true), ("S-01", false)]);
    let cut = "stopped by the time limit for all cases, 40.0 s (--budget SPAN raises it)";
    assert_eq!(result.cases[0].notes, [cut]);
    let skipped = result.cases[1].skipped.as_deref().unwrap();
    assert!(skipped.contains("time limit for all cases, 40.0 s"), "{skipped}");
}

#[test]
fn a_run_ends_at_its_limit() {
    let (world, books, _) = counted(Some(RIGHT));
    let bounds = Bounds { run_max: Some(Nanos::from_secs(40)), ..Class::Local.usual() };
    let mut field = Field::governed(world, Governor::new(bounds, vec![address()], true));
    let cases: Vec<String> = (1..10).map(|number| format!("F-0{number}")).collect();
    let result = run(&mut field, &cases.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(result.ended_early.unwrap().contains("time limit of a run, 40.0 s, was reached"));
    assert!(books.borrow().bytes.last().unwrap().0 <= Nanos::from_secs(41));
}
