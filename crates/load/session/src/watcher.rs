//! What observes a run, and what steers it from afar.

use engine::{LateShare, Order, Row, Share};
use sample::{AgentNow, CallRecord, Ends};
use stats::{Second, Snapshot};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use units::Nanos;

/// Observes a run while it runs.
pub trait Watcher {
    fn second(&mut self, second: &Second, total: &Snapshot);
    /// The machines of a fleet, each second, before that second is told.
    fn agents(&mut self, _: &[AgentNow]) {}
    /// One worker's interval, before it is merged.
    fn row(&mut self, _row: &Row) {}
    /// Calls with their outcomes, where they are logged. `Err` ends the run.
    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()>;
    /// Connections and sessions that have ended, where they are recorded.
    fn ends(&mut self, _: &Ends) {}
    /// What the workers are to be told by the word of the watcher.
    fn order(&self) -> Order {
        Order::Go
    }
    /// What ends the load where nobody watches it from afar any more.
    fn lease(&self) -> Option<Arc<Lease>> {
        None
    }
    /// Where parts of the load come from that are taken over while the run goes on.
    fn takeovers(&self) -> Option<Arc<Takeovers>> {
        None
    }
    fn end(&mut self);
    /// Everything that was to be kept is on disk, or the error says why not.
    fn close(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Ends a load that nobody watches any more. Every worker looks at it before it issues anything, so
/// that one that was frozen for too long issues nothing when it thaws.
#[derive(Debug)]
pub struct Lease {
    /// The longest silence.
    most: Nanos,
    heard: AtomicU64,
    /// The part is another's from this instant on.
    end: AtomicU64,
    broken: AtomicBool,
}

impl Lease {
    pub fn new(most: Nanos, now: Nanos) -> Lease {
        let (heard, end) = (AtomicU64::new(now.0), AtomicU64::new(u64::MAX));
        Lease { most, heard, end, broken: AtomicBool::new(false) }
    }

    /// Whoever watches was there at the instant `at`, as is heard `now`. After too long a silence that
    /// comes too late: when the whole process was frozen, what was sent meanwhile is read first.
    pub fn renew(&self, at: Nanos, now: Nanos) {
        self.holds(now);
        self.heard.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Whether the load may go on at `now`; once it may not, it never may again.
    pub fn holds(&self, now: Nanos) -> bool {
        let silence = now - Nanos(self.heard.load(Ordering::Relaxed));
        if silence > self.most || now.0 >= self.end.load(Ordering::Relaxed) {
            self.broken.store(true, Ordering::Relaxed);
        }
        !self.is_broken()
    }

    /// Nothing is issued from the instant `at` on, whatever is heard.
    pub fn end(&self, at: Nanos) {
        self.end.fetch_min(at.0, Ordering::Relaxed);
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

/// Parts of the load that the workers of an agent take over while they run.
#[derive(Debug, Default)]
pub struct Takeovers {
    /// By worker.
    parts: Mutex<Vec<Vec<LateShare>>>,
    /// Whether there is anything: workers look at this alone, as long as there is nothing.
    given: AtomicBool,
}

impl Takeovers {
    /// A part for each worker that gets one, from this time after the first instant on.
    pub fn give(&self, parts: Vec<Option<Share>>, from: Nanos) {
        let mut all = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let workers = all.len().max(parts.len());
        all.resize(workers, Vec::new());
        for (part, own) in parts.into_iter().zip(all.iter_mut()) {
            own.extend(part.map(|share| LateShare { share, from }));
        }
        self.given.store(true, Ordering::Release);
    }

    /// What the worker gets after the first `taken` parts.
    pub(crate) fn part(&self, worker: u32, taken: usize) -> Option<LateShare> {
        if !self.given.load(Ordering::Acquire) {
            return None;
        }
        let all = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(worker as usize)?.get(taken).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_breaks_by_silence_and_a_late_word_mends_nothing() {
        let at = Nanos::from_secs;
        let lease = Lease::new(at(5), at(100));
        assert!(lease.holds(at(105)));
        lease.renew(at(104), at(104));
        assert!(lease.holds(at(109)));
        // frozen: the word that waited in the socket is read before a worker looks
        lease.renew(at(108), at(110));
        assert!(!lease.holds(at(108)));
        let lease = Lease::new(at(5), at(100));
        // a worker looks first
        assert!(!lease.holds(at(106)));
        lease.renew(at(106), at(106));
        assert!(!lease.holds(at(106)) && lease.is_broken());
    }
}
