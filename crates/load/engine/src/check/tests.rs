//! Runs whole plans in a simulated world given by a table of requests and results.

use super::*;
use crate::exchange::Reply;
use plan::NoFiles;
use plan::check::{Given, from_toml};
use protocol::http1::response::ResponseFacts;

/// Answers by the request line; keeps everything that was sent.
struct Table {
    now: Nanos,
    responses: Vec<(&'static str, &'static str)>,
    sent: Vec<String>,
    files: Vec<(&'static str, Vec<&'static str>)>,
    stop_after: usize,
}

impl Table {
    fn new(responses: &[(&'static str, &'static str)]) -> Table {
        let responses = responses.to_vec();
        Table {
            now: Nanos::ZERO,
            responses,
            sent: Vec::new(),
            files: Vec::new(),
            stop_after: usize::MAX,
        }
    }

    fn heard(&mut self, request: &Outgoing) -> ExchangeOutcome {
        self.now += Nanos::from_millis(10);
        let text = String::from_utf8_lossy(request.message.http1_bytes()).into_owned();
        let line = text.lines().next().unwrap_or_default().to_owned();
        self.sent.push(text);
        let found = self.responses.iter().position(|(asked, _)| line.starts_with(asked));
        let response = found.map_or("404\r\n", |at| self.responses[at].1);
        if response == "refused" {
            let trouble = ExchangeError::new(FailureClass::Refused, "refused".into());
            return ExchangeOutcome::nothing(trouble);
        }
        let (status, rest) = response.split_once("\r\n").unwrap_or((response, ""));
        let (fields, body) = rest.split_once("\r\n\r\n").unwrap_or((rest, ""));
        let facts =
            ResponseFacts { status: status.parse().unwrap_or(0), ..ResponseFacts::default() };
        let head = format!("HTTP/1.1 {status}\r\n{fields}\r\n\r\n").into_bytes();
        let reply = Reply { facts, head, body: body.as_bytes().to_vec() };
        ExchangeOutcome { result: Ok(reply), connected: true, took: Nanos::from_millis(10) }
    }
}

impl Caller for Table {
    fn exchange(&mut self, requests: Vec<Outgoing>) -> Vec<ExchangeOutcome> {
        requests.iter().map(|request| self.heard(request)).collect()
    }

    fn interrupted(&self) -> bool {
        self.sent.len() >= self.stop_after
    }
}

impl CheckWorld for Table {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Returns the next state of the file at each access; after the last state, that state again.
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.files.iter_mut().find(|(known, _)| *known == path);
        let (_, states) = found.ok_or_else(|| format!("{path}: no such file"))?;
        let now = states[0];
        if states.len() > 1 {
            states.remove(0);
        }
        Ok(now.as_bytes().to_vec())
    }

    fn list_folder(&mut self, path: &str) -> Result<Vec<String>, String> {
        Ok(self
            .read_file(path)?
            .split(|b| *b == b' ')
            .map(|n| String::from_utf8_lossy(n).into())
            .collect())
    }

    fn pause(&mut self, span: Nanos) {
        self.now += span;
    }
}

fn plan(steps: &str) -> CheckPlan {
    let text = format!("version = 1\n[check]\nbase = 'http://h:2020/base/'\n{steps}");
    from_toml(&text, &Given::default(), &NoFiles).unwrap()
}

/// Returns the number of passed, failed and skipped steps.
fn counts(result: &CheckResult) -> (usize, usize, usize) {
    let count = |of: fn(&State) -> bool| result.steps.iter().filter(|step| of(&step.state)).count();
    (
        count(|state| *state == State::Passed),
        count(State::failed),
        count(|state| matches!(state, State::Skipped(_))),
    )
}

fn summary(result: &CheckResult) -> String {
    let line = |step: &StepResult| match &step.state {
        State::Passed => format!("passed   {}", step.name),
        State::Failed(wrong) => {
            format!("FAILED   {}: {}: {} / {}", step.name, wrong.what, wrong.expected, wrong.got)
        }
        State::Skipped(why) => format!("skipped  {}: {why}", step.name),
    };
    result.steps.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn run(steps: &str, world: &mut Table) -> CheckResult {
    let plan = plan(steps);
    check_sendable(&plan).unwrap();
    run_check(&plan, &|_| true, world, &mut |_| {})
}

#[test]
fn requests_follow_the_steps() {
    let mut world = Table::new(&[("", "200\r\n")]);
    let steps = "[[step]]\nname = 'path'\nurl = '/a/../b%20c?x'\nquery = { y = 'z z', x = 'ä' }\n\
        [[step]]\nname = 'relative'\nurl = 'sub/x'\nclose = false\nmethod = 'DELETE'\n\
        [[step]]\nname = 'old'\nurl = 'http://other:81/'\nhttp = '1.0'\nuser = 'fred:rocks'\n\
        [[step]]\nname = 'form'\nurl = '/f'\nform = { given = 'A B', Submit = 'Send' }\n\
        [[step]]\nname = 'file'\nurl = '/u'\nform = { a = 'b' }\n\
        upload = { field = 'f', text = \"line\\n\", times = 2, name = 'x.txt' }\n\
        [[step]]\nname = 'text'\nurl = '/t'\nbody = 'hello'\nmethod = 'PUT'\n\
        headers = { Content-Type = 'text/plain', User-Agent = 'x' }\n";
    run(steps, &mut world);
    let version = concat!("loadstone/", env!("CARGO_PKG_VERSION"));
    let sent = world.sent.join("----\n").replace('\r', "").replace(version, "loadstone/V");
    insta::assert_snapshot!(sent);
}

#[test]
fn values_and_cookies_are_carried_to_later_steps() {
    let mut world = Table::new(&[
        ("POST /login", "200\r\nSet-Cookie: sid=9; Path=/\r\nLocation: /items/12"),
        ("GET /items/12", "200\r\n\r\n\r\n{\"id\": 12}"),
    ]);
    let steps = "[[step]]\nname = 'login'\nurl = '/login'\nbody = ''\n\
        capture = { id = { header = 'Location', regex = '([0-9]+)' } }\n\
        [[step]]\nname = 'item'\nurl = '/items/${id}'\nexpect = { body = { json = { '/id' = '${id}' } } }\n\
        [[step]]\nname = 'no cookies'\nurl = '/items/${id}'\njar = false\n\
        [[step]]\nname = 'other jar'\nurl = '/items/${id}'\njar = 'wilma'\n";
    let result = run(steps, &mut world);
    assert_eq!(counts(&result), (4, 0, 0), "{}", summary(&result));
    let cookies: Vec<bool> = world.sent.iter().map(|text| text.contains("Cookie: sid=9")).collect();
    assert_eq!(cookies, [false, true, false, false]);
}

#[test]
fn a_failed_step_is_reported_and_the_rest_continues() {
    let mut world = Table::new(&[("GET /ok", "200\r\n\r\n\r\nhello"), ("GET /no", "500\r\n")]);
    world.files = vec![("log", vec!["", "", "line"]), ("tmp", vec!["a b"])];
    let steps = "[[step]]\nname = 'ok'\nurl = '/ok'\nrepeat = 3\n\
        [[step]]\nname = 'no'\nurl = '/no'\nrepeat = 3\n\
        [[step]]\nname = 'capture'\nurl = '/ok'\ncapture = { id = { regex = 'id=(.)' } }\n\
        [[step]]\nname = 'needs it'\nurl = '/ok/${id}'\n\
        [[step]]\nname = 'log'\nfile = 'log'\nexpect = { contains = 'line' }\n\
        [[step]]\nname = 'tmp'\ndir = 'tmp'\nexpect = { empty = true }\n\
        [[step]]\nname = 'two'\ntogether = [ { name = 'x', url = '/ok' }, { name = 'y', url = '/no' } ]\n\
        [[step]]\nname = 'one of two'\ntogether = [ { name = 'x', url = '/ok' }, { name = 'y', url = '/no' } ]\n\
        expect = { succeeded = 1, failed = 1 }\n";
    let result = run(steps, &mut world);
    insta::assert_snapshot!(summary(&result));
    assert_eq!(world.sent.len(), 3 + 1 + 1 + 4);
}

#[test]
fn steps_with_files_need_a_root() {
    let mut world = Table::new(&[]);
    let result =
        run("[[step]]\nname = 'tmp'\ndir = 'tmp'\nexpect = { empty = true }\n", &mut world);
    assert_eq!(summary(&result), "skipped  tmp: --root gives the folder of the site's files");
}

#[test]
fn a_missing_server_ends_the_check_at_once() {
    let mut world = Table::new(&[("", "refused")]);
    let steps = "[[step]]\nname = 'a'\nurl = '/'\n[[step]]\nname = 'b'\nurl = '/'\n";
    let result = run(steps, &mut world);
    assert_eq!(result.unreachable.as_deref(), Some("refused"));
    assert_eq!(
        summary(&result),
        "FAILED   a: connection: one / refused\nskipped  b: no connection"
    );
    let mut world = Table::new(&[("", "refused")]);
    let steps = "[[step]]\nname = 'a'\nurl = '/'\nexpect = { outcome = 'refused' }\n";
    let result = run(steps, &mut world);
    assert_eq!((result.unreachable.clone(), counts(&result)), (None, (1, 0, 0)));
}

#[test]
fn a_signal_ends_it_without_the_interrupted_part() {
    let mut world = Table::new(&[("", "200\r\n")]);
    world.stop_after = 2;
    let steps = "[[step]]\nname = 'a'\nurl = '/'\n[[step]]\nname = 'b'\nurl = '/'\n\
        [[step]]\nname = 'c'\nurl = '/'\n";
    let result = run(steps, &mut world);
    assert!(result.interrupted);
    assert_eq!(summary(&result), "passed   a");
}

#[test]
fn only_selected_steps_run() {
    let mut world = Table::new(&[("", "200\r\n")]);
    let plan = plan("[[step]]\nname = 'a'\nurl = '/a'\n[[step]]\nname = 'b'\nurl = '/b'\n");
    let result = run_check(&plan, &|step| step.name == "b", &mut world, &mut |_| {});
    assert_eq!(summary(&result), "passed   b");
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn an_invalid_request_is_reported_beforehand() {
    let describe =
        |step: &str| check_sendable(&plan(&format!("[[step]]\nname = 'a'\n{step}\n"))).unwrap_err();
    let messages = [
        "url = '/a b'",
        "url = 'ftp://h/'",
        "url = 'http://a:b@h/'",
        "url = '/'\nmethod = 'GE T'",
        "url = '/'\nheaders = { \"A B\" = 'x' }",
        "url = '/'\nheaders = { A = \"x\\ny\" }",
        "url = '/'\nheaders = { Transfer-Encoding = 'chunked' }",
    ]
    .map(describe);
    insta::assert_snapshot!(messages.join("\n"));
}

/// GraphQL reports an error with status 200; the check reports it with its place.
#[test]
fn errors_of_graphql_are_found_in_a_good_response() {
    let steps = "[[step]]\nname = 'me'\nmethod = 'POST'\nurl = '/graphql'\n\
        json = { query = '{ me { name } }' }\nexpect = { body = { graphql = true } }\n";
    let summary =
        |response: &'static str| summary(&run(steps, &mut Table::new(&[("POST", response)])));
    for good in [
        "200\r\n\r\n\r\n{\"data\":{\"me\":{\"name\":\"a\"}}}",
        "200\r\n\r\n\r\n{\"data\":{},\"errors\":[]}",
    ] {
        assert_eq!(summary(good), "passed   me");
    }
    for (bad, why) in [
        (
            "200\r\n\r\n\r\n{\"data\":{\"me\":null},\"errors\":[{\"message\":\"no such user\",\"path\":[\"me\"]},{}]}",
            "no such user at [\"me\"] and 1 more",
        ),
        ("200\r\n\r\n\r\n{\"errors\":[\"odd\"]}", "odd"),
        ("200\r\n\r\n\r\n{\"data\":null}", "no data"),
        ("200\r\n\r\n\r\n<html>", "<html>"),
    ] {
        let found = summary(bad);
        let start = "FAILED   me: body graphql: data and no errors / ";
        assert!(found.starts_with(start) && found.contains(why), "{found}");
    }
}

#[test]
fn every_websocket_has_its_own_key_and_masks() {
    let step = |name: &str| {
        format!("[[step]]\nname = '{name}'\nconnect = '/ws'\ntalk = [{{ close = 1000 }}]\n")
    };
    let plan = plan(&format!("{}repeat = 2\n{}", step("a"), step("b")));
    let mut nonces = std::collections::BTreeSet::new();
    for at in [1, 2] {
        let mut world = Table::new(&[]);
        world.now = Nanos::from_secs(at);
        let mut runner = Runner {
            plan: &plan,
            world: &mut world,
            captured: BTreeMap::new(),
            jars: BTreeMap::new(),
            nonces: Seed(at).stream(Purpose::Sockets, 0),
            met: false,
            unreachable: None,
        };
        for step in &plan.steps {
            let Action::Ask(ask) = &step.action else { panic!("a request") };
            let sent = runner.exchange(&[ask, ask]).into_iter().filter_map(|(sent, _)| sent);
            for outgoing in sent {
                let crate::exchange::Message::Socket(talk) = outgoing.message else {
                    panic!("a WebSocket")
                };
                let upgrade = String::from_utf8_lossy(&talk.upgrade).into_owned();
                assert!(upgrade.contains(&talk.key), "{upgrade}");
                nonces.extend([talk.key.clone(), talk.masks.to_string()]);
            }
        }
    }
    assert_eq!(nonces.len(), 2 * 2 * 2 * 2, "{nonces:?}");
}
