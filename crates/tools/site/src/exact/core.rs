//! State shared by all connections of the fault loop: the script, the timers, the log.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::Arc;

use units::Nanos;

use super::Shared;
use super::outgoing::Making;
use super::outgoing::Outgoing;
use super::request::ExactRequest;
use super::slab::Id;
use super::stall::StallClock;
use crate::access::AccessLine;
use crate::counters::Counters;
use crate::head::Date;
use crate::proper::{self, PageThread, PassedConnection, SharedScript};
use crate::script::Script;
use crate::{AccessLog, Config, Faults};

/// Scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Duty {
    /// The connection's next pending response.
    Answer,
    /// Next part of a slow body.
    Drip,
    /// The end of waiting for a client to close.
    Linger,
}

/// Ordered by instant, then by the order in which they were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Timer {
    pub(super) at: Nanos,
    index: u64,
    pub(super) duty: Duty,
    pub(super) id: Id,
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) shared: Shared,
    pub(super) faults: Faults,
    pub(super) body_max: u64,
    pub(super) script: SharedScript,
    pub(super) stall: Option<StallClock>,
    /// Buffer for one read or one write.
    pub(super) scratch: Vec<u8>,
    /// The end of the last stall: a response that was due during it is late only beyond that.
    pub(super) frozen_until: Nanos,
    /// True if `die_after` is reached.
    pub(super) dead: bool,
    log: Option<AccessLog>,
    date: Date,
    timers: BinaryHeap<Reverse<Timer>>,
    timers_set: u64,
    finished: u64,
    /// Instant at which the line shared by all bodies is free.
    line_free: Nanos,
    /// Pages that this loop does not have; `None` if a fault affects bytes or whole connections.
    others: Option<proper::Common>,
    /// Server of these pages, once one of them was requested.
    page_thread: Option<PageThread>,
    pub(super) start_pages: StartPages,
}

/// Starts the server of the other pages.
type StartPages = fn(&proper::Common, &Arc<Counters>, &SharedScript) -> std::io::Result<PageThread>;

/// Size of one read, and approximate size of one write.
pub(super) const SCRATCH_LEN: usize = 64 * 1024;

impl Core {
    pub(super) fn new(config: &Config, shared: Shared) -> Core {
        let only_times = config.faults.affect_only_timing() && config.connections_max.is_none();
        Core {
            others: shared.pages.clone().filter(|_| only_times),
            page_thread: None,
            start_pages: PageThread::start,
            shared,
            faults: config.faults.clone(),
            body_max: config.body_max,
            script: SharedScript::new(Script::new(config.faults.clone(), config.seed)),
            stall: config.faults.stall.map(StallClock::new),
            scratch: vec![0; SCRATCH_LEN],
            frozen_until: Nanos::ZERO,
            dead: false,
            log: config.log.clone(),
            date: Date::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            finished: 0,
            line_free: Nanos::ZERO,
        }
    }

    /// Returns whether connections can be passed on for pages that this loop does not have.
    pub(super) fn passes_on(&self) -> bool {
        self.others.is_some()
    }

    /// Passes a connection on. It is closed, with its request unanswered, if the system has no
    /// thread or descriptor left; the next connection tries again.
    pub(super) fn pass_on(&mut self, connection: PassedConnection) {
        let Some(others) = &self.others else { return };
        if self.page_thread.is_none() {
            let counters = &self.shared.page_counters;
            self.page_thread = (self.start_pages)(others, counters, &self.script).ok();
        }
        match &self.page_thread {
            Some(thread) => thread.pass(connection),
            None => {
                self.shared.counters.requests(1);
                self.book(connection.peer, "", None, None);
            }
        }
    }

    pub(super) fn set_timer(&mut self, at: Nanos, duty: Duty, id: Id) {
        self.timers.push(Reverse(Timer { at, index: self.timers_set, duty, id }));
        self.timers_set += 1;
    }

    pub(super) fn next_timer(&self) -> Option<Nanos> {
        self.timers.peek().map(|Reverse(timer)| timer.at)
    }

    /// Returns the earliest timer, if it is due at `now`.
    pub(super) fn due_timer(&mut self, now: Nanos) -> Option<Timer> {
        if self.next_timer()? > now {
            return None;
        }
        self.timers.pop().map(|Reverse(timer)| timer)
    }

    /// Counts one more request as finished, with any outcome.
    pub(super) fn count_finished(&mut self) {
        self.finished += 1;
        self.dead |= self.faults.die_after == Some(self.finished);
    }

    /// Returns when a body of `len` bytes may start on the shared line, from `now` on.
    pub(super) fn begin_on_line(&mut self, now: Nanos, len: u64) -> Option<Nanos> {
        let rate = self.faults.weak.bandwidth?;
        let start = self.line_free.max(now);
        let span = u128::from(len) * 1_000_000_000 / u128::from(rate);
        self.line_free = start + Nanos(u64::try_from(span).unwrap_or(u64::MAX));
        Some(start)
    }

    pub(super) fn answer(
        &mut self,
        request: &ExactRequest,
        error: Option<u16>,
        last: bool,
    ) -> Outgoing {
        let making = Making {
            date: self.date.text(),
            misbehaviour: self.faults.misbehaviour,
            error,
            last,
            drips: self.faults.body_rate().is_some(),
        };
        Outgoing::answer(request, &making)
    }

    pub(super) fn refusal(&mut self, status: u16) -> Outgoing {
        Outgoing::refusal(status, self.date.text())
    }

    /// Returns whether the entries of [`Core::book`] are used, so that a peer's name is looked up.
    pub(super) fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// Counts and logs how a request ended: with a status, or without an HTTP response.
    pub(super) fn book(
        &mut self,
        peer: Option<SocketAddr>,
        request: &str,
        status: Option<u16>,
        body_len: Option<u64>,
    ) {
        match status {
            Some(status) => self.shared.counters.answers(status, 1),
            None => self.shared.counters.unanswered(),
        }
        if let Some(log) = &self.log {
            log.line(&AccessLine { peer, request, status, body_len });
        }
    }
}
