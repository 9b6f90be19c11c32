//! The server's processes during torture: crashes by their signal, restarts, workers, and a process
//! named by the user.

use super::{outcome, support};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use support::process::run;
use support::{Scripted, Site, behind, free_port, text};

/// Separate server that ends with the test, and the first lines of its output.
struct SeparateServer {
    child: Child,
    address: String,
    /// Keeps the pipe open for later output.
    _printed: BufReader<ChildStdout>,
}

impl SeparateServer {
    fn start(mut command: Command) -> SeparateServer {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        printed.read_line(&mut address).unwrap();
        SeparateServer { child, address: address.trim().to_owned(), _printed: printed }
    }

    fn site(switches: &str) -> SeparateServer {
        let mut command = support::program(&["site", "--listen", "127.0.0.1:0"]);
        command.args(["--range", switches]);
        SeparateServer::start(command)
    }
}

impl Drop for SeparateServer {
    fn drop(&mut self) {
        // it may have ended already
        kill_process(Pid::from_child(&self.child), Signal::TERM).ok();
        self.child.wait().ok();
    }
}

fn notes(document: &Value, id: &str) -> String {
    let cases = document["cases"].as_array().unwrap();
    cases.iter().find(|case| text(case, "/id") == id).unwrap()["notes"].to_string()
}

const FUZZ: [&str; 7] = ["torture", "--quick", "--no-shrink", "--only", "F-09", "--json", "-"];

/// Returns whether the kernel reports how a process ended that is not our child.
fn kernel_reports_exits() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

/// A shell restarts the server whenever it has ended.
#[test]
fn a_server_that_aborts_and_restarts_has_crashed_by_signal_6() {
    let script = format!(
        "ulimit -c 0; trap 'kill $own; exit' TERM; while :; do \
         \"$0\" site --listen 127.0.0.1:{} --range aborts-on-nul & own=$!; wait $own; done",
        free_port()
    );
    let server = SeparateServer::start(behind(&["sh", "-c", &script]));
    let url = format!("{}{}", server.address, faulty::PATH);
    let document = run(&[&FUZZ[..], &[&url]].concat()).expect(&[1]).json();
    assert_eq!(outcome(&document, "F-09"), "crashed", "{document:#}");
    let notes = notes(&document, "F-09");
    let how = if kernel_reports_exits() { "ended: signal 6 (SIGABRT)" } else { "ended: " };
    assert!(notes.contains("the server loadstone (pid ") && notes.contains(how), "{notes}");
    assert!(notes.contains("listens now"), "{notes}");
    let (before, after) = (&document["server"]["before"], &document["server"]["after"]);
    assert_ne!(before["listeners"][0]["pid"], after["listeners"][0]["pid"], "{document:#}");
}

/// The parent forks a new worker for each worker that ended.
const FORKING: &str = "\
import os, signal, socket, time
os.setpgid(0, 0)
signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(64)
print('127.0.0.1:%d' % listener.getsockname()[1], flush=True)
def work():
    while True:
        client, _ = listener.accept()
        client.settimeout(5)
        heard = b''
        try:
            while b'\\r\\n\\r\\n' not in heard:
                piece = client.recv(65536)
                if not piece:
                    break
                heard += piece
            if b'%00' in heard:
                signal.signal(signal.SIGSEGV, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGSEGV)
            client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nhi')
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        except OSError:
            pass
        client.close()
def fork():
    if os.fork() == 0:
        work()
fork()
fork()
while True:
    time.sleep(0.02)
    while os.waitpid(-1, os.WNOHANG)[0]:
        fork()
";

#[test]
fn a_crashed_worker_is_reported_as_a_worker() {
    let mut python = Command::new("sh");
    python.args(["-c", "ulimit -c 0; exec python3 -c \"$0\"", FORKING]);
    let server = SeparateServer::start(python);
    let url = format!("http://{}/", server.address);
    let document = run(&[&FUZZ[..], &[&url]].concat()).expect(&[1]).json();
    let notes = notes(&document, "F-09");
    assert!(notes.contains("a worker, python3 (pid "), "{notes}");
    assert!(!kernel_reports_exits() || notes.contains("ended: signal 11 (SIGSEGV)"), "{notes}");
    assert_ne!(outcome(&document, "F-09"), "crashed");
    let listeners = &document["server"]["after"]["listeners"];
    assert_eq!(listeners[0]["pid"], server.child.id(), "{listeners}");
}

#[test]
fn a_correct_server_is_watched_without_remarks() {
    let server = SeparateServer::site("none");
    let url = format!("{}{}", server.address, faulty::PATH);
    let only = ["torture", "--only", "S-01,S-08", "--json", "-"];
    let pid = server.child.id().to_string();
    for named in [&[][..], &["--sut", &pid]] {
        let document = run(&[&only[..], named, &[&url]].concat()).expect(&[0]).json();
        let before = &document["server"]["before"];
        assert_eq!(before["listeners"][0]["pid"], server.child.id(), "{document:#}");
        assert!(before["memory_bytes"].as_u64().unwrap() > 1 << 20, "{before:#}");
        assert!(before["descriptors"].as_u64().unwrap() > 3, "{before:#}");
        assert_eq!(document["cases"][0]["server"]["deaths"], Value::Array(Vec::new()));
        assert_eq!(notes(&document, "S-01"), "[]");
    }
    let none = run(&[&only[..], &["--sut", "none", &url]].concat()).expect(&[0]).json();
    assert_eq!((&none["server"], &none["cases"][0]["server"]), (&Value::Null, &Value::Null));
    let output = run(&["torture", "--only", "S-01", &url]).expect(&[0]).stdout;
    assert!(output.contains("The server during the torture\n  loadstone (pid "), "{output}");
}

#[test]
fn a_process_that_is_not_the_server_is_refused() {
    let server = SeparateServer::site("none");
    let (pid, us) = (server.child.id(), std::process::id().to_string());
    let ran = run(&["torture", "--sut", &us, &server.address]).expect(&[2]);
    assert!(ran.stderr.contains("does not listen on 127.0.0.1:"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("process {pid} (loadstone) does")), "{ran:?}");
    let ran = run(&["torture", "--sut", "4000000000", &server.address]).expect(&[2]);
    assert!(ran.stderr.contains("there is no process 4000000000"), "{ran:?}");
    let ran = run(&["torture", "--sut", "nginx", &server.address]).expect(&[2]);
    assert!(ran.stderr.contains("or none"), "{ran:?}");
    // the process that started the program does not count as a server by default, but may be named
    let site = Site::start(&[]);
    let only = ["torture", "--only", "S-01", "--json", "-"];
    let document = run(&[&only[..], &[&site.url("/hw")]].concat()).expect(&[0]).json();
    assert_eq!(document["server"], Value::Null);
    let document =
        run(&[&only[..], &["--sut", &us, &site.url("/hw")]].concat()).expect(&[0]).json();
    assert_eq!(document["server"]["before"]["listeners"][0]["pid"], std::process::id());
}

#[test]
fn a_node_exporter_reports_its_machine_but_no_process() {
    let exporter = Scripted::answering(|_| {
        let text = "node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 5.5\n\
                    node_memory_MemTotal_bytes 8e+09\nnode_memory_MemAvailable_bytes 3e+09\n\
                    node_filefd_allocated 1234\n";
        ("200 OK", text)
    });
    let site = Site::start(&[]);
    let only = ["torture", "--only", "S-01", "--json", "-", "--sut"];
    let document =
        run(&[&only[..], &[&exporter.url("/"), &site.url("/hw")]].concat()).expect(&[0]).json();
    let before = &document["server"]["before"];
    assert_eq!(text(before, "/machine"), exporter.url("/metrics"), "{document:#}");
    assert_eq!(
        (&before["memory_bytes"], &before["descriptors"]),
        (&5_000_000_000_u64.into(), &1_234.into())
    );
    let none = Scripted::answering(|_| ("200 OK", "hi"));
    let ran = run(&[&only[..], &[&none.url("/"), &site.url("/hw")]].concat()).expect(&[2]);
    assert!(ran.stderr.contains("is it a node exporter?"), "{ran:?}");
}
