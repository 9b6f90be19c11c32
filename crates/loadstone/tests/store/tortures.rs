//! A torture in the results store, through the program.

use crate::keeps::{data, keeping};
use crate::support::{Ran, Site, free_port, program, text};
use std::path::Path;
use std::process::Stdio;
use store::{Store, StorePlace, Stored};

/// Site that accepts two Host fields.
fn lax() -> Site {
    Site::start(&[("range", "two-hosts")])
}

fn torture(data: &Path, site: &Site, more: &[&str]) -> Ran {
    let url = site.url("/page");
    let words = ["torture", "--no-audit", "--quick", "--fail-on", "low", "--only", "S-01,S-03"];
    keeping(data, &[&words[..], more, &[&url]].concat())
}

fn below_heading(text: &str) -> &str {
    text.split_once("\n\n").unwrap().1
}

#[test]
fn a_torture_is_kept_listed_and_shown_again_in_every_form() {
    let (data, site) = (data(), lax());
    let at = |name: &str| data.path().join(name).display().to_string();
    let (json, html) = (at("t.json"), at("t.html"));
    let (junit, probes) = (at("t.xml"), at("t.csv"));
    let files = ["--json", &json, "--html", &html, "--junit", &junit, "--probes", &probes];
    let ran = torture(data.path(), &site, &files).expect(&[1]);
    assert!(ran.stderr.contains("stored as torture-1: loadstone runs show torture-1"), "{ran:#?}");
    let listed = keeping(data.path(), &["runs", "list"]).expect(&[0]).stdout;
    let line = listed.lines().nth(1).unwrap();
    assert!(line.contains("  fail  ") && line.contains("  1 finding in 2 cases  "), "{listed}");
    let shown = keeping(data.path(), &["runs", "show", "last"]).expect(&[0]);
    assert_eq!(below_heading(&shown.stdout), ran.stdout);
    let again = ["2.json", "2.html", "2.xml", "2.csv"].map(at);
    let words = ["report", "torture-1", "--json", &again[0], "--html", &again[1]];
    let more = ["--junit", &again[2], "--csv", &again[3]];
    keeping(data.path(), &[&words[..], &more].concat()).expect(&[0]);
    for (first, second) in [&json, &html, &junit, &probes].into_iter().zip(&again) {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        assert!(read(first) == read(second), "{first} and {second} differ");
    }
    let md = keeping(data.path(), &["report", "last", "--md", "-"]).expect(&[0]).stdout;
    assert!(md.starts_with("### ❌ 1 finding in 2 cases") && md.contains("| S-03 |"), "{md}");
    let plan = keeping(data.path(), &["runs", "show", "last", "--plan"]).expect(&[2]);
    assert!(plan.stderr.contains("a torture run has no plan"), "{plan:#?}");
    keeping(data.path(), &["runs", "tag", "last", "nightly"]).expect(&[0]);
    let words = ["runs", "list", "--kind", "torture", "--tag", "nightly", "--json", "-"];
    let list = keeping(data.path(), &words).expect(&[0]).json();
    assert_eq!(list["results"][0]["torture"]["findings"], 1);
    let schema = include_str!("../../../../docs/schema/runs.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&list), "{list:#}");
}

#[test]
fn two_kept_tortures_are_held_against_each_other_by_their_names() {
    let data = data();
    let path = data.path();
    torture(path, &Site::start(&[("range", "none")]), &["-q"]).expect(&[0]);
    torture(path, &lax(), &["-q"]).expect(&[1]);
    keeping(path, &["runs", "tag", "torture-1", "before"]).expect(&[0]);
    let diff = keeping(path, &["torture", "diff", "before", "last", "--json", "-"]).expect(&[1]);
    let diff = diff.json();
    assert_eq!((text(&diff, "/changes/0/case"), text(&diff, "/changes/0/kind")), ("S-03", "new"));
    let both = keeping(path, &["report", "1", "2"]).expect(&[2]);
    assert!(both.stderr.contains("torture diff A B"), "{both:#?}");
    let site = Site::start(&[]);
    keeping(path, &["run", "-n", "5", "-c", "1", &site.url("/hw")]).expect(&[0, 4]);
    let run = keeping(path, &["torture", "diff", "1", "last"]).expect(&[2]);
    assert!(run.stderr.contains("last is a run; torture diff compares tortures"), "{run:#?}");
    let junit = path.join("x.xml").display().to_string();
    keeping(path, &["report", "last", "--junit", &junit]).expect(&[0]);
    assert!(std::fs::read_to_string(&junit).unwrap().contains("<testsuites"));
    let two = keeping(path, &["report", "last", "last", "--junit", &junit]).expect(&[2]);
    assert!(two.stderr.contains("--junit takes one run, torture or check"), "{two:#?}");
    let none = keeping(path, &["torture", "diff", "1", "nobody"]).expect(&[2]);
    assert!(none.stderr.contains("nobody"), "{none:#?}");
}

#[test]
fn an_empty_or_unstored_torture_leaves_nothing() {
    let (data, site) = (data(), lax());
    torture(data.path(), &site, &["--store", "none"]).expect(&[1]);
    torture(data.path(), &site, &["--store", ":memory:"]).expect(&[1]);
    torture(data.path(), &site, &["--dry-run"]).expect(&[0]);
    let login = site.url("/page").replace("://", "://fred:sekrit@");
    let ran = keeping(data.path(), &["torture", &login]).expect(&[2]);
    assert!(ran.stderr.contains("omit the login: cases do not send it"), "{ran:#?}");
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0, "no file was made");
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    keeping(data.path(), &["torture", "--no-audit", &nobody]).expect(&[3]);
    let listed = keeping(data.path(), &["runs", "list"]).expect(&[0]).stdout;
    assert!(listed.contains("no stored result matches"), "{listed}");
    let file = data.path().join("a-file");
    std::fs::write(&file, "not a store").unwrap();
    let served = site.served().requests;
    torture(data.path(), &site, &["--store", file.to_str().unwrap()]).expect(&[2]);
    assert_eq!(site.served().requests, served, "nothing was sent");
}

#[test]
fn the_secrets_of_a_parallel_load_never_reach_the_store() {
    let (data, site) = (data(), Site::start(&[]));
    let plan = data.path().join("good.toml");
    let url = site.url("/hw");
    let text = format!(
        "version = 1\n[load]\nrate = \"50/s\"\n[request]\nbearer = \"sekrit\"\n[[targets]]\nurl = \"{url}\"\n"
    );
    std::fs::write(&plan, text).unwrap();
    let store = data.path().join("kept.db").display().to_string();
    let plan = plan.display().to_string();
    let words = ["torture", "--no-audit", "--only", "S-01", "--beside", &plan, "--store", &store];
    keeping(data.path(), &[&words[..], &[&url]].concat()).expect(&[0]);
    let shown = keeping(data.path(), &["runs", "show", "--plan", "--store", &store]).expect(&[0]);
    assert!(shown.stdout.contains("bearer = \"***masked***\""), "{shown:#?}");
    let bytes = std::fs::read(&store).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"sekrit"), "a secret is in the store");
}

#[test]
fn a_killed_torture_shows_its_finished_cases() {
    let (data, site) = (data(), lax());
    let url = site.url("/page");
    let mut command = program(&["torture", "--no-audit", "-q", &url]);
    command.env_remove("LOADSTONE_STORE").env("XDG_DATA_HOME", data.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = data.path().join("loadstone/runs.db");
    let known = || {
        let Ok(store) = Store::open_to_read(&StorePlace::File(path.clone())) else { return 0 };
        match store.load("last") {
            Ok(Stored::Torture(torture)) => torture.cases.len(),
            _ => 0,
        }
    };
    // uninterrupted it takes minutes
    while known() < 1 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = keeping(data.path(), &["runs", "list", "--json", "-"]).expect(&[0]).json();
    assert_eq!(text(&listed, "/results/0/state"), "killed");
    let shown = keeping(data.path(), &["runs", "show", "last"]).expect(&[0]).stdout;
    assert!(shown.contains("its program was killed after "), "{shown}");
}
