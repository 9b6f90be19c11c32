//! Verdict causes of a fleet. No agent is excluded because its figures are bad: this would select
//! by the outcome. The share of the load from bad agents decides.

use super::{Cause, Evidence, SLIP_MAX, State};
use crate::CauseId;
use sample::{AgentFacts, FleetFacts};
use units::{Nanos, show};

/// Maximum share of all calls from invalid agents; above it the run is INVALID with
/// `agent-invalid`.
pub const TAINTED_SHARE_MAX: f64 = 0.01;
/// DEGRADED `clock`: an offset's bound above this share of a row of the series.
const CLOCK_SHARE_MAX: f64 = 0.1;

/// Causes that invalidate an agent's own measurement and originate there.
const OWN: [CauseId; 4] =
    [CauseId::Slip, CauseId::NotOffered, CauseId::Ports, CauseId::Descriptors];

/// Returns whether an agent's part alone would be INVALID because of the agent.
pub fn tainted(agent: &AgentFacts) -> bool {
    let own = |name: &String| OWN.iter().any(|cause| cause.id() == name);
    agent.state == State::Invalid.id() && agent.causes.iter().any(own)
}

/// Lists agents by name: the first three, and how many more.
fn named<'a>(
    agents: impl Iterator<Item = &'a AgentFacts>,
    tell: fn(&AgentFacts) -> String,
) -> String {
    let all: Vec<String> = agents.map(tell).collect();
    let more = all.len().saturating_sub(3);
    let shown = all.into_iter().take(3).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// Returns the cause for agents with calls of unknown outcome. A lost arrival is not offered: many
/// of them make the run INVALID.
pub(super) fn agent_lost(evidence: &Evidence<'_>) -> Option<Cause> {
    let fleet = evidence.fleet?;
    let gone = || fleet.agents.iter().filter(|agent| agent.lost > 0 || agent.lost_at_s.is_some());
    gone().next()?;
    let due = evidence.measurement.total.counts.due.max(1);
    let share = fleet.lost() as f64 / due as f64;
    let tell = |agent: &AgentFacts| match agent.lost_at_s {
        Some(at) => format!("{} at {at:.1} s ({})", agent.host, agent.ending),
        None => format!("{} ({})", agent.host, agent.ending),
    };
    Some(Cause {
        id: CauseId::AgentLost,
        figure: share,
        text: format!(
            "{} of {} agents were lost, and with them {} of the arrivals: {}",
            gone().count(),
            fleet.agents.len(),
            show::share(share),
            named(gone(), tell)
        ),
        advice: "The outcome of the lost calls is unknown: check these machines and repeat."
            .to_owned(),
    })
}

/// Reports agents whose own part is INVALID, with the state that results from their share of the
/// load.
pub(super) fn agent_invalid(evidence: &Evidence<'_>) -> Option<(State, Cause)> {
    let fleet = evidence.fleet?;
    let bad = || fleet.agents.iter().filter(|agent| tainted(agent));
    let calls: u64 = fleet.agents.iter().map(|agent| agent.offered).sum();
    let theirs: u64 = bad().map(|agent| agent.offered).sum();
    bad().next()?;
    let share = theirs as f64 / calls.max(1) as f64;
    let highest = evidence.quantiles.iter().copied().filter(|q| *q < 1.0).fold(0.5, f64::max);
    let state = if share > TAINTED_SHARE_MAX {
        State::Invalid
    } else if share > (1.0 - highest) / 10.0 {
        State::Degraded
    } else {
        return None;
    };
    let tell = |agent: &AgentFacts| format!("{} ({})", agent.host, agent.causes.join(", "));
    let cause = Cause {
        id: CauseId::AgentInvalid,
        figure: share,
        text: format!(
            "{} of the calls came from agents whose own part is INVALID (at most {}): {}",
            show::share(share),
            show::share(TAINTED_SHARE_MAX),
            named(bad(), tell)
        ),
        advice:
            "Their calls are not excluded, which would bias the result: give these machines less \
             load or more cores, and repeat."
                .to_owned(),
    };
    Some((state, cause))
}

/// Reports clocks that are too imprecise for rows of this length.
pub(super) fn clock(evidence: &Evidence<'_>) -> Option<Cause> {
    let bound = evidence.fleet.map(FleetFacts::clock_bound_max)?;
    let row = evidence.measurement.series.iter().map(|second| second.span_s).fold(0.0, f64::max);
    let limit = Nanos::from_secs_f64(row * CLOCK_SHARE_MAX).max(SLIP_MAX);
    (row > 0.0 && bound > limit).then(|| Cause {
        id: CauseId::Clock,
        figure: bound.as_secs_f64(),
        text: format!(
            "an agent's clock is known to within {} (at most {})",
            show::duration(bound),
            show::duration(limit)
        ),
        advice:
            "Agents may have started this far apart, which blurs sudden changes of the load. A \
             server nearer to the agents allows better clock synchronization."
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::judge;
    use crate::{Counts, Measurement};

    fn agent(offered: u64, state: &str, cause: &str) -> AgentFacts {
        AgentFacts {
            host: format!("host-{offered}"),
            offered,
            state: state.into(),
            causes: vec![cause.into()],
            ..AgentFacts::default()
        }
    }

    fn verdict_of(agents: Vec<AgentFacts>) -> crate::Verdict {
        let mut measurement = Measurement::default();
        let due = agents.iter().map(|agent| agent.offered + agent.lost).sum();
        let lost = agents.iter().map(|agent| agent.lost).sum();
        measurement.total.counts = Counts { due, lost, succeeded: due - lost, ..Counts::default() };
        measurement.total.service.record_n(Nanos::from_millis(5), due - lost);
        measurement.total.succeeded.record_n(Nanos::from_millis(5), due - lost);
        measurement.total.punctual.record_n(Nanos::from_millis(5), due - lost);
        measurement.intended = Some(due);
        let fleet = FleetFacts { agents, ..FleetFacts::default() };
        let evidence = Evidence {
            fleet: Some(&fleet),
            quantiles: &[0.5, 0.99],
            ..Evidence::new(&measurement)
        };
        judge(&evidence)
    }

    #[test]
    fn the_share_of_bad_agents_decides() {
        let state_of = |bad: u64| {
            let good = agent(100_000 - bad, "VALID", "");
            verdict_of(vec![good, agent(bad, "INVALID", "slip")]).state
        };
        assert_eq!(state_of(1_100), State::Invalid);
        assert_eq!(state_of(900), State::Degraded);
        assert_eq!(state_of(90), State::Valid);
        // an agent is not to blame for the target's behavior
        let theirs = vec![agent(900, "VALID", ""), agent(900, "INVALID", "all-failed")];
        assert_eq!(verdict_of(theirs).state, State::Valid);
    }

    #[test]
    fn lost_arrivals_are_not_offered() {
        let with = |lost: u64| {
            let gone = AgentFacts {
                lost,
                lost_at_s: Some(5.25),
                ending: "silent for 6.00 s".into(),
                ..agent(500, "", "")
            };
            verdict_of(vec![agent(9_500, "VALID", ""), gone])
        };
        let few = with(50);
        assert_eq!(few.state, State::Degraded);
        assert_eq!(few.causes[0].id, CauseId::AgentLost);
        assert!(few.causes[0].text.contains("host-500 at 5.2 s (silent for 6.00 s)"), "{few:?}");
        let many = with(200);
        assert_eq!(many.state, State::Invalid);
        let ids: Vec<CauseId> = many.causes.iter().map(|cause| cause.id).collect();
        assert_eq!(ids, [CauseId::NotOffered, CauseId::AgentLost]);
        assert!(many.causes[0].advice.contains("lost agents"), "{many:?}");
    }
}
