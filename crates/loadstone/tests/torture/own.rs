//! User cases, and failures turned into user cases.

use super::evidence::{names, recorded};
use super::support::{Ran, Scripted, Site, run, text};
use super::{outcome, outcomes};
use std::fs;
use std::path::{Path, PathBuf};

const CASE: &str = r#"
id = "X-07"
version = 1
title = "our own page"
level = "MUST"
ref = "our own rule"
why = "it was down once"

[[exchange]]
name = "plain"
send = ['GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n']
accept = ["404"]
"#;

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn torture(cases: &str, more: &[&str]) -> Ran {
    run(&[&["torture", "--fail-on", "low", "--cases", cases, "--json", "-"], more].concat())
}

#[test]
fn user_cases_run_and_their_failures_are_replayed() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let case = written(folder.path(), "one.toml", CASE);
    let (url, kept) = (site.url("/hw"), folder.path().join("kept"));
    let out = kept.display().to_string();
    let ran = torture(&case, &["--only", "X,S-01", "--out", &out, &url]).expect(&[1]).json();
    assert_eq!((outcome(&ran, "X-07"), outcome(&ran, "S-01")), ("fail".into(), "pass".into()));
    assert_eq!(outcomes(&ran).len(), 2);
    let root = kept.join(&names(&kept)[0]);
    let failure = root.join("failures").join(&names(&root.join("failures"))[0]);
    assert_eq!(fs::read_to_string(failure.join("case.toml")).unwrap(), CASE);
    let again = run(&["torture", "replay", failure.to_str().unwrap()]).expect(&[1]);
    assert!(again.stdout.contains("still failing   X-07-"), "{again:?}");
    // the rule was wrong: by the current one there is no failure
    let mended = written(folder.path(), "two.toml", &CASE.replace("404", "200"));
    let root = root.to_str().unwrap();
    let judged = run(&["torture", "judge", "--cases", &mended, root]).expect(&[0]);
    assert!(judged.stdout.contains("X-07 plain  fail → pass"), "{judged:?}");
    let unknown = run(&["torture", "judge", root, "--json", "-"]).expect(&[0]).json();
    let rows = unknown["conversations"].as_array().unwrap();
    let own = rows.iter().find(|row| row["case"] == "X-07").unwrap();
    assert!(own["version_now"].is_null() && own["now"].is_null(), "{own}");
}

#[test]
fn an_invalid_user_case_names_file_and_line() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let url = site.url("/hw");
    let bad = |name: &str, text: &str| written(folder.path(), name, text);
    let table = [
        (bad("a", &CASE.replace("MUST", "OUGHT")), "a: line 5: \"OUGHT\" is not a level"),
        (
            bad("b", &CASE.replace("X-07", "S-07")),
            "b: line 2: S-07 is reserved for built-in cases; name your case X-01 to X-999",
        ),
        (bad("c", &CASE.replace("{path}", "{way}")), "c: line 11: \"way\" is not a macro"),
        (bad("d", "id = "), "d: line 1: "),
        (bad("e", &CASE.replace("accept", "expect")), "e: line 12: unknown field"),
        (bad("f", &CASE.replace("404", "4044")), "f: line 12: \"4044\" is not a class"),
        (folder.path().join("none").display().to_string(), "cannot read"),
    ];
    for (file, part) in &table {
        let ran = torture(file, &[&url]).expect(&[2]);
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    let cases = folder.path().join("cases");
    fs::create_dir(&cases).unwrap();
    let name = cases.display().to_string();
    assert!(
        torture(&name, &[&url])
            .expect(&[2])
            .stderr
            .contains("contains no case: there is no .toml file")
    );
    written(&cases, "one.toml", CASE);
    written(&cases, "two.toml", CASE);
    let twice = torture(&name, &[&url]).expect(&[2]);
    assert!(twice.stderr.contains("X-07 is also defined in") && twice.stderr.contains("one.toml"));
    let waiver = written(
        folder.path(),
        "expect",
        "[[waive]]\ncase = \"X-07\"\nreason = \"known\"\nuntil = 2999-01-31\n",
    );
    assert_eq!(site.served().requests, 0, "nothing was sent so far");
    fs::remove_file(cases.join("two.toml")).unwrap();
    torture(&name, &["--only", "X", "--expect", &waiver, &url]).expect(&[0]);
}

/// Returns the folder of the failure of a case.
fn failure_of(root: &Path, case: &str, file: &str) -> PathBuf {
    let failures = root.join("failures");
    let own = names(&failures).into_iter().filter(|name| name.starts_with(case));
    let mut own = own.map(|name| failures.join(name));
    own.find(|folder| folder.join(file).is_file()).unwrap()
}

#[test]
fn a_failure_becomes_a_reproducing_case() {
    let server = Scripted::failing_on_nul();
    let (parent, root) = recorded(&server, "F-09,S-02");
    let emitted = |case: &str, id: &str, more: &[&str]| {
        let file = if more.is_empty() { "wire.lsw" } else { "shrunk.lsw" };
        let folder = failure_of(&root, case, file);
        let words = ["torture", "emit", "--as", "case", "--id", id, folder.to_str().unwrap()];
        run(&[&words[..], more].concat()).expect(&[0]).stdout
    };
    let cases = parent.path().join("cases");
    fs::create_dir(&cases).unwrap();
    let (one, two) = (emitted("F-09", "X-01", &["--shrunk"]), emitted("S-02", "X-02", &[]));
    assert!(one.contains("found = \"a server of unknown name, 20"), "{one}");
    assert!(two.contains("Host: {host}") && !two.contains("127.0.0.1"), "{two}");
    assert!(!emitted("F-09", "X-03", &[]).contains("loadstone-torture"), "it names no run");
    written(&cases, "X-01.toml", &one);
    written(&cases, "X-02.toml", &two);
    let name = cases.display().to_string();
    let found = torture(&name, &["--only", "X", &server.url("/")]).expect(&[1]).json();
    assert_eq!((outcome(&found, "X-01"), outcome(&found, "X-02")), ("fail".into(), "fail".into()));
    assert!(text(&found, "/cases/0/exchanges/0/seen").starts_with("500, "), "{found:#}");
    let sound = Site::start(&[("range", "none")]);
    torture(&name, &["--only", "X", &sound.url("/page")]).expect(&[0]);
    let all = run(&["torture", "emit", "--as", "case", root.to_str().unwrap()]).expect(&[2]);
    assert!(
        all.stderr.contains("a case file holds one: name the folder of one failure"),
        "{all:?}"
    );
}

#[test]
fn code_cases_are_run_again_and_not_emitted_as_a_case() {
    let site = Site::start(&[("range", "split-heads")]);
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().display().to_string();
    run(&["torture", "--only", "C-10", "--out", &out, &site.url("/page")]).expect(&[1]);
    let root = parent.path().join(&names(parent.path())[0]);
    let folder = failure_of(&root, "C-10", "wire.lsw").display().to_string();
    let ran = run(&["torture", "replay", &folder, "--times", "1"]).expect(&[1]);
    let output = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("still failing C-10-"), "{output}");
    let case = run(&["torture", "emit", "--as", "case", &folder]).expect(&[2]);
    assert!(case.stderr.contains("judged by code, which a case file cannot express"), "{case:?}");
}
