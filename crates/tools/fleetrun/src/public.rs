//! Limits the load on public addresses without the owner's permission: a fleet can send more than
//! any single machine.

use anyhow::{Result, anyhow};
use conduit::Peer;
use engine::{Endpoint, endpoint_key};
use plan::{Load, Plan};
use session::{endpoint_of, lane_peak};
use std::net::SocketAddr;
use units::show;
use world::owner::{is_public, permit_load};

/// Maximum load on public addresses without a proof, for all agents together, in calls a second or
/// users of a closed loop: a modest load of one machine.
const RATE_MAX: f64 = 1_000.0;
const USERS_MAX: u64 = 1_000;

/// Returns why a plan needs a proof of permission, if it calls public addresses from several
/// machines.
fn beyond(plan: &Plan, agents: usize) -> Option<String> {
    if agents < 2 {
        return None;
    }
    let (mut rate, mut users) = (0.0, 0);
    for lane in plan.lanes() {
        match &lane.load {
            Load::Open { .. } => match lane_peak(&lane) {
                Ok(more) => rate += more,
                Err(why) => return Some(format!("calls from {agents} machines ({why})")),
            },
            Load::Closed { users: more, .. } => users += u64::from(*more),
        }
    }
    if rate > RATE_MAX {
        return Some(format!("{} from {agents} machines", show::rate(rate)));
    }
    (users > USERS_MAX).then(|| format!("{users} users on {agents} machines"))
}

/// Searches for the proofs that a plan needs, before any of it is distributed.
///
/// # Errors
/// Fails for a public target whose owner does not permit this.
pub(crate) fn check(plan: &Plan, endpoints: &[Endpoint], agents: usize) -> Result<()> {
    let Some(why) = beyond(plan, agents) else { return Ok(()) };
    let journeys = plan.journeys.as_ref();
    if let Some(step) = journeys.and_then(|it| it.step_with_variable_host()) {
        anyhow::bail!(
            "the step {} takes its host from a value, which may be a public address, and {why} \
             need its owner's permission: write its host into the plan",
            units::quoted(&step.name)
        );
    }
    let further = journeys.into_iter().flat_map(|it| it.further_servers());
    let further = further.map(|url| endpoint_of(plan, url)).collect::<Result<Vec<Endpoint>>>()?;
    for endpoint in endpoints.iter().chain(&further) {
        let addresses: Vec<SocketAddr> = endpoint.peers.iter().filter_map(Peer::address).collect();
        if !is_public(&addresses) {
            continue;
        }
        let target = plan.targets.iter().find(|target| endpoint_key(&target.url) == endpoint.key);
        let target = target.map(|target| target.url.clone());
        let url = target.map_or_else(|| endpoint.key.parse(), Ok)?;
        permit_load(&url, &addresses).map_err(|refused| {
            anyhow!(
                "{} is public, and {why} need its owner's permission: {}",
                url.authority(),
                refused.text
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::scenario::ScenarioPlan;
    use plan::{Arrivals, Think};
    use units::{Nanos, Rate};

    #[test]
    fn the_rate_of_several_machines_is_summed() {
        let plan = |load| Plan { load, ..Plan::for_url("http://a.example/".parse().unwrap()) };
        let open = |rate| {
            let arrivals = Arrivals::constant(Rate(rate));
            plan(Load::Open { arrivals, session: None, connections_max: None, queue_max: None })
        };
        let closed = |users| plan(Load::Closed { users, think: Think::None, session: None });
        assert_eq!(beyond(&open(1_000.0), 8), None);
        assert_eq!(beyond(&open(1_001.0), 1), None);
        let why = beyond(&open(2_000.0), 8).unwrap();
        assert!(why.contains("from 8 machines"), "{why}");
        assert_eq!(beyond(&closed(1_000), 2), None);
        assert!(beyond(&closed(1_001), 2).is_some());
        // the loads of scenarios count together
        let scenario = |load| ScenarioPlan {
            name: String::new(),
            load,
            stages: None,
            start: Nanos::ZERO,
            duration: None,
            parts: vec![0],
        };
        let two = |one: Plan, other: Plan| Plan {
            scenarios: vec![scenario(one.load), scenario(other.load)],
            ..Plan::for_url("http://a.example/".parse().unwrap())
        };
        assert_eq!(beyond(&two(open(500.0), open(500.0)), 2), None);
        assert!(beyond(&two(open(600.0), open(600.0)), 2).is_some());
        assert!(beyond(&two(closed(600), closed(600)), 2).is_some());
    }

    #[test]
    fn a_step_that_may_go_anywhere_is_refused() {
        let checked = |url: &str| {
            let plan = crate::journey("http://127.0.0.1/", "2000/s", url);
            check(&plan, &[], 2).map_err(|why| why.to_string())
        };
        assert_eq!(checked("/{{f.v}}"), Ok(()));
        let why = checked("http://{{f.v}}/").unwrap_err();
        assert!(why.contains("the step \"s\" takes its host from a value"), "{why}");
    }
}
