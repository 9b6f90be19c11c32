//! The run directory of torture and its uses.

use super::support::{Scripted, Site, behind, run, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Lists the names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs against a failing server, and returns the run directory.
pub(crate) fn recorded(server: &Scripted, only: &str) -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().to_str().unwrap();
    let words = ["torture", "--quick", "--fail-on", "low", "--only", only, "--out", out];
    run(&[&words[..], &[&server.url("/")]].concat()).expect(&[1]);
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
    // every failed execution, and at most 32 before each
    let wires = names(&root.join("wire"));
    assert!(wires.len() >= failed && wires.iter().all(|name| name.ends_with(".lsw")), "{wires:?}");
    let failures = names(&root.join("failures"));
    assert_eq!(whole["end"]["failures"].as_array().unwrap().len(), failures.len());
    assert!(failures.iter().all(|name| name.starts_with("F-09-")), "{failures:?}");
    let one = root.join("failures").join(&failures[0]);
    let bytes = fs::read(one.join("bytes.bin")).unwrap();
    assert!(bytes.windows(3).any(|three| three == b"%00"), "{}", bytes.escape_ascii());
    let files = names(&one);
    for name in ["README", "bytes.bin", "case.toml", "repro.pcap", "repro.sh", "wire.lsw"] {
        assert!(files.iter().any(|file| file == name), "{name} of {files:?}");
    }
    assert!(fs::read_to_string(one.join("README")).unwrap().contains("failed in 3 of 3 tries"));
    assert!(fs::read_to_string(one.join("case.toml")).unwrap().starts_with("id = \"F-09\""));
    let shrunk = failures.iter().map(|name| root.join("failures").join(name).join("shrunk.bin"));
    let shrunk: Vec<Vec<u8>> = shrunk.filter_map(|path| fs::read(path).ok()).collect();
    let texts: Vec<String> = shrunk.iter().map(|bytes| bytes.escape_ascii().to_string()).collect();
    // this server only detects ends of heads and NUL; on a busy machine the 1.5 s of --quick may
    // end before the search is complete
    let has_both = |one: &String| one.contains("%00") && one.ends_with(r"\r\n\r\n");
    assert!(matches!(&texts[..], [one] if has_both(one)), "{texts:?}");
    let wire = fs::read_to_string(one.join("wire.lsw")).unwrap();
    assert!(wire.starts_with("loadstone.wire/1\n") && wire.contains("\noutcome fail\n"), "{wire}");
}

#[test]
fn a_run_never_overwrites_another() {
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
fn nothing_is_sent_if_evidence_cannot_be_recorded() {
    let site = Site::start(&[]);
    let ran = run(&["torture", "--out", "/dev/null/x", &site.url("/hw")]).expect(&[5]);
    assert!(ran.stderr.contains("cannot create the folder /dev/null/x"), "{ran:?}");
    assert_eq!(site.served().requests, 0);
}

#[test]
fn a_full_disk_is_reported_once_and_the_run_continues() {
    let server = Scripted::failing_on_nul();
    let parent = tempfile::tempdir().unwrap();
    // no file may exceed 20 blocks of 512 bytes
    let limit = "trap '' XFSZ; ulimit -f 20; exec \"$0\" \"$@\"";
    let out = parent.path().to_str().unwrap();
    let url = server.url("/");
    let arguments = ["torture", "--no-audit", "--quick", "--only", "F-01,S-08", "--out", out, &url];
    let done = behind(&["sh", "-c", limit]).args(arguments).output().unwrap();
    let errors = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(5), "{errors}");
    assert_eq!(errors.matches("is incomplete: it ends at this error").count(), 1, "{errors}");
    let report = String::from_utf8(done.stdout).unwrap();
    assert!(report.contains("2 cases"), "{report}");
    let root = parent.path().join(&names(parent.path())[0]);
    let unfinished = fs::read_to_string(root.join("run.json")).unwrap();
    assert!(unfinished.contains("\"end\": null"), "{unfinished}");
}

#[test]
fn a_failure_is_replayed_until_it_is_fixed() {
    let server = Scripted::failing_on_nul();
    let (_parent, root) = recorded(&server, "F-09");
    let root = root.to_str().unwrap();
    let ran = run(&["torture", "replay", "--timing", "asap", root]).expect(&[1]);
    assert!(ran.stdout.contains("still failing") && ran.stdout.contains("3 of 3; 500"), "{ran:?}");
    let site = Site::start(&[("range", "none")]);
    let fixed = run(&["torture", "replay", "--times", "1", "--to", &site.url("/page"), root]);
    let output = fixed.expect(&[0]).stdout;
    assert!(output.contains("fixed") && !output.contains("failing"), "{output}");
    let judged = run(&["torture", "judge", root]).expect(&[1]);
    assert!(judged.stdout.contains("unchanged, 0 changed."), "{judged:?}");
    drop(server);
    let gone = run(&["torture", "replay", root]).expect(&[3]);
    assert!(gone.stdout.contains("nothing was sent") && gone.stdout.contains("no connection"));
}

#[test]
fn newer_rules_judge_again_and_a_failure_keeps_its_rules() {
    let server = Scripted::failing_on_nul();
    let (_parent, root) = recorded(&server, "S-02");
    let failures = root.join("failures");
    let one = failures.join(&names(&failures)[0]);
    // as if an older program had recorded it, with its rule
    let change = |path: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    };
    change(&one.join("case.toml"), "version = 2", "version = 7");
    change(&one.join("case.toml"), "accept = [\"400\"]", "accept = [\"200\"]");
    change(&one.join("wire.lsw"), "loadstone 0", "loadstone 9");
    let ran = run(&["torture", "replay", one.to_str().unwrap()]).expect(&[0]);
    let output = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "1 fixed",
        "S-02 was version 7 and is version 2 in this program",
        "recorded by loadstone 9",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let wires = root.join("wire");
    for name in names(&wires) {
        change(&wires.join(&name), "outcome fail", "outcome pass");
        change(&wires.join(&name), "case S-02 2", "case S-02 7");
        change(&wires.join(&name), "loadstone 0", "loadstone 9");
    }
    let judged = run(&["torture", "judge", root.to_str().unwrap()]).expect(&[1]);
    let output = judged.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "S-02 equal pass → fail",
        "(version 7 → 2 of the case)",
        "S-02 was version 7 and is version 2 in this program: judged by version 2",
        "recorded by loadstone 9",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
}

#[test]
fn replay_results_are_written_as_json() {
    let server = Scripted::failing_on_nul();
    let (_parent, root) = recorded(&server, "S-02");
    let root = root.to_str().unwrap();
    let replay = run(&["torture", "replay", root, "--json", "-"]).expect(&[1]).json();
    assert_eq!(text(&replay, "/schema"), "loadstone.torture-replay/1");
    assert_eq!(text(&replay, "/failures/0/verdict"), "failing");
    assert_eq!(replay["failures"][0]["case_version"], 2);
    let judge = run(&["torture", "judge", root, "--json", "-"]).expect(&[1]).json();
    assert_eq!(text(&judge, "/schema"), "loadstone.torture-judge/1");
    assert_eq!((&judge["otherwise"], text(&judge, "/conversations/0/now")), (&0.into(), "fail"));
    for (name, document) in [("replay", &replay), ("judge", &judge)] {
        let file = format!("../../docs/schema/torture-{name}.schema.json");
        let schema = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let checked = jsonschema::validator_for(&schema).unwrap();
        assert!(checked.is_valid(document), "{document:#}");
    }
    let both = run(&["torture", "replay", root, "--json", "/nowhere/x.json"]).expect(&[5]);
    assert!(both.stderr.contains("/nowhere") && both.stdout.is_empty(), "{both:?}");
}

#[test]
fn a_transcript_of_another_format_is_refused_with_the_fix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    fs::write(folder.path().join("wire.lsw"), "loadstone.wire/2\nloadstone 9.0.0\n").unwrap();
    for command in ["replay", "judge", "shrink"] {
        let errors = run(&["torture", command, path]).expect(&[2]).stderr;
        let part = "not loadstone.wire/1: it was recorded by another version of loadstone";
        assert!(
            errors.contains("wire.lsw: line 1 is") && errors.contains(part),
            "{command}: {errors}"
        );
    }
    let json = folder.path().join("a.json");
    fs::write(&json, "{\"schema\": \"loadstone.torture/2\"}").unwrap();
    let json = json.to_str().unwrap();
    let errors = run(&["torture", "diff", json, json]).expect(&[2]).stderr;
    assert!(errors.contains("is \"loadstone.torture/2\", not loadstone.torture/1"), "{errors}");
}

#[test]
fn a_recorded_failure_is_shrunk_afterwards() {
    let server = Scripted::failing_on_nul();
    let (_parent, root) = recorded(&server, "F-09");
    let failures = root.join("failures");
    let one = failures.join(&names(&failures)[0]);
    for name in ["shrunk.bin", "shrunk.lsw"] {
        fs::remove_file(one.join(name)).ok();
    }
    let path = one.to_str().unwrap();
    let none = run(&["torture", "emit", "--as", "nc", "--shrunk", path]).expect(&[2]);
    assert!(none.stderr.contains("has not been shrunk"), "{none:?}");
    let ran = run(&["torture", "shrink", path]).expect(&[0]);
    assert!(ran.stdout.contains("1 failure shrunk: 1 cause"), "{ran:?}");
    // the request line is as valid as that of the whole
    assert_eq!(fs::read(one.join("shrunk.bin")).unwrap(), b"a %00 HTTP/1.1\r\n\r\n");
    let line = run(&["torture", "emit", "--as", "nc", "--shrunk", path]).expect(&[0]).stdout;
    assert!(
        line.starts_with("printf 'a %%00 HTTP/1.1\\r\\n\\r\\n' | nc -w 5 127.0.0.1 "),
        "{line}"
    );
}

#[test]
fn unreplayable_input_is_reported() {
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().to_str().unwrap();
    for command in ["replay", "shrink"] {
        let ran = run(&["torture", command, path]).expect(&[3]);
        assert!(ran.stderr.contains("contains no failures"), "{ran:?}");
    }
    assert!(
        run(&["torture", "judge", path]).expect(&[3]).stderr.contains("contains no transcripts")
    );
    let gone = run(&["torture", "replay", "/nowhere"]).expect(&[2]);
    assert!(gone.stderr.contains("cannot read the folder /nowhere"), "{gone:?}");
    let damaged = empty.path().join("wire.lsw");
    fs::write(&damaged, "loadstone.wire/1\ncase S-01 one 1\n").unwrap();
    let ran = run(&["torture", "replay", path]).expect(&[2]);
    assert!(ran.stderr.contains("wire.lsw: line 2: \"one\" is not a number"), "{ran:?}");
    let server = Scripted::failing_on_nul();
    let (_parent, root) = recorded(&server, "S-02");
    let ran =
        run(&["torture", "replay", "--to", "http://169.254.169.254/", root.to_str().unwrap()]);
    ran.expect(&[2]);
}
