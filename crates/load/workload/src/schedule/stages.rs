//! A level over time, given by stages: a rate, or the size of a population.

use std::sync::Arc;
use units::Nanos;

/// Maximum number of stages; a level that needs more is a trace.
pub const STAGES_MAX: usize = 10_000;

/// A part of the time in which the level is linear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Duration; zero: the level jumps.
    pub over: Nanos,
    /// The levels at its start and at its end: finite, not below zero.
    pub from: f64,
    pub to: f64,
}

/// Sequence of stages. Before the first stage the level is that of its start, after the last stage
/// that of its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    stages: Arc<[Stage]>,
}

impl Levels {
    /// # Errors
    /// Fails if there is no stage, there are too many, a level is below zero, or none is above.
    pub fn new(stages: &[Stage]) -> Result<Levels, String> {
        if stages.is_empty() || stages.len() > STAGES_MAX {
            return Err(format!("there are 1 to {STAGES_MAX} stages, not {}", stages.len()));
        }
        let levels = || stages.iter().flat_map(|stage| [stage.from, stage.to]);
        if let Some(wrong) = levels().find(|level| !level.is_finite() || *level < 0.0) {
            return Err(format!("a level is {wrong}; it must be 0 or above"));
        }
        if levels().all(|level| level == 0.0) {
            return Err("all levels are 0: nothing would be sent".to_owned());
        }
        Ok(Levels { stages: stages.into() })
    }

    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the level at the start.
    pub fn first(&self) -> f64 {
        self.stages.first().map_or(0.0, |stage| stage.from)
    }

    /// Returns the level at the end, which stays constant afterwards.
    pub fn last(&self) -> f64 {
        self.stages.last().map_or(0.0, |stage| stage.to)
    }

    /// Returns the highest level.
    pub fn highest(&self) -> f64 {
        self.stages.iter().map(|stage| stage.from.max(stage.to)).fold(0.0, f64::max)
    }

    /// Returns the time of all stages.
    pub fn span(&self) -> Nanos {
        self.stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.over)
    }

    /// Returns the stages delayed by `later`, with level zero before; the level is zero again
    /// `for_span` after their start.
    #[must_use]
    pub fn delayed(&self, later: Nanos, for_span: Option<Nanos>) -> Levels {
        let mut stages = Vec::with_capacity(self.stages.len() + 3);
        if !later.is_zero() {
            stages.push(Stage { over: later, from: 0.0, to: 0.0 });
        }
        let mut left = for_span.unwrap_or(Nanos::NEVER);
        for stage in self.stages.iter() {
            let over = stage.over.min(left);
            let reached = if stage.over <= left { stage.to } else { level_in(stage, over) };
            stages.push(Stage { over, from: stage.from, to: reached });
            left = left - over;
            if left.is_zero() {
                break;
            }
        }
        if for_span.is_some() {
            let last = self.last();
            if !left.is_zero() {
                stages.push(Stage { over: left, from: last, to: last });
            }
            stages.push(Stage { over: Nanos::ZERO, from: 0.0, to: 0.0 });
        }
        Levels { stages: stages.into() }
    }

    /// Returns the first instant, from `at` on, at which number `index`, counted from 0, belongs to
    /// a population of this size: the level is above it.
    pub fn next_within(&self, index: u64, at: Nanos) -> Option<Nanos> {
        let wanted = index as f64;
        let mut begin = Nanos::ZERO;
        for stage in self.stages.iter() {
            let end = begin + stage.over;
            let from = at.max(begin);
            if from < end {
                let now = level_in(stage, from - begin);
                if now > wanted {
                    return Some(from);
                }
                if stage.to > wanted {
                    // the level passes the number within this stage
                    let share = (wanted - stage.from) / (stage.to - stage.from);
                    let crossing = Nanos::from_secs_f64(stage.over.as_secs_f64() * share);
                    // the level is above it from the next nanosecond on
                    let crossing = begin + crossing + Nanos(1);
                    return Some(crossing.clamp(from, end));
                }
            }
            begin = end;
        }
        (self.last() > wanted).then(|| at.max(begin))
    }
}

fn level_in(stage: &Stage, into: Nanos) -> f64 {
    if stage.over.is_zero() {
        return stage.to;
    }
    let share = into.as_secs_f64() / stage.over.as_secs_f64();
    stage.from + (stage.to - stage.from) * share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(secs: f64, from: f64, to: f64) -> Stage {
        Stage { over: Nanos::from_secs_f64(secs), from, to }
    }

    fn hill() -> Levels {
        Levels::new(&[stage(10.0, 0.0, 100.0), stage(5.0, 100.0, 100.0), stage(10.0, 100.0, 0.0)])
            .unwrap()
    }

    fn secs(at: f64) -> Nanos {
        Nanos::from_secs_f64(at)
    }

    /// Returns the number of the first 200 users that are active at `at` seconds from the start.
    fn size(levels: &Levels, at: f64) -> usize {
        (0..200).filter(|index| levels.next_within(*index, secs(at)) == Some(secs(at))).count()
    }

    #[test]
    fn a_population_changes_evenly() {
        let hill = hill();
        let size = |at: f64| size(&hill, at);
        assert_eq!([size(0.0), size(0.001), size(1.0), size(5.05)], [0, 1, 10, 51]);
        assert_eq!(
            [size(10.0), size(14.9), size(20.0), size(25.0), size(99.0)],
            [100, 100, 50, 0, 0]
        );
    }

    #[test]
    fn an_inactive_user_learns_when_it_becomes_active() {
        let hill = hill();
        let next = |index, at: f64| hill.next_within(index, secs(at)).map(Nanos::as_secs_f64);
        let near = |got: Option<f64>, want: f64| (got.unwrap() - want).abs() < 1e-6;
        assert!(near(next(50, 0.0), 5.0));
        assert!(near(next(50, 7.0), 7.0));
        assert_eq!(next(50, 20.5), None, "it comes no more");
        assert_eq!(next(100, 0.0), None, "a hundred are numbers 0 to 99");
        let again =
            Levels::new(&[stage(1.0, 5.0, 5.0), stage(2.0, 0.0, 0.0), stage(0.0, 3.0, 3.0)]);
        let again = again.unwrap();
        assert_eq!(again.next_within(2, secs(1.5)), Some(secs(3.0)));
        assert_eq!(again.next_within(4, secs(1.5)), None);
        assert_eq!(again.next_within(2, secs(8.0)), Some(secs(8.0)), "the last level stays");
    }

    #[test]
    fn delayed_levels_are_zero_before_and_after() {
        let flat = Levels::new(&[stage(0.0, 7.0, 7.0)]).unwrap();
        let later = flat.delayed(secs(2.0), Some(secs(3.0)));
        let size = |at: f64| size(&later, at);
        assert_eq!([size(0.0), size(1.9), size(2.0), size(4.9), size(5.0)], [0, 0, 7, 7, 0]);
        let cut = hill().delayed(Nanos::ZERO, Some(secs(5.0)));
        let reached = cut.stages()[0].to;
        assert!(
            (reached - 50.0).abs() < 1e-9,
            "a stage that is cut reaches what it had: {reached}"
        );
        assert!(cut.last().abs() < 1e-9);
        assert_eq!(hill().delayed(secs(1.0), None).span(), secs(26.0));
    }

    #[test]
    fn levels_that_cannot_be_are_refused() {
        for (stages, reported) in [
            (vec![], "1 to 10000"),
            (vec![stage(1.0, 0.0, 0.0)], "all levels are 0"),
            (vec![stage(1.0, -1.0, 2.0)], "a level is -1"),
            (vec![stage(1.0, f64::NAN, 2.0)], "NaN"),
        ] {
            let why = Levels::new(&stages).unwrap_err();
            assert!(why.contains(reported), "{why}");
        }
    }
}
