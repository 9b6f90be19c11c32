//! Torture draws no conclusion without enough observations, in virtual time.

use campaign::{Settings, Unwatched, run};
use dialogue::governor::Stop;
use faulty::{Defect, Defects};
use sim::torture::{Field, FiringRange, target};
use sim::{Action, Admission, Client, ClosureServer, Server, World};
use std::cell::Cell;
use std::rc::Rc;
use torture::catalogue;
use torture::judge::{Judgement, TestOutcome};
use torture::result::{CaseResult, ExchangeResult};
use units::Nanos;

const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const FAILED: &[u8] = b"HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n";
const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";

fn field(server: impl Server + 'static) -> Field {
    Field::new(World::new(Box::new(server), Nanos::from_millis(1), Nanos::from_secs(100)))
}

/// Returns the result of one case.
fn case_of(id: &str, mut field: Field) -> CaseResult {
    let settings =
        Settings { seed: 1, executions_max: 100, baseline: Nanos::SECOND, ..Settings::default() };
    let mut cases = catalogue::cases().expect("the catalogue reads");
    cases.retain(|case| case.id == id);
    let result = run(&target(), &settings, &cases, &mut field, &mut Unwatched);
    result.cases.into_iter().next().expect("the case began")
}

fn shown(one: &ExchangeResult) -> String {
    let Judgement { outcome, why, .. } = &one.judgement;
    format!("{}: {}, {} of {}; {why}", one.name, outcome.id(), one.failed, one.tries)
}

/// A thousand requests take longer than the wait, and the connection was not closed.
#[test]
fn a_slow_server_that_keeps_its_connection_has_no_limit() {
    let takes = Nanos::from_millis(80);
    let react =
        move |now: Nanos, _: Client, _: &[u8]| vec![(now + takes, Action::Bytes(RIGHT.to_vec()))];
    let case = case_of("L-14", field(ClosureServer { admit: Admission::Accept, react }));
    let [measure] = &case.measures[..] else { panic!("{:?}", case.measures) };
    let ends = (measure.low, measure.high, measure.note.as_str());
    assert_eq!(ends, (Some(731.0), None, "not closed within 60 s"));
}

/// Responds with 500 to a request without Host, and is down for the next two seconds.
struct TemporarilyDown {
    back: Nanos,
}

impl Server for TemporarilyDown {
    fn connect(&mut self, now: Nanos, _: Client) -> Admission {
        if now < self.back { Admission::Refuse } else { Admission::Accept }
    }

    fn receive(&mut self, now: Nanos, _: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        if bytes.windows(5).any(|five| five == b"Host:") {
            return vec![(now, Action::Bytes(RIGHT.to_vec()))];
        }
        self.back = now + Nanos::from_secs(2);
        vec![(now, Action::Bytes(FAILED.to_vec()))]
    }
}

#[test]
fn a_server_that_disappears_after_a_failure_has_failed() {
    let case = case_of("S-01", field(TemporarilyDown { back: Nanos::ZERO }));
    let lines: Vec<String> = case.exchanges.iter().map(shown).collect();
    let failed = "the server responded 500, which reports its own failure";
    assert_eq!(lines, [format!("missing: fail, 3 of 3; {failed}")]);
}

/// Responds with 500 to the first long head, and is too busy for any other.
#[test]
fn a_failure_without_a_second_response_is_not_a_pass() {
    let mut failed = false;
    let react = move |now: Nanos, _: Client, bytes: &[u8]| {
        let response = match (bytes.len() > 4_000, failed) {
            (false, _) => RIGHT,
            (true, true) => BUSY,
            (true, false) => FAILED,
        };
        failed |= response == FAILED;
        vec![(now, Action::Bytes(response.to_vec()))]
    };
    let case = case_of("L-02", field(ClosureServer { admit: Admission::Accept, react }));
    assert_eq!(case.outcome, TestOutcome::Fail, "{:?}", case.notes);
    let why = "of 4,096 bytes: the server responded 500, which reports its own failure";
    assert!(case.notes.iter().any(|note| note.ends_with(why)), "{:?}", case.notes);
}

/// Hangs on a percent-encoded NUL; with the connection of this number after that, the user
/// interrupts the run.
struct HangsLast {
    range: FiringRange,
    hung: bool,
    left: u32,
    over: Rc<Cell<bool>>,
}

impl Server for HangsLast {
    fn connect(&mut self, now: Nanos, client: Client) -> Admission {
        if self.hung {
            self.left = self.left.saturating_sub(1);
            self.over.set(self.left == 0);
        }
        self.range.connect(now, client)
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        self.hung |=
            bytes.windows(3).any(|three| three == b"%00") && faulty::responds_or_closes(bytes);
        self.range.receive(now, client, bytes)
    }

    fn half_closed(&mut self, now: Nanos, client: Client) -> Vec<(Nanos, Action)> {
        self.range.half_closed(now, client)
    }

    fn ended(&mut self, now: Nanos, client: Client) {
        self.range.ended(now, client);
    }

    fn reset(&mut self, now: Nanos, client: Client) {
        self.range.reset(now, client);
    }

    fn due(&self) -> Nanos {
        self.range.due()
    }

    fn wake(&mut self, now: Nanos) -> Vec<(Client, Action)> {
        self.range.wake(now)
    }
}

/// The user interrupts first the plain request after the hang, then the two tries after it.
#[test]
fn a_single_attempt_is_not_flaky() {
    for left in [1, 2] {
        let over = Rc::new(Cell::new(false));
        let range = FiringRange::new(&Defects::from([Defect::HangsOnEncodedNul]));
        let server = HangsLast { range, hung: false, left, over: over.clone() };
        let stop = move |_| over.get().then_some(Stop::Interrupted);
        let case = case_of("F-01", field(server).watched(Box::new(stop)));
        let hung: Vec<String> = case.exchanges.iter().map(shown).collect();
        let [one] = &hung[..] else { panic!("{hung:#?}") };
        assert!(one.contains(": fail, 1 of 1; everything was sent"), "{left}: {one}");
    }
}
