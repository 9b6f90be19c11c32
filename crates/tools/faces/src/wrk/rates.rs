//! The rate of each thread, interval by interval.

use super::spread::Spread;
use std::collections::BTreeMap;
use units::Nanos;

/// Minimum length of an interval; a shorter one is joined to the next. The last interval of a run
/// may have any length.
const SPAN_MIN: Nanos = Nanos::from_millis(50);

/// Responses of each thread's intervals, as requests per second.
#[derive(Debug)]
pub(super) struct Rates {
    /// Whole rates and how often each was seen: their number does not grow with the run.
    values: BTreeMap<u64, u64>,
    /// Responses and time of each thread that are not part of a value yet.
    open: Vec<(u64, Nanos)>,
    span_min: Nanos,
}

impl Rates {
    pub(super) fn new() -> Rates {
        Rates { values: BTreeMap::new(), open: Vec::new(), span_min: SPAN_MIN }
    }

    /// Sets the minimum span of values from now on; earlier intervals are dropped.
    pub(super) fn restart(&mut self, worker: u32, span: Nanos) {
        self.values.clear();
        self.span_min = span;
        if let Some(open) = self.open.get_mut(worker as usize) {
            *open = (0, Nanos::ZERO);
        }
    }

    /// Adds an interval of a thread. As in wrk, an interval without a response is joined to the
    /// next.
    pub(super) fn add(&mut self, worker: u32, responses: u64, span: Nanos) {
        let row = worker as usize;
        if self.open.len() <= row {
            self.open.resize(row + 1, (0, Nanos::ZERO));
        }
        let (sum, time) = &mut self.open[row];
        *sum += responses;
        *time += span;
        if *sum > 0 && *time >= self.span_min {
            let rate = *sum as f64 / time.as_secs_f64();
            *self.values.entry(rate as u64).or_default() += 1;
            (*sum, *time) = (0, Nanos::ZERO);
        }
    }

    pub(super) fn spread(&self) -> Spread {
        Spread::new(self.values.iter().map(|(rate, count)| (*rate, *count)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_threads_rate_over_an_interval() {
        let mut rates = Rates::new();
        let tenth = Nanos::from_millis(100);
        rates.add(0, 50, tenth);
        rates.add(1, 0, tenth);
        rates.add(1, 50, tenth);
        rates.add(0, 9, Nanos::from_millis(10));
        assert_eq!(rates.spread().values, [(250, 1), (500, 1)]);
        rates.restart(1, tenth * 2);
        rates.add(1, 10, tenth);
        rates.add(1, 30, tenth);
        assert_eq!(rates.spread().values, [(200, 1)]);
    }
}
