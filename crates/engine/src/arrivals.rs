//! What falls due: arrivals, users who have thought enough, deadlines, the end of a row.

use crate::Row;
use crate::call::{Call, End, NOBODY};
use crate::connection::ConnState;
use crate::source::{Source, lanes};
use crate::worker::{Link, Worker};
use conduit::{Close, Io, Slot};
use plan::Think;
use sample::FailureClass;
use units::Nanos;

/// Keeps the next call of a user whose call failed out of the turn in which it failed: a server that
/// refuses at once must not be asked from within its own refusal.
const NEXT_TURN: Nanos = Nanos(1);

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
        self.place_repeated(io, now);
        let again = if self.again.is_empty() { Nanos::NEVER } else { now };
        self.next_due = self.source.next_due().min(self.people.next_due()).min(again);
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
        if open.session.is_some() {
            let cookies = self.setup.plan.request.cookies;
            let calls = self.setup.session_calls(arrival.index);
            let user = self.people.admit(arrival.index, calls, cookies);
            self.people.users[user as usize].started = arrival.intended;
            self.recorder.now.sessions.started += 1;
            let count = self.step(user).0;
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
        if !self.one_by_one && self.guided.is_some() {
            return self.emit_errand(io, user, intended, now);
        }
        let closed = matches!(self.source, Source::Closed { .. });
        let over = closed && intended >= self.setup.measure_until();
        for _ in 0..count {
            let warm_up = self.recorder.in_warm_up(intended);
            let left = self.people.users[user as usize].left;
            if over || self.stopping || left == 0 {
                break;
            }
            let Some(index) = self.people.next_index(warm_up) else { break };
            let row = if self.one_by_one {
                self.setup.targets.pick(index)
            } else {
                self.row_of(user, index)
            };
            let Some(row) = row else { break };
            let person = &mut self.people.users[user as usize];
            person.left = if left == u32::MAX { left } else { left - 1 };
            person.outstanding += 1;
            person.turns += 1;
            let asked = self.setup.targets.template(row).asked;
            self.recorder.due(intended);
            self.place(io, Call::new(index, row, user, intended, asked), now);
        }
        // nearly always false, and then the call is saved
        if self.people.users[user as usize].outstanding == 0 {
            self.retire_if_idle(io, user, now);
        }
    }

    /// A user with nothing outstanding and nothing to come leaves.
    pub(crate) fn retire_if_idle<I: Io>(&mut self, io: &mut I, user: u32, now: Nanos) {
        let person = &mut self.people.users[user as usize];
        if !person.active || person.outstanding + person.thinking > 0 {
            return;
        }
        let (failed, conn, more) =
            (person.failed, person.conn.take(), std::mem::take(&mut person.more));
        if let Source::Open(open) = &mut self.source {
            open.session_over(now);
            self.next_due = self.next_due.min(open.next_due());
            if self.setup.logging.ends {
                self.ends.sessions.push(person.record(now));
            }
            let sessions = &mut self.recorder.now.sessions;
            if failed {
                sessions.failed += 1;
            } else {
                sessions.completed += 1;
            }
            for slot in conn.into_iter().chain(more) {
                self.close(io, slot, self.close_kind(), now);
            }
        }
        self.people.retire(user);
    }

    /// A call of a user has ended: when does the next one fall due?
    pub(crate) fn follow<I: Io>(&mut self, io: &mut I, call: &Call, end: &End, now: Nanos) {
        let user = call.user;
        let closed = matches!(self.source, Source::Closed { .. });
        let group = self.setup.plan.connection.group;
        let failed = end.outcome != sample::Outcome::Succeeded;
        let Some(person) = self.people.user(user) else { return };
        person.answers += u32::from(end.status != 0);
        if failed && end.outcome == sample::Outcome::Failed && self.source.retries(person) {
            person.retries += 1;
            return self.repeat(call, now);
        }
        person.outstanding -= 1;
        if failed && !closed {
            person.failed = true;
            person.left = 0;
        }
        let whole_group =
            (group.is_none() && !self.source.is_scripted()) || person.outstanding == 0;
        if person.left == 0 || !whole_group {
            return self.retire_if_idle(io, user, now);
        }
        let (count, mut pause) = if self.one_by_one {
            (1, Nanos::ZERO)
        } else if self.guided.is_some() {
            match self.guided_pause(user, now) {
                Some(wait) => (1, wait),
                None => return self.retire_if_idle(io, user, now),
            }
        } else {
            self.step(user)
        };
        if closed && let Some(script) = &mut self.script {
            pause = pause.max(script.pause());
        }
        if closed && failed && end.status == 0 {
            // no byte of the request was sent: there was no connection to send it on
            let unopened = call.sent.is_zero();
            let least =
                if unopened { self.setup.plan.connection.reconnect_pause } else { NEXT_TURN };
            pause = pause.max(least).max(NEXT_TURN);
        }
        if pause.is_zero() {
            self.emit(io, user, count, now, now);
        } else {
            self.people.think(now + pause, user, count);
            self.next_due = self.next_due.min(now + pause);
        }
    }

    /// How many calls the user makes next, and the pause before them.
    fn step(&self, user: u32) -> (u32, Nanos) {
        let person = &self.people.users[user as usize];
        if let Some(step) = self.setup.script(person.id, person.turns) {
            let lead = step.first && self.source.leads();
            return (if lead { 1 } else { step.rest }, step.pause);
        }
        let think = || match self.source.think() {
            Think::None => Nanos::ZERO,
            think => think.pause(self.setup.seed, person.id, person.turns),
        };
        if self.setup.plan.connection.group.is_none() {
            let first = if person.turns == 0 { lanes(&self.setup) } else { 1 };
            return (first.min(person.left), think());
        }
        let group = u64::from(lanes(&self.setup));
        let into = person.turns % group;
        if into > 0 {
            // the lead's answer is there: the rest of its group follows at once
            return (((group - into) as u32).min(person.left), Nanos::ZERO);
        }
        let count = if self.source.leads() { 1 } else { group as u32 };
        (count.min(person.left), think())
    }

    /// The row of the target list that the user's next call goes to.
    fn row_of(&self, user: u32, index: u64) -> Option<u32> {
        let person = &self.people.users[user as usize];
        match self.setup.script(person.id, person.turns) {
            Some(step) => Some(step.target),
            None => self.setup.targets.pick(index),
        }
    }

    /// A session's failed call falls due again with the next look at what is due: a server that
    /// refuses at once must not be asked from within its own refusal. It stays outstanding.
    fn repeat(&mut self, call: &Call, now: Nanos) {
        let index = self.people.next_index(self.recorder.in_warm_up(now)).unwrap_or(call.index);
        let asked = self.setup.targets.template(call.target).asked;
        self.again.push_back(Call::new(index, call.target, call.user, now, asked));
        self.next_due = Nanos::ZERO;
    }

    fn place_repeated<I: Io>(&mut self, io: &mut I, now: Nanos) {
        for _ in 0..self.again.len() {
            let Some(call) = self.again.pop_front() else { break };
            self.recorder.due(call.intended);
            self.place(io, call, now);
        }
    }

    /// Deadlines that have passed: of connections, then of calls still in a queue.
    pub(crate) fn expire<I: Io>(&mut self, io: &mut I, now: Nanos) {
        while let Some(alarm) = self.deadlines.pop_until(now) {
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
            self.deadlines.push(at, slot, conn.generation);
        }
    }

    /// A limit passed on a connection: its first call timed out, and it cannot be used any more.
    fn time_out<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        let limits = &self.setup.plan.timeouts;
        let conn = &mut self.conns[slot as usize];
        let Some(call) = conn.calls.pop_front() else { return };
        let class = if call.intended + limits.call <= now {
            FailureClass::ClientTimeout
        } else if conn.state < ConnState::Open {
            FailureClass::ConnectTimeout
        } else if call.first_byte.is_zero() && limits.first_byte.is_some() {
            FailureClass::FirstByteTimeout
        } else {
            FailureClass::ProgressTimeout
        };
        let answer = std::mem::take(&mut conn.kept);
        conn.broken = Some(class);
        self.people.fail_session(call.user, &self.source);
        self.strand(slot);
        self.close(io, slot, Close::Reset, now);
        self.replace_stranded(io, now);
        self.answer = answer;
        self.conclude(io, call, End::timed_out(class), now);
    }

    /// Ends the beat or the row that is over.
    #[cold]
    pub(crate) fn pass_edge<I: Io>(&mut self, io: &mut I, link: &mut dyn Link, now: Nanos) {
        if now >= self.row_end {
            self.end_row(io, link, now, false);
        }
        self.edge = self.recorder.beat(now).min(self.row_end);
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
        if !self.ends.is_empty() {
            link.ends(&mut self.ends);
        }
        self.row_start = now;
        let interval = Nanos(self.setup.plan.measure.interval.0.max(1));
        while self.row_end <= now {
            self.row_end += interval;
        }
    }
}
