//! Planted bugs over sockets, one default case each: found, weighed, kept with their bytes, shrunk, and failing
//! again when they are sent again. Simulations show the same of a whole run.

use super::evidence::names;
use super::support::{Site, run, text};
use serde_json::Value;

/// The switch, the case that shows it, how grave that is, and whether it is shrunk.
const PLANTED: [(&str, &str, &str, bool); 5] = [
    ("dies-of-long-field", "L-02", "high", true),
    ("dies-on-percent-n", "F-09", "high", true),
    ("mixes-pipelined", "M-02", "critical", false),
    ("slow-expression", "L-02", "medium", true),
    ("leaves-traces", "B-01", "critical", false),
];

/// What a run says of a planted bug, and whether the bytes that it kept fail again.
fn planted((switch, only, severity, shrunk): (&str, &str, &str, bool)) {
    let site = Site::start(&[("range", switch)]);
    let parent = tempfile::tempdir().unwrap();
    let (url, out) = (site.url(faulty::PATH), parent.path().to_str().unwrap());
    let post = faulty::POST;
    let words = ["torture", "--fail-on", "low", "--only", only, "--sut", "none", "--post", post];
    let ran = run(&[&words[..], &["--out", out, "--json", "-", &url]].concat()).expect(&[1]);
    let document = ran.json();
    let case = &document["cases"][0];
    assert_eq!(
        (text(case, "/id"), text(case, "/severity")),
        (only, severity),
        "{switch}: {case:#}"
    );
    let worst = |one: &Value| text(one, "/severity") == severity && !text(one, "/sent").is_empty();
    let exchanges = case["exchanges"].as_array().unwrap();
    assert!(exchanges.iter().any(|one| !one["severity"].is_null() && worst(one)), "{case:#}");
    let small = document["shrunk"].as_array().unwrap();
    assert_eq!(!small.is_empty(), shrunk, "{switch}: {small:?}");
    let root = parent.path().join(&names(parent.path())[0]);
    let failures = root.join("failures");
    let first = failures.join(&names(&failures)[0]);
    let ran = run(&["torture", "replay", "--json", "-", first.to_str().unwrap()]).expect(&[1]);
    let row = &ran.json()["failures"][0];
    assert_eq!((row["failed"].as_u64(), row["tries"].as_u64()), (Some(3), Some(3)), "{row:#}");
}

#[test]
fn planted_bugs_are_found_and_replayed_over_sockets() {
    std::thread::scope(|scope| {
        PLANTED.iter().for_each(|one| {
            scope.spawn(|| planted(*one));
        });
    });
}
