//! A real server as described by its file in `xtask/truths`: how it is started, and its known
//! behavior.

#[path = "../../../crates/loadstone/tests/support/port.rs"]
mod port;

use crate::shell;
use anyhow::{Context, bail};
use port::free_port;
use serde::Deserialize;
use std::fs::File;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a server to listen.
const START_MAX: Duration = Duration::from_secs(30);
/// Size of the large page in bytes: more than all buffers between two programs.
const BIG_LEN: usize = 20 << 20;

/// Known behavior of a server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// Debian package of the server.
    pub(crate) package: String,
    pub(crate) program: String,
    version: Vec<String>,
    /// Architecture, and configured size.
    pub(crate) model: String,
    build: Option<Vec<String>>,
    start: Vec<String>,
    pub(crate) page: String,
    pub(crate) post: Option<String>,
    pub(crate) big: Option<String>,
    pub(crate) slots: Option<u32>,
    /// The server uses TLS, with a self-signed certificate.
    #[serde(default)]
    pub(crate) tls: bool,
    /// Continuous integration runs its quick rows.
    #[serde(default)]
    pub(crate) ci: bool,
    /// The server is a proxy in front of the built-in site.
    #[serde(default)]
    origin: bool,
    /// The server is a proxy in front of the recorder, and its rows are requests of `torture
    /// chain`.
    #[serde(default)]
    pub(crate) chain: bool,
    /// The server uses HTTP/2: over TLS by ALPN, without TLS by prior knowledge.
    #[serde(default)]
    pub(crate) http2: bool,
    /// The same in HTTP/3, which needs TLS.
    #[serde(default)]
    pub(crate) http3: bool,
    /// The server is tested with gRPC calls of its health check.
    #[serde(default)]
    grpc: bool,
    /// Path of a WebSocket that echoes messages.
    pub(crate) ws: Option<String>,
    #[serde(default)]
    file: Vec<Page>,
    #[serde(default)]
    pub(crate) truth: Vec<super::rows::Truth>,
}

/// A file that the server needs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    name: String,
    text: String,
}

/// Returns the firing range without a defect.
pub(crate) fn range() -> Subject {
    Subject {
        name: "the firing range".to_owned(),
        package: String::new(),
        program: String::new(),
        version: Vec::new(),
        model: String::new(),
        build: None,
        start: ["{loadstone}", "site", "--range", "none", "--listen", "127.0.0.1:{port}"]
            .map(str::to_owned)
            .to_vec(),
        page: "/page".to_owned(),
        post: Some("/post".to_owned()),
        big: Some("/big".to_owned()),
        slots: None,
        tls: false,
        ci: false,
        origin: false,
        chain: false,
        http2: false,
        http3: false,
        grpc: false,
        ws: None,
        file: Vec::new(),
        truth: Vec::new(),
    }
}

/// A running server, in its own folder and process group.
#[derive(Debug)]
pub(crate) struct Running {
    children: Vec<Child>,
    folder: tempfile::TempDir,
    pub(crate) url: String,
    /// The port to which it sends requests on.
    pub(crate) origin: u16,
}

impl Subject {
    /// Returns the HTTP version, if not 1.1.
    pub(crate) fn http(&self) -> Option<&'static str> {
        match (self.http2, self.http3) {
            (_, true) => Some("3"),
            (true, false) => Some("2"),
            (false, false) => None,
        }
    }

    /// Returns every file of `folder`, in the order of their names.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or is wrong; the file is named.
    pub(crate) fn read_all(folder: &Path) -> anyhow::Result<Vec<Subject>> {
        let listed = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
        files.sort();
        let read = |file: &PathBuf| {
            let text = std::fs::read_to_string(file)?;
            let subject: Subject =
                toml::from_str(&text).with_context(|| file.display().to_string())?;
            if let Some(truth) = subject.truth.iter().find(|truth| truth.names_unused_exchange()) {
                bail!("{}: {}: exchange needs seen", file.display(), truth.case);
            }
            Ok(subject)
        };
        files.iter().map(read).collect()
    }

    pub(crate) fn is_installed(&self) -> bool {
        shell::find(&self.program).is_some() || Path::new(&self.program).exists()
    }

    /// Returns the first version-like text in its output.
    pub(crate) fn version(&self) -> String {
        let Ok(mut command) = command(&self.version) else { return "unknown".to_owned() };
        let Ok(output) = command.stdin(Stdio::null()).output() else { return "unknown".to_owned() };
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let number = regex::Regex::new(r"[0-9]+(\.[0-9]+)+").ok();
        let found = number.and_then(|number| number.find(&text).map(|at| at.as_str().to_owned()));
        found.unwrap_or_else(|| "unknown".to_owned())
    }

    /// Starts it on a free port and waits until it listens.
    ///
    /// # Errors
    /// Fails if it cannot be started or does not listen, with its output.
    pub(crate) fn start(&self, loadstone: &Path) -> anyhow::Result<Running> {
        let folder = tempfile::tempdir()?;
        let mut running = Running { children: Vec::new(), folder, url: String::new(), origin: 0 };
        let port = free_port();
        let origin = free_port();
        running.origin = origin;
        let dir = running.folder.path().to_owned();
        self.fill(&dir, port, origin)?;
        let program = loadstone.display().to_string();
        let filled =
            |word: &String| fill(word, &dir, port, origin).replace("{loadstone}", &program);
        let log = File::create(dir.join("output.log"))?;
        if self.origin {
            let mut site = Command::new(loadstone);
            site.args(["site", "--listen", &format!("127.0.0.1:{origin}")]);
            running.spawn(&mut site, &log)?;
            running.wait(origin)?;
        }
        if let Some(build) = &self.build {
            let mut build = command(&build.iter().map(filled).collect::<Vec<String>>())?;
            build.env("HOME", &dir).env("GOCACHE", dir.join("cache")).env("GO111MODULE", "off");
            shell::run(build.current_dir(&dir))?;
        }
        let mut start = command(&self.start.iter().map(filled).collect::<Vec<String>>())?;
        start.current_dir(&dir).env("HOME", &dir);
        running.spawn(&mut start, &log)?;
        running.wait(port)?;
        let scheme = match (self.grpc, self.tls) {
            (true, true) => "grpcs",
            (true, false) => "grpc",
            (false, true) => "https",
            (false, false) => "http",
        };
        running.url = format!("{scheme}://127.0.0.1:{port}{}", self.page);
        Ok(running)
    }

    fn fill(&self, dir: &Path, port: u16, origin: u16) -> anyhow::Result<()> {
        // a server started by root switches to another user
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))?;
        std::fs::create_dir(dir.join("www"))?;
        let line = "Every line of this page is the same.\n";
        std::fs::write(dir.join("www/page.html"), line.repeat(5_000))?;
        std::fs::write(dir.join("www/big"), line.repeat(BIG_LEN / line.len() + 1))?;
        for file in &self.file {
            std::fs::write(dir.join(&file.name), fill(&file.text, dir, port, origin))?;
        }
        Ok(())
    }
}

impl Running {
    fn spawn(&mut self, command: &mut Command, log: &File) -> anyhow::Result<()> {
        // its children share its group, so all can be killed together
        command.process_group(0).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log.try_clone()?);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        self.children.push(child);
        Ok(())
    }

    fn wait(&mut self, port: u16) -> anyhow::Result<()> {
        let end = Instant::now() + START_MAX;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.children.iter_mut().any(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || Instant::now() > end {
                bail!("it does not listen: {}", self.output());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns the output of the server.
    pub(crate) fn output(&self) -> String {
        let read = |name| std::fs::read_to_string(self.folder.path().join(name));
        let both = [read("output.log"), read("error.log")].map(Result::unwrap_or_default).concat();
        both.trim().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.children {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().ok();
            child.wait().ok();
        }
    }
}

fn command(words: &[String]) -> anyhow::Result<Command> {
    let Some((program, rest)) = words.split_first() else { bail!("a command is empty") };
    let mut command = Command::new(shell::find(program).unwrap_or_else(|| program.into()));
    command.args(rest);
    Ok(command)
}

fn fill(text: &str, dir: &Path, port: u16, origin: u16) -> String {
    let known = [
        ("{dir}", dir.display().to_string()),
        ("{port}", port.to_string()),
        ("{origin}", origin.to_string()),
    ];
    known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}
