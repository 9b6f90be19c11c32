//! The rate over time, its integral, and the inverse of the integral.

use crate::ArrivalSpec;

/// A rate that holds at `from`, goes in a straight line to `to`, and holds there. Times are
/// seconds from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateCurve {
    from: f64,
    to: f64,
    /// Where the ramp begins, and how long it takes.
    ramp_at: f64,
    ramp_for: f64,
}

impl RateCurve {
    pub fn new(spec: &ArrivalSpec) -> RateCurve {
        RateCurve {
            from: spec.from,
            to: spec.to,
            ramp_at: spec.warm_up.as_secs_f64(),
            ramp_for: spec.ramp_over.as_secs_f64(),
        }
    }

    /// Arrivals per second at time `t`.
    pub fn rate(&self, t: f64) -> f64 {
        let into = t - self.ramp_at;
        if into < 0.0 {
            self.from
        } else if into < self.ramp_for {
            self.from + (self.to - self.from) * into / self.ramp_for
        } else {
            self.to
        }
    }

    /// Arrivals that ought to have come by time `t`: the integral of the rate from 0.
    pub fn integral(&self, t: f64) -> f64 {
        let into = t - self.ramp_at;
        if into <= 0.0 {
            return self.from * t;
        }
        let ramped = into.min(self.ramp_for);
        let slope = if self.ramp_for > 0.0 { (self.to - self.from) / self.ramp_for } else { 0.0 };
        let held = self.from * self.ramp_at;
        held + self.from * ramped + 0.5 * slope * ramped * ramped + self.to * (into - ramped)
    }

    /// The time at which the integral reaches `x`.
    ///
    /// Within the ramp that is the root of slope/2·t² + from·t = x, in the form
    /// 2x / (from + √(from² + 2·slope·x)): it loses no digits when the slope is small, and gives
    /// x/from when there is none.
    pub fn inverse(&self, x: f64) -> f64 {
        let held = self.from * self.ramp_at;
        if x <= held {
            return x / self.from;
        }
        let (above, ramp_count) = (x - held, 0.5 * (self.from + self.to) * self.ramp_for);
        if above >= ramp_count {
            return self.ramp_at + self.ramp_for + (above - ramp_count) / self.to;
        }
        let slope = (self.to - self.from) / self.ramp_for;
        let root = (self.from * self.from + 2.0 * slope * above).max(0.0).sqrt();
        self.ramp_at + 2.0 * above / (self.from + root)
    }
}
