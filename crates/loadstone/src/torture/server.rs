//! The server's own processes, where it runs on this machine: those that are named, or those that
//! listen at the target.

use super::target::Reached;
use crate::args::Sut;
use crate::exit::Failure;
use conduit::Peer;
use host::lives::Lives;
use torture::safety::Class;

/// Whom to look at. Unasked, a target on this machine is looked at as far as that is permitted.
///
/// # Errors
/// Usage: the process that was named does not listen at the target.
pub(super) fn find(asked: Option<Sut>, reached: &Reached) -> Result<Option<Lives>, Failure> {
    let Peer::Tcp(address) = &reached.target.peer else { return Ok(None) };
    match asked {
        Some(Sut::Nobody) => Ok(None),
        Some(Sut::Process(pid)) => {
            let found = Lives::find(*address, Some(pid));
            found.map(Some).map_err(|why| Failure::usage(format!("--sut: {why}")))
        }
        None if reached.class == Class::Local => Ok(Lives::find(*address, None).ok()),
        None => Ok(None),
    }
}
