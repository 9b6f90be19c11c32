//! A server started by the comparison. A shell starts it before a run; after the run, every process
//! that the command started is terminated.
//!
//! This process adopts the orphans of its servers (prctl(2), PR_SET_CHILD_SUBREAPER). Everything
//! that a command started, in the background or in a separate session, is therefore found among its
//! children once the parent has exited. No other code may start processes meanwhile: they would be
//! mistaken for a server's.

use crate::exit::Failure;
use crate::{shell, signals};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    set_child_subreaper, wait,
};
use std::collections::VecDeque;
use std::io::{PipeReader, Read};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use units::Nanos;

/// Time for a server to shut down after TERM; then it is killed.
pub(super) const TERM_PATIENCE: Nanos = Nanos::from_secs(5);
/// Time for the kernel to end killed processes; a process in uninterruptible disk wait may never
/// end.
const KILL_PATIENCE: Nanos = Nanos::from_secs(5);
/// Interval of checking for remaining processes.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// Number of bytes kept from the end of a command's output, and number of lines shown.
const TAIL_BYTES_MAX: usize = 16 << 10;
const TAIL_LINES_MAX: usize = 10;
/// Maximum number of characters shown per line.
const LINE_CHARS_MAX: usize = 300;

/// The running server. Code that reaps or kills processes must hold this lock: the PID of an
/// unreaped process cannot be reused.
static NOW: Mutex<Now> = Mutex::new(Now { leader: None, ended: None });

#[derive(Debug)]
struct Now {
    /// The shell, which leads its group; `None` once it has been reaped.
    leader: Option<Pid>,
    /// Exit status of the shell.
    ended: Option<WaitStatus>,
}

/// Must be called once, before the first server is started.
///
/// # Errors
/// Fails if the system does not allow ending servers this way.
pub(super) fn prepare() -> Result<(), Failure> {
    if !host::invocation::is_process() {
        return Err(Failure::usage(
            "--a-command and --b-command need a separate process, which ends their servers: start the \
             program loadstone for it",
        ));
    }
    let refused = |what: &str, why: String| Failure::usage(format!("cannot {what}: {why}"));
    set_child_subreaper(Some(getpid()))
        .map_err(|error| refused("supervise a server's processes", error.to_string()))?;
    signals::before_exit(kill_all).map_err(|error| refused("catch signals", error.to_string()))?;
    // the release build aborts on panic, without dropping anything
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        kill_all();
    }));
    shell::remember_limit();
    Ok(())
}

/// Running server; dropping it ends every process that it started.
#[derive(Debug)]
pub(super) struct ServerProcess {
    /// Thread that reads the output and returns its end.
    reader: Option<JoinHandle<VecDeque<u8>>>,
}

impl ServerProcess {
    /// Starts `command` by `sh -c`, in a separate process group and without input. One at a time.
    ///
    /// # Errors
    /// Fails without a shell, a pipe or a thread.
    pub(super) fn start(command: &str, directory: Option<&Path>) -> Result<ServerProcess, Failure> {
        let refused =
            |error: std::io::Error| Failure::usage(format!("cannot start a server: {error}"));
        let (read, write) = std::io::pipe().map_err(refused)?;
        let mut shell = shell::shell(command);
        if let Some(directory) = directory {
            shell.current_dir(directory);
        }
        shell.stdout(write.try_clone().map_err(refused)?).stderr(write);
        let reader = std::thread::Builder::new().name("server".into()).spawn(|| tail(read));
        let reader = reader.map_err(refused)?;
        let mut now = now();
        // dropping the shell's handle neither ends nor reaps it
        let child = shell.spawn().map_err(refused)?;
        *now = Now { leader: Some(Pid::from_child(&child)), ended: None };
        Ok(ServerProcess { reader: Some(reader) })
    }

    /// Returns the PID of the shell; `None` after it has ended.
    pub(super) fn pid(&self) -> Option<u32> {
        now().leader.and_then(|leader| u32::try_from(leader.as_raw_nonzero().get()).ok())
    }

    /// Returns whether all of its processes have ended.
    pub(super) fn is_gone(&self) -> bool {
        reap(&mut now())
    }

    /// Ends the server, waits until all of its processes have ended, and returns its last output,
    /// with the shell's exit status if the shell had ended before.
    ///
    /// # Errors
    /// Fails if one of its processes cannot be terminated.
    pub(super) fn end(mut self) -> Result<Last, String> {
        let ended = {
            let mut now = now();
            reap(&mut now);
            now.ended
        };
        end_all()?;
        // no process is left that could hold the pipe open
        let written = self.reader.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        Ok(Last { ended: ended.map(description), written: last_lines(written) })
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if self.reader.is_some()
            && let Err(why) = end_all()
        {
            crate::print_message(&why);
        }
    }
}

/// Final state of a server.
#[derive(Debug)]
pub(super) struct Last {
    /// Exit status, if the command ended before it was stopped.
    pub(super) ended: Option<String>,
    /// Last lines of its output, without control characters.
    written: Vec<String>,
}

impl Last {
    /// Formats the lines under a heading; empty without lines.
    pub(super) fn quoted(&self) -> String {
        match self.written.is_empty() {
            true => " It printed nothing.".to_owned(),
            false => format!(" Its last output:\n  {}", self.written.join("\n  ")),
        }
    }
}

fn now() -> MutexGuard<'static, Now> {
    // a panic while it was held leaves the numbers valid
    NOW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records processes that have ended; returns true if none is left.
fn reap(now: &mut Now) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if now.leader == Some(pid) => {
                *now = Now { leader: None, ended: Some(status) };
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            // no child at all
            Err(_) => return true,
        }
    }
}

/// Lists child processes, including adopted ones.
fn children() -> Vec<Pid> {
    let this = std::process::id();
    let parent = |text: String| host::proc::process(&text).map(|process| process.parent);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|pid| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
            text.and_then(parent) == Some(this)
        })
        .filter_map(Pid::from_raw)
        .collect()
}

/// Sends a signal to the shell's group and to others.
fn signal_all(now: &Now, signal: Signal, others: &[Pid]) {
    if let Some(leader) = now.leader {
        kill_process_group(leader, signal).ok();
    }
    send(signal, others);
}

/// Sends a signal. Errors are ignored: the receiver may have exited.
fn send(signal: Signal, to: &[Pid]) {
    for pid in to {
        kill_process(*pid, signal).ok();
    }
}

/// Sends TERM to every process once and, after a while, KILL to the remaining ones. Processes
/// orphaned meanwhile are adopted.
fn end_all() -> Result<(), String> {
    let start = net::reactor::monotonic();
    let mut signaled: Vec<Pid> = Vec::new();
    let mut pause = PAUSES.0;
    loop {
        let mut now = now();
        if reap(&mut now) {
            return Ok(());
        }
        let passed = net::reactor::monotonic() - start;
        if passed > TERM_PATIENCE + KILL_PATIENCE {
            let left: Vec<String> = children().iter().map(ToString::to_string).collect();
            return Err(format!(
                "a server's processes cannot be ended, not even by KILL: {}",
                left.join(", ")
            ));
        }
        if passed > TERM_PATIENCE {
            signal_all(&now, Signal::KILL, &children());
        } else if signaled.is_empty() {
            // its group: the shell and its direct children
            signaled = children();
            let outside: Vec<Pid> =
                signaled.iter().copied().filter(|pid| Some(*pid) != now.leader).collect();
            signal_all(&now, Signal::TERM, &outside);
        } else {
            let orphans: Vec<Pid> =
                children().into_iter().filter(|pid| !signaled.contains(pid)).collect();
            send(Signal::TERM, &orphans);
            signaled.extend(orphans);
        }
        drop(now);
        signals::pause(pause);
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Kills the processes at once because the program is about to end. Any thread may call this, even
/// one that panics while it holds the lock; waiting threads then continue without the lock.
fn kill_all() {
    /// Rounds; together they take one second.
    const ROUNDS: u32 = 100;
    const BETWEEN: Duration = Duration::from_millis(10);
    for _ in 0..ROUNDS {
        if let Ok(mut now) = NOW.try_lock() {
            if reap(&mut now) {
                return;
            }
            signal_all(&now, Signal::KILL, &children());
        }
        signals::pause(BETWEEN);
    }
}

/// Reads to the end, and keeps the end.
fn tail(mut pipe: PipeReader) -> VecDeque<u8> {
    let mut kept = VecDeque::new();
    let mut piece = [0; 4 << 10];
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => return kept,
            Ok(count) => {
                kept.extend(&piece[..count]);
                kept.drain(..kept.len().saturating_sub(TAIL_BYTES_MAX));
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return kept,
        }
    }
}

fn last_lines(written: VecDeque<u8>) -> Vec<String> {
    let bytes = Vec::from(written);
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text
        .lines()
        .map(|line| report::printable(line.trim_end(), LINE_CHARS_MAX))
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].to_vec()
}

fn description(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}
