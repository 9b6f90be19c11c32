//! The scripts in `fixtures` against the output and exit codes of k6 1.8.1, with time-dependent
//! numbers masked. The users run in virtual time against a simulated server.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

mod support;

use k6::program::Program;
use k6::test::{OuterOptions, StopReason, Test, exit};
use regex::Regex;
use sample::FailureClass;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Ran, Reply, run};

const BASE: &str = "http://127.0.0.1:8000";

/// Simulates the server that k6 ran against.
fn answer(request: &str) -> Reply {
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: Map<String, Value> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(n, v)| (n.to_owned(), json!(v)))
        .collect();
    if headers["Host"] == "127.0.0.1:9" {
        return Reply::Failed(FailureClass::Refused);
    }
    let place = path.split('?').next().unwrap_or_default();
    let mut extra = String::new();
    let mut status = 200;
    let mut text = json!({
        "method": method, "path": path, "headers": headers, "body": body,
        "items": [{"id": 1}, {"id": 2}],
    })
    .to_string();
    match place {
        "/redir" => (status, extra) = (302, "Location: /get\r\n".to_owned()),
        "/cookie" => extra = "Set-Cookie: sid=abc; Path=/\r\n".to_owned(),
        "/html" => {
            extra = "Content-Type: text/html\r\n".to_owned();
            text = "<html><head><title>T</title></head><body><a href=\"/get\">l</a><form \
                    action=\"/post\" method=\"post\"><input name=\"u\" value=\"v\"><input \
                    type=\"hidden\" name=\"csrf\" value=\"x1\"></form></body></html>"
                .to_owned();
        }
        _ => {
            let asked = place.strip_prefix("/status/").and_then(|it| it.parse().ok());
            status = asked.unwrap_or(200);
        }
    }
    let reason = if status == 201 { "Created" } else { "OK" };
    let head =
        format!("HTTP/1.1 {status} {reason}\r\n{extra}Content-Length: {}\r\n\r\n", text.len());
    Reply::Whole(head, if method == "HEAD" { String::new() } else { text })
}

/// Replaces time-dependent numbers and whitespace.
fn masked(text: &str) -> Vec<String> {
    let rules = [
        (r"=[0-9.]+(ms|µs|s|ns)\b", "=T"),
        (r"[0-9.]+/s", "R/s"),
        (r"[0-9.]+ [kM]?B(/s)?", "D"),
        (r"data_(sent|received).*", "data"),
        (r"^\s+(vus|vus_max)\.*:.*", "VUS"),
        (r"\.{3,}", "..."),
        (r" +", " "),
    ];
    let rules: Vec<(Regex, &str)> =
        rules.iter().map(|(rule, with)| (Regex::new(rule).unwrap(), *with)).collect();
    let trend = Regex::new(r"(avg|p\(\d|min)=").unwrap();
    let value = Regex::new(r"=\S+ *").unwrap();
    let mut out = Vec::new();
    for line in text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()) {
        let mut line = line.to_owned();
        if trend.is_match(&line) && line.contains(':') {
            line = value.replace_all(&line, "=N ").into_owned();
        }
        for (rule, with) in &rules {
            line = rule.replace_all(&line, *with).into_owned();
        }
        if line != "VUS" {
            out.push(line);
        }
    }
    if let Some(first) = out.first_mut() {
        *first = first.trim_start().to_owned();
    }
    out
}

fn code(ran: &Ran) -> u8 {
    let crossed = ran.test.crossed(&ran.test.collected(), ran.elapsed_s(), false);
    let marked = ran.test.program.counts.marked_failed.load(std::sync::atomic::Ordering::Relaxed);
    match ran.test.stop_reason() {
        Some(StopReason::Aborted(_)) => exit::ABORTED,
        Some(StopReason::Setup(_) | StopReason::Init(_)) => exit::EXCEPTION,
        Some(_) => exit::THRESHOLDS,
        None if !crossed.is_empty() => exit::THRESHOLDS,
        None => ran.test.teardown_code().unwrap_or(if marked { exit::MARKED_FAILED } else { 0 }),
    }
}

/// Returns the exit code and the masked text of a script.
fn outcome(path: &Path) -> String {
    let read = |path: &str| std::fs::read(path).map_err(|error| error.to_string());
    let env = BTreeMap::from([("BASE".to_owned(), BASE.to_owned())]);
    let program = Program::new(path.to_str().unwrap(), env, Box::new(read));
    let test = match Test::load(program, &OuterOptions::default(), 1) {
        Ok(test) => test,
        Err(error) => return format!("exit {}\n", error.code),
    };
    let ran = run(test, &answer);
    let text = match ran.test.handle_summary(&ran.data()) {
        Some(made) => made.unwrap().into_iter().map(|(_, text)| text).collect(),
        None => ran.text(),
    };
    let lines = if ran.test.exports.contains("handleSummary") {
        text.lines().map(str::to_owned).collect()
    } else {
        masked(&text)
    };
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("exit {}\n{lines}", code(&ran))
}

#[test]
fn scripts_end_as_with_k6() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "js" || end == "ts"))
        .collect();
    scripts.sort();
    assert_eq!(scripts.len(), 60);
    let mut different = String::new();
    for path in scripts {
        let expected = std::fs::read_to_string(path.with_extension("expected")).unwrap();
        let got = outcome(&path);
        if got != expected {
            let name = path.file_name().unwrap().display();
            different.push_str(&format!("== {name}\n-- k6\n{expected}-- here\n{got}"));
        }
    }
    assert!(different.is_empty(), "{different}");
}
