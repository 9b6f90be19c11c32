//! Schedule of stalls.
//!
//! The schedule starts at the first request after a second without any, so that every run against
//! the site has the same phase: stalls at 1, 2, 3 … periods after that instant. It is computed by
//! index from the start and does not drift.

use units::Nanos;

use crate::Stall;

/// Idle time after which the next request restarts the schedule.
const IDLE: Nanos = Nanos::SECOND;

/// The stall schedule as the requests have set it.
#[derive(Debug)]
pub(super) struct StallClock {
    stall: Stall,
    /// Start of the schedule and number of stalls so far; `None` while idle.
    running: Option<(Nanos, u64)>,
    last_request: Nanos,
}

impl StallClock {
    pub(super) fn new(stall: Stall) -> StallClock {
        StallClock { stall, running: None, last_request: Nanos::ZERO }
    }

    pub(super) fn on_request(&mut self, now: Nanos) {
        if self.running.is_none() || now - self.last_request > IDLE {
            self.running = Some((now, 0));
        }
        self.last_request = now;
    }

    /// Returns when the next stall starts, if requests continue.
    pub(super) fn next_start(&self) -> Option<Nanos> {
        let (anchor, past) = self.running?;
        Some(anchor + self.stall.period * (past + 1))
    }

    /// Returns the end of a stall that has started by `now`; the caller freezes until then. A stall
    /// without requests is skipped, and ends the schedule.
    pub(super) fn begin(&mut self, now: Nanos) -> Option<Nanos> {
        let start = self.next_start().filter(|start| *start <= now)?;
        if now - self.last_request > IDLE {
            self.running = None;
            return None;
        }
        let (anchor, past) = self.running?;
        self.running = Some((anchor, past + 1));
        let end = start + self.stall.length;
        // a freeze is not idleness: the requests of that time were not read yet
        self.last_request = self.last_request.max(end);
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn clock() -> StallClock {
        StallClock::new(Stall { length: MS(500), period: MS(2_000) })
    }

    #[test]
    fn stalls_are_at_multiples_of_the_period() {
        let mut clock = clock();
        assert_eq!((clock.next_start(), clock.begin(MS(9_999))), (None, None));
        let mut stalls = Vec::new();
        for at in (10_000..17_000).step_by(10) {
            clock.on_request(MS(at));
            if let Some(end) = clock.begin(MS(at)) {
                stalls.push((at, end.0 / 1_000_000));
            }
        }
        assert_eq!(stalls, [(12_000, 12_500), (14_000, 14_500), (16_000, 16_500)]);
    }

    #[test]
    fn an_idle_second_restarts_the_schedule() {
        let mut clock = clock();
        clock.on_request(MS(0));
        assert_eq!(clock.begin(MS(2_000)), None, "nothing answered");
        assert_eq!(clock.next_start(), None);
        clock.on_request(MS(2_700));
        assert_eq!(clock.next_start(), Some(MS(4_700)));
    }

    #[test]
    fn a_stall_does_not_count_as_idle_time() {
        let long = Stall { length: MS(1_500), period: MS(2_000) };
        let mut clock = StallClock::new(long);
        for at in [0, 900, 1_800] {
            clock.on_request(MS(at));
        }
        assert_eq!(clock.begin(MS(2_000)), Some(MS(3_500)));
        clock.on_request(MS(3_501));
        assert_eq!(clock.next_start(), Some(MS(4_000)));
    }
}
