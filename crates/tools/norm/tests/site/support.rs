//! A norm site for a test, and a simple client.

use norm::{Breaks, Level, LogFile, NodeKind, NodeSettings, NormServer, NormSettings};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Maximum wait.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) struct Site {
    pub(crate) server: Option<NormServer>,
    pub(crate) folder: tempfile::TempDir,
}

/// Returns a site with the built-in handlers, changed by `change`.
pub(crate) fn site(change: impl FnOnce(&mut NormSettings, &Path)) -> Site {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tmp = folder.path().join("tmp");
    std::fs::create_dir(&tmp).expect("a new folder");
    let built_in =
        |path: &str, which| NodeSettings { path: path.to_owned(), kind: NodeKind::BuiltIn(which) };
    let mut settings = NormSettings {
        root: folder.path().to_owned(),
        host: "127.0.0.1".to_owned(),
        port: 0,
        max_clients: 100,
        timeout: LONG,
        log_level: Level::Debug,
        log_file: LogFile::File(folder.path().join("errors")),
        tmp_dir: tmp,
        timing: false,
        spool_over: 1_000,
        body_max: 100_000,
        threads: 1,
        nodes: vec![
            built_in("/hw", norm::BuiltIn::Hello),
            built_in("/sleep", norm::BuiltIn::Sleep),
        ],
        sleep_parallel: false,
        breaks: Breaks::default(),
    };
    change(&mut settings, folder.path());
    let server = NormServer::start(&settings).expect("a free port");
    Site { server: Some(server), folder }
}

/// Returns a site that serves the written tree, changed by `change`.
pub(crate) fn tree(change: impl FnOnce(&mut NormSettings, &Path)) -> Site {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // written by another process: a file that this process has open for writing may be inherited by
    // a process that another test starts, and then cannot be executed
    let draft = tempfile::tempdir().expect("a temporary folder");
    norm::tree::write(draft.path()).expect("an empty folder");
    let mut copy = std::process::Command::new("cp");
    copy.arg("-a").arg(draft.path().join(".")).arg(folder.path());
    assert!(copy.status().expect("cp can be started").success());
    let file = folder.path().join(norm::tree::CONFIGURATION);
    let mut settings = NormSettings::read(&file).expect("a good configuration");
    settings.port = 0;
    settings.timeout = LONG;
    settings.log_file = LogFile::File(folder.path().join("errors"));
    change(&mut settings, folder.path());
    let server = NormServer::start(&settings).expect("a free port");
    Site { server: Some(server), folder }
}

impl Site {
    pub(crate) fn connect(&self) -> TcpStream {
        let address = self.server.as_ref().expect("it runs").address();
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("a time above 0");
        stream
    }

    /// Returns everything received until the server closes.
    pub(crate) fn send(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).expect("a connection");
        to_the_end(&mut stream)
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.send(last(path).as_bytes())
    }

    /// Returns the content of the log, after the server has ended.
    pub(crate) fn log(&mut self) -> String {
        self.server.take().expect("it runs").stop();
        std::fs::read_to_string(self.folder.path().join("errors")).expect("a log")
    }

    /// Returns the names in the tmp directory.
    pub(crate) fn spooled(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("tmp")).expect("a folder");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        entries.map(name).collect()
    }
}

pub(crate) fn to_the_end(stream: &mut TcpStream) -> String {
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("an end within the time");
    String::from_utf8_lossy(&response).into_owned()
}

/// Returns a request that leaves its connection open.
pub(crate) fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// Returns a request with `Connection: close`.
pub(crate) fn last(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
}

/// Reads one response that has a Content-Length.
pub(crate) fn response(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("more of a response");
        text.push(byte[0]);
        if text.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let head = String::from_utf8_lossy(&text).to_lowercase();
    let len = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let len: usize = len.and_then(|len| len.parse().ok()).expect("a length");
    let mut body = vec![0; len];
    stream.read_exact(&mut body).expect("a body");
    text.extend(body);
    String::from_utf8_lossy(&text).into_owned()
}

pub(crate) fn status(response: &str) -> u16 {
    response.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0)
}
