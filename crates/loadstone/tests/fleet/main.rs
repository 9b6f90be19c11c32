//! `loadstone fleet` with real processes: server, manager and agents on loopback.

#![cfg(feature = "fleet")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

mod losses;
mod network;
mod plans;
#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::process::run;
use support::{Site, finish, number, program, text, whole};

/// Checks that the NATS server, which these tests need, is installed.
fn need_server() {
    let there = Command::new("nats-server").arg("--version").output().is_ok();
    assert!(there, "nats-server is missing: apt-get install nats-server");
}

fn fleet(agents: &str, more: &[&str], url: &str) -> Command {
    let mut args = vec!["fleet", "local", "--agents", agents];
    args.extend(more);
    args.extend(["--json", "-", url]);
    program(&args)
}

#[test]
fn four_agents_send_the_load_of_one_process() {
    need_server();
    let site = Site::start(&[]);
    let ran = finish(fleet("4", &["--rate", "100/s", "-d", "2s"], &site.url("/")), b"");
    let report = ran.expect(&[0, 4]).json();
    assert_eq!(whole(&report, "/outcomes/due"), 200);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 200);
    assert_eq!(whole(&report, "/response_time_s/count"), 200);
    let agents = report["fleet"]["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 4);
    for agent in agents {
        assert_eq!(whole(agent, "/offered"), 50, "{agent}");
        assert_eq!(text(agent, "/ending"), "done");
        assert!((number(agent, "/weight") - 0.25).abs() < 1e-9);
    }
    assert!(number(&report, "/fleet/clock_bound_max_s") < 1.0);
    // the first call of the manager is one more
    assert_eq!(site.stop().requests, 201);
}

fn agents_of(pid: u32) -> Vec<u32> {
    children_of(pid, "agent")
}

/// Returns the children of a process whose command lines contain this word.
fn children_of(pid: u32, word: &str) -> Vec<u32> {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let list = std::fs::read_to_string(children).unwrap_or_default();
    let pids = list.split_whitespace().filter_map(|word| word.parse().ok());
    let is_one = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    };
    pids.filter(is_one).collect()
}

/// Polls a condition while the site runs; its own wait paces the polling.
fn until<T>(site: &Site, mut what: impl FnMut() -> Option<T>) -> T {
    for _ in 0..4_000 {
        if let Some(found) = what() {
            return found;
        }
        assert!(!site.wait(Duration::from_millis(5)), "the site ended by itself");
    }
    panic!("it does not happen within 20 s");
}

fn kill(pid: u32) {
    signal(pid, "KILL");
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_killed_agent_is_reported_and_no_arrival_is_lost() {
    need_server();
    let site = Site::start(&[]);
    let mut command = fleet("2", &["--rate", "50/s", "-d", "9s"], &site.url("/"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // more than the first call: the load has started
    until(&site, || (site.served().requests > 20).then_some(()));
    let agents = until(&site, || Some(agents_of(child.id())).filter(|agents| agents.len() == 2));
    kill(agents[0]);
    let output = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let lost = whole(&report, "/outcomes/lost");
    assert!(lost > 50, "{lost}");
    assert_eq!(whole(&report, "/outcomes/due"), whole(&report, "/outcomes/succeeded") + lost);
    let causes = report["verdict"]["causes"].to_string();
    assert!(causes.contains("agent-lost") && causes.contains("silent for 6"), "{causes}");
    assert_eq!(text(&report, "/verdict/state"), "INVALID");
    assert_eq!(output.status.code(), Some(4));
}

/// Process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn an_operator_queries_and_ends_the_run_within_a_second() {
    need_server();
    let site = Site::start(&[]);
    let keys = tempfile::tempdir().unwrap();
    let dir = keys.path().join("keys");
    let at = |name: &str| dir.join(name).display().to_string();
    run(&["fleet", "creds", &dir.display().to_string(), "--agents", "1"]).expect(&[0]);
    let (url, creds) = (site.url("/"), dir.display().to_string());
    let mut args = vec!["fleet", "manager", "--creds", &creds, "--agents", "1"];
    args.extend(["--rate", "50/s", "-d", "60s", "--json", "-", &url]);
    let mut command = program(&args);
    let manager = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut manager = Ended(manager);
    let mut errors = BufReader::new(manager.0.stderr.take().unwrap()).lines();
    let place = until(&site, || {
        let line = errors.next()?.ok()?;
        line.split_once("--manager ").map(|(_, place)| place.to_owned())
    });
    let drain = std::thread::spawn(move || errors.for_each(drop));
    let agent_creds = at("agent-0.creds");
    let agent = program(&["fleet", "agent", "--manager", &place, "--creds", &agent_creds])
        .stderr(Stdio::null())
        .spawn();
    let _agent = Ended(agent.unwrap());
    until(&site, || (site.served().requests > 20).then_some(()));
    let operator = at("operator.creds");
    let ask = |what: &str| run(&["fleet", what, "--manager", &place, "--creds", &operator]);
    let status = ask("status").expect(&[0]).stdout;
    assert!(status.starts_with("step 1, 1 of 1 agents\n"), "{status}");
    assert!(status.contains("running"), "{status}");
    ask("abort").expect(&[0]);
    let ended = Instant::now();
    let mut out = manager.0.stdout.take().unwrap();
    let mut json = String::new();
    std::io::Read::read_to_string(&mut out, &mut json).unwrap();
    assert!(ended.elapsed() < Duration::from_secs(5), "{:?}", ended.elapsed());
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["interrupted"], true);
    drain.join().unwrap();
}

#[test]
fn unsupported_fleet_options_are_reported_before_sending() {
    let missing = run(&["fleet", "local", "--nats-server", "/nonexistent", "http://127.0.0.1:1/"]);
    let missing = missing.expect(&[2]).stderr;
    assert!(missing.contains("apt-get install nats-server"), "{missing}");
    assert!(missing.contains("--nats URL"), "{missing}");
    let none = run(&["fleet", "local", "--agents", "0", "http://127.0.0.1:1/"]).expect(&[2]);
    assert!(none.stderr.contains("--agents"), "{}", none.stderr);
}
