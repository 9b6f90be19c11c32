//! QUIC over this machine's sockets.

use ::quic::{Limits, Moves};
use net::reactor::Reactor;
use plan::{HttpVersion, Migrate, Plan};

/// QUIC state of one worker.
pub struct Carrier {
    handshakes: ::quic::Handshakes,
    /// Enables crafted connections, which only torture uses.
    by_hand: Option<::quic::session::HandSessions>,
    /// Enables connections of users that resume only their own sessions.
    users: Option<net::tls::Factory>,
    limits: Limits,
    moves: Option<Moves>,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier").finish_non_exhaustive()
    }
}

/// Returns the carrier of a plan over HTTP/3; `None` for other plans.
pub fn carrier(plan: &Plan, client: &net::tls::Client) -> Option<Carrier> {
    let limits = Limits {
        stream_window: plan.http2.stream_window,
        connection_window: plan.http2.connection_window,
        search_mtu: may_upload(plan),
        keeps_alive: plan.tunnels_websockets(),
    };
    let negotiated = plan.request.version == HttpVersion::Http3;
    let moves = plan.connection.migrate.map(|when| match when {
        Migrate::Every(span) => Moves::Every(span),
        Migrate::Calls(count) => Moves::Requests(count),
    });
    negotiated.then(|| {
        let factory = client.factory();
        Carrier { handshakes: factory.quic(), by_hand: None, users: Some(factory), limits, moves }
    })
}

/// Returns whether some requests may be larger than a datagram or two.
fn may_upload(plan: &Plan) -> bool {
    let of_targets =
        plan.targets.iter().any(|target| target.body.is_some() || target.raw.is_some());
    let journeys = plan.journeys.is_some() || plan.script.is_some();
    plan.request.body.is_some() || of_targets || journeys || plan.is_websocket()
}

/// QUIC sockets over the kernel's.
pub type Quic = ::quic::Quic<Reactor>;

/// Returns the network of a load.
pub fn network(io: Quic) -> eventloop::Network {
    eventloop::Network::Quic(Box::new(io))
}

/// Returns the network of a load whose WebSockets share connections.
pub fn shared_network(io: tunnel::Tunnels<Quic>) -> eventloop::Network {
    eventloop::Network::QuicTunnels(Box::new(io))
}

impl Carrier {
    /// Uses the handshakes of a factory that offers HTTP/3.
    pub fn from_factory(factory: &net::tls::Factory) -> Option<Carrier> {
        let by_hand = Some(factory.quic_by_hand());
        let handshakes = factory.quic();
        Some(Carrier { handshakes, by_hand, users: None, limits: unlimited_windows(), moves: None })
    }

    /// Creates settings for single exchanges: the windows are large, and PING frames keep connections
    /// open while nothing is sent. `client` offers HTTP/3.
    pub fn new(client: &net::tls::Client) -> Option<Carrier> {
        let mut carrier = Carrier::from_factory(&client.factory())?;
        carrier.limits.keeps_alive = true;
        Some(carrier)
    }

    pub fn wrap(self, io: Reactor) -> Quic {
        let Carrier { handshakes, by_hand, users, limits, moves } = self;
        let quic = ::quic::Quic::new(io, net::reactor::instant(), handshakes, &limits, None);
        let quic = quic.moving(moves);
        let quic = match by_hand {
            Some(sessions) => quic.by_hand(sessions),
            None => quic,
        };
        match users {
            Some(mut users) => quic.with_users(Box::new(move |user| users.quic_of(user))),
            None => quic,
        }
    }
}

/// Returns windows that do not limit the transfer.
fn unlimited_windows() -> Limits {
    let http2::SessionSettings { stream_window, connection_window, .. } =
        http2::SessionSettings::default();
    Limits { stream_window, connection_window, search_mtu: false, keeps_alive: false }
}
