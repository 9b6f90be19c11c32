//! Arrival processes: decide when each call is due. Pure and by index: the k-th instant depends on
//! the specification, the seed and k, never on how often or when it is queried, nor on how many
//! workers share the schedule. Layer 2: reads no clock.

mod rate;
mod share;
mod spec;
mod stages;

pub use rate::RateCurve;
pub use share::{Share, ShareError};
pub use spec::{ArrivalSpec, Gaps, ScheduleEnd};
pub use stages::{Levels, STAGES_MAX, Stage};

use sample::Arrival;
use units::{Nanos, Purpose, Seed, Stream};

/// Arrivals of one worker, in order: an iterator over index and absolute intended instant.
///
/// The rate at time t is r(t); its integral L(t) is the expected number of arrivals by t. A process
/// of unit rate gives positions x on that integral (0, 1, 2, … when constant), and the instant of
/// an arrival is the inverse integral at its position. Stepping the rate in small intervals instead
/// would make the count depend on the steps; `count_follows_the_integral` would fail.
#[derive(Clone, Debug)]
pub struct Schedule {
    spec: ArrivalSpec,
    curve: RateCurve,
    seed: Seed,
    start: Nanos,
    share: Share,
    /// The next index of this share.
    index: u64,
    /// First index beyond the schedule, if a count ends it.
    index_end: u64,
    walk: Walk,
}

impl Schedule {
    /// Creates the whole schedule for one worker. `start`: instant of position 0, the first arrival
    /// of constant gaps.
    ///
    /// # Panics
    /// Panics if [`ArrivalSpec::check`] fails: a plan is validated before.
    pub fn new(spec: &ArrivalSpec, seed: Seed, start: Nanos) -> Schedule {
        Schedule::shared(spec, seed, start, Share::whole())
    }

    /// Creates the schedule for the arrivals of one of several workers.
    ///
    /// # Panics
    /// Panics like [`Schedule::new`].
    pub fn shared(spec: &ArrivalSpec, seed: Seed, start: Nanos, share: Share) -> Schedule {
        if let Err(why) = spec.check() {
            panic!("the plan is validated before a schedule is made of it: {why}");
        }
        let mut schedule = Schedule {
            spec: spec.clone(),
            curve: RateCurve::new(spec),
            seed,
            start,
            index: share.first_from(0),
            share,
            index_end: u64::MAX,
            walk: Walk::new(seed),
        };
        if let Some(at) = &spec.at {
            schedule.index_end = at.len() as u64;
        }
        if let Some(count) = spec.end.count {
            let last = schedule.first_measured().saturating_add(count);
            schedule.index_end = schedule.index_end.min(last);
        }
        schedule
    }

    /// Continues with the first index of this share at or above `index`.
    pub fn seek(&mut self, index: u64) {
        self.index = self.share.first_from(index);
        self.walk = Walk::new(self.seed);
    }

    /// Returns the arrival that [`Iterator::next`] will return.
    pub fn peek(&mut self) -> Option<Arrival> {
        if self.index >= self.index_end {
            return None;
        }
        let intended = self.instant(self.index);
        let due = intended < self.end_at();
        due.then_some(Arrival { index: self.index, intended })
    }

    /// Returns the index of the first arrival of the measured phase: the number of arrivals in the
    /// warm-up.
    pub fn first_measured(&self) -> u64 {
        if self.spec.warm_up.is_zero() { 0 } else { self.count_before(self.measured_from()) }
    }

    /// Returns the first instant of the measured phase.
    pub fn measured_from(&self) -> Nanos {
        self.start + self.spec.warm_up
    }

    /// Returns the number of arrivals of the whole schedule (all shares, warm-up included) due at
    /// or before the instant `t`. Constant gaps: computed directly; random gaps: by iteration.
    /// `u64::MAX` for a schedule without end and [`Nanos::NEVER`].
    pub fn count_due(&self, t: Nanos) -> u64 {
        self.count_before(Nanos(t.0.saturating_add(1)))
    }

    /// Returns the number of these arrivals in the measured phase: the load that the plan intends
    /// by `t`.
    pub fn measured_due(&self, t: Nanos) -> u64 {
        self.count_due(t).saturating_sub(self.first_measured())
    }

    /// Returns whether single arrivals follow each other at a constant rate, with equal gaps.
    pub fn is_even(&self) -> bool {
        let spec = &self.spec;
        spec.gaps == Gaps::Constant
            && spec.burst == 1
            && spec.from.to_bits() == spec.to.to_bits()
            && spec.levels.is_none()
            && spec.at.is_none()
    }

    /// Returns the time that the rate takes for `count` arrivals of the measured phase: by its
    /// integral, for any drawn gaps. A trace has no rate: its instants take until the last one,
    /// plus one mean gap.
    pub fn measured_span(&self, count: u64) -> Nanos {
        let traced = self.spec.at.as_deref().map(|at| &at[..at.len().min(count as usize)]);
        if let Some([_, .., last]) = traced
            && !last.is_zero()
        {
            return Nanos::from_secs_f64(last.as_secs_f64() * count as f64 / (count - 1) as f64);
        }
        let warm_up = self.spec.warm_up.as_secs_f64();
        let end = self.curve.inverse(self.curve.integral(warm_up) + count as f64);
        Nanos::from_secs_f64(end - warm_up)
    }

    /// Returns the instant from which on no arrivals are due.
    fn end_at(&self) -> Nanos {
        self.spec.end.at.map_or(Nanos::NEVER, |span| self.measured_from() + span)
    }

    fn count_before(&self, t: Nanos) -> u64 {
        let limit = t.min(self.end_at());
        if limit == Nanos::NEVER {
            return self.index_end;
        }
        if let Some(at) = &self.spec.at {
            let due = at.partition_point(|span| self.start + *span < limit) as u64;
            return due.min(self.index_end);
        }
        let mut copy = Schedule { walk: Walk::new(self.seed), ..self.clone() };
        let burst = u64::from(self.spec.burst);
        let mut group = 0;
        if self.spec.gaps == Gaps::Constant {
            // two groups below the integral: rounding to nanoseconds cannot exceed that
            let due = self.curve.integral((limit - self.start).as_secs_f64());
            group = ((due / burst as f64) as u64).saturating_sub(2);
        }
        while group.saturating_mul(burst) < self.index_end
            && copy.instant(group.saturating_mul(burst)) < limit
        {
            group += 1;
        }
        group.saturating_mul(burst).min(self.index_end)
    }

    /// Returns when the arrival of this index falls due; indices must not decrease between calls.
    fn instant(&mut self, index: u64) -> Nanos {
        if let Some(at) = &self.spec.at {
            return self.start + at[index as usize];
        }
        let burst = u64::from(self.spec.burst);
        let group = index / burst;
        let position = match self.spec.gaps {
            Gaps::Constant => group as f64,
            gaps => self.walk.position(group, gaps),
        };
        self.start + Nanos::from_secs_f64(self.curve.inverse(position * burst as f64))
    }
}

impl Iterator for Schedule {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.peek()?;
        self.index = self.share.first_from(self.index.saturating_add(1));
        Some(arrival)
    }
}

/// A random process of unit rate, walked from its beginning: every worker draws every gap, so that
/// the instants do not depend on the number of workers.
#[derive(Clone, Debug)]
struct Walk {
    stream: Stream,
    drawn: u64,
    position: f64,
}

impl Walk {
    fn new(seed: Seed) -> Walk {
        Walk { stream: seed.stream(Purpose::Arrivals, 0), drawn: 0, position: 0.0 }
    }

    /// Returns the position of the arrival of this index: the sum of the gaps up to and including
    /// its own.
    fn position(&mut self, index: u64, gaps: Gaps) -> f64 {
        while self.drawn <= index {
            self.position += match gaps {
                Gaps::Constant => 1.0,
                Gaps::Poisson => self.stream.exponential(1.0),
                Gaps::Uniform => self.stream.uniform(0.0, 2.0),
            };
            self.drawn += 1;
        }
        self.position
    }
}

#[cfg(test)]
mod tests;
