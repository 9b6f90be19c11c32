//! `loadstone.compare/1`. Every key is always present; times are in seconds, rates per second, shares
//! 0..=1; a figure that cannot be had is null. `docs/schema/compare.schema.json` describes it.

use super::{
    BoundResult, CompareReport, Difference, Judgement, answer, headlines, judgement_id, sentence,
};
use crate::run::{
    EnvironmentRecord, HeadlineRecord, HistogramRecord, RunReport, known, plan_value,
};
use crate::{document, ids, timestamp};
use sample::Environment;
use serde::{Deserialize, Serialize};
use stats::Hist;
use stats::compare::Scale;

/// The schema that is written, and the only one that is read.
pub const SCHEMA: &str = "loadstone.compare/1";

/// Reads a record from JSON. Keys that a newer version added are ignored.
///
/// # Errors
/// What is not JSON, and JSON of another kind: where, and what it is.
pub fn read(text: &str) -> Result<CompareRecord, String> {
    document::read(text, SCHEMA, "loadstone compare --json")
}

impl CompareRecord {
    /// Every figure of a comparison.
    pub fn of(report: &CompareReport) -> CompareRecord {
        CompareRecord {
            schema: SCHEMA.to_owned(),
            answer: answer(report),
            name: report.name.clone(),
            started: timestamp(report.started_unix_s),
            started_unix_s: report.started_unix_s,
            order: report.order.split_whitespace().map(str::to_owned).collect(),
            confidence: report.confidence,
            resamples: report.resamples,
            differences: report.differences.iter().map(DifferenceRecord::of).collect(),
            bounds: report.bounds.iter().map(BoundRecord::of).collect(),
            cautions: report.cautions.clone(),
            ended_early: report.ended_early.clone(),
            before: SideRecord::of(report, 0),
            after: SideRecord::of(report, 1),
            environment: Some(EnvironmentRecord::of(&machine(report))),
        }
    }
}

/// Of the first run.
fn machine(report: &CompareReport) -> Environment {
    report.runs.iter().flatten().next().map(|run| run.environment.clone()).unwrap_or_default()
}

fn responses(runs: &[RunReport]) -> Hist {
    let mut all = Hist::new();
    runs.iter().for_each(|run| all.merge(&run.measurement.total.response()));
    all
}

impl SideRecord {
    fn of(report: &CompareReport, side: usize) -> SideRecord {
        let runs = &report.runs[side];
        SideRecord {
            label: report.labels[side].clone(),
            command: report.commands[side].clone(),
            runs: headlines(runs).iter().map(HeadlineRecord::of).collect(),
            plan: runs.first().map(|run| plan_value(&run.plan_toml)),
            response_histogram: Some(HistogramRecord::of(&responses(runs))),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareRecord {
    pub schema: String,
    pub answer: String,
    pub name: String,
    pub started: String,
    pub started_unix_s: f64,
    pub order: Vec<String>,
    pub confidence: f64,
    pub resamples: u32,
    pub differences: Vec<DifferenceRecord>,
    pub bounds: Vec<BoundRecord>,
    pub cautions: Vec<String>,
    pub ended_early: Option<String>,
    pub before: SideRecord,
    pub after: SideRecord,
    /// The machine of the first run; absent in what an earlier version wrote.
    #[serde(default)]
    pub environment: Option<EnvironmentRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideRecord {
    pub label: String,
    pub command: Option<String>,
    pub runs: Vec<HeadlineRecord>,
    pub plan: Option<serde_json::Value>,
    /// Response times of all its runs together; absent in what an earlier version wrote.
    #[serde(default)]
    pub response_histogram: Option<HistogramRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DifferenceRecord {
    pub figure: String,
    pub before: Option<f64>,
    pub after: Option<f64>,
    #[serde(with = "ids::change_scale")]
    pub scale: Scale,
    pub change: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub noise: Option<f64>,
    pub detectable: Option<f64>,
    pub effect: Option<f64>,
    pub p_value: Option<f64>,
    #[serde(with = "judgement_id")]
    pub judgement: Judgement,
    pub text: String,
}

impl DifferenceRecord {
    fn of(one: &Difference) -> DifferenceRecord {
        DifferenceRecord {
            figure: one.figure.clone(),
            before: known(one.before),
            after: known(one.after),
            scale: if one.points { Scale::Points } else { Scale::Ratio },
            change: known(one.relative),
            low: known(one.low),
            high: known(one.high),
            noise: known(one.noise),
            detectable: known(one.detectable),
            effect: known(one.effect),
            p_value: known(one.p_value),
            judgement: one.judgement,
            text: sentence(one),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundRecord {
    pub text: String,
    pub crossed: bool,
    pub why: String,
}

impl BoundRecord {
    fn of(one: &BoundResult) -> BoundRecord {
        BoundRecord { text: one.text.clone(), crossed: one.crossed, why: one.why.clone() }
    }
}
