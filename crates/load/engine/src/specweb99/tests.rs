//! The guide against a simulated server, in virtual time.

use super::*;
use plan::representative::parse_representative;
use sample::Sample;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use workload::fileset::specweb99::{DynamicQuery, PageHead, compare, page, substitute_ad};

const USERS_AT_ONCE: u64 = 20;

fn load(text: &str, change: impl FnOnce(&mut Plan)) -> Arc<SpecwebLoad> {
    let base: Url = "http://h/site/".parse().unwrap();
    let mut plan = Plan::for_url(base.clone());
    parse_representative(text).unwrap().apply(&mut plan, &base, 1).unwrap();
    plan.stop.warm_up = Nanos::from_secs(5);
    plan.stop.duration = Some(Nanos::from_secs(60));
    change(&mut plan);
    assert_eq!(plan::validate(&plan), Ok(()));
    SpecwebLoad::new(&plan).unwrap()
}

/// Behavior of the server.
struct Server {
    ads: Advertising,
    /// Time from the request to the end of its response.
    takes: fn(&str) -> Nanos,
    /// Changes the head and the body before they are sent.
    spoils: fn(&str, &mut Vec<u8>, &mut Vec<u8>),
    log: Vec<PostForm>,
}

impl Server {
    fn new(takes: fn(&str) -> Nanos) -> Server {
        let ads = Advertising::new(Seed(1));
        Server { ads, takes, spoils: |_, _, _| {}, log: Vec::new() }
    }

    fn answer(&mut self, request: &str) -> (Vec<u8>, Vec<u8>) {
        let target = request.split(' ').nth(1).unwrap();
        let mut head = "HTTP/1.1 200 OK\r\n".to_owned();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let field = |name: &str| {
            let mut lines = request.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        let file = |name: FileName| {
            let mut bytes = vec![0; name.size() as usize];
            FileContent::new(Seed(1), &name.to_string()).fill(0, &mut bytes);
            bytes
        };
        let visitor = field("Cookie").and_then(|cookie| Visitor::parse(&cookie));
        let body = if let Some(name) = path.strip_prefix("/site/file_set") {
            file(FileName::parse(&format!("file_set{name}")).unwrap())
        } else {
            let name = match request.starts_with("POST") {
                true => {
                    let body = request.split("\r\n\r\n").nth(1).unwrap();
                    let (post, root) = PostForm::parse(body, visitor.unwrap().user).unwrap();
                    assert_eq!(root, "/site");
                    self.log.push(post);
                    post.name
                }
                false => match DynamicQuery::parse(query) {
                    Some(DynamicQuery::File(name)) => name,
                    other => panic!("{query}: {other:?}"),
                },
            };
            let mut file = file(name);
            if let Some(visitor) = visitor.filter(|_| request.starts_with("GET")) {
                let shown = self.ads.choose(visitor);
                head += &format!("Set-Cookie: {shown}\r\n");
                substitute_ad(&mut file, shown.ad);
            }
            page(&PageHead { software: "", remote: "", script: path, query, visitor }, &file)
        };
        (format!("{head}\r\n").into_bytes(), body)
    }
}

/// Result of a run.
#[derive(Debug, Default)]
struct Seen {
    /// Requests by operation, and failures by class.
    operations: BTreeMap<u32, u64>,
    failures: BTreeMap<FailureClass, u64>,
    connections: u64,
    calls: u64,
    judged: u64,
    conforming: u64,
    posts: Vec<SentPost>,
}

fn run(load: &Arc<SpecwebLoad>, server: &mut Server) -> Seen {
    let mut guide = load.guide();
    let mut seen = Seen::default();
    let mut due: BinaryHeap<Reverse<(Nanos, u64)>> = BinaryHeap::new();
    let mut next_calls: BTreeMap<u64, GuideCall> = BTreeMap::new();
    let start = Nanos::from_secs(1_000);
    for user in 0..USERS_AT_ONCE {
        let Step::Call(next_call) = guide.next(user, start) else { panic!("no call") };
        due.push(Reverse((start + next_call.wait, user)));
        next_calls.insert(user, next_call);
    }
    while let Some(Reverse((now, user))) = due.pop() {
        let next_call = next_calls.remove(&user).unwrap();
        let request = String::from_utf8(next_call.template.bytes.clone()).unwrap();
        let (mut head, mut body) = server.answer(&request);
        (server.spoils)(&request, &mut head, &mut body);
        let took = (server.takes)(&request);
        let (done, status) = (now + took, 200);
        let heard =
            WholeResponse { row: next_call.row, status, head: &head, body: &body, took, now: done };
        let class = guide.judge(user, &heard, None);
        let kept = !request.contains("HTTP/1.0") && !request.contains("Connection: close");
        let (bytes_received, body_bytes) = ((head.len() + body.len()) as u64, body.len() as u64);
        let sample = Sample {
            user: Some(user),
            intended: now,
            issued: now,
            sent: now,
            done,
            status,
            persistent: kept,
            bytes_received,
            body_bytes,
            ..Sample::default()
        };
        let outcome = if class.is_some() { Outcome::Failed } else { Outcome::Succeeded };
        *seen.operations.entry(next_call.row).or_default() += 1;
        if let Some(class) = class {
            *seen.failures.entry(class).or_default() += 1;
        }
        seen.connections += u64::from(!kept);
        seen.calls += 1;
        guide.note_call_end(
            user,
            &CallEnd { sample: &sample, outcome, head: &head, body: &body, lane: 0 },
        );
        if let Step::Call(next_call) = guide.next(user, done) {
            due.push(Reverse((done + next_call.wait, user)));
            next_calls.insert(user, next_call);
        }
    }
    guide.report(&mut |remark| {
        let Noticed::Judged { conforming } = remark.fact else { panic!("{remark:?}") };
        seen.judged += 1;
        seen.conforming += u64::from(conforming);
    });
    drop(guide);
    seen.posts = load.take_posts();
    seen
}

/// With a server that needs no time, each connection receives 400 kbit/s, so that the mean of
/// 122,000 bits gives 3.28 operations per second; a connection carries 7.3 requests (P3 of the
/// sheet); the mix is SPECweb99's; the log contains the posted data.
#[test]
fn an_ideal_server_has_every_connection_conform() {
    let load = load("specweb99-like:connections=20", |_| {});
    let mut server = Server::new(|_| Nanos::from_micros(10));
    let seen = run(&load, &mut server);
    assert_eq!((seen.judged, seen.conforming), (USERS_AT_ONCE, USERS_AT_ONCE));
    assert!(seen.failures.is_empty(), "{:?}", seen.failures);
    // files of class 3 are rare and long: one file more or less is noticeable
    let per_second = seen.calls as f64 / (65.0 * USERS_AT_ONCE as f64);
    assert!((per_second / 3.28 - 1.0).abs() < 0.12, "{per_second} operations a second");
    let mean = seen.calls as f64 / seen.connections as f64;
    assert!((mean / 7.3 - 1.0).abs() < 0.06, "{mean} requests a connection");
    for (row, (operation, share)) in workload::fileset::specweb99::SHARES.iter().enumerate() {
        let found = seen.operations.get(&(row as u32)).copied().unwrap_or(0) as f64;
        let found = found / seen.calls as f64 * 100.0;
        assert!((found - share).abs() < 1.5, "{}: {found} of {share} %", operation.name());
    }
    let found = compare(&seen.posts, &server.log);
    assert!(found.agree() && found.answered > 100 && found.unanswered == 0, "{found:?}");
}

/// Most waits for the line hide 10 ms for a response, but not a second.
#[test]
fn only_a_fast_server_has_conforming_connections() {
    for (takes, conforming) in [
        ((|_: &str| Nanos::from_millis(10)) as fn(&str) -> Nanos, USERS_AT_ONCE),
        (|_: &str| Nanos::from_millis(1_000), 0),
    ] {
        let seen = run(&load("specweb99-like", |_| {}), &mut Server::new(takes));
        assert_eq!(seen.judged, USERS_AT_ONCE);
        assert_eq!(seen.conforming, conforming);
        assert!(seen.failures.is_empty());
    }
}

/// A wrong response is a failed call; with one or more in a hundred, no connection conforms.
#[test]
fn a_wrong_response_fails_its_call() {
    type Spoil = fn(&str, &mut Vec<u8>, &mut Vec<u8>);
    let spoils: [(Spoil, FailureClass); 4] = [
        (|_, _, body| body.truncate(body.len() - 1), FailureClass::Length),
        (
            |request, _, body| {
                if !request.contains('?') && !request.starts_with("POST") {
                    body[0] ^= 1;
                }
            },
            FailureClass::Differs,
        ),
        (
            |_, head, _| {
                if let Some(at) = head.windows(6).position(|at| at == b"Ad_id=") {
                    head[at + 6] = b'9';
                }
            },
            FailureClass::Expectation,
        ),
        (
            // the announced advertisement is not the one in the file
            |_, head, body| {
                let has_choice = head.windows(6).any(|at| at == b"Ad_id=");
                if let Some(at) = body.windows(11).position(|at| at == b"<!WEB99CAD>")
                    && has_choice
                {
                    body[at + 35] ^= 1;
                }
            },
            FailureClass::Differs,
        ),
    ];
    for (row, (spoil, class)) in spoils.into_iter().enumerate() {
        let load = load("specweb99-like:connections=20", |plan| {
            // all but the end is warm-up: every byte is compared
            plan.stop.warm_up = Nanos::from_secs(30);
            plan.stop.duration = Some(Nanos::from_secs(20));
        });
        let mut server = Server::new(|_| Nanos::from_micros(10));
        server.spoils = spoil;
        let seen = run(&load, &mut server);
        assert!(seen.failures.contains_key(&class), "{row}: {:?}", seen.failures);
        if row < 3 {
            assert!(seen.conforming < USERS_AT_ONCE / 2, "{row}: {seen:?}");
        }
    }
}

/// The static mix has no dynamic pages; with HTTP/1.0 the persistent connections request
/// keep-alive.
#[test]
fn the_static_mix_and_the_older_protocol() {
    let load = load("specweb99-like:connections=20,mix=static", |plan| {
        plan.request.version = HttpVersion::Http10;
    });
    assert!(load.log_commands().is_none());
    let mut server = Server::new(|request| {
        let kept = request.contains("Connection: keep-alive\r\n");
        assert!(request.contains(" HTTP/1.0\r\n") && !request.contains("Connection: close"));
        Nanos::from_millis(1 + u64::from(kept))
    });
    let seen = run(&load, &mut server);
    assert_eq!(seen.operations.keys().collect::<Vec<_>>(), [&0]);
    assert_eq!((seen.conforming, seen.posts.len()), (USERS_AT_ONCE, 0));
}
