//! A comparison that is killed or interrupted: its complete blocks are stored and compared, with a
//! note that it is incomplete.

use crate::keeps::{data, keeping};
use crate::support::{Site, program, text};
use proptest::prelude::*;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use store::{Filter, Progress, Store, StorePlace, Stored};

/// Returns how many complete blocks the store has of the last comparison; `None` before it begins.
fn blocks_kept(path: &Path) -> Option<usize> {
    let store = Store::open_to_read(&StorePlace::File(path.to_owned())).ok()?;
    match store.load("last").ok()? {
        Stored::Compare(compare) => Some(compare.order.len()),
        _ => None,
    }
}

/// Sends a signal to a comparison when the store has this many complete blocks; returns its view as
/// JSON and as text, and its number of blocks.
fn ended_after(
    blocks: usize,
    turns: usize,
    signal: Signal,
    progress: Progress,
) -> (Value, String, usize) {
    let (data, site) = (data(), Site::start(&[]));
    let (a, b) = (format!("old={}", site.url("/hw")), format!("new={}", site.url("/hw")));
    // an hour and more, were it not killed
    let words = ["compare", "-c", "1", "-n", "8", "--blocks", "1000", "-q", &a, &b];
    let mut command = program(&words);
    command.env_remove("LOADSTONE_STORE").env("XDG_DATA_HOME", data.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = data.path().join("loadstone/runs.db");
    while blocks_kept(&path).is_none_or(|kept| kept < blocks) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::yield_now();
    }
    // anywhere in a block
    (0..turns).for_each(|_| std::thread::yield_now());
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap();
    let store = Store::open_to_read(&StorePlace::File(path.clone())).unwrap();
    let entry = &store.list(&Filter::default()).unwrap()[0];
    assert_eq!(entry.progress, progress);
    let shown = |more: &[&str]| {
        keeping(data.path(), &[&["runs", "show", "compare-1"], more].concat()).expect(&[0])
    };
    (shown(&["--json", "-"]).json(), shown(&[]).stdout, blocks_kept(&path).unwrap())
}

/// Validates against the schema; returns the errors.
fn faults(json: &Value) -> Vec<String> {
    let schema = include_str!("../../../../docs/schema/compare.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    schema.iter_errors(json).map(|fault| fault.to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_killed_comparisons_blocks_are_stored(blocks in 0..8_usize, turns in 0..2_000_usize) {
        let (json, shown, kept) = ended_after(blocks, turns, Signal::KILL, Progress::Killed);
        prop_assert!((blocks..1_000).contains(&kept));
        prop_assert_eq!(faults(&json), Vec::<String>::new());
        let order = json["order"].as_array().unwrap();
        prop_assert_eq!(order.len(), kept);
        prop_assert!(order.iter().all(|block| block == "ABBA" || block == "BAAB"), "{order:?}");
        for (side, label) in [("before", "old"), ("after", "new")] {
            prop_assert_eq!(text(&json[side], "/label"), label);
            prop_assert_eq!(json[side]["runs"].as_array().unwrap().len(), 2 * kept);
        }
        let plural = if kept == 1 { "" } else { "s" };
        let mark = format!("its program was killed after {kept} block{plural}");
        prop_assert!(text(&json, "/ended_early").starts_with(&mark), "{}", json["ended_early"]);
        // judged from five blocks on
        let judged = |one: &Value| one["judgement"] != "too-few";
        let any = json["differences"].as_array().unwrap().iter().any(judged);
        prop_assert_eq!(any, kept >= 5, "{:#}", json);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert!(shown.contains(&mark) && shown.contains(", killed: "), "{shown}");
    }
}

#[test]
fn an_interrupted_comparison_is_listed_as_one() {
    let (json, shown, kept) = ended_after(2, 0, Signal::INT, Progress::Interrupted);
    assert_eq!(faults(&json), Vec::<String>::new());
    assert_eq!(json["order"].as_array().unwrap().len(), kept);
    let mark = format!("interrupted after {kept} of 1000 blocks");
    assert_eq!(text(&json, "/ended_early"), mark);
    assert!(shown.contains(&format!("! Ended early: {mark}")), "{shown}");
}
