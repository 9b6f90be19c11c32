//! Outcomes and ends: of a call, of a connection, of a run.

use super::Worker;
use crate::call::{Call, End, NO_USER};
use crate::feedback::EndedCall;
use conduit::{Close, Io, Slot};
use sample::{FailureClass, Note, Outcome, Sample};
use stats::StreamEnd;
use std::sync::Arc;
use units::Nanos;

impl Worker {
    pub(super) fn conclude<I: Io>(&mut self, io: &mut I, mut call: Call, end: End, now: Nanos) {
        self.conclude_with(io, &mut call, &end, now, None);
    }

    /// Concludes a call whose outcome is known: it becomes a sample, and its user continues.
    #[inline(always)]
    pub(super) fn conclude_with<I: Io>(
        &mut self,
        io: &mut I,
        call: &mut Call,
        end: &End,
        now: Nanos,
        setup: Option<(Nanos, Option<Nanos>)>,
    ) {
        let mut sample = call.sample(now, end);
        if let Some((connect, tls)) = setup {
            sample.connect = Some(connect);
            sample.tls = tls;
        }
        if self.journal.finish(&sample, end, call.is_issued()) || self.is_lost(end) {
            self.stop();
        }
        if self.journal.is_watched() {
            // a copy: if it is not needed later, the sample need not be in memory
            self.report(call, sample.clone(), end);
        }
        if let Some(intake) = call.intake.take() {
            self.reclaim(intake);
        }
        if call.user != NO_USER {
            let ended = EndedCall {
                user: call.user,
                target: call.target,
                index: call.index,
                unopened: call.sent.is_zero(),
                outcome: end.outcome,
                status: end.status,
            };
            self.follow(io, ended, now);
        }
    }

    /// Returns whether the end of the call ends the run.
    #[inline]
    fn is_lost(&self, end: &End) -> bool {
        end.outcome != Outcome::Succeeded
            && self.setup.plan.stop.at_loss
            && (end.outcome == Outcome::TimedOut || end.class.is_some_and(is_loss))
    }

    /// Counts the end of a call that expected a stream of events.
    fn end_stream(&mut self, call: &Call, end: &End, now: Nanos) {
        if self.setup.stream(call.target).is_none() {
            return;
        }
        let how = match end.outcome {
            Outcome::Succeeded => StreamEnd::Whole,
            Outcome::Failed => StreamEnd::Failed,
            Outcome::TimedOut => StreamEnd::TimedOut,
            Outcome::Dropped | Outcome::Abandoned => return,
        };
        let received = call.intake.as_ref().map(|intake| intake.marks);
        let mut marks = received.unwrap_or_default();
        marks.step = self.setup.stream_step(call.target);
        self.journal.stream_over(marks, how, call.intended, now);
    }

    /// Counts a finished call for its kind of client, reports it to the guide, and logs it.
    #[inline(never)]
    fn report(&mut self, call: &mut Call, mut sample: Sample, end: &End) {
        if !self.journal.reports_end(call.index, call.intended) {
            return;
        }
        if self.setup.body.streams() {
            self.end_stream(call, end, sample.done);
        }
        let user = self.feedback.user_id(call.user);
        if let Some(crowd) = &self.setup.crowd
            && let Some(id) = user
        {
            self.journal.of_kind(crowd.kind(id), &sample, end);
        }
        sample.user = user;
        let mut note = None;
        if self.feedback.is_attended() {
            let lane = call.request.as_ref().map_or(0, |template| template.lane);
            note = self.feedback.notify_guide(&sample, end.outcome, lane);
            self.collect_remarks();
            if let Some(template) = call.request.take() {
                self.feedback.recycle(template);
            }
        }
        if self.journal.logs_calls() {
            let status = call.intake.as_mut().and_then(|intake| intake.status.take());
            note = note.or(status.map(|status| Note(Arc::new(*status))));
            let response = call.intake.as_mut().map(|intake| intake.take_kept());
            self.journal.log_call(sample, end, response.unwrap_or_default(), note);
        }
    }

    /// Records the observations of the guide.
    pub(super) fn collect_remarks(&mut self) {
        let journal = &mut self.journal;
        self.feedback.collect_remarks(&mut |remark| journal.process(remark));
    }

    pub(super) fn close_kind(&self) -> Close {
        if self.setup.plan.connection.reset_on_close { Close::Reset } else { Close::Orderly }
    }

    /// Ends a connection whose calls have been removed before.
    pub(super) fn close<I: Io>(&mut self, io: &mut I, slot: Slot, how: Close, now: Nanos) {
        self.pool.wake(slot);
        let conn = self.pool.conn_mut(slot);
        if conn.is_closed() {
            return;
        }
        let was_open = conn.is_open();
        if was_open && how == Close::Orderly {
            conn.send_close(io, slot);
        }
        if let Some(early) = conn.early() {
            self.journal.count_early(&early);
        }
        let left = conn.take_left_over();
        conn.close();
        let user = conn.release();
        let id = self.feedback.user_id(user);
        if !left.is_empty() {
            self.feedback.end_socket(user, slot, left);
        }
        self.feedback.lose_connection(user, slot);
        if let Some(fan_out) = &mut self.fan_out {
            fan_out.lose(slot);
        }
        if self.journal.logs_ends() {
            self.journal.log_connection(self.pool.conn(slot).record(id, now));
        }
        if was_open {
            self.judge_connection(io, slot, now);
        }
        if let Some(facts) = self.pool.conn_mut(slot).take_protocol_facts() {
            self.note_end_in_storm((slot, user), &facts, now);
            self.journal.count_protocol(facts, (io, slot), now);
        }
        self.pool.close(io, slot, how);
        self.journal.connection_closed();
    }

    /// Judges conformity, and takes the kernel's counts.
    fn judge_connection<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let conn = self.pool.conn_mut(slot);
        let life = conn.life(now);
        let threshold = self.setup.plan.measure.conforming_bps;
        let conforming = conn.bandwidth().map(|bandwidth| bandwidth > threshold);
        // simulated lines are judged at their end instead
        let conforming = conforming.filter(|_| self.setup.plan.specweb99.is_none());
        let facts = if self.journal.wants_facts(life.responses) { io.facts(slot) } else { None };
        self.journal.connection_lived(&life, facts, conforming);
        if self.setup.has_streams() {
            let conn = self.pool.conn(slot);
            let peer = self.pool.endpoint(conn.endpoint()).peers.get(conn.address());
            if let Some(peer) = peer {
                self.journal.connection_to(peer.to_string(), life.responses);
            }
        }
    }

    /// Returns whether nothing more can happen in this run.
    pub(super) fn is_finished(&self, now: Nanos) -> bool {
        let settled = self.fan_out.as_ref().is_none_or(|it| it.next_deadline() == Nanos::NEVER);
        let quiet = self.journal.flight() == 0 && !self.pool.has_queued() && settled;
        if !quiet || !self.feedback.is_exhausted() {
            return false;
        }
        let counted = self.setup.requests_max().is_some() || self.feedback.ends_with_its_users();
        self.edges.is_stopping() || counted || now >= self.setup.measure_until()
    }

    pub(super) fn close_all<I: Io>(&mut self, io: &mut I, now: Nanos) {
        // each close would search a room for its member
        self.fan_out = None;
        for slot in self.pool.slots() {
            self.close(io, slot, self.close_kind(), now);
        }
    }

    /// Abandons all calls that are due or in flight.
    pub(super) fn abandon<I: Io>(&mut self, io: &mut I, now: Nanos) {
        self.stop();
        self.fan_out = None;
        for slot in self.pool.slots() {
            self.pool.conn_mut(slot).settle_bytes();
            self.pool.detach_calls(slot);
            self.close(io, slot, Close::Reset, now);
        }
        for mut call in self.pool.drain_waiting() {
            // its user and the received part of its response are removed as well
            call.user = NO_USER;
            call.intake = None;
            self.conclude(io, call, End::abandoned(), now);
        }
        assert_eq!(self.journal.flight(), 0, "an abandoned run has nothing in flight");
    }
}

/// Returns whether the transport refused or broke the call's connection.
fn is_loss(class: FailureClass) -> bool {
    matches!(
        class,
        FailureClass::Refused
            | FailureClass::Reset
            | FailureClass::SocketTimeout
            | FailureClass::OtherIo
    )
}
