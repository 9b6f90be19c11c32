//! Limits on concurrent processes, and on requests that wait for one.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::process::ProcessGroup;

/// Process slots, shared by all parts of a server that start processes.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    queue: Semaphore,
    running: Arc<Mutex<Running>>,
}

#[derive(Debug, Default)]
struct Running {
    groups: Vec<Weak<ProcessGroup>>,
    stopped: bool,
}

/// Process slot, released when dropped.
#[derive(Debug)]
pub(crate) struct ProcessSlot {
    _permit: OwnedSemaphorePermit,
    running: Arc<Mutex<Running>>,
}

impl ProcessSlot {
    /// Registers the process that holds the place. It is killed at once if everything was stopped.
    pub(super) fn hold(&self, group: &Arc<ProcessGroup>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.groups.retain(|group| group.strong_count() > 0);
        running.groups.push(Arc::downgrade(group));
        if running.stopped {
            group.kill();
        }
    }
}

impl Places {
    /// Creates slots. `at_once`: number of concurrent processes, at least one; `queue`: number of
    /// requests that wait for a slot.
    pub(crate) fn new(at_once: usize, queue: usize) -> Arc<Places> {
        let free = Arc::new(Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS)));
        let queue = Semaphore::new(queue.min(Semaphore::MAX_PERMITS));
        Arc::new(Places { free, queue, running: Arc::default() })
    }

    /// Returns the next free slot; `None` if the queue is full or the wait exceeds `patience`.
    pub(crate) async fn take(&self, patience: Duration) -> Option<ProcessSlot> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(self.place(permit));
        }
        let _waiting = self.queue.try_acquire().ok()?;
        let waited = tokio::time::timeout(patience, Arc::clone(&self.free).acquire_owned());
        Some(self.place(waited.await.ok()?.ok()?))
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> ProcessSlot {
        ProcessSlot { _permit: permit, running: Arc::clone(&self.running) }
    }

    /// Kills all processes, and from now on each new one: for a server that stops, before it waits
    /// for the threads that reap them.
    pub(crate) fn stop(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.stopped = true;
        for group in running.groups.iter().filter_map(Weak::upgrade) {
            group.kill();
        }
    }
}
