//! Journeys run by a program, in virtual time: its events, and the effect of its actions.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use plan::{NoFiles, Plan, from_toml};
use sample::FailureClass;
use sim::{Action, Admission, Client, ClosureServer, Simulated, World, execute_acted};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::Nanos;
use workload::{ActedCall, Actor, ActorAction, ActorTurn, CallResponse, IterationStart};

const HEAD: &str = "version = 1\nurl = 'http://sim.example/'\n";

type Log = Arc<Mutex<Vec<String>>>;

/// A program that makes the same calls in each iteration; its verdict follows each call.
#[derive(Clone, Debug)]
struct RepeatedCalls {
    lines: &'static [Line],
    at: BTreeMap<u64, usize>,
    log: Log,
}

/// Milliseconds to wait, the path, the statuses; then the verdict on the response.
type Line = (u64, &'static str, &'static [u16], Word);

#[derive(Clone, Copy, Debug)]
enum Word {
    Good,
    Fail,
    Unmet,
    Break,
}

impl RepeatedCalls {
    fn next(&mut self, user: u64, word: Word) -> ActorTurn {
        let at = self.at.entry(user).or_default();
        let action = match (word, self.lines.get(*at)) {
            (Word::Break, _) => ActorAction::Broke("t.lua:1: broken".to_owned()),
            (_, Some((_, "", ..))) => ActorAction::Broke("t.lua:1: no path".to_owned()),
            (_, None) => ActorAction::Over { wait: Nanos::from_millis(7) },
            (_, Some((wait, path, statuses, _))) => ActorAction::Call(Box::new(ActedCall {
                wait: Nanos::from_millis(*wait),
                step: (*at % 2) as u32,
                method: "GET".to_owned(),
                url: format!("http://sim.example{path}").parse().unwrap(),
                // a field with a line break cannot be sent
                headers: match *path {
                    "/bad" => vec![("X".to_owned(), "a\r\nb".to_owned())],
                    _ => Vec::new(),
                },
                body: None,
                statuses: statuses.to_vec(),
                socket: None,
            })),
        };
        *at += 1;
        let failure = matches!(word, Word::Fail).then(|| "not so".to_owned());
        let checks = match word {
            Word::Unmet => vec![None, Some("unmet".to_owned())],
            _ => Vec::new(),
        };
        ActorTurn { failure, checks, values: Vec::new(), action }
    }
}

impl Actor for RepeatedCalls {
    fn begin(&mut self, begun: &IterationStart<'_>) -> ActorTurn {
        let values: Vec<String> = begun.values.iter().map(|(k, v)| format!(" {k}={v}")).collect();
        let text = format!("begin {}/{}{}", begun.user, begun.iteration, values.concat());
        self.log.lock().unwrap().push(text);
        self.at.insert(begun.user, 0);
        self.next(begun.user, Word::Good)
    }

    fn resume(&mut self, user: u64, heard: Result<&CallResponse<'_>, &str>) -> ActorTurn {
        let text = match heard {
            Ok(heard) => format!(
                "{user}: {} {} {} µs {}",
                heard.status,
                String::from_utf8_lossy(heard.body),
                heard.took.0 / 1_000,
                heard.error.unwrap_or("fine")
            ),
            Err(why) => format!("{user}: refused: {why}"),
        };
        self.log.lock().unwrap().push(text);
        let at = self.at[&user];
        let word = self.lines[at - 1].3;
        self.next(user, word)
    }

    fn end_early(&mut self, user: u64) {
        self.log.lock().unwrap().push(format!("{user} leaves off"));
    }

    fn forget(&mut self, user: u64) {
        self.log.lock().unwrap().push(format!("{user} is gone"));
    }
}

fn plan(rest: &str) -> Plan {
    let text = format!(
        "{HEAD}{rest}[[feeder]]\nname = 'f'\ngenerate = {{ v = ['x'] }}\n[[journey]]\nname = 'j'\n\
         script = 'x'\nsteps = ['one', 'two']\nfeeders = ['f']\n"
    );
    let plan = from_toml(&text, &NoFiles).unwrap();
    if let Err(problems) = plan::validate(&plan) {
        panic!("{problems:?}");
    }
    plan
}

/// Runs the lines against a server that answers after a millisecond: `/NNN` with that status,
/// `/hang` never. Returns the run and the log of the actors.
fn play(plan: Plan, workers: u32, lines: &'static [Line]) -> (Simulated, Vec<String>) {
    let react = move |now: Nanos, _: Client, bytes: &[u8]| {
        let request = String::from_utf8_lossy(bytes).into_owned();
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let status: u16 = path.trim_start_matches('/').parse().unwrap_or(200);
        if path == "/hang" {
            return Vec::new();
        }
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\nok");
        vec![(now + Nanos::from_millis(1), Action::Bytes(text.into_bytes()))]
    };
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
    let log = Log::default();
    let actors = || -> Vec<Option<Box<dyn Actor>>> {
        vec![Some(Box::new(RepeatedCalls { lines, at: BTreeMap::new(), log: log.clone() }))]
    };
    let outcome = execute_acted(plan, world, workers, &BTreeMap::new(), &actors);
    let log = log.lock().unwrap().clone();
    (outcome, log)
}

const ONE: &str = "[load]\nusers = 1\n[stop]\nrequests = 2\n";

#[test]
fn a_program_gets_responses_and_its_waits_are_kept() {
    let lines: &[Line] = &[(0, "/", &[], Word::Good), (5, "/404", &[404], Word::Unmet)];
    let (run, log) = play(plan(ONE), 1, lines);
    assert_eq!(
        log,
        [
            "begin 0/0 f.v=x",
            "0: 200 ok 1000 µs fine",
            "0: 404 ok 1000 µs fine",
            "0 leaves off",
            "begin 0/1 f.v=x",
            "0: 200 ok 1000 µs fine",
            "0: 404 ok 1000 µs fine",
            "0 leaves off",
            "0 is gone",
        ]
    );
    let total = &run.measurement.total;
    assert_eq!((total.counts.due, total.counts.succeeded), (4, 4));
    let rows: Vec<u64> = total.targets.iter().map(|row| row.succeeded).collect();
    assert_eq!(rows, [2, 2]);
    let journeys = &total.journeys;
    assert_eq!(journeys.transactions[0].succeeded, 2);
    assert_eq!((journeys.met[1], journeys.unmet[1].count), (2, 2));
    // each call falls due when its wait is over: 5 ms before the second, 7 ms between iterations
    let due: Vec<u64> =
        run.calls.windows(2).map(|two| (two[1].0.intended - two[0].0.done).0 / 1_000_000).collect();
    assert_eq!(due, [5, 7, 5]);
}

#[test]
fn a_programs_judgment_decides_the_outcome() {
    let lines: &[Line] = &[
        (0, "/a", &[], Word::Fail),
        (0, "/500", &[], Word::Good),
        (0, "/500", &[500], Word::Good),
        (0, "/b", &[404], Word::Good),
        (0, "/c", &[], Word::Break),
        (0, "/never", &[], Word::Good),
    ];
    let (run, log) = play(plan(ONE), 1, lines);
    let classes: Vec<Option<FailureClass>> = run.calls.iter().map(|(call, _)| call.class).collect();
    let round = [
        Some(FailureClass::Expectation),
        Some(FailureClass::Status),
        None,
        Some(FailureClass::Status),
        Some(FailureClass::Script),
    ];
    assert_eq!(classes, [round, round].concat(), "{log:?}");
    assert!(log.contains(&"0: 500 ok 1000 µs status".to_owned()), "{log:?}");
    let journeys = &run.measurement.total.journeys;
    assert_eq!(journeys.transactions[0].failed, 2, "an iteration ends where the program breaks");
    let example = journeys.differed[0].example.as_ref().unwrap();
    assert_eq!(example.1, "not so");
    assert_eq!(journeys.differed[0].count, 4, "two said so, and two broke");
}

/// An iteration that breaks before its first call still counts as failed.
#[test]
fn an_immediate_error_fails_the_iteration() {
    let lines: &[Line] = &[(0, "", &[], Word::Good)];
    let (run, log) = play(plan(ONE), 1, lines);
    assert!(run.calls.is_empty() && log.last().unwrap() == "0 is gone", "{log:?}");
    let journeys = &run.measurement.total.journeys;
    assert_eq!((journeys.transactions[0].failed, journeys.differed[0].count), (2, 2));
}

#[test]
fn an_invalid_request_is_returned_to_the_program() {
    let lines: &[Line] =
        &[(3, "/bad", &[], Word::Good), (4, "/a", &[], Word::Good), (0, "/bad", &[], Word::Break)];
    let (run, log) = play(plan(ONE), 1, lines);
    assert_eq!(run.calls.len(), 2);
    assert!(log[1].starts_with("0: refused: "), "{log:?}");
    // neither wait is lost
    let between = run.calls[1].0.intended - run.calls[0].0.done;
    assert_eq!(between, Nanos::from_millis(7));
    assert_eq!(run.measurement.total.journeys.transactions[0].failed, 2);
}

#[test]
fn a_program_is_notified_of_calls_without_a_response() {
    let lines: &[Line] = &[(0, "/hang", &[], Word::Good), (0, "/a", &[], Word::Good)];
    let text = format!("{ONE}[timeouts]\ncall = '1s'\n");
    let (run, log) = play(plan(&text), 1, lines);
    assert_eq!(log[1], "0: 0  1000000 µs client-timo");
    assert_eq!((run.measurement.total.counts.timed_out, run.calls.len()), (2, 4));
    // with `failure = "end"` this ends the iteration
    let mut plan = plan(&text);
    plan.journeys.as_mut().unwrap().journeys[0].failure = plan::journey::AfterFailure::End;
    let (run, _) = play(plan, 1, lines);
    assert_eq!((run.measurement.total.counts.timed_out, run.calls.len()), (2, 2));
}

#[test]
fn any_number_of_workers_makes_the_same_iterations() {
    let lines: &[Line] = &[(0, "/a", &[], Word::Good), (1, "/b", &[], Word::Good)];
    let text = "[load]\nusers = 4\n[stop]\nrequests = 40\n";
    let begun = |workers: u32| {
        let (run, log) = play(plan(text), workers, lines);
        assert_eq!(run.measurement.total.counts.succeeded, 80);
        let mut all: Vec<String> = log
            .iter()
            .filter_map(|line| Some(line.strip_prefix("begin ")?.split_once('/')?.1.to_owned()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(begun(1), begun(3));
    let open = plan("[load]\nrate = '10/s'\n[stop]\nrequests = 5\n");
    let (run, log) = play(open, 1, lines);
    assert_eq!(run.measurement.total.counts.succeeded, 10);
    assert_eq!(log.iter().filter(|line| line.starts_with("begin ")).count(), 5);
}
