//! Budgets: the maximum rate of all machines together per host.

use fleet::HostBudget;
use plan::Plan;
use sample::BudgetFacts;
use session::{RateUnknown, lane_peak};
use units::show;
use url::Url;

/// Returns whether both names are the same host: case-insensitive, with IPv6 addresses in brackets
/// as in a URL.
pub(crate) fn is_same_host(one: &str, other: &str) -> bool {
    let bare = |host: &str| host.trim_matches(['[', ']']).to_ascii_lowercase();
    bare(one) == bare(other)
}

/// Returns whether a load may call the host.
fn calls(lane: &Plan, host: &str) -> bool {
    if lane.request.follow_max > 0 {
        // a redirect may lead there
        return true;
    }
    let is_host = |url: &Url| url.host_str().is_some_and(|own| is_same_host(own, host));
    if let Some(journeys) = &lane.journeys {
        let mut further = journeys.further_servers();
        // a step whose host is a value may use this server
        if further.any(is_host) || journeys.step_with_variable_host().is_some() {
            return true;
        }
    }
    match lane.sequence.as_slice() {
        [] => lane.targets.iter().any(|target| is_host(&target.url)),
        rows => rows.iter().any(|row| is_host(&lane.targets[*row as usize].url)),
    }
}

/// Checks a plan against the budgets. Each load that may call a host counts with its full rate.
///
/// # Errors
/// Fails if the plan exceeds a budget, or its rate is unknown.
pub(crate) fn check(plan: &Plan, budgets: &[HostBudget]) -> Result<Vec<BudgetFacts>, String> {
    let lanes = plan.lanes();
    let held = |(host, most): &HostBudget| {
        let all = lanes.iter().filter(|lane| calls(lane, host)).map(lane_peak);
        let asked: Result<f64, RateUnknown> = all.sum();
        let asked =
            asked.map_err(|why| format!("--budget {host}={}: {why}", show::rate(most.0)))?;
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
    use plan::{Arrivals, Load, Think};
    use units::Rate;

    fn plan(load: Load) -> Plan {
        Plan { load, ..Plan::for_url("http://a.example/".parse().unwrap()) }
    }

    fn open(rate: f64) -> Load {
        let arrivals = Arrivals::constant(Rate(rate));
        Load::Open { arrivals, session: None, connections_max: None, queue_max: None }
    }

    #[test]
    fn a_plan_is_held_against_the_sum() {
        let budgets = |rate: f64| vec![("a.example".to_owned(), Rate(rate))];
        let held = check(&plan(open(500.0)), &budgets(500.0)).unwrap();
        assert_eq!((held[0].most_per_s, held[0].asked_per_s), (500.0, 500.0));
        let why = check(&plan(open(501.0)), &budgets(500.0)).unwrap_err();
        assert!(why.contains("a.example=500/s") && why.contains("asks for 501/s"), "{why}");
        let closed = Load::Closed { users: 2, think: Think::None, session: None };
        assert!(check(&plan(closed.clone()), &budgets(500.0)).unwrap_err().contains("--rate"));
        // in any notation, and including redirects
        for host in ["A.Example", "[a.example]"] {
            assert!(check(&plan(open(501.0)), &[(host.to_owned(), Rate(500.0))]).is_err());
        }
        let mut follows = plan(open(501.0));
        follows.request.follow_max = 3;
        assert!(check(&follows, &[("b.example".to_owned(), Rate(500.0))]).is_err());
        // another host is not affected
        let other = vec![("b.example".to_owned(), Rate(1.0))];
        assert!(check(&plan(closed), &other).unwrap()[0].asked_per_s < 1e-9);
    }

    #[test]
    fn a_journey_counts_where_its_values_or_its_script_may_go() {
        let asked = |url: &str| {
            let plan = crate::journey("http://a.example/", "9/s", url);
            let budgets = vec![("b.example".to_owned(), Rate(1.0))];
            check(&plan, &budgets).map(|facts| facts[0].asked_per_s as u64)
        };
        assert_eq!(asked("/{{f.v}}"), Ok(0));
        assert!(asked("http://{{f.v}}/").unwrap_err().contains("asks for 9/s"));
        assert!(asked("http://b.example/{{f.v}}").unwrap_err().contains("asks for 9/s"));
    }
}
