//! Group P: crafted segments over a network device, to servers on this host.

use super::again;
use super::evidence::names;
use super::support::process::run;
use super::support::{Ran, Site, text, untested};
use super::{outcome, outcomes};
use serde_json::Value;

/// Returns whether this user can create a network device here; if not, prints the missing part.
fn is_available(site: &Site) -> bool {
    let tried = run(&["torture", "--only", "P-16", "-q", &site.url("/")]);
    if !tried.stderr.contains("TCP segments cannot be sent") {
        return true;
    }
    let reason = format!("segments are not tested: {}", tried.stderr.trim_end());
    untested(&reason)
}

fn tortured(only: &str, url: &str, more: &[&str]) -> Ran {
    let words = ["torture", "--fail-on", "low", "--json", "-", "--only", only];
    run(&[&words[..], more, &[url]].concat())
}

#[test]
fn a_server_without_a_defect_passes_segment_cases() {
    let site = Site::start(&[("range", "none")]);
    if !is_available(&site) {
        return;
    }
    // long cases are measured in the guide
    let only =
        "P-01,P-02,P-03,P-06,P-07,P-08,P-09,P-10,P-11,P-13,P-14,P-15,P-17,P-18,P-24,P-26,P-27";
    let document = tortured(only, &site.url(faulty::PATH), &[]).expect(&[0]).json();
    let bad: Vec<_> = outcomes(&document)
        .into_iter()
        .filter(|(_, outcome)| outcome != "pass" && outcome != "pass-alternative")
        .collect();
    assert_eq!(bad, []);
    let habits = document["habits"].as_array().unwrap();
    let overlap = |habit: &&Value| text(habit, "/name").starts_with("overlap, ");
    assert_eq!(habits.iter().filter(overlap).count(), 4, "{habits:?}");
}

/// The bug is found and recorded with its segments. They fail again on another server with the same
/// bug, and not on one without it.
#[test]
fn planted_bugs_are_found_by_segments_and_replayed() {
    let site = Site::start(&[("range", "half-closed")]);
    if !is_available(&site) {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().to_str().unwrap();
    let url = site.url(faulty::PATH);
    let json = parent.path().join("result.json");
    let words = ["torture", "--only", "P-25", "--json", json.to_str().unwrap(), "--out", out, &url];
    let report = run(&words).expect(&[1]).stdout;
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    std::fs::remove_file(json).unwrap();
    assert_eq!(outcome(&document, "P-25"), "fail");
    assert_eq!(text(&document, "/cases/0/severity"), "high");
    let failures = parent.path().join(&names(parent.path())[0]).join("failures");
    let kept = failures.join(&names(&failures)[0]);
    let wire = std::fs::read_to_string(kept.join("wire.lsw")).unwrap();
    for line in ["step packet open mss=1460 window=65535", "segment > S 0:0(0) win 65535"] {
        assert!(wire.contains(line), "{line} in {wire}");
    }
    let kept = kept.to_str().unwrap();
    let replayed = |switch: &str| {
        let site = Site::start(&[("range", switch)]);
        let to = site.url(faulty::PATH);
        let ran = run(&["torture", "replay", "--times", "1", "--json", "-", "--to", &to, kept]);
        (ran.code, ran.json()["failures"][0]["failed"].as_u64().unwrap())
    };
    let lines = again::findings(&report);
    assert_eq!(lines.len(), 1, "{report}");
    std::thread::scope(|scope| {
        scope.spawn(|| again::check("half-closed", &lines[0]));
        assert_eq!(replayed("half-closed"), (1, 1));
        assert_eq!(replayed("none"), (0, 0));
    });
    let judged = run(&["torture", "judge", kept]).expect(&[0, 1]);
    assert!(judged.stdout.contains("1 unchanged"), "{}", judged.stdout);
    for form in ["sh", "nc", "pcap", "case"] {
        let ran = run(&["torture", "emit", "--as", form, kept]).expect(&[2]);
        assert!(ran.stderr.contains("TCP segments"), "{form}: {}", ran.stderr);
    }
}

/// One client that does not read delays all other clients, which detect it.
#[test]
fn a_server_that_stalls_on_a_closed_window_is_found() {
    let site = Site::start(&[("range", "stands-still-unread")]);
    if !is_available(&site) {
        return;
    }
    let url = site.url(faulty::PATH);
    let report = run(&["torture", "--only", "P-30", "--accept-noisy", &url]).expect(&[1, 4]).stdout;
    let again = format!("again     loadstone torture --only P-30 --accept-noisy {url}");
    for part in ["P-30 denied (critical)", &again] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let site = Site::start(&[("range", "none")]);
    let document =
        tortured("P-30", &site.url(faulty::PATH), &["--accept-noisy"]).expect(&[0, 1]).json();
    assert_ne!(outcome(&document, "P-30"), "denied", "{document:#}");
}

#[test]
fn a_missing_device_is_reported_with_the_fix() {
    let site = Site::start(&[]);
    let url = site.url("/");
    let (over_tls, ipv6) = (url.replace("http:", "https:"), url.replace("127.0.0.1", "[::1]"));
    for (words, why) in [
        (&["--only", "P", &over_tls][..], "name an http port"),
        (&["--only", "P-01", &ipv6], "write 127.0.0.1"),
        (&["--only", "P", "--path", "3g", &url], "omit --path"),
        (&["--only", "P", "--http", "2", &url], "omit --http 2"),
        (&["--only", "P", "--quick", &url], "selects no case"),
        (&["--only", "P-99", &url], "is not a case"),
    ] {
        let ran = run(&[&["torture", "--no-audit"][..], words].concat()).expect(&[2]);
        assert!(ran.stderr.contains(why), "{words:?}: {}", ran.stderr);
    }
    let found = run(&["torture", "explain", "P-09"]).expect(&[0]);
    for part in
        ["answers  the TCP of the server's kernel", "RFC 5961 section 3.2", "expect ack or rst"]
    {
        assert!(found.stdout.contains(part), "{part}: {}", found.stdout);
    }
}

/// User-defined cases can use segments too.
#[test]
fn a_user_case_can_send_segments() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("X-01.toml");
    let case = r#"
id = "X-01"
version = 1
title = "the last byte first"
level = "MUST"
ref = "RFC 9293 section 3.10.7.4"
why = "order is the kernel's business"
needs = ["device"]

[[exchange]]
name = "one"
send = [{ open = {} }, { segment = { part = "-1.." } }, { segment = { part = "..-1" } }]
accept = ["plain"]
"#;
    std::fs::write(&file, case).unwrap();
    let more = ["--cases", file.to_str().unwrap()];
    let document = tortured("X", &site.url("/hw"), &more).expect(&[0]).json();
    assert_eq!(outcome(&document, "X-01"), "pass");
    std::fs::write(&file, case.replace("\"-1..\"", "\"1\"")).unwrap();
    let ran = tortured("X", &site.url("/hw"), &more).expect(&[2]);
    assert!(ran.stderr.contains("line 12: \"1\" is not a part; write FROM..TO"), "{}", ran.stderr);
}
