//! The catalogue against the firing range: a server without a defect passes every case, and every
//! case that can fail is turned red by a defect.

use conduit::Peer;
use sim::World;
use sim::torture::{Field, Range};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use torture::case::Case;
use torture::catalogue;
use torture::range::{self, Defect, Defects, Kind};
use torture::session::{RunResult, Settings, Target, Unwatched, run};
use torture::text::Values;
use units::Nanos;

/// Bytes on their way to a client that does not read.
const WINDOW: usize = 256 << 10;

fn target() -> Target {
    Target {
        peer: Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 80))),
        tls_name: None,
        values: Values {
            path: range::PATH.into(),
            host: "127.0.0.1".into(),
            post: range::POST.into(),
            marker: String::new(),
        },
        takes_bodies: true,
        fields: String::new(),
    }
}

fn settings() -> Settings {
    Settings {
        seed: 1,
        executions_max: 25,
        baseline: Nanos::SECOND,
        big: Some(range::BIG.into()),
        ..Settings::default()
    }
}

fn against(defects: &[Defect], cases: &[Case]) -> RunResult {
    let defects: Defects = defects.iter().copied().collect();
    let server = Box::new(Range::new(&defects));
    let mut world = World::new(server, Nanos::from_millis(1), Nanos::from_secs(1_000));
    world.limit_window(WINDOW);
    run(&target(), &settings(), cases, &mut Field::new(world), &mut Unwatched)
}

/// Cases that did not pass, with what was seen.
fn red(result: &RunResult) -> BTreeMap<String, String> {
    let bad = result.cases.iter().filter(|case| !case.outcome.is_well());
    let row = |case: &torture::session::CaseResult| {
        let all = case.exchanges.iter().filter(|one| !one.judgement.outcome.is_well());
        let said: Vec<String> = all
            .map(|one| {
                format!("{}: {} {}", one.name, one.judgement.outcome.id(), one.judgement.seen)
            })
            .collect();
        (case.case.id.clone(), format!("{} {}", case.outcome.id(), said.join("; ")))
    };
    bad.map(row).collect()
}

#[test]
fn a_server_without_a_defect_passes_every_case() {
    let cases = catalogue::cases().unwrap();
    let result = against(&[], &cases);
    assert_eq!(result.ended_early, None);
    assert_eq!(result.cases.len(), cases.len());
    assert_eq!(red(&result), BTreeMap::new());
}

/// Whether the catalogue has cases of the kind that shows a defect.
fn is_to_be_shown(defect: Defect, cases: &[Case]) -> bool {
    let any = |prefix: &str| cases.iter().any(|case| case.id.starts_with(prefix));
    match defect.kind() {
        Kind::Syntax => true,
        Kind::Limit => any("L-"),
        Kind::Deadline => any("W-0"),
        Kind::Connection => any("C-"),
        Kind::Pressure => any("W-1"),
    }
}

#[test]
fn every_case_that_can_fail_is_turned_red_by_a_defect() {
    let cases = catalogue::cases().unwrap();
    let mut idle = Vec::new();
    let mut turned: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut matrix = String::new();
    for defect in Defect::ALL {
        let found = red(&against(&[*defect], &cases));
        let ids: Vec<&str> = found.keys().map(String::as_str).collect();
        if ids.is_empty() && is_to_be_shown(*defect, &cases) {
            idle.push(defect.id());
        }
        matrix.push_str(format!("{:<20} {}", defect.id(), ids.join(" ")).trim_end());
        matrix.push('\n');
        for id in found.keys() {
            turned.entry(id.clone()).or_default().push(defect.id());
        }
    }
    insta::assert_snapshot!(matrix);
    assert_eq!(idle, Vec::<&str>::new(), "these defects turn nothing red");
    let green: BTreeSet<&str> =
        cases.iter().map(|case| case.id.as_str()).filter(|id| !turned.contains_key(*id)).collect();
    assert_eq!(green, BTreeSet::new(), "no defect turns these red");
}
