//! WebSockets that the client closes at set times, and opens again without a call.

use super::Worker;
use crate::churn::{Reopening, Storm};
use crate::heartbeats::Timed;
use crate::speaker::ProtocolFacts;
use crate::speaker::websocket::SocketNews;
use conduit::{Close, Io, Slot};
use sample::Blame;
use units::Nanos;

impl Worker {
    fn storm(&mut self) -> Option<&mut Storm> {
        self.timed.as_mut().and_then(|timed| timed.storm.as_mut())
    }

    /// Closes and opens the WebSockets that are due; returns when the next ones are due.
    pub(super) fn churn<I: Io>(&mut self, io: &mut I, now: Nanos) -> Nanos {
        self.end_lifetimes(io, now);
        if self.storm().is_some_and(|storm| storm.begins_storm(now)) {
            self.reset_all_websockets(io, now);
        }
        while let Some(reopening) = self.storm().and_then(|storm| storm.take_retry(now)) {
            self.reopen(io, reopening, now);
        }
        self.flush_dirty(io, now);
        let Some(timed) = &mut self.timed else { return Nanos::NEVER };
        if let Some(storm) = &mut timed.storm {
            self.journal.reconnects(&storm.take_news());
        }
        let Timed { lifetimes, storm, .. } = &**timed;
        let end = lifetimes.as_ref().map_or(Nanos::NEVER, |lifetimes| lifetimes.timers.next());
        storm.as_ref().map_or(Nanos::NEVER, |storm| storm.next()).min(end)
    }

    /// Closes WebSockets at the end of their lifetimes; with messages in flight, after the last
    /// answer.
    fn end_lifetimes<I: Io>(&mut self, io: &mut I, now: Nanos) {
        let due = |worker: &mut Worker| {
            let lifetimes = worker.timed.as_mut().and_then(|timed| timed.lifetimes.as_mut());
            lifetimes.and_then(|lifetimes| lifetimes.timers.take_due(now))
        };
        while let Some((slot, generation)) = due(self) {
            self.pool.wake(slot);
            let conn = self.pool.conn_mut(slot);
            if !conn.has_generation(generation) {
                continue;
            }
            if !conn.is_idle() {
                conn.use_up();
                continue;
            }
            if !conn.has_open_socket() {
                // its handshake is outstanding
                if let Some(timed) = &mut self.timed {
                    timed.begin_lifetime(slot, generation, now);
                }
                continue;
            }
            let reopening = Reopening { endpoint: conn.endpoint(), user: conn.user() };
            self.close(io, slot, self.close_kind(), now);
            if !self.edges.is_stopping() {
                self.reopen(io, reopening, now);
            }
        }
    }

    /// Resets all WebSockets at once. Their messages in flight are sent again after the reconnect.
    /// Connections whose handshake is outstanding stay: they are not WebSockets yet.
    fn reset_all_websockets<I: Io>(&mut self, io: &mut I, now: Nanos) {
        let mut lost = Vec::new();
        for slot in self.pool.slots() {
            self.pool.wake(slot);
            let conn = self.pool.conn_mut(slot);
            if conn.is_closed() {
                continue;
            }
            if !conn.has_open_socket() {
                if let Some(storm) = self.storm() {
                    storm.spare(slot);
                }
                continue;
            }
            let reopening = Reopening { endpoint: conn.endpoint(), user: conn.user() };
            let idle = conn.is_idle();
            conn.settle_bytes();
            conn.reset_socket();
            self.pool.detach_calls(slot);
            self.close(io, slot, Close::Reset, now);
            if let Some(storm) = self.storm() {
                storm.lose();
            }
            if idle {
                lost.push(reopening);
            }
        }
        for mut call in self.pool.take_stranded() {
            call.first_byte = Nanos::ZERO;
            call.sent = Nanos::ZERO;
            // the loss was planned: it uses up no attempt
            call.tries = call.tries.saturating_sub(1);
            self.place_again(io, call, now);
        }
        for reopening in lost {
            self.reopen(io, reopening, now);
        }
    }

    /// Opens a WebSocket without a call, unless its user has one or there is no room.
    fn reopen<I: Io>(&mut self, io: &mut I, reopening: Reopening, now: Nanos) {
        let Reopening { endpoint, user } = reopening;
        if !self.pool.has_room() || self.feedback.connection_of(user).is_some() {
            return;
        }
        self.journal.connection_attempted();
        match self.open(io, endpoint, (user, false), now) {
            Ok(slot) => {
                let setup = self.setup.clone();
                let index = (u64::from(self.id) << 32) | u64::from(slot);
                self.pool.assign_call(slot);
                self.pool.conn_mut(slot).join(setup.targets.template(0), 0, index);
                if let Some(storm) = self.storm() {
                    storm.join(slot);
                }
                self.pool.list(slot);
            }
            Err(class) => {
                self.record_unopened(user, class, now);
                if let Some(storm) = self.storm() {
                    // the server did not refuse it: this machine has no port or descriptor
                    let failed = class.blame() != Blame::Driver;
                    storm.retry(reopening, failed, now);
                }
            }
        }
    }

    /// Counts a WebSocket that was opened after all were lost.
    pub(super) fn count_restored(&mut self, slot: Slot, news: &SocketNews, now: Nanos) {
        if news.counts.opened > 0
            && let Some(storm) = self.storm()
        {
            storm.open(slot, now);
        }
    }

    /// Counts a failed reconnect of a user's WebSocket, and retries it unless a call does.
    pub(super) fn note_end_in_storm(
        &mut self,
        (slot, user): (Slot, u32),
        facts: &ProtocolFacts,
        now: Nanos,
    ) {
        let ProtocolFacts::WebSocket { end, .. } = facts else { return };
        let close = end.as_ref().map(|end| end.close);
        let reopening = Reopening { endpoint: self.pool.conn(slot).endpoint(), user };
        if let Some(storm) = self.storm()
            && storm.end(slot, close)
        {
            storm.retry(reopening, true, now);
        }
    }
}
