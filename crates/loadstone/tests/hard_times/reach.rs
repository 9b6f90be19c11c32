//! No server, a server of another protocol, and a silent server.

use super::running::namespace;
use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{
    Scripted, Site, failures, finish, free_port, measured, outcomes, run, text, whole,
};
use std::io::{Read, Write};

/// Returns the JSON and the standard error of a run without a connection.
#[track_caller]
fn no_connection(args: &[&str]) -> (serde_json::Value, String) {
    let mut all = vec!["run", "--json", "-"];
    all.extend(args);
    let ran = run(&all).expect(&[3]);
    let json = ran.json();
    assert_eq!(text(&json, "/verdict/state"), "INVALID");
    assert_eq!(outcomes(&json), [1, 0, 1, 0, 0, 0]);
    (json, ran.stderr)
}

#[test]
fn an_unknown_name_is_reported() {
    let ran = run(&["run", "http://no-such-host.invalid/"]).expect(&[3]);
    assert!(ran.stderr.contains("\"no-such-host.invalid\""), "{}", ran.stderr);
    assert!(ran.stderr.contains("--resolve"), "{}", ran.stderr);
}

#[test]
fn a_port_without_listener_is_reported() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let (json, found) = no_connection(&[&url]);
    assert_eq!(failures(&json), [("connrefused".to_owned(), 1)]);
    assert!(found.contains(&url) && found.contains("refused"), "{found}");
    let advice = text(&json, "/verdict/causes/0/advice").to_owned();
    assert!(advice.contains("Start the server"), "{advice}");
    // the same as text: the server first, then the verdict, and no empty table
    let outcome = run(&["run", &url]).expect(&[3]);
    assert!(outcome.stdout.starts_with("Server        refusing: "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\nMeasurement   INVALID: "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("Start the server"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("Little's law"), "{}", outcome.stdout);
}

#[test]
fn a_missing_unix_socket_is_reported() {
    let (json, found) = no_connection(&["--unix", "/gone/socket", "http://site/"]);
    assert!(found.contains("/gone/socket"), "{found}");
    assert_eq!(whole(&json, "/connections/established"), 0);
}

#[test]
fn a_network_that_cannot_be_reached() {
    let script = r#"ip link set lo up && exec "$0" "$@""#;
    let Some(mut command) = namespace(&["-n"], script) else { return };
    command.args(["run", "--json", "-", "http://192.0.2.1/"]);
    let ran = finish(command, b"").expect(&[3]);
    assert_eq!(failures(&ran.json()), [("unreachable".to_owned(), 1)]);
    assert!(ran.stderr.contains("192.0.2.1"), "{}", ran.stderr);
}

#[test]
fn a_port_that_accepts_and_never_answers() {
    let mute = Scripted::start(|mut stream, _| {
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    let args = ["-c", "2", "-n", "4", "--timeout", "300ms", &mute.url("/")];
    let json = measured(&args, &[1]);
    let [due, succeeded, failed, timed_out, dropped, abandoned] = outcomes(&json);
    assert_eq!([succeeded, failed, dropped, abandoned], [0; 4]);
    assert!(due >= 2 && timed_out == due, "{timed_out} of {due}");
    let causes = json["verdict"]["causes"].as_array().unwrap();
    assert!(causes.iter().any(|cause| cause["id"] == "all-failed"), "{causes:?}");
}

#[test]
fn first_byte_and_progress_timeouts_end_calls() {
    // the whole-call limit is far off: each of the two must end the calls
    let mute = Scripted::start(|mut stream, _| {
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    let half = Scripted::start(|mut stream, _| {
        let mut buffer = [0; 1024];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").ok();
        }
    });
    let limit = |option, server: &Scripted, class| {
        // the first call waits for its whole timeout, and its end must not end the run
        let args = ["-n", "4", "-c", "2", "--timeout", "2s", option, "100ms", &server.url("/")];
        let json = measured(&args, &[1]);
        assert_eq!(outcomes(&json), [4, 0, 0, 4, 0, 0], "{option}");
        assert_eq!(failures(&json), [(String::from(class), 4)], "{option}");
    };
    limit("--first-byte-timeout", &mute, "first-byte-timo");
    limit("--progress-timeout", &mute, "progress-timo");
    limit("--progress-timeout", &half, "progress-timo");
}

#[test]
fn tls_to_a_plain_port_is_explained() {
    let site = Site::start(&[]);
    let url = format!("https://{}/hw", site.authority());
    let (json, found) = no_connection(&[&url]);
    assert_eq!(failures(&json), [("tls".to_owned(), 1)]);
    assert!(found.contains("plain-text port"), "{found}");
    assert!(text(&json, "/verdict/causes/0/advice").contains("http://"), "{json:#}");
}

#[test]
fn plain_text_to_a_tls_port_is_recognized() {
    let server = TlsServer::start(&TlsOptions::default());
    let url = format!("http://127.0.0.1:{}/", server.port());
    let json = measured(&["-n", "3", "-c", "1", &url], &[1]);
    let [due, succeeded, failed, ..] = outcomes(&json);
    assert_eq!((due, succeeded, failed), (3, 0, 3));
    let detail = text(&json, "/first_call/failure/detail");
    assert!(detail.contains("TLS") && detail.contains("https://"), "{detail}");
}

#[test]
fn tls_to_a_silent_port_times_out() {
    let mute = Scripted::start(|mut stream, _| {
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    let url = format!("https://{}/", mute.address);
    let (_, found) = no_connection(&["--connect-timeout", "200ms", "--insecure", &url]);
    assert!(found.contains(&url) && found.contains("handshake did not finish in time"), "{found}");
}

#[test]
fn an_untrusted_certificate_names_the_fixes() {
    let server = TlsServer::start(&TlsOptions::default());
    let url = server.url("/");
    let (json, _) = no_connection(&[&url]);
    assert_eq!(failures(&json), [("certificate".to_owned(), 1)]);
    let advice = text(&json, "/verdict/causes/0/advice");
    assert!(advice.contains("--ca FILE") && advice.contains("--insecure"), "{advice}");
    // a trusted issuer does not make a certificate of another name valid
    let other = ["--ca", &server.files.ca, "--server-name", "other.example", &url];
    assert_eq!(failures(&no_connection(&other).0), [("certificate".to_owned(), 1)]);
    for way in [vec!["--ca", &server.files.ca], vec!["--insecure"]] {
        let mut args = vec!["-n", "2", "-c", "1"];
        args.extend(way);
        args.push(&url);
        assert_eq!(outcomes(&measured(&args, &[0, 4]))[1], 2, "{args:?}");
    }
}

/// Most servers under test have self-signed certificates, so the message names --insecure.
#[test]
fn each_command_names_insecure_for_an_untrusted_certificate() {
    let server = TlsServer::start(&TlsOptions::default());
    let (url, folder) = (server.url("/"), tempfile::tempdir().unwrap());
    let plan = folder.path().join("check.toml");
    let text = format!("version = 1\n[check]\nbase = '{url}'\n[[step]]\nname = 'a'\nurl = '/'\n");
    std::fs::write(&plan, text).unwrap();
    for (args, code) in [
        (vec!["run", &url], 3),
        (vec!["ramp", &url], 3),
        (vec!["compare", &url, &url], 3),
        (vec!["check", plan.to_str().unwrap()], 3),
        (vec!["workload", "crawl", &url], 3),
        (vec!["torture", "--quick", &url], 3),
    ] {
        let ran = run(&args).expect(&[code]);
        let message = format!("{}{}", ran.stdout, ran.stderr);
        let message: Vec<&str> = message.split_whitespace().collect();
        assert!(message.join(" ").contains("--insecure"), "{args:?}: {}", message.join(" "));
    }
}

#[test]
fn a_missing_client_certificate_fails_all_calls() {
    let options = TlsOptions { client_certificate: true, ..TlsOptions::default() };
    let server = TlsServer::start(&options);
    // in TLS 1.3 the client learns of it only after its own part of the handshake
    let args = ["-n", "2", "-c", "1", "--ca", &server.files.ca, &server.url("/")];
    let json = measured(&args, &[1, 3]);
    assert_eq!(outcomes(&json)[1], 0);
}

#[test]
fn a_missing_or_refusing_proxy_is_reported() {
    let site = Site::start(&[]);
    let gone = format!("http://127.0.0.1:{}", free_port());
    let (_, found) = no_connection(&["--proxy", &gone, &site.url("/hw")]);
    assert!(found.contains("refused"), "{found}");
    let refusing = Scripted::start(|mut stream, _| {
        let mut asked = [0; 7];
        stream.read_exact(&mut asked).ok();
        stream.write_all(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n").ok();
    });
    let (json, found) = no_connection(&["--proxy", &refusing.url(""), "https://localhost:1/"]);
    assert_eq!(failures(&json), [("proxy".to_owned(), 1)]);
    assert!(found.contains("403"), "{found}");
    assert!(text(&json, "/verdict/causes/0/advice").contains("--proxy"), "{json:#}");
}
