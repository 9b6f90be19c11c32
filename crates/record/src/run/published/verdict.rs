//! The run's verdict on itself, what the server did, and what was found.

use super::known;
use crate::ids;
use crate::run::{Finding, SloResult};
use crate::server::{Conduct, Server, conduct_id};
use sample::FailureClass;
use serde::{Deserialize, Serialize};
use stats::diagnosis::Confidence;
use stats::{CauseId, State};

/// How far the numbers can be believed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictRecord {
    #[serde(with = "ids::state")]
    pub state: State,
    pub causes: Vec<CauseRecord>,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseRecord {
    #[serde(with = "ids::cause")]
    pub id: CauseId,
    pub figure: Option<f64>,
    pub text: String,
    pub advice: String,
}

impl VerdictRecord {
    pub(crate) fn of(verdict: &stats::Verdict) -> VerdictRecord {
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
/// What the server did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConductRecord {
    #[serde(with = "conduct_id")]
    pub state: Conduct,
    pub sentence: String,
    pub since_s: Option<f64>,
    pub failing_share: Option<f64>,
    pub statuses: Vec<WrongStatus>,
    pub errors: Vec<ServerError>,
    pub connections_broken: u64,
    pub example: Option<String>,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrongStatus {
    pub status: u16,
    pub count: u64,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerError {
    #[serde(with = "ids::failure_class")]
    pub class: FailureClass,
    pub text: String,
    pub count: u64,
}

impl ConductRecord {
    pub(crate) fn of(server: &Server) -> ConductRecord {
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
pub struct FindingRecord {
    pub id: String,
    #[serde(with = "ids::confidence")]
    pub confidence: Confidence,
    pub evidence: String,
    pub r#try: String,
}

impl FindingRecord {
    pub(crate) fn of(finding: &Finding) -> FindingRecord {
        FindingRecord {
            id: finding.id.clone(),
            confidence: finding.confidence,
            evidence: finding.evidence.clone(),
            r#try: finding.advice.clone(),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloRecord {
    pub objective: String,
    pub figure: Option<f64>,
    pub figure_without_lag: Option<f64>,
    pub bound: f64,
    pub met: bool,
    pub undecided: bool,
}

impl SloRecord {
    pub(crate) fn of(result: &SloResult) -> SloRecord {
        SloRecord {
            objective: result.objective.text.clone(),
            figure: known(result.figure),
            figure_without_lag: result.without_lag.and_then(known),
            bound: result.objective.bound,
            met: result.met,
            undecided: result.undecided,
        }
    }
}
