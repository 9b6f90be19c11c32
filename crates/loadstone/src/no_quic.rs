//! A program that was built without HTTP/3 makes no QUIC connections; its options say so.

use net::reactor::Reactor;
use plan::Plan;

/// There is none.
pub(crate) enum Carrier {}

pub(crate) fn carrier(_plan: &Plan, _client: &net::tls::Client) -> Option<Carrier> {
    None
}

/// Never made.
pub(crate) type Quic = Reactor;

/// Never made.
pub(crate) fn network(io: Quic) -> eventloop::Network {
    eventloop::Network::Sockets(io)
}

impl Carrier {
    pub(crate) fn of_factory(_factory: &net::tls::Factory) -> Option<Carrier> {
        None
    }

    pub(crate) fn of(_client: &net::tls::Client) -> Option<Carrier> {
        None
    }

    pub(crate) fn over(self, _io: Reactor) -> Reactor {
        match self {}
    }
}
