//! How many processes there may be at once, and how many requests may wait for one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Shared by everything in a server that starts processes.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    queue: Semaphore,
}

/// A place taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// `at_once` processes, at least one, and `queue` requests that wait for a place.
    pub(crate) fn new(at_once: usize, queue: usize) -> Arc<Places> {
        let free = Arc::new(Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS)));
        Arc::new(Places { free, queue: Semaphore::new(queue.min(Semaphore::MAX_PERMITS)) })
    }

    /// The next free place; `None` when the queue is full or the wait longer than `patience`.
    pub(crate) async fn take(&self, patience: Duration) -> Option<Place> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(Place { _permit: permit });
        }
        let _waiting = self.queue.try_acquire().ok()?;
        let waited = tokio::time::timeout(patience, Arc::clone(&self.free).acquire_owned());
        Some(Place { _permit: waited.await.ok()?.ok()? })
    }
}
