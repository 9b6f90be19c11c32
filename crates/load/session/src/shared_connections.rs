//! WebSockets that share connections of HTTP/2 or HTTP/3 over this machine's sockets.

use conduit::Io;
use plan::Plan;
use tunnel::{TunnelTerms, Tunnels};

/// Settings by which a plan's WebSockets share connections.
#[derive(Clone, Debug)]
pub(crate) struct SharedConnections {
    settings: http2::SessionSettings,
    per_connection: u32,
    tls: Option<net::tls::Client>,
}

impl SharedConnections {
    pub(crate) fn new(plan: &Plan, tls: Option<&net::tls::Client>) -> Option<SharedConnections> {
        plan.tunnels_websockets().then(|| SharedConnections {
            settings: engine::http2_settings(plan),
            per_connection: plan.websockets_per_connection(),
            tls: tls.cloned(),
        })
    }

    /// Returns the WebSockets of a worker over its sockets, or over its QUIC connections.
    pub(crate) fn wrap<I: Io>(self, io: I) -> Tunnels<I> {
        let SharedConnections { settings, per_connection, tls } = self;
        let tls = tls.map(|client| -> Box<dyn conduit::TlsFactory> { Box::new(client.factory()) });
        Tunnels::new(io, TunnelTerms { settings, per_connection, tls })
    }
}
