//! In place of `fleet`, in a build without that feature.

use crate::calibration::Calibration;
use crate::run::measure::Measured;
use crate::run::prepare::Prepared;
use crate::run::threads::Watcher;
use engine::Setup;
use plan::Plan;

/// There is no fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Convoy {}

impl Convoy {
    pub(crate) fn admit(&self, _: &Plan) -> anyhow::Result<Vec<sample::BudgetFacts>> {
        match *self {}
    }

    pub(crate) fn measure(
        &self,
        _: &Plan,
        _: &Prepared,
        _: Option<&Calibration>,
        _: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
    ) -> anyhow::Result<Measured> {
        match *self {}
    }
}
