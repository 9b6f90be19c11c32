//! Runs commands as processes: for what only a process shows (signals, terminals, limits, folders,
//! network namespaces, its CPU time), and for commands that change their process.

use super::{Ran, finish, program, run_words};
use serde_json::Value;
use std::process::Stdio;

/// Runs the program to completion.
#[track_caller]
pub(crate) fn run<S: AsRef<str>>(args: &[S]) -> Ran {
    finish(program(args), b"")
}

/// Runs the program with text on standard input, through a pipe.
#[track_caller]
pub(crate) fn run_with_input<S: AsRef<str>>(args: &[S], input: &[u8]) -> Ran {
    let mut command = program(args);
    command.stdin(Stdio::piped());
    finish(command, input)
}

/// Runs `loadstone run … --json -` with any verdict, as [`super::measure`] does.
#[track_caller]
pub(crate) fn measure<S: AsRef<str>>(args: &[S]) -> Value {
    measured(args, &[0, 4])
}

/// Like [`measure`], with the expected exit codes.
#[track_caller]
pub(crate) fn measured<S: AsRef<str>>(args: &[S], codes: &[i32]) -> Value {
    run(&run_words(args)).expect(codes).json()
}
