//! Results of the requests of a load, and whether a server sustains a rate.

use crate::pressure::SLOW_FEW;
use torture::beside::quantile;
use units::Nanos;

/// A server sustains a rate if it serves this share of it in time during the step.
const FOLLOWED: f64 = 0.95;
/// The first share of a step is not counted, because connections are being opened.
const SETTLING: f64 = 0.25;
/// Delay by which a request is sent late because of us. If more than this share of a step is late,
/// unserved requests show nothing. Good results on a busy machine still count.
const LATE_MAX: Nanos = Nanos::from_millis(50);
const LATE_SHARE: f64 = 0.05;
/// Requests that are not sent because no connection is free are due to our limit if responses take
/// less than this multiple of their time on the idle server, or at most this much longer.
const AS_QUICK_FACTOR: u64 = 3;
const AS_QUICK_MORE: Nanos = Nanos::from_millis(5);

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Right,
    /// 503 or 429.
    Shed,
    /// Any other response: a status of 500 or above, or an unusual one.
    Fault,
    Wrong,
    /// A truncated response, a close without a byte, a reset, or a refused connection.
    Short,
    Closed,
    Reset,
    Refused,
    /// No response in time.
    Silent,
    /// Not sent, because too many were outstanding, or a connection beyond the limit per second was
    /// needed.
    Unsent,
    Unopened,
    /// Stopped by us, or not started by us.
    Ours,
}

/// A request of a load. Instants count from the start of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadedCall {
    pub(crate) route: usize,
    pub(crate) due: Nanos,
    /// Delay of sending because of us.
    pub(crate) late: Nanos,
    /// Time from the due instant until the outcome was known.
    pub(crate) over: Nanos,
    pub(crate) met: Met,
}

/// Summary of an interval of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LoadStep {
    pub(crate) span: Nanos,
    /// Requests due in the interval, and their results at any time.
    pub(crate) due: u64,
    pub(crate) right: u64,
    pub(crate) shed: u64,
    pub(crate) unsent: u64,
    /// Unsent requests that needed a new connection.
    pub(crate) unopened: u64,
    /// Requests with an unusual response, or without one.
    pub(crate) lost: u64,
    /// Correct responses received within the interval.
    pub(crate) served: u64,
    /// Requests that were not sent in time because of us.
    pub(crate) late: u64,
    /// Percentiles of the correct responses.
    pub(crate) p50: Nanos,
    pub(crate) p99: Nanos,
}

impl LoadStep {
    /// Summarizes the requests of a route due in an interval.
    pub(crate) fn new(calls: &[LoadedCall], route: usize, from: Nanos, until: Nanos) -> LoadStep {
        let from = from + Nanos::from_secs_f64((until - from).as_secs_f64() * SETTLING);
        let within = |at: Nanos| at >= from && at < until;
        let mut step = LoadStep { span: until - from, ..LoadStep::default() };
        let mut times = Vec::new();
        for call in calls.iter().filter(|call| call.route == route) {
            step.served += u64::from(call.met == Met::Right && within(call.due + call.over));
            if !within(call.due) {
                continue;
            }
            step.due += 1;
            step.late += u64::from(call.late > LATE_MAX || call.met == Met::Ours);
            match call.met {
                Met::Right => {
                    step.right += 1;
                    times.push(call.over);
                }
                Met::Shed => step.shed += 1,
                Met::Unsent => step.unsent += 1,
                Met::Unopened => {
                    step.unsent += 1;
                    step.unopened += 1;
                }
                _ => step.lost += 1,
            }
        }
        times.sort_unstable();
        step.p50 = quantile(&times, 0.5);
        step.p99 = quantile(&times, 0.99);
        step
    }

    /// Returns correct responses per second.
    pub(crate) fn goodput(&self) -> f64 {
        per_second(self.served, self.span)
    }

    /// Returns due requests per second.
    pub(crate) fn offered(&self) -> f64 {
        per_second(self.due, self.span)
    }

    /// Returns the share of due requests, 0 to 1.
    pub(crate) fn share(&self, count: u64) -> f64 {
        if self.due == 0 { 0.0 } else { count as f64 / self.due as f64 }
    }

    /// Returns whether the server served the offered rate. Requests at the edge of the interval
    /// count on either side.
    pub(crate) fn is_followed(&self) -> bool {
        (self.served + 1) as f64 >= self.due as f64 * FOLLOWED
    }

    /// Returns how many requests were sent late because of us.
    pub(crate) fn lateness(&self) -> Option<String> {
        let ours = self.late >= SLOW_FEW as u64 && self.share(self.late) > LATE_SHARE;
        let late = || units::show::share(self.share(self.late));
        ours.then(|| format!("{} of the requests were sent late", late()))
    }

    /// Returns the option whose limit prevented requests although the server is as fast as when
    /// idle. `most`: maximum number of outstanding requests. At that maximum, each request takes
    /// their number divided by the rate of responses (Little's law), however fast the fastest are.
    pub(crate) fn limiting_option(&self, quiet: Nanos, most: usize) -> Option<&'static str> {
        let quick = (quiet * AS_QUICK_FACTOR).max(quiet + AS_QUICK_MORE);
        let enough = self.right >= SLOW_FEW as u64;
        if self.unsent == 0 || !enough || self.share(self.right + self.unsent) < FOLLOWED {
            return None;
        }
        let each = Nanos::from_secs_f64(most as f64 / self.goodput().max(f64::MIN_POSITIVE));
        match self.unopened * 2 >= self.unsent {
            true => (self.p50 <= quick).then_some("--rate-max"),
            false => (each <= quick).then_some("--connections-max"),
        }
    }
}

fn per_second(count: u64, span: Nanos) -> f64 {
    let span = span.as_secs_f64();
    if span > 0.0 { count as f64 / span } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Nanos {
        Nanos::from_millis(count)
    }

    /// Returns a call every 10 ms for a second, each with this outcome after `over` ms.
    fn calls(met: Met, over: u64) -> Vec<LoadedCall> {
        let one = |n: u64| LoadedCall {
            route: 0,
            due: ms(n * 10),
            late: Nanos::ZERO,
            over: ms(over),
            met,
        };
        (0..100).map(one).collect()
    }

    fn step(calls: &[LoadedCall]) -> LoadStep {
        LoadStep::new(calls, 0, Nanos::ZERO, Nanos::SECOND)
    }

    #[test]
    fn a_step_excludes_its_start_and_counts_served_requests() {
        let quick = step(&calls(Met::Right, 5));
        assert_eq!((quick.due, quick.right, quick.served), (75, 75, 75));
        assert!(quick.is_followed() && quick.lateness().is_none());
        assert_eq!((quick.offered(), quick.goodput()), (100.0, 100.0));
        assert_eq!(quick.p99, ms(5));
        // each gets a response, but a queue grows: at twice the capacity
        let mut queue = calls(Met::Right, 0);
        for (n, call) in queue.iter_mut().enumerate() {
            call.over = ms(n as u64 * 10);
        }
        let queue = step(&queue);
        assert_eq!((queue.right, queue.served), (75, 37));
        assert!(!queue.is_followed());
    }

    #[test]
    fn unserved_requests_are_distinguished() {
        let mut mixed = calls(Met::Right, 5);
        for (n, call) in mixed.iter_mut().enumerate() {
            call.met = [Met::Right, Met::Shed, Met::Unsent, Met::Silent][n % 4];
        }
        let mixed = step(&mixed);
        assert_eq!((mixed.right, mixed.shed, mixed.unsent, mixed.lost), (18, 19, 19, 19));
        assert_eq!(mixed.limiting_option(ms(5), 1), None);
    }

    #[test]
    fn unsent_requests_are_attributed() {
        let mut late = calls(Met::Right, 5);
        late.iter_mut().skip(90).for_each(|call| call.late = ms(51));
        assert!(step(&late).lateness().is_some());
        late.iter_mut().skip(93).for_each(|call| call.late = ms(50));
        assert_eq!(step(&late).lateness(), None);
        let half = |met| {
            let mut calls = calls(Met::Right, 10);
            calls.iter_mut().step_by(2).for_each(|call| call.met = met);
            step(&calls)
        };
        let unsent = half(Met::Unsent);
        // fifty per second on one connection: each takes twenty milliseconds
        assert_eq!(unsent.limiting_option(ms(7), 1), Some("--connections-max"));
        assert_eq!(unsent.limiting_option(ms(6), 1), None);
        // of two hundred, the others wait longer than the served ones
        assert_eq!(unsent.limiting_option(ms(7), 200), None);
        let unopened = half(Met::Unopened);
        assert_eq!(unopened.limiting_option(ms(5), 200), Some("--rate-max"));
        assert_eq!(unopened.limiting_option(ms(2), 200), None);
        // without responses all wait, however fast it was before
        assert_eq!(step(&calls(Met::Unsent, 0)).limiting_option(ms(5), 1), None);
    }
}
