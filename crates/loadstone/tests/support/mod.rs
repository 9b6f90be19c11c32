//! Support for tests of the commands: runs them in the test's process ([`run`], [`in_process`]) or in
//! a separate one ([`process`], [`finish`]), and provides servers with configurable behavior or
//! readable counts.

#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

pub(crate) mod apache;
pub(crate) mod browser;
pub(crate) mod caddy;
pub(crate) mod http;
mod in_process;
pub(crate) mod naive;
pub(crate) mod nghttpd;
pub(crate) mod nginx;
mod port;
pub(crate) mod process;
pub(crate) mod proxy;
#[cfg(feature = "h3")]
pub(crate) mod quic;
pub(crate) mod tls;

pub(crate) use in_process::in_process;
pub(crate) use port::free_port;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Timeout of an invocation, after which the program is killed and the test fails.
const WALL_MAX: Duration = Duration::from_secs(60);

/// Result of an invocation.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Exit code; -1 if a signal ended the program.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Parses standard output, which must be JSON only.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON alone on standard output: {error}\n{self:#?}"))
    }

    /// Returns the result if the exit code is one of these; otherwise panics.
    #[track_caller]
    pub(crate) fn expect(self, codes: &[i32]) -> Ran {
        assert!(
            codes.contains(&self.code),
            "exit code {} is not in {codes:?}\n{self:#?}",
            self.code
        );
        self
    }
}

/// Returns the program under test: the one that cargo built with the tests, or the one named by
/// `LOADSTONE_BIN`. `cargo xtask test` names the release build there, so that the same tests cover
/// the installed program without another build.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("LOADSTONE_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_loadstone")), PathBuf::from)
}

/// Returns the program with arguments, in a clean environment, for [`in_process`] or [`finish`].
pub(crate) fn program<S: AsRef<str>>(args: &[S]) -> Command {
    let mut command = Command::new(binary());
    command.args(args.iter().map(AsRef::as_ref));
    for name in ["LC_ALL", "LC_CTYPE", "NO_COLOR", "COLUMNS", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        command.env_remove(name);
    }
    let nowhere = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-state-here");
    command.env("LANG", "C.UTF-8").env("XDG_STATE_HOME", nowhere);
    // nothing is stored unless a test requests it
    command.env("LOADSTONE_STORE", "none");
    command.stdin(Stdio::null());
    command
}

/// Returns a command that starts the binary through another program: `front`, then the path of the
/// binary; the caller adds its arguments.
pub(crate) fn behind(front: &[&str]) -> Command {
    let plain = program::<&str>(&[]);
    let mut command = Command::new(front[0]);
    command.args(&front[1..]).arg(plain.get_program());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a command to completion, in this process.
#[track_caller]
pub(crate) fn run<S: AsRef<str>>(args: &[S]) -> Ran {
    in_process(&program(args), b"")
}

/// Runs a command with text on standard input, in this process.
#[track_caller]
pub(crate) fn run_with_input<S: AsRef<str>>(args: &[S], input: &[u8]) -> Ran {
    in_process(&program(args), input)
}

/// Runs `loadstone run … --json -` with any verdict: a busy machine makes short runs INVALID. Exit
/// codes 0 and 4 are both accepted, no others.
#[track_caller]
pub(crate) fn measure<S: AsRef<str>>(args: &[S]) -> Value {
    measured(args, &[0, 4])
}

/// Like [`measure`], with the expected exit codes.
#[track_caller]
pub(crate) fn measured<S: AsRef<str>>(args: &[S], codes: &[i32]) -> Value {
    run(&run_words(args)).expect(codes).json()
}

/// Returns the words of a run that prints JSON.
fn run_words<S: AsRef<str>>(args: &[S]) -> Vec<&str> {
    let mut all = vec!["run", "--json", "-"];
    all.extend(args.iter().map(AsRef::as_ref));
    all
}

/// Runs a command as a separate process, with a time limit.
#[track_caller]
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    if let Some(mut pipe) = child.stdin.take() {
        let input = input.to_vec();
        // a program that does not read its input may close the pipe
        thread::spawn(move || pipe.write_all(&input).ok());
    }
    let (tell, outcome) = mpsc::channel();
    thread::spawn(move || tell.send(child.wait_with_output()));
    let output = match outcome.recv_timeout(WALL_MAX) {
        Ok(output) => output.unwrap(),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            let left = outcome.recv();
            panic!("{command:?} did not end within {WALL_MAX:?}; it had written {left:?}");
        }
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Returns false, and prints the test's missing requirement. In CI every requirement must be met.
pub(crate) fn untested(reason: &str) -> bool {
    assert!(std::env::var_os("CI").is_none(), "{reason}");
    // a closed standard error is not a failure
    writeln!(std::io::stderr(), "{reason}").ok();
    false
}

/// The reference server, in this process, on a free port of 127.0.0.1.
pub(crate) struct Site {
    site: site::Site,
}

impl Site {
    /// Starts the site with options of `loadstone site`; a switch has the empty value.
    #[track_caller]
    pub(crate) fn start(options: &[(&str, &str)]) -> Site {
        let mut config = site::Config::on_free_port();
        for (name, value) in options {
            config.parse_option(name, value).unwrap();
        }
        // the program makes CGI pages
        config.cgi = Some(env!("CARGO_BIN_EXE_loadstone").into());
        Site { site: site::Site::start(config).unwrap() }
    }

    /// Returns the URL of a page, whose path begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.site.url())
    }

    /// Returns `127.0.0.1:port`, for uses other than URLs.
    pub(crate) fn authority(&self) -> String {
        self.site.url().trim_start_matches("http://").to_owned()
    }

    pub(crate) fn port(&self) -> u16 {
        self.authority().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Waits until the site ends by its own option; returns whether it has.
    pub(crate) fn wait(&self, span: Duration) -> bool {
        self.site.wait(span)
    }

    pub(crate) fn served(&self) -> site::Served {
        self.site.served()
    }

    /// Returns the counts after the last response.
    pub(crate) fn stop(self) -> site::Served {
        self.site.stop().unwrap()
    }
}

/// TCP server whose handling of each connection is set by the test, with one thread per connection.
/// Connection 0 is the plain first call of every run.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    over: Arc<AtomicBool>,
}

/// A hanging peer must not hang the test.
const READ_MAX: Duration = Duration::from_secs(30);

impl Scripted {
    pub(crate) fn start(talk: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Scripted {
        Scripted::on("127.0.0.1:0", talk)
    }

    /// Answers each request head, on persistent connections, with the status and body of
    /// `response`; request bodies are read as heads.
    pub(crate) fn answering(
        response: impl Fn(&[u8]) -> (&'static str, &'static str) + Send + Sync + 'static,
    ) -> Scripted {
        Scripted::start(move |mut stream, _| {
            let mut seen = Vec::new();
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                seen.extend_from_slice(&piece[..count]);
                while let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
                    let head: Vec<u8> = seen.drain(..end + 4).collect();
                    let (status, body) = response(&head);
                    let length = body.len();
                    let text =
                        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
                    if stream.write_all(text.as_bytes()).is_err() {
                        return;
                    }
                }
            }
        })
    }

    /// Answers 500 to every percent-encoded NUL, and serves any other request.
    pub(crate) fn failing_on_nul() -> Scripted {
        Scripted::answering(|head| {
            let broken = head.windows(3).any(|three| three == b"%00");
            (if broken { "500 No" } else { "200 OK" }, "hi")
        })
    }

    /// Starts it on an address chosen by the test.
    pub(crate) fn on(
        address: &str,
        talk: impl Fn(TcpStream, usize) + Send + Sync + 'static,
    ) -> Scripted {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let (end, talk) = (Arc::clone(&over), Arc::new(talk));
        thread::spawn(move || {
            for (index, stream) in listener.incoming().enumerate() {
                if end.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                stream.set_read_timeout(Some(READ_MAX)).ok();
                stream.set_nodelay(true).ok();
                let talk = Arc::clone(&talk);
                thread::spawn(move || talk(stream, index));
            }
        });
        Scripted { address, over }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // wakes the listener, so that its thread ends and the port becomes free
        TcpStream::connect(self.address).ok();
    }
}

/// Returns an integer of a document, by JSON pointer.
#[track_caller]
pub(crate) fn whole(document: &Value, pointer: &str) -> u64 {
    let found = document.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no whole number at {pointer} in {document:#}"))
}

/// Returns a number of a document, by JSON pointer.
#[track_caller]
pub(crate) fn number(document: &Value, pointer: &str) -> f64 {
    let found = document.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {pointer} in {document:#}"))
}

/// Writes a file of a test, and returns its path.
pub(crate) fn keep(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Returns a string of a document, by JSON pointer.
#[track_caller]
pub(crate) fn text<'a>(document: &'a Value, pointer: &str) -> &'a str {
    let found = document.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} in {document:#}"))
}

/// Returns the six outcomes: due, succeeded, failed, timed out, dropped, abandoned.
#[track_caller]
pub(crate) fn outcomes(document: &Value) -> [u64; 6] {
    ["due", "succeeded", "failed", "timed_out", "dropped", "abandoned"]
        .map(|name| whole(document, &format!("/outcomes/{name}")))
}

/// Failures by class.
#[track_caller]
pub(crate) fn failures(document: &Value) -> Vec<(String, u64)> {
    let rows = document["failures"].as_array().unwrap();
    rows.iter().map(|row| (text(row, "/class").to_owned(), whole(row, "/count"))).collect()
}
