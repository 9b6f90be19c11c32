//! Channel between a worker and the collector.

use crate::collect::Row;
use crate::setup::LateShare;
use sample::{CallRecord, Ends};
use stats::Snapshot;

/// Orders of the collector to the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Continue.
    Go,
    /// No more calls become due; calls in flight are followed to their outcome.
    Stop,
    /// Abandon calls in flight now.
    Abandon,
}

/// A worker's channel to the collector.
pub trait Link {
    fn order(&mut self) -> Order;

    /// Passes on an interval's snapshot and returns a cleared one.
    fn row(&mut self, row: Row) -> Box<Snapshot>;

    /// Passes on finished calls, if calls are logged; empties the list.
    fn log(&mut self, calls: &mut Vec<CallRecord>);

    /// Reports that the script failed with this text; this worker is done.
    fn report_script_failure(&mut self, text: String);

    /// Returns the parts of the load to take over after the first `taken` of them.
    fn more(&mut self, _taken: usize) -> Option<LateShare> {
        None
    }

    /// Passes on ended connections and sessions, if they are recorded; empties the lists.
    fn ends(&mut self, ends: &mut Ends) {
        *ends = Ends::default();
    }
}
