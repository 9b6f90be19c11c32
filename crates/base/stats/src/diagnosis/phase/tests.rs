use super::*;
use units::{Purpose, Seed, Stream};

fn stream(seed: u64) -> Stream {
    Seed(seed).stream(Purpose::Simulation, 3)
}

/// Returns calls of one user: each waits for the clock's next tick, and is read at most this number
/// of ms late; one in ten by four times that.
fn ticked(seed: u64, period_ms: f64, late_ms: f64, count: u64) -> Vec<(Nanos, Nanos)> {
    let mut random = stream(seed);
    let at = (0..count).map(|turn| {
        let late = random.unit() * late_ms * if random.unit() < 0.1 { 4.0 } else { 1.0 };
        Nanos::from_secs_f64((3.3 + turn as f64 * period_ms + late) / 1e3)
    });
    at.map(|at| (at, at)).collect()
}

/// Returns calls of one user: each sleeps for the same time, and is at most this number of ms late.
fn slept(seed: u64, period_ms: f64, late_ms: f64, count: u64) -> Vec<(Nanos, Nanos)> {
    let mut random = stream(seed);
    let mut now = 3.3;
    let mut next = || {
        now += period_ms + random.unit() * late_ms;
        Nanos::from_secs_f64(now / 1e3)
    };
    (0..count).map(|_| next()).map(|at| (at, at)).collect()
}

#[test]
fn a_clock_and_its_period_are_detected() {
    for (period, late) in
        [(4.0, 0.3), (10.0, 1.0), (15.625, 0.05), (20.0, 2.0), (100.0, 0.3), (20.0, 0.0)]
    {
        for seed in 0..10 {
            let found = phase(&ticked(seed, period, late, 120));
            let Regularity::Locked(ticks) = found else { panic!("{period} {seed}: {found:?}") };
            let off = ticks.period.as_secs_f64() * 1e3 / period - 1.0;
            assert!(off.abs() < 0.003, "{period} {seed}: {ticks:?}");
        }
    }
}

#[test]
fn a_sleep_of_the_same_length_is_not_a_clock() {
    let describe = |period, late, count, seeds| {
        let phases = (0..seeds).map(|seed| phase(&slept(seed, period, late, count)));
        phases.filter(|found| matches!(found, Regularity::Locked(_))).count()
    };
    // few ticks: a walk of some forty steps is missed once in hundreds
    let seen = [(20.0, 1.0, 60, 200), (100.0, 0.2, 40, 200), (20.0, 0.15, 500, 20)]
        .map(|(period, late, count, seeds)| describe(period, late, count, seeds));
    assert!(seen[0] <= 1 && seen[1] <= 2 && seen[2] == 0, "{seen:?}");
}

#[test]
fn random_instants_are_not_a_clock() {
    for seed in 0..20 {
        let mut random = stream(seed);
        let mut now = 0.0;
        let mut next = || {
            now += random.exponential(0.02);
            (Nanos::from_secs_f64(now), Nanos::ZERO)
        };
        let rows: Vec<(Nanos, Nanos)> = (0..400).map(|_| next()).collect();
        assert_eq!(phase(&rows), Regularity::Free, "seed {seed}");
    }
}

#[test]
fn few_instants_give_no_result() {
    assert_eq!(phase(&[]), Regularity::Unknown);
    assert_eq!(phase(&ticked(1, 20.0, 0.1, 20)), Regularity::Unknown);
}
