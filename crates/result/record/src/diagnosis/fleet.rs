//! Findings from the machines of a fleet: they differ in their observations, or in themselves.

use crate::ramp::RampStep;
use crate::run::{Finding, RunReport};
use sample::{AgentFacts, FleetFacts};
use stats::diagnosis::Confidence;
use std::collections::BTreeSet;
use units::show;

const UNEVEN: &str = "uneven-agents";
const MIXED: &str = "mixed-versions";
pub(super) const IDS: [&str; 2] = [UNEVEN, MIXED];

/// An agent is an outlier if its median is this multiple of the others', and at least this much
/// longer.
const TIMES_MIN: f64 = 2.0;
const APART_MIN_S: f64 = 0.001;
/// Minimum number of calls for a meaningful median.
const CALLS_MIN: u64 = 30;
/// Maximum number of agents named.
const NAMED_MAX: usize = 3;

pub(super) fn findings(facts: &FleetFacts, report: &RunReport) -> Vec<Finding> {
    let versions = mixed_versions(facts, &report.environment.version);
    uneven_agents(facts).into_iter().chain(versions).collect()
}

/// Returns the finding for a ramp, whose steps may all have it: reported once, for the first.
pub(super) fn of_steps(steps: &[&RampStep]) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for step in steps {
        let facts = step.run.fleet.iter();
        for mut found in facts.flat_map(|facts| findings(facts, &step.run)) {
            if all.iter().all(|known| known.id != found.id) {
                found.evidence = format!("at a load of {}: {}", step.point.level, found.evidence);
                all.push(found);
            }
        }
    }
    all
}

/// Reports agents whose median response time is far from the median agent's: a mixture has
/// quantiles that no agent observed.
fn uneven_agents(facts: &FleetFacts) -> Option<Finding> {
    let heard = || facts.agents.iter().enumerate().filter(|(_, one)| one.offered >= CALLS_MIN);
    let mut medians: Vec<f64> = heard().map(|(_, agent)| agent.p50.as_secs_f64()).collect();
    if medians.len() < 2 {
        return None;
    }
    medians.sort_by(f64::total_cmp);
    // the smaller of two: the other is then compared with it
    let usual = medians[(medians.len() - 1) / 2];
    let times = |agent: &AgentFacts| {
        let own = agent.p50.as_secs_f64();
        let apart = (own - usual).abs() >= APART_MIN_S;
        let ratio = if own > usual { own / usual.max(1e-9) } else { usual / own.max(1e-9) };
        if apart { ratio } else { 1.0 }
    };
    let mut odd: Vec<(usize, &AgentFacts)> =
        heard().filter(|(_, agent)| times(agent) >= TIMES_MIN).collect();
    odd.sort_by(|(_, one), (_, other)| times(other).total_cmp(&times(one)));
    odd.first()?;
    let tell = |(row, agent): &(usize, &AgentFacts)| {
        let labels =
            if agent.labels.is_empty() { String::new() } else { format!(" [{}]", agent.labels) };
        format!("agent {} on {}{labels} {}", row + 1, agent.host, show::duration(agent.p50))
    };
    let named: Vec<String> = odd.iter().take(NAMED_MAX).map(tell).collect();
    let more = match odd.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(Finding {
        id: UNEVEN.to_owned(),
        confidence: Confidence::Likely,
        evidence: format!(
            "half of the responses arrived within {} at the median agent, but not at {}{more}",
            show::duration(units::Nanos::from_secs_f64(usual)),
            named.join(", ")
        ),
        advice:
            "The merged quantiles are those of a mixture: read them by agent, or run near and far \
                 machines apart. If the network does not differ, look at these machines."
                .to_owned(),
    })
}

fn mixed_versions(facts: &FleetFacts, own: &str) -> Option<Finding> {
    let known = facts.agents.iter().map(|agent| agent.build.as_str()).filter(|it| !it.is_empty());
    let builds: BTreeSet<&str> = known.chain([own]).collect();
    if builds.len() < 2 {
        return None;
    }
    let count = |build: &&str| {
        let agents = facts.agents.iter().filter(|agent| agent.build == **build).count();
        let plural = if agents == 1 { "" } else { "s" };
        let manager = if *build == own { " and the manager" } else { "" };
        format!("{build} ({agents} agent{plural}{manager})")
    };
    Some(Finding {
        id: MIXED.to_owned(),
        confidence: Confidence::Certain,
        evidence: format!(
            "versions of loadstone differ: {}",
            builds.iter().map(count).collect::<Vec<_>>().join(", ")
        ),
        advice:
            "They speak the same protocol, but may measure differently: install one version on all \
                 machines."
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    fn agent(host: &str, p50_us: u64, offered: u64, build: &str) -> AgentFacts {
        AgentFacts {
            host: host.into(),
            p50: Nanos::from_micros(p50_us),
            offered,
            build: build.into(),
            ..AgentFacts::default()
        }
    }

    fn fleet(agents: Vec<AgentFacts>) -> FleetFacts {
        FleetFacts { agents, ..FleetFacts::default() }
    }

    #[test]
    fn an_agent_that_is_far_away_is_reported() {
        let usual = |host| agent(host, 4_000, 100, "1");
        let far = AgentFacts { labels: "region=south".into(), ..agent("c", 95_000, 100, "1") };
        let found = uneven_agents(&fleet(vec![usual("a"), usual("b"), far])).unwrap();
        assert!(found.evidence.contains("within 4.00 ms at the median agent"), "{found:?}");
        assert!(found.evidence.contains("agent 3 on c [region=south] 95.0 ms"), "{found:?}");
        // twice of next to nothing, and too few calls
        assert_eq!(uneven_agents(&fleet(vec![usual("a"), agent("b", 4_900, 100, "1")])), None);
        let quick = vec![agent("a", 100, 100, "1"), agent("b", 900, 100, "1")];
        assert_eq!(uneven_agents(&fleet(quick)), None);
        let few = vec![usual("a"), usual("b"), agent("c", 95_000, 9, "1")];
        assert_eq!(uneven_agents(&fleet(few)), None);
        // a single agent has no outlier
        assert_eq!(uneven_agents(&fleet(vec![agent("a", 95_000, 100, "1")])), None);
    }

    #[test]
    fn other_versions_are_reported_with_their_number() {
        let one = |build| agent("a", 1, 100, build);
        assert_eq!(mixed_versions(&fleet(vec![one("1.0"), one("")]), "1.0"), None);
        let found =
            mixed_versions(&fleet(vec![one("1.0"), one("0.9"), one("0.9")]), "1.0").unwrap();
        let text = "0.9 (2 agents), 1.0 (1 agent and the manager)";
        assert!(found.evidence.contains(text), "{found:?}");
    }
}
