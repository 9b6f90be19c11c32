//! Evidence in forms that work without Loadstone, executed: each form sends the same bytes.

use super::evidence::{names, recorded};
use super::support::{Scripted, run};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Timeout of each form.
const PATIENCE: Duration = Duration::from_secs(40);

/// Serves every request, until the client closes: that makes malformed requests fail.
fn serves_everything() -> Scripted {
    Scripted::start(|mut stream, _| {
        let mut piece = [0; 65_536];
        while let Ok(1..) = stream.read(&mut piece) {
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
            if stream.write_all(response).is_err() {
                return;
            }
        }
    })
}

/// Returns the bytes that a command sends to a server that closes the connection once it has
/// received everything.
fn sent_by(command: impl FnOnce(u16) -> Command, wanted: usize) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut seen = Vec::new();
        let mut piece = [0; 65_536];
        while seen.len() < wanted {
            match stream.read(&mut piece) {
                Ok(count @ 1..) => seen.extend_from_slice(&piece[..count]),
                _ => break,
            }
        }
        let response = b"HTTP/1.1 400 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(response).ok();
        stream.shutdown(std::net::Shutdown::Write).ok();
        stream.read_to_end(&mut seen).ok();
        sender.send(seen).ok();
    });
    let out = command(port).output().unwrap();
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nothing was sent: {out:?}"))
}

/// Renders a failure in the form, if the form can express it.
fn emitted(folder: &Path, form: &str) -> Option<String> {
    let ran = run(&["torture", "emit", "--as", form, folder.to_str().unwrap()]).expect(&[0, 2]);
    if ran.code == 2 {
        assert!(ran.stderr.contains("use --as"), "{ran:?}");
    }
    (ran.code == 0).then_some(ran.stdout)
}

fn shell(text: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["30", "sh", "-c", text]);
    command
}

/// Failures of many kinds, with the bytes of each.
fn failures() -> (tempfile::TempDir, Vec<(PathBuf, Vec<u8>)>) {
    let server = serves_everything();
    let (parent, root) = recorded(&server, "S-01,S-02,S-05,S-07,S-12,S-15,S-31,S-34,F-07");
    let folder = root.join("failures");
    let all = names(&folder).into_iter().map(|name| {
        let path = folder.join(name);
        let bytes = fs::read(path.join("bytes.bin")).unwrap();
        (path, bytes)
    });
    let all: Vec<(PathBuf, Vec<u8>)> = all.collect();
    assert!(all.len() > 5, "{all:?}");
    (parent, all)
}

#[test]
fn shell_lines_and_scripts_send_the_same_bytes() {
    let (_parent, failures) = failures();
    let mut found = [0; 3];
    for (folder, bytes) in &failures {
        if let Some(script) = emitted(folder, "sh") {
            let run = |port: u16| {
                let mut command = Command::new("timeout");
                command.args([
                    "30",
                    "sh",
                    "-c",
                    &script,
                    "repro.sh",
                    "127.0.0.1",
                    &port.to_string(),
                ]);
                command
            };
            assert_eq!(sent_by(run, bytes.len()), *bytes, "{script}");
            assert_eq!(fs::read_to_string(folder.join("repro.sh")).unwrap(), script);
            found[0] += 1;
        }
        if let Some(line) = emitted(folder, "nc") {
            let (printf, _) = line.rsplit_once(" | nc").unwrap();
            let run = |port: u16| shell(&format!("{printf} | nc -w 5 127.0.0.1 {port}"));
            assert_eq!(sent_by(run, bytes.len()), *bytes, "{line}");
            found[1] += 1;
        }
        if let Some(line) = emitted(folder, "curl") {
            // the Host field contains the port of the run, and keeps it
            let (front, _) = line.rsplit_once("'http://").unwrap();
            let run = |port: u16| shell(&format!("{front}'http://127.0.0.1:{port}/'"));
            assert_eq!(sent_by(run, bytes.len()), *bytes, "{line}");
            found[2] += 1;
        }
    }
    assert!(found[0] > 5 && found[1] > 5 && found[2] > 0, "{found:?} of {}", failures.len());
}

#[test]
fn rust_tests_send_the_same_bytes() {
    let (parent, failures) = failures();
    let mut source = String::new();
    let mut wanted = Vec::new();
    for (folder, bytes) in &failures {
        let Some(text) = emitted(folder, "rust-test") else { continue };
        let name = text.split("fn ").nth(1).unwrap().split('(').next().unwrap().to_owned();
        source.push_str(&text);
        wanted.push((name, bytes));
    }
    assert!(wanted.len() > 5, "{wanted:?}");
    let (file, program) = (parent.path().join("tests.rs"), parent.path().join("tests"));
    fs::write(&file, &source).unwrap();
    let built = Command::new("rustc")
        .args(["--edition", "2021", "--test", "-o"])
        .args([&program, &file])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}\n{source}", String::from_utf8_lossy(&built.stderr));
    for (name, bytes) in wanted {
        let run = |port: u16| {
            let mut command = Command::new(&program);
            command.args(["--exact", &name]).env("TARGET", format!("127.0.0.1:{port}"));
            command
        };
        assert_eq!(sent_by(run, bytes.len()), *bytes, "{name}");
    }
}

#[test]
fn a_capture_contains_the_conversation() {
    let (_parent, failures) = failures();
    let (folder, bytes) = &failures[0];
    let file = fs::read(folder.join("repro.pcap")).unwrap();
    assert_eq!(file[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    // every packet of the file: its time, its length, IPv4 and TCP without options
    let (mut at, mut from_us, mut flags) = (24, Vec::new(), Vec::new());
    while at < file.len() {
        let length = u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
        let packet = &file[at + 16..at + 16 + length];
        assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), length);
        flags.push(packet[33]);
        if u16::from_be_bytes([packet[20], packet[21]]) == 40_000 {
            from_us.extend_from_slice(&packet[40..]);
        }
        at += 16 + length;
    }
    assert_eq!(at, file.len());
    // SYN, SYN and ACK, ACK
    assert_eq!(flags[..3], [2, 18, 16]);
    assert!(from_us.starts_with(bytes), "{}", from_us.escape_ascii());
}
