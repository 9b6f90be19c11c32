//! Schedules of ghz: when calls fall due, and the number of workers over time.

use super::options::{Options, Schedule};
use super::setup::DAY;
use plan::stages::{Levels, Stage, StageUnit, Stages};
use plan::{Arrivals, Load, Plan};
use units::{Nanos, Rate};

/// Maximum number of listed instants.
const INSTANTS_MAX: u64 = 5_000_000;
/// Maximum number of changes of the number of workers.
const LEVELS_MAX: usize = 10_000;

/// Rates in sequence, each from its start on.
#[derive(Debug)]
struct Rates {
    start: f64,
    step: f64,
    step_duration: Nanos,
    /// From this instant on the rate is `end`.
    constant_from: Nanos,
    end: f64,
}

impl Rates {
    fn new(schedule: &Schedule) -> Rates {
        let start = schedule.start as f64;
        let step = schedule.step as f64;
        let step_duration = schedule.step_length();
        let steps_until = |at: Nanos| (at.0 / step_duration.0.max(1)) as f64;
        let end = schedule.end as f64;
        let (constant_from, end) = match (schedule.max_duration.is_zero(), schedule.end) {
            (false, 0) => {
                let until = schedule.max_duration;
                (until, (start + step * steps_until(until)).max(0.0))
            }
            (false, _) => (schedule.max_duration, end),
            (true, 0) => (Nanos::NEVER, 0.0),
            (true, _) => {
                // the first step that passes the end
                let steps = ((end - start) / step).floor() + 1.0;
                (step_duration * (steps.max(0.0) as u64), end)
            }
        };
        Rates { start, step, step_duration, constant_from, end }
    }

    /// Returns the rate at `at`, and when it changes.
    fn at(&self, at: Nanos) -> (f64, Nanos) {
        if at >= self.constant_from {
            return (self.end, Nanos::NEVER);
        }
        let steps = at.0 / self.step_duration.0.max(1);
        let until = self.step_duration * (steps + 1);
        ((self.start + self.step * steps as f64).max(0.0), until.min(self.constant_from))
    }

    /// Returns the due instants of calls: call k is due when k + 1 have accumulated.
    fn instants(&self, most: u64, limit: Nanos) -> Vec<Nanos> {
        let mut due = Vec::new();
        let mut at = Nanos::ZERO;
        // part of the next call that has accumulated
        let mut part = 0.0;
        while (due.len() as u64) < most && at < limit {
            let (rate, until) = self.at(at);
            if rate <= 0.0 && until == Nanos::NEVER {
                break;
            }
            let wait = if rate > 0.0 { (1.0 - part) / rate * 1e9 } else { f64::INFINITY };
            let room = if until == Nanos::NEVER { f64::INFINITY } else { (until - at).0 as f64 };
            if wait > room {
                part += rate * room / 1e9;
                at = until;
                if rate <= 0.0 && self.step <= 0.0 {
                    break;
                }
                continue;
            }
            at += Nanos(wait.round() as u64);
            part = 0.0;
            due.push(at);
        }
        due.retain(|due| *due < limit);
        due
    }
}

/// Checks the schedules as ghz does.
///
/// # Errors
/// Fails with ghz's message.
pub(super) fn check(options: &Options) -> Result<(), String> {
    let Options { load, workers, .. } = options;
    if !load.changes() && load.kind != "const" {
        return Err("schedule much be \"const\", \"step\", or \"line\"".to_owned());
    }
    if load.changes() {
        if load.start == load.end {
            return Err("load start cannot equal load end".to_owned());
        }
        if load.step == 0 {
            return Err("invalid load step".to_owned());
        }
        if load.kind == "step" && load.step_duration.is_zero() {
            return Err("invalid load step duration".to_owned());
        }
        if load.start == 0 {
            return Err("--load-start 0: there is no first call; give 1 or more".to_owned());
        }
    }
    if workers.changes() {
        if workers.start == workers.end {
            return Err("concurrency start start cannot equal concurrency end".to_owned());
        }
        if workers.step == 0 {
            return Err("invalid concurrency step".to_owned());
        }
        if workers.kind == "step" && workers.step_duration.is_zero() {
            return Err("invalid concurrency step duration".to_owned());
        }
    }
    Ok(())
}

/// Returns the due instants of an open load; `None` if calls follow responses.
///
/// # Errors
/// Fails for a schedule without an end, or with too many calls.
pub(super) fn arrivals(options: &Options, total: Option<u64>) -> Result<Option<Arrivals>, String> {
    let limit = options.time_limit();
    let limit = if limit.is_zero() { Nanos::NEVER } else { limit };
    let wanted = total.unwrap_or(u64::MAX);
    // one more shows that the list is not complete
    let most = wanted.min(INSTANTS_MAX + 1);
    let instants: Vec<Nanos> = match (options.load.kind.as_str(), options.rps) {
        ("const", 0) if !options.is_async => return Ok(None),
        ("const", 0) if total.is_some_and(|total| total <= INSTANTS_MAX) => {
            vec![Nanos::ZERO; most as usize]
        }
        ("const", 0) => {
            return Err("--async without --rps sends everything at once: give --total".to_owned());
        }
        ("const", rate) => {
            let interval = Nanos((1e9 / rate as f64) as u64);
            if wanted.min(limit.0 / interval.0.max(1)) > INSTANTS_MAX {
                // the same instants without a list, one interval earlier
                return Ok(Some(Arrivals::constant(Rate(rate as f64))));
            }
            let due = (1..=most).map(|index| interval * index);
            due.take_while(|due| *due < limit).collect()
        }
        (kind, _) => {
            let due = Rates::new(&options.load).instants(most, limit);
            if due.len() as u64 > INSTANTS_MAX {
                return Err(format!(
                    "--load-schedule {kind}: more than {INSTANTS_MAX} calls fall due, the maximum \
                     of a schedule; lower --total or --duration, or use loadstone run --stages"
                ));
            }
            due
        }
    };
    if instants.is_empty() {
        return Err("no call falls due by this schedule".to_owned());
    }
    let last = instants.last().copied().unwrap_or_default().as_secs_f64();
    let rate = (instants.len() as f64 / last.max(1e-3)).clamp(1e-3, 1e7);
    let mut arrivals = Arrivals::constant(Rate(rate));
    arrivals.at = Some(instants.into());
    Ok(Some(arrivals))
}

/// Numbers of workers with the time that each lasts.
fn levels(schedule: &Schedule, limit: Nanos) -> Vec<(Nanos, i64)> {
    let each = schedule.step_length();
    let up = schedule.step > 0;
    let end = i64::try_from(schedule.end).unwrap_or(i64::MAX);
    let mut count = i64::try_from(schedule.start).unwrap_or(i64::MAX);
    let mut levels = Vec::new();
    let mut at = Nanos::ZERO;
    while levels.len() < LEVELS_MAX && (limit.is_zero() || at < limit) {
        levels.push((each, count));
        at += each;
        let bounded = !schedule.max_duration.is_zero();
        if bounded && at >= schedule.max_duration {
            let reached = if up { end >= count } else { end <= count };
            count = if end > 0 && reached { end } else { count };
            break;
        }
        let passed = if up { end > 0 && count >= end } else { count <= end };
        if !bounded && passed {
            break;
        }
        count = (count + schedule.step).max(0);
    }
    // the last number of workers stays
    levels.push((DAY, count));
    levels
}

/// Sets the number of users of a closed load to that of the workers.
///
/// # Errors
/// Fails for numbers that no plan can have.
pub(super) fn set_workers(options: &Options, plan: &mut Plan) -> Result<(), String> {
    let levels = levels(&options.workers, options.time_limit());
    let stage = |(over, count): (Nanos, i64)| {
        let level = count as f64;
        Stage { over, from: level, to: level }
    };
    let stages: Vec<Stage> = levels.into_iter().map(stage).collect();
    let levels = Levels::new(&stages).map_err(|why| format!("--concurrency-schedule: {why}"))?;
    let stages = Stages { unit: StageUnit::Users, levels };
    let stop = (plan.stop.requests, plan.stop.duration);
    plan.set_stages(stages);
    (plan.stop.requests, plan.stop.duration) = stop;
    if let Load::Closed { users, .. } = &mut plan.load {
        *users = (*users).max(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(
        kind: &str,
        start: u64,
        end: u64,
        step: i64,
        each_ms: u64,
        max_ms: u64,
    ) -> Schedule {
        Schedule {
            kind: kind.to_owned(),
            start,
            end,
            step,
            step_duration: Nanos::from_millis(each_ms),
            max_duration: Nanos::from_millis(max_ms),
        }
    }

    fn counts(schedule: &Schedule, most: u64) -> Vec<usize> {
        let due = Rates::new(schedule).instants(most, Nanos::from_secs(60));
        let within = |from: u64| {
            let span = Nanos::from_millis(from)..Nanos::from_millis(from + 100);
            due.iter().filter(|at| span.contains(at)).count()
        };
        (0..6).map(|tenth| within(tenth * 100)).collect()
    }

    #[test]
    fn rates_step_to_their_end_and_stay() {
        // 50/s, 100/s and 150/s for 100 ms each, then 150/s
        let up = schedule("step", 50, 150, 50, 100, 0);
        assert_eq!(counts(&up, 60), [4, 10, 15, 15, 15, 1]);
        let down = schedule("step", 150, 50, -50, 100, 0);
        assert_eq!(counts(&down, 40), [14, 10, 5, 5, 5, 1]);
        let bounded = schedule("step", 50, 0, 50, 100, 200);
        assert_eq!(counts(&bounded, 60)[..4], [4, 10, 15, 15]);
    }

    #[test]
    fn workers_step_to_their_end() {
        let counts = |schedule: &Schedule| {
            let levels = levels(schedule, Nanos::ZERO);
            levels.into_iter().map(|(_, count)| count).collect::<Vec<_>>()
        };
        assert_eq!(counts(&schedule("step", 1, 4, 1, 50, 0)), [1, 2, 3, 4, 4]);
        assert_eq!(counts(&schedule("step", 4, 1, -1, 50, 0)), [4, 3, 2, 1, 1]);
        assert_eq!(counts(&schedule("step", 1, 9, 2, 50, 100)), [1, 3, 9]);
        assert_eq!(counts(&schedule("step", 1, 0, 2, 50, 200)), [1, 3, 5, 7, 7]);
        assert_eq!(counts(&schedule("step", 1, 0, 1, 50, 0)).len(), LEVELS_MAX + 1);
    }
}
