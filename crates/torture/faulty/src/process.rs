//! The firing range as a process: the state that its machine would show.

use sample::{Death, Ending, Process, ServerState};
use units::Nanos;

/// Base memory of a small server.
const MEMORY: u64 = 8 << 20;
const DESCRIPTORS: u64 = 8;
const FIRST_PID: u32 = 100;

/// The current process, and earlier ones.
#[derive(Debug)]
pub(super) struct ProcessState {
    pid: u32,
    started: Nanos,
    deaths: Vec<Death>,
    /// Leaked descriptors.
    pub(super) left_open: u64,
    pub(super) aborted: bool,
}

impl ProcessState {
    pub(super) fn new() -> ProcessState {
        ProcessState {
            pid: FIRST_PID,
            started: Nanos::ZERO,
            deaths: Vec::new(),
            left_open: 0,
            aborted: false,
        }
    }

    fn process(&self) -> Process {
        Process { pid: self.pid, started: self.started.0, name: "range".into() }
    }

    /// Ends the current process; another one starts at that instant.
    pub(super) fn end(&mut self, how: Ending, again: Nanos) {
        self.deaths.push(Death { process: self.process(), whole: true, how });
        self.pid += 1;
        self.started = again;
        self.left_open = 0;
    }

    pub(super) fn take_deaths(&mut self) -> Vec<Death> {
        std::mem::take(&mut self.deaths)
    }

    /// Returns its state with this many connections and this much leaked memory.
    pub(super) fn state(&self, at: Nanos, connections: u64, kept: u64) -> ServerState {
        if at < self.started {
            return ServerState::default();
        }
        let sockets = [("established", connections)];
        ServerState {
            listeners: vec![self.process()],
            threads: 1,
            descriptors: DESCRIPTORS + connections + self.left_open,
            memory_bytes: MEMORY + kept,
            sockets: sockets
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(state, count)| (state.to_owned(), count))
                .collect(),
            ..ServerState::default()
        }
    }
}
