//! A running program that a test observes and acts on.

use crate::support::{Ran, behind, program};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Time limit of every wait.
pub(crate) const WALL_MAX: Duration = Duration::from_secs(60);

/// Started program.
pub(crate) struct Running {
    pub(crate) pid: Pid,
    ended: Receiver<std::io::Result<Output>>,
    output: Option<std::io::Result<Output>>,
}

impl Running {
    /// Starts `loadstone` with arguments.
    pub(crate) fn start(args: &[&str]) -> Running {
        Running::new(program(args))
    }

    /// Starts any command; its output is read continuously.
    pub(crate) fn new(mut command: Command) -> Running {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (sender, ended) = channel();
        thread::spawn(move || sender.send(child.wait_with_output()));
        Running { pid, ended, output: None }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // it may have ended since the check: its exit shows how
        let sent = kill_process(self.pid, signal);
        assert!(matches!(sent, Ok(()) | Err(rustix::io::Errno::SRCH)), "{sent:?}");
    }

    /// Returns whether the program has ended, now or within a moment.
    pub(crate) fn ended(&mut self) -> bool {
        self.output =
            self.output.take().or(self.ended.recv_timeout(Duration::from_millis(10)).ok());
        self.output.is_some()
    }

    /// Waits until no signal of that kind is pending, plus a moment for its handler.
    pub(crate) fn wait_until_handled(&mut self, signal: Signal) {
        let waits = |status: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
            let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
            mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
        };
        let place = format!("/proc/{}/status", self.pid.as_raw_nonzero());
        while !self.ended() && std::fs::read_to_string(&place).is_ok_and(|status| waits(&status)) {}
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ran {
        let output = self.output.take().or_else(|| self.ended.recv_timeout(WALL_MAX).ok());
        let Some(output) = output else {
            kill_process(self.pid, Signal::KILL).ok();
            panic!("the program did not end within {WALL_MAX:?}");
        };
        let output = output.unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Returns a command that runs a shell script in which `"$0"` is the binary and `"$@"` its
/// arguments.
pub(crate) fn shell(script: &str) -> Command {
    behind(&["sh", "-c", script])
}

/// Returns a command that runs a shell script in separate namespaces, which only root can create.
/// Returns `None` and prints a message if that is not possible. `kinds`: options of unshare(1).
pub(crate) fn namespace(kinds: &[&str], script: &str) -> Option<Command> {
    let mut front = vec!["unshare"];
    front.extend(kinds);
    let allowed = Command::new(front[0]).args(&front[1..]).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("not tested: `{}` is not allowed here (it needs root)", front.join(" "));
        return None;
    }
    front.extend(["sh", "-c", script]);
    Some(behind(&front))
}

/// Returns a command for an unprivileged user; as root, for UID 65534. Returns `None` and prints a
/// message if that user cannot start the binary.
pub(crate) fn unprivileged(limits: &[&str]) -> Option<Command> {
    let mut front = Vec::new();
    if rustix::process::geteuid().is_root() {
        front.extend(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        let binary = program::<&str>(&[]);
        let mut test = Command::new(front[0]);
        let can = test.args(&front[1..]).args(["test", "-x"]).arg(binary.get_program()).status();
        if !can.is_ok_and(|status| status.success()) {
            eprintln!("not tested: the user nobody cannot start {:?}", binary.get_program());
            return None;
        }
    }
    if !limits.is_empty() {
        front.push("prlimit");
        front.extend(limits);
        front.push("--");
    }
    if front.is_empty() {
        front.push("env");
    }
    Some(behind(&front))
}
