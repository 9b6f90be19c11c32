use super::*;
use crate::case::read_case;
use crate::judge::Judgement;
use crate::result::{Health, Meanwhile, Recovery};
use sample::{Death, Ending, Process, ServerState};
use units::Nanos;

fn case(id: &str, risk: &str) -> Case {
    let risk = if risk.is_empty() { String::new() } else { format!("risk = \"{risk}\"\n") };
    let text = format!(
        "id = \"{id}\"\nversion = 1\ntitle = \"t\"\nlevel = \"MUST\"\n{risk}ref = \"r\"\nwhy = \"w\"\n\
         [[exchange]]\nname = \"x\"\nsend = ['']\naccept = [\"400\"]\n"
    );
    read_case("x.toml", &text).unwrap()
}

fn exchange(outcome: TestOutcome, kind: Option<FailureKind>) -> ExchangeResult {
    ExchangeResult {
        name: "x".into(),
        judgement: Judgement { outcome, kind, ..Judgement::default() },
        tries: 3,
        failed: 3,
        sent: Vec::new(),
        received: Vec::new(),
        took: Nanos::ZERO,
        pauses: Vec::new(),
    }
}

/// A case as severe as its only exchange.
fn row(case: &Case, outcome: TestOutcome, kind: Option<FailureKind>) -> CaseResult {
    let exchanges = vec![exchange(outcome, kind)];
    CaseResult { outcome, exchanges, ..CaseResult::of(case) }
}

fn weighed(risk: &str, outcome: TestOutcome, kind: Option<FailureKind>) -> Option<Severity> {
    of_case(&row(&case("S-99", risk), outcome, kind)).map(|weight| weight.severity)
}

#[test]
fn severity_depends_on_the_failure_and_the_rule() {
    use FailureKind::{Answer, Hang, Lost, NoHttp, OutOfStep, Slow, Status};
    use Severity::{Critical, High, Low, Medium};
    use TestOutcome::{Crashed, Degraded, Fail, Flaky, Leak, Unbounded};
    for (risk, outcome, kind, expected) in [
        ("", Fail, Some(Answer), Low),
        ("", Fail, None, Low),
        ("", Fail, Some(Status(500)), Low),
        ("", Fail, Some(NoHttp), Medium),
        ("", Fail, Some(Hang), High),
        ("", Fail, Some(Lost), High),
        ("", Fail, Some(OutOfStep), Critical),
        ("intermediaries", Fail, Some(Answer), Medium),
        ("intermediaries", Fail, Some(Hang), High),
        ("service", Fail, None, High),
        ("smuggling", Fail, Some(Answer), Critical),
        ("smuggling", Flaky, Some(Answer), Critical),
        ("", Degraded, None, Medium),
        ("", Degraded, Some(Slow), Medium),
        ("", Unbounded, None, Medium),
        ("", Leak, None, Critical),
        ("", Crashed, None, Critical),
    ] {
        assert_eq!(weighed(risk, outcome, kind), Some(expected), "{risk} {outcome:?} {kind:?}");
    }
}

#[test]
fn an_outcome_without_a_finding_has_no_severity() {
    for outcome in TestOutcome::ALL.into_iter().filter(|outcome| !outcome.is_finding()) {
        assert_eq!(weighed("smuggling", outcome, None), None, "{outcome:?}");
    }
}

#[test]
fn effects_on_the_server_outweigh_its_responses() {
    let case = case("S-99", "");
    let mut struck = row(&case, TestOutcome::Fail, Some(FailureKind::Answer));
    let process = Process { pid: 8, started: 0, name: "httpd".into() };
    let how = Ending::Signal { number: 11, core: false };
    let deaths = vec![Death { process, whole: false, how }];
    let (before, after) = (ServerState::default(), ServerState::default());
    struck.server = Some(Meanwhile { before, after, deaths });
    assert_eq!(of_case(&struck), Some(WORKER_LOST));
    let lost = CaseResult {
        recovery: Recovery::Never,
        ..row(&case, TestOutcome::Fail, Some(FailureKind::Answer))
    };
    assert_eq!(of_case(&lost), Some(OTHERS_LOST));
}

#[test]
fn denial_by_well_behaved_clients_is_less_severe() {
    let denied = |id: &str, control_denied: Option<bool>| {
        let health = Health { control_denied, ..Health::default() };
        let row = row(&case(id, ""), TestOutcome::Denied, None);
        of_case(&CaseResult { health: Some(health), exchanges: Vec::new(), ..row })
    };
    assert_eq!(denied("W-10", Some(false)), Some(SHUT_OUT));
    assert_eq!(denied("W-10", None), Some(SHUT_OUT));
    assert_eq!(denied("W-10", Some(true)), Some(CROWDED));
    assert_eq!(denied("R-01", None), Some(CROWDED));
}

#[test]
fn an_unknown_risk_is_reported_with_its_line() {
    let text = "id = \"S-99\"\nversion = 1\ntitle = \"t\"\nlevel = \"MUST\"\nrisk = \"dire\"\n\
                ref = \"r\"\nwhy = \"w\"\n[[exchange]]\nname = \"x\"\nsend = ['']\naccept = [\"400\"]\n";
    let told = read_case("x.toml", text).unwrap_err();
    assert_eq!(
        told,
        "x.toml: line 5: \"dire\" is not a risk; write one of smuggling, intermediaries, cost, \
        service, replay"
    );
}
