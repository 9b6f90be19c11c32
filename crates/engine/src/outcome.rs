//! Outcomes and ends: of a call, of a connection, of a run.

use crate::call::{Call, End, NOBODY};
use crate::connection::ConnState;
use crate::worker::Worker;
use conduit::{Close, Io, Slot};
use sample::{CallRecord, ConnectionRecord};
use stats::lives::Life;
use units::Nanos;

impl Worker {
    pub(crate) fn conclude<I: Io>(&mut self, io: &mut I, call: Call, end: End, now: Nanos) {
        self.conclude_with(io, call, end, now, None);
    }

    /// A call's outcome is known: it becomes a sample, and its user goes on.
    #[inline(always)]
    pub(crate) fn conclude_with<I: Io>(
        &mut self,
        io: &mut I,
        call: Call,
        end: End,
        now: Nanos,
        setup: Option<(Nanos, Option<Nanos>)>,
    ) {
        let mut sample = call.sample(now, &end);
        if let Some((connect, tls)) = setup {
            sample.connect = Some(connect);
            sample.tls = tls;
            self.recorder.connection_answered(now - call.sent);
        }
        self.recorder.done(&sample, end.outcome, call.is_issued());
        self.last_done = now;
        self.received = self.received.saturating_add(sample.bytes_received);
        if self.received >= self.limits.bytes {
            self.stop();
        }
        if self.setup.logging.calls {
            sample.user = self.people.user(call.user).map(|person| person.id);
            let answer = std::mem::take(&mut self.answer);
            self.log_urgent |= self.setup.logging.failures_at_once && sample.class.is_some();
            let note = if self.attended { self.tell_guide(&sample, end.outcome) } else { None };
            self.log.push(CallRecord { sample, outcome: end.outcome, answer, note });
        }
        if call.user != NOBODY {
            self.follow(io, &call, &end, now);
        }
    }

    pub(crate) fn close_kind(&self) -> Close {
        if self.setup.plan.connection.reset_on_close { Close::Reset } else { Close::Orderly }
    }

    /// Ends a connection. Its calls have been taken off before.
    pub(crate) fn close<I: Io>(&mut self, io: &mut I, slot: Slot, how: Close, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        if conn.state == ConnState::Closed {
            return;
        }
        let stood = conn.state == ConnState::Open;
        if stood
            && how == Close::Orderly
            && let Some(tls) = &mut conn.tls
        {
            tls.close();
            tls.drain(&mut conn.out);
            // a farewell: if the transport does not take it at once, it goes without
            io.write(slot, &conn.out[conn.out_at..]).ok();
        }
        conn.state = ConnState::Closed;
        conn.tls = None;
        conn.inspect = None;
        let user = std::mem::replace(&mut conn.user, NOBODY);
        let id = self.people.user(user).map(|person| person.id);
        if let Some(person) = self.people.user(user)
            && person.conn == Some(slot)
        {
            person.conn = person.more.pop();
            self.source.connection_over(person);
        } else if let Some(person) = self.people.user(user) {
            person.more.retain(|other| *other != slot);
        }
        if self.setup.logging.ends {
            self.record_connection(slot, id, now);
        }
        if stood {
            self.judge_connection(io, slot, now);
        }
        io.close(slot, how);
        self.open_count -= 1;
        self.free.push(slot);
    }

    fn record_connection(&mut self, slot: Slot, user: Option<u64>, now: Nanos) {
        let conn = &self.conns[slot as usize];
        self.ends.connections.push(ConnectionRecord {
            user,
            opened: conn.opened,
            established: conn.established,
            closed: now,
            answers: conn.served,
            class: conn.broken,
        });
    }

    /// Conformity, and what the kernel saw.
    fn judge_connection<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let conn = &mut self.conns[slot as usize];
        if !conn.calls.is_empty() {
            conn.busy += now - conn.busy_since;
        }
        let life = Life {
            answers: conn.served,
            busy: conn.busy,
            open: now - conn.established,
            asked: conn.assigned > 0,
            by_server: conn.by_server,
        };
        let threshold = self.setup.plan.measure.conforming_bps;
        let conforming = conn.bandwidth().map(|bandwidth| bandwidth > threshold);
        // asking costs a system call: of connections that carried one call, a share is asked
        let share = self.setup.plan.measure.tcp_info_share;
        let asks = share > 0.0 && (conn.served > 1 || self.facts_owed >= 1.0);
        self.facts_owed += if asks { share - self.facts_owed.min(1.0) } else { share };
        let facts = if asks { io.facts(slot) } else { None };
        self.recorder.connection_closed(facts, conforming);
        self.recorder.connection_lived(&life);
    }

    /// Whether nothing more can happen in this run.
    pub(crate) fn finished(&self, now: Nanos) -> bool {
        let quiet = self.recorder.flight() == 0 && self.queued == 0 && self.people.active == 0;
        if !quiet || self.source.next_due() != Nanos::NEVER {
            return false;
        }
        let counted = self.setup.requests_max().is_some();
        self.stopping || counted || now >= self.setup.measure_until()
    }

    pub(crate) fn close_all<I: Io>(&mut self, io: &mut I, now: Nanos) {
        for slot in 0..self.conns.len() as Slot {
            self.close(io, slot, self.close_kind(), now);
        }
    }

    /// Gives up all that is due or under way.
    pub(crate) fn abandon<I: Io>(&mut self, io: &mut I, now: Nanos) {
        self.stop();
        for slot in 0..self.conns.len() as Slot {
            self.strand(slot);
            self.close(io, slot, Close::Reset, now);
        }
        let mut calls = std::mem::take(&mut self.stranded);
        for queue in &mut self.queues {
            calls.extend(queue.drain(..));
        }
        self.queued = 0;
        for mut call in calls {
            // its user goes with it
            call.user = NOBODY;
            self.conclude(io, call, End::abandoned(), now);
        }
        assert_eq!(self.recorder.flight(), 0, "an abandoned run has nothing in flight");
    }
}
