//! Gates: comparisons that stop as soon as their answer is certain.

use crate::support::process::run;
use crate::support::{Site, binary, finish, free_port, program, text, whole};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Short runs with one user, each ended by a count of calls.
const SHORT: [&str; 7] = ["compare", "-c", "1", "-n", "8", "--budget", "50s"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().chain(more).copied().collect()
}

/// 60 ms differs from 1 ms even on a busy machine. Six blocks are enough for two bounds if each
/// block shows the difference; a block with a disturbed run does not.
#[test]
fn a_slower_server_fails() {
    let (quick, slow) = (Site::start(&[("delay", "1ms")]), Site::start(&[("delay", "60ms")]));
    let (quick, slow) = (quick.url("/hw"), slow.url("/hw"));
    let folder = tempfile::tempdir().unwrap();
    let (xml, md) = (folder.path().join("gate.xml"), folder.path().join("gate.md"));
    let files = ["--junit", xml.to_str().unwrap(), "--md", md.to_str().unwrap(), "--json", "-"];
    let bounds = ["--fail-if", "p50 +5%", "--fail-if", "failures +1%"];
    let json = run(&with(&[&files[..], &bounds, &[&quick, &slow]].concat())).expect(&[1]).json();
    assert_eq!(text(&json, "/gate/answer"), "fail");
    assert!(whole(&json, "/gate/blocks") >= 6, "{json:#}");
    assert_eq!(json["gate"]["restarts"], serde_json::json!([0, 0]));
    assert_eq!(text(&json, "/gate/bounds/0/answer"), "fail");
    assert!(text(&json, "/answer").starts_with("FAIL after "), "{json:#}");
    assert!(json["gate"]["bounds"][0]["low"].as_f64().unwrap() > 0.05, "{json:#}");
    // nothing is published that a fixed number of blocks would require
    assert_eq!(json["differences"][0]["p_value"], Value::Null);
    let (xml, md) = (std::fs::read_to_string(xml).unwrap(), std::fs::read_to_string(md).unwrap());
    assert!(xml.contains("failures=\"1\"") && xml.contains("name=\"p50 +5%\""), "{xml}");
    assert!(md.contains("FAIL after") && md.contains("No restart was seen"), "{md}");
}

#[test]
fn a_wide_bound_is_met_with_certainty() {
    let site = Site::start(&[("delay", "5ms")]);
    let url = site.url("/hw");
    let ran = run(&with(&["--fail-if", "p50 +900%", &url, &url])).expect(&[0]);
    assert!(ran.stdout.starts_with("PASS after 5 blocks in "), "{}", ran.stdout);
    assert!(ran.stdout.contains("within the bound"), "{}", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
}

/// Eight calls have no p99: the gate ends after one block and names the fix.
#[test]
fn too_few_calls_are_undecidable_at_once() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let json = run(&with(&["--fail-if", "p99 +3%", "--json", "-", &url, &url])).expect(&[4]).json();
    assert_eq!(text(&json, "/gate/answer"), "undecidable");
    assert_eq!((whole(&json, "/gate/blocks"), whole(&json, "/gate/blocks_invalid")), (0, 1));
    assert!(text(&json, "/gate/help/0").contains("p99 needs 368 calls"), "{json:#}");
    assert_eq!(json["bounds"][0]["crossed"], false);
    assert_eq!(json["bounds"][0]["undecided"], true);
}

#[test]
fn a_gate_that_cannot_answer_is_refused() {
    let url = "http://127.0.0.1:1/";
    for (words, expected) in [
        (&["--budget", "1m"][..], "--budget is the time for a gate to judge its bounds"),
        (
            &["--budget", "20s", "--fail-if", "p50 +3%", "-d", "5s"],
            "an answer needs at least 5 blocks",
        ),
        (&["--budget", "1m", "--blocks", "6", "--fail-if", "p50 +3%"], "give one of them"),
        (&["--fail-if", "p95 +3%"], "this figure is judged by a gate; add --budget 10m"),
        (&["--budget", "1m", "--fail-if", "cpu +3%"], "a bound on cpu needs servers"),
        (
            &["--budget", "1m", "--fail-if", "p50 +3%", "--sut-a", "1", "--sut-b", "1"],
            "add --fail-if 'cpu +5%'",
        ),
        (&["--slo", "p99<1s", "--until-sure"], "a comparison ends early with --budget"),
        (&["--commit-a", " ", "--commit-b", "HEAD", "--start", "true"], "--commit-a \" \": give"),
    ] {
        let errors = run(&[&["compare"], words, &[url, url]].concat()).expect(&[2]).stderr;
        assert!(errors.contains(expected), "{words:?}: {errors}");
    }
}

fn git(folder: &Path, words: &[&str]) -> String {
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
    let done = Command::new("git").current_dir(folder).args(identity).args(words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Two commits of a repository are built and started in separate worktrees, which are removed.
#[test]
fn commits_are_built_compared_and_cleaned_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    git(at, &["init", "-q", "-b", "main"]);
    for delay in ["1ms", "60ms"] {
        std::fs::write(at.join("delay"), delay).unwrap();
        git(at, &["add", "delay"]);
        git(at, &["commit", "-q", "-m", delay]);
    }
    let address = format!("127.0.0.1:{}", free_port());
    let start =
        format!("exec '{}' site --listen {address} --delay \"$(cat built)\"", binary().display());
    let url = format!("http://{address}/hw");
    let commits = ["--commit-a", "HEAD~1", "--commit-b", "main", "--build", "cp delay built"];
    let more = ["--start", &start, "--fail-if", "p50 +5%", "--json", "-", &url];
    let mut command = program(&with(&[&commits[..], &more].concat()));
    command.current_dir(at);
    // A busy machine makes runs INVALID, and the gate is then undecidable (4).
    let ran = finish(command, b"").expect(&[1, 4]);
    let (code, json) = (ran.code, ran.json());
    let answer = if code == 1 { "fail" } else { "undecidable" };
    assert_eq!(text(&json, "/gate/answer"), answer, "{json:#}");
    // five usable blocks decide 1 ms against 60 ms; up to two of them may be disturbed
    assert!(code == 1 || whole(&json, "/gate/blocks") < 8, "{json:#}");
    let differences = json["differences"].as_array().unwrap();
    let p50 = differences.iter().find(|figure| figure["figure"] == "p50").unwrap();
    assert!(p50["after"].as_f64().unwrap() > 10.0 * p50["before"].as_f64().unwrap(), "{json:#}");
    assert!(text(&json, "/before/label").starts_with("HEAD~1 ("), "{json:#}");
    assert!(text(&json, "/after/label").starts_with("main ("), "{json:#}");
    // once before the first block, and for each of ten runs
    assert!(json["gate"]["restarts"][1].as_u64().unwrap() >= 11, "{json:#}");
    assert_eq!(git(at, &["worktree", "list"]).lines().count(), 1);

    let mut broken = program(&with(&[
        "--commit-a",
        "HEAD~1",
        "--commit-b",
        "main",
        "--build",
        "echo no compiler; false",
        "--start",
        &start,
        "--fail-if",
        "p50 +5%",
        &url,
    ]));
    broken.current_dir(at);
    let errors = finish(broken, b"").expect(&[2]).stderr;
    assert!(
        errors.contains("--build failed for HEAD~1") && errors.contains("no compiler"),
        "{errors}"
    );
    let mut unknown = program(&with(&[
        "--commit-a",
        "nowhere",
        "--commit-b",
        "main",
        "--start",
        &start,
        "--fail-if",
        "p50 +5%",
        &url,
    ]));
    unknown.current_dir(at);
    let errors = finish(unknown, b"").expect(&[2]).stderr;
    assert!(errors.contains("\"nowhere\" is not a commit"), "{errors}");
    assert_eq!(git(at, &["worktree", "list"]).lines().count(), 1);
}

/// The CPU time per call comes from the processes that the comparison started.
#[test]
fn the_server_s_cpu_time_is_judged() {
    let address = format!("127.0.0.1:{}", free_port());
    let start = format!("exec '{}' site --listen {address}", binary().display());
    let url = format!("http://{address}/hw");
    let json = run(&[
        "compare",
        "-c",
        "1",
        "-d",
        "200ms",
        "--budget",
        "50s",
        "--fail-if",
        "cpu +900%",
        "--start-a",
        &start,
        "--start-b",
        &start,
        "--json",
        "-",
        &url,
    ])
    .expect(&[0, 4])
    .json();
    let bound = &json["gate"]["bounds"][0];
    assert_eq!(bound["figure"], "cpu");
    assert!(bound["change"].as_f64().is_some(), "{json:#}");
    // of servers that are running already
    let site = Site::start(&[]);
    // the test's own process serves it
    let (url, pid) = (site.url("/hw"), std::process::id().to_string());
    let watched = ["--sut-a", &pid, "--sut-b", &pid, "--json", "-", &url, &url];
    let load = ["compare", "-c", "1", "-d", "200ms", "--budget", "30s", "--fail-if", "cpu +900%"];
    let json = run(&[&load[..], &watched].concat()).expect(&[0, 4]).json();
    assert!(json["gate"]["bounds"][0]["change"].as_f64().is_some(), "{json:#}");
    assert_eq!(json["gate"]["restarts"], serde_json::json!([0, 0]));
}
