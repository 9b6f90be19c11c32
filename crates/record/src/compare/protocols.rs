//! One site over several protocols: what each of them took beside the times.

use crate::run::RunReport;
use plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Hist, Snapshot};
use units::Nanos;

/// What all runs of one side took, where the sides speak different protocols.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolRecord {
    /// `HTTP/1.1`, `HTTP/2`, `HTTP/3`.
    pub version: String,
    /// Calls that completed within the window, per second.
    pub calls_per_s: f64,
    pub response_p50_s: Option<f64>,
    pub response_p99_s: Option<f64>,
    pub first_byte_p50_s: Option<f64>,
    /// Connections that were established, of one run.
    pub connections_per_run: u64,
    pub connect_p50_s: Option<f64>,
    /// Null without TLS.
    pub tls_p50_s: Option<f64>,
    /// Bytes on the connections, of one call.
    pub bytes_sent_per_call: u64,
    pub bytes_received_per_call: u64,
    /// Calls that one connection may carry at once; null for a protocol without streams.
    pub streams_per_connection: Option<u32>,
    /// Coded fields of one request and of one response, without the frames around them; null where
    /// they are not counted, which is over HTTP/1.1 and HTTP/3.
    pub coded_sent_per_call: Option<u64>,
    pub coded_received_per_call: Option<u64>,
}

/// One for each side. Empty where all sides speak the same protocol, and where it is not known of one
/// of them what it took.
pub fn protocols(sides: &[Vec<RunReport>]) -> Vec<ProtocolRecord> {
    let plans: Option<Vec<&Plan>> = sides.iter().map(|runs| Some(&runs.first()?.plan)).collect();
    let Some(plans) = plans else { return Vec::new() };
    let version = |plan: &&Plan| plan.request.version;
    if plans.iter().all(|plan| version(plan) == version(&plans[0])) {
        return Vec::new();
    }
    let sides: Vec<Total> = sides.iter().map(|runs| Total::of(runs)).collect();
    if sides.iter().any(|side| side.all.counts.done() == 0) {
        return Vec::new();
    }
    plans.into_iter().zip(&sides).map(|(plan, side)| side.record(plan)).collect()
}

/// All runs of one side.
struct Total {
    all: Snapshot,
    runs: u64,
    window: Nanos,
}

impl Total {
    fn of(runs: &[RunReport]) -> Total {
        let mut side = Total { all: Snapshot::default(), runs: 0, window: Nanos::ZERO };
        for run in runs {
            side.all.merge(&run.measurement.total);
            // repeats of one run are already added up in it
            side.runs += run.runs.len().max(1) as u64;
            side.window += run.measurement.window;
        }
        side
    }

    fn record(&self, plan: &Plan) -> ProtocolRecord {
        let total = &self.all;
        let (version, response) = (plan.request.version, total.response());
        let calls = total.counts.done().max(1);
        let http2 = &total.connections.http2;
        let per_stream = |bytes: u64| bytes.checked_div(http2.streams);
        ProtocolRecord {
            version: version.name().to_owned(),
            calls_per_s: total.in_window as f64 / self.window.as_secs_f64().max(1e-9),
            response_p50_s: quantile_s(&response, 0.5),
            response_p99_s: quantile_s(&response, 0.99),
            first_byte_p50_s: quantile_s(&total.first_byte, 0.5),
            connections_per_run: total.connections.established / self.runs.max(1),
            connect_p50_s: quantile_s(&total.connect, 0.5),
            tls_p50_s: quantile_s(&total.tls, 0.5),
            bytes_sent_per_call: total.bytes_sent / calls,
            bytes_received_per_call: total.bytes_received / calls,
            streams_per_connection: version.has_streams().then_some(plan.connection.pipeline),
            coded_sent_per_call: per_stream(http2.coded_sent),
            coded_received_per_call: per_stream(http2.coded_received),
        }
    }
}

fn quantile_s(hist: &Hist, quantile: f64) -> Option<f64> {
    (!hist.is_empty()).then(|| hist.quantile(quantile).as_secs_f64())
}
