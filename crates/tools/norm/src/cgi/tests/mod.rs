mod environment;
mod failures;
mod head;
mod tree;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::{Method, Version};
use tempfile::TempDir;

use super::{CgiLimits, CgiScript, CgiSettings, Places, passed_on};
use crate::exchange::{Ask, Content, Entity, Reply};

/// Maximum wait for any condition, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Makes a GET of `/cgi/x` with this query.
fn get(query: Option<&str>) -> Ask {
    Ask {
        method: Method::GET,
        version: Version::HTTP_11,
        path: "/cgi/x".to_owned(),
        node_path: "/cgi/x".to_owned(),
        rest: String::new(),
        query: query.map(str::to_owned),
        headers: HeaderMap::new(),
        body: Entity::None,
        peer: address("192.0.2.7:2525"),
        local: address("192.0.2.1:2020"),
        user: None,
    }
}

fn post(kind: &'static str, body: impl Into<Bytes>) -> Ask {
    let mut ask = with(get(None), &[("content-type", kind)]);
    ask.method = Method::POST;
    ask.body = Entity::Memory(body.into());
    ask
}

fn with(mut ask: Ask, fields: &[(&'static str, &'static str)]) -> Ask {
    for (name, value) in fields {
        let name = HeaderName::from_static(name);
        ask.headers.append(name, HeaderValue::from_static(value));
    }
    ask
}

/// Scripts in a separate folder, and their log.
struct Stage {
    folder: TempDir,
    limits: CgiLimits,
    places: Arc<Places>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    fn new() -> Stage {
        Stage {
            folder: tempfile::tempdir().expect("a folder in the tmp directory"),
            limits: CgiLimits { time: PATIENCE, output: 1 << 20 },
            places: Places::new(8, 8),
            log: Arc::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a shell script.
    fn script(&self, text: &str) -> CgiScript {
        self.program(&format!("#!/bin/sh\n{text}\n"), 0o755)
    }

    fn program(&self, text: &str, mode: u32) -> CgiScript {
        let (draft, program) = (self.path("draft"), self.path("script"));
        std::fs::write(&draft, text).expect("the draft is written");
        // written by another process: a file that this process has open for writing may be
        // inherited by a process that another test starts, and then cannot be executed
        let mut copy = Command::new("install");
        copy.args(["-m", &format!("{mode:o}")]).arg(&draft).arg(&program);
        assert!(copy.status().expect("install can be started").success());
        self.at(&program)
    }

    fn at(&self, program: &Path) -> CgiScript {
        CgiScript::new(self.settings(program))
    }

    fn settings(&self, program: &Path) -> CgiSettings {
        let log = Arc::clone(&self.log);
        CgiSettings {
            program: program.to_owned(),
            root: Some("/site/htdocs".into()),
            software: "Loadstone/1".to_owned(),
            passed: passed_on(),
            limits: self.limits,
            places: Arc::clone(&self.places),
            complain: Arc::new(move |line: &str| {
                log.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
            }),
        }
    }

    fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        log.replace(&self.folder.path().display().to_string(), "DIR")
    }

    /// Returns a process id that a script has written into a file.
    async fn pid(&self, name: &str) -> u32 {
        eventually("the script writes its number", || self.written_pid(name)).await
    }

    fn written_pid(&self, name: &str) -> Option<u32> {
        std::fs::read_to_string(self.path(name)).ok()?.strip_suffix('\n')?.parse().ok()
    }
}

/// Waits for a condition, yielding to all other tasks.
async fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::task::yield_now().await;
    }
}

/// Runs a scenario whose script reaches its time limit, with increasing limits until the script has
/// got far enough: the speed of a busy machine is not tested.
async fn in_time<T>(scene: impl AsyncFn(&Stage) -> Option<T>) -> T {
    for milliseconds in [300, 1_000, 4_000, 16_000] {
        let mut stage = Stage::new();
        stage.limits.time = Duration::from_millis(milliseconds);
        if let Some(found) = scene(&stage).await {
            return found;
        }
    }
    panic!("the script never gets as far as it should")
}

/// Returns the state letter of a process; `None` if it does not exist.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Waits until our own child has been reaped.
async fn reaped(pid: u32) {
    eventually("the script is reaped", || state(pid).is_none().then_some(())).await;
}

/// Waits until a child of a child has ended; this process cannot reap it.
async fn ended(pid: u32) {
    let over = || matches!(state(pid), None | Some('Z' | 'X')).then_some(());
    eventually("the script's child ends", over).await;
}

/// Returns a content, and the error that it broke off with.
async fn content(reply: Reply) -> (String, Option<String>) {
    let (mut all, mut broken) = (Vec::new(), None);
    match reply.content {
        Content::Empty => {}
        Content::Bytes(bytes) => all.extend_from_slice(&bytes),
        Content::Pieces(pieces) => panic!("a script has no pieces: {pieces:?}"),
        Content::Elsewhere(path) => return (format!("elsewhere: {path}"), None),
        Content::Stream(mut pieces) => {
            while let Some(piece) = pieces.recv().await {
                match piece {
                    Ok(bytes) => all.extend_from_slice(&bytes),
                    Err(error) => broken = Some(error.to_string()),
                }
            }
        }
    }
    (String::from_utf8_lossy(&all).into_owned(), broken)
}

/// Returns the status, fields and whole content as text.
async fn whole(reply: Reply) -> String {
    let mut text = format!("{}\n", reply.status.as_u16());
    let mut fields: Vec<String> = reply
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    fields.sort();
    text.extend(fields);
    let (content, broken) = content(reply).await;
    text.push('\n');
    text.push_str(&content);
    if let Some(broken) = broken {
        text.push_str(&format!("\nbroken off: {broken}"));
    }
    text
}
