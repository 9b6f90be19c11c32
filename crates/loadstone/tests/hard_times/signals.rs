//! Signals: the run reports the measured part, leaves nothing open, and ends in any case.

use super::outputs::wait_for;
use super::running::{Running, WALL_MAX, shell};
use crate::support::{Scripted, Site, outcomes, text};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::Read;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

#[test]
fn a_signal_ends_the_run_with_a_report() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let site = Site::start(&[]);
        let url = site.url("/hw");
        let running = Running::start(&["run", "--json", "-", "-c", "3", "-d", "10m", &url]);
        wait_for(&site, 50);
        running.signal(signal);
        // a busy machine may make such a short run INVALID, which takes precedence
        let json = running.end().expect(&[130, 4]).json();
        let [due, succeeded, failed, timed_out, dropped, abandoned] = outcomes(&json);
        assert_eq!(due, succeeded + failed + timed_out + dropped + abandoned, "{signal:?}");
        assert!(succeeded > 0 && failed == 0 && abandoned <= 3, "{signal:?}: {json:#}");
        assert_eq!(json["interrupted"], true);
        let causes = json["verdict"]["causes"].as_array().unwrap();
        assert!(causes.iter().any(|cause| cause["id"] == "interrupted"), "{causes:?}");
        // the server answered the requests that the client counted, and one plain first call
        let served = site.stop().requests;
        assert!(succeeded < served && served <= 1 + succeeded + abandoned, "{signal:?}");
    }
}

#[test]
fn calls_under_way_are_abandoned() {
    // only the first call is answered
    let (tell, found) = channel();
    let server = Scripted::start(move |mut stream, index| {
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
            if index == 0 {
                use std::io::Write;
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok();
            } else {
                tell.send(()).ok();
            }
        }
    });
    let url = server.url("/");
    let running = Running::start(&["run", "--json", "-", "-c", "5", "-d", "10m", &url]);
    for _ in 0..5 {
        found.recv_timeout(WALL_MAX).unwrap();
    }
    running.signal(Signal::INT);
    let json = running.end().expect(&[130, 4]).json();
    assert_eq!(outcomes(&json), [5, 0, 0, 0, 0, 5]);
}

/// Uploads that no server reads, partly in socket buffers: both ways of writing abandon them at once.
#[test]
fn uploads_under_way_are_abandoned() {
    for stack in ["kernel", "kernel:batches"] {
        let (tell, found) = channel();
        let server = Scripted::start(move |mut stream, index| {
            let mut buffer = [0; 4096];
            if index > 0 {
                // not a byte is read
                stream.peek(&mut buffer).ok();
                tell.send(stream).ok();
                return;
            }
            let mut tail = Vec::new();
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                tail.extend_from_slice(&buffer[..count]);
                tail.drain(..tail.len().saturating_sub(4));
                if tail == b"last" {
                    use std::io::Write;
                    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok();
                }
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let body = "x".repeat(9_000_000) + "last";
        let file = crate::support::keep(folder.path(), "body", &body);
        let url = server.url("/");
        let load = ["-c", "5", "-d", "10m", "--body-file", &file, "--stack", stack];
        let running = Running::start(&[&["run", "--json", "-"][..], &load, &[&url]].concat());
        let held: Vec<_> = (0..5).map(|_| found.recv_timeout(WALL_MAX).unwrap()).collect();
        running.signal(Signal::INT);
        let json = running.end().expect(&[130, 4]).json();
        assert_eq!(outcomes(&json), [5, 0, 0, 0, 0, 5], "{stack}");
        drop(held);
    }
}

#[test]
fn a_signal_during_the_first_call_ends_it() {
    let (tell, found) = channel();
    let mute = Scripted::start(move |mut stream, _| {
        tell.send(()).ok();
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    let url = mute.url("/");
    let args = ["run", "--json", "-", "--timeout", "10m", "-d", "10m", &url];
    let running = Running::start(&args);
    found.recv_timeout(WALL_MAX).unwrap();
    running.signal(Signal::INT);
    let json = running.end().expect(&[130]).json();
    assert_eq!(outcomes(&json), [0; 6]);
    assert_eq!(json["interrupted"], true);
    assert_eq!(text(&json, "/verdict/causes/0/id"), "interrupted");
}

#[test]
fn a_second_signal_ends_at_once() {
    // of either kind: a first signal is followed by the other one
    for (first, then) in [(Signal::INT, Signal::INT), (Signal::INT, Signal::TERM)] {
        check_second_signal_ends(first, then);
    }
}

fn check_second_signal_ends(first: Signal, then: Signal) {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("log");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // the log is a pipe without a reader: writing it blocks forever
    let stuffed = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let log = pipe.to_str().unwrap();
    let mut running = Running::start(&["run", "-d", "10m", "--log", log, &site.url("/hw")]);
    // more lines than a pipe holds
    wait_for(&site, 20_000);
    // the kernel merges two pending signals of a kind, so they are repeated until one has worked
    running.signal(first);
    if first == then {
        while !running.ended() {
            running.signal(then);
        }
    } else {
        // one of the other kind is enough
        running.wait_until_handled(first);
        running.signal(then);
    }
    assert_eq!(running.end().code, 130);
    drop(stuffed);
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let site = Site::start(&[]);
    let mut command = shell(r#"trap "" HUP; exec "$0" "$@""#);
    command.args(["run", "--json", "-", "-n", "3000", "-c", "1", &site.url("/hw")]);
    let running = Running::new(command);
    wait_for(&site, 10);
    running.signal(Signal::HUP);
    let json = running.end().expect(&[0, 4]).json();
    assert_eq!(outcomes(&json)[1], 3000);
    assert_eq!(json["interrupted"], false);
}

#[test]
fn a_terminal_that_is_closed_is_a_hangup() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("json");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (tell, found) = channel();
    let reader = pipe.clone();
    thread::spawn(move || tell.send(std::fs::read_to_string(reader)));
    let program = crate::support::program::<&str>(&[]);
    let binary = program.get_program().to_str().unwrap();
    let line =
        format!("exec '{binary}' run -d 10m --json '{}' {}", pipe.display(), site.url("/hw"));
    let mut script = Command::new("script");
    script.env("LOADSTONE_STORE", "none");
    script.args(["-qec", &line, "/dev/null"]).stdin(std::process::Stdio::null());
    let running = Running::new(script);
    wait_for(&site, 50);
    // the other end of the terminal closes when the program that holds it ends
    running.signal(Signal::KILL);
    running.end();
    let text = found.recv_timeout(WALL_MAX).unwrap().unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["interrupted"], true);
    assert!(outcomes(&json)[1] > 0);
}
