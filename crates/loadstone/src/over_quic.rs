//! QUIC over this machine's sockets.

use plan::{HttpVersion, Plan};
use quic::{Limits, Quic};
use reactor::Reactor;

/// What one worker needs to make QUIC connections.
pub(crate) struct Carrier {
    handshakes: quic::Handshakes,
    limits: Limits,
}

/// `None`: the plan's connections are none of QUIC's.
pub(crate) fn carrier(plan: &Plan, client: &tls::Client) -> Option<Carrier> {
    let limits = Limits {
        stream_window: plan.http2.stream_window,
        connection_window: plan.http2.connection_window,
    };
    let spoken = plan.request.version == HttpVersion::Http3;
    spoken.then(|| Carrier { handshakes: client.factory().quic(), limits })
}

impl Carrier {
    /// For single exchanges, whose windows are wide. `client` offers HTTP/3.
    pub(crate) fn of(client: &tls::Client) -> Option<Carrier> {
        let http2::SessionSettings { stream_window, connection_window, .. } =
            http2::SessionSettings::default();
        let limits = Limits { stream_window, connection_window };
        Some(Carrier { handshakes: client.factory().quic(), limits })
    }

    pub(crate) fn over(self, io: Reactor) -> Quic<Reactor> {
        Quic::new(io, reactor::instant(), self.handshakes, &self.limits, None)
    }
}
