//! `loadstone runs`: lists, tags, exports, and refusals.

use crate::keeps::{data, keeping};
use crate::support::Site;

#[test]
fn results_are_listed_named_moved_and_deleted() {
    let (here, there, site) = (data(), data(), Site::start(&[]));
    let url = site.url("/hw");
    for _ in 0..3 {
        keeping(here.path(), &["run", "-n", "20", "-c", "1", "-q", &url]).expect(&[0, 4]);
    }
    let on = |words: &[&str]| keeping(here.path(), &[&["runs"], words].concat());
    on(&["tag", "last~1", "before"]).expect(&[0]);
    let list = on(&["list"]).expect(&[0]).stdout;
    let ids: Vec<&str> = list.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(ids, ["run-3", "run-2", "run-1"]);
    let tagged = on(&["list", "--tag", "before", "--since", "1h", "--kind", "run"]).expect(&[0]);
    assert!(tagged.stdout.contains("[before] 127.0.0.1"), "{}", tagged.stdout);
    assert_eq!(tagged.stdout.lines().count(), 2);

    let file = here.path().join("out.db");
    let file = file.to_str().unwrap();
    on(&["export", file, "before", "run-3"]).expect(&[0]);
    let refused = on(&["export", file]).expect(&[2]);
    assert!(refused.stderr.contains("give a new name"), "{refused:#?}");
    let taken = keeping(there.path(), &["runs", "import", file]).expect(&[0]);
    assert_eq!(taken.stdout, format!("2 results taken from {file}\n"));
    let (a, b) =
        (["runs", "show", "before", "--json", "-"], ["runs", "show", "run-2", "--json", "-"]);
    assert_eq!(keeping(there.path(), &a).stdout, keeping(here.path(), &b).stdout);
    // an exported file is a store itself
    let listed = on(&["list", "--store", file, "--name", "/HW"]).expect(&[0]);
    assert_eq!(listed.stdout.lines().count(), 3);

    assert!(on(&["delete", "run-1", "run-2"]).expect(&[2]).stderr.contains("add --yes"));
    for inexact in ["last", "before", "1"] {
        let refused = on(&["delete", inexact]).expect(&[2]);
        assert!(refused.stderr.contains("write its full id"), "{refused:#?}");
    }
    on(&["delete", "run-1", "run-2", "--yes"]).expect(&[0]);
    assert_eq!(on(&["list"]).stdout.lines().count(), 2);
    assert!(on(&["show", "before"]).expect(&[2]).stderr.contains("is not a stored result"));
    on(&["untag", "before"]).expect(&[2]);
    on(&["list", "--since", "yesterday"]).expect(&[2]);
}

#[test]
fn the_list_as_json_follows_its_schema() {
    let (here, site) = (data(), Site::start(&[]));
    keeping(here.path(), &["run", "-n", "20", "-c", "1", &site.url("/hw")]).expect(&[0, 4]);
    let listed = keeping(here.path(), &["runs", "list", "--json", "-"]).expect(&[0]).json();
    let schema = include_str!("../../../../docs/schema/runs.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let checked = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = checked.iter_errors(&listed).map(|fault| fault.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(listed["results"].as_array().unwrap().len(), 1);
}

#[test]
fn a_history_of_few_runs_decides_nothing() {
    let (here, site) = (data(), Site::start(&[("delay", "1ms")]));
    let url = site.url("/hw");
    let name = url.trim_start_matches("http://").to_owned();
    let record = |options: &[&str]| {
        let words = [&["run", "-n", "8", "-c", "1", "-q"], options, &[&url]].concat();
        keeping(here.path(), &words).expect(&[0, 4]);
    };
    record(&[]);
    let listed = keeping(here.path(), &["runs", "list", "--json", "-"]).expect(&[0]).json();
    let name = listed["results"][0]["name"].as_str().map_or(name, str::to_owned);
    let few = keeping(here.path(), &["runs", "gate", &name]).expect(&[4]);
    assert!(few.stdout.starts_with("Too few runs to find a change: "), "{few:#?}");
    let unknown = keeping(here.path(), &["runs", "gate", "nothing"]).expect(&[2]);
    assert!(unknown.stderr.contains("loadstone runs list shows the names"), "{unknown:#?}");
    let history = keeping(here.path(), &["runs", "gate", &name, "--json", "-"]).expect(&[4]).json();
    assert_eq!(history["schema"], "loadstone.history/1");
    assert_eq!(history["judgement"], "too-few");
}
