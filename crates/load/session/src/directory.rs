//! Endpoints that guided users discover: looked up when first needed.

use crate::servers::endpoint_of;
use conduit::Peer;
use engine::{Directory, Endpoint};
use plan::{Plan, ResolveRule};
use std::net::SocketAddr;
use std::sync::Arc;
use url::Url;
use workload::{AddressRules, Guides};

/// The system's resolver, with the plan's rules.
#[derive(Debug)]
pub(crate) struct SystemResolver(pub(crate) Arc<Plan>);

impl Directory for SystemResolver {
    fn endpoint(&mut self, url: &Url) -> Option<Endpoint> {
        endpoint_of(&self.0, url).ok()
    }
}

/// The system's resolver, with the plan's rules and the address rules of guides.
#[derive(Debug)]
struct RuledResolver(Arc<Plan>, Arc<dyn AddressRules>);

impl Directory for RuledResolver {
    fn endpoint(&mut self, url: &Url) -> Option<Endpoint> {
        let RuledResolver(plan, rules) = self;
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        let mut endpoint = match rules.address(host, port) {
            None => endpoint_of(plan, url).ok()?,
            Some(to) => at_address(plan, url, (host, port), to)?,
        };
        let permitted =
            |peer: &Peer| peer.address().is_none_or(|address| rules.permits(host, address.ip()));
        endpoint.peers.retain(permitted);
        (!endpoint.peers.is_empty()).then_some(endpoint)
    }
}

/// Returns the endpoint of a URL whose host has this address.
fn at_address(
    plan: &Plan,
    url: &Url,
    (host, port): (&str, u16),
    to: SocketAddr,
) -> Option<Endpoint> {
    let mut plan = plan.clone();
    let rule = ResolveRule { host: host.to_owned(), port, address: to.ip(), zone: None };
    plan.connection.resolve = vec![rule];
    let mut endpoint = endpoint_of(&plan, url).ok()?;
    for peer in &mut endpoint.peers {
        if let Peer::Tcp(address) = peer {
            address.set_port(to.port());
        }
    }
    Some(endpoint)
}

/// Looks up the servers of the users of these guides.
pub fn directory_of(plan: Arc<Plan>, guides: &dyn Guides) -> Box<dyn Directory> {
    match guides.address_rules() {
        None => Box::new(SystemResolver(plan)),
        Some(rules) => Box::new(RuledResolver(plan, rules)),
    }
}
