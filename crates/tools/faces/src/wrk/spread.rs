//! Recorded values with their counts, and wrk's figures for them.

/// Values with counts, ascending by value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    pub values: Vec<(u64, u64)>,
}

impl Spread {
    /// Builds it from values in any order, with repetitions.
    pub fn new(mut values: Vec<(u64, u64)>) -> Spread {
        values.sort_unstable();
        values.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            kept.1 += if same { later.1 } else { 0 };
            same
        });
        values.retain(|(_, count)| *count > 0);
        Spread { values }
    }

    pub fn count(&self) -> u64 {
        self.values.iter().map(|(_, count)| count).sum()
    }

    pub fn max(&self) -> u64 {
        self.values.last().map_or(0, |(value, _)| *value)
    }

    /// Returns the mean; 0 without recordings.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.values.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
        let count = self.count();
        if count == 0 { 0.0 } else { sum / count as f64 }
    }

    /// Returns the standard deviation of a sample: n − 1 in the divisor; 0 for fewer than two
    /// values.
    pub fn stdev(&self) -> f64 {
        let (mean, count) = (self.mean(), self.count());
        if count < 2 {
            return 0.0;
        }
        let squares = |(value, count): &(u64, u64)| (*value as f64 - mean).powi(2) * *count as f64;
        (self.values.iter().map(squares).sum::<f64>() / (count - 1) as f64).sqrt()
    }

    /// Returns the percentage of values within one standard deviation of the mean; NaN without
    /// values.
    pub fn within_stdev(&self) -> f64 {
        let (mean, stdev) = (self.mean(), self.stdev());
        let (low, high) = (mean - stdev, mean + stdev);
        let inside = |(value, _): &&(u64, u64)| (low..=high).contains(&(*value as f64));
        let within: u64 = self.values.iter().filter(inside).map(|(_, count)| count).sum();
        within as f64 / self.count() as f64 * 100.0
    }

    /// Returns the value of rank round(p/100 · n + 0.5), never beyond the last; `percent` in
    /// 0..=100.
    pub fn percentile(&self, percent: f64) -> u64 {
        let count = self.count();
        let rank = (percent / 100.0 * count as f64 + 0.5).round().min(count as f64) as u64;
        let mut reached = 0;
        for (value, times) in &self.values {
            reached += times;
            if reached >= rank {
                return *value;
            }
        }
        self.max()
    }

    /// Applies wrk's correction at the end: for each value above twice the interval between calls,
    /// adds the calls assumed to be missing, at the value minus one, two, … intervals.
    pub fn add_missing_values(&mut self, interval: u64) {
        let mut invented = Vec::new();
        if interval == 0 {
            return;
        }
        for (value, count) in self.values.iter().filter(|(value, _)| *value > interval * 2) {
            let mut left = value - interval;
            while left > interval && invented.len() < INVENTED_MAX {
                invented.push((left, *count));
                left -= interval;
            }
        }
        invented.append(&mut self.values);
        *self = Spread::new(invented);
    }
}

/// Maximum number of rows of invented values: a short interval in a long run would make millions.
const INVENTED_MAX: usize = 4_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_wrk() {
        let spread = Spread::new(vec![(20, 4), (10, 2), (30, 1), (10, 3)]);
        assert_eq!(spread.values, [(10, 5), (20, 4), (30, 1)]);
        assert_eq!((spread.count(), spread.max()), (10, 30));
        assert!((spread.mean() - 16.0).abs() < 1e-9);
        assert!((spread.stdev() - 6.992).abs() < 1e-3, "{}", spread.stdev());
        assert!((spread.within_stdev() - 90.0).abs() < 1e-9);
        assert_eq!([50.0, 90.0, 99.0, 100.0].map(|p| spread.percentile(p)), [20, 30, 30, 30]);
        assert!(Spread::default().within_stdev().is_nan());
    }

    #[test]
    fn invented_values_are_those_of_wrk() {
        let mut spread = Spread::new(vec![(10, 7), (45, 1)]);
        spread.add_missing_values(10);
        // 45 > 20: 35, 25, 15 are added; 5 is not above the interval
        assert_eq!(spread.values, [(10, 7), (15, 1), (25, 1), (35, 1), (45, 1)]);
    }
}
