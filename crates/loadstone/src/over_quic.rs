//! QUIC over this machine's sockets.

use plan::{HttpVersion, Migrate, Plan};
use quic::{Limits, Moves, Quic};
use reactor::Reactor;

/// What one worker needs to make QUIC connections.
pub(crate) struct Carrier {
    factory: tls::Factory,
    limits: Limits,
    moves: Option<Moves>,
}

/// `None`: the plan's connections are none of QUIC's.
pub(crate) fn carrier(plan: &Plan, client: &tls::Client) -> Option<Carrier> {
    let limits = Limits {
        stream_window: plan.http2.stream_window,
        connection_window: plan.http2.connection_window,
    };
    let spoken = plan.request.version == HttpVersion::Http3;
    let moves = plan.connection.migrate.map(|when| match when {
        Migrate::Every(span) => Moves::Every(span),
        Migrate::Calls(count) => Moves::Requests(count),
    });
    spoken.then(|| Carrier { factory: client.factory(), limits, moves })
}

impl Carrier {
    /// For single exchanges, whose windows are wide. `client` offers HTTP/3.
    pub(crate) fn of(client: &tls::Client) -> Option<Carrier> {
        let http2::SessionSettings { stream_window, connection_window, .. } =
            http2::SessionSettings::default();
        let limits = Limits { stream_window, connection_window };
        Some(Carrier { factory: client.factory(), limits, moves: None })
    }

    pub(crate) fn over(self, io: Reactor) -> Quic<Reactor> {
        let Carrier { mut factory, limits, moves } = self;
        let quic = Quic::new(io, reactor::instant(), factory.quic(), &limits, None).moving(moves);
        quic.with_users(Box::new(move |user| factory.quic_of(user)))
    }
}
