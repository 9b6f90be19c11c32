//! One site over several protocols: the resources used by each protocol.

use crate::run::{FieldsRecord, RunHist, RunRecord};
use plan::Plan;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Hist;
use units::Nanos;

/// Resources of all runs of one side, if the sides use different protocols.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ProtocolRecord {
    /// `HTTP/1.1`, `HTTP/2`, `HTTP/3`.
    pub version: String,
    /// Calls that completed within the window, per second.
    pub calls_per_s: f64,
    pub response_p50_s: Option<f64>,
    pub response_p99_s: Option<f64>,
    pub first_byte_p50_s: Option<f64>,
    /// Number of connections established in one run.
    pub connections_per_run: u64,
    pub connect_p50_s: Option<f64>,
    /// Null without TLS.
    pub tls_p50_s: Option<f64>,
    /// Bytes sent on the connections, per call.
    pub bytes_sent_per_call: u64,
    pub bytes_received_per_call: u64,
    /// Calls that one connection may carry at once; null for a protocol without streams.
    pub streams_per_connection: Option<u32>,
    /// Compressed fields of one request and of one response, without frame headers; null if they
    /// are not counted, as over HTTP/1.1 and HTTP/3.
    pub coded_sent_per_call: Option<u64>,
    pub coded_received_per_call: Option<u64>,
}

/// Returns one entry per side, from its runs and their merged response times. Empty if all sides
/// use the same protocol, or if the resources of one are unknown.
pub fn protocols(sides: &[Vec<RunRecord>], responses: &[Hist]) -> Vec<ProtocolRecord> {
    let plans: Option<Vec<&Plan>> =
        sides.iter().map(|runs| Some(runs.first()?.plan.plan())).collect();
    let Some(plans) = plans else { return Vec::new() };
    let version = |plan: &&Plan| plan.request.version;
    if plans.iter().all(|plan| version(plan) == version(&plans[0])) {
        return Vec::new();
    }
    let done = |runs: &Vec<RunRecord>| runs.iter().any(|run| run.outcomes.done() > 0);
    if !sides.iter().all(done) {
        return Vec::new();
    }
    let sides = plans.into_iter().zip(sides).zip(responses);
    sides.map(|((plan, runs), response)| protocol_record(plan, runs, response)).collect()
}

/// Returns the figures of all runs of one side.
fn protocol_record(plan: &Plan, runs: &[RunRecord], response: &Hist) -> ProtocolRecord {
    let sum = |of: fn(&RunRecord) -> u64| runs.iter().map(of).sum::<u64>();
    let all = |of: RunHist| {
        let mut all = Hist::new();
        runs.iter().for_each(|run| all.merge(&run.hist(of)));
        all
    };
    let version = plan.request.version;
    let calls = sum(|run| run.outcomes.done()).max(1);
    let window = runs.iter().map(|run| Nanos::from_secs_f64(run.duration_s));
    let window = window.fold(Nanos::ZERO, |all, one| all + one);
    let streams = sum(|run| run.http2.as_ref().map_or(0, |http2| http2.streams));
    let coded = |of: fn(&FieldsRecord) -> u64| {
        let bytes = runs.iter().filter_map(|run| run.http2.as_ref()).map(|http2| of(&http2.fields));
        bytes.sum::<u64>().checked_div(streams)
    };
    let in_window = sum(|run| run.measured.as_ref().map_or(0, |measured| measured.in_window));
    ProtocolRecord {
        version: version.name().to_owned(),
        calls_per_s: in_window as f64 / window.as_secs_f64().max(1e-9),
        response_p50_s: quantile_s(response, 0.5),
        response_p99_s: quantile_s(response, 0.99),
        first_byte_p50_s: quantile_s(&all(RunHist::FirstByte), 0.5),
        // repeats of one run are already added up in it
        connections_per_run: sum(|run| run.connections.established)
            / sum(|run| run.runs.len().max(1) as u64).max(1),
        connect_p50_s: quantile_s(&all(RunHist::Connect), 0.5),
        tls_p50_s: quantile_s(&all(RunHist::Tls), 0.5),
        bytes_sent_per_call: sum(|run| run.bytes.sent) / calls,
        bytes_received_per_call: sum(|run| run.bytes.received) / calls,
        streams_per_connection: version.has_streams().then_some(plan.connection.pipeline),
        coded_sent_per_call: coded(|fields| fields.sent_coded),
        coded_received_per_call: coded(|fields| fields.received_coded),
    }
}

fn quantile_s(hist: &Hist, quantile: f64) -> Option<f64> {
    (!hist.is_empty()).then(|| hist.quantile(quantile).as_secs_f64())
}
