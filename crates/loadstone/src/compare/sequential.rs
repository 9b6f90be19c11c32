//! A gate during the measurement: its blocks, and its remaining time.

use crate::args::GateTask;
use net::reactor::monotonic;
use record::compare::{FailIf, Gate, GateEnd, GateRecord};
use record::run::RunRecord;
use units::{Nanos, show};

/// A gate and its budget.
pub(super) struct Sequential {
    gate: Gate,
    budget: Nanos,
    start: Nanos,
    /// End of the last block.
    last: Nanos,
    /// The longest block so far.
    longest: Nanos,
    /// Both sides are measured at the same moment, and the pilot's result.
    duet: bool,
    pilot: String,
}

impl Sequential {
    /// The budget starts now.
    pub(super) fn begun(task: &GateTask, bounds: &[FailIf]) -> Sequential {
        let start = monotonic();
        Sequential {
            gate: Gate::new(bounds),
            budget: task.budget,
            start,
            last: start,
            longest: Nanos::ZERO,
            duet: false,
            pilot: String::new(),
        }
    }

    /// Records the design of the next blocks.
    pub(super) fn chose(&mut self, duet: bool, pilot: String) {
        (self.duet, self.pilot, self.last) = (duet, pilot, monotonic());
    }

    /// Judges a block.
    pub(super) fn block(&mut self, before: &[RunRecord], after: &[RunRecord]) {
        let now = monotonic();
        self.longest = self.longest.max(now - self.last);
        self.last = now;
        self.gate.block(before, after);
    }

    /// Returns whether the answer is certain, or another block would exceed the budget.
    pub(super) fn is_over(&self) -> bool {
        self.gate.is_over() || monotonic() - self.start + self.longest > self.budget
    }

    /// Shown while it runs: `· 1 m 05 s of 10 m 00 s`.
    pub(super) fn progress(&self) -> String {
        let passed = Nanos::from_secs_f64((monotonic() - self.start).as_secs_f64().round());
        format!("· {} of {}", show::duration(passed), show::duration(self.budget))
    }

    /// `starts`: servers started for each side. `cut_short`: why it ended without an answer, other
    /// than by its budget.
    pub(super) fn record(self, starts: Vec<u32>, cut_short: Option<&str>) -> GateRecord {
        self.gate.record(&GateEnd {
            budget: self.budget,
            spent: self.last - self.start,
            restarts: starts,
            duet: self.duet,
            pilot: self.pilot,
            cut_short: cut_short.map(str::to_owned),
        })
    }
}
