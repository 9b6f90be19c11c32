//! Hostile servers: the client counts whatever they send, ends in time, and uses little memory.

use crate::support::behind;
use crate::support::http::{Recorder, response};
use crate::support::{Scripted, failures, finish, free_port, outcomes, whole};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// Limit of writable memory of the client, in bytes: beyond it, allocation fails and the program
/// ends. The kernel does not count memory that is only reserved.
const MEMORY_MAX: &str = "--data=200000000";

/// Runs against a hostile server within the memory limit.
#[track_caller]
fn survive(args: &[&str]) -> serde_json::Value {
    let mut command = behind(&["prlimit", MEMORY_MAX, "--"]);
    command.args(["run", "--json", "-", "-c", "2", "--timeout", "1s"]).args(args);
    let json = finish(command, b"").expect(&[0, 1, 4]).json();
    let [due, succeeded, failed, timed_out, dropped, abandoned] = outcomes(&json);
    assert_eq!(due, succeeded + failed + timed_out + dropped + abandoned);
    json
}

/// Server that sends the same bytes on each connection after the first request, for as long as the
/// client reads.
fn saying(first: impl Into<Vec<u8>>, then: impl Into<Vec<u8>>) -> Scripted {
    let (first, then) = (first.into(), then.into());
    Scripted::start(move |mut stream, _| {
        if !asked(&stream) || stream.write_all(&first).is_err() || then.is_empty() {
            return;
        }
        while stream.write_all(&then).is_ok() {}
    })
}

/// Reads one request's head.
fn asked(stream: &TcpStream) -> bool {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return false,
            Ok(_) if line == "\r\n" => return true,
            Ok(_) => {}
        }
    }
}

/// Checks that all failures are of this class.
#[track_caller]
fn all_of(json: &serde_json::Value, class: &str) {
    let [due, succeeded, ..] = outcomes(json);
    assert_eq!(succeeded, 0, "{json:#}");
    assert_eq!(failures(json), [(class.to_owned(), due)]);
}

#[test]
fn bytes_other_than_http_are_an_error() {
    let garbage: Vec<u8> = (0..=255).rev().collect();
    all_of(&survive(&["-n", "4", &saying(garbage.clone(), garbage).url("/")]), "not-http");
    all_of(&survive(&["-n", "4", &saying("SSH-2.0-OpenSSH_9\r\n", "").url("/")]), "not-http");
    all_of(&survive(&["-n", "4", &saying([0; 100], [0; 1000]).url("/")]), "not-http");
}

#[test]
fn heads_without_an_end() {
    let long_line = saying("HTTP/1.1 200 OK\r\nX: ", "y".repeat(10_000));
    all_of(&survive(&["-n", "4", &long_line.url("/")]), "bad-framing");
    let many_lines = saying("HTTP/1.1 200 OK\r\n", "X-Y: z\r\n".repeat(1_000));
    all_of(&survive(&["-n", "4", &many_lines.url("/")]), "bad-framing");
}

#[test]
fn chunks_without_an_end() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let extension = saying(format!("{head}5;x="), "y".repeat(10_000));
    all_of(&survive(&["-n", "4", &extension.url("/")]), "bad-framing");
    let trailers = saying(format!("{head}0\r\n"), "X: y\r\n".repeat(1_000));
    all_of(&survive(&["-n", "4", &trailers.url("/")]), "bad-framing");
    let zeros = saying(head, "0".repeat(10_000));
    all_of(&survive(&["-n", "4", &zeros.url("/")]), "bad-framing");
    let size = saying(format!("{head}fffffffffffffffff\r\n"), "y".repeat(10_000));
    all_of(&survive(&["-n", "4", &size.url("/")]), "bad-framing");
    // an endless body is not a format error: the whole call's limit ends it
    let data = saying(head, format!("1000\r\n{}\r\n", "y".repeat(4096)));
    all_of(&survive(&["-n", "4", &data.url("/")]), "client-timo");
}

#[test]
fn endless_interim_responses_fail_the_calls() {
    let json =
        survive(&["-n", "4", &saying("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)).url("/")]);
    assert_eq!(outcomes(&json)[1], 0);
}

#[test]
fn impossible_lengths_fail_the_calls() {
    for length in ["18446744073709551615", "9223372036854775808"] {
        let server = saying(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nabc"), "");
        all_of(&survive(&["-n", "4", &server.url("/")]), "truncated");
    }
    for length in ["99999999999999999999999", "-1", "0x10", "5, 6", "", "५"] {
        let server = saying(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nabc"), "");
        all_of(&survive(&["-n", "4", &server.url("/")]), "bad-framing");
    }
}

#[test]
fn a_slowly_arriving_body_is_ended_by_its_limit() {
    // an occasional byte: the progress timeout does not end it
    let server = Scripted::start(|mut stream, _| {
        if asked(&stream) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").ok();
            // the reader sets the pace: it never closes before its limit
            while stream.write_all(b".").is_ok() && stream.flush().is_ok() {
                let pause = std::time::Duration::from_millis(20);
                stream.set_read_timeout(Some(pause)).ok();
                if stream.read(&mut [0; 1]).is_ok() {
                    return;
                }
            }
        }
    });
    let args = ["-n", "2", "--progress-timeout", "900ms", &server.url("/")];
    all_of(&survive(&args), "client-timo");
}

#[test]
fn a_connection_that_ends_at_every_byte_of_the_response() {
    const RESPONSE: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let server = Scripted::start(|mut stream, index| {
        if asked(&stream) {
            // connection 0 is the first call
            stream.write_all(&RESPONSE[..index.wrapping_sub(1) % RESPONSE.len()]).ok();
        }
    });
    let count = RESPONSE.len().to_string();
    let json = survive(&["-n", &count, "-d", "20s", &server.url("/")]);
    let [due, succeeded, failed, ..] = outcomes(&json);
    assert_eq!((due, succeeded, failed), (RESPONSE.len() as u64, 0, RESPONSE.len() as u64));
    let known = ["closed-early", "truncated", "connreset", "not-http"];
    assert!(failures(&json).iter().all(|(class, _)| known.contains(&class.as_str())), "{json:#}");
}

#[test]
fn unrequested_responses_are_counted() {
    let one = response(200, "", "hello");
    let twice = saying([one.clone(), one.clone()].concat(), "");
    let json = survive(&["-n", "4", &twice.url("/")]);
    assert_eq!(outcomes(&json)[..2], [4, 4]);
    // the second of two responses in one read belongs to no call, not even to the next one
    assert_eq!(failures(&json), [("unasked".to_owned(), 4)]);
    let flood = saying(one.clone(), one);
    let json = survive(&["-n", "4", &flood.url("/")]);
    assert_eq!(outcomes(&json)[1], 4);
    let early = Scripted::start(|mut stream, _| {
        stream.write_all(&response(200, "", "unasked")).ok();
        asked(&stream);
    });
    survive(&["-n", "4", &early.url("/")]);
}

#[test]
fn redirects_without_a_usable_target_fail() {
    let circle = Recorder::start(|_| response(302, "Location: /\r\n", ""));
    let json = survive(&["-n", "4", "--follow", &circle.url("/")]);
    all_of(&json, "redirects");
    assert_eq!(whole(&json, "/redirects"), 40);
    let gone = format!("Location: http://127.0.0.1:{}/\r\n", free_port());
    let places = [
        gone.as_str(),
        "Location: http://no-such-host.invalid/\r\n",
        "Location: https://127.0.0.1:1/\r\n",
        "Location: ftp://127.0.0.1/\r\n",
        "Location: http://[::1/\r\n",
        "Location: \r\n",
        "Location: javascript:alert(1)\r\n",
        "Location: http://127.0.0.1:0/\r\n",
        "Location: //\r\n",
        "Location: /a b\u{1}\r\n",
        "",
    ];
    for place in places {
        let fields = place.to_owned();
        let server = Recorder::start(move |_| response(302, &fields, ""));
        let mut command = behind(&["prlimit", MEMORY_MAX, "--"]);
        command.args(["run", "--json", "-", "-n", "2", "-c", "1", "--timeout", "1s", "--follow"]);
        let ran = finish(
            {
                command.arg(server.url("/"));
                command
            },
            b"",
        )
        .expect(&[0, 1, 3, 4]);
        assert!(!ran.stderr.contains("panicked"), "{place:?}: {}", ran.stderr);
    }
}

#[test]
fn a_flood_of_cookies_is_survived() {
    let server = Recorder::start(|request| {
        let asked = request.target().to_owned();
        let cookies: String = (0..1_000)
            .map(|index| format!("Set-Cookie: {index}{asked}={}\r\n", "v".repeat(40)))
            .collect();
        response(200, &cookies, "")
    });
    let json = survive(&["-n", "50", "--cookies", &server.url("/")]);
    assert_eq!(outcomes(&json)[0], 50);
    // the decoded size is limited too
    let longest =
        server.all().iter().filter_map(|request| request.field("cookie")).map(str::len).max();
    assert!(longest.unwrap_or(0) < 100_000, "{longest:?}");
}

#[test]
fn a_gzip_bomb_is_bounded() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..600 {
        encoder.write_all(&zeros).unwrap();
    }
    let packed = encoder.finish().unwrap();
    let length = packed.len();
    let mut all =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n")
            .into_bytes();
    all.extend(packed);
    let server = Scripted::start(
        move |mut stream, _| {
            while asked(&stream) && stream.write_all(&all).is_ok() {}
        },
    );
    // searched by the expectation, so the body is needed
    for expect in ["--expect-length=5", "--expect-body=needle", "--expect-body=sha256:00"] {
        let mut command = behind(&["prlimit", MEMORY_MAX, "--"]);
        command.args(["run", "--json", "-", "-n", "2", "-c", "2", "--timeout", "20s"]);
        command.args(["--compressed", expect, &server.url("/")]);
        let ran = finish(command, b"").expect(&[1, 2]);
        assert!(
            !ran.stderr.contains("panicked") && !ran.stderr.contains("memory"),
            "{}",
            ran.stderr
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn a_response_of_arbitrary_bytes_is_handled(
        start in prop::sample::select(vec![
            "", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\n", "HTTP/1.0 200\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 50\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 101 Switch\r\n\r\n",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let server = saying([start.as_bytes(), &bytes].concat(), "");
        survive(&["-n", "2", "-d", "1s", "--compressed", "--follow", "--cookies", &server.url("/")]);
    }
}
