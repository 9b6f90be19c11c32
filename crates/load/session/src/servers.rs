//! The servers of a plan, with resolved names and prepared TLS.

use crate::caller::{HTTP1, Meet};
use anyhow::{Context, Result, bail};
use conduit::Peer;
use engine::{Endpoint, connect_request, endpoint_key};
use plan::{AddressFamily, HttpVersion, Plan, TlsPlan, TlsVersions};
use record::run::Resolved;
use std::net::SocketAddr;
use url::Url;

/// Default ALPN protocols.
const OFFERED: [&str; 2] = [http2::ALPN, HTTP1];

/// Addresses of the servers, and the names to call them by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) resolved: Vec<Resolved>,
    pub(crate) tls: Option<net::tls::Client>,
}

impl Servers {
    /// Looks up the server of this URL, unless it is known.
    ///
    /// # Errors
    /// Fails if a name has no address.
    pub(crate) fn add(&mut self, plan: &Plan, url: &Url) -> Result<()> {
        let key = endpoint_key(url);
        if self.endpoints.iter().all(|endpoint| endpoint.key != key) {
            self.endpoints.push(endpoint(plan, url, key, &mut self.resolved)?);
        }
        Ok(())
    }

    /// Prepares TLS if one of the servers uses it.
    ///
    /// # Errors
    /// Fails if TLS settings cannot be used.
    pub(crate) fn prepare_tls(&mut self, plan: &Plan) -> Result<()> {
        // connections that WebSockets share use TLS below their endpoint
        let below = |peer: &Peer| matches!(peer, Peer::Tunnel { name: Some(_), .. });
        let secure =
            |endpoint: &Endpoint| endpoint.tls_name.is_some() || endpoint.peers.iter().any(below);
        let quic = plan.request.version == HttpVersion::Http3;
        match quic || self.endpoints.iter().any(secure) {
            true => self.expect_tls(plan),
            false => Ok(()),
        }
    }

    /// Prepares TLS for servers that are not known yet.
    ///
    /// # Errors
    /// Fails if TLS settings cannot be used.
    pub(crate) fn expect_tls(&mut self, plan: &Plan) -> Result<()> {
        if self.tls.is_none() {
            self.tls = Some(tls_client(plan)?);
        }
        Ok(())
    }

    /// Prepares TLS again, for the negotiated protocol.
    ///
    /// # Errors
    /// Fails if TLS settings cannot be used.
    pub(crate) fn renew_tls(&mut self, plan: &Plan) -> Result<()> {
        self.tls = Some(tls_client(plan)?);
        Ok(())
    }
}

/// Returns a sentence for each pattern that groups no URLs.
pub(crate) fn unmatched(plan: &Plan) -> impl Iterator<Item = String> {
    let count = plan.targets.len();
    plan.measure.folds.unmatched().map(move |fold| {
        let list = if count == 1 { "the only URL".into() } else { format!("any of {count} URLs") };
        format!(
            "--fold {}: it does not match {list}, or an earlier pattern matches first; it gets no row",
            units::quoted(&fold.text)
        )
    })
}

/// Looks up the endpoint of a URL that a run discovers.
///
/// # Errors
/// Fails if a name has no address, or the URL has no name.
pub fn endpoint_of(plan: &Plan, url: &Url) -> Result<Endpoint> {
    endpoint(plan, url, endpoint_key(url), &mut Vec::new())
}

/// Returns the endpoint of a URL whose host has this address. A proxy and a Unix socket keep their
/// own.
///
/// # Errors
/// As [`endpoint_of`].
pub(crate) fn endpoint_at(plan: &Plan, url: &Url, address: SocketAddr) -> Result<Endpoint> {
    if plan.connection.unix.is_some() || plan.connection.proxy.is_some() {
        return endpoint_of(plan, url);
    }
    endpoint_to(plan, url, endpoint_key(url), vec![Peer::Tcp(address)])
}

/// Returns the function that finds endpoints for single exchanges, by the rules of a plan.
pub(crate) fn endpoint_finder(plan: &Plan) -> Meet {
    let plan = plan.clone();
    Box::new(move |url| endpoint_of(&plan, url).map_err(|error| format!("{error:#}")))
}

/// Checks that this machine has the cores and local addresses that the plan names.
///
/// # Errors
/// Fails for the first that this machine does not have.
pub(crate) fn check_this_machine(plan: &Plan) -> Result<()> {
    let cores = host::cpu::affinity();
    if let Some(core) = plan.driver.cpus.iter().find(|core| !cores.contains(core)) {
        let list: Vec<String> = cores.iter().map(u32::to_string).collect();
        bail!("--cpus names core {core}, and this process may use {}", list.join(", "));
    }
    for address in &plan.connection.bind {
        // port 0: any free port; the socket is closed immediately
        std::net::TcpListener::bind((*address, 0)).with_context(|| {
            format!("--bind {address} is not an address of this machine (see `ip address`)")
        })?;
    }
    Ok(())
}

fn endpoint(plan: &Plan, url: &Url, key: String, resolved: &mut Vec<Resolved>) -> Result<Endpoint> {
    let (host, port) = host_and_port(url)?;
    let peers = match (&plan.connection.unix, &plan.connection.proxy) {
        (Some(path), _) => vec![Peer::Unix(path.clone())],
        (None, Some(proxy)) => {
            let host = proxy.host_str().context("--proxy names no host")?;
            addresses(plan, host, proxy.port_or_known_default().unwrap_or(80), resolved)?
        }
        (None, None) => addresses(plan, host, port, resolved)?,
    };
    endpoint_to(plan, url, key, peers)
}

fn host_and_port(url: &Url) -> Result<(&str, u16)> {
    let host = url.host_str().with_context(|| format!("{url} names no host"))?;
    Ok((host, url.port_or_known_default().unwrap_or(80)))
}

/// Returns the endpoint of a URL at these peers.
fn endpoint_to(plan: &Plan, url: &Url, key: String, peers: Vec<Peer>) -> Result<Endpoint> {
    let (host, port) = host_and_port(url)?;
    let secure = plan::is_secure(url);
    let via = plan.connection.proxy.as_ref();
    let tunnel = match via {
        Some(proxy) if secure => Some(
            connect_request(plan, &format!("{host}:{port}"), proxy)
                .map_err(|error| anyhow::anyhow!("--proxy: {error}"))?,
        ),
        _ => None,
    };
    let name = plan.tls.server_name.clone().unwrap_or_else(|| host.to_owned());
    let is_socket = plan::is_websocket_url(url);
    let shared = is_socket && plan.tunnels_websockets();
    // a script opens WebSockets by an upgrade of HTTP/1.1
    let is_upgraded = is_socket && !shared;
    if plan.request.version == HttpVersion::Http3 && secure && !is_upgraded {
        let endpoint = over_udp(key, &peers, &name);
        return Ok(if shared { sharing(endpoint, None) } else { endpoint });
    }
    let tls_name = secure.then_some(name);
    if shared && plan.request.version == HttpVersion::Http3 {
        bail!("{url} cannot be reached over HTTP/3, which always uses TLS; write wss://");
    }
    if shared {
        let endpoint = Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false };
        return Ok(sharing(endpoint, tls_name.as_ref()));
    }
    Ok(Endpoint { key, peers, tls_name, tunnel, absolute: via.is_some() && !secure })
}

/// Returns the endpoint of WebSockets that share connections to these peers. The connections use
/// TLS themselves, with the server's name.
fn sharing(endpoint: Endpoint, name: Option<&String>) -> Endpoint {
    let shared = |to| Peer::Tunnel { to: Box::new(to), name: name.cloned() };
    let peers = endpoint.peers.into_iter().map(shared).collect();
    Endpoint { peers, ..endpoint }
}

/// Returns the endpoint of an HTTP/3 server: QUIC has its own TLS.
fn over_udp(key: String, peers: &[Peer], name: &str) -> Endpoint {
    let peers = peers.iter().filter_map(Peer::address);
    let peers = peers.map(|address| Peer::Quic { address, name: name.to_owned() }).collect();
    Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false }
}

/// Returns the addresses of a host: from `--resolve`, literal, or from the system's resolver.
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
        bail!("{host} has no address of the requested family (see -4 and -6)");
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<std::net::IpAddr>().is_err() {
        let addresses = found.iter().map(SocketAddr::ip).collect();
        resolved.push(Resolved { host: host.to_owned(), addresses, took });
    }
    Ok(found.into_iter().map(Peer::Tcp).collect())
}

pub(crate) fn tls_client(plan: &Plan) -> Result<net::tls::Client> {
    Ok(net::tls::Client::new(&tls_settings(plan))?)
}

/// Returns the TLS settings of a plan for single exchanges: ALPN offers HTTP/1.1; messages of other
/// versions offer their own.
pub(crate) fn exchange_tls_settings(plan: &Plan) -> net::tls::Settings {
    net::tls::Settings { alpn: vec![HTTP1.to_owned()], ..tls_settings(plan) }
}

/// Returns the TLS settings of a plan.
pub(crate) fn tls_settings(plan: &Plan) -> net::tls::Settings {
    let wanted = &plan.tls;
    net::tls::Settings {
        exposed_keys: false,
        insecure: wanted.insecure,
        ca: wanted.ca.clone(),
        system_ca_too: false,
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
            HttpVersion::Auto => offered(wanted),
            HttpVersion::Http3 => vec![protocol::http3::ALPN.to_owned()],
        },
        groups: wanted.groups.clone(),
        ciphers: wanted.ciphers.clone(),
    }
}

/// Returns the protocols that a plan offers.
pub(crate) fn offered(tls: &TlsPlan) -> Vec<String> {
    if tls.alpn == TlsPlan::default().alpn {
        return OFFERED.map(str::to_owned).to_vec();
    }
    tls.alpn.clone()
}
