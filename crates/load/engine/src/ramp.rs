//! The loads that a ramp tries, and their order: a state machine without I/O that returns the next
//! step and receives its result. The steps themselves are ordinary runs.
//!
//! Order of the phases: the way up (given levels, or doubled until the server cannot keep up and
//! then filled in) or the search; the way down; overload; recovery.

mod left;
mod levels;

#[cfg(test)]
mod tests;

pub use left::StepsLeft;
pub use levels::{Staircase, geometric, linear};

use stats::Objective;
use stats::curve::{
    Axis, Curve, Next, Point, Purpose, Search, SearchConfig, Trial, TrialEnd, curve,
    inconclusive_reason,
};
use std::collections::VecDeque;
use units::{Nanos, Seed};

/// Maximum number of steps of one target.
pub const STEPS_MAX: usize = 1_000;

/// Multiples of the knee, or of the capacity, that are tried as overload: WebMark's overload and
/// twice the load.
pub const OVERLOAD_FACTORS: [f64; 4] = [1.0, 1.1, 1.5, 2.0];

/// Load of the recovery after an overload, as a share of the knee.
pub const POLITE_SHARE: f64 = 0.2;

/// Maximum number of halvings if even the first level is too much.
const HALVINGS_MAX: u32 = 10;

/// Number of levels added between the last one that the server sustained and the first that it did
/// not.
const FILL_IN: usize = 5;

/// Consecutive levels that the server cannot keep up with, or that the client limits, before the
/// doubling ends.
const ENDS_AFTER: usize = 2;

/// Populations: the knee is passed if twice the users increase throughput by less than this.
const GAIN_MIN: f64 = 1.10;

/// Levels of the way up.
#[derive(Clone, Debug, PartialEq)]
pub enum Range {
    /// Exactly these levels.
    Given(Vec<f64>),
    /// Starts at this level, doubles until the knee is passed, at most up to `to`.
    Automatic { from: f64, to: f64 },
}

/// Settings of a ramp for one target.
#[derive(Clone, Debug)]
pub struct Course {
    pub axis: Axis,
    pub range: Range,
    /// Runs of each level of the way up and down, at least 1.
    pub repeat: u32,
    /// Seed for a random order of the levels of a given way up.
    pub shuffle: Option<u64>,
    /// True if the same levels run again on the way down.
    pub down: bool,
    /// Overload past the knee, and the recovery after it, are tried.
    pub overload: bool,
    /// Objectives for a search for the capacity, which replaces the staircase.
    pub find: Option<SearchConfig>,
    pub objectives: Vec<Objective>,
    /// Length of a step.
    pub hold: Nanos,
    /// Factor on the length of a step that confirms a capacity.
    pub confirm_factor: u32,
    /// Time for which the recovery is watched.
    pub recovery_max: Nanos,
}

/// A planned step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedStep {
    pub purpose: Purpose,
    /// Calls per second, or a whole number of users.
    pub level: f64,
    /// Number from 0 among the steps of the same purpose and level.
    pub repeat: u32,
    pub hold: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    /// Doubling, or halving down to a level that the server keeps up with.
    Double,
    Halve,
    FillIn,
    Given,
    Search,
    Down,
    Overload,
    Recovery,
    Done,
}

/// Order of one target's steps.
#[derive(Debug)]
pub struct Agenda {
    course: Course,
    phase: Phase,
    queue: VecDeque<PlannedStep>,
    done: Vec<(Purpose, Point)>,
    search: Option<Search>,
    /// The search's current trial.
    trial: Option<Trial>,
    given_out: usize,
    /// The last level that was returned on the way up.
    last_up: Option<f64>,
}

impl Agenda {
    pub fn new(course: Course) -> Agenda {
        let search = course.find.clone().map(Search::new);
        Agenda {
            course,
            phase: Phase::Begin,
            queue: VecDeque::new(),
            done: Vec::new(),
            search,
            trial: None,
            given_out: 0,
            last_up: None,
        }
    }

    /// Returns the next step; its result goes to [`Agenda::record`]. `None` if there is no further
    /// step.
    pub fn next_step(&mut self) -> Option<PlannedStep> {
        loop {
            if self.given_out >= STEPS_MAX || self.unusable().is_some() {
                return None;
            }
            if let Some(planned) = self.queue.pop_front() {
                self.given_out += 1;
                if planned.purpose == Purpose::Up {
                    self.last_up = Some(planned.level);
                }
                return Some(planned);
            }
            if self.phase == Phase::Done {
                return None;
            }
            self.advance();
        }
    }

    /// Records the result of the last step.
    pub fn record(&mut self, planned: &PlannedStep, point: Point) {
        self.done.push((planned.purpose, point));
        if let (Some(search), Some(trial)) = (self.search.as_mut(), self.trial.take()) {
            let end = match (point.client_limited, point.met) {
                (true, _) => TrialEnd::ClientLimited,
                (false, Some(true)) => TrialEnd::Met,
                (false, _) => TrialEnd::Missed,
            };
            search.record_end(trial, end);
        }
    }

    /// Returns why the ramp ends early: too few of its steps are usable for a conclusion.
    pub fn unusable(&self) -> Option<String> {
        inconclusive_reason(self.done.iter().map(|(purpose, point)| (*purpose, point)))
    }

    /// Returns the number of steps, if the whole course is known.
    pub fn known_length(&self) -> Option<usize> {
        let Range::Given(levels) = &self.course.range else { return None };
        if self.course.find.is_some() {
            return None;
        }
        let passes = if self.course.down { 2 } else { 1 };
        let beyond = if self.course.overload { OVERLOAD_FACTORS.len() + 1 } else { 0 };
        Some(levels.len() * self.course.repeat as usize * passes + beyond)
    }

    /// Returns the maximum number of steps of a search, and their total time; `None` without one.
    pub fn longest_search(&self) -> Option<(usize, Nanos)> {
        let steps = self.course.find.as_ref()?.trials_max;
        let long = self.course.hold.0.saturating_mul(u64::from(self.course.confirm_factor));
        Some((steps, Nanos(long.saturating_mul(steps as u64))))
    }

    /// Returns the result of all steps so far.
    pub fn curve(&self) -> Curve {
        let mut found = curve(&self.done, self.course.axis, &self.course.objectives);
        if let Some(capacity) = self.search.as_ref().and_then(Search::capacity) {
            found.capacity = Some(capacity);
        }
        found
    }

    fn advance(&mut self) {
        match self.phase {
            Phase::Begin if self.search.is_some() => self.phase = Phase::Search,
            Phase::Begin => self.begin(),
            Phase::Double => self.double(),
            Phase::Halve => self.halve(),
            Phase::Search => self.continue_search(),
            Phase::FillIn | Phase::Given => self.begin_descent(),
            Phase::Down => self.begin_overload(),
            Phase::Overload => self.recover(),
            Phase::Recovery => self.phase = Phase::Done,
            Phase::Done => {}
        }
    }

    fn begin(&mut self) {
        match &self.course.range {
            Range::Automatic { from, .. } => {
                let from = *from;
                self.phase = Phase::Double;
                self.queue_level(Purpose::Up, from);
            }
            Range::Given(levels) => {
                let levels = levels.clone();
                self.phase = Phase::Given;
                levels.into_iter().for_each(|level| self.queue_level(Purpose::Up, level));
                if let Some(seed) = self.course.shuffle {
                    shuffle(self.queue.make_contiguous(), seed);
                }
            }
        }
    }

    /// Queues all repeats of a level.
    fn queue_level(&mut self, purpose: Purpose, level: f64) {
        let level = self.whole(level);
        let hold = self.course.hold;
        for repeat in 0..self.course.repeat.max(1) {
            self.queue.push_back(PlannedStep { purpose, level, repeat, hold });
        }
    }

    /// Rounds to whole users, at least one.
    fn whole(&self, level: f64) -> f64 {
        match self.course.axis {
            Axis::Rate | Axis::Loss | Axis::RoundTrip | Axis::LinkRate => level,
            Axis::Population => level.round().max(1.0),
        }
    }

    /// Rounds a load chosen by the program to four digits.
    fn round(&self, level: f64) -> f64 {
        let unit = 10f64.powf(level.log10().floor() - 3.0);
        let rounded = (level / unit).round() * unit;
        // a multiple of a unit below 1 is not exact in binary; its text is
        self.whole(format!("{rounded:.9}").parse().unwrap_or(level))
    }

    fn double(&mut self) {
        let Range::Automatic { to, .. } = self.course.range else { return self.begin_descent() };
        let up = self.way_up();
        let Some(last) = up.last().map(|level| level.at) else { return self.begin_descent() };
        let bad = up.iter().rev().take_while(|level| !level.follows).count();
        let limited = up.iter().rev().take_while(|level| level.limited).count();
        if bad == up.len() && bad == 1 {
            self.phase = Phase::Halve;
            return;
        }
        if bad >= ENDS_AFTER || limited >= ENDS_AFTER || last >= to {
            return self.fill_in();
        }
        self.queue_level(Purpose::Up, (last * 2.0).min(to));
    }

    /// Continues below the first level, which was too much.
    fn halve(&mut self) {
        let up = self.way_up();
        let Some(lowest) = up.first().filter(|_| up.len() <= HALVINGS_MAX as usize) else {
            return self.begin_descent();
        };
        let half = self.whole(lowest.at / 2.0);
        if lowest.follows || lowest.limited || half >= lowest.at {
            return self.fill_in();
        }
        self.queue_level(Purpose::Up, half);
    }

    /// Adds levels between the last one that the server sustained and the first that it did not.
    fn fill_in(&mut self) {
        self.phase = Phase::FillIn;
        let up = self.way_up();
        let Some(first_bad) = up.iter().position(|level| !level.follows && !level.limited) else {
            return;
        };
        let bad = up[first_bad].at;
        let Some(good) = up[..first_bad].last().map(|level| level.at) else { return };
        let ratio = (bad / good).powf(1.0 / (FILL_IN + 1) as f64);
        let mut before = good;
        for index in 1..=FILL_IN {
            let level = self.round(good * ratio.powi(index as i32));
            if level > before && level < bad {
                self.queue_level(Purpose::Up, level);
                before = level;
            }
        }
    }

    fn begin_descent(&mut self) {
        self.phase = Phase::Down;
        if !self.course.down {
            return;
        }
        let levels: Vec<f64> = self.way_up().iter().rev().map(|level| level.at).collect();
        levels.into_iter().for_each(|level| self.queue_level(Purpose::Down, level));
    }

    fn begin_overload(&mut self) {
        self.phase = Phase::Overload;
        if !self.course.overload {
            self.phase = Phase::Done;
            return;
        }
        let Some(base) = self.base() else {
            self.phase = Phase::Done;
            return;
        };
        let hold = self.course.hold;
        for factor in OVERLOAD_FACTORS {
            let level = self.round(base * factor);
            self.queue.push_back(PlannedStep {
                purpose: Purpose::Overload,
                level,
                repeat: 0,
                hold,
            });
        }
    }

    /// Returns the reference load for overload: the knee, or the capacity found by the search.
    fn base(&self) -> Option<f64> {
        let found = self.curve();
        let knee = found.knee.map(|knee| knee.at.at);
        let capacity = found.capacity.map(|capacity| capacity.at.at);
        let of = if self.search.is_some() { capacity.or(knee) } else { knee };
        of.filter(|level| level.is_finite() && *level > 0.0)
    }

    fn recover(&mut self) {
        self.phase = Phase::Recovery;
        let Some(base) = self.base() else { return };
        let level = self.round(base * POLITE_SHARE);
        let hold = self.course.recovery_max;
        self.queue.push_back(PlannedStep { purpose: Purpose::Recovery, level, repeat: 0, hold });
    }

    fn continue_search(&mut self) {
        match self.search.as_ref().map(Search::next) {
            Some(Next::Try(trial)) => {
                self.trial = Some(trial);
                let purpose = if trial.long { Purpose::Confirm } else { Purpose::Search };
                let level = self.whole(trial.level);
                let same = |(known, point): &&(Purpose, Point)| {
                    *known == purpose && (point.level - level).abs() <= 1e-6 * level
                };
                let repeat = self.done.iter().filter(same).count() as u32;
                let factor = if trial.long { u64::from(self.course.confirm_factor) } else { 1 };
                let hold = Nanos(self.course.hold.0.saturating_mul(factor));
                self.queue.push_back(PlannedStep { purpose, level, repeat, hold });
            }
            Some(Next::Done) | None => self.phase = Phase::Down,
        }
    }

    /// Returns the results of the way up so far, by level.
    fn way_up(&self) -> Vec<Climbed> {
        let mut points: Vec<Point> = self
            .done
            .iter()
            .filter(|(purpose, _)| *purpose == Purpose::Up)
            .map(|(_, point)| *point)
            .collect();
        points.sort_by(|a, b| a.level.total_cmp(&b.level));
        let rest_s = points.first().map_or(0.0, |point| point.response_mean_s);
        let mut climbed: Vec<Climbed> = Vec::new();
        for group in points.chunk_by(|a, b| (a.level - b.level).abs() <= 1e-6 * b.level) {
            let many = group.len() as f64;
            let achieved = group.iter().map(|point| point.goodput_per_s).sum::<f64>() / many;
            let keeps = group.iter().filter(|point| point.follows(self.course.axis, rest_s));
            let gains = match climbed.last() {
                Some(below) if self.course.axis == Axis::Population => {
                    let doubled = (group[0].level / below.at).log2();
                    achieved >= below.achieved * GAIN_MIN.powf(doubled)
                }
                _ => true,
            };
            climbed.push(Climbed {
                at: group[0].level,
                achieved,
                follows: keeps.count() * 2 > group.len() && gains,
                limited: group.iter().all(|point| point.client_limited),
            });
        }
        climbed
    }
}

/// Results of a level's runs on the way up.
#[derive(Debug)]
struct Climbed {
    at: f64,
    achieved: f64,
    /// Most of the level's runs kept up with the load.
    follows: bool,
    limited: bool,
}

/// Shuffles by Fisher-Yates.
fn shuffle(planned_steps: &mut [PlannedStep], seed: u64) {
    let mut random = Seed(seed).stream(units::Purpose::Steps, 0);
    for index in (1..planned_steps.len()).rev() {
        planned_steps.swap(index, random.below(index as u64 + 1) as usize);
    }
}
