//! The random processes compared with their laws, and the fingerprints of all processes.

use super::*;

/// Returns the Anderson-Darling statistic of gaps against the exponential law with their own mean
/// (Stephens, JASA 69, 1974), with his factor for a finite sample; above 1.957 at 1 %.
fn anderson_darling(gaps: &[f64]) -> f64 {
    let n = gaps.len();
    let mean = gaps.iter().sum::<f64>() / n as f64;
    let mut sorted: Vec<f64> = gaps.iter().map(|gap| gap / mean).collect();
    sorted.sort_by(f64::total_cmp);
    let term = |index: usize| {
        let below = (1.0 - (-sorted[index]).exp()).max(1e-300).ln();
        let above = -sorted[n - 1 - index];
        (2 * index + 1) as f64 * (below + above)
    };
    let square = -(n as f64) - (0..n).map(term).sum::<f64>() / n as f64;
    square * (1.0 + 0.6 / n as f64)
}

const CRITICAL_AT_1_PERCENT: f64 = 1.957;

/// Gaps between arrivals on the integral of the rate, where each process has unit rate.
fn unit_gaps(spec: &ArrivalSpec, seed: Seed) -> Vec<f64> {
    let curve = RateCurve::new(spec);
    let schedule = Schedule::new(spec, seed, START);
    let places = schedule.take(4096).map(|a| curve.integral((a.intended - START).as_secs_f64()));
    let mut last = 0.0;
    places.map(|place| place - std::mem::replace(&mut last, place)).collect()
}

#[test]
fn poisson_gaps_are_exponential_also_under_a_ramp() {
    let held = ArrivalSpec { gaps: Gaps::Poisson, ..ArrivalSpec::constant(1000.0) };
    for (name, spec) in [("held", held), ("ramp", ramp(Gaps::Poisson))] {
        for seed in 1..=5 {
            let gaps = unit_gaps(&spec, Seed(seed));
            let statistic = anderson_darling(&gaps);
            assert!(statistic < CRITICAL_AT_1_PERCENT, "{name}, seed {seed}: {statistic}");
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            assert!((mean - 1.0).abs() < 3.0 / 64.0, "{name}, seed {seed}: {mean}");
        }
    }
}

#[test]
fn uniform_gaps_are_uniform_and_not_exponential() {
    let spec = ramp(Gaps::Uniform);
    let mut gaps = unit_gaps(&spec, SEED);
    assert!(anderson_darling(&gaps) > 10.0 * CRITICAL_AT_1_PERCENT);
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    // Kolmogorov-Smirnov against U(0, 2); 1.63/sqrt(n) at 1 %.
    let far = |(index, gap): (usize, &f64)| {
        let law = (gap / 2.0).clamp(0.0, 1.0);
        (law - index as f64 / n).abs().max((law - (index + 1) as f64 / n).abs())
    };
    let distance = gaps.iter().enumerate().map(far).fold(0.0, f64::max);
    assert!(distance < 1.63 / n.sqrt(), "{distance}");
}

#[test]
fn an_unramped_rate_is_not_poisson_on_a_ramped_scale() {
    let held = ArrivalSpec { gaps: Gaps::Poisson, ..ArrivalSpec::constant(1000.0) };
    let curve = RateCurve::new(&ramp(Gaps::Poisson));
    let schedule = Schedule::new(&held, SEED, START);
    let places: Vec<f64> = schedule
        .take(4096)
        .map(|arrival| curve.integral((arrival.intended - START).as_secs_f64()))
        .collect();
    let gaps: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(anderson_darling(&gaps) > CRITICAL_AT_1_PERCENT);
}

/// Returns FNV-1a over the bytes of the instants.
fn fingerprint(schedule: Schedule) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in schedule.take(10_000).flat_map(|a| (a.intended - START).0.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}

/// A change here changes the meaning of every stored run: a seed must always give the same
/// instants.
#[test]
fn seeded_instants_are_stable_across_versions() {
    let burst = ArrivalSpec { burst: 10, ..ramp(Gaps::Poisson) };
    let mut table = String::new();
    for (name, spec) in [
        ("constant", ArrivalSpec::constant(300.0)),
        ("ramp", ramp(Gaps::Constant)),
        ("poisson ramp", ramp(Gaps::Poisson)),
        ("uniform ramp", ramp(Gaps::Uniform)),
        ("poisson ramp, burst 10", burst),
    ] {
        let schedule = Schedule::new(&spec, SEED, START);
        let first: Vec<u64> =
            schedule.clone().step_by(10).take(3).map(|a| (a.intended - START).0).collect();
        table += &format!("{name}: {first:?} {:016x}\n", fingerprint(schedule));
    }
    let other = Schedule::new(&ramp(Gaps::Poisson), Seed(43), START);
    table += &format!("seed 43: {:016x}\n", fingerprint(other));
    assert_eq!(table, include_str!("fingerprints.txt"));
}
