//! The `again` line of every finding, executed as a reader would copy it, reproduces the failure.

use super::support::{Site, binary, run};
use std::process::Command;

/// Time limit of a command in seconds.
const PATIENCE: &str = "2";

/// Switch, and the cases that fail with the switch.
const FAULTS: [(&str, &str); 8] = [
    ("fails", "S-03,S-07,S-23,S-34,B-06,B-08"),
    ("silent-refusal", "S-01,S-30"),
    ("hangs", "S-38"),
    // half-closes, valid requests after the bytes, several connections, frames, WebSocket
    ("half-bodies", "S-41"),
    ("ignores-close,leaves-bodies", "S-42,S-45"),
    ("mixes-pipelined", "M-02"),
    ("ws-unmasked,ws-any-version", "U-02,U-05"),
    ("keeps-reset-streams", "H-29"),
];

/// Returns the received bytes and the command of each finding.
pub(crate) fn findings(report: &str) -> Vec<(String, String)> {
    let mut received = String::new();
    let mut found = Vec::new();
    for line in report.lines() {
        match line.trim_start().split_once(' ') {
            Some(("received", seen)) => received = seen.trim().to_owned(),
            Some(("again", command)) => found.push((received.clone(), command.trim().to_owned())),
            _ => {}
        }
    }
    found
}

/// Returns the statuses with which these parts of a text begin.
fn statuses<'t>(parts: impl Iterator<Item = &'t str>) -> Vec<u16> {
    parts.filter_map(|part| part.get(..3)?.parse().ok()).filter(|one| *one >= 101).collect()
}

/// Checks that a command fails as described.
pub(crate) fn check(switch: &str, (seen, command): &(String, String)) {
    // the command itself exits with 1 only for severe findings
    let program = format!("{} torture --fail-on low", binary().display());
    let script = command.replace("loadstone torture", &program);
    let own = script != *command;
    let mut command_line = Command::new("timeout");
    command_line.args([if own { "60" } else { PATIENCE }, "sh", "-c", &script]);
    let out = command_line.env("LOADSTONE_STORE", "none").output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if own {
        // which response is mixed up differs from run to run
        assert_eq!(out.status.code(), Some(1), "{switch}: {command}: {seen}: {text}");
        assert!(text.contains("1 finding in 1 case"), "{switch}: {command}: {text}");
        return;
    }
    let expected = statuses(seen.split(' '));
    let got = statuses(text.split("HTTP/1.1 ").skip(1));
    assert_eq!(got.first(), expected.first(), "{switch}: {command}: {seen}: {text}");
    assert!(got.len() >= expected.len(), "{switch}: {command}: {seen}: {text}");
}

#[test]
fn every_again_line_fails_in_the_same_way() {
    std::thread::scope(|scope| {
        for (switch, only) in FAULTS {
            scope.spawn(move || {
                let site = Site::start(&[("range", switch)]);
                let url = site.url(faulty::PATH);
                let words =
                    ["torture", "--quick", "--no-shrink", "--fail-on", "low", "--only", only];
                let post = ["--post", faulty::POST, &url];
                let ran = run(&[&words[..], &post].concat()).expect(&[1]);
                let found = findings(&ran.stdout);
                assert!(!found.is_empty(), "{switch}: {}", ran.stdout);
                std::thread::scope(|scope| {
                    found.iter().for_each(|one| drop(scope.spawn(move || check(switch, one))));
                });
            });
        }
    });
}
