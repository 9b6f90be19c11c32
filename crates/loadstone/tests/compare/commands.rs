//! Two servers that the comparison starts and ends itself, on one port.

use crate::support::process::run;
use crate::support::{Ran, behind, finish, free_port, program, text};
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Five blocks of short runs, each ended by a count of calls.
const SHORT: [&str; 7] = ["compare", "-c", "1", "-n", "8", "--blocks", "5"];
/// Time limit of every wait.
const WALL_MAX: Duration = Duration::from_secs(60);

/// Port, and commands that start the built-in site on it.
struct Scene {
    address: String,
}

impl Scene {
    fn new() -> Scene {
        Scene { address: format!("127.0.0.1:{}", free_port()) }
    }

    fn url(&self) -> String {
        format!("http://{}/hw", self.address)
    }

    fn site(&self, options: &str) -> String {
        format!("'{}' site --listen {} {options}", crate::support::binary().display(), self.address)
    }

    fn words<'a>(&self, a: &'a str, b: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&SHORT[..], more, &["--a-command", a, "--b-command", b]].concat()
    }

    #[track_caller]
    fn compare(&self, a: &str, b: &str, more: &[&str]) -> Ran {
        let ran = run(&[&self.words(a, b, more)[..], &[&self.url()]].concat());
        self.assert_no_leftovers();
        ran
    }

    /// Checks that no process has this port in its command line, and that no server listens on the
    /// port.
    #[track_caller]
    fn assert_no_leftovers(&self) {
        let mut left = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(&self.address) {
                left.push(line);
            }
        }
        assert_eq!(left, Vec::<String>::new());
        assert!(TcpStream::connect(&self.address).is_err(), "somebody listens");
    }

    /// Waits until a server of the comparison is up.
    fn wait_for_server(&self, child: &mut Child) {
        let start = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "it ended before a server was up");
            assert!(start.elapsed() < WALL_MAX, "no server came up");
            std::thread::yield_now();
        }
    }

    /// Starts a comparison of long runs, and waits for the start of its first server.
    fn started(&self, a: &str, b: &str) -> Child {
        let words = ["compare", "-d", "1m", "-q", "--a-command", a, "--b-command", b, &self.url()];
        let mut command = program(&words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.wait_for_server(&mut child);
        child
    }
}

/// 60 ms differs from 1 ms by more than the noise, even on a busy machine.
#[test]
fn two_builds_on_one_port_are_distinguished() {
    let scene = Scene::new();
    let (quick, slow) = (scene.site("--delay 1ms"), scene.site("--delay 60ms"));
    let json = scene.compare(&quick, &slow, &["--json", "-"]).expect(&[0, 4]).json();
    let all = json["differences"].as_array().unwrap();
    let p50 = all.iter().find(|one| one["figure"] == "p50").unwrap();
    assert_eq!(p50["judgement"], "worse", "{json:#}");
    assert_eq!(text(&json, "/before/command"), quick);
    assert_eq!(text(&json, "/after/command"), slow);
    assert!(text(&json, "/before/label").ends_with(" --delay 1ms"), "{}", json["before"]["label"]);
    assert_eq!(json["before"]["runs"].as_array().unwrap().len(), 10);
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/schema/compare.schema.json")).unwrap();
    let faults: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&json)
        .map(|fault| fault.to_string())
        .collect();
    assert_eq!(faults, Vec::<String>::new());
}

/// Processes that a command starts are terminated with it, even in the background, in their own
/// session, and if they ignore TERM.
#[test]
fn nothing_of_a_server_is_left() {
    let scene = Scene::new();
    let site = scene.site("");
    let background = format!("setsid {site} >/dev/null 2>&1 &");
    let with_others = format!(": {0}; sh -c ': {0}; sleep 500' & {site}", scene.address);
    let ran = scene.compare(&background, &with_others, &[]).expect(&[0, 4]);
    assert!(ran.stdout.contains("restarted for each run"), "{}", ran.stdout);
    let ignores_term = format!("trap '' TERM; {site} & sleep 500");
    let ran = scene.compare(&ignores_term, "exit 3", &["--ready", "20s"]).expect(&[3]);
    assert!(ran.stderr.contains("B's server ended with exit code 3 before"), "{}", ran.stderr);
}

#[test]
fn a_server_that_never_starts_is_reported_with_its_output() {
    let scene = Scene::new();
    let site = scene.site("");
    let ran = scene.compare("echo to build: make >&2; exit 7", &site, &[]).expect(&[3]);
    let text = "A's server ended with exit code 7 before it answered at http://";
    assert!(ran.stderr.contains(text), "{}", ran.stderr);
    assert!(ran.stderr.contains("loadstone:   to build: make\n"), "{}", ran.stderr);
    let ran = scene.compare(&site, "kill -KILL $$", &[]).expect(&[3]);
    assert!(ran.stderr.contains("B's server ended by signal 9"), "{}", ran.stderr);
    assert!(ran.stderr.contains("It printed nothing."), "{}", ran.stderr);
    let mute = format!(": {}; sleep 500", scene.address);
    let ran = scene.compare(&mute, &site, &["--ready", "200ms"]).expect(&[3]);
    let text = "within 200 ms: ";
    assert!(ran.stderr.contains(text) && ran.stderr.contains("--ready waits"), "{}", ran.stderr);
}

#[test]
fn a_taken_port_is_reported() {
    let scene = Scene::new();
    let taken = crate::support::Site::start(&[]);
    let url = taken.url("/hw");
    let site = scene.site("");
    let ran = run(&[&scene.words(&site, &site, &[])[..], &[&url]].concat()).expect(&[2]);
    let text = format!("a server answers at {url} before A's server is started");
    assert!(ran.stderr.contains(&text), "{}", ran.stderr);
    scene.assert_no_leftovers();
}

/// A server exits during the comparison: the complete blocks are reported, or that there are none.
#[test]
fn a_server_that_dies_during_a_measurement_ends_the_session() {
    let scene = Scene::new();
    let dying = format!("{} & sleep 0.2; kill $!; echo good bye", scene.site(""));
    let site = scene.site("");
    let words = ["compare", "-c", "1", "-d", "5s", "--blocks", "5"];
    let commands = ["--a-command", &dying, "--b-command", &site, &scene.url()];
    let ran = run(&[&words[..], &commands].concat()).expect(&[3, 4]);
    // as soon as it is up, or later, depending on the load of the machine
    let found = ["A's server exited with exit code 0", "stopped answering: none of"];
    assert!(found.iter().any(|found| ran.stderr.contains(found)), "{}", ran.stderr);
    scene.assert_no_leftovers();
}

#[test]
fn ctrl_c_ends_the_server_too() {
    let scene = Scene::new();
    let site = scene.site("");
    let mut child = scene.started(&site, &site);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    scene.assert_no_leftovers();
}

/// A service manager may send both signals at once; the program still shuts down in order.
#[test]
fn a_hangup_after_an_interrupt_cuts_nothing_short() {
    let scene = Scene::new();
    let site = scene.site("");
    let mut command = program(&["compare", "-d", "1m", "--a-command", &site, "--b-command", &site]);
    command.arg(scene.url()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    scene.wait_for_server(&mut child);
    let pid = Pid::from_child(&child);
    for signal in [Signal::TERM, Signal::HUP] {
        kill_process(pid, signal).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("interrupted before the first block was complete"), "{errors}");
    scene.assert_no_leftovers();
}

/// A second signal ends the program at once, with its server, even if that ignores TERM.
#[test]
fn a_second_ctrl_c_kills_the_server() {
    let scene = Scene::new();
    let ignores_term =
        format!("trap '' TERM INT; {} & while :; do sleep 500; done", scene.site(""));
    let mut child = scene.started(&ignores_term, &ignores_term);
    let pid = Pid::from_child(&child);
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(start.elapsed() < WALL_MAX);
        kill_process(pid, Signal::INT).unwrap();
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(130));
    scene.assert_no_leftovers();
}

/// The program raises its own descriptor limit for its connections; servers get the user's limit.
#[test]
fn every_server_has_the_same_limits() {
    let (scene, folder) = (Scene::new(), tempfile::tempdir().unwrap());
    let log = folder.path().join("limits");
    let site = format!("ulimit -S -n >> '{}'; {}", log.display(), scene.site(""));
    let mut command: Command = behind(&["sh", "-c", "ulimit -S -n 256; exec \"$0\" \"$@\""]);
    let url = scene.url();
    let words = ["compare", "-q", "-c", "400", "-n", "400", "--blocks", "5"];
    command.args(words).args(["--a-command", &site, "--b-command", &site, &url]);
    finish(command, b"").expect(&[0, 4]);
    let limits = std::fs::read_to_string(log).unwrap();
    let limits: Vec<&str> = limits.lines().collect();
    // each side once for the start check, and once for each run
    assert_eq!(limits, vec!["256"; 22]);
    scene.assert_no_leftovers();
}

#[test]
fn commands_and_urls_that_do_not_go_together_are_refused() {
    let one = "http://127.0.0.1:1/";
    for (words, found) in [
        (&["--b-command", "b", one][..], "one URL needs two servers"),
        (&["--ready", "1s", one, one], "--ready is for servers that --a-command"),
        (&["--a-command", " ", "--b-command", "b", one], "this one is empty"),
        (&["--a-command", "a", "run-1", "run-2"], "stored runs are compared as they are"),
        (&["--sut", "1", one, one], "--sut is for single runs and ramps"),
    ] {
        let ran = run(&[&["compare"], words].concat()).expect(&[2]);
        assert!(ran.stderr.contains(found), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn the_plans_name_the_commands() {
    let words = ["--print-plan", "--a-command", "./old\n--fast", "--b-command", "./new"];
    let ran = run(&[&SHORT[..], &words, &["http://127.0.0.1:1/a"]].concat()).expect(&[0]);
    let text = "the server, restarted for each run:\n#   ./old\n#   --fast\n";
    assert!(ran.stdout.contains(text), "{}", ran.stdout);
    assert!(ran.stdout.contains("# ./new: 5 blocks of four runs\n"), "{}", ran.stdout);
    let plan: toml::Table = ran.stdout.split("# ./new").next().unwrap().parse().unwrap();
    assert!(plan.contains_key("targets"), "{plan}");
}
