//! Detects when a server answers as before, after an overload.

use crate::Second;
use units::Nanos;

/// Number of consecutive intervals with responses that must be as before.
const IN_A_ROW: usize = 2;
/// Recovery: a median of at most this multiple of the previous one, or at most this much longer.
const FACTOR: f64 = 1.5;
const SLACK: Nanos = Nanos::from_millis(1);

/// Returns the number of seconds from the start of an ordinary load until the server answers as
/// before: the start of the first of two consecutive intervals, both with responses, without
/// failures and with a median response time of at most 1.5 × `before` or 1 ms above it. `None` if
/// that does not happen.
pub fn as_before(series: &[Second], before: Nanos) -> Option<f64> {
    let limit = Nanos((before.0 as f64 * FACTOR) as u64).max(before + SLACK);
    let mut run: Vec<f64> = Vec::new();
    for second in series.iter().filter(|second| !second.warm_up) {
        let counts = &second.counts;
        if counts.failed + counts.timed_out + counts.dropped > 0 || second.p50 > limit {
            run.clear();
        } else if counts.succeeded > 0 {
            run.push(second.at_s);
        }
        if run.len() >= IN_A_ROW {
            return run.first().copied();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counts;

    fn second(at: u32, succeeded: u64, failed: u64, p50_ms: u64) -> Second {
        let counts = Counts { due: succeeded + failed, succeeded, failed, ..Counts::default() };
        let p50 = Nanos::from_millis(p50_ms);
        Second { at_s: f64::from(at), span_s: 1.0, counts, p50, ..Second::default() }
    }

    fn found(rows: &[(u64, u64, u64)]) -> Option<f64> {
        let rows = rows.iter().zip(0..);
        let series: Vec<Second> =
            rows.map(|((good, bad, p50), at)| second(at, *good, *bad, *p50)).collect();
        as_before(&series, Nanos::from_millis(10))
    }

    #[test]
    fn two_good_intervals_running_are_a_recovery() {
        assert_eq!(found(&[(5, 0, 900), (5, 0, 14), (5, 0, 16), (5, 0, 15), (5, 0, 9)]), Some(3.0));
        assert_eq!(found(&[(5, 0, 10), (5, 0, 10)]), Some(0.0));
    }

    #[test]
    fn failures_and_silence_have_no_figure() {
        assert_eq!(found(&[(5, 1, 10), (5, 0, 10), (5, 1, 10), (5, 0, 10)]), None);
        assert_eq!(found(&[(0, 0, 0), (0, 0, 0), (0, 0, 0)]), None);
        assert_eq!(found(&[]), None);
        // an interval without a call counts as neither good nor bad
        assert_eq!(found(&[(5, 0, 10), (0, 0, 0), (5, 0, 10)]), Some(0.0));
    }

    #[test]
    fn a_server_that_answers_at_once_may_be_a_millisecond_slower() {
        let fast = [second(0, 5, 0, 1), second(1, 5, 0, 1)];
        assert_eq!(as_before(&fast, Nanos(200_000)), Some(0.0));
        assert_eq!(as_before(&fast, Nanos(1_000)), Some(0.0));
        let slow = [second(0, 5, 0, 2), second(1, 5, 0, 2)];
        assert_eq!(as_before(&slow, Nanos(200_000)), None);
    }
}
