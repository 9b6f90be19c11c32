//! Access and refusal, without a server.

use crate::browser::Token;
use crate::browser::guard::{Guard, Ruling};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

const PORT: u16 = 8080;

/// Returns the decision of the guard: `pass`, a status, or the new cookie.
fn ruled(guard: &Guard, method: &str, uri: &str, headers: &[(&str, &str)]) -> String {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    match guard.rule(&method, &uri.parse::<Uri>().unwrap(), &map) {
        Ruling::Pass => "pass".to_owned(),
        Ruling::Refuse(refusal) => refusal.status.as_u16().to_string(),
        Ruling::Cookie { value, to } => format!("{value} → {to}"),
    }
}

fn local() -> Guard {
    Guard { token: None, port: PORT }
}

#[test]
fn loopback_answers_to_its_own_names_only() {
    let host = |host: &str| ruled(&local(), "GET", "/", &[("host", host)]);
    for name in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"] {
        assert_eq!(host(name), "pass", "{name}");
    }
    for name in [
        "evil.example:8080",
        "127.0.0.1:8081",
        "127.0.0.1",
        "localhost.evil.example:8080",
        "evil.example@127.0.0.1:8080",
        "127.0.0.1.nip.io:8080",
        "0.0.0.0:8080",
        "",
    ] {
        assert!(["421", "400"].contains(&host(name).as_str()), "{name}");
    }
    assert_eq!(ruled(&local(), "GET", "/", &[]), "400");
    let two = [("host", "127.0.0.1:8080"), ("host", "evil.example")];
    assert_eq!(ruled(&local(), "GET", "/", &two), "400");
}

#[test]
fn only_our_own_pages_change_something() {
    let host = ("host", "127.0.0.1:8080");
    let post = |headers: &[(&str, &str)]| {
        let all: Vec<(&str, &str)> = std::iter::once(host).chain(headers.iter().copied()).collect();
        ruled(&local(), "POST", "/result/run-1/delete", &all)
    };
    let ours = ("origin", "http://127.0.0.1:8080");
    assert_eq!(post(&[ours]), "pass");
    assert_eq!(post(&[ours, ("sec-fetch-site", "same-origin")]), "pass");
    for others in [
        &[][..],
        &[("origin", "null")],
        &[("origin", "http://evil.example")],
        &[("origin", "http://127.0.0.1:8081")],
        &[("origin", "https://127.0.0.1:8080")],
        &[("origin", "http://localhost:8080")],
        &[ours, ("sec-fetch-site", "cross-site")],
        &[ours, ("origin", "http://evil.example")],
        &[("referer", "http://127.0.0.1:8080/")],
    ] {
        assert_eq!(post(others), "403", "{others:?}");
    }
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
        assert_eq!(ruled(&local(), method, "/", &[host]), "403", "{method}");
    }
    assert_eq!(ruled(&local(), "HEAD", "/", &[host]), "pass");
}

#[test]
fn beyond_loopback_a_token_is_needed() {
    let token = Token::new().unwrap();
    let guard = Guard { token: Some(token.clone()), port: PORT };
    let host = ("host", "192.0.2.7:8080");
    let found = token.as_str();
    assert_eq!(ruled(&guard, "GET", "/", &[host]), "401");
    assert_eq!(ruled(&guard, "GET", "/?token=", &[host]), "401");
    assert_eq!(ruled(&guard, "GET", &format!("/?token={}", &found[1..]), &[host]), "401");
    let cookie = format!("loadstone-ui={found}; Path=/; HttpOnly; SameSite=Strict");
    let with_token = format!("/result/run-1?x=1&token={found}");
    assert_eq!(ruled(&guard, "GET", &with_token, &[host]), format!("{cookie} → /result/run-1"));
    let pair = format!("a=b; loadstone-ui={found}");
    let known = [host, ("cookie", pair.as_str())];
    assert_eq!(ruled(&guard, "GET", "/", &known), "pass");
    // the token does not authorize a foreign page
    assert_eq!(ruled(&guard, "POST", "/", &known), "403");
    let from_us = [host, ("cookie", pair.as_str()), ("origin", "http://192.0.2.7:8080")];
    assert_eq!(ruled(&guard, "POST", "/", &from_us), "pass");
    let wrong = [host, ("cookie", "loadstone-ui=0"), ("cookie", "loadstone-ui=")];
    assert_eq!(ruled(&guard, "GET", "/", &wrong), "401");
}

#[test]
fn tokens_differ_and_are_not_shown() {
    let (one, other) = (Token::new().unwrap(), Token::new().unwrap());
    assert_ne!(one.as_str(), other.as_str());
    assert_eq!(one.as_str().len(), 32);
    assert!(one.is(one.as_str()) && !one.is(other.as_str()) && !one.is(""));
    assert!(!format!("{one:?}").contains(one.as_str()));
}
