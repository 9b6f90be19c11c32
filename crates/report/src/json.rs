//! `loadstone.run/1`: the JSON that other programs read. Every key is always there; times are in
//! seconds, rates per second, shares 0..=1; a figure that cannot be had is null.
//! `docs/schema/run.schema.json` describes it.

pub(crate) mod parts;
pub(crate) mod ramp;

use crate::words::{self, printable};
use crate::{Figures, RunReport, figures};
use parts::*;
use serde::Serialize;
use std::collections::BTreeMap;
use units::Nanos;

/// The report as JSON, indented, with a line feed at its end.
pub fn json(report: &RunReport) -> String {
    printed(&document(report))
}

/// The same as a part of another document.
pub(crate) fn value(report: &RunReport) -> serde_json::Value {
    serde_json::to_value(document(report)).expect("strings, numbers and lists always serialise")
}

/// A document as every output has it: indented, with a line feed at its end.
pub(crate) fn printed(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document)
        .expect("strings, numbers, lists and maps with text keys always serialise");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    server: Server,
    verdict: Verdict,
    outcomes: Outcomes,
    duration_s: f64,
    throughput_per_s: f64,
    goodput_per_s: f64,
    offered_per_s: f64,
    intended_per_s: Option<f64>,
    response_time_s: Times,
    response_time_without_lag_s: Option<Times>,
    service_time_s: Times,
    slip_s: Times,
    wait_s: Times,
    lag_s: Times,
    by_outcome: ByOutcome,
    phases_s: Phases,
    status: BTreeMap<String, u64>,
    failures: Vec<Failure>,
    per_url: Vec<PerUrl>,
    bytes: Bytes,
    concurrency: Concurrency,
    calls_per_connection: Option<f64>,
    weighted_response_time_s: Option<f64>,
    conforming_connections: Conforming,
    tls: Tls,
    tcp: Tcp,
    client: Client,
    findings: Vec<Finding>,
    sut: Option<Sut>,
    name: String,
    target: String,
    load: String,
    started: String,
    started_unix_s: f64,
    elapsed_s: f64,
    interrupted: bool,
    aborted: Option<String>,
    failure_share: f64,
    quantiles: Vec<Quantile>,
    slo: Vec<Slo>,
    runs: Vec<Run>,
    intervals: BTreeMap<&'static str, Interval>,
    warm_up: Outcomes,
    sessions: Sessions,
    connections: Connections,
    weighted_response: Option<Weighted>,
    redirects: u64,
    server_timing_s: BTreeMap<String, Times>,
    server_timing_malformed: u64,
    resolved: Vec<Resolved>,
    first_call: Option<FirstCall>,
    environment: Environment,
    series: Vec<Second>,
    plan: serde_json::Value,
}

fn document(report: &RunReport) -> Document {
    let figures = Figures::new(report);
    let (measurement, plan) = (&report.measurement, &report.plan);
    let total = &measurement.total;
    Document {
        schema: "loadstone.run/1",
        server: Server::of(&record::server::Server::of(report)),
        verdict: Verdict::of(&report.verdict),
        outcomes: Outcomes::of(&total.counts),
        duration_s: measurement.window.as_secs_f64(),
        throughput_per_s: figures.throughput,
        goodput_per_s: figures.goodput,
        offered_per_s: figures.offered,
        intended_per_s: figures.intended,
        response_time_s: Times::of(&figures.response),
        response_time_without_lag_s: total.without_lag().as_ref().map(Times::of),
        service_time_s: Times::of(&total.service),
        slip_s: Times::of(&total.slip),
        wait_s: Times::of(&total.wait),
        lag_s: Times::of(&total.lag),
        by_outcome: ByOutcome::of(total),
        phases_s: Phases::of(total, &figures.dns),
        status: total.status.seen().map(|(code, count)| (code.to_string(), count)).collect(),
        failures: failures(total),
        per_url: figures::url_rows(report).into_iter().map(PerUrl::of).collect(),
        bytes: Bytes::of(total),
        concurrency: Concurrency::of(&figures, total),
        calls_per_connection: known(figures.calls_per_connection),
        weighted_response_time_s: figures.weighted.map(|weighted| weighted.total_s()),
        conforming_connections: Conforming::of(report, &figures),
        tls: Tls::of(total),
        tcp: Tcp::of(report),
        client: Client::of(report, &figures),
        findings: report.findings.iter().map(Finding::of).collect(),
        sut: report.sut.as_ref().map(Sut::of),
        name: words::name(report),
        target: words::target(plan),
        load: words::load(plan),
        started: words::timestamp(report.started_unix_s),
        started_unix_s: report.started_unix_s,
        elapsed_s: measurement.elapsed.as_secs_f64(),
        interrupted: measurement.interrupted,
        aborted: measurement.aborted.clone(),
        failure_share: total.counts.failure_share(),
        quantiles: figures.quantiles.iter().map(Quantile::of).collect(),
        slo: report.slo.iter().map(Slo::of).collect(),
        runs: report.runs.iter().map(Run::of).collect(),
        intervals: figures::estimates(&report.runs)
            .into_iter()
            .map(|(name, estimate, _)| (name, Interval::of(&estimate)))
            .collect(),
        warm_up: Outcomes::of(&total.warm_up),
        sessions: Sessions::of(&total.sessions, &figures),
        connections: Connections::of(measurement),
        weighted_response: figures.weighted.map(Weighted::of),
        redirects: total.redirects,
        server_timing_s: figures::server_timings(total)
            .into_iter()
            .map(|(name, hist)| (name.to_owned(), Times::of(hist)))
            .collect(),
        server_timing_malformed: total.server_timings.malformed(),
        resolved: report.resolved.iter().map(Resolved::of).collect(),
        first_call: report.first_call.as_ref().map(FirstCall::of),
        environment: Environment::of(&report.environment),
        series: measurement.series.iter().map(Second::of).collect(),
        plan: plan_value(&report.plan_toml),
    }
}

/// The plan's tables as objects; text that is no TOML stays text.
pub(crate) fn plan_value(toml: &str) -> serde_json::Value {
    match toml::from_str::<serde_json::Value>(toml) {
        Ok(table) => table,
        Err(_) => serde_json::Value::String(toml.to_owned()),
    }
}

fn failures(total: &stats::Snapshot) -> Vec<Failure> {
    let failure = |(class, count): (&sample::FailureClass, &u64)| Failure {
        class: class.id(),
        blame: class.blame().id(),
        count: *count,
        text: class.explain(),
    };
    total.failures.iter().map(failure).collect()
}

/// JSON has no NaN: a figure that cannot be had is null.
fn known(figure: f64) -> Option<f64> {
    figure.is_finite().then_some(figure)
}
