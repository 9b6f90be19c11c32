//! WebSockets as streams of HTTP/3 connections (RFC 9220) to the built-in site.

use super::websocket::{count, messages, talkers_at};
use crate::support::quic::QuicSite;
use crate::support::{measured, run, whole};

#[test]
fn sockets_share_connections_of_http3() {
    let over = QuicSite::start();
    let socket = |path: &str| over.url(path).replace("https:", "wss:");
    let url = socket("/ws?delay=2ms");
    let shared = ["--http", "3", "--ca", &over.ca, "--ws-per-connection", "10", "--threads", "1"];
    let line = [&[&*url, "-n", "200", "-c", "40", "--ws-compress"][..], &shared].concat();
    let json = measured(&line, &[0, 4]);
    let seen = &json["messages"];
    let keys = ["opened", "compressed", "sent", "received", "unmatched", "http3_connections"];
    assert_eq!(keys.map(|key| count(seen, key)), [40, 40, 200, 200, 0, 4], "{seen:#}");
    assert_eq!((count(seen, "http2_connections"), count(seen, "abnormal_closes")), (0, 0));
    // the figures of QUIC are those of the shared connections
    assert_eq!(whole(&json, "/http3/quic/handshakes"), 4, "{json:#}");
    // open loop, heartbeats, and a reconnect storm on the same connections
    let open = ["-d", "600ms", "-c", "20", "--ws-rate", "200/s", "--ws-storm", "300ms"];
    let seen = messages(&[&[&*url][..], &open, &shared].concat(), &[0, 4]);
    assert_eq!(count(&seen, "http3_connections"), 2, "{seen:#}");
    assert_eq!(seen["reconnects"]["restored"], 20, "{seen:#}");
    let room = socket("/ws?room=r{room}");
    let rooms = ["-d", "300ms", "-c", "8", "--ws-rooms", "2", "--ws-rate", "50/s"];
    let seen = messages(&[&[&*room][..], &rooms, &shared].concat(), &[0, 4]);
    assert_eq!(seen["fan_out"]["reach"], 1.0, "{seen:#}");
    let refused = socket("/hw");
    let output = run(&[&["run", &refused, "-n", "1"][..], &shared].concat());
    assert!(output.stdout.contains("the server answered 404, not 101"), "{}", output.stdout);
    // the faulty server's SETTINGS are empty
    let range = QuicSite::with(&[("range", "none")]);
    let url = range.url("/").replace("https:", "wss:");
    let output = run(&["run", &url, "-n", "1", "--http", "3", "--ca", &range.ca]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    let named = "lack ENABLE_CONNECT_PROTOCOL (RFC 9220 section 3); drop --http 3";
    assert!(output.stderr.contains(named), "{}", output.stderr);
}

#[test]
fn sockets_of_journeys_share_connections_of_http3() {
    let over = QuicSite::start();
    let shared = ["--http", "3", "--ca", &over.ca, "--ws-per-connection", "4", "--threads", "1"];
    let load = "[load]\nusers = 8\n[stop]\nrequests = 24\n";
    let plan = talkers_at("http3", &over.url("/"), load);
    let json = measured(&[&[&*plan][..], &shared].concat(), &[0, 4]);
    let seen = &json["messages"];
    let [opened, sent, received] = ["opened", "sent", "received"].map(|key| count(seen, key));
    assert!(opened >= 24 && sent == received && (sent..=sent + 8).contains(&opened), "{seen:#}");
    assert_eq!(whole(&json, "/outcomes/failed"), 0, "{json:#}");
    assert!((2..=4).contains(&count(seen, "http3_connections")), "{seen:#}");
}

#[test]
fn options_without_meaning_over_http3_are_refused() {
    for (args, named) in [
        (&["ws://h/"][..], "HTTP/3 always uses TLS; write wss://"),
        (&["wss://h/", "--migrate", "5calls"], "--migrate 5s"),
        (&["wss://h/", "--ws-read-rate", "1k"], "--ws-read-rate"),
        (&["wss://h/", "--early-data"], "--early-data"),
        (&["wss://h/", "--idle", "5"], "--idle"),
        (&["wss://h/", "--user-sessions"], "--user-sessions"),
        (&["wss://h/", "--streams", "5"], "--ws-per-connection"),
    ] {
        let output = run(&[&["run", "--http", "3"], args].concat());
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.stderr.contains(named), "{args:?}: {}", output.stderr);
    }
}
