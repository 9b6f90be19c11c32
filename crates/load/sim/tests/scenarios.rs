//! Loads that change from stage to stage, and several concurrent loads, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use plan::stages::parse_stages;
use plan::{NoFiles, Plan, from_toml};
use sim::{
    Action, Admission, Client, ClosureServer, Simulated, World, execute_scenarios, execute_with,
};
use std::collections::BTreeMap;
use units::Nanos;

const HEAD: &str = "version = 1\nurl = 'http://sim.example/'\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn plan(text: &str) -> Plan {
    let plan = from_toml(&format!("{HEAD}{text}"), &NoFiles).unwrap();
    if let Err(problems) = plan::validate(&plan) {
        panic!("{problems:?}");
    }
    plan
}

/// Returns a server that answers each request after `millis`.
fn world(millis: u64) -> World {
    let react = move |now: Nanos, _: Client, _: &[u8]| {
        vec![(now + Nanos::from_millis(millis), Action::Bytes(OK.to_vec()))]
    };
    World::new(
        Box::new(ClosureServer { admit: Admission::Accept, react }),
        Nanos::ZERO,
        Nanos::from_secs(1_000),
    )
}

fn run(plan: Plan, workers: u32) -> Simulated {
    execute_with(plan, world(100), workers, None)
}

/// Number of calls that fell due within these seconds of the run.
fn due_within(run: &Simulated, from: f64, to: f64) -> usize {
    let start = Nanos::from_secs(1_000);
    let at = |intended: Nanos| (intended - start).as_secs_f64();
    run.calls.iter().filter(|(sample, _)| (from..to).contains(&at(sample.intended))).count()
}

#[test]
fn the_number_of_users_follows_the_stages() {
    for workers in [1, 3] {
        // ten users more in each of four seconds, forty for two, and none again after one more
        let run =
            run(plan("[load]\nstages = '4s:0..40, 2s:40, 1s:0'\n[stop]\nduration = '8s'"), workers);
        // a user makes ten calls a second: 40 · 10 · 2
        assert_eq!(due_within(&run, 4.0, 6.0), 800, "{workers}");
        let rising = due_within(&run, 0.0, 4.0) as f64;
        assert!((rising - 800.0).abs() <= 40.0, "the area of the ramp: {rising}");
        let falling = due_within(&run, 6.0, 7.0) as f64;
        assert!((falling - 200.0).abs() <= 40.0, "{falling}");
        assert_eq!(due_within(&run, 7.0, 99.0), 0);
        assert_eq!(run.measurement.total.counts.succeeded, run.measurement.total.counts.due);
        // each has its connection, which is closed when its user leaves, not at the end
        assert_eq!(run.connections.len(), 40);
        let start = Nanos::from_secs(1_000);
        let last = run.connections.iter().map(|one| one.closed - start).max().unwrap();
        assert!(last < Nanos::from_secs(7) + Nanos::from_millis(150), "{last:?}");
    }
}

#[test]
fn departed_users_return() {
    let run = run(plan("[load]\nstages = '1s:5, 1s:0..0, 1s:5..5'\nthink = '100ms'"), 1);
    let within = |from: f64, to: f64| due_within(&run, from, to);
    assert_eq!([within(0.0, 1.0), within(1.0, 2.0), within(2.0, 3.0)], [25, 0, 25]);
    assert_eq!(run.connections.len(), 10, "each user has a new connection when it is back");
}

#[test]
fn a_rate_follows_its_stages() {
    let text = "[load]\nstages = '2s:0..100/s, 1s:100/s, 1s:0..0/s, 1s:20..20/s'";
    let run = run(plan(text), 2);
    let within = |from: f64, to: f64| due_within(&run, from, to);
    assert_eq!(
        [within(0.0, 2.0), within(2.0, 3.0), within(3.0, 4.0), within(4.0, 5.0)],
        [100, 100, 0, 20]
    );
    assert_eq!(run.measurement.intended, Some(220));
    assert_eq!(run.measurement.window, Nanos::from_secs(5));
}

#[test]
fn stages_change_due_times_but_not_requests() {
    let mut plan = plan("[load]\nrate = '50/s'\n[stop]\nduration = '3s'");
    let steady = run(plan.clone(), 1);
    plan.set_stages(parse_stages("3s:50/s").unwrap());
    let staged = run(plan, 1);
    let due = |run: &Simulated| -> Vec<(u64, Nanos)> {
        run.calls.iter().map(|(sample, _)| (sample.index, sample.intended)).collect()
    };
    assert_eq!(due(&steady), due(&staged));
}

const TWO: &str = "
[stop]
duration = '4s'
[measure]
slo = ['buy: p95<150ms']
[[targets]]
url = 'http://sim.example/list'
name = 'list'
[[targets]]
url = 'http://sim.example/item'
name = 'item'
[[targets]]
url = 'http://sim.example/order'
name = 'order'
[[scenario]]
name = 'browse'
targets = ['list', 'item']
load = { users = 6, think = '100ms' }
[[scenario]]
name = 'buy'
targets = ['order']
start = '1s'
duration = '2s'
load = { rate = '40/s' }
";

fn two() -> Plan {
    let plan = from_toml(&format!("version = 1\n{TWO}"), &NoFiles).unwrap();
    if let Err(problems) = plan::validate(&plan) {
        panic!("{problems:?}");
    }
    plan
}

#[test]
fn concurrent_loads_are_independent() {
    for cores in [1, 2] {
        let run = execute_scenarios(two(), world(100), cores, &BTreeMap::new());
        let of = |targets: &[u32]| {
            run.calls.iter().filter(|(sample, _)| targets.contains(&sample.target)).count() as u64
        };
        // six users, a call in 200 ms each; 40 calls a second, for two seconds
        assert_eq!((of(&[0, 1]), of(&[2])), (120, 80), "{cores}");
        assert_eq!(of(&[0]), of(&[1]), "targets in turn");
        let start = Nanos::from_secs(1_000);
        let bought: Vec<f64> = run
            .calls
            .iter()
            .filter(|(sample, _)| sample.target == 2)
            .map(|(sample, _)| (sample.intended - start).as_secs_f64())
            .collect();
        assert!(bought.iter().all(|at| (1.0..3.0).contains(at)));
        let total = &run.measurement.total;
        assert_eq!(total.counts.due, 200);
        let [browse, buy] = total.scenarios.as_slice() else { panic!("two scenarios") };
        assert_eq!((browse.counts.due, browse.intended), (120, None));
        assert_eq!((buy.counts.due, buy.counts.succeeded, buy.intended), (80, 80, Some(80)));
        assert_eq!((browse.response.count(), buy.response.count()), (120, 80));
        assert_eq!(buy.offered_share(), Some(1.0));
        assert_eq!(run.measurement.intended, None, "a closed loop intends nothing");
        let plan = two();
        let ruling = stats::rulings(&plan.measure.slo, &run.measurement)[0];
        assert!(ruling.met && (ruling.figure - 0.1).abs() < 0.01, "{ruling:?}");
        // rows of the series add up over the loads
        let rows: u64 = run.measurement.series.iter().map(|row| row.counts.due).sum();
        assert_eq!(rows, 200);
    }
}

#[test]
fn a_scenario_alone_is_the_run_that_has_its_load() {
    let alone = plan("[load]\nrate = '30/s'\narrivals = 'poisson'\n[stop]\nduration = '3s'");
    let only = plan(
        "[stop]\nduration = '3s'\n[[scenario]]\nname = 'one'\n\
         load = { rate = '30/s', arrivals = 'poisson' }",
    );
    let due = |run: &Simulated| -> Vec<Nanos> {
        run.calls.iter().map(|(sample, _)| sample.intended).collect()
    };
    let (alone, only) = (run(alone, 1), execute_scenarios(only, world(100), 1, &BTreeMap::new()));
    assert_eq!(due(&alone), due(&only));
    let figures = |run: &Simulated| {
        let total = &run.measurement.total;
        (total.counts, total.response().count(), total.service.count(), run.measurement.window)
    };
    assert_eq!(figures(&alone), figures(&only));
}

#[test]
fn an_order_to_stop_ends_all_loads() {
    let mut plan = two();
    plan.stop.abort_if = Some(plan::rules::parse_abort_rule("throughput>1/s for 1s").unwrap());
    let run = execute_scenarios(plan, world(100), 1, &BTreeMap::new());
    assert!(run.measurement.aborted.is_some());
    assert!(run.ended_at < Nanos::from_millis(1_500), "{:?}", run.ended_at);
}

#[test]
fn journeys_are_of_their_scenarios() {
    let text = "
[stop]
duration = '2s'
[[journey]]
name = 'look'
[[journey.step]]
name = 'list'
url = '/list'
[[journey]]
name = 'order'
[[journey.step]]
name = 'pay'
url = '/pay/{{iteration.number}}'
[[journey.step]]
name = 'thanks'
url = '/thanks'
[[scenario]]
name = 'visitors'
journeys = ['look']
load = { users = 2, think = '100ms' }
[[scenario]]
name = 'buyers'
journeys = ['order']
load = { stages = '1s:10/s, 1s:0..0/s' }
";
    let run = execute_scenarios(plan(text), world(100), 2, &BTreeMap::new());
    let total = &run.measurement.total;
    let [visitors, buyers] = total.scenarios.as_slice() else { panic!("two scenarios") };
    assert_eq!((visitors.counts.due, buyers.counts.due), (20, 20));
    assert_eq!((buyers.sessions_started, buyers.intended), (10, Some(10)));
    let per_step: Vec<u64> = total.targets.iter().map(|row| row.succeeded).collect();
    assert_eq!(per_step, [20, 10, 10]);
    let done: Vec<u64> = total.journeys.transactions.iter().map(|it| it.succeeded).collect();
    assert_eq!(done, [20, 10]);
}

#[test]
fn page_parts_use_the_given_number_of_connections() {
    let base: url::Url = "http://sim.example/".parse().unwrap();
    for connections in [1, 2, 6] {
        let mut plan = Plan::for_url(base.clone());
        let visit = plan::rules::parse_visit("0,1,1,1,1,1,1 2s; 0,1,1").unwrap();
        let target = |path: &str| {
            plan::TargetPlan::new(format!("http://sim.example{path}").parse().unwrap())
        };
        plan.targets = ["/page", "/part"].into_iter().map(target).collect();
        let session = plan::SessionPlan {
            visits: vec![visit],
            lead: true,
            parallel: Some(connections),
            ..plan::SessionPlan::new(1, plan::Think::None)
        };
        plan.load =
            plan::Load::Closed { users: 1, think: plan::Think::None, session: Some(session) };
        (plan.stop.duration, plan.stop.requests) = (None, Some(1));
        (plan.connection.per_user, plan.connection.depth) = (connections, Some(1));
        let run = run(plan, 1);
        assert_eq!(run.connections.len() as u32, connections, "{connections}");
        let start = Nanos::from_secs(1_000);
        let mut at: Vec<u64> =
            run.calls.iter().map(|(sample, _)| (sample.sent - start).0 / 100_000_000).collect();
        at.sort_unstable();
        // a tenth of a second each: the page, then its parts, then two seconds later the next page
        let wanted: &[u64] = match connections {
            1 => &[0, 1, 2, 3, 4, 5, 6, 27, 28, 29],
            2 => &[0, 1, 1, 2, 2, 3, 3, 24, 25, 25],
            _ => &[0, 1, 1, 1, 1, 1, 1, 22, 23, 23],
        };
        assert_eq!(at, wanted, "{connections}");
    }
}

#[test]
fn sessions_of_the_warm_up_are_not_counted() {
    let text = "[load]\nrate = '50/s'\nsession = 2\n[stop]\nwarmup = '6s'\nduration = '4s'";
    for (limits, started_all) in [("", true), ("[load]\nconnections_max = 1\nqueue_max = 0", false)]
    {
        let text = text.replace("[load]", if limits.is_empty() { "[load]" } else { limits });
        let measurement = run(plan(&text), 2).measurement;
        let sessions = measurement.total.sessions;
        assert_eq!((measurement.intended, sessions.started), (Some(200), 200), "{limits}");
        let ended = sessions.completed + sessions.failed + sessions.dropped;
        assert_eq!((ended, sessions.completed == 200), (200, started_all), "{sessions:?}");
    }
}
