//! WebSockets that the client closes and opens again: each after its lifetime, or all at one
//! instant.

use crate::slot_timers::SlotTimers;
use conduit::Slot;
use plan::Plan;
use sample::SocketClose;
use stats::ReconnectTally;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use units::{Nanos, Purpose, Seed, Stream};

/// Wait before another attempt if a reconnect failed and no call makes one.
const RETRY_AFTER: Nanos = Nanos::SECOND;

/// Ends of WebSockets with a limited lifetime, drawn between half and one and a half of the plan's,
/// so that WebSockets opened together do not end together.
#[derive(Debug)]
pub(crate) struct Lifetimes {
    span: Nanos,
    lengths: Stream,
    /// Ends of the connections.
    pub(crate) timers: SlotTimers,
}

impl Lifetimes {
    /// Creates the lifetimes of worker `worker`, or `None` if WebSockets have no limit.
    pub(crate) fn new(plan: &Plan, worker: u32) -> Option<Lifetimes> {
        let span = plan.websocket.live.filter(|_| plan.is_websocket())?;
        let lengths = Seed(plan.seed).stream(Purpose::Sockets, (1 << 62) - u64::from(worker));
        Some(Lifetimes { span, lengths, timers: SlotTimers::default() })
    }

    /// Notes that a connection was established.
    pub(crate) fn begin(&mut self, slot: Slot, generation: u32, now: Nanos) {
        let length = self.span.0 / 2 + self.lengths.below(self.span.0.max(1));
        self.timers.set(slot, generation, now + Nanos(length));
    }
}

/// A connection to be opened without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reopening {
    pub(crate) endpoint: u32,
    pub(crate) user: u32,
}

/// The loss of all WebSockets at one instant, and their return.
#[derive(Debug)]
pub(crate) struct Storm {
    at: Nanos,
    /// True if they were lost.
    over: bool,
    /// WebSockets that have not returned.
    missing: u64,
    /// Connections opened without a call whose handshake is outstanding.
    joining: BTreeSet<Slot>,
    /// Connections whose handshake was outstanding when the others were lost: not lost, and no
    /// return.
    spared: BTreeSet<Slot>,
    retries: BinaryHeap<Reverse<(Nanos, Reopening)>>,
    news: ReconnectTally,
}

impl Storm {
    /// Creates the storm of the plan, or `None` if the plan has no storm.
    pub(crate) fn new(plan: &Plan, measure_from: Nanos) -> Option<Storm> {
        let after = plan.websocket.storm.filter(|_| plan.is_websocket())?;
        Some(Storm {
            at: measure_from + after,
            over: false,
            missing: 0,
            joining: BTreeSet::new(),
            spared: BTreeSet::new(),
            retries: BinaryHeap::new(),
            news: ReconnectTally::default(),
        })
    }

    /// Returns the next instant at which the worker must act.
    pub(crate) fn next(&self) -> Nanos {
        let retry = self.retries.peek().map_or(Nanos::NEVER, |Reverse((at, _))| *at);
        if self.over { retry } else { self.at }
    }

    /// Returns whether all connections must be closed now; once.
    pub(crate) fn begins_storm(&mut self, now: Nanos) -> bool {
        let begins_storm = !self.over && now >= self.at;
        self.over |= begins_storm;
        begins_storm
    }

    /// Records that the storm closed a WebSocket.
    pub(crate) fn lose(&mut self) {
        self.missing += 1;
        self.news.lost += 1;
    }

    /// Records that a connection was not closed by the storm, because its handshake was
    /// outstanding.
    pub(crate) fn spare(&mut self, slot: Slot) {
        self.spared.insert(slot);
    }

    /// Records that a connection was opened without a call.
    pub(crate) fn join(&mut self, slot: Slot) {
        self.joining.insert(slot);
    }

    /// Repeats an attempt later. `failed`: the attempt counts as failed.
    pub(crate) fn retry(&mut self, reopening: Reopening, failed: bool, now: Nanos) {
        self.news.failed += u64::from(failed);
        self.retries.push(Reverse((now + RETRY_AFTER, reopening)));
    }

    /// Returns an attempt that may be repeated now.
    pub(crate) fn take_retry(&mut self, now: Nanos) -> Option<Reopening> {
        self.retries.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.retries.pop().map(|Reverse((_, reopening))| reopening)
    }

    /// Notes that a WebSocket was opened.
    pub(crate) fn open(&mut self, slot: Slot, now: Nanos) {
        if !self.spared.remove(&slot) && self.missing > 0 {
            self.joining.remove(&slot);
            self.missing -= 1;
            if self.missing == 0 {
                self.retries.clear();
            }
            self.news.times.record(now - self.at);
        }
    }

    /// Notes the end of a connection. Returns true if it had no call and was never a WebSocket.
    pub(crate) fn end(&mut self, slot: Slot, close: Option<SocketClose>) -> bool {
        let alone = self.joining.remove(&slot);
        let spared = self.spared.remove(&slot);
        let failed = matches!(close, Some(SocketClose::Refused) | None) && !spared;
        if !self.over || self.missing == 0 || !failed {
            return false;
        }
        // a retry counts it
        self.news.failed += u64::from(!alone);
        alone
    }

    /// Counts since the last query.
    pub(crate) fn take_news(&mut self) -> ReconnectTally {
        std::mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storm() -> Storm {
        let mut plan = Plan::for_url("ws://h/".parse().unwrap());
        plan.websocket.storm = Some(Nanos::SECOND);
        Storm::new(&plan, Nanos::SECOND).unwrap()
    }

    #[test]
    fn a_storm_breaks_out_once_and_counts_returns_and_failures() {
        let mut storm = storm();
        let at = |seconds: u64| Nanos::from_secs(seconds);
        assert_eq!((storm.next(), storm.begins_storm(at(1))), (at(2), false));
        assert!(storm.begins_storm(at(2)) && !storm.begins_storm(at(2)));
        (0..2).for_each(|_| storm.lose());
        (0..2).for_each(|slot| storm.join(slot));
        storm.open(0, at(3));
        assert!(storm.end(1, Some(SocketClose::Refused)));
        let reopening = Reopening { endpoint: 0, user: 7 };
        storm.retry(reopening, true, at(3));
        assert_eq!((storm.next(), storm.take_retry(at(3))), (at(4), None));
        assert_eq!(storm.take_retry(at(4)), Some(reopening));
        storm.join(5);
        storm.open(5, at(5));
        // everything has returned: later openings and failures are ordinary ones
        storm.open(6, at(6));
        assert!(!storm.end(7, None));
        let news = storm.take_news();
        assert_eq!((news.lost, news.failed, news.times.count()), (2, 1, 2));
    }

    #[test]
    fn outstanding_handshakes_and_local_errors_are_no_losses() {
        let mut storm = storm();
        let now = Nanos::from_secs(2);
        assert!(storm.begins_storm(now));
        storm.lose();
        (1..3).for_each(|slot| storm.spare(slot));
        // one handshake completes and another fails: neither counts as a reconnect
        storm.open(1, now);
        assert!(!storm.end(2, Some(SocketClose::Refused)));
        // no port was left
        let reopening = Reopening { endpoint: 0, user: 1 };
        storm.retry(reopening, false, now);
        assert_eq!(storm.take_retry(now + RETRY_AFTER), Some(reopening));
        let news = storm.take_news();
        assert_eq!((news.lost, news.failed, news.times.count()), (1, 0, 0));
        // the slots are used again
        storm.open(1, now);
        assert_eq!(storm.take_news().times.count(), 1);
    }
}
