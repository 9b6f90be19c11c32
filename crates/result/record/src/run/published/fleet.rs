//! The machines that carried a run out together.

use super::known;
use sample::{AgentFacts, BudgetFacts, FleetFacts, PartMove, RefusedFacts};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FleetRecord {
    /// Version of the server between them.
    pub server: String,
    /// Range of the agents' lateness of their first call, each by its own clock: the spread of
    /// their starts, in addition to the clock bounds.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub start_spread_s: Option<f64>,
    /// Maximum possible error of the clocks.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub clock_bound_max_s: f64,
    pub lost: u64,
    pub agents: Vec<AgentRecord>,
    /// Parts of lost agents that were offered to others.
    #[serde(default)]
    pub moved: Vec<MoveRecord>,
    /// Maximum rates that all agents together may request of hosts.
    #[serde(default)]
    pub budgets: Vec<BudgetRecord>,
    /// Refused messages between manager and agents. Omitted if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRecord>,
}

/// Messages that did not belong to the run, by reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct RefusedRecord {
    /// Messages from or to another process: an earlier one, or one with the same credentials.
    pub foreign: u64,
    /// Messages of another run or step.
    pub late: u64,
    /// Received before.
    pub replayed: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct MoveRecord {
    /// Public half of the lost agent's key.
    pub from: String,
    /// Public half of the new owner's key.
    pub to: String,
    /// Slots: the arrivals whose number modulo `of` is one of these.
    pub slots: Vec<u32>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1)))]
    pub of: u32,
    /// The first instant of the new owner, from the start of the measured phase.
    pub at_s: f64,
    /// Reason why it was refused; null if it was accepted.
    pub refused: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BudgetRecord {
    pub host: String,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub most_per_s: f64,
    /// Highest rate of the plan.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub asked_per_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct AgentRecord {
    /// Public half of its key.
    pub id: String,
    pub host: String,
    /// Version of the program.
    pub build: String,
    pub labels: String,
    pub workers: u32,
    /// Its share of the load.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub weight: f64,
    pub offered: u64,
    pub lost: u64,
    /// Time of the agent's last message, since the start of the measured phase; null if it was not
    /// lost.
    pub lost_at_s: Option<f64>,
    /// done, dead-man, failed, or why it was lost.
    pub ending: String,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_p50_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_p99_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub slip_p99_s: f64,
    /// Share of its core that its busiest worker used.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub busy: f64,
    /// Offset of the manager's clock relative to its own.
    pub clock_ahead_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub clock_bound_s: f64,
    pub clock_drift_s: Option<f64>,
    /// Lateness of its first call, by its own clock.
    pub first_call_s: Option<f64>,
    /// The agent's verdict on its own part: VALID, DEGRADED, INVALID; empty if it reported none.
    pub state: String,
    pub causes: Vec<String>,
}

impl FleetRecord {
    pub(crate) fn new(facts: &FleetFacts) -> FleetRecord {
        FleetRecord {
            server: facts.server.clone(),
            start_spread_s: facts.start_spread_s(),
            clock_bound_max_s: facts.clock_bound_max().as_secs_f64(),
            lost: facts.lost(),
            agents: facts.agents.iter().map(AgentRecord::new).collect(),
            moved: facts.moved.iter().map(MoveRecord::new).collect(),
            budgets: facts.budgets.iter().map(BudgetRecord::new).collect(),
            refused: RefusedRecord::new(facts.refused),
        }
    }
}

impl RefusedRecord {
    fn new(facts: RefusedFacts) -> Option<RefusedRecord> {
        let RefusedFacts { foreign, late, replayed } = facts;
        (facts != RefusedFacts::default()).then_some(RefusedRecord { foreign, late, replayed })
    }
}

impl MoveRecord {
    fn new(step: &PartMove) -> MoveRecord {
        MoveRecord {
            from: step.from.clone(),
            to: step.to.clone(),
            slots: step.slots.clone(),
            of: step.of,
            at_s: step.at_s,
            refused: (!step.refused.is_empty()).then(|| step.refused.clone()),
        }
    }
}

impl BudgetRecord {
    fn new(budget: &BudgetFacts) -> BudgetRecord {
        let BudgetFacts { host, most_per_s, asked_per_s } = budget.clone();
        BudgetRecord { host, most_per_s, asked_per_s }
    }
}

impl AgentRecord {
    fn new(agent: &AgentFacts) -> AgentRecord {
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
}
