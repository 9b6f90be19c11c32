//! A run over the program's own TCP: its devices, the paths emulated over it, and the notes about
//! both.

use crate::path::{self, WantedPath};
use anyhow::{Result, bail};
use conduit::Peer;
use engine::{Crowd, Endpoint};
use netpath::{PathTrouble, used_bits};
use ownstack::{
    BatchUse, Ground, Handover, InsidePaths, NetworkRequest, NetworkTrouble, OwnNetwork,
    QUEUES_MAX, TcpSettings, XdpAsk, XdpHook, XdpTrouble,
};
use plan::{Plan, StackChoice, TcpTraits, XdpMode};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Returns the prefix from which the program's own TCP takes its addresses in a plan.
fn prefix(plan: &Plan) -> Option<(IpAddr, u8)> {
    let prefix = plan.driver.sources.filter(|_| plan.driver.stack.is_own());
    prefix.map(|prefix| (prefix.network, prefix.bits))
}

/// Threads of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub(crate) workers: u32,
    /// Maximum number under any load.
    pub(crate) most: u32,
}

/// The prefix of a plan, and the number of threads that it sets; 0 if not set.
pub(crate) type PrefixUse = ((IpAddr, u8), u32);

/// Returns a plan's use of a prefix; `None` for a plan without one.
pub(crate) fn prefix_use(plan: &Plan) -> Option<PrefixUse> {
    Some((prefix(plan)?, plan.driver.threads.unwrap_or(0)))
}

/// Returns the largest number of threads set by a plan that shares the prefix of `plan`; 0: no plan
/// sets it.
pub(crate) fn threads_of_sharers(plan: &Plan, uses: &[PrefixUse]) -> u32 {
    let own = prefix(plan);
    let shared = uses.iter().filter(|(prefix, _)| own == Some(*prefix));
    shared.map(|(_, threads)| *threads).max().unwrap_or(0)
}

/// Returns how many threads a plan can have over the program's own TCP under any load, at most
/// `wished`. If the user sets addresses but no number of threads, each thread needs a part of four
/// addresses, two of them usable, and existing parts limit the number. With clients, the number of
/// clients limits how many threads have work.
pub(crate) fn threads_most(plan: &Plan, wished: u32) -> u32 {
    let Some(prefix) = prefix(plan) else { return wished };
    let mut most = wished;
    if plan.driver.threads.is_none() {
        most = most.min(1 << used_bits(prefix).saturating_sub(2));
    }
    let is_default_count = plan.driver.threads.is_none() || plan.client_count() > 0;
    match shared_ground()
        .upgrade()
        .filter(|ground| is_default_count && ground.prefix() == Some(prefix))
    {
        Some(ground) => most.min(ground.threads()),
        None => most,
    }
}

/// Returns how many workers a plan can have over the program's own TCP under its load, at most
/// `workers`. The links of a client belong to one thread; all threads share the one link of
/// `--path`.
pub(crate) fn workers(plan: &Plan, workers: u32) -> u32 {
    match plan.client_count() {
        clients if clients > 0 && plan.driver.stack.is_own() => {
            (1..=workers).rev().find(|count| clients.is_multiple_of(*count)).unwrap_or(1)
        }
        _ => workers,
    }
}

/// Opens the devices of a plan whose connections use the program's own TCP. Addresses of another
/// family than the connections' are removed from the endpoints; each endpoint must keep a reachable
/// address. A prefix can be taken once: if the load varies, it is divided for the maximum number of
/// threads of any load, and for at least `varied`, the number set by other plans with the same
/// prefix.
///
/// # Errors
/// Fails if an endpoint has no address of the family, or if this machine or user cannot open the
/// devices.
pub(crate) fn open(
    plan: &Plan,
    own: Threads,
    varied: Option<u32>,
    endpoints: &mut [Endpoint],
    notes: &mut Vec<String>,
) -> Result<Arc<OwnNetwork>> {
    let six = plan.driver.sources.is_some_and(|prefix| prefix.network.is_ipv6());
    let xdp = plan.driver.stack.xdp().is_some();
    endpoints.iter_mut().try_for_each(|endpoint| keep_family(endpoint, six, xdp))?;
    let (threads, parts) = match varied {
        None => (own.workers, own.workers),
        Some(threads) => (own.most, own.most.max(threads)),
    };
    let network = create(network_request(plan, own.workers), threads, parts)?;
    endpoints.iter().try_for_each(|endpoint| check_reachable(endpoint, &network))?;
    notes.push(note(plan.driver.tcp.as_ref(), &network));
    if let Handover::Fallback(reason) = network.handover() {
        notes.push(format!("--stack own:batches: one packet per system call: {reason}"));
    }
    if let Some(paths) = &network.request().paths {
        notes.extend(path::beyond(&paths.population));
    }
    Ok(network)
}

/// Notes the differences to a run over the kernel's sockets.
fn note(traits: Option<&TcpTraits>, network: &OwnNetwork) -> String {
    let (first, last) = network.sources();
    let devices: Vec<&str> = network.devices().collect();
    let devices = devices.join(", ");
    let sources_text =
        if first == last { format!("from {first}") } else { format!("from {first} to {last}") };
    let through = match (network.handover(), network.queues()) {
        (Handover::Xdp(hook), Some(queues)) => format!(
            "by AF_XDP on {devices} ({} mode, {}{}), which the kernel still uses for all other \
             packets",
            hook.name(),
            if queues == 1 { "1 queue".to_owned() } else { format!("all {queues} queues") },
            match network.request().workers {
                0 | 1 => String::new(),
                threads => format!(", {threads} threads, each with its own addresses"),
            }
        ),
        _ => format!("through {devices} on this host while the run lasts"),
    };
    let traits = traits.map_or_else(String::new, |traits| format!(" ({traits})"));
    format!(
        "connections use Loadstone's own TCP{traits}: the server sees them come {sources_text}, {through}; the client's \
         kernel TCP is not measured"
    )
}

/// Checks that packets reach one of an endpoint's addresses.
fn check_reachable(endpoint: &Endpoint, network: &OwnNetwork) -> Result<()> {
    let mut trouble = None;
    for address in endpoint.peers.iter().filter_map(Peer::address) {
        match network.reach(address.ip()) {
            Ok(()) => return Ok(()),
            Err(error) => trouble = trouble.or(Some(error)),
        }
    }
    trouble.map_or(Ok(()), |error| Err(explain_error(error)))
}

/// Returns the network of a trial whose plan may need a different one than `network`: over the same
/// devices if they fit.
///
/// # Errors
/// Fails if this machine or user cannot set it up.
pub(crate) fn refit(plan: &Plan, own: Threads, network: &OwnNetwork) -> Result<Arc<OwnNetwork>> {
    let asked = network_request(plan, own.workers);
    let ground = Some(network.ground()).filter(|ground| ground.can_serve(&asked));
    match ground.map(|ground| OwnNetwork::on(ground, asked.clone())) {
        Some(Ok(network)) => Ok(network),
        Some(Err(trouble)) if asked.prefix.is_some() => Err(explain_error(trouble)),
        // a plan without a prefix gets other devices, whose parts have more addresses
        _ => create(asked, own.most, own.most),
    }
}

fn network_request(plan: &Plan, workers: u32) -> NetworkRequest {
    let paths = WantedPath::from_plan(plan)
        .map(|(_, population, clients)| InsidePaths { population, clients });
    let prefix = prefix(plan);
    let batches = match plan.driver.stack {
        StackChoice::OwnBatches => BatchUse::Always,
        StackChoice::OwnCalls => BatchUse::Never,
        _ => BatchUse::WherePays,
    };
    let xdp = plan.driver.stack.xdp().zip(prefix).map(|(choice, prefix)| XdpAsk {
        device: choice.device.clone(),
        gateway: choice.gateway,
        hook: match choice.mode {
            XdpMode::Auto => None,
            XdpMode::Native => Some(XdpHook::Native),
            XdpMode::Generic => Some(XdpHook::Generic),
        },
        prefix,
    });
    let tcp = settings(plan.driver.tcp.as_ref());
    NetworkRequest { workers, seed: plan.seed, paths, prefix, batches, tcp, xdp }
}

/// Returns the settings of a Linux client, changed by the plan's options.
fn settings(traits: Option<&TcpTraits>) -> TcpSettings {
    let usual = TcpSettings::default();
    let Some(traits) = traits else { return usual };
    TcpSettings {
        ecn: traits.ecn,
        sack: !traits.no_sack,
        stamps: !traits.no_timestamps,
        keep_alive: traits.keep_alive,
        keep_alive_interval: traits.keep_alive.unwrap_or(usual.keep_alive_interval),
        initial_window: traits.initial_window.unwrap_or(usual.initial_window),
        receive_max: traits.receive_window.unwrap_or(usual.receive_max),
        delayed_ack: traits.ack_delay.unwrap_or(usual.delayed_ack),
        ..usual
    }
}

/// Existing devices with the user's addresses: targets that are loaded in turns share them, like
/// the queues of an AF_XDP device.
static SHARED_GROUND: Mutex<Weak<Ground>> = Mutex::new(Weak::new());

fn shared_ground() -> MutexGuard<'static, Weak<Ground>> {
    SHARED_GROUND.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of descriptors that a run opens in addition to its sockets: the program and its map,
/// epoll instances, short-lived files.
const OTHER_DESCRIPTORS: u64 = 64;

/// Opens a network, and its devices if there are none, with this number of parts of a prefix. Each
/// of `threads` has one worker of the network or, with clients, as many as it has clients.
fn create(mut asked: NetworkRequest, threads: u32, parts: u32) -> Result<Arc<OwnNetwork>> {
    if asked.prefix.is_none() {
        return OwnNetwork::open(asked).map_err(explain_error);
    }
    let wide = NetworkRequest { workers: parts, ..asked.clone() };
    if asked.paths.is_none() {
        asked.workers = threads;
    }
    let mut shared_ground = shared_ground();
    if let Some(ground) = shared_ground.upgrade() {
        if ground.can_serve(&asked) {
            return OwnNetwork::on(&ground, asked).map_err(explain_error);
        }
        if ground.prefix() == asked.prefix {
            return Err(mismatch_error(&ground, &asked));
        }
    }
    if asked.xdp.is_some() {
        // one socket for each thread and queue; if the limit is too low, opening the socket reports
        // it
        let sockets = u64::from(QUEUES_MAX) * u64::from(wide.workers);
        let all = host::limits::descriptors_open() + sockets + OTHER_DESCRIPTORS;
        host::raise_descriptors(all).ok();
    }
    let ground = Ground::open(&wide).map_err(explain_error)?;
    let network = match OwnNetwork::on(&ground, asked.clone()) {
        // parts for more threads than this load has are too small for its clients
        Err(NetworkTrouble::Path(PathTrouble::TooManyClients { .. }))
            if asked.workers < wide.workers =>
        {
            drop(ground);
            OwnNetwork::open(asked)
        }
        done => done,
    };
    let network = network.map_err(explain_error)?;
    *shared_ground = Arc::downgrade(network.ground());
    Ok(network)
}

/// Returns the message for a prefix that another target's devices use and this network cannot
/// share.
fn mismatch_error(ground: &Ground, asked: &NetworkRequest) -> anyhow::Error {
    let (threads, parts) = (asked.workers, ground.threads());
    let (why, fix) = if threads > parts {
        let parts = match parts {
            1 => "in 1 part, for one thread".to_owned(),
            parts => format!("in {parts} parts, one for each thread"),
        };
        let why = format!("{parts}, where --threads {threads} needs {threads}");
        (why, "the same --threads")
    } else {
        (
            "with another --stack, or with paths for only one of them".to_owned(),
            "the same --stack and paths",
        )
    };
    anyhow::anyhow!(
        "--stack own: another target already uses the addresses of --sources, {why}; fix: use \
        {fix} for all targets, or other --sources for one of them"
    )
}

fn explain_error(trouble: NetworkTrouble) -> anyhow::Error {
    let text = match trouble {
        NetworkTrouble::Path(PathTrouble::Host(error)) => format!(
            "a network device on this host is needed, which only root can create ({error}); fix: \
            run as root, or run server and load together in their own network namespace \
            (`unshare -Urn`), or omit --stack"
        ),
        NetworkTrouble::Xdp(XdpTrouble::Prefix(trouble)) => {
            return anyhow::anyhow!("--sources: {trouble}");
        }
        NetworkTrouble::Xdp(trouble) => return anyhow::anyhow!("--stack own:xdp: {trouble}"),
        NetworkTrouble::Path(other) => other.to_string(),
    };
    anyhow::anyhow!("--stack own: {text}")
}

/// Returns the client addresses of the users, if the plan has kinds of clients.
pub(crate) fn crowd(network: &OwnNetwork, plan: &Plan) -> Option<Crowd> {
    plan.connection.clients.as_ref()?;
    Some(Crowd { firsts: network.firsts(), kinds: network.client_kinds().into() })
}

/// Removes the addresses whose family differs from the connections'.
fn keep_family(endpoint: &mut Endpoint, six: bool, xdp: bool) -> Result<()> {
    let near = |peer: &Peer| peer.address().is_some_and(|it| it.is_ipv6() && it.ip().is_loopback());
    // a WebSocket over HTTP/2 is a tunnel to such an address
    let fits = |peer: &Peer| {
        let family = peer.address().is_some_and(|address| address.is_ipv6() == six);
        family && !peer.is_over_quic() && !near(peer)
    };
    if endpoint.peers.iter().any(fits) {
        endpoint.peers.retain(fits);
        return Ok(());
    }
    let key = &endpoint.key;
    if six && endpoint.peers.iter().any(near) {
        if xdp {
            // no address of this host is reachable: `check_reachable` reports it
            endpoint.peers.retain(near);
            return Ok(());
        }
        bail!(
            "--stack own: {key} leads to ::1, where Linux takes packets from the loopback alone; let the server \
             listen on [::] and name another address of this host (`ip -6 address`), or drop --stack"
        );
    }
    let (family, other) =
        if six { ("IPv6", "--sources of IPv4") } else { ("IPv4", "--sources of IPv6") };
    bail!(
        "--stack own: {key} has no {family} address, but its connections come from such addresses; \
         let the server listen on one, give {other}, or drop --stack"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_threads_have_addresses() {
        let of = |sources: &str, threads, most| {
            let mut plan = Plan::for_url("http://127.0.0.1/".parse().unwrap());
            plan.driver.stack = StackChoice::Own;
            plan.driver.sources = Some(plan::rules::parse_sources(sources).unwrap());
            plan.driver.threads = threads;
            threads_most(&plan, most)
        };
        assert_eq!(of("10.80.0.128/26", None, 64), 16);
        assert_eq!(of("10.80.0.128/26", None, 2), 2);
        assert_eq!(of("10.80.0.128/28", None, 8), 4);
        assert_eq!(of("10.80.0.128/30", None, 8), 1);
        assert_eq!(of("10.0.0.0/8", None, 1_024), 1_024);
        assert_eq!(of("fd00::/64", None, 1_024), 1_024);
        assert_eq!(of("fd00::/124", None, 1_024), 4);
        // the user's choice is refused if it does not fit
        assert_eq!(of("10.80.0.128/30", Some(2), 2), 2);
    }

    #[test]
    fn a_prefix_is_divided_for_the_threads_of_its_own_plans() {
        let plan = |stack, sources: Option<&str>, threads| {
            let mut plan = Plan::for_url("http://127.0.0.1/".parse().unwrap());
            plan.driver.stack = stack;
            plan.driver.sources = sources.map(|it| plan::rules::parse_sources(it).unwrap());
            plan.driver.threads = threads;
            plan
        };
        let plans = [
            plan(StackChoice::Own, Some("10.80.0.128/28"), Some(1)),
            plan(StackChoice::Kernel, None, Some(8)),
            plan(StackChoice::Own, Some("10.80.0.128/26"), Some(4)),
            plan(StackChoice::Own, Some("10.80.0.128/28"), Some(2)),
            plan(StackChoice::Own, None, Some(16)),
            plan(StackChoice::Own, Some("10.80.0.144/28"), None),
        ];
        let uses: Vec<PrefixUse> = plans.iter().filter_map(prefix_use).collect();
        let threads = plans.iter().map(|plan| threads_of_sharers(plan, &uses));
        assert_eq!(threads.collect::<Vec<_>>(), [2, 0, 4, 2, 0, 0]);
    }

    #[test]
    fn loopback_addresses_are_reported_as_such() {
        let left = |peers: &[&str], six, xdp| {
            let mut endpoint = Endpoint {
                key: "http://server:80".to_owned(),
                peers: peers.iter().map(|it| Peer::Tcp(it.parse().unwrap())).collect(),
                tls_name: None,
                tunnel: None,
                absolute: false,
            };
            match keep_family(&mut endpoint, six, xdp) {
                Ok(()) => {
                    let left = endpoint.peers.iter().filter_map(Peer::address);
                    left.map(|it| it.to_string()).collect::<Vec<_>>().join(" ")
                }
                Err(error) => error.to_string(),
            }
        };
        let localhost = ["[::1]:80", "127.0.0.1:80"];
        let near = "--stack own: http://server:80 leads to ::1, where ";
        assert!(left(&localhost, true, false).starts_with(near));
        assert!(left(&localhost[..1], true, false).starts_with(near));
        assert_eq!(left(&localhost, true, true), "[::1]:80");
        assert_eq!(left(&localhost, false, false), "127.0.0.1:80");
        let without = "--stack own: http://server:80 has no IPv";
        assert!(left(&localhost[1..], true, false).starts_with(&format!("{without}6 address")));
        assert!(left(&localhost[..1], false, false).starts_with(&format!("{without}4 address")));
        for xdp in [false, true] {
            assert_eq!(
                left(&["[::1]:80", "[fd00::2]:80", "10.0.0.2:80"], true, xdp),
                "[fd00::2]:80"
            );
        }
    }
}
