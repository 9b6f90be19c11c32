//! `loadstone.torture/1`, written and read back by the same types. Every key is always there; times
//! are in seconds; bytes are escaped as in a string of C.

use super::beside::BesideRow;
use super::server::{ServerCaseRow, ServerRow};
use super::waivers::{Applied, State};
use super::{Report, words};
use crate::words::timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use torture::cost;
use torture::judge::Outcome;
use torture::result::Boundary;
use torture::result::{
    Baseline, CaseResult, ExchangeResult, Health, Kept, Measure, ProbeKind, RunResult, Shrunk, Unit,
};
use units::Nanos;

/// The version of the format that is written, and the only one that is read.
const SCHEMA: &str = "loadstone.torture/1";

/// The report as JSON, indented, with a line feed at its end.
pub fn json(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(&Document::of(report))
        .expect("strings, numbers and lists always serialise");
    text.push('\n');
    text
}

/// Reads a document back. Keys that a newer writer added are passed over; those that an older one
/// did not have yet are empty.
///
/// # Errors
/// What is no JSON, or is JSON of another kind: where, and what it is.
pub fn read(text: &str) -> Result<Document, String> {
    let whole: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("is damaged or no JSON: {error}"))?;
    match whole.get("schema").and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) => {
            let other = units::quoted(other);
            return Err(format!("is {other}, not {SCHEMA} (of loadstone torture --json)"));
        }
        None => return Err(format!("has no \"schema\": it is not {SCHEMA}")),
    }
    // once more from the text, for the line of what is wrong
    serde_json::from_str(text).map_err(|error| format!("is not {SCHEMA}: {error}"))
}

/// The result of a torture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    pub schema: String,
    pub target: String,
    pub addresses: Vec<String>,
    pub class: String,
    pub started: String,
    pub started_unix_s: f64,
    pub elapsed_s: f64,
    pub interrupted: bool,
    pub ended_early: Option<String>,
    #[serde(default)]
    pub seed: u64,
    /// Of the program that wrote it.
    #[serde(default)]
    pub version: String,
    /// Cases that count against the server.
    #[serde(default)]
    pub findings: u64,
    pub plain: Page,
    pub post_trouble: Option<String>,
    pub habits: Vec<Habit>,
    #[serde(default)]
    pub baseline: Option<BaselineRow>,
    #[serde(default)]
    pub probes: Probes,
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// For each deadline that was measured.
    #[serde(default)]
    pub costs: Vec<CostRow>,
    #[serde(default)]
    pub waivers: Vec<WaiverRow>,
    pub cases: Vec<CaseRow>,
    /// The shortest that fails, of random data that failed.
    #[serde(default)]
    pub shrunk: Vec<ShrunkRow>,
    /// Failures of which a folder was kept.
    #[serde(default)]
    pub kept: Vec<KeptRow>,
    /// What a load felt that went on beside the cases.
    #[serde(default)]
    pub beside: Option<BesideRow>,
    /// What the server's own machine showed of it.
    #[serde(default)]
    pub server: Option<ServerRow>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShrunkRow {
    pub case: String,
    pub name: String,
    /// In which way it fails.
    pub kind: String,
    /// The same for failures of one kind that shrink to the same.
    pub bucket: String,
    pub from_bytes: u64,
    pub sent: String,
    pub executions: u64,
    /// The search came to its end, not its budget.
    pub finished: bool,
    pub boundaries: Vec<BoundaryRow>,
}

/// A length at which the outcome turns, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundaryRow {
    pub what: String,
    pub passes: u64,
    pub fails: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRow {
    pub case: String,
    pub name: String,
    pub folder: String,
}

/// What the probed page answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    pub status: u16,
    pub body_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Habit {
    pub name: String,
    pub seen: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineRow {
    pub probes: u64,
    pub failed: u64,
    pub p50_s: f64,
    pub p99_s: f64,
}

/// Probes of both kinds, by what they met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probes {
    pub new: ProbesSeen,
    pub keep: ProbesSeen,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbesSeen {
    pub correct: u64,
    pub shed: u64,
    pub lost: u64,
}

/// A number with its bracket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    pub case: String,
    pub what: String,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub unit: String,
    pub note: String,
}

/// What keeps every slot of the server busy with connections in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostRow {
    pub case: String,
    pub what: String,
    pub slots: Option<f64>,
    pub deadline_s: Option<f64>,
    pub connections_per_s: Option<f64>,
}

/// What is put up with, and what came of that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaiverRow {
    pub case: String,
    pub exchange: Option<String>,
    /// The worst that it puts up with.
    pub outcome: Option<String>,
    pub reason: String,
    /// The last day on which it holds.
    pub until: String,
    pub state: State,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseRow {
    pub id: String,
    pub version: u32,
    pub title: String,
    pub level: String,
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(with = "by_id")]
    pub outcome: Outcome,
    /// Why it does not count.
    #[serde(default)]
    pub waived: Option<String>,
    pub skipped: Option<String>,
    #[serde(default)]
    pub notes: Vec<String>,
    /// Until plain requests were right again; null when they were at once.
    pub recovery_s: Option<Recovery>,
    #[serde(default)]
    pub elapsed_s: f64,
    #[serde(default)]
    pub health: Option<HealthRow>,
    /// The server after the case, as its own machine showed it.
    #[serde(default)]
    pub server: Option<ServerCaseRow>,
    /// Executions of random data by what came back: a status, or how it ended.
    pub tally: BTreeMap<String, u64>,
    pub exchanges: Vec<ExchangeRow>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExchangeRow {
    pub name: String,
    #[serde(with = "by_id")]
    pub outcome: Outcome,
    pub seen: String,
    pub expected: String,
    pub why: String,
    pub tries: u32,
    pub failed: u32,
    pub elapsed_s: f64,
    pub sent: String,
    pub received: String,
}

/// What polite clients felt while a case pressed; shares of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthRow {
    pub correct: f64,
    pub shed: f64,
    pub lost: f64,
    pub probes: u64,
    pub p99_s: f64,
    pub recovery_s: Recovery,
    pub wanted: u64,
    pub armed: u64,
    pub followed: u32,
    pub rounds: u32,
    pub control_denied: Option<bool>,
}

/// Seconds, or `"never"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Recovery {
    Seconds(f64),
    Never(Never),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Never {
    #[serde(rename = "never")]
    Never,
}

impl Recovery {
    pub(super) fn of(span: Option<Nanos>) -> Recovery {
        let never = Recovery::Never(Never::Never);
        span.map_or(never, |span| Recovery::Seconds(span.as_secs_f64()))
    }
}

/// An outcome as its id.
mod by_id {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use torture::judge::Outcome;

    pub(super) fn serialize<S: Serializer>(outcome: &Outcome, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(outcome.id())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Outcome, D::Error> {
        let id = String::deserialize(from)?;
        let found = Outcome::ALL.into_iter().find(|outcome| outcome.id() == id);
        found.ok_or_else(|| D::Error::custom(format!("{} is no outcome", units::quoted(&id))))
    }
}

impl Document {
    /// The figures of a report.
    pub fn of(report: &Report) -> Document {
        let result = &report.result;
        Document {
            schema: SCHEMA.to_owned(),
            target: report.target.clone(),
            addresses: report.addresses.iter().map(ToString::to_string).collect(),
            class: report.class.id().to_owned(),
            started: timestamp(report.started_unix_s),
            started_unix_s: report.started_unix_s,
            elapsed_s: result.took.as_secs_f64(),
            interrupted: result.interrupted,
            ended_early: result.ended_early.clone(),
            seed: report.seed,
            version: report.environment.version.clone(),
            findings: report.findings().len() as u64,
            plain: Page { status: result.plain.status, body_bytes: result.plain.body_len },
            post_trouble: result.post_trouble.clone(),
            habits: habits(result),
            baseline: result.baseline.as_ref().map(BaselineRow::of),
            probes: Probes {
                new: ProbesSeen::of(result, ProbeKind::New),
                keep: ProbesSeen::of(result, ProbeKind::Keep),
            },
            limits: limits(result),
            costs: cost::costs(result).iter().map(CostRow::of).collect(),
            waivers: report.waivers.iter().map(WaiverRow::of).collect(),
            cases: result.cases.iter().map(|case| CaseRow::of(report, case)).collect(),
            shrunk: result.shrunk.iter().map(ShrunkRow::of).collect(),
            kept: result.kept.iter().map(KeptRow::of).collect(),
            beside: report.beside.as_ref().map(BesideRow::of),
            server: result.server.as_ref().and_then(ServerRow::of),
        }
    }
}

fn habits(result: &RunResult) -> Vec<Habit> {
    let one = |(name, seen): &(&str, String)| Habit { name: (*name).into(), seen: seen.clone() };
    result.habits.seen.iter().map(one).collect()
}

fn limits(result: &RunResult) -> Vec<Limit> {
    let all = result.cases.iter().flat_map(|case| case.measures.iter().map(move |one| (case, one)));
    all.map(|(case, one)| Limit::of(&case.case.id, one)).collect()
}

impl BaselineRow {
    fn of(base: &Baseline) -> BaselineRow {
        BaselineRow {
            probes: base.probes,
            failed: base.failed,
            p50_s: base.p50.as_secs_f64(),
            p99_s: base.p99.as_secs_f64(),
        }
    }
}

impl ProbesSeen {
    fn of(result: &RunResult, kind: ProbeKind) -> ProbesSeen {
        let [correct, shed, lost] = words::probes_seen(result, kind);
        ProbesSeen { correct, shed, lost }
    }
}

impl Limit {
    fn of(case: &str, one: &Measure) -> Limit {
        // JSON has no number for what is not finite
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        Limit {
            case: case.to_owned(),
            what: one.what.clone(),
            low: finite(one.low),
            high: finite(one.high),
            unit: unit_id(one.unit).to_owned(),
            note: one.note.clone(),
        }
    }

    /// The number as it is again; `None` where the unit is of a newer writer.
    pub fn measure(&self) -> Option<Measure> {
        let unit = UNITS.into_iter().find(|unit| unit_id(*unit) == self.unit)?;
        let (what, note) = (self.what.clone(), self.note.clone());
        Some(Measure { what, low: self.low, high: self.high, unit, note })
    }
}

impl CostRow {
    fn of(cost: &cost::Cost<'_>) -> CostRow {
        CostRow {
            case: cost.case.to_owned(),
            what: cost.what.to_owned(),
            slots: cost.slots,
            deadline_s: cost.deadline_s,
            connections_per_s: cost.per_second,
        }
    }
}

const UNITS: [Unit; 9] = [
    Unit::Bytes,
    Unit::Fields,
    Unit::Seconds,
    Unit::Spent,
    Unit::Connections,
    Unit::Requests,
    Unit::PerSecond,
    Unit::Ratio,
    Unit::Count,
];

fn unit_id(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Fields => "fields",
        Unit::Seconds => "seconds",
        Unit::Spent => "spent_seconds",
        Unit::Connections => "connections",
        Unit::Requests => "requests",
        Unit::PerSecond => "per_second",
        Unit::Ratio => "ratio",
        Unit::Count => "count",
    }
}

impl WaiverRow {
    fn of(applied: &Applied) -> WaiverRow {
        let waiver = &applied.waiver;
        WaiverRow {
            case: waiver.case.clone(),
            exchange: waiver.exchange.clone(),
            outcome: waiver.outcome.map(|outcome| outcome.id().to_owned()),
            reason: waiver.reason.clone(),
            until: waiver.until.to_string(),
            state: applied.state,
        }
    }
}

impl CaseRow {
    fn of(report: &Report, row: &CaseResult) -> CaseRow {
        CaseRow {
            id: row.case.id.clone(),
            version: row.case.version,
            title: row.case.title.clone(),
            level: row.case.level.id().to_owned(),
            reference: row.case.reference.clone(),
            outcome: row.outcome,
            waived: report.waived(&row.case.id).map(|one| one.waiver.reason.clone()),
            skipped: row.skipped.clone(),
            notes: row.notes.clone(),
            recovery_s: row.recovery.map(Recovery::of),
            elapsed_s: row.took.as_secs_f64(),
            health: row.health.as_ref().map(HealthRow::of),
            server: row.server.as_ref().map(ServerCaseRow::of),
            tally: row.tally.clone(),
            exchanges: row.exchanges.iter().map(ExchangeRow::of).collect(),
        }
    }
}

impl HealthRow {
    fn of(health: &Health) -> HealthRow {
        HealthRow {
            correct: health.correct,
            shed: health.shed,
            lost: health.lost,
            probes: health.probes,
            p99_s: health.p99.as_secs_f64(),
            recovery_s: Recovery::of(health.recovery),
            wanted: health.wanted,
            armed: health.armed,
            followed: health.followed,
            rounds: health.rounds,
            control_denied: health.control_denied,
        }
    }
}

impl ShrunkRow {
    fn of(row: &Shrunk) -> ShrunkRow {
        let boundary = |one: &Boundary| BoundaryRow {
            what: one.what.to_owned(),
            passes: one.passes as u64,
            fails: one.fails as u64,
        };
        ShrunkRow {
            case: row.case.clone(),
            name: row.name.clone(),
            kind: row.kind.to_string(),
            bucket: row.bucket(),
            from_bytes: row.from as u64,
            sent: row.bytes().escape_ascii().to_string(),
            executions: row.executions,
            finished: row.finished,
            boundaries: row.boundaries.iter().map(boundary).collect(),
        }
    }
}

impl KeptRow {
    fn of(row: &Kept) -> KeptRow {
        let (case, name, folder) = (row.case.clone(), row.name.clone(), row.folder.clone());
        KeptRow { case, name, folder }
    }
}

impl ExchangeRow {
    fn of(row: &ExchangeResult) -> ExchangeRow {
        ExchangeRow {
            name: row.name.clone(),
            outcome: row.judgement.outcome,
            seen: row.judgement.seen.clone(),
            expected: row.judgement.expected.clone(),
            why: row.judgement.why.clone(),
            tries: row.tries,
            failed: row.failed,
            elapsed_s: row.took.as_secs_f64(),
            sent: row.sent.escape_ascii().to_string(),
            received: row.received.escape_ascii().to_string(),
        }
    }
}
