//! The firing range over real sockets: what simulations verify for the catalog, again through the
//! program.

use super::{outcomes, support};
use std::collections::BTreeSet;
use support::{Site, run};

/// Returns the cases that are findings.
fn findings(switches: &str, only: &str) -> (i32, BTreeSet<String>) {
    let site = Site::start(&[("range", switches)]);
    let url = site.url(faulty::PATH);
    let post = faulty::POST;
    let arguments = [
        "torture",
        "--quick",
        "--fail-on",
        "low",
        "--only",
        only,
        "--post",
        post,
        "--json",
        "-",
        &url,
    ];
    let ran = run(&arguments);
    let bad = |(id, outcome): (String, String)| {
        let well = ["pass", "pass-alternative", "skipped", "unseen"].contains(&outcome.as_str());
        (!well).then_some(id)
    };
    let found = outcomes(&ran.json()).into_iter().filter_map(bad).collect();
    (ran.code, found)
}

#[test]
fn at_most_one_of_five_clean_runs_has_a_finding() {
    // with --quick a silence of 0.3 s is a hang: a stalled machine may cause one, once
    let runs = (0..5).map(|_| findings("none", "S,F"));
    let found: Vec<_> = runs.filter(|run| *run != (0, BTreeSet::new())).collect();
    assert!(found.len() <= 1, "{found:?}");
}

#[test]
fn switches_turn_their_cases_red() {
    for (switches, only, red) in [
        ("no-host,folds", "S-01,S-02,S-08", &["S-01", "S-08"][..]),
        ("fails-on-nul", "S-01,F-09", &["F-09"]),
        ("faulty-framing,stays", "S-31,S-33,S-06", &["S-31", "S-33"]),
        ("ignores-close,head-body", "S-45,S-46,S-01", &["S-45", "S-46"]),
        ("crashes", "F-09,S-01", &["F-09"]),
        ("limits-fail", "F-05,S-01", &["F-05"]),
    ] {
        let red: BTreeSet<String> = red.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(findings(switches, only), (1, red), "{switches}");
    }
}

#[test]
fn the_switches_are_listed() {
    let list = run(&["site", "--range", "list"]).expect(&[0]).stdout;
    assert_eq!(list.lines().count(), faulty::Defect::ALL.len());
    let wrong = run(&["site", "--range", "x"]).expect(&[2]);
    assert!(wrong.stderr.contains("`loadstone site --range list` prints them all"), "{wrong:?}");
}
