//! `loadstone.runs/1`: the list of kept results.

use crate::compare::Judgement;
use crate::ids::{by_id, by_id_or_none};
use crate::run::known;
use crate::server::Conduct;
use crate::torture::ids;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::State;
use stats::curve::{Axis, Span};
use torture::judge::TestOutcome;

/// The schema that is written.
pub const SCHEMA: &str = "loadstone.runs/1";

/// Kind of result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    Run,
    Ramp,
    Compare,
    Torture,
}

impl ResultKind {
    pub const ALL: [ResultKind; 4] =
        [ResultKind::Run, ResultKind::Ramp, ResultKind::Compare, ResultKind::Torture];

    /// Returns a stable name, with which ids begin.
    pub fn id(self) -> &'static str {
        match self {
            ResultKind::Run => "run",
            ResultKind::Ramp => "ramp",
            ResultKind::Compare => "compare",
            ResultKind::Torture => "torture",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(id: &str) -> Option<ResultKind> {
        ResultKind::ALL.into_iter().find(|kind| kind.id() == id)
    }
}

/// Progress of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Finished,
    /// The program is running.
    Running,
    /// A signal or a rule ended it early; it finished its report.
    Interrupted,
    /// The program was killed before it could finish: the known part loads as interrupted.
    Killed,
    /// The list's data is unreadable: its file was damaged. The result itself may load.
    Damaged,
}

impl Progress {
    pub const ALL: [Progress; 5] = [
        Progress::Finished,
        Progress::Running,
        Progress::Interrupted,
        Progress::Killed,
        Progress::Damaged,
    ];

    /// Returns a stable name.
    pub fn id(self) -> &'static str {
        match self {
            Progress::Finished => "finished",
            Progress::Running => "running",
            Progress::Interrupted => "interrupted",
            Progress::Killed => "killed",
            Progress::Damaged => "damaged",
        }
    }
}

by_id!(result_kind, ResultKind, ResultKind::ALL, ResultKind::id, "a kind of result");
by_id!(progress, Progress, Progress::ALL, Progress::id, "a state of a result");
by_id_or_none!(
    result_kind_or_none,
    crate::runs::ResultKind,
    "crate::runs::result_kind",
    "crate::runs::result_kind::schema"
);
by_id_or_none!(state_or_none, stats::State, "crate::ids::state", "crate::ids::state::schema");
by_id_or_none!(axis_or_none, stats::curve::Axis, "crate::ids::axis", "crate::ids::axis::schema");
by_id_or_none!(
    conduct_or_none,
    crate::server::Conduct,
    "crate::server::conduct_id",
    "crate::server::conduct_id::schema"
);
by_id_or_none!(
    judgement_or_none,
    crate::compare::Judgement,
    "crate::compare::judgement_id",
    "crate::compare::judgement_id::schema"
);

/// The list of stored results, the latest first: `loadstone runs list --json`. Figures that a
/// result lacks are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct RunsRecord {
    pub schema: String,
    pub results: Vec<ListedRecord>,
}

impl RunsRecord {
    pub fn new(results: Vec<ListedRecord>) -> RunsRecord {
        RunsRecord { schema: SCHEMA.to_owned(), results }
    }
}

/// One result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ListedRecord {
    /// Kind and number: `run-12`. Only the number if the kind is damaged.
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(regex(pattern = "^((run|ramp|compare|torture)-)?[0-9]+$"))
    )]
    pub id: String,
    /// Null where it is damaged.
    #[serde(with = "result_kind_or_none")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "result_kind_or_none::schema")
    )]
    pub kind: Option<ResultKind>,
    pub name: String,
    pub tags: Vec<String>,
    /// Date and time, UTC.
    pub started: String,
    pub started_unix_s: Option<f64>,
    /// interrupted: it ended early and finished its report; killed: its program ended before that,
    /// and the stored part loads as interrupted; damaged: the list cannot read its figures.
    #[serde(with = "progress")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "progress::schema"))]
    pub state: Progress,
    /// Verdict of a finished result.
    #[serde(with = "state_or_none")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "state_or_none::schema"))]
    pub verdict: Option<State>,
    /// State of the server during a run; null for other kinds, and for runs of earlier versions.
    #[serde(default, with = "conduct_or_none")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "conduct_or_none::schema"))]
    pub server: Option<Conduct>,
    /// This and the next four: figures of a finished run.
    pub throughput_per_s: Option<f64>,
    pub goodput_per_s: Option<f64>,
    pub failure_share: Option<f64>,
    pub response_p50_s: Option<f64>,
    pub response_p99_s: Option<f64>,
    /// For a ramp: unit of its capacities, such as calls per second or users.
    #[serde(default, with = "axis_or_none")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "axis_or_none::schema"))]
    pub axis: Option<Axis>,
    /// For a finished ramp: capacities by target.
    pub capacities: Vec<LoadSpanRecord>,
    /// For a finished ramp without objectives, for each target: its knee; high is null if the steps
    /// showed none.
    #[serde(default)]
    pub knees: Vec<LoadSpanRecord>,
    /// For a finished comparison: the worst judgment of its figures.
    #[serde(with = "judgement_or_none")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "judgement_or_none::schema"))]
    pub judgement: Option<Judgement>,
    /// For a finished torture.
    #[serde(default)]
    pub torture: Option<TorturedRecord>,
    /// Command line as typed, secrets masked.
    pub command_line: String,
}

/// A load of a ramp's target; low and high are the ends of its interval, null where it is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct LoadSpanRecord {
    /// Label of the target.
    pub label: String,
    pub at: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl LoadSpanRecord {
    pub fn new(label: &str, span: Option<Span>) -> LoadSpanRecord {
        let end = |of: fn(Span) -> f64| span.map(of).and_then(known);
        LoadSpanRecord {
            label: label.to_owned(),
            at: end(|span| span.at),
            low: end(|span| span.low),
            high: end(|span| span.high),
        }
    }
}

/// Summary of a torture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TorturedRecord {
    /// Cases that were carried out.
    pub cases: u64,
    /// Findings that count against the server.
    pub findings: u64,
    /// The worst outcome of all.
    #[serde(with = "ids::outcome")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::outcome::schema"))]
    pub worst: TestOutcome,
}
