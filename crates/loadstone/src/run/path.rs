//! A run through an emulated path: its connections are opened in a network of their own, whose way to
//! the servers of this host is the path.

use super::prepare::Prepared;
use crate::exit::Failure;
use anyhow::{Result, bail};
use conduit::Peer;
use engine::Endpoint;
use netpath::{FarEnd, NetPath, PathAsk};
use plan::Plan;
use sample::PathFacts;
use std::sync::Arc;
use wan::{PathSpec, Population};

/// The path of a plan, as it stands on this machine.
#[derive(Debug)]
pub(crate) struct EmulatedPath(NetPath);

impl EmulatedPath {
    /// Sets the path up, where the plan has one, and says of it what the user should know. Addresses
    /// that it cannot carry are taken off the endpoints.
    ///
    /// # Errors
    /// An endpoint without an IPv4 address; what this machine or this user cannot do.
    pub(crate) fn open(plan: &Plan, prepared: &mut Prepared) -> Result<Option<Arc<EmulatedPath>>> {
        let Some(spec) = &plan.connection.path else { return Ok(None) };
        prepared.endpoints.iter_mut().try_for_each(carried)?;
        let route = EmulatedPath::stand(spec, plan.seed)?;
        prepared.notes.extend(route.notes(spec));
        Ok(Some(Arc::new(route)))
    }

    /// The same for whoever has no plan.
    ///
    /// # Errors
    /// What this machine or this user cannot do.
    pub(crate) fn stand(spec: &PathSpec, seed: u64) -> Result<EmulatedPath> {
        let ask = PathAsk {
            population: Population::of(spec.clone()),
            clients: 1,
            seed,
            far: FarEnd::Here,
            own_loopback: false,
        };
        let path = NetPath::open(&ask);
        Ok(EmulatedPath(path.map_err(|trouble| anyhow::anyhow!("--path: {trouble}"))?))
    }

    /// What the user should know before anything is sent.
    pub(crate) fn notes(&self, spec: &PathSpec) -> Vec<String> {
        let device = self.0.far_device();
        let stands = format!("the network device {device} stands on this host while this runs");
        std::iter::once(stands).chain(crate::netpath_command::beyond(spec)).collect()
    }

    /// The network of this host, where the servers are: the way back from [`Self::enter`].
    pub(crate) fn leave(&self) -> std::io::Result<()> {
        self.0.far().enter()
    }

    /// The sockets of the calling thread go through the path from now on.
    pub(crate) fn enter(&self) -> std::io::Result<()> {
        self.0.near().enter()
    }

    /// What went through it since this was last called.
    pub(crate) fn facts(&self) -> Result<PathFacts> {
        Ok(self.0.facts()?)
    }
}

/// Takes off the addresses that are no IPv4.
fn carried(endpoint: &mut Endpoint) -> Result<()> {
    let is_v4 = |peer: &Peer| matches!(peer, Peer::Tcp(address) if address.is_ipv4());
    if !endpoint.peers.iter().any(is_v4) {
        bail!(
            "--path: {} has no IPv4 address, and a path carries no other; let the server listen on \
             127.0.0.1",
            endpoint.key
        );
    }
    endpoint.peers.retain(is_v4);
    Ok(())
}

/// Does something that opens sockets, through the path where there is one: on a thread of its own,
/// so that the calling one stays in the network of this host.
pub(crate) fn through<T: Send>(
    route: Option<&EmulatedPath>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let Some(route) = route else { return Ok(work()) };
    std::thread::scope(|scope| {
        let body = || {
            route.enter()?;
            Ok(work())
        };
        let thread = std::thread::Builder::new().name("through-path".into());
        let thread = thread.spawn_scoped(scope, body);
        let thread =
            thread.map_err(|error| Failure::usage(format!("cannot start a thread: {error}")))?;
        let done: std::io::Result<T> =
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.map_err(|error| Failure::usage(format!("cannot enter a network namespace: {error}")))
    })
}
