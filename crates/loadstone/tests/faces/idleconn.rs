//! `loadstone idleconn` compared with the original, which is part of httperf.

use crate::support::{Ran, Scripted, finish, program};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Removes the original's message about a limit of select(2), which we do not have.
fn streams_of(ran: &Ran) -> (String, String, i32) {
    let stderr = ran.stderr.split_inclusive('\n').filter(|line| !line.contains("FD_SETSIZE"));
    (ran.stdout.clone(), stderr.collect(), ran.code)
}

fn original() -> Command {
    let mut command = Command::new("idleconn");
    command.stdin(Stdio::null());
    command
}

#[test]
fn wrong_command_lines_end_as_by_idleconn() {
    for line in ["", "host", "host 80", "host 80 1 2", "no-such-name.invalid 80 2"] {
        let with = |mut command: Command| {
            command.args(line.split_whitespace());
            streams_of(&finish(command, b""))
        };
        assert_eq!(with(program(&["idleconn"])), with(original()), "{line}");
    }
}

/// Returns the output of a program with three connections to a server that closes the first two at
/// once.
fn kept_open(mut command: Command) -> String {
    let came = Arc::new(AtomicUsize::new(0));
    let (count, held) = (Arc::clone(&came), Mutex::new(Vec::new()));
    let server = Scripted::start(move |stream, index| {
        if index >= 2 {
            held.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        }
        count.fetch_add(1, Ordering::SeqCst);
    });
    let port = server.address.port().to_string();
    command.args(["127.0.0.1", &port, "3"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(30);
    while came.load(Ordering::SeqCst) < 5 {
        assert!(Instant::now() < limit, "only {came:?} connections came");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

/// An interrupted program may not have counted its last connection yet; one round with complete
/// counts is enough.
#[test]
fn connections_are_kept_and_counted() {
    const WHOLE: &str = "idleconn: creating and maintaining 3 idle connections\n\
                         idleconn: total # conn. created = 5, close() rate = ";
    for start in [original as fn() -> Command, || program(&["idleconn"])] {
        let mut seen = Vec::new();
        let counted = (0..10).any(|_| {
            let text = kept_open(start());
            let rest = text.strip_prefix(WHOLE);
            let rate = rest.and_then(|rest| rest.strip_suffix(" conn/sec\n"));
            let right = rate.is_some_and(|rate| rate.parse::<f64>().is_ok_and(|rate| rate > 0.0));
            seen.push(text);
            right
        });
        assert!(counted, "{seen:#?}");
    }
}
