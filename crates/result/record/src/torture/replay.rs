//! `loadstone.torture-replay/1`: the results of stored failures that were sent again.

use super::ids;
use crate::ids::by_id;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use torture::judge::{Judgement, TestOutcome};
use torture::record::Transcript;
use torture::result::{ReplayResult, ReplayVerdict, Replayed};
use torture::safety::Class;

/// The schema that is written.
pub const SCHEMA: &str = "loadstone.torture-replay/1";

/// A failure to replay.
#[derive(Clone, Debug)]
pub struct ReplayRow<'a> {
    /// Name of its folder.
    pub folder: String,
    pub kept: &'a Transcript,
    /// Version of the case by which it is judged.
    pub version: u32,
    /// Result; `None` if the replay ended before it.
    pub row: Option<&'a Replayed>,
}

/// Resent failures, and their target.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    pub target: &'a str,
    pub class: Class,
    /// All failures to be sent.
    pub rows: &'a [ReplayRow<'a>],
    /// Remarks on other versions.
    pub notes: &'a [String],
    pub result: &'a ReplayResult,
}

/// Results of resent failures: `loadstone torture replay --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ReplayRecord {
    pub schema: String,
    /// Version of the program that replayed.
    pub version: String,
    /// The URL that they were sent to.
    pub target: String,
    #[serde(with = "ids::class")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::class::schema"))]
    pub class: Class,
    pub interrupted: bool,
    /// Reason why nothing, or not everything, was sent.
    pub ended_early: Option<String>,
    /// Cases and programs of a version other than the one that stored a failure.
    pub notes: Vec<String>,
    pub failures: Vec<ReplayedRecord>,
}

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ReplayedRecord {
    /// The name of its folder.
    pub folder: String,
    pub case: String,
    /// Version of the judging rule: the one stored with the failure.
    pub case_version: u32,
    /// The version of the program that kept it.
    pub kept_by: String,
    /// Name of the exchange of the case, or of the random data.
    pub name: String,
    /// unlearned: no attempt was conclusive, or the case judges by code; not-sent: the replay ended
    /// before it.
    #[serde(with = "verdict")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "verdict::schema"))]
    pub verdict: Option<ReplayVerdict>,
    pub tries: u32,
    pub failed: u32,
    /// Outcome of the worst try.
    #[serde(with = "ids::outcome_or_none")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::outcome_or_none::schema")
    )]
    pub outcome: Option<TestOutcome>,
    pub seen: String,
    pub expected: String,
    pub why: String,
}

const VERDICTS: [Option<ReplayVerdict>; 5] = [
    Some(ReplayVerdict::Fixed),
    Some(ReplayVerdict::Failing),
    Some(ReplayVerdict::Flaky),
    Some(ReplayVerdict::Unlearned),
    None,
];

fn verdict_id(verdict: Option<ReplayVerdict>) -> &'static str {
    verdict.map_or("not-sent", ReplayVerdict::id)
}

by_id!(verdict, Option<ReplayVerdict>, VERDICTS, verdict_id, "a verdict of a replay");

impl ReplayRecord {
    pub fn new(replay: &Replay<'_>) -> ReplayRecord {
        ReplayRecord {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: replay.target.to_owned(),
            class: replay.class,
            interrupted: replay.result.interrupted,
            ended_early: replay.result.ended_early.clone(),
            notes: replay.notes.to_vec(),
            failures: replay.rows.iter().map(ReplayedRecord::new).collect(),
        }
    }
}

impl ReplayedRecord {
    fn new(row: &ReplayRow<'_>) -> ReplayedRecord {
        let judgement = row.row.map(|row| &row.judgement);
        let text = |of: fn(&Judgement) -> &String| judgement.map(of).cloned().unwrap_or_default();
        ReplayedRecord {
            folder: row.folder.clone(),
            case: row.kept.case.clone(),
            case_version: row.version,
            kept_by: row.kept.loadstone.clone(),
            name: row.kept.name.clone(),
            verdict: row.row.map(|row| row.verdict),
            tries: row.row.map_or(0, |row| row.tries),
            failed: row.row.map_or(0, |row| row.failed),
            outcome: judgement.map(|known| known.outcome),
            seen: text(|known| &known.seen),
            expected: text(|known| &known.expected),
            why: text(|known| &known.why),
        }
    }
}
