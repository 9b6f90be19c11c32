use super::*;
use proptest::prelude::*;

/// Typical times: zero, nanoseconds, microseconds, seconds.
fn times() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..2_000u64, 1_000..5_000_000u64, 1_000_000..HIGH]
}

fn recorded(values: &[u64]) -> Hist {
    let mut hist = Hist::new();
    values.iter().for_each(|value| hist.record(Nanos(*value)));
    hist
}

/// Returns whether the result is within the bucket of the value: 512 ns wide at the least (the
/// largest power of two within a microsecond), one thousandth of the value at the most.
fn same_bucket(found: Nanos, value: u64) -> bool {
    let width = 512.max(value / 1000);
    found.0.abs_diff(value) < width && (value > 0 || found.is_zero())
}

/// Floating-point rounding would give these values a wrong rank: 0.55 · 100 is 55.00000000000001.
#[test]
fn quantiles_of_a_hundred_values_have_their_exact_rank() {
    let values: Vec<u64> = (1..=100).map(|ms| ms * 1_000_000).collect();
    for (zeros, hist) in
        [(0, recorded(&values)), (100, recorded(&[values.clone(), vec![0; 100]].concat()))]
    {
        for percent in 1..=100_u64 {
            let total = 100 + zeros;
            let rank = (percent * total).div_ceil(100);
            let value = rank.saturating_sub(zeros) * 1_000_000;
            let found = hist.quantile(percent as f64 / 100.0);
            assert!(same_bucket(found, value), "p{percent} with {zeros} zeros: {found:?}");
        }
    }
}

/// The data-access vector of HdrHistogram, in microseconds: 10,000 values of 1 ms and one of 100 s.
/// No values are added in between: the corrected counts would be 20,000 with a p99 of 98 s.
#[test]
fn no_sample_is_invented() {
    let mut hist = Hist::new();
    hist.record_n(Nanos::from_micros(1_000), 10_000);
    hist.record(Nanos::from_secs(100));
    assert_eq!(hist.count(), 10_001);
    let micros = |nanos: Nanos| nanos.0 as f64 / 1e3;
    assert!((micros(hist.mean()) - 10_998.9).abs() < 11.0, "{:?}", hist.mean());
    for q in [0.3, 0.99, 0.9999] {
        assert!((micros(hist.quantile(q)) - 1_000.0).abs() <= 1.0, "{q}");
    }
    assert!((micros(hist.quantile(0.99999)) / 1e8 - 1.0).abs() < 1e-3);
    assert_eq!(hist.count_at_or_below(Nanos::from_millis(5)), 10_000);
}

#[test]
fn times_above_an_hour_are_counted() {
    let hist = recorded(&[0, 1_000_000, 4_000_000_000_000, u64::MAX]);
    assert_eq!(hist.count_at_or_below(Nanos::NEVER), 4);
    assert_eq!(hist.count_at_or_below(Nanos::from_secs(3_900)), 3);
    assert_eq!(hist.count_at_or_below(Nanos::from_secs(3_500)), 2);
}

#[test]
fn an_empty_histogram_is_all_zero() {
    for hist in [Hist::new(), Hist::prepared(), {
        let mut hist = recorded(&[0, 5_000]);
        hist.clear();
        hist
    }] {
        assert!(hist.is_empty() && hist.buckets().is_empty());
        assert_eq!(hist.summary(), Summary::default());
        assert_eq!(hist.to_hdr().len(), 0);
    }
}

#[test]
fn times_above_an_hour_count_as_an_hour() {
    let hist = recorded(&[u64::MAX, HIGH + 1]);
    assert_eq!(hist.count(), 2);
    assert!(same_bucket(hist.max(), HIGH), "{:?}", hist.max());
}

proptest! {
    #[test]
    fn quantiles_against_the_sorted_values(
        values in prop::collection::vec(times(), 1..300),
        part in 0u64..=1000,
    ) {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let hist = recorded(&values);
        let rank = (part * values.len() as u64).div_ceil(1000).max(1) as usize;
        let found = hist.quantile(part as f64 / 1000.0);
        prop_assert!(same_bucket(found, sorted[rank - 1]), "{found:?} {}", sorted[rank - 1]);
        prop_assert!(same_bucket(hist.max(), sorted[values.len() - 1]));
        prop_assert!(same_bucket(hist.min(), sorted[0]));
        prop_assert_eq!(hist.count(), values.len() as u64);
    }

    #[test]
    fn moments_against_the_values(values in prop::collection::vec(times(), 1..300)) {
        let n = values.len() as f64;
        let mean = values.iter().map(|value| *value as f64).sum::<f64>() / n;
        let squares = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>();
        let (stdev, hist) = ((squares / n).sqrt(), recorded(&values));
        let largest = values.iter().copied().max().unwrap_or(0) as f64;
        let tolerance = 512.0 + largest / 1000.0;
        prop_assert!((hist.mean().0 as f64 - mean).abs() <= tolerance);
        prop_assert!((hist.stdev().0 as f64 - stdev).abs() <= tolerance);
    }

    #[test]
    fn merging_is_recording_together(
        a in prop::collection::vec(times(), 0..100),
        b in prop::collection::vec(times(), 0..100),
    ) {
        let together = recorded(&[a.clone(), b.clone()].concat());
        for (first, second) in [(&a, &b), (&b, &a)] {
            let mut merged = recorded(first);
            merged.merge(&recorded(second));
            prop_assert_eq!(merged.buckets(), together.buckets());
            prop_assert_eq!(merged.summary(), together.summary());
        }
        let counted: u64 = together.buckets().iter().map(|(_, count)| count).sum();
        prop_assert_eq!(counted, together.count());
        prop_assert_eq!(together.to_hdr().len(), together.count());
    }

    #[test]
    fn recording_many_is_recording_often(value in times(), count in 0u64..50) {
        let mut at_once = Hist::new();
        at_once.record_n(Nanos(value), count);
        let often = recorded(&vec![value; count as usize]);
        prop_assert_eq!(at_once.buckets(), often.buckets());
    }
}

#[test]
fn a_histogram_is_rebuilt_from_its_buckets_and_its_parts() {
    let mut hist = Hist::new();
    for value in [0, 0, 1, 700, 1_023, 45_000, 1_234_567, 80_000_000_000, 4_000_000_000_000] {
        hist.record(Nanos(value));
    }
    let (zeros, above) = hist.parts();
    let again = [Hist::from_buckets(hist.buckets()), Hist::from_parts(zeros, above).unwrap()];
    for again in again {
        assert_eq!(again.buckets(), hist.buckets());
        assert_eq!(again.summary(), hist.summary());
    }
    assert_eq!(Hist::new().parts(), (0, None));
    let other = Histogram::new_with_bounds(1, 1_000, 2).unwrap();
    let error = Hist::from_parts(0, Some(other)).unwrap_err();
    assert!(error.starts_with("a histogram from 1 to 1000 ns with 2 digits"), "{error}");
}

proptest! {
    #[test]
    fn cumulative_counts_as_the_histogram_does(
        values in prop::collection::vec(prop_oneof![4 => times(), 1 => HIGH..2 * HIGH], 0..200),
        asked in prop::collection::vec(times(), 1..50),
    ) {
        let hist = recorded(&values);
        let cumulative = hist.cumulative();
        for value in asked.into_iter().chain(values).chain([0, u64::MAX]) {
            let value = Nanos(value);
            let counts = (cumulative.count_at_or_below(value), hist.count_at_or_below(value));
            prop_assert_eq!(counts.0, counts.1, "at {}", value.0);
        }
    }
}
