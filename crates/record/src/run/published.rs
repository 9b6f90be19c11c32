//! `loadstone.run/1`: the JSON that other programs read. Every key is always present; times are in
//! seconds, rates per second, shares 0..=1; a figure that cannot be had is null.
//! `docs/schema/run.schema.json` describes it.

mod fleet;
mod http2;
mod http3;
mod journeys;
mod path;
mod scenarios;
mod series;
mod sides;
mod times;
mod traffic;
mod verdict;
mod verified;

pub use fleet::{AgentRecord, FleetRecord};
pub use http2::{FieldsRecord, Http2Record};
pub use http3::{Http3Record, QuicRecord, RttRecord};
pub use journeys::{
    CaptureRecord, FeederRecord, JourneyRecord, JourneyStepRecord, NotedRecord, TransactionRecord,
};
pub use path::{LateRecord, PathDirectionRecord, PathKindRecord, PathRecord};
pub use scenarios::ScenarioRecord;
pub use series::SecondRecord;
pub use sides::{
    ClientRecord, DummyRecord, EnvironmentRecord, FirstCallRecord, FirstFailureRecord,
    ResolvedRecord, SutRecord, SutRowRecord,
};
pub use times::{
    ClientsRecord, EstimateRecord, FailureRecord, HeadlineRecord, OutcomesRecord, PhasesRecord,
    QuantileRecord, TimesByOutcome, TimesRecord, UrlRecord, WeightedRecord,
};
pub use traffic::{
    AgreedRecord, BytesRecord, ConcurrencyRecord, ConformingRecord, ConnectionsRecord,
    SessionsRecord, TcpRecord, TlsRecord,
};
pub use verdict::{
    CauseRecord, ConductRecord, FindingRecord, ServerError, SloRecord, VerdictRecord, WrongStatus,
};

pub use verified::{BodyPrintRecord, VerifiedRecord, WrongBodyRecord};

use super::RunReport;
use super::measured::MeasuredRecord;
use crate::figures::{self, Figures};
use crate::server::Server;
use crate::{document, timestamp, words};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema that is written, and the only one that is read.
pub const SCHEMA: &str = "loadstone.run/1";

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub schema: String,
    pub server: ConductRecord,
    pub verdict: VerdictRecord,
    pub outcomes: OutcomesRecord,
    pub duration_s: f64,
    pub throughput_per_s: f64,
    pub goodput_per_s: f64,
    pub offered_per_s: f64,
    pub intended_per_s: Option<f64>,
    pub response_time_s: TimesRecord,
    pub response_time_without_lag_s: Option<TimesRecord>,
    pub service_time_s: TimesRecord,
    pub slip_s: TimesRecord,
    pub wait_s: TimesRecord,
    pub lag_s: TimesRecord,
    pub by_outcome: TimesByOutcome,
    pub phases_s: PhasesRecord,
    pub status: BTreeMap<String, u64>,
    pub failures: Vec<FailureRecord>,
    /// Null where bodies were not compared (`--verify`).
    #[serde(default)]
    pub verified: Option<VerifiedRecord>,
    pub per_url: Vec<UrlRecord>,
    /// Null where the plan has none.
    #[serde(default)]
    pub journeys: Option<JourneyRecord>,
    pub bytes: BytesRecord,
    pub concurrency: ConcurrencyRecord,
    pub calls_per_connection: Option<f64>,
    pub weighted_response_time_s: Option<f64>,
    pub conforming_connections: ConformingRecord,
    pub tls: TlsRecord,
    /// Null where no connection spoke HTTP/2.
    pub http2: Option<Http2Record>,
    /// Null where no connection spoke HTTP/3; absent in what an earlier version wrote.
    #[serde(default)]
    pub http3: Option<Http3Record>,
    pub tcp: TcpRecord,
    pub client: ClientRecord,
    pub findings: Vec<FindingRecord>,
    pub sut: Option<SutRecord>,
    /// One for each kind of clients; empty where the plan has none.
    #[serde(default)]
    pub by_clients: Vec<ClientsRecord>,
    /// One for each scenario, in the plan's order; empty where the plan has none.
    #[serde(default)]
    pub by_scenario: Vec<ScenarioRecord>,
    /// Null where connections went through no emulated path.
    #[serde(default)]
    pub path: Option<PathRecord>,
    /// Absent where one machine carried the run out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetRecord>,
    pub name: String,
    pub target: String,
    pub load: String,
    pub started: String,
    pub started_unix_s: f64,
    pub elapsed_s: f64,
    pub interrupted: bool,
    pub aborted: Option<String>,
    pub failure_share: f64,
    pub quantiles: Vec<QuantileRecord>,
    pub slo: Vec<SloRecord>,
    pub runs: Vec<HeadlineRecord>,
    pub intervals: BTreeMap<String, EstimateRecord>,
    pub warm_up: OutcomesRecord,
    pub sessions: SessionsRecord,
    pub connections: ConnectionsRecord,
    pub weighted_response: Option<WeightedRecord>,
    pub redirects: u64,
    pub server_timing_s: BTreeMap<String, TimesRecord>,
    pub server_timing_malformed: u64,
    pub resolved: Vec<ResolvedRecord>,
    pub first_call: Option<FirstCallRecord>,
    pub environment: EnvironmentRecord,
    pub series: Vec<SecondRecord>,
    pub plan: serde_json::Value,
    /// Absent in what an earlier version wrote.
    #[serde(default)]
    pub measured: Option<MeasuredRecord>,
}

impl RunRecord {
    /// Every figure of a run.
    pub fn of(report: &RunReport) -> RunRecord {
        let (measurement, plan) = (&report.measurement, &report.plan);
        let (figures, total) = (Figures::new(report), &measurement.total);
        RunRecord {
            schema: SCHEMA.to_owned(),
            server: ConductRecord::of(&Server::of(report)),
            verdict: VerdictRecord::of(&report.verdict),
            outcomes: OutcomesRecord::of(&total.counts),
            duration_s: measurement.window.as_secs_f64(),
            throughput_per_s: figures.throughput,
            goodput_per_s: figures.goodput,
            offered_per_s: figures.offered,
            intended_per_s: figures.intended,
            response_time_s: TimesRecord::of(&figures.response),
            response_time_without_lag_s: total.without_lag().as_ref().map(TimesRecord::of),
            service_time_s: TimesRecord::of(&total.service),
            slip_s: TimesRecord::of(&total.slip),
            wait_s: TimesRecord::of(&total.wait),
            lag_s: TimesRecord::of(&total.lag),
            by_outcome: TimesByOutcome::of(total),
            phases_s: PhasesRecord::of(total, &figures.dns),
            status: total.status.seen().map(|(code, count)| (code.to_string(), count)).collect(),
            failures: failures(total),
            verified: VerifiedRecord::of(plan, total),
            per_url: figures::url_rows(report).into_iter().map(UrlRecord::of).collect(),
            journeys: JourneyRecord::of_plan(plan, &total.journeys),
            bytes: BytesRecord::of(total),
            concurrency: ConcurrencyRecord::of(&figures, total),
            calls_per_connection: known(figures.calls_per_connection),
            weighted_response_time_s: figures.weighted.map(|weighted| weighted.total_s()),
            conforming_connections: ConformingRecord::of(report, &figures),
            tls: TlsRecord::of(total),
            http2: Http2Record::of(&total.connections.http2),
            http3: Http3Record::of(&total.connections.http3),
            tcp: TcpRecord::of(report),
            client: ClientRecord::of(report, &figures),
            findings: report.findings.iter().map(FindingRecord::of).collect(),
            sut: report.sut.as_ref().map(SutRecord::of),
            by_clients: figures::clients_rows(report).into_iter().map(ClientsRecord::of).collect(),
            by_scenario: scenarios(report),
            path: report.path.as_ref().map(PathRecord::of),
            fleet: report.fleet.as_ref().map(FleetRecord::of),
            name: words::name(&report.name, plan),
            target: words::target(plan),
            load: words::load(plan),
            started: timestamp(report.started_unix_s),
            started_unix_s: report.started_unix_s,
            elapsed_s: measurement.elapsed.as_secs_f64(),
            interrupted: measurement.interrupted,
            aborted: measurement.aborted.clone(),
            failure_share: total.counts.failure_share(),
            quantiles: figures.quantiles.iter().map(QuantileRecord::of).collect(),
            slo: report.slo.iter().map(SloRecord::of).collect(),
            runs: report.runs.iter().map(HeadlineRecord::of).collect(),
            intervals: intervals(report),
            warm_up: OutcomesRecord::of(&total.warm_up),
            sessions: SessionsRecord::of(&total.sessions, &figures),
            connections: ConnectionsRecord::of(measurement),
            weighted_response: figures.weighted.map(WeightedRecord::of),
            redirects: total.redirects,
            server_timing_s: server_timings(total),
            server_timing_malformed: total.server_timings.malformed(),
            resolved: report.resolved.iter().map(ResolvedRecord::of).collect(),
            first_call: report.first_call.as_ref().map(FirstCallRecord::of),
            environment: EnvironmentRecord::of(&report.environment),
            series: measurement.series.iter().map(SecondRecord::of).collect(),
            plan: plan_value(&report.plan_toml),
            measured: Some(MeasuredRecord::of(measurement)),
        }
    }
}

fn scenarios(report: &RunReport) -> Vec<ScenarioRecord> {
    let rows = figures::scenario_rows(report).into_iter();
    rows.map(|row| ScenarioRecord::of(row, report.measurement.window)).collect()
}

fn server_timings(total: &stats::Snapshot) -> BTreeMap<String, TimesRecord> {
    let rows = figures::server_timings(total).into_iter();
    rows.map(|(name, hist)| (name.to_owned(), TimesRecord::of(hist))).collect()
}

/// Reads a record from JSON. Keys that a newer version added are ignored.
///
/// # Errors
/// What is not JSON, and JSON of another kind: where, and what it is.
pub fn read(text: &str) -> Result<RunRecord, String> {
    document::read(text, SCHEMA, "loadstone run --json")
}

/// The plan's tables as objects; text that is no TOML stays text.
pub(crate) fn plan_value(toml: &str) -> serde_json::Value {
    match toml::from_str::<serde_json::Value>(toml) {
        Ok(table) => table,
        Err(_) => serde_json::Value::String(toml.to_owned()),
    }
}

fn intervals(report: &RunReport) -> BTreeMap<String, EstimateRecord> {
    let all = figures::estimates(&report.runs).into_iter();
    all.map(|(name, estimate, _)| (name.to_owned(), EstimateRecord::of(&estimate))).collect()
}

fn failures(total: &stats::Snapshot) -> Vec<FailureRecord> {
    let failure = |(class, count): (&sample::FailureClass, &u64)| FailureRecord {
        class: *class,
        blame: class.blame(),
        count: *count,
        text: class.explain().to_owned(),
    };
    total.failures.iter().map(failure).collect()
}

/// JSON has no NaN: a figure that cannot be had is null.
pub(crate) fn known(figure: f64) -> Option<f64> {
    figure.is_finite().then_some(figure)
}
