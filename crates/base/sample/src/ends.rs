//! Ends of connections and of sessions, for consumers that need each of them.

use crate::FailureClass;
use units::Nanos;

/// Record of one connection, created at its end. An instant that was never reached is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// Number of the user or session for which it was opened; `None` for any.
    pub user: Option<u64>,
    /// Start of the connect.
    pub opened: Nanos,
    /// Instant from which the first request could be sent: after the TLS handshake, if any.
    pub established: Nanos,
    pub closed: Nanos,
    /// Complete responses received on it.
    pub responses: u32,
    /// Failure that broke the connection; `None` if it was closed in order.
    pub class: Option<FailureClass>,
}

/// Record of one session, created when it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionRecord {
    pub index: u64,
    /// Due instant of the session, and instant at which its last outcome was known.
    pub intended: Nanos,
    pub ended: Nanos,
    /// Complete responses that it received, and connections opened for it.
    pub responses: u32,
    pub connections: u32,
    /// A call of the session failed, and its remaining calls were not made.
    pub failed: bool,
}

/// Connections and sessions that have ended since the last collection, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub connections: Vec<ConnectionRecord>,
    pub sessions: Vec<SessionRecord>,
}

impl Ends {
    pub fn len(&self) -> usize {
        self.connections.len() + self.sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
