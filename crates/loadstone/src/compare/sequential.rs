//! A gate during the measurement: its blocks and its remaining time.

use args::GateTask;
use net::reactor::monotonic;
use record::compare::{FailIf, Gate, GateEnd, GateRecord};
use record::run::RunRecord;
use units::{Nanos, show};

/// A gate and its budget.
pub(super) struct Sequential {
    gate: Gate,
    budget: Nanos,
    start: Nanos,
    /// Instant at which the last block ended.
    last: Nanos,
    /// Duration of the longest block so far.
    longest: Nanos,
    /// True if both sides are measured at the same moment; `pilot`: how a pilot chose the design.
    duet: bool,
    pilot: String,
}

impl Sequential {
    /// Starts the budget.
    pub(super) fn start_budget(task: &GateTask, bounds: &[FailIf]) -> Sequential {
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

    /// Formats the progress: `· 1 m 05 s of 10 m 00 s`.
    pub(super) fn progress(&self) -> String {
        let passed = Nanos::from_secs_f64((monotonic() - self.start).as_secs_f64().round());
        format!("· {} of {}", show::duration(passed), show::duration(self.budget))
    }

    /// Returns the record of the gate.
    /// `starts`: servers started for each side. `cut_short`: reason other than the budget why there
    /// is no answer.
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
