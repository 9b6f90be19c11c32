//! The site's weaknesses, each over real sockets.

use crate::support::Site;
use crate::support::process::run;
use crate::{findings, has, names, shows, succeeds_in_some_attempt};

#[test]
fn nagle_with_delayed_acknowledgments_is_diagnosed() {
    shows("nagle-delayed-ack", &[("nagle", "")], "/hw", &["-c", "2", "-d", "4s"]);
}

#[test]
fn an_accept_queue_that_is_too_short() {
    let site = [("backlog", "1"), ("accept-every", "50ms")];
    shows("accept-queue-overflow", &site, "/hw", &["-c", "40", "--calls", "1", "-d", "6s"]);
}

#[test]
fn a_limiter_is_found() {
    let site = [("rate-limit", "50/s:10"), ("delay", "5ms")];
    let found = findings(&site, "/hw", &["--rate", "200/s", "-d", "6s"]);
    names("rate-limit", &found);
    assert!(found.iter().any(|(_, text)| text.contains("429")), "{found:#?}");
}

#[test]
fn workers_and_one_worker() {
    shows("serial-handler", &[("service", "100ms")], "/hw", &["-c", "8", "-d", "5s"]);
    // workers with equal service times answer in unison, like a clock
    let site = [("service", "90ms..150ms"), ("workers", "4")];
    shows("worker-pool", &site, "/hw", &["-c", "16", "-d", "4s"]);
}

#[test]
fn connections_that_wait_unaccepted() {
    let run = ["-c", "8", "-d", "4s", "--timeout", "8s"];
    shows("connection-cap", &[("connections-max", "3"), ("delay", "5ms")], "/hw", &run);
    shows("connection-cap", &[("connection-cap", "3"), ("delay", "5ms")], "/hw", &run);
}

#[test]
fn ticks_and_limits_of_responses() {
    let site = [("quantum", "100ms"), ("delay", "exp:80ms")];
    shows("scheduling-quantum", &site, "/hw", &["-c", "1", "-d", "6s"]);
    let site = [("close-after", "5"), ("delay", "2ms")];
    shows("keep-alive-limit", &site, "/hw", &["-c", "4", "-d", "2s"]);
}

#[test]
fn stalls_time_outs_and_two_backends() {
    let site = [("stall", "300ms/1s"), ("delay", "5ms")];
    shows("periodic-stall", &site, "/hw", &["-c", "4", "-d", "7s"]);
    let site = [("late", "3%:1s"), ("delay", "5ms")];
    shows("round-timeout", &site, "/hw", &["-c", "8", "-d", "5s"]);
    let site = [("delay", "10ms"), ("other-delay", "60ms")];
    shows("mixed-backends", &site, "/hw", &["-c", "12", "-d", "3s"]);
}

#[test]
fn warm_up_leak_and_a_full_line() {
    let site = [("cold", "3s:6"), ("delay", "10ms")];
    shows("warm-up", &site, "/hw", &["-c", "4", "-d", "10s"]);
    let site = [("leak", "50us"), ("delay", "10ms")];
    shows("drift", &site, "/hw", &["-c", "4", "-d", "10s"]);
    let site = [("bandwidth", "1250000B/s")];
    shows("bandwidth-limit", &site, "/bytes/20000", &["-c", "8", "-d", "8s"]);
}

#[test]
fn contention_shows_on_the_curve() {
    let site = Site::start(&[("delay", "20ms"), ("contention", "0.05:0.01")]);
    let url = site.url("/hw");
    let args = ["ramp", &url, "--population", "--from", "1", "--to", "40", "--step", "13"];
    let more = ["--hold", "2s", "--json", "-", "--quiet"];
    succeeds_in_some_attempt(|| {
        let ran = run(&[&args[..], &more].concat()).expect(&[0, 4]);
        has("cpu-contention", &crate::findings_of(&ran.json()))
    });
}
