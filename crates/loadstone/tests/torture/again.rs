//! The `again` line of every finding, executed as a reader would copy it: it fails in the same way.

use super::support::{Site, binary, run};
use std::process::Command;

/// Time limit of a command in seconds.
const PATIENCE: &str = "2";
/// Exit code of timeout(1) if it ended the command.
const TIMED_OUT: i32 = 124;

/// A switch, and the cases that fail with it.
const FAULTS: [(&str, &str); 9] = [
    ("fails", "S-03,S-07,S-23,S-34,B-06,B-08"),
    ("silent-refusal", "S-01,S-30"),
    ("hangs", "S-38"),
    // half-closes, valid requests after the bytes, several connections, frames, WebSocket
    ("half-bodies", "S-41"),
    ("ignores-close,leaves-bodies", "S-42,S-45"),
    ("mixes-pipelined", "M-02"),
    ("ws-unmasked,ws-any-version", "U-02,U-05"),
    ("keeps-reset-streams", "H-29"),
    ("half-closed", "P-25"),
];

/// The received bytes and the command of each finding.
fn findings(report: &str) -> Vec<(String, String)> {
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

/// Statuses that a command prints, and whether its connection stayed open to the end.
fn sent_again(command: &str) -> (Vec<u16>, bool) {
    let out = Command::new("timeout").args([PATIENCE, "sh", "-c", command]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    (statuses(text.split("HTTP/1.1 ").skip(1)), out.status.code() == Some(TIMED_OUT))
}

/// Checks that a command fails as described, and that it does not for a server without the defect.
fn check(switch: &str, (seen, command): &(String, String), ports: [u16; 2]) {
    let [faulty, sound] = ports.map(|port| port.to_string());
    if let Some(arguments) = command.strip_prefix("loadstone ") {
        // which response is mixed up differs from run to run
        for (url, code) in [(&faulty, 1), (&sound, 0)] {
            let arguments = arguments.replace(&faulty, url);
            let words: Vec<&str> = arguments.split(' ').collect();
            let out = Command::new("timeout")
                .args(["60".as_ref(), binary().as_os_str()])
                .args(words)
                .args(["--fail-on", "low"])
                .env("LOADSTONE_STORE", "none")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            assert_eq!(out.status.code(), Some(code), "{switch}: {command}: {seen}: {text}");
        }
        return;
    }
    let expected = statuses(seen.split(' '));
    let got = sent_again(command);
    assert_eq!(got.0.first(), expected.first(), "{switch}: {command}: {seen}: {got:?}");
    assert!(got.0.len() >= expected.len(), "{switch}: {command}: {seen}: {got:?}");
    assert_ne!(got, sent_again(&command.replace(&faulty, &sound)), "{switch}: {command}: {seen}");
}

#[test]
fn every_again_line_fails_in_the_same_way() {
    let sound_site = Site::start(&[("range", "none")]);
    let sound = sound_site.port();
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
                for id in only.split(',') {
                    assert!(ran.stdout.contains(&format!("\n{id} ")), "{switch}: {}", ran.stdout);
                }
                assert!(!found.is_empty(), "{switch}: {}", ran.stdout);
                let ports = [site.port(), sound];
                std::thread::scope(|scope| {
                    let check = |one| drop(scope.spawn(move || check(switch, one, ports)));
                    found.iter().for_each(check);
                });
            });
        }
    });
}
