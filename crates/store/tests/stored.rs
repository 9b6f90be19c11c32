//! What is stored loads as the very same report: every output made of it is equal, byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../../report/src/tests/fixtures.rs"]
mod fixtures;

// the names that the fixtures, written for `report` itself, look for at the root
use report::{
    Driver, DummyRun, Finding, FirstCall, Headline, Resolved, RunReport, SloResult, merged,
};
use store::{Beginning, Kind, Place, Store, Stored};

fn style() -> report::Style {
    report::Style { unicode: true, color: true, quiet: false, percentiles: true }
}

fn beginning(report: &RunReport) -> Beginning<'_> {
    Beginning {
        name: &report.name,
        plan: &report.plan,
        command_line: "loadstone run URL",
        environment: &report.environment,
        started_unix_s: report.started_unix_s,
        labels: &[],
        axis: stats::curve::Axis::Rate,
    }
}

fn fixtures() -> Vec<(&'static str, RunReport)> {
    let mut extreme = fixtures::extreme();
    // no plan has a method of that length
    extreme.plan.request.method = "GET".into();
    vec![
        ("valid", fixtures::valid()),
        ("troubled", fixtures::troubled()),
        ("repeated", fixtures::repeated()),
        ("empty", fixtures::empty()),
        ("extreme", extreme),
    ]
}

#[track_caller]
fn same(name: &str, loaded: &RunReport, stored: &RunReport) {
    let (loaded, stored) =
        (report::render_all(loaded, style()), report::render_all(stored, style()));
    assert_eq!(loaded.text, stored.text, "the text of {name}");
    assert_eq!(loaded.json, stored.json, "the JSON of {name}");
    assert_eq!(loaded.csv, stored.csv, "the CSV of {name}");
    assert_eq!(loaded.hdr, stored.hdr, "the HdrHistogram log of {name}");
    assert!(loaded.html == stored.html, "the page of {name}");
}

#[test]
fn a_run_loads_as_it_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::File(folder.path().join("runs.db"));
    for (number, (name, stored)) in (1..).zip(fixtures()) {
        let mut store = Store::open(&place).unwrap();
        let id = store.begin(Kind::Run, &beginning(&stored)).unwrap();
        assert_eq!(id.to_string(), format!("run-{number}"));
        store.finish_run(&id, &stored).unwrap();
        drop(store);
        let store = Store::open_to_read(&place).unwrap();
        let Stored::Run(loaded) = store.load("last").unwrap() else { panic!("{name} is a run") };
        same(name, &loaded, &stored);
    }
}
