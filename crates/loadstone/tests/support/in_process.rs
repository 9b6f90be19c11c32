//! Runs a command in the test's process.

use super::{Ran, WALL_MAX, finish};
use host::invocation::{Invocation, Output};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

/// Size of the main thread's stack under the usual limit, which a command may use up to its end.
const STACK: usize = 8 << 20;

/// Runs a command prepared by [`program`](super::program) on a separate thread of this process, with
/// the command's arguments and environment. If `LOADSTONE_BIN` is set, starts the program that it
/// names instead: `cargo xtask test` covers the release build with the same tests.
#[track_caller]
pub(crate) fn in_process(command: &Command, input: &[u8]) -> Ran {
    assert!(command.get_current_dir().is_none(), "the folder belongs to the process: use finish");
    if std::env::var_os("LOADSTONE_BIN").is_some() {
        return finish(copied(command), input);
    }
    let invocation = invocation(command, input);
    let (tell, outcome) = mpsc::channel();
    // after the time limit nothing receives it
    let body = move || drop(tell.send(invocation.run(loadstone::run)));
    let thread = thread::Builder::new().stack_size(STACK).spawn(body).unwrap();
    match outcome.recv_timeout(WALL_MAX) {
        Ok((code, Output { stdout, stderr })) => {
            let text = |bytes| String::from_utf8(bytes).unwrap();
            Ran { code: i32::from(code), stdout: text(stdout), stderr: text(stderr) }
        }
        Err(RecvTimeoutError::Timeout) => panic!("{command:?} did not end within {WALL_MAX:?}"),
        // the test fails with the panic of the command
        Err(RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("a thread that sent nothing"))
        }
    }
}

fn copied(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args()).stdin(Stdio::piped());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    copy
}

fn invocation(command: &Command, input: &[u8]) -> Invocation {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(ToOwned::to_owned).collect();
    let mut invocation =
        Invocation { words, variables: std::env::vars_os().collect(), input: input.to_vec() };
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => invocation.variables.insert(name.to_owned(), value.to_owned()),
            None => invocation.variables.remove(name),
        };
    }
    invocation
}
