//! A program built without HTTP/3 makes no QUIC connections; its options report that.

use net::reactor::Reactor;
use plan::Plan;

/// Not available in this build.
#[derive(Debug)]
pub enum Carrier {}

pub fn carrier(_plan: &Plan, _client: &net::tls::Client) -> Option<Carrier> {
    None
}

/// Type of QUIC connections, which this build does not make.
pub type Quic = Reactor;

/// Not called in this build.
pub fn network(io: Quic) -> eventloop::Network {
    eventloop::Network::Sockets(io)
}

/// Not called in this build.
pub fn shared_network(io: tunnel::Tunnels<Quic>) -> eventloop::Network {
    eventloop::Network::Tunnels(Box::new(io))
}

impl Carrier {
    pub fn from_factory(_factory: &net::tls::Factory) -> Option<Carrier> {
        None
    }

    pub fn new(_client: &net::tls::Client) -> Option<Carrier> {
        None
    }

    pub fn wrap(self, _io: Reactor) -> Reactor {
        match self {}
    }
}
