//! A run over our own TCP: its devices, the paths that are emulated behind it, and what is said of both.

use super::path::{self, WantedPath};
use super::prepare::Prepared;
use anyhow::{Result, bail};
use conduit::Peer;
use engine::{Crowd, Endpoint};
use netpath::PathTrouble;
use ownstack::{Handover, InsidePaths, NetworkAsk, OwnNetwork};
use plan::{Plan, StackChoice};
use std::sync::Arc;

/// What the report calls the driver. How the packets of a fleet's agents went is not known here.
pub(crate) fn name(plan: &Plan, network: Option<&OwnNetwork>) -> &'static str {
    match network.map(OwnNetwork::handover) {
        Some(Handover::Batches) => "own TCP over TUN by io_uring",
        _ if wanted(plan) => "own TCP over TUN",
        _ => "epoll",
    }
}

/// Whether the connections of a plan are to be of our own TCP.
pub(crate) fn wanted(plan: &Plan) -> bool {
    plan.driver.stack.is_own()
}

/// How many workers a plan can have over our own TCP, at most `workers`. The links of a client are one
/// thread's; the one link of `--path` is that of all threads.
pub(crate) fn workers(plan: &Plan, workers: u32) -> u32 {
    if !wanted(plan) {
        return workers;
    }
    match plan.client_count() {
        0 => workers,
        clients => (1..=workers).rev().find(|count| clients.is_multiple_of(*count)).unwrap_or(1),
    }
}

/// The devices of a plan, where its connections are to be of our own TCP. Addresses that it cannot
/// reach are taken off the endpoints.
///
/// # Errors
/// An endpoint without an IPv4 address; what this machine or this user cannot do.
pub(crate) fn open(plan: &Plan, prepared: &mut Prepared) -> Result<Option<Arc<OwnNetwork>>> {
    if !wanted(plan) {
        return Ok(None);
    }
    prepared.endpoints.iter_mut().try_for_each(carried)?;
    let asked = ask(plan, prepared.workers);
    let network = stand(asked)?;
    let (first, last) = network.sources();
    let devices: Vec<&str> = network.devices().collect();
    let whose =
        if first == last { format!("from {first}") } else { format!("from {first} to {last}") };
    prepared.notes.push(format!(
        "connections use Loadstone's own TCP: the server sees them come {whose}, through {} on this \
         host while the run lasts; the client's kernel TCP is not measured",
        devices.join(", ")
    ));
    if let Handover::Fallback(reason) = network.handover() {
        prepared.notes.push(format!("--stack own:batches: packets go one by one: {reason}"));
    }
    if let Some(paths) = &network.ask().paths {
        prepared.notes.extend(path::beyond(&paths.population));
    }
    Ok(Some(network))
}

/// The devices of a trial whose plan may want other ones than those of `network`.
///
/// # Errors
/// What this machine or this user cannot do.
pub(crate) fn refit(
    plan: &Plan,
    workers: u32,
    network: Option<Arc<OwnNetwork>>,
) -> Result<Option<Arc<OwnNetwork>>> {
    if !wanted(plan) {
        return Ok(None);
    }
    let asked = ask(plan, workers);
    match network {
        Some(network) if fits(network.ask(), &asked) => Ok(Some(network)),
        _ => stand(asked).map(Some),
    }
}

/// Whether a network will do: the seed matters only where it deals clients out, and a worker more than
/// there is work for has nothing to do.
fn fits(stands: &NetworkAsk, asked: &NetworkAsk) -> bool {
    stands == asked
        || stands.paths.is_none()
            && asked.paths.is_none()
            && stands.prefix == asked.prefix
            && stands.batches == asked.batches
            && stands.workers >= asked.workers
}

fn ask(plan: &Plan, workers: u32) -> NetworkAsk {
    let paths =
        WantedPath::asked(plan).map(|(_, population, clients)| InsidePaths { population, clients });
    let prefix = plan.driver.sources.map(|prefix| (prefix.network, prefix.bits));
    let batches = plan.driver.stack == StackChoice::OwnBatches;
    NetworkAsk { workers, seed: plan.seed, paths, prefix, batches }
}

fn stand(asked: NetworkAsk) -> Result<Arc<OwnNetwork>> {
    OwnNetwork::open(asked).map_err(|trouble| {
        let way_out = match trouble {
            PathTrouble::Host(error) => format!(
                "a network device on this host is needed, which only root may make ({error}); way \
                 out: run this as root, or server and load together in a network of their own \
                 (`unshare -Urn`), or drop --stack"
            ),
            other => other.to_string(),
        };
        anyhow::anyhow!("--stack own: {way_out}")
    })
}

/// Who the users are, where the plan has kinds of clients.
pub(crate) fn crowd(network: &OwnNetwork, plan: &Plan) -> Option<Crowd> {
    plan.connection.clients.as_ref()?;
    Some(Crowd { firsts: network.firsts(), kinds: network.dealt().into() })
}

/// Takes off the addresses that are no IPv4.
fn carried(endpoint: &mut Endpoint) -> Result<()> {
    let is_v4 = |peer: &Peer| matches!(peer, Peer::Tcp(address) if address.is_ipv4());
    if !endpoint.peers.iter().any(is_v4) {
        bail!(
            "--stack own: {} has no IPv4 address, and our own TCP speaks no other; let the server \
             listen on 127.0.0.1, or drop --stack",
            endpoint.key
        );
    }
    endpoint.peers.retain(is_v4);
    Ok(())
}
