//! Input of a measurement: its load, and its observers.

use crate::change::Change;
use crate::scripts::Scripts;
use crate::threads::RequestSource;
use crate::watcher::Watcher;
use engine::{Logging, Setup};
use plan::Plan;

/// The load of one measurement.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "made once per run")]
pub enum RunLoad {
    /// The load that the session was opened for. Each repeat has its own arrivals and draws.
    Repeat(u32),
    /// The session's plan with a change: cores, limits and the network are adapted to it again.
    Changed(Change),
}

impl RunLoad {
    /// Returns the plan with the seed of this measurement.
    pub(crate) fn seeded(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        if let RunLoad::Repeat(repeat) = self {
            plan.seed = plan.seed.wrapping_add(u64::from(*repeat));
        }
        plan
    }
}

/// Observers of a measurement, and the sources of its requests.
pub struct Observers<'a> {
    /// Creates the watcher of the run; the setup has its first instant.
    pub watch: &'a mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
    /// Finished calls that are reported to the watcher.
    pub logging: Logging,
    /// One source of requests for each worker; `None` for the plan's own script, journeys or
    /// targets.
    pub sources: Option<Vec<RequestSource>>,
    /// The plan's scripts print on standard error instead of standard output.
    pub aside: bool,
    /// Keeps the plan's script for its own report after the runs; `None` if it has none.
    pub scripts: Option<&'a mut Scripts>,
}

impl std::fmt::Debug for Observers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observers").field("logging", &self.logging).finish_non_exhaustive()
    }
}

impl<'a> Observers<'a> {
    /// Creates observers that consist of a watcher; standard output belongs to the caller.
    pub fn new(watch: &'a mut dyn FnMut(&Setup) -> Box<dyn Watcher>) -> Observers<'a> {
        Observers { watch, logging: Logging::default(), sources: None, aside: true, scripts: None }
    }
}
