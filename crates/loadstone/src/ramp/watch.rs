//! Watches a step: the live line or view, and the end of a recovery.

use engine::{Order, Row};
use sample::CallRecord;
use session::Watcher;
use stats::curve::as_before;
use stats::{Second, Snapshot};
use units::Nanos;

/// Ends the run as soon as the server answers as before.
pub(super) struct RecoveryStop {
    pub(super) live: Box<dyn Watcher>,
    /// Median response time before the overload.
    pub(super) before: Nanos,
    pub(super) series: Vec<Second>,
}

impl Watcher for RecoveryStop {
    fn second(&mut self, second: &Second, total: &Snapshot) {
        self.series.push(second.clone());
        self.live.second(second, total);
    }

    fn row(&mut self, row: &Row) {
        self.live.row(row);
    }

    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()> {
        self.live.calls(calls)
    }

    fn order(&self) -> Order {
        match as_before(&self.series, self.before) {
            Some(_) => Order::Stop,
            None => Order::Go,
        }
    }

    fn end(&mut self) {
        self.live.end();
    }

    fn close(&mut self) -> anyhow::Result<()> {
        self.live.close()
    }
}
