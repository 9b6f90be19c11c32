//! Programs in the namespaces of a path.

use crate::namespace::Namespace;
use crate::raw;
use crate::trouble::PathTrouble;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Starts a program in the namespace. It is killed when the calling thread ends, for whatever
/// reason.
///
/// # Errors
/// Fails if the program cannot be started.
pub fn start(namespace: &Namespace, command: &mut Command) -> io::Result<Child> {
    raw::settle(command, namespace.descriptor());
    command.spawn()
}

/// Interval at which a program is checked: the maximum delay until its end is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The signals forwarded to a program while it runs.
#[derive(Debug)]
pub struct Post(Signals);

impl Post {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// Fails if no more descriptors are available.
    pub fn open() -> io::Result<Post> {
        Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]).map(Post)
    }

    /// Waits for the end of the program and forwards signals to it meanwhile, except those of
    /// terminal keys, which it has already received.
    ///
    /// # Errors
    /// Fails if the kernel cannot report how it ended.
    pub fn supervise(&mut self, program: &mut Child) -> io::Result<ExitStatus> {
        loop {
            for signal in self.0.pending() {
                if !(matches!(signal, SIGINT | SIGQUIT) && is_in_foreground()) {
                    send(program, signal);
                }
            }
            if let Some(status) = program.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Terminates a program; processes that remain after `patience` are killed.
///
/// # Errors
/// Fails if the kernel cannot report how it ended.
pub fn end(program: &mut Child, patience: Duration) -> io::Result<()> {
    send(program, SIGTERM);
    let rounds = patience.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..rounds {
        if program.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    program.kill()?;
    program.wait().map(drop)
}

fn send(program: &Child, signal: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    let process = Pid::from_raw(program.id() as i32);
    if let (Some(process), Some(signal)) = (process, Signal::from_named_raw(signal)) {
        // it may just have ended
        kill_process(process, signal).ok();
    }
}

/// Returns the exit code for the end of a program: 128 plus the signal, as in shells.
pub fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Returns whether this process is in the foreground of a terminal, which then sends the signals of
/// its keys to the programs started here too.
fn is_in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    let front = rustix::termios::tcgetpgrp(&terminal);
    front.is_ok_and(|front| front == rustix::process::getpgrp())
}

/// The polling interval for a listener.
const LISTENER_PAUSE: Duration = Duration::from_millis(10);
const LISTENER_TRIES: u32 = 1_000;

/// Waits until a server listens on a TCP port of the namespace, at most 10 s; `gone` reports
/// whether no process is left. Returns whether there is a listener.
///
/// # Errors
/// Fails if the namespace cannot be entered.
pub fn await_listener(
    namespace: &Namespace,
    gone: &mut (dyn FnMut() -> bool + Send),
) -> Result<bool, PathTrouble> {
    namespace.within(|| {
        for _ in 0..LISTENER_TRIES {
            if listening("/proc/thread-self/net/tcp") || listening("/proc/thread-self/net/tcp6") {
                return Ok(true);
            }
            if gone() {
                return Ok(false);
            }
            std::thread::sleep(LISTENER_PAUSE);
        }
        Err(PathTrouble::Other(
            "the server".to_owned(),
            io::Error::new(io::ErrorKind::TimedOut, "nothing listens on a TCP port after 10 s"),
        ))
    })
}

/// Returns whether a socket table contains one in the state LISTEN (0A).
fn listening(table: &str) -> bool {
    let text = std::fs::read_to_string(table).unwrap_or_default();
    text.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some("0A"))
}
