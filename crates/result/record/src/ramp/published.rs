//! `loadstone.ramp/1`: every step is a `loadstone.run/1` with more keys. `docs/schema/ramp.schema.json`
//! describes it.

use super::{RampReport, RampStep};
use crate::run::{EnvironmentRecord, Finding, PlanRecord, RunRecord, VerdictRecord, known};
use crate::{document, ids, timestamp, words};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Objective;
use stats::State;
use stats::curve::{Axis, CapacityEnd, Curve, OverloadShape, Purpose, Span};

/// The schema that is written, and the only one that is accepted.
pub const SCHEMA: &str = "loadstone.ramp/1";

/// The result of a ramp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct RampRecord {
    pub schema: String,
    /// Verdict of the whole ramp, on the steps that were used.
    pub verdict: VerdictRecord,
    /// The targets as typed, passwords masked.
    pub name: String,
    /// Unit of levels: offered calls a second, users; or, for an emulated path at one load, the
    /// share of packets lost in each direction, the round trip in seconds, bits a second.
    #[serde(with = "ids::axis")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::axis::schema"))]
    pub axis: Axis,
    /// Names of the targets, in the given order.
    pub labels: Vec<String>,
    /// Knee of the first target.
    pub knee: Option<KneeRecord>,
    /// Capacity of the first target.
    pub capacity: Option<CapacityRecord>,
    /// Overload of the first target.
    pub overload: OverloadRecord,
    /// Results of the steps of each target, in the order of the labels.
    pub curves: Vec<CurveRecord>,
    /// Reason why it ended before its last step.
    pub ended_early: Option<String>,
    pub findings: Vec<Finding>,
    pub started: String,
    pub started_unix_s: f64,
    pub environment: EnvironmentRecord,
    /// The plan of the first target at one load, secrets masked.
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "serde_json::Value"))]
    pub plan: PlanRecord,
    /// Each step as in loadstone.run/1, with its role in the ramp.
    pub steps: Vec<RampStepRecord>,
}

/// `offered_per_s` is the level: with `"axis": "population"` it counts users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct KneeRecord {
    /// The level: users when the axis is the population.
    pub offered_per_s: Option<f64>,
    /// Null when the lowest step that can be used already fell short: how far below it the knee
    /// lies was not measured.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Description of the rule that found it.
    pub rule: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CapacityRecord {
    /// The level: users when the axis is the population.
    pub offered_per_s: Option<f64>,
    pub low: Option<f64>,
    /// Null without an upper end.
    pub high: Option<f64>,
    /// Objectives as typed; may be empty.
    #[serde(rename = "objective", with = "ids::objectives")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "String"))]
    pub objectives: Vec<Objective>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub confidence: f64,
    #[serde(with = "ids::capacity_end")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::capacity_end::schema"))]
    pub end: CapacityEnd,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct OverloadRecord {
    /// flat: at least 95 % of the peak kept; sag: at least half; collapse: less; unseen: not
    /// observed.
    #[serde(with = "ids::overload_shape")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::overload_shape::schema")
    )]
    pub shape: OverloadShape,
    /// Share of the peak goodput that is kept at at_level.
    pub kept_share: Option<f64>,
    /// Twice the knee, or the nearest usable level above 1.5 knees.
    pub at_level: Option<f64>,
    /// Time from the end of the overload until the server answered as before; null if not watched
    /// or not observed.
    pub recovery_s: Option<f64>,
    /// Null when recovery was not watched.
    pub recovered: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SpanRecord {
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct UslRecord {
    /// Throughput of one call at a time, per second.
    pub gamma: SpanRecord,
    /// Contention.
    pub alpha: SpanRecord,
    /// Coherency.
    pub beta: SpanRecord,
    /// Concurrency of the largest throughput; null if the curve has no maximum.
    pub n_max: Option<f64>,
    pub x_max_per_s: Option<f64>,
    /// Residual standard error.
    pub residual_per_s: Option<f64>,
    pub points: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HysteresisRecord {
    pub loss_share: Option<f64>,
    pub at_level: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CurveRecord {
    pub label: String,
    /// Highest goodput of a usable step, with the interval over its repeats.
    pub peak_per_s: Option<SpanRecord>,
    pub knee: Option<KneeRecord>,
    /// Knee by Kneedle, from the form of the curve only.
    pub kneedle: Option<KneeRecord>,
    /// Level of the largest throughput over response time.
    pub power_at: Option<f64>,
    pub capacity: Option<CapacityRecord>,
    pub overload: OverloadRecord,
    /// The universal scalability law fitted to throughput against mean concurrency.
    pub usl: Option<UslRecord>,
    /// Largest loss of goodput on the way down, relative to the way up.
    pub hysteresis: Option<HysteresisRecord>,
    /// Prediction from the time of one call at a time: 1 / its mean service time at the lowest
    /// load.
    pub predicted_per_s: Option<f64>,
    /// Undetermined results and their reasons.
    pub notes: Vec<String>,
}

/// A run, and its role in the ramp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct RampStepRecord {
    /// Number of the step, in the order they were run.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1)))]
    pub step: usize,
    pub label: String,
    #[serde(with = "ids::purpose")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::purpose::schema"))]
    pub purpose: Purpose,
    /// The intended load: calls (or sessions) a second, or users.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub level: f64,
    pub repeat: u32,
    /// Time that the target took to become idle before the step.
    pub settled_s: Option<f64>,
    pub achieved_per_s: Option<f64>,
    /// Calls in flight.
    pub mean_concurrency: Option<f64>,
    pub response_mean_s: Option<f64>,
    pub service_mean_s: Option<f64>,
    /// The client was late or at its own limit: the step is excluded from all figures.
    pub client_limited: bool,
    /// Share of failures that the objectives allow; null if none is on failures (0.1 %).
    #[serde(default)]
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub failures_max: Option<f64>,
    /// True if the objectives were met by a server that does not fail; null without objectives.
    pub met: Option<bool>,
    #[serde(flatten)]
    pub run: RunRecord,
}

impl RampRecord {
    /// Returns a record with every figure of a ramp. VALID before
    /// [`RampRecord::with_verdict`].
    pub fn new(report: &RampReport) -> RampRecord {
        let empty = Curve::default();
        let first = report.curves.first().unwrap_or(&empty);
        let curves = report.curves.iter().zip(&report.labels);
        RampRecord {
            schema: SCHEMA.to_owned(),
            verdict: VerdictRecord { state: State::Valid, causes: Vec::new() },
            name: words::printable(&report.name, 1_000),
            axis: report.axis,
            labels: report.labels.clone(),
            knee: first.knee.as_ref().map(KneeRecord::new),
            capacity: first.capacity.as_ref().map(CapacityRecord::new),
            overload: OverloadRecord::new(first),
            curves: curves.map(|(curve, label)| CurveRecord::new(curve, label)).collect(),
            ended_early: report.ended_early.clone(),
            findings: report.findings.clone(),
            started: timestamp(report.started_unix_s),
            started_unix_s: report.started_unix_s,
            environment: EnvironmentRecord::new(&report.environment),
            plan: PlanRecord::new(&report.plan, &report.plan_toml),
            steps: report
                .steps
                .iter()
                .zip(1..)
                .map(|(step, at)| RampStepRecord::new(step, at, &report.labels))
                .collect(),
        }
    }
}

/// Reads a record from JSON. Keys that a newer version added are ignored.
///
/// # Errors
/// Fails if the text is not JSON, or JSON of another kind; the error has the position and the
/// reason.
pub fn read(text: &str) -> Result<RampRecord, String> {
    document::read(text, SCHEMA, "loadstone ramp --json")
}

impl KneeRecord {
    fn new(knee: &stats::curve::Knee) -> KneeRecord {
        KneeRecord {
            offered_per_s: known(knee.at.at),
            low: low(&knee.at),
            high: known(knee.at.high),
            rule: knee.rule.clone(),
        }
    }
}

/// Returns the lower end, if a lower load was measured.
fn low(span: &Span) -> Option<f64> {
    known(span.low).filter(|_| !span.is_open_below())
}

impl CapacityRecord {
    fn new(capacity: &stats::curve::Capacity) -> CapacityRecord {
        CapacityRecord {
            offered_per_s: known(capacity.at.at),
            low: low(&capacity.at),
            high: known(capacity.at.high),
            objectives: capacity.objectives.clone(),
            confidence: capacity.confidence,
            end: capacity.how,
        }
    }
}

impl OverloadRecord {
    fn new(curve: &Curve) -> OverloadRecord {
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
    fn new(span: &Span) -> SpanRecord {
        SpanRecord { value: known(span.at), low: known(span.low), high: known(span.high) }
    }
}

impl CurveRecord {
    fn new(curve: &Curve, label: &str) -> CurveRecord {
        CurveRecord {
            label: label.to_owned(),
            peak_per_s: curve.peak.as_ref().map(SpanRecord::new),
            knee: curve.knee.as_ref().map(KneeRecord::new),
            kneedle: curve.kneedle.as_ref().map(KneeRecord::new),
            power_at: curve.power_at.and_then(known),
            capacity: curve.capacity.as_ref().map(CapacityRecord::new),
            overload: OverloadRecord::new(curve),
            usl: curve.usl.as_ref().map(|law| UslRecord {
                gamma: SpanRecord::new(&law.g),
                alpha: SpanRecord::new(&law.a),
                beta: SpanRecord::new(&law.b),
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
    /// Returns the record of a step, the `at`th from 1. `labels`: of all targets.
    pub fn new(step: &RampStep, at: usize, labels: &[String]) -> RampStepRecord {
        let point = &step.point;
        RampStepRecord {
            step: at,
            label: labels.get(step.label).cloned().unwrap_or_default(),
            purpose: step.purpose,
            level: point.level,
            repeat: step.repeat,
            settled_s: known(step.settled_s),
            achieved_per_s: known(point.achieved_per_s),
            mean_concurrency: known(point.concurrency),
            response_mean_s: known(point.response_mean_s),
            service_mean_s: known(point.service_mean_s),
            client_limited: point.client_limited,
            failures_max: point.failures_max,
            met: point.met,
            run: RunRecord::new(&step.run),
        }
    }
}
