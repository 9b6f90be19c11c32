//! Servers that die in the middle of a run, and servers that restart.

use super::running::Running;
use crate::support::{Site, failures, free_port, measured, outcomes};
use std::time::Duration;

/// Site that dies after fifty requests, on a port that neither another program nor a connection of
/// the client can get meanwhile.
fn dying() -> Site {
    let address = format!("127.0.0.1:{}", free_port());
    Site::start(&[("die-after", "50"), ("listen", &address)])
}

#[test]
fn a_server_that_dies_is_counted_to_the_last_call() {
    let site = dying();
    // 1 if the outage was long enough for the server to count as gone
    let json = measured(&["-n", "80", "-c", "4", &site.url("/hw")], &[0, 1, 4]);
    let [due, succeeded, failed, timed_out, dropped, abandoned] = outcomes(&json);
    assert_eq!(due, 80);
    assert_eq!([timed_out, dropped, abandoned], [0; 3]);
    // the plain first call took one of the fifty
    assert!(succeeded <= 49 && failed >= 31 && succeeded + failed == due, "{succeeded}, {failed}");
    let refused = failures(&json).into_iter().find(|(class, _)| class == "connrefused");
    assert!(refused.is_some_and(|(_, count)| count > 0), "{:?}", failures(&json));
}

/// The exit code reports a failure, regardless of the number of calls answered before: some callers
/// check nothing else.
#[test]
fn a_server_that_is_gone_at_the_end_makes_the_exit_code_1() {
    let site = dying();
    let words = ["--rate", "200/s", "-d", "2s", "--interval", "100ms", &site.url("/hw")];
    let json = measured(&words, &[1]);
    let state = json["server"]["state"].as_str().unwrap();
    assert!(["gone", "refusing"].contains(&state), "{:#}", json["server"]);
}

#[test]
fn a_restarted_server_is_used_again() {
    let first = dying();
    let (address, url) = (first.authority(), first.url("/hw"));
    // each user of a dead server tries a hundred times a second: the run lasts until it is back
    let running = Running::start(&["run", "--json", "-", "-n", "2000", "-c", "4", &url]);
    while !first.wait(Duration::from_millis(50)) {}
    let before = first.stop().requests;
    let second = Site::start(&[("listen", &address)]);
    let ran = running.end().expect(&[0, 4]);
    let json = ran.json();
    let [due, succeeded, failed, timed_out, dropped, abandoned] = outcomes(&json);
    assert_eq!(due, 2000);
    assert_eq!(due, succeeded + failed + timed_out + dropped + abandoned);
    let after = second.stop().requests;
    assert!(after > 0, "nobody asked the server that had come back");
    // a response may have died with the server; none can appear from nowhere
    assert!(succeeded > 49 && succeeded < before + after, "{succeeded} of {before} + {after}");
}
