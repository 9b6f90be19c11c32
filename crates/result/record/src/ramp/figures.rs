//! The figures of a ramp in the form used internally: points and curves.

use super::published::{
    CapacityRecord, CurveRecord, HysteresisRecord, KneeRecord, OverloadRecord, RampRecord,
    RampStepRecord, SpanRecord, UslRecord,
};
use stats::curve::{Capacity, Curve, Hysteresis, Knee, Overload, Point, Purpose, Span, Usl};

impl RampRecord {
    /// Checks that it can be rendered.
    ///
    /// # Errors
    /// Fails for a step without a target, or like
    /// [`RunRecord::is_whole`](crate::run::RunRecord::is_whole), with a clause that follows the
    /// file's name.
    pub fn is_whole(&self) -> Result<(), String> {
        for step in &self.steps {
            let at = |why: String| format!("step {} {why}", step.step);
            step.run.is_whole().map_err(at)?;
            if !self.labels.contains(&step.label) {
                return Err(at("is of a target that is not among labels".to_owned()));
            }
        }
        Ok(())
    }

    /// Returns the row of a step's target in [`RampRecord::labels`].
    pub fn row_of(&self, step: &RampStepRecord) -> Option<usize> {
        self.labels.iter().position(|label| *label == step.label)
    }

    /// Returns one curve for each label, in order.
    pub fn curves(&self) -> Vec<Curve> {
        self.curves.iter().map(CurveRecord::curve).collect()
    }

    /// Returns the lowest usable step of a target whose server fails there; `None` if it serves the
    /// lowest load. Failures that the load does not cause allow no conclusion.
    pub fn failing(&self, row: usize) -> Option<&RampStepRecord> {
        let counted = |step: &&RampStepRecord| step.purpose != Purpose::Recovery;
        let points: Vec<Point> =
            self.steps_of(row).filter(counted).map(RampStepRecord::point).collect();
        let lowest = stats::curve::failing_from(&stats::curve::levels(&points))?;
        let mut steps = self.steps_of(row).filter(counted);
        steps.find(|step| !step.client_limited && step.level <= lowest && step.point().fails())
    }

    /// Returns whether the server of any target fails at the lowest load.
    pub fn fails(&self) -> bool {
        (0..self.labels.len()).any(|row| self.failing(row).is_some())
    }

    /// Returns the steps of a target, by its row in [`RampRecord::labels`].
    pub fn steps_of(&self, row: usize) -> impl Iterator<Item = &RampStepRecord> {
        let label = self.labels.get(row);
        self.steps.iter().filter(move |step| Some(&step.label) == label)
    }
}

impl RampStepRecord {
    /// Returns the step's point on its target's curve.
    pub fn point(&self) -> Point {
        let response = &self.run.response_time_s;
        Point {
            level: self.level,
            offered_per_s: self.run.offered_per_s,
            achieved_per_s: number(self.achieved_per_s),
            goodput_per_s: self.run.goodput_per_s,
            concurrency: number(self.mean_concurrency),
            response_mean_s: number(self.response_mean_s),
            service_mean_s: number(self.service_mean_s),
            p99_s: if response.count == 0 { f64::NAN } else { response.p99 },
            failure_share: self.run.failure_share,
            failures_max: self.failures_max,
            met: self.met,
            client_limited: self.client_limited,
            window_s: self.run.duration_s,
        }
    }
}

/// Returns a figure; NaN if not available.
fn number(figure: Option<f64>) -> f64 {
    figure.unwrap_or(f64::NAN)
}

/// Returns a figure of a record, in which null means unbounded; infinity for null.
fn unbounded(figure: Option<f64>) -> f64 {
    figure.unwrap_or(f64::INFINITY)
}

/// Returns a level with its ends. A single end is missing if nothing bounds it on that side.
fn level(at: Option<f64>, low: Option<f64>, high: Option<f64>) -> Span {
    let (low, high) = match (low, high) {
        (None, None) => (f64::NAN, f64::NAN),
        (low, high) => (low.unwrap_or(0.0), unbounded(high)),
    };
    Span { at: number(at), low, high }
}

impl SpanRecord {
    fn span(&self) -> Span {
        Span { at: number(self.value), low: number(self.low), high: number(self.high) }
    }
}

impl KneeRecord {
    fn knee(&self) -> Knee {
        Knee { at: level(self.offered_per_s, self.low, self.high), rule: self.rule.clone() }
    }
}

impl CapacityRecord {
    fn capacity(&self) -> Capacity {
        Capacity {
            at: level(self.offered_per_s, self.low, self.high),
            confidence: self.confidence,
            objectives: self.objectives.clone(),
            how: self.end,
        }
    }
}

impl OverloadRecord {
    fn overload(&self) -> Overload {
        Overload {
            shape: self.shape,
            kept_share: number(self.kept_share),
            at_level: number(self.at_level),
            recovery_s: match self.recovered {
                Some(false) => f64::INFINITY,
                _ => number(self.recovery_s),
            },
        }
    }
}

impl UslRecord {
    fn law(&self) -> Usl {
        Usl {
            g: self.gamma.span(),
            a: self.alpha.span(),
            b: self.beta.span(),
            n_max: unbounded(self.n_max),
            x_max: unbounded(self.x_max_per_s),
            residual: number(self.residual_per_s),
            points: self.points,
        }
    }
}

impl HysteresisRecord {
    fn hysteresis(&self) -> Hysteresis {
        Hysteresis { loss_share: number(self.loss_share), at_level: number(self.at_level) }
    }
}

impl CurveRecord {
    /// Restores a curve, with infinite values for missing bounds and NaN for missing figures.
    pub fn curve(&self) -> Curve {
        Curve {
            peak: self.peak_per_s.as_ref().map(SpanRecord::span),
            knee: self.knee.as_ref().map(KneeRecord::knee),
            kneedle: self.kneedle.as_ref().map(KneeRecord::knee),
            power_at: self.power_at,
            capacity: self.capacity.as_ref().map(CapacityRecord::capacity),
            overload: self.overload.overload(),
            usl: self.usl.as_ref().map(UslRecord::law),
            hysteresis: self.hysteresis.as_ref().map(HysteresisRecord::hysteresis),
            predicted_per_s: self.predicted_per_s,
            notes: self.notes.clone(),
        }
    }
}
