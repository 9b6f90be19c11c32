//! Planted bugs, each searched by a default run without tuning: found, rated, recorded with its
//! bytes, and failing again when the bytes are replayed.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use campaign::shrink::Budget;
use campaign::{Failure, Settings, TestTarget, Timing, Unwatched};
use dialogue::calls;
use dialogue::http2::Protocol;
use dialogue::text::Values;
use faulty::{Defect, DefectKind, Defects};
use sim::World;
use sim::torture::{Field, FiringRange, KeptFailures, target, target_over_quic};
use std::collections::BTreeSet;
use torture::case::{Case, GRPC, HTTP2, HTTP3, Need, SOCKETS};
use torture::catalogue;
use torture::judge::{Plain, TestOutcome, severity};
use torture::result::{CaseResult, RunResult};
use units::Nanos;

/// Planted bugs: the switch, and a description.
const GALLERY: [(Defect, &str); 15] = [
    (Defect::StallsOnOdd, "responses that never end"),
    (Defect::SplitsResponses, "a query that is copied into a field"),
    (Defect::ServesParents, "a path that leaves the tree"),
    (Defect::DiesOfAborts, "a crash by clients that give up"),
    (Defect::KeepsMemory, "memory that grows by every request"),
    (Defect::DiesOfLongField, "an abort at a length"),
    (Defect::DiesOnPercentN, "a format string"),
    (Defect::KeepsDescriptors, "a leak of descriptors"),
    (Defect::HangsOnExtensions, "workers that hang for ever on a chunk extension"),
    (Defect::MixesPipelined, "responses that are mixed under pipelining"),
    (Defect::SlowExpression, "an expression that goes back and back"),
    (Defect::KeepsBodies, "memory that grows by broken bodies"),
    (Defect::KeepsChunks, "memory that a chunk size allocates"),
    (Defect::GrowsAfterChunks, "memory that grows after an unfinished chunk"),
    (Defect::LeavesTraces, "a state that leaks between clients"),
];

/// Planted bugs of an HTTP/2 server.
const FRAMES: [(Defect, &str); 4] = [
    (Defect::DiesOfLongFrame, "a crash by the length of a frame"),
    (Defect::KeepsResetStreams, "streams that are never forgotten"),
    (Defect::MixesTables, "tables of fields that are mixed up"),
    (Defect::ServesConnect, "CONNECT that is taken for a page's request"),
];

/// Planted bugs of an HTTP/3 server.
const STREAMS: [(Defect, &str); 9] = [
    (Defect::DiesOfDataFirst, "a crash by content before a header section"),
    (Defect::KeepsCancelledStreams, "requests given up that are never forgotten"),
    (Defect::HangsOnInsertCount, "workers that wait for entries of a table for ever"),
    (Defect::GrowsTables, "a table that grows as a client likes"),
    (Defect::PassesOverInstructions, "a table that parts from the client's"),
    (Defect::OverfillsTables, "a table of its own that is too large"),
    (Defect::RefersBeyondTables, "responses that refer to no entry"),
    (Defect::BlocksReaders, "responses that wait for entries against the client's will"),
    (Defect::EvictsReferenced, "entries that are gone while somebody needs them"),
];

fn settings() -> Settings {
    Settings {
        seed: 1,
        executions_max: 60,
        baseline: Nanos::SECOND,
        big: Some(faulty::BIG.into()),
        outside: Some(Plain::digest_of(faulty::OUTSIDE.as_bytes())),
        search: Some(Budget { executions: 2_000, span: Nanos::from_secs(600) }),
        ..Settings::default()
    }
}

fn field(defects: &[Defect], target: &TestTarget) -> Field {
    let defects: Defects = defects.iter().copied().collect();
    let range = Box::new(match target.protocol.is_http3() {
        true => FiringRange::over_quic(&defects),
        false => FiringRange::new(&defects),
    });
    let mut world = World::new(range, Nanos::from_millis(1), Nanos::from_secs(20_000));
    world.limit_window(256 << 10);
    Field::new(world)
}

/// Returns the cases of a default run; the world has no TLS and no packets.
fn usual(target: &TestTarget) -> Vec<Case> {
    let mut cases = catalogue::cases().unwrap();
    let protocol = match target.protocol {
        _ if target.is_grpc() => |group| group == GRPC,
        Protocol::Http1 => |group| ![GRPC, HTTP2, HTTP3].contains(&group),
        Protocol::Http2 | Protocol::Http2Raw => |group| group == HTTP2,
        Protocol::Http3 | Protocol::Datagrams => |group| group == HTTP3,
    };
    cases.retain(|case| !case.press && !case.needs.contains(&Need::Tls));
    cases.retain(|case| !case.needs.contains(&Need::Device));
    cases.retain(|case| protocol(case.group()));
    // none of these bugs concerns WebSocket, whose cases send megabytes
    cases.retain(|case| case.group() != SOCKETS);
    // the simulated world has QUIC streams, but no datagrams or packets
    cases.retain(|case| !["Q-5", "Q-7", "Q-8"].iter().any(|part| case.id.starts_with(part)));
    cases
}

/// Returns the range over HTTP/2.
fn framed() -> TestTarget {
    TestTarget { protocol: Protocol::Http2, ..target() }
}

/// Returns the most severe case; of equally severe ones, the first.
fn most_severe(result: &RunResult) -> Option<&CaseResult> {
    let weight = |case: &&CaseResult| severity::of_case(case).map(|weight| weight.severity);
    let found = result.cases.iter().filter(|case| severity::of_case(case).is_some());
    found.max_by(|one, other| weight(one).cmp(&weight(other)).then(other.case.id.cmp(&one.case.id)))
}

fn report_of(defect: Defect, called: &str, target: &TestTarget) -> String {
    let cases = usual(target);
    let mut kept = KeptFailures::new(TestOutcome::is_finding);
    let result =
        campaign::run(target, &settings(), &cases, &mut field(&[defect], target), &mut kept);
    let Some(case) = most_severe(&result) else { return format!("{called}: not found\n") };
    let weight = severity::of_case(case).unwrap().severity;
    let ids: Vec<&str> = result
        .cases
        .iter()
        .filter(|case| case.outcome.is_finding())
        .map(|case| case.case.id.as_str())
        .collect();
    let mut text = format!("{called}: {} by {}\n", weight.id(), ids.join(" "));
    let exchange = case
        .exchanges
        .iter()
        .filter(|one| one.judgement.outcome.is_finding())
        .max_by_key(|one| severity::of_exchange(&case.case, one).map(|weight| weight.severity));
    let Some(exchange) = exchange else {
        return text + &format!("  {}: {}\n", case.case.id, case.notes.join("; "));
    };
    let (name, why) = (&exchange.name, &exchange.judgement.why);
    text += &format!("  {} {name}: {why}; {} bytes\n", case.case.id, exchange.sent.len());
    if let Some(shrunk) = result.shrunk.iter().find(|one| one.case == case.case.id) {
        text += &format!("  shrunk to {} bytes\n", shrunk.bytes().len());
    }
    let failures = kept.failures(&cases);
    let same = |one: &&Failure| one.case.id == case.case.id && one.transcript.name == *name;
    if let Some(failure) = failures.iter().find(same) {
        text += &replayed(failure, &[defect], target);
        text += &replayed(failure, &[], target).replace("replayed", "without the bug");
    }
    text
}

fn replayed(failure: &Failure, defects: &[Defect], target: &TestTarget) -> String {
    let (settings, mut world) = (Settings::default(), field(defects, target));
    let failures = std::slice::from_ref(failure);
    let times = (3, Timing::Kept);
    let result = campaign::replay(target, &settings, failures, times, &mut world, &mut Unwatched);
    let Some(row) = result.rows.first() else { return "  not replayed\n".to_owned() };
    format!("  replayed: {}, {} of {}\n", row.verdict.id(), row.failed, row.tries)
}

#[test]
fn planted_bugs_are_found_rated_and_replayed() {
    let reports: Vec<String> = std::thread::scope(|scope| {
        let all = GALLERY.iter().map(|one| (one, target()));
        let all = all.chain(FRAMES.iter().map(|one| (one, framed())));
        let all = all.chain(STREAMS.iter().map(|one| (one, target_over_quic())));
        let running: Vec<_> = all
            .map(|((defect, called), target)| {
                scope.spawn(move || report_of(*defect, called, &target))
            })
            .collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    insta::assert_snapshot!(reports.concat());
}

/// The range over gRPC.
fn called() -> TestTarget {
    let target = framed();
    let (path, message) = (calls::HEALTH.to_owned(), calls::EMPTY.to_vec());
    TestTarget { values: Values { path, message, ..target.values.clone() }, ..target }
}

#[test]
fn a_correct_server_passes_every_case_of_grpc() {
    assert!(exchanges_passed(&called()) > 100);
}

/// Returns the cases of gRPC that a switch turns red.
fn failing_grpc_cases(defect: Defect) -> Vec<String> {
    let target = called();
    let settings = Settings { search: None, ..settings() };
    let (cases, mut field) = (usual(&target), field(&[defect], &target));
    let result = campaign::run(&target, &settings, &cases, &mut field, &mut Unwatched);
    let red = result.cases.into_iter().filter(|case| !case.outcome.is_favorable());
    red.map(|case| case.case.id).collect()
}

#[test]
fn every_case_of_grpc_is_turned_red_by_a_switch() {
    let own = Defect::ALL.iter().filter(|one| one.kind() == DefectKind::Calls);
    let own = own.chain([&Defect::KeepsResetStreams]);
    let (mut text, mut green) = (String::new(), BTreeSet::new());
    green.extend(usual(&called()).into_iter().map(|case| case.id));
    for defect in own {
        let ids = failing_grpc_cases(*defect);
        ids.iter().for_each(|id| _ = green.remove(id));
        text += &format!("{:<20} {}\n", defect.id(), ids.join(" "));
    }
    insta::assert_snapshot!(text);
    assert_eq!(green, BTreeSet::new(), "no switch turns these red");
}

/// Returns the cases of WebSocket over HTTP/2.
fn tunneled_cases() -> Vec<Case> {
    let mut cases = catalogue::cases().unwrap();
    cases.retain(|case| case.group() == SOCKETS && case.runs_in("2"));
    cases
}

/// Returns the cases of WebSocket over HTTP/2 that a switch turns red.
fn failing_tunneled_cases(defect: Defect, cases: &[Case]) -> Vec<String> {
    let (target, settings) = (framed(), Settings { search: None, ..settings() });
    let mut field = field(&[defect], &target);
    let result = campaign::run(&target, &settings, cases, &mut field, &mut Unwatched);
    let red = result.cases.into_iter().filter(|case| !case.outcome.is_favorable());
    red.map(|case| case.case.id).collect()
}

#[test]
fn a_correct_server_passes_every_case_of_websocket_over_http2() {
    let (cases, target) = (tunneled_cases(), framed());
    assert!(passed(&target, &cases) > 80);
}

/// Defects of the handshake of HTTP/1.1, which none of these cases shows.
const OF_HTTP1: [Defect; 6] = [
    Defect::UpgradesAnyKey,
    Defect::UpgradesAnything,
    Defect::AcceptsWrongly,
    Defect::NamesNoVersion,
    Defect::TakesBodiesForFrames,
    Defect::StaysOnRefusal,
];

#[test]
fn every_case_of_websocket_over_http2_is_turned_red_by_a_switch() {
    let kinds = [DefectKind::Sockets, DefectKind::Tunnels];
    let own = Defect::ALL.iter().filter(|one| kinds.contains(&one.kind()));
    let shown = |one: &&Defect| !OF_HTTP1.contains(one) && **one != Defect::AnnouncesNoTunnels;
    let own: Vec<Defect> = own.filter(shown).copied().collect();
    let (cases, mut text, mut idle) = (tunneled_cases(), String::new(), Vec::new());
    let mut green: BTreeSet<String> = cases.iter().map(|case| case.id.clone()).collect();
    let rows: Vec<(Defect, Vec<String>)> = std::thread::scope(|scope| {
        let parts: Vec<_> = own
            .chunks(own.len().div_ceil(2))
            .map(|part| {
                let cases = &cases;
                let row = |defect: &Defect| (*defect, failing_tunneled_cases(*defect, cases));
                scope.spawn(move || part.iter().map(row).collect::<Vec<_>>())
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    for (defect, ids) in rows {
        ids.iter().for_each(|id| _ = green.remove(id));
        idle.extend(ids.is_empty().then_some(defect.id()));
        text += &format!("{:<20} {}\n", defect.id(), ids.join(" "));
    }
    insta::assert_snapshot!(text);
    assert_eq!((green, idle), Default::default(), "no switch turns these red, no case shows these");
}

#[test]
fn websocket_cases_over_http2_need_extended_connect() {
    let (cases, target) = (tunneled_cases(), framed());
    let defects = [Defect::AnnouncesNoTunnels];
    let mut field = field(&defects, &target);
    let result = campaign::run(&target, &settings(), &cases, &mut field, &mut Unwatched);
    let skipped: BTreeSet<&str> =
        result.cases.iter().map(|case| case.skipped.as_deref().unwrap_or("ran")).collect();
    let why = "the server does not announce SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441)";
    assert_eq!(skipped, BTreeSet::from([why]));
}

#[test]
fn a_correct_server_passes_every_case_of_http2() {
    assert!(exchanges_passed(&framed()) > 200);
}

#[test]
fn a_correct_server_passes_every_case_of_http3() {
    assert!(exchanges_passed(&target_over_quic()) > 100);
}

/// Runs all cases against a server without a defect; returns the number of passed exchanges.
fn exchanges_passed(target: &TestTarget) -> usize {
    passed(target, &usual(target))
}

/// Does the same with these cases.
fn passed(target: &TestTarget, cases: &[Case]) -> usize {
    let mut field = field(&[], target);
    let result = campaign::run(target, &settings(), cases, &mut field, &mut Unwatched);
    let mut odd = String::new();
    for case in &result.cases {
        for one in &case.exchanges {
            let judgement = &one.judgement;
            let well = judgement.outcome.is_favorable();
            let (id, seen) = (&case.case.id, &judgement.seen);
            if !well {
                odd += &format!("{id} {}: {}: {seen}\n", one.name, judgement.outcome.id());
            }
        }
        assert!(!case.recovery.is_late(), "{}", case.case.id);
    }
    assert_eq!((odd.as_str(), result.ended_early.as_deref()), ("", None));
    result.cases.iter().map(|case| case.exchanges.len()).sum()
}
