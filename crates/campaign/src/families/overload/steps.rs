//! What became of the requests of a load, and whether a server follows a rate.

use crate::pressure::SLOW_FEW;
use torture::beside::quantile;
use units::Nanos;

/// A server follows a rate when it answers this share of it in time, while it is offered.
const FOLLOWED: f64 = 0.95;
/// The beginning of a step, as a share of it, is not counted: connections are opened then.
const SETTLING: f64 = 0.25;
/// Requests that were sent so much late for our own fault: more than this share of a step, and what
/// was not served says nothing. Whoever is served well by a machine that is too busy is served well.
const LATE_MAX: Nanos = Nanos::from_millis(50);
const LATE_SHARE: f64 = 0.05;
/// What we did not send for want of connections is our bound, where responses take less than so many
/// times what they take on the quiet server, or this much more.
const AS_QUICK_FACTOR: u64 = 3;
const AS_QUICK_MORE: Nanos = Nanos::from_millis(5);

/// What a request met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Right,
    /// 503 or 429.
    Shed,
    /// Another response with a status from 500 on; any other than a plain GET gets.
    Fault,
    Wrong,
    /// The beginning of a response; an end without a byte; a reset; nobody listened.
    Short,
    Closed,
    Reset,
    Refused,
    /// No response in time.
    Silent,
    /// Too many waited: it was not sent; or it needed a connection, and no more may be opened in a
    /// second.
    Unsent,
    Unopened,
    /// We ended it, or could not begin it.
    Ours,
}

/// A request of a load. Instants count from the load's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadedCall {
    pub(crate) route: usize,
    pub(crate) due: Nanos,
    /// How much later it was sent, for our own fault.
    pub(crate) late: Nanos,
    /// From when it was due until its outcome was known.
    pub(crate) over: Nanos,
    pub(crate) met: Met,
}

/// A span of a load, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LoadStep {
    pub(crate) span: Nanos,
    /// Requests that fell due in the span, and what became of them whenever that was.
    pub(crate) due: u64,
    pub(crate) right: u64,
    pub(crate) shed: u64,
    pub(crate) unsent: u64,
    /// Those of them that wanted a new connection.
    pub(crate) unopened: u64,
    /// Answered otherwise, or not.
    pub(crate) lost: u64,
    /// Right responses that came within the span.
    pub(crate) served: u64,
    /// Those that could not be sent in time for our own fault.
    pub(crate) late: u64,
    /// Of the right ones.
    pub(crate) p50: Nanos,
    pub(crate) p99: Nanos,
}

impl LoadStep {
    /// Requests of a route that fell due in a span, by its beginning and end.
    pub(crate) fn of(calls: &[LoadedCall], route: usize, from: Nanos, until: Nanos) -> LoadStep {
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

    /// Right responses a second.
    pub(crate) fn goodput(&self) -> f64 {
        per_second(self.served, self.span)
    }

    /// Requests a second that fell due.
    pub(crate) fn offered(&self) -> f64 {
        per_second(self.due, self.span)
    }

    /// Share of what fell due, 0 to 1.
    pub(crate) fn share(&self, count: u64) -> f64 {
        if self.due == 0 { 0.0 } else { count as f64 / self.due as f64 }
    }

    /// It answered what was offered. One at the edge of the span belongs to either side.
    pub(crate) fn is_followed(&self) -> bool {
        (self.served + 1) as f64 >= self.due as f64 * FOLLOWED
    }

    /// Requests did not go out as they should, and that was our fault: how many.
    pub(crate) fn lateness(&self) -> Option<String> {
        let ours = self.late >= SLOW_FEW as u64 && self.share(self.late) > LATE_SHARE;
        let late = || units::show::share(self.share(self.late));
        ours.then(|| format!("{} of the requests were sent late", late()))
    }

    /// Requests were not sent though the server is as quick as when it is quiet: the option whose
    /// bound it was. `most`: requests that may be under way at once. Where that many are, each takes
    /// their number over the rate at which they are answered (Little's law), however quick the
    /// quickest are.
    pub(crate) fn is_for_want_of(&self, quiet: Nanos, most: usize) -> Option<&'static str> {
        let quick = (quiet * AS_QUICK_FACTOR).max(quiet + AS_QUICK_MORE);
        let told = self.right >= SLOW_FEW as u64;
        if self.unsent == 0 || !told || self.share(self.right + self.unsent) < FOLLOWED {
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

    /// One each 10 ms for a second, answered after `over`.
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
        LoadStep::of(calls, 0, Nanos::ZERO, Nanos::SECOND)
    }

    #[test]
    fn a_step_counts_after_its_start_and_what_was_served_meanwhile() {
        let quick = step(&calls(Met::Right, 5));
        assert_eq!((quick.due, quick.right, quick.served), (75, 75, 75));
        assert!(quick.is_followed() && quick.lateness().is_none());
        assert_eq!((quick.offered(), quick.goodput()), (100.0, 100.0));
        assert_eq!(quick.p99, ms(5));
        // each is answered, and a queue grows all the same: at twice what is served
        let mut queue = calls(Met::Right, 0);
        for (n, call) in queue.iter_mut().enumerate() {
            call.over = ms(n as u64 * 10);
        }
        let queue = step(&queue);
        assert_eq!((queue.right, queue.served), (75, 37));
        assert!(!queue.is_followed());
    }

    #[test]
    fn what_was_not_served_is_told_apart() {
        let mut mixed = calls(Met::Right, 5);
        for (n, call) in mixed.iter_mut().enumerate() {
            call.met = [Met::Right, Met::Shed, Met::Unsent, Met::Silent][n % 4];
        }
        let mixed = step(&mixed);
        assert_eq!((mixed.right, mixed.shed, mixed.unsent, mixed.lost), (18, 19, 19, 19));
        assert_eq!(mixed.is_for_want_of(ms(5), 1), None);
    }

    #[test]
    fn whose_fault_it_was() {
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
        // fifty a second of one connection: each takes twenty milliseconds
        assert_eq!(unsent.is_for_want_of(ms(7), 1), Some("--connections-max"));
        assert_eq!(unsent.is_for_want_of(ms(6), 1), None);
        // of two hundred, the others wait longer than those that are answered
        assert_eq!(unsent.is_for_want_of(ms(7), 200), None);
        let unopened = half(Met::Unopened);
        assert_eq!(unopened.is_for_want_of(ms(5), 200), Some("--rate-max"));
        assert_eq!(unopened.is_for_want_of(ms(2), 200), None);
        // where nothing is answered all wait, however quick it was before
        assert_eq!(step(&calls(Met::Unsent, 0)).is_for_want_of(ms(5), 1), None);
    }
}
