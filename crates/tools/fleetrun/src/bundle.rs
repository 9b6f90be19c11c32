//! Merges the rows of an agent's workers into rows of the agent. A row is complete when all workers
//! have passed its end.

use engine::Row;
use fleet::protocol::row::{RowHead, encode};
use stats::Snapshot;
use std::collections::BTreeMap;
use units::Nanos;

/// Rows of an agent's workers, merged per edge.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// The run, and its step.
    step: (u64, u64),
    /// The first instant of the step, the origin of sent instants.
    start: Nanos,
    pending: BTreeMap<Nanos, (RowHead, Snapshot)>,
    /// Latest row end of each worker; `NEVER` for a worker that is done.
    reached: Vec<Nanos>,
    number: u64,
    first_late: Nanos,
}

impl Bundle {
    pub(crate) fn new(step: (u64, u64), start: Nanos, workers: u32) -> Bundle {
        Bundle {
            step,
            start,
            pending: BTreeMap::new(),
            reached: vec![Nanos::ZERO; workers as usize],
            number: 0,
            first_late: Nanos::NEVER,
        }
    }

    /// Returns how late the first call was issued: the remaining error of the start by our own
    /// clock.
    pub(crate) fn first_late(&self) -> Option<Nanos> {
        (self.first_late < Nanos::NEVER).then_some(self.first_late)
    }

    /// Adds a worker's row; returns the rows of the agent that it completes, as messages.
    pub(crate) fn add(&mut self, row: &Row) -> Vec<Vec<u8>> {
        let since = |at: Nanos| at - self.start;
        self.first_late = self.first_late.min(row.first_late);
        let fresh = || {
            let head = RowHead { start: Nanos::NEVER, ..RowHead::default() };
            (head, Snapshot::default())
        };
        let (head, snapshot) = self.pending.entry(since(row.edge)).or_insert_with(fresh);
        let peak = snapshot.flight_peak + row.snapshot.flight_peak;
        snapshot.merge(&row.snapshot);
        // peaks of workers are added within an interval: the sum is reached if they coincide
        snapshot.flight_peak = peak;
        head.start = head.start.min(since(row.start));
        head.end = head.end.max(since(row.end));
        head.open_connections += row.open_connections;
        head.connections_peak += row.connections_peak;
        head.in_flight += row.in_flight;
        head.last_done = head.last_done.max(since(row.last_done));
        head.cpu += row.cpu;
        head.passed += row.passed;
        self.reached[row.worker as usize] = if row.last { Nanos::NEVER } else { since(row.edge) };
        self.complete()
    }

    fn complete(&mut self) -> Vec<Vec<u8>> {
        let all = self.reached.iter().copied().min().unwrap_or(Nanos::NEVER);
        let mut done = Vec::new();
        while let Some(entry) = self.pending.first_entry().filter(|entry| *entry.key() <= all) {
            let (edge, (mut head, mut snapshot)) = entry.remove_entry();
            ((head.run, head.step), head.number, head.edge) = (self.step, self.number, edge);
            head.last = all == Nanos::NEVER && self.pending.is_empty();
            snapshot.instants.shift(-i64::try_from(self.start.0).unwrap_or(i64::MAX));
            self.number += 1;
            done.push(encode(&head, &snapshot));
        }
        done
    }
}
