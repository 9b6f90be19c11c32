//! Runs that cannot produce a result: they never look like a pass, and state the fix.

use super::support;
use std::io::{Read, Write};
use support::tls::{TlsOptions, TlsServer};
use support::{Ran, Scripted, Site, behind, finish, free_port, run};

/// Server that sends the same response to every request.
fn constant(response: &'static str) -> Scripted {
    Scripted::start(move |mut stream, _| {
        let mut piece = [0; 4096];
        while matches!(stream.read(&mut piece), Ok(1..)) {
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    })
}

#[track_caller]
fn learned_nothing(ran: Ran, words: &str) {
    let ran = ran.expect(&[2, 3, 4]);
    let text = format!("{}{}", ran.stdout, ran.stderr);
    let flat = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(flat.contains(words), "{words:?} is not in: {flat}");
    assert!(!flat.contains("nothing failed"), "{flat}");
}

#[test]
fn unreachable_servers_wrong_schemes_and_refusing_pages() {
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    learned_nothing(run(&["torture", "--quick", &nobody]), "no connection");

    let secure = TlsServer::start(&TlsOptions::default());
    let plain = secure.url("/").replacen("https://", "http://", 1);
    learned_nothing(run(&["torture", "--quick", &plain]), "it uses TLS; write https://");
    let site = Site::start(&[]);
    let tls = site.url("/hw").replacen("http://", "https://", 1);
    learned_nothing(run(&["torture", "--quick", "--insecure", &tls]), "try http://");

    for (response, words) in [
        ("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "404: name an existing page"),
        (
            "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
            "403: name a public page, or give the login with -H",
        ),
        ("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "retry when it is idle"),
        ("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "500: fix the page"),
        ("SSH-2.0-none\r\n", "a plain GET got no response"),
    ] {
        let server = constant(response);
        learned_nothing(run(&["torture", "--quick", &server.url("/")]), words);
    }
}

/// A front end that serves the plain page and rejects odd requests passes the cases that expect
/// rejection. If it starts to reject everything, the plain page detects that.
#[test]
fn a_front_end_that_starts_to_refuse_everything_ends_the_run() {
    let server = Scripted::start(|mut stream, index| {
        let mut piece = [0; 4096];
        while matches!(stream.read(&mut piece), Ok(1..)) {
            let status = if index < 40 { "200 OK" } else { "403 Forbidden" };
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nhi");
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    });
    let ran = run(&["torture", "--quick", "--only", "S-01,S-02,S-03,S-04", &server.url("/")]);
    learned_nothing(ran, "no plain request got its usual response");
}

#[test]
fn a_tester_without_descriptors_has_tested_nothing() {
    let site = Site::start(&[]);
    // one at a time is possible with five descriptors: standard streams, the poll's own, one
    // connection
    for (most, only, workers) in [("4", "S", "1"), ("7", "F-01", "8")] {
        let mut command = behind(&["prlimit", &format!("--nofile={most}")]);
        command.args(["torture", "--no-audit", "--quick", "--only", only]);
        command.args(["--workers", workers]);
        command.arg(site.url("/hw"));
        learned_nothing(finish(command, b""), "out of file descriptors");
    }
}
