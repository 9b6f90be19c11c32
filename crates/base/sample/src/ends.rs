//! Ends of connections and of sessions, for those who want every single one.

use crate::FailureClass;
use units::Nanos;

/// The record of one connection, made once, when it is no more. An instant that never came is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// Number of the user or session that it was opened for; `None`: for whoever came.
    pub user: Option<u64>,
    /// When the connect was begun.
    pub opened: Nanos,
    /// When the first request could go out: after TLS, where there is TLS.
    pub established: Nanos,
    pub closed: Nanos,
    /// Whole responses had from it.
    pub responses: u32,
    /// What broke it off; `None` when it was closed in order.
    pub class: Option<FailureClass>,
}

/// The record of one session, made once, when it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionRecord {
    pub index: u64,
    /// When it fell due, and when its last outcome was known.
    pub intended: Nanos,
    pub ended: Nanos,
    /// Whole responses that it got, and connections that were opened for it.
    pub responses: u32,
    pub connections: u32,
    /// A call of it failed, and what was left of it was not made.
    pub failed: bool,
}

/// Connections and sessions that have ended since they were last handed over, in the order of
/// their ends.
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
