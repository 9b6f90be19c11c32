//! Parameters of an arrival process.

use crate::schedule::Levels;
use std::sync::Arc;
use units::Nanos;

/// An arrival process: a rate that is constant or ramps, a law of the gaps, an end.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalSpec {
    /// Arrivals per second at the start, and during the warm-up; finite, above zero.
    pub from: f64,
    /// Arrivals per second after the ramp; finite, above zero.
    pub to: f64,
    /// Duration of the linear change from `from` to `to` in the measured phase. Zero: the rate
    /// jumps to `to` at the start.
    pub ramp_over: Nanos,
    /// The rate of the measured phase stage by stage, in place of `from`, `to` and `ramp_over`; the
    /// warm-up has the level at the start of the first stage.
    pub levels: Option<Levels>,
    /// Time before the measured phase, at the rate `from`.
    pub warm_up: Nanos,
    pub gaps: Gaps,
    /// Arrivals that fall due at the same instant, at least 1; the rates count arrivals.
    pub burst: u32,
    /// Trace: the instants themselves, counted from the start, in ascending order. They replace
    /// rates, gaps and bursts; the schedule ends with them.
    pub at: Option<Arc<[Nanos]>>,
    pub end: ScheduleEnd,
}

/// The law of the gaps between arrivals, or between bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Constant gaps; the first arrival falls due at the start.
    Constant,
    /// Exponential gaps: a Poisson process. The first arrival is one gap after the start.
    Poisson,
    /// Uniform gaps in [0, 2·mean). The first arrival is one gap after the start.
    Uniform,
}

/// End of arrivals: whichever comes first. The default has no end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleEnd {
    /// Length of the measured phase; an arrival exactly at its end does not fall due.
    pub at: Option<Nanos>,
    /// Number of arrivals of the measured phase.
    pub count: Option<u64>,
}

impl ArrivalSpec {
    /// Returns a constant rate with constant gaps and without end.
    pub fn constant(per_second: f64) -> ArrivalSpec {
        ArrivalSpec {
            from: per_second,
            to: per_second,
            ramp_over: Nanos::ZERO,
            levels: None,
            warm_up: Nanos::ZERO,
            gaps: Gaps::Constant,
            burst: 1,
            at: None,
            end: ScheduleEnd::default(),
        }
    }

    /// Checks the values; the error names the invalid field.
    pub fn check(&self) -> Result<(), String> {
        for (name, rate) in [("from", self.from), ("to", self.to)] {
            if !rate.is_finite() || rate <= 0.0 {
                return Err(format!("`{name}` is {rate} per second; it must be above zero"));
            }
        }
        if let Some(at) = &self.at
            && !at.is_sorted()
        {
            return Err("`at` falls; its instants must be in order".to_owned());
        }
        if self.burst == 0 {
            return Err("`burst` is 0; a burst has at least one arrival".to_owned());
        }
        Ok(())
    }
}
