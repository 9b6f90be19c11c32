//! The fault and the timing of each request: pure arithmetic on seeded streams, so that the n-th
//! request of a seed is always treated the same, for any timing.

use units::{Nanos, Purpose, Seed, Stream};

use crate::Faults;
use crate::pace::Pace;

/// Fault and timing of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    Answer,
    /// The request is answered with 500.
    Error,
    Reset,
    /// Answered at once with this status, by a limiter.
    Limited(u16),
    /// Answered with 504 after a time-out.
    Late,
}

impl Treatment {
    /// Returns the status that overrides that of the page.
    pub(crate) fn status(self) -> Option<u16> {
        match self {
            Treatment::Answer | Treatment::Reset => None,
            Treatment::Error => Some(500),
            Treatment::Limited(status) => Some(status),
            Treatment::Late => Some(504),
        }
    }
}

/// Draws treatments and due instants.
#[derive(Debug)]
pub(crate) struct Script {
    faults: Faults,
    delay: Stream,
    service: Stream,
    error: Stream,
    reset: Stream,
    garbage: Stream,
    late: Stream,
    /// Instants at which each worker has finished the arrived requests; one worker by default.
    free: Vec<Nanos>,
    pace: Pace,
}

/// Length of garbage: long enough for a line, short enough for one segment.
const GARBAGE_LEN: usize = 64;

impl Script {
    pub(crate) fn new(faults: Faults, seed: Seed) -> Script {
        let stream = |index| seed.stream(Purpose::Site, index);
        let workers = faults.weak.workers.unwrap_or(1) as usize;
        Script {
            delay: stream(0),
            service: stream(1),
            error: stream(2),
            reset: stream(3),
            garbage: stream(4),
            late: stream(5),
            free: vec![Nanos::ZERO; workers.max(1)],
            pace: Pace::new(faults.weak.clone()),
            faults,
        }
    }

    /// Returns the treatment of the next request. Each fault share has its own stream and draws for
    /// every request, so that enabling one does not change the others.
    pub(crate) fn treatment(&mut self, now: Nanos) -> Treatment {
        let error = self.error.unit() < self.faults.error_share;
        let reset = self.reset.unit() < self.faults.reset_share;
        let late = self.faults.weak.late.is_some_and(|late| self.late.unit() < late.share);
        match (self.pace.limited(now), reset, error) {
            (Some(status), _, _) => Treatment::Limited(status),
            (None, true, _) => Treatment::Reset,
            (None, false, true) => Treatment::Error,
            (None, false, false) if late => Treatment::Late,
            (None, false, false) => Treatment::Answer,
        }
    }

    /// Returns when the response to a request that arrived at `arrival` is due, if its body then
    /// drips for `drip`.
    ///
    /// With `service` (or one request at a time) this is Lindley's recursion for a queue in order
    /// of arrival: start = max(arrival, end of the first free worker's last request), end = start +
    /// service. Ends are computed from ends, never from the clock, so that the loop's own lateness
    /// does not accumulate. `delay` is added without occupying the server, unless one at a time.
    /// `number` selects every other connection.
    pub(crate) fn due(
        &mut self,
        arrival: Nanos,
        drip: Nanos,
        treatment: Treatment,
        number: u64,
    ) -> Nanos {
        match (treatment, self.faults.weak.late) {
            (Treatment::Limited(_), _) => return arrival,
            (Treatment::Late, Some(late)) => return arrival + late.after,
            _ => {}
        }
        let law = match self.faults.weak.other_delay {
            Some(other) if number % 2 == 1 => Some(other),
            _ => self.faults.delay,
        };
        let delay = sample(law, &mut self.delay);
        if self.faults.service.is_none() && !self.faults.one_at_a_time {
            let due = arrival + self.pace.work(arrival, delay);
            return self.pace.tick(arrival, due);
        }
        let service = sample(self.faults.service, &mut self.service);
        // a delay that occupies the server is work like the service
        let one_at_a_time = self.faults.one_at_a_time;
        let work = if one_at_a_time { service + delay } else { service };
        let work = self.pace.work(arrival, work);
        let Some(free) = self.free.iter_mut().min() else { return arrival };
        let start = arrival.max(*free);
        if one_at_a_time {
            let due = self.pace.tick(arrival, start + work);
            *free = due + drip;
            return due;
        }
        *free = start + work;
        let due = *free + delay;
        self.pace.tick(arrival, due)
    }

    /// Returns random bytes that begin neither like a status line nor with a line end.
    pub(crate) fn garbage(&mut self) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.garbage.next_u64().to_le_bytes());
        let mut bytes: Vec<u8> = words.take(GARBAGE_LEN / 8).flatten().collect();
        bytes[0] |= 0x80;
        bytes
    }
}

fn sample(law: Option<crate::TimeLaw>, stream: &mut Stream) -> Nanos {
    law.map_or(Nanos::ZERO, |law| law.sample(stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TimeLaw, Weaknesses};

    fn script(faults: Faults) -> Script {
        Script::new(faults, Seed(1))
    }

    fn fixed(ms: u64) -> Option<TimeLaw> {
        Some(TimeLaw::Fixed(Nanos::from_millis(ms)))
    }

    fn due_times(faults: Faults, arrivals_ms: &[u64], drip_ms: u64) -> Vec<u64> {
        let mut script = script(faults);
        let due = |ms: &u64| {
            script.due(Nanos::from_millis(*ms), Nanos::from_millis(drip_ms), Treatment::Answer, 0)
        };
        arrivals_ms.iter().map(due).map(|due| due.0 / 1_000_000).collect()
    }

    #[test]
    fn each_request_has_its_own_delay() {
        let faults = Faults { delay: fixed(10), ..Faults::default() };
        assert_eq!(due_times(faults, &[0, 1, 50], 7), [10, 11, 60]);
    }

    #[test]
    fn service_is_a_queue_in_order_of_arrival() {
        let faults = Faults { service: fixed(10), ..Faults::default() };
        assert_eq!(due_times(faults.clone(), &[0, 1, 50], 7), [10, 20, 60]);
        let both = Faults { delay: fixed(3), ..faults.clone() };
        assert_eq!(due_times(both, &[0, 1, 50], 7), [13, 23, 63]);
        let one = Faults { delay: fixed(3), one_at_a_time: true, ..faults };
        assert_eq!(due_times(one, &[0, 1, 100], 7), [13, 33, 113]);
    }

    #[test]
    fn a_delay_that_occupies_the_server_is_slowed_as_work_is() {
        let of = |weak: Weaknesses| {
            let faults =
                Faults { delay: fixed(10), one_at_a_time: true, weak, ..Faults::default() };
            due_times(faults, &[0, 1], 0)
        };
        let cold = crate::Cold { length: Nanos::from_secs(4), times: 5.0 };
        assert_eq!(of(Weaknesses { cold: Some(cold), ..Weaknesses::default() }), [50, 100]);
        let law = crate::Contention { contention: 0.5, coherency: 0.0 };
        assert_eq!(of(Weaknesses { contention: Some(law), ..Weaknesses::default() }), [10, 25]);
        let tick = Some(Nanos::from_millis(20));
        assert_eq!(of(Weaknesses { quantum: tick, ..Weaknesses::default() }), [20, 40]);
    }

    #[test]
    fn an_exponential_service_is_an_m_m_1_queue() {
        let mean = Nanos::from_millis(1);
        let faults = Faults { service: Some(TimeLaw::Exponential { mean }), ..Faults::default() };
        let mut script = script(faults);
        let mut gaps = Seed(2).stream(Purpose::Simulation, 0);
        let (mut arrival, mut total, count) = (Nanos::ZERO, 0.0, 400_000);
        for _ in 0..count {
            arrival += Nanos::from_secs_f64(gaps.exponential(0.002));
            total +=
                (script.due(arrival, Nanos::ZERO, Treatment::Answer, 0) - arrival).as_millis_f64();
        }
        // at ρ = 0.5 the mean response time is 1/(µ − λ) = 2 ms
        let mean_ms = total / f64::from(count);
        assert!((mean_ms - 2.0).abs() < 0.06, "{mean_ms}");
    }

    #[test]
    fn fates_follow_their_shares_and_the_seed() {
        let faults = Faults { error_share: 0.1, reset_share: 0.05, ..Faults::default() };
        let draw = |faults: &Faults| {
            let mut script = script(faults.clone());
            (0..20_000).map(|_| script.treatment(Nanos::ZERO)).collect::<Vec<Treatment>>()
        };
        let all = draw(&faults);
        let share =
            |treatment| all.iter().filter(|found| **found == treatment).count() as f64 / 20_000.0;
        assert!((share(Treatment::Error) - 0.095).abs() < 0.01, "{}", share(Treatment::Error));
        assert!((share(Treatment::Reset) - 0.05).abs() < 0.01, "{}", share(Treatment::Reset));
        assert_eq!(all, draw(&faults));
        let no_resets = draw(&Faults { reset_share: 0.0, ..faults });
        let errors_stay = all
            .iter()
            .zip(&no_resets)
            .all(|(with, without)| *with == Treatment::Reset || with == without);
        assert!(errors_stay);
    }

    #[test]
    fn garbage_is_not_http() {
        let mut script = script(Faults::default());
        let (first, second) = (script.garbage(), script.garbage());
        assert_eq!((first.len(), second.len()), (64, 64));
        assert_ne!(first, second);
        assert!(first[0] >= 0x80 && second[0] >= 0x80);
    }
}
