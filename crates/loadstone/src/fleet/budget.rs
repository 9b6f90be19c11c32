//! Budgets: how much all machines together may ask of a host.

use super::public::peak;
use plan::{Load, Plan, SessionPlan};
use sample::BudgetFacts;
use units::{Rate, show};

/// The most calls a second that all agents together may send to a host: a name or an address.
pub(crate) type HostBudget = (String, Rate);

/// Calls of the longest session.
fn session_calls(session: &SessionPlan) -> usize {
    let visit = |visit: &plan::Visit| visit.groups.iter().map(|group| group.targets.len()).sum();
    let visits = session.visits.iter().map(visit).max();
    let lengths = session.lengths.iter().map(|calls| *calls as usize).max();
    visits.or(lengths).unwrap_or(session.calls as usize)
}

/// The most calls a second of a load alone ([`Plan::lanes`]); `None`: a closed loop has no rate. A
/// session or a journey counts with all of its calls.
pub(super) fn lane_peak(lane: &Plan) -> Option<f64> {
    let Load::Open { arrivals, session, .. } = &lane.load else { return None };
    let calls = match (&lane.journeys, session) {
        (Some(journeys), _) => journeys.steps().len(),
        (None, Some(session)) => session_calls(session),
        (None, None) => 1,
    };
    let staged = lane.stages.as_ref().map(|stages| stages.levels.highest());
    Some(staged.unwrap_or_else(|| peak(arrivals)) * calls.max(1) as f64)
}

/// The highest rate that all machines together reach; `None`: a closed loop has none.
pub(super) fn rate_peak(plan: &Plan) -> Option<f64> {
    plan.lanes().iter().map(lane_peak).sum()
}

/// Whether a load may call the host.
fn calls(lane: &Plan, host: &str) -> bool {
    let is_host = |row: usize| lane.targets[row].url.host_str() == Some(host);
    match lane.sequence.as_slice() {
        [] => (0..lane.targets.len()).any(is_host),
        rows => rows.iter().any(|row| is_host(*row as usize)),
    }
}

/// Holds a plan against the budgets. Each load that may call a host counts with all of its rate.
///
/// # Errors
/// The plan asks for more, or for nobody knows how much.
pub(super) fn check(plan: &Plan, budgets: &[HostBudget]) -> Result<Vec<BudgetFacts>, String> {
    let lanes = plan.lanes();
    let held = |(host, most): &HostBudget| {
        let all = lanes.iter().filter(|lane| calls(lane, host)).map(lane_peak);
        let Some(asked) = all.sum::<Option<f64>>() else {
            return Err(format!(
                "--budget {host}={}: a closed loop calls as fast as the server answers: give --rate",
                show::rate(most.0)
            ));
        };
        if asked > most.0 {
            return Err(format!(
                "--budget {host}={}: the plan asks for {} of all agents together",
                show::rate(most.0),
                show::rate(asked)
            ));
        }
        Ok(BudgetFacts { host: host.clone(), most_per_s: most.0, asked_per_s: asked })
    };
    budgets.iter().map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Arrivals, Think};

    fn plan(load: Load) -> Plan {
        Plan { load, ..Plan::for_url("http://a.example/".parse().unwrap()) }
    }

    fn open(rate: f64, session: Option<SessionPlan>) -> Load {
        let arrivals = Arrivals::constant(Rate(rate));
        Load::Open { arrivals, session, connections_max: None, queue_max: None }
    }

    #[test]
    fn a_plan_is_held_against_the_sum() {
        let budgets = |rate: f64| vec![("a.example".to_owned(), Rate(rate))];
        let held = check(&plan(open(500.0, None)), &budgets(500.0)).unwrap();
        assert_eq!((held[0].most_per_s, held[0].asked_per_s), (500.0, 500.0));
        let why = check(&plan(open(501.0, None)), &budgets(500.0)).unwrap_err();
        assert!(why.contains("a.example=500/s") && why.contains("asks for 501/s"), "{why}");
        let closed = Load::Closed { users: 2, think: Think::None, session: None };
        assert!(check(&plan(closed.clone()), &budgets(500.0)).unwrap_err().contains("--rate"));
        // another host is none of its business
        let other = vec![("b.example".to_owned(), Rate(1.0))];
        assert!(check(&plan(closed), &other).unwrap()[0].asked_per_s < 1e-9);
    }

    #[test]
    fn the_highest_stage_and_every_call_of_a_session_count() {
        let mut staged = plan(open(1.0, None));
        staged.set_stages(plan::stages::parse_stages("10s:300/s, 10s:20/s").unwrap());
        assert_eq!(rate_peak(&staged), Some(300.0));
        let session = SessionPlan::of(5, Think::None);
        assert_eq!(rate_peak(&plan(open(10.0, Some(session)))), Some(50.0));
    }
}
