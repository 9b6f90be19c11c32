//! Slowdown of a weak server's work, and decisions of a limiter: pure arithmetic on instants.

use units::Nanos;

use crate::Weaknesses;

/// State between requests.
#[derive(Debug)]
pub(super) struct Pace {
    weak: Weaknesses,
    /// Time of the first request, and number of requests.
    began: Option<Nanos>,
    requests: u64,
    /// End times of the calls in progress, if their number matters.
    in_work: Vec<Nanos>,
    tokens: f64,
    filled: Nanos,
}

impl Pace {
    pub(super) fn new(weak: Weaknesses) -> Pace {
        let tokens = weak.rate_limit.map_or(0.0, |limit| limit.burst);
        Pace { weak, began: None, requests: 0, in_work: Vec::new(), tokens, filled: Nanos::ZERO }
    }

    /// Returns the status with which a request at `now` is refused, if the bucket has no token for
    /// it.
    pub(super) fn limited(&mut self, now: Nanos) -> Option<u16> {
        let limit = self.weak.rate_limit?;
        let gained = (now - self.filled).as_secs_f64() * limit.per_s;
        self.tokens = (self.tokens + gained).min(limit.burst);
        self.filled = self.filled.max(now);
        if self.tokens < 1.0 {
            return Some(limit.status);
        }
        self.tokens -= 1.0;
        None
    }

    /// Returns the actual duration of `work` for a request that arrives at `now`.
    pub(super) fn work(&mut self, now: Nanos, work: Nanos) -> Nanos {
        let began = *self.began.get_or_insert(now);
        let mut times = 1.0;
        if let Some(cold) = self.weak.cold
            && now - began < cold.length
        {
            times = cold.times;
        }
        if let Some(law) = self.weak.contention {
            self.in_work.retain(|end| *end > now);
            times *= law.slowdown(self.in_work.len() as f64 + 1.0);
        }
        let mut work = Nanos((work.0 as f64 * times) as u64);
        work += self.weak.leak.unwrap_or_default() * self.requests;
        self.requests += 1;
        if self.weak.contention.is_some() {
            self.in_work.push(now + work);
        }
        work
    }

    /// Returns the first tick after a request's `arrival` at which a response due at `due` may be
    /// sent. The clock ticks for all requests alike, whenever they arrive.
    pub(super) fn tick(&self, arrival: Nanos, due: Nanos) -> Nanos {
        match self.weak.quantum {
            Some(tick) => tick * (due.0.div_ceil(tick.0)).max(arrival.0 / tick.0 + 1),
            None => due,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cold, Contention, RateLimit};

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    #[test]
    fn a_bucket_admits_a_burst_and_then_its_rate() {
        let limit = RateLimit { per_s: 100.0, burst: 5.0, status: 429 };
        let mut pace = Pace::new(Weaknesses { rate_limit: Some(limit), ..Weaknesses::default() });
        let passed = (0..2_000).filter(|ms| pace.limited(MS(1_000 + ms)).is_none()).count();
        // 5 at once and 100 a second for 2 s
        assert!((204..=205).contains(&passed), "{passed}");
        assert_eq!(pace.limited(MS(2_999)), Some(429));
    }

    #[test]
    fn work_is_longer_when_cold_leaking_or_crowded() {
        let cold = Cold { length: MS(100), times: 5.0 };
        let mut pace = Pace::new(Weaknesses { cold: Some(cold), ..Weaknesses::default() });
        let took = [0, 99, 100].map(|at| pace.work(MS(at), MS(10)).0 / 1_000_000);
        assert_eq!(took, [50, 50, 10]);
        let mut pace = Pace::new(Weaknesses { leak: Some(MS(2)), ..Weaknesses::default() });
        let took = [0, 1, 2].map(|at| pace.work(MS(at), MS(10)).0 / 1_000_000);
        assert_eq!(took, [10, 12, 14]);
        let law = Contention { contention: 0.5, coherency: 0.0 };
        let mut pace = Pace::new(Weaknesses { contention: Some(law), ..Weaknesses::default() });
        let took = [0, 0, 0, 50].map(|at| pace.work(MS(at), MS(10)).0 / 1_000_000);
        assert_eq!(took, [10, 15, 20, 10]);
    }

    #[test]
    fn responses_wait_for_the_tick() {
        let pace = Pace::new(Weaknesses { quantum: Some(MS(20)), ..Weaknesses::default() });
        let left = [(5, 5), (5, 19), (20, 20), (5, 21), (39, 41)]
            .map(|(a, d)| pace.tick(MS(a), MS(d)).0 / 1_000_000);
        assert_eq!(left, [20, 20, 40, 40, 60]);
    }
}
