//! Permission, limits, stop signals and the audit log, from outside.

use crate::support::{Scripted, Site, behind, finish, in_process, nginx, program, run, untested};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns a command for torture with its own state folder.
fn torture(state: &Path, args: &[&str]) -> Command {
    let mut command = program(&[&["torture"], args].concat());
    command.env("XDG_STATE_HOME", state);
    command
}

fn log_of(state: &Path) -> PathBuf {
    state.join("loadstone/torture-audit.jsonl")
}

#[test]
fn every_run_is_logged_and_log_changes_are_detected() {
    let state = tempfile::tempdir().unwrap();
    let site = Site::start(&[]);
    let again =
        || in_process(&torture(state.path(), &["--only", "S-01,S-02", &site.url("/hw")]), b"");
    again().expect(&[0]);
    again().expect(&[0]);
    let audit = |ask: &[&str]| in_process(&torture(state.path(), &[&["audit"], ask].concat()), b"");
    assert!(audit(&["verify"]).expect(&[0]).stdout.contains("12 lines, all unchanged"));
    let shown = audit(&["show"]).expect(&[0]).stdout;
    assert!(shown.contains("(local, 127.0.0.1:") && shown.contains("S-02 pass: "), "{shown}");
    let lines = audit(&["show", "--json"]).expect(&[0]).stdout;
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    for key in
        ["uid", "machine", "arguments", "version", "addresses", "class", "own", "bounds", "seed"]
    {
        assert!(first.get(key).is_some(), "{key}: {first:#}");
    }
    let log = log_of(state.path());
    let whole = fs::read_to_string(&log).unwrap();
    let without: Vec<&str> =
        whole.lines().enumerate().filter(|(at, _)| *at != 3).map(|(_, line)| line).collect();
    for (changed, part) in [
        (whole.replacen("\"S-01\"", "\"S-09\"", 1), ", line 2: it was edited"),
        (without.join("\n") + "\n", ", line 4: it is number 5 instead of 4"),
        (
            whole.lines().take(6).collect::<Vec<_>>().join("\n") + "\n",
            ", line 7: the log had 12 lines",
        ),
    ] {
        fs::write(&log, changed).unwrap();
        let ran = audit(&["verify"]).expect(&[1]);
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    // a log whose end was removed is not extended, and nothing is sent
    let before = site.served().requests;
    let ran = again().expect(&[2]);
    assert!(
        ran.stderr.contains("the audit log cannot be written") && ran.stderr.contains("--no-audit")
    );
    assert_eq!(site.served().requests, before);
    fs::write(&log, whole).unwrap();
    again().expect(&[0]);
}

#[test]
fn nothing_is_sent_without_a_log() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let ran = in_process(&torture(Path::new("/proc/nothing"), &["--only", "S-01", &url]), b"")
        .expect(&[2]);
    assert!(ran.stderr.contains("/proc/nothing/loadstone for the audit log"), "{ran:?}");
    assert!(ran.stderr.contains("XDG_STATE_HOME") && ran.stderr.contains("--no-audit"), "{ran:?}");
    assert_eq!(site.served().requests, 0);
    let only = ["--no-audit", "--only", "S-01", &url];
    in_process(&torture(Path::new("/proc/nothing"), &only), b"").expect(&[0]);
    let ran =
        in_process(&torture(Path::new("/proc/nothing"), &["audit", "verify"]), b"").expect(&[2]);
    assert!(ran.stderr.contains("nothing has been tested yet"), "{ran:?}");
}

#[test]
fn a_dry_run_opens_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let state = tempfile::tempdir().unwrap();
    let ran = in_process(&torture(state.path(), &["--dry-run", "--press", &url]), b"").expect(&[0]);
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    for part in ["nothing is sent", "127.0.0.1 (local)", "open connections", "S-55", "F-01", "all "]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(!log_of(state.path()).exists(), "what did not happen is not written down");
    let ran =
        in_process(&torture(state.path(), &["--dry-run", "http://8.8.8.8/"]), b"").expect(&[0]);
    for part in ["8.8.8.8 (public)", "a proof of permission", "new connections per second 5"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn limits_have_maximums() {
    for (url, option, value, part) in [
        (
            "http://8.8.8.8/",
            "--connections-max",
            "2001",
            "2,001: the maximum for public targets is 2,000 (open connections)",
        ),
        ("http://8.8.8.8/", "--rate-max", "101/s", "targets is 100 (new connections per second)"),
        ("http://8.8.8.8/", "--requests-max", "201", "targets is 200 (requests per second)"),
        ("http://8.8.8.8/", "--bytes-max", "5M/s", "targets is 4.00 MiB (bytes per second)"),
        ("http://8.8.8.8/", "--message-max", "2M", "targets is 1.00 MiB (bytes per message)"),
        ("http://8.8.8.8/", "--case-max", "76s", "(the time of a case)"),
        ("http://8.8.8.8/", "--duration", "31m", "(the time of a run)"),
        (
            "http://10.1.2.3/",
            "--connections-max",
            "4001",
            "the maximum for private targets is 4,000",
        ),
        (
            "http://127.0.0.1/",
            "--connections-max",
            "20001",
            "the maximum for local targets is 20,000",
        ),
        ("http://127.0.0.1/", "--rate-max", "0", "--rate-max 0"),
        ("http://127.0.0.1/", "--rate-max", "x", "write a whole number per second"),
    ] {
        let ran = run(&["torture", "--dry-run", option, value, url]).expect(&[2]);
        assert!(ran.stderr.contains(part), "{option} {value}: {ran:?}");
    }
    let ran = run(&["torture", "--dry-run", "--press", "--only", "S-01,W-01", "http://10.1.2.3/"]);
    let output = ran.expect(&[0]).stdout;
    let joined = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("W-01 skipped: ") && joined.contains("confirm with --own"), "{output}");
    let state = tempfile::tempdir().unwrap();
    let ran = in_process(&torture(state.path(), &["--only", "W-01", "http://10.1.2.3/"]), b"")
        .expect(&[2]);
    assert!(
        ran.stderr.contains("W-01 is not permitted") && ran.stderr.contains("--own"),
        "{ran:?}"
    );
    assert!(!log_of(state.path()).exists(), "refused before anything was begun");
}

#[test]
fn a_server_can_stop_the_run() {
    let server = Scripted::start(|mut stream, _| {
        let mut piece = [0; 4096];
        if matches!(stream.read(&mut piece), Ok(1..)) {
            let response =
                "HTTP/1.1 200 OK\r\nLoadstone-Torture: stop\r\nContent-Length: 2\r\n\r\nhi";
            stream.write_all(response.as_bytes()).ok();
        }
    });
    let state = tempfile::tempdir().unwrap();
    let ran =
        in_process(&torture(state.path(), &["--only", "S-01", &server.url("/")]), b"").expect(&[4]);
    assert!(ran.stdout.contains("the server asked us to stop"), "{ran:?}");
    let log = fs::read_to_string(log_of(state.path())).unwrap();
    assert!(log.contains("\"kind\":\"stop\"") && log.contains("\"why\":\"wish\""), "{log}");
}

#[test]
fn an_orphaned_run_stops() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    // it never responds: only the stop ends the run
    let server = Scripted::start(move |mut stream, _| {
        let mut piece = [0; 4096];
        while matches!(stream.read(&mut piece), Ok(1..)) {
            sender.lock().unwrap().send(()).ok();
        }
    });
    let state = tempfile::tempdir().unwrap();
    let url = server.url("/");
    // a shell that starts the program and exits when its input ends
    let script = format!("\"$0\" torture --only S-01 {url} & read line");
    let mut command = behind(&["sh", "-c", &script]);
    command.env("XDG_STATE_HOME", state.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    receiver.recv().unwrap();
    drop(child.stdin.take());
    let ran = child.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    assert!(output.contains("the parent process has exited"), "{ran:?}");
    let log = fs::read_to_string(log_of(state.path())).unwrap();
    assert!(log.contains("\"kind\":\"stop\"") && log.contains("\"why\":\"permission\""), "{log}");
}

#[test]
fn third_party_machines_are_named_by_their_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("front.txt");
    let name = file.to_str().unwrap();
    fs::write(&file, "10.1.0.0/16 Example CDN # as published\n").unwrap();
    let only = ["torture", "--dry-run", "--press", "--only", "S-01,W-10", "--own", "10.1.2.3"];
    let found = run(&[&only[..], &["--front", name, "http://10.1.2.3/"]].concat());
    let found = found.expect(&[0]).stdout;
    assert!(found.contains("W-10   skipped: its address belongs to Example CDN"), "{found}");
    assert!(!found.contains("S-01   skipped"), "{found}");
    fs::write(&file, "\n10.1.2.3/16 Example CDN\n").unwrap();
    let wrong = run(&[&only[..], &["--front", name, "http://10.1.2.3/"]].concat()).expect(&[2]);
    assert!(wrong.stderr.contains("front.txt: line 2: \"10.1.2.3/16\" has bits"), "{wrong:?}");
    let none = run(&["torture", "--dry-run", "--front", "/none", "http://10.1.2.3/"]).expect(&[2]);
    assert!(none.stderr.contains("/none"), "{none:?}");
}

#[test]
fn every_plain_request_identifies_us() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let server = Scripted::start(move |mut stream, _| {
        let mut piece = [0; 4096];
        if let Ok(count @ 1..) = stream.read(&mut piece) {
            sender.lock().unwrap().send(String::from_utf8_lossy(&piece[..count]).into_owned()).ok();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").ok();
        }
    });
    let options =
        ["--only", "S-01", "--contact", "ops@example.org", "--agent-suffix", "for ticket 7"];
    let state = tempfile::tempdir().unwrap();
    in_process(&torture(state.path(), &[&options[..], &[&server.url("/")]].concat()), b"")
        .expect(&[0, 1]);
    let all: Vec<String> = receiver.try_iter().collect();
    assert!(
        all[0].contains("\r\nUser-Agent: loadstone-torture/")
            && all[0].contains(") for ticket 7\r\n")
    );
    assert!(all[0].contains("\r\nFrom: ops@example.org\r\n"), "{}", all[0]);
    assert!(all.iter().any(|one| one.contains("for ticket 7 (before S-01)")), "{all:#?}");
    assert!(all.last().unwrap().contains("for ticket 7 (after S-01: "), "{all:#?}");
}

/// Public address, in a network namespace without any other connection.
pub(crate) const PUBLIC: &str = "203.0.113.7";
const FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Returns the output of the program for a server at a public address, all in one namespace.
/// `script`: a script with the program as $0; nginx serves the folder `root`.
pub(crate) fn in_public(folder: &Path, script: &str) -> String {
    let root = folder.join("root");
    fs::create_dir_all(root.join(".well-known")).unwrap();
    fs::write(root.join("page.html"), "a page").unwrap();
    let config = format!(
        "user root; daemon off; pid nginx.pid; events {{}} http {{ access_log off; \
         client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; \
         scgi_temp_path t5; server {{ listen {PUBLIC}:8080; root {}; }} }}",
        root.display()
    );
    fs::write(folder.join("nginx.conf"), config).unwrap();
    let script = format!(
        "ip link set lo up && ip addr add {PUBLIC}/32 dev lo && \
         {{ {} -p {folder} -c nginx.conf -e error.log & server=$!; }}; \
         until curl -s -o /dev/null http://{PUBLIC}:8080/page.html; do :; done; \
         {script}; kill $server; wait $server",
        nginx::program(),
        folder = folder.display(),
    );
    let mut command = behind(&["unshare", "--net", "sh", "-c", &script]);
    command.env("PATH", FOLDERS).env("XDG_STATE_HOME", folder.join("state"));
    let ran = finish(command, b"").expect(&[0]);
    format!("{}{}", ran.stdout, ran.stderr)
}

/// Returns whether this user can create such namespaces (`--net`, `--mount`); only root can.
pub(crate) fn namespaces_are_available(kind: &str) -> bool {
    let made = Command::new("unshare").args([kind, "true"]).status();
    let can = made.is_ok_and(|status| status.success());
    can || untested(&format!("not tested: unshare {kind} needs root"))
}

#[test]
fn a_public_server_must_publish_a_proof() {
    if !namespaces_are_available("--net") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{PUBLIC}:8080/page.html");
    let proof = folder.path().join("root/.well-known/loadstone-torture.txt");
    let text = in_public(
        folder.path(),
        &format!(
            "$0 torture --only S-01 {url}; echo refused $?; \
             $0 torture prove --groups fuzz,syntax {url} > {proof}; \
             $0 torture -q --only S-01,S-02 {url}; echo permitted $?; \
             $0 torture --only W-01 {url}; echo group $?; \
             sed -i s/tester:.../tester:\\ 00/ {proof}; \
             $0 torture --only S-01 {url}; echo stranger $?; \
             $0 torture audit verify; echo audit $?; $0 torture audit show",
            proof = proof.display()
        ),
    );
    for part in [
        "refused 2",
        "203.0.113.7 is public, and no proof of permission was found",
        "answered 404 (it must be 200; redirects are not followed)",
        "torture prove http://203.0.113.7:8080/page.html",
        "permitted 0",
        "group 2",
        "W-01 is not permitted: the proof does not name group slow",
        "stranger 2",
        "it names another tester",
        "audit 0",
        "permitted by a proof (file)",
        "refused: the file at 203.0.113.7:8080: answered 404",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
#[cfg(feature = "fleet")]
fn a_fleet_needs_a_proof_for_a_public_server_too() {
    if !namespaces_are_available("--net") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{PUBLIC}:8080/page.html");
    let proof = folder.path().join("root/.well-known/loadstone-torture.txt");
    let fleet = "$0 fleet local --agents 2 -q -n 40 --rate";
    let text = in_public(
        folder.path(),
        &format!(
            "export LOADSTONE_STORE=none; {fleet} 2000/s {url}; echo bare $?; \
             {fleet} 100/s {url} > /dev/null; echo small $?; \
             $0 torture prove --groups overload {url} > {proof}; \
             {fleet} 2000/s {url} > /dev/null; echo proven $?; \
             sed -i s/overload/syntax/ {proof}; {fleet} 2000/s {url}; echo group $?",
            proof = proof.display()
        ),
    );
    for part in [
        "bare 2",
        "203.0.113.7:8080 is public, and 2,000/s from 2 machines need its owner's permission",
        "torture prove --groups overload http://203.0.113.7:8080/page.html",
        "group 2",
        "the proof does not name the group overload",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // the verdict of a run with so few calls may vary
    let ran = |name: &str| [0, 4].iter().any(|code| text.contains(&format!("{name} {code}")));
    assert!(ran("small") && ran("proven"), "{text}");
}
