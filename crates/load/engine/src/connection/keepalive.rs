//! Keepalive pings of a connection with calls of gRPC.

use super::Conn;
use crate::speaker::KeptAlive;
use units::Nanos;

impl Conn {
    /// Pings the connection if it has calls in flight and received nothing for `interval`.
    pub(crate) fn keep_alive(&mut self, interval: Nanos, now: Nanos) -> KeptAlive {
        let Some(work) = self.work.as_mut().filter(|work| !work.calls.is_empty()) else {
            return KeptAlive::Later { again: now + interval };
        };
        let due = work.progress + interval;
        if now < due {
            return KeptAlive::Later { again: due };
        }
        work.speaker.keep_alive(now, work.transport.plaintext())
    }
}
