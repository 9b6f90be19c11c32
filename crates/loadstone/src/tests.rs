//! Commands with a given invocation, as tests in other files run them.

use host::invocation::{Invocation, Output};
use std::collections::BTreeMap;

/// Runs a command line; returns its exit code, its output and its errors.
fn ran(words: &[&str]) -> (u8, String, String) {
    let words = ["loadstone"].iter().chain(words).map(Into::into).collect();
    let variables = BTreeMap::from([("LOADSTONE_STORE".into(), "none".into())]);
    let invocation = Invocation { words, variables, input: Vec::new() };
    let (code, Output { stdout, stderr }) = invocation.run(crate::run);
    (code, String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn results_and_errors_go_to_their_streams() {
    let (code, out, errors) = ran(&["--version"]);
    assert!(code == 0 && out.starts_with("loadstone ") && errors.is_empty(), "{out}{errors}");
    let (code, out, errors) = ran(&["run", "--print-plan", "http://h/"]);
    assert!(code == 0 && out.contains("\"http://h/\"") && errors.is_empty(), "{out}{errors}");
    for wrong in [&["rum"][..], &["run", "--nonsense"], &["run", "-c", "0", "http://h/"], &[]] {
        let (code, out, errors) = ran(wrong);
        assert!(code == 2 && out.is_empty() && !errors.is_empty(), "{wrong:?}: {out}{errors}");
    }
}

#[test]
fn commands_that_change_their_process_need_a_separate_one() {
    for (words, part) in [
        (&["netpath", "--rtt", "1ms", "--", "true"][..], "netpath needs a process with one thread"),
        (
            &["compare", "--a-command", "true", "--b-command", "true", "http://127.0.0.1:1/"],
            "--a-command and --b-command need a separate process",
        ),
    ] {
        let (code, out, errors) = ran(words);
        assert!(code == 2 && out.is_empty() && errors.contains(part), "{words:?}: {errors}");
    }
}

/// Returns the kernel's mask of the signals that this process handles.
fn handled() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find(|line| line.starts_with("SigCgt:")).unwrap().to_owned()
}

#[test]
fn a_given_invocation_handles_no_signals() {
    let before = handled();
    // each reads its command line, installs its handlers, and finds no server
    ran(&["run", "-q", "-n", "1", "http://127.0.0.1:1/"]);
    ran(&["ab", "-n", "1", "http://127.0.0.1:1/"]);
    assert_eq!(handled(), before);
}
