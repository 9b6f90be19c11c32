//! `--stack kernel:batches`: the kernel's sockets by io_uring, compared with epoll.

use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{
    Scripted, Site, behind, failures, finish, keep, measured, outcomes, run, text, untested, whole,
};
use rustix::net::sockopt::{set_socket_linger, set_tcp_cork};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::Duration;

const RING: &str = "kernel:batches";

/// Both ways of doing I/O, with their names in the report.
fn ways(site: &Site) -> [(&'static str, &'static str); 2] {
    let tried = run(&["run", &site.url("/"), "--stack", RING, "-n", "1", "-c", "1"]);
    let fallback = tried.stderr.contains("--stack kernel:batches: uses epoll");
    assert!(!fallback || std::env::var_os("CI").is_none(), "{}", tried.stderr);
    let ring = if fallback { "epoll" } else { "kernel TCP by io_uring" };
    [(RING, ring), ("kernel", "epoll")]
}

#[test]
fn every_call_is_answered_on_kept_and_on_new_connections() {
    let site = Site::start(&[]);
    let url = site.url("/bytes/20000");
    for (stack, io) in ways(&site) {
        for more in [
            &["-c", "8"][..],
            &["-c", "4", "--calls", "1"],
            &["-c", "4", "--http", "1.0"],
            &["-c", "4", "--pipeline", "16"],
            &["-c", "6", "--idle", "50", "--threads", "2"],
            &["--rate", "1000/s"],
        ] {
            let before = site.served().requests;
            let words = ["--stack", stack, "-n", "400", &url];
            let report = measured(&[&words[..], more].concat(), &[0, 4]);
            assert_eq!(outcomes(&report), [400, 400, 0, 0, 0, 0], "{stack} {more:?}");
            // a scheduling policy may follow
            let found = text(&report, "/client/io").split(',').next();
            assert_eq!(found, Some(io), "{stack} {more:?}");
            // after the plain first call
            assert_eq!(site.served().requests - before, 401, "{stack} {more:?}");
        }
    }
}

/// Without `--stack`, the load and the length of the first response select the loop.
#[test]
fn a_closed_loop_with_many_connections_uses_io_uring_by_default() {
    let site = Site::start(&[]);
    let [(_, ring), (_, epoll)] = ways(&site);
    for (path, connections, io) in [
        ("/bytes/8192", "16", ring),
        ("/bytes/8193", "16", epoll),
        ("/bytes/13", "15", epoll),
        ("/bytes/13", "257", epoll),
    ] {
        let words = ["-c", connections, "--threads", "1", "-n", "600", &site.url(path)];
        let report = measured(&words, &[0, 4]);
        assert_eq!(outcomes(&report), [600, 600, 0, 0, 0, 0], "{words:?}");
        let found = text(&report, "/client/io").split(',').next();
        assert_eq!(found, Some(io), "{words:?}");
    }
}

#[test]
fn kept_tls_connections_use_io_uring_by_default() {
    let site = Site::start(&[]);
    let [(_, ring), (_, epoll)] = ways(&site);
    let server = TlsServer::start(&TlsOptions::default());
    let url = server.url("/");
    for (more, io) in [(&[][..], ring), (&["--calls", "1"], epoll), (&["--pipeline", "2"], epoll)] {
        let words =
            ["-c", "16", "--threads", "1", "-n", "160", "--insecure", "--http", "1.1", &url];
        let report = measured(&[&words[..], more].concat(), &[0, 4]);
        assert_eq!(outcomes(&report), [160, 160, 0, 0, 0, 0], "{more:?}");
        assert_eq!(text(&report, "/client/io").split(',').next(), Some(io), "{more:?}");
    }
}

/// Responses longer than a buffer, and longer than everything that the worker reads at once, mixed
/// with short ones.
#[test]
fn long_and_short_responses_arrive_complete() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let urls: String = ["1", "1500000", "16448", "40", "70000", "3"]
        .iter()
        .map(|bytes| format!("{}\n", site.url(&format!("/bytes/{bytes}"))))
        .collect();
    let list = keep(folder.path(), "list", &urls);
    for (stack, _) in ways(&site) {
        let words = ["--stack", stack, "-n", "240", "-c", "20", "--urls", &list, "--verify"];
        let report = measured(&words, &[0, 4]);
        assert_eq!(outcomes(&report), [240, 240, 0, 0, 0, 0], "{stack}");
        assert_eq!(whole(&report, "/verified/differing"), 0, "{stack}");
    }
}

/// An upload larger than any buffer, which the socket accepts in small parts.
#[test]
fn an_upload_larger_than_the_sockets_buffers_arrives_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let body: String = (0..300_000_u32).map(|number| format!("{number:09}\n")).collect();
    let file = keep(folder.path(), "body", &body);
    let site = Site::start(&[]);
    for (stack, _) in ways(&site) {
        let (tell, found) = channel();
        let server = Scripted::start(move |mut stream, _| {
            let mut all = Vec::new();
            let mut piece = [0; 10_000];
            loop {
                let head = all.windows(4).position(|four| four == b"\r\n\r\n");
                if head.is_some_and(|end| all.len() - end - 4 >= 3_000_000) {
                    break;
                }
                match stream.read(&mut piece) {
                    Ok(count @ 1..) => all.extend_from_slice(&piece[..count]),
                    _ => break,
                }
            }
            tell.send(all).ok();
            stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").ok();
        });
        let buffer = ["--send-buffer", "8192"];
        let words = ["--stack", stack, "-n", "4", "-c", "2", "--body-file", &file];
        let words = [&words[..], &buffer].concat();
        let report = measured(&[&words[..], &[&server.url("/")]].concat(), &[0, 4]);
        assert_eq!(outcomes(&report), [4, 4, 0, 0, 0, 0], "{stack}: {report:#}");
        for _ in 0..5 {
            let all = found.recv().unwrap();
            assert!(all.ends_with(body.as_bytes()), "{stack}: {} bytes", all.len());
        }
    }
}

/// A host that the first call is redirected to is added to the prepared hosts, and none is lost.
#[test]
fn a_redirect_to_another_host_goes_the_same_way() {
    let site = Site::start(&[]);
    let to = site.url("/hw");
    let server = Scripted::start(move |mut stream, _| {
        let mut piece = [0; 4_096];
        while let Ok(1..) = stream.read(&mut piece) {
            write!(stream, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {to}\r\n\r\n")
                .ok();
        }
    });
    for (stack, io) in ways(&site) {
        let words = ["--stack", stack, "-n", "6", "-c", "2", "--follow", &server.url("/")];
        let report = measured(&words, &[0, 4]);
        assert_eq!(outcomes(&report), [6, 6, 0, 0, 0, 0], "{stack}");
        assert_eq!(text(&report, "/client/io").split(',').next(), Some(io));
    }
}

/// Closes and resets are reported with the same names either way.
#[test]
fn closes_and_resets_are_distinguished_as_by_epoll() {
    let site = Site::start(&[]);
    let mut lines: Vec<Vec<(String, u64)>> = Vec::new();
    for (stack, _) in ways(&site) {
        for reset in [false, true] {
            let server = Scripted::start(move |stream, connection| {
                half_way(stream, connection, reset);
            });
            let words = ["--stack", stack, "-n", "20", "-c", "2", &server.url("/")];
            let report = measured(&words, &[0, 1, 3, 4]);
            assert_eq!(outcomes(&report), [20, 0, 20, 0, 0, 0], "{stack}: {report:#}");
            lines.push(failures(&report));
        }
    }
    assert_eq!(lines[0], lines[2]);
    assert_eq!(lines[1], lines[3]);
    assert_ne!(lines[0], lines[1], "an end is no reset");
}

/// The server sends half a response, then closes; it answers the first call completely.
fn half_way(mut stream: TcpStream, connection: usize, reset: bool) {
    let mut piece = [0; 4_096];
    if !matches!(stream.read(&mut piece), Ok(1..)) {
        return;
    }
    let full = if connection == 0 { "all of it!" } else { "half " };
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{full}").ok();
    if reset && connection > 0 {
        set_socket_linger(&stream, Some(Duration::ZERO)).ok();
    }
}

/// A server closes each connection in the segment of its second response, without announcing it.
/// The close is noticed with the response, so no request is sent after it.
#[test]
fn a_close_with_a_response_is_noticed_with_it() {
    let site = Site::start(&[]);
    for (stack, _) in ways(&site) {
        let (tell, asked) = channel();
        let server = Scripted::start(move |mut stream, connection| {
            let mut piece = [0; 4_096];
            for served in 0..2 {
                if !matches!(stream.read(&mut piece), Ok(1..)) {
                    return;
                }
                tell.send(connection).ok();
                // the end arrives with it
                set_tcp_cork(&stream, served == 1).ok();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").ok();
            }
        });
        let words = ["--stack", stack, "-n", "200", "-c", "4", &server.url("/")];
        let report = measured(&words, &[0, 4]);
        assert_eq!(outcomes(&report), [200, 200, 0, 0, 0, 0], "{stack}");
        // the third call of a connection was not written to it: each was sent once
        assert_eq!(asked.try_iter().filter(|connection| *connection > 0).count(), 200, "{stack}");
        // two calls each, except for the last ones of the four users
        let established = whole(&report, "/connections/established");
        assert!((100..=104).contains(&established), "{stack}: {established}");
    }
}

#[test]
fn a_thousand_connections_are_served() {
    // the server is in this process
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits }).unwrap();
    let site = Site::start(&[]);
    for (stack, _) in ways(&site) {
        let words = ["--stack", stack, "-n", "3000", "-c", "1000", &site.url("/bytes/100")];
        let report = measured(&words, &[0, 4]);
        assert_eq!(outcomes(&report), [3_000, 3_000, 0, 0, 0, 0], "{stack}");
        assert_eq!(whole(&report, "/connections/attempted"), 1_000, "{stack}");
    }
}

#[test]
fn tls_and_http2_work_over_it() {
    let site = Site::start(&[]);
    for (stack, _) in ways(&site) {
        let server = TlsServer::start(&TlsOptions::default());
        let words = ["--stack", stack, "-n", "40", "-c", "4", "--calls", "5", "--insecure"];
        let report = measured(&[&words[..], &[&server.url("/")]].concat(), &[0, 4]);
        assert_eq!(outcomes(&report), [40, 40, 0, 0, 0, 0], "{stack}");
        let url = site.url("/bytes/5000");
        let words = ["--stack", stack, "-n", "100", "-c", "3", "--http", "2", "--streams", "7"];
        let report = measured(&[&words[..], &[&url]].concat(), &[0, 4]);
        assert_eq!(outcomes(&report), [100, 100, 0, 0, 0, 0], "{stack}");
    }
}

/// A system call filter that refuses io_uring_setup, like a container's profile.
const FORBIDDEN: &str = r"
import ctypes, os, struct, sys
EPERM_FOR_425 = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *row) for row in EPERM_FOR_425))
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
rows = Filter(len(EPERM_FOR_425), ctypes.cast(code, ctypes.c_void_p))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(rows)) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn a_refusal_by_the_kernel_is_noted() {
    let site = Site::start(&[]);
    let [(_, io), _] = ways(&site);
    let mut command = behind(&["python3", "-c", FORBIDDEN]);
    command.args(["run", "--json", "-", "--stack", RING, "-n", "20", &site.url("/hw")]);
    let ran = finish(command, b"");
    if io == "epoll" || ran.stderr.contains("Error: ") {
        untested(&format!("no filter of system calls is to be had: {}", ran.stderr));
        return;
    }
    let ran = ran.expect(&[0, 4]);
    let note = "--stack kernel:batches: uses epoll: this machine does not allow \
                io_uring (the setting kernel.io_uring_disabled, or the profile of a container)\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(outcomes(&report), [20, 20, 0, 0, 0, 0]);
    assert!(text(&report, "/client/io").starts_with("epoll"), "{}", report["client"]);
    // the default falls back to epoll without a note
    let mut command = behind(&["python3", "-c", FORBIDDEN]);
    command.args([
        "run",
        "--json",
        "-",
        "-c",
        "16",
        "--threads",
        "1",
        "-n",
        "20",
        &site.url("/hw"),
    ]);
    let ran = finish(command, b"").expect(&[0, 4]);
    assert!(!ran.stderr.contains("io_uring"), "{}", ran.stderr);
    assert!(text(&ran.json(), "/client/io").starts_with("epoll"), "{}", ran.stdout);
}

/// The setting may be in a plan file; datagrams do not use io_uring.
#[cfg(feature = "h3")]
#[test]
fn http3_uses_epoll_with_a_note() {
    let site = crate::support::quic::QuicSite::start();
    let url = site.url("/hw");
    let words = ["run", "--json", "-", "--http", "3", "--ca", &site.ca, "--stack", RING, "-n", "9"];
    let ran = run(&[&words[..], &[&url]].concat()).expect(&[0, 4]);
    assert!(ran.stderr.contains("uses epoll: HTTP/3 uses UDP\n"), "{}", ran.stderr);
    let report: Value = ran.json();
    assert_eq!(outcomes(&report), [9, 9, 0, 0, 0, 0]);
    assert!(text(&report, "/client/io").starts_with("epoll"), "{}", report["client"]);
}
