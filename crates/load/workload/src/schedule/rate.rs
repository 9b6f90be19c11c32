//! The rate over time, its integral, and the inverse of the integral.

use crate::schedule::{ArrivalSpec, Levels};
use std::sync::Arc;

/// A rate over time. Times are seconds from the start.
#[derive(Clone, Debug, PartialEq)]
pub enum RateCurve {
    Line(LinearRate),
    Stages(Staged),
}

impl RateCurve {
    pub fn new(spec: &ArrivalSpec) -> RateCurve {
        match &spec.levels {
            Some(levels) => RateCurve::Stages(Staged::new(levels, spec.warm_up.as_secs_f64())),
            None => RateCurve::Line(LinearRate::new(spec)),
        }
    }

    /// Returns the arrivals per second at time `t`.
    pub fn rate(&self, t: f64) -> f64 {
        match self {
            RateCurve::Line(line) => line.rate(t),
            RateCurve::Stages(staged) => staged.rate(t),
        }
    }

    /// Returns the expected arrivals by time `t`: the integral of the rate from 0.
    pub fn integral(&self, t: f64) -> f64 {
        match self {
            RateCurve::Line(line) => line.integral(t),
            RateCurve::Stages(staged) => staged.integral(t),
        }
    }

    /// Returns the time at which the integral reaches `x`; infinite if it never does.
    pub fn inverse(&self, x: f64) -> f64 {
        match self {
            RateCurve::Line(line) => line.inverse(x),
            RateCurve::Stages(staged) => staged.inverse(x),
        }
    }
}

/// A rate that is linear within each stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Staged {
    pieces: Arc<[Piece]>,
}

/// A straight line of the rate, and the integral before it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    begin: f64,
    /// Duration of the piece; infinite for the last one.
    span: f64,
    from: f64,
    to: f64,
    /// The integral up to the start of the piece.
    before: f64,
}

impl Piece {
    fn slope(&self) -> f64 {
        if self.span > 0.0 && self.span.is_finite() {
            (self.to - self.from) / self.span
        } else {
            0.0
        }
    }

    fn count_within(&self, into: f64) -> f64 {
        self.from * into + 0.5 * self.slope() * into * into
    }
}

impl Staged {
    fn new(levels: &Levels, warm_up: f64) -> Staged {
        let warm = Piece {
            begin: 0.0,
            span: warm_up,
            from: levels.first(),
            to: levels.first(),
            before: 0.0,
        };
        let mut pieces = vec![warm];
        let stages = levels.stages().iter();
        let stages = stages.map(|stage| (stage.over.as_secs_f64(), stage.from, stage.to));
        let rest = (f64::INFINITY, levels.last(), levels.last());
        for (span, from, to) in stages.chain([rest]) {
            let last = pieces[pieces.len() - 1];
            let (begin, before) =
                (last.begin + last.span, last.before + last.count_within(last.span));
            pieces.push(Piece { begin, span, from, to, before });
        }
        pieces.retain(|piece| piece.span > 0.0);
        Staged { pieces: pieces.into() }
    }

    fn at(&self, t: f64) -> &Piece {
        &self.pieces[self.pieces.partition_point(|piece| piece.begin <= t).saturating_sub(1)]
    }

    fn rate(&self, t: f64) -> f64 {
        let piece = self.at(t);
        piece.from + piece.slope() * (t - piece.begin).clamp(0.0, piece.span)
    }

    fn integral(&self, t: f64) -> f64 {
        let piece = self.at(t);
        piece.before + piece.count_within((t - piece.begin).clamp(0.0, piece.span))
    }

    /// Inverts the integral like [`LinearRate::inverse`] within its piece. A value exactly at the
    /// start of pieces without arrivals belongs to the next piece with arrivals, because the first
    /// arrival of constant gaps is due where the rate starts.
    fn inverse(&self, x: f64) -> f64 {
        let row = self.pieces.partition_point(|piece| piece.before <= x).saturating_sub(1);
        let piece = &self.pieces[row];
        let (above, slope) = ((x - piece.before).max(0.0), piece.slope());
        if piece.from == 0.0 && above == 0.0 && piece.to > 0.0 {
            return piece.begin;
        }
        let root = (piece.from * piece.from + 2.0 * slope * above).max(0.0).sqrt();
        piece.begin + (2.0 * above / (piece.from + root)).min(piece.span)
    }
}

/// Rate that is constant at `from`, changes linearly to `to`, and is constant there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearRate {
    from: f64,
    to: f64,
    /// Start and duration of the ramp.
    ramp_at: f64,
    ramp_for: f64,
}

impl LinearRate {
    fn new(spec: &ArrivalSpec) -> LinearRate {
        LinearRate {
            from: spec.from,
            to: spec.to,
            ramp_at: spec.warm_up.as_secs_f64(),
            ramp_for: spec.ramp_over.as_secs_f64(),
        }
    }

    fn rate(&self, t: f64) -> f64 {
        let into = t - self.ramp_at;
        if into < 0.0 {
            self.from
        } else if into < self.ramp_for {
            self.from + (self.to - self.from) * into / self.ramp_for
        } else {
            self.to
        }
    }

    fn integral(&self, t: f64) -> f64 {
        let into = t - self.ramp_at;
        if into <= 0.0 {
            return self.from * t;
        }
        let ramped = into.min(self.ramp_for);
        let slope = if self.ramp_for > 0.0 { (self.to - self.from) / self.ramp_for } else { 0.0 };
        let held = self.from * self.ramp_at;
        held + self.from * ramped + 0.5 * slope * ramped * ramped + self.to * (into - ramped)
    }

    /// Returns the time at which the integral reaches `x`.
    ///
    /// Within the ramp the time is the root of slope/2·t² + from·t = x, in the form 2x / (from +
    /// √(from² + 2·slope·x)): it loses no digits if the slope is small, and gives x/from if it is
    /// zero.
    fn inverse(&self, x: f64) -> f64 {
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
