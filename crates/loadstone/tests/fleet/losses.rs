//! Losses of a fleet: its agents, its server, its manager, and disk space.

use crate::network::own_server;
use crate::support::process::run;
use crate::support::{Site, finish, program, text, whole};
use crate::{Ended, agents_of, children_of, fleet, kill, need_server, signal, until};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Waits for the end of a fleet; returns its report and output.
fn report_of(output: &Output) -> (Value, String) {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout);
    (report.unwrap_or_else(|error| panic!("{error}: {errors}")), errors)
}

#[test]
fn a_frozen_agents_part_is_continued_and_no_call_is_sent_twice() {
    need_server();
    let site = Site::start(&[]);
    let options = ["--on-agent-loss", "redistribute", "--rate", "60/s", "-d", "13s"];
    let mut command = fleet("3", &options, &site.url("/"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(&site, || (site.served().requests > 20).then_some(()));
    let agent = until(&site, || agents_of(child.id()).first().copied());
    signal(agent, "STOP");
    let frozen = Instant::now();
    // suspected after 2 s, fenced within 5 s more; another agent has its part from the next second
    // on
    until(&site, || (frozen.elapsed() > Duration::from_millis(9_600)).then_some(()));
    signal(agent, "CONT");
    let (report, found) = report_of(&child.wait_with_output().unwrap());
    let (due, lost) = (whole(&report, "/outcomes/due"), whole(&report, "/outcomes/lost"));
    let succeeded = whole(&report, "/outcomes/succeeded");
    assert_eq!((due, succeeded + lost), (780, 780), "{found}");
    // a third of the load, from the freeze to the second after the fence
    assert!((7 * 20..10 * 20).contains(&lost), "{lost}: {found}");
    // the manager's first call is one more; none was sent by both
    assert_eq!(site.stop().requests, succeeded + 1);
    let moved = report["fleet"]["moved"].as_array().unwrap();
    assert_eq!(moved.len(), 2, "{moved:?}");
    for step in moved {
        assert_eq!(step["refused"], Value::Null);
        assert_eq!((whole(step, "/of"), step["slots"].as_array().unwrap().len()), (6, 1));
        assert_ne!(step["from"], step["to"]);
    }
    let agents = report["fleet"]["agents"].as_array().unwrap();
    let gone: Vec<&Value> = agents.iter().filter(|agent| whole(agent, "/lost") > 0).collect();
    assert_eq!(gone.len(), 1, "{agents:?}");
    assert_eq!(text(gone[0], "/ending"), "others took over its part");
}

#[test]
fn the_next_run_begins_without_an_agent_that_was_lost() {
    need_server();
    let site = Site::start(&[]);
    let options = ["--on-agent-loss", "continue", "--rate", "40/s", "-d", "3s", "--repeat", "2"];
    let mut command = fleet("2", &options, &site.url("/"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(&site, || (site.served().requests > 10).then_some(()));
    kill(until(&site, || agents_of(child.id()).first().copied()));
    let (report, found) = report_of(&child.wait_with_output().unwrap());
    assert!(found.contains("is left out") && found.contains("is shared by 1"), "{found}");
    let (due, lost) = (whole(&report, "/outcomes/due"), whole(&report, "/outcomes/lost"));
    let succeeded = whole(&report, "/outcomes/succeeded");
    assert_eq!((due, succeeded + lost), (240, 240), "{found}");
    // at most half of the first run
    assert!((1..=60).contains(&lost), "{lost}: {found}");
    // the run that reports the lost agents
    assert_eq!(report["fleet"]["agents"].as_array().map(Vec::len), Some(2));
    assert_eq!(whole(&report, "/fleet/lost"), lost);
}

/// Runs `command` with `dir` on a small separate file system; `None` if this machine does not
/// permit that.
fn on_small_file_system(command: &Command, dir: &Path) -> Option<Command> {
    let mount = "mount -t tmpfs -o size=1m none \"$0\" && exec \"$@\"";
    let unshared = |words: &mut Command| {
        words.args(["--user", "--map-root-user", "--mount", "sh", "-c", mount]).arg(dir);
    };
    let mut tried = Command::new("unshare");
    unshared(&mut tried);
    let tried = tried.arg("true").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut whole = Command::new("unshare");
    unshared(&mut whole);
    whole.arg(command.get_program()).args(command.get_args()).env("TMPDIR", dir);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => whole.env(name, value),
            None => whole.env_remove(name),
        };
    }
    Some(whole)
}

/// Writes until there is no room left, from outside the namespace.
fn fill(pid: u32, dir: &Path) {
    let inside = dir.strip_prefix("/").unwrap();
    let path = PathBuf::from(format!("/proc/{pid}/root")).join(inside).join("filler");
    let mut file = std::fs::File::create(path).unwrap();
    let page = [7_u8; 4_096];
    let full = (0..1_000).find_map(|_| file.write_all(&page).err());
    assert_eq!(full.map(|error| error.kind()), Some(std::io::ErrorKind::StorageFull));
}

#[test]
fn a_server_killed_on_a_full_disk_restarts_and_no_call_is_lost() {
    need_server();
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let plain = fleet("2", &["--rate", "50/s", "-d", "5s"], &site.url("/"));
    let little = on_small_file_system(&plain, folder.path());
    let full = little.is_some();
    if !full {
        writeln!(std::io::stderr(), "no namespace of one's own: the disk is not full").ok();
    }
    let mut command = little.unwrap_or(plain);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(&site, || (site.served().requests > 20).then_some(()));
    if full {
        fill(child.id(), folder.path());
    }
    let server = until(&site, || children_of(child.id(), "nats-server").first().copied());
    kill(server);
    let (report, found) = report_of(&child.wait_with_output().unwrap());
    assert!(found.contains("nats-server had exited and was restarted"), "{found}");
    assert_eq!(whole(&report, "/outcomes/succeeded"), 250, "{found}");
    assert_eq!(whole(&report, "/outcomes/due"), 250);
    let causes = report["verdict"]["causes"].to_string();
    assert!(!causes.contains("agent-lost"), "{causes}");
}

/// An operator's server, with keys for agents that use it.
struct Hub {
    dir: PathBuf,
    nats: String,
    _server: Ended,
    _folder: tempfile::TempDir,
}

impl Hub {
    fn open(agents: &str) -> Hub {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("keys");
        run(&["fleet", "creds", &dir.display().to_string(), "--agents", agents]).expect(&[0]);
        let (server, nats) = own_server(&dir.join("server.conf"));
        Hub { dir, nats, _server: server, _folder: folder }
    }

    fn manager(&self, words: &[&str]) -> Command {
        let creds = self.dir.display().to_string();
        let all = ["fleet", "manager", "--creds", &creds, "--nats", &self.nats];
        let mut command = program(&[&all[..], words, &["--json", "-"]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn agent(&self, row: u32) -> Ended {
        let creds = self.dir.join(format!("agent-{row}.creds")).display().to_string();
        let args = ["fleet", "agent", "--manager", &self.nats, "--creds", &creds];
        Ended(program(&args).stderr(Stdio::null()).spawn().unwrap())
    }
}

#[test]
fn agents_without_a_manager_stop_in_5_s_and_serve_the_next() {
    need_server();
    let (site, hub) = (Site::start(&[]), Hub::open("1"));
    let url = site.url("/");
    let work = ["--agents", "1", "--rate", "100/s", "-d", "60s", &url];
    let mut manager = Ended(hub.manager(&work).spawn().unwrap());
    let mut agent = hub.agent(0);
    until(&site, || (site.served().requests > 20).then_some(()));
    manager.0.kill().unwrap();
    manager.0.wait().unwrap();
    let (killed, mut seen, mut quiet) = (Instant::now(), 0, Instant::now());
    until(&site, || {
        let now = site.served().requests;
        if now != seen {
            (seen, quiet) = (now, Instant::now());
        }
        (quiet.elapsed() > Duration::from_millis(800)).then_some(())
    });
    let stopped = quiet - killed;
    assert!(stopped > Duration::from_secs(3) && stopped < Duration::from_secs(6), "{stopped:?}");
    assert!(agent.0.try_wait().unwrap().is_none(), "it keeps what it counted");
    let words = ["--agents", "1", "--rate", "100/s", "-n", "30", &url];
    let (report, found) = report_of(&hub.manager(&words).output().unwrap());
    assert_eq!(whole(&report, "/outcomes/succeeded"), 30, "{found}");
}

#[test]
fn a_manager_that_is_frozen_for_three_seconds_misses_nothing() {
    need_server();
    let (site, hub) = (Site::start(&[]), Hub::open("2"));
    let url = site.url("/");
    let work = ["--agents", "2", "--rate", "50/s", "-d", "6s", &url];
    let mut command = hub.manager(&work);
    let manager = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _agents = [hub.agent(0), hub.agent(1)];
    until(&site, || (site.served().requests > 20).then_some(()));
    signal(manager.id(), "STOP");
    let (frozen, before) = (Instant::now(), site.served().requests);
    // the NATS server drops messages that it cannot store, and the agents continue
    until(&site, || (frozen.elapsed() > Duration::from_secs(3)).then_some(()));
    let meanwhile = site.served().requests - before;
    signal(manager.id(), "CONT");
    let (report, found) = report_of(&manager.wait_with_output().unwrap());
    assert!(meanwhile > 75, "{meanwhile} calls of 150: {found}");
    assert_eq!(whole(&report, "/outcomes/due"), 300, "{found}");
    assert_eq!(whole(&report, "/outcomes/succeeded"), 300, "{found}");
    assert_eq!(whole(&report, "/response_time_s/count"), 300);
}

#[test]
fn a_fresh_manager_ends_the_run_of_one_that_has_just_died() {
    need_server();
    let (site, hub) = (Site::start(&[]), Hub::open("1"));
    let url = site.url("/");
    let work = ["--agents", "1", "--rate", "50/s", "-d", "60s", &url];
    let mut manager = Ended(hub.manager(&work).spawn().unwrap());
    let _agent = hub.agent(0);
    until(&site, || (site.served().requests > 20).then_some(()));
    manager.0.kill().unwrap();
    manager.0.wait().unwrap();
    let words = ["--agents", "1", "--rate", "50/s", "-n", "30", &url];
    let (report, found) = report_of(&hub.manager(&words).output().unwrap());
    assert_eq!(whole(&report, "/outcomes/succeeded"), 30, "{found}");
    assert_eq!(whole(&report, "/outcomes/due"), 30);
}

#[test]
fn a_run_is_taken_over_without_an_agent_that_died_too() {
    need_server();
    let (site, hub) = (Site::start(&[]), Hub::open("2"));
    let url = site.url("/");
    let work = ["--rate", "50/s", "-d", "4s", &url];
    let mut manager =
        Ended(hub.manager(&[&["--agents", "2"], &work[..]].concat()).spawn().unwrap());
    let (_one, mut other) = (hub.agent(0), hub.agent(1));
    until(&site, || (site.served().requests > 20).then_some(()));
    for process in [&mut manager, &mut other] {
        process.0.kill().unwrap();
        process.0.wait().unwrap();
    }
    // the number of agents is part of the run
    let (report, found) =
        report_of(&hub.manager(&[&["--attach"], &work[..]].concat()).output().unwrap());
    assert_eq!(whole(&report, "/outcomes/due"), 200, "{found}");
    assert_eq!(whole(&report, "/outcomes/succeeded"), 100, "{found}");
    assert_eq!(whole(&report, "/outcomes/lost"), 100);
    assert!(found.contains("no agent holds them"), "{found}");
}

#[test]
fn unsupported_fleet_plans_are_refused_before_the_first_call() {
    need_server();
    let site = Site::start(&[]);
    let refused = |words: &[&str]| {
        let ran = finish(fleet("1", words, &site.url("/")), b"");
        ran.expect(&[2]).stderr.clone()
    };
    let over = refused(&["--budget", "127.0.0.1=100/s", "--rate", "101/s", "-d", "1s"]);
    assert!(over.contains("the plan asks for 101/s of all agents together"), "{over}");
    let closed = refused(&["--on-agent-loss", "redistribute", "-c", "2", "-d", "1s"]);
    assert!(closed.contains("users of a closed loop"), "{closed}");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls").display().to_string();
    let logged = refused(&["--rate", "10/s", "-d", "1s", "--log", &log]);
    assert!(logged.contains("--log writes the calls of one machine"), "{logged}");
    assert_eq!(site.stop().requests, 0);
}
