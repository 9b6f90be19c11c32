//! `loadstone.run/1`: the JSON for other programs. Every key is present, except those documented as
//! omitted; times are in seconds, rates per second, shares 0..=1; an unavailable figure is null.
//! `docs/schema/run.schema.json` describes it.

mod backends;
mod failed_responses;
mod fleet;
mod grpc;
mod held;
mod http2;
mod http3;
mod journeys;
mod messages;
mod path;
mod plan;
mod rows;
mod scenarios;
mod series;
mod sides;
mod specweb99;
mod stack;
mod streams;
mod times;
mod tokens;
mod traffic;
mod verdict;
mod verified;

pub use backends::{AddressRecord, BackendRecord, BackendsRecord, LoadFigureRecord, LoadRecord};
pub use failed_responses::FailedResponseRecord;
pub use fleet::{AgentRecord, FleetRecord, MoveRecord, RefusedRecord};
pub use grpc::{GrpcRecord, GrpcStatusRecord};
pub use held::{HeldAgeRecord, HeldRecord};
pub use http2::{FieldsRecord, Http2Record};
pub use http3::{
    EarlyDataRecord, Http3Record, MigrationRecord, QuicRecord, RttRecord, ValidationRecord,
};
pub use journeys::{
    CaptureRecord, FeederRecord, JourneyRecord, JourneyStepRecord, MetricRecord, NotedRecord,
    TransactionRecord,
};
pub use messages::{CloseRecord, FanOutRecord, MessagesRecord, ReconnectsRecord};
pub use path::{LateRecord, PathDirectionRecord, PathKindRecord, PathRecord};
pub use plan::PlanRecord;
pub use rows::row_labels;
pub use scenarios::ScenarioRecord;
pub use series::SecondRecord;
pub use sides::{
    ClientRecord, EnvironmentRecord, FirstCallRecord, FirstFailureRecord, ResolvedRecord,
    SutRecord, SutRowRecord,
};
pub use specweb99::{PostsRecord, Specweb99Record};
pub use stack::{ConflictRecord, StackRecord};
pub use streams::{
    ModelTokensRecord, SentMessagesRecord, StepStreamsRecord, StreamRateRecord, StreamsRecord,
};
#[cfg(any(test, feature = "schema"))]
pub(crate) use streams::{STREAM_FORMS, TOKEN_COUNTS};
pub use times::{
    ClientsRecord, EstimateRecord, FailureRecord, OutcomesRecord, PhasesRecord, QuantileRecord,
    TagRecord, TimesByOutcome, TimesRecord, UrlRecord, WeightedRecord,
};
pub use tokens::TokensRecord;
pub use traffic::{
    AgreedRecord, BytesRecord, ConcurrencyRecord, ConformingRecord, ConnectionsRecord,
    SessionsRecord, TcpRecord, TlsRecord,
};
pub use verdict::{CauseRecord, ConductRecord, ServerError, SloRecord, VerdictRecord, WrongStatus};

#[cfg(any(test, feature = "schema"))]
pub(crate) use verified::VERIFIED_AGAINST;
pub use verified::{BodyPrintRecord, VerifiedRecord, WrongBodyRecord};

use super::measured::{MeasuredRecord, OTHER_TIMINGS};
use super::{Finding, Headline, RunReport};
use crate::figures::{self, Figures};
use crate::server::{Server, missed_expectations};
use crate::{document, timestamp, words};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema that is written, and the only one that is accepted.
pub const SCHEMA: &str = "loadstone.run/1";

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct RunRecord {
    pub schema: String,
    /// State of the server during the run.
    pub server: ConductRecord,
    /// The run's verdict on itself.
    pub verdict: VerdictRecord,
    /// Arrivals of the measured phase.
    pub outcomes: OutcomesRecord,
    /// Length of the measured window.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub duration_s: f64,
    /// Completions inside the window over its length.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub throughput_per_s: f64,
    /// Of these, calls that succeeded.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub goodput_per_s: f64,
    /// Calls presented to the server over the window.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub offered_per_s: f64,
    /// Calls that the plan intended; null in a closed loop and for sessions.
    pub intended_per_s: Option<f64>,
    /// Done − intended, of succeeded and timed-out calls: the headline.
    pub response_time_s: TimesRecord,
    /// The same, each call less the client's own lateness: a punctual client would have seen a
    /// value between the two. Null in results that did not record it.
    pub response_time_without_lag_s: Option<TimesRecord>,
    /// Done − issued, of every call that was issued.
    pub service_time_s: TimesRecord,
    /// Issued − intended = wait + lag, except for the wait for a stream over HTTP/3, which comes
    /// after issue.
    pub slip_s: TimesRecord,
    /// Wait for a free connection.
    pub wait_s: TimesRecord,
    /// Delay by the client itself.
    pub lag_s: TimesRecord,
    /// Response times by outcome.
    pub by_outcome: TimesByOutcome,
    /// Parts of the service time.
    pub phases_s: PhasesRecord,
    /// Responses by status code.
    pub status: BTreeMap<String, u64>,
    pub failures: Vec<FailureRecord>,
    #[serde(flatten)]
    pub bodies: BodiesRecord,
    /// The most called first, steps of journeys in the plan's order; empty with a single target.
    pub per_url: Vec<UrlRecord>,
    /// Calls by the tags of their steps; empty without tags.
    #[serde(default)]
    pub by_tag: Vec<TagRecord>,
    /// Observations of users on their journeys; null without journeys.
    #[serde(default)]
    pub journeys: Option<JourneyRecord>,
    pub bytes: BytesRecord,
    /// Calls in flight, from issue to outcome.
    pub concurrency: ConcurrencyRecord,
    pub calls_per_connection: Option<f64>,
    /// WebMark's T = w·S + mean R; null when no call succeeded.
    pub weighted_response_time_s: Option<f64>,
    pub conforming_connections: ConformingRecord,
    /// Most frequent combination of negotiated parameters; empty without TLS.
    pub tls: TlsRecord,
    /// HTTP/2 facts of connections. Null if no connection used it.
    pub http2: Option<Http2Record>,
    /// HTTP/3 and QUIC facts of connections. Null if no connection used it.
    #[serde(default)]
    pub http3: Option<Http3Record>,
    pub tcp: TcpRecord,
    pub client: ClientRecord,
    pub findings: Vec<Finding>,
    /// The server's own resources, where --sut watched them.
    pub sut: Option<SutRecord>,
    /// Calls by kind of clients and by scenario.
    #[serde(flatten)]
    pub parts: PartsRecord,
    /// The emulated path of all connections (--path).
    #[serde(default)]
    pub path: Option<PathRecord>,
    /// Figures of our own TCP (--stack own), in the whole run; null with the kernel's sockets.
    #[serde(default)]
    pub stack: Option<StackRecord>,
    /// Idle connections held open during the load (--idle); null without them.
    #[serde(default)]
    pub held: Option<HeldRecord>,
    /// Requests for OAuth tokens; omitted if the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokensRecord>,
    /// The machines of a fleet that ran the load together (loadstone fleet); omitted for one
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetRecord>,
    pub name: String,
    /// The first URL, passwords masked.
    pub target: String,
    /// Description of the load.
    pub load: String,
    /// Date and time, UTC.
    pub started: String,
    /// Seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// Time from the first due instant to the last outcome.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    pub interrupted: bool,
    /// The rule of --abort-if that ended the run, or test.abort() of a script with its message.
    pub aborted: Option<String>,
    /// (failed + timed out + dropped) / due.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub failure_share: f64,
    /// The quantiles that the plan lists.
    pub quantiles: Vec<QuantileRecord>,
    pub slo: Vec<SloRecord>,
    /// One entry for each run of a repeated plan; otherwise empty.
    pub runs: Vec<Headline>,
    /// Figures across runs; empty below two.
    pub intervals: BTreeMap<String, EstimateRecord>,
    /// Arrivals of the warm-up, kept apart from everything else.
    pub warm_up: OutcomesRecord,
    pub sessions: SessionsRecord,
    pub connections: ConnectionsRecord,
    /// The pieces of T = w·S + mean R.
    pub weighted_response: Option<WeightedRecord>,
    pub redirects: u64,
    #[serde(flatten)]
    pub server_timings: ServerTimingsRecord,
    pub resolved: Vec<ResolvedRecord>,
    /// The plain first call.
    pub first_call: Option<FirstCallRecord>,
    pub environment: EnvironmentRecord,
    pub series: Vec<SecondRecord>,
    /// The plan, secrets masked.
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "serde_json::Value"))]
    pub plan: PlanRecord,
    /// Absent in results of earlier versions.
    #[serde(default)]
    pub measured: Option<MeasuredRecord>,
}

/// Server-Timing values; its keys are in the run itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ServerTimingsRecord {
    /// Server-Timing values, by name: at most 32 names, further ones under (other).
    pub server_timing_s: BTreeMap<String, TimesRecord>,
    /// Metrics of Server-Timing that could not be read.
    pub server_timing_malformed: u64,
}

impl ServerTimingsRecord {
    fn new(total: &stats::Snapshot) -> ServerTimingsRecord {
        ServerTimingsRecord {
            server_timing_s: server_timings(total),
            server_timing_malformed: total.server_timings.malformed(),
        }
    }
}

/// Calls by parts of the plan, and by back end; its keys are in the run itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PartsRecord {
    /// Calls by kind of clients (--clients), in the plan's order; empty where all clients are
    /// alike.
    #[serde(default)]
    pub by_clients: Vec<ClientsRecord>,
    /// One entry for each scenario, in the plan's order; empty if the plan has none.
    #[serde(default)]
    pub by_scenario: Vec<ScenarioRecord>,
    /// Balance of the calls among back ends. Null if nothing is known of it.
    #[serde(default)]
    pub backends: Option<BackendsRecord>,
}

impl PartsRecord {
    fn new(report: &RunReport) -> PartsRecord {
        PartsRecord {
            by_clients: rows::by_clients(report),
            by_scenario: rows::by_scenario(report),
            backends: BackendsRecord::new(&report.measurement.total.connections.backends),
        }
    }
}

/// Samples and checks of bodies; its keys are in the run itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BodiesRecord {
    /// The first failed responses of each failure class and status: 3 of each.
    #[serde(default)]
    pub failed_responses: Vec<FailedResponseRecord>,
    /// Bodies compared with those of their targets (--verify); null if not requested.
    #[serde(default)]
    pub verified: Option<VerifiedRecord>,
    /// Responses that are streams of events (--stream); null if not requested.
    #[serde(default)]
    pub streams: Option<StreamsRecord>,
    /// Ends of gRPC calls; null for other runs.
    #[serde(default)]
    pub grpc: Option<GrpcRecord>,
    /// Messages and connections of WebSocket; null without WebSockets.
    #[serde(default)]
    pub messages: Option<MessagesRecord>,
    /// The score of a load after SPECweb99 (--workload specweb99-like); null with any other.
    #[serde(default)]
    pub specweb99: Option<Specweb99Record>,
}

impl BodiesRecord {
    fn new(report: &RunReport) -> BodiesRecord {
        let (plan, measurement) = (&report.plan, &report.measurement);
        BodiesRecord {
            failed_responses: failed_responses::all(report),
            verified: VerifiedRecord::new(plan, &measurement.total),
            streams: StreamsRecord::new(plan, measurement),
            grpc: GrpcRecord::new(plan, measurement),
            messages: MessagesRecord::new(plan, measurement),
            specweb99: Specweb99Record::new(report),
        }
    }
}

impl RunRecord {
    /// Returns a record with every figure of a run.
    pub fn new(report: &RunReport) -> RunRecord {
        RunRecord::build(report, &Figures::new(report), &report.measurement.total)
    }

    /// Returns the number of calls that failed an explicit expectation of the plan.
    pub fn missed_expectations(&self) -> u64 {
        missed_expectations(self.plan.plan(), |class| {
            self.failures.iter().filter(|one| one.class == class).map(|one| one.count).sum()
        })
    }

    fn build(report: &RunReport, figures: &Figures, total: &stats::Snapshot) -> RunRecord {
        RunRecord {
            schema: SCHEMA.to_owned(),
            server: ConductRecord::new(&Server::new(report)),
            verdict: VerdictRecord::new(&report.verdict),
            outcomes: OutcomesRecord::new(&total.counts),
            duration_s: report.measurement.window.as_secs_f64(),
            throughput_per_s: figures.throughput,
            goodput_per_s: figures.goodput,
            offered_per_s: figures.offered,
            intended_per_s: figures.intended,
            response_time_s: TimesRecord::new(&figures.response),
            response_time_without_lag_s: total.without_lag().as_ref().map(TimesRecord::new),
            service_time_s: TimesRecord::new(&total.service),
            slip_s: TimesRecord::new(&total.slip),
            wait_s: TimesRecord::new(&total.wait),
            lag_s: TimesRecord::new(&total.lag),
            by_outcome: TimesByOutcome::new(total),
            phases_s: PhasesRecord::new(total, &figures.dns),
            status: total.status.seen().map(|(code, count)| (code.to_string(), count)).collect(),
            failures: failures(total),
            bodies: BodiesRecord::new(report),
            per_url: rows::per_url(report),
            by_tag: rows::by_tag(report),
            journeys: JourneyRecord::from_plan(&report.plan, &total.journeys),
            bytes: BytesRecord::new(total),
            concurrency: ConcurrencyRecord::new(figures, total),
            calls_per_connection: known(figures.calls_per_connection),
            weighted_response_time_s: figures.weighted.map(|weighted| weighted.total_s()),
            conforming_connections: ConformingRecord::new(report),
            tls: TlsRecord::new(total, report.plan.tls.early_data),
            http2: Http2Record::new(&total.connections.http2),
            http3: Http3Record::new(&total.connections.http3),
            tcp: TcpRecord::new(report),
            client: ClientRecord::new(report, figures),
            findings: report.findings.clone(),
            sut: report.sut.as_ref().map(SutRecord::new),
            parts: PartsRecord::new(report),
            path: report.path.as_ref().map(PathRecord::new),
            stack: report.stack.as_ref().map(StackRecord::new),
            held: report.held.as_ref().map(HeldRecord::new),
            tokens: report.tokens.as_ref().map(TokensRecord::new),
            fleet: report.fleet.as_ref().map(FleetRecord::new),
            name: words::name(&report.name, &report.plan),
            target: words::target(&report.plan),
            load: words::load(&report.plan),
            started: timestamp(report.started_unix_s),
            started_unix_s: report.started_unix_s,
            elapsed_s: report.measurement.elapsed.as_secs_f64(),
            interrupted: report.measurement.interrupted,
            aborted: report.measurement.aborted.clone(),
            failure_share: total.counts.failure_share(),
            quantiles: QuantileRecord::all(report, &figures.response),
            slo: report.slo.iter().map(SloRecord::new).collect(),
            runs: report.runs.clone(),
            intervals: intervals(report),
            warm_up: OutcomesRecord::new(&total.warm_up),
            sessions: SessionsRecord::new(&total.sessions, figures),
            connections: ConnectionsRecord::new(&report.measurement),
            weighted_response: figures.weighted.map(WeightedRecord::new),
            redirects: total.redirects,
            server_timings: ServerTimingsRecord::new(total),
            resolved: report.resolved.iter().map(ResolvedRecord::new).collect(),
            first_call: first_call(report),
            environment: EnvironmentRecord::new(&report.environment),
            series: report.measurement.series.iter().map(SecondRecord::new).collect(),
            plan: PlanRecord::new(&report.plan, &report.plan_toml),
            measured: Some(MeasuredRecord::new(&report.measurement)),
        }
    }
}

fn server_timings(total: &stats::Snapshot) -> BTreeMap<String, TimesRecord> {
    let timings = &total.server_timings;
    let other = Some((OTHER_TIMINGS, timings.other())).filter(|(_, hist)| !hist.is_empty());
    let all = timings.named().chain(other);
    all.map(|(name, hist)| (name.to_owned(), TimesRecord::new(hist))).collect()
}

/// Reads a record from JSON. Keys that a newer version added are ignored.
///
/// # Errors
/// Fails if the text is not JSON, or JSON of another kind; the error has the position and the
/// reason.
pub fn read(text: &str) -> Result<RunRecord, String> {
    document::read(text, SCHEMA, "loadstone run --json")
}

fn intervals(report: &RunReport) -> BTreeMap<String, EstimateRecord> {
    let all = figures::estimates(&report.runs).into_iter();
    all.map(|(name, estimate, _)| (name.to_owned(), EstimateRecord::new(&estimate))).collect()
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

/// Returns a known figure; `None`, which becomes null, for NaN, which JSON does not have.
pub(crate) fn known(figure: f64) -> Option<f64> {
    figure.is_finite().then_some(figure)
}

/// Returns the first call; `None` if only a connection was opened.
fn first_call(report: &RunReport) -> Option<FirstCallRecord> {
    report.first_call.as_ref().filter(|call| call.request_was_attempted()).map(FirstCallRecord::new)
}
