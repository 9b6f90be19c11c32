use super::super::request::{Parsed, parse};
use super::*;

fn request(text: &str) -> ExactRequest {
    match parse(format!("{text}\r\nHost: a\r\n\r\n").as_bytes(), &mut 0, 1_000) {
        Parsed::Whole { request, .. } => request,
        other => panic!("{other:?}"),
    }
}

const MAKING: Making<'static> =
    Making { date: "now", misbehaviour: None, error: None, last: false, drips: false };

/// Returns the response's bytes without `Server` and `Date`, taken in steps of `step`.
fn bytes(mut outgoing: Outgoing, step: u64) -> String {
    let mut all = Vec::new();
    while !outgoing.is_sent() {
        let copied = outgoing.copy(step, &mut all);
        assert!(copied > 0 && copied <= step);
        outgoing.advance(copied);
    }
    let line = format!("Server: {}\r\nDate: now\r\n", crate::head::SERVER);
    String::from_utf8(all).unwrap().replace(&line, "")
}

fn answer(text: &str, making: Making<'_>) -> String {
    let outgoing = Outgoing::answer(&request(text), &making);
    let whole = bytes(outgoing.clone(), u64::MAX);
    assert_eq!(whole, bytes(outgoing, 7), "in steps");
    whole
}

fn wrong(misbehaviour: Misbehaviour) -> Making<'static> {
    Making { misbehaviour: Some(misbehaviour), ..MAKING }
}

const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nContent-Type: text/plain\r\n\r\n";

#[test]
fn responses_are_complete() {
    assert_eq!(answer("GET /hw HTTP/1.1", MAKING), format!("{PLAIN}hello world"));
    assert_eq!(answer("GET /anything HTTP/1.1", MAKING), format!("{PLAIN}hello world"));
    assert_eq!(answer("HEAD /hw HTTP/1.1", MAKING), PLAIN);
    assert_eq!(
        answer("GET /bytes/66 HTTP/1.0", MAKING),
        "HTTP/1.1 200 OK\r\nContent-Length: 66\r\nConnection: keep-alive\r\nContent-Type: \
         application/octet-stream\r\n\r\n\
         0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-\n01"
    );
    assert_eq!(
        answer("GET /status/302?to=/hw HTTP/1.1", Making { last: true, ..MAKING }),
        "HTTP/1.1 302 Found\r\nContent-Length: 13\r\nConnection: close\r\nContent-Type: \
         text/plain\r\nLocation: /hw\r\n\r\n302: see /hw\n"
    );
    assert_eq!(answer("GET /status/204 HTTP/1.1", MAKING), "HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(
        answer("GET /status/205 HTTP/1.1", MAKING),
        "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"
    );
    assert_eq!(
        answer("GET /hw HTTP/1.1", Making { error: Some(500), ..MAKING }),
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 14\r\nContent-Type: \
         text/plain\r\n\r\n500 on demand\n"
    );
}

#[test]
fn interim_responses_precede_the_final_one() {
    let body = "Content-Length: 26\r\n";
    let last = "Content-Type: text/plain\r\n\r\nafter an interim response\n";
    assert_eq!(
        answer("GET /status/103 HTTP/1.1", MAKING),
        format!("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n{body}{last}")
    );
    assert_eq!(
        answer("GET /status/103 HTTP/1.0", MAKING),
        format!("HTTP/1.1 200 OK\r\n{body}Connection: keep-alive\r\n{last}")
    );
    assert_eq!(
        answer("GET /status/101 HTTP/1.1", MAKING),
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: none\r\n\r\n"
    );
}

#[test]
fn faults_behave_as_announced() {
    let short = wrong(Misbehaviour::WrongLength(WrongLength::Short));
    assert_eq!(answer("GET /hw HTTP/1.1", short), format!("{PLAIN}hello worldextra"));
    let long = wrong(Misbehaviour::WrongLength(WrongLength::Long));
    let sixteen = PLAIN.replace("11", "16").replace("HTTP/1.16", "HTTP/1.1");
    assert_eq!(
        answer("GET /hw HTTP/1.1", long),
        format!("{}hello world", sixteen.replace("/1.16", "/1.1"))
    );
    let twice = wrong(Misbehaviour::Twice);
    assert_eq!(answer("GET /hw HTTP/1.1", twice), format!("{PLAIN}hello world{PLAIN}hello world"));
    let truncate = || wrong(Misbehaviour::Truncate);
    assert_eq!(answer("GET /hw HTTP/1.1", truncate()), format!("{PLAIN}hello"));
    assert!(answer("GET /bytes/1 HTTP/1.1", truncate()).ends_with("\r\n\r\n"));
    let cut = answer("HEAD /hw HTTP/1.1", truncate());
    assert!(cut.starts_with("HTTP/1.1 200 OK") && !cut.ends_with("\r\n\r\n"), "{cut}");
}

#[test]
fn a_drip_sends_the_head_at_once_and_the_body_by_its_rate() {
    let ms = Nanos::from_millis;
    let making = Making { drips: true, ..MAKING };
    let mut outgoing = Outgoing::answer(&request("GET /bytes/10 HTTP/1.1"), &making);
    assert_eq!(outgoing.dripping_len(), 10);
    let head = outgoing.allowed(ms(1_000), Some(100));
    assert_eq!(head, outgoing.len - 10);
    outgoing.advance(head);
    assert_eq!(outgoing.next_drip(ms(1_000), 100, ms(1)), ms(1_010));
    assert_eq!(outgoing.allowed(ms(1_009), Some(100)), 0);
    assert_eq!(outgoing.allowed(ms(1_010), Some(100)), 1);
    assert_eq!(outgoing.allowed(ms(1_035), Some(100)), 3);
    outgoing.advance(3);
    assert_eq!(outgoing.next_drip(ms(1_035), 100, ms(1)), ms(1_040));
    assert_eq!(outgoing.next_drip(ms(1_035), 100, ms(50)), ms(1_085));
    assert_eq!(outgoing.allowed(ms(99_000), Some(100)), 7);
}
