//! Counters of the site. Each thread has its own set, so that counting is a load and a store
//! without a lock; [`Served`] is their sum.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the site started.
///
/// Every request ends in one response or as one of `unanswered`; while requests are in progress,
/// the sum of the two is smaller than `requests`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Accepted connections, including those closed at once by a cap.
    pub connections: u64,
    /// Requests with a complete head, including malformed ones.
    pub requests: u64,
    /// Responses by status.
    pub responses: BTreeMap<u16, u64>,
    /// Requests that a fault left without an HTTP response: reset, closed, garbage, silence.
    pub unanswered: u64,
    /// Bytes read from sockets.
    pub bytes_received: u64,
    /// Bytes written to sockets, including heads.
    pub bytes_sent: u64,
    /// Lines that the access log's writer refused.
    pub log_lines_lost: u64,
}

impl Served {
    /// Returns the number of responses of any status.
    pub fn answered(&self) -> u64 {
        self.responses.values().sum()
    }

    pub(crate) fn add(&mut self, counters: &Counters) {
        self.connections += get(&counters.connections);
        self.requests += get(&counters.requests);
        self.unanswered += get(&counters.unanswered);
        self.bytes_received += get(&counters.bytes_received);
        self.bytes_sent += get(&counters.bytes_sent);
        for (status, count) in (STATUS_MIN..).zip(&counters.responses) {
            let count = get(count);
            if count > 0 {
                *self.responses.entry(status).or_default() += count;
            }
        }
    }
}

const STATUS_MIN: u16 = 100;
const STATUS_COUNT: usize = 500;

/// Counters of one thread, which only that thread changes.
#[derive(Debug)]
pub(crate) struct Counters {
    connections: AtomicU64,
    requests: AtomicU64,
    unanswered: AtomicU64,
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
    responses: [AtomicU64; STATUS_COUNT],
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters {
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            responses: [const { AtomicU64::new(0) }; STATUS_COUNT],
        }
    }

    pub(crate) fn connection(&self) {
        add(&self.connections, 1);
    }

    pub(crate) fn requests(&self, count: u64) {
        add(&self.requests, count);
    }

    pub(crate) fn answers(&self, status: u16, count: u64) {
        let index = usize::from(status.saturating_sub(STATUS_MIN)).min(STATUS_COUNT - 1);
        add(&self.responses[index], count);
    }

    pub(crate) fn unanswered(&self) {
        add(&self.unanswered, 1);
    }

    pub(crate) fn received(&self, count: usize) {
        add(&self.bytes_received, count as u64);
    }

    pub(crate) fn sent(&self, count: usize) {
        add(&self.bytes_sent, count as u64);
    }
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Acquire)
}

/// Adds to a counter. Correct without a lock, because each set has one writing thread.
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Release);
}
