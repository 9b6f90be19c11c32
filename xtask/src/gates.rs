//! The CI gates for users, `action.yml` and `ci/gitlab.yml`: checked against the schemas of their
//! formats, and their scripts run with a program that exits with given codes.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ACTION: &str = include_str!("../../action.yml");
const GITLAB: &str = include_str!("../../ci/gitlab.yml");

fn parsed(yaml: &str) -> Value {
    serde_yaml_ng::from_str(yaml).unwrap()
}

/// Errors that a schema finds in a document.
fn faults(schema: &str, document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    validator.iter_errors(document).map(|error| error.to_string()).collect()
}

/// Creates a folder with a `loadstone` whose runs write their arguments, a line each, and end with
/// each code of the list in turn, the last one forever. Their report is a line of Markdown.
fn folder(codes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let codes: String = codes.iter().map(|code| format!("{code}\n")).collect();
    std::fs::write(folder.path().join("codes"), codes).unwrap();
    let program = folder.path().join("loadstone");
    let script = "#!/bin/sh\nmkdir -p results && echo '| p99 | 3 ms |' > results/result.md\nprintf '%s\\n' \"$@\" > arguments\necho 'p99 3 ms'\necho >> runs\n\
        code=$(head -n1 codes)\n[ \"$(wc -l < codes)\" = 1 ] || sed -i 1d codes\nexit \"$code\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

fn script(folder: &Path, script: &str, set: &[(&str, &str)]) -> Output {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]);
    bash.current_dir(folder).env("PATH", path).envs(set.iter().copied());
    for file in ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH"] {
        bash.env(file, folder.join(file));
    }
    bash.output().unwrap()
}

fn read(file: PathBuf) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

fn action(codes: &[u8], undecided: &str) -> (tempfile::TempDir, Option<i32>) {
    let action = parsed(ACTION);
    let steps = action["runs"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["id"] == "gate").unwrap();
    let folder = folder(codes);
    let set = [
        ("PROGRAM", "loadstone"),
        ("URL", "http://127.0.0.1:1/"),
        ("SLO", "p99<100ms, failures<0.1%"),
        ("OPTIONS", "-H 'a: b c' --rate 5/s"),
        ("UNDECIDED", undecided),
        ("RESULTS", "results"),
    ];
    let named: Vec<&str> = step["env"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(set.iter().all(|(name, _)| named.contains(name)) && named.len() == set.len());
    let ended = script(folder.path(), step["run"].as_str().unwrap(), &set);
    (folder, ended.status.code())
}

#[test]
fn the_action_is_of_its_schema() {
    let schema = include_str!("../schemas/github-action.json");
    let action = parsed(ACTION);
    assert_eq!(faults(schema, &action), [""; 0]);
    let mut spoiled = action;
    spoiled["runs"]["using"] = "nothing".into();
    assert!(!faults(schema, &spoiled).is_empty());
}

#[test]
fn the_template_is_of_its_schema() {
    let schema = include_str!("../schemas/gitlab-ci.json");
    let template = parsed(GITLAB);
    assert_eq!(faults(schema, &template), [""; 0]);
    let mut spoiled = template;
    spoiled["job"] = serde_json::json!({"script": "true", "retry": {"max": 9}});
    assert!(!faults(schema, &spoiled).is_empty());
}

#[test]
fn the_action_passes_its_inputs() {
    let (folder, code) = action(&[1], "fail");
    assert_eq!(code, Some(1));
    let arguments = read(folder.path().join("arguments"));
    let start =
        "run\nhttp://127.0.0.1:1/\n-H\na: b c\n--rate\n5/s\n--slo\np99<100ms, failures<0.1%\n";
    assert!(arguments.starts_with(start), "{arguments}");
    assert_eq!(read(folder.path().join("GITHUB_OUTPUT")), "exit-code=1\n");
    let summary = read(folder.path().join("GITHUB_STEP_SUMMARY"));
    assert!(summary.contains("objectives missed"), "{summary}");
    assert!(summary.ends_with("| p99 | 3 ms |\n"), "{summary}");
    assert_eq!(read(folder.path().join("results/result.txt")), "p99 3 ms\n");
}

#[test]
fn the_action_repeats_undecided_runs() {
    for (codes, undecided, ended, runs) in [
        (&[0][..], "fail", 0, 1),
        (&[4, 0], "fail", 0, 2),
        (&[4, 1], "warn", 1, 2),
        (&[4, 4, 0], "fail", 4, 2),
        (&[4, 4, 0], "warn", 0, 2),
        (&[2], "warn", 2, 1),
        (&[0], "shrug", 2, 0),
    ] {
        let (folder, code) = action(codes, undecided);
        let runs_made = read(folder.path().join("runs")).lines().count();
        assert_eq!((code, runs_made), (Some(ended), runs), "{codes:?} {undecided}");
    }
}

#[test]
fn the_template_hands_on_the_exit_code() {
    let template = parsed(GITLAB);
    let job = &template[".loadstone"];
    let text = job["script"][0].as_str().unwrap();
    let folder = folder(&[4]);
    let mut set = vec![("LOADSTONE_URL", "http://127.0.0.1:1/"), ("LOADSTONE_SLO", "p99<1s")];
    set.push(("LOADSTONE_OPTIONS", "-H 'a: b c'"));
    assert_eq!(script(folder.path(), text, &set).status.code(), Some(4));
    let arguments = read(folder.path().join("arguments"));
    assert!(arguments.starts_with("run\nhttp://127.0.0.1:1/\n-H\na: b c\n--slo\np99<1s\n"));
    let without = script(folder.path(), text, &set[1..]);
    assert_ne!(without.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&without.stderr).contains("set LOADSTONE_URL"));
    assert_eq!(job["retry"]["exit_codes"], 4);
}
