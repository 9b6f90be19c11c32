//! A plan that is being written.

use crate::Plan;
use std::ops::{Deref, DerefMut};

/// Plan that files and options may still change. [`PlanDraft::settle`] turns it into a plan.
#[derive(Clone, Debug)]
pub struct PlanDraft(Plan);

impl PlanDraft {
    /// Starts a draft, possibly from an existing plan.
    pub fn new(plan: Plan) -> PlanDraft {
        PlanDraft(plan)
    }

    /// Returns the plan, with everything derived from the settings: sessions of journeys and of
    /// clients, the rows of URL patterns, and the parts of the run that objectives name.
    pub fn settle(self) -> Plan {
        let PlanDraft(mut plan) = self;
        plan.settle_journeys();
        plan.settle_clients();
        plan.settle_folds();
        // objectives name rows of patterns
        plan.settle_objectives();
        plan
    }
}

impl Deref for PlanDraft {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl DerefMut for PlanDraft {
    fn deref_mut(&mut self) -> &mut Plan {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Load};
    use units::Rate;

    #[test]
    fn settling_twice_changes_nothing() {
        let list = "http://h/user/1\nhttp://h/user/2\nhttp://h/about\n";
        let mut draft =
            PlanDraft::new(Plan::for_targets(crate::parse_url_list(list, None).unwrap()));
        draft.measure.folds.patterns = vec![crate::fold::parse_fold("/user/{id}").unwrap()];
        draft.measure.slo = stats::parse_objectives("/user/{id}: p99<1s").unwrap();
        let once = draft.settle();
        let of = once.measure.slo[0].of.as_ref().unwrap();
        assert_eq!(of.rows, stats::SubjectRows::Targets([0].into()));
        assert_eq!(PlanDraft::new(once.clone()).settle(), once);
    }

    #[test]
    fn an_open_load_of_clients_consists_of_sessions() {
        let mut draft = PlanDraft::new(Plan::for_url("http://h/".parse().unwrap()));
        let arrivals = Arrivals::constant(Rate(1.0));
        draft.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
        assert!(draft.clone().settle().load.session().is_none());
        let spec = crate::rules::parse_path("rtt=9ms", &wan::NoTraces).unwrap();
        draft.connection.clients = Some(wan::Population::new(spec));
        assert!(draft.settle().load.session().is_some());
    }
}
