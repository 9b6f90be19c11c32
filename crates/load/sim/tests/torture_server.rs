//! The server's processes in virtual time: crashes by their signal, named workers, and leaks.

use campaign::shrink::Budget;
use campaign::{Settings, Unwatched, run};
use faulty::{Defect, Defects};
use sample::{Death, Ending, Process, ServerState};
use sim::torture::{Field, FiringRange, target};
use sim::{Action, Admission, Client, Server, World};
use std::collections::BTreeSet;
use torture::case::Case;
use torture::catalogue;
use torture::judge::TestOutcome;
use torture::result::{CaseResult, ExchangeResult, RunResult};
use units::Nanos;

fn cases(ids: &[&str]) -> Vec<Case> {
    let mut cases = catalogue::cases().expect("the catalogue can be read");
    cases.retain(|case| ids.contains(&case.id.as_str()));
    assert_eq!(cases.len(), ids.len());
    cases
}

fn against(server: impl Server + 'static, ids: &[&str]) -> RunResult {
    let settings = Settings {
        seed: 1,
        executions_max: 25,
        baseline: Nanos::SECOND,
        big: Some(faulty::BIG.into()),
        search: Some(Budget { executions: 200, span: Nanos::from_secs(600) }),
        ..Settings::default()
    };
    let mut world = World::new(Box::new(server), Nanos::from_millis(1), Nanos::from_secs(1_000));
    world.limit_window(256 << 10);
    run(&target(), &settings, &cases(ids), &mut Field::new(world), &mut Unwatched)
}

fn run_cases(defect: Defect, ids: &[&str]) -> RunResult {
    against(FiringRange::new(&Defects::from([defect])), ids)
}

fn shown(case: &CaseResult) -> String {
    let bad = case.exchanges.iter().filter(|one| !one.judgement.outcome.is_favorable());
    let bad = bad.map(|one| {
        format!("\n  {}: {} {}", one.name, one.judgement.outcome.id(), one.judgement.why)
    });
    let notes = case.notes.iter().map(|note| format!("\n  {note}"));
    format!("{} {}{}\n", case.case.id, case.outcome.id(), bad.chain(notes).collect::<String>())
}

fn all(result: &RunResult) -> String {
    let mut text: String = result.cases.iter().map(shown).collect();
    if let Some(why) = &result.ended_early {
        text.push_str(&format!("ended early: {why}\n"));
    }
    text
}

#[test]
fn a_server_that_stays_down_names_its_signal() {
    insta::assert_snapshot!(all(&run_cases(Defect::AbortsOnEncodedNul, &["F-09", "S-01"])));
}

#[test]
fn a_restarted_server_has_crashed_and_the_culprit_is_found() {
    let result = run_cases(Defect::CrashesOnThirdNul, &["F-09", "S-01"]);
    insta::assert_snapshot!(all(&result));
    // the effects of the search are not part of the effects of the case
    let deaths: Vec<usize> = result
        .cases
        .iter()
        .map(|case| case.server.as_ref().expect("it is seen").deaths.len())
        .collect();
    assert_eq!(deaths.iter().filter(|count| **count > 0).count(), 1, "{deaths:?}");
}

#[test]
fn resources_not_released_after_load_are_a_leak() {
    let found: String = [Defect::KeepsDescriptors, Defect::KeepsMemory, Defect::LosesSomeSlots]
        .into_iter()
        .map(|defect| format!("{}: {}", defect.id(), all(&run_cases(defect, &["C-03"]))))
        .collect();
    insta::assert_snapshot!(found);
}

#[test]
fn memory_taken_by_single_requests_has_its_request() {
    // the third case starts while memory grows, and the last one compares the whole run
    let ids = ["S-01", "S-37", "S-38", "C-14"];
    let found: String = [Defect::KeepsChunks, Defect::GrowsAfterChunks]
        .into_iter()
        .map(|defect| format!("{}: {}", defect.id(), all(&run_cases(defect, &ids))))
        .collect();
    insta::assert_snapshot!(found);
}

#[test]
fn a_correct_server_has_a_row_per_case_and_no_remark() {
    let result = against(FiringRange::new(&Defects::new()), &["S-01", "S-02", "C-03", "C-06"]);
    assert_eq!(all(&result), "C-03 held\nC-06 held\nS-01 pass\nS-02 pass\n");
    let rows = result.server.expect("it is seen").rows;
    let cases: BTreeSet<&str> = rows.iter().map(|row| row.case.as_str()).collect();
    assert_eq!((rows.len(), cases), (5, BTreeSet::from(["", "S-01", "S-02", "C-03", "C-06"])));
}

/// Firing range whose connections have workers: %00 crashes the worker that reads it, with its
/// connection, and a new one starts at once.
struct Forking {
    range: FiringRange,
    how: Ending,
    deaths: Vec<Death>,
    pid: u32,
}

impl Forking {
    fn new(how: Ending) -> Forking {
        Forking { range: FiringRange::new(&Defects::new()), how, deaths: Vec::new(), pid: 200 }
    }
}

impl Server for Forking {
    fn connect(&mut self, now: Nanos, client: Client) -> Admission {
        self.range.connect(now, client)
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        if bytes.windows(3).any(|three| three == b"%00") {
            self.pid += 1;
            let process = Process { pid: self.pid, started: now.0, name: "worker".into() };
            self.deaths.push(Death { process, whole: false, how: self.how });
            self.range.reset(now, client);
            return vec![(now, Action::Reset)];
        }
        self.range.receive(now, client, bytes)
    }

    fn ended(&mut self, now: Nanos, client: Client) {
        self.range.ended(now, client);
    }

    fn due(&self) -> Nanos {
        self.range.due()
    }

    fn wake(&mut self, now: Nanos) -> Vec<(Client, Action)> {
        self.range.wake(now)
    }

    fn state(&self, now: Nanos) -> Option<ServerState> {
        self.range.state(now)
    }

    fn take_deaths(&mut self) -> Vec<Death> {
        std::mem::take(&mut self.deaths)
    }
}

#[test]
fn only_a_crashed_worker_is_a_finding() {
    for (how, outcome) in [
        (Ending::Exit(0), TestOutcome::Pass),
        (Ending::Exit(1), TestOutcome::Pass),
        (Ending::Signal { number: 9, core: false }, TestOutcome::Pass),
        (Ending::Signal { number: 11, core: false }, TestOutcome::Fail),
    ] {
        let result = against(Forking::new(how), &["F-09"]);
        let case = &result.cases[0];
        assert_eq!(case.outcome, outcome, "{how}: {}", all(&result));
        assert!(case.notes[0].contains("worker"), "{}", all(&result));
        let culprit = case.exchanges.iter().find(|one| one.name.starts_with("culprit: number"));
        assert_eq!(culprit.is_some(), outcome == TestOutcome::Fail, "{}", all(&result));
        let has_nul = |one: &ExchangeResult| one.sent.windows(3).any(|three| three == b"%00");
        assert!(culprit.is_none_or(has_nul), "{}", all(&result));
    }
}

/// Server that responds more slowly once it has received a request that begins with an empty line.
#[derive(Default)]
struct SlowedDown {
    is_slow: bool,
}

impl Server for SlowedDown {
    fn receive(&mut self, now: Nanos, _: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        self.is_slow |= bytes.starts_with(b"\r\n");
        let took = if self.is_slow { Nanos::from_millis(900) } else { Nanos::from_millis(1) };
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        vec![(now + took, Action::Bytes(response.to_vec()))]
    }
}

#[test]
fn a_machine_that_became_slower_gets_more_time() {
    let silence_max = Some(Nanos::from_millis(300));
    let settings =
        Settings { seed: 1, baseline: Nanos::SECOND, silence_max, ..Settings::default() };
    let server = Box::new(SlowedDown::default());
    let world = World::new(server, Nanos::from_millis(1), Nanos::from_secs(1_000));
    let result =
        run(&target(), &settings, &cases(&["S-06"]), &mut Field::new(world), &mut Unwatched);
    assert_eq!(result.cases[0].outcome, TestOutcome::Pass, "{}", all(&result));
}

/// Server that never responds to a huge Content-Length, and crashes for good at the next request.
struct LateCrash {
    range: FiringRange,
    crashes_next: bool,
    is_gone: bool,
    deaths: Vec<Death>,
}

impl Server for LateCrash {
    fn connect(&mut self, now: Nanos, client: Client) -> Admission {
        if self.is_gone { Admission::Refuse } else { self.range.connect(now, client) }
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        if std::mem::take(&mut self.crashes_next) {
            let process = Process { pid: 100, started: 0, name: "server".into() };
            let how = Ending::Signal { number: 6, core: false };
            self.deaths.push(Death { process, whole: true, how });
            self.is_gone = true;
            return vec![(now, Action::Reset)];
        }
        let length = b"Content-Length: 9223372036854775807";
        self.crashes_next = bytes.windows(length.len()).any(|here| here == length);
        if self.crashes_next { Vec::new() } else { self.range.receive(now, client, bytes) }
    }

    fn ended(&mut self, now: Nanos, client: Client) {
        self.range.ended(now, client);
    }

    fn due(&self) -> Nanos {
        self.range.due()
    }

    fn wake(&mut self, now: Nanos) -> Vec<(Client, Action)> {
        self.range.wake(now)
    }

    fn state(&self, now: Nanos) -> Option<ServerState> {
        let state = self.range.state(now)?;
        Some(if self.is_gone { ServerState::default() } else { state })
    }

    fn take_deaths(&mut self) -> Vec<Death> {
        std::mem::take(&mut self.deaths)
    }
}

#[test]
fn a_crash_after_a_request_that_was_given_up_names_it() {
    let range = FiringRange::new(&Defects::new());
    let server = LateCrash { range, crashes_next: false, is_gone: false, deaths: Vec::new() };
    let result = against(server, &["B-11"]);
    let exchanges = &result.cases[0].exchanges;
    let crashed = exchanges.iter().find(|one| one.judgement.outcome == TestOutcome::Crashed);
    let why = &crashed.expect("a crash is seen").judgement.why;
    let text =
        "the cause may be the request before it (a request after a Content-Length of 2^63 - 1)";
    assert!(why.contains(text), "{why}");
    assert!(why.ends_with("the server was not restarted, so the cause is unconfirmed"), "{why}");
}
