//! Deterministic synthetic runs, counted by the real recorder. Each is made once per process.

use crate::{Driver, DummyRun, Finding, FirstCall, Headline, Resolved, RunReport, SloResult};
use plan::*;
use sample::{
    BodyPrint, EarlyFacts, Environment, FailureClass, Http2Facts, Http3Facts, MigrationFacts,
    Outcome, QuicFacts, Sample, TlsFacts, WrongBody,
};
use stats::diagnosis::Confidence;
use stats::{
    Cause, CauseId, Counts, FailedResponse, JourneyTally, Measurement, Noted, NumberTally,
    Recorder, Second, ServerTimings, Snapshot, State, StreamEnd, StreamMarks, StreamTally,
    TransactionTally, Verdict, Verified,
};
use std::sync::LazyLock;
use units::{Nanos, Purpose, Rate, Seed, Stream};

/// Instant of the first arrival.
pub(crate) const START: Nanos = Nanos(5_000_000_000);

pub(crate) struct Call {
    pub(crate) sample: Sample,
    pub(crate) outcome: Outcome,
    /// False for dropped calls, and for those that ended in the queue.
    issued: bool,
}

/// Passes calls through a recorder in the order of their instants, with one row of the series per
/// second.
pub(crate) fn count(calls: &[Call], window: Nanos, warm_up: Nanos, targets: usize) -> Measurement {
    let from = START + warm_up;
    let mut recorder = Recorder::new(targets, (from, from + window));
    let mut events: Vec<(Nanos, u8, usize)> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        // At one instant: calls end, fall due, are issued, are dropped, in this order.
        let Call { sample, outcome, issued } = call;
        events.push((sample.intended, 1, index));
        if *issued {
            events.push((sample.issued, 2, index));
        }
        let dropped = *outcome == Outcome::Dropped;
        events.push(if dropped { (sample.intended, 3, index) } else { (sample.done, 0, index) });
    }
    events.sort();
    let mut total = Snapshot::default();
    let mut series = Vec::new();
    let mut next = START + Nanos::SECOND;
    for (at, kind, index) in events {
        while at >= next {
            row(&mut series, &mut total, &mut recorder, next, from, targets);
            next += Nanos::SECOND;
        }
        let Call { sample, outcome, issued } = &calls[index];
        match (kind, outcome) {
            (1, _) => recorder.due(sample.intended),
            (2, _) => recorder.issued(sample.intended, at),
            (_, Outcome::Dropped) => {
                recorder.dropped(sample.intended, FailureClass::ConnectionLimit);
            }
            _ => recorder.done(sample, *outcome, *issued),
        }
    }
    row(&mut series, &mut total, &mut recorder, next, from, targets);
    assert_eq!(total.counts.conserved(), Ok(()));
    Measurement {
        total,
        series,
        window,
        elapsed: next - START,
        connections_peak: 8,
        ..Measurement::default()
    }
}

fn row(
    series: &mut Vec<Second>,
    total: &mut Snapshot,
    recorder: &mut Recorder,
    end: Nanos,
    from: Nanos,
    targets: usize,
) {
    let full = recorder.swap(end, Box::new(Snapshot::prepared(targets)));
    let response = full.response();
    let warm_up = end <= from;
    series.push(Second {
        at_s: end.as_secs_f64() - 1.0 - from.as_secs_f64(),
        span_s: 1.0,
        counts: if warm_up { full.warm_up } else { full.counts },
        warm_up,
        bytes_received: full.bytes_received,
        body_bytes: full.body_bytes,
        p50: response.quantile(0.5),
        p90: response.quantile(0.9),
        p99: response.quantile(0.99),
        max: response.max(),
        mean: response.mean(),
        spread: stats::Spread::new(&response),
        endings: Some(full.endings()),
        streams: full.streams.interval(),
        messages: full.messages.interval(),
        slip_p99: full.slip.quantile(0.99),
        in_flight: recorder.flight(),
        open_connections: 8,
        driver_cpu: 0.25,
    });
    total.merge(&full);
}

pub(crate) fn answered(index: u64, intended: Nanos, issued: Nanos, service: Nanos) -> Call {
    let sent = issued + Nanos::from_micros(2);
    let done = issued + service;
    let sample = Sample {
        index,
        intended,
        admitted: issued,
        issued,
        sent,
        first_byte: Nanos(done.0 - service.0 / 8),
        done,
        status: 200,
        bytes_sent: 68,
        bytes_received: 172,
        body_bytes: 13,
        decoded_bytes: 13,
        ..Sample::default()
    };
    Call { sample, outcome: Outcome::Succeeded, issued: true }
}

/// Returns the calls of 8 users without think time on kept connections, for ten seconds, without
/// failures.
pub(crate) fn closed_calls() -> Vec<Call> {
    let mut stream = Seed(11).stream(Purpose::Simulation, 0);
    let (mut calls, mut index) = (Vec::new(), 0);
    for user in 0..8 {
        let mut at = START + Nanos::from_micros(user * 40);
        while at < START + Nanos::from_secs(10) {
            let service = Nanos::from_micros(900 + stream.exponential(4_000.0) as u64);
            calls.push(answered(index, at, at, service));
            at += service;
            index += 1;
        }
    }
    calls
}

/// Returns calls at 400/s for 12 s (of which 2 s are a warm-up) to a server that freezes for 800 ms
/// in second 7, with responses of several statuses, resets, time-outs and drops.
fn open_calls() -> Vec<Call> {
    let mut stream = Seed(23).stream(Purpose::Simulation, 1);
    let mut calls = Vec::new();
    let frozen = (START + Nanos::from_secs(7), START + Nanos::from_millis(7_800));
    for index in 0..4_800 {
        let intended = START + Nanos(index * 2_500_000);
        let held = (frozen.0..frozen.1).contains(&intended);
        let wait =
            if held && index % 3 == 0 { Nanos(frozen.1.0 - intended.0) } else { Nanos::ZERO };
        let lag = Nanos::from_micros(stream.below(30));
        let mut service = Nanos::from_micros(8_000 + stream.exponential(2_500.0) as u64);
        if held && wait.is_zero() {
            service += Nanos(frozen.1.0 - intended.0);
        }
        let mut call = answered(index, intended, intended + wait + lag, service);
        call.sample.admitted = intended + wait;
        call.sample.target = (index % 13) as u32;
        call.sample.body_bytes = 1_000 + 100 * (index % 13);
        call.sample.decoded_bytes = call.sample.body_bytes;
        call.sample.bytes_received = call.sample.body_bytes + 159;
        if index % 50 == 0 {
            call.sample.sent += Nanos::from_millis(2);
        }
        spoil(&mut call, &mut stream);
        calls.push(call);
    }
    calls
}

fn spoil(call: &mut Call, stream: &mut Stream) {
    let sample = &mut call.sample;
    let mut fail = |class, status, outcome| {
        sample.class = Some(class);
        sample.status = status;
        call.outcome = outcome;
    };
    match stream.below(400) {
        0..4 => fail(FailureClass::Status, 503, Outcome::Failed),
        4 => fail(FailureClass::Reset, 0, Outcome::Failed),
        5 => {
            fail(FailureClass::ClientTimeout, 0, Outcome::TimedOut);
            sample.done = sample.intended + Nanos::from_secs(1);
            sample.first_byte = Nanos::ZERO;
        }
        6 => {
            fail(FailureClass::ConnectionLimit, 0, Outcome::Dropped);
            sample.done = Nanos::ZERO;
            call.issued = false;
        }
        _ => {}
    }
}

pub(crate) fn plan_of(load: Load, urls: &[&str]) -> Plan {
    let target = |url: &&str| TargetPlan::new(url::Url::parse(url).unwrap());
    let mut plan = Plan::for_targets(urls.iter().map(target).collect());
    plan.load = load;
    plan.measure.quantiles = vec![0.5, 0.9, 0.99, 0.999, 0.9999];
    plan
}

pub(crate) fn environment() -> Environment {
    Environment {
        host: "bench-3".to_owned(),
        kernel: "Linux 6.18.2".to_owned(),
        cpu_model: "AMD EPYC 7B13".to_owned(),
        cores: 2,
        memory_bytes: 8 << 30,
        governor: "performance".to_owned(),
        congestion: "cubic".to_owned(),
        container: String::new(),
        version: "0.1.0".to_owned(),
    }
}

pub(crate) fn bare(plan: Plan, measurement: Measurement) -> RunReport {
    RunReport {
        name: String::new(),
        plan,
        plan_toml: "version = 1\nseed = 1\n\n[load]\nkind = \"closed\"\n".to_owned(),
        started_unix_s: 1_795_235_590.0,
        environment: Environment::default(),
        measurement,
        verdict: Verdict::default(),
        driver: Driver { io: "epoll".to_owned(), threads: 1, ..Driver::default() },
        resolved: Vec::new(),
        first_call: None,
        runs: Vec::new(),
        slo: Vec::new(),
        findings: Vec::new(),
        sut: None,
        path: None,
        stack: None,
        held: None,
        posts: None,
        tokens: None,
        fleet: None,
    }
}

/// Returns a plain closed loop that is VALID.
pub(crate) fn valid() -> RunReport {
    static MADE: LazyLock<RunReport> = LazyLock::new(make_valid);
    MADE.clone()
}

fn make_valid() -> RunReport {
    let plan = plan_of(
        Load::Closed { users: 8, think: Think::None, session: None },
        &["http://127.0.0.1:2020/hw"],
    );
    let mut measurement = count(&closed_calls(), Nanos::from_secs(10), Nanos::ZERO, 1);
    let connections = &mut measurement.total.connections;
    (connections.attempted, connections.established, connections.closed) = (8, 8, 8);
    connections.setup_sum = Nanos::from_micros(8 * 110);
    (connections.judged, connections.conforming) = (8, 8);
    (0..8).for_each(|n| connections.rtt.record(Nanos::from_micros(40 + n)));
    let mut report = bare(plan, measurement);
    report.environment = environment();
    report.first_call = Some(FirstCall {
        status: 200,
        http_version: "1.1".to_owned(),
        length: 13,
        server: Some("swerve/1.0".to_owned()),
        took: Nanos::from_micros(640),
        ..FirstCall::default()
    });
    report.driver = Driver {
        cpu_user_s: 0.021,
        cpu_system_s: 0.11,
        busy: vec![0.0131],
        dummy: Some(DummyRun { call_s: 0.000_031, taken_unix_s: 1_795_149_190.0 }),
        ..report.driver
    };
    report
}

/// Returns the tally of a complete stream, a truncated one, and an empty one.
fn streams() -> StreamTally {
    let (mut streams, due) = (StreamTally::default(), Nanos::from_secs(5));
    for end in [StreamEnd::Whole, StreamEnd::TimedOut] {
        let mut marks = StreamMarks::default();
        for n in 1..=5 {
            streams.add(&mut marks, n, due, due + Nanos::from_millis(40 * n));
        }
        streams.end(marks, end, due, due + Nanos::SECOND);
    }
    streams.end(StreamMarks::default(), StreamEnd::Whole, due, due);
    streams.in_window = 29;
    streams
}

fn add_timings(timings: &mut ServerTimings) {
    for n in 0..3_800 {
        timings.record("db", Nanos::from_micros(5_000 + n));
        timings.record("cache", Nanos::ZERO);
    }
    timings.count_malformed();
}

/// Returns an open load over TLS with a stall, failures of several kinds, 13 URLs, objectives, a
/// hostile `Server` field, and an INVALID verdict.
pub(crate) fn troubled() -> RunReport {
    static MADE: LazyLock<RunReport> = LazyLock::new(make_troubled);
    MADE.clone()
}

fn make_troubled() -> RunReport {
    let urls: Vec<String> = (0..13)
        .map(|n| format!("https://shop.example:8443/catalogue/department/{n}?page={}", n * 3))
        .collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let arrivals = Arrivals::constant(Rate(400.0));
    let load = Load::Open { arrivals, session: None, connections_max: Some(400), queue_max: None };
    let mut plan = plan_of(load, &urls);
    plan.stop.warm_up = Nanos::from_secs(2);
    plan.measure.slo = stats::parse_objectives("p99<50ms, failures<5%").unwrap();
    let mut measurement = count(&open_calls(), Nanos::from_secs(10), Nanos::from_secs(2), 13);
    measurement.intended = Some(4_000);
    measurement.interrupted = true;
    measurement.connections_peak = 323;
    let connections = &mut measurement.total.connections;
    (connections.attempted, connections.established, connections.closed) = (412, 410, 410);
    connections.setup_sum = Nanos::from_micros(410 * 2_130);
    for n in 0..410 {
        measurement.total.connect.record(Nanos::from_micros(120 + n));
        measurement.total.tls.record(Nanos::from_micros(1_500 + 2 * n));
    }
    add_timings(&mut measurement.total.server_timings);
    let connections = &mut measurement.total.connections;
    (connections.judged, connections.conforming) = (410, 371);
    connections.retransmits = 3;
    (0..410).for_each(|n| connections.rtt.record(Nanos::from_micros(400 + n)));
    let facts = TlsFacts {
        version: "TLSv1.3".to_owned(),
        cipher: "TLS13_AES_256_GCM_SHA384".to_owned(),
        group: "X25519MLKEM768".to_owned(),
        resumed: false,
        key_bits: 256,
        alpn: "http/1.1".to_owned(),
    };
    connections.tls.insert(facts.clone(), 20);
    connections.tls.insert(TlsFacts { resumed: true, ..facts }, 390);
    let mut report = bare(plan, measurement);
    report.environment = environment();
    report.verdict = verdict();
    report.slo = SloResult::judge(&report.plan.measure.slo, &report.measurement);
    report.resolved = vec![Resolved {
        host: "shop.example".to_owned(),
        addresses: vec!["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()],
        took: Nanos::from_micros(18_400),
    }];
    report.first_call = Some(FirstCall {
        status: 200,
        http_version: "1.1".to_owned(),
        length: 1_000,
        server: Some(HOSTILE.to_owned()),
        took: Nanos::from_millis(31),
        ..FirstCall::default()
    });
    report.driver.cpu_user_s = 0.4;
    report.driver.cpu_system_s = 0.9;
    report.driver.spin_s = 0.21;
    report.driver.busy = vec![0.11, 0.08];
    report.driver.threads = 2;
    report.findings = vec![Finding {
        id: "periodic-stall".to_owned(),
        confidence: Confidence::Likely,
        evidence: "every response that fell due between 5.0 s and 5.8 s came at 5.8 s".to_owned(),
        advice: "look for a garbage collector or a flush of that length".to_owned(),
    }];
    report
}

pub(crate) const HOSTILE: &str =
    "</td><script>alert(1)</script>\u{1b}[31m\u{202e}\"'&amp;\r\nSet-Cookie: x";

fn verdict() -> Verdict {
    let causes = vec![
        Cause {
            id: CauseId::Slip,
            figure: 0.77,
            text: "slip p99 770 ms, above 1.05 ms (10 % of the median response)".to_owned(),
            advice: "let the pool grow (--connections-max) or lower the rate".to_owned(),
        },
        Cause {
            id: CauseId::Interrupted,
            figure: 1.0,
            text: "the run was interrupted".to_owned(),
            advice: "let it run to its end".to_owned(),
        },
    ];
    Verdict { state: State::Invalid, causes }
}

/// Returns a run over HTTP/2 with every possible server failure.
pub(crate) fn over_http2() -> RunReport {
    let mut run = valid();
    run.measurement.total.connections.http2 = Http2Facts {
        streams: 4_000,
        streams_peak: 80,
        streams_max: Some(100),
        refused: 7,
        resets: [(0x7, 7), (0x99, 1)].into(),
        goaways: [(0x0, 2), (0xb, 1)].into(),
        goaway_reasons: [("too_many_pings".to_owned(), 1)].into(),
        pings: 3,
        pings_sent: 4,
        pings_answered: 3,
        fields_sent: 400_000,
        coded_sent: 12_000,
        fields_received: 900_000,
        coded_received: 40_000,
        held_back: 0,
        goaway_streams: Some((998, 1_000)),
        control_received: 0,
        violations: [("a frame of an unknown stream".to_owned(), 1)].into(),
    };
    run
}

/// Returns a run over HTTP/3 with every possible server failure.
pub(crate) fn over_http3() -> RunReport {
    let mut run = valid();
    run.measurement.total.connections.http3 = Http3Facts {
        streams: 4_000,
        streams_peak: 80,
        streams_max: Some(100),
        waited: 12,
        refused: 7,
        resets: [(0x10b, 7), (0x99, 1)].into(),
        goaways: 2,
        fields_sent: 400_000,
        coded_sent: 120_000,
        fields_received: 900_000,
        coded_received: 400_000,
        violations: [("a frame of an unknown stream".to_owned(), 1)].into(),
        quic: QuicFacts {
            handshakes: 4,
            resumed: 2,
            packets_sent: 9_000,
            packets_lost: 3,
            datagrams_received: 8_000,
            bytes_sent: 1_000_000,
            bytes_received: 7_000_000,
            congestion_events: 1,
            rtt_sum: Nanos::from_micros(1_000),
            rtt_min: Nanos::from_micros(100),
            rtt_max: Nanos::from_micros(400),
        },
        migration: MigrationFacts {
            made: 8,
            validated: 7,
            forbidden: 1,
            time_sum: Nanos::from_micros(7_000),
            time_min: Nanos::from_micros(500),
            time_max: Nanos::from_micros(3_000),
            calls: 60,
            calls_lost: 2,
        },
    };
    run.measurement.total.connections.early =
        EarlyFacts { sent: 90, accepted: 80, rejected: 9, too_early: 4 };
    run
}

/// Returns three runs of the closed loop.
pub(crate) fn repeated() -> RunReport {
    static MADE: LazyLock<RunReport> = LazyLock::new(make_repeated);
    MADE.clone()
}

fn make_repeated() -> RunReport {
    let mut report = valid();
    report.plan.measure.repeat = 3;
    let one = report.measurement.clone();
    let headline = Headline::new(&one, State::Valid);
    let scaled = |by: f64| Headline {
        throughput_per_s: headline.throughput_per_s * by,
        goodput_per_s: headline.goodput_per_s * by,
        p50_s: headline.p50_s / by,
        p99_s: headline.p99_s / by,
        ..headline
    };
    report.runs = vec![headline, scaled(0.97), scaled(1.02)];
    report.measurement = crate::merged(&[one.clone(), one.clone(), one]);
    report
}

/// Returns a run without measurements: the server refused.
pub(crate) fn empty() -> RunReport {
    let plan = plan_of(
        Load::Closed { users: 8, think: Think::None, session: None },
        &["http://127.0.0.1:1/"],
    );
    let mut report = bare(plan, Measurement::default());
    report.first_call = Some(FirstCall {
        failure: Some((FailureClass::Refused, "Connection refused (os error 111)".to_owned())),
        ..FirstCall::default()
    });
    report.plan_toml = "not = [toml".to_owned();
    report.verdict = Verdict {
        state: State::Invalid,
        causes: vec![Cause {
            id: CauseId::AllFailed,
            figure: 1.0,
            text: "no attempt got a connection".to_owned(),
            advice: "see that the server runs and listens there".to_owned(),
        }],
    };
    report
}

/// Numbers and names as long as they can get.
pub(crate) fn extreme() -> RunReport {
    let mut report = troubled();
    let much = 987_654_321_987;
    let total = &mut report.measurement.total;
    for hist in [&mut total.succeeded, &mut total.service, &mut total.slip, &mut total.wait] {
        hist.record_n(Nanos::from_secs(3_599), much);
    }
    total.counts = Counts { due: much, succeeded: much, ..Counts::default() };
    total.bytes_received = u64::MAX;
    total.failures.insert(FailureClass::ProgressTimeout, much);
    (0..1_000).for_each(|status| total.status.add(status));
    total.targets[3].succeeded = much;
    let long = "x".repeat(3_000);
    report.name = long.clone();
    report.environment.cpu_model = long.clone();
    report.plan.targets[0].url.set_path(&long);
    report.plan.request.method = long.clone();
    report.runs = vec![Headline::new(&report.measurement, State::Degraded); 12];
    report.measurement.aborted = Some(long.clone());
    report.measurement.series = vec![report.measurement.series[4].clone(); 3_601];
    report.verdict.causes[0].advice = long;
    report
}

/// Returns a run of users that shop; one body belongs to another page.
pub(crate) fn of_journeys() -> RunReport {
    let mut run = valid();
    let text = "version = 1\nurl = 'http://shop.example/'\n\
        [expect]\nverify = 'first'\n\
        [[feeder]]\nname = 'card'\ngenerate = { id = '1..9' }\n\
        [[journey]]\nname = 'shop'\n[[journey.step]]\nname = 'login'\nurl = '/{{card.id}}'\n\
        capture = { token = { header = 'x-token', metric = 'tokens' } }\n\
        tags = { kind = 'api' }\n";
    let mut plan = from_toml(text, &NoFiles).expect("it is a plan");
    let journeys = plan.journeys.take();
    run.plan.expect.verify = plan.expect.verify;
    (run.plan.journeys, run.plan.targets) = (journeys, plan.targets);
    run.plan_toml = to_toml(&run.plan, Secrets::Masked);
    let noted = |text: &str| Noted { count: 1, example: Some((Nanos::SECOND, text.to_owned())) };
    let mut numbers = NumberTally::default();
    ["3", "4.5", "none"].iter().for_each(|text| numbers.record(stats::parse_number(text)));
    run.measurement.total.journeys = JourneyTally {
        missed: vec![noted("200: no token")],
        met: vec![7],
        unmet: vec![noted("it took 2 s")],
        differed: vec![noted("404")],
        skipped: vec![noted("{{token}}")],
        refreshed: vec![2],
        transactions: vec![TransactionTally { succeeded: 5, failed: 1, ..Default::default() }],
        dry: vec![1],
        metrics: vec![numbers],
        aborted: Vec::new(),
    };
    let start = b"HTTP/1.1 503 Busy\r\nSet-Cookie: id=***\r\n\r\nbusy".to_vec();
    let sample = FailedResponse { at: Nanos::SECOND, target: 0, start, length: 4 };
    run.measurement.total.failed_responses.add(FailureClass::Status, 503, sample);
    let print = |length, hash| BodyPrint { length: Some(length), hash };
    let wrong = WrongBody {
        at: Nanos::SECOND,
        target: 0,
        of: Some(1),
        expected: print(7, 1),
        got: print(8, 2),
    };
    run.plan.measure.stream = Some(Streaming::Sse);
    run.plan_toml = to_toml(&run.plan, Secrets::Masked);
    run.measurement.total.streams = streams();
    run.measurement.total.verified = Verified { compared: 9, wrong: vec![wrong] };
    run
}

/// Returns a run with a complete plan, which can be parsed again.
pub(crate) fn whole(mut run: RunReport) -> RunReport {
    if run.plan.request.method.len() > 100 {
        run.plan.request.method = "GET".into();
    }
    run.plan_toml = to_toml(&run.plan, Secrets::Masked);
    run
}
