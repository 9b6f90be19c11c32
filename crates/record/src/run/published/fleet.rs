//! The machines that carried a run out together.

use sample::{AgentFacts, FleetFacts};
use serde::{Deserialize, Serialize};
use units::Nanos;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetRecord {
    pub server: String,
    pub start_spread_s: Option<f64>,
    pub clock_bound_max_s: f64,
    pub lost: u64,
    pub agents: Vec<AgentRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    pub id: String,
    pub host: String,
    pub build: String,
    pub labels: String,
    pub workers: u32,
    pub weight: f64,
    pub offered: u64,
    pub lost: u64,
    pub lost_at_s: Option<f64>,
    pub ending: String,
    pub response_p50_s: f64,
    pub response_p99_s: f64,
    pub slip_p99_s: f64,
    pub busy: f64,
    pub clock_ahead_s: f64,
    pub clock_bound_s: f64,
    pub clock_drift_s: Option<f64>,
    pub first_call_s: Option<f64>,
    pub state: String,
    pub causes: Vec<String>,
}

fn known(figure: f64) -> Option<f64> {
    figure.is_finite().then_some(figure)
}

impl FleetRecord {
    pub(crate) fn of(facts: &FleetFacts) -> FleetRecord {
        FleetRecord {
            server: facts.server.clone(),
            start_spread_s: facts.start_spread_s(),
            clock_bound_max_s: facts.clock_bound_max().as_secs_f64(),
            lost: facts.lost(),
            agents: facts.agents.iter().map(AgentRecord::of).collect(),
        }
    }

    pub(crate) fn facts(&self) -> FleetFacts {
        FleetFacts {
            server: self.server.clone(),
            agents: self.agents.iter().map(AgentRecord::facts).collect(),
        }
    }
}

impl AgentRecord {
    fn of(agent: &AgentFacts) -> AgentRecord {
        AgentRecord {
            id: agent.id.clone(),
            host: agent.host.clone(),
            build: agent.build.clone(),
            labels: agent.labels.clone(),
            workers: agent.workers,
            weight: agent.weight,
            offered: agent.offered,
            lost: agent.lost,
            lost_at_s: agent.lost_at_s,
            ending: agent.ending.clone(),
            response_p50_s: agent.p50.as_secs_f64(),
            response_p99_s: agent.p99.as_secs_f64(),
            slip_p99_s: agent.slip_p99.as_secs_f64(),
            busy: agent.busy,
            clock_ahead_s: agent.clock_ahead_s,
            clock_bound_s: agent.clock_bound.as_secs_f64(),
            clock_drift_s: known(agent.clock_drift_s),
            first_call_s: known(agent.first_call_s),
            state: agent.state.clone(),
            causes: agent.causes.clone(),
        }
    }

    fn facts(&self) -> AgentFacts {
        AgentFacts {
            id: self.id.clone(),
            host: self.host.clone(),
            build: self.build.clone(),
            labels: self.labels.clone(),
            workers: self.workers,
            weight: self.weight,
            offered: self.offered,
            lost: self.lost,
            lost_at_s: self.lost_at_s,
            ending: self.ending.clone(),
            p50: Nanos::from_secs_f64(self.response_p50_s),
            p99: Nanos::from_secs_f64(self.response_p99_s),
            slip_p99: Nanos::from_secs_f64(self.slip_p99_s),
            busy: self.busy,
            clock_ahead_s: self.clock_ahead_s,
            clock_bound: Nanos::from_secs_f64(self.clock_bound_s),
            clock_drift_s: self.clock_drift_s.unwrap_or(f64::NAN),
            first_call_s: self.first_call_s.unwrap_or(f64::NAN),
            state: self.state.clone(),
            causes: self.causes.clone(),
        }
    }
}
