//! The server's own side: its processes, where it runs on this machine, those that are named or those
//! that listen at the target; or the figures of its machine, which a node exporter there tells.

use super::target::Reached;
use crate::args::{Sut, TortureServer};
use crate::exit::Failure;
use crate::sut::{SutSource, Who};
use conduit::Peer;
use host::lives::Lives;
use sample::{Death, ServerState};
use torture::safety::Class;
use units::Nanos;

/// Whom to look at.
pub(super) enum Seen {
    Processes(Lives),
    /// A machine, by the URL of its exporter.
    Machine(SutSource, String),
}

impl Seen {
    pub(super) fn state(&mut self) -> Option<ServerState> {
        match self {
            Seen::Processes(lives) => Some(lives.state()),
            Seen::Machine(source, name) => {
                // an exporter that does not answer now may do so after the next case
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

/// The processes to look at, found without a packet. Unasked, those of a target on this machine, as far
/// as that is permitted.
///
/// # Errors
/// Usage: the process that was named does not listen at the target.
pub(super) fn processes(asked: &TortureServer, reached: &Reached) -> Result<Option<Seen>, Failure> {
    let Peer::Tcp(address) = &reached.target.peer else { return Ok(None) };
    let found = match &asked.sut {
        Some(Sut::Named(Who::Process(pid))) => {
            let found = Lives::find(*address, Some(*pid));
            Some(found.map_err(|why| Failure::usage(format!("--sut: {why}")))?)
        }
        None if reached.class == Class::Local => Lives::find(*address, None).ok(),
        _ => None,
    };
    Ok(found.map(Seen::Processes))
}

/// The machine that was named by its exporter, which is asked once.
///
/// # Errors
/// Usage: no node exporter answers there.
pub(super) fn machine(asked: &TortureServer) -> Result<Option<Seen>, Failure> {
    let Some(Sut::Named(who @ Who::Exporter(url))) = &asked.sut else { return Ok(None) };
    let opened = SutSource::open(who, &[]);
    let (source, _) = opened.map_err(|why| Failure::usage(format!("--sut: {why}")))?;
    Ok(Some(Seen::Machine(source, url.to_string())))
}
