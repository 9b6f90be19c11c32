use super::*;
use units::{Purpose, Seed};

fn near(found: f64, wanted: f64, off: f64) {
    assert!((found - wanted).abs() <= off, "{found} is not {wanted}");
}

/// Computed by hand: −1 − 2·ln ½ for one value in the middle; for two at the quartiles −2 − ½·[(ln
/// ¼ + ln ¼) + 3·(ln ¾ + ln ¾)].
#[test]
fn anderson_and_darling_s_statistic_is_computed_as_defined() {
    near(anderson_darling(&[0.5]).unwrap(), 2.0 * 2.0_f64.ln() - 1.0, 1e-12);
    let two = -2.0 - 0.5 * (2.0 * 0.25_f64.ln() + 6.0 * 0.75_f64.ln());
    near(anderson_darling(&[0.25, 0.75]).unwrap(), two, 1e-12);
    assert_eq!(anderson_darling(&[]), None);
    // a value that the law excludes is far away and finite
    assert!(anderson_darling(&[0.0, 1.0]).unwrap().is_finite());
}

/// The published bounds: samples of the law itself are above them 5 and 1 times in 100.
#[test]
fn samples_of_the_law_pass_the_bounds_as_often_as_published() {
    const SAMPLES: u32 = 10_000;
    let mut above = [0_u32; 2];
    for sample in 0..SAMPLES {
        let mut stream = Seed(5).stream(Purpose::Simulation, u64::from(sample));
        let mut values: Vec<f64> = (0..50).map(|_| stream.unit()).collect();
        values.sort_by(f64::total_cmp);
        let found = anderson_darling(&values).unwrap();
        above[0] += u32::from(found > ANDERSON_DARLING_5);
        above[1] += u32::from(found > ANDERSON_DARLING_1);
    }
    // four standard deviations of a binomial
    near(f64::from(above[0]) / f64::from(SAMPLES), 0.05, 0.009);
    near(f64::from(above[1]) / f64::from(SAMPLES), 0.01, 0.004);
}

#[test]
fn lambda_squared_is_0_of_the_law_and_the_distance_of_another() {
    let shares = [0.35, 0.5, 0.14, 0.01];
    let exact = lambda_squared(&[350, 500, 140, 10], &shares, 0).unwrap();
    near(exact.value, -3.0 / 999.0, 1e-12);
    // Σ (q − p)²/p: (0.05²)/0.35 + (0.05²)/0.5 = 0.0121, regardless of the number
    for n in [10_000_u64, 1_000_000] {
        let counts = [n * 40 / 100, n * 45 / 100, n * 14 / 100, n / 100];
        near(lambda_squared(&counts, &shares, 0).unwrap().value, 0.012_14, 0.001);
    }
    // bins that expect fewer than five values are joined, and a single bin shows nothing
    assert_eq!(lambda_squared(&[3, 5, 1, 0], &shares, 0), None);
    assert_eq!(lambda_squared(&[7, 9, 3, 1], &shares, 0).unwrap().bins, 2);
}

#[test]
fn a_pareto_tail_has_its_exponent() {
    let mut stream = Seed(1).stream(Purpose::Simulation, 0);
    let values = (0..100_000).map(|_| (1.0 - stream.unit()).powf(-1.0 / 1.4));
    near(hill(values, 1.0).unwrap(), 1.4, 0.02);
    assert_eq!(hill([1.0].into_iter(), 1.0), None);
}

#[test]
fn scott_s_bins_narrow_with_the_cube_root() {
    let values = |n: u32| (0..n).map(|it| f64::from(it % 2)).collect::<Vec<f64>>();
    let wide = scott_width(&values(1_000)).unwrap();
    near(wide, 3.49 * 0.5 / 10.0, 0.001);
    near(scott_width(&values(1_000_000)).unwrap(), wide / 10.0, 0.001);
    assert_eq!(scott_width(&[1.0, 1.0]), None);
}

/// Compares with the definition, in a stack that is moved by hand.
#[test]
fn depths_in_the_stack_are_those_of_a_stack() {
    let mut stream = Seed(2).stream(Purpose::Simulation, 0);
    let order: Vec<u32> = (0..3_000).map(|_| stream.below(40) as u32).collect();
    let (mut stack, mut wanted): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for value in &order {
        match stack.iter().position(|seen| seen == value) {
            Some(depth) => {
                wanted.push(depth as u32);
                stack[..=depth].rotate_right(1);
            }
            None => stack.insert(0, *value),
        }
    }
    assert_eq!(stack_distances(&order, 40), wanted);
    assert_eq!(stack_distances(&[], 0), Vec::<u32>::new());
}

#[test]
fn independent_counts_have_half_and_steps_have_one() {
    let mut stream = Seed(3).stream(Purpose::Simulation, 0);
    let counts: Vec<f64> = (0..20_000).map(|_| stream.below(20) as f64).collect();
    let found = variance_time(&counts, 600).unwrap();
    near(found.hurst, 0.5, 0.05);
    near(found.points[0].1, 1.0, 1e-12);
    let steps: Vec<f64> = (0..20_000).map(|it| f64::from(it / 10_000)).collect();
    near(variance_time(&steps, 600).unwrap().hurst, 1.0, 0.02);
    assert_eq!(variance_time(&counts[..599], 600), None);
    assert_eq!(variance_time(&[1.0; 1_000], 600), None);
}
