//! Remaining time of a ramp. The hold time of the steps is known; the time between them is
//! estimated from previous steps.

use engine::ramp::StepsLeft;
use live::terminal::TimeLeft;
use std::ops::Add;
use units::Nanos;

/// Hold time of a lane's remaining steps, including the time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneLeft {
    span: Nanos,
    at_most: bool,
}

impl Add for LaneLeft {
    type Output = LaneLeft;

    fn add(self, more: LaneLeft) -> LaneLeft {
        LaneLeft {
            span: self.span.saturating_add(more.span),
            at_most: self.at_most || more.at_most,
        }
    }
}

impl From<LaneLeft> for TimeLeft {
    fn from(left: LaneLeft) -> TimeLeft {
        TimeLeft { span: left.span, at_most: left.at_most }
    }
}

/// Time that a lane's steps took beyond their hold time: warm-up, the last responses, and the pause
/// before the next step.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepPace {
    warm_up: Nanos,
    beyond: Nanos,
    steps: u64,
}

impl StepPace {
    pub(super) fn new(warm_up: Nanos) -> StepPace {
        StepPace { warm_up, beyond: Nanos::ZERO, steps: 0 }
    }

    /// Records a step that was held for `held` and ended `took` after the end of the previous one.
    pub(super) fn step(&mut self, held: Nanos, took: Nanos) {
        let beyond = Nanos(took.0.saturating_sub(held.0));
        (self.beyond, self.steps) = (self.beyond.saturating_add(beyond), self.steps + 1);
    }

    pub(super) fn remaining(&self, steps: StepsLeft) -> LaneLeft {
        let each = self.beyond.0.checked_div(self.steps).map_or(self.warm_up, Nanos);
        let between = Nanos(each.0.saturating_mul(steps.steps as u64));
        LaneLeft { span: steps.held.saturating_add(between), at_most: steps.at_most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_between_steps_are_estimated_by_their_mean() {
        let s = Nanos::from_secs;
        let steps = StepsLeft { steps: 4, held: s(40), at_most: false };
        let mut pace = StepPace::new(s(2));
        assert_eq!(pace.remaining(steps), LaneLeft { span: s(48), at_most: false });
        pace.step(s(10), s(11));
        pace.step(s(10), s(14));
        assert_eq!(pace.remaining(steps).span, s(50));
        // an interrupted step
        pace.step(s(10), s(1));
        let search = StepsLeft { at_most: true, ..steps };
        let both = pace.remaining(search) + LaneLeft { span: s(1), at_most: false };
        assert!(both.at_most && both.span > s(41) && both.span < s(50), "{both:?}");
    }
}
