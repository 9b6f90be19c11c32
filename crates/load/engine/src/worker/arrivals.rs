//! Due events: arrivals, ends of think times, deadlines.

use super::Worker;
use crate::call::{Call, End};
use crate::feedback::{Arrived, EndedCall, Next};
use conduit::{Close, Io, Slot};
use sample::FailureClass;
use units::Nanos;
use workload::Step;

/// Maximum number of connections opened for due calls before the next read.
const OPENS_MAX: u32 = 16;

/// Maximum number of arrivals that a late worker issues before its next read. Without a limit, a
/// rate too high for the machine leaves no time to read responses.
const LATE_ARRIVALS_MAX: u32 = 256;

/// Time for which due calls have waited when a worker counts as late.
const LATE: Nanos = Nanos::from_millis(1);

impl Worker {
    /// Issues all calls that are due.
    pub(super) fn issue_due<I: Io>(&mut self, io: &mut I, now: Nanos) {
        while self.feedback.next_arrival() <= now && self.may_issue(now) {
            self.arrivals_this_turn += 1;
            self.arrive(io, now);
            self.flush_dirty(io, now);
        }
        let until = if self.edges.is_stopping() { Nanos::NEVER } else { now };
        while let Some((at, user, count)) = self.feedback.pop_due_user(until) {
            self.emit(io, user, count, at, now);
        }
        self.place_repeated(io, now);
        self.edges.set_due(self.feedback.next_due(now));
    }

    /// Returns whether the next due call may be issued now. A late worker has many calls due at
    /// once. Opening a connection for each would delay it and the server further, because an open
    /// costs both about ten times as much as a call, while responses that free connections wait to
    /// be read. This can reinforce itself until no descriptor is left. So a late worker opens
    /// connections only if the latest read found nothing. Due calls stay due, and their wait counts
    /// as lag.
    fn may_issue(&mut self, now: Nanos) -> bool {
        let late = now - self.feedback.next_arrival() > LATE;
        if late && self.arrivals_this_turn >= LATE_ARRIVALS_MAX {
            return false;
        }
        let opens_max = match (late, self.edges.had_events()) {
            (false, _) => OPENS_MAX,
            (true, false) => 1,
            (true, true) => 0,
        };
        self.pool.opens_this_turn() < opens_max || self.pool.has_listed()
    }

    /// Handles an arrival of an open load: a call, or the first call of a session.
    fn arrive<I: Io>(&mut self, io: &mut I, now: Nanos) {
        match self.feedback.arrive() {
            Some(Arrived::Call(call)) => {
                self.journal.due(call.intended);
                match self.fan_out {
                    None => self.place(io, call, now),
                    Some(_) => self.publish(io, call, now),
                }
            }
            Some(Arrived::Session { user, count, intended }) => {
                self.journal.session_started(intended);
                self.emit(io, user, count, intended, now);
            }
            None => {}
        }
    }

    /// Issues `count` calls of a user, due at `intended`.
    #[inline(always)]
    fn emit<I: Io>(&mut self, io: &mut I, user: u32, count: u32, intended: Nanos, now: Nanos) {
        if self.feedback.is_guided() {
            return self.emit_step(io, user, intended, now);
        }
        for _ in 0..count {
            let warm_up = self.journal.in_warm_up(intended);
            if self.edges.is_stopping() {
                break;
            }
            let Some((call, endpoint)) = self.feedback.next_call(user, intended, warm_up) else {
                break;
            };
            self.journal.due(call.intended);
            self.place_at(io, call, endpoint, now);
        }
        // nearly always false, and then the call is not copied
        if self.feedback.is_idle(user) {
            self.retire_if_idle(io, user, now);
        }
    }

    /// Issues the guided user's call.
    fn emit_step<I: Io>(&mut self, io: &mut I, user: u32, intended: Nanos, now: Nanos) {
        if self.feedback.has_simultaneous_calls() {
            return self.emit_steps(io, user, intended, now);
        }
        let warm_up = self.journal.in_warm_up(intended);
        let stopping = self.edges.is_stopping();
        while !stopping && let Some(next) = self.feedback.finish_pause(user, now) {
            match next {
                Next::Now(_) => {}
                Next::Later(at) => return self.edges.add_due(at),
                _ => return self.retire_if_idle(io, user, now),
            }
        }
        let Some((next_call, index)) = self.feedback.next_step(user, intended, warm_up, stopping)
        else {
            return self.retire_if_idle(io, user, now);
        };
        let (row, template) = match next_call {
            Step::Call(next_call) => (next_call.row, next_call.template),
            Step::Target { row, .. } => {
                let asked = self.setup.targets.template(row).asked;
                self.journal.due(intended);
                return self.place(io, Call::new(index, row, user, intended, asked), now);
            }
            Step::Pause { .. }
            | Step::Extend { .. }
            | Step::Cancel { .. }
            | Step::Await
            | Step::Disconnect
            | Step::Leave => return self.retire_if_idle(io, user, now),
        };
        let mut call = Call::new(index, row, user, intended, template.asked);
        call.request = Some(template);
        self.place_guided(io, call, now);
    }

    /// Asks the guide for all calls that the user can start now.
    fn emit_steps<I: Io>(&mut self, io: &mut I, user: u32, intended: Nanos, now: Nanos) {
        let warm_up = self.journal.in_warm_up(intended);
        while !self.edges.is_stopping() {
            let Some(step) = self.feedback.next_simultaneous(user, now) else { return };
            match step {
                Step::Call(next_call) => {
                    let Some(index) = self.feedback.begin_simultaneous(user, warm_up) else {
                        break;
                    };
                    let template = next_call.template;
                    let mut call = Call::new(index, next_call.row, user, intended, template.asked);
                    call.request = Some(template);
                    self.place_guided(io, call, now);
                }
                Step::Pause { wait } => {
                    let at = now + wait;
                    if self.feedback.ask_simultaneous(user, at) {
                        self.edges.add_due(at);
                    }
                    return;
                }
                Step::Extend { lane, bytes, ends } => {
                    self.extend(io, (user, lane), Some((&bytes, ends)), now);
                }
                Step::Cancel { lane } => self.extend(io, (user, lane), None, now),
                Step::Await => return,
                Step::Disconnect => {
                    for slot in self.feedback.connections_at_rest(user) {
                        self.close(io, slot, self.close_kind(), now);
                    }
                }
                Step::Target { .. } | Step::Leave => break,
            }
        }
        self.retire_if_idle(io, user, now);
    }

    /// Adds to the body of a user's request that is kept open, or abandons its call without `more`.
    /// The call fails if too many bytes wait for the server.
    fn extend<I: Io>(
        &mut self,
        io: &mut I,
        (user, lane): (u32, u32),
        more: Option<(&[u8], bool)>,
        now: Nanos,
    ) {
        for slot in self.feedback.connections_in_use(user) {
            let conn = self.pool.conn_mut(slot);
            let Some(row) = conn.open_row(user, lane) else { continue };
            self.pool.mark_dirty(slot);
            let conn = self.pool.conn_mut(slot);
            let end = match more {
                Some(more) if conn.extend(row, more) => {
                    return self.count_stream_waits(slot, None, now);
                }
                Some(_) => End::failed(FailureClass::SendQueue),
                None => End::abandoned(),
            };
            self.count_stream_waits(slot, Some(row), now);
            let conn = self.pool.conn_mut(slot);
            let Some((call, goes_on)) = conn.withdraw(row, now) else { return };
            if !goes_on {
                self.pool.detach_calls(slot);
                self.close(io, slot, Close::Reset, now);
                self.replace_stranded(io, now);
            }
            return self.conclude(io, call, end, now);
        }
    }

    /// Passes a part of a response to the guide if the call's request is kept open. Returns false
    /// for other calls, whose bodies are collected.
    pub(super) fn pass_part(&mut self, slot: Slot, row: usize, body: &[u8], now: Nanos) -> bool {
        let Some(call) = self.pool.conn(slot).call(row) else { return false };
        let (user, Some(lane)) = (call.user, call.open_lane()) else { return false };
        if !body.is_empty() {
            self.feedback.pass_part(user, lane, body);
            if self.feedback.ask_simultaneous(user, now) {
                self.edges.add_due(now);
            }
        }
        true
    }

    /// Places a call whose request determines the endpoint.
    fn place_guided<I: Io>(&mut self, io: &mut I, mut call: Call, now: Nanos) {
        let Some(template) = &mut call.request else { return };
        let pool = &mut self.pool;
        let endpoint =
            self.feedback.endpoint_of(template.url.shared(), |met| pool.add_endpoint(met));
        template.endpoint = endpoint.unwrap_or(0);
        self.journal.due(call.intended);
        match endpoint {
            Some(endpoint) if self.pool.is_socket(endpoint) => {
                self.place_on_socket(io, call, endpoint, now);
            }
            Some(_) => self.place(io, call, now),
            None => self.conclude(io, call, End::failed(FailureClass::WorkloadEnd), now),
        }
    }

    /// Removes a user with no outstanding and no due call.
    pub(super) fn retire_if_idle<I: Io>(&mut self, io: &mut I, user: u32, now: Nanos) {
        let Some(retired) = self.feedback.retire_if_idle(user, now) else { return };
        let Some((record, conns)) = retired.session else { return };
        self.edges.add_due(self.feedback.next_arrival());
        self.journal.session_ended(record);
        for slot in conns {
            self.close(io, slot, self.close_kind(), now);
        }
    }

    /// Continues after a user's call: the next one is issued now, or falls due later.
    #[inline(always)]
    pub(super) fn follow<I: Io>(&mut self, io: &mut I, ended: EndedCall, now: Nanos) {
        if self.feedback.continues(&ended) {
            self.issue_next(io, ended.user, now);
        } else {
            self.follow_the_plan(io, ended, now);
        }
    }

    /// Issues the user's next call, which falls due at once.
    #[inline(never)]
    fn issue_next<I: Io>(&mut self, io: &mut I, user: u32, now: Nanos) {
        self.emit(io, user, 1, now, now);
    }

    #[inline(never)]
    fn follow_the_plan<I: Io>(&mut self, io: &mut I, ended: EndedCall, now: Nanos) {
        let user = ended.user;
        let warm_up = self.journal.in_warm_up(now);
        match self.feedback.follow(ended, warm_up, now) {
            Next::Now(count) => self.emit(io, user, count, now, now),
            Next::Later(at) => {
                self.edges.add_due(at);
                self.release_idle_state(user);
            }
            Next::Rests(back) => self.rest(io, user, back, now),
            Next::Again => self.edges.set_due(Nanos::ZERO),
            Next::Nothing => {
                self.release_idle_state(user);
                self.retire_if_idle(io, user, now);
            }
        }
    }

    /// Releases state that a user's connections no longer need, unless calls are in flight on them.
    fn release_idle_state(&mut self, user: u32) {
        if let Some(slot) = self.feedback.connection_of(user) {
            self.pool.rest(slot);
        }
        for slot in self.feedback.further_connections_of(user) {
            self.pool.rest(*slot);
        }
    }

    /// Removes a user and closes its connections; it returns at `back`.
    fn rest<I: Io>(&mut self, io: &mut I, user: u32, back: Option<Nanos>, now: Nanos) {
        for slot in self.feedback.connections_at_rest(user) {
            let conn = self.pool.conn(slot);
            // streams of one connection may belong to several users
            if conn.user() == user && conn.is_idle() {
                self.close(io, slot, self.close_kind(), now);
            }
        }
        match back {
            Some(at) => self.edges.add_due(at),
            None => self.retire_if_idle(io, user, now),
        }
    }

    fn place_repeated<I: Io>(&mut self, io: &mut I, now: Nanos) {
        for _ in 0..self.feedback.again_count() {
            let Some(call) = self.feedback.take_again() else { break };
            self.journal.due(call.intended);
            self.place(io, call, now);
        }
    }

    /// Handles deadlines that have passed: of connections, then of calls still in a queue.
    pub(super) fn expire<I: Io>(&mut self, io: &mut I, now: Nanos) {
        while let Some(slot) = self.pool.pop_expired(now) {
            self.time_out(io, slot, now);
        }
        while let Some(call) = self.pool.dequeue_expired(now) {
            if self.setup.has_streams() {
                self.journal.waited_for_stream(call.index, now - call.intended);
            }
            self.conclude(io, call, End::timed_out(FailureClass::QueueTimeout), now);
        }
    }

    /// Records the wait for a stream of the calls whose stream has opened, and of the call in row
    /// `leaving`, which is about to be withdrawn.
    fn count_stream_waits(&mut self, slot: Slot, leaving: Option<usize>, now: Nanos) {
        let journal = &mut self.journal;
        let conn = self.pool.conn_mut(slot);
        conn.count_late_bytes(now, |index, wait| journal.waited_for_stream(index, wait));
        if let Some((index, wait)) = leaving.and_then(|row| conn.stream_wait(row, now)) {
            journal.waited_for_stream(index, wait);
        }
    }

    /// Handles a limit that passed on a connection: the call with this limit has timed out. Unless
    /// the protocol can withdraw one call, the connection is unusable.
    fn time_out<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let generation = self.pool.conn(slot).generation();
        loop {
            let conn = self.pool.conn_mut(slot);
            let Some((row, class)) = conn.expired(&self.setup.plan.timeouts, now) else { break };
            self.count_stream_waits(slot, Some(row), now);
            let conn = self.pool.conn_mut(slot);
            let Some((call, goes_on)) = conn.withdraw(row, now) else { break };
            self.feedback.fail_session(call.user);
            if !goes_on {
                self.pool.conn_mut(slot).break_with(class);
                self.pool.detach_calls(slot);
                self.close(io, slot, Close::Reset, now);
                self.replace_stranded(io, now);
            }
            self.conclude(io, call, End::timed_out(class), now);
            if !goes_on || !self.pool.conn(slot).has_generation(generation) {
                return;
            }
            self.pool.mark_dirty(slot);
        }
        self.offer(slot, now);
        self.pool.arm(slot);
    }
}
