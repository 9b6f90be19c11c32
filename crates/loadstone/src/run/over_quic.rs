//! QUIC over this machine's sockets.

use ::quic::Limits;
use plan::{HttpVersion, Plan};
use reactor::Reactor;

/// What one worker needs to make QUIC connections.
pub(crate) struct Carrier {
    handshakes: ::quic::Handshakes,
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

/// Sockets of QUIC over those of the kernel.
pub(crate) type Quic = ::quic::Quic<Reactor>;

impl Carrier {
    /// With the handshakes of a factory that offers HTTP/3.
    pub(crate) fn of_factory(factory: &tls::Factory) -> Option<Carrier> {
        Some(Carrier { handshakes: factory.quic(), limits: wide() })
    }

    /// For single exchanges, whose windows are wide. `client` offers HTTP/3.
    pub(crate) fn of(client: &tls::Client) -> Option<Carrier> {
        Some(Carrier { handshakes: client.factory().quic(), limits: wide() })
    }

    pub(crate) fn over(self, io: Reactor) -> Quic {
        ::quic::Quic::new(io, reactor::instant(), self.handshakes, &self.limits, None)
    }
}

/// Windows that are no limit.
fn wide() -> Limits {
    let http2::SessionSettings { stream_window, connection_window, .. } =
        http2::SessionSettings::default();
    Limits { stream_window, connection_window }
}
