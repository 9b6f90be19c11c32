//! WebSocket over sockets: the built-in site echoes, and misbehaves on demand.

use crate::support::{Scripted, Site, measured, run, whole};
use serde_json::Value;
use std::io::{Read, Write};
use websocket::handshake::read_request;

pub(super) fn messages(args: &[&str], codes: &[i32]) -> Value {
    measured(args, codes)["messages"].clone()
}

pub(super) fn count(record: &Value, key: &str) -> u64 {
    record[key].as_u64().unwrap_or_else(|| panic!("{key} in {record:#}"))
}

#[test]
fn an_echo_is_measured_closed_and_open() {
    let site = Site::start(&[]);
    let url = site.url("/ws?delay=5ms").replace("http:", "ws:");
    let seen = messages(&[&url, "-n", "40", "-c", "4", "--ws-message", "m {id}"], &[0, 4]);
    let counts = ["opened", "sent", "received", "unmatched"].map(|key| count(&seen, key));
    assert_eq!(counts, [4, 40, 40, 0], "{seen:#}");
    assert!(seen["response_time_s"]["min"].as_f64() >= Some(0.004), "{seen:#}");
    assert_eq!(seen["closes"][0]["by"], "client", "{seen:#}");
    let rate = ["-d", "200ms", "-c", "3", "--ws-rate", "100/s"];
    let line = [&[&url[..]], &rate[..], &["--ws-compress", "--ws-mask", "zero"]].concat();
    let seen = messages(&line, &[0, 4]);
    assert_eq!(
        ["opened", "compressed", "sent"].map(|key| count(&seen, key)),
        [3, 3, 20],
        "{seen:#}"
    );
    assert_eq!(seen["mask"], "zero");
    assert_eq!(whole(&seen, "/handshake_s/count"), 3);
}

#[test]
fn faults_of_the_server_are_reported() {
    let site = Site::start(&[]);
    let ws = |path: &str| site.url(path).replace("http:", "ws:");
    let line = |url: &str| messages(&[url, "-n", "30", "-c", "1"], &[0, 1, 4]);
    let closed = line(&ws("/ws?close=1011&after=9"));
    let by_server = closed["closes"].as_array().unwrap().iter().find(|it| it["by"] == "server");
    assert_eq!(by_server.unwrap()["code"], 1011, "{closed:#}");
    assert!(count(&closed, "abnormal_closes") >= 2, "{closed:#}");
    let dropped = line(&ws("/ws?close=0&after=9"));
    let lost = dropped["closes"].as_array().unwrap().iter().find(|it| it["by"] == "lost");
    assert_eq!(lost.unwrap()["code"], 1006, "{dropped:#}");
    let refused = line(&ws("/hw"));
    assert_eq!(count(&refused, "opened"), 0);
    assert!(
        refused["violations"]["the server answered 200, not 101"].as_u64() > Some(0),
        "{refused:#}"
    );
}

#[test]
fn pushes_lost_answers_and_objectives() {
    let site = Site::start(&[]);
    let url = site.url("/ws?push=200&lose=1").replace("http:", "ws:");
    let line = [
        &url,
        "-n",
        "2",
        "-c",
        "2",
        "--timeout",
        "300ms",
        "--slo",
        "handshake-p99<5s, messages>10/s",
    ];
    let seen = messages(&line, &[0, 1, 4]);
    assert_eq!(count(&seen, "lost"), 2, "{seen:#}");
    assert!(count(&seen, "unmatched") > 20 && whole(&seen, "/gap_s/count") > 20, "{seen:#}");
}

#[test]
fn members_of_rooms_receive_published_messages() {
    let site = Site::start(&[]);
    let url = site.url("/ws?room=r{room}").replace("http:", "ws:");
    let line = [
        &url,
        "-d",
        "200ms",
        "-c",
        "8",
        "--ws-rooms",
        "2",
        "--ws-rate",
        "100/s",
        "--slo",
        "reach>=99%",
    ];
    let seen = &messages(&line, &[0, 4])["fan_out"];
    assert_eq!(
        ["rooms", "members", "messages"].map(|key| count(seen, key)),
        [2, 4, 20],
        "{seen:#}"
    );
    assert_eq!(count(seen, "received"), count(seen, "expected"), "{seen:#}");
    assert!(count(seen, "expected") > 40 && seen["reach"] == 1.0, "{seen:#}");
}

#[test]
fn unsupported_options_are_refused_by_name() {
    for (args, named) in [
        (&["ws://h/", "--http", "1.0"][..], "--http 2 or 3"),
        (&["ws://h/", "--http", "2", "--streams", "5"], "--ws-per-connection"),
        (&["ws://h/", "--ws-per-connection", "5"], "--http 2"),
        (&["ws://h/", "--http", "2", "--idle", "5"], "--idle"),
        (&["ws://h/", "--http", "2", "--ws-read-rate", "1k"], "--ws-read-rate"),
        (&["ws://h/", "-d", "1s", "--ws-storm", "2s"], "--ws-storm"),
        (&["ws://h/", "--body", "x"], "--body"),
        (&["ws://h/", "--proxy", "http://p:1"], "--proxy"),
        (&["ws://h/", "--expect-body", "x"], "--expect-body"),
        (&["ws://h/", "--ws-expect", "json:/id"], "--ws-expect"),
        (&["ws://h/", "--ws-expect", "none"], "--ws-expect"),
        (&["ws://h/", "-H", "Upgrade: x"], "-H"),
        (&["wss://h/", "--stack", "own", "--http", "3"], "--stack own and --http 3"),
        (&["http://h/", "--ws-message", "x"], "--ws-"),
        (&["http://h/", "--ws-rate", "5/s"], "--ws-rate"),
        (&["ws://h/", "--ws-rooms", "2"], "--ws-rooms"),
        (&["ws://h/", "--ws-preset", "mqtt"], "--ws-preset"),
    ] {
        let output = run(&[&["run"], args].concat());
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.stderr.contains(named), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn invalid_utf8_fails_with_its_close_code() {
    let server = Scripted::start(|mut stream, _| {
        let mut head = vec![0; 4096];
        let Ok(count) = stream.read(&mut head) else { return };
        let Some((_, Ok(asked))) = read_request(&head[..count]) else { return };
        let mut response = asked.response(None, false);
        response.extend_from_slice(b"\x81\x02\xff\xff");
        stream.write_all(&response).ok();
        // the client closes
        while stream.read(&mut head).is_ok_and(|count| count > 0) {}
    });
    let url = format!("ws://{}/", server.address);
    let seen = messages(&[&url, "-n", "1", "-c", "1"], &[1]);
    assert_eq!(seen["violations"]["text that is not UTF-8 (close code 1007)"], 1, "{seen:#}");
}

#[test]
fn sockets_share_connections_of_http2() {
    let site = Site::start(&[]);
    let url = site.url("/ws?delay=2ms").replace("http:", "ws:");
    let shared = ["--http", "2", "--ws-per-connection", "10", "--threads", "1"];
    let line = [&[&*url, "-n", "200", "-c", "40", "--ws-compress"][..], &shared].concat();
    let seen = messages(&line, &[0, 4]);
    let keys = ["opened", "compressed", "sent", "received", "unmatched", "http2_connections"];
    assert_eq!(keys.map(|key| count(&seen, key)), [40, 40, 200, 200, 0, 4], "{seen:#}");
    assert_eq!(count(&seen, "abnormal_closes"), 0, "{seen:#}");
    // open loop, heartbeats, and a reconnect storm on the same connections
    let open = ["-d", "600ms", "-c", "20", "--ws-rate", "200/s", "--ws-storm", "300ms"];
    let seen = messages(&[&[&*url][..], &open, &shared].concat(), &[0, 4]);
    let keys = ["sent", "http2_connections"].map(|key| count(&seen, key));
    assert_eq!(keys[1], 2, "{seen:#}");
    assert_eq!(seen["reconnects"]["restored"], 20, "{seen:#}");
    let room = site.url("/ws?room=r{room}").replace("http:", "ws:");
    let rooms = ["-d", "300ms", "-c", "8", "--ws-rooms", "2", "--ws-rate", "50/s"];
    let seen = messages(&[&[&*room][..], &rooms, &shared].concat(), &[0, 4]);
    assert_eq!(seen["fan_out"]["reach"], 1.0, "{seen:#}");
}

#[test]
fn servers_without_websockets_over_http2_are_reported() {
    // SETTINGS without ENABLE_CONNECT_PROTOCOL
    let server = Scripted::start(|mut stream, _| {
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).ok();
        let mut rest = vec![0; 4096];
        while stream.read(&mut rest).is_ok_and(|count| count > 0) {}
    });
    let url = format!("ws://{}/", server.address);
    let output = run(&["run", &url, "-n", "1", "--http", "2"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("ENABLE_CONNECT_PROTOCOL"), "{}", output.stderr);
    let old = Site::start(&[("null", "")]);
    let output = run(&["run", &old.url("/").replace("http:", "ws:"), "-n", "1", "--http", "2"]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("where HTTP/2 was requested"), "{}", output.stderr);
    let site = Site::start(&[]);
    let output = run(&["run", &site.url("/hw").replace("http:", "ws:"), "-n", "1", "--http", "2"]);
    assert!(output.stdout.contains("the server answered 404, not 101"), "{}", output.stdout);
}

#[test]
fn earlier_answers_precede_the_close_of_the_server() {
    let site = Site::start(&[]);
    let url = site.url("/ws?delay=5ms&close=1000&after=5").replace("http:", "ws:");
    let line = [&*url, "-d", "300ms", "-c", "1", "--ws-rate", "1000/s", "--timeout", "500ms"];
    let seen = messages(&line, &[0, 1, 4]);
    let closed = seen["closes"].as_array().unwrap().iter().filter(|it| it["by"] == "server");
    let closed: u64 = closed.map(|it| it["count"].as_u64().unwrap()).sum();
    assert!(closed >= 2, "{seen:#}");
    assert!(count(&seen, "received") >= 5 * closed, "{seen:#}");
}

#[test]
fn slow_readers_hold_a_server_back() {
    let site = Site::start(&[]);
    let url = site.url("/ws?push=2000").replace("http:", "ws:");
    let line = [&*url, "-d", "1s", "-c", "1", "--ws-ping", "10s", "--ws-read-rate", "4k"];
    let seen = messages(&line, &[0, 4]);
    // 8 KiB at once and 4 kB in the second, in frames of at most 11 bytes
    let received = count(&seen, "wire_received");
    assert!((8_000..14_000).contains(&received), "{seen:#}");
}

/// Users that log in, then talk on a WebSocket; `more`: further tables.
fn talkers(name: &str, site: &Site, more: &str) -> String {
    talkers_at(name, &site.url("/"), more)
}

pub(super) fn talkers_at(name: &str, url: &str, more: &str) -> String {
    let path =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("talkers-{name}.toml"));
    let journey = |name: &str, delay: &str| {
        format!(
            "[[journey]]\nname = '{name}'\n\
             [[journey.step]]\nname = '{name} logs in'\nurl = '/login?name=a'\n\
             capture = {{ token = {{ json = '/token' }} }}\n\
             [[journey.step]]\nname = '{name} opens'\nconnect = '/ws?delay={delay}'\n\
             headers = {{ Authorization = 'Bearer {{{{token}}}}' }}\n\
             [[journey.step]]\nname = '{name} asks'\nsend = {{ id = '{{{{iteration.number}}}}' }}\n\
             expect = {{ match = {{ json = {{ '/id' = '{{{{iteration.number}}}}' }} }} }}\n\
             [[journey.step]]\nname = '{name} leaves'\nclose = 1000\n"
        )
    };
    let both = [journey("first", "2ms"), journey("second", "1ms")].concat();
    let text = format!("version = 1\nurl = '{url}'\n{more}{both}");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn sockets_of_journeys_share_connections_of_http2() {
    let site = Site::start(&[]);
    let shared = ["--http", "2", "--ws-per-connection", "4", "--threads", "1"];
    let plan = talkers("load", &site, "[load]\nusers = 8\n[stop]\nrequests = 24\n");
    let scenarios = "[stop]\nduration = '300ms'\n\
        [[scenario]]\nname = 'a'\njourneys = ['first']\nload = { users = 4 }\n\
        [[scenario]]\nname = 'b'\njourneys = ['second']\nload = { users = 4 }\n";
    let parts = talkers("parts", &site, scenarios);
    for plan in [plan, parts] {
        let json = measured(&[&[&*plan][..], &shared].concat(), &[0, 4]);
        let seen = &json["messages"];
        let [opened, sent, received] = ["opened", "sent", "received"].map(|key| count(seen, key));
        // at the end of the run a user may have opened a WebSocket and sent nothing
        assert!(
            opened >= 24 && sent == received && (sent..=sent + 8).contains(&opened),
            "{seen:#}"
        );
        assert_eq!(whole(&json, "/outcomes/failed"), 0, "{json:#}");
        // two carry eight WebSockets; one that the server has not ended yet needs another
        assert!((2..=4).contains(&count(seen, "http2_connections")), "{seen:#}");
    }
    for option in ["--ws-storm", "--ws-live", "--ws-read-rate"] {
        let plan = talkers("refused", &site, "");
        let output =
            run(&["run", &plan, option, if option == "--ws-read-rate" { "1k" } else { "1s" }]);
        assert_eq!(output.code, 2, "{option}");
        assert!(
            output.stderr.contains(option) && output.stderr.contains("in a journey"),
            "{output:?}"
        );
    }
    let output = run(&["run", &talkers("old", &site, ""), "--ws-per-connection", "4"]);
    assert!(output.code == 2 && output.stderr.contains("--http 2"), "{output:?}");
}
