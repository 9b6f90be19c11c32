//! A fleet runs every kind of plan like a single machine.

use crate::support::process::{measured, run};
use crate::support::quic::QuicSite;
use crate::support::{Site, finish, keep, number, text, untested, whole};
use crate::{fleet, need_server};
use serde_json::Value;
use std::path::Path;

fn by_fleet(args: &[&str], url: &str) -> Value {
    finish(fleet("2", args, url), b"").expect(&[0, 4]).json()
}

/// Setup whose token every user sends, and a feeder that uses each row once.
fn journeys(site: &Site, folder: &Path) -> String {
    let rows: String = (0..24).map(|row| format!("user-{row}\n")).collect();
    keep(folder, "people.csv", &format!("name\n{rows}"));
    let text = format!(
        "version = 1\nurl = '{}'\n[load]\nrate = '40/s'\n[stop]\nrequests = 24\n\
         [[setup]]\nname = 'admin'\nurl = '/login?name=admin'\n\
         capture = {{ admin = {{ json = '/token' }} }}\n\
         [[feeder]]\nname = 'people'\nfile = 'people.csv'\norder = 'unique'\n\
         [[journey]]\nname = 'visit'\n\
         [[journey.step]]\nname = 'me'\nurl = '/me?as={{{{people.name}}}}'\n\
         headers = {{ Authorization = 'Bearer {{{{admin}}}}' }}\n\
         expect = {{ body = {{ json = {{ '/name' = 'admin' }} }} }}\n\
         [[teardown]]\nname = 'bye'\nurl = '/me?as=nobody'\n\
         headers = {{ Authorization = 'Bearer {{{{admin}}}}' }}\n",
        site.url("/")
    );
    keep(folder, "plan.toml", &text)
}

/// Returns the requests for `/me` that the site received, sorted.
fn asked(log: &Path) -> Vec<String> {
    requests_with(log, "/me")
}

/// Returns the paths in the log that contain this text, sorted.
fn requests_with(log: &Path, wanted: &str) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap();
    let paths = text.lines().filter_map(|line| line.split_whitespace().nth(6));
    let mut asked: Vec<String> =
        paths.filter(|path| path.contains(wanted)).map(str::to_owned).collect();
    asked.sort();
    asked
}

#[test]
fn journeys_use_setup_captures_and_each_row_once() {
    need_server();
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, by: &dyn Fn(&str) -> Value| {
        let log = folder.path().join(name);
        let site = Site::start(&[("log", &log.display().to_string())]);
        let plan = journeys(&site, folder.path());
        let report = by(&plan);
        assert_eq!(whole(&report, "/outcomes/succeeded"), 24, "{:#}", report["failures"]);
        site.stop();
        asked(&log)
    };
    let alone = of("alone.log", &|plan| measured(&[plan], &[0, 4]));
    let together = of("together.log", &|plan| by_fleet(&[], plan));
    // each of the 24 rows, and the teardown
    assert_eq!(alone.len(), 25, "{alone:?}");
    assert!(alone.is_sorted_by(|one, next| one < next), "a row was taken twice: {alone:?}");
    assert_eq!(alone, together);
}

/// The agents receive the descriptors, which also give the content types of Connect.
#[test]
fn agents_call_by_grpc_grpc_web_and_connect() {
    need_server();
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(&[]);
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/site/src/proper/echo.proto");
    let text = format!(
        "version = 1\nurl = 'grpc://{}'\n[load]\nusers = 4\n[stop]\nrequests = 20\n\
         [[journey]]\nname = 'talk'\n\
         [[journey.step]]\nname = 'say'\ngrpc = 'loadstone.v1.Echo/Say'\n\
         message = {{ text = '{{{{iteration.number}}}}' }}\n\
         expect = {{ body = {{ json = {{ '/text' = '{{{{iteration.number}}}}' }} }} }}\n\
         [[journey.step]]\nname = 'repeat'\ngrpc = 'loadstone.v1.Echo/Repeat'\n\
         message = {{ text = 'x', count = 3 }}\n\
         expect = {{ body = {{ json = {{ '/2/number' = 3 }} }} }}\n",
        site.authority()
    );
    let plan = keep(folder.path(), "plan.toml", &text);
    let by = |variant| ["--grpc-protocol", variant, "--proto", proto];
    for more in [&[][..], &by("grpc-web-text"), &by("connect")] {
        let report = by_fleet(more, &plan);
        assert_eq!(whole(&report, "/outcomes/succeeded"), 40, "{:#}", report["failures"]);
        assert_eq!(whole(&report, "/grpc/statuses/0/calls"), 40, "{more:?}");
        assert_eq!(whole(&report, "/streams/events"), 20 + 60, "{more:?}");
    }
}

#[test]
fn each_agent_requests_the_tokens_of_its_users() {
    need_server();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("site.log");
    let site = Site::start(&[("log", &log.display().to_string())]);
    let token = site.url("/token?expires=1h");
    let login = ["--token-client", "fred", "--token-secret", "flintstone", "--token-url", &token];
    let load = ["-c", "7", "-n", "70", "--token-per-user"];
    let report = by_fleet(&[&login[..], &load[..]].concat(), &site.url("/me"));
    assert_eq!(whole(&report, "/outcomes/succeeded"), 70, "{:#}", report["failures"]);
    site.stop();
    let text = std::fs::read_to_string(&log).unwrap();
    let requests = text.lines().filter(|line| line.contains("POST /token")).count();
    // one for each user, and one for the manager's first call
    assert_eq!(requests, 8, "{text}");
}

#[test]
fn a_budget_of_bytes_is_divided() {
    need_server();
    let site = Site::start(&[]);
    let report =
        by_fleet(&["-c", "2", "-d", "20s", "--bytes-max", "100k"], &site.url("/bytes/2000"));
    // each agent stops when it has received its half
    let received = whole(&report, "/bytes/received");
    assert!((100 << 10..110 << 10).contains(&received), "{received}");
    for agent in report["fleet"]["agents"].as_array().unwrap() {
        let offered = whole(agent, "/offered");
        assert!((20..32).contains(&offered), "{agent}");
    }
}

#[test]
fn each_agent_uses_http3() {
    need_server();
    let site = QuicSite::start();
    let options = ["--http", "3", "--ca", &site.ca, "-c", "4", "-n", "40"];
    let report = by_fleet(&options, &site.url("/"));
    assert_eq!(whole(&report, "/outcomes/succeeded"), 40);
    assert_eq!(whole(&report, "/http3/quic/handshakes"), 4);
}

/// WebSockets of each agent share its connections of HTTP/2 or HTTP/3; rooms are not divided.
#[test]
fn each_agent_has_websockets_on_shared_connections() {
    need_server();
    let (site, quic) = (Site::start(&[]), QuicSite::start());
    let plain = site.url("/ws").replacen("http", "ws", 1);
    let secure = quic.url("/ws").replacen("http", "ws", 1);
    let each = ["-c", "4", "-n", "40"];
    let over = |more: &[&str], url: &str| {
        let report = by_fleet(&[&each[..], more].concat(), url);
        assert_eq!(whole(&report, "/outcomes/succeeded"), 40, "{more:?}: {}", report["failures"]);
        assert_eq!(whole(&report, "/messages/received"), 40, "{more:?}");
        ["2", "3"].map(|it| whole(&report, &format!("/messages/http{it}_connections")))
    };
    assert_eq!(over(&["--http", "1.1"], &plain), [0, 0]);
    assert_eq!(over(&["--http", "2"], &plain), [2, 0]);
    assert_eq!(over(&["--http", "3", "--ca", &quic.ca], &secure), [0, 2]);
    let rooms = ["-c", "8", "--ws-rooms", "4", "--ws-rate", "40/s", "-d", "1s", "--http", "2"];
    let report = by_fleet(&rooms, &format!("{plain}?room=fleet{{room}}"));
    assert!(number(&report, "/messages/fan_out/reach") > 0.999_999, "{}", report["messages"]);
}

#[test]
fn each_agent_sets_up_a_path_and_a_tcp_of_its_own() {
    need_server();
    let site = Site::start(&[]);
    let url = site.url("/");
    let tried = run(&["run", &url, "--stack", "own", "-n", "1", "-c", "1", "-q"]);
    if tried.code == 2 || tried.code == 3 {
        untested(&format!("paths of a fleet are not tested: {}", tried.stderr.trim_end()));
        return;
    }
    let report = by_fleet(&["-c", "4", "-n", "20", "--path", "rtt=20ms"], &url);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 20);
    assert!(number(&report, "/response_time_s/min") > 0.019, "{report:#}");
    // if both agents used the same addresses, one of them would wait for a second SYN
    assert!(number(&report, "/phases_s/connect/max") < 0.9, "{:#}", report["phases_s"]);
    let packets = whole(&report, "/path/kinds/0/up/arrived");
    assert!(packets >= 20, "{packets}");
    let report = by_fleet(&["-c", "4", "-n", "20", "--stack", "own"], &url);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 20);
    assert_eq!(text(&report, "/client/io"), "own TCP over TUN");
}

/// Each agent would use the same addresses of the network, so this is refused.
#[test]
fn a_device_by_af_xdp_is_one_machines() {
    need_server();
    let words = ["--stack", "own:xdp=lo", "--sources", "10.9.0.0/24", "-c", "4", "-n", "20"];
    let ran = finish(fleet("2", &words, "http://10.9.1.1:9/"), b"");
    assert_eq!(ran.code, 2, "{ran:#?}");
    let text = "--stack own:xdp has one prefix of addresses, which all agents would use";
    assert!(ran.stderr.contains(text), "{ran:#?}");
}

/// Two calls, a check and a group for each iteration, whose number the calls have.
fn k6_script(site: &Site, folder: &Path) -> String {
    let text = format!(
        "import http from 'k6/http';
         import {{ check, group }} from 'k6';
         import exec from 'k6/execution';
         export const options = {{ vus: 4, iterations: 60 }};
         export default function () {{
           const number = exec.scenario.iterationInTest;
           const me = http.get(`{0}hw?of=${{number}}`, {{ tags: {{ name: 'hw' }} }});
           check(me, {{ 'is found': (it) => it.status === 200 }});
           group('more', () => http.get(`{0}bytes/100?of=${{number}}`, {{ tags: {{ name: 'bytes' }} }}));
         }}",
        site.url("/")
    );
    keep(folder, "visit.js", &text)
}

#[test]
fn a_k6_script_makes_the_iterations_and_calls_of_one_run() {
    need_server();
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, by: &dyn Fn(&str) -> Value| {
        let log = folder.path().join(name);
        let site = Site::start(&[("log", &log.display().to_string())]);
        let report = by(&k6_script(&site, folder.path()));
        site.stop();
        let rows = report["per_url"].as_array().unwrap().iter();
        let calls: Vec<(String, u64, u64)> = rows
            .map(|row| (text(row, "/name").to_owned(), whole(row, "/count"), whole(row, "/failed")))
            .collect();
        let steps = report["journeys"]["steps"].as_array().unwrap().iter();
        let checks: u64 = steps.map(|step| whole(step, "/check_met")).sum();
        assert_eq!(whole(&report, "/journeys/transactions/0/succeeded"), 60, "{name}");
        (calls, checks, requests_with(&log, "of="))
    };
    let alone = of("alone.log", &|script| measured(&[script], &[0, 4]));
    let together = of("together.log", &|script| by_fleet(&[], script));
    // two calls of each iteration, whose numbers all agents share
    assert_eq!((alone.1, alone.2.len()), (60, 120), "{alone:?}");
    assert!(alone.2.is_sorted_by(|one, next| one < next), "a number was used twice: {alone:?}");
    assert_eq!(alone, together);
}
