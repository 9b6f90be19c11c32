//! The figures of one of several simultaneous loads.

use crate::{Counts, Hist};

/// One scenario's part of an interval, or of a run.
#[derive(Clone, Debug, Default)]
pub struct ScenarioTally {
    /// Counts of the measured phase.
    pub counts: Counts,
    /// Arrivals that the plan intends for it; set when the run is over, `None` for a closed loop.
    pub intended: Option<u64>,
    /// Calls that this client never issued: dropped, or timed out while they waited.
    pub unissued: u64,
    /// Sessions that fell due in the measured phase.
    pub sessions_started: u64,
    /// Completions inside the measured window, and successful ones among them.
    pub in_window: u64,
    pub good_in_window: u64,
    pub body_bytes: u64,
    /// Ended calls of the warm-up, which no other figure here includes.
    pub warm_up: u64,
    /// Response times of succeeded and timed-out calls.
    pub response: Hist,
}

impl ScenarioTally {
    pub(crate) fn merge(&mut self, other: &ScenarioTally) {
        // in a fleet these are received from another machine
        let sum = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs);
        self.counts.merge(&other.counts);
        self.intended = match (self.intended, other.intended) {
            (Some(mine), Some(theirs)) => Some(mine.saturating_add(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        sum(&mut self.unissued, other.unissued);
        sum(&mut self.sessions_started, other.sessions_started);
        sum(&mut self.in_window, other.in_window);
        sum(&mut self.good_in_window, other.good_in_window);
        sum(&mut self.body_bytes, other.body_bytes);
        sum(&mut self.warm_up, other.warm_up);
        self.response.merge(&other.response);
    }

    /// Returns the share of the intended arrivals that were offered, 0..=1; `None` in a closed
    /// loop.
    pub fn offered_share(&self) -> Option<f64> {
        let intended = self.intended.filter(|intended| *intended > 0)?;
        let missed = self.unissued + self.counts.lost;
        let arrived = match self.sessions_started {
            0 => self.counts.due,
            // arrivals are sessions, and a refused call ends its session; a surplus does not
            // compensate
            started => started.min(intended),
        };
        Some(arrived.saturating_sub(missed) as f64 / intended as f64)
    }
}

/// Adds up the tallies of the same scenarios.
pub(crate) fn merge_scenarios(mine: &mut Vec<ScenarioTally>, theirs: &[ScenarioTally]) {
    if mine.len() < theirs.len() {
        mine.resize_with(theirs.len(), ScenarioTally::default);
    }
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
}
