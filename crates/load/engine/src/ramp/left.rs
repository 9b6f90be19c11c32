//! Remaining steps of a ramp.

use super::{Agenda, FILL_IN, HALVINGS_MAX, OVERLOAD_FACTORS, Phase, Range, STEPS_MAX};
use std::collections::BTreeSet;
use std::ops::Add;
use units::Nanos;

/// Steps that follow the current one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepsLeft {
    pub steps: usize,
    /// Total hold time of these steps.
    pub held: Nanos,
    /// The count is a maximum: results decide how many of the steps run.
    pub at_most: bool,
}

impl StepsLeft {
    fn new(steps: usize, hold: Nanos) -> StepsLeft {
        let steps = steps.min(STEPS_MAX);
        StepsLeft { steps, held: Nanos(hold.0.saturating_mul(steps as u64)), at_most: false }
    }

    fn at_most(self) -> StepsLeft {
        StepsLeft { at_most: self.steps > 0, ..self }
    }
}

impl Add for StepsLeft {
    type Output = StepsLeft;

    fn add(self, more: StepsLeft) -> StepsLeft {
        StepsLeft {
            steps: self.steps + more.steps,
            held: self.held.saturating_add(more.held),
            at_most: self.at_most || more.at_most,
        }
    }
}

impl Agenda {
    /// Returns the steps after the last returned one; none for a ramp that cannot continue.
    pub fn remaining(&self) -> StepsLeft {
        if self.unusable().is_some() {
            return StepsLeft::default();
        }
        let queued = self.queue.iter().map(|planned| StepsLeft::new(1, planned.hold));
        let queued = queued.fold(StepsLeft::default(), Add::add);
        queued + self.remaining_steps() + self.way_down() + self.beyond()
    }

    /// Returns the steps of the way up or of the search that are not in the queue yet.
    fn remaining_steps(&self) -> StepsLeft {
        let (repeat, hold) = (self.course.repeat.max(1) as usize, self.course.hold);
        let up = |levels: usize| StepsLeft::new(levels * repeat, hold);
        if let (Phase::Begin | Phase::Search, Some(search)) = (self.phase, &self.search) {
            let most = self.course.find.as_ref().map_or(0, |find| find.trials_max);
            let begun = search.trials() + usize::from(self.trial.is_some());
            let long = hold.0.saturating_mul(u64::from(self.course.confirm_factor.max(1)));
            return StepsLeft::new(most.saturating_sub(begun), Nanos(long)).at_most();
        }
        match (self.phase, &self.course.range) {
            (Phase::Begin, Range::Given(levels)) => up(levels.len()),
            (Phase::Begin, Range::Automatic { from, to }) => {
                up(1 + doublings(*from, *to).max(HALVINGS_MAX as usize) + FILL_IN).at_most()
            }
            (Phase::Double, Range::Automatic { from, to }) => {
                let begun = self.started_levels();
                let top = begun.iter().copied().fold(*from, f64::max);
                let halvings = if begun.len() == 1 { HALVINGS_MAX as usize } else { 0 };
                up(doublings(top, *to).max(halvings) + FILL_IN).at_most()
            }
            (Phase::Halve, _) => {
                let halved = self.started_levels().len().saturating_sub(1);
                up((HALVINGS_MAX as usize).saturating_sub(halved) + FILL_IN).at_most()
            }
            _ => StepsLeft::default(),
        }
    }

    fn way_down(&self) -> StepsLeft {
        let before =
            !matches!(self.phase, Phase::Down | Phase::Overload | Phase::Recovery | Phase::Done);
        if !self.course.down || !before || self.search.is_some() {
            return StepsLeft::default();
        }
        let repeat = self.course.repeat.max(1) as usize;
        let rest = self.remaining_steps();
        let levels = match &self.course.range {
            Range::Given(levels) => levels.len(),
            Range::Automatic { .. } => self.started_levels().len() + rest.steps / repeat,
        };
        let down = StepsLeft::new(levels * repeat, self.course.hold);
        if rest.at_most { down.at_most() } else { down }
    }

    /// Returns the steps of overload and recovery; a ramp without a knee has none.
    fn beyond(&self) -> StepsLeft {
        if !self.course.overload {
            return StepsLeft::default();
        }
        let recovery = StepsLeft::new(1, self.course.recovery_max).at_most();
        match self.phase {
            Phase::Recovery | Phase::Done => StepsLeft::default(),
            Phase::Overload => recovery,
            _ => StepsLeft::new(OVERLOAD_FACTORS.len(), self.course.hold) + recovery,
        }
    }

    /// Returns the levels of the way up that are done, running or in the queue, as bits.
    fn started_levels(&self) -> Vec<f64> {
        let done = self.done.iter().filter(|(purpose, _)| *purpose == super::Purpose::Up);
        let mut levels: BTreeSet<u64> = done.map(|(_, point)| point.level.to_bits()).collect();
        levels.extend(self.queue.iter().map(|planned| planned.level.to_bits()));
        levels.extend(self.last_up.map(f64::to_bits));
        levels.into_iter().map(f64::from_bits).collect()
    }
}

/// Returns the number of doublings from one level until the other is reached.
fn doublings(from: f64, to: f64) -> usize {
    let times = (to / from).log2().ceil();
    if times.is_finite() { (times.max(0.0) as usize).min(STEPS_MAX) } else { 0 }
}
