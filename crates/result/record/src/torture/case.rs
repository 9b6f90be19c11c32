//! Results of a case, an exchange, a measured limit.

use super::bytes::WireBytes;
use super::ids;
use super::server::ServerCaseRecord;
use super::waivers::{self, Applied};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use torture::case::{Case, RequirementLevel};
use torture::judge::{FailureKind, Severity, TestOutcome, severity};
use torture::result::{Boundary, Recovery as CaseRecovery};
use torture::result::{CaseResult, ExchangeResult, Health, Kept, Measure, SentPause, Shrunk, Unit};
use units::Nanos;

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CaseRecord {
    pub id: String,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1)))]
    pub version: u32,
    pub title: String,
    #[serde(with = "ids::level")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::level::schema"))]
    pub level: RequirementLevel,
    /// The specification that it cites.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Reason why it is tested; empty in results of versions that did not write it.
    #[serde(default)]
    pub reason: String,
    #[serde(with = "ids::outcome")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::outcome::schema"))]
    pub outcome: TestOutcome,
    /// Severity of a finding; null if it is not a finding.
    #[serde(default, with = "ids::severity_or_none")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::severity_or_none::schema")
    )]
    pub severity: Option<Severity>,
    /// Reason for the severity; empty if it is not a finding.
    #[serde(default)]
    pub matters: String,
    /// Reason why it does not count, if waived.
    #[serde(default)]
    pub waived: Option<String>,
    /// The case that shows the same fault and counts for it; null if it counts for itself.
    #[serde(default)]
    pub same_as: Option<String>,
    /// Reason why it was skipped.
    pub skipped: Option<String>,
    /// Reasons for the outcome if no exchange has them, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Time until plain requests were answered as before; null if they were at once.
    pub recovery_s: Option<Recovery>,
    #[serde(default)]
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    #[serde(default)]
    pub health: Option<HealthRecord>,
    /// The server after the case, as its own machine showed it.
    #[serde(default)]
    pub server: Option<ServerCaseRecord>,
    /// Executions of random data by response: a status, or how it ended.
    pub tally: BTreeMap<String, u64>,
    pub exchanges: Vec<ExchangeRecord>,
}

/// The result of an exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ExchangeRecord {
    pub name: String,
    #[serde(with = "ids::outcome")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::outcome::schema"))]
    pub outcome: TestOutcome,
    /// Severity; null if it is not a finding.
    #[serde(default, with = "ids::severity_or_none")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::severity_or_none::schema")
    )]
    pub severity: Option<Severity>,
    /// The response, in a few words.
    pub seen: String,
    pub expected: String,
    /// Reason why the outcome is not a pass.
    pub why: String,
    pub tries: u32,
    pub failed: u32,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    /// The bytes that were sent, without pauses.
    pub sent: WireBytes,
    /// The pauses between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<PauseRecord>,
    /// The start of the response.
    pub received: WireBytes,
}

/// A pause between bytes that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PauseRecord {
    /// Bytes sent before it.
    pub after_bytes: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub for_s: f64,
    /// The client half-closes here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half_close: bool,
    /// The client does something else here that a shell cannot, such as a reset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_action: bool,
}

/// Observations of well-behaved clients while a case applied load. The shares are of time, 0 to 1,
/// and sum to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HealthRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub correct: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub shed: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub lost: f64,
    pub probes: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p99_s: f64,
    /// Null where the run, or the time of the case, ended before it was known.
    pub recovery_s: Option<Recovery>,
    /// Number of connections intended for the load, and the most that were established at once.
    pub wanted: u64,
    /// The most that were established at once.
    pub armed: u64,
    /// Number of rounds in which the effect followed the stress, and number of rounds.
    pub followed: u32,
    pub rounds: u32,
    /// The same number of well-behaved connections denied service too; null if not tried.
    pub control_denied: Option<bool>,
}

/// Seconds, or `"never"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(untagged)]
pub enum Recovery {
    Seconds(f64),
    Never(Never),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub enum Never {
    #[serde(rename = "never")]
    Never,
}

/// A measured number, which lies between `low` and `high`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct LimitRecord {
    pub case: String,
    pub what: String,
    /// The largest accepted value: the lower bound of the number.
    pub low: Option<f64>,
    /// The smallest value that was refused; null if no value up to low was refused.
    pub high: Option<f64>,
    #[serde(with = "ids::unit")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::unit::schema"))]
    pub unit: Unit,
    /// Behavior there, and the counted unit.
    pub note: String,
}

/// The shortest random data that fails in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ShrunkRecord {
    pub case: String,
    /// The exchange that it was shrunk from.
    pub name: String,
    /// Way to fail: a status, hang, no HTTP, out of step, lost, inherited, foreign, answer.
    #[serde(with = "ids::kind")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::kind::schema"))]
    pub kind: FailureKind,
    /// Identical for failures of one kind that shrink to the same bytes.
    pub bucket: String,
    pub from_bytes: u64,
    pub sent: WireBytes,
    /// Conversations that the search took.
    pub executions: u64,
    /// The search ended by itself, not by its budget.
    pub finished: bool,
    /// Lengths in bytes at which the outcome changes: the longest that passes and the shortest that
    /// fails.
    pub boundaries: Vec<BoundaryRecord>,
}

/// A length at which the outcome changes, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BoundaryRecord {
    pub what: String,
    pub passes: u64,
    pub fails: u64,
}

/// A failed exchange, stored for replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct KeptRecord {
    pub case: String,
    pub name: String,
    /// Path of its folder.
    pub folder: String,
}

impl CaseRecord {
    pub(super) fn new(row: &CaseResult, waivers: &[Applied]) -> CaseRecord {
        let case = &row.case;
        let weight = severity::of_case(row);
        CaseRecord {
            id: case.id.clone(),
            version: case.version,
            title: case.title.clone(),
            level: case.level,
            reference: case.reference.clone(),
            reason: case.why.clone(),
            outcome: row.outcome,
            severity: weight.map(|weight| weight.severity),
            matters: weight.map_or_else(String::new, |weight| weight.reason.to_owned()),
            waived: waivers::used(waivers, &case.id).map(|one| one.waiver.reason.clone()),
            same_as: row.same_as.clone(),
            skipped: row.skipped.clone(),
            notes: row.notes.clone(),
            recovery_s: Recovery::for_case(row.recovery),
            elapsed_s: row.took.as_secs_f64(),
            health: row.health.as_ref().map(HealthRecord::new),
            server: row.server.as_ref().map(ServerCaseRecord::new),
            tally: row.tally.clone(),
            exchanges: row.exchanges.iter().map(|one| ExchangeRecord::new(case, one)).collect(),
        }
    }

    /// Returns the letter of its group.
    pub fn group(&self) -> char {
        self.id.chars().next().unwrap_or('?')
    }

    /// Returns whether it counts against the server: a finding that is not waived, and whose fault
    /// no other case represents.
    pub fn counts(&self) -> bool {
        self.outcome.is_finding() && self.waived.is_none() && self.same_as.is_none()
    }

    /// Returns whether it counts, and is at least this severe. A finding of a version without
    /// severities is.
    pub fn fails(&self, least: Severity) -> bool {
        self.counts() && self.severity.is_none_or(|severity| severity >= least)
    }

    /// Returns whether it is a finding or advice.
    pub fn is_notable(&self) -> bool {
        self.outcome >= TestOutcome::Advisory
    }

    pub fn elapsed(&self) -> Nanos {
        Nanos::from_secs_f64(self.elapsed_s)
    }
}

impl HealthRecord {
    fn new(health: &Health) -> HealthRecord {
        HealthRecord {
            correct: health.correct,
            shed: health.shed,
            lost: health.lost,
            probes: health.probes,
            p99_s: health.p99.as_secs_f64(),
            recovery_s: (!health.cut_short).then(|| Recovery::new(health.recovery)),
            wanted: health.wanted,
            armed: health.armed,
            followed: health.followed,
            rounds: health.rounds,
            control_denied: health.control_denied,
        }
    }
}

impl Recovery {
    /// Null in JSON where plain requests got their usual response at once.
    fn for_case(recovery: CaseRecovery) -> Option<Recovery> {
        match recovery {
            CaseRecovery::AtOnce => None,
            CaseRecovery::After(duration) => Some(Recovery::new(Some(duration))),
            CaseRecovery::Never => Some(Recovery::new(None)),
        }
    }

    pub(super) fn new(duration: Option<Nanos>) -> Recovery {
        let never = Recovery::Never(Never::Never);
        duration.map_or(never, |duration| Recovery::Seconds(duration.as_secs_f64()))
    }

    /// Returns the duration; `None` for never.
    pub fn duration(self) -> Option<Nanos> {
        match self {
            Recovery::Seconds(seconds) => Some(Nanos::from_secs_f64(seconds)),
            Recovery::Never(Never::Never) => None,
        }
    }
}

impl LimitRecord {
    /// Returns the numbers that a case measured.
    pub(super) fn for_case(row: &CaseResult) -> impl Iterator<Item = LimitRecord> {
        row.measures.iter().map(|one| LimitRecord::new(&row.case.id, one))
    }

    fn new(case: &str, one: &Measure) -> LimitRecord {
        // JSON has no number for what is not finite
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        LimitRecord {
            case: case.to_owned(),
            what: one.what.clone(),
            low: finite(one.low),
            high: finite(one.high),
            unit: one.unit,
            note: one.note.clone(),
        }
    }
}

impl ShrunkRecord {
    pub fn new(row: &Shrunk) -> ShrunkRecord {
        let boundary = |one: &Boundary| BoundaryRecord {
            what: one.what.to_owned(),
            passes: one.passes as u64,
            fails: one.fails as u64,
        };
        ShrunkRecord {
            case: row.case.clone(),
            name: row.name.clone(),
            kind: row.kind,
            bucket: row.bucket(),
            from_bytes: row.from as u64,
            sent: WireBytes(row.bytes()),
            executions: row.executions,
            finished: row.finished,
            boundaries: row.boundaries.iter().map(boundary).collect(),
        }
    }
}

impl KeptRecord {
    pub(super) fn new(row: &Kept) -> KeptRecord {
        let (case, name, folder) = (row.case.clone(), row.name.clone(), row.folder.clone());
        KeptRecord { case, name, folder }
    }
}

impl PauseRecord {
    fn new(pause: &SentPause) -> PauseRecord {
        PauseRecord {
            after_bytes: pause.after,
            for_s: pause.span.as_secs_f64(),
            half_close: pause.half_close,
            other_action: pause.other_action,
        }
    }
}

impl ExchangeRecord {
    fn new(case: &Case, row: &ExchangeResult) -> ExchangeRecord {
        ExchangeRecord {
            name: row.name.clone(),
            outcome: row.judgement.outcome,
            severity: severity::of_exchange(case, row).map(|weight| weight.severity),
            seen: row.judgement.seen.clone(),
            expected: row.judgement.expected.clone(),
            why: row.judgement.why.clone(),
            tries: row.tries,
            failed: row.failed,
            elapsed_s: row.took.as_secs_f64(),
            sent: WireBytes(row.sent.clone()),
            pauses: row.pauses.iter().map(PauseRecord::new).collect(),
            received: WireBytes(row.received.clone()),
        }
    }
}
