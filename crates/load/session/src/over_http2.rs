//! WebSockets over HTTP/2 connections of this machine's sockets.

use net::reactor::Reactor;
use plan::Plan;
use tunnel::{TunnelTerms, Tunnels};

/// How a plan's WebSockets share connections; `None`: each has its own.
#[derive(Clone, Debug)]
pub(crate) struct SharedConnections {
    settings: http2::SessionSettings,
    per_connection: u32,
    /// The server's name and TLS.
    secure: Option<(String, net::tls::Client)>,
}

impl SharedConnections {
    pub(crate) fn of(plan: &Plan, tls: Option<&net::tls::Client>) -> Option<SharedConnections> {
        let target = plan.targets.iter().next().filter(|_| plan.tunnels_websockets())?;
        let client = tls.filter(|_| plan::is_secure(&target.url));
        let host = target.url.host_str().unwrap_or_default();
        let name = plan.tls.server_name.clone().unwrap_or_else(|| host.to_owned());
        Some(SharedConnections {
            settings: engine::http2_settings(plan),
            per_connection: plan.websockets_per_connection(),
            secure: client.map(|client| (name, client.clone())),
        })
    }

    pub(crate) fn over(self, io: Reactor) -> Tunnels<Reactor> {
        let SharedConnections { settings, per_connection, secure } = self;
        let secure = secure.map(|(name, client)| {
            let factory: Box<dyn conduit::TlsFactory> = Box::new(client.factory());
            (name, factory)
        });
        Tunnels::new(io, TunnelTerms { settings, per_connection, secure })
    }
}
