//! One worker's store of sessions that can be resumed.
//!
//! rustls's own store keeps eight TLS 1.3 tickets per server. A ticket is used once (RFC 8446
//! §C.4), so a worker that opens sixty connections at a time would resume a few of them and run
//! full handshakes for the rest. This store keeps as many as a worker may need at once, bounded by
//! number of servers and of tickets.

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Servers remembered; the oldest is forgotten first.
const SERVERS_MAX: usize = 32;
/// Maximum number of TLS 1.3 tickets kept for one server; the oldest is dropped first.
const TICKETS_MAX: usize = 1024;

/// Session tickets by server. The trait requires the lock, which is never contended, because a
/// store belongs to one worker.
#[derive(Default)]
pub(crate) struct Tickets {
    servers: Mutex<VecDeque<ServerTickets>>,
}

struct ServerTickets {
    name: ServerName<'static>,
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl Tickets {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ServerTickets>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn edit(&self, name: ServerName<'static>, change: impl FnOnce(&mut ServerTickets)) {
        let mut servers = self.lock();
        if let Some(server) = servers.iter_mut().find(|server| server.name == name) {
            return change(server);
        }
        if servers.len() == SERVERS_MAX {
            servers.pop_front();
        }
        let mut server = ServerTickets { name, group: None, tls12: None, tls13: VecDeque::new() };
        change(&mut server);
        servers.push_back(server);
    }

    fn find<T>(
        &self,
        name: &ServerName<'_>,
        look: impl FnOnce(&mut ServerTickets) -> Option<T>,
    ) -> Option<T> {
        self.lock().iter_mut().find(|server| server.name == *name).and_then(look)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.edit(name, |server| server.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.find(name, |server| server.group)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.edit(name, |server| server.tls12 = Some(value));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.find(name, |server| server.tls12.clone())
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.find(name, |server| server.tls12.take());
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.edit(name, |server| {
            if server.tls13.len() == TICKETS_MAX {
                server.tls13.pop_front();
            }
            server.tls13.push_back(value);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        // the newest lives longest
        self.find(name, |server| server.tls13.pop_back())
    }
}

impl fmt::Debug for Tickets {
    /// Formats without the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("servers", &self.lock().len()).finish()
    }
}
