//! Calls by target, or by kind of clients.

use crate::{Counts, Hist};
use sample::{Outcome, Sample};

/// Calls of a part of the run: one row of the table by target, or by kind of clients.
#[derive(Clone, Debug, Default)]
pub struct TargetTally {
    pub succeeded: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub body_bytes: u64,
    /// Ended calls of the warm-up, which no other figure here includes.
    pub warm_up: u64,
    /// Response times of succeeded and timed-out calls.
    pub response: Hist,
}

impl TargetTally {
    #[inline]
    pub(crate) fn count(&mut self, sample: &Sample, outcome: Outcome) {
        match outcome {
            Outcome::Succeeded => self.succeeded += 1,
            Outcome::Failed => self.failed += 1,
            _ => self.timed_out += 1,
        }
        self.body_bytes += sample.body_bytes;
        if outcome != Outcome::Failed {
            self.response.record(sample.done - sample.intended);
        }
    }

    pub(crate) fn add_to(&self, counts: &mut Counts, response: &mut Hist) {
        counts.succeeded += self.succeeded;
        counts.failed += self.failed;
        counts.timed_out += self.timed_out;
        response.merge(&self.response);
    }

    /// Returns the number of ended calls.
    pub fn ended(&self) -> u64 {
        self.succeeded + self.failed + self.timed_out
    }

    pub fn merge(&mut self, other: &TargetTally) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.body_bytes += other.body_bytes;
        self.warm_up += other.warm_up;
        self.response.merge(&other.response);
    }

    /// Clears the counts and keeps the memory.
    pub(crate) fn clear(&mut self) {
        let response = self.response.take_cleared();
        *self = TargetTally { response, ..TargetTally::default() };
    }
}

/// Adds rows with equal indexes.
pub(crate) fn merge_rows(mine: &mut Vec<TargetTally>, theirs: &[TargetTally]) {
    if mine.len() < theirs.len() {
        mine.resize_with(theirs.len(), TargetTally::default);
    }
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
}
