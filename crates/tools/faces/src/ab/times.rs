//! Mean, deviation and median of whole microseconds, by ab's arithmetic.

/// A row of the table of times; µs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TimesRow {
    pub(super) min: i64,
    pub(super) mean: i64,
    /// The sample's deviation (n − 1).
    pub(super) deviation: f64,
    pub(super) median: i64,
    pub(super) max: i64,
}

impl TimesRow {
    /// Computes the row. `strict`: use ab's median: the mean of the middle value and its successor
    /// for an odd number of values, the upper of the two middle values for an even number.
    pub(super) fn new(mut values: Vec<i64>, strict: bool) -> TimesRow {
        values.sort_unstable();
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return TimesRow::default();
        };
        let count = values.len() as i64;
        let mean = values.iter().sum::<i64>() / count;
        let squares: f64 = values.iter().map(|value| ((value - mean) as f64).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let median = if strict { ab_median(&values) } else { median(&values) };
        TimesRow { min, mean, deviation, median, max }
    }
}

fn median(sorted: &[i64]) -> i64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2 }
}

fn ab_median(sorted: &[i64]) -> i64 {
    let middle = sorted.len() / 2;
    match sorted.get(middle + 1) {
        Some(next) if sorted.len() % 2 == 1 => (sorted[middle] + next) / 2,
        _ => sorted[middle],
    }
}

/// Converts µs to whole ms, the nearest.
pub(super) fn round_ms(micros: i64) -> i64 {
    (micros + 500) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_median_and_the_median_of_ab_are_computed() {
        for (values, right, of_ab) in [
            (vec![5], 5, 5),
            (vec![1, 9], 5, 9),
            (vec![9, 1, 2], 2, 5),
            (vec![1, 2, 4, 9], 3, 4),
            (vec![5, 4, 3, 2, 1], 3, 3),
        ] {
            assert_eq!(TimesRow::new(values.clone(), false).median, right, "{values:?}");
            assert_eq!(TimesRow::new(values.clone(), true).median, of_ab, "{values:?}");
        }
    }

    #[test]
    fn mean_is_whole_and_deviation_of_the_sample() {
        let row = TimesRow::new(vec![1_000, 2_000, 4_000], false);
        assert_eq!((row.min, row.mean, row.max), (1_000, 2_333, 4_000));
        assert!((row.deviation - 1_527.525).abs() < 0.01, "{row:?}");
        assert_eq!(TimesRow::new(Vec::new(), true), TimesRow::default());
        assert_eq!([499, 500, 1_499, 1_500].map(round_ms), [0, 1, 1, 2]);
    }
}
