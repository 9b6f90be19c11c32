//! Tests that failed are run once more, alone.
//!
//! Three lanes of tests share the machine with servers and loads, and some tests compare the program
//! with foreign programs that are themselves racy. A test that passes alone does not end the checks,
//! but the closing lines name it, so that its race can be fixed. A test that fails twice is a failure,
//! and so are many failures at once.

use crate::shell;
use std::process::Command;

/// More failed tests than this are not a matter of chance.
const TESTS_MAX: usize = 4;
/// Part of cargo's message about a test program that crashed instead of reporting failed tests.
const CRASHED: &str = "process didn't exit successfully: ";

/// Result of the tests of one command.
pub(crate) struct Ended {
    pub(crate) result: anyhow::Result<()>,
    /// The command for the failed tests alone, and their names.
    failed: Option<(Command, Vec<String>)>,
}

impl Ended {
    /// Nothing was run.
    pub(crate) fn before_tests(result: anyhow::Result<()>) -> Ended {
        Ended { result, failed: None }
    }

    /// Records the end of a test command.
    /// `printed` is the output of `command`, a `cargo test` without arguments for the tests.
    pub(crate) fn new(command: &Command, result: anyhow::Result<()>, printed: &str) -> Ended {
        let names = failed_in(printed);
        let repeatable = !names.is_empty() && !printed.contains(CRASHED);
        let failed = (result.is_err() && repeatable).then(|| {
            let mut alone = same(command);
            alone.args(["--", "--exact"]).args(&names);
            (alone, names)
        });
        Ended { result, failed }
    }
}

/// Repeats the failed tests after all lanes have ended. Returns the names of the tests that passed
/// this time.
///
/// # Errors
/// Fails if a command failed without failed tests (a build, a crash), if more than [`TESTS_MAX`]
/// tests failed, or if a test failed again.
pub(crate) fn repeat(all: Vec<Ended>) -> anyhow::Result<Vec<String>> {
    let count: usize =
        all.iter().flat_map(|ended| &ended.failed).map(|(_, names)| names.len()).sum();
    let mut passed = Vec::new();
    for Ended { result, failed } in all {
        match failed {
            Some((mut alone, names)) if count <= TESTS_MAX => {
                eprintln!("xtask: once more, alone: {}", names.join(" "));
                let (again, printed) = shell::run_and_capture(&mut alone);
                eprint!("{printed}");
                again?;
                anyhow::ensure!(
                    all_passed(&names, &printed),
                    "not all of {names:?} were run again"
                );
                passed.extend(names);
            }
            _ => result?,
        }
    }
    Ok(passed)
}

/// Names of the tests that failed, from the lines of Rust's test harness.
fn failed_in(printed: &str) -> Vec<String> {
    let mut names: Vec<String> =
        printed.lines().filter_map(|line| ended(line, "FAILED")).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn all_passed(names: &[String], printed: &str) -> bool {
    names.iter().all(|name| printed.lines().any(|line| ended(line, "ok") == Some(name)))
}

/// Returns the name in a line such as `test a::b ... ok`.
fn ended<'a>(line: &'a str, how: &str) -> Option<&'a str> {
    line.strip_prefix("test ")?.strip_suffix(how)?.strip_suffix(" ... ")
}

/// Returns a command with the same program, arguments, environment and folder.
fn same(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        copy.current_dir(folder);
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a failed `cargo test` that printed `printed`; its repetition runs the script.
    fn ran(script: &str, printed: &str) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Ended::new(&command, Err(anyhow::anyhow!("failed")), printed)
    }

    #[test]
    fn a_test_that_passes_alone_is_reported() {
        let failed = "test a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n    a::c\n";
        let script = r#"[ "$*" = "--exact a::c" ] && echo 'test a::c ... ok'"#;
        assert_eq!(repeat(vec![ran(script, failed)]).unwrap(), ["a::c"]);
    }

    #[test]
    fn a_test_that_fails_twice_is_a_failure() {
        let failed = "test a ... FAILED\n";
        repeat(vec![ran("echo 'test a ... FAILED'; exit 101", failed)]).unwrap_err();
        // nothing was run
        repeat(vec![ran("true", failed)]).unwrap_err();
    }

    #[test]
    fn crashes_and_many_failures_are_not_repeated() {
        let passes = "echo 'test a ... ok'";
        let crash = format!("Caused by:\n  {CRASHED}`a` (signal: 11)\n");
        repeat(vec![ran(passes, &crash)]).unwrap_err();
        repeat(vec![ran(passes, &format!("test a ... FAILED\n{crash}"))]).unwrap_err();
        let many: String = (0..=TESTS_MAX).map(|n| format!("test t{n} ... FAILED\n")).collect();
        repeat(vec![ran(passes, &many)]).unwrap_err();
    }
}
