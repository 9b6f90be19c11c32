//! Median and its interval from order statistics.

/// Median with an interval that needs no assumption about the distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Probability that such an interval contains the true median, 0..=1.
    pub(super) coverage: f64,
    pub(super) count: usize,
}

/// Returns the interval between the k-th smallest and the k-th largest value, which contains the
/// median with probability 1 − 2·P(B < k), B binomial over n fair coins (each value lies below the
/// true median or above it). Uses the largest k that still gives 95 %, or the whole range if even
/// that gives less, which is the case below six values. `None` without values.
pub(super) fn estimate(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let half = count / 2;
    let median = match (count, count % 2) {
        (0, _) => return None,
        (_, 1) => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    };
    let mut k = 1;
    while coverage(count, k + 1) >= 0.95 {
        k += 1;
    }
    Some(Estimate {
        median,
        low: sorted[k - 1],
        high: sorted[count - k],
        coverage: coverage(count, k),
        count,
    })
}

/// Returns 1 − 2·P(B ≤ k − 1) for B ~ Binomial(n, ½); 0 if the two ends would cross.
fn coverage(count: usize, k: usize) -> f64 {
    if 2 * k > count {
        return 0.0;
    }
    let mut choose = 1.0;
    let mut below = 0.0;
    for j in 0..k {
        below += choose;
        choose *= (count - j) as f64 / (j + 1) as f64;
    }
    1.0 - 2.0 * below * 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_values_give_the_second_and_the_eighth() {
        let values = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0];
        let found = estimate(&values).unwrap();
        assert_eq!((found.median, found.low, found.high), (5.0, 2.0, 8.0));
        // 1 - 2 (1 + 9) / 512
        assert!((found.coverage - 0.9609375).abs() < 1e-12);
    }

    #[test]
    fn few_values_yield_their_range_with_a_note() {
        let found = estimate(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((found.median, found.low, found.high), (2.0, 1.0, 3.0));
        assert!((found.coverage - 0.75).abs() < 1e-12);
        assert_eq!(estimate(&[7.0]).map(|one| (one.low, one.high)), Some((7.0, 7.0)));
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn the_interval_has_the_ranks_of_the_sign_test() {
        // ranks from tables of the sign test at 95 %
        for (count, k) in [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (30, 10)] {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let found = estimate(&values).unwrap();
            let expected = (f64::from(k), f64::from(count + 1 - k));
            assert_eq!((found.low, found.high), expected, "of {count}");
        }
    }
}
