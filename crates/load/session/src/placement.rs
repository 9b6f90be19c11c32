//! Number of workers, their cores and their limits.

use crate::own_stack;
use anyhow::Result;
use conduit::Peer;
use engine::Endpoint;
use plan::{Load, Plan};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use units::Nanos;

/// Cores of the workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placement {
    pub(crate) workers: u32,
    /// Maximum number of threads under any load.
    pub(crate) threads_most: u32,
    /// A core for each worker; empty: the kernel chooses.
    pub(crate) cores: Vec<u32>,
    /// The server has no core apart from the workers'.
    pub(crate) shared: Option<String>,
}

/// Maximum number of workers: more than any machine has cores.
const WORKERS_MAX: u32 = 1 << 10;

/// Chooses one worker per core. If the server is on this machine, one core is left to it: a core
/// that it is bound to, or else the first.
pub(crate) fn place(plan: &Plan, endpoints: &[Endpoint]) -> Placement {
    let ours = host::cpu::affinity();
    // a server that may run on every core does not affect the choice: it is not searched for
    let bound_servers =
        servers_by(endpoints, host::bound_listener_pids, host::listener::bound_unix_listener_pids);
    let local = endpoints.iter().any(is_loopback);
    let server_cores = cores_of_all(&bound_servers);
    let bound = !server_cores.is_empty() && server_cores.len() < host::cpu::online_cores().len();
    let chosen: Vec<u32> = if !plan.driver.cpus.is_empty() {
        plan.driver.cpus.clone()
    } else if !local {
        ours.clone()
    } else if bound {
        let free: Vec<u32> =
            ours.iter().copied().filter(|core| !server_cores.contains(core)).collect();
        if free.is_empty() { ours.clone() } else { free }
    } else if ours.len() > 1 {
        ours[1..].to_vec()
    } else {
        ours.clone()
    };
    let wished = plan.driver.threads.unwrap_or(chosen.len() as u32).clamp(1, WORKERS_MAX);
    let threads_most = own_stack::threads_most(plan, wished);
    let most = units_of_work(plan).clamp(1, u64::from(WORKERS_MAX)) as u32;
    let workers = own_stack::workers(plan, threads_most.min(most));
    let overlap = local && overlaps(&chosen, workers, &server_cores, bound);
    let shared = overlap.then(|| sharing(&local_servers(endpoints), &chosen));
    // without a named core and with a remote server no binding is needed; with a local server it is
    let bind = local || !plan.driver.cpus.is_empty();
    let cores = if bind { chosen } else { Vec::new() };
    Placement { workers, threads_most, cores, shared }
}

/// Returns whether the server must share a core with a worker: the workers use all cores that it is
/// bound to, or, if it may run anywhere, no core is left over.
fn overlaps(chosen: &[u32], workers: u32, server_cores: &[u32], bound: bool) -> bool {
    let used = &chosen[..chosen.len().min(workers as usize)];
    if bound {
        return server_cores.iter().all(|core| used.contains(core));
    }
    host::cpu::online_cores().iter().all(|core| used.contains(core))
}

fn sharing(servers: &[u32], cores: &[u32]) -> String {
    let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
    let cores = cores.join(", ");
    match servers.first() {
        Some(pid) => {
            let name = host::process_name(*pid);
            format!("the server ({name}, pid {pid}) shares core {cores} with the workers")
        }
        None => format!("the server may run only on core {cores}, which the workers use"),
    }
}

/// Returns the number of users, connections or calls: additional workers would be idle.
pub fn units_of_work(plan: &Plan) -> u64 {
    let of = |load: &&Load| match load {
        Load::Closed { users, .. } => u64::from(*users),
        Load::Open { connections_max, .. } => connections_max.map_or(u64::MAX, u64::from),
    };
    let all = plan.loads().iter().map(of).fold(0, u64::saturating_add);
    // a room belongs to one worker
    all.min(plan.websocket.rooms.map_or(u64::MAX, u64::from))
}

fn is_loopback(endpoint: &Endpoint) -> bool {
    endpoint
        .peers
        .iter()
        .any(|peer| peer.address().is_none_or(|address| address.ip().is_loopback()))
}

/// Returns the processes on this machine that listen on the plan's addresses.
pub(crate) fn local_servers(endpoints: &[Endpoint]) -> Vec<u32> {
    servers_by(endpoints, host::listener_pids, host::listener::unix_listener_pids)
}

fn servers_by(
    endpoints: &[Endpoint],
    tcp: fn(SocketAddr) -> Vec<u32>,
    unix: fn(&Path) -> Vec<u32>,
) -> Vec<u32> {
    let mut found = Vec::new();
    for peer in endpoints.iter().flat_map(|endpoint| &endpoint.peers) {
        let carrier = if let Peer::Tunnel { to, .. } = peer { to } else { peer };
        match (carrier, carrier.address()) {
            (Peer::Unix(path), _) => found.extend(unix(path)),
            // an HTTP/3 server also serves the older versions on the TCP port of the same number
            (_, Some(address)) if address.ip().is_loopback() => found.extend(tcp(address)),
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn cores_of_all(pids: &[u32]) -> Vec<u32> {
    let mut cores: Vec<u32> = pids.iter().flat_map(|pid| host::cores_of(*pid)).collect();
    cores.sort_unstable();
    cores.dedup();
    cores
}

/// Number of short-lived descriptors while connections are open: the first call's socket, the log
/// of calls, files of /proc. At most three at once were observed; each worker's epoll instance is
/// counted separately.
const PASSING_DESCRIPTORS: u64 = 6;

/// This machine lacks a resource that the plan needs.
#[derive(Debug)]
pub struct TooFew {
    /// The resource is descriptors, rather than ports.
    pub descriptors: bool,
    /// Maximum number of connections that the resource allows.
    pub most: u64,
    sentence: String,
}

impl std::fmt::Display for TooFew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for TooFew {}

/// Returns the plan with default bounds of this machine: pools that may grow are bounded by its
/// resources, queues by the arrivals of one timeout. Raises the descriptor limit to what the plan
/// needs.
///
/// # Errors
/// Fails if the plan's connections cannot all be open.
pub(crate) fn bounded(
    plan: Plan,
    endpoints: &[Endpoint],
    workers: u32,
    notes: &mut Vec<String>,
) -> Result<Arc<Plan>> {
    let mut plan = check_limits(plan, endpoints, workers, notes)?;
    bound_queues(&mut plan);
    Ok(Arc::new(plan))
}

fn check_limits(
    mut plan: Plan,
    endpoints: &[Endpoint],
    workers: u32,
    notes: &mut Vec<String>,
) -> Result<Plan> {
    if plan.driver.stack.is_own() {
        // no descriptor and no port of this host is used: address and port are chosen when a
        // connection is opened, and a connection without one fails and is counted
        share_connections(&mut plan, u64::from(OWN_CONNECTIONS_MAX));
        return Ok(plan);
    }
    let peers = endpoints.iter().flat_map(|endpoint| &endpoint.peers);
    let peers: Vec<SocketAddr> = peers.filter_map(Peer::address).collect();
    let loopback = peers.iter().all(|address| address.ip().is_loopback());
    let other = host::limits::descriptors_open() + u64::from(workers) + PASSING_DESCRIPTORS;
    let ports = host::limits::ports();
    let hard = host::limits::descriptors().hard;
    let fixed = connections_needed(&plan);
    let idle = u64::from(plan.connection.idle.unwrap_or(0));
    if fixed.is_none() {
        // as many as descriptors and ports allow, unless the user set a lower limit
        let addresses = plan.connection.bind.len().max(1) as u64;
        let by_ports = if peers.is_empty() { u64::MAX } else { u64::from(ports.count) * addresses };
        let most = hard.saturating_sub(other + idle).min(by_ports).clamp(1, 1_000_000);
        share_connections(&mut plan, most);
    }
    let demand = host::Demand {
        connections: fixed.unwrap_or(0) + idle,
        opens_per_s: opens_per_s(&plan),
        duration: plan.stop.duration.map(|span| span + plan.stop.warm_up),
        reset_on_close: plan.connection.reset_on_close,
        local_addresses: (plan.connection.bind.len() as u64).max(plan.client_count().into()).max(1),
        targets: peers.len() as u64,
        time_wait: host::limits::time_wait(loopback),
        other_descriptors: other,
    };
    let supply = host::Supply { ports: ports.count, descriptors: hard };
    for shortage in host::forecast(&demand, supply).shortages {
        let impossible = !demand.connections.le(&shortage.budget.available)
            || shortage.resource == host::forecast::Resource::Descriptors;
        let sentence = format!("{}. Fix: {}.", shortage.text, shortage.advice);
        if impossible {
            let descriptors = shortage.resource == host::forecast::Resource::Descriptors;
            let other = if descriptors { other } else { 0 };
            let most = shortage.budget.available.saturating_sub(other);
            return Err(TooFew { descriptors, most, sentence }.into());
        }
        notes.push(sentence);
    }
    let wanted = connections_needed(&plan).unwrap_or(0).saturating_add(other + idle);
    if let Err(short) = host::raise_descriptors(wanted) {
        notes.push(short.to_string());
    }
    Ok(plan)
}

/// Default maximum of connections of the program's own TCP in an open load: a gigabyte's worth.
const OWN_CONNECTIONS_MAX: u32 = 1_000_000;

/// Divides the remaining connections of `most` equally among the loads without their own bound.
fn share_connections(plan: &mut Plan, most: u64) {
    let (mut bound, mut unbound) = (0, 0);
    for load in plan.loads() {
        match connections_of(load, plan.connection.per_user) {
            Some(own) => bound += own,
            None => unbound += 1,
        }
    }
    let each = most.saturating_sub(bound) / u64::max(unbound, 1);
    let each = u32::try_from(each.max(1)).unwrap_or(u32::MAX);
    for load in plan.loads_mut() {
        if let Load::Open { connections_max: own @ None, .. } = load {
            *own = Some(each);
        }
    }
}

/// Returns the number of connections that may be open at once; `None` if a load has no bound.
fn connections_needed(plan: &Plan) -> Option<u64> {
    plan.loads().into_iter().map(|load| connections_of(load, plan.connection.per_user)).sum()
}

/// Returns the number of connections of one load. A user has one connection, and one more for each
/// concurrent call of a group, up to `per_user`.
fn connections_of(load: &Load, per_user: u32) -> Option<u64> {
    match load {
        Load::Closed { users, session, .. } => {
            let at_once = session.as_ref().and_then(|session| session.parallel).unwrap_or(1);
            Some(u64::from(*users) * u64::from(at_once.min(per_user).max(1)))
        }
        Load::Open { connections_max, .. } => connections_max.map(u64::from),
    }
}

/// Returns the number of connections opened per second that the plan certainly needs; 0 if the
/// number depends on the server.
fn opens_per_s(plan: &Plan) -> f64 {
    let of = |load: &&Load| {
        let Load::Open { arrivals, session, .. } = load else { return 0.0 };
        let rate = arrivals.from.0.max(arrivals.to.0);
        match (session, plan.connection.calls) {
            (Some(_), _) => rate,
            (None, Some(calls)) => rate / f64::from(calls.max(1)),
            (None, None) => 0.0,
        }
    };
    plan.loads().iter().map(of).sum()
}

/// Sets the default bound of a plan's queues: the arrivals of one timeout.
fn bound_queues(plan: &mut Plan) {
    let timeout = plan.timeouts.call;
    for load in plan.loads_mut() {
        if let Load::Open { arrivals, queue_max: queue_max @ None, .. } = load {
            let rate = arrivals.from.0.max(arrivals.to.0);
            let worth = (rate * timeout.as_secs_f64()).ceil();
            *queue_max = Some((worth as u64).clamp(1, 50_000_000));
        }
    }
}

/// Returns the time before the first due instant in which held connections are opened, at a rate
/// that a server of this host can accept.
pub(crate) fn hold_lead_time(plan: &Plan) -> Nanos {
    let held = u64::from(plan.connection.idle.unwrap_or(0));
    Nanos(HELD_EACH.0 * held)
}

/// Memory of an opened and accepted connection, with both ends on one host.
const HELD_EACH: Nanos = Nanos::from_micros(50);
