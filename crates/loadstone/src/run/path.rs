//! A run through an emulated path: its connections are opened in a network of their own, whose way to
//! the servers of this host is the path.

use super::own_stack;
use super::prepare::Prepared;
use crate::exit::Failure;
use anyhow::{Result, bail};
use conduit::Peer;
use engine::{Crowd, Endpoint};
use netpath::{FarEnd, NetPath, PathAsk};
use plan::Plan;
use sample::PathFacts;
use std::sync::Arc;
use units::Nanos;
use wan::{PathSpec, Population};

/// The path of a plan, as it stands on this machine.
#[derive(Debug)]
pub(crate) struct EmulatedPath {
    path: NetPath,
    asked: WantedPath,
}

/// What a path is asked to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WantedPath {
    /// The option that asks for it.
    option: &'static str,
    population: Population,
    /// Clients with an address of their own.
    clients: u32,
}

impl WantedPath {
    /// Everybody behind one link.
    pub(crate) fn single(spec: &PathSpec) -> WantedPath {
        WantedPath { option: "--path", population: Population::of(spec.clone()), clients: 1 }
    }

    /// The path that a plan asks a forwarder for; `None`: it asks for no path, or for one inside of our
    /// own TCP.
    fn of(plan: &Plan) -> Option<WantedPath> {
        let (option, population, clients) = WantedPath::asked(plan)?;
        (!own_stack::wanted(plan)).then_some(WantedPath { option, population, clients })
    }

    /// The option by which a plan asks for paths, who lives behind which, and how many they are.
    pub(crate) fn asked(plan: &Plan) -> Option<(&'static str, Population, u32)> {
        match (&plan.connection.clients, &plan.connection.path) {
            (Some(population), _) => Some(("--clients", population.clone(), plan.client_count())),
            (None, Some(spec)) => Some(("--path", Population::of(spec.clone()), 1)),
            (None, None) => None,
        }
    }
}

impl EmulatedPath {
    /// Sets the path up, where the plan has one, and says of it what the user should know. Addresses
    /// that it cannot carry are taken off the endpoints.
    ///
    /// # Errors
    /// An endpoint without an IPv4 address; what this machine or this user cannot do.
    pub(crate) fn open(plan: &Plan, prepared: &mut Prepared) -> Result<Option<Arc<EmulatedPath>>> {
        let Some(asked) = WantedPath::of(plan) else { return Ok(None) };
        let mut endpoints = prepared.endpoints.iter_mut();
        endpoints.try_for_each(|endpoint| carried(endpoint, asked.option))?;
        let route = EmulatedPath::stand(asked, plan.seed)?;
        prepared.notes.extend(route.notes());
        Ok(Some(Arc::new(route)))
    }

    /// The path of a trial whose plan may ask for another one than `route`, or for other clients.
    ///
    /// # Errors
    /// What this machine or this user cannot do.
    pub(crate) fn refit(
        plan: &Plan,
        route: Option<Arc<EmulatedPath>>,
    ) -> Result<Option<Arc<EmulatedPath>>> {
        let Some(asked) = WantedPath::of(plan) else { return Ok(None) };
        match route {
            Some(route) if route.asked == asked => Ok(Some(route)),
            _ => Ok(Some(Arc::new(EmulatedPath::stand(asked, plan.seed)?))),
        }
    }

    /// The same for whoever has no plan.
    ///
    /// # Errors
    /// What this machine or this user cannot do.
    pub(crate) fn stand(asked: WantedPath, seed: u64) -> Result<EmulatedPath> {
        let ask = PathAsk {
            population: asked.population.clone(),
            clients: asked.clients,
            seed,
            far: FarEnd::Here,
            own_loopback: false,
        };
        let option = asked.option;
        let path = NetPath::open(&ask);
        let path = path.map_err(|trouble| anyhow::anyhow!("{option}: {trouble}"))?;
        Ok(EmulatedPath { path, asked })
    }

    /// What the user should know before anything is sent.
    pub(crate) fn notes(&self) -> Vec<String> {
        let device = self.path.far_device();
        let stands = format!("the network device {device} stands on this host while this runs");
        std::iter::once(stands).chain(beyond(&self.asked.population)).collect()
    }

    /// Who the users are, where the plan has kinds of clients.
    pub(crate) fn crowd(&self, plan: &Plan) -> Option<Crowd> {
        plan.connection.clients.as_ref()?;
        Some(Crowd { firsts: [self.path.first_client()].into(), kinds: self.path.dealt().into() })
    }

    /// The network of this host, where the servers are: the way back from [`Self::enter`].
    pub(crate) fn leave(&self) -> std::io::Result<()> {
        self.path.far().enter()
    }

    /// The sockets of the calling thread go through the path from now on.
    pub(crate) fn enter(&self) -> std::io::Result<()> {
        self.path.near().enter()
    }

    /// How much longer than over a direct line a connection may take to stand, and nobody's fault.
    pub(crate) fn patience(&self) -> Nanos {
        let parts = self.asked.population.parts.iter();
        parts.map(|part| part.path.patience()).max().unwrap_or(Nanos::ZERO)
    }

    /// What went through it since this was last called.
    pub(crate) fn facts(&self) -> Result<PathFacts> {
        Ok(self.path.facts()?)
    }
}

/// What the figures of a population's paths do not say.
pub(crate) fn beyond(population: &Population) -> impl Iterator<Item = String> {
    population.parts.iter().filter_map(|part| crate::netpath_command::beyond(&part.path))
}

/// Takes off the addresses that are no IPv4.
fn carried(endpoint: &mut Endpoint, option: &str) -> Result<()> {
    let is_v4 = |peer: &Peer| matches!(peer, Peer::Tcp(address) if address.is_ipv4());
    if !endpoint.peers.iter().any(is_v4) {
        bail!(
            "{option}: {} has no IPv4 address, and a path carries no other; let the server listen on \
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
