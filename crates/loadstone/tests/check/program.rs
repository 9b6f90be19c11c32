//! Output, files and exit code of the command.

use crate::support::{Scripted, Site, free_port, program, run, run_with_input, text};
use crate::{check, failed};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

const HELLO: &str = "version = 1\n[check]\nname = 'Hello'\nbase = 'http://127.0.0.1:1'\n\
    [[step]]\nname = 'hello'\nurl = '/hw'\nexpect = { body = { contains = 'hello' } }\n\
    [[step]]\nname = 'missing'\nurl = '/none'\nexpect = { status = 404 }\n";

fn plan_file(folder: &tempfile::TempDir, plan: &str) -> String {
    let file = folder.path().join("plan.toml");
    std::fs::write(&file, plan).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn the_tree_shows_passed_and_failed_steps() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let file = plan_file(&folder, HELLO);
    let ran = run(&["check", &file, "--base", &site.url("")]).expect(&[0]);
    assert!(ran.stdout.starts_with(&format!("Hello · {}/\n\n  ✓ hello ", site.url(""))), "{ran:?}");
    assert!(ran.stdout.contains("\n2 steps: 2 passed, 0 failed, in "), "{ran:?}");
    let wrong = plan_file(&folder, &HELLO.replace("'hello' } }", "'goodbye' } }"));
    let ran = run(&["check", &wrong, "--base", &site.url("")]).expect(&[1]);
    for found in ["  ✗ hello ", "/hw\n", "expected  \"goodbye\" in it\n", "got       \"hello world"]
    {
        assert!(ran.stdout.contains(found), "{found:?}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "no colour where nobody sees it");
    let quiet = run(&["check", &wrong, "-q", "--base", &site.url("")]).expect(&[1]);
    assert!(quiet.stdout.contains("✗ hello") && !quiet.stdout.contains("✓ missing"), "{quiet:?}");
}

#[test]
fn results_go_to_files_too() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let file = plan_file(&folder, HELLO);
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (xml, json) = (place("result.xml"), place("result.json"));
    let base = site.url("");
    let ran =
        run(&["check", &file, "--base", &base, "--junit", &xml, "--json", &json]).expect(&[0]);
    assert!(ran.stdout.contains("2 passed"), "the tree is still there: {ran:?}");
    let xml = std::fs::read_to_string(xml).unwrap();
    assert!(xml.contains("<testcase name=\"missing\" classname=\"Hello\""), "{xml}");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(text(&json, "/schema"), "loadstone.check/1");
    let nowhere = ["check", file.as_str(), "--base", &base, "--junit", "/nowhere/result.xml"];
    let before = site.served().requests;
    let ran = run(&nowhere).expect(&[5]);
    assert!(ran.stderr.contains("cannot write /nowhere/result.xml"), "{ran:?}");
    assert_eq!(site.served().requests, before, "nothing was asked");
}

#[test]
fn steps_are_chosen_by_name() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let file = plan_file(&folder, HELLO);
    assert_eq!(run(&["check", &file, "--list"]).expect(&[0]).stdout, "hello\nmissing\n");
    assert_eq!(run(&["check", &file, "--list", "--only", "miss"]).expect(&[0]).stdout, "missing\n");
    let json = check(folder.path(), HELLO, &["--base", &site.url(""), "--only", "hell"]);
    assert_eq!(json.expect(&[0]).json()["steps"].as_array().unwrap().len(), 1);
    let ran = run(&["check", &file, "--only", "bye"]).expect(&[2]);
    assert!(ran.stderr.contains("--only bye: no step has this in its name"), "{ran:?}");
}

#[test]
fn wrong_input_is_reported_and_nothing_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |plan: &str| {
        let file = plan_file(&folder, plan);
        run(&["check", &file]).expect(&[2]).stderr.replace(&file, "PLAN")
    };
    assert_eq!(
        wrong(&HELLO.replace("contains", "contain")),
        "loadstone: PLAN: line 8: contain: not a key of body; its keys are exact, contains, lacks, \
         length, graphql, regex, count, sha256, json\n"
    );
    assert_eq!(
        wrong(&HELLO.replace("'/none'", "'/no ne'")),
        "loadstone: PLAN: line 9: step \"missing\": \"/no ne\" cannot be requested: percent-encode spaces and \
         all characters outside visible ASCII (%XX), and omit the #fragment\n"
    );
    // the right plan again
    let file = plan_file(&folder, HELLO);
    let describe = |arguments: &[&str]| run(arguments).expect(&[2]).stderr;
    assert!(describe(&["check", "/nowhere.toml"]).contains("\"/nowhere.toml\" cannot be read"));
    assert!(describe(&["check", &file, "--base", "ftp://h"]).contains("not a URL"));
    assert!(describe(&["check", &file, "--set", "x=1"]).contains("no such variable"));
    assert!(describe(&["check", &file, "--set", "x"]).contains("NAME=VALUE"));
    assert!(
        describe(&["check", &file, "--root", "/nowhere"]).contains("--root /nowhere: not a folder")
    );
    assert!(describe(&["check", &file, "--junit", "-"]).contains("--junit takes a file"));
    assert!(describe(&["check", &file, "--junit", "a", "--json", "a"]).contains("the same file"));
    assert!(describe(&["check", &file, "--ca", "/nowhere.pem"]).contains("/nowhere.pem"));
    assert!(describe(&["check"]).contains("PLAN.toml"));
    assert!(describe(&["check", "https://h/"]).contains("PLAN.toml --base URL"));
    let ran = run_with_input(&["check", "-"], b"version = 2").expect(&[2]);
    assert!(ran.stderr.contains("-: the check plan has version 2"), "{ran:?}");
}

#[test]
fn a_missing_server_exits_with_3() {
    let folder = tempfile::tempdir().unwrap();
    let base = format!("http://127.0.0.1:{}", free_port());
    let ran = check(folder.path(), HELLO, &["--base", &base]).expect(&[3]);
    assert!(
        ran.stderr.contains("no connection could be made") && ran.stderr.contains("refused"),
        "{ran:?}"
    );
    let json = ran.json();
    assert_eq!(failed(&json).len(), 1);
    assert_eq!(text(&json, "/steps/1/reason"), "no connection");
    let unknown = ["--base", "http://no-such-host.invalid/"];
    check(folder.path(), HELLO, &unknown).expect(&[3]);
}

#[test]
fn the_plan_of_the_norm_site_is_written_out_and_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("norm.toml");
    let name = file.to_str().unwrap();
    assert_eq!(run(&["check", "--init", name]).expect(&[0]).stdout, format!("{name}\n"));
    assert_eq!(run(&["check", "--init", "-"]).stdout, std::fs::read_to_string(&file).unwrap());
    let ran = run(&["check", "--init", name]).expect(&[2]);
    assert!(ran.stderr.contains("the file exists; name another one"), "{ran:?}");
    let steps = run(&["check", name, "--list"]).expect(&[0]).stdout;
    for step in ["1: the welcome page", "9: ", "secure: wilma", "two sleeps", "MaxClients 3"] {
        assert!(steps.contains(step), "{step}: {steps}");
    }
    assert!(
        run(&["check", name, "--list", "--set", "maxclients=1"]).stdout.contains("MaxClients 1")
    );
}

#[test]
fn a_signal_ends_it_with_a_partial_result() {
    let (tell, found) = channel();
    let server = Scripted::start(move |mut stream, _| {
        let mut bytes = [0; 1024];
        drop(stream.read(&mut bytes));
        tell.send(()).ok();
        drop(stream.read(&mut bytes));
    });
    let folder = tempfile::tempdir().unwrap();
    let plan = HELLO.replace("'/hw'", "'/hw'\ntimeout = '10m'");
    let file = plan_file(&folder, &plan);
    let mut command = program(&["check", &file, "--base", &server.url(""), "--json", "-"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    found.recv_timeout(Duration::from_secs(60)).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["interrupted"], &json["counts"]["steps"]), (&true.into(), &0.into()));
}
