//! The guide's pages on gates, as a reader follows them: in an empty folder, with an empty home and
//! no environment variables. The runs are shorter, and use free ports.

use crate::support::{Site, binary, finish, free_port, untested};
use serde_json::Value;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit until a server of the page listens.
const START_MAX: Duration = Duration::from_secs(20);

/// Runs a command of a page in the reader's shell.
fn shell(command: &str, folder: &Path) -> Command {
    let path = format!("{}:/usr/sbin:/usr/bin:/bin", binary().parent().unwrap().display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).env_clear().current_dir(folder);
    shell.env("PATH", path).env("HOME", folder);
    shell
}

/// Returns whether the shell finds a program; the test is skipped without it.
fn has(program: &str) -> bool {
    let found = shell(&format!("command -v {program}"), Path::new("/")).output();
    let found = found.is_ok_and(|output| output.status.success());
    found || untested(&format!("{program} is missing: apt-get install {program}"))
}

/// A server of the page, until the test ends.
struct Server(Child);

impl Server {
    #[track_caller]
    fn start(command: &str, port: u16, folder: &Path) -> Server {
        let mut command = shell(&format!("exec {command}"), folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Server(command.spawn().unwrap());
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.0.try_wait().unwrap().is_none(), "{command:?} ended");
            assert!(Instant::now() < deadline, "{command:?} does not listen");
            std::thread::yield_now();
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_gate_in_ten_minutes_works_as_written() {
    if !has("nginx") {
        return;
    }
    let page = include_str!("../../../../docs/guide/measure-a-server.md");
    let (_, section) = page.split_once("\n## Ten minutes").expect("the page has the section");
    let (section, _) = section.split_once("\n## ").expect("another section follows");
    let ports = [free_port(), free_port()];
    let typed = |text: &str| {
        let text = text.replace("8311", &ports[0].to_string());
        let text = text.replace("8312", &ports[1].to_string()).replace("-d 5s", "-d 600ms");
        // one process, which ends with the test
        text.replace("daemon off;", "daemon off; master_process off;")
    };
    let folder = tempfile::tempdir().unwrap();
    let (mut servers, mut runs) = (Vec::new(), Vec::new());
    let mut lines = section.lines();
    while let Some(line) = lines.next() {
        let mark = line.strip_prefix("<!-- ").and_then(|mark| mark.strip_suffix(" -->"));
        let Some((kind, command)) = mark.and_then(|mark| mark.split_once(": ")) else { continue };
        let command = typed(command);
        if kind == "file" {
            let block = lines.by_ref().skip(1).take_while(|line| *line != "```");
            let text: String = block.map(|line| format!("{line}\n")).collect();
            std::fs::write(folder.path().join(command), typed(&text)).unwrap();
        } else if kind.starts_with("start ") {
            servers.push(Server::start(&command, ports[servers.len()], folder.path()));
        } else {
            let wanted = kind.rsplit_once("exit ").map_or(0, |(_, code)| code.parse().unwrap());
            // 4 on a busy machine
            let ran = finish(shell(&command, folder.path()), b"").expect(&[wanted, 4]);
            runs.push(ran.stdout);
        }
    }
    assert_eq!(servers.len(), 2, "the good and the bad deployment");
    let lines = runs.iter().filter(|text| text.contains(" · "));
    let failing: Vec<bool> = lines.map(|text| text.starts_with("failing · ")).collect();
    assert_eq!(failing, [true, false, false, false, true], "{runs:?}");
}

#[test]
fn the_gate_in_ci_writes_result_and_summary() {
    let page = include_str!("../../../../docs/guide/in-ci.md");
    let line = page.lines().find_map(|line| line.strip_prefix("$ loadstone run http://"));
    let line = line.expect("the page has a run");
    let (_, options) = line.split_once("/hw ").expect("the run has options");
    let site = Site::start(&[("delay", "5ms..30ms")]);
    let url = site.url("/hw");
    let summary = "--md \"$GITHUB_STEP_SUMMARY\"";
    assert!(page.contains(summary), "the page writes the job summary");
    let shell_line =
        format!("loadstone run {url} {} {summary}", options.replace("-d 5s", "-d 700ms"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("summary.md"), "before\n").unwrap();
    let mut command = shell(&shell_line, folder.path());
    command.env("GITHUB_STEP_SUMMARY", "summary.md");
    // its p99 is above the bound, unless there are too few samples or this machine is too busy
    let ran = finish(command, b"").expect(&[1, 4]);
    assert!(ran.stdout.contains("p99<25ms"), "{}", ran.stdout);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let json: Value = serde_json::from_str(&read("result.json")).unwrap();
    assert_eq!(json["slo"][1]["objective"], "p99<25ms");
    let summary = read("summary.md");
    assert!(summary.starts_with("before\n") && summary.contains("p99&lt;25ms"), "{summary}");
}
