use crate::support::{Site, last, request, response, site, status, to_the_end};
use norm::Breaks;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(200);

/// Starts two sleeps in a known order; when each of them ends, from the start on.
fn two_sleeps(site: &Site) -> [Duration; 2] {
    let (mut first, mut second) = (site.connect(), site.connect());
    let begun = Instant::now();
    first.write_all(request("/sleep?0.2").as_bytes()).expect("a connection");
    // a response to another client shows that the server has continued reading
    assert_eq!(status(&site.get("/hw")), 200);
    second.write_all(request("/sleep?0.2").as_bytes()).expect("a connection");
    let second = std::thread::spawn(move || {
        assert!(response(&mut second).ends_with("Slept for 0.2 seconds\n"));
        begun.elapsed()
    });
    assert!(response(&mut first).ends_with("Slept for 0.2 seconds\n"));
    [begun.elapsed(), second.join().expect("a response")]
}

#[test]
fn two_sleeps_follow_one_another() {
    let [first, second] = two_sleeps(&site(|_, _| {}));
    assert!(first >= SHORT && second >= 2 * SHORT, "{first:?} {second:?}");
}

#[test]
fn sleeps_follow_one_another_over_several_threads() {
    let site = site(|settings, _| settings.threads = 3);
    let begun = Instant::now();
    let mut streams: Vec<_> = (0..4).map(|_| site.connect()).collect();
    for stream in &mut streams {
        stream.write_all(request("/sleep?0.05").as_bytes()).unwrap();
    }
    for stream in &mut streams {
        assert_eq!(status(&response(stream)), 200);
    }
    assert!(begun.elapsed() >= Duration::from_millis(200));
}

/// Requests a short sleep during a long one; returns both connections, the long one first.
fn short_and_long(site: &Site) -> [TcpStream; 2] {
    let mut long = site.connect();
    long.write_all(request("/sleep?3600").as_bytes()).expect("a connection");
    assert_eq!(status(&site.get("/hw")), 200);
    let mut short = site.connect();
    short.write_all(last("/sleep?0").as_bytes()).expect("a connection");
    [long, short]
}

#[test]
fn sleeps_run_concurrently_on_request() {
    let breaks = Breaks::parse("sleep-parallel").unwrap();
    for site in [
        site(|settings, _| settings.sleep_parallel = true),
        site(|settings, _| settings.breaks = breaks),
    ] {
        let [_long, mut short] = short_and_long(&site);
        assert_eq!(status(&to_the_end(&mut short)), 200);
    }
}

#[test]
fn a_short_sleep_waits_for_a_long_one() {
    let site = site(|_, _| {});
    let [_long, mut short] = short_and_long(&site);
    // others are answered meanwhile
    for _ in 0..5 {
        assert_eq!(status(&site.get("/hw")), 200);
    }
    short.set_nonblocking(true).unwrap();
    assert_eq!(short.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_disconnect_ends_its_sleep() {
    let site = site(|_, _| {});
    let mut gone = site.connect();
    gone.write_all(request("/sleep?3600").as_bytes()).unwrap();
    assert_eq!(status(&site.get("/hw")), 200);
    drop(gone);
    assert!(site.get("/sleep?0").ends_with("Slept for 0 seconds\n"));
}

#[test]
fn a_sleep_of_no_length_is_refused() {
    let site = site(|_, _| {});
    for path in ["/sleep", "/sleep?", "/sleep?x", "/sleep?-1", "/sleep?1e9"] {
        assert_eq!(status(&site.get(path)), 400, "{path}");
    }
}

#[test]
fn the_server_ends_while_a_request_sleeps() {
    let mut site = site(|_, _| {});
    let mut stream = site.connect();
    stream.write_all(request("/sleep?3600").as_bytes()).unwrap();
    assert_eq!(status(&site.get("/hw")), 200);
    site.log();
    assert_eq!(to_the_end(&mut stream), "");
}
