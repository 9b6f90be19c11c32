//! kill -9 at any moment: the counts up to the running second are stored.

use crate::keeps::{data, keeping};
use crate::support::{Site, program, text, whole};
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use store::{Filter, Store, StorePlace};

/// Returns how many seconds of the measured phase the store has of the last run; none before it
/// begins.
fn seconds_kept(path: &Path) -> usize {
    let Ok(store) = Store::open_to_read(&StorePlace::File(path.to_owned())) else { return 0 };
    match store.load("last") {
        Ok(store::Stored::Run(run)) => run.series.len(),
        _ => 0,
    }
}

/// Kills a run when the store has `seconds` of it; returns the store's view of it as JSON.
fn killed_after(seconds: usize, options: &[&str]) -> (Value, usize) {
    let (data, site) = (data(), Site::start(&[]));
    let url = site.url("/hw");
    let words = [&["run", "-d", "60s", "--interval", "100ms", "-q"], options, &[&url]].concat();
    let mut command = program(&words);
    command.env_remove("LOADSTONE_STORE").env("XDG_DATA_HOME", data.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = data.path().join("loadstone/runs.db");
    // the run ends after a minute, and then all of its seconds are stored
    while seconds_kept(&path) < seconds {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = seconds_kept(&path);
    let store = Store::open_to_read(&StorePlace::File(path)).unwrap();
    let entry = &store.list(&Filter::default()).unwrap()[0];
    assert_eq!(entry.progress.id(), "killed");
    let shown = keeping(data.path(), &["runs", "show", "last", "--json", "-"]).expect(&[0]);
    (shown.json(), kept)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_killed_runs_counts_are_stored(
        seconds in 1..12_usize,
        load in prop::sample::select(vec![&["-c", "4"][..], &["--rate", "200/s"], &["-c", "1", "--warmup", "200ms"]]),
    ) {
        let (run, kept) = killed_after(seconds, load);
        prop_assert!(kept >= seconds);
        let causes = run["verdict"]["causes"].as_array().unwrap();
        let cause = causes.iter().find(|cause| cause["id"] == "interrupted");
        let found = cause.and_then(|cause| cause["figure_text"].as_str().or(cause["text"].as_str()));
        prop_assert!(found.is_some_and(|found| found.contains("its program was killed")), "{causes:?}");
        let count = |name: &str| whole(&run, &format!("/outcomes/{name}"));
        let ended: u64 =
            ["succeeded", "failed", "timed_out", "dropped", "abandoned"].map(count).iter().sum();
        prop_assert_eq!(count("due"), ended, "what was due has one outcome each");
        prop_assert_eq!(run["series"].as_array().unwrap().len(), kept);
        prop_assert_eq!(&run["interrupted"], &Value::Bool(true));
    }
}

#[test]
fn a_running_run_is_not_a_killed_one() {
    let (data, site) = (data(), Site::start(&[]));
    let url = site.url("/hw");
    let mut command = program(&["run", "-d", "60s", "--interval", "100ms", &url]);
    command.env_remove("LOADSTONE_STORE").env("XDG_DATA_HOME", data.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while seconds_kept(&data.path().join("loadstone/runs.db")) < 2 {
        std::thread::yield_now();
    }
    let listed = keeping(data.path(), &["runs", "list", "--json", "-"]).expect(&[0]).json();
    let deleted = keeping(data.path(), &["runs", "delete", "run-1"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(text(&listed, "/results/0/state"), "running");
    assert!(deleted.expect(&[2]).stderr.contains("run-1 is still running"));
    keeping(data.path(), &["runs", "delete", "run-1"]).expect(&[0]);
}
