//! Executors: decide when each user begins an iteration. Computed from the options; the clock is an
//! argument.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::Nanos;

/// A linear change to `target` over `duration`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampStage {
    pub duration: Nanos,
    pub target: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Executor {
    SharedIterations { vus: u64, iterations: u64, max_duration: Nanos },
    PerVuIterations { vus: u64, iterations: u64, max_duration: Nanos },
    ConstantVus { vus: u64, duration: Nanos },
    RampingVus { start: u64, stages: Vec<RampStage>, graceful_ramp_down: Nanos },
    ConstantArrivalRate { rate: f64, unit: Nanos, duration: Nanos, pre: u64, max: u64 },
    RampingArrivalRate { start: f64, unit: Nanos, stages: Vec<RampStage>, pre: u64, max: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub name: String,
    pub executor: Executor,
    pub start: Nanos,
    pub graceful_stop: Nanos,
    pub exec: String,
    pub env: BTreeMap<String, String>,
    pub tags: Vec<(String, String)>,
}

impl Scenario {
    /// Describes the scenario in one line, as k6 prints it.
    pub fn describe(&self) -> String {
        let show = crate::duration::show;
        let graceful = || {
            let nothing = self.graceful_stop.is_zero();
            (!nothing).then(|| format!("gracefulStop: {}", show(self.graceful_stop)))
        };
        let users = |pre: u64, max: u64| match pre == max {
            true => format!("maxVUs: {pre}"),
            false => format!("maxVUs: {pre}-{max}"),
        };
        let per_s =
            |rate: f64, unit: &Nanos| format!("{:.2} iterations/s", rate / unit.as_secs_f64());
        let many = |count: u64| if count == 1 { "iteration" } else { "iterations" };
        let (text, mut more) = match &self.executor {
            Executor::SharedIterations { vus, iterations, max_duration } => (
                format!("{iterations} {} shared among {vus} VUs", many(*iterations)),
                vec![format!("maxDuration: {}", show(*max_duration))],
            ),
            Executor::PerVuIterations { vus, iterations, max_duration } => (
                format!("{iterations} iterations for each of {vus} VUs"),
                vec![format!("maxDuration: {}", show(*max_duration))],
            ),
            Executor::ConstantVus { vus, duration } => {
                (format!("{vus} looping VUs for {}", show(*duration)), Vec::new())
            }
            Executor::RampingVus { start, stages, graceful_ramp_down } => (
                format!(
                    "Up to {} looping VUs for {} over {} stages",
                    peak(*start, stages),
                    show(total(stages)),
                    stages.len()
                ),
                vec![format!("gracefulRampDown: {}", show(*graceful_ramp_down))],
            ),
            Executor::ConstantArrivalRate { rate, unit, duration, pre, max } => {
                (format!("{} for {}", per_s(*rate, unit), show(*duration)), vec![users(*pre, *max)])
            }
            Executor::RampingArrivalRate { start, unit, stages, pre, max } => {
                let most = stages.iter().fold(*start, |most, stage| most.max(stage.target));
                let text = format!(
                    "Up to {} for {} over {} stages",
                    per_s(most, unit),
                    show(total(stages)),
                    stages.len()
                );
                (text, vec![users(*pre, *max)])
            }
        };
        if self.exec != "default" {
            more.push(format!("exec: {}", self.exec));
        }
        if !self.start.is_zero() {
            more.push(format!("startTime: {}", show(self.start)));
        }
        more.extend(graceful());
        format!("{}: {text} ({})", self.name, more.join(", "))
    }
}

fn total(stages: &[RampStage]) -> Nanos {
    stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.duration)
}

fn peak(start: u64, stages: &[RampStage]) -> u64 {
    stages.iter().fold(start, |most, stage| most.max(stage.target.max(0.0) as u64))
}

impl Executor {
    /// Returns the options of an executor that a shortcut describes.
    pub(crate) fn json(&self) -> Value {
        let show = crate::duration::show;
        let mut made = match self {
            Executor::SharedIterations { vus, iterations, max_duration }
            | Executor::PerVuIterations { vus, iterations, max_duration } => {
                json!({"vus": vus, "iterations": iterations, "maxDuration": show(*max_duration)})
            }
            Executor::ConstantVus { vus, duration } => {
                json!({"vus": vus, "duration": show(*duration)})
            }
            Executor::RampingVus { start, stages, graceful_ramp_down } => {
                let stage =
                    |it: &RampStage| json!({"duration": show(it.duration), "target": it.target});
                json!({
                    "startVUs": start, "gracefulRampDown": show(*graceful_ramp_down),
                    "stages": stages.iter().map(stage).collect::<Vec<_>>(),
                })
            }
            Executor::ConstantArrivalRate { .. } | Executor::RampingArrivalRate { .. } => json!({}),
        };
        made["executor"] = json!(self.id());
        made
    }

    pub fn id(&self) -> &'static str {
        match self {
            Executor::SharedIterations { .. } => "shared-iterations",
            Executor::PerVuIterations { .. } => "per-vu-iterations",
            Executor::ConstantVus { .. } => "constant-vus",
            Executor::RampingVus { .. } => "ramping-vus",
            Executor::ConstantArrivalRate { .. } => "constant-arrival-rate",
            Executor::RampingArrivalRate { .. } => "ramping-arrival-rate",
        }
    }

    /// Returns the options of an executor, in addition to those that all executors have.
    pub(crate) fn keys(id: &str) -> &'static [&'static str] {
        match id {
            "shared-iterations" | "per-vu-iterations" => &["vus", "iterations", "maxDuration"],
            "constant-vus" => &["vus", "duration"],
            "ramping-vus" => &["startVUs", "stages", "gracefulRampDown"],
            "constant-arrival-rate" => {
                &["rate", "timeUnit", "duration", "preAllocatedVUs", "maxVUs"]
            }
            "ramping-arrival-rate" => {
                &["startRate", "timeUnit", "stages", "preAllocatedVUs", "maxVUs"]
            }
            _ => &[],
        }
    }

    /// Returns the maximum number of users that the scenario needs.
    pub fn users(&self) -> u64 {
        match self {
            Executor::SharedIterations { vus, iterations, .. } => (*vus).min(*iterations),
            Executor::PerVuIterations { vus, .. } | Executor::ConstantVus { vus, .. } => *vus,
            Executor::RampingVus { start, stages, .. } => peak(*start, stages),
            Executor::ConstantArrivalRate { pre, max, .. }
            | Executor::RampingArrivalRate { pre, max, .. } => (*max).max(*pre),
        }
    }

    /// Returns the regular length, without the graceful stop.
    pub fn length(&self) -> Nanos {
        match self {
            Executor::SharedIterations { max_duration, .. }
            | Executor::PerVuIterations { max_duration, .. } => *max_duration,
            Executor::ConstantVus { duration, .. }
            | Executor::ConstantArrivalRate { duration, .. } => *duration,
            Executor::RampingVus { stages, .. } | Executor::RampingArrivalRate { stages, .. } => {
                total(stages)
            }
        }
    }

    /// Returns the problems that make the scenario invalid, as messages for the user.
    pub fn problems(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.users() == 0 {
            all.push("it needs at least one user".to_owned());
        }
        if self.length() == Nanos::ZERO {
            all.push("its duration must be more than 0".to_owned());
        }
        match self {
            Executor::ConstantArrivalRate { rate, unit, pre, max, .. } => {
                if *rate <= 0.0 || *unit == Nanos::ZERO {
                    all.push("rate and timeUnit must be more than 0".to_owned());
                }
                if max < pre {
                    all.push("maxVUs must not be less than preAllocatedVUs".to_owned());
                }
            }
            Executor::RampingArrivalRate { pre, max, .. } if max < pre => {
                all.push("maxVUs must not be less than preAllocatedVUs".to_owned());
            }
            _ => {}
        }
        all
    }
}

/// Returns the spans in which a user of row `row` (from 0) of a ramp runs iterations.
pub fn windows(start: u64, stages: &[RampStage], row: u64) -> Vec<(Nanos, Nanos)> {
    let number = (row + 1) as f64;
    let mut level = start as f64;
    let mut since = (level >= number).then_some(Nanos::ZERO);
    let mut at = Nanos::ZERO;
    let mut all = Vec::new();
    for stage in stages {
        let target = stage.target.max(0.0).floor();
        let part = |to: f64| {
            let change = target - level;
            let share = if change.abs() < 0.5 { 0.0 } else { (to - level) / change };
            at + Nanos((stage.duration.0 as f64 * share) as u64)
        };
        if target > level && since.is_none() && target >= number {
            since = Some(part(number.max(level)));
        } else if target < level
            && target < number
            && let Some(from) = since.take()
        {
            all.push((from, part((number - 1.0).min(level))));
        }
        at += stage.duration;
        level = target;
    }
    all.extend(since.map(|from| (from, at)));
    all.retain(|(from, to)| to > from);
    all
}

/// Returns the instant of arrival `index` (from 0) after the start; `None` after the last.
pub fn arrival(executor: &Executor, index: u64) -> Option<Nanos> {
    match executor {
        Executor::ConstantArrivalRate { rate, unit, duration, .. } => {
            let at = Nanos((index as f64 * unit.0 as f64 / rate) as u64);
            // k6 also begins the iteration that is due exactly at the end
            (at <= *duration).then_some(at)
        }
        Executor::RampingArrivalRate { start, unit, stages, .. } => {
            ramped_arrival(*start / unit.as_secs_f64(), unit.as_secs_f64(), stages, index + 1)
        }
        _ => None,
    }
}

/// Returns the instant at which the integral of the rate reaches `number`.
fn ramped_arrival(start: f64, unit_s: f64, stages: &[RampStage], number: u64) -> Option<Nanos> {
    let (mut rate, mut done, mut at) = (start, 0.0, 0.0);
    let number = number as f64;
    for stage in stages {
        let (span, to) = (stage.duration.as_secs_f64(), stage.target.max(0.0) / unit_s);
        let sum = span * (rate + to) / 2.0;
        if done + sum >= number && sum > 0.0 {
            let (rest, slope) = (number - done, (to - rate) / span);
            let into = if slope.abs() < 1e-12 {
                rest / rate
            } else {
                // the smaller root of rate·t + slope·t²/2 = rest
                2.0 * rest / (rate + (rate * rate + 2.0 * slope * rest).max(0.0).sqrt())
            };
            return Some(Nanos::from_secs_f64(at + into));
        }
        (done, at, rate) = (done + sum, at + span, to);
    }
    None
}

/// State of a scenario while the test runs, shared between workers.
#[derive(Debug)]
pub struct ScenarioProgress {
    pub scenario: Scenario,
    /// Next iteration of shared iterations, and next arrival.
    claimed: AtomicU64,
    /// Number of iterations started, for numbering.
    begun: AtomicU64,
    pub dropped: AtomicU64,
    /// True once the warning about too few users was logged.
    pub has_warned: AtomicBool,
    /// Number of started users beyond those allocated.
    extra: AtomicU64,
}

/// Next action of a scenario's user; instants count from the start of the scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserTurn {
    /// An iteration begins at `at`, and is interrupted at `until`.
    Begin { at: Nanos, until: Nanos },
    /// The user checks again at that instant.
    Wait(Nanos),
    /// The scenario no longer needs the user.
    Over,
}

/// State of a user in its scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Number among the users of the scenario.
    pub row: u64,
    pub iterations: u64,
    /// True if a user beyond those allocated has been started.
    pub started: bool,
    /// An arrival reserved for this user.
    pub reserved: Option<Nanos>,
}

impl ScenarioProgress {
    pub fn new(scenario: Scenario) -> ScenarioProgress {
        let zero = || AtomicU64::new(0);
        ScenarioProgress {
            scenario,
            claimed: zero(),
            begun: zero(),
            dropped: zero(),
            has_warned: AtomicBool::new(false),
            extra: zero(),
        }
    }

    pub fn end(&self) -> Nanos {
        self.scenario.start + self.scenario.executor.length()
    }

    /// Returns the last instant at which an iteration may be running.
    pub fn hard_end(&self) -> Nanos {
        self.end() + self.scenario.graceful_stop
    }

    pub fn number_iteration(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    pub fn claimed(&self) -> u64 {
        self.claimed.load(Ordering::Relaxed)
    }

    /// Returns the next turn of a user that is idle at `now`.
    pub fn turn(&self, own: &mut Membership, now: Nanos) -> UserTurn {
        let (start, end) = (self.scenario.start, self.end());
        if now >= end && own.reserved.is_none() {
            return UserTurn::Over;
        }
        if now < start {
            return UserTurn::Wait(start);
        }
        let begin = UserTurn::Begin { at: now, until: self.hard_end() };
        match &self.scenario.executor {
            Executor::ConstantVus { .. } => begin,
            Executor::PerVuIterations { iterations, .. } => {
                if own.iterations < *iterations {
                    begin
                } else {
                    UserTurn::Over
                }
            }
            Executor::SharedIterations { iterations, .. } => {
                let claimed = self.claimed.fetch_add(1, Ordering::Relaxed);
                if claimed < *iterations { begin } else { UserTurn::Over }
            }
            Executor::RampingVus { start: level, stages, graceful_ramp_down } => {
                let all = windows(*level, stages, own.row);
                let into = now - start;
                let next = all.iter().find(|(_, to)| into < *to);
                match next {
                    None => UserTurn::Over,
                    Some((from, _)) if into < *from => UserTurn::Wait(start + *from),
                    Some((_, to)) => {
                        // at the end of the last stage the graceful stop applies
                        let last = start + *to >= end;
                        let limit =
                            if last { self.hard_end() } else { start + *to + *graceful_ramp_down };
                        let until = limit.min(self.hard_end());
                        UserTurn::Begin { at: now, until }
                    }
                }
            }
            Executor::ConstantArrivalRate { pre, .. }
            | Executor::RampingArrivalRate { pre, .. } => self.arrive(own, *pre, now),
        }
    }

    /// Assigns the next arrival to a free user. Drops arrivals that were due while no user was
    /// free.
    fn arrive(&self, own: &mut Membership, pre: u64, now: Nanos) -> UserTurn {
        let start = self.scenario.start;
        if let Some(at) = own.reserved.take_if(|at| *at <= now) {
            return UserTurn::Begin { at, until: self.hard_end() };
        }
        if own.row >= pre && !own.started {
            return self.wait_for_rate(own, pre, now);
        }
        let mut index = self.claimed.load(Ordering::Relaxed);
        loop {
            let at = arrival(&self.scenario.executor, index).map(|at| start + at);
            let next = self.claimed.compare_exchange_weak(
                index,
                index + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match (at, next) {
                (None, _) => return UserTurn::Over,
                (_, Err(other)) => index = other,
                (Some(at), Ok(_)) if at < now => {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                    index += 1;
                }
                (Some(at), Ok(_)) if at == now => {
                    return UserTurn::Begin { at, until: self.hard_end() };
                }
                (Some(at), Ok(_)) => {
                    own.reserved = Some(at);
                    return UserTurn::Wait(at);
                }
            }
        }
    }

    /// Starts a user beyond those allocated if an arrival finds no free user. As in k6, that
    /// arrival is dropped, and later ones find the new user.
    fn wait_for_rate(&self, own: &mut Membership, pre: u64, now: Nanos) -> UserTurn {
        let start = self.scenario.start;
        let index = self.claimed.load(Ordering::Relaxed);
        // users are started one at a time
        let ahead = (own.row - pre).saturating_sub(self.extra.load(Ordering::Relaxed));
        let Some(at) = arrival(&self.scenario.executor, index).map(|at| start + at) else {
            return UserTurn::Over;
        };
        if at < now && ahead == 0 {
            own.started = true;
            self.extra.fetch_add(1, Ordering::Relaxed);
            return self.arrive(own, pre, now);
        }
        let later = arrival(&self.scenario.executor, index + ahead).map(|at| start + at);
        UserTurn::Wait(later.unwrap_or(at).max(now) + Nanos::from_micros(1))
    }

    /// Returns the number of arrivals that were dropped until `now`, since the previous call.
    pub fn take_dropped(&self, now: Nanos) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed) + self.count_untaken_arrivals(now)
    }

    /// Counts arrivals due before `now` that no user has started.
    fn count_untaken_arrivals(&self, now: Nanos) -> u64 {
        let mut index = self.claimed.load(Ordering::Relaxed);
        let first = index;
        while arrival(&self.scenario.executor, index)
            .is_some_and(|at| self.scenario.start + at < now)
        {
            index += 1;
        }
        self.claimed.store(index, Ordering::Relaxed);
        index - first
    }
}

/// Scenarios of each user, in the order of their starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// By user: the scenario, and the user's number in the scenario.
    pub users: Vec<Vec<(usize, u64)>>,
}

impl Roster {
    /// Users serve several scenarios if these do not overlap.
    pub fn new(scenarios: &[Scenario]) -> Roster {
        let mut users: Vec<Vec<(usize, u64)>> = Vec::new();
        let mut busy: Vec<Nanos> = Vec::new();
        for (place, scenario) in scenarios.iter().enumerate() {
            let end = scenario.start + scenario.executor.length() + scenario.graceful_stop;
            let mut wanted = 0..scenario.executor.users();
            for (user, until) in users.iter_mut().zip(&mut busy) {
                if *until > scenario.start {
                    continue;
                }
                let Some(row) = wanted.next() else { break };
                user.push((place, row));
                *until = end;
            }
            for row in wanted {
                users.push(vec![(place, row)]);
                busy.push(end);
            }
        }
        Roster { users }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Nanos = Nanos::from_secs;

    fn stages(list: &[(u64, u64)]) -> Vec<RampStage> {
        list.iter().map(|(s, t)| RampStage { duration: S(*s), target: *t as f64 }).collect()
    }

    #[test]
    fn users_of_a_ramp_run_while_the_level_is_theirs() {
        let all = stages(&[(10, 10), (5, 10), (10, 0)]);
        assert_eq!(windows(0, &all, 0), [(S(1), S(25))]);
        assert_eq!(windows(0, &all, 9), [(S(10), S(16))]);
        assert_eq!(windows(0, &all, 10), []);
        let twice = stages(&[(0, 4), (10, 4), (0, 1), (10, 1), (0, 4), (10, 4)]);
        assert_eq!(windows(1, &twice, 3), [(S(0), S(10)), (S(20), S(30))]);
        assert_eq!(windows(1, &twice, 0), [(S(0), S(30))]);
    }

    #[test]
    fn arrivals_follow_the_rate() {
        let constant = Executor::ConstantArrivalRate {
            rate: 10.0,
            unit: S(1),
            duration: S(2),
            pre: 1,
            max: 1,
        };
        assert_eq!(arrival(&constant, 0), Some(Nanos::ZERO));
        assert_eq!(arrival(&constant, 19), Some(Nanos::from_millis(1_900)));
        assert_eq!(arrival(&constant, 20), Some(S(2)));
        assert_eq!(arrival(&constant, 21), None);
        let ramp = Executor::RampingArrivalRate {
            start: 0.0,
            unit: S(1),
            stages: stages(&[(10, 10), (10, 10)]),
            pre: 1,
            max: 1,
        };
        // 50 in the ramp, 100 after it
        assert_eq!(arrival(&ramp, 49), Some(S(10)));
        assert_eq!(arrival(&ramp, 149), Some(S(20)));
        assert_eq!(arrival(&ramp, 150), None);
    }

    fn scenario(executor: Executor, start: u64) -> Scenario {
        Scenario {
            name: "s".to_owned(),
            executor,
            start: S(start),
            graceful_stop: S(30),
            exec: "default".to_owned(),
            env: BTreeMap::new(),
            tags: Vec::new(),
        }
    }

    #[test]
    fn an_arrival_without_a_free_user_is_dropped() {
        let executor =
            Executor::ConstantArrivalRate { rate: 1.0, unit: S(1), duration: S(5), pre: 1, max: 1 };
        let progress = ScenarioProgress::new(scenario(executor, 0));
        let mut own = Membership::default();
        let begun = |at| UserTurn::Begin { at: S(at), until: S(35) };
        assert_eq!(progress.turn(&mut own, S(0)), begun(0));
        // busy until 2.5 s: the arrivals of 1 s and 2 s are lost
        assert_eq!(progress.turn(&mut own, Nanos::from_millis(2_500)), UserTurn::Wait(S(3)));
        assert_eq!(progress.turn(&mut own, S(3)), begun(3));
        assert_eq!(progress.dropped.load(Ordering::Relaxed), 2);
        assert_eq!(progress.turn(&mut own, S(6)), UserTurn::Over);
        assert_eq!(progress.take_dropped(S(6)), 4);
    }

    #[test]
    fn users_are_shared_by_scenarios_that_do_not_overlap() {
        let one = |start| scenario(Executor::ConstantVus { vus: 2, duration: S(10) }, start);
        let roster = Roster::new(&[one(0), one(5), one(50)]);
        assert_eq!(roster.users.len(), 4);
        assert_eq!(roster.users[0], [(0, 0), (2, 0)]);
        assert_eq!(roster.users[2], [(1, 0)]);
    }

    #[test]
    fn shared_iterations_are_claimed_once() {
        let executor = Executor::SharedIterations { vus: 2, iterations: 3, max_duration: S(600) };
        let progress = ScenarioProgress::new(scenario(executor, 0));
        let mut own = Membership::default();
        let begun = (0..5)
            .filter(|_| matches!(progress.turn(&mut own, S(1)), UserTurn::Begin { .. }))
            .count();
        assert_eq!(begun, 3);
    }
}
