//! A store of schema 2, written by commit f80bb3b, is read, listed, shown and compared as that
//! version did it; and one of schema 3, written by commit 75f11d58, with the tortures that it still kept by name. The
//! stores, what was printed of them, and the scripts that made them stand in `crates/store/tests/fixtures`.

use crate::keeps::data;
use crate::support::run;
use flate2::read::GzDecoder;
use serde_json::{Map, Value};
use std::fs;
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

const STORE: &[u8] = include_bytes!("../../../store/tests/fixtures/schema-2/results.db.gz");
const PRINTED: &[u8] = include_bytes!("../../../store/tests/fixtures/schema-2/printed.json.gz");
const STORE_3: &[u8] = include_bytes!("../../../store/tests/fixtures/schema-3/results.db.gz");
const PRINTED_3: &[u8] = include_bytes!("../../../store/tests/fixtures/schema-3/printed.json.gz");

/// Results that came to their end: all that is printed of them was stored.
const FINISHED: [&str; 10] = [
    "closed",
    "open",
    "repeated",
    "failing",
    "sut",
    "ramp",
    "compare",
    "demo",
    "torture",
    "interrupted",
];
/// Results whose program was killed: what is known of them is put together when they are read.
const KILLED: [&str; 4] = ["killed-run", "killed-ramp", "killed-compare", "killed-torture"];

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut whole).unwrap();
    whole
}

fn printed(bytes: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(&unpacked(bytes)).unwrap()
}

/// A folder with a copy of the store.
fn earlier(store: &[u8]) -> TempDir {
    let folder = data();
    fs::write(folder.path().join("results.db"), unpacked(store)).unwrap();
    folder
}

#[track_caller]
fn on(folder: &Path, words: &[&str]) -> String {
    let store = folder.join("results.db");
    let words = [words, &["--store", store.to_str().unwrap()]].concat();
    run(&words).expect(&[0, 1, 4]).stdout
}

/// That everything of `old` stands in `new`; what is new there may be more. Of a result that was
/// put together from its parts, sentences are not compared: a later version may word them anew.
#[track_caller]
fn holds(path: &str, old: &Value, new: &Value, sentences: bool) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, old) in old {
                let path = format!("{path}.{name}");
                let new = new.get(name).unwrap_or_else(|| panic!("{path} is missing"));
                holds(&path, old, new, sentences);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{path}: {new:?}");
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                holds(&format!("{path}[{index}]"), old, new, sentences);
            }
        }
        (Value::String(old), Value::String(new)) if !sentences && old.contains(' ') => {
            assert!(new.contains(' '), "{path}: {new:?} was {old:?}");
        }
        // a row without a response has no times any more
        (old, Value::Null) if path.contains(".response_") && *old == 0.0 => {}
        _ => assert_eq!(new, old, "{path}"),
    }
}

/// Columns of a series in which rows without a response had zeros.
const RESPONSE_TIMES: std::ops::Range<usize> = 10..15;

/// A series as it is printed now: rows without a response have no times.
fn without_empty_times(csv: &str) -> String {
    let row = |line: &str| {
        let mut cells: Vec<&str> = line.split(',').collect();
        if cells.get(RESPONSE_TIMES).is_some_and(|times| times.iter().all(|time| *time == "0")) {
            cells[RESPONSE_TIMES].fill("");
        }
        cells.join(",") + "\n"
    };
    csv.lines().map(row).collect()
}

#[test]
fn an_earlier_store_prints_the_same_figures() {
    let folder = earlier(STORE);
    let printed = printed(PRINTED);
    for name in FINISHED.into_iter().chain(KILLED) {
        let finished = FINISHED.contains(&name);
        let json = on(folder.path(), &["report", name, "-q", "--json", "-"]);
        let json = serde_json::from_str(&json).unwrap();
        holds(name, &printed[&format!("{name}.json")], &json, finished);
        if let Some(csv) = printed.get(&format!("{name}.csv")) {
            let old = without_empty_times(csv.as_str().unwrap());
            assert_eq!(on(folder.path(), &["report", name, "-q", "--csv", "-"]), old, "{name}");
        }
    }
    let list = on(folder.path(), &["runs", "list", "--json", "-"]);
    holds("list", &printed["list.json"], &serde_json::from_str(&list).unwrap(), true);
}

/// Tortures of the store of schema 3: carried out, made up with everything that one may have, and two of which the
/// program was killed.
const TORTURES: [&str; 9] = [
    "torture",
    "plain",
    "mixed",
    "lost",
    "pressed",
    "accompanied",
    "full",
    "killed-torture",
    "cut",
];

#[test]
fn tortures_that_were_kept_by_name_print_the_same() {
    let folder = earlier(STORE_3);
    let printed = printed(PRINTED_3);
    for name in TORTURES {
        let json = on(folder.path(), &["report", name, "-q", "--json", "-"]);
        let json = serde_json::from_str(&json).unwrap();
        holds(name, &printed[&format!("{name}.json")], &json, true);
        let csv = on(folder.path(), &["report", name, "-q", "--csv", "-"]);
        assert_eq!(csv, printed[&format!("{name}.csv")], "{name}");
    }
    let closed = on(folder.path(), &["report", "closed", "-q", "--csv", "-"]);
    assert_eq!(closed, printed["closed.csv"]);
    let list = on(folder.path(), &["runs", "list", "--json", "-"]);
    holds("list", &printed["list.json"], &serde_json::from_str(&list).unwrap(), true);
}

/// The JSON of a torture says all that its page and its probes show; that of an earlier version is read too.
#[test]
fn the_json_of_a_torture_is_rendered_as_its_result_in_the_store() {
    let (folder, printed) = (earlier(STORE_3), printed(PRINTED_3));
    let at = |name: &str| folder.path().join(name).display().to_string();
    let read = |name: &str| fs::read_to_string(at(name)).unwrap();
    for name in TORTURES {
        on(folder.path(), &["report", name, "-q", "--json", &at("t.json")]);
        for (what, stem) in [(&*at("t.json"), "file"), (name, "store")] {
            let [html, junit, md, csv] =
                ["html", "xml", "md", "csv"].map(|form| at(&format!("{stem}.{form}")));
            let words = ["report", what, "-q", "--html", &html, "--junit", &junit];
            on(folder.path(), &[&words[..], &["--md", &md, "--csv", &csv]].concat());
        }
        for form in ["html", "xml", "md", "csv"] {
            let (file, store) = (read(&format!("file.{form}")), read(&format!("store.{form}")));
            assert!(file == store, "the {form} of {name}");
        }
        let text = |what: &str| on(folder.path(), &["report", what]);
        assert_eq!(text(&at("t.json")), text(name), "{name}");
        // what the earlier version wrote
        fs::write(at("old.json"), printed[&format!("{name}.json")].to_string()).unwrap();
        let head = |text: String| text.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(head(text(&at("old.json"))), head(text(name)), "{name}");
        let refused = run(&["report", &at("old.json"), "--csv", "-"]).expect(&[2]);
        assert!(refused.stderr.contains("name a result of the store"), "{refused:#?}");
    }
}

/// A record on disk is enough: what is rendered from it is what is rendered from the store.
#[test]
fn a_record_is_rendered_as_its_result_in_the_store() {
    let folder = earlier(STORE);
    for name in ["closed", "open", "repeated", "failing", "sut", "ramp", "compare", "interrupted"] {
        let file = folder.path().join(format!("{name}.json"));
        let file = file.to_str().unwrap();
        on(folder.path(), &["report", name, "-q", "--json", file]);
        let forms = |what: &str| {
            let of = |option: &[&str]| on(folder.path(), &[&["report", what], option].concat());
            [of(&["--full"]), of(&["--json", "-"]), of(&["--csv", "-"]), of(&["--md", "-"])]
        };
        let names = ["text", "JSON", "CSV", "Markdown"];
        for ((form, read), stored) in names.iter().zip(forms(file)).zip(forms(name)) {
            assert!(read == stored, "the {form} of {name}:\n{read}\n--- in place of\n{stored}");
        }
    }
}

/// How the calls of each second ended was not recorded then: nothing is made of that.
#[test]
fn an_earlier_result_has_no_statuses_by_second() {
    let (folder, page) = (earlier(STORE), data());
    let page = page.path().join("page.html");
    let words = ["report", "failing", "-q", "--json", "-", "--html", page.to_str().unwrap()];
    let json: Value = serde_json::from_str(&on(folder.path(), &words)).unwrap();
    let rows = json["series"].as_array().unwrap();
    assert!(!rows.is_empty() && json["status"]["500"].as_u64() > Some(0), "{json}");
    assert!(rows.iter().all(|row| row["statuses"].is_null() && row["failures"].is_null()));
    let page = fs::read_to_string(page).unwrap();
    assert!(!page.contains("data-chart=\"endings\""));
}

#[test]
fn an_earlier_store_is_listed_shown_and_compared() {
    let folder = earlier(STORE);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../store/tests/fixtures/schema-2/printed");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!("list", on(folder.path(), &["runs", "list"]));
        for name in FINISHED.into_iter().chain(KILLED) {
            insta::assert_snapshot!(name, on(folder.path(), &["runs", "show", "--full", name]));
        }
        let compared = on(folder.path(), &["compare", "closed", "sut", "--force"]);
        insta::assert_snapshot!("compared", compared);
    });
}

#[test]
fn an_earlier_result_is_exported_and_imported() {
    let (folder, new) = (earlier(STORE), data());
    let file = folder.path().join("part.db");
    let names = ["closed", "ramp", "torture"];
    on(folder.path(), &[&["runs", "export", file.to_str().unwrap()], &names[..]].concat());
    let store = new.path().join("new.db");
    let store = ["--store", store.to_str().unwrap()];
    let import = ["runs", "import", file.to_str().unwrap()];
    run(&[&import[..], &store].concat()).expect(&[0]);
    let printed = printed(PRINTED);
    for name in names {
        let words = [&["report", name, "-q", "--json", "-"][..], &store].concat();
        let json = run(&words).expect(&[0, 1, 4]).json();
        holds(name, &printed[&format!("{name}.json")], &json, true);
    }
}
