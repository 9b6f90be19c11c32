//! Comparison of stored runs.

use crate::support::{Ran, Site, in_process, program, text};
use serde_json::Value;

/// Temporary store.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    #[track_caller]
    fn run(&self, args: &[&str], codes: &[i32]) -> Ran {
        let store = self.0.path().join("runs.db");
        let mut command = program(args);
        command.args(["--store", store.to_str().unwrap()]);
        in_process(&command, b"").expect(codes)
    }

    /// Stores short runs with one user. A count of calls ends each run, so that it has a median.
    #[track_caller]
    fn measure(&self, repeat: &str, url: &str) {
        self.run(&["run", "-q", "-c", "1", "-n", "8", "--repeat", repeat, url], &[0, 4]);
    }
}

#[test]
fn repeats_of_two_stored_runs_are_compared() {
    let place = Place::new();
    let (quick, slow) = (Site::start(&[("delay", "1ms")]), Site::start(&[("delay", "60ms")]));
    place.measure("4", &quick.url("/hw"));
    place.measure("4", &slow.url("/hw"));
    let gate = ["compare", "--fail-if", "p50 +5%", "--json", "-", "last~1", "last"];
    let json: Value = place.run(&gate, &[1, 4]).json();
    let p50 = json["differences"].as_array().unwrap().iter().find(|one| one["figure"] == "p50");
    assert_eq!(p50.unwrap()["judgement"], "worse", "{json:#}");
    assert_eq!(json["after"]["runs"].as_array().unwrap().len(), 4);
    assert_eq!(json["order"].as_array().unwrap().len(), 0);
    assert_eq!(text(&json, "/before/label"), "last~1");
    // in reverse order B is better; runs can also be named by id
    let ran = place.run(&["compare", "run-2", "run-1"], &[0, 4]);
    assert!(ran.stdout.starts_with("B is better than A: "), "{}", ran.stdout);
}

#[test]
fn single_runs_are_shown_and_not_judged() {
    let place = Place::new();
    let site = Site::start(&[]);
    place.measure("1", &site.url("/hw"));
    place.measure("1", &site.url("/hw"));
    let ran = place.run(&["compare", "run-1", "run-2"], &[0, 4]);
    assert!(ran.stdout.starts_with("Too few runs to show"), "{}", ran.stdout);
    let ran = place.run(&["compare", "--fail-if", "p99 +5%", "run-1", "run-2"], &[2]);
    assert!(ran.stderr.contains("--fail-if needs 4 runs a side"), "{}", ran.stderr);
    // several runs of either side make a set
    let sets = ["compare", "run-1,run-2,run-1,run-2", "run-2,run-1,run-2,run-1"];
    let ran = place.run(&sets, &[0, 4]);
    assert!(ran.stdout.starts_with("No significant difference"), "{}", ran.stdout);
}

#[test]
fn runs_of_different_plans_need_force() {
    let place = Place::new();
    let site = Site::start(&[]);
    place.measure("1", &site.url("/hw"));
    place.run(&["run", "-q", "-c", "2", "-n", "8", &site.url("/empty")], &[0, 1, 4]);
    let ran = place.run(&["compare", "last~1", "last"], &[2]);
    for found in ["load.users: 1 and 2", "targets.0.url: /hw and /empty", "--force"] {
        assert!(ran.stderr.contains(found), "{}", ran.stderr);
    }
    let ran = place.run(&["compare", "--force", "last~1", "last"], &[0, 4]);
    assert!(ran.stdout.contains("The plans differ: "), "{}", ran.stdout);
}

#[test]
fn missing_evidence_is_reported() {
    let place = Place::new();
    let site = Site::start(&[]);
    let ran = place.run(&["compare", "run-1", "run-2"], &[2]);
    assert!(ran.stderr.contains("nothing was stored there yet"), "{}", ran.stderr);
    place.measure("1", &site.url("/hw"));
    for (args, found) in [
        (&["compare", "run-1", "run-7"][..], "\"run-7\" is not a stored result"),
        (&["compare", "run-1", "http://127.0.0.1:1/"], "compare two URLs or two stored runs"),
        (&["compare", "run-1", "run-1,"], "names no stored runs"),
        (&["compare", "-c", "3", "run-1", "run-1"], "stored runs are compared as they are"),
        (&["compare", "--print-plan", "run-1", "run-1"], "stored runs are not measured again"),
        (
            &["runs", "show", "run-1", "--json", "out", "--csv", "out"],
            "--json and --csv name the same file",
        ),
    ] {
        let ran = place.run(args, &[2]);
        assert!(ran.stderr.contains(found), "{}", ran.stderr);
    }
}

/// A comparison is stored as a comparison, not as a run.
#[test]
fn a_comparison_is_kept() {
    let place = Place::new();
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let measured = ["compare", "-c", "1", "-n", "8", "--blocks", "5", &url, &url];
    let ran = place.run(&measured, &[0, 4]);
    assert!(ran.stderr.contains("stored as compare-1"), "{}", ran.stderr);
    let ran = place.run(&["compare", "compare-1", "compare-1"], &[2]);
    assert!(ran.stderr.contains("compare-1 is a compare; compare takes runs"), "{}", ran.stderr);
}
