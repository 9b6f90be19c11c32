use crate::support::{Site, last, request, site, status, to_the_end};
use norm::{Break, Breaks};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Returns whether the connection was closed without a response.
fn was_refused(stream: &mut TcpStream) -> bool {
    stream.write_all(last("/hw").as_bytes()).ok();
    let mut response = Vec::new();
    match stream.read_to_end(&mut response) {
        Ok(_) | Err(_) if response.is_empty() => true,
        Ok(_) => {
            assert_eq!(status(&String::from_utf8_lossy(&response)), 200);
            false
        }
        Err(error) => panic!("half a response: {error}"),
    }
}

/// Makes three simultaneous connections; returns the number of refused ones.
fn refused_of_three(site: &Site) -> usize {
    let mut streams: Vec<TcpStream> = (0..3).map(|_| site.connect()).collect();
    // the server accepts in order: the last one's fate shows that all are decided
    let mut refused = 0;
    for stream in streams.iter_mut().rev() {
        refused += usize::from(was_refused_while_open(stream));
    }
    refused
}

/// Like [`was_refused`], but an accepted connection stays open.
fn was_refused_while_open(stream: &mut TcpStream) -> bool {
    stream.write_all(request("/hw").as_bytes()).ok();
    let mut first = [0];
    match stream.read(&mut first) {
        Ok(1) => false,
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            true
        }
    }
}

#[test]
fn connections_beyond_max_clients_close_and_leave_no_line() {
    for (max_clients, refused) in [(1, 2), (2, 1), (3, 0)] {
        let mut site = site(|settings, _| settings.max_clients = max_clients);
        assert_eq!(refused_of_three(&site), refused, "MaxClients {max_clients}");
        let log = site.log();
        let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        assert_eq!(lines(" Info: New connection from 127.0.0.1:"), max_clients, "{log}");
    }
}

#[test]
fn a_disconnect_frees_its_place_at_once() {
    const TRIES: usize = 50;
    let site = site(|settings, _| settings.max_clients = 1);
    let mut refused = 0;
    for _ in 0..TRIES {
        refused += usize::from(was_refused(&mut site.connect()));
        // this one is closed by the client silently
        refused += usize::from(was_refused_while_open(&mut site.connect()));
    }
    // a kernel with much to do may deliver an end after the next beginning
    assert!(refused < TRIES / 5, "{refused} of {TRIES} and {TRIES}");
}

#[test]
fn the_fault_switch_admits_everyone() {
    let breaks = Breaks::parse("max-clients").unwrap();
    assert!(breaks.has(Break::MaxClients));
    let site = site(|settings, _| {
        settings.max_clients = 1;
        settings.breaks = breaks;
    });
    assert_eq!(refused_of_three(&site), 0);
}

#[test]
fn the_log_lists_connections_as_in_the_chapter() {
    let mut site = site(|_, _| {});
    let mut stream = site.connect();
    let port = stream.local_addr().unwrap().port();
    stream.write_all(last("/hw").as_bytes()).unwrap();
    assert_eq!(status(&to_the_end(&mut stream)), 200);
    let log = site.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.ends_with(&format!(":{port}"))).collect();
    // `2001 Sep 19 05:31:26 Info: New connection from 127.0.0.1:2525`
    assert_eq!(&lines[0][20..], format!(" Info: New connection from 127.0.0.1:{port}"));
    assert_eq!(&lines[1][20..], format!(" Info: End of connection from 127.0.0.1:{port}"));
    let date: Vec<&str> = lines[0][..20].split(' ').collect();
    assert_eq!(date.iter().map(|part| part.len()).collect::<Vec<_>>(), [4, 3, 2, 8]);
}

#[test]
fn a_silent_client_is_waited_for_no_longer_than_the_timeout() {
    let site = site(|settings, _| settings.timeout = std::time::Duration::from_millis(300));
    assert_eq!(to_the_end(&mut site.connect()), "");
    let mut kept = site.connect();
    kept.write_all(request("/hw").as_bytes()).unwrap();
    assert!(["", "hello world\n"].iter().any(|end| to_the_end(&mut kept).ends_with(end)));
    // a stall of the machine between connecting and writing invalidates an attempt
    let mut halves = (0..50).map(|_| {
        let mut half = site.connect();
        half.write_all(b"GET /hw HTTP/1.1\r\nHo").ok();
        to_the_end(&mut half)
    });
    assert_eq!(
        halves.find(|response| !response.is_empty()).map(|response| status(&response)),
        Some(408)
    );
}

#[test]
fn the_time_that_the_server_works_does_not_count() {
    let site = site(|settings, _| settings.timeout = std::time::Duration::from_millis(300));
    assert!(site.get("/sleep?0.5").ends_with("Slept for 0.5 seconds\n"));
}

/// Waits until the log reports a timeout.
fn wait_for_the_timeout(site: &Site) {
    let begun = std::time::Instant::now();
    let log = site.folder.path().join("errors");
    let describe = || std::fs::read_to_string(&log).expect("a log");
    while !describe().contains("Info: Timeout of connection from ") {
        assert!(begun.elapsed() < crate::support::LONG);
        std::thread::yield_now();
    }
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_body_gets_408() {
    let site = site(|settings, _| settings.timeout = std::time::Duration::from_millis(300));
    // as above: a stall invalidates an attempt
    let mut tries = (0..50).map(|_| {
        let mut stream = site.connect();
        let head = "POST /hw HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\nabc";
        stream.write_all(head.as_bytes()).ok();
        to_the_end(&mut stream)
    });
    assert_eq!(
        tries.find(|response| !response.is_empty()).map(|response| status(&response)),
        Some(408)
    );
    assert_eq!(site.spooled(), [""; 0]);
}

#[test]
fn a_client_that_reads_nothing_is_dropped() {
    let site = crate::support::tree(|settings, folder| {
        settings.timeout = std::time::Duration::from_millis(300);
        let file = std::fs::File::create(folder.join("htdocs/long")).expect("a new file");
        file.set_len(1 << 30).expect("a file with holes");
    });
    let mut stream = site.connect();
    stream.write_all(request("/long").as_bytes()).unwrap();
    wait_for_the_timeout(&site);
    // it accepts some: no more than what the system buffered, and then the end
    let taken = std::io::copy(&mut stream, &mut std::io::sink()).unwrap_or(0);
    assert!(taken < 1 << 30, "{taken}");
}
