use super::*;
use crate::{Blocks, Hist, Spread};
use proptest::prelude::*;
use units::{Nanos, Purpose, Seed};

fn near(found: f64, wanted: f64, tolerance: f64) {
    assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted} ± {tolerance}");
}

fn stream(index: u64) -> Stream {
    Seed(7).stream(Purpose::Bootstrap, index)
}

/// The univariate sets NumAcc1 to NumAcc4 of the NIST Statistical Reference Datasets, by their
/// construction, against the certified values.
#[test]
fn mean_and_deviation_match_the_sets_of_nist() {
    let pairs = |first: f64, low: f64, high: f64| -> Vec<f64> {
        std::iter::once(first).chain((0..500).flat_map(|_| [low, high])).collect()
    };
    for (values, mean, stdev, digits) in [
        (vec![10_000_001.0, 10_000_003.0, 10_000_002.0], 10_000_002.0, 1.0, 1e-12),
        (pairs(1.2, 1.1, 1.3), 1.2, 0.1, 1e-12),
        (pairs(1_000_000.2, 1_000_000.1, 1_000_000.3), 1_000_000.2, 0.1, 1e-9),
        (pairs(10_000_000.2, 10_000_000.1, 10_000_000.3), 10_000_000.2, 0.1, 1e-8),
    ] {
        let (found_mean, found_stdev) = mean_and_stdev(&values).unwrap();
        near(found_mean / mean, 1.0, 1e-15);
        near(found_stdev / stdev, 1.0, digits);
    }
    assert_eq!(mean_and_stdev(&[]), None);
    assert_eq!(mean_and_stdev(&[3.0]), Some((3.0, 0.0)));
}

/// The first sample of the ministat manual page: t(6) at 95 % is 2.446912.
#[test]
fn the_interval_of_a_mean_is_that_of_ministat() {
    let estimate = t_mean(&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]).unwrap();
    let half = 2.446_912 * 238.047_61 / 7_f64.sqrt();
    near(estimate.value, 300.0, 1e-9);
    near(estimate.low, 300.0 - half, 1e-3);
    near(estimate.high, 300.0 + half, 1e-3);
    assert_eq!((estimate.count, estimate.method.id()), (7, "student-t"));
    let pair = t_mean(&[1.0, 3.0]).unwrap();
    near(pair.high - pair.value, 12.706_205, 1e-5);
    for too_little in [&[][..], &[1.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
        assert_eq!(t_mean(too_little), None);
    }
}

#[test]
fn the_interval_of_a_quantile_widens_with_dependence() {
    let times = |ms: std::ops::RangeInclusive<u64>| {
        let mut hist = Hist::new();
        ms.for_each(|ms| hist.record(Nanos::from_millis(ms)));
        hist
    };
    let hist = times(1..=10_000);
    let found = crate::quantile_interval(&hist, 0.99, &Blocks::default()).unwrap();
    near(found.low, 9.880, 0.012);
    near(found.high, 9.921, 0.012);
    assert_eq!(crate::quantile_interval(&Hist::new(), 0.5, &Blocks::default()), None);
    assert_eq!(crate::quantile_interval(&hist, 1.0, &Blocks::default()), None);
    // the slow calls are together, as the coarse rows of the series show
    let mut blocks = Blocks::default();
    (0..10).for_each(|row| {
        blocks.push(Spread::new(&times(row * 1_000 + 1..=(row + 1) * 1_000)).block());
    });
    let together = crate::quantile_interval(&hist, 0.99, &blocks).unwrap();
    assert!(together.effect > 50.0 && together.low < 9.0, "{together:?}");
}

#[test]
fn samples_that_a_quantile_needs() {
    for (q, n) in [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3_688)] {
        assert_eq!(samples_needed(q), n, "{q}");
        assert!(q.powi(n as i32) <= 0.025 && q.powi(n as i32 - 1) > 0.025, "{q}");
    }
    for q in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
        assert_eq!(samples_needed(q), 1);
    }
}

#[test]
fn exact_ranks_of_the_median() {
    for (n, lower, upper, coverage) in [
        (6, 1, 6, 0.968_75),
        (8, 1, 8, 0.992_2),
        (10, 2, 9, 0.978_52),
        (20, 6, 15, 0.958_61),
        (30, 10, 21, 0.957_23),
    ] {
        let ranks = MedianRanks::for_runs(n).unwrap();
        assert_eq!((ranks.lower, ranks.upper), (lower, upper), "{n}");
        near(ranks.coverage, coverage, 5e-5);
    }
    assert!((0..6).all(|n| MedianRanks::for_runs(n).is_none()));
}

/// The benchmark of the benchstat documentation.
#[test]
fn the_interval_of_a_median_is_that_of_benchstat() {
    let old = [1726., 1723., 1707., 1707., 1713., 1729., 1736., 1707., 1705., 1774.];
    let estimate = median(&old).unwrap();
    assert_eq!((estimate.value, estimate.low, estimate.high), (1718.0, 1707.0, 1736.0));
    assert_eq!(median(&old[..5]), None);
    assert_eq!(median(&[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]), None);
}

#[test]
fn bootstrap_of_a_mean_agrees_with_theory_and_its_seed() {
    let mut source = stream(1);
    let values: Vec<f64> = (0..400).map(|_| source.uniform(0.0, 1.0)).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let estimate = bootstrap(&values, mean, 10_000, &mut stream(2)).unwrap();
    let t = t_mean(&values).unwrap();
    near(estimate.value, t.value, 1e-12);
    near(estimate.low, t.low, 0.05 * (t.high - t.low));
    near(estimate.high, t.high, 0.05 * (t.high - t.low));
    assert_eq!(bootstrap(&values, mean, 10_000, &mut stream(2)), Some(estimate));
    assert_ne!(bootstrap(&values, mean, 10_000, &mut stream(3)), Some(estimate));
    assert_eq!(bootstrap(&values[..1], mean, 1_000, &mut stream(2)), None);
    assert_eq!(bootstrap(&values, mean, 39, &mut stream(2)), None);
    assert_eq!(bootstrap(&values, |_| f64::NAN, 100, &mut stream(2)), None);
}

/// 95 % means 95 %: over 400 samples of 50 exponential values each, the interval must contain the
/// true median in 0.95 to 0.99 of them (the ranks for n = 50 cover 0.967).
#[test]
fn the_interval_of_the_median_covers_it() {
    let covered = (0..400).filter(|index| {
        let mut source = stream(1000 + index);
        let values: Vec<f64> = (0..50).map(|_| source.exponential(1.0)).collect();
        let estimate = median(&values).unwrap();
        estimate.low <= 2_f64.ln() && 2_f64.ln() <= estimate.high
    });
    let share = covered.count() as f64 / 400.0;
    assert!((0.945..0.99).contains(&share), "{share}");
}

proptest! {
    #[test]
    fn estimates_lie_within_their_intervals(values in prop::collection::vec(-1e6..1e6_f64, 0..60)) {
        let middle_of = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            middle(&sorted)
        };
        let estimates = [t_mean(&values), median(&values)];
        for estimate in estimates.into_iter().flatten() {
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        }
        if let Some(estimate) = bootstrap(&values, middle_of, 200, &mut stream(0)) {
            prop_assert!(estimate.low <= estimate.high);
        }
    }

    #[test]
    fn median_ranks_are_the_narrowest(n in 6usize..400) {
        let ranks = MedianRanks::for_runs(n).unwrap();
        prop_assert!(ranks.coverage >= CONFIDENCE && ranks.lower <= ranks.upper);
        let below = Binomial::new(0.5, n as u64).unwrap();
        prop_assert!(below.cdf(ranks.lower as u64) > TAIL, "a narrower pair would do");
    }
}
