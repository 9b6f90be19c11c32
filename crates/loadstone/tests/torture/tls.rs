//! TLS before HTTP: a server that rejects odd records, and one that waits forever for incomplete
//! ones.

use crate::outcome;
use crate::support::run;
use crate::support::tls::{Pki, TlsOptions, TlsServer};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

/// Starts a filter in front of a TLS server: passes records of regular sizes, and closes on others
/// or ignores them. Returns its port.
fn front(behind: u16, mute: bool) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut left_alone = Vec::new();
        for client in listener.incoming().flatten() {
            let mut head = [0; 5];
            let seen = client.peek(&mut head).unwrap_or(0);
            let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
            let usual = seen == head.len() && head[0] == 0x16 && (100..16_384).contains(&length);
            match usual {
                true => relay(client, behind),
                false if mute => left_alone.push(client),
                false => client.shutdown(Shutdown::Both).unwrap_or(()),
            }
        }
    });
    port
}

/// Relays both directions, with a thread each.
fn relay(client: TcpStream, behind: u16) {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, behind)).unwrap();
    let ways = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
    for (mut from, mut to) in ways {
        thread::spawn(move || {
            let mut buffer = [0; 16_384];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            // the other side is notified in any state
            to.shutdown(Shutdown::Write).unwrap_or(());
        });
    }
}

#[test]
fn unusual_records_are_refused_or_wait_forever() {
    let server = TlsServer::start(&TlsOptions::default());
    for (mute, code, pieces, records) in
        [(false, 0, "advisory", "pass-alternative"), (true, 1, "fail", "fail")]
    {
        let url = format!("https://localhost:{}/", front(server.port(), mute));
        let words = ["torture", "--insecure", "--fail-on", "low", "--only", "T-02,T-05,T-06"];
        let only = [&words[..], &["--json", "-", &url]].concat();
        let json = run(&only).expect(&[code]).json();
        assert_eq!(outcome(&json, "T-02"), pieces, "{json:#}");
        assert_eq!(outcome(&json, "T-05"), records, "{json:#}");
        assert_eq!(outcome(&json, "T-06"), "pass", "{json:#}");
    }
}

/// OpenSSL's own server with additional options, on a port chosen by the kernel.
struct OpenSsl {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl OpenSsl {
    fn start(options: &[&str]) -> OpenSsl {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::new();
        std::fs::write(folder.path().join("cert.pem"), &pki.server.cert).unwrap();
        std::fs::write(folder.path().join("key.pem"), &pki.server.key).unwrap();
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem"])
            .args(["-www"])
            .args(options)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // "ACCEPT 127.0.0.1:40123"
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port =
            lines.find_map(|line| line.strip_prefix("ACCEPT ")?.rsplit(':').next()?.parse().ok());
        // its later output must be read
        thread::spawn(move || lines.for_each(drop));
        OpenSsl { child, port: port.expect("it says where it listens"), _folder: folder }
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        self.child.kill().unwrap_or(());
        drop(self.child.wait());
    }
}

#[test]
fn renegotiation_is_refused_granted_or_impossible() {
    let table: [(&[&str], i32, &str, &str); 3] = [
        (&[], 0, "pass", "alert no_renegotiation"),
        (&["-client_renegotiation"], 1, "fail", "a new handshake starts"),
        (&["-client_renegotiation", "-tls1_3"], 3, "skipped", ""),
    ];
    // its page supports GET only and leaves other requests without a response: all at once
    thread::scope(|scope| {
        for (options, code, wanted, seen) in table {
            scope.spawn(move || {
                let server = OpenSsl::start(options);
                let url = format!("https://localhost:{}/", server.port);
                let kept = tempfile::tempdir().unwrap();
                let out = kept.path().to_str().unwrap();
                let only =
                    ["torture", "--insecure", "--fail-on", "low", "--only", "T-03", "--json", "-"];
                let json = run(&[&only[..], &["--out", out, &url]].concat()).expect(&[code]).json();
                assert_eq!(outcome(&json, "T-03"), wanted, "{json:#}");
                let case = &json["cases"][0];
                match case["exchanges"].as_array().and_then(|all| all.first()) {
                    Some(exchange) => assert_eq!(
                        (&exchange["seen"], exchange["tries"].as_u64()),
                        (&seen.into(), Some(3))
                    ),
                    None => {
                        assert!(case["skipped"].as_str().unwrap().contains("TLS 1.2"), "{case:#}")
                    }
                }
                if code == 1 {
                    let failure = json["kept"][0]["folder"].as_str().unwrap();
                    let again = ["torture", "replay", "--insecure", "--times", "1", failure];
                    let output = run(&again).expect(&[1]).stdout;
                    assert!(output.contains("still failing"), "{output}");
                }
            });
        }
    });
}
