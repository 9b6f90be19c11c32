//! What falls due: arrivals, users who have thought enough, deadlines, the end of a row.

use crate::Row;
use crate::call::{Call, End, NOBODY};
use crate::conn::State;
use crate::source::{Source, lanes};
use crate::worker::{Link, Worker};
use conduit::{Close, Io, Slot};
use plan::Think;
use sample::FailureClass;
use units::Nanos;

/// A user of a closed loop whose connection failed waits at least this long before the next call,
/// so that a dead server is asked a hundred times a second by each user and not a hundred thousand.
const RETREAT: Nanos = Nanos::from_millis(10);

/// Connections opened for due calls before the next look at what can be read.
const OPENS_MAX: u32 = 16;

/// A worker is late when what falls due has waited so long.
const LATE: Nanos = Nanos::from_millis(1);

impl Worker {
    /// Issues everything whose instant has come.
    pub(crate) fn fall_due<I: Io>(&mut self, io: &mut I, now: Nanos) {
        while self.source.next_due() <= now && self.may_issue(now) {
            self.arrive(io, now);
            self.flush_dirty(io, now);
        }
        let until = if self.stopping { Nanos::NEVER } else { now };
        while let Some((at, user, count)) = self.people.rouse(until) {
            self.emit(io, user, count, at, now);
        }
        self.next_due = self.source.next_due().min(self.people.next_due());
    }

    /// Whether the next due call may be issued now. A late worker has many calls due at once. Opening
    /// a connection for each would make it and the server later still, as an open costs both about ten
    /// times a call, while answers that free connections wait to be read; that can feed on itself
    /// until no descriptor is left. So a late worker opens only when the latest look found nothing to
    /// read. What is due stays due, and its wait counts as lag.
    fn may_issue(&mut self, now: Nanos) -> bool {
        let opens_max = match (now - self.source.next_due() > LATE, self.events_before) {
            (false, _) => OPENS_MAX,
            (true, 0) => 1,
            (true, _) => 0,
        };
        self.opens_this_turn < opens_max
            || (0..self.ready.len() as u32).any(|endpoint| self.listed(endpoint).is_some())
    }

    /// One arrival of an open load: a call, or the first of a session's.
    fn arrive<I: Io>(&mut self, io: &mut I, now: Nanos) {
        let Source::Open(open) = &mut self.source else { return };
        let Some((arrival, content)) = open.take() else { return };
        if let Some(session) = &open.session {
            let cookies = self.setup.plan.request.cookies;
            let user = self.people.admit(arrival.index, session.calls, cookies);
            self.recorder.now.sessions.started += 1;
            let count = lanes(&self.setup).min(session.calls);
            self.emit(io, user, count, arrival.intended, now);
            return;
        }
        if let Some(row) = self.setup.targets.pick(content) {
            let asked = self.setup.targets.template(row).asked;
            let call = Call::new(arrival.index, row, NOBODY, arrival.intended, asked);
            self.recorder.due(call.intended);
            self.place(io, call, now);
        }
    }

    /// `count` calls of a user fall due at `intended`.
    #[inline(always)]
    pub(crate) fn emit<I: Io>(
        &mut self,
        io: &mut I,
        user: u32,
        count: u32,
        intended: Nanos,
        now: Nanos,
    ) {
        let closed = matches!(self.source, Source::Closed { .. });
        let over = closed && intended >= self.setup.measure_until();
        for _ in 0..count {
            let warm_up = self.recorder.in_warm_up(intended);
            let left = self.people.users[user as usize].left;
            if over || self.stopping || left == 0 {
                break;
            }
            let Some(index) = self.people.next_index(warm_up) else { break };
            let Some(row) = self.setup.targets.pick(index) else { break };
            let person = &mut self.people.users[user as usize];
            person.left = if left == u32::MAX { left } else { left - 1 };
            person.outstanding += 1;
            person.turns += 1;
            let asked = self.setup.targets.template(row).asked;
            self.recorder.due(intended);
            self.place(io, Call::new(index, row, user, intended, asked), now);
        }
        self.retire_if_idle(io, user, now);
    }

    /// A user with nothing outstanding and nothing to come leaves.
    pub(crate) fn retire_if_idle<I: Io>(&mut self, io: &mut I, user: u32, now: Nanos) {
        let person = &mut self.people.users[user as usize];
        if !person.active || person.outstanding + person.thinking > 0 {
            return;
        }
        let (failed, conn) = (person.failed, person.conn.take());
        if let Source::Open(_) = self.source {
            let sessions = &mut self.recorder.now.sessions;
            if failed {
                sessions.failed += 1;
            } else {
                sessions.completed += 1;
            }
            if let Some(slot) = conn {
                self.close(io, slot, self.close_kind(), now);
            }
        }
        self.people.retire(user);
    }

    /// A call of `user` has ended: when does the next one fall due?
    pub(crate) fn follow<I: Io>(&mut self, io: &mut I, user: u32, end: &End, now: Nanos) {
        let closed = matches!(self.source, Source::Closed { .. });
        let think = self.source.think();
        let (seed, group) = (self.setup.seed, self.setup.plan.connection.group);
        let Some(person) = self.people.user(user) else { return };
        person.outstanding -= 1;
        let failed = end.outcome != sample::Outcome::Succeeded;
        if failed && !closed {
            person.failed = true;
            person.left = 0;
        }
        let whole_group = group.is_none() || person.outstanding == 0;
        if person.left == 0 || !whole_group {
            return self.retire_if_idle(io, user, now);
        }
        let mut pause = match think {
            Think::None => Nanos::ZERO,
            think => think.pause(seed, person.id, person.turns),
        };
        if closed && let Some(script) = &mut self.script {
            pause = pause.max(script.pause());
        }
        if failed && end.status == 0 {
            pause = pause.max(RETREAT);
        }
        let count = if group.is_some() { lanes(&self.setup).min(person.left) } else { 1 };
        if pause.is_zero() {
            self.emit(io, user, count, now, now);
        } else {
            self.people.think(now + pause, user, count);
            self.next_due = self.next_due.min(now + pause);
        }
    }

    /// Deadlines that have passed: of connections, then of calls still in a queue.
    pub(crate) fn expire<I: Io>(&mut self, io: &mut I, now: Nanos) {
        while let Some(alarm) = self.timers.pop_until(now) {
            let conn = &mut self.conns[alarm.slot as usize];
            if conn.generation != alarm.generation || conn.armed != alarm.at {
                continue;
            }
            conn.armed = Nanos::NEVER;
            if conn.deadline(&self.setup.plan.timeouts) <= now {
                self.time_out(io, alarm.slot, now);
            } else {
                self.arm(alarm.slot);
            }
        }
        let limit = self.setup.plan.timeouts.call;
        for row in 0..self.queues.len() {
            while self.queues[row].front().is_some_and(|call| call.intended + limit <= now) {
                let Some(call) = self.queues[row].pop_front() else { break };
                self.queued -= 1;
                self.conclude(io, call, End::timed_out(FailureClass::QueueTimeout), now);
            }
        }
    }

    /// Makes sure that the connection is looked at by its deadline.
    #[inline]
    pub(crate) fn arm(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot as usize];
        let at = conn.deadline(&self.setup.plan.timeouts);
        if at < conn.armed {
            conn.armed = at;
            self.timers.push(at, slot, conn.generation);
        }
    }

    /// A limit passed on a connection: its first call timed out, and it cannot be used any more.
    fn time_out<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let limits = &self.setup.plan.timeouts;
        let conn = &mut self.conns[slot as usize];
        let Some(call) = conn.calls.pop_front() else { return };
        let class = if call.intended + limits.call <= now {
            FailureClass::ClientTimeout
        } else if conn.state < State::Open {
            FailureClass::ConnectTimeout
        } else if call.first_byte.is_zero() && limits.first_byte.is_some() {
            FailureClass::FirstByteTimeout
        } else {
            FailureClass::ProgressTimeout
        };
        let answer = std::mem::take(&mut conn.kept);
        self.strand(slot);
        self.close(io, slot, Close::Reset, now);
        self.replace_stranded(io, now);
        self.answer = answer;
        self.conclude(io, call, End::timed_out(class), now);
    }

    /// Ends a row of the time series.
    pub(crate) fn end_row<I: Io>(
        &mut self,
        io: &mut I,
        link: &mut dyn Link,
        now: Nanos,
        last: bool,
    ) {
        let spun = io.spin();
        self.recorder.now.spin += spun - self.spun;
        self.spun = spun;
        let clear = std::mem::take(&mut self.spare);
        let snapshot = self.recorder.swap(now, clear);
        let row = Row {
            worker: self.id,
            start: self.row_start,
            end: now,
            edge: self.row_end,
            snapshot,
            open_connections: u64::from(self.open_count),
            in_flight: self.recorder.flight(),
            last_done: self.last_done,
            connections_peak: u64::from(self.connections_peak),
            cpu: Nanos::ZERO,
            passed: Nanos::ZERO,
            last,
        };
        self.connections_peak = self.open_count;
        self.spare = link.row(row);
        if !self.log.is_empty() {
            link.log(&mut self.log);
        }
        self.row_start = now;
        let interval = Nanos(self.setup.plan.measure.interval.0.max(1));
        while self.row_end <= now {
            self.row_end += interval;
        }
    }
}
