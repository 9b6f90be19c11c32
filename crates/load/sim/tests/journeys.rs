//! Journeys in virtual time, against a server that checks the values that users carry.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use plan::{NoFiles, Plan, from_toml};
use sample::FailureClass;
use sim::{Action, Admission, Client, ClosureServer, Simulated, World, execute_journeys};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::Nanos;

const HEAD: &str = "version = 1\nurl = 'http://sim.example/'\n";

fn plan(text: &str) -> Plan {
    let plan = from_toml(&format!("{HEAD}{text}"), &NoFiles).unwrap();
    if let Err(problems) = plan::validate(&plan) {
        panic!("{problems:?}");
    }
    plan
}

/// Every request's first line and verdict, in order of arrival.
type Log = Arc<Mutex<Vec<String>>>;

/// Runs journeys against `response`: from a request to status, fields and body.
fn run(
    plan: Plan,
    workers: u32,
    mut response: impl FnMut(&str) -> (u16, String, String) + 'static,
) -> (Simulated, Vec<String>) {
    let log = Log::default();
    let seen = log.clone();
    let react = move |now: Nanos, _: Client, bytes: &[u8]| {
        let request = String::from_utf8_lossy(bytes).into_owned();
        let (status, fields, body) = response(&request);
        seen.lock().unwrap().push(request);
        let length = body.len();
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{fields}\r\n{body}");
        vec![(now + Nanos::from_millis(1), Action::Bytes(text.into_bytes()))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
    let outcome = execute_journeys(plan, world, workers, &BTreeMap::new());
    let log = log.lock().unwrap().clone();
    (outcome, log)
}

fn line(request: &str) -> &str {
    request.lines().next().unwrap_or_default()
}

fn field<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let wanted = format!("{name}: ");
    request.lines().find_map(|line| line.strip_prefix(wanted.as_str()))
}

fn body(request: &str) -> &str {
    request.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

const LOGIN: &str = "
[load]
users = 3
[stop]
requests = 9
[[feeder]]
name = 'people'
format = 'csv'
text = '''
name,password
ann,a%20b
bob,\"x,y\"
eve,z
'''
order = 'unique'
[[journey]]
name = 'shop'
[[journey.step]]
name = 'login'
url = '/login'
once = true
json = { user = '{{people.name}}', password = '{{people.password}}' }
expect = { status = 201 }
capture = { token = { json = '$.token', scope = 'user' } }
[[journey.step]]
name = 'cart'
url = '/cart/{{people.name}}'
headers = { Authorization = 'Bearer {{token}}' }
capture = { items = { json = '/count' } }
[[journey.step]]
name = 'order'
url = '/order'
form = { items = '{{items}}' }
headers = { Authorization = 'Bearer {{token}}' }
";

/// Answers a request like a shop that checks permissions and knows the purpose of each token;
/// returns the status, fields and the body.
fn shop(request: &str) -> (u16, String, String) {
    let passwords = [("ann", "a%20b"), ("bob", "x,y"), ("eve", "z")];
    let path = line(request).split(' ').nth(1).unwrap_or_default().to_owned();
    if path == "/login" {
        let asked: serde_json::Value = serde_json::from_str(body(request)).unwrap();
        let known = passwords
            .iter()
            .any(|(user, password)| asked["user"] == *user && asked["password"] == *password);
        let token = format!("{{\"token\": \"t-{}\"}}", asked["user"].as_str().unwrap());
        return (if known { 201 } else { 403 }, String::new(), token);
    }
    let Some(user) = field(request, "Authorization").and_then(|it| it.strip_prefix("Bearer t-"))
    else {
        return (401, String::new(), String::new());
    };
    match path.as_str() {
        "/order" => {
            let right = body(request) == format!("items={}", user.len());
            (if right { 200 } else { 400 }, String::new(), String::new())
        }
        cart if cart == format!("/cart/{user}") => {
            (200, String::new(), format!("{{\"count\": {}}}", user.len()))
        }
        _ => (404, String::new(), String::new()),
    }
}

#[test]
fn a_login_carries_its_token() {
    let (outcome, log) = run(plan(LOGIN), 1, shop);
    let total = &outcome.measurement.total;
    // three logins, and nine rounds of two calls
    assert_eq!((total.counts.due, total.counts.succeeded), (21, 21), "{:?}", total.failures);
    assert_eq!(log.iter().filter(|request| line(request).contains("/login")).count(), 3);
    let rows: Vec<u64> = total.targets.iter().map(|row| row.succeeded).collect();
    assert_eq!(rows, [3, 9, 9]);
    // the iterations are a transaction, with a millisecond for each of their calls
    let shop = &total.journeys.transactions[0];
    assert_eq!((shop.succeeded, shop.failed), (9, 0));
    assert_eq!(shop.time.quantile(1.0).0 / 10_000, 300, "to a thousandth");
}

#[test]
fn any_number_of_workers_sends_the_same_bytes() {
    let sent = |workers| {
        let text = LOGIN.replace("users = 3", "users = 8").replace("order = 'unique'", "");
        let text = text.replace("once = true\n", "").replace("requests = 9", "requests = 3");
        let (outcome, mut log) = run(plan(&text), workers, shop);
        assert_eq!(outcome.measurement.total.counts.failed, 0, "{workers} workers");
        log.sort();
        log
    };
    let one = sent(1);
    assert_eq!(one.len(), 9);
    assert_eq!(one, sent(2));
    assert_eq!(one, sent(8));
}

/// Returns the rows that iterations of two journeys took, by name of the journey.
fn rows_taken(workers: u32, order: &str, requests: u64) -> Vec<String> {
    let text = format!(
        "[load]\nusers = 8\n[stop]\nrequests = {requests}\n\
         [[feeder]]\nname = 'f'\norder = '{order}'\ngenerate = {{ id = '1..20', key = 'hex:8' }}\n\
         [[journey]]\nname = 'a'\nweight = 3\n[[journey.step]]\nname = 'x'\n\
         url = '/a/{{{{f.id}}}}/{{{{f.key}}}}'\n\
         [[journey]]\nname = 'b'\n[[journey.step]]\nname = 'y'\nurl = '/b'\n"
    );
    let (_, log) = run(plan(&text), workers, |_| (200, String::new(), String::new()));
    let mut lines: Vec<String> = log.iter().map(|request| line(request).to_owned()).collect();
    lines.sort();
    lines
}

#[test]
fn rows_of_feeders_are_the_same_for_any_number_of_workers() {
    for order in ["sequential", "random"] {
        let one = rows_taken(1, order, 16);
        assert_eq!(one.len(), 16);
        assert_eq!(one, rows_taken(2, order, 16), "{order}");
        assert_eq!(one, rows_taken(8, order, 16), "{order}");
    }
    // without a gap, although some iterations take no row
    let taken = rows_taken(4, "sequential", 16);
    let of_a = taken.iter().filter(|line| line.contains("/a/")).count();
    for id in 1..=of_a {
        assert!(taken.iter().any(|line| line.contains(&format!("/a/{id}/"))), "{id}: {taken:?}");
    }
}

#[test]
fn a_feeder_that_runs_dry_ends_the_run_of_its_users() {
    let text = "[load]\nusers = 2\n[stop]\nduration = '60s'\n\
        [[feeder]]\nname = 'f'\ngenerate = { id = '1..5' }\n\
        [[journey]]\nname = 'a'\n[[journey.step]]\nname = 'x'\nurl = '/{{f.id}}'\n";
    let (outcome, log) = run(plan(text), 1, |_| (200, String::new(), String::new()));
    assert_eq!(log.len(), 5);
    let total = &outcome.measurement.total;
    assert_eq!(total.journeys.dry, [2]);
    assert!(outcome.ended_at < Nanos::from_secs(1), "{:?}", outcome.ended_at);
    let wrapped = text.replace("name = 'f'", "name = 'f'\nused-up = 'wrap'");
    let wrapped = wrapped.replace("duration = '60s'", "requests = 12");
    let (outcome, log) = run(plan(&wrapped), 1, |_| (200, String::new(), String::new()));
    assert_eq!(log.len(), 12);
    assert!(outcome.measurement.total.journeys.dry.is_empty());
}

#[test]
fn an_expired_token_is_renewed_and_the_step_made_again() {
    let text = "[load]\nusers = 1\n[stop]\nrequests = 4\n\
        [[journey]]\nname = 'a'\nrefresh = { step = 'login' }\n\
        [[journey.step]]\nname = 'login'\nurl = '/login'\nonce = true\n\
        capture = { token = { header = 'X-Token', scope = 'user' } }\n\
        [[journey.step]]\nname = 'page'\nurl = '/page'\nheaders = { X-Token = '{{token}}' }\n";
    let (mut given, mut uses) = (0, 0);
    // each token is valid for two pages
    let response = move |request: &str| {
        if line(request).contains("/login") {
            (given, uses) = (given + 1, 0);
            return (200, format!("X-Token: {given}\r\n"), String::new());
        }
        uses += 1;
        let right = field(request, "X-Token") == Some(given.to_string().as_str()) && uses <= 2;
        (if right { 200 } else { 401 }, String::new(), String::new())
    };
    let (outcome, log) = run(plan(text), 1, response);
    let lines: Vec<&str> = log.iter().map(|it| line(it).split(' ').nth(1).unwrap()).collect();
    let wanted = ["/login", "/page", "/page", "/page", "/login", "/page", "/page"];
    assert_eq!(lines, wanted);
    let total = &outcome.measurement.total;
    assert_eq!(total.counts.failed, 0);
    assert_eq!(total.journeys.refreshed, [0, 1]);
}

#[test]
fn a_login_that_does_not_help_is_tried_once() {
    let text = "[load]\nusers = 1\n[stop]\nrequests = 1\n\
        [[journey]]\nname = 'a'\nrefresh = { status = [401, 403], step = 'login' }\n\
        [[journey.step]]\nname = 'login'\nurl = '/login'\n\
        [[journey.step]]\nname = 'page'\nurl = '/page'\n";
    let response = |request: &str| {
        let status = if line(request).contains("/login") { 200 } else { 403 };
        (status, String::new(), String::new())
    };
    let (outcome, log) = run(plan(text), 1, response);
    assert_eq!(log.len(), 4);
    let total = &outcome.measurement.total;
    assert_eq!((total.counts.succeeded, total.counts.failed), (3, 1));
    assert_eq!(total.failures.get(&FailureClass::Status), Some(&1));
}

#[test]
fn a_capture_that_finds_nothing_is_counted_and_shown() {
    let text = "[load]\nusers = 1\n[stop]\nrequests = 2\n\
        [[journey]]\nname = 'a'\n\
        [[journey.step]]\nname = 'list'\nurl = '/list'\n\
        capture = { id = { css = 'a[href]', attribute = 'href' } }\n\
        [[journey.step]]\nname = 'item'\nurl = '{{id}}'\n\
        [[journey.step]]\nname = 'end'\nurl = '/end'\ncheck = { body = { contains = 'bye' } }\n";
    let mut first = true;
    let response = move |request: &str| {
        let empty = line(request).contains("/list") && std::mem::take(&mut first);
        let page = if empty { "<p>nothing here" } else { "<p><a href='/item?a=1&amp;b=2'>it</a>" };
        (200, String::new(), page.to_owned())
    };
    let (outcome, log) = run(plan(text), 1, response);
    let lines: Vec<&str> = log.iter().map(|it| line(it).split(' ').nth(1).unwrap()).collect();
    assert_eq!(lines, ["/list", "/end", "/list", "/item?a=1&b=2", "/end"]);
    let total = &outcome.measurement.total;
    assert_eq!(total.failures.get(&FailureClass::Capture), Some(&1));
    let journeys = &total.journeys;
    let (missed, skipped) = (&journeys.missed[0], &journeys.skipped[1]);
    assert_eq!((missed.count, skipped.count), (1, 1));
    let (_, example) = missed.example.clone().unwrap();
    assert_eq!(example, "wanted an element a[href] with href, searched \"<p>nothing here\"");
    assert_eq!(skipped.example.clone().unwrap().1, "{{id}} has no value");
    // a failed check is only counted
    assert_eq!(journeys.unmet[2].count, 2);
    assert_eq!(journeys.transactions[0].failed, 1);
    assert_eq!(journeys.transactions[0].succeeded, 1);
}

#[test]
fn an_optional_capture_fails_nothing() {
    let text = "[load]\nusers = 1\n[stop]\nrequests = 1\n[[journey]]\nname = 'a'\n\
        [[journey.step]]\nname = 'x'\nurl = '/'\n\
        capture = { id = { header = 'X-Id', optional = true } }\n\
        [[journey.step]]\nname = 'y'\nurl = '/{{id}}'\nwhen = { id = true }\n";
    let (outcome, log) = run(plan(text), 1, |_| (200, String::new(), String::new()));
    let total = &outcome.measurement.total;
    assert_eq!((log.len(), total.counts.failed), (1, 0));
    assert_eq!(total.journeys.missed[0].count, 1);
    assert!(
        total.journeys.skipped.is_empty(),
        "left out by its condition, not for want of a value"
    );
}

#[test]
fn loops_conditions_and_chances() {
    let text = "[load]\nusers = 1\n[stop]\nrequests = 200\n[[journey]]\nname = 'a'\n\
        [[journey.step]]\nname = 'poll'\nurl = '/poll'\nrepeat = 10\n\
        capture = { state = { header = 'X-State' } }\nuntil = { state = 'done' }\n\
        [[journey.step]]\nname = 'twice'\nrepeat = 2\n\
        [[journey.step.step]]\nname = 'in'\nurl = '/in'\n\
        [[journey.step.step]]\nname = 'rare'\nurl = '/rare'\nchance = '25%'\n\
        [[journey.step]]\nname = 'not done'\nurl = '/not'\nwhen = { state = ['new', 'old'] }\n\
        [[journey.step]]\nname = 'some'\nurl = '/some'\nrepeat = '1..3'\n";
    let mut polls = 0;
    let response = move |request: &str| {
        polls += u32::from(line(request).contains("/poll"));
        let state = if polls % 3 == 0 { "done" } else { "new" };
        (200, format!("X-State: {state}\r\n"), String::new())
    };
    let (outcome, _) = run(plan(text), 1, response);
    let rows: Vec<u64> = outcome.measurement.total.targets.iter().map(|it| it.succeeded).collect();
    let [polls, inner, rare, not, some] = rows[..] else { panic!("{rows:?}") };
    assert_eq!((polls, inner, not), (600, 400, 0));
    // 400 draws at 25 %: five standard deviations are 43
    assert!((57..=143).contains(&rare), "{rare}");
    // 200 draws of 1 to 3: 400 is expected, five standard deviations are 58
    assert!((342..=458).contains(&some), "{some}");
    let block = &outcome.measurement.total.journeys.transactions[1];
    assert_eq!(block.succeeded, 200);
    assert!(block.time.max() <= Nanos::from_millis(5));
}

#[test]
fn iterations_follow_the_weights_of_journeys() {
    let text = "[load]\nusers = 4\n[stop]\nrequests = 4000\n\
        [[journey]]\nname = 'a'\nweight = 3\n[[journey.step]]\nname = 'x'\nurl = '/a'\n\
        [[journey]]\nname = 'b'\n[[journey.step]]\nname = 'y'\nurl = '/b'\n";
    let counts = |workers| {
        let (outcome, _) = run(plan(text), workers, |_| (200, String::new(), String::new()));
        let rows: Vec<u64> =
            outcome.measurement.total.targets.iter().map(|it| it.succeeded).collect();
        rows
    };
    let one = counts(1);
    assert_eq!(one.iter().sum::<u64>(), 4000);
    // 3,000 expected, a standard deviation of 27
    assert!((2_863..=3_137).contains(&one[0]), "{one:?}");
    assert_eq!(one, counts(4));
}

#[test]
fn think_times_lie_between_steps() {
    let text = "[load]\nusers = 1\nthink = '100ms'\n[stop]\nrequests = 2\n[[journey]]\nname = 'a'\n\
        [[journey.step]]\nname = 'x'\nurl = '/x'\nthink = '10ms'\n\
        [[journey.step]]\nname = 'y'\nurl = '/y'\n";
    let (outcome, _) = run(plan(text), 1, |_| (200, String::new(), String::new()));
    // four calls of a millisecond, 10 ms twice, 100 ms between the iterations
    assert_eq!(outcome.measurement.elapsed, Nanos::from_millis(124));
}

#[test]
fn iterations_arrive_at_a_rate() {
    let text = "[load]\nrate = '10/s'\n[stop]\nduration = '2s'\n\
        [[feeder]]\nname = 'f'\ngenerate = { id = '1..100' }\n\
        [[journey]]\nname = 'a'\n\
        [[journey.step]]\nname = 'x'\nurl = '/x/{{f.id}}'\nthink = '50ms'\n\
        [[journey.step]]\nname = 'y'\nurl = '/y/{{f.id}}'\n";
    let lines = |workers| {
        let (outcome, log) = run(plan(text), workers, |_| (200, String::new(), String::new()));
        let total = &outcome.measurement.total;
        assert_eq!((total.sessions.started, total.sessions.completed), (20, 20));
        assert_eq!((total.counts.due, total.counts.succeeded), (40, 40));
        let mut lines: Vec<String> = log.iter().map(|it| line(it).to_owned()).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(1), lines(3));
}

#[test]
fn a_failed_step_ends_an_iteration_if_configured() {
    let text = "[load]\nusers = 1\n[stop]\nrequests = 3\n[[journey]]\nname = 'a'\nfailure = 'end'\n\
        [[journey.step]]\nname = 'both'\n[[journey.step.step]]\nname = 'x'\nurl = '/x'\n\
        expect = { headers = { X-Id = true } }\n[[journey.step.step]]\nname = 'y'\nurl = '/y'\n";
    let (outcome, log) = run(plan(text), 1, |_| (200, String::new(), String::new()));
    assert_eq!(log.len(), 3);
    let total = &outcome.measurement.total;
    assert_eq!(total.failures.get(&FailureClass::Expectation), Some(&3));
    assert_eq!(total.journeys.differed[0].count, 3);
    let rows = total.journeys.transactions.iter();
    assert_eq!(rows.map(|row| row.failed).collect::<Vec<_>>(), [3, 3]);
}

#[test]
fn journeys_in_which_nothing_can_be_made_end() {
    let text = "[load]\nusers = 2\n[stop]\nduration = '60s'\n[vars]\non = 'no'\n\
        [[journey]]\nname = 'a'\n[[journey.step]]\nname = 'loop'\nrepeat = 1000\n\
        [[journey.step.step]]\nname = 'x'\nurl = '/x'\nwhen = { on = 'yes' }\n";
    let (outcome, log) = run(plan(text), 1, |_| (200, String::new(), String::new()));
    assert!(log.is_empty());
    assert_eq!(outcome.measurement.total.counts.due, 0);
}

/// A redirected step keeps its own fields and body, with their values; fields that describe the
/// body go with it, and a login stays with its server.
#[test]
fn a_redirected_step_keeps_its_fields() {
    const STEPS: &str = "
        [load]
        users = 1
        [stop]
        requests = 1
        [request]
        headers = ['X-All: of the plan']
        follow = 3
        [[journey]]
        name = 'j'
        [[journey.step]]
        name = 'fixed'
        url = '/a'
        headers = { Accept = 'text/x', Authorization = 'Bearer f' }
        [[journey.step]]
        name = 'filled'
        url = '/b/{{user.number}}'
        method = 'POST'
        headers = { X-User = 'u{{user.number}}', X-All = 'of the step' }
        json = { number = '{{user.number}}' }
        [[journey.step]]
        name = 'seen'
        url = '/c'
        method = 'POST'
        form = { a = 'b' }
        ";
    let moved = |request: &str| {
        let path = line(request).split(' ').nth(1).unwrap_or_default().to_owned();
        let (status, to) = match &path[..2] {
            "/a" => (302, "/moved/a"),
            "/b" => (307, "/repeat/b"),
            "/c" => (303, "/moved/c"),
            "/g" | "/m" => return (200, String::new(), String::new()),
            // and once more
            _ => return (308, "Location: /good\r\n".to_owned(), String::new()),
        };
        (status, format!("Location: {to}\r\n"), String::new())
    };
    let mut plan = plan(STEPS);
    plan.request.user_agent = "agent".to_owned();
    let (outcome, log) = run(plan, 1, moved);
    assert_eq!(outcome.measurement.total.counts.succeeded, 3);
    let shown = |request: &String| {
        let names = ["X-All", "Accept", "Authorization", "X-User", "Content-Type"];
        let fields =
            names.iter().filter_map(|name| Some(format!("{name}={}", field(request, name)?)));
        let all = request.lines().filter(|line| line.starts_with("Host: ")).count();
        let fields: Vec<String> = fields.collect();
        format!("{} hosts={all} {} {}", line(request), fields.join(" "), body(request))
    };
    let first = |path: &str| shown(log.iter().find(|it| line(it).contains(path)).unwrap());
    let same = |before: &str, after: &str| first(before).replace(before, after);
    assert_eq!(first("/moved/a"), same("/a", "/moved/a"));
    assert!(first("/moved/a").contains("Accept=text/x Authorization=Bearer f"));
    assert_eq!(first("/repeat/b"), same("/b/0", "/repeat/b"));
    assert_eq!(first("/good"), same("/b/0", "/good"));
    assert!(
        first("/good").contains("X-All=of the step X-User=u0 Content-Type=application/json {"),
        "{}",
        first("/good")
    );
    assert!(first("/c ").contains("Content-Type=application/x-www-form-urlencoded a=b"));
    assert_eq!(first("/moved/c").trim(), "GET /moved/c HTTP/1.1 hosts=1 X-All=of the plan");
}

#[test]
fn an_unrequested_protocol_switch_fails() {
    let failed = |expect: &str| {
        let text = format!(
            "[load]\nusers = 1\n[stop]\nrequests = 1\n[[journey]]\nname = 'j'\n\
             [[journey.step]]\nname = 's'\nurl = '/'\n{expect}"
        );
        let (outcome, _) = run(plan(&text), 1, |_| (101, String::new(), String::new()));
        outcome.measurement.total.failures.get(&FailureClass::Status).copied()
    };
    assert_eq!(failed(""), Some(1));
    assert_eq!(failed("expect = { status = 101 }\n"), None);
}

const MEASURED: &str = "
[load]
users = 2
[stop]
requests = 20
[measure]
slo = ['metric depth: max<100', 'metric depth: p50<3', 'kind=api: p50<1s']
[[journey]]
name = 'j'
[[journey.step]]
name = 'queue'
url = '/{{iteration.number}}'
tags = { kind = 'api' }
check = { time = '<500us' }
capture = { d = { json = '/d', metric = 'depth', optional = true } }
";

/// Iteration 0 is not a number, 1 fails, the others have 4.5.
#[test]
fn numbers_of_responses_are_a_metric_with_objectives() {
    let (outcome, _) = run(plan(MEASURED), 2, |request| {
        let (status, body) = match line(request).split(' ').nth(1) {
            Some("/0") => (200, r#"{"d": "many"}"#),
            Some("/1") => (503, r#"{"error": "busy"}"#),
            _ => (200, r#"{"d": 4.5}"#),
        };
        (status, "X-Trace: 7\r\n".to_owned(), body.to_owned())
    });
    let total = &outcome.measurement.total;
    let depth = &total.journeys.metrics[0];
    assert_eq!((depth.count(), depth.unreadable), (18, 1));
    assert_eq!((depth.quantile(0.5), depth.ends()), (Some(4.5), Some((4.5, 4.5))));
    // each response takes a millisecond
    assert_eq!(total.journeys.unmet[0].count, 19);
    let objectives = plan(MEASURED).measure.slo;
    let met = objectives.iter().map(|it| it.evaluate(&it.figures(total, Nanos::from_secs(1))).1);
    assert_eq!(met.collect::<Vec<_>>(), [true, false, true]);
    let kept = &total.failed_responses.kinds[&(FailureClass::Status, 503)];
    let start = String::from_utf8(kept[0].start.clone()).unwrap();
    assert_eq!(kept.len(), 1);
    assert!(start.starts_with("HTTP/1.1 503 X\r\n"), "{start}");
    assert!(start.ends_with("X-Trace: 7\r\n\r\n{\"error\": \"busy\"}"), "{start}");
}

const SECRETIVE: &str = "
[load]
users = 1
[stop]
requests = 1
[request]
headers = ['X-Api-Key: plan-s3cr3t']
[[feeder]]
name = 'people'
format = 'csv'
text = '''
name,password
ann,feeder-s3cr3t
'''
[[journey]]
name = 'shop'
[[journey.step]]
name = 'login'
url = '/login/{{people.name}}'
capture = { token = { json = '/token' } }
[[journey.step]]
name = 'page'
url = '/page'
headers = { Authorization = 'Bearer {{token}}' }
[[journey.step]]
name = 'check'
url = '/check'
expect = { body = { json = { '/state' = 'ok' } } }
";

/// A failing page, or a wrong response, repeats everything that it received: neither the samples
/// nor the remarks that leave the worker contain a secret.
#[test]
fn secrets_that_a_failing_page_repeats_are_masked() {
    let message = "key plan-s3cr3t, captured-s3cr3t, captured%2Ds3cr3t, feeder-s3cr3t, 1234";
    let (outcome, log) = run(plan(SECRETIVE), 1, move |request| {
        let path = line(request).split(' ').nth(1).unwrap_or_default();
        if path.starts_with("/login") {
            return (200, String::new(), r#"{"token": "captured-s3cr3t"}"#.to_owned());
        }
        let cookie = "Set-Cookie: bare-s3cr3t\r\n".to_owned();
        match path {
            "/page" => (500, cookie, message.to_owned()),
            _ => (200, cookie, format!(r#"{{"state": "{message}"}}"#)),
        }
    });
    assert!(log[1].contains("Bearer captured-s3cr3t"), "{log:?}");
    let total = &outcome.measurement.total;
    let kept = &total.failed_responses.kinds[&(FailureClass::Status, 500)];
    let start = String::from_utf8(kept[0].start.clone()).unwrap();
    assert!(start.contains("Set-Cookie: ***\r\n"), "{start}");
    assert!(start.ends_with("key ***, ***, ***, ***, 1234"), "{start}");
    let (_, differed) = total.journeys.differed[2].example.clone().unwrap();
    assert!(differed.contains("***") && !differed.contains("s3cr3t"), "{differed}");
    for (kind, samples) in &total.failed_responses.kinds {
        let texts = samples.iter().map(|sample| String::from_utf8_lossy(&sample.start));
        texts.for_each(|text| assert!(!text.contains("s3cr3t"), "{kind:?}: {text}"));
    }
}
