//! Which arrivals of a schedule fall to one of several workers.

/// Worker `worker` of `workers` takes the indices that leave the remainder `worker` when divided
/// by `workers`: every index falls to exactly one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    worker: u32,
    workers: u32,
}

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share { worker: 0, workers: 1 };

    /// # Panics
    /// Unless `worker` is below `workers`.
    pub fn new(worker: u32, workers: u32) -> Share {
        assert!(worker < workers, "workers are numbered from 0: {worker} of {workers}");
        Share { worker, workers }
    }

    pub fn worker(self) -> u32 {
        self.worker
    }

    pub fn workers(self) -> u32 {
        self.workers
    }

    /// The first index of this share that is not below `index`.
    pub fn first_from(self, index: u64) -> u64 {
        let (worker, workers) = (u64::from(self.worker), u64::from(self.workers));
        let ahead = (worker + workers - index % workers) % workers;
        index.saturating_add(ahead)
    }

    /// How many of the indices 0..`total` belong to this share.
    pub fn count_of(self, total: u64) -> u64 {
        let (worker, workers) = (u64::from(self.worker), u64::from(self.workers));
        total / workers + u64::from(total % workers > worker)
    }
}
