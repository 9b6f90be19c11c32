//! The server's own side: its processes on this machine, named or found by the listening port, or
//! the figures of its machine from a node exporter.

use super::target::Reached;
use crate::exit::Failure;
use crate::sut::{SutSource, SutTarget};
use args::{Sut, TortureServer};
use conduit::Peer;
use host::lives::Lives;
use sample::{Death, ServerState};
use torture::safety::Class;
use units::Nanos;

/// Watched processes.
pub(super) enum Seen {
    Processes(Lives),
    /// Machine, by the URL of its node exporter.
    Machine(SutSource, String),
}

impl Seen {
    pub(super) fn state(&mut self) -> Option<ServerState> {
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

    pub(super) fn deaths(&mut self) -> Vec<Death> {
        match self {
            Seen::Processes(lives) => lives.ended(),
            Seen::Machine(..) => Vec::new(),
        }
    }
}

/// Returns the processes to watch, found without sending a packet. The default is the processes of
/// a target on this machine, as far as permissions allow.
///
/// # Errors
/// Fails as usage if the named process does not listen on the target.
pub(super) fn processes(asked: &TortureServer, reached: &Reached) -> Result<Option<Seen>, Failure> {
    let Peer::Tcp(address) = &reached.target.peer else { return Ok(None) };
    let found = match &asked.sut {
        Some(Sut::Named(SutTarget::Process(pid))) => {
            let found = Lives::find(*address, Some(*pid));
            Some(found.map_err(|why| Failure::usage(format!("--sut: {why}")))?)
        }
        None if reached.class == Class::Local => Lives::find(*address, None).ok(),
        _ => None,
    };
    Ok(found.map(Seen::Processes))
}

/// Returns the machine named by its exporter, which is queried once.
///
/// # Errors
/// Fails as usage if no node exporter responds there.
pub(super) fn machine(asked: &TortureServer) -> Result<Option<Seen>, Failure> {
    let Some(Sut::Named(target @ SutTarget::Exporter(url))) = &asked.sut else { return Ok(None) };
    let opened = SutSource::open(target, &[]);
    let (source, _) = opened.map_err(|why| Failure::usage(format!("--sut: {why}")))?;
    Ok(Some(Seen::Machine(source, url.to_string())))
}
