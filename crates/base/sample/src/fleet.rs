//! The machines that carried out a run together.

use units::Nanos;

/// Facts of one run from many machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetFacts {
    /// Version of the message server; empty if unknown.
    pub server: String,
    pub agents: Vec<AgentFacts>,
    /// Parts of lost agents that others took over.
    pub moved: Vec<PartMove>,
    /// Maximum rates that all of them together may request of hosts.
    pub budgets: Vec<BudgetFacts>,
    /// Messages that manager and agents refused.
    pub refused: RefusedFacts,
}

/// Messages between manager and agents that did not belong to the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedFacts {
    /// Messages from or to another process.
    pub foreign: u64,
    /// Messages of another run or step.
    pub late: u64,
    /// Messages received a second time.
    pub replayed: u64,
}

/// State of an agent during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentState {
    #[default]
    Running,
    Lost,
    Over,
}

impl AgentState {
    pub fn id(self) -> &'static str {
        match self {
            AgentState::Running => "running",
            AgentState::Lost => "lost",
            AgentState::Over => "over",
        }
    }
}

/// State of an agent during the run, from its latest row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentNow {
    /// Number of the agent, from 1.
    pub number: u32,
    pub host: String,
    pub labels: String,
    pub state: AgentState,
    /// Calls that ended in the row, a second.
    pub calls_per_s: f64,
    /// 99 % quantile of the row's response times; `None` in a large fleet, and if no call ended.
    pub p99: Option<Nanos>,
    pub in_flight: u64,
    /// Calls offered since the start of the measured phase.
    pub offered: u64,
    pub lost: u64,
}

/// Slots of a lost agent that were offered to another agent: the arrivals whose number modulo `of`
/// is one of `slots`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartMove {
    /// Public halves of their keys.
    pub from: String,
    pub to: String,
    pub slots: Vec<u32>,
    pub of: u32,
    /// The first instant of the new owner, in seconds from the start of the measured phase.
    pub at_s: f64,
    /// Reason why it was refused; empty if it was accepted.
    pub refused: String,
}

/// A bound on the calls of all agents together to one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetFacts {
    pub host: String,
    pub most_per_s: f64,
    /// Highest rate of the plan.
    pub asked_per_s: f64,
}

/// One agent, and its part of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentFacts {
    /// Public half of its key.
    pub id: String,
    pub host: String,
    pub build: String,
    /// Labels such as `region=north`, as given at the agent's start; several are separated by
    /// commas.
    pub labels: String,
    pub workers: u32,
    /// Share of the load that was its own, 0..=1.
    pub weight: f64,
    /// Calls that it presented to the server, and arrivals with an unknown outcome.
    pub offered: u64,
    pub lost: u64,
    /// Time at which the agent was lost, in seconds from the start of the measured phase; `None` if
    /// it was not.
    pub lost_at_s: Option<f64>,
    /// End of its part: `done`, `dead-man`, `failed`, or the reason of its loss.
    pub ending: String,
    pub p50: Nanos,
    pub p99: Nanos,
    pub slip_p99: Nanos,
    /// Share of its core that its busiest worker used, 0..=1.
    pub busy: f64,
    /// Offset of the manager's clock relative to its own, in seconds, and the bound of its error.
    pub clock_ahead_s: f64,
    pub clock_bound: Nanos,
    /// Drift of the clocks during the run, in seconds; NaN if unknown.
    pub clock_drift_s: f64,
    /// Lateness of its first call, in seconds by its own clock; NaN without a call.
    pub first_call_s: f64,
    /// `VALID`, `DEGRADED` or `INVALID` by its own evidence; empty if it reported none.
    pub state: String,
    /// Causes of the agent's verdict, by name.
    pub causes: Vec<String>,
}

impl FleetFacts {
    /// Returns the number of worker threads of all agents.
    pub fn workers(&self) -> u32 {
        self.agents.iter().map(|agent| agent.workers).sum()
    }

    /// Returns the number of arrivals with an unknown outcome.
    pub fn lost(&self) -> u64 {
        self.agents.iter().map(|agent| agent.lost).sum()
    }

    /// Returns the maximum possible error of the clocks.
    pub fn clock_bound_max(&self) -> Nanos {
        self.agents.iter().map(|agent| agent.clock_bound).max().unwrap_or_default()
    }

    /// Returns the range of the agents' lateness of their first call, in seconds, each by its own
    /// clock: the spread of their starts, in addition to the clock bounds. `None` with fewer than
    /// two.
    pub fn start_spread_s(&self) -> Option<f64> {
        let firsts = self.agents.iter().map(|agent| agent.first_call_s);
        let (mut low, mut high, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0);
        for first in firsts.filter(|first| first.is_finite()) {
            (low, high, count) = (low.min(first), high.max(first), count + 1);
        }
        (count > 1).then_some(high - low)
    }
}
