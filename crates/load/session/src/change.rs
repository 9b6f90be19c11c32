//! Changes of a session's plan for one measurement.

use plan::{Load, Plan, PlanDraft};
use units::Nanos;

/// Differences between the plan of a measurement and that of its session.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub load: Option<Load>,
    pub path: Option<wan::PathSpec>,
    pub duration: Option<Nanos>,
    pub seed: Option<u64>,
    /// Objectives for the measurement.
    pub objectives: Option<Vec<stats::Objective>>,
    /// Length of a row of the time series.
    pub interval: Option<Nanos>,
}

impl Change {
    /// Returns the plan of one measurement.
    pub(crate) fn applied(&self, plan: &Plan) -> Plan {
        let mut plan = PlanDraft::new(plan.clone());
        plan.measure.repeat = 1;
        if let Some(load) = &self.load {
            plan.load = load.clone();
        }
        if let Some(path) = &self.path {
            plan.connection.path = Some(path.clone());
        }
        if let Some(span) = self.duration {
            plan.stop.duration = Some(span);
        }
        if let Some(seed) = self.seed {
            plan.seed = seed;
        }
        if let Some(objectives) = &self.objectives {
            plan.measure.slo.clone_from(objectives);
        }
        if let Some(interval) = self.interval {
            plan.measure.interval = interval;
        }
        plan.settle()
    }
}
