//! Histograms with exponential buckets: Prometheus' native histogram and OTLP's exponential
//! histogram are the same, numbered differently.

use stats::Hist;
use std::collections::BTreeMap;

/// Resolution: buckets grow by 2^(2^-3), 9.05 %. Prometheus' own default.
pub const SCHEMA: i32 = 3;

/// Buckets per doubling at [`SCHEMA`].
const PER_DOUBLING: f64 = 8.0;

/// Maximum number of empty buckets that are cheaper to write than a new span after them.
const GAP_MAX: i32 = 2;

/// Times in seconds by exponential bucket. Bucket `i` holds values above b^(i−1) and at or below
/// b^i, where b = 2^(2^−[`SCHEMA`]): Prometheus' numbering. The recordings have three significant
/// digits, so a recording within a thousandth of a bound may be one bucket higher.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exponential {
    /// Recordings of exactly zero.
    pub zeros: u64,
    /// Index and count of the non-empty buckets, in ascending order.
    pub buckets: Vec<(i32, u64)>,
}

impl Exponential {
    pub fn new(hist: &Hist) -> Exponential {
        let mut zeros = 0;
        let mut buckets: BTreeMap<i32, u64> = BTreeMap::new();
        for (value, count) in hist.buckets() {
            if value.is_zero() {
                zeros += count;
            } else {
                *buckets.entry(index(value.as_secs_f64())).or_default() += count;
            }
        }
        Exponential { zeros, buckets: buckets.into_iter().collect() }
    }

    /// Returns Prometheus' sparse form: spans of buckets as (distance from the end of the previous
    /// span, length), and the difference of each bucket's count to the previous bucket's.
    pub fn spans(&self) -> (Vec<(i32, u32)>, Vec<i64>) {
        let (mut spans, mut deltas) = (Vec::<(i32, u32)>::new(), Vec::new());
        let (mut next, mut before) = (0, 0);
        for (index, count) in &self.buckets {
            let gap = index - next;
            match spans.last_mut() {
                Some((_, length)) if gap <= GAP_MAX => {
                    for _ in 0..gap {
                        deltas.push(-before);
                        before = 0;
                    }
                    *length += gap as u32 + 1;
                }
                _ => spans.push((gap, 1)),
            }
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            deltas.push(count - before);
            before = count;
            next = index + 1;
        }
        (spans, deltas)
    }

    /// Returns OTLP's dense form: the first bucket's index in OTLP's numbering, whose bucket `i`
    /// begins at b^i, and the counts from there on.
    pub fn dense(&self) -> (i32, Vec<u64>) {
        let (Some((first, _)), Some((last, _))) = (self.buckets.first(), self.buckets.last())
        else {
            return (0, Vec::new());
        };
        let mut counts = vec![0; (last - first + 1) as usize];
        for (index, count) in &self.buckets {
            counts[(index - first) as usize] = *count;
        }
        (first - 1, counts)
    }
}

/// Returns the bucket of a time in seconds above zero.
fn index(seconds: f64) -> i32 {
    (seconds.log2() * PER_DOUBLING).ceil() as i32
}
