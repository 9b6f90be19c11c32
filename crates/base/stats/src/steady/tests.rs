use super::*;
use crate::Counts;
use proptest::prelude::*;
use units::{Purpose, Seed};

/// Returns one-second rows with these throughputs and p50s in ms.
fn rows(figures: impl IntoIterator<Item = (u64, f64)>) -> Vec<Second> {
    let row = |(at, (done, p50_ms)): (usize, (u64, f64))| Second {
        at_s: at as f64,
        span_s: 1.0,
        counts: Counts { due: done, succeeded: done, ..Counts::default() },
        p50: Nanos::from_secs_f64(p50_ms / 1e3),
        ..Second::default()
    };
    figures.into_iter().enumerate().map(row).collect()
}

fn found(rows: &[Second]) -> Option<Drift> {
    drift(rows, Nanos::from_secs(rows.len() as u64))
}

#[test]
fn a_rising_response_time_drifts() {
    let series = rows((0..12).map(|at| (1000, 10.0 + at as f64)));
    let drift = found(&series).unwrap();
    assert_eq!((drift.figure, drift.rows), (Drifting::ResponseP50, 12));
    // Thirds of four rows: medians 11.5 and 19.5 ms.
    assert!((drift.change() - (19.5 / 11.5 - 1.0)).abs() < 1e-9, "{drift:?}");
    assert!(drift.p_value < 1e-4, "{drift:?}");
}

#[test]
fn falling_throughput_drifts_and_the_larger_change_counts() {
    let drift = found(&rows((0..10).map(|at| (1000 - 50 * at, 10.0)))).unwrap();
    assert_eq!(drift.figure, Drifting::Throughput);
    assert!((drift.change() - (600.0 / 950.0 - 1.0)).abs() < 1e-9, "{drift:?}");
    let both = rows((0..10).map(|at| (1000 - 50 * at, 10.0 + 10.0 * at as f64)));
    assert_eq!(found(&both).unwrap().figure, Drifting::ResponseP50);
}

#[test]
fn no_drift_without_rows_effect_or_trend() {
    let rising = |rows: u64| (0..rows).map(|at| (1000, 10.0 + at as f64));
    assert_eq!(found(&rows(rising(7))), None, "too few rows");
    assert!(found(&rows(rising(8))).is_some());
    let slight = rows((0..60).map(|at| (1000, 10.0 + 0.01 * at as f64)));
    assert_eq!(found(&slight), None, "a significant change of 4 %");
    let jumpy = [10., 30., 12., 8., 25., 9., 31., 11., 7., 28., 33., 10.];
    assert_eq!(found(&rows(jumpy.map(|p50| (1000, p50)))), None, "large changes without a trend");
    assert_eq!(found(&rows([(0, 0.0); 20])), None, "nothing done at all");
    assert_eq!(found(&[]), None);
}

#[test]
fn only_whole_rows_of_the_measured_window_are_looked_at() {
    let mut series = rows((0..20).map(|at| (if at < 10 { 100 * at } else { 1000 }, 10.0)));
    assert!(found(&series).is_some(), "the slow start is a drift when it is measured");
    for (at, row) in series.iter_mut().enumerate() {
        row.at_s = at as f64 - 10.0;
        row.warm_up = at < 10;
    }
    assert_eq!(drift(&series, Nanos::from_secs(10)), None, "and none as a warm-up");

    // A drain of ten rows after a window of ten; then a last row of a tenth of a second.
    let series = rows((0..20).map(|at| (if at < 10 { 1000 } else { 1000 - 90 * (at - 9) }, 10.0)));
    assert!(drift(&series, Nanos::from_secs(20)).is_some());
    assert_eq!(drift(&series, Nanos::from_secs(10)), None);
    let mut stump = rows((0..9).map(|_| (1000, 10.0)));
    stump[8].span_s = 0.1;
    stump[8].p50 = Nanos::SECOND;
    assert_eq!(found(&stump), None);
}

#[test]
fn long_series_are_shortened_not_refused() {
    let mut noise = Seed(3).stream(Purpose::Simulation, 0);
    let series = rows((0..36_000).map(|at| (1000, 10.0 + at as f64 / 3600.0 + noise.unit())));
    let drift = found(&series).unwrap();
    assert!((drift.rows as i64 - 500).abs() <= 1, "{drift:?}");
}

#[test]
fn steady_noise_rarely_drifts() {
    let drifted = (0..200).filter(|index| {
        let mut noise = Seed(11).stream(Purpose::Simulation, *index);
        let exponential = |_| (1000 + noise.below(300), 10.0 * (1.0 + noise.exponential(0.3)));
        found(&rows((0..30).map(exponential))).is_some()
    });
    // Two tests at p ≤ 0.01 each.
    let count = drifted.count();
    assert!(count <= 8, "{count} of 200");
}

/// Scores and variances by hand, p-values by erfc(z/√2): all 28 pairs of eight rise, variance
/// 8·7·21/18; with ties below.
#[test]
fn mann_kendall_gives_the_values_computed_by_hand() {
    let rising: Vec<f64> = (0..8).map(f64::from).collect();
    let trend = mann_kendall(&rising).unwrap();
    assert_eq!(trend.score, 28);
    let z: f64 = 27.0 / (8.0 * 7.0 * 21.0 / 18.0_f64).sqrt();
    assert!((z - 3.3404).abs() < 1e-4 && (trend.p_value - 0.000_836_6).abs() < 1e-6, "{trend:?}");
    let tied = mann_kendall(&[1.0, 1.0, 2.0, 2.0, 3.0]).unwrap();
    // 10 pairs, 2 tied; variance (5·4·15 − 2·(2·1·9))/18 = 14.667, z = 7/3.83.
    assert_eq!(tied.score, 8);
    assert!((tied.p_value - 0.067_6).abs() < 1e-3, "{tied:?}");
    assert_eq!(mann_kendall(&[5.0; 9]), None);
    assert_eq!(mann_kendall(&[1.0, 2.0]), None);
    assert_eq!(mann_kendall(&[1.0, 2.0, f64::NAN]), None);
}

proptest! {
    #[test]
    fn reversing_the_series_reverses_the_score(values in prop::collection::vec(0i32..9, 3..30)) {
        let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let there = mann_kendall(&values);
        values.reverse();
        let back = mann_kendall(&values);
        prop_assert_eq!(there.map(|trend| -trend.score), back.map(|trend| trend.score));
        prop_assert!(there.is_none_or(|trend| (0.0..=1.0).contains(&trend.p_value)));
    }
}

#[test]
fn the_slope_of_most_pairs_is_the_slope() {
    let line = |n: u64| (n as f64, 3.0 + 2.0 * n as f64);
    let mut points: Vec<(f64, f64)> = (0..20).map(line).collect();
    assert_eq!(theil_sen(&points), Some(2.0));
    // a few outliers do not change it
    points[3].1 = 1e9;
    points[11].1 = -1e9;
    assert_eq!(theil_sen(&points), Some(2.0));
    assert_eq!(theil_sen(&points[..1]), None);
    assert_eq!(theil_sen(&[(1.0, 1.0), (1.0, 5.0)]), None);
    assert_eq!(theil_sen(&[(1.0, 1.0), (2.0, f64::NAN)]), None);
}
