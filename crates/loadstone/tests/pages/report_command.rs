//! `loadstone report`: stored results again.

use crate::support::browser::Browser;
use crate::support::{Site, run};
use std::path::Path;

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Store in `folder` with two short runs; the second run also wrote its own outputs there.
fn two_runs(folder: &Path) -> String {
    let site = Site::start(&[]);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let store = file("runs.db");
    let url = site.url("/hw");
    let common = ["run", &url, "--store", &store, "-q", "-d", "1s", "--interval", "100ms"];
    run(&[&common[..], &["-c", "1"]].concat()).expect(&[0, 4]);
    let (json, html, csv) = (file("own.json"), file("own.html"), file("own.csv"));
    let outputs = ["-c", "2", "--json", &json, "--html", &html, "--csv", &csv];
    run(&[&common[..], &outputs].concat()).expect(&[0, 4]);
    store
}

#[test]
fn a_stored_run_gives_the_outputs_it_gave() {
    let folder = tempfile::tempdir().unwrap();
    let store = two_runs(folder.path());
    let file = |name: &str| folder.path().join(name);
    let again = [file("again.json"), file("again.html"), file("again.csv"), file("again.md")];
    let [json, html, csv, md] = again.each_ref().map(|path| path.to_str().unwrap());
    let outputs = ["--json", json, "--html", html, "--csv", csv, "--md", md];
    let ran = run(&[&["report", "last", "--store", &store][..], &outputs].concat()).expect(&[0]);
    assert!(ran.stdout.is_empty(), "{ran:?}");
    for (own, again) in ["own.json", "own.html", "own.csv"].into_iter().zip(&again) {
        assert!(text_of(&file(own)) == text_of(again), "{own} differs");
    }
    let markdown = text_of(&again[3]);
    assert!(markdown.starts_with("### ") && markdown.contains("| Throughput | "), "{markdown}");
    let text = run(&["report", "run-1", "--store", &store]).expect(&[0]).stdout;
    assert!(text.contains("closed loop of 1 user") && text.contains("response time"), "{text}");
}

#[test]
fn two_runs_are_shown_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let store = two_runs(folder.path());
    let page = folder.path().join("two.html");
    let both = ["report", "run-1", "run-2", "--store", &store];
    run(&[&both[..], &["--html", page.to_str().unwrap()]].concat()).expect(&[0]);
    let mut browser = Browser::open();
    browser.go_to_file(&page);
    browser.drawn();
    assert_eq!(browser.text("h1"), "2 runs side by side");
    assert_eq!(browser.eval("document.querySelector('.wide table').rows[0].cells.length"), 3);
    // a chart in a collapsed part is made when it is opened
    let inside = "document.querySelectorAll('details .uplot').length";
    assert_eq!(browser.eval(inside), 0);
    browser.click("summary");
    browser.wait_for("document.querySelectorAll('details .uplot').length >= 4");
    assert!(browser.problems().is_empty(), "{:?}", browser.problems());
    let ran = run(&[&both[..], &["--json", "-"]].concat()).expect(&[0]);
    assert_eq!(ran.json().as_array().unwrap().len(), 2);
    let text = run(&both).expect(&[0]).stdout;
    assert!(text.starts_with("== run-1\n\n") && text.contains("\n== run-2\n\n"), "{text}");
}

#[test]
fn unrenderable_results_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = two_runs(folder.path());
    let refused = |args: &[&str], why: &str| {
        let ran = run(&[&["report", "--store", &store][..], args].concat()).expect(&[2]);
        assert!(ran.stderr.contains(why) && ran.stdout.is_empty(), "{why}: {ran:?}");
    };
    refused(&["run-77"], "run-77");
    refused(&["nowhere/to/be.db"], "nowhere/to/be.db");
    refused(&["run-1", "run-2", "--csv", "-"], "--csv takes one result");
    refused(&["last", "--html", "-"], "--html takes a file");
    refused(&["last", "--json", "-", "--md", "-"], "both go to standard output");
    refused(&[&["last"; 19][..]].concat(), "at most 18");
    let none = run(&["report", "last", "--store", "none"]).expect(&[2]);
    assert!(none.stderr.contains("store"), "{none:?}");
    // an exported file is a complete store
    let alone = run(&["report", &store, "--json", "-"]).expect(&[0]);
    assert_eq!(alone.json().as_array().unwrap().len(), 2);
}
