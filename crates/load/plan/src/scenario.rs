//! Several concurrent loads, each with its own users or arrivals, times, and requests.

use crate::stages::{Levels, Stage, StageUnit, Stages};
use crate::{Load, Plan};
use units::{Nanos, Purpose, Seed};

/// Maximum number of scenarios of a plan.
pub const SCENARIOS_MAX: usize = 64;

/// One of several concurrent loads.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioPlan {
    pub name: String,
    pub load: Load,
    /// The size of the load over time, counted from its start.
    pub stages: Option<Stages>,
    /// Start, counted from the start of the measured phase.
    pub start: Nanos,
    /// Duration; `None` for the rest of the run.
    pub duration: Option<Nanos>,
    /// Rows of the plan's journeys or, without journeys, of its targets; never empty.
    pub parts: Vec<u32>,
}

impl ScenarioPlan {
    /// Returns the end, if independent of the run.
    pub fn ends_at(&self) -> Option<Nanos> {
        let staged = || self.stages.as_ref().map(|stages| stages.levels.span());
        Some(self.start + self.duration.or_else(staged).filter(|span| !span.is_zero())?)
    }

    /// Returns the load over the whole run, which takes `whole`; `None` if it is constant.
    fn levels(&self, whole: Nanos) -> Option<Stages> {
        let lasts_throughout = self.start.is_zero() && self.duration.is_none();
        let own = match (&self.stages, &self.load) {
            (Some(stages), _) => stages.clone(),
            (None, Load::Open { arrivals, .. })
                if lasts_throughout && arrivals.from == arrivals.to =>
            {
                return None;
            }
            (None, Load::Closed { .. }) if lasts_throughout => return None,
            (None, load) => {
                let (unit, from, to) = match load {
                    Load::Closed { users, .. } => {
                        (StageUnit::Users, f64::from(*users), f64::from(*users))
                    }
                    Load::Open { arrivals, .. } => {
                        (StageUnit::PerSecond, arrivals.from.0, arrivals.to.0)
                    }
                };
                let over = self.duration.unwrap_or(whole - self.start);
                let levels = Levels::new(&[Stage { over, from, to }]).ok()?;
                Stages { unit, levels }
            }
        };
        Some(Stages { unit: own.unit, levels: own.levels.delayed(self.start, self.duration) })
    }
}

impl Plan {
    /// Returns the loads of the plan: those of its scenarios or, without scenarios, its own.
    pub fn loads(&self) -> Vec<&Load> {
        match self.scenarios.as_slice() {
            [] => vec![&self.load],
            scenarios => scenarios.iter().map(|scenario| &scenario.load).collect(),
        }
    }

    /// Returns the loads of the plan for writing.
    pub fn loads_mut(&mut self) -> Vec<&mut Load> {
        match self.scenarios.as_mut_slice() {
            [] => vec![&mut self.load],
            scenarios => scenarios.iter_mut().map(|scenario| &mut scenario.load).collect(),
        }
    }

    /// Returns a plan for each single load, over the time of the whole run; a plan without
    /// scenarios is returned unchanged. Targets and journeys keep their rows.
    pub fn lanes(&self) -> Vec<Plan> {
        if self.scenarios.is_empty() {
            return vec![self.clone()];
        }
        let rows = 0..self.scenarios.len();
        rows.map(|row| self.lane(row)).collect()
    }

    fn lane(&self, row: usize) -> Plan {
        let scenario = &self.scenarios[row];
        let mut lane = self.clone();
        lane.scenarios.clear();
        lane.load = scenario.load.clone();
        lane.stages = scenario.levels(self.stop.duration.unwrap_or(Nanos::ZERO));
        // equal random streams would make arrivals of several loads coincide
        lane.seed = match row {
            0 => self.seed,
            row => Seed(self.seed).stream(Purpose::Scenarios, row as u64).next_u64(),
        };
        match &mut lane.journeys {
            Some(journeys) => {
                for (number, journey) in (0u32..).zip(&mut journeys.journeys) {
                    let is_part = scenario.parts.contains(&number);
                    journey.weight = if is_part { journey.weight } else { 0.0 };
                }
            }
            None => lane.sequence.clone_from(&scenario.parts),
        }
        lane
    }

    /// Returns the names of its scenarios.
    pub fn scenario_names(&self) -> Vec<String> {
        self.scenarios.iter().map(|scenario| scenario.name.clone()).collect()
    }
}
