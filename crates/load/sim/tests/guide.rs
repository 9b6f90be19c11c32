//! Workers with guided users, in virtual time.

use conduit::Peer;
use engine::{Directory, Endpoint, endpoint_key};
use plan::{Load, Plan, Think};
use protocol::http1::response::Asked;
use sample::{FailureClass, Note};
use sim::{Action, Admission, Client, ClosureServer, World, execute_guided, plan_for};
use std::sync::{Arc, Mutex};
use units::Nanos;
use url::Url;
use workload::{CallEnd, Guide, GuideCall, Step, Template};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";

/// Events of one user's calls: the class of a failure, and the body.
type Heard = Arc<Mutex<Vec<(u64, Option<FailureClass>, String)>>>;

/// Each user visits these URLs in turn, with a wait before each, and leaves. An empty URL is a
/// pause.
#[derive(Clone, Debug)]
struct Tour {
    stops: Vec<(&'static str, Nanos)>,
    made: Vec<usize>,
    heard: Heard,
}

fn template(url: &str) -> Template {
    let url = Url::parse(url).expect("a test's URL is well formed");
    let bytes = format!("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", url.path()).into_bytes();
    Template {
        endpoint: 0,
        method: "GET".into(),
        asked: Asked::Ordinary,
        cookie_at: bytes.len(),
        cookie_at_last: bytes.len(),
        http2: None,
        http3: None,
        stripped: workload::Stripped::default(),
        socket: None,
        lane: 0,
        timeout: None,
        last: bytes.clone(),
        bytes,
        url: url.into(),
    }
}

impl Guide for Tour {
    fn keeps_bodies(&self) -> bool {
        true
    }

    fn next(&mut self, user: u64, _: Nanos) -> Step {
        let made = &mut self.made[user as usize];
        let Some((url, wait)) = self.stops.get(*made).copied() else { return Step::Leave };
        *made += 1;
        if url.is_empty() {
            return Step::Pause { wait };
        }
        Step::Call(GuideCall { wait, row: 0, template: Box::new(template(url)) })
    }

    fn note_call_end(&mut self, user: u64, came: &CallEnd<'_>) -> Option<Note> {
        let body = String::from_utf8_lossy(came.body).into_owned();
        assert_eq!(came.head.is_empty(), came.sample.status == 0);
        self.heard.lock().expect("one thread").push((user, came.sample.class, body));
        Some(Note(Arc::new(user)))
    }
}

/// Directory with one place beyond the plan's.
#[derive(Debug)]
struct OnePlace {
    asked: Arc<Mutex<u32>>,
}

impl Directory for OnePlace {
    fn endpoint(&mut self, url: &Url) -> Option<Endpoint> {
        *self.asked.lock().expect("one thread") += 1;
        let peers = vec![Peer::Tcp(([127, 0, 0, 1], 2).into())];
        let key = endpoint_key(url);
        let found = Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false };
        (url.host_str() == Some("other.example")).then_some(found)
    }
}

fn run(
    stops: &[(&'static str, u64)],
    users: u32,
    seconds: Option<u64>,
) -> (sim::Simulated, Heard, u32) {
    let mut plan: Plan = plan_for("http://sim.example/");
    plan.load = Load::Closed { users, think: Think::None, session: None };
    plan.stop.duration = seconds.map(Nanos::from_secs);
    plan.stop.requests = seconds.is_none().then_some(u64::MAX);
    let react = |now: Nanos, _: Client, bytes: &[u8]| {
        let end = now + Nanos::from_millis(1);
        match bytes.starts_with(b"GET /reset") {
            true => vec![(end, Action::Reset)],
            false => vec![(end, Action::Bytes(RESPONSE.to_vec()))],
        }
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
    let heard = Heard::default();
    let asked = Arc::new(Mutex::new(0));
    let guide = Tour {
        stops: stops.iter().map(|(url, ms)| (*url, Nanos::from_millis(*ms))).collect(),
        made: vec![0; users as usize],
        heard: heard.clone(),
    };
    let directory = Box::new(OnePlace { asked: asked.clone() });
    let outcome = execute_guided(plan, world, Box::new(guide), directory);
    let asked = *asked.lock().expect("one thread");
    (outcome, heard, asked)
}

#[test]
fn a_pause_is_not_a_call_and_the_guide_continues_after_it() {
    let stops =
        [("http://sim.example/a", 0), ("", 3), ("", 4), ("http://sim.example/b", 0), ("", 5)];
    let (outcome, heard, _) = run(&stops, 3, None);
    let counts = outcome.measurement.total.counts;
    assert_eq!((counts.due, counts.succeeded), (6, 6));
    // 1 ms each, and 7 ms between them; the pause at the end delays no call
    assert_eq!(outcome.measurement.elapsed, Nanos::from_millis(9));
    assert_eq!(heard.lock().expect("one thread").len(), 6);
}

#[test]
fn users_go_where_they_are_led_and_leave() {
    let stops =
        [("http://sim.example/a", 0), ("http://other.example/b", 5), ("http://sim.example/c", 0)];
    let (outcome, heard, asked) = run(&stops, 3, None);
    let counts = outcome.measurement.total.counts;
    assert_eq!((counts.due, counts.succeeded), (9, 9));
    // 1 ms each, and the wait of 5 ms before the second
    assert_eq!(outcome.measurement.elapsed, Nanos::from_millis(8));
    let heard = heard.lock().expect("one thread");
    assert!(heard.iter().all(|(_, class, body)| class.is_none() && body == "page"));
    for user in 0..3 {
        assert_eq!(heard.iter().filter(|(id, ..)| *id == user).count(), 3);
    }
    // the place is looked up once, for all users
    assert_eq!(asked, 1);
}

#[test]
fn failures_and_unresolvable_places_are_reported() {
    let stops = [
        ("http://sim.example/reset", 0),
        ("http://nowhere.example/x", 0),
        ("http://nowhere.example/y", 0),
        ("http://sim.example/a", 0),
    ];
    let (outcome, heard, asked) = run(&stops, 1, None);
    let counts = outcome.measurement.total.counts;
    assert_eq!((counts.due, counts.succeeded, counts.failed), (4, 1, 3));
    let heard = heard.lock().expect("one thread");
    let classes: Vec<Option<FailureClass>> = heard.iter().map(|(_, class, _)| *class).collect();
    let nowhere = Some(FailureClass::WorkloadEnd);
    assert_eq!(classes, [Some(FailureClass::Reset), nowhere, nowhere, None]);
    assert_eq!(asked, 1);
}

#[test]
fn the_end_of_the_time_ends_it_for_all() {
    let stops = vec![("http://sim.example/a", 300); 100];
    let (outcome, ..) = run(&stops, 2, Some(1));
    // after 300 ms, and every 301 ms from then on
    assert_eq!(outcome.measurement.total.counts.due, 6);
    assert_eq!(outcome.measurement.total.counts.succeeded, 6);
}

/// User with three calls at once. The end of the second one starts a fourth, and the user pauses
/// for a second while calls are in flight.
#[derive(Debug)]
struct Several {
    queue: Vec<u32>,
    in_flight: u32,
    pauses: bool,
    /// Lanes and bodies of ended calls.
    ended: Arc<Mutex<Vec<(u32, String)>>>,
}

impl Guide for Several {
    fn keeps_bodies(&self) -> bool {
        true
    }

    fn sees_every_response(&self) -> bool {
        true
    }

    fn ends_with_its_users(&self) -> bool {
        true
    }

    fn makes_simultaneous_calls(&self) -> bool {
        true
    }

    fn next(&mut self, _: u64, _: Nanos) -> Step {
        if let Some(lane) = self.queue.pop() {
            self.in_flight += 1;
            let url = if lane == 3 { "http://other.example/x" } else { "http://sim.example/a" };
            let template = Box::new(Template { lane, ..template(url) });
            return Step::Call(GuideCall { wait: Nanos::ZERO, row: 0, template });
        }
        match (self.in_flight, self.pauses) {
            (0, _) => Step::Leave,
            (_, true) => Step::Pause { wait: Nanos::SECOND },
            (_, false) => Step::Await,
        }
    }

    fn note_call_end(&mut self, _: u64, came: &CallEnd<'_>) -> Option<Note> {
        self.in_flight -= 1;
        let body = String::from_utf8_lossy(came.body).into_owned();
        self.ended.lock().expect("one thread").push((came.lane, body));
        if came.lane == 2 {
            self.queue.push(4);
        }
        None
    }
}

#[test]
fn a_user_has_several_calls_in_flight_and_leaves_before_alarms() {
    for pauses in [false, true] {
        let mut plan: Plan = plan_for("http://sim.example/");
        plan.load = Load::Closed { users: 1, think: Think::None, session: None };
        plan.stop.requests = Some(u64::MAX);
        plan.stop.duration = None;
        plan.connection.per_user = 10;
        let react = |now: Nanos, _: Client, _: &[u8]| {
            vec![(now + Nanos::from_millis(1), Action::Bytes(RESPONSE.to_vec()))]
        };
        let server = Box::new(ClosureServer { admit: Admission::Accept, react });
        let world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
        let ended = Arc::default();
        let guide =
            Several { queue: vec![3, 2, 1], in_flight: 0, pauses, ended: Arc::clone(&ended) };
        let directory = Box::new(OnePlace { asked: Arc::default() });
        let outcome = execute_guided(plan, world, Box::new(guide), directory);
        let measured = outcome.measurement;
        assert_eq!((measured.total.counts.due, measured.total.counts.succeeded), (4, 4));
        assert_eq!(measured.elapsed, Nanos::from_millis(2));
        let mut ended = ended.lock().expect("one thread").clone();
        ended.sort();
        assert_eq!(ended, [1, 2, 3, 4].map(|lane| (lane, "page".to_owned())));
    }
}
