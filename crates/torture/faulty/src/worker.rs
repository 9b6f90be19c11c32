//! A single worker that needs time for each request, which limits the rate.

use super::{Act, Defect, Defects};
use std::collections::VecDeque;
use units::Nanos;

/// Requests per second of a server with a limited rate.
pub const CAPACITY: u64 = 100;
/// Work of an expensive page relative to a cheap one.
pub const COSTLY_FACTOR: u64 = 10;
/// Number of waiting requests at which a server crashes, or stalls for this time.
pub const ENOUGH: usize = 30;
pub const HANGOVER: Nanos = Nanos::from_secs(18);
/// Number of waiting requests above which a server responds 503.
pub const SHED_BEYOND: usize = 10;
/// With the defect that collapses, this many waiting requests double the work of each.
const DOUBLING_WAITING: u64 = 32;
/// With the defect that drifts, this many requests double the work of each.
const DOUBLING_SERVED: u64 = 1_000;

/// Returns the work of one request.
pub(super) fn service() -> Nanos {
    Nanos(Nanos::SECOND.0 / CAPACITY)
}

/// The waiting requests, and the current one.
#[derive(Debug)]
pub(super) struct Worker {
    defects: Defects,
    /// Cheap requests, and expensive ones, which wait for them.
    queues: [VecDeque<QueuedRequest>; 2],
    current: Option<(Nanos, QueuedRequest)>,
    /// Until when it stalls, and whether it has stalled and its queue was not empty since.
    still_until: Nanos,
    has_stalled: bool,
    /// Requests so far.
    taken: u64,
}

#[derive(Debug)]
struct QueuedRequest {
    id: u64,
    acts: Vec<Act>,
    cost: Nanos,
}

/// Result of an incoming request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Waits,
    /// 503 is sent at once.
    Shed,
    /// This request is one too many: the server crashes.
    Dies,
}

impl Worker {
    pub(super) fn new(defects: &Defects) -> Worker {
        Worker {
            defects: defects.clone(),
            queues: Default::default(),
            current: None,
            still_until: Nanos::ZERO,
            has_stalled: false,
            taken: 0,
        }
    }

    /// Adds a request with this work; `acts` follow when it is done.
    pub(super) fn take(&mut self, at: Nanos, id: u64, acts: &mut Vec<Act>, cost: Nanos) -> Fate {
        let waiting = self.waiting();
        if waiting >= SHED_BEYOND && self.has(Defect::ShedsLoad) {
            return Fate::Shed;
        }
        if waiting >= ENOUGH && self.has(Defect::DiesOfLoad) {
            return Fate::Dies;
        }
        self.has_stalled &= waiting > 0;
        if waiting >= ENOUGH && self.has(Defect::Lingers) && !self.has_stalled {
            self.still_until = at + HANGOVER;
            self.has_stalled = true;
        }
        self.taken += 1;
        let wear = if self.has(Defect::Drifts) { cost.0 * self.taken / DOUBLING_SERVED } else { 0 };
        let costly = cost > service() && !self.has(Defect::StarvesCheap);
        let job = QueuedRequest { id, acts: std::mem::take(acts), cost: cost + Nanos(wear) };
        self.queues[usize::from(costly)].push_back(job);
        self.continue_work(at);
        Fate::Waits
    }

    /// Returns when the current request is done.
    pub(super) fn due(&self) -> Nanos {
        self.current.as_ref().map_or(Nanos::NEVER, |(until, _)| *until)
    }

    /// Takes the actions that are complete by now, in order.
    pub(super) fn done(&mut self, at: Nanos) -> Vec<(u64, Vec<Act>)> {
        let mut all = Vec::new();
        while let Some((until, job)) = self.current.take_if(|(until, _)| *until <= at) {
            all.push((job.id, job.acts));
            self.continue_work(until);
        }
        all
    }

    /// Removes the requests of a closed connection.
    pub(super) fn forget(&mut self, id: u64) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|job| job.id != id));
        if let Some((_, job)) = &mut self.current
            && job.id == id
        {
            job.acts.clear();
        }
    }

    /// Returns whether it has requests of this connection.
    pub(super) fn has_requests_of(&self, id: u64) -> bool {
        let current = self.current.iter().map(|(_, job)| job);
        current.chain(self.queues.iter().flatten()).any(|job| job.id == id)
    }

    pub(super) fn clear(&mut self) {
        *self = Worker::new(&self.defects);
    }

    fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    fn continue_work(&mut self, at: Nanos) {
        if self.current.is_some() {
            return;
        }
        let crowd = self.waiting() as u64;
        let Some(job) = self.queues.iter_mut().find_map(VecDeque::pop_front) else { return };
        let slower =
            if self.has(Defect::Collapses) { job.cost.0 * crowd / DOUBLING_WAITING } else { 0 };
        let from = at.max(self.still_until);
        self.current = Some((from + job.cost + Nanos(slower), job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(defect: Defect) -> Worker {
        Worker::new(&Defects::from([defect]))
    }

    /// Returns how many of simultaneous requests are done within a second.
    fn done_of(worker: &mut Worker, count: u64) -> usize {
        for id in 0..count {
            worker.take(Nanos::ZERO, id, &mut vec![Act::Close], service());
        }
        worker.done(Nanos::SECOND).len()
    }

    #[test]
    fn the_rate_is_limited_and_the_others_wait() {
        assert_eq!(done_of(&mut worker(Defect::LimitedRate), 50), 50);
        assert_eq!(done_of(&mut worker(Defect::LimitedRate), 400), 100);
        // the more wait, the longer each takes
        assert_eq!(done_of(&mut worker(Defect::Collapses), 64), 43);
        assert_eq!(done_of(&mut worker(Defect::Lingers), 64), 1);
        assert_eq!(done_of(&mut worker(Defect::ShedsLoad), 64), 11);
    }

    #[test]
    fn cheap_requests_go_first_and_closed_ones_are_dropped() {
        let dear = service() * COSTLY_FACTOR;
        for (defect, expected) in
            [(Defect::LimitedRate, [1, 9, 2]), (Defect::StarvesCheap, [1, 2, 9])]
        {
            let mut worker = worker(defect);
            for (id, cost) in [(1, dear), (2, dear), (3, dear), (9, service())] {
                worker.take(Nanos::ZERO, id, &mut vec![Act::Close], cost);
            }
            worker.forget(3);
            let order: Vec<u64> =
                worker.done(Nanos::SECOND).into_iter().map(|(id, _)| id).collect();
            assert_eq!(order, expected, "{}", defect.id());
            assert_eq!(worker.due(), Nanos::NEVER);
        }
    }
}
