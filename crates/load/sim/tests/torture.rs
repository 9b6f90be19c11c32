//! The catalog against the firing range: a server without a defect passes every case, and every
//! case that can fail is failed by some defect.

use campaign::{ServerCommand, Settings, Unwatched, run};
use faulty::{Defect, DefectKind, Defects};
use sim::World;
use sim::torture::{Commands, Field, FiringRange, target};
use std::collections::{BTreeMap, BTreeSet};
use torture::case::{Case, FOUND, Family, Need, SOCKETS};
use torture::catalogue;
use torture::judge::Plain;
use torture::result::RunResult;
use units::Nanos;

/// Number of bytes in transit to a client that does not read.
const WINDOW: usize = 256 << 10;

fn settings() -> Settings {
    Settings {
        seed: 1,
        executions_max: 25,
        baseline: Nanos::SECOND,
        big: Some(faulty::BIG.into()),
        outside: Some(Plain::digest_of(faulty::OUTSIDE.as_bytes())),
        pages: vec![faulty::PATH.into(), "/other?x=1".into()],
        soak: Some(Nanos::from_secs(24)),
        expensive: Some(faulty::COSTLY.into()),
        commands: vec![ServerCommand::Restart, ServerCommand::Starve, ServerCommand::Relieve],
        ..Settings::default()
    }
}

fn against(defects: &[Defect], cases: &[Case]) -> RunResult {
    let defects: Defects = defects.iter().copied().collect();
    let commands = Commands::default();
    let server = Box::new(FiringRange::new(&defects).with_commands(&commands));
    let mut world = World::new(server, Nanos::from_millis(1), Nanos::from_secs(1_000));
    world.limit_window(WINDOW);
    let mut field = Field::new(world).with_commands(&commands);
    let mut settings = settings();
    if cases.iter().all(|case| case.id == MUTATION) {
        settings.seed = MUTATION_SEED;
    }
    run(&target(), &settings, cases, &mut field, &mut Unwatched)
}

/// Cases that did not pass, with the observation.
fn red(result: &RunResult) -> BTreeMap<String, String> {
    let bad = result.cases.iter().filter(|case| !case.outcome.is_favorable());
    let row = |case: &torture::result::CaseResult| {
        let all = case.exchanges.iter().filter(|one| !one.judgement.outcome.is_favorable());
        let text: Vec<String> = all
            .map(|one| {
                format!("{}: {} {}", one.name, one.judgement.outcome.id(), one.judgement.seen)
            })
            .collect();
        (case.case.id.clone(), format!("{} {}", case.outcome.id(), text.join("; ")))
    };
    bad.map(row).collect()
}

/// The mutation case, which continues from its own findings. With every defect it would take most
/// of the time.
const MUTATION: &str = "F-15";
/// First seed with which it finds its bug; six of the eight in torture_mutation.rs do.
const MUTATION_SEED: u64 = 2;

/// Cases that read a page of 20 MiB.
const LONG_PAGE: [&str; 2] = ["W-06", "W-07"];

/// WebSocket cases that send megabytes, and the defects that only they show.
const LONG_SOCKET_CASES: [&str; 3] = ["U-17", "U-18", "U-19"];
const LONG_SOCKETS: [Defect; 4] = [
    Defect::TakesAnyMessage,
    Defect::TakesAnyFragments,
    Defect::InflatesAnything,
    Defect::DiesOfPings,
];

/// Cases that report an observation without a verdict.
const WITHOUT_VERDICT: [&str; 3] = ["C-08", "L-14", "W-07"];

/// Returns all cases except those of TLS, which the simulated world does not have.
fn plain_cases() -> Vec<Case> {
    let mut cases = catalogue::cases().expect("the catalogue can be read");
    // groups G, H and Q use HTTP/2 and HTTP/3, which these targets do not support
    cases.retain(|case| !case.needs.contains(&Need::Tls) && !"GHQ".contains(case.group()));
    cases.retain(|case| case.runs_in("1.1"));
    // there is no device for segments either
    cases.retain(|case| !case.needs.contains(&Need::Device));
    cases
}

/// A switch that is not a defect: it sets a capacity of the server.
const SOUND: Defect = Defect::LimitedRate;

/// Returns whether a case is one of overload, or one that a soak repeats: without this exclusion,
/// it would repeat the whole catalog.
fn is_overload(case: &Case) -> bool {
    case.group() == 'R' || case.id == "S-01"
}

/// Returns the cases with fewer repetitions, if the number is a parameter: one repetition shows the
/// same as many repetitions.
fn reduced(mut cases: Vec<Case>) -> Vec<Case> {
    cases.iter_mut().filter_map(|case| case.family.as_mut()).for_each(reduce);
    cases
}

fn reduce(family: &mut Family) {
    let overload = |ceiling: &mut f64, waiting: &mut u64| {
        *ceiling = ceiling.min(300.0);
        *waiting = (*waiting).min(40);
    };
    match family {
        Family::ConnectionBytes(with) => with.rounds = 1,
        Family::ConnectionSplits(with) | Family::SegmentsCuts(with) => {
            with.splits = with.splits.min(40);
        }
        Family::Escalate(with) => {
            with.levels = with.levels.min(2);
            with.waiting = with.waiting.min(40);
        }
        Family::Frames(with) => with.each = with.each.min(8),
        Family::Mixed(with) => with.rounds = 1,
        Family::Pages(with) => with.each = with.each.min(8),
        // more than a small pool has
        Family::PressHeld(with) => with.connections = with.connections.min(12),
        // a rate sustained for a while is sustained for longer
        Family::PressRate(with) => with.span = with.span.min(Nanos::from_secs(4)),
        Family::PressResets(with) => with.rounds = 1,
        Family::SegmentsOverlap(with) => with.rounds = 1,
        Family::OverloadHeld(with) => overload(&mut with.ceiling, &mut with.waiting),
        Family::OverloadMixed(with) => overload(&mut with.ceiling, &mut with.waiting),
        Family::OverloadRestart(with) => overload(&mut with.ceiling, &mut with.waiting),
        Family::OverloadSoak(with) => overload(&mut with.ceiling, &mut with.waiting),
        Family::OverloadSpike(with) => overload(&mut with.ceiling, &mut with.waiting),
        Family::OverloadStarve(with) => overload(&mut with.ceiling, &mut with.waiting),
        Family::OverloadStorm(with) => with.storm = Nanos::from_secs(10),
        _ => {}
    }
}

#[test]
fn a_server_without_a_defect_passes_every_case() {
    let (overload, cases): (Vec<Case>, Vec<Case>) =
        reduced(plain_cases()).into_iter().partition(is_overload);
    // a server that cannot be overloaded shows nothing about overload
    for (defects, cases) in [(&[][..], cases), (&[SOUND], overload)] {
        let result = against(defects, &cases);
        assert_eq!(result.ended_early, None);
        assert_eq!(result.cases.len(), cases.len());
        assert_eq!(red(&result), BTreeMap::new());
    }
}

/// Returns whether a case detects defects of this kind. A defect is tried only with these cases:
/// running every defect with every case would take nearly an hour.
fn shows(kind: DefectKind, case: &Case) -> bool {
    match kind {
        DefectKind::Syntax => {
            matches!(case.group(), 'B' | 'F' | 'J' | 'S' | 'V' | FOUND) && case.id != MUTATION
                || case.id == "L-12"
        }
        DefectKind::Mutation => case.id == MUTATION,
        DefectKind::Limit => matches!(case.group(), 'L' | FOUND) && case.id != "L-15",
        DefectKind::Deadline => case.group() == 'W' && !case.press || case.id == "L-15",
        DefectKind::Connection => matches!(case.group(), 'C' | 'M') && !case.press,
        // the long page takes most of a run's time, and reveals nothing about pools
        DefectKind::Pressure => {
            case.press && case.group() != 'R'
                || matches!(case.group(), 'C' | 'W') && !LONG_PAGE.contains(&case.id.as_str())
        }
        DefectKind::Overload => is_overload(case),
        DefectKind::Sockets => case.group() == SOCKETS,
        // over HTTP/2 only: the gallery of planted bugs covers those, and tests of the program
        // cover those of segments
        DefectKind::Calls
        | DefectKind::Frames
        | DefectKind::Streams
        | DefectKind::Tables
        | DefectKind::Packets
        | DefectKind::Tunnels
        | DefectKind::Segments => false,
    }
}

/// Returns the cases that a defect fails.
fn failing_cases(defect: Defect, cases: &[Case]) -> Vec<String> {
    // many clients that disconnect inside a message show the same as one
    let ends = |case: &Case| defect == Defect::ForgetsHalfClosed && case.id == "C-05";
    // hangs of other cases are the subject of this one
    let gone = |case: &Case| defect == Defect::HangsOnExtensions && case.id == "C-13";
    let much = LONG_SOCKETS.contains(&defect);
    let brief = |case: &Case| much || !LONG_SOCKET_CASES.contains(&case.id.as_str());
    let own = |case: &&Case| shows(defect.kind(), case) && brief(case) || ends(case) || gone(case);
    let own: Vec<Case> = cases.iter().filter(own).cloned().collect();
    if own.is_empty() {
        return Vec::new();
    }
    red(&against(&[defect], &own)).into_keys().collect()
}

/// Returns the cases that each defect fails, computed on as many threads as there are processors.
fn matrix(cases: &[Case]) -> BTreeMap<Defect, Vec<String>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = |first: usize| {
        // those of HTTP/2 and HTTP/3 have separate galleries, and those of segments need a device
        let elsewhere = [
            DefectKind::Calls,
            DefectKind::Frames,
            DefectKind::Streams,
            DefectKind::Tables,
            DefectKind::Packets,
            DefectKind::Tunnels,
            DefectKind::Segments,
        ];
        let own = Defect::ALL.iter().filter(|defect| !elsewhere.contains(&defect.kind()));
        let own = own.skip(first).step_by(threads);
        own.map(|defect| (*defect, failing_cases(*defect, cases))).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        running.into_iter().flat_map(|one| one.join().expect("no case panics")).collect()
    })
}

#[test]
fn every_case_that_can_fail_is_turned_red_by_a_defect() {
    let cases = reduced(plain_cases());
    let matrix = matrix(&cases);
    let mut text = String::new();
    for (defect, ids) in &matrix {
        text.push_str(format!("{:<20} {}", defect.id(), ids.join(" ")).trim_end());
        text.push('\n');
    }
    insta::assert_snapshot!(text);
    // a kind without a case in the catalog shows nothing
    let known = |defect: &Defect| match defect.kind() {
        _ if *defect == SOUND => false,
        DefectKind::Pressure => cases.iter().any(|case| case.press && case.group() != 'F'),
        kind => cases.iter().any(|case| shows(kind, case)),
    };
    let silent = matrix.iter().filter(|(defect, ids)| ids.is_empty() && known(defect));
    let idle: Vec<&str> = silent.map(|(defect, _)| defect.id()).collect();
    assert_eq!(idle, Vec::<&str>::new(), "these defects turn nothing red");
    let exempt: BTreeSet<&str> = WITHOUT_VERDICT.into();
    let turned: BTreeSet<&str> = matrix.values().flatten().map(String::as_str).collect();
    let green: Vec<&str> = cases
        .iter()
        .map(|case| case.id.as_str())
        .filter(|id| !turned.contains(id) && !exempt.contains(id))
        .collect();
    assert_eq!(green, Vec::<&str>::new(), "no defect turns these red");
}

#[test]
fn the_limit_that_applies_to_a_long_line_is_reported() {
    let mut cases = plain_cases();
    cases.retain(|case| case.id == "L-07");
    let notes = |defects: &[Defect]| -> Vec<String> {
        let result = against(defects, &cases);
        let measures = result.cases[0].measures.iter();
        let own = measures.filter(|one| one.what.starts_with("limit on a "));
        own.map(|one| format!("{}: {}", one.what, one.note.split(':').next().unwrap_or_default()))
            .collect()
    };
    let field = "limit on a field line: its own limit";
    let method = "limit on a method: the limit on the request line";
    assert_eq!(notes(&[]), ["limit on a request line: its own limit", field, method]);
    // without a limit on the server no limit is found
    assert_eq!(notes(&[Defect::LineOfAnyLength]), [field]);
}
