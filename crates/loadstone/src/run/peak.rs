//! The highest rate that a plan reaches.

use plan::{Arrivals, Load, Plan, SessionPlan};
use units::Nanos;

/// The most calls that fall due in a second: of a trace by its instants, whatever rate stands beside it.
pub(crate) fn peak(arrivals: &Arrivals) -> f64 {
    let Some(at) = &arrivals.at else { return arrivals.from.0.max(arrivals.to.0) };
    let (mut first, mut most) = (0, 0);
    for (row, due) in at.iter().enumerate() {
        while at[first] + Nanos::SECOND <= *due {
            first += 1;
        }
        most = most.max(row + 1 - first);
    }
    most as f64
}

/// Calls of the longest session.
fn session_calls(session: &SessionPlan) -> usize {
    let visit = |visit: &plan::Visit| visit.groups.iter().map(|group| group.targets.len()).sum();
    let visits = session.visits.iter().map(visit).max();
    let lengths = session.lengths.iter().map(|calls| *calls as usize).max();
    visits.or(lengths).unwrap_or(session.calls as usize)
}

/// The most calls a second of a load alone ([`Plan::lanes`]); `None`: a closed loop has no rate. A
/// session or a journey counts with all of its calls.
pub(crate) fn lane_peak(lane: &Plan) -> Option<f64> {
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
pub(crate) fn rate_peak(plan: &Plan) -> Option<f64> {
    plan.lanes().iter().map(lane_peak).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Think;
    use units::Rate;

    fn plan(rate: f64, session: Option<SessionPlan>) -> Plan {
        let arrivals = Arrivals::constant(Rate(rate));
        let load = Load::Open { arrivals, session, connections_max: None, queue_max: None };
        Plan { load, ..Plan::for_url("http://a.example/".parse().unwrap()) }
    }

    #[test]
    fn the_highest_stage_and_every_call_of_a_session_count() {
        let mut staged = plan(1.0, None);
        staged.set_stages(plan::stages::parse_stages("10s:300/s, 10s:20/s").unwrap());
        assert_eq!(rate_peak(&staged), Some(300.0));
        let session = SessionPlan::of(5, Think::None);
        assert_eq!(rate_peak(&plan(10.0, Some(session))), Some(50.0));
    }

    #[test]
    fn the_peak_of_a_trace_is_that_of_its_busiest_second() {
        let due = [0, 100, 1_000, 1_050, 1_099, 1_100, 2_050];
        let at: Vec<Nanos> = due.into_iter().map(Nanos::from_millis).collect();
        let arrivals = Arrivals { at: Some(at.into()), ..Arrivals::constant(Rate(1.0)) };
        assert_eq!(peak(&arrivals) as u64, 4);
    }
}
