//! The server's own processes, where it runs on this machine: found by the port on which it listens.

use super::target::Reached;
use conduit::Peer;
use host::lives::Lives;
use torture::safety::Class;

/// Who listens at the target, where that is this machine and may be seen.
pub(super) fn find(reached: &Reached) -> Option<Lives> {
    match &reached.target.peer {
        Peer::Tcp(address) if reached.class == Class::Local => Lives::find(*address, None).ok(),
        _ => None,
    }
}
