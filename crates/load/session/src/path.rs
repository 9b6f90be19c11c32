//! A run through an emulated path: its connections are opened in a separate network, whose route to
//! the servers of this host is the path.

use crate::exit::Failure;
use crate::peak::rate_peak;
use anyhow::{Result, bail};
use conduit::Peer;
use engine::{Crowd, Endpoint};
use netpath::{FarEnd, NetPath, PathRequest};
use plan::Plan;
use sample::PathFacts;
use std::sync::Arc;
use units::{Nanos, show};
use wan::{Direction, PathSpec, Population};

/// The path of a plan, set up on this machine.
#[derive(Debug)]
pub struct EmulatedPath {
    path: NetPath,
    asked: WantedPath,
}

/// Requested properties of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedPath {
    /// The option that requests the path.
    option: &'static str,
    population: Population,
    /// Clients with their own addresses.
    clients: u32,
}

impl WantedPath {
    /// Creates one link shared by all users.
    pub fn single(spec: &PathSpec) -> WantedPath {
        WantedPath { option: "--path", population: Population::new(spec.clone()), clients: 1 }
    }

    /// Returns the path that a plan requests from a forwarder; `None` for no path, or for a path
    /// inside the program's own TCP.
    fn new(plan: &Plan) -> Option<WantedPath> {
        let (option, population, clients) = WantedPath::from_plan(plan)?;
        (!plan.driver.stack.is_own()).then_some(WantedPath { option, population, clients })
    }

    /// Returns the option by which a plan requests paths, the distribution of clients over paths,
    /// and their number.
    pub fn from_plan(plan: &Plan) -> Option<(&'static str, Population, u32)> {
        match (&plan.connection.clients, &plan.connection.path) {
            (Some(population), _) => Some(("--clients", population.clone(), plan.client_count())),
            (None, Some(spec)) => Some(("--path", Population::new(spec.clone()), 1)),
            (None, None) => None,
        }
    }
}

impl EmulatedPath {
    /// Sets the path up, if the plan has one, and adds notes for the user. Addresses that it cannot
    /// carry are removed from the endpoints.
    ///
    /// # Errors
    /// Fails if an endpoint has no IPv4 address, or if this machine or user cannot set up the path.
    pub(crate) fn open(
        plan: &Plan,
        endpoints: &mut [Endpoint],
        notes: &mut Vec<String>,
    ) -> Result<Option<EmulatedPath>> {
        let Some(asked) = WantedPath::new(plan) else { return Ok(None) };
        endpoints.iter_mut().try_for_each(|endpoint| keep_ipv4(endpoint, asked.option))?;
        let route = EmulatedPath::create(asked, plan.seed)?;
        notes.extend(route.notes());
        Ok(Some(route))
    }

    /// Returns the path of a trial whose plan may request another one than `route`, or other
    /// clients.
    ///
    /// # Errors
    /// Fails if this machine or user cannot set it up.
    pub(crate) fn refit(
        plan: &Plan,
        route: Option<&Arc<EmulatedPath>>,
    ) -> Result<Option<Arc<EmulatedPath>>> {
        let Some(asked) = WantedPath::new(plan) else { return Ok(None) };
        match route {
            Some(route) if route.asked == asked => Ok(Some(route.clone())),
            _ => Ok(Some(Arc::new(EmulatedPath::create(asked, plan.seed)?))),
        }
    }

    /// Creates a path that no plan describes.
    ///
    /// # Errors
    /// Fails if this machine or user cannot set it up.
    pub fn create(asked: WantedPath, seed: u64) -> Result<EmulatedPath> {
        let ask = PathRequest {
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

    /// Notes for the user before anything is sent.
    pub fn notes(&self) -> Vec<String> {
        let device = self.path.far_device();
        let note = format!("the network device {device} exists on this host while this runs");
        std::iter::once(note).chain(beyond(&self.asked.population)).collect()
    }

    /// Returns the client addresses of the users, if the plan has kinds of clients.
    pub fn crowd(&self, plan: &Plan) -> Option<Crowd> {
        plan.connection.clients.as_ref()?;
        Some(Crowd {
            firsts: [self.path.first_client()].into(),
            kinds: self.path.client_kinds().into(),
        })
    }

    /// Makes the calling thread use the network of this host again, where the servers are, until
    /// [`Self::enter`].
    pub fn leave(&self) -> std::io::Result<()> {
        self.path.server_namespace().enter()
    }

    /// Makes the sockets of the calling thread use the path from now on.
    pub fn enter(&self) -> std::io::Result<()> {
        self.path.client_namespace().enter()
    }

    /// Returns the additional time that a connection over the path may take to be established, for
    /// which the server is not to blame.
    pub fn setup_allowance(&self) -> Nanos {
        let parts = self.asked.population.parts.iter();
        parts.map(|part| part.path.setup_allowance()).max().unwrap_or(Nanos::ZERO)
    }

    /// Returns the traffic since the last call.
    pub fn facts(&self) -> Result<PathFacts> {
        Ok(self.path.facts()?)
    }
}

/// Rate that the forwarder handles reliably: 80,000 full packets per second. The actual rate is
/// measured and reported after each run.
const RATE_SAFE: f64 = 1e9;

/// Warns that a path is faster than the forwarder's reliable rate.
pub fn too_fast(spec: &PathSpec) -> Option<String> {
    let fastest = Direction::BOTH.iter().filter_map(|way| spec.link(*way).bits_per_second());
    let fastest = fastest.fold(0.0, f64::max);
    (fastest > RATE_SAFE).then(|| {
        format!(
            "the path is configured for {} Gbit/s; here one core forwards packets, reliably about \
             1 Gbit/s: the report shows what was lost beyond that",
            fastest / 1e9
        )
    })
}

/// Notes the effects that the figures of a population's paths omit.
pub(crate) fn beyond(population: &Population) -> impl Iterator<Item = String> {
    population.parts.iter().filter_map(|part| too_fast(&part.path))
}

/// Packets per second that one core forwards (bench/PATHS.md).
const PACKETS_PER_S: f64 = 100_000.0;
/// Content of a full packet, in bytes: Ethernet's 1,500 less the headers of IP and TCP with
/// timestamps.
const SEGMENT: f64 = 1_448.0;
/// Packets of a connection in addition to those of its calls: three to open it, four to close it.
const OF_A_CONNECTION: f64 = 7.0;

/// Returns the packet rate of an open load if it exceeds the emulation's capacity, by the length of
/// the first response's content in bytes. A request is a packet and its acknowledgment; every
/// second packet of a response is acknowledged.
pub(crate) fn excess_packet_rate(plan: &Plan, length: u64) -> Option<String> {
    let calls = rate_peak(plan).ok()?;
    let alone =
        plan.connection.calls.map_or(0.0, |calls| OF_A_CONNECTION / f64::from(calls.max(1)));
    let of_a_call = 2.0 + 1.5 * (length as f64 / SEGMENT).ceil().max(1.0) + alone;
    let asked = calls * of_a_call;
    (asked > PACKETS_PER_S).then(|| {
        format!(
            "{} with responses of {} are about {} packets a second, and the emulated path carries \
             about {} per core: the emulation loses the rest, which makes the run INVALID; lower \
             the load",
            show::rate(calls),
            show::bytes(length),
            show::count(asked.round() as u64),
            show::count(PACKETS_PER_S as u64)
        )
    })
}

/// Removes the addresses that are not IPv4.
fn keep_ipv4(endpoint: &mut Endpoint, option: &str) -> Result<()> {
    let is_v4 = |peer: &Peer| peer.address().is_some_and(|address| address.is_ipv4());
    if !endpoint.peers.iter().any(is_v4) {
        bail!(
            "{option}: {} has no IPv4 address, and a path carries only IPv4; let the server listen \
             on 127.0.0.1",
            endpoint.key
        );
    }
    endpoint.peers.retain(is_v4);
    Ok(())
}

/// Runs code that opens sockets, through the path if there is one: on a separate thread, so that
/// the calling thread stays in the network of this host.
pub(crate) fn run_on_path<T: Send>(
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

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Arrivals, Load, Think};
    use units::Rate;

    #[test]
    fn a_load_beyond_the_emulation_is_reported_before_it_starts() {
        let open = |rate| {
            let arrivals = Arrivals::constant(Rate(rate));
            let load =
                Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
            Plan { load, ..Plan::for_url("http://127.0.0.1/".parse().unwrap()) }
        };
        // 2 and 1.5 times 7 packets of a response
        let reported = excess_packet_rate(&open(60_000.0), 10_000).unwrap();
        assert!(
            reported.contains("60,000/s") && reported.contains("about 750,000 packets"),
            "{reported}"
        );
        assert_eq!(excess_packet_rate(&open(8_000.0), 10_000), None);
        let mut closing = open(20_000.0);
        assert_eq!(excess_packet_rate(&closing, 100), None);
        closing.connection.calls = Some(1);
        assert!(
            excess_packet_rate(&closing, 100).is_some(),
            "each call opens and ends a connection"
        );
        // the speed of a closed loop is unknown in advance
        let users = Load::Closed { users: 1_000, think: Think::None, session: None };
        assert_eq!(excess_packet_rate(&Plan { load: users, ..open(1.0) }, 10_000), None);
    }
}
