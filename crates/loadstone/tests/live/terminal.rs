//! `run --live`, `ramp --live` and `demo --live` on a real terminal, made by script(1): the
//! drawing, the keys, and the restored terminal.

use crate::support::{Site, program, run};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Time limit of every wait, even on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(120);

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// Terminal of 80 by 24 that runs Loadstone.
struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    from: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    /// Runs `loadstone ARGS`, then reports whether the terminal reads lines again (`icanon`).
    fn start(args: &str) -> Terminal {
        Terminal::start_after(":", args)
    }

    /// Starts a shell command that then executes Loadstone.
    fn start_after(first: &str, args: &str) -> Terminal {
        let plain = program::<&str>(&[]);
        let loadstone = plain.get_program().to_string_lossy().into_owned();
        let line = format!(
            "stty rows 24 cols 80; sh -c '{first}; echo pid $$ .; exec {loadstone} {args}'; code=$?; \
             stty -a | tr ';' '\\n' | tr ' ' '\\n' | grep icanon; exit $code"
        );
        let mut child = Command::new("script")
            .args(["-qefc", &line, "/dev/null"])
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, from) = channel();
        let mut out = child.stdout.take().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut buffer) {
                tell.send(buffer[..count].to_vec()).ok();
            }
        });
        let keys = child.stdin.take();
        Terminal { child, keys, from, seen: String::new() }
    }

    /// Reads until the terminal has received `text`.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let more = self.from.recv_timeout(WAIT_MAX);
            let more = more.unwrap_or_else(|_| panic!("{text:?} never came: {}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
    }

    /// Requests complete redraws until the view shows `text`; normally only changes are sent.
    #[track_caller]
    fn wait_for_whole(&mut self, text: &str) {
        while !self.seen.contains(text) {
            // the program may have exited: earlier output is still read
            self.keys.as_mut().unwrap().write_all(b"\x0c").ok();
            let more = self.from.recv_timeout(WAIT_MAX);
            let more = more.unwrap_or_else(|_| panic!("{text:?} never came: {}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    fn pid(&self) -> Pid {
        let pid = self.seen.split("pid ").nth(1).unwrap().split(' ').next().unwrap();
        Pid::from_raw(pid.parse().unwrap()).unwrap()
    }

    /// Closes the other end of the terminal, runs `then`, and waits until Loadstone has ended.
    #[track_caller]
    fn close_terminal(mut self, then: impl FnOnce(Pid)) {
        let pid = self.pid();
        let program = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        // the other end closes when the program that holds it ends
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        then(pid);
        let span = Timespec { tv_sec: WAIT_MAX.as_secs() as i64, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&program, PollFlags::IN)], Some(&span)).unwrap();
        if ended == 0 {
            kill_process(pid, Signal::KILL).ok();
            panic!("still there {WAIT_MAX:?} after its terminal has gone: {}", self.seen);
        }
    }

    /// Returns the exit code, and the content of the terminal after the view has closed.
    #[track_caller]
    fn end(mut self) -> (i32, String) {
        self.wait_for("icanon");
        let code = self.child.wait().unwrap().code().unwrap();
        assert_eq!(self.seen.matches(ENTER).count(), 1, "{}", self.seen);
        let (_, after) = self.seen.split_once(LEAVE).expect("the view leaves its screen");
        assert!(!after.contains("-icanon"), "the terminal still waits for single keys: {after}");
        (code, after.to_owned())
    }
}

#[test]
fn it_shows_the_run_and_then_the_report() {
    let site = Site::start(&[]);
    let args = format!("run --live -c 2 -n 300 --think 10ms --slo \"p50<10s\" {}", site.url("/hw"));
    let mut terminal = Terminal::start(&args);
    for part in ["Response time", "Responses and failures", "in flight", "closed loop of 2 users"] {
        terminal.wait_for(part);
    }
    terminal.wait_for("so far");
    let (code, report) = terminal.end();
    // a busy machine may make such a short run INVALID
    assert!([0, 4].contains(&code), "{code}: {report}");
    assert!(report.contains("response time"), "{report}");
    assert_eq!(site.stop().requests, 301);
}

#[test]
fn a_key_stops_the_run_with_its_report() {
    for key in ["q", "\u{3}"] {
        let site = Site::start(&[]);
        let mut terminal =
            Terminal::start(&format!("run --live -c 2 -d 10m --think 10ms {}", site.url("/hw")));
        terminal.wait_for("measuring");
        terminal.press(key);
        let (code, report) = terminal.end();
        assert!([130, 4].contains(&code), "{code}: {report}");
        assert!(report.contains("interrupted"), "{report}");
    }
}

#[test]
fn help_opens_and_closes() {
    let site = Site::start(&[]);
    let mut terminal =
        Terminal::start(&format!("run --live -c 2 -d 10m --think 10ms {}", site.url("/hw")));
    terminal.wait_for("measuring");
    terminal.press("?");
    terminal.wait_for("Keys and words");
    terminal.press("\u{1b}");
    terminal.press("q");
    terminal.end();
}

#[test]
fn signals_give_the_terminal_back() {
    for signals in [&[Signal::TERM][..], &[Signal::TERM, Signal::TERM], &[Signal::INT; 3]] {
        let site = Site::start(&[]);
        let mut terminal =
            Terminal::start(&format!("run --live -c 2 -d 10m --think 10ms {}", site.url("/hw")));
        terminal.wait_for("measuring");
        let pid = terminal.pid();
        for signal in signals {
            // the program may have exited before the last one
            kill_process(pid, *signal).ok();
        }
        let (code, _) = terminal.end();
        assert!([130, 4].contains(&code), "{code}");
    }
}

fn interrupted(json: &std::path::Path) -> serde_json::Value {
    let text = std::fs::read_to_string(json).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["interrupted"].take()
}

/// The view ends with its terminal in every case, and nothing waits for keys that cannot arrive.
#[test]
fn a_closed_terminal_ends_the_view_at_once() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let args = |stop: &str| {
        let (json, url) = (json.display(), site.url("/hw"));
        format!("run --live -c 2 {stop} --think 10ms --json {json} {url}")
    };
    let mut hung_up = Terminal::start(&args("-d 10m"));
    hung_up.wait_for("measuring");
    hung_up.close_terminal(|_| {});
    assert_eq!(interrupted(&json), true);

    let mut outlives_it = Terminal::start_after("trap \"\" HUP", &args("-n 600"));
    outlives_it.wait_for("measuring");
    outlives_it.close_terminal(|_| {});
    assert_eq!(interrupted(&json), false);

    let mut signaled = Terminal::start_after("trap \"\" HUP", &args("-d 10m"));
    signaled.wait_for("measuring");
    signaled.close_terminal(|pid| kill_process(pid, Signal::TERM).unwrap());
    assert_eq!(interrupted(&json), true);
}

#[test]
fn a_ramp_shows_its_steps_and_the_curve_so_far() {
    // the call before the first step takes long enough for the view to be drawn
    let site = Site::start(&[("delay", "500ms")]);
    let steps = "--population --from 1 --to 3 --step 1 --hold 4s --think 10ms --no-overload";
    let args = format!("ramp --live {steps} --slo \"p50<10s\" {}", site.url("/hw"));
    let mut terminal = Terminal::start(&args);
    for part in ["before the first step", "Curve so far", "achieved"] {
        terminal.wait_for(part);
    }
    for part in ["step 1 of 3", "knee", "p50<10s"] {
        terminal.wait_for_whole(part);
    }
    terminal.wait_for_whole("step 2 of 3");
    let (code, report) = terminal.end();
    assert!([0, 1, 4].contains(&code), "{code}: {report}");
    assert!(report.contains("Steps"), "{report}");
}

#[test]
fn a_key_stops_a_ramp_with_its_report() {
    let site = Site::start(&[]);
    let steps = "--population --from 1 --to 3 --step 1 --hold 10m --think 10ms";
    let mut terminal = Terminal::start(&format!("ramp --live {steps} {}", site.url("/hw")));
    terminal.wait_for("measuring");
    terminal.press("q");
    let (code, report) = terminal.end();
    assert!([130, 4].contains(&code), "{code}: {report}");
}

#[test]
fn the_demo_can_be_watched() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let args = format!("demo --live -d 2s --rate 50/s --html {}", page.display());
    let mut terminal = Terminal::start(&args);
    terminal.wait_for("Responses and failures");
    let (code, report) = terminal.end();
    let text = format!("as a page: {}", page.display());
    assert!([0, 4].contains(&code) && report.contains(&text), "{code}: {report}");
}

#[test]
fn a_missing_terminal_is_reported_with_a_fix() {
    let errors = run(&["run", "--live", "http://127.0.0.1:1/"]).expect(&[2]).stderr;
    assert!(errors.contains("--live draws on standard error"), "{errors}");
    let errors = run(&["run", "--live", "--quiet", "http://127.0.0.1:1/"]).expect(&[2]).stderr;
    assert!(errors.contains("--live") && errors.contains("--quiet"), "{errors}");
}
