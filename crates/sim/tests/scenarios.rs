//! Loads whose size changes from stage to stage, and several loads at once, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use plan::stages::parse_stages;
use plan::{NoFiles, Plan, from_toml};
use sim::{Action, Admission, Client, Outcome, Script, World, execute_with};
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

/// A server that answers each request after `millis`.
fn world(millis: u64) -> World {
    let react = move |now: Nanos, _: Client, _: &[u8]| {
        vec![(now + Nanos::from_millis(millis), Action::Bytes(OK.to_vec()))]
    };
    World::new(Box::new(Script { admit: Admission::Accept, react }), Nanos::ZERO, Nanos::from_secs(1_000))
}

fn run(plan: Plan, workers: u32) -> Outcome {
    execute_with(plan, world(100), workers, None)
}

/// Calls that fell due within these seconds of the run.
fn due_within(run: &Outcome, from: f64, to: f64) -> usize {
    let start = Nanos::from_secs(1_000);
    let at = |intended: Nanos| (intended - start).as_secs_f64();
    run.calls.iter().filter(|(sample, _)| (from..to).contains(&at(sample.intended))).count()
}

#[test]
fn users_come_and_go_with_the_stages() {
    for workers in [1, 3] {
        // ten users more in each of four seconds, forty for two, and none again after one more
        let run = run(plan("[load]\nstages = '4s:0..40, 2s:40, 1s:0'\n[stop]\nduration = '8s'"), workers);
        // a user makes ten calls a second: 40 · 10 · 2
        assert_eq!(due_within(&run, 4.0, 6.0), 800, "{workers}");
        let rising = due_within(&run, 0.0, 4.0) as f64;
        assert!((rising - 800.0).abs() <= 40.0, "the area of the ramp: {rising}");
        let falling = due_within(&run, 6.0, 7.0) as f64;
        assert!((falling - 200.0).abs() <= 40.0, "{falling}");
        assert_eq!(due_within(&run, 7.0, 99.0), 0);
        assert_eq!(run.measurement.total.counts.succeeded, run.measurement.total.counts.due);
        // each has its connection, which is closed when its user goes, not at the end
        assert_eq!(run.connections.len(), 40);
        let start = Nanos::from_secs(1_000);
        let last = run.connections.iter().map(|one| one.closed - start).max().unwrap();
        assert!(last < Nanos::from_secs(7) + Nanos::from_millis(150), "{last:?}");
    }
}

#[test]
fn users_who_have_gone_come_again() {
    let run = run(plan("[load]\nstages = '1s:5, 1s:0..0, 1s:5..5'\nthink = '100ms'"), 1);
    let within = |from: f64, to: f64| due_within(&run, from, to);
    assert_eq!([within(0.0, 1.0), within(1.0, 2.0), within(2.0, 3.0)], [25, 0, 25]);
    assert_eq!(run.connections.len(), 10, "each user has a new connection when it is back");
}

#[test]
fn a_rate_goes_by_its_stages() {
    let text = "[load]\nstages = '2s:0..100/s, 1s:100/s, 1s:0..0/s, 1s:20..20/s'";
    let run = run(plan(text), 2);
    let within = |from: f64, to: f64| due_within(&run, from, to);
    assert_eq!([within(0.0, 2.0), within(2.0, 3.0), within(3.0, 4.0), within(4.0, 5.0)], [100, 100, 0, 20]);
    assert_eq!(run.measurement.intended, Some(220));
    assert_eq!(run.measurement.window, Nanos::from_secs(5));
}

#[test]
fn stages_change_what_falls_due_and_not_what_is_asked_for() {
    let mut plan = plan("[load]\nrate = '50/s'\n[stop]\nduration = '3s'");
    let steady = run(plan.clone(), 1);
    plan.set_stages(parse_stages("3s:50/s").unwrap());
    let staged = run(plan, 1);
    let due = |run: &Outcome| -> Vec<(u64, Nanos)> {
        run.calls.iter().map(|(sample, _)| (sample.index, sample.intended)).collect()
    };
    assert_eq!(due(&steady), due(&staged));
}
