//! Invented torture results.

use crate::RunRecord;
use crate::torture::{Beside, Report};
use sample::{Death, Ending, Environment, Process, ServerState};
use std::collections::BTreeMap;
use torture::beside::{CaseEffect, Interval, LoadEffect};
use torture::case::Case;
use torture::catalogue;
use torture::judge::{Judgement, Plain, Severity, TestOutcome};
use torture::result::{
    Baseline, CaseResult, ExchangeResult, Habits, Health, Measure, Probe, ProbeKind, RunResult,
    Seen, ServerDuringCase, ServerRow, ServerSeen, Unit,
};
use torture::safety::Class;
use units::Nanos;

pub(super) fn case(id: &str) -> Case {
    catalogue::cases().unwrap().into_iter().find(|case| case.id == id).unwrap()
}

pub(super) fn result(id: &str, outcome: TestOutcome) -> CaseResult {
    CaseResult { outcome, ..CaseResult::new(&case(id)) }
}

fn exchange(name: &str, outcome: TestOutcome, sent: &[u8]) -> ExchangeResult {
    ExchangeResult {
        name: name.into(),
        judgement: Judgement {
            outcome,
            seen: "200, the connection stays open".into(),
            expected: "400".into(),
            why: "the standard requires a different response".into(),
            ..Judgement::default()
        },
        tries: 3,
        failed: 2,
        sent: sent.to_vec(),
        received: b"HTTP/1.1 200 OK\r\n\x1b[2J".to_vec(),
        took: Nanos::from_millis(3),
        pauses: Vec::new(),
    }
}

/// Returns a report with flaky random data, a violation, an inconclusive case, and a pass.
pub(super) fn mixed() -> Report {
    let mut failed = result("S-07", TestOutcome::Fail);
    let request = b"GET /'\x00 HTTP/1.1\r\nHost : h\r\n\r\n";
    failed.exchanges.push(exchange("space", TestOutcome::Fail, request));
    failed.recovery = torture::result::Recovery::After(Nanos::from_millis(1_200));
    let mut skipped = result("S-30", TestOutcome::Skipped);
    skipped.skipped = Some("no page that accepts request bodies is given (--post PATH)".into());
    let mut random = result("F-01", TestOutcome::Flaky);
    random.tally = BTreeMap::from([("200".into(), 900), ("414".into(), 100)]);
    random.exchanges.push(exchange("number 42, seed 1", TestOutcome::Flaky, &[b'a'; 3_000]));
    let cases = vec![random, failed, skipped, result("S-01", TestOutcome::Pass)];
    Report {
        target: "http://127.0.0.1:8080/".into(),
        addresses: vec!["127.0.0.1".parse().unwrap()],
        class: Class::Local,
        started_unix_s: 1_790_000_000.0,
        seed: 1,
        post: None,
        options: Vec::new(),
        fail_on: Severity::FAILING,
        waivers: Vec::new(),
        beside: None,
        path: None,
        environment: Environment { version: "0.1.0".into(), ..Environment::default() },
        result: RunResult {
            plain: Plain { status: 200, body_len: 13, digest: Some([7; 32]), outside: None },
            habits: Habits { seen: vec![("a line of junk".into(), "400, closed".into())] },
            cases,
            took: Nanos::from_millis(2_500),
            ..RunResult::default()
        },
    }
}

/// Returns a run in which the server was lost, and that the user interrupted.
pub(super) fn lost() -> Report {
    let mut report = mixed();
    report.result.cases[1].recovery = torture::result::Recovery::Never;
    report.result.ended_early = Some("no plain request got its usual response".into());
    report.result.interrupted = true;
    report.result.post_trouble = Some("405, the connection stays open".into());
    report
}

/// Returns a case that need not be in the catalog.
fn synthetic_case(id: &str, title: &str, outcome: TestOutcome) -> CaseResult {
    let mut case = case("S-07");
    (case.id, case.title) = (id.into(), title.into());
    case.reference = "RFC 9110 section 15.5.9".into();
    case.exchanges.clear();
    CaseResult { outcome, took: Nanos::from_secs(60), ..CaseResult::new(&case) }
}

fn measure(what: &str, (low, high): (Option<f64>, Option<f64>), unit: Unit, note: &str) -> Measure {
    Measure { what: what.into(), low, high, unit, note: note.into() }
}

/// Returns the report of a prefork server of 4 workers without a timeout: slow heads deny service.
pub(super) fn pressed() -> Report {
    let mut report = mixed();
    let mut slow = synthetic_case("W-10", "half heads, many at once", TestOutcome::Denied);
    slow.notes =
        vec!["new connections were not served, the kept one was: no worker was free".into()];
    slow.health = Some(Health {
        correct: 0.063,
        shed: 0.0,
        lost: 0.937,
        probes: 300,
        p99: Nanos::from_secs(2),
        recovery: Some(Nanos::from_millis(1_400)),
        cut_short: false,
        wanted: 64,
        armed: 64,
        followed: 2,
        rounds: 2,
        control_denied: Some(false),
    });
    let slots = (Some(4.0), Some(4.0));
    slow.measures.push(measure("slots", slots, Unit::Connections, "half heads held at once"));
    let mut held = synthetic_case("C-03", "request and reset", TestOutcome::Held);
    held.health = Some(Health {
        correct: 1.0,
        probes: 60,
        p99: Nanos::from_micros(1_300),
        recovery: Some(Nanos::ZERO),
        wanted: 100,
        armed: 100,
        ..Health::default()
    });
    let mut unread = synthetic_case("W-02", "a head that never ends", TestOutcome::Unbounded);
    unread.measures.push(measure(
        "half a head",
        (Some(180.0), None),
        Unit::Seconds,
        "none within 180 s",
    ));
    let mut line = synthetic_case("L-01", "length of the request target", TestOutcome::Pass);
    let ends = (Some(8_190.0), Some(8_191.0));
    line.measures.push(measure("request line", ends, Unit::Bytes, "414; counted without its CRLF"));
    report.result.cases.extend([slow, held, unread, line]);
    report.result.took = Nanos::from_secs(185);
    report.result.baseline = Some(Baseline {
        probes: 50,
        failed: 0,
        slow: 0,
        p50: Nanos::from_micros(420),
        p99: Nanos::from_micros(1_100),
    });
    report.result.probes = probes();
    report
}

/// Returns [`mixed`] with a load that lost calls in one case, sent none in another and was not
/// affected by a third.
pub(super) fn report_with_load() -> Report {
    let during = |due, lost, slowest| Interval {
        due,
        lost,
        p50: Nanos::from_micros(500),
        p99: Nanos::from_micros(slowest),
        max: Nanos::from_micros(slowest),
    };
    let felt = |case: &str, during, recovery| CaseEffect { case: case.into(), during, recovery };
    let cases = vec![
        felt("F-01", during(400, 2, 1_500_000), Some(Nanos::from_secs(2))),
        felt("S-01", Interval::default(), Some(Nanos::ZERO)),
        felt("S-07", during(40, 40, 0), None),
        felt("S-08", during(40, 0, 1_000), Some(Nanos::ZERO)),
    ];
    let felt = LoadEffect { base: during(200, 0, 1_000), cases, left_out: 12 };
    let beside = Beside {
        felt,
        run: RunRecord::new(&super::fixtures::whole(super::curves::held(100.0, 500.0, 1))),
    };
    Report { beside: Some(beside), ..mixed() }
}

/// Returns a process of the server.
fn process(pid: u32) -> Process {
    Process { pid, started: 1, name: "httpd".into() }
}

fn state(pids: &[u32], held: u64) -> ServerState {
    let (first, workers) = pids.split_first().unwrap();
    ServerState {
        listeners: vec![process(*first)],
        workers: workers.iter().map(|pid| process(*pid)).collect(),
        threads: pids.len() as u64,
        descriptors: 20 + held,
        memory_bytes: (10 << 20) + held * 65_536,
        cpu: Nanos::from_millis(40 * (1 + held)),
        sockets: [("close-wait", held / 2), ("established", 1), ("time-wait", 50)]
            .map(|(state, count)| (state.to_owned(), count))
            .into(),
        accept_queue_max: 128,
        overflows: 7 + held,
        ..ServerState::default()
    }
}

/// Returns [`pressed`] with visible server processes: one case leaked descriptors; in another a
/// worker crashed, and then the server itself.
pub(super) fn watched() -> Report {
    let mut report = pressed();
    let states =
        [state(&[7, 8, 9], 0), state(&[7, 8, 9], 0), state(&[7, 8, 9], 100), state(&[30, 31], 4)];
    let died = |pid, whole, how| Death { process: process(pid), whole, how };
    let fault = Ending::Signal { number: 11, core: true };
    let deaths = vec![died(8, false, fault), died(9, false, fault), died(7, true, Ending::Exit(3))];
    let renewed = vec![died(5, false, Ending::Exit(0)), died(6, false, Ending::Exit(0))];
    let all = [("S-01", renewed), ("C-03", Vec::new()), ("W-10", deaths)];
    for (n, (id, deaths)) in all.into_iter().enumerate() {
        let case = report.result.cases.iter_mut().find(|case| case.case.id == id).unwrap();
        let (before, after) = (states[n].clone(), states[n + 1].clone());
        case.server = Some(ServerDuringCase { before, after, deaths });
    }
    let row = |(n, state): (usize, ServerState)| ServerRow {
        at: Nanos::from_secs(n as u64 * 60),
        case: if n == 0 { String::new() } else { format!("S-0{n}") },
        state,
    };
    let rows = states.into_iter().enumerate().map(row).collect();
    report.result.server = Some(ServerSeen { rows, deaths: Vec::new() });
    report
}

/// Returns the probes of three minutes, five per second; those on new connections are lost from 60
/// s to 120 s.
fn probes() -> Vec<Probe> {
    let probe = |n: u64, kind: ProbeKind| {
        let due = Nanos::from_millis(n * 200);
        let pressed = (300..600).contains(&n);
        let lost = pressed && kind == ProbeKind::New;
        let over = if lost { Nanos::from_secs(2) } else { Nanos::from_micros(400 + n % 7 * 60) };
        Probe {
            kind,
            due,
            late: Nanos::from_micros(20),
            connected: Some(Nanos::from_micros(50)),
            first_byte: (!lost).then_some(over),
            over,
            seen: match (lost, pressed && n.is_multiple_of(40)) {
                (true, _) => Seen::Lost,
                (false, true) => Seen::Shed,
                (false, false) => Seen::Correct,
            },
            said: if lost { "no response in 2 s".into() } else { "200".into() },
            ours: false,
            refused: false,
            case: match n {
                0..200 => String::new(),
                200..300 => "S-07".into(),
                300..600 => "W-10".into(),
                _ => "C-03".into(),
            },
        }
    };
    (0..900).flat_map(|n| [ProbeKind::New, ProbeKind::Keep].map(|kind| probe(n, kind))).collect()
}
