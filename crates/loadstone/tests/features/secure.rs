//! TLS as the server sees it, and as the result reports it.

use crate::support::nginx::Nginx;
use crate::support::tls::{Handshake, Pki, TlsOptions, TlsServer};
use crate::support::{failures, keep, measure, measured, outcomes, text, whole};
use serde_json::Value;

/// No handshake before the run checks whether HTTP/2 is offered.
const FIXED: [&str; 2] = ["--http", "1.1"];

/// Runs against the server with its authority trusted, and more options.
#[track_caller]
fn secure(server: &TlsServer, options: &[&str]) -> Value {
    let url = server.url("/");
    let mut args = vec!["-c", "1", "--ca", &server.files.ca, &url];
    args.extend(options);
    measure(&args)
}

/// Makes one connection with options; returns the handshake as the server saw it and as the result
/// reports it.
#[track_caller]
fn handshake(options: &TlsOptions, args: &[&str]) -> (Handshake, Value) {
    let server = TlsServer::start(options);
    let mut all = vec!["-n", "3"];
    if !args.contains(&"--alpn") {
        all.extend(FIXED);
    }
    all.extend(args);
    let json = secure(&server, &all);
    assert_eq!(outcomes(&json), [3, 3, 0, 0, 0, 0]);
    let seen = server.handshakes(1);
    assert_eq!(seen[0].requests, 3);
    (seen[0].clone(), json)
}

#[test]
fn the_requested_version_is_used_and_reported() {
    let plain = TlsOptions::default();
    for (args, version, found) in [
        (&[][..], "TLSv1_3", "TLSv1.3"),
        (&["--tls", "1.3"], "TLSv1_3", "TLSv1.3"),
        (&["--tls", "1.2"], "TLSv1_2", "TLSv1.2"),
    ] {
        let (seen, json) = handshake(&plain, args);
        assert_eq!(seen.version, version, "{args:?}");
        assert_eq!(text(&json, "/tls/version"), found, "{args:?}");
        assert_eq!(whole(&json, "/phases_s/tls/count"), 1);
    }
    let old = TlsOptions { only_12: true, ..TlsOptions::default() };
    assert_eq!(text(&handshake(&old, &[]).1, "/tls/version"), "TLSv1.2");
    let server = TlsServer::start(&old);
    let json =
        measured(&["-n", "1", "--tls", "1.3", "--ca", &server.files.ca, &server.url("/")], &[3]);
    assert_eq!(failures(&json), [("tls".to_owned(), 1)]);
    let advice = text(&json, "/verdict/causes/0/advice");
    assert!(advice.contains("TLS versions") && advice.contains("--tls"), "{advice}");
}

#[test]
fn ciphers_and_groups_are_the_requested_ones() {
    let plain = TlsOptions::default();
    let (seen, json) = handshake(&plain, &["--ciphers", "TLS_AES_128_GCM_SHA256"]);
    assert_eq!(seen.cipher, "TLS13_AES_128_GCM_SHA256");
    assert!(text(&json, "/tls/cipher").ends_with("AES_128_GCM_SHA256"), "{}", json["tls"]);
    let (seen, json) =
        handshake(&plain, &["--tls", "1.2", "--ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"]);
    assert_eq!(seen.cipher, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
    assert_eq!(text(&json, "/tls/cipher"), "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
    for group in ["secp384r1", "X25519"] {
        let (seen, json) = handshake(&plain, &["--groups", group]);
        assert_eq!(seen.group, group);
        assert_eq!(text(&json, "/tls/group"), group);
    }
}

#[test]
fn sessions_are_resumed_by_default() {
    for version in ["1.2", "1.3"] {
        for (option, resumes) in [(&[][..], true), (&["--no-resumption"], false)] {
            let server = TlsServer::start(&TlsOptions::default());
            let mut args = vec!["-n", "8", "--calls", "1", "--tls", version];
            args.extend(option);
            let json = secure(&server, &args);
            assert_eq!(outcomes(&json)[1], 8);
            let seen = server.handshakes(8);
            let resumed = seen.iter().filter(|handshake| handshake.resumed).count() as u64;
            assert_eq!(whole(&json, "/tls/resumed"), resumed, "{version} {option:?}");
            // the first connection of the only worker has no session to resume
            assert_eq!(resumed, if resumes { 7 } else { 0 }, "{version} {option:?}");
            let found: u64 = json["tls"]["agreed"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| whole(row, "/connections"))
                .sum();
            assert_eq!(found, 8);
        }
    }
}

#[test]
fn only_trusted_certificates_pass_by_default() {
    let server = TlsServer::start(&TlsOptions::default());
    let url = server.url("/");
    let json = measured(&["-n", "1", &url], &[3]);
    assert_eq!(failures(&json), [("certificate".to_owned(), 1)]);
    let json = measure(&["-c", "1", "-n", "2", "--insecure", &url]);
    assert_eq!(outcomes(&json)[1], 2);
    let stranger = TlsServer::start(&TlsOptions::default());
    let json = measured(&["-n", "1", "--ca", &stranger.files.ca, &url], &[3]);
    assert_eq!(failures(&json), [("certificate".to_owned(), 1)]);
}

#[test]
fn a_name_is_sent_and_checked_in_place_of_the_urls() {
    let plain = TlsOptions::default();
    assert_eq!(handshake(&plain, &[]).0.sni.as_deref(), Some("localhost"));
    // RFC 6066 §3: an address is not sent as a name
    for (option, sni) in
        [(&[][..], None), (&["--server-name", "shop.example"], Some("shop.example"))]
    {
        let server = TlsServer::start(&plain);
        let by_number = format!("https://127.0.0.1:{}/", server.port());
        let mut args = vec!["-c", "1", "-n", "1", "--ca", &server.files.ca, &by_number];
        args.extend(FIXED);
        args.extend(option);
        measure(&args);
        assert_eq!(server.handshakes(1)[0].sni.as_deref(), sni);
    }
    let server = TlsServer::start(&plain);
    let (ca, by_number) = (&server.files.ca, format!("https://127.0.0.1:{}/", server.port()));
    let wrong = ["-n", "1", "--ca", ca, "--server-name", "other.example", &by_number];
    assert_eq!(failures(&measured(&wrong, &[3])), [("certificate".to_owned(), 1)]);
}

#[test]
fn protocols_are_offered_as_requested() {
    let options = TlsOptions { alpn: vec!["http/1.0", "http/1.1"], ..TlsOptions::default() };
    let (seen, json) = handshake(&options, &[]);
    assert_eq!(seen.alpn.as_deref(), Some("http/1.1"));
    assert_eq!(text(&json, "/tls/agreed/0/alpn"), "http/1.1");
    // without a given version, a handshake without a request offers HTTP/2; the run uses the same
    // version. The plain first call has a connection too
    let server = TlsServer::start(&options);
    let json = secure(&server, &["-n", "3"]);
    let seen = server.handshakes(2);
    let lines: Vec<_> = seen.iter().map(|one| (one.alpn.as_deref(), one.requests)).collect();
    assert_eq!(lines, [(Some("http/1.1"), 1), (Some("http/1.1"), 3)]);
    assert_eq!(text(&json, "/tls/agreed/0/alpn"), "http/1.1");
    assert_eq!(whole(&json, "/phases_s/tls/count"), 1);
    let (seen, _) = handshake(&options, &["--alpn", "http/1.0"]);
    assert_eq!(seen.alpn.as_deref(), Some("http/1.0"));
    let (seen, json) = handshake(&options, &["--alpn", "none"]);
    assert_eq!(seen.alpn, None);
    assert_eq!(text(&json, "/tls/agreed/0/alpn"), "");
}

#[test]
fn a_client_certificate_is_shown_to_a_server_that_demands_one() {
    let options = TlsOptions { client_certificate: true, ..TlsOptions::default() };
    for version in ["1.2", "1.3"] {
        let server = TlsServer::start(&options);
        let (files, url) = (&server.files, server.url("/"));
        let own = ["-n", "2", "--tls", version, "--cert", &files.cert, "--key", &files.key];
        assert_eq!(outcomes(&secure(&server, &own))[1], 2);
        assert!(server.handshakes(1)[0].client_certificate);
        let json = measured(&["-n", "2", "--tls", version, "--ca", &files.ca, &url], &[1, 3]);
        assert_eq!(outcomes(&json)[1], 0, "{version}");
        assert_eq!(text(&json, "/failures/0/class"), "tls", "{version}");
        // TLS 1.3 reports it only after the handshake, when the call is in flight
        let found = json["first_call"]["failure"]["advice"].as_str();
        let advice = found.unwrap_or_else(|| text(&json, "/verdict/causes/0/advice"));
        assert!(advice.contains("--cert"), "{version}: {advice}");
    }
}

/// Over TCP too, the first calls of resumed connections are sent early. nginx, an independent
/// implementation, accepts them or answers 425.
#[test]
fn early_data_goes_to_nginx_over_both_protocols() {
    let (pki, folder) = (Pki::new(), tempfile::tempdir().unwrap());
    let file = |name: &str, text: &str| keep(folder.path(), name, text);
    let (cert, key) = (file("cert", &pki.server.cert), file("key", &pki.server.key));
    let ca = file("ca", &pki.ca);
    for (protocol, http) in [("", "1.1"), (" http2", "2")] {
        let server = Nginx::with_early_data(protocol, [&cert, &key]);
        for path in ["/", "/late"] {
            let url = format!("https://localhost:{}{path}", server.port());
            let limits = ["-c", "1", "-n", "30", "--calls", "3", "--threads", "1"];
            let more = ["--http", http, "--early-data", "--ca", &ca, &url];
            let json = measured(&[&limits[..], &more].concat(), &[0, 4]);
            assert_eq!(outcomes(&json)[..2], [30, 30], "{http} {path}");
            let [sent, accepted, rejected, too_early] =
                ["sent", "accepted", "rejected", "too_early"]
                    .map(|name| whole(&json, &format!("/tls/early_data/{name}")));
            assert_eq!((sent, rejected), (accepted, 0), "{http} {path}");
            if path == "/" {
                assert_eq!((sent, too_early), (9, 0), "{http}");
            } else {
                assert!(too_early > 0 && too_early <= sent, "{http} {sent} {too_early}");
                assert_eq!(whole(&json, "/status/425"), too_early);
            }
        }
    }
}

#[test]
fn each_user_resumes_its_own_sessions() {
    for version in ["1.2", "1.3"] {
        let server = TlsServer::start(&TlsOptions::default());
        let url = server.url("/");
        let line = ["-c", "3", "--threads", "1", "-n", "24", "--calls", "1", "--tls", version];
        let json =
            measure(&[&line[..], &["--user-sessions", "--ca", &server.files.ca, &url]].concat());
        let seen = server.handshakes(24);
        let resumed = seen.iter().filter(|handshake| handshake.resumed).count() as u64;
        assert_eq!(whole(&json, "/tls/resumed"), resumed);
        // each of the three makes exactly one full handshake
        assert_eq!(resumed, 21, "{version}");
    }
    // arriving sessions are new users: each can resume only its own handshakes
    let server = TlsServer::start(&TlsOptions::default());
    let url = server.url("/");
    let line = [
        "--rate",
        "200/s",
        "--session",
        "2",
        "--calls",
        "1",
        "-n",
        "10",
        "--ca",
        &server.files.ca,
        &url,
        "--user-sessions",
    ];
    let json = measure(&line);
    let seen = server.handshakes(20);
    let resumed = seen.iter().filter(|handshake| handshake.resumed).count();
    assert_eq!((resumed, whole(&json, "/tls/resumed")), (10, 10), "{json:#}");
}
