//! From a plan to something that can run: names resolved, TLS made ready, limits raised, cores
//! chosen. What cannot fit is said before the run, not found out in it.

use super::elsewhere::Elsewhere;
use super::own_stack;
use super::path::EmulatedPath;
use super::settled::{Settled, Spoken};
use super::sockets::{self, SocketLoop};
use crate::caller::Meet;
use anyhow::{Context, Result, bail};
use conduit::Peer;
use engine::{Endpoint, Share, connect_request, endpoint_key};
use ownstack::OwnNetwork;
use plan::{AddressFamily, HttpVersion, Load, Plan, TlsVersions};
use report::Resolved;
use std::net::SocketAddr;
use std::sync::Arc;
use units::Nanos;
use url::Url;

/// A plan with the addresses of its endpoints.
#[derive(Clone)]
pub(crate) struct Prepared {
    /// What is carried out: the plan as it was typed, with what was settled with the servers, and with bounds
    /// of this machine where it has none.
    pub(crate) plan: Arc<Plan>,
    pub(crate) settled: Settled,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) resolved: Vec<Resolved>,
    pub(crate) tls: Option<net::tls::Client>,
    pub(crate) workers: u32,
    /// How many there can be under any load.
    pub(crate) threads_most: u32,
    /// A core for each worker; empty: wherever the kernel likes.
    pub(crate) cores: Vec<u32>,
    /// What the user should know before the run: one sentence each.
    pub(crate) notes: Vec<String>,
    /// Says that the target has no core that is not ours.
    pub(crate) shared_cores: Option<String>,
    /// Processes on this machine that serve the target.
    pub(crate) servers: Vec<u32>,
    /// Whose resources are watched beside the run.
    pub(crate) sut: Option<crate::sut::Who>,
    /// The emulated path that all connections go through.
    pub(crate) route: Option<Arc<EmulatedPath>>,
    /// The part of a fleet's load that falls to this machine.
    pub(crate) part: Option<MachinePart>,
    /// Other machines that carry the plan out.
    pub(crate) fleet: Option<Arc<dyn Elsewhere>>,
    /// The device of our own TCP, where connections are of it.
    pub(crate) own: Option<Arc<OwnNetwork>>,
    /// How this machine reads and writes the kernel's sockets, and why it is not the way asked for.
    pub(crate) sockets: SocketLoop,
    pub(crate) sockets_note: Option<String>,
    /// What the setup of journeys captured, and its cookies.
    pub(crate) given: std::collections::BTreeMap<String, String>,
    pub(crate) jar: workload::Jar,
}

/// What is to go over what is set up once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loads {
    /// The plan's.
    One,
    /// Trials, of which each may have another load, and another number of threads: `threads` is the
    /// greatest that a plan of theirs names which uses the same prefix.
    Several { threads: u32 },
}

/// One machine's part of a load.
#[derive(Clone)]
pub(crate) struct MachinePart {
    /// One for each worker.
    pub(crate) shares: Vec<Share>,
    /// The first instant of the run.
    pub(crate) start: Nanos,
}

/// # Errors
/// Names that do not resolve, TLS settings that cannot be used, limits that the plan cannot keep.
pub(crate) fn prepare(plan: &Plan, extra: &[Url]) -> Result<Prepared> {
    check_this_machine(plan)?;
    let mut resolved = Vec::new();
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for url in plan.targets.iter().map(|target| &target.url).chain(extra) {
        let key = endpoint_key(url);
        if endpoints.iter().all(|endpoint| endpoint.key != key) {
            endpoints.push(endpoint(plan, url, key, &mut resolved)?);
        }
    }
    let secure = endpoints.iter().any(|endpoint| endpoint.tls_name.is_some());
    let secure = secure || plan.request.version == HttpVersion::Http3;
    let tls = if secure { Some(tls_client(plan)?) } else { None };
    let placement = super::placement::place(plan, &endpoints);
    let mut prepared = Prepared {
        endpoints,
        resolved,
        tls,
        workers: placement.workers,
        threads_most: placement.threads_most,
        cores: placement.cores,
        shared_cores: placement.shared,
        servers: placement.servers,
        ..Prepared::of(plan)
    };
    prepared.notes.extend(unmatched(plan));
    prepared.bound(plan.clone())?;
    Ok(prepared)
}

/// A sentence for each pattern that puts nothing together.
fn unmatched(plan: &Plan) -> impl Iterator<Item = String> {
    let count = plan.targets.len();
    plan.measure.folds.unmatched().map(move |fold| {
        let list = if count == 1 { "the only URL".into() } else { format!("any of {count} URLs") };
        format!(
            "--fold {}: it does not match {list}, or an earlier pattern takes them; it has no row",
            units::quoted(&fold.text)
        )
    })
}

impl Prepared {
    /// A plan for which nothing is prepared.
    pub(crate) fn of(plan: &Plan) -> Prepared {
        Prepared {
            plan: Arc::new(plan.clone()),
            settled: Settled::default(),
            endpoints: Vec::new(),
            resolved: Vec::new(),
            tls: None,
            workers: 0,
            threads_most: 0,
            cores: Vec::new(),
            notes: Vec::new(),
            shared_cores: None,
            servers: Vec::new(),
            sut: None,
            route: None,
            part: None,
            fleet: None,
            own: None,
            sockets: SocketLoop::default(),
            sockets_note: None,
            given: std::collections::BTreeMap::new(),
            jar: workload::Jar::default(),
        }
    }

    /// What is carried out is `plan` with the bounds that it does not have itself.
    fn bound(&mut self, plan: Plan) -> Result<()> {
        let mut plan = super::placement::check_limits(plan, self)?;
        super::placement::bound_queues(&mut plan);
        self.plan = Arc::new(plan);
        Ok(())
    }

    /// The servers were found to speak this.
    pub(crate) fn speak(&mut self, spoken: Spoken) {
        self.settled.spoken = Some(spoken);
        self.plan = Arc::new(self.settled.applied(&self.plan));
    }

    /// A connection has so many streams at most.
    pub(crate) fn keep_to_streams(&mut self, most: u32) {
        self.settled.streams = Some(most);
        self.plan = Arc::new(self.settled.applied(&self.plan));
    }

    /// The part of the load of each worker.
    pub(crate) fn shares(&self) -> Vec<Share> {
        match &self.part {
            Some(part) => part.shares.clone(),
            None => (0..self.workers).map(|worker| Share::new(worker, self.workers)).collect(),
        }
    }

    /// Sets up what connections go through on this machine: the plan's emulated path, or our own TCP.
    ///
    /// # Errors
    /// What this machine or this user cannot do.
    pub(crate) fn stand(&mut self, loads: Loads) -> Result<()> {
        let plan = &*self.plan.clone();
        self.route = EmulatedPath::open(plan, self)?;
        self.own = own_stack::open(plan, self, loads)?;
        (self.sockets, self.sockets_note) = sockets::choose(plan);
        Ok(())
    }

    /// What the user should know before the run, on the machines that carry it out.
    pub(crate) fn told(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().chain(&self.sockets_note).map(String::as_str)
    }

    /// Other machines carry the plan out. What stood here for the first call goes: each of them sets
    /// up its own.
    pub(crate) fn hand_to(&mut self, fleet: Option<&Arc<dyn Elsewhere>>) {
        let Some(fleet) = fleet else { return };
        if self.route.take().is_some() {
            self.notes.push(
                "each agent sets up the path on its own machine: as many links as agents, not one \
                 shared by all"
                    .to_owned(),
            );
        }
        self.own = None;
        (self.sockets, self.sockets_note) = (SocketLoop::default(), None);
        self.fleet = Some(fleet.clone());
    }

    /// The same endpoints for a plan that differs in its load alone: cores, limits and bounds anew,
    /// and no name looked up again.
    ///
    /// # Errors
    /// Limits that the plan cannot keep.
    pub(crate) fn refit(&self, plan: Plan) -> Result<Prepared> {
        let placement = super::placement::place(&plan, &self.endpoints);
        // in a fleet each agent has its own
        let (route, own) = match &self.fleet {
            Some(_) => (None, None),
            None => (
                EmulatedPath::refit(&plan, self.route.clone())?,
                own_stack::refit(&plan, &placement, self.own.as_deref())?,
            ),
        };
        let mut prepared = Prepared {
            workers: placement.workers,
            threads_most: placement.threads_most,
            cores: placement.cores,
            shared_cores: placement.shared,
            servers: placement.servers,
            notes: Vec::new(),
            route,
            own,
            ..self.clone()
        };
        prepared.bound(plan)?;
        Ok(prepared)
    }
}

/// The endpoint of a URL that a run meets on its way.
///
/// # Errors
/// A name that has no address, or none at all.
pub(crate) fn meet(plan: &Plan, url: &Url) -> Result<Endpoint> {
    endpoint(plan, url, endpoint_key(url), &mut Vec::new())
}

/// The same for single exchanges that go the way of a plan's calls.
pub(crate) fn meeting(plan: &Plan) -> Meet {
    let plan = plan.clone();
    Box::new(move |url| meet(&plan, url).map_err(|error| format!("{error:#}")))
}

/// Makes TLS ready for endpoints that are not known yet.
///
/// # Errors
/// TLS settings that cannot be used.
pub(crate) fn expect_tls(plan: &Plan, prepared: &mut Prepared) -> Result<()> {
    if prepared.tls.is_none() {
        prepared.tls = Some(tls_client(plan)?);
    }
    Ok(())
}

/// Makes TLS ready anew, for what was settled.
///
/// # Errors
/// TLS settings that cannot be used.
pub(crate) fn renew_tls(prepared: &mut Prepared) -> Result<()> {
    prepared.tls = Some(tls_client(&prepared.plan)?);
    Ok(())
}

/// Cores and local addresses that the plan names are this machine's.
fn check_this_machine(plan: &Plan) -> Result<()> {
    let cores = host::cpu::affinity();
    if let Some(core) = plan.driver.cpus.iter().find(|core| !cores.contains(core)) {
        let list: Vec<String> = cores.iter().map(u32::to_string).collect();
        bail!("--cpus names core {core}, and this process may use {}", list.join(", "));
    }
    for address in &plan.connection.bind {
        // port 0: any free one; nothing listens longer than this line takes
        std::net::TcpListener::bind((*address, 0)).with_context(|| {
            format!("--bind {address} is not an address of this machine (see `ip address`)")
        })?;
    }
    Ok(())
}

fn endpoint(plan: &Plan, url: &Url, key: String, resolved: &mut Vec<Resolved>) -> Result<Endpoint> {
    let host = url.host_str().with_context(|| format!("{url} names no host"))?;
    let port = url.port_or_known_default().unwrap_or(80);
    let secure = url.scheme() == "https";
    let via = plan.connection.proxy.as_ref();
    let peers = match (&plan.connection.unix, via) {
        (Some(path), _) => vec![Peer::Unix(path.clone())],
        (None, Some(proxy)) => {
            let host = proxy.host_str().context("--proxy names no host")?;
            addresses(plan, host, proxy.port_or_known_default().unwrap_or(80), resolved)?
        }
        (None, None) => addresses(plan, host, port, resolved)?,
    };
    let tunnel = match via {
        Some(proxy) if secure => Some(
            connect_request(plan, &format!("{host}:{port}"), proxy)
                .map_err(|error| anyhow::anyhow!("--proxy: {error}"))?,
        ),
        _ => None,
    };
    let name = plan.tls.server_name.clone().unwrap_or_else(|| host.to_owned());
    if plan.request.version == HttpVersion::Http3 && secure {
        return Ok(over_udp(key, &peers, &name));
    }
    Ok(Endpoint {
        key,
        peers,
        tls_name: secure.then_some(name),
        tunnel,
        absolute: via.is_some() && !secure,
    })
}

/// The endpoint of a server of HTTP/3: TLS is QUIC's own.
fn over_udp(key: String, peers: &[Peer], name: &str) -> Endpoint {
    let peers = peers.iter().filter_map(Peer::address);
    let peers = peers.map(|address| Peer::Quic { address, name: name.to_owned() }).collect();
    Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false }
}

/// The addresses of a host: by `--resolve`, literally, or by the system's resolver.
fn addresses(
    plan: &Plan,
    host: &str,
    port: u16,
    resolved: &mut Vec<Resolved>,
) -> Result<Vec<Peer>> {
    let rule = plan
        .connection
        .resolve
        .iter()
        .find(|rule| rule.host.eq_ignore_ascii_case(host) && rule.port == port);
    if let Some(rule) = rule {
        let mut address = SocketAddr::new(rule.address, port);
        if let (SocketAddr::V6(address), Some(zone)) = (&mut address, &rule.zone) {
            let index = host::interface_index(zone);
            address.set_scope_id(index.with_context(|| {
                format!("the IPv6 zone {zone} is not an interface of this machine (see `ip link`)")
            })?);
        }
        return Ok(vec![Peer::Tcp(address)]);
    }
    let family = match plan.connection.prefer {
        AddressFamily::Any => host::Family::Any,
        AddressFamily::V4 => host::Family::V4,
        AddressFamily::V6 => host::Family::V6,
    };
    let (found, took) = host::resolve(host, port, family)?;
    if found.is_empty() {
        bail!("{host} has no address of the wanted kind (see -4 and -6)");
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<std::net::IpAddr>().is_err() {
        let addresses = found.iter().map(SocketAddr::ip).collect();
        resolved.push(Resolved { host: host.to_owned(), addresses, took });
    }
    Ok(found.into_iter().map(Peer::Tcp).collect())
}

fn tls_client(plan: &Plan) -> Result<net::tls::Client> {
    Ok(net::tls::Client::new(&tls_settings(plan))?)
}

/// What the plan says of TLS.
pub(crate) fn tls_settings(plan: &Plan) -> net::tls::Settings {
    let wanted = &plan.tls;
    net::tls::Settings {
        laid_open: false,
        insecure: wanted.insecure,
        ca: wanted.ca.clone(),
        cert: wanted.cert.clone(),
        key: wanted.key.clone(),
        resumption: wanted.resumption,
        early_data: wanted.early_data,
        nameless: !wanted.sni,
        versions: match wanted.versions {
            TlsVersions::Any => net::tls::Versions::Any,
            TlsVersions::Tls12 => net::tls::Versions::Tls12,
            TlsVersions::Tls13 => net::tls::Versions::Tls13,
        },
        alpn: match plan.request.version {
            HttpVersion::Http10 | HttpVersion::Http11 => wanted.alpn.clone(),
            HttpVersion::Http2 => vec![http2::ALPN.to_owned()],
            HttpVersion::Auto => super::negotiate::offered(wanted),
            HttpVersion::Http3 => vec![protocol::http3::ALPN.to_owned()],
        },
        groups: wanted.groups.clone(),
        ciphers: wanted.ciphers.clone(),
    }
}

/// Connections that may be open at once; `None` where a load has no bound of its own.
pub(crate) fn connections_needed(plan: &Plan) -> Option<u64> {
    plan.loads().into_iter().map(|load| connections_of(load, plan.connection.per_user)).sum()
}

/// The same of one load. A user has one connection, and one more for each call of a group that goes beside
/// another as far as `per_user` allows.
pub(crate) fn connections_of(load: &Load, per_user: u32) -> Option<u64> {
    match load {
        Load::Closed { users, session, .. } => {
            let at_once = session.as_ref().and_then(|session| session.parallel).unwrap_or(1);
            Some(u64::from(*users) * u64::from(at_once.min(per_user).max(1)))
        }
        Load::Open { connections_max, .. } => connections_max.map(u64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::Measured;
    use super::super::threads::Watcher;
    use super::*;
    use crate::calibration::Calibration;
    use engine::Setup;
    use plan::StackChoice;
    use sample::BudgetFacts;

    /// Machines that are asked nothing.
    #[derive(Debug)]
    struct Others;

    impl Elsewhere for Others {
        fn admit(&self, _: &Plan) -> Result<Vec<BudgetFacts>> {
            Ok(Vec::new())
        }

        fn measure(
            &self,
            _: &Plan,
            _: &Prepared,
            _: Option<&Calibration>,
            _: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
        ) -> Result<Measured> {
            bail!("nobody measures")
        }
    }

    fn by_batches() -> Plan {
        let mut plan = Plan::for_url("http://127.0.0.1:1/".parse().expect("a URL"));
        plan.driver.stack = StackChoice::KernelBatches;
        plan
    }

    /// Each agent has a kernel of its own: what this one's refuses holds for none of them.
    #[test]
    fn in_a_fleet_nothing_is_said_of_this_machines_sockets() {
        // refused on each machine, because of UDP
        let mut plan = by_batches();
        plan.request.version = HttpVersion::Http3;
        let mut prepared = Prepared::of(&plan);
        prepared.notes.push("of the plan".into());
        prepared.stand(Loads::One).expect("nothing is set up");
        prepared.hand_to(None);
        let told: Vec<&str> = prepared.told().collect();
        let refused =
            "--stack kernel:batches: sockets go one by one, by epoll: HTTP/3 goes over UDP";
        assert_eq!(told, ["of the plan", refused]);
        assert_eq!(own_stack::name(&plan, &prepared), "epoll");
        let fleet: Arc<dyn Elsewhere> = Arc::new(Others);
        prepared.hand_to(Some(&fleet));
        assert_eq!(prepared.told().collect::<Vec<_>>(), ["of the plan"]);
        assert_eq!(own_stack::name(&plan, &prepared), "kernel TCP");
        plan.driver.stack = StackChoice::Kernel;
        assert_eq!(own_stack::name(&plan, &prepared), "epoll");
    }

    /// The bounds of one load are not those of the next.
    #[test]
    fn bounds_are_of_what_is_carried_out() {
        let open = |rate: f64| {
            let mut plan = Plan::for_url("http://127.0.0.1:1/".parse().expect("a URL"));
            let arrivals = plan::Arrivals::constant(units::Rate(rate));
            plan.load =
                Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
            plan
        };
        let bounds = |plan: &Plan| match plan.load {
            Load::Open { connections_max, queue_max, .. } => (connections_max, queue_max),
            Load::Closed { .. } => (None, None),
        };
        let typed = open(10.0);
        let prepared = prepare(&typed, &[]).expect("limits that can be kept");
        let (connections, queue) = bounds(&prepared.plan);
        assert!(connections.is_some(), "{connections:?}");
        // a timeout's worth of arrivals
        assert_eq!(queue, Some(300));
        assert_eq!(typed, open(10.0));
        let step = prepared.refit(open(20.0)).expect("limits that can be kept");
        // how many connections fit depends on what else this process has open
        let (connections, queue) = bounds(&step.plan);
        assert!(connections.is_some() && queue == Some(600), "{connections:?}, {queue:?}");
    }

    /// A run that goes one way in some of its trials and another way in others compares nothing.
    #[test]
    fn trials_go_the_way_of_the_first_call() {
        let plan = by_batches();
        for sockets in [SocketLoop::Epoll, SocketLoop::Ring] {
            let prepared = Prepared { sockets, ..Prepared::of(&plan) };
            let trial = prepared.refit(plan.clone()).expect("limits that can be kept");
            assert_eq!(trial.sockets, sockets);
        }
    }
}
