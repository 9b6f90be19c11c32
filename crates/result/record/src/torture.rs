//! `loadstone.torture/1`: the complete result of a torture, sufficient for every renderer. Times
//! are in seconds; bytes are escaped as in a C string. Every key is always present, except those
//! that a probe may lack.

mod bytes;
mod case;
pub mod chain;
mod cost;
pub mod diff;
pub(crate) mod ids;
mod load;
mod over;
mod probe;
pub mod rejudged;
pub mod replay;
mod report;
mod server;
pub mod waivers;

pub use bytes::WireBytes;
pub use case::{
    BoundaryRecord, CaseRecord, ExchangeRecord, HealthRecord, KeptRecord, LimitRecord, Never,
    PauseRecord, Recovery, ShrunkRecord,
};
pub use load::{IntervalRecord, LoadRecord, LoadedCase};
pub use over::OverCase;
pub use probe::{ProbeCounts, ProbeOutcomes, ProbeRecord};
pub use report::{Beside, Report, found};
pub use server::{
    DeathRecord, MomentRecord, ProcessRecord, ServerCaseRecord, ServerRecord, StateRecord,
};
pub use waivers::{Applied, Day, Waiver, WaiverState};

use crate::run::{EnvironmentRecord, PathRecord};
use crate::{document, timestamp};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use torture::judge::{Plain, Severity};
use torture::result::{Baseline, RunResult};
use torture::safety::Class;

/// The schema that is written, and the only one that is accepted.
pub const SCHEMA: &str = "loadstone.torture/1";

/// The result of a torture. Bytes are escaped as in a C string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TortureRecord {
    pub schema: String,
    /// The URL as typed.
    pub target: String,
    /// Addresses of its name; the first is the tested one.
    pub addresses: Vec<String>,
    #[serde(with = "ids::class")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::class::schema"))]
    pub class: Class,
    /// Date and time, UTC.
    pub started: String,
    pub started_unix_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    pub interrupted: bool,
    /// Reason why nothing, or not everything, was tested.
    pub ended_early: Option<String>,
    /// Number of cases that were not tested, or not completely, because the time for all cases
    /// (`--budget`) was used up.
    #[serde(default)]
    pub out_of_time: u64,
    /// Seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// Lowest severity of findings that failed the run (`--fail-on`).
    #[serde(default = "failing", with = "ids::severity")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::severity::schema"))]
    pub fail_on: Severity,
    /// Version of the program that wrote it.
    #[serde(default)]
    pub version: String,
    /// The machine that tested; null in results of versions that did not write it.
    #[serde(default)]
    pub environment: Option<EnvironmentRecord>,
    /// Cases that count against the server: findings that are not waived.
    #[serde(default)]
    pub findings: u64,
    /// Response to a plain GET of the probed page.
    pub plain: PlainPage,
    /// Response of the page for bodies to a plain POST, if it refused it.
    pub post_trouble: Option<String>,
    /// The page that accepts bodies, as given; null without one.
    #[serde(default)]
    pub post: Option<String>,
    /// Further options that a repetition of a case needs, in order.
    #[serde(default)]
    pub options: Vec<String>,
    pub habits: Vec<HabitRecord>,
    /// Results of probes before any load; null if there was no load case.
    #[serde(default)]
    pub baseline: Option<BaselineRecord>,
    /// Probes of the server's health by outcome: on new connections, and on a kept one.
    #[serde(default)]
    pub probes: ProbeCounts,
    /// Limits, deadlines, slots and costs, in the order of the cases.
    #[serde(default)]
    pub limits: Vec<LimitRecord>,
    /// For each deadline, the number of new connections per second that keep every slot of the
    /// server busy.
    #[serde(default)]
    pub costs: Vec<CostRecord>,
    /// Slots of the server that the user named (--slots); null where none were.
    #[serde(default)]
    pub slots_named: Option<u64>,
    /// Accepted findings (--expect), and whether they occurred.
    #[serde(default)]
    pub waivers: Vec<Applied>,
    pub cases: Vec<CaseRecord>,
    /// The shortest failing form of random data that failed: the first of each kind in each case.
    #[serde(default)]
    pub shrunk: Vec<ShrunkRecord>,
    /// Failures stored in a folder.
    #[serde(default)]
    pub kept: Vec<KeptRecord>,
    /// Observations of a load during the cases; null without a load.
    #[serde(default)]
    pub beside: Option<LoadRecord>,
    /// Observations on the server's own machine; null if there are none.
    #[serde(default)]
    pub server: Option<ServerRecord>,
    /// The emulated path of the cases (--path); null without one. Its figures are those of a run's
    /// path.
    #[serde(default)]
    pub path: Option<PathRecord>,
    /// Each probe of the server's health, in the order in which they ended.
    #[serde(default)]
    pub probe_series: Vec<ProbeRecord>,
}

/// In versions without severities, every finding failed a run.
fn failing() -> Severity {
    Severity::Low
}

/// The response of the probed page to a plain GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PlainPage {
    pub status: u16,
    pub body_bytes: u64,
    /// Two plain requests had different bodies: of the page only the status was compared.
    #[serde(default)]
    pub changes: bool,
}

/// Behavior that specifications leave open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HabitRecord {
    pub name: String,
    pub seen: String,
}

/// Response times of the probes before the first case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BaselineRecord {
    pub probes: u64,
    pub failed: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p50_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p99_s: f64,
}

/// Number of connections in one state that occupy every slot of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CostRecord {
    pub case: String,
    pub what: String,
    /// Connections that the server serves at once, where known.
    pub slots: Option<f64>,
    /// Time for which the server keeps a connection in this state; null if nothing ended it.
    pub deadline_s: Option<f64>,
    /// Null without slots, and without a deadline: then as many connections as there are slots do
    /// it once.
    pub connections_per_s: Option<f64>,
}

/// Reads a record from JSON. Keys that a newer version added are ignored; keys that an older version
/// did not have are empty.
///
/// # Errors
/// Fails if the text is not JSON, or JSON of another kind; the error has the position and the
/// reason.
pub fn read(text: &str) -> Result<TortureRecord, String> {
    document::read(text, SCHEMA, "loadstone torture --json")
}

impl TortureRecord {
    /// Returns the published form of a torture.
    pub fn new(report: &Report) -> TortureRecord {
        let result = &report.result;
        let waivers = &report.waivers;
        let mut cases: Vec<CaseRecord> =
            result.cases.iter().map(|case| CaseRecord::new(case, waivers)).collect();
        replace_waived_representative(&mut cases);
        let limits: Vec<LimitRecord> =
            result.cases.iter().flat_map(LimitRecord::for_case).collect();
        let is_meter = |id: &str| {
            result.cases.iter().any(|row| row.case.id == id && cost::is_meter(&row.case))
        };
        TortureRecord {
            schema: SCHEMA.to_owned(),
            target: report.target.clone(),
            addresses: report.addresses.iter().map(ToString::to_string).collect(),
            class: report.class,
            started: timestamp(report.started_unix_s),
            started_unix_s: report.started_unix_s,
            elapsed_s: result.took.as_secs_f64(),
            interrupted: result.interrupted,
            ended_early: result.ended_early.clone(),
            out_of_time: result.cases.iter().filter(|case| case.out_of_time).count() as u64,
            seed: report.seed,
            fail_on: report.fail_on,
            version: report.environment.version.clone(),
            environment: Some(EnvironmentRecord::new(&report.environment)),
            findings: counted(&cases),
            plain: PlainPage::new(&result.plain),
            post_trouble: result.post_trouble.clone(),
            post: report.post.clone(),
            options: report.options.clone(),
            habits: habits(result),
            baseline: result.baseline.as_ref().map(BaselineRecord::new),
            probes: ProbeCounts::new(&result.probes),
            costs: cost::costs(&limits, result.slots_named, is_meter),
            limits,
            slots_named: result.slots_named,
            waivers: waivers.clone(),
            cases,
            shrunk: result.shrunk.iter().map(ShrunkRecord::new).collect(),
            kept: result.kept.iter().map(KeptRecord::new).collect(),
            beside: report.beside.as_ref().map(LoadRecord::new),
            server: result.server.as_ref().and_then(ServerRecord::new),
            path: report.path.as_ref().map(PathRecord::new),
            probe_series: result.probes.iter().map(ProbeRecord::new).collect(),
        }
    }

    /// Returns whether each probe is present: the JSON of earlier versions has only their counts.
    pub fn has_probes(&self) -> bool {
        self.environment.is_some()
    }

    /// Returns whether any counting finding is severe enough to fail the run.
    pub fn fails(&self) -> bool {
        self.cases.iter().any(|case| case.fails(self.fail_on))
    }

    /// Returns the cases that count against the server, worst first: findings that are not waived.
    pub fn counted_findings(&self) -> Vec<&CaseRecord> {
        let mut all: Vec<&CaseRecord> = self.cases.iter().filter(|case| case.counts()).collect();
        all.sort_by_key(|case| std::cmp::Reverse((case.severity, case.outcome)));
        all
    }

    /// Returns the number of findings per severity, most severe first; only severities that occur.
    pub fn by_severity(&self) -> Vec<(Severity, u64)> {
        let count = |severity: Severity| {
            let of = |case: &&CaseRecord| case.counts() && case.severity == Some(severity);
            (severity, self.cases.iter().filter(of).count() as u64)
        };
        Severity::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect()
    }

    /// Returns findings and advisories, worst first, including waived ones, but only one case for
    /// each fault.
    pub fn notable(&self) -> Vec<&CaseRecord> {
        let own = |case: &&CaseRecord| case.is_notable() && case.same_as.is_none();
        let mut all: Vec<&CaseRecord> = self.cases.iter().filter(own).collect();
        all.sort_by_key(|case| std::cmp::Reverse((case.severity, case.outcome)));
        all
    }

    /// Returns the cases that show the same fault as this one.
    pub fn same_as(&self, case: &str) -> Vec<&CaseRecord> {
        let same = |one: &&CaseRecord| one.same_as.as_deref() == Some(case);
        self.cases.iter().filter(same).collect()
    }

    /// Returns the number of waived findings, which do not count.
    pub fn waived_count(&self) -> u64 {
        let waived = |case: &&CaseRecord| case.outcome.is_finding() && case.waived.is_some();
        self.cases.iter().filter(waived).count() as u64
    }

    /// Returns the number of executed cases: findings are counted in these only, not in skipped
    /// cases.
    pub fn tested_count(&self) -> u64 {
        self.cases.iter().filter(|case| case.skipped.is_none()).count() as u64
    }

    /// Returns whether any case was executed.
    pub fn is_tested(&self) -> bool {
        self.tested_count() > 0
    }

    /// Returns whether anything was learned about the server.
    pub fn is_conclusive(&self) -> bool {
        self.cases.iter().any(|case| case.outcome.is_tested())
    }

    /// Returns whether cases are missing: it was interrupted, ended early, or lacked time.
    pub fn is_cut(&self) -> bool {
        self.interrupted || self.ended_early.is_some() || self.out_of_time > 0
    }

    /// Returns a sentence about the cases for which there was no time; `None` if there are none.
    pub fn incomplete(&self) -> Option<String> {
        let count = Some(self.out_of_time).filter(|count| *count > 0)?;
        Some(format!(
            "Incomplete: the time for all cases ended before {count} of {} cases {} complete (--budget \
            SPAN raises it, --only selects cases).",
            self.cases.len(),
            if count == 1 { "was" } else { "were" }
        ))
    }

    /// Returns the waiver of the findings of this case, if there is one.
    pub fn waiver_of(&self, case: &str) -> Option<&Applied> {
        waivers::used(&self.waivers, case)
    }

    /// Returns the numbers that a case measured.
    pub fn limits_of<'a>(&'a self, case: &'a str) -> impl Iterator<Item = &'a LimitRecord> {
        self.limits.iter().filter(move |limit| limit.case == case)
    }

    /// Returns the shrunk exchange of random data.
    pub fn shrunk_of(&self, case: &str, name: &str) -> Option<&ShrunkRecord> {
        self.shrunk.iter().find(|shrunk| shrunk.case == case && shrunk.name == name)
    }

    /// Returns the folder of an exchange that was kept.
    pub fn kept_folder(&self, case: &str, name: &str) -> Option<&str> {
        let found = self.kept.iter().find(|kept| kept.case == case && kept.name == name);
        found.map(|kept| kept.folder.as_str())
    }
}

fn habits(result: &RunResult) -> Vec<HabitRecord> {
    let one =
        |(name, seen): &(String, String)| HabitRecord { name: name.clone(), seen: seen.clone() };
    result.habits.seen.iter().map(one).collect()
}

/// Replaces a waived case that represents a fault by the first other case that shows it.
fn replace_waived_representative(cases: &mut [CaseRecord]) {
    let waived = |case: &&CaseRecord| case.waived.is_some() && case.same_as.is_none();
    let ids: Vec<String> = cases.iter().filter(waived).map(|case| case.id.clone()).collect();
    for id in ids {
        let mut root: Option<String> = None;
        for case in cases.iter_mut() {
            if case.same_as.as_ref() == Some(&id) && case.waived.is_none() {
                case.same_as.clone_from(&root);
                root.get_or_insert_with(|| case.id.clone());
            }
        }
    }
}

fn counted(cases: &[CaseRecord]) -> u64 {
    cases.iter().filter(|case| case.counts()).count() as u64
}

impl PlainPage {
    fn new(plain: &Plain) -> PlainPage {
        let changes = plain.status > 0 && plain.digest.is_none();
        PlainPage { status: plain.status, body_bytes: plain.body_len, changes }
    }
}

impl BaselineRecord {
    fn new(base: &Baseline) -> BaselineRecord {
        BaselineRecord {
            probes: base.probes,
            failed: base.failed,
            p50_s: base.p50.as_secs_f64(),
            p99_s: base.p99.as_secs_f64(),
        }
    }
}
