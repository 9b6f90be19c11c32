//! The site's weaknesses, each over real sockets.

use crate::support::{Site, run};
use crate::{findings, names};

#[test]
fn nagle_and_the_kernels_own_delayed_acknowledgement() {
    let found = findings(&[("nagle", "")], "/hw", &["-c", "2", "-d", "4s"]);
    names("nagle-delayed-ack", &found);
}

#[test]
fn an_accept_queue_that_is_too_short() {
    let site = [("backlog", "1"), ("accept-every", "50ms")];
    let found = findings(&site, "/hw", &["-c", "40", "--calls", "1", "-d", "6s"]);
    names("accept-queue-overflow", &found);
}

#[test]
fn a_limiter() {
    let site = [("rate-limit", "50/s:10"), ("delay", "5ms")];
    let found = findings(&site, "/hw", &["--rate", "200/s", "-d", "6s"]);
    names("rate-limit", &found);
    assert!(found.iter().any(|(_, text)| text.contains("429")), "{found:#?}");
}

#[test]
fn workers_and_one_worker() {
    let found = findings(&[("service", "100ms")], "/hw", &["-c", "8", "-d", "5s"]);
    names("serial-handler", &found);
    let site = [("service", "120ms"), ("workers", "4")];
    let found = findings(&site, "/hw", &["-c", "16", "-d", "4s"]);
    names("worker-pool", &found);
}

#[test]
fn connections_that_wait_unaccepted() {
    let run = ["-c", "8", "-d", "4s", "--timeout", "8s"];
    let found = findings(&[("connections-max", "3"), ("delay", "5ms")], "/hw", &run);
    names("connection-cap", &found);
    let found = findings(&[("connection-cap", "3"), ("delay", "5ms")], "/hw", &run);
    names("connection-cap", &found);
}

#[test]
fn ticks_and_limits_of_answers() {
    let site = [("quantum", "100ms"), ("delay", "exp:80ms")];
    names("scheduling-quantum", &findings(&site, "/hw", &["-c", "1", "-d", "6s"]));
    let site = [("close-after", "5"), ("delay", "2ms")];
    names("keep-alive-limit", &findings(&site, "/hw", &["-c", "4", "-d", "2s"]));
}

#[test]
fn stalls_time_outs_and_two_backends() {
    let site = [("stall", "300ms/1s"), ("delay", "5ms")];
    names("periodic-stall", &findings(&site, "/hw", &["-c", "4", "-d", "7s"]));
    let site = [("late", "3%:1s"), ("delay", "5ms")];
    names("round-timeout", &findings(&site, "/hw", &["-c", "8", "-d", "5s"]));
    let site = [("delay", "10ms"), ("other-delay", "60ms")];
    names("mixed-backends", &findings(&site, "/hw", &["-c", "12", "-d", "3s"]));
}

#[test]
fn warm_up_leak_and_a_full_line() {
    let site = [("cold", "3s:6"), ("delay", "10ms")];
    names("warm-up", &findings(&site, "/hw", &["-c", "4", "-d", "10s"]));
    let site = [("leak", "50us"), ("delay", "10ms")];
    names("drift", &findings(&site, "/hw", &["-c", "4", "-d", "10s"]));
    let site = [("bandwidth", "1250000B/s")];
    names("bandwidth-limit", &findings(&site, "/bytes/20000", &["-c", "8", "-d", "8s"]));
}

#[test]
fn contention_shows_on_the_curve() {
    let site = Site::start(&[("delay", "20ms"), ("contention", "0.05:0.01")]);
    let url = site.url("/hw");
    let args = ["ramp", &url, "--population", "--from", "1", "--to", "40", "--step", "13"];
    let more = ["--hold", "2s", "--json", "-", "--quiet"];
    let ran = run(&[&args[..], &more].concat()).expect(&[0, 4]);
    names("cpu-contention", &crate::told(&ran.json()));
}
