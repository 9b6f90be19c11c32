//! The commands other than `run`: demo, calibrate, completions, the manual.

use crate::support::{Site, behind, finish, outcomes, program, run, text, whole};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::TcpStream;

#[test]
fn demo_measures_itself_and_leaves_nothing_running() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = program(&["demo", "-d", "300ms", "--rate", "200/s", "--json", "r.json"]);
    command.current_dir(folder.path());
    let ran = finish(command, b"").expect(&[0, 4]);
    assert!(ran.stdout.contains("\nThroughput"), "{}", ran.stdout);
    let page = std::fs::read_to_string(folder.path().join("loadstone-demo.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    let json = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let due = outcomes(&json)[0];
    // 60 are expected of Poisson arrivals, with a standard deviation of 8
    assert!((20..=100).contains(&due), "{due}");
    let target = text(&json, "/target").trim_start_matches("http://");
    let address = target.split('/').next().unwrap();
    assert!(TcpStream::connect(address).is_err(), "the site at {address} still listens");

    let mut command = program(&["demo", "-d", "100ms", "--html", "p.html", "--quiet"]);
    command.current_dir(folder.path());
    let ran = finish(command, b"").expect(&[0, 4]);
    assert!(folder.path().join("p.html").exists());
    assert!(!ran.stdout.contains("\nPhases"), "{}", ran.stdout);
}

#[test]
fn a_calibration_is_kept_and_used_by_later_runs() {
    let state = tempfile::tempdir().unwrap();
    let kept = state.path().join("loadstone/calibration.json");
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let in_state = |args: &[&str]| {
        let mut command = program(args);
        command.env("XDG_STATE_HOME", state.path());
        finish(command, b"").expect(&[0, 4])
    };
    in_state(&["calibrate", "-d", "100ms", "--no-save"]);
    assert!(!kept.exists());
    let json = in_state(&["run", "-n", "5", "--json", "-", &url]).json();
    assert!(json["client"]["dummy"].is_null());

    let mut value = in_state(&["calibrate", "-d", "500ms", "--json", "-"]).json();
    assert_eq!(value["schema"], "loadstone.calibrate/1");
    let doubted = !value["doubts"].as_array().unwrap().is_empty();
    assert_eq!(kept.exists(), !doubted, "what is not believed is not kept: {value:#}");
    if doubted {
        // this machine is busy: stored as on a quiet one
        value["doubts"] = Value::Array(Vec::new());
        std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
        std::fs::write(&kept, value.to_string()).unwrap();
    }
    let file: Value = serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    assert_eq!(value, file);
    for key in ["calls_per_s", "cpu_per_call_s", "connections_per_s", "call_p50_s"] {
        assert!(value[key].as_f64().unwrap() > 0.0, "{key} in {value:#}");
    }
    assert!(value["punctuality"].as_array().unwrap().len() >= 3);
    let json = in_state(&["run", "-n", "5", "--json", "-", &url]).json();
    assert_eq!(json["client"]["dummy"]["call_s"], value["call_p50_s"]);
    let ran = in_state(&["run", "--full", "-n", "5", &url]);
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("as measured by calibrate on"), "{}", ran.stdout);
    assert_eq!(whole(&json, "/outcomes/succeeded"), 5);
}

/// Returns the long options of a command, from its own help.
fn options_of(command: &str) -> BTreeSet<String> {
    let help = run(&[command, "--help"]).expect(&[0]).stdout;
    let word = |line: &str| {
        let line = line.trim_start();
        let at = if line.starts_with("--") { Some(0) } else { line.find(", --").map(|at| at + 2) };
        let rest = &line[at.filter(|_| line.starts_with('-'))? + 2..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        Some(rest[..end.unwrap_or(rest.len())].to_owned())
    };
    let options: BTreeSet<String> = help.lines().filter_map(word).collect();
    assert!(options.len() > 1, "{help}");
    options
}

#[test]
fn completions_and_the_manual_have_every_option() {
    let manual = run(&["man"]).expect(&[0]).stdout.replace("\\-", "-");
    let scripts = ["bash", "zsh", "fish"]
        .map(|shell| (shell, run(&["completions", shell]).expect(&[0]).stdout));
    let mut count = 0;
    for command in ["run", "demo", "site", "calibrate"] {
        for option in options_of(command) {
            count += 1;
            assert!(manual.contains(&format!("--{option}")), "{command} --{option} in the manual");
            for (shell, script) in &scripts {
                let way = if *shell == "fish" { "-l " } else { "--" };
                assert!(
                    script.contains(&format!("{way}{option}")),
                    "{command} --{option}: {shell}"
                );
            }
        }
    }
    // `run` alone has more than fifty
    assert!(count > 80, "{count}");
    let bash = &scripts[0].1;
    assert!(bash.contains("loadstone"), "{bash}");
}

#[test]
fn version_names_the_program() {
    let ran = run(&["--version"]).expect(&[0]);
    assert!(ran.stdout.starts_with(&format!("loadstone {}", env!("CARGO_PKG_VERSION"))));
    assert_eq!(run::<&str>(&[]).code, 2);
}

#[test]
fn the_client_s_scheduling_is_reported() {
    let site = Site::start(&[]);
    let io = |mut command: std::process::Command| {
        command.args(["run", &site.url("/hw"), "-n", "5", "-c", "1", "--quiet", "--json", "-"]);
        text(&finish(command, b"").json(), "/client/io").to_owned()
    };
    // every user may choose batch scheduling
    assert_eq!(io(behind(&["chrt", "-b", "0"])), "epoll, SCHED_BATCH");
    assert!(!io(program::<&str>(&[])).contains("BATCH"));
}
