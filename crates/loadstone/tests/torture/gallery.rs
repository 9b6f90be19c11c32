//! Planted bugs, over sockets: each is found by its case within 20 s, rated, recorded with its
//! bytes, shrunk, and fails again when the bytes are sent to another server with the same bug, but
//! not to one without it. Bugs that take minutes to detect, because resources are never released,
//! are covered by simulations, and all of them by complete simulated runs.

use super::evidence::names;
use super::support::{Site, run, text};
use serde_json::Value;

/// Switch, case, severity, and whether the bytes are shrunk: a failure that needs several
/// connections is kept complete.
const PLANTED: [(&str, &str, &str, bool); 3] = [
    ("dies-on-percent-n", "F-09", "high", true),
    ("mixes-pipelined", "M-02", "critical", false),
    ("leaves-traces", "B-01", "critical", false),
];

/// Checks the report of a run against a planted bug, and that the recorded bytes fail again.
fn planted((switch, only, severity, shrunk): (&str, &str, &str, bool)) {
    let site = Site::start(&[("range", switch)]);
    let parent = tempfile::tempdir().unwrap();
    let (url, out) = (site.url(faulty::PATH), parent.path().to_str().unwrap());
    let post = faulty::POST;
    // a server that crashes is down for 500 ms each time, for 300 requests
    let limit = ["--case-max", "20s"];
    let words = ["torture", "--fail-on", "low", "--only", only, "--post", post];
    let ran = run(&[&words[..], &limit, &["--out", out, "--json", "-", &url]].concat());
    let document = ran.json();
    assert_eq!(ran.code, 1, "{switch}: {document:#}");
    let cases = document["cases"].as_array().unwrap();
    let found = cases.iter().find(|case| text(case, "/severity") == severity);
    let Some(case) = found else { panic!("{switch}: nothing {severity} in {document:#}") };
    let sent = |one: &Value| !one["severity"].is_null() && !text(one, "/sent").is_empty();
    assert!(case["exchanges"].as_array().unwrap().iter().any(sent), "{switch}: {case:#}");
    let small = document["shrunk"].as_array().unwrap();
    assert_eq!(!small.is_empty(), shrunk, "{switch}: {small:?}");
    let root = parent.path().join(&names(parent.path())[0]);
    let failures = root.join("failures");
    let id = text(case, "/id");
    let kept = names(&failures).into_iter().find(|name| name.starts_with(id));
    let kept = failures.join(kept.unwrap_or_else(|| panic!("{switch}: nothing kept of {id}")));
    let kept = kept.to_str().unwrap();
    assert_eq!(replayed(switch, kept), (1, 3, 3), "{switch}");
    assert_eq!(replayed("none", kept), (0, 0, 3), "{switch}");
}

/// Replays a failure against its own server; returns the exit code, and the failed tries of all
/// tries.
fn replayed(switch: &str, kept: &str) -> (i32, u64, u64) {
    let site = Site::start(&[("range", switch)]);
    let to = site.url(faulty::PATH);
    let ran = run(&["torture", "replay", "--json", "-", "--to", &to, kept]);
    let row = &ran.json()["failures"][0];
    (ran.code, row["failed"].as_u64().unwrap(), row["tries"].as_u64().unwrap())
}

#[test]
fn planted_bugs_are_found_and_replayed_over_sockets() {
    std::thread::scope(|scope| {
        PLANTED.iter().for_each(|one| {
            scope.spawn(|| planted(*one));
        });
    });
}
