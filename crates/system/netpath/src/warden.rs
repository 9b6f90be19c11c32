//! A process that ends the remaining processes in the namespaces of a path when its owner ends, for
//! any reason: also by a SIGKILL, which the owner cannot notice.

use crate::namespace::Namespace;
use crate::path::NetPath;
use crate::raw;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, setsid, waitpid};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Number of kill rounds: a process that forks faster is not killed.
const ROUNDS_MAX: u32 = 200;
const ROUND_PAUSE: Duration = Duration::from_millis(5);
/// Maximum length of a message of the owner: two numbers.
const WORDS_MAX: u64 = 256;

/// Ends remaining processes when it is dropped, or when this process ends.
#[derive(Debug)]
pub struct Warden {
    /// Closed by the kernel when this process ends.
    line: Option<File>,
    process: u32,
}

impl Warden {
    /// Forks the warden. Must be called while this process has a single thread.
    ///
    /// # Errors
    /// Fails if no more processes or descriptors are available.
    pub fn start() -> std::io::Result<Warden> {
        let (listen, speak) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        match raw::fork()? {
            Some(process) => Ok(Warden { line: Some(File::from(speak)), process }),
            None => {
                drop(speak);
                watch(listen);
                std::process::exit(0);
            }
        }
    }

    /// Adds a namespace whose processes must end with us. A namespace that was not created for this
    /// path is left unchanged.
    ///
    /// # Errors
    /// Fails if the warden has ended.
    pub fn guard(&mut self, path: &NetPath) -> std::io::Result<()> {
        let here = Namespace::here()?.number()?;
        let numbers = [path.client_namespace().number()?, path.server_namespace().number()?];
        let Some(line) = &mut self.line else { return Ok(()) };
        for number in numbers.iter().filter(|number| **number != here) {
            writeln!(line, "{number}")?;
        }
        Ok(())
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        drop(self.line.take());
        if let Some(process) = Pid::from_raw(self.process as i32) {
            waitpid(Some(process), WaitOptions::empty()).ok();
        }
    }
}

/// Runs the main function of the warden: waits until its owner is gone, then kills.
fn watch(listen: OwnedFd) {
    // it must neither receive the signals of terminal keys nor keep pipes open
    setsid().ok();
    let line = listen.as_raw_fd() as u32;
    if line > 0 {
        raw::close_range(0, line - 1);
    }
    raw::close_range(line + 1, u32::MAX);
    let mut words = String::new();
    File::from(listen).take(WORDS_MAX).read_to_string(&mut words).ok();
    let names: Vec<String> = words.lines().map(|number| format!("net:[{number}]")).collect();
    if names.is_empty() {
        return;
    }
    for _ in 0..ROUNDS_MAX {
        if !kill_all_in(&names) {
            return;
        }
        std::thread::sleep(ROUND_PAUSE);
    }
}

/// Kills every process in one of these network namespaces; returns false if no process was found.
fn kill_all_in(names: &[String]) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let mut found = false;
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(network) = std::fs::read_link(process.path().join("ns/net")) else { continue };
        if names.iter().any(|name| network.as_os_str() == name.as_str())
            && let Some(process) = Pid::from_raw(number)
        {
            found = true;
            kill_process(process, Signal::KILL).ok();
        }
    }
    found
}
