//! The truth set of the diagnosis: servers with one known weakness, which must be named first at
//! three loads, and healthy servers, without findings. In virtual time, so exact.

use plan::{Load, Plan, Think};
use sim::{Ailing, Ailments, Limiter, Service, SharedLine, Stall, World, execute_with, plan_for};
use stats::Measurement;
use stats::diagnosis::{Diagnosis, Evidence, of_ramp, of_run};
use units::Nanos;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// Load and its duration.
#[derive(Clone, Copy)]
enum Held {
    /// A number of users, and seconds.
    Users(u32, u64),
    /// Calls per second, and seconds.
    Rate(f64, u64),
    /// A number of users with a connection for each call, and seconds.
    Fresh(u32, u64),
}

fn plan_of(held: Held) -> Plan {
    let mut plan = plan_for("http://127.0.0.1:1/");
    let closed = |users| Load::Closed { users, think: Think::None, session: None };
    let (load, seconds) = match held {
        Held::Users(users, seconds) | Held::Fresh(users, seconds) => (closed(users), seconds),
        Held::Rate(rate, seconds) => {
            let constant = plan::Arrivals::constant(units::Rate(rate));
            let open = Load::Open {
                arrivals: plan::Arrivals { gaps: plan::Gaps::Poisson, ..constant },
                session: None,
                connections_max: Some(2_000),
                queue_max: Some(100_000),
            };
            (open, seconds)
        }
    };
    plan.load = load;
    plan.stop.duration = Some(Nanos::from_secs(seconds));
    if matches!(held, Held::Fresh(..)) {
        plan.connection.calls = Some(1);
    }
    plan
}

fn measure(plan: Plan, ails: Ailments) -> Measurement {
    let server = Box::new(Ailing::new(ails, 7));
    let world = World::new(server, Nanos::from_micros(20), Nanos::from_secs(1_000));
    execute_with(plan, world, 1, None).measurement
}

/// Returns the duration of a single call, as the first call would show.
fn alone(ails: Ailments) -> Nanos {
    let mut plan = plan_of(Held::Users(1, 100));
    plan.stop.requests = Some(1);
    measure(plan, ails).total.response().max()
}

fn evidence<'a>(held: Held, measurement: &'a Measurement, alone: Nanos) -> Evidence<'a> {
    let mut evidence = Evidence::new(measurement);
    evidence.users = match held {
        Held::Users(users, _) | Held::Fresh(users, _) => Some(users),
        Held::Rate(..) => None,
    };
    evidence.calls_max = matches!(held, Held::Fresh(..)).then_some(1);
    evidence.one_by_one = true;
    evidence.alone = Some(alone);
    evidence.timeout = Nanos::from_secs(30);
    evidence.connect_timeout = Nanos::from_secs(5);
    evidence.driver_busy = Some(0.2);
    evidence
}

fn diagnose(held: Held, ails: Ailments) -> Vec<Diagnosis> {
    let measurement = measure(plan_of(held), ails);
    of_run(&evidence(held, &measurement, alone(ails)))
}

fn describe(found: &[Diagnosis]) -> String {
    let lines = found
        .iter()
        .map(|one| format!("{} ({}): {}", one.rule.id, one.confidence.id(), one.evidence));
    lines.collect::<Vec<String>>().join("\n")
}

/// Checks that each load names `id` first.
fn first(id: &str, ails: Ailments, loads: &[Held]) {
    let mut wrong = Vec::new();
    for (index, held) in loads.iter().enumerate() {
        let found = diagnose(*held, ails);
        if found.first().is_none_or(|one| one.rule.id != id) {
            wrong.push(format!("load {index}: {}", describe(&found)));
        }
    }
    assert!(wrong.is_empty(), "not {id}:\n{}", wrong.join("\n"));
}

fn nothing(ails: Ailments, loads: &[Held]) {
    for (index, held) in loads.iter().enumerate() {
        let found = diagnose(*held, ails);
        assert!(found.is_empty(), "{ails:?}, load {index}: {}", describe(&found));
    }
}

fn fixed(ms: u64) -> Option<Service> {
    Some(Service::Fixed(MS(ms)))
}

fn random(ms: u64) -> Option<Service> {
    Some(Service::Exponential(MS(ms)))
}

/// Loads for servers that take some 20 ms or process a few hundred calls a second.
const USERS: [Held; 3] = [Held::Users(4, 12), Held::Users(12, 10), Held::Users(32, 8)];

#[test]
fn healthy_servers_give_no_finding() {
    let micros = |micros| Some(Service::Exponential(Nanos::from_micros(micros)));
    let quick = Ailments { work: micros(700), ..Ailments::default() };
    nothing(quick, &[Held::Users(1, 3), Held::Users(4, 1), Held::Rate(100.0, 10)]);
    nothing(quick, &[Held::Rate(600.0, 9), Held::Fresh(2, 2)]);
    let slow = Ailments { work: random(12), ..Ailments::default() };
    nothing(slow, &[Held::Users(4, 10), Held::Users(64, 1), Held::Rate(200.0, 10)]);
    let steady = Ailments { work: fixed(7), ..Ailments::default() };
    nothing(steady, &[Held::Users(3, 9), Held::Users(32, 1), Held::Fresh(4, 9)]);
    let busy = Ailments { work: random(8), workers: 4, ..Ailments::default() };
    nothing(busy, &[Held::Rate(200.0, 10), Held::Rate(350.0, 10), Held::Users(3, 10)]);
    // one core, many short calls: the queue of a full processor is not a pool
    let core = Ailments { work: micros(200), workers: 1, ..Ailments::default() };
    nothing(core, &[Held::Users(2, 1), Held::Users(16, 1), Held::Users(64, 1)]);
}

#[test]
fn a_serial_handler_is_found() {
    let serial = |ms| Ailments { work: fixed(ms), workers: 1, ..Ailments::default() };
    first("serial-handler", serial(10), &USERS);
    // the time of a single call is random here; the curve shows the effect without it
    first(
        "serial-handler",
        serial(20),
        &[Held::Rate(80.0, 12), Held::Fresh(8, 12), Held::Users(2, 12)],
    );
}

#[test]
fn a_worker_pool_is_found() {
    let pool = |workers| Ailments { work: fixed(20), workers, ..Ailments::default() };
    first("worker-pool", pool(2), &USERS);
    first("worker-pool", pool(8), &[Held::Users(16, 8), Held::Users(48, 8), Held::Users(100, 8)]);
    for (workers, users) in [(2, 16), (8, 16), (8, 100), (5, 23)] {
        let found = diagnose(Held::Users(users, 6), pool(workers));
        let expected = format!("about {workers} workers");
        assert!(found[0].evidence.contains(&expected), "{}", describe(&found));
    }
}

#[test]
fn a_scheduling_quantum_is_found() {
    let swerve = Ailments { tick: Some(MS(20)), work: fixed(2), ..Ailments::default() };
    first(
        "scheduling-quantum",
        swerve,
        &[Held::Users(1, 10), Held::Users(4, 9), Held::Users(32, 4)],
    );
    let polls = Ailments { quantum: Some(MS(20)), tick: None, ..swerve };
    let comb = Ailments { work: random(15), ..polls };
    first("scheduling-quantum", comb, &[Held::Users(1, 10), Held::Users(8, 9), Held::Fresh(8, 5)]);
}

/// Responses that are sent at a clock's ticks, regardless of their work and of how late they are
/// received.
#[test]
fn a_clock_is_detected_by_response_phase() {
    let loads = [Held::Users(1, 8), Held::Users(50, 4), Held::Rate(120.0, 6), Held::Rate(30.0, 8)];
    for (tick, work, late_micros) in
        [(20, fixed(2), 500), (10, random(4), 300), (20, random(30), 1_000), (100, random(40), 300)]
    {
        let lateness = Nanos::from_micros(late_micros);
        let clock = Ailments { tick: Some(MS(tick)), work, lateness, ..Ailments::default() };
        first("scheduling-quantum", clock, &loads);
    }
}

/// A handler that sleeps for a clock's period, with late reception, is not a clock.
#[test]
fn a_sleep_of_the_same_length_is_not_a_clock() {
    let loads = [Held::Users(1, 8), Held::Users(50, 4), Held::Rate(120.0, 6)];
    for (sleep, late_micros) in [(10, 300), (20, 50), (20, 1_000), (100, 300)] {
        let lateness = Nanos::from_micros(late_micros);
        let sleeper = Ailments { work: fixed(sleep), lateness, ..Ailments::default() };
        for held in loads {
            let found = diagnose(held, sleeper);
            let named = found.iter().any(|one| one.rule.id == "scheduling-quantum");
            assert!(!named, "{sleep} ms, {late_micros} µs late: {}", describe(&found));
        }
    }
}

#[test]
fn a_quantum_is_found_in_uneven_work_on_a_busy_machine() {
    let loads = [Held::Users(4, 6), Held::Users(16, 3), Held::Rate(100.0, 8)];
    for (tick, mean, late_micros) in [(10, 5, 300), (10, 30, 1_000), (20, 15, 1_000), (20, 80, 500)]
    {
        let quantum = Some(MS(tick));
        let lateness = Nanos::from_micros(late_micros);
        let comb = Ailments { quantum, lateness, work: random(mean), ..Ailments::default() };
        first("scheduling-quantum", comb, &loads);
    }
}

/// A single call of random work may be short or long by chance, and then shows nothing about a
/// queue.
#[test]
fn a_fast_first_call_causes_no_finding() {
    let quantum = |tick| Ailments { quantum: tick, work: random(40), ..Ailments::default() };
    for (ails, named) in
        [(quantum(None), None), (quantum(Some(MS(20))), Some("scheduling-quantum"))]
    {
        for held in [Held::Users(4, 6), Held::Users(16, 4), Held::Fresh(8, 5)] {
            let measurement = measure(plan_of(held), ails);
            for alone in [4, 20, 21, 60, 200] {
                let found = of_run(&evidence(held, &measurement, MS(alone)));
                let first = found.first().map(|one| one.rule.id);
                assert_eq!(
                    (first, found.len()),
                    (named, named.iter().len()),
                    "{}",
                    describe(&found)
                );
            }
        }
    }
}

#[test]
fn nagle_with_delayed_ack_is_found() {
    let from = |response| Ailments {
        delayed_ack_from: Some(response),
        work: random(1),
        ..Ailments::default()
    };
    first("nagle-delayed-ack", from(1), &USERS);
    first(
        "nagle-delayed-ack",
        from(8),
        &[Held::Users(1, 10), Held::Users(12, 9), Held::Rate(100.0, 10)],
    );
}

#[test]
fn an_overflowing_accept_queue_is_diagnosed() {
    let overflow = Ailments { lost_connects: Some(20), work: random(3), ..Ailments::default() };
    first(
        "accept-queue-overflow",
        overflow,
        &[Held::Fresh(4, 20), Held::Fresh(16, 9), Held::Fresh(64, 4)],
    );
}

#[test]
fn retransmission_is_found() {
    let lossy = |share| Ailments { lost_responses: share, work: random(10), ..Ailments::default() };
    first(
        "retransmission",
        lossy(0.01),
        &[Held::Users(4, 9), Held::Users(12, 4), Held::Users(32, 2)],
    );
    first(
        "retransmission",
        lossy(0.003),
        &[Held::Users(12, 5), Held::Rate(300.0, 10), Held::Fresh(8, 9)],
    );
}

#[test]
fn a_cap_on_connections_is_diagnosed() {
    let waiting = Ailments { served_at_once: Some(3), work: random(10), ..Ailments::default() };
    first("connection-cap", waiting, &[Held::Users(6, 8), Held::Users(16, 8), Held::Users(40, 8)]);
    let closing = Ailments { connection_cap: Some(3), work: random(10), ..Ailments::default() };
    first("connection-cap", closing, &[Held::Users(6, 8), Held::Users(12, 8), Held::Users(20, 5)]);
}

#[test]
fn a_rate_limiter_is_found() {
    let limit = |per_s, status| Ailments {
        limiter: Some(Limiter { per_s, burst: 20.0, status }),
        work: random(1),
        ..Ailments::default()
    };
    first(
        "rate-limit",
        limit(100.0, Some(429)),
        &[Held::Users(2, 12), Held::Users(6, 8), Held::Rate(300.0, 12)],
    );
    first(
        "rate-limit",
        limit(50.0, Some(503)),
        &[Held::Users(2, 12), Held::Rate(120.0, 12), Held::Rate(200.0, 12)],
    );
    first("rate-limit", limit(200.0, None), &USERS);
}

#[test]
fn a_periodic_stall_is_found() {
    let stall = |length, period| Ailments {
        stall: Some(Stall {
            first: Nanos::from_secs(1_001),
            length: MS(length),
            period: MS(period),
        }),
        work: random(20),
        ..Ailments::default()
    };
    first(
        "periodic-stall",
        stall(500, 2_000),
        &[Held::Users(8, 12), Held::Users(16, 10), Held::Rate(400.0, 12)],
    );
    first(
        "periodic-stall",
        stall(150, 1_000),
        &[Held::Users(12, 9), Held::Rate(300.0, 10), Held::Rate(900.0, 9)],
    );
}

#[test]
fn a_warm_up_is_found() {
    let cold = Ailments {
        cold: Some((Nanos::from_secs(4), 5.0)),
        work: random(20),
        ..Ailments::default()
    };
    first("warm-up", cold, &[Held::Users(4, 20), Held::Users(12, 12), Held::Rate(100.0, 20)]);
}

/// A service time that falls evenly from 60 ms to 2 ms over half of the run.
#[test]
fn a_warm_up_that_falls_little_by_little() {
    let warming = Ailments {
        warming: Some((Nanos::from_secs(8), 30.0)),
        work: random(2),
        ..Ailments::default()
    };
    first("warm-up", warming, &[Held::Rate(200.0, 16), Held::Users(1, 16), Held::Rate(50.0, 20)]);
}

#[test]
fn a_leak_is_found() {
    let leak = |ns| Ailments { leak: Nanos(ns), work: random(20), ..Ailments::default() };
    first("drift", leak(5_000), &[Held::Users(4, 20), Held::Users(12, 15), Held::Rate(200.0, 25)]);
}

#[test]
fn a_limit_of_calls_per_connection() {
    let limit = |responses| Ailments {
        close_after: Some(responses),
        work: random(5),
        ..Ailments::default()
    };
    let loads = [Held::Users(2, 5), Held::Users(8, 2), Held::Users(24, 1)];
    first("keep-alive-limit", limit(1), &loads);
    first("keep-alive-limit", limit(7), &loads);
    first(
        "keep-alive-limit",
        limit(50),
        &[Held::Users(1, 10), Held::Users(8, 3), Held::Rate(200.0, 10)],
    );
}

#[test]
fn a_full_line_is_diagnosed() {
    let line = |shared| Ailments {
        line: Some(SharedLine { bytes_per_s: 1.25e6, shared, body: 20_000 }),
        ..Ailments::default()
    };
    first("bandwidth-limit", line(true), &USERS);
    first(
        "bandwidth-limit",
        line(false),
        &[Held::Users(1, 10), Held::Users(8, 8), Held::Rate(100.0, 10)],
    );
}

#[test]
fn a_timeout_in_the_backend_is_found() {
    let late = |share, seconds| Ailments {
        late: Some((share, Nanos::from_secs(seconds))),
        work: random(10),
        ..Ailments::default()
    };
    first(
        "round-timeout",
        late(0.01, 2),
        &[Held::Users(4, 12), Held::Users(12, 9), Held::Users(32, 5)],
    );
    first(
        "round-timeout",
        late(0.02, 5),
        &[Held::Users(12, 20), Held::Rate(150.0, 20), Held::Fresh(8, 20)],
    );
}

#[test]
fn backends_of_different_speed_are_diagnosed() {
    let mixed = Ailments { work: random(10), other_backend: random(50), ..Ailments::default() };
    first("mixed-backends", mixed, &[Held::Users(8, 9), Held::Users(24, 5), Held::Users(64, 3)]);
}

#[test]
fn contention_is_found_from_the_curve() {
    let usl = |a, b| Ailments { contention: Some((a, b)), work: fixed(20), ..Ailments::default() };
    for (a, b) in [(0.05, 0.002), (0.02, 0.005), (0.1, 0.001)] {
        let found = ramp(usl(a, b), &[1, 2, 4, 8, 16, 32, 64]);
        let named = found.first().map(|one| one.rule.id);
        assert_eq!(named, Some("cpu-contention"), "{}", describe(&found));
    }
}

#[test]
fn the_curve_finds_pools_of_any_law() {
    for (workers, id) in [(1, "serial-handler"), (3, "worker-pool"), (10, "worker-pool")] {
        let ails = Ailments { work: random(30), workers, ..Ailments::default() };
        let found = ramp(ails, &[1, 2, 4, 8, 16, 32, 64]);
        let named = found.first().map(|one| one.rule.id);
        assert_eq!(named, Some(id), "{}", describe(&found));
        let expected = format!("{workers} workers");
        assert!(workers == 1 || found[0].evidence.contains(&expected), "{}", describe(&found));
    }
    let healthy = Ailments { work: random(30), ..Ailments::default() };
    let found = ramp(healthy, &[1, 2, 4, 8, 16, 32]);
    assert!(found.is_empty(), "{}", describe(&found));
}

/// Diagnoses a staircase of populations; the lowest is held longest, because it has the fewest
/// calls.
fn ramp(ails: Ailments, users: &[u32]) -> Vec<Diagnosis> {
    let held = |users: &u32| Held::Users(*users, if *users < 4 { 30 } else { 5 });
    let steps: Vec<(Held, Measurement)> =
        users.iter().map(held).map(|held| (held, measure(plan_of(held), ails))).collect();
    let alone = alone(ails);
    let steps: Vec<Evidence<'_>> =
        steps.iter().map(|(held, measurement)| evidence(*held, measurement, alone)).collect();
    of_ramp(&steps, None)
}
