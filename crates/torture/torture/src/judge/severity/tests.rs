use super::*;
use crate::case::read_case;
use crate::catalogue;
use crate::judge::Judgement;
use crate::result::{Health, SentPause, ServerDuringCase};
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

/// Returns the result of a case that is as severe as its only exchange.
fn row(case: &Case, outcome: TestOutcome, kind: Option<FailureKind>) -> CaseResult {
    let exchanges = vec![exchange(outcome, kind)];
    CaseResult { outcome, exchanges, ..CaseResult::new(case) }
}

fn weighed(risk: &str, outcome: TestOutcome, kind: Option<FailureKind>) -> Option<Severity> {
    of_case(&row(&case("S-99", risk), outcome, kind)).map(|weight| weight.severity)
}

#[test]
fn severity_depends_on_the_failure_and_the_rule() {
    use FailureKind::{
        Answer, AnswerClosed, BothRefused, Closed, ContentParsed, Exhausts, Hang, Lost, NextHangs,
        NextRefused, NoContinue, NoHttp, OutOfStep, Refused, Slow, Status, Stopped, Unfinished,
    };
    use Severity::{Critical, High, Low, Medium};
    use TestOutcome::{Crashed, Degraded, Fail, Flaky, Leak, Unbounded};
    for (risk, outcome, kind, expected) in [
        ("", Fail, Some(Answer), Low),
        ("", Fail, None, Low),
        ("", Fail, Some(Status(500)), Low),
        ("", Fail, Some(NoHttp), Medium),
        ("", Fail, Some(Hang), High),
        ("", Fail, Some(NoContinue), Low),
        ("", Fail, Some(Lost), High),
        ("", Fail, Some(Stopped), Critical),
        ("", Fail, Some(OutOfStep), Critical),
        ("intermediaries", Fail, Some(Answer), Medium),
        ("intermediaries", Fail, Some(Hang), Medium),
        ("service", Fail, None, High),
        ("service", Fail, Some(Closed), High),
        // a message that is refused and whose connection ends smuggles nothing
        ("smuggling", Fail, Some(Status(500)), Low),
        ("smuggling", Fail, Some(Closed), Low),
        ("smuggling", Fail, Some(Refused), Low),
        ("smuggling", Fail, Some(Hang), Medium),
        ("smuggling", Fail, Some(BothRefused), Medium),
        ("smuggling", Fail, Some(AnswerClosed), Medium),
        // bytes of one message become another, whether or not the connection then ends
        ("smuggling", Fail, Some(NextRefused), Critical),
        ("smuggling", Fail, Some(ContentParsed), Critical),
        ("smuggling", Fail, Some(NextHangs), Critical),
        ("", Fail, Some(NextRefused), Medium),
        ("", Fail, Some(NextHangs), High),
        ("", Fail, Some(Unfinished), High),
        ("", Fail, Some(Closed), Low),
        ("smuggling", Fail, Some(Answer), Critical),
        ("smuggling", Flaky, Some(Answer), Critical),
        ("", Degraded, None, Medium),
        ("", Degraded, Some(Slow), Medium),
        ("", Unbounded, None, Medium),
        ("", Leak, None, Critical),
        ("", Leak, Some(Exhausts), Critical),
        ("", Crashed, None, Critical),
    ] {
        assert_eq!(weighed(risk, outcome, kind), Some(expected), "{risk} {outcome:?} {kind:?}");
    }
}

#[test]
fn silence_after_a_message_to_refuse_is_less_severe() {
    let rated = |must_refuse: bool| {
        let mut row = row(&case("S-99", ""), TestOutcome::Fail, Some(FailureKind::Unfinished));
        row.exchanges[0].judgement.must_refuse = must_refuse;
        of_case(&row).unwrap()
    };
    assert_eq!(rated(true).severity, Severity::Medium);
    // it may be a refusal that does not end
    assert!(rated(true).reason.starts_with("its response does not end"));
    assert_eq!(rated(false).severity, Severity::High);
}

#[test]
fn effects_of_valid_messages_follow_from_their_framing() {
    let rated = |kind: FailureKind, fields: &str, content: &str| {
        let mut row = row(&case("F-15", "smuggling"), TestOutcome::Fail, Some(kind));
        let risk = row.case.risk.take();
        row.exchanges[0].sent =
            format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n{content}").into_bytes();
        let without_risk = of_case(&row).map(|weight| weight.severity);
        row.case.risk = risk;
        (without_risk.unwrap(), of_case(&row).unwrap().severity)
    };
    // unread content that is parsed as the next request is critical in every case
    let unread = |fields, content| rated(FailureKind::NextRefused, fields, content).0;
    assert_eq!(unread("Content-Length: 5\r\n", "hello"), Severity::Critical);
    assert_eq!(unread("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), Severity::Critical);
    assert_eq!(unread("", ""), Severity::Medium);
    assert_eq!(unread("Content-Length: 0\r\n", ""), Severity::Medium);
    // a valid request must get a response
    let both = |severity| (severity, severity);
    assert_eq!(rated(FailureKind::Hang, "", ""), both(Severity::High));
    assert_eq!(rated(FailureKind::Hang, "Content_Length: 5\r\n", ""), both(Severity::High));
    assert_eq!(rated(FailureKind::Hang, "Content-Length : 5\r\n", ""), both(Severity::Medium));
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
    struck.server = Some(ServerDuringCase { before, after, deaths });
    assert_eq!(of_case(&struck), Some(table::rate(SentSort::Other, Effect::WorkerLost)));
    for (recovery, effect) in
        [(Recovery::After(Nanos::SECOND), Effect::OthersLost), (Recovery::Never, Effect::Stopped)]
    {
        let lost = row(&case, TestOutcome::Fail, Some(FailureKind::Answer));
        let rated = of_case(&CaseResult { recovery, ..lost });
        assert_eq!(rated, Some(table::rate(SentSort::Other, effect)));
    }
}

#[test]
fn denial_by_well_behaved_clients_is_less_severe() {
    let denied = |id: &str, control_denied: Option<bool>| {
        let health = Health { control_denied, ..Health::default() };
        let row = row(&case(id, ""), TestOutcome::Denied, None);
        of_case(&CaseResult { health: Some(health), exchanges: Vec::new(), ..row })
    };
    let [out, crowded] =
        [Effect::ShutOut, Effect::Crowded].map(|effect| Some(table::rate(SentSort::Other, effect)));
    assert_eq!(denied("W-10", Some(false)), out);
    assert_eq!(denied("W-10", None), out);
    assert_eq!(denied("W-10", Some(true)), crowded);
    assert_eq!(denied("R-01", None), crowded);
    assert_eq!(denied("C-02", None), crowded);
    assert_eq!(denied("C-02", Some(false)), out);
    // the same limit on connections, regardless of their state
    let idle = catalogue::cases().unwrap().into_iter().find(|case| case.id == "C-01").unwrap();
    let row = CaseResult { outcome: TestOutcome::Denied, ..CaseResult::new(&idle) };
    assert_eq!(of_case(&row), crowded);
}

#[test]
fn a_recommendation_is_at_most_medium_unless_others_suffer() {
    let weighed = |level: RequirementLevel, kind| {
        let case = Case { level, ..case("S-99", "service") };
        of_case(&row(&case, TestOutcome::Fail, Some(kind))).unwrap().severity
    };
    for level in [RequirementLevel::Should, RequirementLevel::May] {
        assert_eq!(weighed(level, FailureKind::Hang), Severity::Medium);
        assert_eq!(weighed(level, FailureKind::Lost), Severity::High);
        // the next request on the connection may be that of another client
        assert_eq!(weighed(level, FailureKind::OutOfStep), Severity::Critical);
        assert_eq!(weighed(level, FailureKind::ContentParsed), Severity::Critical);
        assert_eq!(weighed(level, FailureKind::NextHangs), Severity::Medium);
        let ambiguous = Case { level, ..case("S-99", "smuggling") };
        for kind in [FailureKind::NextHangs, FailureKind::NextRefused] {
            let rated = of_case(&row(&ambiguous, TestOutcome::Fail, Some(kind)));
            assert_eq!(rated.unwrap().severity, Severity::Critical, "{kind}");
        }
    }
    assert_eq!(weighed(RequirementLevel::Opinion, FailureKind::Hang), Severity::High);
}

#[test]
fn the_table_rates_every_effect_once() {
    for (at, row) in TABLE.iter().enumerate() {
        let same = |other: &&SeverityRow| (other.sent, other.effect) == (row.sent, row.effect);
        assert_eq!(TABLE.iter().find(same), Some(&TABLE[at]), "{row:?} is hidden");
    }
    let kinds = FailureKind::NAMED.into_iter().chain([FailureKind::Status(500)]);
    for effect in kinds.map(|kind| Effect::new(Some(kind))) {
        let rated = table::rate(SentSort::Other, effect);
        assert!(TABLE.iter().any(|row| row.effect == effect && row.rated == rated), "{effect:?}");
    }
}

#[test]
fn an_unknown_risk_is_reported_with_its_line() {
    let text = "id = \"S-99\"\nversion = 1\ntitle = \"t\"\nlevel = \"MUST\"\nrisk = \"dire\"\n\
                ref = \"r\"\nwhy = \"w\"\n[[exchange]]\nname = \"x\"\nsend = ['']\naccept = [\"400\"]\n";
    let error = read_case("x.toml", text).unwrap_err();
    assert_eq!(
        error,
        "x.toml: line 5: \"dire\" is not a risk; write one of smuggling, intermediaries, cost, \
        service, replay, splitting, disclosure"
    );
}

#[test]
fn random_data_without_an_end_is_no_complete_request() {
    let case = Case { id: "F-99".to_owned(), ..case("S-99", "") };
    let hung = |bytes: &[u8]| {
        let mut row = row(&case, TestOutcome::Fail, Some(FailureKind::Hang));
        row.exchanges[0].sent = bytes.to_vec();
        of_case(&row).unwrap().severity
    };
    assert_eq!(
        hung(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1_0\r\n\r\nx"),
        Severity::Medium
    );
    // a start line without a version, and a bare CR inside a field line
    assert_eq!(hung(b"GET /\nx HTTP/1.1\r\nHost: h\r\n\r\n"), Severity::Medium);
    assert_eq!(hung(b"GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n"), Severity::Medium);
    assert_eq!(hung(b"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n"), Severity::High);
}

#[test]
fn half_a_message_of_a_client_that_gives_up_is_no_request() {
    let hung = |sent: &[u8]| {
        let kind = Some(FailureKind::Hang);
        let mut row = row(&case("S-99", ""), TestOutcome::Fail, kind);
        let half_close = SentPause { half_close: true, ..SentPause::default() };
        row.exchanges[0].pauses.push(half_close);
        row.exchanges[0].sent = sent.to_vec();
        of_case(&row).unwrap().severity
    };
    let half = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc";
    assert_eq!(hung(half), Severity::Medium);
    assert_eq!(hung(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Severity::High);
}

#[test]
fn content_of_head_matters_while_the_connection_stays_open() {
    let rated = |risk, kind| {
        let mut row = row(&case("S-99", risk), TestOutcome::Fail, Some(kind));
        row.exchanges[0].judgement.cause = Some(Cause::HeadContent);
        of_case(&row).map(|weight| weight.severity)
    };
    // in any case
    for risk in ["", "intermediaries"] {
        assert_eq!(rated(risk, FailureKind::Answer), Some(Severity::Medium));
        assert_eq!(rated(risk, FailureKind::AnswerClosed), Some(Severity::Low));
    }
}

#[test]
fn a_pipeline_without_any_response_fails_valid_requests() {
    let closed = |sent: &str| {
        let mut row = row(&case("S-99", ""), TestOutcome::Fail, Some(FailureKind::Closed));
        row.exchanges[0].sent = sent.as_bytes().to_vec();
        of_case(&row).map(|weight| weight.severity)
    };
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(closed(&get.repeat(2)), Some(Severity::High));
    assert_eq!(closed(get), Some(Severity::Low));
    assert_eq!(closed(&(get.to_owned() + "x\r\n\r\n")), Some(Severity::Low));
}
