//! `run --metrics` and `--otlp`, on the program.

use crate::support::tls::{Pki, TlsOptions, TlsServer};
use crate::support::{Site, finish, free_port, program, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

#[test]
fn prometheus_reads_a_running_test() {
    let site = Site::start(&[]);
    let mut command = program(&["run", "-d", "10m", "--metrics", "0", &site.url("/hw")]);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let authority = loop {
        let mut line = String::new();
        assert!(errors.read_line(&mut line).unwrap() > 0, "it tells where its metrics are");
        if let Some((_, url)) = line.trim_end().split_once("metrics at http://") {
            break url.trim_end_matches("/metrics").to_owned();
        }
    };
    let scrape = || {
        let mut stream = TcpStream::connect(&authority).unwrap();
        let head = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    // each scrape is a response; the figures come with the first second
    let page = loop {
        let page = scrape();
        if page.contains("loadstone_calls_due_total ") {
            break page;
        }
    };
    for part in [
        "loadstone_calls_total{outcome=\"succeeded\"} ",
        "loadstone_response_time_seconds_bucket{le=\"+Inf\"} ",
        "load=\"closed loop of 10 users",
        "# EOF",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let code = child.wait().unwrap().code();
    assert!([Some(130), Some(4)].contains(&code), "{code:?}");
}

/// Collector that answers every request with an empty 200 and reports the size of its body.
fn collector() -> (u16, std::sync::mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, outcome) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                let line = line.trim_end().to_ascii_lowercase();
                if let Some(found) = line.strip_prefix("content-length: ") {
                    length = found.parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            stream.read_exact(&mut vec![0; length]).unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            tell.send(length).ok();
        }
    });
    (port, outcome)
}

#[test]
fn a_collector_gets_the_figures() {
    let site = Site::start(&[]);
    let (port, found) = collector();
    let to = format!("http://127.0.0.1:{port}");
    let ran = run(&["run", "-n", "50", "--otlp", &to, &site.url("/hw")]).expect(&[0, 4]);
    assert!(!ran.stderr.contains("pushes"), "{}", ran.stderr);
    assert!(found.recv().unwrap() > 500);
}

#[test]
fn a_missing_collector_does_not_stop_the_run() {
    let site = Site::start(&[]);
    let to = format!("http://127.0.0.1:{}", free_port());
    let ran = run(&["run", "-n", "50", "--otlp", &to, &site.url("/hw")]).expect(&[0, 4]);
    let errors = ran.stderr;
    assert!(errors.contains(&format!("pushes to {to}/v1/metrics failed")), "{errors}");
    assert!(errors.contains("the last time: cannot connect"), "{errors}");
    assert_eq!(site.stop().requests, 51);
}

#[test]
fn an_unusable_address_ends_the_run_before_sending() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let site = Site::start(&[]);
    let ran = finish(program(&["run", "--metrics", &port, &site.url("/hw")]), b"");
    let errors = ran.expect(&[2]).stderr;
    assert!(
        errors.contains(&format!("cannot listen on 127.0.0.1:{port} for --metrics")),
        "{errors}"
    );
    assert_eq!(site.stop().requests, 0);
    for (option, value, part) in [
        ("--metrics", "x", "write a port like 8080"),
        ("--otlp", "ftp://h", "not an http:// or https:// URL"),
    ] {
        let errors = run(&["run", option, value, "http://h/"]).expect(&[2]).stderr;
        assert!(errors.contains(part), "{errors}");
    }
}

#[test]
fn a_collector_gets_the_steps_of_a_ramp() {
    let site = Site::start(&[]);
    let (port, found) = collector();
    let to = format!("http://127.0.0.1:{port}");
    let url = site.url("/hw");
    let ramp = ["ramp", "--from", "20/s", "--to", "40/s", "--step", "20/s", "--hold", "1s"];
    let ran = run(&[&ramp[..], &["--otlp", &to, &url]].concat()).expect(&[0, 1, 4]);
    assert!(!ran.stderr.contains("pushes"), "{}", ran.stderr);
    // each of the two steps has at least one second
    assert!(found.recv().unwrap() > 500 && found.recv().unwrap() > 500);
}

/// The collector's certificate is verified by authorities that the run does not use.
#[test]
fn a_collector_behind_tls_is_known_by_its_certificate() {
    let site = Site::start(&[]);
    let collector = TlsServer::start(&TlsOptions::default());
    let to = collector.url("/v1/metrics");
    let pushed = |authorities: &str| {
        let mut command = program(&["run", "-n", "50", "-q", "--otlp", &to, &site.url("/hw")]);
        command.env("SSL_CERT_FILE", authorities).env_remove("SSL_CERT_DIR");
        finish(command, b"").expect(&[0, 4]).stderr
    };
    // it answers `hello`, which no collector sends: the push arrived
    let found = pushed(&collector.files.ca);
    assert!(found.contains("the response is not OTLP"), "{found}");
    let others = Pki::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("others.pem");
    std::fs::write(&file, &others.ca).unwrap();
    let found = pushed(file.to_str().unwrap());
    assert!(found.contains("no TLS: ") && found.contains("certificate"), "{found}");
}
