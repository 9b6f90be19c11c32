//! The server over a socket, on a store that does not exist yet.

use crate::browser::{Ui, UiConfig};
use std::io::{Read, Write};
use std::net::TcpStream;
use store::StorePlace;
use units::parse_listen;

fn start(listen: &str) -> Ui {
    let place = StorePlace::File("/nonexistent/results.sqlite".into());
    Ui::start(UiConfig { listen: parse_listen(listen).unwrap(), place }).unwrap()
}

fn authority(ui: &Ui) -> String {
    ui.url().trim_start_matches("http://").split('/').next().unwrap().to_owned()
}

/// Returns the response to a request with these header lines in addition to Host.
fn ask(ui: &Ui, line: &str, headers: &str) -> String {
    send(ui, line, headers, "")
}

fn send(ui: &Ui, line: &str, headers: &str, body: &str) -> String {
    let authority = authority(ui);
    let mut stream = TcpStream::connect(&authority).unwrap();
    let request =
        format!("{line} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n{headers}\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn every_response_is_guarded() {
    let ui = start("0");
    for (line, status) in [
        ("GET /", "200"),
        ("GET /style.css", "200"),
        ("GET /live.js", "200"),
        ("GET /other", "404"),
        ("GET /result/run-1", "404"),
        ("GET /result/run-1/page", "404"),
        ("GET /result/run-1/events", "404"),
        ("GET /compare?id=run-1", "400"),
        ("GET /compare?id=run-1&id=run-1", "400"),
        ("GET /compare?id=run-1&id=run-2", "404"),
        ("GET /result/run-1/tag", "405"),
        ("POST /result/run-1/delete", "403"),
    ] {
        let response = ask(&ui, line, "");
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {response}");
        let head = response.split("\r\n\r\n").next().unwrap();
        for part in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
        ] {
            assert!(head.contains(part), "{line} lacks {part}: {head}");
        }
    }
}

#[test]
fn a_missing_store_is_an_empty_list() {
    let page = ask(&start("0"), "GET /?name=%3Cscript%3E", "");
    assert!(page.contains("there is no results store /nonexistent/results.sqlite"), "{page}");
    assert!(page.contains("value=\"&lt;script&gt;\""), "{page}");
}

#[test]
fn a_form_that_is_too_long_is_refused() {
    let ui = start("0");
    let origin = authority(&ui);
    let headers = format!("Origin: http://{origin}\r\nContent-Length: 20000\r\n");
    let response = send(&ui, "POST /result/run-1/tag", &headers, &"x".repeat(20_000));
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
}

#[test]
fn beyond_loopback_the_url_has_the_token() {
    let ui = start("0.0.0.0:0");
    let url = ui.url();
    let (_, token) = url.split_once("/?token=").expect("a token in the address");
    let first = ask(&ui, "GET /", "");
    assert!(first.starts_with("HTTP/1.1 401"), "{first}");
    let response = ask(&ui, &format!("GET /?token={token}"), "");
    assert!(response.starts_with("HTTP/1.1 303"), "{response}");
    assert!(response.contains("location: /\r\n"), "{response}");
    let cookie = response.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let known = ask(&ui, "GET /", &format!("Cookie: {cookie}\r\n"));
    assert!(known.starts_with("HTTP/1.1 200"), "{known}");
    assert!(!known.contains(token), "the token stays out of the pages");
}
