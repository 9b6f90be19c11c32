//! The server's own side: its processes on this machine, named or found by the listening port, or
//! the figures of its machine from a node exporter.

use host::lives::Lives;
use sample::{Death, ServerState};
use session::sut::SutSource;
use units::Nanos;

/// Watched processes.
#[derive(Debug)]
pub enum Seen {
    Processes(Lives),
    /// Machine, by the URL of its node exporter.
    Machine(SutSource, String),
}

impl Seen {
    pub fn state(&mut self) -> Option<ServerState> {
        match self {
            Seen::Processes(lives) => Some(lives.state()),
            Seen::Machine(source, name) => {
                // an exporter that does not respond now may do so after the next case
                let reading = source.read().ok()?;
                Some(ServerState {
                    machine: name.clone(),
                    threads: reading.threads,
                    descriptors: reading.descriptors,
                    memory_bytes: reading.memory_bytes,
                    cpu: Nanos::from_secs_f64(reading.cpu_s),
                    overflows: reading.listen_overflows,
                    ..ServerState::default()
                })
            }
        }
    }

    /// Returns the resident memory of the server's processes; `None` if only the figures of
    /// its machine are visible.
    pub fn memory_bytes(&self) -> Option<u64> {
        match self {
            Seen::Processes(lives) => Some(lives.memory_bytes()),
            Seen::Machine(..) => None,
        }
    }

    pub fn deaths(&mut self) -> Vec<Death> {
        match self {
            Seen::Processes(lives) => lives.ended(),
            Seen::Machine(..) => Vec::new(),
        }
    }
}
