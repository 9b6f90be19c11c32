//! Observers of a run, and their orders to it.

use engine::{LateShare, Order, Row, Share};
use sample::{AgentNow, CallRecord, Ends};
use stats::{Second, Snapshot};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use units::Nanos;

/// Observes a run while it runs.
pub trait Watcher {
    fn second(&mut self, second: &Second, total: &Snapshot);
    /// Receives the machines of a fleet, each second, before that second is reported.
    fn agents(&mut self, _: &[AgentNow]) {}
    /// Receives one worker's interval, before it is merged.
    fn row(&mut self, _row: &Row) {}
    /// Receives calls with their outcomes, if they are logged. `Err` ends the run.
    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()>;
    /// Receives ended connections and sessions, if they are recorded.
    fn ends(&mut self, _: &Ends) {}
    /// Returns the watcher's order to the workers.
    fn order(&self) -> Order {
        Order::Go
    }
    /// Returns the lease that ends the load once no remote watcher responds.
    fn lease(&self) -> Option<Arc<Lease>> {
        None
    }
    /// Returns the source of parts of the load that are taken over during the run.
    fn takeovers(&self) -> Option<Arc<Takeovers>> {
        None
    }
    fn end(&mut self);
    /// Ends the output: all data is on disk, or the error states why not.
    fn close(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Ends a load that is no longer watched. Every worker checks it before it issues a call, so that a
/// worker that was frozen for too long issues none when it resumes.
#[derive(Debug)]
pub struct Lease {
    /// Maximum silence.
    most: Nanos,
    heard: AtomicU64,
    /// Instant at which the lease ends: the part belongs to another agent from then on.
    end: AtomicU64,
    broken: AtomicBool,
}

impl Lease {
    pub fn new(most: Nanos, now: Nanos) -> Lease {
        let (heard, end) = (AtomicU64::new(now.0), AtomicU64::new(u64::MAX));
        Lease { most, heard, end, broken: AtomicBool::new(false) }
    }

    /// Notes that the watcher was alive at the instant `at`, according to a message received `now`.
    /// After too long a silence the message is too late: if the whole process was frozen, messages
    /// sent meanwhile are read first.
    pub fn renew(&self, at: Nanos, now: Nanos) {
        self.holds(now);
        self.heard.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Returns whether the load may continue at `now`; once false, it stays false.
    pub fn holds(&self, now: Nanos) -> bool {
        let silence = now - Nanos(self.heard.load(Ordering::Relaxed));
        if silence > self.most || now.0 >= self.end.load(Ordering::Relaxed) {
            self.broken.store(true, Ordering::Relaxed);
        }
        !self.is_broken()
    }

    /// Ends the lease: no calls are issued from the instant `at` on, whatever messages arrive.
    pub fn end(&self, at: Nanos) {
        self.end.fetch_min(at.0, Ordering::Relaxed);
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

/// Parts of the load that an agent's workers take over during a run.
#[derive(Debug, Default)]
pub struct Takeovers {
    /// Parts by worker.
    parts: Mutex<Vec<Vec<LateShare>>>,
    /// True once a part exists; before that, workers check only this.
    given: AtomicBool,
}

impl Takeovers {
    /// Adds a part for each worker that receives one, from this time after the first instant on.
    pub fn give(&self, parts: Vec<Option<Share>>, from: Nanos) {
        let mut all = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let workers = all.len().max(parts.len());
        all.resize(workers, Vec::new());
        for (part, own) in parts.into_iter().zip(all.iter_mut()) {
            own.extend(part.map(|share| LateShare { share, from }));
        }
        self.given.store(true, Ordering::Release);
    }

    /// Returns the worker's parts after the first `taken` ones.
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
    fn a_lease_breaks_by_silence_and_late_messages_are_ignored() {
        let at = Nanos::from_secs;
        let lease = Lease::new(at(5), at(100));
        assert!(lease.holds(at(105)));
        lease.renew(at(104), at(104));
        assert!(lease.holds(at(109)));
        // frozen: the queued message is read before a worker checks
        lease.renew(at(108), at(110));
        assert!(!lease.holds(at(108)));
        let lease = Lease::new(at(5), at(100));
        // a worker checks first
        assert!(!lease.holds(at(106)));
        lease.renew(at(106), at(106));
        assert!(!lease.holds(at(106)) && lease.is_broken());
    }
}
