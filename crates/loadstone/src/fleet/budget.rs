//! Budgets: how much all machines together may ask of a host.

use crate::args::HostBudget;
use crate::run::peak::{RateUnknown, lane_peak};
use plan::Plan;
use sample::BudgetFacts;
use units::show;
use url::Url;

/// Whether a load may call the host.
fn calls(lane: &Plan, host: &str) -> bool {
    if let Some(journeys) = &lane.journeys {
        let mut further = journeys.further_servers();
        let is_host = |url: &Url| url.host_str() == Some(host);
        // a step that goes where its values say may go there
        if further.any(is_host) || journeys.step_to_anywhere().is_some() {
            return true;
        }
    }
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
        // another host is none of its business
        let other = vec![("b.example".to_owned(), Rate(1.0))];
        assert!(check(&plan(closed), &other).unwrap()[0].asked_per_s < 1e-9);
    }

    #[test]
    fn a_journey_counts_where_its_values_or_its_script_may_go() {
        let asked = |url: &str| {
            let text = format!(
                "version = 1\nurl = 'http://a.example/'\n[load]\nrate = '9/s'\n[[feeder]]\nname = 'f'\n\
                 generate = {{ v = ['x'] }}\n[[journey]]\nname = 'j'\n[[journey.step]]\n\
                 name = 's'\nurl = '{url}'\n"
            );
            let plan = plan::from_toml(&text, &plan::NoFiles).unwrap();
            let budgets = vec![("b.example".to_owned(), Rate(1.0))];
            check(&plan, &budgets).map(|facts| facts[0].asked_per_s as u64)
        };
        assert_eq!(asked("/{{f.v}}"), Ok(0));
        assert!(asked("http://{{f.v}}/").unwrap_err().contains("asks for 9/s"));
        assert!(asked("http://b.example/{{f.v}}").unwrap_err().contains("asks for 9/s"));
    }
}
