//! The search for a capacity: a state machine that chooses the next load from the result of each trial.
//!
//! First the load is doubled or halved until one trial kept the objectives and one missed them;
//! then trials are placed where [`threshold`](super::threshold) expects the edge, short ones until
//! it is roughly known and long ones that confirm it (after RFC 2544 and MLRsearch of the IETF's
//! BMWG). Levels alternate about the likely edge, which shows how blurred it is; the search ends as
//! soon as the interval is as narrow as requested, so a sharp edge takes few trials and a blurred
//! one more.

use super::threshold::{Belief, Tried};
use super::{Capacity, CapacityEnd, Span};
use crate::Objective;

/// Parameters of a search.
#[derive(Clone, Debug)]
pub struct SearchConfig {
    /// The first level, and the bounds of all trials; all positive.
    pub start: f64,
    pub lowest: f64,
    pub highest: f64,
    /// The interval's width as a share of its middle at which the search ends, such as 0.05.
    pub precision: f64,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// Length of a short trial in units of a long one, 0..=1.
    pub short_length: f64,
    /// Trials at most, of both lengths together.
    pub trials_max: usize,
    /// Levels are whole numbers (users).
    pub whole: bool,
    /// Objectives shown with the result.
    pub objectives: Vec<Objective>,
}

impl SearchConfig {
    /// Returns the defaults: from 1 to a million, 5 % wide at 95 %, short trials of a sixth, at
    /// most 40.
    pub fn from(start: f64, objectives: Vec<Objective>) -> SearchConfig {
        SearchConfig {
            start,
            lowest: 1.0,
            highest: 1e6,
            precision: 0.05,
            confidence: 0.95,
            short_length: 1.0 / 6.0,
            trials_max: 40,
            whole: false,
            objectives,
        }
    }
}

/// Next action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    Try(Trial),
    Done,
}

/// Load to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    pub level: f64,
    /// True if it is held for the full time, to confirm or refute; otherwise for the short time.
    pub long: bool,
}

/// Result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialEnd {
    Met,
    Missed,
    /// The client could not offer or handle this load: no result about the server.
    ClientLimited,
}

/// Factor between trials while the edge is not enclosed.
const STRIDE: f64 = 2.0;
/// Width of the interval, as a share, below which trials are long; and the maximum number of short
/// trials once the edge is enclosed: if chance blurs it more than that, they add too little.
const SHORT_UNTIL: f64 = 0.25;
const SHORT_MAX: usize = 5;
/// Positions of the trials in the posterior distribution, in turn: the middle, and points to either
/// side.
const PLACES: [f64; 4] = [0.5, 0.25, 0.75, 0.5];
/// Number of long trials on either side of the edge that an interval needs.
const LONG_EACH_SIDE: usize = 2;
/// Distance from the client's limit at which a search below it ends.
const NEAR_LIMIT: f64 = 1.05;

/// State machine of the search. [`Search::next`] returns the next trial, [`Search::record_end`]
/// takes its result; the same results always lead to the same trials.
#[derive(Clone, Debug)]
pub struct Search {
    config: SearchConfig,
    tried: Vec<(Trial, TrialEnd)>,
    /// The lowest level at which the client was the limit.
    limit: f64,
}

impl Search {
    /// Bounds in the wrong order are swapped, and a start outside them is moved inside.
    pub fn new(mut config: SearchConfig) -> Search {
        config.lowest = config.lowest.max(1e-6);
        config.highest = config.highest.max(config.lowest);
        config.start = config.start.clamp(config.lowest, config.highest);
        config.precision = config.precision.max(0.002);
        config.short_length = config.short_length.clamp(0.01, 1.0);
        Search { config, tried: Vec::new(), limit: f64::INFINITY }
    }

    /// Returns the next load, or the end of the search. Calling it twice returns the same trial.
    pub fn next(&self) -> Next {
        if self.tried.len() >= self.config.trials_max {
            return Next::Done;
        }
        if let Some(trial) = self.trial_to_repeat() {
            return Next::Try(trial);
        }
        match self.belief() {
            Some(belief) => self.refine(&belief),
            None => self.bracket(),
        }
    }

    /// Records the result of the trial from [`Search::next`]. A level is the client's limit once
    /// two trials there were limited: the client may be late once, for instance on a busy machine.
    pub fn record_end(&mut self, trial: Trial, end: TrialEnd) {
        if end == TrialEnd::ClientLimited && self.limited_at(trial.level) > 0 {
            self.limit = self.limit.min(trial.level);
        }
        self.tried.push((trial, end));
    }

    /// Returns the number of trials at this level that the client limited.
    fn limited_at(&self, level: f64) -> usize {
        let limited = |(trial, end): &&(Trial, TrialEnd)| {
            *end == TrialEnd::ClientLimited && same(trial.level, level)
        };
        self.tried.iter().filter(limited).count()
    }

    /// Returns the last trial, if the client limited it for the first time at its level.
    fn trial_to_repeat(&self) -> Option<Trial> {
        let (trial, end) = self.tried.last()?;
        let once = *end == TrialEnd::ClientLimited && self.limited_at(trial.level) == 1;
        once.then_some(*trial)
    }

    /// Returns the number of trials so far.
    pub fn trials(&self) -> usize {
        self.tried.len()
    }

    /// Returns the result so far: at the end, or of an interrupted search. `None` before any trial
    /// with a result about the server.
    pub fn capacity(&self) -> Option<Capacity> {
        let of = |end: TrialEnd| self.levels(end);
        let (at, how) = match self.belief() {
            Some(belief) => (self.reported_span(&belief), CapacityEnd::Bracketed),
            None if of(TrialEnd::Met).next().is_some() => {
                let shown = of(TrialEnd::Met).fold(0.0, f64::max);
                let how = match self.limit.is_finite() {
                    true => CapacityEnd::ClientLimited,
                    false => CapacityEnd::NeverMissed,
                };
                (Span { at: shown, low: shown, high: f64::INFINITY }, how)
            }
            None => {
                let lowest = of(TrialEnd::Missed).min_by(f64::total_cmp)?;
                (Span { at: 0.0, low: 0.0, high: lowest }, CapacityEnd::NeverMet)
            }
        };
        Some(Capacity {
            at,
            confidence: self.config.confidence,
            objectives: self.config.objectives.clone(),
            how,
        })
    }

    fn levels(&self, end: TrialEnd) -> impl Iterator<Item = f64> {
        self.tried.iter().filter(move |(_, was)| *was == end).map(|(trial, _)| trial.level)
    }

    fn belief(&self) -> Option<Belief> {
        let tried = |(trial, end): &(Trial, TrialEnd)| {
            let length = if trial.long { 1.0 } else { self.config.short_length };
            let met = match end {
                TrialEnd::Met => true,
                TrialEnd::Missed => false,
                TrialEnd::ClientLimited => return None,
            };
            Some(Tried { level: trial.level, met, length })
        };
        Belief::new(&self.tried.iter().filter_map(tried).collect::<Vec<_>>())
    }

    /// Returns the next level while the edge is not enclosed: up while the objectives are met, down
    /// while they are missed.
    fn bracket(&self) -> Next {
        let (low, high) = (self.config.lowest, self.config.highest);
        let met = self.levels(TrialEnd::Met).fold(0.0, f64::max);
        let missed = self.levels(TrialEnd::Missed).fold(f64::INFINITY, f64::min);
        let level = if met > 0.0 && self.limit.is_finite() {
            if self.limit <= met * NEAR_LIMIT {
                return self.confirmed(met, TrialEnd::Met);
            }
            (met * self.limit).sqrt()
        } else if met > 0.0 {
            if met >= high {
                return self.confirmed(met, TrialEnd::Met);
            }
            met * STRIDE
        } else if missed.is_finite() || self.limit.is_finite() {
            let least = missed.min(self.limit);
            if least <= low {
                return match missed.is_finite() {
                    true => self.confirmed(missed, TrialEnd::Missed),
                    false => Next::Done,
                };
            }
            least / STRIDE
        } else {
            self.config.start
        };
        let level = self.whole(level.clamp(low, high));
        // between neighboring whole levels the search ends
        if self.tried.iter().any(|(trial, _)| same(trial.level, level)) {
            return match met > 0.0 {
                true => self.confirmed(met, TrialEnd::Met),
                false => self.confirmed(level, TrialEnd::Missed),
            };
        }
        Next::Try(Trial { level, long: false })
    }

    /// Returns the next step at a bound: one long trial, and then the end of the search.
    fn confirmed(&self, level: f64, end: TrialEnd) -> Next {
        let confirmed = self
            .tried
            .iter()
            .any(|(trial, was)| trial.long && same(trial.level, level) && *was == end);
        match confirmed {
            true => Next::Done,
            false => Next::Try(Trial { level, long: true }),
        }
    }

    fn refine(&self, belief: &Belief) -> Next {
        let span = belief.span(self.config.confidence);
        let width = (span.high - span.low) / span.at;
        let long: Vec<&(Trial, TrialEnd)> =
            self.tried.iter().filter(|(trial, _)| trial.long).collect();
        let sides = [TrialEnd::Met, TrialEnd::Missed];
        let missing = sides.map(|side| {
            LONG_EACH_SIDE.saturating_sub(long.iter().filter(|(_, end)| *end == side).count())
        });
        if self.is_narrow(span, width) && missing == [0, 0] {
            return Next::Done;
        }
        let enclosed = self.tried.len().saturating_sub(self.strides());
        let is_long = !long.is_empty()
            || enclosed >= SHORT_MAX
            || width <= SHORT_UNTIL
            || self.is_narrow(span, width);
        let place = match is_long {
            // an interval that is narrow enough is confirmed at its ends
            true if self.is_narrow(span, width) && missing[0] > 0 => 0.05,
            true if self.is_narrow(span, width) => 0.95,
            true => PLACES[long.len() % PLACES.len()],
            false => 0.5,
        };
        let mut level = belief.quantile(place).clamp(self.config.lowest, self.config.highest);
        if level >= self.limit {
            // as close to the client's limit as possible
            level = (self.limit / NEAR_LIMIT).max(self.config.lowest);
            if self.tried.iter().any(|(trial, _)| trial.long && same(trial.level, level)) {
                return Next::Done;
            }
        }
        Next::Try(Trial { level: self.whole(level), long: is_long })
    }

    /// Returns the number of trials before the result first changes.
    fn strides(&self) -> usize {
        let differs = self.tried.windows(2).position(|pair| pair[0].1 != pair[1].1);
        differs.map_or(self.tried.len(), |index| index + 2)
    }

    fn is_narrow(&self, span: Span, width: f64) -> bool {
        let neighbors = self.config.whole && span.high.floor() - span.low.floor() <= 1.0;
        width <= self.config.precision || neighbors
    }

    fn reported_span(&self, belief: &Belief) -> Span {
        let span = belief.span(self.config.confidence);
        if !self.config.whole {
            return span;
        }
        Span { at: span.at.floor(), low: span.low.floor(), high: span.high.ceil() }
    }

    fn whole(&self, level: f64) -> f64 {
        if self.config.whole { level.round().max(1.0) } else { level }
    }
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}
