//! The objects inside the document. Plain data with the names that readers rely on; the crates that
//! measure know nothing of JSON.

use super::{Nanos, known, printable};
use crate::figures::UrlRow;
use crate::{Figures, Headline, QuantileRow, RunReport};
use serde::Serialize;
use stats::{Counts, Estimate, Hist, Measurement, Snapshot, interval, webmark};
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(super) struct Verdict {
    state: &'static str,
    causes: Vec<Cause>,
}

#[derive(Serialize)]
struct Cause {
    id: &'static str,
    figure: Option<f64>,
    text: String,
    advice: String,
}

impl Verdict {
    pub(super) fn of(verdict: &stats::Verdict) -> Verdict {
        let cause = |cause: &stats::Cause| Cause {
            id: cause.id.id(),
            figure: known(cause.figure),
            text: cause.text.clone(),
            advice: cause.advice.clone(),
        };
        let causes = verdict.causes.iter().map(cause).collect();
        Verdict { state: verdict.state.id(), causes }
    }
}

/// What the server did.
#[derive(Serialize)]
pub(super) struct Server {
    state: &'static str,
    sentence: String,
    since_s: Option<f64>,
    failing_share: Option<f64>,
    statuses: Vec<WrongStatus>,
    errors: Vec<ServerError>,
    connections_broken: u64,
    example: Option<String>,
}

#[derive(Serialize)]
struct WrongStatus {
    status: u16,
    count: u64,
}

#[derive(Serialize)]
struct ServerError {
    class: &'static str,
    text: &'static str,
    count: u64,
}

impl Server {
    pub(super) fn of(server: &record::server::Server) -> Server {
        let status = |&(status, count): &(u16, u64)| WrongStatus { status, count };
        let error = |(class, count): &(sample::FailureClass, u64)| ServerError {
            class: class.id(),
            text: class.explain(),
            count: *count,
        };
        Server {
            state: server.conduct.id(),
            sentence: server.sentence(),
            since_s: server.since_s,
            failing_share: known(server.failing_share),
            statuses: server.statuses.iter().map(status).collect(),
            errors: server.errors.iter().map(error).collect(),
            connections_broken: server.broken,
            example: server.example.clone(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Outcomes {
    due: u64,
    succeeded: u64,
    failed: u64,
    timed_out: u64,
    dropped: u64,
    abandoned: u64,
}

impl Outcomes {
    pub(super) fn of(counts: &Counts) -> Outcomes {
        Outcomes {
            due: counts.due,
            succeeded: counts.succeeded,
            failed: counts.failed,
            timed_out: counts.timed_out,
            dropped: counts.dropped,
            abandoned: counts.abandoned,
        }
    }
}

/// The usual figures of a histogram, in seconds; zeros when nothing was recorded.
#[derive(Serialize)]
pub(super) struct Times {
    count: u64,
    mean: f64,
    stdev: f64,
    min: f64,
    p50: f64,
    p75: f64,
    p90: f64,
    p95: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p99_9: f64,
    max: f64,
}

impl Times {
    pub(super) fn of(hist: &Hist) -> Times {
        let summary = hist.summary();
        Times {
            count: summary.count,
            mean: summary.mean.as_secs_f64(),
            stdev: summary.stdev.as_secs_f64(),
            min: summary.min.as_secs_f64(),
            p50: summary.p50.as_secs_f64(),
            p75: summary.p75.as_secs_f64(),
            p90: summary.p90.as_secs_f64(),
            p95: summary.p95.as_secs_f64(),
            p99: summary.p99.as_secs_f64(),
            p99_9: summary.p99_9.as_secs_f64(),
            max: summary.max.as_secs_f64(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct ByOutcome {
    succeeded: Times,
    failed: Times,
    timed_out: Times,
}

impl ByOutcome {
    pub(super) fn of(total: &Snapshot) -> ByOutcome {
        ByOutcome {
            succeeded: Times::of(&total.succeeded),
            failed: Times::of(&total.failed),
            timed_out: Times::of(&total.timed_out),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Phases {
    dns: Times,
    connect: Times,
    tls: Times,
    first_byte: Times,
    transfer: Times,
}

impl Phases {
    pub(super) fn of(total: &Snapshot, dns: &Hist) -> Phases {
        Phases {
            dns: Times::of(dns),
            connect: Times::of(&total.connect),
            tls: Times::of(&total.tls),
            first_byte: Times::of(&total.first_byte),
            transfer: Times::of(&total.transfer),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Failure {
    pub(super) class: &'static str,
    pub(super) blame: &'static str,
    pub(super) count: u64,
    pub(super) text: &'static str,
}

#[derive(Serialize)]
pub(super) struct PerUrl {
    target: usize,
    url: String,
    count: u64,
    succeeded: u64,
    failed: u64,
    timed_out: u64,
    body_bytes: u64,
    response_time_s: Times,
}

impl PerUrl {
    pub(super) fn of(row: UrlRow) -> PerUrl {
        PerUrl {
            response_time_s: Times::of(&row.response),
            target: row.target,
            url: row.url,
            count: row.count,
            succeeded: row.succeeded,
            failed: row.failed,
            timed_out: row.timed_out,
            body_bytes: row.body_bytes,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Bytes {
    sent: u64,
    received: u64,
    body: u64,
    /// Bodies with their content coding undone.
    decoded: u64,
}

impl Bytes {
    pub(super) fn of(total: &Snapshot) -> Bytes {
        Bytes {
            sent: total.bytes_sent,
            received: total.bytes_received,
            body: total.body_bytes,
            decoded: total.decoded_bytes,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Concurrency {
    mean: f64,
    peak: u64,
    /// Throughput times mean service time, and how far the two are apart.
    by_littles_law: Option<f64>,
    deviation: Option<f64>,
}

impl Concurrency {
    pub(super) fn of(figures: &Figures, total: &Snapshot) -> Concurrency {
        Concurrency {
            mean: figures.little.map_or(0.0, |little| little.concurrency),
            peak: total.flight_peak,
            by_littles_law: figures.little.map(|little| little.product),
            deviation: figures.little.map(|little| little.deviation()),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Conforming {
    count: u64,
    share: Option<f64>,
    threshold_bps: f64,
    judged: u64,
    counts_heads: bool,
}

impl Conforming {
    pub(super) fn of(report: &RunReport, figures: &Figures) -> Conforming {
        let connections = &report.measurement.total.connections;
        Conforming {
            count: connections.conforming,
            share: known(figures.conforming_share),
            threshold_bps: report.plan.measure.conforming_bps,
            judged: connections.judged,
            counts_heads: report.plan.measure.conforming_counts_heads,
        }
    }
}

/// What most connections agreed on, and every combination seen.
#[derive(Serialize)]
pub(super) struct Tls {
    version: String,
    cipher: String,
    group: String,
    resumed: u64,
    agreed: Vec<Agreed>,
}

#[derive(Clone, Serialize)]
struct Agreed {
    version: String,
    cipher: String,
    group: String,
    alpn: String,
    resumed: bool,
    connections: u64,
}

impl Tls {
    pub(super) fn of(total: &Snapshot) -> Tls {
        let seen = &total.connections.tls;
        let agreed = |(facts, count): (&sample::TlsFacts, &u64)| Agreed {
            version: facts.version.clone(),
            cipher: facts.cipher.clone(),
            group: facts.group.clone(),
            alpn: printable(&facts.alpn, 64),
            resumed: facts.resumed,
            connections: *count,
        };
        let mut agreed: Vec<Agreed> = seen.iter().map(agreed).collect();
        agreed.sort_by_key(|one| std::cmp::Reverse(one.connections));
        let most = agreed.first().cloned();
        // A resumed session without a key exchange names no group: take one that does.
        let group = agreed.iter().map(|one| &one.group).find(|group| !group.is_empty());
        Tls {
            version: most.as_ref().map_or_else(String::new, |one| one.version.clone()),
            cipher: most.as_ref().map_or_else(String::new, |one| one.cipher.clone()),
            group: group.cloned().unwrap_or_default(),
            resumed: agreed.iter().filter(|one| one.resumed).map(|one| one.connections).sum(),
            agreed,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Tcp {
    retransmits: u64,
    /// Smoothed round-trip time at the end of the connections sampled.
    rtt_s: Times,
    sampled_share: f64,
}

impl Tcp {
    pub(super) fn of(report: &RunReport) -> Tcp {
        let connections = &report.measurement.total.connections;
        Tcp {
            retransmits: connections.retransmits,
            rtt_s: Times::of(&connections.rtt),
            sampled_share: report.plan.measure.tcp_info_share,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Client {
    io: String,
    threads: u32,
    cpu_user_s: f64,
    cpu_system_s: f64,
    spin_s: f64,
    cpu_per_call_s: Option<f64>,
    busy: Vec<f64>,
    dummy: Option<Dummy>,
}

#[derive(Serialize)]
struct Dummy {
    call_s: f64,
    taken_unix_s: f64,
}

impl Client {
    pub(super) fn of(report: &RunReport, figures: &Figures) -> Client {
        let driver = &report.driver;
        let dummy = driver
            .dummy
            .map(|dummy| Dummy { call_s: dummy.call_s, taken_unix_s: dummy.taken_unix_s });
        Client {
            io: driver.io.clone(),
            threads: driver.threads,
            cpu_user_s: driver.cpu_user_s,
            cpu_system_s: driver.cpu_system_s,
            spin_s: driver.spin_s,
            cpu_per_call_s: known(figures.cpu_per_call),
            busy: driver.busy.clone(),
            dummy,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Sut {
    name: String,
    cores: f64,
    memory_max_bytes: u64,
    descriptors_max: u64,
    accept_queue_max: u64,
    cpu_share: Option<f64>,
    trouble: Option<String>,
    series: Vec<SutRow>,
}

#[derive(Serialize)]
struct SutRow {
    at_s: f64,
    cpu_cores: f64,
    memory_bytes: u64,
    threads: u64,
    descriptors: u64,
    switches_per_s: f64,
    listen_overflows: u64,
    accept_queue: u64,
    half_open: u64,
}

impl Sut {
    pub(super) fn of(sut: &sample::SutSeries) -> Sut {
        let row = |row: &sample::SutRow| SutRow {
            at_s: row.at_s,
            cpu_cores: row.cpu_cores,
            memory_bytes: row.memory_bytes,
            threads: row.threads,
            descriptors: row.descriptors,
            switches_per_s: row.switches_per_s,
            listen_overflows: row.listen_overflows,
            accept_queue: row.accept_queue,
            half_open: row.half_open,
        };
        Sut {
            name: sut.name.clone(),
            cores: sut.cores,
            memory_max_bytes: sut.memory_max,
            descriptors_max: sut.descriptors_max,
            accept_queue_max: sut.accept_queue_max,
            cpu_share: sut.cpu_share(),
            trouble: (!sut.trouble.is_empty()).then(|| sut.trouble.clone()),
            series: sut.rows.iter().map(row).collect(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Finding {
    id: String,
    confidence: String,
    evidence: String,
    r#try: String,
}

impl Finding {
    pub(super) fn of(finding: &crate::Finding) -> Finding {
        Finding {
            id: finding.id.clone(),
            confidence: finding.confidence.id().to_owned(),
            evidence: finding.evidence.clone(),
            r#try: finding.advice.clone(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Quantile {
    quantile: f64,
    response_time_s: f64,
    /// Its interval by order statistics.
    response_time_without_lag_s: Option<f64>,
    low_s: Option<f64>,
    high_s: Option<f64>,
    service_time_s: f64,
    samples_needed: u64,
    enough_samples: bool,
}

impl Quantile {
    pub(super) fn of(row: &QuantileRow) -> Quantile {
        Quantile {
            quantile: row.quantile,
            response_time_s: row.response.as_secs_f64(),
            response_time_without_lag_s: row.without_lag.map(Nanos::as_secs_f64),
            low_s: row.interval.map(|(low, _)| low.as_secs_f64()),
            high_s: row.interval.map(|(_, high)| high.as_secs_f64()),
            service_time_s: row.service.as_secs_f64(),
            samples_needed: stats::samples_needed(row.quantile),
            enough_samples: row.enough,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Slo {
    objective: String,
    figure: Option<f64>,
    figure_without_lag: Option<f64>,
    bound: f64,
    met: bool,
    undecided: bool,
}

impl Slo {
    pub(super) fn of(result: &crate::SloResult) -> Slo {
        Slo {
            objective: result.objective.text.clone(),
            figure: known(result.figure),
            figure_without_lag: result.without_lag.and_then(known),
            bound: result.objective.bound,
            met: result.met,
            undecided: result.undecided,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Run {
    state: &'static str,
    throughput_per_s: f64,
    goodput_per_s: f64,
    failure_share: f64,
    mean_s: f64,
    p50_s: f64,
    p90_s: f64,
    p99_s: f64,
    #[serde(rename = "p99.9_s")]
    p99_9_s: f64,
    max_s: f64,
}

impl Run {
    pub(crate) fn of(run: &Headline) -> Run {
        Run {
            state: run.state.id(),
            throughput_per_s: run.throughput_per_s,
            goodput_per_s: run.goodput_per_s,
            failure_share: run.failure_share,
            mean_s: run.mean_s,
            p50_s: run.p50_s,
            p90_s: run.p90_s,
            p99_s: run.p99_s,
            p99_9_s: run.p99_9_s,
            max_s: run.max_s,
        }
    }
}

/// A mean across runs with its 95 % interval.
#[derive(Serialize)]
pub(super) struct Interval {
    mean: f64,
    low: f64,
    high: f64,
    runs: usize,
    confidence: f64,
    method: &'static str,
}

impl Interval {
    pub(super) fn of(estimate: &Estimate) -> Interval {
        Interval {
            mean: estimate.value,
            low: estimate.low,
            high: estimate.high,
            runs: estimate.count,
            confidence: interval::CONFIDENCE,
            method: estimate.method.id(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Sessions {
    started: u64,
    completed: u64,
    failed: u64,
    dropped: u64,
    intended_per_s: Option<f64>,
}

impl Sessions {
    pub(super) fn of(sessions: &stats::Sessions, figures: &Figures) -> Sessions {
        Sessions {
            started: sessions.started,
            completed: sessions.completed,
            failed: sessions.failed,
            dropped: sessions.dropped,
            intended_per_s: figures.sessions_intended,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Connections {
    attempted: u64,
    established: u64,
    closed: u64,
    peak: u64,
}

impl Connections {
    pub(super) fn of(measurement: &Measurement) -> Connections {
        let connections = &measurement.total.connections;
        Connections {
            attempted: connections.attempted,
            established: connections.established,
            closed: connections.closed,
            peak: measurement.connections_peak,
        }
    }
}

/// The pieces of T = w·S + mean R.
#[derive(Serialize)]
pub(super) struct Weighted {
    w: f64,
    setup_s: f64,
    exchange_s: f64,
}

impl Weighted {
    pub(super) fn of(weighted: webmark::Weighted) -> Weighted {
        Weighted { w: weighted.weight, setup_s: weighted.setup_s, exchange_s: weighted.exchange_s }
    }
}

#[derive(Serialize)]
pub(super) struct Resolved {
    host: String,
    addresses: Vec<String>,
    took_s: f64,
}

impl Resolved {
    pub(super) fn of(resolved: &crate::Resolved) -> Resolved {
        Resolved {
            host: resolved.host.clone(),
            addresses: resolved.addresses.iter().map(|address| address.to_string()).collect(),
            took_s: resolved.took.as_secs_f64(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct FirstCall {
    status: u16,
    http_version: String,
    length: u64,
    server: Option<String>,
    took_s: f64,
    failure: Option<FirstFailure>,
    excerpt: Option<String>,
}

#[derive(Serialize)]
struct FirstFailure {
    class: &'static str,
    blame: &'static str,
    detail: String,
    advice: Option<String>,
}

impl FirstCall {
    pub(super) fn of(call: &crate::FirstCall) -> FirstCall {
        let failure = call.failure.as_ref().map(|(class, detail)| FirstFailure {
            class: class.id(),
            blame: class.blame().id(),
            detail: detail.clone(),
            advice: call.way_out.clone(),
        });
        FirstCall {
            status: call.status,
            http_version: call.http_version.clone(),
            length: call.length,
            server: call.server.clone(),
            took_s: call.took.as_secs_f64(),
            failure,
            excerpt: call.excerpt.clone(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Environment {
    host: String,
    kernel: String,
    cpu_model: String,
    cores: u32,
    memory_bytes: u64,
    governor: String,
    container: String,
    version: String,
}

impl Environment {
    pub(super) fn of(facts: &sample::Environment) -> Environment {
        Environment {
            host: facts.host.clone(),
            kernel: facts.kernel.clone(),
            cpu_model: facts.cpu_model.clone(),
            cores: facts.cores,
            memory_bytes: facts.memory_bytes,
            governor: facts.governor.clone(),
            container: facts.container.clone(),
            version: facts.version.clone(),
        }
    }
}

/// A row of the time series.
#[derive(Serialize)]
pub(super) struct Second {
    at_s: f64,
    span_s: f64,
    warm_up: bool,
    outcomes: Outcomes,
    response_mean_s: Option<f64>,
    response_p50_s: Option<f64>,
    response_p90_s: Option<f64>,
    response_p99_s: Option<f64>,
    response_max_s: Option<f64>,
    slip_p99_s: f64,
    in_flight: u64,
    open_connections: u64,
    bytes_received: u64,
    body_bytes: u64,
    driver_cpu: f64,
    statuses: Option<BTreeMap<String, u64>>,
    failures: Option<BTreeMap<&'static str, u64>>,
}

impl Second {
    pub(super) fn of(row: &stats::Second) -> Second {
        let seconds = Nanos::as_secs_f64;
        // of no response there is no time
        let time = |time: Nanos| (!row.max.is_zero()).then(|| seconds(time));
        Second {
            at_s: row.at_s,
            span_s: row.span_s,
            warm_up: row.warm_up,
            outcomes: Outcomes::of(&row.counts),
            response_mean_s: time(row.mean),
            response_p50_s: time(row.p50),
            response_p90_s: time(row.p90),
            response_p99_s: time(row.p99),
            response_max_s: time(row.max),
            slip_p99_s: seconds(row.slip_p99),
            in_flight: row.in_flight,
            open_connections: row.open_connections,
            bytes_received: row.bytes_received,
            body_bytes: row.body_bytes,
            driver_cpu: row.driver_cpu,
            statuses: row.endings.as_ref().map(statuses),
            failures: row.endings.as_ref().map(|endings| {
                endings.failures.iter().map(|(class, count)| (class.id(), *count)).collect()
            }),
        }
    }
}

/// By number, and `other` for those that the row does not tell apart.
fn statuses(endings: &stats::Endings) -> BTreeMap<String, u64> {
    let numbered = endings.statuses.iter().map(|(status, count)| (status.to_string(), *count));
    let other = Some(("other".to_owned(), endings.other_statuses)).filter(|(_, count)| *count > 0);
    numbered.chain(other).collect()
}
