//! `--stack own:xdp=DEVICE`: the program's own TCP over a veth whose other end is in another
//! network, where the built-in site serves.

use crate::own_stack::each_step_has_its_threads;
use crate::support::{Ran, Scripted, behind, finish, program, text, untested, whole};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Two networks connected by a veth pair: ls0 with 10.80.0.1 here, ls1 with 10.80.0.2 at the far
/// end.
struct Wire {
    site: Child,
    /// Processes that keep the network namespaces alive: the client's, then the server's.
    holders: [Child; 2],
    port: String,
}

/// Returns the first output line of a program, which shows that it is ready.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("its output is piped");
    BufReader::new(out).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

/// Creates a network that ends with its process.
fn network() -> Option<Child> {
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", "ip link set lo up && echo there && exec cat"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    if first_line(&mut child) == "there" {
        return Some(child);
    }
    child.wait().ok();
    None
}

impl Wire {
    /// Creates the wire; `None`, with a message, if this user may not create networks or use
    /// AF_XDP.
    fn create_wire(link: &str) -> Option<Wire> {
        let (Some(here), Some(there)) = (network(), network()) else {
            untested("AF_XDP is not tested: a network of its own needs root");
            return None;
        };
        let holders = [here, there];
        let mut site = behind(&["nsenter", &Wire::net(&holders[1]), "--"]);
        let links = format!(
            "ip link add ls0 {link} type veth peer name ls1 {link} netns {0}
             ip addr add 10.80.0.1/24 dev ls0; ip link set ls0 up
             nsenter --net=/proc/{0}/ns/net sh -c 'ip addr add 10.80.0.2/24 dev ls1; ip link set ls1 up'",
            holders[1].id()
        );
        let laid = Wire::within(&holders[0], &links);
        assert_eq!(laid.code, 0, "{laid:#?}");
        site.args(["site", "--listen", "0.0.0.0:0"]).stdout(Stdio::piped());
        let mut site = site.stderr(Stdio::null()).spawn().unwrap();
        let port = first_line(&mut site).rsplit_once(':').unwrap().1.to_owned();
        let wire = Wire { site, holders, port };
        let tried = wire.run(&["-n", "1", &wire.url("/hw")]);
        if tried.code == 2 {
            let reason = format!("AF_XDP is not tested: {}", tried.stderr.trim_end());
            untested(&reason);
            return None;
        }
        Some(wire)
    }

    fn net(holder: &Child) -> String {
        format!("--net=/proc/{}/ns/net", holder.id())
    }

    fn within(holder: &Child, script: &str) -> Ran {
        let mut command = behind(&["nsenter", &Wire::net(holder), "sh", "-c", script, "sh"]);
        command.args(["--version"]);
        finish(command, b"")
    }

    /// Returns the output of a script in the client's network.
    fn here(&self, script: &str) -> String {
        Wire::within(&self.holders[0], script).stdout
    }

    /// Returns the output of a script in the server's network.
    fn there(&self, script: &str) -> String {
        Wire::within(&self.holders[1], script).stdout
    }

    fn url(&self, path: &str) -> String {
        format!("http://10.80.0.2:{}{path}", self.port)
    }

    /// Returns a command for `loadstone run` in the client's network.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = behind(&["nsenter", &Wire::net(&self.holders[0]), "--"]);
        command.arg("run").args(words);
        command
    }

    /// Runs over ls0, from a free part of its network.
    fn run(&self, words: &[&str]) -> Ran {
        let stack = ["--stack", "own:xdp=ls0", "--sources", "10.80.0.128/26"];
        finish(self.command(&[&stack[..], words].concat()), b"")
    }

    fn measured(&self, mode: &str, words: &[&str]) -> Value {
        let stack = format!("own:xdp=ls0{mode}");
        let own = ["--json", "-", "--stack", &stack, "--sources", "10.80.0.128/26"];
        let ran = finish(self.command(&[&own[..], words].concat()), b"");
        ran.expect(&[0, 4]).json()
    }

    /// Returns whether a program is attached to ls0, and other properties of it.
    fn state(&self) -> (bool, String) {
        let found = self.here("ip -d link show ls0");
        (found.contains(" xdp"), found.replace(" xdpgeneric", ""))
    }

    /// Polls until a program is attached to ls0, or none is; each poll runs a program.
    fn await_program(&self, attached: bool) {
        let seen = (0..2_000).any(|_| self.state().0 == attached);
        assert!(seen, "a program is attached: not {attached}, after 2,000 looks");
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for child in std::iter::once(&mut self.site).chain(&mut self.holders) {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

const MODES: [(&str, &str); 2] = [
    (",mode=generic", "own TCP over AF_XDP, generic"),
    (",mode=native", "own TCP over AF_XDP, native"),
];

#[test]
fn every_call_is_answered_past_the_kernel() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    for (mode, io) in MODES {
        for (more, opens) in [(&["-c", "8"][..], 8), (&["-c", "8", "--calls", "1"], 200)] {
            let words = ["-n", "200", &wire.url("/bytes/2000")];
            let report = wire.measured(mode, &[&words[..], more].concat());
            assert_eq!(whole(&report, "/outcomes/succeeded"), 200, "{mode} {more:?}");
            assert_eq!(whole(&report, "/stack/established"), opens, "{mode} {more:?}");
            assert_eq!(text(&report, "/client/io"), io);
        }
    }
    // our stack answered each of them, as the server's kernel shows
    let mac = wire.here("ip -br link show ls0");
    let mac = mac.split_whitespace().nth(2).unwrap();
    let known = wire.there("ip neigh show dev ls1");
    let ours = known.lines().filter(|line| line.contains(mac)).count();
    assert!(ours >= 40, "{known}");
}

/// Packets of several frames in, our segments out; both with MTUs below and above a frame.
#[test]
fn long_bodies_are_complete_both_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = folder.path().join("body");
    let bytes: Vec<u8> = (0..700_000_u32).map(|number| (number * 31 / 7) as u8).collect();
    std::fs::write(&body, bytes).expect("a file");
    let body = body.to_str().expect("a path in UTF-8");
    for link in ["numtxqueues 1 numrxqueues 1", "mtu 9000 numtxqueues 4 numrxqueues 4"] {
        let Some(wire) = Wire::create_wire(link) else { return };
        for (mode, _) in MODES {
            let (long, echo) = (wire.url("/bytes/2000000"), wire.url("/echo"));
            for words in [&["-n", "8", &long][..], &["-n", "8", "--body-file", body, &echo]] {
                let report = wire.measured(mode, &[words, &["-c", "4", "--verify"]].concat());
                assert_eq!(whole(&report, "/outcomes/succeeded"), 8, "{link} {mode} {words:?}");
                assert_eq!(whole(&report, "/verified/differing"), 0, "{link} {mode} {words:?}");
                assert_eq!(whole(&report, "/stack/refused"), 0, "{link} {mode} {words:?}");
            }
        }
        let errors = wire.run(&["-n", "1", &wire.url("/hw")]).stderr;
        let queues = if link.contains("mtu") { "all 4 queues" } else { "1 queue" };
        assert!(errors.contains(&format!("by AF_XDP on ls0 (generic mode, {queues}")), "{errors}");
    }
}

#[test]
fn a_thousand_connections_are_open_at_once() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    for (mode, _) in MODES {
        let report = wire.measured(mode, &["-c", "1000", "-n", "3000", &wire.url("/hw")]);
        assert_eq!(whole(&report, "/outcomes/succeeded"), 3_000, "{mode}");
        assert_eq!(whole(&report, "/connections/peak"), 1_000, "{mode}");
        let lost = whole(&report, "/stack/refused") + whole(&report, "/stack/missed");
        assert_eq!(lost, 0, "{mode}: {}", report["stack"]);
    }
}

#[test]
fn the_kernels_traffic_goes_on_and_a_killed_run_leaves_nothing() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    wire.await_program(false);
    let before = wire.state();
    let url = wire.url("/hw");
    let own =
        ["--stack", "own:xdp=ls0", "--sources", "10.80.0.128/26", "-d", "50s", "-c", "2", &url];
    let mut command = wire.command(&own);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut under_way = command.spawn().unwrap();
    wire.await_program(true);
    // ARP for the kernel's own address too
    wire.here("ip neigh flush dev ls0");
    wire.there("ip neigh flush dev ls1");
    let words = ["--json", "-", "--stack", "kernel", "-n", "50", "-c", "5", &url];
    let kernel = finish(wire.command(&words), b"").expect(&[0, 4]).json();
    assert_eq!(whole(&kernel, "/outcomes/succeeded"), 50);
    // the second program gets an error
    let second = wire.run(&["-n", "1", &url]);
    assert_eq!(second.code, 2, "{second:#?}");
    assert!(
        second.stderr.contains("queue 0 of ls0 is in use by another AF_XDP socket"),
        "{second:#?}"
    );
    assert!(under_way.try_wait().unwrap().is_none(), "it goes on");
    under_way.kill().unwrap();
    under_way.wait().unwrap();
    wire.await_program(false);
    assert_eq!(wire.state(), before);
    assert_eq!(whole(&wire.measured("", &["-n", "5", &url]), "/outcomes/succeeded"), 5);
}

/// Each thread has a part of the addresses, and a socket on each queue: packets for its part arrive
/// through any queue.
#[test]
fn threads_have_addresses_and_sockets_of_their_own() {
    for link in ["numtxqueues 1 numrxqueues 1", "numtxqueues 4 numrxqueues 4"] {
        let Some(wire) = Wire::create_wire(link) else { return };
        for (mode, _) in MODES {
            for threads in ["2", "3"] {
                let (url, long) = (wire.url("/bytes/2000"), wire.url("/bytes/300000"));
                for (url, calls) in [(&url, "3000"), (&long, "60")] {
                    let words =
                        ["--threads", threads, "-c", "30", "--calls", "10", "-n", calls, url];
                    let report = wire.measured(mode, &words);
                    let done = whole(&report, "/outcomes/succeeded");
                    assert_eq!(done.to_string(), calls, "{link} {mode} {words:?}");
                    assert_eq!(whole(&report, "/stack/refused"), 0, "{link} {mode} {words:?}");
                    // a busy server repeats segments, also of connections that are closed by then
                    let repeated = whole(&report, "/stack/duplicate");
                    assert!(whole(&report, "/stack/resets_sent") <= repeated, "{report}");
                }
            }
        }
        let errors = wire.run(&["--threads", "2", "-n", "2", &wire.url("/hw")]).stderr;
        assert!(errors.contains(", 2 threads, each with its own addresses)"), "{errors}");
        // 64 addresses in parts of 32, whose first and last are unused
        assert!(errors.contains("come from 10.80.0.129 to 10.80.0.190, by"), "{errors}");
        let few = finish(
            wire.command(&[
                "--stack",
                "own:xdp=ls0",
                "--sources",
                "10.80.0.248/30",
                "--threads",
                "2",
                &wire.url("/hw"),
            ]),
            b"",
        );
        assert_eq!(few.code, 2, "{few:#?}");
        assert!(
            few.stderr.contains("--sources: 4 addresses are too few for 2 threads"),
            "{few:#?}"
        );
    }
}

/// A prefix outside the link, with a route back through one of its addresses: the server has one
/// neighbor instead of hundreds. The server's own address is behind a gateway.
#[test]
fn routes_and_gateways_are_followed() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    wire.there(
        "ip route add 10.99.0.0/24 via 10.99.0.1 dev ls1 onlink; ip addr add 192.0.2.5/32 dev lo",
    );
    let far = format!("http://192.0.2.5:{}/hw", wire.port);
    let run = |stack: &str| {
        let words = ["--json", "-", "--stack", stack, "--sources", "10.99.0.0/24", "-n", "40"];
        // a thread has a neighbor at the server: its own first address
        let more = ["-c", "9", "--threads", "1", &far];
        finish(wire.command(&[&words[..], &more].concat()), b"")
    };
    let wrong = run("own:xdp=ls0,gateway=10.80.0.77");
    assert_eq!(wrong.code, 2, "{wrong:#?}");
    let text = "--stack own:xdp: 10.80.0.77, the next hop to 192.0.2.5, does not respond to ARP on ls0; \
                fix: check that it is up and has a route back to 10.99.0.0/24";
    assert!(wrong.stderr.contains(text), "{wrong:#?}");
    let given = run("own:xdp=ls0,gateway=10.80.0.2").expect(&[0, 4]).json();
    assert_eq!(whole(&given, "/outcomes/succeeded"), 40);
    wire.here("ip route add 192.0.2.0/24 via 10.80.0.2");
    let routed = run("own:xdp=ls0").expect(&[0, 4]).json();
    assert_eq!(whole(&routed, "/outcomes/succeeded"), 40);
    let known = wire.there("ip neigh show dev ls1");
    assert_eq!(known.matches("10.99.0.").count(), 1, "{known}");
}

/// Starts the built-in site in the other network on IPv6 addresses; returns its port.
fn site_of_ipv6(wire: &Wire) -> (Child, String) {
    wire.here("ip addr add fd00:80::1/64 dev ls0 nodad");
    wire.there("ip addr add fd00:80::2/64 dev ls1 nodad; ip addr add fd00:5::5/128 dev lo nodad");
    let mut site = behind(&["nsenter", &Wire::net(&wire.holders[1]), "--"]);
    site.args(["site", "--listen", "[::]:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut site = site.spawn().unwrap();
    let port = first_line(&mut site).rsplit_once(':').unwrap().1.to_owned();
    (site, port)
}

/// Calls over IPv6 with our own ND: long bodies both ways, threads, gateways, and obstacles.
#[test]
fn ipv6_goes_the_same_way() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    let (mut site, port) = site_of_ipv6(&wire);
    let url = |address: &str, path: &str| format!("http://[{address}]:{port}{path}");
    let run = |stack: &str, sources: &str, words: &[&str]| {
        let own = ["--json", "-", "--stack", stack, "--sources", sources];
        finish(wire.command(&[&own[..], words].concat()), b"")
    };
    let part = "fd00:80::ff00:0/112";
    for (mode, io) in MODES {
        let stack = format!("own:xdp=ls0{mode}");
        let (near, long) = (url("fd00:80::2", "/bytes/2000"), url("fd00:80::2", "/bytes/700000"));
        for (url, words) in [
            (&near, &["-n", "200", "--threads", "2", "--calls", "1"][..]),
            (&long, &["-n", "8", "--verify"]),
        ] {
            let words = [words, &["-c", "8", url]].concat();
            let report = run(&stack, part, &words).expect(&[0, 4]).json();
            let done = whole(&report, "/outcomes/succeeded");
            assert_eq!(done.to_string(), words[1], "{mode} {words:?}");
            assert_eq!(whole(&report, "/stack/resets_sent"), 0, "{mode}: {}", report["stack"]);
            assert_eq!(text(&report, "/client/io"), io);
        }
    }
    // our stack answered each of them, as the server's kernel shows
    let known = wire.there("ip -6 neigh show dev ls1");
    assert!(known.matches("fd00:80::ff00:").count() >= 40, "{known}");
    // another prefix, with a route back through one of its addresses; the route to the server uses
    // a link-local address
    wire.there("ip -6 route add fd00:99::/64 via fd00:99::1 dev ls1 onlink");
    let local = wire.there("ip -6 -o addr show dev ls1 scope link");
    let local = local.split_whitespace().nth(3).unwrap().trim_end_matches("/64");
    let far = url("fd00:5::5", "/hw");
    let stack = format!("own:xdp=ls0,gateway={local}");
    let given = run(&stack, "fd00:99::/64", &["-n", "40", "-c", "9", "--threads", "1", &far])
        .expect(&[0, 4])
        .json();
    assert_eq!(whole(&given, "/outcomes/succeeded"), 40);
    let known = wire.there("ip -6 neigh show dev ls1");
    assert_eq!(known.matches("fd00:99::").count(), 1, "{known}");
    for (sources, url, found) in [
        (part, url("fd00:80::9", "/"), "fd00:80::9 does not respond to ND on ls0; fix: "),
        ("fd00:80::/112", far.clone(), "fd00:80::1 is an address of this host; fix: "),
        (part, url("::1", "/"), "::1 is an address of this host, which packets sent by ls0 cannot"),
        (part, wire.url("/hw"), "has no IPv6 address, but its"),
        ("10.80.0.128/26", far, "has no IPv4 address, but its"),
    ] {
        let ran = run("own:xdp=ls0", sources, &["-n", "1", &url]);
        assert_eq!(ran.code, 2, "{found}\n{ran:#?}");
        assert!(ran.stderr.contains(found), "{found}\n{ran:#?}");
    }
    wire.there("ip addr add fd00:80::ff00:7/64 dev ls1 nodad");
    let taken = run("own:xdp=ls0", part, &["-n", "1", &url("fd00:80::2", "/")]);
    assert_eq!(taken.code, 2, "{taken:#?}");
    assert!(taken.stderr.contains("fd00:80::ff00:7 is in use on the link of ls0: "), "{taken:#?}");
    ipv6_over_tun(&wire, &port);
    site.kill().unwrap();
    site.wait().unwrap();
}

/// The same calls over TUN devices, in the server's network.
fn ipv6_over_tun(wire: &Wire, port: &str) {
    let run = |words: &[&str]| {
        let mut command = behind(&["nsenter", &Wire::net(&wire.holders[1]), "--"]);
        command.args(["run", "--json", "-", "--sources", "fd00:7::/64"]).args(words);
        finish(command, b"")
    };
    let url = |path: &str| format!("http://[fd00:5::5]:{port}{path}");
    if run(&["--stack", "own", "-n", "1", &url("/hw")]).stderr.contains("/dev/net/tun") {
        untested("IPv6 over TUN devices is not tested: there is no /dev/net/tun");
        return;
    }
    for stack in ["own", "own:batches"] {
        for (words, path) in [
            (["-n", "200", "--threads", "2", "--calls", "1"], "/bytes/2000"),
            (["-n", "8", "--threads", "1", "--calls", "4"], "/bytes/700000"),
        ] {
            let url = url(path);
            let words = [&words[..], &["--stack", stack, "-c", "8", "--verify", &url]].concat();
            let report = run(&words).expect(&[0, 4]).json();
            let done = whole(&report, "/outcomes/succeeded");
            assert_eq!(done.to_string(), words[1], "{words:?}");
            assert_eq!(whole(&report, "/stack/resets_sent"), 0, "{}", report["stack"]);
        }
    }
    let near = run(&["--stack", "own", "-n", "1", &format!("http://[::1]:{port}/")]);
    assert_eq!(near.code, 2, "{near:#?}");
    let text = "leads to ::1, where Linux takes packets from the loopback alone; let the server";
    assert!(near.stderr.contains(text), "{near:#?}");
}

/// Runs code on a separate thread whose sockets are in a network.
fn in_network<T: Send + 'static>(holder: &Child, work: impl FnOnce() -> T + Send + 'static) -> T {
    let network = std::fs::File::open(format!("/proc/{}/ns/net", holder.id())).unwrap();
    let thread = std::thread::spawn(move || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    });
    thread.join().unwrap()
}

/// A host that is unknown until a response names it: it is resolved when the first packet is sent,
/// which waits for the answer.
#[test]
fn a_discovered_host_is_resolved() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    wire.there("ip addr add 10.80.0.3/24 dev ls1");
    let onward = format!("http://10.80.0.3:{}/hw", wire.port);
    let server = in_network(&wire.holders[1], move || {
        Scripted::on("10.80.0.2:0", move |mut stream, _| {
            let mut piece = [0; 4_096];
            while let Ok(1..) = stream.read(&mut piece) {
                let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ";
                stream.write_all(format!("{head}{onward}\r\n\r\n").as_bytes()).ok();
            }
        })
    });
    let report = wire.measured("", &["-n", "20", "-c", "4", "--follow", &server.url("/")]);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 20);
    // the first packet of all was not lost
    assert_eq!(whole(&report, "/stack/syn_retransmitted"), 0, "{}", report["stack"]);
    // a connection signals its end
    in_network(&wire.holders[1], move || drop(server));
}

/// Server in the other network, at this address, that acts at the second request; the first request
/// is not from the run.
fn device_action_server(
    wire: &Wire,
    at: &'static str,
    action: impl Fn(&TcpStream) + Send + Sync + 'static,
) -> Scripted {
    in_network(&wire.holders[1], move || {
        let asked = AtomicU32::new(0);
        Scripted::on(at, move |mut stream, _| {
            let mut piece = [0; 4_096];
            while let Ok(1..) = stream.read(&mut piece) {
                if asked.fetch_add(1, Ordering::Relaxed) == 1 {
                    action(&stream);
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").ok();
            }
        })
    })
}

/// Runs a script in the network of the calling thread.
fn shell(script: &str) {
    let done = Command::new("sh").args(["-c", script]).status().unwrap();
    assert!(done.success(), "{script}");
}

/// Another host takes one of our addresses during the run: the first of two without a connection.
/// The query for the kernel's address here comes from there, and does not concern ours.
fn address_taken_during_run(
    wire: &Wire,
    server: &'static str,
    [sources, near, one, other]: [&'static str; 4],
    add: &'static str,
) {
    let server = device_action_server(wire, server, move |stream| {
        let ours = stream.peer_addr().unwrap().ip().to_string();
        let taken = if ours == one { other } else { one };
        shell(&format!("ip addr add {taken}{add} dev ls1; ip neigh flush dev ls1"));
        let socket = UdpSocket::bind((taken, 0)).unwrap();
        socket.send_to(b"?", (near, 9)).unwrap();
    });
    let own = ["--stack", "own:xdp=ls0", "--sources", sources, "-n", "20", "-c", "1"];
    let ran = finish(wire.command(&[&own[..], &[&server.url("/")]].concat()), b"");
    in_network(&wire.holders[1], move || drop(server));
    let mac = wire.there("ip -br link show ls1");
    let mac = mac.split_whitespace().nth(2).unwrap();
    let text = format!("is in use by {mac} as well: the server's packets");
    let flat: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert!(flat.join(" ").contains(&text), "{text}\n{ran:#?}");
}

#[test]
fn an_address_conflict_during_a_run_is_reported() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    let part = ["10.80.0.128/26", "10.80.0.1", "10.80.0.140", "10.80.0.141"];
    address_taken_during_run(&wire, "10.80.0.2:0", part, "/24");
    wire.here("ip addr add fd00:80::1/64 dev ls0 nodad");
    wire.there("ip addr add fd00:80::2/64 dev ls1 nodad");
    let part = ["fd00:80::ff00:0/112", "fd00:80::1", "fd00:80::ff00:7", "fd00:80::ff00:8"];
    address_taken_during_run(&wire, "[fd00:80::2]:0", part, "/64 nodad");
}

/// The link goes down: packets that the device then drops are counted.
#[test]
fn packets_that_the_device_drops_are_counted() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    let server = device_action_server(&wire, "10.80.0.2:0", |_| shell("ip link set ls1 down"));
    let words = ["--json", "-", "--stack", "own:xdp=ls0", "--sources", "10.80.0.128/26"];
    let url = server.url("/");
    let more = ["-n", "1", "-c", "1", "--timeout", "300ms", &url];
    let ran = finish(wire.command(&[&words[..], &more].concat()), b"");
    wire.there("ip link set ls1 up");
    in_network(&wire.holders[1], move || drop(server));
    assert!(whole(&ran.json(), "/stack/refused") > 0, "{ran:#?}");
}

/// Actions on both ends before the run; the device, the prefix, the URL (empty: the site's), and
/// the message.
const BAD: &[[&str; 6]] = &[
    ["", "", "none0", "10.80.0.128/26", "", "no network device none0 exists"],
    ["", "", "lo", "10.80.0.128/26", "", "lo is the loopback device, whose packets never"],
    ["", "", "ls0", "10.80.0.0/26", "", "10.80.0.1 is an address of this host"],
    [
        "",
        "",
        "ls0",
        "10.80.0.128/26",
        "http://10.80.0.1:9/",
        "10.80.0.1 is an address of this host, which packets sent by ls0 cannot reach",
    ],
    ["", "", "ls0", "10.80.0.128/26", "http://10.80.0.9:9/", "10.80.0.9 does not respond to ARP"],
    [
        "",
        "ip addr add 10.80.0.140/24 dev ls1",
        "ls0",
        "10.80.0.128/26",
        "",
        "10.80.0.140 is in use on the link of ls0: ",
    ],
    [
        "ip tuntap add t0 mode tun; ip link set t0 up",
        "",
        "t0",
        "10.80.0.128/26",
        "",
        "t0 is not an Ethernet device; fix: ",
    ],
    [
        "ip link set ls0 mtu 500",
        "",
        "ls0",
        "10.80.0.128/26",
        "",
        "packets of ls0 have at most 500 bytes, but our own TCP needs 576; fix: ",
    ],
    ["ip link set ls0 mtu 1500 down", "", "ls0", "10.80.0.128/26", "", "ls0 is down; fix: "],
];

/// One sentence each, exit code 2, and an unchanged device.
#[test]
fn failures_are_reported_with_a_fix() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    let near = wire.url("/hw");
    for [here, there, device, sources, url, found] in BAD {
        wire.here(here);
        wire.there(there);
        let url = if url.is_empty() { &near } else { *url };
        let stack = format!("own:xdp={device}");
        let words = ["--stack", &stack, "--sources", sources, "-n", "1", url];
        let ran = finish(wire.command(&words), b"");
        assert_eq!(ran.code, 2, "{found}\n{ran:#?}");
        assert!(ran.stderr.contains(found) && ran.stderr.contains("; fix: "), "{found}\n{ran:#?}");
        wire.await_program(false);
    }
}

/// Checks that need no device.
#[test]
fn requirements_of_af_xdp_are_reported() {
    let url = "http://10.80.0.2:9/";
    for (words, found) in [
        (&["--stack", "own:xdp=ls0"][..], "--stack own:xdp=ls0 needs --sources PREFIX: "),
        (&["--stack", "own:xdp"], "\"own:xdp\" is not a stack: it has no =DEVICE; write "),
    ] {
        let ran = finish(program(&[&["run", url][..], words].concat()), b"");
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(found), "{ran:#?}");
    }
    if !rustix::process::geteuid().is_root() {
        untested("AF_XDP without rights is not tested: only root can do without them");
        return;
    }
    // the privilege to load programs is missing
    let without = ["setpriv", "--bounding-set=-bpf,-sys_admin", "--inh-caps=-bpf"];
    let script =
        "ip link add ls0 type veth peer name ls1 && ip link set ls0 up && exec \"$0\" \"$@\"";
    let mut command =
        behind(&[&["unshare", "-n"][..], &["sh", "-c"], &[script], &without].concat());
    command.args(["run", url, "--stack", "own:xdp=ls0", "--sources", "10.9.0.0/24", "-n", "1"]);
    let ran = finish(command, b"");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr.contains(
            "--stack own:xdp: AF_XDP requires root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"
        ),
        "{ran:#?}"
    );
}

/// Both sides of a comparison exist at once and share the queues of the device.
#[test]
fn two_targets_share_the_device() {
    let Some(wire) = Wire::create_wire("") else { return };
    let mut command = behind(&["nsenter", &Wire::net(&wire.holders[0]), "--"]);
    command.args(["compare", &wire.url("/hw"), &wire.url("/bytes/100"), "--stack", "own:xdp=ls0"]);
    command.args([
        "--sources",
        "10.80.0.128/26",
        "-n",
        "20",
        "-c",
        "2",
        "--blocks",
        "5",
        "--json",
        "-",
    ]);
    let ran = finish(command, b"");
    assert!([0, 4].contains(&ran.code), "{ran:#?}");
    let document = ran.json();
    for side in ["before", "after"] {
        assert_eq!(document[side]["runs"].as_array().map(Vec::len), Some(10), "{side}");
    }
}

/// The first step needs one thread and later steps all threads. The device is shared, so it exists
/// for all threads from the start. A server that takes 5 ms per call in turn does not respond
/// faster to more users.
#[test]
fn a_ramp_goes_on_with_more_threads() {
    let Some(wire) = Wire::create_wire("numtxqueues 1 numrxqueues 1") else { return };
    let mut command = behind(&["nsenter", &Wire::net(&wire.holders[0]), "--"]);
    command.args(["ramp", &wire.url("/sleep?0.005"), "--population", "--no-overload"]);
    command.args(["--stack", "own:xdp=ls0", "--sources", "10.80.0.128/26"]);
    command.args(["--hold", "500ms", "--settle", "100ms", "--json", "-"]);
    each_step_has_its_threads(&finish(command, b"").expect(&[0, 4]).json());
}
