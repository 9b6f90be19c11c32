//! The highest rate that a plan reaches.

use plan::journey::{Journey, JourneyPart, JourneyPlan};
use plan::{Arrivals, Load, Plan, SessionPlan};
use units::Nanos;

/// Returns the maximum number of calls that fall due per second; for a trace, counted from its
/// instants.
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

/// Returns the number of calls of the longest session.
fn session_calls(session: &SessionPlan) -> usize {
    let visit = |visit: &plan::Visit| visit.groups.iter().map(|group| group.targets.len()).sum();
    let visits = session.visits.iter().map(visit).max();
    let lengths = session.lengths.iter().map(|calls| *calls as usize).max();
    visits.or(lengths).unwrap_or(session.calls as usize)
}

/// Reason why the call rate of a load is unknown. Its text includes a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnknown {
    ClosedLoop,
    Script,
}

impl std::fmt::Display for RateUnknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RateUnknown::ClosedLoop => {
                "a closed loop calls as fast as the server answers: give --rate"
            }
            RateUnknown::Script => {
                "the rate of a scripted journey is unknown: write its steps into the plan"
            }
        })
    }
}

/// Returns the maximum number of times that the steps of these parts run, including all rounds of
/// loops.
fn rounds(parts: &[JourneyPart]) -> f64 {
    let made = |part: &JourneyPart| match part {
        JourneyPart::Step(step) => f64::from(step.guard.repeat.1),
        JourneyPart::Block(block) => f64::from(block.guard.repeat.1) * rounds(&block.parts),
    };
    parts.iter().map(made).sum()
}

/// Returns the number of calls of the longest iteration among the journeys that are used.
fn journey_calls(plan: &JourneyPlan) -> Result<f64, RateUnknown> {
    let calls = |journey: &Journey| {
        if journey.script.is_some() {
            return Err(RateUnknown::Script);
        }
        // after an expired login, the login and the step are repeated
        let each = if journey.refresh.is_some() { 3.0 } else { 1.0 };
        Ok(each * rounds(&journey.parts))
    };
    let made = plan.journeys.iter().filter(|journey| journey.weight > 0.0);
    made.map(calls).try_fold(0.0, |most, calls| Ok(calls?.max(most)))
}

/// Returns the maximum number of calls per second of one load ([`Plan::lanes`]). A session or a
/// journey counts with all of its calls.
///
/// # Errors
/// Fails for a load with an unknown rate.
pub fn lane_peak(lane: &Plan) -> Result<f64, RateUnknown> {
    let Load::Open { arrivals, session, .. } = &lane.load else {
        return Err(RateUnknown::ClosedLoop);
    };
    let calls = match (&lane.journeys, session) {
        (Some(journeys), _) => journey_calls(journeys)?,
        (None, Some(session)) => session_calls(session) as f64,
        (None, None) => 1.0,
    };
    let staged = lane.stages.as_ref().map(|stages| stages.levels.highest());
    Ok(staged.unwrap_or_else(|| peak(arrivals)) * calls.max(1.0))
}

/// Returns the maximum number of calls per second of all loads and all machines together.
///
/// # Errors
/// Fails for a plan with a load of unknown rate.
pub fn rate_peak(plan: &Plan) -> Result<f64, RateUnknown> {
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
        assert_eq!(rate_peak(&staged), Ok(300.0));
        let session = SessionPlan::new(5, Think::None);
        assert_eq!(rate_peak(&plan(10.0, Some(session))), Ok(50.0));
    }

    fn journeys(text: &str) -> Plan {
        let plan = format!("version = 1\nurl = 'http://a.example/'\n[load]\nrate = '2/s'\n{text}");
        plan::from_toml(&plan, &plan::NoFiles).unwrap()
    }

    #[test]
    fn every_round_of_a_journey_counts() {
        let text = "[[journey]]\nname = 'j'\n[[journey.step]]\nname = 'a'\nurl = '/a'\nrepeat = 1000\n\
            [[journey.step]]\nname = 'b'\nrepeat = '2..3'\n\
            [[journey.step.step]]\nname = 'c'\nurl = '/c'\nrepeat = 5\n";
        assert_eq!(rate_peak(&journeys(text)), Ok(2.0 * 1_015.0));
        // an arrival makes one of several journeys: the longest, at worst
        let two =
            format!("{text}[[journey]]\nname = 'k'\n[[journey.step]]\nname = 'd'\nurl = '/d'\n");
        assert_eq!(rate_peak(&journeys(&two)), Ok(2.0 * 1_015.0));
        let mut expiring = journeys(text);
        let refresh = plan::journey::Refresh { statuses: vec![(401, 401)], row: 0 };
        expiring.journeys.as_mut().unwrap().journeys[0].refresh = Some(refresh);
        assert_eq!(rate_peak(&expiring), Ok(6.0 * 1_015.0));
    }

    #[test]
    fn the_call_rate_of_a_script_is_unknown() {
        let mut scripted =
            journeys("[[journey]]\nname = 'j'\n[[journey.step]]\nname = 'a'\nurl = '/a'\n");
        let script = plan::ScriptPlan {
            name: "j.lua".into(),
            text: Vec::new(),
            args: Vec::new(),
            files: Vec::new(),
        };
        let program = plan::journey::JourneyProgram {
            script,
            servers: Vec::new(),
            feeders: Vec::new(),
            metrics: Vec::new(),
            first_row: 0,
        };
        scripted.journeys.as_mut().unwrap().journeys[0].script = Some(program);
        assert_eq!(rate_peak(&scripted), Err(RateUnknown::Script));
    }

    #[test]
    fn the_peak_of_a_trace_is_that_of_its_busiest_second() {
        let due = [0, 100, 1_000, 1_050, 1_099, 1_100, 2_050];
        let at: Vec<Nanos> = due.into_iter().map(Nanos::from_millis).collect();
        let arrivals = Arrivals { at: Some(at.into()), ..Arrivals::constant(Rate(1.0)) };
        assert_eq!(peak(&arrivals) as u64, 4);
    }
}
