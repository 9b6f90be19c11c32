//! Endpoints that guided users discover: looked up when first needed.

use crate::servers::{endpoint_at, endpoint_of};
use conduit::Peer;
use engine::{Directory, Endpoint};
use plan::Plan;
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
            Some(to) => endpoint_at(plan, url, to).ok()?,
        };
        let permitted = |peer: &Peer| peer.address().is_none_or(|it| rules.permits(it.ip()));
        endpoint.peers.retain(permitted);
        if endpoint.peers.is_empty() {
            rules.exclude(host);
            return None;
        }
        Some(endpoint)
    }
}

/// Looks up the servers of the users of these guides.
pub fn directory_of(plan: Arc<Plan>, guides: &dyn Guides) -> Box<dyn Directory> {
    match guides.address_rules() {
        None => Box::new(SystemResolver(plan)),
        Some(rules) => Box::new(RuledResolver(plan, rules)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::HttpVersion;
    use std::net::{IpAddr, SocketAddr};

    /// Resolves every host to one address and port.
    #[derive(Debug)]
    struct OneAddress;

    const PLACE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8443);

    impl AddressRules for OneAddress {
        fn address(&self, _: &str, _: u16) -> Option<SocketAddr> {
            Some(PLACE)
        }

        fn permits(&self, address: IpAddr) -> bool {
            address == PLACE.ip()
        }

        fn exclude(&self, _: &str) {}
    }

    fn found(change: fn(&mut Plan)) -> Option<Vec<Peer>> {
        let url: Url = "https://a.example/".parse().unwrap();
        let mut plan = Plan::for_url(url.clone());
        change(&mut plan);
        let mut directory = RuledResolver(Arc::new(plan), Arc::new(OneAddress));
        directory.endpoint(&url).map(|endpoint| endpoint.peers)
    }

    #[test]
    fn the_port_of_a_rule_counts_for_every_transport() {
        assert_eq!(found(|_| {}), Some(vec![Peer::Tcp(PLACE)]));
        let quic = found(|plan| plan.request.version = HttpVersion::Http3);
        assert_eq!(quic, Some(vec![Peer::Quic { address: PLACE, name: "a.example".into() }]));
    }

    #[test]
    fn a_proxy_keeps_its_own_port() {
        let proxy = |plan: &mut Plan| {
            plan.connection.proxy = Some("http://127.0.0.1:3128".parse().unwrap());
        };
        let address: SocketAddr = "127.0.0.1:3128".parse().unwrap();
        assert_eq!(found(proxy), Some(vec![Peer::Tcp(address)]));
    }
}
