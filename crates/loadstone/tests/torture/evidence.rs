//! What a torture leaves behind: the run directory and what is done with it.

use super::support::{Scripted, Site, behind, run, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Names in a folder, in their order.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A run against a server that fails, and its directory.
fn recorded(server: &Scripted, only: &str) -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().to_str().unwrap();
    run(&["torture", "--quick", "--only", only, "--out", out, &server.url("/")]).expect(&[1]);
    let runs = names(parent.path());
    assert_eq!(runs.len(), 1, "{runs:?}");
    let root = parent.path().join(&runs[0]);
    (parent, root)
}

#[test]
fn the_evidence_of_a_run_is_kept() {
    let server = Scripted::failing_on_nul();
    let (_parent, root) = recorded(&server, "F-09,S-08");
    assert_eq!(names(&root), ["cases.jsonl", "failures", "probes.csv", "run.json", "wire"]);
    let whole: Value =
        serde_json::from_str(&fs::read_to_string(root.join("run.json")).unwrap()).unwrap();
    assert_eq!(text(&whole, "/schema"), "loadstone.torture-run/1");
    assert_eq!(text(&whole, "/target"), server.url("/"));
    let lines = fs::read_to_string(root.join("cases.jsonl")).unwrap();
    let executions: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(whole["end"]["executions"], executions.len());
    assert_eq!(executions[0]["execution"], 1);
    let failed = executions.iter().filter(|line| line["outcome"] == "fail").count();
    // every execution that failed, and at most 32 before each
    let wires = names(&root.join("wire"));
    assert!(wires.len() >= failed && wires.iter().all(|name| name.ends_with(".lsw")), "{wires:?}");
    let failures = names(&root.join("failures"));
    assert_eq!(whole["end"]["failures"].as_array().unwrap().len(), failures.len());
    assert!(failures.iter().all(|name| name.starts_with("F-09-")), "{failures:?}");
    let one = root.join("failures").join(&failures[0]);
    let bytes = fs::read(one.join("bytes.bin")).unwrap();
    assert!(bytes.windows(3).any(|three| three == b"%00"), "{}", bytes.escape_ascii());
    assert!(fs::read_to_string(one.join("README")).unwrap().contains("failed in 3 of 3 tries"));
    assert!(fs::read_to_string(one.join("case.toml")).unwrap().starts_with("id = \"F-09\""));
    let shrunk = failures.iter().map(|name| root.join("failures").join(name).join("shrunk.bin"));
    let shrunk: Vec<Vec<u8>> = shrunk.filter_map(|path| fs::read(path).ok()).collect();
    let told: Vec<String> = shrunk.iter().map(|bytes| bytes.escape_ascii().to_string()).collect();
    // this server knows nothing but ends of heads and the NUL
    assert_eq!(told, [r"%00\r\n\r\n"]);
    let wire = fs::read_to_string(one.join("wire.lsw")).unwrap();
    assert!(wire.starts_with("loadstone.wire/1\n") && wire.contains("\noutcome fail\n"), "{wire}");
}

#[test]
fn a_run_never_writes_over_another() {
    let server = Scripted::failing_on_nul();
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("a/b");
    let out = out.to_str().unwrap();
    for _ in 0..2 {
        let ran = run(&["torture", "--only", "S-08", "--out", out, &server.url("/")]).expect(&[0]);
        assert!(!ran.stdout.contains("replay"), "{ran:?}");
    }
    assert_eq!(names(Path::new(out)).len(), 2);
}

#[test]
fn where_evidence_cannot_be_kept_nothing_is_sent() {
    let site = Site::start(&[]);
    let ran = run(&["torture", "--out", "/dev/null/x", &site.url("/hw")]).expect(&[5]);
    assert!(ran.stderr.contains("cannot make the folder /dev/null/x"), "{ran:?}");
    assert_eq!(site.served().requests, 0);
}

#[test]
fn a_full_disk_is_said_once_and_the_run_goes_on() {
    let server = Scripted::failing_on_nul();
    let parent = tempfile::tempdir().unwrap();
    // no file may grow beyond 20 blocks of 512 bytes
    let limit = "trap '' XFSZ; ulimit -f 20; exec \"$0\" \"$@\"";
    let out = parent.path().to_str().unwrap();
    let url = server.url("/");
    let arguments = ["torture", "--no-audit", "--quick", "--only", "F-01,S-08", "--out", out, &url];
    let done = behind(&["sh", "-c", limit]).args(arguments).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(5), "{said}");
    assert_eq!(said.matches("is not whole: it ends where this happened").count(), 1, "{said}");
    let report = String::from_utf8(done.stdout).unwrap();
    assert!(report.contains("2 cases"), "{report}");
    let root = parent.path().join(&names(parent.path())[0]);
    let unfinished = fs::read_to_string(root.join("run.json")).unwrap();
    assert!(unfinished.contains("\"end\": null"), "{unfinished}");
}
