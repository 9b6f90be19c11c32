//! Logins that need a proof in each request, in virtual time, against a server that accepts nothing
//! else.

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

/// Returns the value of a parameter in a credentials field.
fn parameter<'a>(line: &'a str, name: &str) -> &'a str {
    let at = line.find(&format!(" {name}=")).map_or(line.len(), |at| at + name.len() + 2);
    line[at..].split(',').next().unwrap_or("").trim_matches('"')
}

/// Login whose nonces are each valid for this number of requests, with counts that rise one by one;
/// then a nonce is stale.
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

    /// Returns the challenge if the request is refused.
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
        // the response that the right password gives for this nonce, this count and the client's
        // own nonce
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
        // ten calls of each user, four per nonce: three nonces each
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

/// The time of a call includes all of its exchanges: the challenge and the response.
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
    // each call: refused with its old nonce, accepted with the new one
    assert_eq!(statuses(&measured), [(401, 10)]);
}

/// A server without Digest gets one request, and its 401 is the outcome.
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

/// Issues tokens that are valid for a while, and refuses others with 401.
struct Issuer {
    lifetime: Nanos,
    /// Every token with its expiry.
    issued: Vec<Nanos>,
    /// Number of token requests after which further ones are answered 500.
    healthy: usize,
    asked: usize,
    /// Instants of the requests for tokens.
    log: std::rc::Rc<std::cell::RefCell<Vec<u64>>>,
}

impl Issuer {
    fn answer(&mut self, now: Nanos, request: &str) -> String {
        let respond = |status: &str, body: &str| {
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        };
        if request.starts_with("POST /token ") {
            assert!(request.contains("grant_type=client_credentials"), "{request}");
            self.asked += 1;
            self.log.borrow_mut().push((now.0 - START.0) / 1_000_000);
            if self.asked > self.healthy {
                return respond("500 No", "");
            }
            self.issued.push(now + self.lifetime);
            let (number, seconds) = (self.issued.len() - 1, self.lifetime.as_secs_f64());
            let body = format!("{{\"access_token\": \"t{number}\", \"expires_in\": {seconds}}}");
            return respond("200 Yes", &body);
        }
        let token = request.lines().find_map(|line| line.strip_prefix("Authorization: Bearer t"));
        let known = token.and_then(|it| self.issued.get(it.parse::<usize>().ok()?));
        match known {
            Some(expires) if now < *expires => respond("200 Yes", "yes"),
            _ => respond("401 No", "no"),
        }
    }
}

const START: Nanos = Nanos::from_secs(1_000);

fn token_plan(rate: f64, seconds: u64) -> Plan {
    let mut plan = plan_for("http://sim.example/");
    let arrivals = plan::Arrivals::constant(units::Rate(rate));
    plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    plan.stop.duration = Some(Nanos::from_secs(seconds));
    plan.token.url = Some("http://auth.example/token".parse().expect("a URL"));
    (plan.token.client_id, plan.token.client_secret) = ("me".into(), "secret".into());
    plan
}

/// Runs the plan; returns the run, and the milliseconds at which tokens were requested.
fn run_with_tokens(plan: Plan, lifetime: Nanos, healthy: usize) -> (sim::Simulated, Vec<u64>) {
    let log = std::rc::Rc::default();
    let (issued, log_of_server) = (Vec::new(), std::rc::Rc::clone(&log));
    let mut issuer = Issuer { lifetime, issued, healthy, asked: 0, log: log_of_server };
    let react = move |now: Nanos, _: Client, request: &[u8]| {
        let response = issuer.answer(now, &String::from_utf8_lossy(request));
        vec![(now + Nanos::from_millis(5), Action::Bytes(response.into_bytes()))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let mut world = sim::World::new(server, Nanos::from_millis(1), START);
    world.keep_sent = true;
    let done = sim::execute_with(plan, world, 2, None);
    let log = log.borrow().clone();
    (done, log)
}

/// Expiring tokens are renewed in time, at the schedule's full rate, and without a single 401.
#[test]
fn tokens_are_renewed_before_they_expire() {
    let (done, asked) = run_with_tokens(token_plan(100.0, 19), Nanos::from_secs(4), usize::MAX);
    assert_eq!(statuses(&done.measurement), [(200, 1_900)]);
    assert_eq!(done.measurement.total.counts.due, 1_900);
    assert!(done.measurement.total.response().max() < Nanos::from_millis(20));
    // half of the lifetime is left each time; token requests are not calls
    assert_eq!(asked.len(), 10, "{asked:?}");
    assert_eq!((done.tokens.obtained, done.tokens.renewed, done.tokens.failed), (10, 9, 0));
    assert_eq!(done.token_lost, None);
}

#[test]
fn each_user_has_its_own_token() {
    let mut plan = token_plan(1.0, 5);
    plan.load = Load::Closed { users: 3, think: Think::None, session: None };
    plan.token.per_user = true;
    let (done, asked) = run_with_tokens(plan, Nanos::from_secs(60), usize::MAX);
    assert_eq!(asked.len(), 3);
    assert!(matches!(statuses(&done.measurement)[..], [(200, 1_000..)]));
    let sent = String::from_utf8_lossy(&done.sent).into_owned();
    let uses = |token: &str| sent.matches(&format!("Authorization: Bearer {token}\r\n")).count();
    assert!(["t0", "t1", "t2"].iter().all(|token| uses(token) > 300));
}

/// Without a token the run ends: refused calls do not measure the server.
#[test]
fn a_run_ends_when_its_token_is_not_renewed() {
    let (done, asked) = run_with_tokens(token_plan(100.0, 60), Nanos::from_secs(10), 1);
    assert_eq!(statuses(&done.measurement), [(200, done.measurement.total.counts.due)]);
    assert!((9_850..9_950).contains(&(done.ended_at.0 / 1_000_000)), "{:?}", done.ended_at);
    // at half of the lifetime, then after 1 s and 2 s more
    assert_eq!(asked.len(), 4, "{asked:?}");
    let why = "the token endpoint http://auth.example/token answered 500";
    assert_eq!(done.token_lost.as_deref(), Some(why));
}

/// A server that forgets its tokens every second gets ever fewer requests, not one per 401.
#[test]
fn refused_tokens_cause_no_storm() {
    let mut plan = token_plan(1_000.0, 20);
    plan.expect.status = vec![(200, 499)];
    // the announced lifetime is longer than the real one
    let log = std::rc::Rc::default();
    let (issued, at_server) = (Vec::new(), std::rc::Rc::clone(&log));
    let mut issuer =
        Issuer { lifetime: Nanos::SECOND, issued, healthy: usize::MAX, asked: 0, log: at_server };
    let react = move |now: Nanos, _: Client, request: &[u8]| {
        let response = issuer.answer(now, &String::from_utf8_lossy(request));
        let response = response.replace("\"expires_in\": 1}", "\"expires_in\":60}");
        vec![(now + Nanos::from_millis(5), Action::Bytes(response.into_bytes()))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let done = sim::execute_with(plan, sim::World::new(server, Nanos::ZERO, START), 2, None);
    let asked: &Vec<u64> = &log.borrow();
    assert!((5..=6).contains(&asked.len()), "{asked:?}");
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] >= 990), "{asked:?}");
    assert_eq!(done.tokens.replaced, asked.len() as u64 - 1);
    assert!(
        statuses(&done.measurement).iter().any(|(status, count)| *status == 401 && *count > 50)
    );
}
