use super::*;
use crate::exchange::{ExchangeError, Reply};
use protocol::http1::response::ResponseFacts;
use sample::FailureClass;

const SECOND: u64 = 1_000_000_000;

fn plan() -> Plan {
    let mut plan = Plan::for_url("http://api.example/".parse().unwrap());
    plan.token.url = Some("http://auth.example/token?tenant=1".parse().unwrap());
    (plan.token.client_id, plan.token.client_secret) = ("a b".into(), "s:1".into());
    plan
}

fn tokens() -> Tokens {
    let tokens = Tokens::new(&plan()).unwrap().unwrap();
    tokens.provide(1);
    tokens
}

fn heard(status: u16, body: &str) -> ExchangeOutcome {
    let facts = ResponseFacts { status, ..ResponseFacts::default() };
    let reply = Reply { facts, head: Vec::new(), body: body.as_bytes().to_vec() };
    ExchangeOutcome { result: Ok(reply), connected: true, took: Nanos::ZERO }
}

fn good(text: &str, expires: &str) -> ExchangeOutcome {
    heard(200, &format!("{{\"access_token\": \"{text}\", \"token_type\": \"bearer\"{expires}}}"))
}

/// Requests the tokens that are due at second `at`; each request gets this answer.
fn send_request(tokens: &Tokens, at: u64, answer: &ExchangeOutcome) -> usize {
    let now = Nanos(at * SECOND);
    let rows = tokens.take_due(now);
    assert!(tokens.take_due(now).is_empty(), "one request in flight for each token");
    rows.iter().for_each(|row| tokens.answered(*row, answer, now, now));
    rows.len()
}

#[test]
fn a_request_has_the_form_of_rfc_6749() {
    let mut plan = plan();
    plan.token.scope = Some("orders:read x".into());
    let text = |plan: &Plan| {
        let asked = Tokens::new(plan).unwrap().unwrap().request();
        String::from_utf8(asked.message.http1_bytes().to_vec()).unwrap()
    };
    let basic = text(&plan);
    assert!(
        basic.starts_with("POST /token?tenant=1 HTTP/1.1\r\nHost: auth.example\r\n"),
        "{basic}"
    );
    // "a+b:s%3A1"
    assert!(basic.contains("Authorization: Basic YStiOnMlM0Ex\r\n"), "{basic}");
    assert!(basic.ends_with("grant_type=client_credentials&scope=orders%3Aread+x"), "{basic}");
    plan.token.login = ClientLogin::Body;
    plan.token.audience = Some("api".into());
    let body = text(&plan);
    assert!(!body.contains("Authorization"), "{body}");
    assert!(body.ends_with("&audience=api&client_id=a+b&client_secret=s%3A1"), "{body}");
}

#[test]
fn a_token_is_renewed_before_it_expires() {
    let tokens = tokens();
    assert_eq!(send_request(&tokens, 0, &good("one", ", \"expires_in\": 100")), 1);
    assert_eq!(tokens.authorization().as_deref(), Some("Bearer one"));
    assert_eq!(tokens.next_due(), Nanos(70 * SECOND));
    // half of a short lifetime; some servers write the number as text
    assert_eq!(send_request(&tokens, 70, &good("two", ", \"expires_in\": \"10\"")), 1);
    assert_eq!(tokens.next_due(), Nanos(75 * SECOND));
    // no lifetime: valid until the server refuses it
    assert_eq!(send_request(&tokens, 75, &good("three", "")), 1);
    assert_eq!(tokens.next_due(), Nanos::NEVER);
    let facts = tokens.take_facts();
    assert_eq!((facts.obtained, facts.renewed, facts.replaced, facts.failed), (3, 2, 0, 0));
}

#[test]
fn refused_tokens_are_replaced_once_each_with_growing_delays() {
    let tokens = tokens();
    send_request(&tokens, 0, &good("one", ""));
    let mut requests = Vec::new();
    for at in 1..100 {
        let now = Nanos(at * SECOND);
        // a storm of refusals: of calls sent before the token arrived, and of calls with it
        for _ in 0..50 {
            tokens.refuse(0, Nanos(at * SECOND), now);
        }
        if send_request(&tokens, at, &good("next", "")) > 0 {
            requests.push(at);
        }
    }
    assert_eq!(requests, [1, 3, 6, 11, 20, 37, 68, 99]);
    // a refused call that was sent with an earlier token does not affect this one
    let mut fresh = Tokens::new(&plan()).unwrap().unwrap();
    fresh.provide(1);
    send_request(&fresh, 5, &good("one", ""));
    fresh.refuse(0, Nanos(4 * SECOND), Nanos(6 * SECOND));
    assert_eq!(fresh.next_due(), Nanos::NEVER);
    assert_eq!(fresh.state.get_mut().unwrap().held[0].refusals, 0);
}

#[test]
fn retries_of_a_failing_endpoint_have_growing_delays() {
    let tokens = tokens();
    send_request(&tokens, 0, &good("one", ", \"expires_in\": 100"));
    let bad = heard(500, "{\"error\": \"server_error\", \"error_description\": \"no\\ndisk\"}");
    let asked: Vec<u64> = (1..100).filter(|at| send_request(&tokens, *at, &bad) > 0).collect();
    assert_eq!(asked, [70, 71, 73, 77, 85]);
    assert_eq!(tokens.lost(Nanos(99 * SECOND)), None);
    let why = "the token endpoint http://auth.example/token answered 500 (server_error: nodisk)";
    assert_eq!(tokens.lost(Nanos(100 * SECOND)).as_deref(), Some(why));
    let facts = tokens.take_facts();
    assert_eq!((facts.obtained, facts.failed, facts.trouble.as_deref()), (1, 5, Some(why)));
}

#[test]
fn answers_without_a_usable_token_are_reported() {
    let at = "the token endpoint http://auth.example/token";
    let trouble = ExchangeError::new(FailureClass::Refused, "connection refused".into());
    for (answer, why) in [
        (ExchangeOutcome::nothing(trouble), "sent no response: connection refused"),
        (heard(401, "<html>"), "answered 401"),
        (heard(200, "{}"), "answered 200 without an access_token in JSON"),
        (heard(200, "{\"access_token\": 5}"), "answered 200 without an access_token in JSON"),
        (good("a b", ""), "answered with a token that a header cannot carry"),
        (
            heard(200, "{\"access_token\": \"a\", \"token_type\": \"mac\"}"),
            "answered with a token of type mac, not Bearer",
        ),
    ] {
        let tokens = tokens();
        send_request(&tokens, 0, &answer);
        assert_eq!(tokens.lost(Nanos::ZERO), Some(format!("{at} {why}")));
    }
}

#[test]
fn each_user_has_a_token_and_few_are_requested_at_once() {
    let mut plan = plan();
    plan.token.per_user = true;
    let tokens = Tokens::new(&plan).unwrap().unwrap();
    tokens.provide(40);
    let sizes: Vec<usize> = (0..4).map(|_| send_request(&tokens, 0, &good("t", ""))).collect();
    assert_eq!(sizes, [16, 16, 8, 0]);
    let tokens = Arc::new(tokens);
    let mut copies = TokenCopies::new(tokens.clone(), &[Share::whole()]);
    copies.refuse(Some(7), Nanos(SECOND), Nanos(SECOND));
    assert_eq!(tokens.take_due(Nanos(SECOND)), [7]);
    assert_eq!(copies.authorization(Some(40)), None);
}

#[test]
fn a_machine_of_a_fleet_has_the_tokens_of_its_users() {
    let mut plan = plan();
    plan.token.per_user = true;
    let tokens = Arc::new(Tokens::new(&plan).unwrap().unwrap());
    // users 1, 2, 4, 5 and 7 of eight
    let parts = [Share::from_slots(&[1], 3).unwrap(), Share::from_slots(&[2], 3).unwrap()];
    tokens.provide(5);
    for row in tokens.take_due(Nanos::ZERO) {
        tokens.answered(row, &good(&format!("t{row}"), ""), Nanos::ZERO, Nanos::ZERO);
    }
    assert!(tokens.are_ready(Nanos::ZERO));
    let mut copies = TokenCopies::new(tokens, &parts);
    let value = |id| copies.authorization(Some(id)).unwrap_or("none").to_owned();
    assert_eq!([1, 5, 7, 8].map(value), ["Bearer t0", "Bearer t3", "Bearer t4", "none"]);
}

#[test]
fn a_worker_copies_a_token_again_once_it_is_renewed() {
    let tokens = Arc::new(tokens());
    let mut copies = TokenCopies::new(tokens.clone(), &[Share::whole()]);
    assert_eq!(copies.authorization(Some(3)), None);
    send_request(&tokens, 0, &good("one", ", \"expires_in\": 100"));
    assert_eq!(copies.authorization(Some(3)), Some("Bearer one"));
    send_request(&tokens, 70, &good("two", ""));
    assert_eq!(copies.authorization(None), Some("Bearer two"));
    // neither the list of tokens nor the value is locked while the version is the same
    let published = tokens.published(0).unwrap();
    let _held = (lock(&published.value), tokens.state());
    assert_eq!(copies.authorization(Some(4)), Some("Bearer two"));
}
