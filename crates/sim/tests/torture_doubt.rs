//! What a torture must not say where it has not learned enough, in virtual time.

use campaign::{Settings, Unwatched, run};
use sim::torture::{Field, target};
use sim::{Action, Admission, Client, ClosureServer, Server, World};
use torture::catalogue;
use torture::judge::Judgement;
use torture::result::{CaseResult, ExchangeResult};
use units::Nanos;

const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const FAILED: &[u8] = b"HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n";

fn field(server: impl Server + 'static) -> Field {
    Field::new(World::new(Box::new(server), Nanos::from_millis(1), Nanos::from_secs(100)))
}

/// What came of one case.
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

/// A thousand requests take longer than is waited for them, and nobody has ended the connection.
#[test]
fn a_slow_server_that_keeps_its_connection_has_no_limit() {
    let takes = Nanos::from_millis(80);
    let react =
        move |now: Nanos, _: Client, _: &[u8]| vec![(now + takes, Action::Bytes(RIGHT.to_vec()))];
    let case = case_of("L-14", field(ClosureServer { admit: Admission::Accept, react }));
    let [measure] = &case.measures[..] else { panic!("{:?}", case.measures) };
    let ends = (measure.low, measure.high, measure.note.as_str());
    assert_eq!(ends, (Some(731.0), None, "no end within 60 s"));
}

/// Answers 500 to a request without Host, and is away for the next two seconds.
struct GoesAway {
    back: Nanos,
}

impl Server for GoesAway {
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
fn who_is_gone_after_a_failure_has_failed() {
    let case = case_of("S-01", field(GoesAway { back: Nanos::ZERO }));
    let told: Vec<String> = case.exchanges.iter().map(shown).collect();
    let failed = "the server answered 500: its own fault by its own word";
    assert_eq!(told, [format!("missing: fail, 3 of 3; {failed}")]);
}
