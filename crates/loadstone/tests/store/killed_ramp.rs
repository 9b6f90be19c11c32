//! kill -9 of a ramp: its finished steps are stored, with a note that it is incomplete.

use crate::keeps::{data, keeping};
use crate::support::{Site, number, program, text, whole};
use std::path::Path;
use std::process::Stdio;
use store::{Filter, Progress, Store, StorePlace, Stored};

/// Returns the number of stored steps of the last ramp; none before it begins.
fn steps_kept(path: &Path) -> usize {
    let Ok(store) = Store::open_to_read(&StorePlace::File(path.to_owned())) else { return 0 };
    match store.load("last") {
        Ok(Stored::Ramp(ramp)) => ramp.steps.len(),
        _ => 0,
    }
}

#[test]
fn a_killed_ramps_steps_are_stored_and_marked() {
    let (data, site) = (data(), Site::start(&[]));
    let url = site.url("/hw");
    // a minute and more, were it not killed
    let words = ["ramp", "--from", "10/s", "--to", "3000/s", "--step", "10/s", "--hold", "200ms"];
    let mut command = program(&[&words[..], &["-q", &url]].concat());
    command.env_remove("LOADSTONE_STORE").env("XDG_DATA_HOME", data.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = data.path().join("loadstone/runs.db");
    while steps_kept(&path) < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its third step was kept");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let kept = steps_kept(&path);
    assert!((3..300).contains(&kept), "{kept}");
    let store = Store::open_to_read(&StorePlace::File(path)).unwrap();
    let entry = &store.list(&Filter::default()).unwrap()[0];
    assert_eq!(entry.progress, Progress::Killed);
    let mark = format!("its program was killed after {kept} steps");
    let ramp = keeping(data.path(), &["runs", "show", "ramp-1", "--json", "-"]).expect(&[0]).json();
    assert!(text(&ramp, "/ended_early").starts_with(&mark), "{}", ramp["ended_early"]);
    let steps = ramp["steps"].as_array().unwrap();
    assert_eq!(steps.len(), kept);
    for (index, step) in steps.iter().enumerate() {
        let level = 10.0 * (index + 1) as f64;
        assert!((number(step, "/level") - level).abs() < 1e-6, "step {index} is that of {level}/s");
        let count = |name: &str| whole(step, &format!("/outcomes/{name}"));
        let ended: u64 =
            ["succeeded", "failed", "timed_out", "dropped", "abandoned"].map(count).iter().sum();
        assert_eq!(count("due"), ended, "step {index}: what was due has one outcome each");
        assert!(ended > 0, "step {index} was measured");
    }
    let shown = keeping(data.path(), &["runs", "show", "ramp-1"]).expect(&[0]).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&mark), "{shown}");
    assert!(shown.contains("killed"), "{shown}");
}
