//! Data that a run stores, and the cases in which nothing is stored.

use crate::support::{Ran, Site, free_port, in_process, program};
use std::path::Path;
use tempfile::TempDir;

/// Runs the program with its own data directory.
pub(crate) fn keeping(data: &Path, args: &[&str]) -> Ran {
    let mut command = program(args);
    command.env_remove("LOADSTONE_STORE").env("XDG_DATA_HOME", data);
    in_process(&command, b"")
}

pub(crate) fn data() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Reads everything below a folder as one byte string.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        match path.is_dir() {
            true => all.extend(bytes_below(&path)),
            false => all.extend(std::fs::read(&path).unwrap()),
        }
    }
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Removes the lines above the report that only standard output has: the id and the command.
fn below_heading(text: &str) -> &str {
    text.split_once("\n\n").unwrap().1
}

#[test]
fn a_run_is_shown_again_as_it_was() {
    let (data, site) = (data(), Site::start(&[]));
    let json = data.path().join("run.json");
    let json_name = json.to_str().unwrap();
    let url = site.url("/hw");
    let ran = keeping(data.path(), &["run", "-n", "200", "-c", "2", "--json", json_name, &url]);
    let ran = ran.expect(&[0, 4]);
    assert!(ran.stderr.contains("stored as run-1: loadstone runs show run-1"), "{ran:#?}");
    let shown = keeping(data.path(), &["runs", "show", "last"]).expect(&[0]);
    assert_eq!(below_heading(&shown.stdout), ran.stdout);
    let shown = keeping(data.path(), &["runs", "show", "1", "--json", "-"]).expect(&[0]);
    assert_eq!(shown.stdout, std::fs::read_to_string(&json).unwrap());
    // the store at the other path has no result
    let other = data.path().join("other.db");
    let other = other.to_str().unwrap();
    let listed = keeping(data.path(), &["runs", "list", "--store", other]);
    assert!(listed.expect(&[2]).stderr.contains("nothing was stored there yet"));
}

#[test]
fn a_ramp_is_shown_again_as_it_was() {
    let (data, site) = (data(), Site::start(&[]));
    let url = site.url("/hw");
    let words = ["ramp", "--from", "20/s", "--to", "40/s", "--step", "20/s", "--hold", "300ms"];
    let ran = keeping(data.path(), &[&words[..], &[&url]].concat()).expect(&[0, 1, 4]);
    assert!(ran.stderr.contains("stored as ramp-1"), "{ran:#?}");
    let shown = keeping(data.path(), &["runs", "show", "ramp-1"]).expect(&[0]);
    assert_eq!(below_heading(&shown.stdout), ran.stdout);
    // no capacity under an objective was requested
    let listed = keeping(data.path(), &["runs", "list"]).expect(&[0]).stdout;
    assert!(listed.contains("knee") && !listed.contains("capacity"), "{listed}");
}

#[test]
fn secrets_never_reach_the_store() {
    let (data, site) = (data(), Site::start(&[]));
    let url = site.url("/hw");
    let with_login = url.replace("://", "://fred:sekrit1@");
    let many = [
        &["-H", "Cookie: id=sekrit2", "-H", "X-Api-Key: sekrit3", "--bearer", "sekrit4", &url][..],
        &["--user", "fred:sekrit5", &url],
        &[&with_login],
    ];
    for words in many {
        let words = [&["run", "-n", "5", "-c", "1"], words].concat();
        keeping(data.path(), &words).expect(&[0, 4]);
    }
    let bytes = bytes_below(data.path());
    assert!(holds(&bytes, "fred"), "the store is looked at in the right place");
    assert!(!holds(&bytes, "sekrit"), "a secret is in the store");
    let listed = keeping(data.path(), &["runs", "list", "--json", "-"]).expect(&[0]);
    assert!(listed.stdout.contains("--bearer ***"), "{}", listed.stdout);
}

#[test]
fn only_a_named_store_that_cannot_be_opened_stops_the_run() {
    let (data, site) = (data(), Site::start(&[]));
    let url = site.url("/hw");
    let file = data.path().join("a-file");
    std::fs::write(&file, "not a folder").unwrap();
    let ran = keeping(&file, &["run", "-n", "5", "-c", "1", &url]).expect(&[0, 4]);
    assert!(ran.stderr.contains("this result is not stored"), "{ran:#?}");
    let named = file.to_str().unwrap();
    let ran = keeping(data.path(), &["run", "-n", "5", "--store", named, &url]).expect(&[2]);
    assert!(ran.stderr.contains("is not a results store of loadstone"), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "not a folder");
    // a missing folder is a typing error, for every command
    let nowhere = data.path().join("nodir/a.db");
    let nowhere = nowhere.to_str().unwrap();
    for command in [&["run"][..], &["ramp"], &["torture"], &["compare", &url]] {
        let ran = keeping(data.path(), &[command, &["--store", nowhere, &url]].concat());
        let errors = ran.expect(&[2]).stderr;
        assert!(errors.contains("there is no folder") && errors.contains("--store"), "{errors}");
    }
    assert!(!data.path().join("nodir").exists());
    assert_eq!(site.served().requests, 6, "a first call and five; of the second run none");
}

#[test]
fn nothing_is_stored_without_a_store() {
    let (data, site) = (data(), Site::start(&[]));
    let url = site.url("/hw");
    for place in ["none", ":memory:"] {
        let words = ["run", "-n", "5", "-c", "1", "--store", place, &url];
        keeping(data.path(), &words).expect(&[0, 4]);
    }
    keeping(data.path(), &["ab", "-n", "5", &url]).expect(&[0]);
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0, "no file was made");
    let listed = keeping(data.path(), &["runs", "list"]).expect(&[0]);
    assert!(listed.stderr.contains("nothing was stored there yet"), "{listed:#?}");
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0, "nor by looking");
}

#[test]
fn a_run_that_got_no_connection_is_kept_as_one() {
    let data = data();
    let url = format!("http://127.0.0.1:{}/", free_port());
    let ran = keeping(data.path(), &["run", "-d", "1s", &url]).expect(&[3]);
    let shown = keeping(data.path(), &["runs", "show"]).expect(&[0]);
    assert_eq!(below_heading(&shown.stdout), ran.stdout);
}
