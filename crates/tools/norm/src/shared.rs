//! State that all threads of a site share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::breaks::Breaks;
use crate::cgi::Places;
use crate::log::Log;
use crate::node::Node;
use crate::route::Routes;
use crate::spool::Spool;

/// State shared by all threads.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) routes: Routes<Node>,
    pub(crate) breaks: Breaks,
    pub(crate) log: Arc<Log>,
    pub(crate) spool: Spool,
    pub(crate) spool_over: u64,
    pub(crate) body_max: u64,
    pub(crate) counters: Counters,
    pub(crate) timing: bool,
    pub(crate) timeout: Duration,
    /// Places for the processes that nodes start.
    pub(crate) places: Arc<Places>,
    /// One permit per connection.
    pub(crate) room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) requests: AtomicU64,
}

impl Counters {
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}
