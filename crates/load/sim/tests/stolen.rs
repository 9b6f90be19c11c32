//! Findings on a virtual machine whose host takes its cores for milliseconds: a healthy server has
//! no findings, and a weakness keeps its finding.

use plan::{Arrivals, Gaps, Load, Think};
use sample::{PathDirection, PathFacts, PathKind, SutRow, SutSeries};
use sim::{
    Ailing, Ailments, Limiter, Service, SharedLine, Stall, Stolen, World, execute_with, plan_for,
};
use stats::Measurement;
use stats::diagnosis::{Diagnosis, Evidence, Http2Limits, RULES, of_run};
use std::sync::OnceLock;
use units::{Nanos, Rate};

const MS: fn(u64) -> Nanos = Nanos::from_millis;
const START: Nanos = Nanos::from_secs(1_000);
const SECONDS: u64 = 10;

#[derive(Clone, Copy, Debug)]
enum Held {
    Users(u32),
    Rate(f64),
    /// A number of users with a connection for each call.
    Fresh(u32),
}

/// Bursts of up to 8 ms, 60 ms apart on average, during the whole run: some 6 % of the time.
fn throughout(seed: u64) -> Stolen {
    Stolen::bursts(seed, (START, START + Nanos::from_secs(SECONDS)), MS(60), MS(8))
}

/// Returns stalls far closer together, in the first three seconds only: the machine becomes faster.
fn at_first(seed: u64) -> Stolen {
    Stolen::bursts(seed, (START, START + Nanos::from_secs(3)), MS(6), MS(8))
}

fn measure(held: Held, ails: Ailments, stolen: Stolen) -> Measurement {
    let mut plan = plan_for("http://127.0.0.1:1/");
    plan.load = match held {
        Held::Users(users) | Held::Fresh(users) => {
            Load::Closed { users, think: Think::None, session: None }
        }
        Held::Rate(rate) => Load::Open {
            arrivals: Arrivals { gaps: Gaps::Poisson, ..Arrivals::constant(Rate(rate)) },
            session: None,
            connections_max: Some(2_000),
            queue_max: Some(100_000),
        },
    };
    plan.stop.duration = Some(Nanos::from_secs(SECONDS));
    if matches!(held, Held::Fresh(_)) {
        plan.connection.calls = Some(1);
    }
    let mut world = World::new(Box::new(Ailing::new(ails, 7)), Nanos::from_micros(20), START);
    world.steal(stolen);
    execute_with(plan, world, 1, None).measurement
}

fn found(held: Held, ails: Ailments, stolen: Stolen, machine_busy: bool) -> Vec<Diagnosis> {
    found_with(held, ails, stolen, machine_busy, &Known::default())
}

/// Facts of a run in addition to its times.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Counts of a protocol that the simulated server does not support: counted, not timed.
    counted: Option<fn(&mut Measurement)>,
    observed: Option<fn(&mut Evidence<'_>)>,
}

fn found_with(
    held: Held,
    ails: Ailments,
    stolen: Stolen,
    machine_busy: bool,
    known: &Known,
) -> Vec<Diagnosis> {
    let mut measurement = measure(held, ails, stolen);
    if let Some(count) = known.counted {
        count(&mut measurement);
    }
    // the first call runs alone, and meets no burst
    let mut first = plan_for("http://127.0.0.1:1/");
    first.load = Load::Closed { users: 1, think: Think::None, session: None };
    (first.stop.duration, first.stop.requests) = (None, Some(1));
    let world = World::new(Box::new(Ailing::new(ails, 7)), Nanos::from_micros(20), START);
    let alone = execute_with(first, world, 1, None).measurement.total.response().max();
    let mut evidence = Evidence::new(&measurement);
    evidence.users = match held {
        Held::Users(users) | Held::Fresh(users) => Some(users),
        Held::Rate(_) => None,
    };
    evidence.calls_max = matches!(held, Held::Fresh(_)).then_some(1);
    (evidence.one_by_one, evidence.alone) = (true, Some(alone));
    (evidence.timeout, evidence.connect_timeout) = (Nanos::from_secs(30), Nanos::from_secs(5));
    (evidence.driver_busy, evidence.machine_busy) = (Some(0.2), machine_busy);
    if let Some(observe) = known.observed {
        observe(&mut evidence);
    }
    of_run(&evidence)
}

fn describe(found: &[Diagnosis]) -> String {
    let line = |one: &Diagnosis| format!("{} ({}): {}", one.rule.id, one.confidence, one.evidence);
    found.iter().map(line).collect::<Vec<String>>().join("\n")
}

fn micros(micros: u64) -> Option<Service> {
    Some(Service::Exponential(Nanos::from_micros(micros)))
}

#[test]
fn nothing_is_found_at_a_healthy_server() {
    for (held, work) in [
        (Held::Rate(1_500.0), micros(200)),
        (Held::Rate(300.0), micros(2_000)),
        (Held::Rate(200.0), micros(12_000)),
        (Held::Users(4), micros(12_000)),
        (Held::Users(16), micros(12_000)),
    ] {
        let ails = Ailments { work, ..Ailments::default() };
        for seed in 1..4 {
            let found = found(held, ails, throughout(seed), true);
            assert!(found.is_empty(), "{held:?}, seed {seed}:\n{}", describe(&found));
        }
    }
}

#[test]
fn a_faster_machine_is_not_a_certain_warm_up() {
    for held in [Held::Rate(300.0), Held::Users(8)] {
        let ails = Ailments { work: micros(2_000), ..Ailments::default() };
        let found = found(held, ails, at_first(1), true);
        let sure = found.iter().filter(|one| one.confidence.id() != "possible");
        assert_eq!(sure.count(), 0, "{held:?}:\n{}", describe(&found));
    }
}

#[test]
fn a_limit_of_bytes_for_each_connection_keeps_its_name() {
    let line = SharedLine { bytes_per_s: 1.25e6, shared: false, body: 40_000 };
    let ails = Ailments { line: Some(line), work: micros(500), ..Ailments::default() };
    for held in [Held::Users(8), Held::Rate(60.0)] {
        for stolen in [Stolen::default(), throughout(1), throughout(2), at_first(1)] {
            let found = found(held, ails, stolen, true);
            let first = found.first().map(|one| one.rule.id);
            assert_eq!(first, Some("bandwidth-limit"), "{held:?}:\n{}", describe(&found));
            let named = |id| found.iter().any(|one| one.rule.id == id);
            assert!(
                !named("cpu-contention") && !named("warm-up"),
                "{held:?}:\n{}",
                describe(&found)
            );
        }
    }
}

#[test]
fn a_round_time_out_is_named_before_the_clients_lateness() {
    let ails =
        Ailments { late: Some((0.02, Nanos::SECOND)), work: micros(2_000), ..Ailments::default() };
    for held in [Held::Users(12), Held::Rate(200.0), Held::Rate(1_000.0)] {
        for seed in 1..4 {
            let found = found(held, ails, throughout(seed), false);
            let first = found.first().map(|one| one.rule.id);
            assert_eq!(first, Some("round-timeout"), "{held:?}:\n{}", describe(&found));
        }
    }
}

#[test]
fn weaknesses_keep_their_names() {
    for (id, ails, held) in [
        (
            "keep-alive-limit",
            Ailments { close_after: Some(7), work: micros(5_000), ..Ailments::default() },
            Held::Users(8),
        ),
        (
            "serial-handler",
            Ailments { work: Some(Service::Fixed(MS(10))), workers: 1, ..Ailments::default() },
            Held::Users(12),
        ),
    ] {
        let found = found(held, ails, throughout(1), false);
        assert_eq!(found.first().map(|one| one.rule.id), Some(id), "{}", describe(&found));
    }
}

/// A weakness, and a load at which it shows.
struct Weakness {
    id: &'static str,
    held: Held,
    ails: Ailments,
    known: Known,
}

fn weak(id: &'static str, held: Held, ails: Ailments) -> Weakness {
    Weakness { id, held, ails, known: Known::default() }
}

/// Returns a healthy server with these counts.
fn counted(id: &'static str, count: fn(&mut Measurement)) -> Weakness {
    let known = Known { counted: Some(count), ..Known::default() };
    Weakness { known, ..weak(id, Held::Rate(300.0), healthy()) }
}

/// Returns a healthy server with these counts of an HTTP/2 client.
fn of_http2(id: &'static str, count: fn(&mut Measurement)) -> Weakness {
    let observe = |evidence: &mut Evidence<'_>| evidence.http2 = Some(LIMITS);
    let of = counted(id, count);
    Weakness { known: Known { observed: Some(observe), ..of.known }, ..of }
}

/// Returns a healthy server with these counts of clients that read slowly.
fn server_with_slow_readers(id: &'static str, count: fn(&mut Measurement)) -> Weakness {
    let observe = |evidence: &mut Evidence<'_>| evidence.read_rate = Some(1_000);
    let of = counted(id, count);
    Weakness { known: Known { observed: Some(observe), ..of.known }, ..of }
}

const LIMITS: Http2Limits = Http2Limits {
    streams: 10,
    stream_window: 1 << 30,
    connection_window: 100_000,
    header_table: 4_096,
    encoder_table: 4_096,
};

fn healthy() -> Ailments {
    Ailments { work: micros(2_000), ..Ailments::default() }
}

/// Returns the true cause for each rule.
fn weaknesses() -> Vec<Weakness> {
    let fixed = |ms| Some(Service::Fixed(MS(ms)));
    let none = Ailments::default();
    let (users, rate) = (Held::Users(12), Held::Rate(300.0));
    let limiter = Limiter { per_s: 50.0, burst: 20.0, status: Some(429) };
    let stall = Stall { first: Nanos::from_secs(1_001), length: MS(500), period: MS(2_000) };
    let line = SharedLine { bytes_per_s: 1.25e6, shared: true, body: 20_000 };
    let used_up = |evidence: &mut Evidence<'_>| evidence.driver_busy = Some(0.99);
    let mut all = timed(fixed, none, (users, rate), (limiter, stall, line));
    all.extend(figures());
    all.push(Weakness {
        known: Known { observed: Some(used_up), ..Known::default() },
        ..weak("client-limited", rate, healthy())
    });
    all
}

fn timed(
    fixed: impl Fn(u64) -> Option<Service>,
    none: Ailments,
    (users, rate): (Held, Held),
    (limiter, stall, line): (Limiter, Stall, SharedLine),
) -> Vec<Weakness> {
    let (work, other_backend) = (micros(10_000), micros(50_000));
    let slow = Ailments { work, ..none };
    let cold = Some((Nanos::from_secs(4), 5.0));
    vec![
        weak(
            "accept-queue-overflow",
            Held::Fresh(16),
            Ailments { lost_connects: Some(20), work: micros(3_000), ..none },
        ),
        weak("retransmission", users, Ailments { lost_responses: 0.01, ..slow }),
        weak("nagle-delayed-ack", users, Ailments { delayed_ack_from: Some(1), ..healthy() }),
        weak("connection-cap", users, Ailments { served_at_once: Some(3), ..slow }),
        weak("rate-limit", rate, Ailments { limiter: Some(limiter), ..healthy() }),
        weak("periodic-stall", rate, Ailments { stall: Some(stall), ..slow }),
        weak("keep-alive-limit", users, Ailments { close_after: Some(7), ..slow }),
        weak("round-timeout", users, Ailments { late: Some((0.02, Nanos::SECOND)), ..slow }),
        weak("bandwidth-limit", users, Ailments { line: Some(line), ..none }),
        weak("mixed-backends", users, Ailments { other_backend, ..slow }),
        weak("serial-handler", users, Ailments { work: fixed(10), workers: 1, ..none }),
        weak("worker-pool", users, Ailments { work: fixed(20), workers: 3, ..none }),
        // work within one tick of a clock cannot be distinguished from a delay of the machine
        weak(
            "scheduling-quantum",
            users,
            Ailments { quantum: Some(MS(20)), work: micros(15_000), ..none },
        ),
        weak("warm-up", rate, Ailments { cold, ..slow }),
        weak("drift", rate, Ailments { leak: Nanos(30_000), ..slow }),
    ]
}

/// Findings from counts or observations, for any times.
fn figures() -> Vec<Weakness> {
    let lossy = |evidence: &mut Evidence<'_>| evidence.path = Some(LOSSY.get_or_init(lossy_path));
    let full = |evidence: &mut Evidence<'_>| evidence.sut = Some(FULL.get_or_init(full_server));
    let observed = |id, observe: fn(&mut Evidence<'_>)| Weakness {
        known: Known { observed: Some(observe), ..Known::default() },
        ..weak(id, Held::Rate(300.0), healthy())
    };
    vec![
        observed("path-loss", lossy),
        observed("cpu-contention", full),
        counted("idle-timeout", |measurement| {
            let silence = &mut measurement.total.messages.silence;
            (0..10).for_each(|_| silence.record(Nanos::from_secs(60)));
        }),
        counted("fan-out-serial", |measurement| {
            let fan_out = &mut measurement.total.messages.fan_out;
            (fan_out.messages, fan_out.expected) = (50, 5_000);
            for (hist, ms) in [(&mut fan_out.first, 1), (&mut fan_out.last, 10)] {
                (0..50).for_each(|_| hist.record(MS(ms)));
            }
            (1..=10).for_each(|ms| fan_out.each.record(MS(ms)));
        }),
        counted("slow-reconnects", |measurement| {
            let reconnects = &mut measurement.total.messages.reconnects;
            (reconnects.lost, reconnects.failed) = (20, 20);
            (0..20).for_each(|_| reconnects.times.record(MS(3_000)));
        }),
        server_with_slow_readers("slow-consumer", |measurement| {
            let messages = &mut measurement.total.messages;
            messages.counts.opened = 20;
            messages.end(sample::SocketClose::Server(1008), None);
        }),
        counted("compression-cost", |measurement| {
            let counts = &mut measurement.total.messages.counts;
            (counts.opened, counts.compressed, counts.sent) = (10, 10, 1_000);
            (counts.payload_sent, counts.wire_sent) = (1_000_000, 1_004_000);
        }),
        of_http2("stream-limit", |measurement| {
            let facts = &mut measurement.total.connections.http2;
            (facts.streams, facts.streams_peak, facts.held_back) = (1_000, 16, 300);
            facts.streams_max = Some(16);
        }),
        of_http2("one-channel", |measurement| {
            measurement.connections_peak = 1;
            measurement.total.connections.http2.streams = 1_000;
            let wait = measurement.total.response().mean();
            (0..1_000).for_each(|_| measurement.total.connections.stream_wait.record(wait));
        }),
        of_http2("window-limit", |measurement| {
            measurement.total.connections.http2.streams = 1_000;
            measurement.total.body_bytes = 60_000_000;
            measurement.connections_peak = 1;
            measurement.total.connections.rtt = stats::Hist::default();
            measurement.total.connections.rtt.record(MS(10));
        }),
        of_http2("goaway-limit", |measurement| {
            let facts = &mut measurement.total.connections.http2;
            (facts.streams, facts.goaway_streams) = (1_000, Some((100, 100)));
            facts.goaways.insert(0, 10);
            measurement.connections_peak = 1;
        }),
        of_http2("header-table", |measurement| {
            let facts = &mut measurement.total.connections.http2;
            (facts.streams, facts.fields_received, facts.coded_received) =
                (1_000, 200_000, 150_000);
            measurement.total.connections.established = 1;
        }),
    ]
}

static LOSSY: OnceLock<PathFacts> = OnceLock::new();
static FULL: OnceLock<SutSeries> = OnceLock::new();

fn lossy_path() -> PathFacts {
    let way = PathDirection { arrived: 5_000, lost_to_model: 250, ..PathDirection::default() };
    let kind = PathKind { clients: 1, up: way.clone(), down: way, ..PathKind::default() };
    PathFacts { kinds: vec![kind], ..PathFacts::default() }
}

fn full_server() -> SutSeries {
    let row = |at_s: f64| SutRow { at_s, cpu_cores: 1.96, ..SutRow::default() };
    SutSeries {
        cores: 2.0,
        rows: (0..10).map(f64::from).map(row).collect(),
        ..SutSeries::default()
    }
}

/// Every rule has a row; a new rule needs one.
#[test]
fn every_rule_has_its_true_cause() {
    let rows = weaknesses();
    let named: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let missing = named.iter().filter(|id| !rows.iter().any(|row| row.id == **id));
    assert_eq!(missing.collect::<Vec<_>>(), [&""; 0]);
}

/// The true cause is found on the machine whose cores are stolen, and ranked before all others but
/// one.
#[test]
fn every_true_cause_is_found_while_cores_are_stolen() {
    let mut wrong = Vec::new();
    for row in weaknesses() {
        for (stolen, name) in [(Stolen::default(), "quiet"), (throughout(1), "stolen")] {
            let found = found_with(row.held, row.ails, stolen, true, &row.known);
            if !found.iter().take(2).any(|one| one.rule.id == row.id) {
                wrong.push(format!("{}, {name}:\n{}", row.id, describe(&found)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Without the cause, no load and no burst produces the finding as the server's, even if the host
/// does not report the time that it takes.
#[test]
fn stolen_cores_alone_are_not_a_finding() {
    let mut wrong = Vec::new();
    let steady = Ailments { work: Some(Service::Fixed(MS(5))), ..Ailments::default() };
    for (ails, held) in [
        (healthy(), Held::Rate(300.0)),
        (healthy(), Held::Rate(1_500.0)),
        (healthy(), Held::Users(12)),
        (healthy(), Held::Fresh(8)),
        (steady, Held::Users(6)),
        (steady, Held::Rate(400.0)),
    ] {
        for seed in 1..4 {
            for (reported, stolen) in
                [(true, throughout(seed)), (false, throughout(seed)), (true, at_first(seed))]
            {
                let found = found(held, ails, stolen, reported);
                let sure = |one: &&Diagnosis| one.confidence.id() != "possible";
                if let Some(one) = found.iter().find(sure) {
                    wrong.push(format!(
                        "{held:?}, seed {seed}, reported {reported}: {} ({}): {}",
                        one.rule.id, one.confidence, one.evidence
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
