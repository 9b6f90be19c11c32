//! `loadstone.compare/1`. Every key is always present; times are in seconds, rates per second, shares
//! 0..=1; a figure that cannot be had is null. `docs/schema/compare.schema.json` describes it.

use super::{Contrast, GateRecord, Judgement, LETTERS, ProtocolRecord, judgement_id};
use crate::run::{EnvironmentRecord, Headline, HistogramRecord, PlanRecord, known};
use crate::{document, ids};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Hist;
use stats::compare::Scale;

/// The schema that is written, and the only one that is accepted.
pub const SCHEMA: &str = "loadstone.compare/1";

/// Reads a record from JSON. Keys that a newer version added are ignored.
///
/// # Errors
/// Fails if the text is not JSON, or JSON of another kind; the error has the position and the
/// reason.
pub fn read(text: &str) -> Result<CompareRecord, String> {
    document::read(text, SCHEMA, "loadstone compare --json")
}

impl CompareRecord {
    /// Checks that it can be rendered.
    ///
    /// # Errors
    /// Fails for a record of a version that did not store the machine: a clause that follows the
    /// file's name.
    pub fn is_whole(&self) -> Result<(), String> {
        self.environment.as_ref().map(|_| ()).ok_or_else(|| {
            "has no key \"environment\", without which it cannot be rendered again: it was written \
             by an earlier version; name the result in the store, or write the JSON again"
                .to_owned()
        })
    }

    /// Returns all sides; the first is the reference.
    pub fn sides(&self) -> impl Iterator<Item = &SideRecord> {
        [&self.before, &self.after].into_iter().chain(self.further.iter().map(|one| &one.side))
    }

    /// Returns all sides, each with its letter.
    pub fn lettered(&self) -> impl Iterator<Item = (char, &SideRecord)> {
        LETTERS.chars().zip(self.sides())
    }

    /// Returns every run of every side.
    pub fn runs(&self) -> impl Iterator<Item = &Headline> {
        self.sides().flat_map(|side| &side.runs)
    }

    /// Returns the comparison of every side after the first with the first, in their order.
    pub fn contrasts(&self) -> impl Iterator<Item = Contrast<'_>> {
        let second = (self.differences.as_slice(), self.bounds.as_slice());
        let further = self.further.iter().map(|one| (&one.differences[..], &one.bounds[..]));
        let found = std::iter::once(second).chain(further);
        self.lettered().skip(1).zip(found).map(|((letter, side), (differences, bounds))| Contrast {
            letter,
            label: &side.label,
            differences,
            bounds,
        })
    }
}

impl SideRecord {
    /// Returns the response times of all its runs together.
    pub fn response(&self) -> Hist {
        self.response_histogram.as_ref().map(HistogramRecord::hist).unwrap_or_default()
    }
}

impl DifferenceRecord {
    /// Returns whether a change is a difference of shares, not a ratio.
    pub fn points(&self) -> bool {
        self.scale == Scale::Points
    }
}

/// A figure that is not available is null.
mod or_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(figure: &f64, to: S) -> Result<S::Ok, S::Error> {
        super::known(*figure).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
    }
}

/// Two sets of runs, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CompareRecord {
    pub schema: String,
    /// The answer in one sentence.
    pub answer: String,
    pub name: String,
    /// Date and time, UTC.
    pub started: String,
    pub started_unix_s: f64,
    /// The order of the runs, block by block; empty for two sets that were recorded separately.
    pub order: Vec<String>,
    /// Confidence of every interval.
    pub confidence: f64,
    /// Number of resamples per interval; 0 if nothing was compared.
    pub resamples: u32,
    pub differences: Vec<DifferenceRecord>,
    /// The bounds of --fail-if.
    pub bounds: Vec<BoundRecord>,
    /// Reservations about the whole comparison.
    pub cautions: Vec<String>,
    /// Reason why it ended before its last block; earlier blocks are complete.
    pub ended_early: Option<String>,
    pub before: SideRecord,
    pub after: SideRecord,
    /// The third side and those after it, each compared with the first; absent in results of
    /// earlier versions.
    #[serde(default)]
    pub further: Vec<FurtherRecord>,
    /// Resources of each side, in order; only if they use different protocols.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolRecord>,
    /// The bounds of a gate as judged after every block; absent without a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateRecord>,
    /// The machine of the first run; absent in results of earlier versions.
    #[serde(default)]
    pub environment: Option<EnvironmentRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FurtherRecord {
    /// The answer in one sentence.
    pub answer: String,
    /// Differences between this side and the first.
    pub differences: Vec<DifferenceRecord>,
    /// The bounds of --fail-if.
    pub bounds: Vec<BoundRecord>,
    pub side: SideRecord,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SideRecord {
    pub label: String,
    /// The command that restarted the server for each run; null if the server was started
    /// separately.
    pub command: Option<String>,
    /// Every run, in order; repeats are several.
    pub runs: Vec<Headline>,
    /// The plan of its first run, secrets masked; null without a run.
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<serde_json::Value>"))]
    pub plan: Option<PlanRecord>,
    /// Response times of all its runs together; absent in results of earlier versions.
    #[serde(default)]
    pub response_histogram: Option<HistogramRecord>,
}

/// One figure of both sides.
// NaN where it cannot be had; JSON has no NaN
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct DifferenceRecord {
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "crate::schema::compared_figure")
    )]
    pub figure: String,
    /// Mean over the runs; geometric where the scale is a ratio.
    #[serde(with = "or_null")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<f64>"))]
    pub before: f64,
    #[serde(with = "or_null")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<f64>"))]
    pub after: f64,
    /// True if a change is after/before - 1; false if, for a share, it is after - before.
    #[serde(with = "ids::change_scale")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::change_scale::schema"))]
    pub scale: Scale,
    #[serde(with = "or_null")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<f64>"))]
    pub change: f64,
    /// Lower end of the interval of the change.
    #[serde(with = "or_null")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<f64>"))]
    pub low: f64,
    #[serde(with = "or_null")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<f64>"))]
    pub high: f64,
    /// Half the width of the interval that A would have shown when compared with itself.
    #[serde(with = "or_null")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<f64>"))]
    pub noise: f64,
    /// A change of this size is detected in four of five comparisons.
    #[serde(with = "or_null")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<f64>"))]
    pub detectable: f64,
    /// Cliff's delta over the runs.
    #[serde(with = "or_null")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "Option<f64>", range(min = -1.0, max = 1.0)))]
    pub effect: f64,
    #[serde(with = "or_null")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(with = "Option<f64>", range(min = 0.0, max = 1.0))
    )]
    pub p_value: f64,
    /// Judgment of the second side relative to the first.
    #[serde(with = "judgement_id")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "judgement_id::schema"))]
    pub judgement: Judgement,
    /// The difference in one sentence.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BoundRecord {
    /// The bound as typed.
    pub text: String,
    pub crossed: bool,
    /// The bound is exceeded, and every run counts for this figure: no run is INVALID, or, for
    /// failures, only because of the client's lateness. Otherwise absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub certain: bool,
    /// Not decided by these runs; absent if decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    pub why: String,
}
