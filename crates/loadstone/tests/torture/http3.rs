//! Torture over HTTP/3, through the program: the firing range over QUIC with its planted bugs,
//! servers without a defect, and the messages if HTTP/3 is unavailable.

use super::evidence::names;
use super::outcomes;
use super::support::quic::QuicSite;
use super::support::{Site, free_port, run, text};
use serde_json::Value;
use std::collections::BTreeSet;
use torture::case::HTTP3;
use torture::catalogue;

/// Switch, the case of a default run that finds it, and its severity. Simulations cover bugs that
/// take minutes to detect, because workers are never released.
const PLANTED: [(&str, &str, &str); 9] = [
    ("dies-of-data-first", "Q-10", "high"),
    ("keeps-cancelled-streams", "Q-41", "high"),
    ("grows-tables", "Q-34", "medium"),
    ("passes-over-forbidden", "Q-72", "low"),
    ("answers-no-challenge", "Q-71", "high"),
    ("takes-any-parameter", "Q-57", "low"),
    ("evicts-referenced", "Q-35", "medium"),
    ("serves-early", "Q-84", "high"),
    ("closes-on-stale-tickets", "Q-89", "low"),
];

fn tortured(url: &str, more: &[&str]) -> super::support::Ran {
    run(&[&["torture", "--insecure", "--fail-on", "low"], more, &[url]].concat())
}

/// Cases that are findings.
fn findings(document: &Value) -> Vec<(String, String)> {
    let well = ["pass", "pass-alternative", "advisory", "skipped", "unseen"];
    let bad = |(_, outcome): &(String, String)| !well.contains(&outcome.as_str());
    outcomes(document).into_iter().filter(bad).collect()
}

fn planted((switch, only, severity): (&str, &str, &str)) {
    let site = QuicSite::with(&[("range", switch)]);
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().to_str().unwrap();
    let ran = tortured(
        &site.url(faulty::PATH),
        &["--only", only, "--post", faulty::POST, "--out", out, "--json", "-"],
    );
    let document = ran.json();
    assert_eq!(ran.code, 1, "{switch}: {document:#}");
    let cases = document["cases"].as_array().unwrap();
    let found = cases.iter().find(|case| text(case, "/severity") == severity);
    assert!(found.is_some(), "{switch}: nothing {severity} in {document:#}");
    let failures = parent.path().join(&names(parent.path())[0]).join("failures");
    let kept: Vec<String> =
        names(&failures).into_iter().filter(|name| name.starts_with(only)).collect();
    // the outcome of some failed conversations depends on the load of the machine; that of one does
    // not
    let again = kept.iter().map(|name| failures.join(name)).find(|kept| {
        let kept = kept.to_str().unwrap();
        replayed(switch, kept) == (1, 3, 3) && replayed("none", kept) == (0, 0, 3)
    });
    assert!(
        again.is_some(),
        "{switch}: nothing of {kept:?} fails three times of three when it is replayed"
    );
}

/// Replays a failure against its own server; returns the exit code, and the failed tries of all
/// tries.
fn replayed(switch: &str, kept: &str) -> (i32, u64, u64) {
    let site = QuicSite::with(&[("range", switch)]);
    let to = site.url(faulty::PATH);
    let ran = run(&["torture", "replay", "--insecure", "--json", "-", "--to", &to, kept]);
    let row = &ran.json()["failures"][0];
    (ran.code, row["failed"].as_u64().unwrap(), row["tries"].as_u64().unwrap())
}

#[test]
fn planted_bugs_are_found_and_replayed_over_quic() {
    std::thread::scope(|scope| {
        PLANTED.iter().for_each(|one| {
            scope.spawn(|| planted(*one));
        });
    });
}

/// All cases of a default run, in parts: content of streams, lower layers and tables, handshakes,
/// early data, and keys. Early data waits for tickets and for connections to close.
const PARTS: [&str; 6] = [
    "Q-01,Q-02,Q-10,Q-11,Q-12,Q-13,Q-14,Q-20,Q-21",
    "Q-22,Q-23,Q-24,Q-30,Q-31,Q-40,Q-41,Q-50,Q-51,Q-52,Q-53",
    "Q-32,Q-33,Q-34,Q-35,Q-71,Q-72,Q-73,Q-74,Q-75,Q-76,Q-77,Q-78,Q-79,Q-80,Q-81,Q-82",
    "Q-54,Q-55,Q-56,Q-57,Q-58",
    "Q-83,Q-84,Q-85,Q-86",
    "Q-87,Q-88,Q-89",
];

#[test]
fn a_server_without_a_defect_has_no_finding_over_http3() {
    let cases = catalogue::cases().unwrap();
    let all = cases.iter().filter(|case| case.group() == HTTP3 && !case.press);
    let all: BTreeSet<&str> = all.map(|case| case.id.as_str()).collect();
    let parts: Vec<&str> = PARTS.iter().flat_map(|part| part.split(',')).collect();
    assert_eq!(parts.iter().copied().collect::<BTreeSet<_>>(), all);
    assert_eq!(parts.len(), all.len(), "a case is in two parts: {parts:?}");
    let half = |only: &str| {
        let site = QuicSite::with(&[("range", "none")]);
        let more = ["--http", "3", "--only", only, "--post", faulty::POST, "--json", "-"];
        let ran = tortured(&site.url(faulty::PATH), &more);
        let document = ran.json();
        let mut found = findings(&document);
        // on a busy machine SETTINGS can arrive after the client has stopped waiting
        found.retain(|(id, outcome)| (id.as_str(), outcome.as_str()) != ("Q-89", "inconclusive"));
        assert_eq!(found, [], "{document:#}");
        assert_eq!(ran.code, 0);
        let all = outcomes(&document);
        assert_eq!(all.len(), only.split(',').count(), "{all:?}");
        assert!(all.iter().all(|(_, outcome)| outcome != "skipped"), "{all:?}");
    };
    std::thread::scope(|scope| {
        PARTS.iter().for_each(|only| {
            scope.spawn(|| half(only));
        });
    });
}

#[test]
fn unsupported_http3_targets_are_reported() {
    let site = Site::start(&[]);
    let cleartext = site.url("/");
    let closed = format!("https://127.0.0.1:{}/", free_port());
    let failed = run(&["torture", "--http", "3", "--only", "Q-01", "--insecure", &closed]);
    assert_eq!(failed.code, 3, "{failed:?}");
    assert!(failed.stdout.contains("--http 2 tests over TCP"), "{failed:?}");
    for (arguments, why) in [
        (&["--http", "3", cleartext.as_str()][..], "HTTP/3 requires TLS; write https://"),
        (
            &["--http", "3", "--only", "U", &closed],
            "U needs HTTP/1.1 or HTTP/2: omit --http 3, or use --http 2",
        ),
        (&["--http", "3", "--only", "U-01", &closed], "U-01 needs HTTP/1.1: omit --http 3"),
        (&["--http", "3", "--only", "S-01", &closed], "S-01 needs HTTP/1.1: omit --http 3"),
        (&["--only", "Q-01,S-01", &closed], "Q-01 needs HTTP/3: use --http 3, and no case of"),
        (&["--http", "3", "--escalate", &closed], "--escalate needs HTTP/1.1: omit --http 3"),
        (&["--http", "4", &closed], "the supported versions are 1.1, 2 and 3"),
        (&["--http", "2", "grpc://127.0.0.1:9"], "--http is for pages of a web server: omit it"),
        (&["--only", "S-01", "grpc://127.0.0.1:9"], "S-01 is not a case of gRPC"),
        (&["--only", "G-01", &closed], "G-01 needs gRPC: write the URL as grpc://host:port"),
    ] {
        let ran = run(&[&["torture"], arguments].concat()).expect(&[2]);
        assert!(ran.stderr.contains(why), "{why}: {ran:?}");
    }
}
