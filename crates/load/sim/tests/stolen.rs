//! The findings on a virtual machine whose host takes its cores for milliseconds: nothing is said of a
//! healthy server, and a weakness keeps its name.

use plan::{Arrivals, Gaps, Load, Think};
use sim::{Ailing, Ailments, Service, SharedLine, Stolen, World, execute_with, plan_for};
use stats::Measurement;
use stats::diagnosis::{Diagnosis, Evidence, of_run};
use units::{Nanos, Rate};

const MS: fn(u64) -> Nanos = Nanos::from_millis;
const START: Nanos = Nanos::from_secs(1_000);
const SECONDS: u64 = 10;

#[derive(Clone, Copy, Debug)]
enum Held {
    Users(u32),
    Rate(f64),
}

/// Bursts of up to 8 ms, 60 ms apart in the mean, all through the run: some 6 % of the time.
fn throughout(seed: u64) -> Stolen {
    Stolen::bursts(seed, (START, START + Nanos::from_secs(SECONDS)), MS(60), MS(8))
}

/// The same, far closer together, in the first three seconds only: the machine becomes faster.
fn at_first(seed: u64) -> Stolen {
    Stolen::bursts(seed, (START, START + Nanos::from_secs(3)), MS(6), MS(8))
}

fn measure(held: Held, ails: Ailments, stolen: Stolen) -> Measurement {
    let mut plan = plan_for("http://127.0.0.1:1/");
    plan.load = match held {
        Held::Users(users) => Load::Closed { users, think: Think::None, session: None },
        Held::Rate(rate) => Load::Open {
            arrivals: Arrivals { gaps: Gaps::Poisson, ..Arrivals::constant(Rate(rate)) },
            session: None,
            connections_max: Some(2_000),
            queue_max: Some(100_000),
        },
    };
    plan.stop.duration = Some(Nanos::from_secs(SECONDS));
    let mut world = World::new(Box::new(Ailing::new(ails, 7)), Nanos::from_micros(20), START);
    world.steal(stolen);
    execute_with(plan, world, 1, None).measurement
}

fn found(held: Held, ails: Ailments, stolen: Stolen, machine_busy: bool) -> Vec<Diagnosis> {
    let measurement = measure(held, ails, stolen);
    // the call that goes first is alone, and meets no burst
    let mut first = plan_for("http://127.0.0.1:1/");
    first.load = Load::Closed { users: 1, think: Think::None, session: None };
    (first.stop.duration, first.stop.requests) = (None, Some(1));
    let world = World::new(Box::new(Ailing::new(ails, 7)), Nanos::from_micros(20), START);
    let alone = execute_with(first, world, 1, None).measurement.total.response().max();
    let mut evidence = Evidence::new(&measurement);
    evidence.users = match held {
        Held::Users(users) => Some(users),
        Held::Rate(_) => None,
    };
    (evidence.one_by_one, evidence.alone) = (true, Some(alone));
    (evidence.timeout, evidence.connect_timeout) = (Nanos::from_secs(30), Nanos::from_secs(5));
    (evidence.driver_busy, evidence.machine_busy) = (Some(0.2), machine_busy);
    of_run(&evidence)
}

fn told(found: &[Diagnosis]) -> String {
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
            assert!(found.is_empty(), "{held:?}, seed {seed}:\n{}", told(&found));
        }
    }
}

#[test]
fn a_faster_machine_is_no_warm_up_for_certain() {
    for held in [Held::Rate(300.0), Held::Users(8)] {
        let ails = Ailments { work: micros(2_000), ..Ailments::default() };
        let found = found(held, ails, at_first(1), true);
        let sure = found.iter().filter(|one| one.confidence.id() != "possible");
        assert_eq!(sure.count(), 0, "{held:?}:\n{}", told(&found));
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
            assert_eq!(first, Some("bandwidth-limit"), "{held:?}:\n{}", told(&found));
            let named = |id| found.iter().any(|one| one.rule.id == id);
            assert!(!named("cpu-contention") && !named("warm-up"), "{held:?}:\n{}", told(&found));
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
            assert_eq!(first, Some("round-timeout"), "{held:?}:\n{}", told(&found));
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
        assert_eq!(found.first().map(|one| one.rule.id), Some(id), "{}", told(&found));
    }
}
