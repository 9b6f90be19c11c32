//! Opening, use, timing and closing of connections, as seen by the other end.

use crate::peek;
use crate::support::http::{Recorder, read_request, response};
use crate::support::proxy::Proxy;
use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{
    Scripted, Site, failures, free_port, in_process, measure, measured, number, outcomes, process,
    program, run, text, whole,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::time::Duration;

/// Serves the plain first call.
fn serve_first(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    while read_request(&mut reader).is_some() {
        let mut writer = stream;
        writer.write_all(&response(200, "", "hello")).unwrap();
    }
}

#[test]
fn calls_sets_how_many_share_a_connection() {
    let server = Recorder::plain();
    let url = server.url("/");
    let json = measure(&["-c", "1", "-n", "20", "--calls", "5", &url]);
    assert_eq!(whole(&json, "/connections/attempted"), 4);
    assert_eq!(number(&json, "/calls_per_connection"), 5.0);
    let mut uses: BTreeMap<usize, usize> = BTreeMap::new();
    for request in server.requests() {
        *uses.entry(request.connection).or_default() += 1;
    }
    assert_eq!(uses.into_values().collect::<Vec<_>>(), [5; 4]);
}

/// Reads `count` requests; returns whether all of them arrived.
fn take(reader: &mut BufReader<&TcpStream>, count: usize) -> bool {
    (0..count).all(|_| read_request(reader).is_some())
}

#[test]
fn a_pipeline_keeps_its_depth_and_a_group_goes_out_together() {
    // the server holds every response back until it has four requests, then frees one place: a
    // pipeline sends the next request at once, a group only after all four are answered
    for (option, refills) in [("--pipeline", true), ("--group", false)] {
        let (tell, found) = mpsc::channel();
        let server = Scripted::start(move |stream, connection| {
            if connection == 0 {
                return serve_first(&stream);
            }
            let mut reader = BufReader::new(&stream);
            let mut writer = &stream;
            let all = take(&mut reader, 4) && reader.buffer().is_empty();
            writer.write_all(&response(200, "", "one")).unwrap();
            let patience = Duration::from_millis(if refills { 30_000 } else { 300 });
            stream.set_read_timeout(Some(patience)).unwrap();
            let fifth = read_request(&mut reader).is_some();
            tell.send((all, fifth)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            for _ in 0..3 {
                writer.write_all(&response(200, "", "more")).unwrap();
            }
            take(&mut reader, 4 - usize::from(fifth));
            for _ in 0..4 {
                writer.write_all(&response(200, "", "last")).unwrap();
            }
            read_request(&mut reader);
        });
        let json = measure(&["-c", "1", "-n", "8", option, "4", &server.url("/")]);
        assert_eq!(found.recv().unwrap(), (true, refills), "{option}");
        assert_eq!(outcomes(&json), [8, 8, 0, 0, 0, 0], "{option}");
        assert_eq!(whole(&json, "/connections/attempted"), 1);
        assert_eq!(whole(&json, "/concurrency/peak"), 4, "{option}");
    }
}

#[test]
fn a_call_that_is_never_answered_is_timed_out_at_its_full_age() {
    let site = Site::start(&[("never-answer", "")]);
    let url = site.url("/hw");
    let json = measured(&["-c", "2", "-n", "4", "--timeout", "300ms", &url], &[1]);
    assert_eq!(outcomes(&json), [4, 0, 0, 4, 0, 0]);
    assert_eq!(failures(&json), [("client-timo".to_owned(), 4)]);
    assert_eq!(whole(&json, "/response_time_s/count"), 4);
    // three digits: a histogram's step below the limit
    assert!(number(&json, "/response_time_s/min") >= 0.2995, "{json:#}");
    assert_eq!(number(&json, "/goodput_per_s"), 0.0);
}

#[test]
fn a_missing_first_byte_has_its_own_limit() {
    let site = Site::start(&[("never-answer", "")]);
    let limits = ["--timeout", "20s", "--first-byte-timeout", "200ms"];
    let url = site.url("/hw");
    let mut args = vec!["-c", "1", "-n", "2", &url];
    args.extend(limits);
    let json = measured(&args, &[1]);
    assert_eq!(failures(&json), [("first-byte-timo".to_owned(), 2)]);
    assert!(number(&json, "/by_outcome/timed_out/p50") >= 0.1995, "{json:#}");
    assert!(number(&json, "/by_outcome/timed_out/max") < 20.0);
    // the plain first call has the same timeout
    assert_eq!(text(&json, "/first_call/failure/class"), "first-byte-timo");
}

#[test]
fn a_stalled_connection_is_given_up_and_a_slow_one_is_not() {
    let server = Scripted::start(|stream, connection| {
        if connection == 0 {
            return serve_first(&stream);
        }
        let mut reader = BufReader::new(&stream);
        while read_request(&mut reader).is_some() {
            let whole = response(200, "", "hello");
            let mut writer = &stream;
            writer.write_all(&whole[..whole.len() - 2]).unwrap();
        }
    });
    let limits = ["--timeout", "20s", "--progress-timeout", "600ms"];
    let url = server.url("/");
    let mut args = vec!["-c", "1", "-n", "2", &url];
    args.extend(limits);
    let json = measured(&args, &[1]);
    assert_eq!(failures(&json), [("progress-timo".to_owned(), 2)]);
    // 50 bytes at 50 a second: longer than the limit in total, without a pause
    let site = Site::start(&[("drip", "50B/s")]);
    let url = site.url("/bytes/50");
    let mut args = vec!["-c", "1", "-n", "1", &url];
    args.extend(limits);
    let json = measure(&args);
    assert_eq!(outcomes(&json)[1], 1, "{json:#}");
    assert!(number(&json, "/response_time_s/max") >= 0.6);
}

#[test]
fn connecting_has_a_time_limit() {
    // a listener whose queue is full answers no SYN
    let listener = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    rustix::net::bind(&listener, &any).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = TcpListener::from(listener);
    let place = address.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(waiting) = TcpStream::connect_timeout(&place, Duration::from_millis(100)) {
        queue.push(waiting);
        assert!(queue.len() < 64, "this kernel's queue does not fill");
    }
    let url = format!("http://{place}/");
    let json = measured(&["-n", "1", "--connect-timeout", "300ms", &url], &[3]);
    assert_eq!(failures(&json), [("connect-timo".to_owned(), 1)]);
    let took = number(&json, "/first_call/took_s");
    assert!((0.3..20.0).contains(&took), "{took}");
}

#[test]
fn reset_closes_without_a_farewell() {
    for (options, expected) in [(&["--reset"][..], Some(ErrorKind::ConnectionReset)), (&[], None)] {
        let (tell, found) = mpsc::channel();
        let server = Scripted::start(move |stream, connection| {
            if connection == 0 {
                return serve_first(&stream);
            }
            read_request(&mut BufReader::new(&stream)).unwrap();
            let mut stream = stream;
            stream.write_all(&response(200, "", "hello")).unwrap();
            tell.send(stream.read(&mut [0; 64]).map_err(|error| error.kind())).unwrap();
        });
        let url = server.url("/");
        let mut args = vec!["-c", "1", "-n", "1", "--calls", "1", &url];
        args.extend(options);
        assert_eq!(outcomes(&measure(&args))[1], 1);
        assert_eq!(found.recv().unwrap().err(), expected, "{options:?}");
    }
}

#[test]
fn bound_addresses_are_taken_in_turn() {
    let server = Recorder::plain();
    let url = server.url("/");
    let list = "127.0.0.2-127.0.0.4,127.0.1.1";
    measure(&["-c", "1", "-n", "8", "--close", "--bind", list, &url]);
    let mut peers: BTreeMap<String, usize> = BTreeMap::new();
    for request in server.requests() {
        *peers.entry(request.peer).or_default() += 1;
    }
    let expected = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.1.1"];
    assert_eq!(peers, expected.map(|peer| (peer.to_owned(), 2)).into_iter().collect());
    let first = server.all().into_iter().find(|request| request.connection == 0);
    assert_eq!(first.unwrap().peer, "127.0.0.2", "the plain call that goes first");
}

#[test]
fn resolve_sets_the_address_and_keeps_the_name_in_the_request() {
    let server = Recorder::on("127.0.0.5:0", |_| response(200, "", "hello"));
    let port = server.port();
    let rule = format!("shop.example:{port}:127.0.0.5");
    let json = measure(&[
        "-c",
        "1",
        "-n",
        "2",
        "--resolve",
        &rule,
        &format!("http://shop.example:{port}/"),
    ]);
    assert_eq!(outcomes(&json)[1], 2);
    for request in server.requests() {
        assert_eq!(request.field("host"), Some(format!("shop.example:{port}").as_str()));
    }
}

#[test]
fn families_are_kept_to_and_an_ipv6_literal_is_an_address() {
    let port = free_port();
    let six = Recorder::on(&format!("[::1]:{port}"), |_| response(200, "", "six"));
    let json = measure(&["-c", "1", "-n", "2", &format!("http://[::1]:{port}/")]);
    assert_eq!(outcomes(&json)[1], 2);
    assert_eq!(six.requests()[0].field("host"), Some(format!("[::1]:{port}").as_str()));
    // no server listens on the other family's port
    let named = format!("http://localhost:{port}/");
    let json = measured(&["-n", "1", "-4", &named], &[3]);
    assert_eq!(failures(&json), [("connrefused".to_owned(), 1)]);
    let four = Recorder::plain();
    let named = format!("http://localhost:{}/", four.port());
    assert_eq!(outcomes(&measure(&["-c", "1", "-n", "2", "--ipv4", &named]))[1], 2);
    let refused = run(&["run", "-n", "1", "--ipv6", &named]);
    assert_eq!(refused.code, 3, "{refused:#?}");
}

#[test]
fn a_unix_socket_takes_the_place_of_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let path = path.to_str().unwrap();
    let site = Site::start(&[("listen", &format!("unix:{path}"))]);
    let json = measure(&["-c", "2", "-n", "10", "--unix", path, "http://shop.example/bytes/50"]);
    assert_eq!(outcomes(&json), [10, 10, 0, 0, 0, 0]);
    assert_eq!(whole(&json, "/bytes/body"), 500);
    assert_eq!(site.stop().requests, 11);
}

/// Server that serves one connection after another, with room for one more in its queue. A client
/// without room retries until it is served.
#[test]
fn a_full_unix_socket_is_retried() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut head) = (stream.unwrap(), Vec::new());
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
                head.push(byte[0]);
            }
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
            stream.write_all(response).ok();
        }
    });
    let path = path.to_str().unwrap();
    for stack in ["kernel", "kernel:batches"] {
        let words = ["-c", "8", "-n", "100", "--unix", path, "--stack", stack, "http://site/"];
        assert_eq!(outcomes(&measure(&words)), [100, 100, 0, 0, 0, 0], "{stack}");
    }
}

/// The server accepts no connections beyond its queue.
#[test]
fn a_unix_socket_that_stays_full_is_a_connect_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _first = UnixStream::connect(&path).unwrap();
    let path = path.to_str().unwrap();
    let patience = ["--connect-timeout", "100ms", "--json", "-", "http://site/"];
    let ran = run(&[&["run", "--unix", path][..], &patience].concat()).expect(&[3]);
    assert_eq!(failures(&ran.json()), [("connect-timo".to_owned(), 1)]);
    assert!(ran.stderr.contains("no connection within the connect timeout"), "{}", ran.stderr);
    // room for the first call, and then for none
    let (over, end) = mpsc::channel::<()>();
    drop(listener.accept().unwrap());
    std::thread::spawn(move || {
        let (mut first_call, _) = listener.accept().unwrap();
        assert_ne!(first_call.read(&mut [0; 4096]).unwrap(), 0);
        let _fills = UnixStream::connect(listener.local_addr().unwrap().as_pathname().unwrap());
        first_call.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").ok();
        drop(first_call);
        end.recv().ok();
    });
    let words = ["-c", "2", "-n", "4", "--unix", path];
    let json = measured(&[&words[..], &patience[..2], &patience[4..]].concat(), &[3]);
    drop(over);
    let [due, succeeded, failed, timed_out, _, _] = outcomes(&json);
    assert_eq!((due, succeeded, failed + timed_out), (4, 0, 4));
    assert_eq!(failures(&json), [("connect-timo".to_owned(), 4)]);
}

#[test]
fn a_proxy_gets_the_absolute_form_and_its_login() {
    let site = Site::start(&[]);
    let proxy = Proxy::to(site.authority());
    let via = format!("http://jo:s%40cret@{}", proxy.authority());
    let json =
        measure(&["-c", "2", "-n", "6", "--proxy", &via, "http://shop.example/bytes/100?x=1"]);
    assert_eq!(outcomes(&json), [6, 6, 0, 0, 0, 0]);
    assert_eq!(whole(&json, "/bytes/body"), 600);
    let seen = proxy.seen();
    assert_eq!(seen.len(), 7);
    for request in &seen {
        assert_eq!(request.target(), "http://shop.example/bytes/100?x=1");
        assert_eq!(request.field("host"), Some("shop.example"));
        // RFC 7617 §2: base64 of jo:s@cret
        assert_eq!(request.field("proxy-authorization"), Some("Basic am86c0BjcmV0"));
    }
    assert!(!format!("{json}").contains("cret"), "the login shows in the JSON");
}

#[test]
fn the_proxy_of_the_environment_is_the_default() {
    let site = Site::start(&[]);
    let proxy = Proxy::to(site.authority());
    let ran = |words: &[&str], codes: &[i32]| {
        let line = [&["run", "-c", "1", "-n", "2", "--json", "-"][..], words].concat();
        let mut command = program(&line);
        command.env("http_proxy", proxy.authority());
        in_process(&command, b"").expect(codes)
    };
    let named = ran(&["http://shop.example/hw"], &[0, 4]);
    assert_eq!(outcomes(&named.json())[1], 2);
    assert!(named.stderr.contains("which http_proxy names"), "{}", named.stderr);
    assert_eq!(proxy.seen().len(), 3);
    let here = site.url("/hw");
    let direct = ran(&[&here], &[0, 4]);
    assert!(direct.stderr.contains("which is this machine"), "{}", direct.stderr);
    let silent = ran(&["--proxy", "none", &here], &[0, 4]).stderr;
    assert!(!silent.contains("http_proxy"), "{silent}");
    assert_eq!(proxy.seen().len(), 3);
}

#[test]
fn https_goes_through_a_proxy_by_a_tunnel() {
    // the first call and two users; without a version, one more checks whether HTTP/2 is offered
    for (version, tunnels) in [(&["--http", "1.1"][..], 3), (&[], 4)] {
        let server = TlsServer::start(&TlsOptions::default());
        let proxy = Proxy::to(format!("127.0.0.1:{}", server.port()));
        let via = format!("http://jo:s%40cret@{}", proxy.authority());
        let url = format!("https://shop.example:{}/", server.port());
        let words = ["-c", "2", "-n", "6", "--proxy", &via, "--ca", &server.files.ca, &url];
        let json = measure(&[&words[..], version].concat());
        assert_eq!(outcomes(&json), [6, 6, 0, 0, 0, 0]);
        let logins: Vec<_> = proxy
            .seen()
            .iter()
            .map(|seen| seen.field("proxy-authorization").map(str::to_owned))
            .collect();
        assert!(
            logins.iter().all(|login| login.as_deref() == Some("Basic am86c0BjcmV0")),
            "{logins:?}"
        );
        let lines: BTreeSet<String> =
            proxy.seen().into_iter().map(|request| request.line).collect();
        let line = format!("CONNECT shop.example:{} HTTP/1.1", server.port());
        assert_eq!(lines, BTreeSet::from([line]));
        assert_eq!(proxy.seen().len(), tunnels, "{version:?}");
    }
}

/// Connections of the setup use the proxy and the server name of the run.
#[test]
fn a_setup_goes_the_way_of_the_calls() {
    let server = TlsServer::start(&TlsOptions::default());
    let proxy = Proxy::to(format!("127.0.0.1:{}", server.port()));
    let folder = tempfile::tempdir().unwrap();
    // neither a certificate nor a resolver knows this name
    let url = format!("https://nowhere.invalid:{}/", server.port());
    let plan = format!(
        "version = 1\nurl = '{url}'\n[load]\nusers = 1\n[stop]\nrequests = 2\n\
         [[setup]]\nname = 'before'\nurl = '/'\n\
         [[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nurl = '/'\n"
    );
    let plan = crate::support::keep(folder.path(), "plan.toml", &plan);
    let via = format!("http://{}", proxy.authority());
    let way = ["--proxy", &via, "--ca", &server.files.ca, "--server-name", "shop.example"];
    let json = measure(&[&[&*plan][..], &way].concat());
    assert_eq!(outcomes(&json), [2, 2, 0, 0, 0, 0]);
    let asked = proxy.seen();
    assert!(asked.len() >= 2, "{asked:?}");
    assert!(asked.iter().all(|request| request.line.starts_with("CONNECT nowhere.invalid:")));
}

#[test]
fn a_proxy_that_refuses_is_blamed_on_the_path() {
    let proxy = Recorder::start(|_| response(403, "", "no"));
    let via = proxy.url("");
    let json = measured(&["-n", "1", "--proxy", &via, "https://shop.example/"], &[3, 4]);
    assert_eq!(failures(&json), [("proxy".to_owned(), 1)]);
    assert_eq!(text(&json, "/failures/0/blame"), "path");
}

#[test]
fn socket_options_reach_the_socket() {
    let look = |options: &[&str]| {
        let (tell, found) = mpsc::channel();
        let server = Scripted::start(move |stream, _| {
            let mut reader = BufReader::new(&stream);
            while read_request(&mut reader).is_some() {
                tell.send(peek::socket_of(stream.local_addr().unwrap())).unwrap();
                let mut writer = &stream;
                writer.write_all(&response(200, "", "hello")).unwrap();
            }
        });
        let url = server.url("/");
        let mut args = vec!["-c", "1", "-n", "1", &url];
        args.extend(options);
        process::measure(&args);
        let (first, other) = (found.recv().unwrap(), found.recv().unwrap());
        assert_eq!(first, other, "the plain call that goes first, and the run's: {options:?}");
        other
    };
    let plain = look(&[]);
    assert!(plain.nodelay);
    assert!(!look(&["--no-nodelay"]).nodelay);
    // Linux doubles the requested size (socket(7))
    let small = look(&["--send-buffer", "20k", "--recv-buffer", "30k"]);
    assert_eq!((small.send_buffer, small.receive_buffer), (40 << 10, 60 << 10));
    assert_ne!(plain.send_buffer, small.send_buffer);
    assert_ne!(plain.receive_buffer, small.receive_buffer);
}

#[test]
fn cpus_and_nice_place_the_workers() {
    let look = |options: &[&str]| {
        let (tell, found) = mpsc::channel();
        let server = Scripted::start(move |stream, connection| {
            let mut reader = BufReader::new(&stream);
            while read_request(&mut reader).is_some() {
                if connection > 0 {
                    tell.send(peek::threads_of(stream.local_addr().unwrap())).unwrap();
                }
                let mut writer = &stream;
                writer.write_all(&response(200, "", "hello")).unwrap();
            }
        });
        let url = server.url("/");
        let mut args = vec!["-c", "1", "-n", "1", &url];
        args.extend(options);
        process::measure(&args);
        found.recv().unwrap()
    };
    let cores = peek::own_cores();
    for core in &cores {
        let core = core.to_string();
        let threads = look(&["--cpus", &core]);
        assert!(threads.iter().any(|thread| thread.cores == core), "{core}: {threads:?}");
    }
    let threads = look(&["--nice", "7"]);
    assert!(threads.iter().any(|thread| thread.nice == 7), "{threads:?}");
    assert!(look(&[]).iter().all(|thread| thread.nice != 7));
    let ran = run(&["run", "-n", "1", "--cpus", "4000", "http://127.0.0.1/"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("4000"), "{}", ran.stderr);
}

#[test]
fn a_port_without_listener_is_reported_at_once() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let json = measured(&["-d", "50s", &url], &[3]);
    assert_eq!(failures(&json), [("connrefused".to_owned(), 1)]);
}
