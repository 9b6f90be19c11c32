//! The knee, if found, and the limit that stopped the load from growing.

use torture::result::{Measure, Unit};
use units::show;

/// Maximum ratio of a knee's upper to its lower end.
const NARROW: f64 = 1.25;
/// Minimum multiple of the knee for a report: below it there is hardly an overload.
const OVER_MIN: f64 = 1.2;
/// Minimum rate of a meaningful load.
pub(crate) const RATE_LOW: f64 = 1.0;

/// Limit of a load's growth.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Limit {
    /// Limit of the run, and the option that raises it.
    Bound(&'static str),
    /// Parameter of the case.
    Case,
    /// This machine limited the load, with the evidence.
    Ourselves(String),
    /// The time of the case, or of the run.
    Time,
}

/// The knee: the lowest rate that a server does not sustain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Knee {
    /// Highest sustained rate, and lowest rate that is not sustained, in requests per second.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Peak goodput of all steps in requests per second.
    pub(crate) peak: f64,
    /// Evidence, if the server crashed during a step.
    pub(crate) crashed: Option<String>,
    /// Reason why `high` is missing or the two are still far apart.
    pub(crate) limit: Option<Limit>,
    /// Maximum rate, and its origin.
    pub(crate) most: f64,
    pub(crate) most_is: Limit,
}

impl Limit {
    /// Describes the limit and the fix.
    pub(crate) fn words(&self) -> String {
        match self {
            Limit::Bound(option) => format!("our limit does not allow more ({option} raises it)"),
            Limit::Case => "this case does not offer a higher rate".to_owned(),
            Limit::Ourselves(why) => format!("this machine could not offer more: {why}"),
            Limit::Time => "its time limit was reached".to_owned(),
        }
    }
}

impl Knee {
    pub(crate) fn measures(&self) -> [Measure; 2] {
        let beyond = "beyond which fewer than 95 % got a response in time";
        let note = match &self.limit {
            Some(Limit::Time) if self.high.is_some() => {
                format!("{beyond}; {}", Limit::Time.words())
            }
            _ if self.high.is_some() => beyond.to_owned(),
            Some(limit) => format!("the server kept up with every rate; {}", limit.words()),
            None => "the server kept up with every rate".to_owned(),
        };
        let peak = Measure::exact(
            "peak goodput",
            self.peak,
            Unit::PerSecond,
            "correct responses per second".to_owned(),
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

    /// Returns the next rate to try; `None` if the search is complete.
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

    /// Returns why overload cannot be judged; `None` if the server can be overloaded.
    pub(crate) fn unreached(&self) -> Option<String> {
        let low = show::rate(self.low.unwrap_or_default());
        match (self.high, &self.limit) {
            // rates between the two are untested: the reference for overload is unknown
            (Some(high), Some(Limit::Time)) => {
                let high = show::rate(high);
                Some(format!(
                    "the knee is not known: the server does not keep up with {high}, and the \
                    time limit of the search was reached"
                ))
            }
            (Some(high), _) if self.most >= high * OVER_MIN => None,
            (Some(high), _) => {
                let (high, why) = (show::rate(high), self.most_is.words());
                Some(format!("not overloaded: the server does not keep up with {high}, and {why}"))
            }
            (None, limit) => {
                let why = limit.as_ref().map(Limit::words).unwrap_or_default();
                Some(format!("not overloaded: the server kept up with {low}, and {why}"))
            }
        }
    }

    /// Returns a multiple of the knee, within the limit.
    pub(crate) fn times(&self, factor: f64) -> f64 {
        (self.high.unwrap_or(self.most) * factor).min(self.most).max(RATE_LOW)
    }

    /// Returns a rate with which the server easily keeps up.
    pub(crate) fn sustainable_rate(&self, share: f64) -> f64 {
        (self.low.unwrap_or(RATE_LOW) * share).max(RATE_LOW)
    }
}

/// Returns a rate between two, rounded if large.
fn between(low: f64, high: f64) -> f64 {
    let rate = (low * high).sqrt();
    if rate < WHOLE { rate } else { rate.round() }
}

/// Minimum rate that is a whole number.
const WHOLE: f64 = 10.0;
