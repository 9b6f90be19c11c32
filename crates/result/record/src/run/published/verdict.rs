//! The run's verdict on itself, the state of the server, and the findings.

use super::known;
use crate::ids;
use crate::run::SloResult;
use crate::server::{Conduct, Server, conduct_id};
use sample::FailureClass;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::interval::CONFIDENCE;
use stats::{CauseId, FigureInterval, Looks, Objective, State, Unsure};

/// Validity of the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct VerdictRecord {
    #[serde(with = "ids::state")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::state::schema"))]
    pub state: State,
    /// The most severe first; a VALID verdict has at most notes, such as a busy machine without
    /// effect.
    pub causes: Vec<CauseRecord>,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CauseRecord {
    #[serde(with = "ids::cause")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::cause::schema"))]
    pub id: CauseId,
    /// Measured value, in the unit of the text.
    pub figure: Option<f64>,
    /// The figure as text, with its threshold.
    pub text: String,
    /// Advice.
    pub advice: String,
}

impl VerdictRecord {
    pub fn new(verdict: &stats::Verdict) -> VerdictRecord {
        let cause = |cause: &stats::Cause| CauseRecord {
            id: cause.id,
            figure: known(cause.figure),
            text: cause.text.clone(),
            advice: cause.advice.clone(),
        };
        let causes = verdict.causes.iter().map(cause).collect();
        VerdictRecord { state: verdict.state, causes }
    }
}
/// State of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ConductRecord {
    #[serde(with = "conduct_id")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "conduct_id::schema"))]
    pub state: Conduct,
    pub sentence: String,
    /// Start in seconds of the window; null: throughout.
    pub since_s: Option<f64>,
    /// Share of the ended calls that failed through the server's fault.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub failing_share: Option<f64>,
    /// Unexpected statuses, the most frequent first.
    pub statuses: Vec<WrongStatus>,
    /// Other failures caused by the server, the most frequent first.
    pub errors: Vec<ServerError>,
    /// Connections that broke with a call in flight.
    pub connections_broken: u64,
    /// One real response, if the responses are wrong.
    pub example: Option<String>,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct WrongStatus {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(max = 999)))]
    pub status: u16,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1)))]
    pub count: u64,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ServerError {
    #[serde(with = "ids::failure_class")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::failure_class::schema")
    )]
    pub class: FailureClass,
    pub text: String,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1)))]
    pub count: u64,
}

impl ConductRecord {
    pub(crate) fn new(server: &Server) -> ConductRecord {
        let status = |&(status, count): &(u16, u64)| WrongStatus { status, count };
        let error = |(class, count): &(FailureClass, u64)| ServerError {
            class: *class,
            text: class.explain().to_owned(),
            count: *count,
        };
        ConductRecord {
            state: server.conduct,
            sentence: server.sentence(),
            since_s: server.since_s,
            failing_share: known(server.failing_share),
            statuses: server.statuses.iter().map(status).collect(),
            errors: server.errors.iter().map(error).collect(),
            connections_broken: server.broken,
            example: server.example.clone(),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SloRecord {
    #[serde(with = "ids::objective")]
    #[cfg_attr(any(test, feature = "schema"), schemars(with = "String"))]
    pub objective: Objective,
    /// Value in the unit of the bound.
    pub figure: Option<f64>,
    /// The figure without the client's own lateness; for a part of the run, a lower bound. Null if
    /// lateness does not affect the figure.
    pub figure_without_lag: Option<f64>,
    /// Seconds, a share or a rate per second.
    pub bound: f64,
    /// Null where the figure describes only the calls that were made: a maximum, a rate, a share with
    /// a bound of 0.
    #[serde(default)]
    pub interval: Option<SloInterval>,
    pub met: bool,
    /// For an objective that is met because no call is beyond the bound, by fewer calls than the
    /// interval needs: the probability.
    #[serde(default)]
    pub unsure: Option<UnsureRecord>,
    /// The interval contains the bound, there are too few samples, or a punctual client might have a
    /// different result.
    pub undecided: bool,
}

/// Probability of an objective that is met by few calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct UnsureRecord {
    /// Probability that the true figure is within the bound; below 97.5 %.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub probability: f64,
    /// Number of calls that reach 97.5 %, if none is beyond the bound.
    pub calls_needed: u64,
}

/// Interval of the true figure, in the unit of the bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SloInterval {
    /// Null if the calls are too few for a lower end.
    pub low: Option<f64>,
    /// Null if the calls are too few for an upper end.
    pub high: Option<f64>,
    /// Probability that it contains the true figure.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub confidence: f64,
    /// The probability holds at every moment of a run that may end early (`--until-sure`), not only
    /// at its end.
    pub at_any_time: bool,
    /// Number of dependent calls equivalent to one independent call, estimated from the rows of the
    /// series.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1.0)))]
    pub design_effect: f64,
}

impl SloInterval {
    fn new(found: &FigureInterval) -> SloInterval {
        SloInterval {
            low: known(found.low),
            high: known(found.high),
            confidence: CONFIDENCE,
            at_any_time: found.looks == Looks::Always,
            design_effect: found.effect,
        }
    }
}

impl SloRecord {
    pub fn new(result: &SloResult) -> SloRecord {
        SloRecord {
            objective: result.objective.clone(),
            figure: known(result.figure),
            figure_without_lag: result.without_lag.and_then(known),
            bound: result.objective.bound,
            interval: result.interval.as_ref().map(SloInterval::new),
            met: result.met,
            unsure: result.unsure.map(|found| UnsureRecord {
                probability: found.probability,
                calls_needed: found.needed,
            }),
            undecided: result.undecided,
        }
    }

    /// Returns `met`, `MISSED`, or `undecided`: see [`SloRecord::undecided`].
    pub fn word(&self) -> &'static str {
        match (self.undecided, self.met) {
            (true, _) => "undecided",
            (false, true) => "met",
            (false, false) => "MISSED",
        }
    }

    /// Formats the figure with its unit.
    pub fn figure_text(&self) -> String {
        self.objective.metric.show(self.figure.unwrap_or(f64::NAN))
    }

    /// Returns the figure with its interval: `29.9 ms (95 %: 28.1 ms to 31.7 ms)`, and the
    /// certainty of an objective that few calls meet.
    pub fn measured_text(&self) -> String {
        let mut text = match self.interval_text() {
            Some(interval) => format!("{} ({interval})", self.figure_text()),
            None => self.figure_text(),
        };
        if let Some(unsure) = &self.unsure {
            let found = Unsure { probability: unsure.probability, needed: unsure.calls_needed };
            text.push_str(&format!(", {}", found.text()));
        }
        text
    }

    /// Returns the interval: `95 %: 28.1 ms to 31.7 ms`, `95 %: 28.1 ms or more`.
    pub fn interval_text(&self) -> Option<String> {
        let SloInterval { low, high, confidence, .. } = self.interval.as_ref()?;
        let range = self.objective.metric.show_range(*low, *high)?;
        Some(format!("{:.0} %: {range}", 100.0 * confidence))
    }
}
