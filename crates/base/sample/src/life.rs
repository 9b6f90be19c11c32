//! The server's processes, as their machine reports them: roles, resources, ends.

use std::collections::BTreeMap;
use std::fmt;
use units::Nanos;

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pub pid: u32,
    /// Start in clock ticks since boot: distinguishes two processes with the same number.
    pub started: u64,
    /// Name as stored by the kernel, 15 bytes.
    pub name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process exited by itself with this code.
    Exit(u8),
    /// The process was terminated by a signal; `core`: its memory was dumped.
    Signal { number: u8, core: bool },
    /// Unknown.
    Unseen,
}

/// Signals by the numbers of Linux on x86, ARM and RISC-V (signal(7)).
const SIGNALS: [(u8, &str); 15] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];
/// Signals that end a process because of its own fault.
const FAULTS: [u8; 7] = [4, 5, 6, 7, 8, 11, 31];

impl Ending {
    /// Decodes a wait status in the encoding of the kernel (wait(2)).
    pub fn from_status(status: i32) -> Ending {
        let signal = (status & 0x7f) as u8;
        match signal {
            0 => Ending::Exit((status >> 8 & 0xff) as u8),
            number => Ending::Signal { number, core: status & 0x80 != 0 },
        }
    }

    /// Returns whether the process died through its own fault, not because it was asked to end.
    pub fn is_fault(self) -> bool {
        matches!(self, Ending::Signal { number, .. } if FAULTS.contains(&number))
    }

    /// Returns whether the process exited by itself with success.
    pub fn is_orderly(self) -> bool {
        self == Ending::Exit(0)
    }
}

impl fmt::Display for Ending {
    /// Formats the remainder of the sentence "it ended: ".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Ending::Exit(code) => write!(f, "exit code {code}"),
            Ending::Signal { number, core } => {
                write!(f, "signal {number}")?;
                if let Some((_, name)) = SIGNALS.iter().find(|(known, _)| *known == number) {
                    write!(f, " ({name})")?;
                }
                if core { f.write_str(", core dumped") } else { Ok(()) }
            }
            Ending::Unseen => f.write_str("exit status unknown"),
        }
    }
}

/// A process of the server that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    pub process: Process,
    /// True if no other independent process holds the listening socket: the server itself ended,
    /// not one of its workers.
    pub whole: bool,
    pub how: Ending,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole {
            true => write!(f, "the server {} ended: {}", self.process, self.how),
            false => write!(f, "a worker, {}, ended: {}", self.process, self.how),
        }
    }
}

/// Groups deaths by kind: returns the first of each kind, and their number.
pub fn together(deaths: &[Death]) -> Vec<(&Death, u64)> {
    let mut kinds: Vec<(&Death, u64)> = Vec::new();
    for death in deaths {
        let like = |first: &Death| first.how == death.how && first.whole == death.whole;
        match kinds.iter_mut().find(|(first, _)| like(first)) {
            Some((_, count)) => *count += 1,
            None => kinds.push((death, 1)),
        }
    }
    kinds
}

/// The server at one moment. Unknown values are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerState {
    /// The figures are for a whole machine with this name, and no process is seen; empty: they are
    /// of processes.
    pub machine: String,
    /// Processes that hold the listening socket and are not children of another holder; several if
    /// they share the port. Empty if no process listens.
    pub listeners: Vec<Process>,
    /// Other holders, and descendants of the listeners.
    pub workers: Vec<Process>,
    /// Total number of threads of all these processes.
    pub threads: u64,
    pub descriptors: u64,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
    /// Spent so far, also by workers that have ended.
    pub cpu: Nanos,
    /// Sockets on the server's side of the connections to its port, by state: `established`,
    /// `close-wait`.
    pub sockets: BTreeMap<String, u64>,
    /// Connections waiting to be accepted, and the limit; half-open connections.
    pub accept_queue: u64,
    pub accept_queue_max: u64,
    pub half_open: u64,
    /// Counts since boot, over all servers of the machine: connections that found the accept queue
    /// full, and SYN cookies sent.
    pub overflows: u64,
    pub cookies: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_status_decodes_to_its_end() {
        for (status, reported, fault) in [
            (0, "exit code 0", false),
            (3 << 8, "exit code 3", false),
            (6, "signal 6 (SIGABRT)", true),
            (11 | 0x80, "signal 11 (SIGSEGV), core dumped", true),
            (9, "signal 9 (SIGKILL)", false),
            (40, "signal 40", false),
        ] {
            let ending = Ending::from_status(status);
            assert_eq!((ending.to_string().as_str(), ending.is_fault()), (reported, fault));
        }
        assert!(Ending::from_status(0).is_orderly() && !Ending::Unseen.is_orderly());
    }
}
