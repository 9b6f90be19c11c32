//! Decision of an objective: it follows from the interval of the figure, and from the client's
//! lateness.
//!
//! The interval of a quantile q consists of order statistics, by inversion of a test (Woodruff
//! 1952): a value is a possible quantile unless the share of calls beyond it is certain to differ
//! from 1 - q. docs/measuring.md has the derivation and the coverage under dependence.

use super::{Figures, Metric, Objective, Op, Samples, SubjectRows, mean_without, quantile_without};
use crate::interval::{TAIL, student_t};
use crate::trials::{Looks, Trials};
use crate::{Blocks, Hist, Measurement, Snapshot};
use units::{Nanos, show};

/// Result of an objective, including how late the client was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ruling {
    /// Value in the unit of [`Objective::bound`], including the client's lateness; NaN without
    /// samples.
    pub figure: f64,
    /// Interval; `None` if the figure describes only the calls that were made: a maximum, a rate, a
    /// share with a bound of 0.
    pub interval: Option<FigureInterval>,
    /// Figure without the client's lateness; a lower bound for a part of a run. `None` if lateness
    /// does not apply to the figure or was not recorded.
    pub without_lag: Option<f64>,
    /// The whole interval keeps the bound, or no call is beyond it: see [`Ruling::unsure`].
    pub met: bool,
    /// Set if the objective is met because no call is beyond its bound, by fewer calls than the
    /// interval needs.
    pub unsure: Option<Unsure>,
    /// Reason why there is no answer.
    pub undecided: Option<Undecided>,
}

/// Probability of an objective that is met by few calls.
///
/// If n independent calls are all within the bound of a quantile q, the quantile is within it with
/// a probability of 1 - qⁿ. From 1 / (1 - q) calls on this is at least 63 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsure {
    pub probability: f64,
    /// Number of calls that reach [`SURE`], if none is beyond the bound.
    pub needed: u64,
}

/// Probability of an objective that is met by its interval: one end of 95 % is beyond the bound
/// with half of the rest.
pub const SURE: f64 = 1.0 - TAIL;

impl Unsure {
    /// Formats the probability: `with a probability of only 63 % (368 calls reach 97.5 %)`.
    pub fn text(&self) -> String {
        let percent = (100.0 * self.probability).floor();
        let needed = show::count(self.needed);
        format!(
            "with a probability of only {percent} % ({needed} calls reach {})",
            show::share(SURE)
        )
    }
}

/// Range that contains, with a probability of 95 %, the figure that many more such calls would
/// give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureInterval {
    /// Value in the unit of [`Objective::bound`]. Infinite if the calls are too few for an end.
    pub low: f64,
    pub high: f64,
    /// Scope of the probability: this check alone, or all checks of the run together.
    pub looks: Looks,
    /// Number of calls that count as one independent call: 1 or more.
    pub effect: f64,
}

impl FigureInterval {
    /// Formats the ends with their units: `95 % interval 18.2 ms to 21.0 ms`.
    pub fn text(&self, metric: Metric) -> String {
        let [low, high] = [self.low, self.high].map(|end| Some(end).filter(|end| end.is_finite()));
        let range = metric.show_range(low, high);
        format!("95 % interval {}", range.as_deref().unwrap_or("unknown"))
    }
}

/// Reason why the measurement does not decide an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Undecided {
    /// A client without lateness might have seen the opposite answer.
    Lateness,
    /// Too few samples: even if none is beyond the bound, they decide nothing.
    FewSamples { count: u64, needed: u64 },
    /// The interval contains the bound. `longer`: factor on the length of a run that would probably
    /// decide it, 1 or more; `None` if the figure is too near the bound to estimate it.
    Interval { longer: Option<f64> },
    /// No call of the measured phase. `warm_up`: calls of the same part in the warm-up.
    NoSamples { warm_up: u64 },
}

/// Judges the objectives of a plan by a measurement.
pub fn rulings(objectives: &[Objective], measurement: &Measurement) -> Vec<Ruling> {
    let window = measurement.rate_span();
    let none = Blocks::default();
    let judge = |(index, objective): (usize, &Objective)| {
        let blocks = measurement.blocks.get(index).unwrap_or(&none);
        objective.rule(&measurement.total, window, blocks, measurement.looks)
    };
    objectives.iter().enumerate().map(judge).collect()
}

impl Objective {
    /// Judges a snapshot, with and without the client's lateness. `blocks`: the same calls in the order
    /// of time; without any, calls count as independent of each other.
    pub fn rule(
        &self,
        snapshot: &Snapshot,
        window: Nanos,
        blocks: &Blocks,
        looks: Looks,
    ) -> Ruling {
        let figures = self.figures(snapshot, window);
        let figure = figures.value(self.metric);
        if figure.is_nan() {
            let undecided = self.without_samples(snapshot, &figures);
            return Ruling {
                figure,
                interval: None,
                without_lag: None,
                met: false,
                unsure: None,
                undecided,
            };
        }
        let of_time = matches!(self.metric, Metric::Response(_) | Metric::ResponseMean);
        let without_lag = of_time.then(|| self.without_lag(snapshot, &figures)).flatten();
        let interval = self.interval(&figures, blocks, looks);
        let (low, high) = interval.map_or((figure, figure), |found| (found.low, found.high));
        let lag = without_lag.map_or(0.0, |lowest| figure - lowest);
        let measured = [low, high].map(|end| self.holds(end));
        let punctual = [low - lag, high - lag].map(|end| self.holds(end));
        let agree = |ends: [bool; 2]| ends[0] == ends[1];
        let mut unsure = None;
        let undecided = match (agree(measured), agree(punctual), interval) {
            (true, true, _) if measured == punctual => None,
            (false, false, Some(interval)) => {
                unsure = self.unsure_if_none_exceed(&figures, blocks, looks);
                let lacks = || self.lacks_samples(&figures, interval);
                unsure.is_none().then(lacks)
            }
            _ => Some(Undecided::Lateness),
        };
        let met = undecided.is_none() && (measured[0] || unsure.is_some());
        Ruling { figure, interval, without_lag, met, unsure, undecided }
    }

    /// Returns the probability that the objective is met if no call is beyond the bound and none
    /// failed; `None` below 1 / (1 - q) independent calls.
    fn unsure_if_none_exceed(
        &self,
        figures: &Figures,
        blocks: &Blocks,
        looks: Looks,
    ) -> Option<Unsure> {
        let upper = matches!(self.op, Op::Below | Op::AtMost);
        let (beyond, of, tail, effect) = match figures.samples(self.metric) {
            Some((quantile, samples)) => {
                // a failed call has no response time that could be within the bound
                let failed = figures.counts.unsuccessful();
                let of = samples.count();
                // a call with exactly this time is within `<=` and `>`
                let below = samples.within(self.bound, matches!(self.op, Op::AtMost | Op::Above));
                let (beyond, tail) =
                    if upper { (of - below, 1.0 - quantile) } else { (below, quantile) };
                let test = QuantileTest { samples, quantile, blocks, looks };
                (beyond + failed, of, tail, test.effect(self.bound))
            }
            None => {
                let (found, of) = figures.share(self.metric)?;
                let (beyond, tail) =
                    if upper { (found, self.bound) } else { (of - found, 1.0 - self.bound) };
                (beyond, of, tail, 1.0)
            }
        };
        // a tail of 1 - 0.99 is a little more than a hundredth
        let enough = of as f64 / effect * tail >= 1.0 - 1e-9;
        if beyond > 0 || !enough {
            return None;
        }
        let needed = calls_needed(tail, effect, looks);
        let probability = Trials::new(0, of, effect).probability_below(tail, looks);
        Some(Unsure { probability, needed })
    }

    /// Returns true if runs may end as soon as this objective is decided: its figure has an
    /// interval that holds at any time.
    pub fn is_sequential(&self) -> bool {
        match self.metric {
            Metric::ResponseMean => false,
            Metric::Failures | Metric::AbnormalCloses | Metric::StatusOk => self.is_estimate(),
            metric => metric.quantile().is_some_and(|quantile| quantile < 1.0),
        }
    }

    /// Returns true if the bound is on the share of all calls. A bound of 0 or 100 % counts only
    /// the calls that were made: no number of successful calls proves that no other call would
    /// fail.
    fn is_estimate(&self) -> bool {
        self.bound > 0.0 && self.bound < 1.0
    }

    fn interval(&self, figures: &Figures, blocks: &Blocks, looks: Looks) -> Option<FigureInterval> {
        if let Some((quantile, samples)) = figures.samples(self.metric) {
            let test = QuantileTest { samples, quantile, blocks, looks };
            return (quantile < 1.0).then(|| test.interval(figures.value(self.metric)));
        }
        if let Some((found, of)) = figures.share(self.metric).filter(|_| self.is_estimate()) {
            let effect = blocks.effect(|block| (block.found, block.of));
            let (low, high) = Trials::new(found, of, effect).interval(looks);
            return Some(FigureInterval { low, high, looks, effect });
        }
        match self.metric {
            Metric::ResponseMean => Some(mean_interval(&figures.response, blocks)),
            _ => None,
        }
    }

    /// Returns why the interval contains the bound.
    fn lacks_samples(&self, figures: &Figures, interval: FigureInterval) -> Undecided {
        /// Beyond this factor the extrapolation is worthless.
        const LONGER_MAX: f64 = 1_000.0;
        let (beyond, of, share) = match (figures.samples(self.metric), figures.share(self.metric)) {
            (Some((quantile, samples)), _) => {
                let of = samples.count();
                (of - samples.within(self.bound, true), of, 1.0 - quantile)
            }
            (None, Some((found, of))) => (found, of, self.bound),
            (None, None) => {
                let (count, figure) = (figures.response.count(), figures.value(self.metric));
                let factor = ((interval.high - figure) / (self.bound - figure)).powi(2).max(1.0);
                let longer = Some(factor).filter(|factor| *factor <= LONGER_MAX);
                let few = Undecided::FewSamples { count, needed: 2 };
                return if count < 2 { few } else { Undecided::Interval { longer } };
            }
        };
        let needed = calls_needed(share.min(1.0 - share), 1.0, interval.looks);
        if of < needed {
            return Undecided::FewSamples { count: of, needed };
        }
        let now = Trials::new(beyond, of, interval.effect);
        let decided = |factor: f64| {
            let then = Trials { found: now.found * factor, of: now.of * factor };
            then.is_below(share, interval.looks) || then.is_above(share, interval.looks)
        };
        let (mut too_short, mut longer) = (1.0, 2.0);
        while !decided(longer) {
            if longer > LONGER_MAX {
                return Undecided::Interval { longer: None };
            }
            (too_short, longer) = (longer, 2.0 * longer);
        }
        for _ in 0..20 {
            let middle = 0.5 * (too_short + longer);
            if decided(middle) { longer = middle } else { too_short = middle }
        }
        Undecided::Interval { longer: Some(longer) }
    }

    /// Returns why there is no figure; `None` if every call failed, which misses the objective.
    fn without_samples(&self, snapshot: &Snapshot, figures: &Figures) -> Option<Undecided> {
        let none_failed = figures.counts.unsuccessful() == 0;
        none_failed.then(|| Undecided::NoSamples { warm_up: self.warm_up_calls(snapshot) })
    }

    /// Returns the part that the objective names; `None` for the run, which is also a single
    /// target.
    fn part(&self, snapshot: &Snapshot) -> Option<&SubjectRows> {
        let rows = self.of.as_ref().map(|subject| &subject.rows);
        let single = snapshot.targets.is_empty();
        rows.filter(|rows| !(single && matches!(rows, SubjectRows::Targets(_))))
    }

    /// Returns the number of calls of the warm-up: of the run, or of the part that the objective
    /// names.
    fn warm_up_calls(&self, snapshot: &Snapshot) -> u64 {
        match self.part(snapshot) {
            Some(SubjectRows::Targets(rows)) => {
                let row = |row: &u32| snapshot.targets.get(*row as usize);
                rows.iter().filter_map(row).map(|row| row.warm_up).sum()
            }
            Some(SubjectRows::Clients(row)) => {
                snapshot.clients.get(*row as usize).map_or(0, |row| row.warm_up)
            }
            Some(SubjectRows::Scenario(row)) => {
                snapshot.scenarios.get(*row as usize).map_or(0, |row| row.warm_up)
            }
            Some(SubjectRows::Transaction(_) | SubjectRows::Number(_) | SubjectRows::Unknown) => 0,
            None => snapshot.warm_up.done(),
        }
    }

    /// Returns the figure less the client's lateness; of a part a lower bound, because lateness is
    /// recorded for the whole run only.
    fn without_lag(&self, snapshot: &Snapshot, figures: &Figures) -> Option<f64> {
        let response = snapshot.without_lag()?;
        let Some(part) = self.part(snapshot) else {
            return Some(Figures { response, ..figures.clone() }.value(self.metric));
        };
        // the lateness of a transaction is the sum over its calls
        let calls_each = match part {
            SubjectRows::Transaction(_) => {
                snapshot.counts.done().div_ceil(figures.response.count().max(1))
            }
            _ => 1,
        };
        let lowest = match self.metric {
            Metric::Response(quantile) => {
                quantile_without(&figures.response, quantile, &snapshot.lag, calls_each)
            }
            _ => mean_without(&figures.response, &snapshot.lag),
        };
        Some(lowest.as_secs_f64())
    }

    /// Returns true if a figure keeps the bound; NaN keeps no bound.
    pub(super) fn holds(&self, figure: f64) -> bool {
        match self.op {
            Op::Below => figure < self.bound,
            Op::AtMost => figure <= self.bound,
            Op::Above => figure > self.bound,
            Op::AtLeast => figure >= self.bound,
        }
    }
}

/// Returns the interval of a quantile of response times, as an objective on it has. `blocks`: the
/// same calls in the order of time.
pub fn quantile_interval(times: &Hist, quantile: f64, blocks: &Blocks) -> Option<FigureInterval> {
    let wanted = quantile > 0.0 && quantile < 1.0 && !times.is_empty();
    let test =
        QuantileTest { samples: Samples::Times(times), quantile, blocks, looks: Looks::Once };
    wanted.then(|| test.interval(times.quantile(quantile).as_secs_f64()))
}

/// Returns the number of calls that show a share below `tail` if none of them is beyond.
fn calls_needed(tail: f64, effect: f64, looks: Looks) -> u64 {
    let reaches = |of: u64| Trials::new(0, of, effect).is_below(tail, looks);
    let (mut too_few, mut needed) = (0, 1_u64);
    while !reaches(needed) {
        too_few = needed;
        match needed.checked_mul(2) {
            Some(more) => needed = more,
            None => return u64::MAX,
        }
    }
    while needed - too_few > 1 {
        let middle = too_few.midpoint(needed);
        if reaches(middle) { needed = middle } else { too_few = middle }
    }
    needed
}

/// Test of each value on whether it can be the quantile.
struct QuantileTest<'a> {
    samples: Samples<'a>,
    quantile: f64,
    blocks: &'a Blocks,
    looks: Looks,
}

impl QuantileTest<'_> {
    /// Returns the design effect. Dependence is measured among the calls beyond the value, and
    /// beyond three quarters and half of it: a value that no call exceeds shows nothing, but calls
    /// near it do. Numbers of the plan are counted by block at the bound only.
    fn effect(&self, value: f64) -> f64 {
        let Samples::Times(_) = self.samples else {
            return self.blocks.effect(|block| (block.found, block.of));
        };
        let beyond = |value: f64| {
            let value = Nanos::from_secs_f64(value);
            self.blocks.effect(|block| {
                let of = block.times.total();
                (of - block.times.count_at_or_below(value), of)
            })
        };
        [1.0, 0.75, 0.5].into_iter().map(|part| beyond(part * value)).fold(1.0, f64::max)
    }

    fn beyond(&self, value: f64) -> Trials {
        let of = self.samples.count();
        Trials::new(of - self.samples.within(value, true), of, self.effect(value))
    }

    /// Returns the interval. `figure`: the quantile itself.
    fn interval(&self, figure: f64) -> FigureInterval {
        let values = self.samples.values();
        let tail = 1.0 - self.quantile;
        // the quantile is above every value that too many calls certainly exceed
        let low = values.partition_point(|at| self.beyond(*at).is_above(tail, self.looks));
        let high = values.partition_point(|at| !self.beyond(*at).is_below(tail, self.looks));
        let effect = self.effect(figure);
        // with too few calls for a lower end, the quantile may be below the smallest value
        let of = self.samples.count();
        let bounded = low > 0 || Trials::new(of, of, effect).is_above(tail, self.looks);
        let least = if let Samples::Times(_) = self.samples { 0.0 } else { f64::NEG_INFINITY };
        FigureInterval {
            low: values.get(low).copied().filter(|_| bounded).unwrap_or(least),
            high: values.get(high).copied().unwrap_or(f64::INFINITY),
            looks: self.looks,
            effect,
        }
    }
}

/// Returns the interval of a mean by Student's t, with the greater variance: of independent calls
/// or of the blocks.
fn mean_interval(times: &Hist, blocks: &Blocks) -> FigureInterval {
    let count = times.count();
    let mean = times.mean().as_secs_f64();
    let single = times.stdev().as_secs_f64().powi(2) / count as f64;
    let (variance, freedom) = match blocks.mean_variance().filter(|found| *found > single) {
        Some(variance) => (variance, blocks.count() as u64 - 1),
        None => (single, count.saturating_sub(1)),
    };
    let half = match freedom {
        0 => f64::INFINITY,
        _ => student_t(freedom) * variance.sqrt(),
    };
    FigureInterval {
        low: (mean - half).max(0.0),
        high: mean + half,
        looks: Looks::Once,
        effect: if single > 0.0 { variance / single } else { 1.0 },
    }
}
