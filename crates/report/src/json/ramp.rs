//! `loadstone.ramp/1`: the steps as `loadstone.run/1` has them, and what they say together.
//! `docs/schema/ramp.schema.json` describes it. Top-level knee, capacity and overload are those of
//! the first target; `curves` has them for each.

use super::parts::{Environment, Finding, Verdict};
use super::{Document, document, known, plan_value};
use crate::ramp::{RampReport, RampStep};
use crate::words;
use serde::Serialize;
use stats::curve::{CapacityEnd, Curve, OverloadShape, Span};

/// The report as JSON, indented, with a line feed at its end.
pub fn json(report: &RampReport) -> String {
    super::printed(&ramp(report))
}

#[derive(Serialize)]
struct Ramp {
    schema: &'static str,
    verdict: Verdict,
    name: String,
    axis: &'static str,
    labels: Vec<String>,
    knee: Option<Knee>,
    capacity: Option<Capacity>,
    overload: Overload,
    curves: Vec<CurveOf>,
    ended_early: Option<String>,
    findings: Vec<Finding>,
    started: String,
    started_unix_s: f64,
    environment: Environment,
    plan: serde_json::Value,
    steps: Vec<StepOf>,
}

/// `offered_per_s` is the level: with `"axis": "population"` it counts users.
#[derive(Serialize)]
struct Knee {
    offered_per_s: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    rule: String,
}

#[derive(Serialize)]
struct Capacity {
    offered_per_s: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    objective: String,
    confidence: f64,
    end: &'static str,
}

#[derive(Serialize)]
struct Overload {
    shape: &'static str,
    kept_share: Option<f64>,
    at_level: Option<f64>,
    recovery_s: Option<f64>,
    /// Null when recovery was not watched.
    recovered: Option<bool>,
}

#[derive(Serialize)]
struct Interval {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Serialize)]
struct Usl {
    gamma: Interval,
    alpha: Interval,
    beta: Interval,
    n_max: Option<f64>,
    x_max_per_s: Option<f64>,
    residual_per_s: Option<f64>,
    points: usize,
}

#[derive(Serialize)]
struct Hysteresis {
    loss_share: Option<f64>,
    at_level: Option<f64>,
}

#[derive(Serialize)]
struct CurveOf {
    label: String,
    peak_per_s: Option<Interval>,
    knee: Option<Knee>,
    kneedle: Option<Knee>,
    power_at: Option<f64>,
    capacity: Option<Capacity>,
    overload: Overload,
    usl: Option<Usl>,
    hysteresis: Option<Hysteresis>,
    predicted_per_s: Option<f64>,
    notes: Vec<String>,
}

/// A run, and what it is in the ramp.
#[derive(Serialize)]
struct StepOf {
    step: usize,
    label: String,
    purpose: &'static str,
    level: f64,
    repeat: u32,
    settled_s: Option<f64>,
    achieved_per_s: Option<f64>,
    mean_concurrency: Option<f64>,
    response_mean_s: Option<f64>,
    service_mean_s: Option<f64>,
    client_limited: bool,
    met: Option<bool>,
    #[serde(flatten)]
    run: Document,
}

fn ramp(report: &RampReport) -> Ramp {
    let empty = Curve::default();
    let first = report.curves.first().unwrap_or(&empty);
    let curves = report.curves.iter().zip(&report.labels);
    Ramp {
        schema: "loadstone.ramp/1",
        verdict: Verdict::of(&report.verdict),
        name: words::printable(&report.name, 1_000),
        axis: report.axis.id(),
        labels: report.labels.clone(),
        knee: first.knee.as_ref().map(Knee::of),
        capacity: first.capacity.as_ref().map(Capacity::of),
        overload: Overload::of(first),
        curves: curves.map(|(curve, label)| CurveOf::of(curve, label)).collect(),
        ended_early: report.ended_early.clone(),
        findings: report.findings.iter().map(Finding::of).collect(),
        started: words::timestamp(report.started_unix_s),
        started_unix_s: report.started_unix_s,
        environment: Environment::of(&report.environment),
        plan: plan_value(&report.plan_toml),
        steps: report
            .steps
            .iter()
            .zip(1..)
            .map(|(step, at)| StepOf::of(step, at, report))
            .collect(),
    }
}

impl Knee {
    fn of(knee: &stats::curve::Knee) -> Knee {
        Knee {
            offered_per_s: known(knee.at.at),
            low: low(&knee.at),
            high: known(knee.at.high),
            rule: knee.rule.clone(),
        }
    }
}

/// The lower end, where anything was measured below.
fn low(span: &Span) -> Option<f64> {
    known(span.low).filter(|_| !span.is_open_below())
}

impl Capacity {
    fn of(capacity: &stats::curve::Capacity) -> Capacity {
        let rules: Vec<&str> =
            capacity.objectives.iter().map(|objective| objective.text.as_str()).collect();
        Capacity {
            offered_per_s: known(capacity.at.at),
            low: low(&capacity.at),
            high: known(capacity.at.high),
            objective: rules.join(", "),
            confidence: capacity.confidence,
            end: match capacity.how {
                CapacityEnd::Bracketed => "bracketed",
                CapacityEnd::NeverMissed => "never-missed",
                CapacityEnd::NeverMet => "never-met",
                CapacityEnd::ClientLimited => "client-limited",
            },
        }
    }
}

impl Overload {
    fn of(curve: &Curve) -> Overload {
        let overload = &curve.overload;
        Overload {
            shape: match overload.shape {
                OverloadShape::Flat => "flat",
                OverloadShape::Sag => "sag",
                OverloadShape::Collapse => "collapse",
                OverloadShape::Unseen => "unseen",
            },
            kept_share: known(overload.kept_share),
            at_level: known(overload.at_level),
            recovery_s: known(overload.recovery_s),
            recovered: (!overload.recovery_s.is_nan()).then_some(overload.recovery_s.is_finite()),
        }
    }
}

impl Interval {
    fn of(span: &Span) -> Interval {
        Interval { value: known(span.at), low: known(span.low), high: known(span.high) }
    }
}

impl CurveOf {
    fn of(curve: &Curve, label: &str) -> CurveOf {
        CurveOf {
            label: label.to_owned(),
            peak_per_s: curve.peak.as_ref().map(Interval::of),
            knee: curve.knee.as_ref().map(Knee::of),
            kneedle: curve.kneedle.as_ref().map(Knee::of),
            power_at: curve.power_at.and_then(known),
            capacity: curve.capacity.as_ref().map(Capacity::of),
            overload: Overload::of(curve),
            usl: curve.usl.as_ref().map(|law| Usl {
                gamma: Interval::of(&law.g),
                alpha: Interval::of(&law.a),
                beta: Interval::of(&law.b),
                n_max: known(law.n_max),
                x_max_per_s: known(law.x_max),
                residual_per_s: known(law.residual),
                points: law.points,
            }),
            hysteresis: curve.hysteresis.as_ref().map(|found| Hysteresis {
                loss_share: known(found.loss_share),
                at_level: known(found.at_level),
            }),
            predicted_per_s: curve.predicted_per_s.and_then(known),
            notes: curve.notes.clone(),
        }
    }
}

impl StepOf {
    fn of(step: &RampStep, at: usize, report: &RampReport) -> StepOf {
        let point = &step.point;
        StepOf {
            step: at,
            label: report.labels.get(step.label).cloned().unwrap_or_default(),
            purpose: step.purpose.id(),
            level: point.level,
            repeat: step.repeat,
            settled_s: known(step.settled_s),
            achieved_per_s: known(point.achieved_per_s),
            mean_concurrency: known(point.concurrency),
            response_mean_s: known(point.response_mean_s),
            service_mean_s: known(point.service_mean_s),
            client_limited: point.client_limited,
            met: point.met,
            run: document(&step.run),
        }
    }
}
