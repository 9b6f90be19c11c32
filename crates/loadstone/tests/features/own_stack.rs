//! `--stack own`: real packets of our own TCP to servers of this host.

use crate::support::process::{measured, run};
use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{Scripted, Site, behind, finish, number, text, untested, whole};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc::channel;

/// Returns whether this user can create a network device here; if not, prints the missing part.
fn is_available(site: &Site) -> bool {
    let tried = run(&["run", &site.url("/"), "--stack", "own", "-n", "1", "-c", "1", "-q"]);
    if tried.code != 3 && tried.code != 2 {
        return true;
    }
    let reason = format!("our own TCP is not tested: {}", tried.stderr.trim_end());
    untested(&reason)
}

/// Modes of sending packets, with their names in the report: in batches, if the kernel supports
/// that; one by one; and the default, which depends on their number.
fn ways(site: &Site) -> [(&'static str, &'static str); 3] {
    let tried = run(&["run", &site.url("/"), "--stack", "own:batches", "-n", "1", "-c", "1"]);
    let fallback = tried.stderr.contains("--stack own:batches: one packet per system call: ");
    assert!(!fallback || std::env::var_os("CI").is_none(), "{}", tried.stderr);
    let plain = "own TCP over TUN";
    let batches = if fallback { plain } else { "own TCP over TUN by io_uring" };
    [("own:batches", batches), ("own:calls", plain), ("own", plain)]
}

#[test]
fn every_call_is_answered_on_kept_and_on_new_connections() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let url = site.url("/bytes/20000");
    for (stack, io) in ways(&site) {
        for more in [&["-c", "8"][..], &["-c", "4", "--calls", "1"], &["-c", "4", "--http", "1.0"]]
        {
            let words = ["--stack", stack, "-n", "200", &url];
            let report = measured(&[&words[..], more].concat(), &[0, 4]);
            assert_eq!(whole(&report, "/outcomes/succeeded"), 200, "{stack} {more:?}");
            assert_eq!(whole(&report, "/outcomes/due"), 200, "{stack} {more:?}");
            assert_eq!(text(&report, "/client/io"), io);
            let by_ring = whole(&report, "/stack/batched") > 0;
            assert_eq!(by_ring, io.ends_with("by io_uring"), "eight users are few: {stack}");
        }
    }
}

/// The run does not reuse the port of the first call, nor a repeat those of the previous repeat:
/// the server may not have closed those connections yet.
#[test]
fn later_connections_have_other_ports() {
    if !is_available(&Site::start(&[])) {
        return;
    }
    let (tell, found) = channel();
    let server = Scripted::start(move |mut stream, _| {
        tell.send(stream.peer_addr().unwrap()).unwrap();
        let mut piece = [0; 4096];
        if matches!(stream.read(&mut piece), Ok(1..)) {
            let text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(text.as_bytes()).ok();
        }
    });
    let url = server.url("/");
    let words = ["--stack", "own", "-c", "1", "-n", "4", "--calls", "1", "--repeat", "2", &url];
    measured(&[&words[..], &["--threads", "1"]].concat(), &[0, 4]);
    let seen: Vec<SocketAddr> = found.try_iter().collect();
    let distinct: BTreeSet<&SocketAddr> = seen.iter().collect();
    assert!(seen.len() >= 9 && distinct.len() == seen.len(), "{seen:?}");
}

/// Long responses arrive in packets of up to 64 KiB, few of which are queued at once; short ones in
/// between, of which many are.
#[test]
fn long_and_short_packets_arrive_complete() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("list");
    let urls: String = ["1", "1500000", "40", "70000", "3"]
        .iter()
        .map(|bytes| format!("{}\n", site.url(&format!("/bytes/{bytes}"))))
        .collect();
    std::fs::write(&list, urls).expect("a file");
    let list = list.to_str().expect("a path in UTF-8");
    for (stack, _) in ways(&site) {
        let words = ["--stack", stack, "-n", "200", "-c", "20", "--urls", list, "--verify"];
        let report = measured(&words, &[0, 4]);
        assert_eq!(whole(&report, "/outcomes/succeeded"), 200, "{stack}");
        assert_eq!(whole(&report, "/verified/differing"), 0, "{stack}");
        assert_eq!(whole(&report, "/stack/refused"), 0, "{stack}");
    }
}

/// The server sends its second SYN-ACK after a second: the test would notice if the first one went
/// to the other worker.
#[test]
fn no_worker_gets_the_packets_of_another() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    for (stack, _) in ways(&site) {
        let words = ["--stack", stack, "-n", "64", "-c", "32", "--calls", "1", "--threads", "2"];
        let report = measured(&[&words[..], &[&site.url("/")]].concat(), &[0, 4]);
        assert_eq!(whole(&report, "/outcomes/succeeded"), 64);
        let connect = number(&report, "/phases_s/connect/max");
        assert!(connect < 0.9, "{stack}: {connect} s to connect");
    }
}

#[test]
fn tls_works_over_it() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    for (stack, _) in ways(&site) {
        let server = TlsServer::start(&TlsOptions::default());
        let words = ["--stack", stack, "-n", "40", "-c", "4", "--calls", "5", "--insecure"];
        let report = measured(&[&words[..], &[&server.url("/")]].concat(), &[0, 4]);
        assert_eq!(whole(&report, "/outcomes/succeeded"), 40, "{stack}");
    }
}

/// Echo in a closed and an open load, broadcasts, churn, a storm, heartbeats and slow readers.
#[test]
fn websockets_work_over_it() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let url = site.url("/ws").replacen("http", "ws", 1);
    let run = |path: &str, more: &[&str]| {
        let url = format!("{url}{path}");
        let words = ["--stack", "own", "--threads", "1", &url];
        measured(&[&words[..], more].concat(), &[0, 4])
    };
    let all_answered = |report: &Value, what: &str| {
        let outcome = |name: &str| whole(report, &format!("/outcomes/{name}"));
        assert!(outcome("succeeded") > 0, "{what}: {report:#}");
        assert_eq!(outcome("succeeded"), outcome("due"), "{what}: {}", report["failures"]);
        assert_eq!(text(report, "/client/io"), "own TCP over TUN", "{what}");
        assert!(whole(report, "/stack/established") > 0, "{what}: {}", report["stack"]);
    };
    let closed = run("", &["-n", "200", "-c", "8"]);
    all_answered(&closed, "closed");
    assert_eq!(whole(&closed, "/messages/received"), 200);
    assert_eq!(whole(&closed, "/stack/established"), 8);
    let large = "x".repeat(100_000);
    let open = ["-c", "8", "--ws-rate", "200/s", "-n", "60", "--ws-message", &large];
    all_answered(&run("", &open), "open, long messages");
    let churn = ["-c", "8", "-d", "1s", "--ws-live", "200ms", "--ws-rate", "100/s"];
    let report = run("", &churn);
    all_answered(&report, "churn");
    assert!(whole(&report, "/messages/opened") > 16, "{}", report["messages"]);
    let storm = ["-c", "20", "-d", "1s", "--ws-storm", "300ms"];
    let report = run("?delay=5ms", &storm);
    assert_eq!(whole(&report, "/messages/reconnects/restored"), 20, "{}", report["messages"]);
    let held = run("", &["-c", "20", "-d", "1s", "--ws-ping", "100ms"]);
    assert!(whole(&held, "/messages/pongs") > 50, "{}", held["messages"]);
    let rooms = ["-c", "20", "--ws-rooms", "4", "--ws-rate", "40/s", "-d", "1s"];
    let report = run("?room=own{room}", &rooms);
    assert!(number(&report, "/messages/fan_out/reach") > 0.999_999, "{}", report["messages"]);
    let slow = ["-c", "2", "-n", "6", "--ws-read-rate", "100k", "--ws-message", &large[..20_000]];
    let report = run("", &slow);
    all_answered(&report, "slow readers");
    assert!(number(&report, "/response_time_s/max") > 0.1, "{}", report["response_time_s"]);
}

/// WebSockets as streams of HTTP/2 connections, behind TLS, and behind an emulated path.
#[test]
fn websockets_share_connections_and_paths_over_it() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let url = site.url("/ws").replacen("http", "ws", 1);
    let words = ["--stack", "own", "--threads", "1", "-n", "200", "-c", "40"];
    let tunnels = ["--http", "2", "--ws-per-connection", "20", &url];
    let report = measured(&[&words[..], &tunnels].concat(), &[0, 4]);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 200, "{}", report["failures"]);
    assert_eq!(whole(&report, "/stack/established"), 2, "{}", report["stack"]);
    let path = ["--stack", "own", "--path", "rtt=30ms", "-n", "12", "-c", "4", &url];
    let report = measured(&path, &[0, 4]);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 12, "{}", report["failures"]);
    assert!(number(&report, "/response_time_s/min") >= 0.030, "{}", report["response_time_s"]);
}

#[test]
fn the_report_shows_the_stacks_counts() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let url = site.url("/bytes/3000");
    for (stack, io) in ways(&site) {
        let words = ["--stack", stack, "-n", "60", "-c", "3", &url];
        let report = measured(&words, &[0, 4]);
        assert_eq!(whole(&report, "/stack/established"), 3);
        assert_eq!(whole(&report, "/stack/refused"), 0);
        // three packets for the handshake; per call the request and, for 3,000 bytes, one
        // super-packet and its end
        let sent = whole(&report, "/stack/sent");
        assert!((60..400).contains(&sent), "{sent} packets");
        let full = run(&[&["run", "--full"][..], &words].concat());
        assert!(full.stdout.contains("Own TCP       3 connections established; "), "{full:#?}");
        assert!(full.stdout.contains(io), "{full:#?}");
    }
    let kernel = measured(&["-n", "3", &site.url("/")], &[0, 4]);
    assert!(kernel["stack"].is_null(), "{}", kernel["stack"]);
}

/// As through the forwarder: every connect and response includes the round trip, packets are lost
/// as the seed determines, and only the model loses packets.
#[test]
fn a_path_inside_delays_and_loses_as_configured() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let url = site.url("/bytes/4000");
    let through = |seed: &str, more: &[&str]| {
        let words = ["--stack", "own", "--path", "rtt=30ms, loss=list:7", "--seed", seed, &url];
        measured(&[&words[..], more].concat(), &[0, 4])
    };
    let report = through("3", &["-n", "12", "-c", "2"]);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 12);
    assert!(number(&report, "/phases_s/connect/min") >= 0.030, "{}", report["phases_s"]);
    assert!(number(&report, "/response_time_s/min") >= 0.030, "{}", report["response_time_s"]);
    let way = |report: &Value, way: &str, what: &str| {
        whole(report, &format!("/path/kinds/0/{way}/{what}"))
    };
    for direction in ["up", "down"] {
        assert_eq!(way(&report, direction, "lost_to_model"), 1, "{}", report["path"]);
    }
    // the link received all sent packets, and all that left it arrived
    assert_eq!(way(&report, "up", "arrived"), whole(&report, "/stack/sent"));
    // each packet has a separate instant, so none waits for a batch
    assert_eq!(text(&report, "/client/io"), "own TCP over TUN");
    assert_eq!(whole(&report, "/path/overflowed"), 0);
    assert!(report["first_call"]["took_s"].as_f64().expect("a number") >= 0.060);
}

/// 40 responses of 20,000 bytes take 1.6 s over a link of 4 Mbit/s, and half of that over two
/// links.
#[test]
fn the_link_of_a_path_is_that_of_all_threads() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let words = ["--stack", "own", "--path", "rtt=10ms, rate=4M", "--threads", "2", "-c", "4"];
    let report =
        measured(&[&words[..], &["-n", "40", &site.url("/bytes/20000")]].concat(), &[0, 4]);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 40);
    assert_eq!(whole(&report, "/client/threads"), 2);
    let span = number(&report, "/elapsed_s");
    assert!(span >= 1.6, "{span} s");
    let way = |way: &str, what: &str| whole(&report, &format!("/path/kinds/0/{way}/{what}"));
    assert_eq!(whole(&report, "/path/kinds/0/clients"), 1);
    assert_eq!(way("up", "arrived"), whole(&report, "/stack/sent"));
    // the server's last packets may still be on the link
    let (came, left) = (way("down", "delivered"), whole(&report, "/stack/received"));
    assert_eq!(came, left);
    // addresses are reused: a server may still resend to connections of an ended run, so foreign
    // packets are not reported
    assert_eq!(whole(&report, "/path/overflowed"), 0);
}

#[test]
fn clients_inside_have_paths_of_their_own() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let kinds = "near=[rtt=10ms]:50%, far=[rtt=90ms]:50%";
    let words = ["--stack", "own", "--clients", kinds, "-c", "4", "-n", "40"];
    let goal = ["--threads", "2", "--slo", "near: p50<80ms", &site.url("/")];
    let report = measured(&[&words[..], &goal].concat(), &[0, 1, 4]);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 40);
    let rows = report["by_clients"].as_array().expect("a row for each kind");
    let named = |name: &str| rows.iter().find(|row| row["name"] == name).expect("a kind");
    let p50 = |name: &str| number(named(name), "/response_time_s/p50");
    assert!(p50("far") >= 0.090, "{rows:#?}");
    assert!(p50("near") >= 0.010 && p50("near") < p50("far"), "{rows:#?}");
    for row in [0, 1] {
        assert_eq!(whole(&report, &format!("/path/kinds/{row}/clients")), 2);
        assert!(whole(&report, &format!("/path/kinds/{row}/up/arrived")) > 0);
    }
}

/// WebMark's rule: the client's packets are delayed by the whole round trip, the server's are not.
#[test]
fn webmarks_mode_delays_only_the_clients_packets() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let path = "webmark, rate=1.5M, delay=25ms";
    // in sequence: a single stall of the machine delays only one of them
    let one_by_one = ["-n", "8", "-c", "1", "--calls", "1"];
    let url = site.url("/");
    let words = [&["--stack", "own", "--path", path, &url][..], &one_by_one].concat();
    let report = measured(&words, &[0, 4]);
    // a SYN of 60 bytes: 2 x (0.32 ms + 25 ms)
    let connect = number(&report, "/phases_s/connect/min");
    assert!((0.050..0.09).contains(&connect), "{connect}");
    assert_eq!(text(&report, "/path/spec"), path);
}

#[test]
fn idle_connections_are_held_and_counted_over_both_stacks() {
    let site = Site::start(&[]);
    let own = is_available(&site);
    for stack in ["kernel", "own"].iter().take(if own { 2 } else { 1 }) {
        let words = ["--stack", stack, "--idle", "150", "-n", "50", "-c", "2", &site.url("/")];
        let report = measured(&words, &[0, 4]);
        let held = |what: &str| whole(&report, &format!("/held/{what}"));
        assert_eq!([held("wanted"), held("stood"), held("open")], [150; 3], "{stack}");
        assert_eq!(held("failed") + held("closed") + held("reset"), 0, "{stack}");
        assert!(report["held"]["age_s"].is_null());
        // they do not belong to the load
        assert_eq!(whole(&report, "/connections/established"), 2, "{stack}");
    }
}

/// Connections as the server's kernel sees them, and the run's report.
fn agreed(traits: &[&str]) -> (String, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    // the first call of a run has a separate connection
    let server = std::thread::spawn(move || {
        let answer = |_: u32| {
            let (mut peer, _) = listener.accept().expect("the run's connection");
            let mut request = [0; 4_096];
            assert!(peer.read(&mut request).expect("its request") > 0);
            let mut found = Command::new("ss");
            found.args(["-Htino", "state", "established", &format!("sport = :{port}")]);
            let found = found.output().expect("ss, which the package iproute2 has");
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            peer.write_all(response).expect("a response");
            String::from_utf8_lossy(&found.stdout).into_owned()
        };
        (0..2).map(answer).collect::<String>()
    });
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["--stack", "own", "-n", "1", "-c", "1", "--tcp"];
    let report = match traits {
        [] => measured(&[&words[..6], &[&url]].concat(), &[0, 4]),
        traits => measured(&[&words[..], traits, &[&url]].concat(), &[0, 4]),
    };
    (server.join().expect("a server that ends"), report)
}

/// The server's kernel sees the requested properties of the connection, and no others.
#[test]
fn a_connection_has_the_traits_that_it_is_given() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let words = |found: &str| found.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    let has = |found: &str, word: &str| words(found).iter().any(|one| one == word);
    let (usual, _) = agreed(&[]);
    assert!(has(&usual, "ts") && has(&usual, "sack") && !has(&usual, "ecn"), "{usual}");
    let (other, report) = agreed(&["ecn, no-timestamps, no-sack, receive-window=16k"]);
    assert!(!has(&other, "ts") && !has(&other, "sack"), "{other}");
    let marks = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn").expect("the kernel's way");
    assert_eq!(has(&other, "ecn"), marks.trim() != "0", "{other}");
    let plan = text(&report, "/plan/driver/tcp");
    assert_eq!(plan, "ecn,no-sack,no-timestamps,receive-window=16384");
    // 10,000 bytes of content: ten segments are sent at once, or two
    let took = |traits: &[&str]| {
        let path = ["--stack", "own", "--path", "rtt=100ms", "-n", "4", "-c", "1", "--calls", "1"];
        let content = "x".repeat(10_000);
        let url = site.url("/echo");
        let report = measured(&[&path[..], traits, &["--body", &content, &url]].concat(), &[0, 4]);
        // the fastest of several: other work on the machine only slows them
        number(&report, "/response_time_s/min")
    };
    let (ten, one) = (took(&[]), took(&["--tcp", "initial-window=1"]));
    assert!(one > ten + 0.15, "{ten} and {one} s");
}

#[test]
fn addresses_are_chosen_or_refused_with_the_fix() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let from = |prefix: &str| {
        let words = ["run", "--stack", "own", "--sources", prefix, "-n", "4", &site.url("/")];
        run(&words)
    };
    let chosen = from("10.255.249.0/24");
    let text = "the server sees them come from 10.255.249.1 to 10.255.249.253, ";
    assert!(matches!(chosen.code, 0 | 4) && chosen.stderr.contains(text), "{chosen:#?}");
    for (prefix, text) in [
        ("10.9.1.0/16", "the first of its addresses is 10.9.0.0"),
        ("127.0.0.0/8", "packets cannot come from these addresses"),
        ("10.9.0.0", "it has no /BITS"),
    ] {
        let refused = from(prefix);
        assert_eq!(refused.code, 2, "{refused:#?}");
        assert!(refused.stderr.contains(text), "{refused:#?}");
    }
}

/// Runs a shell script in a separate network, where no other routes and devices exist.
fn in_separate_network(script: &str) -> crate::support::Ran {
    let mut command = behind(&["unshare", "-n", "sh", "-c", script, "sh"]);
    command.args(["run", "--stack", "own", "-n", "4", "-q"]);
    finish(command, b"")
}

/// One sentence each, exit code 2, and an unchanged network.
#[test]
fn failures_are_reported_and_leave_nothing_behind() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let url = "http://127.0.0.1:9/";
    for (before, more, found) in [
        (
            "ip route add 10.77.0.0/24 dev lo",
            "--sources 10.77.0.0/16",
            "10.77.0.0/16 is in use on this host: a route to 10.77.0.0/24 goes through lo; fix: ",
        ),
        (
            "ip addr add 10.78.3.4/32 dev lo",
            "--sources 10.78.0.0/16",
            "10.78.0.0/16 is in use on this host: 10.78.3.4 is an address of this host; fix: ",
        ),
        (
            "ip route add 198.18.0.0/15 dev lo",
            "",
            "all addresses of 198.18.0.0/15, which paths use (RFC 2544), are routed elsewhere",
        ),
        (
            "true",
            "--sources 10.78.0.0/30 --threads 2 -c 2",
            "4 addresses are too few for 2 threads",
        ),
        (
            "true",
            "--clients 3g:100% --sources 10.78.0.0/29 -c 16 --threads 1",
            "16 clients do not fit into 1 part of 5 addresses, one part per thread; fix: ",
        ),
        ("true", "", "127.0.0.1:9: connection refused"),
    ] {
        let ran = in_separate_network(&format!(
            "ip link set lo up; {before}; \"$@\" {more} {url}; code=$?; ip -o link | grep -c loadstone; \
             exit $code"
        ));
        let code = if found.contains("refused") { 3 } else { 2 };
        assert_eq!(ran.code, code, "{found}\n{ran:#?}");
        assert!(ran.stderr.contains(found), "{found}\n{ran:#?}");
        assert!(ran.stdout.ends_with("0\n"), "no device is left: {ran:#?}");
    }
}

/// Runs one thread in a separate network with a server, and acts on its device after a few hundred
/// packets.
fn run_with_device_action(action: &str, more: &[&str]) -> Value {
    let script = format!(
        "ip link set lo up
         \"$1\" site --listen 127.0.0.1:8000 >/dev/null & site=$!
         until grep -q 0100007F:1F40 /proc/net/tcp; do :; done
         (until awk '/loadstone0/ && $11 > 200 {{ ran = 1 }} END {{ exit !ran }}' /proc/net/dev; do :; done
          {action}) & action=$!
         \"$@\" http://127.0.0.1:8000/bytes/20000
         kill $site $action 2>/dev/null"
    );
    let mut command = behind(&["unshare", "-n", "sh", "-c", &script, "sh"]);
    command.args(["run", "--json", "-", "--threads", "1", "-c", "8", "--timeout", "300ms"]);
    command.args(more);
    finish(command, b"").json()
}

/// The device queues one packet. Packets beyond it count as missed and, on a path, also as lost to
/// the emulation.
#[test]
fn packets_that_find_the_devices_queue_full_are_counted() {
    if !is_available(&Site::start(&[])) {
        return;
    }
    let action = "ip link set loadstone0 txqueuelen 1";
    for stack in ["own", "own:batches"] {
        let report = run_with_device_action(action, &["--stack", stack, "-d", "4s"]);
        assert!(whole(&report, "/stack/missed") > 0, "{stack}: {}", report["stack"]);
    }
    let path = ["--stack", "own", "--path", "rtt=2ms", "-d", "4s"];
    let report = run_with_device_action(action, &path);
    let (missed, lost) = (whole(&report, "/stack/missed"), whole(&report, "/path/overflowed"));
    assert!(missed > 0 && missed == lost, "{missed} {lost}");
}

/// New connections fail at once, without busy waiting.
#[test]
fn a_deleted_device_is_reported_without_cpu_use() {
    if !is_available(&Site::start(&[])) {
        return;
    }
    for more in [&["own"][..], &["own:batches"], &["own", "--path", "rtt=2ms"]] {
        let words = [&["-d", "3s", "--stack"], more].concat();
        let report = run_with_device_action("ip link del loadstone0", &words);
        let classes: Vec<&str> = report["failures"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| text(row, "/class"))
            .collect();
        assert!(classes.contains(&"unreachable"), "{more:?}: {}", report["failures"]);
        let spent = number(&report, "/client/cpu_user_s") + number(&report, "/client/cpu_system_s");
        assert!(spent < 1.5, "{more:?}: {spent} s of CPU");
    }
}

/// Chooses two cores for `--cpus`, if available; by default one core is left to the server.
fn two_cores() -> String {
    let ours = crate::peek::own_cores().into_iter().take(2);
    ours.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

/// The prefix can be used once: the devices of all threads exist from the start.
#[test]
fn a_ramp_from_chosen_addresses_goes_on_with_more_threads() {
    let site = Site::start(&[("service", "5ms")]);
    if !is_available(&site) {
        return;
    }
    let ours = two_cores();
    for more in [
        &["--sources", "10.255.248.0/24"][..],
        &["--sources", "10.255.247.0/24", "--path", "rtt=1ms"],
    ] {
        let words = ["ramp", &site.url("/"), "--population", "--no-overload", "--stack", "own"];
        let spans = ["--cpus", &ours, "--hold", "500ms", "--settle", "100ms", "--json", "-"];
        let ran = run(&[&words[..], &spans, more].concat());
        each_step_has_its_threads(&ran.expect(&[0, 4]).json());
    }
}

/// The prefix is not divided: 31 clients fit one thread only, and two threads would have 29
/// addresses each.
#[test]
fn clients_keep_a_prefix_that_threads_can_divide() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let ours = two_cores();
    let words = ["compare", &site.url("/"), &site.url("/hw"), "--stack", "own"];
    let clients = ["--sources", "10.255.246.0/26", "--clients", "rtt=1ms:100%", "-c", "31"];
    let spans = ["-n", "62", "--cpus", &ours, "--blocks", "5", "--json", "-"];
    let report = run(&[&words[..], &clients, &spans].concat()).expect(&[0, 4]).json();
    for side in ["before", "after"] {
        assert_eq!(report[side]["runs"].as_array().map(Vec::len), Some(10), "{side}");
    }
}

/// Two targets in turns share one prefix, in either order.
#[test]
fn targets_with_other_threads_share_chosen_addresses() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ours = two_cores();
    let plan = |threads: &str, more: &[&str]| {
        let words = ["run", &site.url("/"), "--stack", "own", "--sources", "10.255.244.0/26"];
        let spans = ["--threads", threads, "--cpus", &ours, "-c", "2", "-n", "20", "--print-plan"];
        let printed = run(&[&words[..], &spans, more].concat()).expect(&[0]);
        let path = folder.path().join(format!("{threads}-{}.toml", more.len()));
        std::fs::write(&path, printed.stdout).expect("a plan");
        path.display().to_string()
    };
    let (one, two) = (plan("1", &[]), plan("2", &[]));
    let report = run(&["compare", &one, &two, "--force", "--blocks", "5", "--json", "-"]);
    let report = report.expect(&[0, 4]).json();
    for side in ["before", "after"] {
        assert_eq!(report[side]["runs"].as_array().map(Vec::len), Some(10), "{side}");
    }
    let behind = plan("1", &["--path", "rtt=1ms"]);
    let refused = run(&["compare", &one, &behind, "--force"]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    let text = "another target already uses the addresses of --sources, with another --stack, or with paths";
    assert!(refused.stderr.contains(text), "{refused:#?}");
}

/// The 31 clients of the first step use one thread, and the prefix is not divided for them; 32
/// clients could use two.
#[test]
fn later_clients_have_the_parts_of_the_first_step() {
    let site = Site::start(&[]);
    if !is_available(&site) {
        return;
    }
    let ours = two_cores();
    let words =
        ["ramp", &site.url("/"), "--population", "--from", "31", "--to", "32", "--step", "1"];
    let clients = ["--stack", "own", "--sources", "10.255.245.0/26", "--clients", "rtt=1ms:100%"];
    let spans = ["--cpus", &ours, "--hold", "500ms", "--settle", "100ms", "--json", "-"];
    let report = run(&[&words[..], &clients, &spans].concat()).expect(&[0, 4]).json();
    let steps = report["steps"].as_array().expect("steps");
    let levels: Vec<f64> = steps.iter().map(|step| number(step, "/level")).collect();
    assert_eq!(levels, [31.0, 32.0], "{}", report["ended_early"]);
    for step in steps {
        assert_eq!(whole(step, "/client/threads"), 1);
        assert!(whole(step, "/outcomes/succeeded") > 0);
    }
}

/// The steps of a ramp that doubles from one user; each has a thread per user, up to the number of
/// cores.
#[track_caller]
pub(crate) fn each_step_has_its_threads(ramp: &Value) {
    let steps = ramp["steps"].as_array().expect("steps");
    let levels: Vec<f64> = steps.iter().map(|step| number(step, "/level")).collect();
    assert!(levels.starts_with(&[1.0, 2.0, 4.0]), "{levels:?}: {}", ramp["ended_early"]);
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    let most = whole(&steps[2], "/client/threads");
    assert!(most >= cores.min(2), "{most} threads");
    for (step, users) in steps.iter().zip([1, 2, 4]) {
        assert_eq!(whole(step, "/client/threads"), most.min(users), "{users}");
        assert!(whole(step, "/outcomes/succeeded") > 0, "{users}");
    }
}
