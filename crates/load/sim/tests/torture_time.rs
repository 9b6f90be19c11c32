//! The duration of torture, in virtual time: on a responsive server, and on one with ten hangs.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use campaign::shrink::Budget;
use campaign::{Settings, Unwatched, span_of_run};
use faulty::{Defect, Defects};
use sim::World;
use sim::torture::{Field, FiringRange, target};
use torture::case::{Case, Need};
use torture::catalogue;
use torture::safety::Class;
use units::Nanos;

/// Switches that together make ten requests of the catalog hang, and random data too.
const HANGS: [Defect; 6] = [
    Defect::HangsOnLeadingBlank,
    Defect::HangsOnLfLines,
    Defect::HangsOnMajorVersions,
    Defect::HangsOnHttp09,
    Defect::HangsOnGarbage,
    Defect::HangsAfterGarbage,
];

/// Returns the cases of a default run; the world has no TLS.
fn usual() -> (Settings, Vec<Case>) {
    let settings = Settings {
        seed: 1,
        executions_max: u64::MAX,
        workers: 1,
        baseline: Nanos::from_secs(2),
        big: Some(faulty::BIG.into()),
        search: Some(Budget::USUAL),
        ..Settings::default()
    };
    let mut cases = catalogue::cases().unwrap();
    cases.retain(|case| !case.press && !case.needs.contains(&Need::Tls));
    cases.retain(|case| !case.needs.contains(&Need::Device));
    (settings, cases)
}

/// Returns the cases of `--quick`.
fn quick() -> (Settings, Vec<Case>) {
    let (settings, mut cases) = usual();
    cases.retain(|case| ['B', 'F', 'M', 'S'].contains(&case.group()));
    let settings = Settings {
        executions_max: 50,
        baseline: Nanos::from_millis(500),
        search: Some(Budget { span: Nanos::from_millis(1_500), ..Budget::USUAL }),
        silence_max: Some(Nanos::from_millis(300)),
        ..settings
    };
    (settings, cases)
}

/// Runs the cases against a server with these defects; returns the duration of the run, and the
/// number of findings.
fn taken((settings, cases): &(Settings, Vec<Case>), defects: &[Defect]) -> (Nanos, usize) {
    let defects: Defects = defects.iter().copied().collect();
    let range = Box::new(FiringRange::new(&defects));
    let mut world = World::new(range, Nanos::from_millis(1), Nanos::from_secs(20_000));
    world.limit_window(256 << 10);
    let result = campaign::run(&target(), settings, cases, &mut Field::new(world), &mut Unwatched);
    assert_eq!(result.ended_early, None);
    let exchanges = result.cases.iter().flat_map(|case| &case.exchanges);
    let found = exchanges.filter(|one| one.judgement.outcome.is_finding()).count();
    (result.took, found)
}

#[test]
fn a_run_respects_its_time_limit() {
    let results: Vec<String> = std::thread::scope(|scope| {
        let runs = [
            ("usual", usual(), &[][..]),
            ("usual, ten hangs", usual(), &HANGS),
            ("quick", quick(), &[]),
            ("quick, ten hangs", quick(), &HANGS),
        ];
        let running = runs.map(|(name, plan, defects)| {
            scope.spawn(move || {
                let (took, found) = taken(&plan, defects);
                let span = span_of_run(&plan.1, &plan.0, &Class::Local.usual());
                assert!(took <= span.hung, "{name}: {took:?} and at most {span:?}");
                (name, took, found)
            })
        });
        running
            .into_iter()
            .map(|one| {
                let (name, took, found) = one.join().unwrap();
                let most = match name {
                    "usual" => 300,
                    "usual, ten hangs" => 540,
                    // a case continues after its first hang, with short time limits
                    "quick, ten hangs" => 45,
                    _ => 30,
                };
                assert_eq!(found >= 10, name.ends_with("hangs"), "{name}: {found} findings");
                assert!(took <= Nanos::from_secs(most), "{name}: {took:?}");
                format!("{name}: {took:?}")
            })
            .collect()
    });
    assert_eq!(results.len(), 4);
}
