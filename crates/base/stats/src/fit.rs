//! Fit of values to a law: goodness of fit, tails, locality, and variance over time.

/// Bounds of [`anderson_darling`] where the law and all its parameters are known beforehand: a sample
/// of the law is above them once in 20 times, and once in 100 (Stephens, 1974).
pub const ANDERSON_DARLING_5: f64 = 2.492;
pub const ANDERSON_DARLING_1: f64 = 3.857;

/// Minimum expected count of a bin; a bin below it is merged with its neighbor, because the sum of
/// squares over expected numbers is meaningless for small ones.
const EXPECTED_MIN: f64 = 5.0;

/// Returns Anderson and Darling's A² = −n − (1/n)·Σ (2i−1)·(ln Fᵢ + ln(1 − Fₙ₊₁₋ᵢ)).
///
/// The Anderson-Darling statistic. `below`: for each value in ascending order the share F of the
/// law at or below it, 0..=1. `None` without values. It rejects every law for very large samples,
/// and repeated values: use sub-samples of different values.
pub fn anderson_darling(below: &[f64]) -> Option<f64> {
    let n = below.len();
    // a value that the law excludes would make the sum infinite
    let inside = |share: f64| share.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
    let terms = below.iter().zip(below.iter().rev()).enumerate();
    let sum: f64 = terms
        .map(|(i, (low, high))| {
            (2 * i + 1) as f64 * (inside(*low).ln() + (1.0 - inside(*high)).ln())
        })
        .sum();
    (n > 0).then(|| -(n as f64) - sum / n as f64)
}

/// λ² of Pederson and Johnson, used by Paxson (1994): the distance of counts from a law,
/// independent of their number. About 0 for the law itself, and Σ (qᵢ − pᵢ)²/pᵢ for large numbers
/// of another law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lambda {
    pub value: f64,
    /// Bins that were compared, after merging those that expect too little.
    pub bins: usize,
}

/// Computes λ². `observed`: counts in bins of which the law has `shares`, which add up to 1;
/// `estimated`: parameters of the law that were estimated from the same values. `None` if fewer
/// than two bins are left.
pub fn lambda_squared(observed: &[u64], shares: &[f64], estimated: usize) -> Option<Lambda> {
    let n = observed.iter().sum::<u64>() as f64;
    let mut bins: Vec<(f64, f64)> = Vec::new();
    let mut open = (0.0, 0.0);
    for (count, share) in observed.iter().zip(shares) {
        open = (open.0 + *count as f64, open.1 + n * share);
        if open.1 >= EXPECTED_MIN {
            bins.push(open);
            open = (0.0, 0.0);
        }
    }
    let last = bins.last_mut()?;
    *last = (last.0 + open.0, last.1 + open.1);
    let (mut squares, mut sum) = (0.0, 0.0);
    for (found, expected) in &bins {
        squares += (found - expected).powi(2) / expected;
        sum += (found - expected) / expected;
    }
    let freedom = bins.len() as f64 - 1.0 - estimated as f64;
    let value = (squares - sum - freedom) / (n - 1.0);
    (freedom > 0.0).then_some(Lambda { value, bins: bins.len() })
}

/// Returns the width of bins by Scott's rule: 3.49·s·n^(−1/3). `None` if the values do not differ.
pub fn scott_width(values: &[f64]) -> Option<f64> {
    let width = 3.49 * variance(values)?.sqrt() * (values.len() as f64).powf(-1.0 / 3.0);
    (width > 0.0).then_some(width)
}

/// Returns the unbiased variance; `None` for fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sum: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| sum / (n - 1.0))
}

/// Returns Hill's estimate of a in P(X > x) = (k/x)^a, from the values above k; `None` without such
/// values.
pub fn hill(values: impl Iterator<Item = f64>, k: f64) -> Option<f64> {
    let (count, sum) = values
        .filter(|value| *value > k)
        .fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + (value / k).ln()));
    (count > 0.0).then(|| count / sum)
}

/// Returns the slope of a line through the points, by least squares; NaN if they share one x.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / n, sum_y / n);
    let (mut across, mut along) = (0.0, 0.0);
    for (x, y) in points {
        across += (x - mean_x) * (y - mean_y);
        along += (x - mean_x).powi(2);
    }
    across / along
}

/// Decrease of the variance of means over longer spans (Leland et al., IEEE/ACM ToN 1994).
#[derive(Clone, Debug, PartialEq)]
pub struct VarianceTime {
    /// Cells of a mean, and the variance of such means over that of single cells.
    pub points: Vec<(usize, f64)>,
    /// H = 1 + β/2, where β is the slope of ln variance over ln cells: 0.5 of a Poisson process.
    pub hurst: f64,
}

/// Means of the longest spans.
const BLOCKS_MIN: usize = 20;

/// Computes the slope from counts in cells of equal length. `None` for fewer than `cells_min`, or
/// without variance.
pub fn variance_time(counts: &[f64], cells_min: usize) -> Option<VarianceTime> {
    if counts.len() < cells_min {
        return None;
    }
    let single = variance(counts).filter(|single| *single > 0.0)?;
    let lengths = std::iter::successors(Some(1_usize), |m| Some(m * 2));
    let points = lengths.take_while(|m| counts.len() / m >= BLOCKS_MIN).filter_map(|m| {
        let mean = |block: &[f64]| block.iter().sum::<f64>() / m as f64;
        let means: Vec<f64> = counts.chunks_exact(m).map(mean).collect();
        let variance = variance(&means).filter(|variance| *variance > 0.0)?;
        Some((m, variance / single))
    });
    let points: Vec<(usize, f64)> = points.collect();
    let logs: Vec<_> = points.iter().map(|(m, share)| ((*m as f64).ln(), share.ln())).collect();
    let hurst = 1.0 + slope(&logs) / 2.0;
    (points.len() > 2).then_some(VarianceTime { points, hurst })
}

/// Returns, for each value seen before, the number of different values since: its depth in a stack
/// of recently used values, in the order of the values. Values are below `count`.
pub fn stack_distances(order: &[u32], count: usize) -> Vec<u32> {
    let mut tree = Marks(vec![0; order.len() + 1]);
    let mut last: Vec<Option<usize>> = vec![None; count];
    let mut distances = Vec::with_capacity(order.len());
    for (at, value) in order.iter().enumerate() {
        // a mark is at each value's last position: marks after this one's belong to different
        // values
        let slot = &mut last[*value as usize];
        if let Some(before) = slot.replace(at) {
            distances.push((tree.before(at) - tree.before(before + 1)) as u32);
            tree.add(before, -1);
        }
        tree.add(at, 1);
    }
    distances
}

/// Prefix sums of a row of numbers (Fenwick, 1994).
struct Marks(Vec<i64>);

impl Marks {
    fn add(&mut self, at: usize, change: i64) {
        let mut node = at + 1;
        while node < self.0.len() {
            self.0[node] += change;
            node += node & node.wrapping_neg();
        }
    }

    fn before(&self, end: usize) -> i64 {
        let (mut node, mut sum) = (end, 0);
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests;
