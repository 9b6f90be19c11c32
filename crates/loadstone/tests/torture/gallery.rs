//! Bugs that were planted on purpose, over sockets: each found by the case of a default run that is to
//! find it, weighed, kept with its bytes, shrunk, and failing again when the bytes are sent again.
//! Simulations do the same with whole runs.

use super::evidence::names;
use super::support::{Site, run, text};
use serde_json::Value;

/// The switch, the case, how grave it is, and whether bytes of it are shrunk: what takes several
/// connections is kept whole.
const PLANTED: [(&str, &str, &str, bool); 8] = [
    ("dies-of-long-field", "L-02", "high", true),
    ("dies-on-percent-n", "F-09", "high", true),
    ("descriptors", "C-03", "critical", false),
    ("hangs-on-extensions", "L-10,C-13", "critical", false),
    ("mixes-pipelined", "M-02", "critical", false),
    ("slow-expression", "L-02", "medium", true),
    ("keeps-bodies", "C-05", "critical", false),
    ("leaves-traces", "B-01", "critical", false),
];

/// What a run says of a planted bug, and whether the bytes that it kept fail again.
fn planted((switch, only, severity, shrunk): (&str, &str, &str, bool)) {
    let site = Site::start(&[("range", switch)]);
    let parent = tempfile::tempdir().unwrap();
    let (url, out) = (site.url(faulty::PATH), parent.path().to_str().unwrap());
    let post = faulty::POST;
    let words = ["torture", "--fail-on", "low", "--only", only, "--post", post];
    let ran = run(&[&words[..], &["--out", out, "--json", "-", &url]].concat());
    let document = ran.json();
    assert!([1, 4].contains(&ran.code), "{switch}: {document:#}");
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
    let again = run(&["torture", "replay", "--json", "-", kept.to_str().unwrap()]).expect(&[1]);
    let row = &again.json()["failures"][0];
    let (failed, tries) = (row["failed"].as_u64(), row["tries"].as_u64());
    // what is gone for good is gone at the first try
    let tried = if switch == "hangs-on-extensions" { 1 } else { 3 };
    assert_eq!((failed, tries), (Some(tried), Some(tried)), "{switch}: {row:#}");
}

#[test]
fn planted_bugs_are_found_and_replayed_over_sockets() {
    std::thread::scope(|scope| {
        PLANTED.iter().for_each(|one| {
            scope.spawn(|| planted(*one));
        });
    });
}
