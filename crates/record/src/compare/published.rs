//! `loadstone.compare/1`. Every key is always present; times are in seconds, rates per second, shares
//! 0..=1; a figure that cannot be had is null. `docs/schema/compare.schema.json` describes it.

use super::{
    BoundResult, CompareReport, Contrast, Difference, Judgement, ProtocolRecord, answer, headlines,
    judgement_id, sentence, verdict,
};
use crate::run::{EnvironmentRecord, Headline, HistogramRecord, PlanRecord, RunReport, known};
use crate::{document, ids, timestamp};
use sample::Environment;
use schemars::JsonSchema;
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
            differences: differences('B', &report.differences),
            bounds: report.bounds.iter().map(BoundRecord::of).collect(),
            further: (2..)
                .zip(report.contrasts().skip(1))
                .map(|(side, contrast)| FurtherRecord::of(contrast, SideRecord::of(report, side)))
                .collect(),
            protocols: report.protocols.clone(),
            cautions: report.cautions.clone(),
            ended_early: report.ended_early.clone(),
            before: SideRecord::of(report, 0),
            after: SideRecord::of(report, 1),
            environment: Some(EnvironmentRecord::of(&machine(report))),
        }
    }
}

fn differences(letter: char, all: &[Difference]) -> Vec<DifferenceRecord> {
    all.iter().map(|one| DifferenceRecord::of(letter, one)).collect()
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

impl FurtherRecord {
    fn of(contrast: Contrast<'_>, side: SideRecord) -> FurtherRecord {
        FurtherRecord {
            answer: verdict(contrast),
            differences: differences(contrast.letter, contrast.differences),
            bounds: contrast.bounds.iter().map(BoundRecord::of).collect(),
            side,
        }
    }
}

impl SideRecord {
    fn of(report: &CompareReport, side: usize) -> SideRecord {
        let runs = report.runs.get(side).map_or(&[][..], Vec::as_slice);
        SideRecord {
            label: report.labels.get(side).cloned().unwrap_or_default(),
            command: report.commands.get(side).cloned().flatten(),
            runs: headlines(runs),
            plan: runs.first().map(|run| PlanRecord::of(&run.plan, &run.plan_toml)),
            response_histogram: Some(HistogramRecord::of(&responses(runs))),
        }
    }
}

/// Two sets of runs against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRecord {
    pub schema: String,
    /// The answer in one sentence.
    pub answer: String,
    pub name: String,
    /// Date and time, UTC.
    pub started: String,
    pub started_unix_s: f64,
    /// The order of the runs, block by block; empty for two sets that were recorded apart.
    pub order: Vec<String>,
    /// Of every interval.
    pub confidence: f64,
    /// Behind every interval; 0 where nothing was compared.
    pub resamples: u32,
    pub differences: Vec<DifferenceRecord>,
    /// The bounds of --fail-if.
    pub bounds: Vec<BoundRecord>,
    /// What speaks against the comparison as a whole.
    pub cautions: Vec<String>,
    /// Why it ended before its last block; the blocks before are whole.
    pub ended_early: Option<String>,
    pub before: SideRecord,
    pub after: SideRecord,
    /// The third side and those after it, each held against the first; absent in what an earlier
    /// version wrote.
    #[serde(default)]
    pub further: Vec<FurtherRecord>,
    /// What each side took, in their order; only where they speak different protocols.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolRecord>,
    /// The machine of the first run; absent in what an earlier version wrote.
    #[serde(default)]
    pub environment: Option<EnvironmentRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FurtherRecord {
    /// The answer in one sentence.
    pub answer: String,
    /// Of this side to the first.
    pub differences: Vec<DifferenceRecord>,
    /// The bounds of --fail-if.
    pub bounds: Vec<BoundRecord>,
    pub side: SideRecord,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideRecord {
    pub label: String,
    /// The command that started the server anew for each run; null where the server stood by
    /// itself.
    pub command: Option<String>,
    /// Every run, in the order they were made; repeats are several.
    pub runs: Vec<Headline>,
    /// The plan of its first run, secrets masked; null without a run.
    #[schemars(with = "Option<serde_json::Value>")]
    pub plan: Option<PlanRecord>,
    /// Response times of all its runs together; absent in what an earlier version wrote.
    #[serde(default)]
    pub response_histogram: Option<HistogramRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceRecord {
    #[schemars(schema_with = "crate::schema::compared_figure")]
    pub figure: String,
    /// Mean over the runs; geometric where the scale is a ratio.
    pub before: Option<f64>,
    pub after: Option<f64>,
    /// Whether a change is after/before - 1 or, of a share, after - before.
    #[serde(with = "ids::change_scale")]
    #[schemars(schema_with = "ids::change_scale::schema")]
    pub scale: Scale,
    pub change: Option<f64>,
    /// Lower end of the interval of the change.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Half the width of the interval that A would have shown against itself.
    pub noise: Option<f64>,
    /// A change of this size is found four times in five.
    pub detectable: Option<f64>,
    /// Cliff's delta over the runs.
    #[schemars(range(min = -1.0, max = 1.0))]
    pub effect: Option<f64>,
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p_value: Option<f64>,
    /// Of the second against the first.
    #[serde(with = "judgement_id")]
    #[schemars(schema_with = "judgement_id::schema")]
    pub judgement: Judgement,
    /// The same in one sentence.
    pub text: String,
}

impl DifferenceRecord {
    fn of(letter: char, one: &Difference) -> DifferenceRecord {
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
            text: sentence(letter, one),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundRecord {
    /// As typed.
    pub text: String,
    pub crossed: bool,
    pub why: String,
}

impl BoundRecord {
    fn of(one: &BoundResult) -> BoundRecord {
        BoundRecord { text: one.text.clone(), crossed: one.crossed, why: one.why.clone() }
    }
}
