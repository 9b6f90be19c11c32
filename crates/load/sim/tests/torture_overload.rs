//! Overload in virtual time: servers with known capacity, and the conclusions about them.

use campaign::{ServerCommand, Settings, Unwatched, run};
use dialogue::governor::Stop;
use dialogue::governor::{Bounds, Governor};
use faulty::{CAPACITY, COSTLY, Defect, Defects};
use sim::World;
use sim::torture::{Commands, Field, FiringRange, target};
use torture::case::{Case, Family};
use torture::catalogue;
use torture::judge::TestOutcome;
use torture::result::{CaseResult, RunResult};
use torture::safety::Class;
use units::{Nanos, show};

/// Number of concurrent requests: as many as the range serves within a probe's timeout.
const WAITING: u64 = 40;

fn cases(ids: &[&str]) -> Vec<Case> {
    let mut cases = catalogue::cases().expect("the catalogue reads");
    cases.retain(|case| ids.contains(&case.id.as_str()));
    for family in cases.iter_mut().filter_map(|case| case.family.as_mut()) {
        match family {
            Family::OverloadHeld(with) => with.waiting = WAITING,
            Family::OverloadMixed(with) => with.waiting = WAITING,
            Family::OverloadRestart(with) => with.waiting = WAITING,
            Family::OverloadSoak(with) => with.waiting = WAITING,
            Family::OverloadSpike(with) => with.waiting = WAITING,
            Family::OverloadStarve(with) => with.waiting = WAITING,
            _ => {}
        }
    }
    cases
}

fn settings() -> Settings {
    Settings {
        seed: 1,
        baseline: Nanos::SECOND,
        soak: Some(Nanos::from_secs(60)),
        expensive: Some(COSTLY.into()),
        commands: vec![ServerCommand::Restart, ServerCommand::Starve, ServerCommand::Relieve],
        ..Settings::default()
    }
}

fn overloaded(defect: Defect, ids: &[&str], bounds: &Bounds) -> RunResult {
    overloaded_with(&Defects::from([defect]), ids, bounds)
}

fn overloaded_with(defects: &Defects, ids: &[&str], bounds: &Bounds) -> RunResult {
    let commands = Commands::default();
    let server = Box::new(FiringRange::new(defects).with_commands(&commands));
    let world = World::new(server, Nanos::from_millis(1), Nanos::from_secs(1_000));
    let governor = Governor::new(bounds.clone(), Vec::new(), false);
    let mut field = Field::governed(world, governor).with_commands(&commands);
    run(&target(), &settings(), &cases(ids), &mut field, &mut Unwatched)
}

fn shown(case: &CaseResult) -> String {
    let mut text = format!("{} {}", case.case.id, case.outcome.id());
    for measure in &case.measures {
        let number =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        let (low, high) = (number(measure.low), number(measure.high));
        text.push_str(&format!("\n  {}: {low} to {high}, {}", measure.what, measure.note));
    }
    if let Some(health) = &case.health {
        let back = health.recovery.map_or("never".to_owned(), show::duration);
        let (shed, lost) = (show::share(health.shed), show::share(health.lost));
        text.push_str(&format!("\n  shed {shed} lost {lost} back {back} stood {}", health.armed));
    }
    case.notes.iter().for_each(|note| text.push_str(&format!("\n  {note}")));
    text.push('\n');
    text
}

fn report_of(defect: Defect, bounds: &Bounds) -> String {
    run_case(defect, &["R-01", "R-02"], bounds)
}

fn run_case(defect: Defect, ids: &[&str], bounds: &Bounds) -> String {
    let result = overloaded(defect, ids, bounds);
    let ended = result.ended_early.map(|why| format!("ended early: {why}\n"));
    result.cases.iter().map(shown).chain(ended).collect()
}

/// Returns the default limits for this machine.
fn usual() -> Bounds {
    Class::Local.usual()
}

#[test]
fn the_knee_of_a_server_of_known_capacity_is_found() {
    let result = overloaded(Defect::LimitedRate, &["R-01"], &usual());
    let knee = result.cases[0].measures.iter().find(|one| one.what == "knee").unwrap();
    let (low, high) = (knee.low.unwrap(), knee.high.unwrap());
    // a rate is sustained if 95 % of it gets a response in time
    let followed = CAPACITY as f64 / 0.95;
    // and probes use ten requests per second of it
    let least = CAPACITY as f64 - 10.0;
    assert!(low <= followed && high >= least && high <= low * 1.3, "{low} to {high}");
    assert_eq!(result.cases[0].outcome, TestOutcome::Held);
}

#[test]
fn a_server_that_queues_holds() {
    insta::assert_snapshot!(report_of(Defect::LimitedRate, &usual()));
}

#[test]
fn a_server_with_declining_goodput_collapses() {
    insta::assert_snapshot!(report_of(Defect::Collapses, &usual()));
}

#[test]
fn a_server_that_refuses_sheds() {
    insta::assert_snapshot!(report_of(Defect::ShedsLoad, &usual()));
}

#[test]
fn a_server_that_stalls_after_a_spike_recovers_slowly() {
    insta::assert_snapshot!(report_of(Defect::Lingers, &usual()));
}

#[test]
fn a_server_that_exits_under_load_has_crashed() {
    insta::assert_snapshot!(report_of(Defect::DiesOfLoad, &usual()));
}

#[test]
fn overload_below_our_limit_is_inconclusive() {
    let bounds = Bounds { requests_max: Some(60), ..usual() };
    insta::assert_snapshot!(report_of(Defect::LimitedRate, &bounds));
}

/// The time limit of the search is reached between the last sustained rate and the first
/// unsustained one.
#[test]
fn an_unsustained_rate_is_reported_at_the_time_limit() {
    let case_max = Nanos::from_secs(30);
    let bounds = Bounds { requests_max: Some(5_000), case_max, ..usual() };
    insta::assert_snapshot!(report_of(Defect::LimitedRate, &bounds));
}

#[test]
fn expensive_requests_may_starve_cheap_ones() {
    let both = [Defect::LimitedRate, Defect::StarvesCheap];
    let results = both.map(|defect| run_case(defect, &["R-03"], &usual()));
    insta::assert_snapshot!(results.join("\n"));
}

#[test]
fn a_storm_is_survived_or_not() {
    let both = [Defect::LimitedRate, Defect::DiesOfMany];
    let results = both.map(|defect| run_case(defect, &["R-05"], &usual()));
    insta::assert_snapshot!(results.join("\n"));
}

#[test]
fn a_restart_completes_open_requests_or_not() {
    let all = [Defect::LimitedRate, Defect::LosesInFlight, Defect::StaysAway];
    let results = all.map(|defect| run_case(defect, &["R-06"], &usual()));
    insta::assert_snapshot!(results.join("\n"));
}

#[test]
fn a_starving_server_reports_errors_or_not() {
    let all =
        [Defect::LimitedRate, Defect::DiesStarved, Defect::SilentStarved, Defect::StaysStarved];
    let results = all.map(|defect| run_case(defect, &["R-07"], &usual()));
    insta::assert_snapshot!(results.join("\n"));
}

#[test]
fn an_unlimited_server_is_tested_up_to_our_limit() {
    // a switch without effect here
    insta::assert_snapshot!(run_case(Defect::KeepsMemory, &["R-01"], &usual()));
}

#[test]
fn drift_in_a_soak_is_found() {
    let both = [Defect::LimitedRate, Defect::Drifts];
    let ids = ["R-04", "S-01", "S-07", "F-01"];
    let all = both.map(|defect| overloaded(defect, &ids, &usual()));
    let soak = |result: &RunResult| {
        let own = |case: &&CaseResult| case.case.id == "R-04";
        result.cases.iter().filter(own).map(shown).collect::<String>()
    };
    insta::assert_snapshot!(all.iter().map(soak).collect::<Vec<_>>().join("\n"));
}

#[test]
fn memory_that_grows_without_requests_is_no_drift_of_a_soak() {
    let defects = Defects::from([Defect::LimitedRate, Defect::GrowsAfterChunks]);
    let result = overloaded_with(&defects, &["R-04", "S-38"], &usual());
    let soak = result.cases.iter().find(|case| case.case.id == "R-04").expect("it is run");
    assert_eq!(soak.notes, ["resident memory grows without further requests: see S-38"]);
}

#[test]
fn an_interruption_is_not_a_finding() {
    for (id, after) in [("R-01", 25), ("R-02", 30), ("R-05", 20), ("R-06", 28), ("R-07", 30)] {
        let bounds = usual();
        let commands = Commands::default();
        let server =
            FiringRange::new(&Defects::from([Defect::LimitedRate])).with_commands(&commands);
        let world = World::new(Box::new(server), Nanos::from_millis(1), Nanos::from_secs(1_000));
        let governor = Governor::new(bounds, Vec::new(), false);
        let mut start = None;
        let stop = move |now: Nanos| {
            let start = *start.get_or_insert(now);
            (now > start + Nanos::from_secs(after)).then_some(Stop::Interrupted)
        };
        let field = Field::governed(world, governor).with_commands(&commands);
        let mut field = field.watched(Box::new(stop));
        let result = run(&target(), &settings(), &cases(&[id]), &mut field, &mut Unwatched);
        assert!(result.interrupted, "{id} was over");
        let outcome = result.cases[0].outcome;
        assert_eq!(outcome, TestOutcome::Inconclusive, "{id}: {}", shown(&result.cases[0]));
    }
}
