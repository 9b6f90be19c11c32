//! Logins that are proved request by request, in virtual time, against a server that takes nothing else.

use plan::{Auth, Load, Plan, Think};
use protocol::login::digest::{Answers, challenge};
use sim::{Action, Admission, Client, ClosureServer, Server, execute, plan_for};
use stats::Measurement;
use std::collections::BTreeMap;
use units::Nanos;

fn plan(users: u32, calls: u64, auth: Auth) -> Plan {
    let mut plan = plan_for("http://sim.example/dir/index.html?a=b");
    plan.load = Load::Closed { users, think: Think::None, session: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(calls));
    plan.stop.warm_up = Nanos::ZERO;
    plan.request.auth = Some(auth);
    plan
}

fn digest(password: &str) -> Auth {
    Auth::Digest { user: "Mufasa".into(), password: password.into() }
}

/// A parameter of a field of credentials.
fn parameter<'a>(line: &'a str, name: &str) -> &'a str {
    let at = line.find(&format!(" {name}=")).map_or(line.len(), |at| at + name.len() + 2);
    line[at..].split(',').next().unwrap_or("").trim_matches('"')
}

/// Each nonce is valid for this many requests, whose counts rise one by one; then it is stale.
struct Guard {
    uses: u32,
    nonces: BTreeMap<String, u32>,
    algorithm: &'static str,
}

impl Guard {
    fn challenge(&mut self, stale: bool) -> String {
        let nonce = format!("nonce-{}", self.nonces.len());
        self.nonces.insert(nonce.clone(), 0);
        format!(
            "Digest realm=\"lions\", qop=\"auth\", algorithm={}, nonce=\"{nonce}\", opaque=\"o\", stale={stale}",
            self.algorithm
        )
    }

    /// The challenge, if the request is refused.
    fn refuses(&mut self, request: &str) -> Option<String> {
        let Some(line) = request.lines().find(|line| line.starts_with("Authorization: Digest "))
        else {
            return Some(self.challenge(false));
        };
        let nonce = parameter(line, "nonce").to_owned();
        let Some(used) = self.nonces.get_mut(&nonce) else { return Some(self.challenge(false)) };
        if *used == self.uses {
            return Some(self.challenge(true));
        }
        *used += 1;
        assert_eq!(parameter(line, "nc"), format!("{used:08x}"), "counts rise one by one");
        assert_eq!(parameter(line, "uri"), "/dir/index.html?a=b");
        // what the right password gives for this nonce, this count and the client's own nonce
        let field =
            format!("Digest realm=lions, qop=auth, algorithm={}, nonce={nonce}", self.algorithm);
        let known = challenge([field.as_bytes()].into_iter()).expect("it can be answered");
        let mut right =
            Answers::new(known, "Mufasa", "Circle", parameter(line, "cnonce").to_owned());
        let wanted = (0..*used).map(|_| right.authorization("GET", "/dir/index.html?a=b")).last();
        let good =
            parameter(&wanted.unwrap_or_default(), "response") == parameter(line, "response");
        if good { None } else { Some(self.challenge(false)) }
    }
}

fn server(uses: u32, algorithm: &'static str) -> Box<dyn Server> {
    let mut guard = Guard { uses, nonces: BTreeMap::new(), algorithm };
    let react = move |now: Nanos, _: Client, request: &[u8]| {
        let refused = guard.refuses(&String::from_utf8_lossy(request));
        let response = match refused {
            Some(challenge) => format!(
                "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nWWW-Authenticate: {challenge}\r\nContent-Length: 2\r\n\r\nno"
            ),
            None => "HTTP/1.1 200 Yes\r\nContent-Length: 3\r\n\r\nyes".to_owned(),
        };
        vec![(now + Nanos::from_millis(1), Action::Bytes(response.into_bytes()))]
    };
    Box::new(ClosureServer { admit: Admission::Accept, react })
}

fn run(plan: Plan, server: Box<dyn Server>) -> Measurement {
    execute(plan, server, 1).measurement
}

fn statuses(measured: &Measurement) -> Vec<(u16, u64)> {
    measured.total.status.seen().collect()
}

#[test]
fn each_user_logs_in_once_and_again_when_its_nonce_is_old() {
    for algorithm in ["MD5", "SHA-256", "SHA-256-sess"] {
        let measured = run(plan(2, 20, digest("Circle")), server(u32::MAX, algorithm));
        assert_eq!(statuses(&measured), [(200, 20), (401, 2)], "{algorithm}");
        assert_eq!(measured.total.counts.succeeded, 20);
        // ten calls of each user, four to a nonce: three nonces each
        let measured = run(plan(2, 20, digest("Circle")), server(4, algorithm));
        assert_eq!(statuses(&measured), [(200, 20), (401, 6)], "{algorithm}");
        assert_eq!(measured.total.counts.failed, 0);
    }
}

/// Logins and unsolicited responses during the warm-up are not counted.
#[test]
fn logins_of_the_warm_up_are_not_measured() {
    let mut plan = plan(2, 20, digest("Circle"));
    plan.stop.warm_up = Nanos::from_millis(100);
    let measured = run(plan, server(u32::MAX, "MD5"));
    assert!(measured.total.warm_up.succeeded > 100, "{:?}", measured.total.warm_up);
    assert_eq!(statuses(&measured), [(200, 20)]);
    let (mut plan, mut left) = (self::plan(1, 5, digest("Circle")), 3);
    plan.stop.warm_up = Nanos::from_millis(100);
    let react = move |now: Nanos, _: Client, _: &[u8]| {
        left -= i32::from(left > 0);
        let times = if left > 0 { 2 } else { 1 };
        let response = b"HTTP/1.1 200 Yes\r\nContent-Length: 0\r\n\r\n".repeat(times);
        vec![(now + Nanos::from_millis(1), Action::Bytes(response))]
    };
    let measured = run(plan, Box::new(ClosureServer { admit: Admission::Accept, react }));
    assert_eq!((measured.total.counts.succeeded, measured.total.failures.len()), (5, 0));
}

/// The time of a call is that of all that it took: the challenge and the response.
#[test]
fn a_challenge_is_part_of_its_call() {
    let measured = run(plan(1, 1, digest("Circle")), server(9, "MD5"));
    let took = measured.total.response().max();
    assert!(took >= Nanos::from_millis(2) && took < Nanos::from_millis(3), "{took:?}");
}

#[test]
fn a_wrong_password_is_tried_once_and_fails() {
    let measured = run(plan(1, 5, digest("Square")), server(u32::MAX, "MD5"));
    assert_eq!(measured.total.counts.failed, 5);
    // each call: refused with the nonce that it had, and with the new one
    assert_eq!(statuses(&measured), [(401, 10)]);
}

/// A server that knows no Digest is asked once, and its 401 is the outcome.
#[test]
fn a_challenge_that_cannot_be_answered_is_the_outcome() {
    let react = |now: Nanos, _: Client, _: &[u8]| {
        let response =
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
        vec![(now + Nanos::from_millis(1), Action::Bytes(response.as_bytes().to_vec()))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let measured = run(plan(1, 3, digest("Circle")), server);
    assert_eq!((statuses(&measured), measured.total.counts.failed), (vec![(401, 3)], 3));
}

/// Every request has a signature for its own second.
#[test]
fn requests_are_signed() {
    let scope = protocol::login::sigv4::SignatureScope::parse("aws:amz:us-east-1:service").unwrap();
    let auth = Auth::AwsSigV4 { key: "AKIDEXAMPLE".into(), secret: "s".into(), scope };
    let react = |now: Nanos, _: Client, request: &[u8]| {
        let text = String::from_utf8_lossy(request).into_owned();
        let date = text.lines().find_map(|line| line.strip_prefix("x-amz-date: ")).unwrap();
        // the clock of these tests begins 1,000 s after its zero
        assert_eq!(date, format!("19700101T0016{:02}Z", now.0 / 1_000_000_000 - 960));
        let line = text.lines().find(|line| line.starts_with("Authorization: ")).unwrap();
        let start = "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/19700101/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=";
        assert_eq!(line.strip_prefix(start).map(str::len), Some(64), "{line}");
        let response = b"HTTP/1.1 200 Yes\r\nContent-Length: 0\r\n\r\n".to_vec();
        vec![(now + Nanos::from_millis(700), Action::Bytes(response))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let measured = run(plan(1, 5, auth), server);
    assert_eq!(statuses(&measured), [(200, 5)]);
}
