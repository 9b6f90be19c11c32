//! Machines that carry a plan out in place of this one: a fleet is one kind of them.

use super::measure::Measured;
use super::prepare::Prepared;
use super::threads::Watcher;
use crate::calibration::Calibration;
use anyhow::Result;
use engine::Setup;
use plan::Plan;
use sample::BudgetFacts;

/// Other machines, commanded from here.
pub(crate) trait Elsewhere: std::fmt::Debug + Send + Sync {
    /// Whether they can carry this out, and may. Gives what it asks of the budgets.
    ///
    /// # Errors
    /// What only one machine can do, and what is beyond the terms.
    fn admit(&self, plan: &Plan) -> Result<Vec<BudgetFacts>>;

    /// Carries the plan out once on all of them.
    ///
    /// # Errors
    /// A plan that one of them cannot or may not carry out, and one that is lost before the start.
    fn measure(
        &self,
        plan: &Plan,
        prepared: &Prepared,
        calibration: Option<&Calibration>,
        watcher: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
    ) -> Result<Measured>;
}
