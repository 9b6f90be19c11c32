//! From a record back to the ramp that it was made of.

use super::published::{
    CapacityRecord, CurveRecord, HysteresisRecord, KneeRecord, OverloadRecord, RampRecord,
    RampStepRecord, SpanRecord, UslRecord,
};
use super::{RampReport, RampStep};
use crate::figures::has_sessions;
use crate::run::{FindingRecord, plan_of};
use stats::curve::{Capacity, Curve, Hysteresis, Knee, Overload, Point, Span, Usl};
use stats::parse_objectives;

impl RampRecord {
    /// The ramp that this record was made of, fit for every form of a report.
    ///
    /// # Errors
    /// As [`RunRecord::report`](crate::run::RunRecord::report); and a step of no target.
    pub fn report(&self) -> Result<RampReport, String> {
        let (plan, plan_toml) = plan_of(&self.plan)?;
        let steps = self.steps.iter().map(|step| step.step(&self.labels));
        Ok(RampReport {
            name: self.name.clone(),
            axis: self.axis,
            labels: self.labels.clone(),
            plan,
            plan_toml,
            started_unix_s: self.started_unix_s,
            environment: self.environment.facts(),
            steps: steps.collect::<Result<_, _>>()?,
            curves: self.curves.iter().map(CurveRecord::curve).collect::<Result<_, _>>()?,
            verdict: self.verdict.verdict(),
            ended_early: self.ended_early.clone(),
            findings: self.findings.iter().map(FindingRecord::finding).collect(),
        })
    }
}

impl RampStepRecord {
    fn step(&self, labels: &[String]) -> Result<RampStep, String> {
        let at = |why: String| format!("step {} {why}", self.step);
        let label = labels.iter().position(|label| *label == self.label);
        let run = self.run.report().map_err(at)?;
        // what bounds the step was found with the objectives of the search, and is kept
        let found =
            Point::of(self.level, &run.measurement, &run.verdict, has_sessions(&run.plan), &[]);
        Ok(RampStep {
            label: label.ok_or_else(|| at("is of a target that is not among labels".to_owned()))?,
            purpose: self.purpose,
            repeat: self.repeat,
            point: Point { met: self.met, client_limited: self.client_limited, ..found },
            settled_s: number(self.settled_s),
            run,
        })
    }
}

/// A figure that could not be had.
fn number(figure: Option<f64>) -> f64 {
    figure.unwrap_or(f64::NAN)
}

/// A figure that is null where it has no bound.
fn unbounded(figure: Option<f64>) -> f64 {
    figure.unwrap_or(f64::INFINITY)
}

/// A level with its ends. One end alone is missing where nothing bounds it on that side.
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
    fn capacity(&self) -> Result<Capacity, String> {
        let objectives = match self.objective.as_str() {
            "" => Vec::new(),
            rules => parse_objectives(rules)
                .map_err(|error| format!("has a capacity of no known objective: {}", error.0))?,
        };
        Ok(Capacity {
            at: level(self.offered_per_s, self.low, self.high),
            confidence: self.confidence,
            objectives,
            how: self.end,
        })
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
    fn curve(&self) -> Result<Curve, String> {
        Ok(Curve {
            peak: self.peak_per_s.as_ref().map(SpanRecord::span),
            knee: self.knee.as_ref().map(KneeRecord::knee),
            kneedle: self.kneedle.as_ref().map(KneeRecord::knee),
            power_at: self.power_at,
            capacity: self.capacity.as_ref().map(CapacityRecord::capacity).transpose()?,
            overload: self.overload.overload(),
            usl: self.usl.as_ref().map(UslRecord::law),
            hysteresis: self.hysteresis.as_ref().map(HysteresisRecord::hysteresis),
            predicted_per_s: self.predicted_per_s,
            notes: self.notes.clone(),
        })
    }
}
