//! Targets that die or do not exist, a signal in the middle, and results that cannot be written.

use super::words;
use crate::support::{Site, free_port, program, run, text};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_target_that_dies_leaves_a_partial_result() {
    // on a port that no other program gets after this one has exited
    let address = format!("127.0.0.1:{}", free_port());
    let site = Site::start(&[("die-after", "120"), ("service", "1ms"), ("listen", &address)]);
    let line = "ramp --population --from 1 --to 20 --step 1 --hold 100ms --settle 300ms --json -";
    let report = run(&words(line, &site.url("/hw"))).expect(&[4]).json();
    let ended = text(&report, "/ended_early");
    assert!(ended.contains("the target died"), "{ended}");
    assert!(ended.contains(" of 20"), "{ended}");
    let steps = report["steps"].as_array().unwrap();
    assert!(!steps.is_empty() && steps.len() < 20, "{}", steps.len());
    let cause = &report["verdict"]["causes"][0];
    assert_eq!(cause["id"], "all-failed");
    assert!(text(cause, "/text").contains("died"), "{cause}");
}

#[test]
fn a_closed_port_gets_no_connection() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let found = run(&["ramp", "--json", "-", &url]).expect(&[3]);
    let report = found.json();
    assert_eq!(report["steps"].as_array().unwrap().len(), 0);
    assert_eq!(text(&report, "/verdict/state"), "INVALID");
    assert!(found.stderr.contains("no connection to"), "{}", found.stderr);
}

#[test]
fn a_signal_ends_the_ramp_with_a_report() {
    let site = Site::start(&[("service", "2ms")]);
    let url = site.url("/hw");
    let line = "ramp --population --from 1 --to 3 --hold 1m --json -";
    let mut command = program(&words(line, &url));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while site.served().requests < 50 {
        assert!(Instant::now() < limit, "no step has begun");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    // if the interrupted step is the only one, nothing is usable
    assert!(matches!(output.status.code(), Some(130 | 4)), "{:?}", output.status);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["steps"].as_array().unwrap().len(), 1);
    assert_eq!(report["steps"][0]["interrupted"], true);
    assert!(text(&report, "/ended_early").contains("interrupted"), "{report:#}");
    let causes = report["verdict"]["causes"].as_array().unwrap();
    assert!(causes.iter().any(|cause| cause["id"] == "interrupted"), "{causes:?}");
}

#[test]
fn an_unwritable_result_is_reported_first() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    for option in ["--json", "--csv", "--html"] {
        let found = run(&["ramp", option, "/no/such/folder/file", &url]).expect(&[5]);
        assert!(found.stderr.contains("/no/such/folder/file"), "{}", found.stderr);
    }
    // nothing was sent for it
    assert_eq!(site.served().requests, 0);
}

/// The disk fills while results are written: the failure is reported, and no partial result looks
/// complete.
#[test]
fn a_full_disk_is_reported() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let line = "ramp --population --to 1 --hold 50ms --csv /dev/full";
    let found = run(&words(line, &url)).expect(&[5]);
    assert!(found.stderr.contains("/dev/full"), "{}", found.stderr);
    assert!(found.stdout.contains("Steps"), "the text comes all the same: {}", found.stdout);
}
