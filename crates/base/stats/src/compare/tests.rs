use super::*;
use units::{Purpose, Seed};

mod simulated;

const ONE: Effort = Effort { resamples: 1_000, family: 1 };

fn stream(index: u64) -> Stream {
    Seed(7).stream(Purpose::Bootstrap, index)
}

fn apart(scale: Scale, before: &[f64], after: &[f64]) -> Series {
    Series { scale, blocks: vec![Block { before: before.to_vec(), after: after.to_vec() }] }
}

fn one(series: &Series) -> Compared {
    let effort = Effort { resamples: 10_000, family: 1 };
    compare(std::slice::from_ref(series), effort, &mut stream(0))[0]
}

const OLD: [f64; 10] =
    [1726.0, 1723.0, 1707.0, 1707.0, 1713.0, 1729.0, 1736.0, 1707.0, 1705.0, 1774.0];
const NEW: [f64; 10] =
    [1423.0, 1416.0, 1411.0, 1413.0, 1412.0, 1426.0, 1422.0, 1424.0, 1447.0, 1425.0];

/// Each of three comparisons has a third of the level: its p is three times as large, and the
/// detectable difference is larger.
#[test]
fn several_comparisons_share_the_level() {
    let series = apart(Scale::Ratio, &OLD, &[1715.0, 1700.0, 1709.0, 1698.0, 1722.0]);
    let of = |family: usize| {
        let effort = Effort { family, ..ONE };
        compare(std::slice::from_ref(&series), effort, &mut stream(0))[0]
    };
    let (one, three) = (of(1), of(3));
    assert!((three.p_value - (3.0 * one.p_value).min(1.0)).abs() < 1e-12, "{one:?} {three:?}");
    assert!(three.detectable > one.detectable, "{one:?} {three:?}");
    assert_eq!((one.low, one.high), (three.low, three.high));
}

/// The first benchmark of benchstat's documentation: medians differ by −17.20 %, p = 0.000.
#[test]
fn a_plain_difference_is_found() {
    let found = one(&apart(Scale::Ratio, &OLD, &NEW));
    assert!((found.change + 0.172).abs() < 0.004, "{found:?}");
    assert!(found.different && found.high < -0.16 && found.low > -0.19, "{found:?}");
    assert!(found.p_value < 0.001 && (found.effect + 1.0).abs() < 1e-12, "{found:?}");
}

/// A rank test is the permutation test of ranks: the exact p of benchstat's second benchmark, in
/// which ties share their mean rank, is 0.4461 (Mann-Whitney U = 39.5).
#[test]
fn the_permutation_test_of_ranks_equals_mann_whitney() {
    let old = [3069, 3075, 3069, 3067, 3207, 3064, 3064, 3058, 3059, 3062];
    let new = [3075, 3065, 3059, 3065, 3060, 3081, 3186, 3135, 3087, 3062];
    let all: Vec<i32> = old.iter().chain(&new).copied().collect();
    let rank = |value: &i32| {
        let below = all.iter().filter(|other| *other < value).count() as f64;
        let equal = all.iter().filter(|other| *other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    let ranks = |values: &[i32]| values.iter().map(rank).collect::<Vec<f64>>();
    let (old, new) = (ranks(&old), ranks(&new));
    let u = old.iter().sum::<f64>() - 55.0;
    assert_eq!(format!("{u}"), "39.5");
    let all = labelings(&[(10, 10)], 200_000, &mut stream(0));
    assert_eq!((all.rows.len(), all.choices[0].len()), (184_756, 184_756));
    let of = |labels: &Labels| -> f64 {
        let values = old.iter().chain(&new).zip(labels);
        values.filter(|(_, after)| **after).map(|(rank, _)| rank).sum()
    };
    let own = (of(&all.choices[0][0]) - 105.0).abs();
    let as_rare = all.choices[0].iter().filter(|one| (of(one) - 105.0).abs() >= own - 1e-9);
    let p = as_rare.count() as f64 / 184_756.0;
    assert_eq!(format!("{p:.4}"), "0.4461");
    // random labels come close
    let drawn = one(&apart(Scale::Points, &old, &new));
    assert!((drawn.p_value - 0.4461).abs() < 0.02 && !drawn.different, "{drawn:?}");
}

/// The smallest p of n runs a side: 2 / C(2n, n).
#[test]
fn the_smallest_p_value_is_that_of_the_labels() {
    for (n, expected) in [(4, 0.02857), (5, 0.007937), (6, 0.002165), (7, 0.000583)] {
        let (before, after) = (1..=n).map(|at| (f64::from(at), 100.0 + f64::from(at))).unzip();
        let (before, after): (Vec<f64>, Vec<f64>) = (before, after);
        let p = one(&apart(Scale::Points, &before, &after)).p_value;
        assert!((p / expected - 1.0).abs() < 1e-3, "{n}: {p}");
    }
}

#[test]
fn labelings_are_all_different_and_the_true_one_comes_first() {
    let all = labelings(&[(2, 2), (1, 2)], 100, &mut stream(0));
    assert_eq!(all.choices.iter().map(Vec::len).collect::<Vec<_>>(), [6, 3]);
    assert_eq!(all.choices[0][0], [false, false, true, true]);
    assert_eq!(all.choices[1], [[false, true, true], [true, false, true], [true, true, false]]);
    assert_eq!((all.rows.len(), &all.rows[0]), (18, &vec![0, 0]));
    let mut unique = all.rows.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 18);
    let drawn = labelings(&[(2, 2), (1, 2)], 17, &mut stream(0));
    assert_eq!((drawn.rows.len(), &drawn.rows[0]), (18, &vec![0, 0]));
}

#[test]
fn too_few_runs_give_no_result() {
    for (before, after) in [(&[1.0][..], &[2.0][..]), (&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2])] {
        let found = one(&apart(Scale::Ratio, before, after));
        assert!(!found.enough && !found.different && found.low.is_nan(), "{found:?}");
        assert!(found.change > 0.7 && found.detectable.is_nan(), "{found:?}");
    }
    let block = Block { before: vec![1.0, 1.01], after: vec![2.0, 2.02] };
    let four = Series { scale: Scale::Ratio, blocks: vec![block.clone(); 4] };
    assert!(!one(&four).enough);
    let five = Series { scale: Scale::Ratio, blocks: vec![block; 5] };
    assert!(one(&five).different, "{:?}", one(&five));
}

#[test]
fn values_without_a_logarithm_are_left_out() {
    let good = apart(Scale::Ratio, &OLD, &NEW);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut broken = OLD;
        broken[3] = bad;
        let found =
            compare(&[apart(Scale::Ratio, &broken, &NEW), good.clone()], ONE, &mut stream(0));
        assert!(!found[0].enough && found[0].change.is_nan() && !found[0].different);
        assert!(found[1].different);
    }
    let empty = Series { scale: Scale::Ratio, blocks: Vec::new() };
    assert!(one(&empty).before.is_nan());
}

#[test]
fn shares_are_compared_by_their_points() {
    let same = one(&apart(Scale::Points, &[0.0; 6], &[0.0; 6]));
    assert!(!same.different && same.change.abs() < 1e-12 && same.p_value > 0.99, "{same:?}");
    let after = [0.010, 0.012, 0.009, 0.011, 0.010, 0.012];
    let found = one(&apart(Scale::Points, &[0.0; 6], &after));
    assert!(found.different && (found.change - 0.0107).abs() < 1e-3, "{found:?}");
}

/// A slow drift that is larger than the difference affects both halves of every block.
#[test]
fn a_drift_over_the_session_does_not_hide_a_difference() {
    let mut noise = stream(3);
    let mut run = |slot: usize, after: bool| {
        let drift = 100.0 + slot as f64;
        drift * if after { 1.03 } else { 1.0 } * noise.uniform(0.995, 1.005)
    };
    let block = |index: usize, run: &mut dyn FnMut(usize, bool) -> f64| {
        let slot = index * 4;
        let a_first = index.is_multiple_of(2);
        let slots = if a_first { ([0, 3], [1, 2]) } else { ([1, 2], [0, 3]) };
        Block {
            before: slots.0.map(|at| run(slot + at, false)).to_vec(),
            after: slots.1.map(|at| run(slot + at, true)).to_vec(),
        }
    };
    let blocks: Vec<Block> = (0..6).map(|index| block(index, &mut run)).collect();
    let found = one(&Series { scale: Scale::Ratio, blocks });
    assert!((found.change - 0.03).abs() < 0.006, "{found:?}");
    assert!(found.low > 0.02 && found.high < 0.04, "{found:?}");
}
