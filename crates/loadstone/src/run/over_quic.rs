//! QUIC over this machine's sockets.

use plan::{HttpVersion, Plan};
use quic::{Limits, Quic};
use reactor::Reactor;

/// What one worker needs to make QUIC connections.
pub(crate) struct Carrier {
    factory: tls::Factory,
    limits: Limits,
}

/// `None`: the plan's connections are none of QUIC's.
pub(crate) fn carrier(plan: &Plan, client: &tls::Client) -> Option<Carrier> {
    let limits = Limits {
        stream_window: plan.http2.stream_window,
        connection_window: plan.http2.connection_window,
    };
    let spoken = plan.request.version == HttpVersion::Http3;
    spoken.then(|| Carrier { factory: client.factory(), limits })
}

impl Carrier {
    /// For single exchanges, whose windows are wide. `client` offers HTTP/3.
    pub(crate) fn of(client: &tls::Client) -> Option<Carrier> {
        let http2::SessionSettings { stream_window, connection_window, .. } =
            http2::SessionSettings::default();
        let limits = Limits { stream_window, connection_window };
        Some(Carrier { factory: client.factory(), limits })
    }

    pub(crate) fn over(self, io: Reactor) -> Quic<Reactor> {
        let Carrier { mut factory, limits } = self;
        let quic = Quic::new(io, reactor::instant(), factory.quic(), &limits, None);
        quic.with_users(Box::new(move |user| factory.quic_of(user)))
    }
}
