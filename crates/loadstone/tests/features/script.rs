//! `run --script`: wrk's Lua interface as the source of a native run's requests.
#![cfg(feature = "lua")]

use crate::support::http::Recorder;
use crate::support::{Ran, Site, failures, measured, process, run, run_with_input};
use serde_json::json;
use std::path::PathBuf;

fn written(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("native-{name}.lua"));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const WALK: &str = "
local number = 0
function init(args) step = tonumber(args[1]) print(args[0] .. ' ' .. wrk.method) end
function request() number = number + step return wrk.format(nil, '/' .. number) end
function response(status, headers, body) last = status .. ' ' .. body end
function done(summary, latency, requests)
  print(summary.requests .. ' done, ' .. tostring(latency:percentile(50) > 0) .. ' ' .. #requests)
end";

#[test]
fn a_script_makes_the_requests() {
    let server = Recorder::plain();
    let (path, url) = (written("walk", WALK), server.url("/start"));
    let line = ["run", &url, "--script", &path, "-c", "1", "-n", "4", "--full", "--", "5"];
    // Lua prints on the standard output of the process
    let ran = process::run(&line).expect(&[0, 4]);
    let asked: Vec<String> = server.all().iter().map(|ask| ask.target().to_owned()).collect();
    // after the plain first call; a script's first text is made once more, to be checked
    assert_eq!(asked, ["/start", "/10", "/15", "/20", "/25"]);
    assert!(ran.stdout.starts_with(&format!("{url} GET\n")), "{ran:#?}");
    assert!(ran.stdout.ends_with("\n4 done, true 1\n"), "{ran:#?}");
    assert!(ran.stdout.contains("4 succeeded"), "{ran:#?}");
    let last = server.all().pop().unwrap();
    assert!(last.field("user-agent").unwrap().starts_with("loadstone/"), "{last:?}");
}

#[test]
fn it_finds_the_request_of_the_command_line() {
    let server = Recorder::plain();
    let path = written("plain", "wrk.headers['X-Two'] = wrk.headers['X-One'] .. '2'");
    let url = server.url("/a?b=c");
    let line = [
        "run", &url, "--script", &path, "-n", "2", "-c", "1", "--body", "x=1", "-H", "X-One: 1",
        "--user", "u:p", "-q",
    ];
    run(&line).expect(&[0, 4]);
    let all = server.all();
    assert_eq!(all.len(), 3);
    for ask in &all[1..] {
        assert_eq!(ask.line, "POST /a?b=c HTTP/1.1");
        assert_eq!(
            (ask.field("x-two"), ask.field("authorization")),
            (Some("12"), Some("Basic dTpw"))
        );
        assert_eq!(ask.field("content-length"), Some("3"));
    }
}

#[test]
fn json_has_standard_output_for_itself() {
    let server = Recorder::plain();
    let path = written("json", WALK);
    let url = server.url("/");
    let line = [&url, "--script", &path, "--rate", "100/s", "-n", "5", "--", "1"];
    let json = process::measure(&line);
    assert_eq!(json["status"], serde_json::json!({"200": 5}));
}

#[test]
fn a_plan_holds_its_script() {
    let server = Recorder::plain();
    let url = server.url("/");
    let line = ["run", &url, "--script", "-", "-n", "3", "-c", "1", "--print-plan", "--", "2"];
    let printed = run_with_input(&line, WALK.as_bytes()).expect(&[0]).stdout;
    assert!(printed.contains("[script]\nname = \"standard input\"\n"), "{printed}");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("native-script.toml");
    std::fs::write(&file, printed).unwrap();
    process::run(&["run", file.to_str().unwrap(), "--repeat", "2", "-q"]).expect(&[0, 4]);
    let asked: Vec<String> = server.all().iter().map(|ask| ask.target().to_owned()).collect();
    // each repeat has a separate state
    assert_eq!(asked, ["/", "/4", "/6", "/8", "/4", "/6", "/8"]);
}

#[test]
fn a_script_error_ends_the_run() {
    let server = Recorder::plain();
    let url = server.url("/");
    let describe = |name: &str, text: &str| -> Ran {
        let path = written(name, text);
        run(&["run", &url, "--script", &path, "-n", "9", "-c", "1", "-q"]).expect(&[2])
    };
    for (name, text, why) in [
        ("syntax", "x = = 1", ":1: unexpected symbol near '='"),
        ("first", "function request() error('boom') end", ":1: boom"),
        (
            "later",
            "n = 0 function request() n = n + 1 if n > 4 then error('late') end return wrk.format() end",
            ":1: late",
        ),
        ("garbage", "function request() return 'nonsense' end", "is not a request"),
        ("done", "function done() error('at the end') end", ":1: at the end"),
    ] {
        let ran = describe(name, text);
        assert!(ran.stderr.starts_with("loadstone: --script: "), "{ran:#?}");
        assert!(ran.stderr.contains(why), "{name}: {ran:#?}");
    }
    let missing = run(&["run", &url, "--script", "/no/such.lua"]).expect(&[2]);
    assert!(missing.stderr.contains("--script: "), "{missing:#?}");
    let lost = run(&["run", &url, "--", "word"]).expect(&[2]);
    assert!(lost.stderr.contains("add --script FILE"), "{lost:#?}");
    let both = run(&["run", &url, "--script", "-", "--body-file", "-"]).expect(&[2]);
    assert!(both.stderr.contains("--script - reads standard input"), "{both:#?}");
    assert_eq!(server.all().iter().filter(|ask| ask.line.contains("nonsense")).count(), 0);
}

const VISIT: &str = "
steps = { 'log in', 'me', 'order' }
function journey(user)
  if not user.token then
    local login = user:post('/login?name=u' .. user.number, { name = 'log in' })
    user.token = login:json().token
  end
  local me = user:get('/me', { name = 'me', headers = { Authorization = 'Bearer ' .. user.token } })
  if me:json().name ~= 'u' .. user.number then user:fail('it is ' .. me.body) end
  local order = user:get('/redirect/2', { name = 'order', follow = true, expect = 200 })
  user:check(order.status == 200, 'not there')
  if user.iteration == 5 then local nothing = nil + 1 end
end";

#[test]
fn a_script_carries_users_on_their_journey() {
    let site = Site::start(&[]);
    let path = written("visit", VISIT);
    for version in ["1.1", "2"] {
        let url = site.url("/");
        let line = [
            &url,
            "--script",
            &path,
            "-c",
            "3",
            "-n",
            "12",
            "--threads",
            "2",
            "--http",
            version,
            "--slo",
            "me: p99<60s",
        ];
        let json = measured(&line, &[0, 1, 4]);
        let row = |name: &str| {
            let rows = json["per_url"].as_array().unwrap();
            let found = rows.iter().find(|row| row["name"] == name);
            found.unwrap_or_else(|| panic!("{name}: {rows:#?}")).clone()
        };
        assert_eq!(row("log in")["count"], 3, "each user logs in once");
        assert_eq!(row("me")["succeeded"], 12);
        // two redirects and the page, each a separate call; the script's own error fails the last
        // of one of them
        assert_eq!(
            (row("order")["count"].clone(), row("order")["succeeded"].clone()),
            (36.into(), 35.into())
        );
        assert_eq!(failures(&json), [("script".to_owned(), 1)]);
        let journeys = json["journeys"].to_string();
        assert!(
            journeys.contains(":12: attempt to perform arithmetic on a nil value"),
            "{journeys}"
        );
        assert_eq!(json["journeys"]["transactions"][0]["failed"], 1);
    }
}

#[test]
fn a_journey_script_calls_the_servers_that_it_names() {
    let (one, two) = (Recorder::plain(), Recorder::plain());
    let text = format!(
        "servers = {{ '{}' }}\nfunction journey(user)\n  user:get('/a')\n  user:get('{}')\nend",
        two.url("/"),
        two.url("/b?c")
    );
    let (path, url) = (written("servers", &text), one.url("/"));
    run(&["run", &url, "--script", &path, "-c", "1", "-n", "2", "-q"]).expect(&[0, 4]);
    let asked = |server: &Recorder| -> Vec<String> {
        server.all().iter().map(|ask| ask.target().to_owned()).collect()
    };
    assert_eq!(
        (asked(&one), asked(&two)),
        (
            ["/", "/a", "/a"].map(str::to_owned).to_vec(),
            ["/b?c", "/b?c"].map(str::to_owned).to_vec(),
        )
    );
    // URLs outside the lists are not requested
    let text = text.replacen("servers", "others", 1);
    let path = written("servers", &text);
    let json = measured(&[&url, "--script", &path, "-c", "1", "-n", "2"], &[0, 1, 4]);
    assert_eq!(failures(&json), [("script".to_owned(), 2)]);
    assert_eq!(two.all().len(), 2);
    assert!(json["journeys"].to_string().contains("is not a server of this run"), "{json:#}");
}

#[test]
fn a_wrong_journey_is_reported_before_the_first_packet() {
    let server = Recorder::plain();
    let url = server.url("/");
    for (name, text, why) in [
        ("syntax", "function journey(user)\n  x = = 1\nend", ":2: unexpected symbol near '='"),
        ("names", "steps = { 'a', 'a' }\nfunction journey() end", "the name of an earlier step"),
        ("servers", "servers = { 'x:y:z' }\nfunction journey() end", "servers: "),
        ("top", "function journey() end\nerror('at the top')", ":2: at the top"),
    ] {
        let path = written(&format!("wrong-{name}"), text);
        let ran = run(&["run", &url, "--script", &path, "-n", "1"]).expect(&[2]);
        assert!(ran.stderr.starts_with("loadstone: --script: "), "{ran:#?}");
        assert!(ran.stderr.contains(why), "{name}: {ran:#?}");
    }
    let path = written("wrong-body", "function journey() end");
    let ran = run(&["run", &url, "--script", &path, "--body", "x"]).expect(&[2]);
    assert!(ran.stderr.contains("each step has its own body"), "{ran:#?}");
    assert!(server.all().is_empty());
    // a script that never makes a request ends the run, as does a script whose init fails
    let ran = run(&["run", &url, "--script", &path, "-c", "1", "-n", "5", "-q"]);
    assert_ne!(ran.code, 101, "{ran:#?}");
    let path = written("wrong-first", "function journey()\n  error('at once')\nend");
    let ran = run(&["run", &url, "--script", &path, "-c", "1", "-n", "5"]);
    // the line breaks depend on the length of the path
    let output = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains(":2: at once"), "{ran:#?}");
    let path = written("wrong-init", "function init() error('no') end\nfunction journey() end");
    let ran = run(&["run", &url, "--script", &path, "-n", "1"]).expect(&[2]);
    assert!(ran.stderr.contains(":1: no"), "{ran:#?}");
}

#[test]
fn a_plan_mixes_journeys_of_steps_and_of_scripts() {
    let site = Site::start(&[]);
    written(
        "mixed",
        "function journey(user)\n  user:get('/bytes/' .. user:value('sizes.n'), { name = 'by script' })\nend",
    );
    let text = format!(
        "version = 1\nurl = '{}'\n[load]\nusers = 2\n[stop]\nrequests = 40\n[[feeder]]\n\
         name = 'sizes'\norder = 'random'\ngenerate = {{ n = '10..19' }}\n[[journey]]\nname = 'scripted'\n\
         script-file = 'native-mixed.lua'\nsteps = ['by script']\nfeeders = ['sizes']\n\
         [[journey]]\nname = 'plain'\n[[journey.step]]\nname = 'by step'\nurl = '/bytes/20'\n",
        site.url("/")
    );
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("native-mixed.toml");
    std::fs::write(&file, text).unwrap();
    let json = measured(&[file.to_str().unwrap()], &[0, 4]);
    assert_eq!(json["outcomes"]["succeeded"], 40);
    let rows = json["per_url"].as_array().unwrap();
    for name in ["by script", "by step"] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        assert!(row["succeeded"].as_u64().unwrap() > 5, "{rows:#?}");
    }
}

const K6_VISIT: &str = "
import http from 'k6/http';
import { check, group } from 'k6';
export const options = { vus: 2, iterations: 6, thresholds: { http_req_failed: ['rate<0.01'] } };
export function setup() { return { token: http.post(`${__ENV.SITE}/login?name=u1`).json('token') }; }
export default function (data) {
  const headers = { Authorization: `Bearer ${data.token}` };
  const me = group('who am I', () => http.get(`${__ENV.SITE}/me`, { headers }));
  check(me, { 'is u1': (r) => r.json('name') === 'u1', never: () => false });
  http.get(`${__ENV.SITE}/redirect/1`);
}
export function teardown(data) { console.log('token kept', data.token.length > 0); }
";

#[test]
fn a_script_of_k6_is_measured_as_a_journey() {
    let site = Site::start(&[]);
    let path = written("k6-visit", K6_VISIT).replace(".lua", ".js");
    std::fs::write(&path, K6_VISIT).unwrap();
    let variable = format!("SITE={}", site.url(""));
    let ran = run(&["run", &path, "--json", "-", "--", &variable]).expect(&[0, 4]);
    let json = ran.json();
    assert_eq!(json["status"], json!({"200": 12, "302": 6}), "{ran:#?}");
    let names: Vec<_> =
        json["per_url"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["request", "who am I"]);
    assert_eq!(json["per_url"][1]["count"], 6);
    assert!(ran.stderr.contains("token kept true"), "{ran:#?}");
    // the same script as the workload of a search for capacity
    let line = ["ramp", &path, "--population", "--from", "1", "--to", "2", "--hold", "200ms", "-q"];
    run(&[&line[..], &["--", &variable]].concat()).expect(&[0, 1, 4]);
}

const K6_OWN: &str = "
import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';
import { Trend } from 'k6/metrics';
const size = new Trend('size');
export const options = { vus: 1, duration: '30s', thresholds: { size: ['max<50'], checks: ['rate>0.9'] } };
export default function () {
  const res = http.get(`${__ENV.SITE}/bytes/40`);
  size.add(res.body.length);
  check(res, { ok: (r) => r.status === 200 });
  if (exec.scenario.iterationInTest === 20) exec.test.abort('it is enough');
}
";

#[test]
fn metrics_and_the_end_of_a_script_of_k6_are_the_run_s() {
    let site = Site::start(&[]);
    let path = written("k6-own", K6_OWN).replace(".lua", ".js");
    std::fs::write(&path, K6_OWN).unwrap();
    let variable = format!("SITE={}", site.url(""));
    let json = run(&["run", &path, "--json", "-", "--", &variable]).expect(&[1, 4]).json();
    assert_eq!(json["aborted"], "test.abort(): it is enough");
    let metrics = &json["journeys"]["metrics"];
    assert_eq!((&metrics[0]["name"], &metrics[0]["max"]), (&json!("size"), &json!(40.0)));
    assert_eq!((&metrics[1]["name"], &metrics[1]["mean"]), (&json!("checks"), &json!(1.0)));
    let slo: Vec<_> = json["slo"].as_array().unwrap().iter().map(|it| &it["objective"]).collect();
    assert_eq!(slo, ["metric checks: mean>0.9", "metric size: max<50"]);
}

/// The login also works for scripts with wrk's interface: the script's own text is sent again with
/// the credentials, and the script sees no challenge.
#[test]
fn a_script_s_requests_are_proved() {
    let site = Site::start(&[]);
    let text = "local seen = {}\nfunction request() return wrk.format('GET', '/digest?a') end\n\
                function response(status) seen[#seen + 1] = status end\n\
                function setup(thread) it = thread end\nfunction init() end\n\
                function done() end";
    let path = written("digest", text);
    let url = site.url("/");
    for version in ["fred:flintstone", "fred:x"] {
        let good = version == "fred:flintstone";
        let line = ["--script", &path, "-c", "1", "-n", "4", "--digest", version, &url];
        let json = measured(&line, &[0, 1, 4]);
        let wanted = if good { json!({"200": 4, "401": 1}) } else { json!({"401": 8}) };
        assert_eq!(json["status"], wanted);
    }
    let path =
        written("signed", "function request() return wrk.format('PUT', '/x', nil, 'body') end");
    let server = Recorder::plain();
    let url = server.url("/");
    let scope = ["--aws-sigv4", "aws:amz:eu:s3", "--user", "KEY:secret"];
    let line = ["run", &url, "--script", &path, "-c", "1", "-n", "2", "-q"];
    run(&[&line[..], &scope].concat()).expect(&[0, 4]);
    let last = server.all().pop().unwrap();
    assert_eq!(last.line, "PUT /x HTTP/1.1");
    assert!(last.field("authorization").unwrap().starts_with("AWS4-HMAC-SHA256"), "{last:?}");
    let two = written("two", "function request() local r = wrk.format() return r .. r end");
    let line = ["run", &url, "--script", &two, "-n", "2"];
    let ran = run(&[&line[..], &scope].concat()).expect(&[2]);
    assert!(ran.stderr.contains("let it return one"), "{}", ran.stderr);
}

#[test]
fn a_journey_s_script_logs_in_by_digest() {
    let site = Site::start(&[]);
    let path =
        written("login", "function journey(user)\n  user:get('/digest?a', { expect = 200 })\nend");
    let url = site.url("/");
    for version in ["1.1", "2"] {
        let line = [
            "--script",
            &path,
            "-c",
            "2",
            "-n",
            "6",
            "--http",
            version,
            "--digest",
            "fred:flintstone",
            &url,
        ];
        let json = measured(&line, &[0, 4]);
        assert_eq!(json["status"], json!({"200": 6, "401": 2}), "{version}");
    }
}
