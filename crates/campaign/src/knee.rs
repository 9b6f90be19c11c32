//! Where a server no longer follows, as far as that was found, and what kept a load from growing.

use torture::result::{Measure, Unit};
use units::show;

/// A knee's upper end is no more than this times its lower one.
const NARROW: f64 = 1.25;
/// Below so many knees it is hardly an overload, and nothing is said of it.
const OVER_MIN: f64 = 1.2;
/// Below this rate no load is worth the name.
pub(crate) const RATE_LOW: f64 = 1.0;

/// What kept a load from growing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Limit {
    /// A bound of the run, and the option that raises it.
    Bound(&'static str),
    /// A parameter of the case.
    Case,
    /// This machine, and how that shows.
    Ourselves(String),
    /// The time of the case, or of the run.
    Time,
}

/// Where a server no longer follows, as far as that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Knee {
    /// The highest rate that was followed; the lowest that was not. Requests a second.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// The most right responses a second, of any step.
    pub(crate) peak: f64,
    /// The server died of a step: how that showed.
    pub(crate) crashed: Option<String>,
    /// Why there is no `high`, or the two are still far apart.
    pub(crate) limit: Option<Limit>,
    /// The most that may be offered, and what says so.
    pub(crate) most: f64,
    pub(crate) most_is: Limit,
}

impl Limit {
    /// What ended it, and the way out.
    pub(crate) fn words(&self) -> String {
        match self {
            Limit::Bound(option) => format!("no more may be offered ({option} raises it)"),
            Limit::Case => "no more is offered by this case".to_owned(),
            Limit::Ourselves(why) => format!("this machine could not offer more: {why}"),
            Limit::Time => "its time was up".to_owned(),
        }
    }
}

impl Knee {
    pub(crate) fn measures(&self) -> [Measure; 2] {
        let beyond = "beyond it less than 95% was answered in time";
        let note = match &self.limit {
            Some(Limit::Time) if self.high.is_some() => {
                format!("{beyond}; {}", Limit::Time.words())
            }
            _ if self.high.is_some() => beyond.to_owned(),
            Some(limit) => format!("every rate was followed; {}", limit.words()),
            None => "every rate was followed".to_owned(),
        };
        let peak = Measure::exact(
            "peak goodput",
            self.peak,
            Unit::PerSecond,
            "right responses a second".to_owned(),
        );
        let knee = Measure {
            what: "knee".to_owned(),
            low: self.low,
            high: self.high,
            unit: Unit::PerSecond,
            note,
        };
        [knee, peak]
    }

    /// The rate to look at after this one; `None`: nothing is to be found any more.
    pub(crate) fn next(&self, rate: f64) -> Option<f64> {
        match (self.low, self.high) {
            (Some(low), Some(high)) if high <= low * NARROW => None,
            (Some(low), Some(high)) => Some(between(low, high)),
            (Some(low), None) if low >= self.most => None,
            (Some(low), None) => Some((low * 2.0).min(self.most)),
            (None, _) if rate <= RATE_LOW => None,
            (None, _) => Some((rate / 2.0).max(RATE_LOW)),
        }
    }

    /// Why nothing can be said of overload; `None` where the server can be overloaded.
    pub(crate) fn unreached(&self) -> Option<String> {
        let low = show::rate(self.low.unwrap_or_default());
        match (self.high, &self.limit) {
            // rates between the two were still to come: what an overload is measured by is not known
            (Some(high), Some(Limit::Time)) => {
                let high = show::rate(high);
                Some(format!(
                    "the knee is not known: the server does not follow {high}, and the time of the search was up"
                ))
            }
            (Some(high), _) if self.most >= high * OVER_MIN => None,
            (Some(high), _) => {
                let (high, why) = (show::rate(high), self.most_is.words());
                Some(format!("not overloaded: the server does not follow {high}, and {why}"))
            }
            (None, limit) => {
                let why = limit.as_ref().map(Limit::words).unwrap_or_default();
                Some(format!("not overloaded: the server followed {low}, and {why}"))
            }
        }
    }

    /// The share of a rate that is offered where the knee is the whole; below the bound.
    pub(crate) fn times(&self, factor: f64) -> f64 {
        (self.high.unwrap_or(self.most) * factor).min(self.most).max(RATE_LOW)
    }

    /// A rate that the server follows easily.
    pub(crate) fn easy(&self, share: f64) -> f64 {
        (self.low.unwrap_or(RATE_LOW) * share).max(RATE_LOW)
    }
}

/// A rate between two, whole where that is no matter.
fn between(low: f64, high: f64) -> f64 {
    let rate = (low * high).sqrt();
    if rate < WHOLE { rate } else { rate.round() }
}

/// Rates from here on are whole.
const WHOLE: f64 = 10.0;
