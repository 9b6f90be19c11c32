//! A run over our own TCP: its device, and what is said of it.

use super::prepare::Prepared;
use anyhow::{Result, bail};
use conduit::Peer;
use netpath::PathTrouble;
use ownstack::OwnNetwork;
use plan::{Plan, StackChoice};
use std::sync::Arc;

/// What the report calls the driver.
pub(crate) fn name(own: bool) -> &'static str {
    if own { "own TCP over TUN" } else { "epoll" }
}

/// The device of a plan, where its connections are to be of our own TCP. Addresses that it cannot
/// reach are taken off the endpoints.
///
/// # Errors
/// An endpoint without an IPv4 address; what this machine or this user cannot do.
pub(crate) fn open(plan: &Plan, prepared: &mut Prepared) -> Result<Option<Arc<OwnNetwork>>> {
    if plan.driver.stack != StackChoice::Own {
        return Ok(None);
    }
    let is_v4 = |peer: &Peer| matches!(peer, Peer::Tcp(address) if address.is_ipv4());
    for endpoint in &mut prepared.endpoints {
        if !endpoint.peers.iter().any(is_v4) {
            bail!(
                "--stack own: {} has no IPv4 address, and our own TCP speaks no other; let the server \
                 listen on 127.0.0.1, or drop --stack",
                endpoint.key
            );
        }
        endpoint.peers.retain(is_v4);
    }
    let network = OwnNetwork::open(prepared.workers, plan.seed).map_err(|trouble| {
        let way_out = match trouble {
            PathTrouble::Host(error) => format!(
                "a network device on this host is needed, which only root may make ({error}); way \
                 out: run this as root, or server and load together in a network of their own \
                 (`unshare -Urn`), or drop --stack"
            ),
            other => other.to_string(),
        };
        anyhow::anyhow!("--stack own: {way_out}")
    })?;
    let (first, last) = network.sources();
    let devices: Vec<&str> = network.devices().collect();
    prepared.notes.push(format!(
        "connections use Loadstone's own TCP: the server sees them come from {first} to {last}, through \
         {} on this host while the run lasts; the client's kernel TCP is not measured",
        devices.join(", ")
    ));
    Ok(Some(network))
}
