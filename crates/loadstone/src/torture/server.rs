//! The server's side that a run watches: named, or found by the listening port.

use super::target::Reached;
use crate::exit::Failure;
use crate::sut::{SutSource, SutTarget};
use args::{Sut, TortureServer};
use conduit::Peer;
use host::lives::Lives;
use torture::safety::Class;
use world::Seen;

/// Returns the processes to watch, found without sending a packet. The default is the processes of
/// a target on this machine, where permissions allow.
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
