//! `loadstone.ramp/1`: every step is a `loadstone.run/1` with more keys. `docs/schema/ramp.schema.json`
//! describes it.

use super::{RampReport, RampStep};
use crate::run::{EnvironmentRecord, FindingRecord, RunRecord, VerdictRecord, known, plan_value};
use crate::{document, ids, timestamp, words};
use serde::{Deserialize, Serialize};
use stats::curve::{Axis, CapacityEnd, Curve, OverloadShape, Purpose, Span};

/// The schema that is written, and the only one that is read.
pub const SCHEMA: &str = "loadstone.ramp/1";

/// The result of a ramp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampRecord {
    pub schema: String,
    pub verdict: VerdictRecord,
    pub name: String,
    #[serde(with = "ids::axis")]
    pub axis: Axis,
    pub labels: Vec<String>,
    pub knee: Option<KneeRecord>,
    pub capacity: Option<CapacityRecord>,
    pub overload: OverloadRecord,
    pub curves: Vec<CurveRecord>,
    pub ended_early: Option<String>,
    pub findings: Vec<FindingRecord>,
    pub started: String,
    pub started_unix_s: f64,
    pub environment: EnvironmentRecord,
    pub plan: serde_json::Value,
    pub steps: Vec<RampStepRecord>,
}

/// `offered_per_s` is the level: with `"axis": "population"` it counts users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneeRecord {
    pub offered_per_s: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub rule: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityRecord {
    pub offered_per_s: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub objective: String,
    pub confidence: f64,
    #[serde(with = "ids::capacity_end")]
    pub end: CapacityEnd,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverloadRecord {
    #[serde(with = "ids::overload_shape")]
    pub shape: OverloadShape,
    pub kept_share: Option<f64>,
    pub at_level: Option<f64>,
    pub recovery_s: Option<f64>,
    /// Null when recovery was not watched.
    pub recovered: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpanRecord {
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UslRecord {
    pub gamma: SpanRecord,
    pub alpha: SpanRecord,
    pub beta: SpanRecord,
    pub n_max: Option<f64>,
    pub x_max_per_s: Option<f64>,
    pub residual_per_s: Option<f64>,
    pub points: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HysteresisRecord {
    pub loss_share: Option<f64>,
    pub at_level: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurveRecord {
    pub label: String,
    pub peak_per_s: Option<SpanRecord>,
    pub knee: Option<KneeRecord>,
    pub kneedle: Option<KneeRecord>,
    pub power_at: Option<f64>,
    pub capacity: Option<CapacityRecord>,
    pub overload: OverloadRecord,
    pub usl: Option<UslRecord>,
    pub hysteresis: Option<HysteresisRecord>,
    pub predicted_per_s: Option<f64>,
    pub notes: Vec<String>,
}

/// A run, and what it is in the ramp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampStepRecord {
    pub step: usize,
    pub label: String,
    #[serde(with = "ids::purpose")]
    pub purpose: Purpose,
    pub level: f64,
    pub repeat: u32,
    pub settled_s: Option<f64>,
    pub achieved_per_s: Option<f64>,
    pub mean_concurrency: Option<f64>,
    pub response_mean_s: Option<f64>,
    pub service_mean_s: Option<f64>,
    pub client_limited: bool,
    pub met: Option<bool>,
    #[serde(flatten)]
    pub run: RunRecord,
}

impl RampRecord {
    /// Every figure of a ramp.
    pub fn of(report: &RampReport) -> RampRecord {
        let empty = Curve::default();
        let first = report.curves.first().unwrap_or(&empty);
        let curves = report.curves.iter().zip(&report.labels);
        RampRecord {
            schema: SCHEMA.to_owned(),
            verdict: VerdictRecord::of(&report.verdict),
            name: words::printable(&report.name, 1_000),
            axis: report.axis,
            labels: report.labels.clone(),
            knee: first.knee.as_ref().map(KneeRecord::of),
            capacity: first.capacity.as_ref().map(CapacityRecord::of),
            overload: OverloadRecord::of(first),
            curves: curves.map(|(curve, label)| CurveRecord::of(curve, label)).collect(),
            ended_early: report.ended_early.clone(),
            findings: report.findings.iter().map(FindingRecord::of).collect(),
            started: timestamp(report.started_unix_s),
            started_unix_s: report.started_unix_s,
            environment: EnvironmentRecord::of(&report.environment),
            plan: plan_value(&report.plan_toml),
            steps: report
                .steps
                .iter()
                .zip(1..)
                .map(|(step, at)| RampStepRecord::of(step, at, report))
                .collect(),
        }
    }
}

/// Reads a record from JSON. Keys that a newer version added are ignored.
///
/// # Errors
/// What is not JSON, and JSON of another kind: where, and what it is.
pub fn read(text: &str) -> Result<RampRecord, String> {
    document::read(text, SCHEMA, "loadstone ramp --json")
}

impl KneeRecord {
    fn of(knee: &stats::curve::Knee) -> KneeRecord {
        KneeRecord {
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

impl CapacityRecord {
    fn of(capacity: &stats::curve::Capacity) -> CapacityRecord {
        let rules: Vec<&str> =
            capacity.objectives.iter().map(|objective| objective.text.as_str()).collect();
        CapacityRecord {
            offered_per_s: known(capacity.at.at),
            low: low(&capacity.at),
            high: known(capacity.at.high),
            objective: rules.join(", "),
            confidence: capacity.confidence,
            end: capacity.how,
        }
    }
}

impl OverloadRecord {
    fn of(curve: &Curve) -> OverloadRecord {
        let overload = &curve.overload;
        OverloadRecord {
            shape: overload.shape,
            kept_share: known(overload.kept_share),
            at_level: known(overload.at_level),
            recovery_s: known(overload.recovery_s),
            recovered: (!overload.recovery_s.is_nan()).then_some(overload.recovery_s.is_finite()),
        }
    }
}

impl SpanRecord {
    fn of(span: &Span) -> SpanRecord {
        SpanRecord { value: known(span.at), low: known(span.low), high: known(span.high) }
    }
}

impl CurveRecord {
    fn of(curve: &Curve, label: &str) -> CurveRecord {
        CurveRecord {
            label: label.to_owned(),
            peak_per_s: curve.peak.as_ref().map(SpanRecord::of),
            knee: curve.knee.as_ref().map(KneeRecord::of),
            kneedle: curve.kneedle.as_ref().map(KneeRecord::of),
            power_at: curve.power_at.and_then(known),
            capacity: curve.capacity.as_ref().map(CapacityRecord::of),
            overload: OverloadRecord::of(curve),
            usl: curve.usl.as_ref().map(|law| UslRecord {
                gamma: SpanRecord::of(&law.g),
                alpha: SpanRecord::of(&law.a),
                beta: SpanRecord::of(&law.b),
                n_max: known(law.n_max),
                x_max_per_s: known(law.x_max),
                residual_per_s: known(law.residual),
                points: law.points,
            }),
            hysteresis: curve.hysteresis.as_ref().map(|found| HysteresisRecord {
                loss_share: known(found.loss_share),
                at_level: known(found.at_level),
            }),
            predicted_per_s: curve.predicted_per_s.and_then(known),
            notes: curve.notes.clone(),
        }
    }
}

impl RampStepRecord {
    fn of(step: &RampStep, at: usize, report: &RampReport) -> RampStepRecord {
        let point = &step.point;
        RampStepRecord {
            step: at,
            label: report.labels.get(step.label).cloned().unwrap_or_default(),
            purpose: step.purpose,
            level: point.level,
            repeat: step.repeat,
            settled_s: known(step.settled_s),
            achieved_per_s: known(point.achieved_per_s),
            mean_concurrency: known(point.concurrency),
            response_mean_s: known(point.response_mean_s),
            service_mean_s: known(point.service_mean_s),
            client_limited: point.client_limited,
            met: point.met,
            run: RunRecord::of(&step.run),
        }
    }
}
