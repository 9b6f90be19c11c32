//! What a torture must not say where it has not learned enough, in virtual time.

use campaign::{Settings, Unwatched, run};
use sim::torture::{Field, target};
use sim::{Action, Admission, Client, ClosureServer, Server, World};
use torture::catalogue;
use torture::result::CaseResult;
use units::Nanos;

const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

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
