//! The configuration, `site.toml`: Swerve's parameters in TOML. Errors are reported with file and
//! line.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;
use units::quoted;

use crate::breaks::Breaks;
use crate::log::Level;
use crate::route;

/// Everything that can be chosen about a norm site.
#[derive(Clone, Debug)]
pub struct NormSettings {
    /// Relative paths of a configuration start here.
    pub root: PathBuf,
    pub host: String,
    /// Port; 0 for any free one.
    pub port: u16,
    /// Maximum number of open connections, 1..=100,000; any more are accepted and closed at once.
    pub max_clients: usize,
    /// The longest that the server waits on a client: for a request's head, for more of its body, or
    /// to take more of a response. 10 ms..=1 h.
    pub timeout: Duration,
    pub log_level: Level,
    pub log_file: LogFile,
    /// Directory for long request bodies.
    pub tmp_dir: PathBuf,
    /// True to measure the chapter's fourteen points.
    pub timing: bool,
    /// Request bodies up to this many bytes stay in memory, at most 16 MiB.
    pub spool_over: u64,
    /// Longest request body in bytes; beyond it 413.
    pub body_max: u64,
    /// Serving threads, 1..=64.
    pub threads: usize,
    pub nodes: Vec<NodeSettings>,
    /// True if `/sleep` serves all requests at once.
    pub sleep_parallel: bool,
    pub breaks: Breaks,
}

/// Destination of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFile {
    Stderr,
    /// File to which lines are appended.
    File(PathBuf),
}

/// Node for a path and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// Path, which begins with `/` and does not end with one, except for the root.
    pub path: String,
    pub kind: NodeKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    Directory(DirectorySettings),
    /// The program of a CGI script, which need not exist: requests report that.
    Cgi(PathBuf),
    BuiltIn(BuiltIn),
    /// A Lua script that an interpreter inside the server runs.
    Interpreter(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectorySettings {
    pub root: PathBuf,
    /// True if a directory without an index.html is listed.
    pub fancy: bool,
    /// URL path of the listing's icons.
    pub icons: String,
    /// True to make odd files in it while the server runs.
    pub odd_files: bool,
    /// True if a separate process serves each request.
    pub process_per_request: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    Hello,
    Sleep,
}

/// Error in a configuration, with its file and line, and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError(String);

impl std::fmt::Display for SettingsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

const PORT: u16 = 2020;
const MAX_CLIENTS: usize = 1_000;
const TIMEOUT: f64 = 10.0;
const SPOOL_OVER: u64 = 64 << 10;
const BODY_MAX: u64 = 64 << 20;
const SPOOL_OVER_MAX: u64 = 16 << 20;
const FILE_LEN_MAX: u64 = 1 << 20;
/// Maximum number of serving threads.
pub const THREADS_MAX: usize = 64;
/// Maximum value of MaxClients.
pub const CLIENTS_MAX: usize = 100_000;
const TIMEOUT_MIN: f64 = 0.01;
const TIMEOUT_MAX: f64 = 3_600.0;
const NODES_MAX: usize = 1_000;

/// File as written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Written {
    server_root: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    max_clients: Option<Spanned<usize>>,
    timeout: Option<Spanned<f64>>,
    log_level: Option<Spanned<String>>,
    log_file: Option<String>,
    tmp_dir: Option<Spanned<String>>,
    timing: Option<bool>,
    spool_over: Option<Spanned<String>>,
    max_body: Option<Spanned<String>>,
    threads: Option<Spanned<usize>>,
    #[serde(rename = "Node", default)]
    nodes: Vec<Spanned<WrittenNode>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct WrittenNode {
    path: Spanned<String>,
    directory: Option<Spanned<String>>,
    cgi_bin: Option<String>,
    built_in: Option<Spanned<String>>,
    interpreter: Option<Spanned<String>>,
    fancy: Option<bool>,
    icons: Option<String>,
    odd_files: Option<bool>,
    process_per_request: Option<bool>,
}

impl NormSettings {
    /// Reads a configuration file. Relative paths in it start at its ServerRoot, and a relative
    /// ServerRoot at the file's folder.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not TOML, or has unknown keys or invalid values.
    pub fn read(file: &Path) -> Result<NormSettings, SettingsError> {
        let failed = |why: String| SettingsError(format!("{}: {why}", file.display()));
        let len = std::fs::metadata(file).map(|facts| facts.len());
        let len = len.map_err(|error| failed(format!("cannot read the configuration: {error}")))?;
        if len > FILE_LEN_MAX {
            return Err(failed("a configuration has at most 1 MiB".to_owned()));
        }
        let text = std::fs::read_to_string(file)
            .map_err(|error| failed(format!("cannot read the configuration: {error}")))?;
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        NormSettings::parse(&text, folder).map_err(|wrong| failed(wrong.render(&text)))
    }

    fn parse(text: &str, folder: &Path) -> Result<NormSettings, Wrong> {
        let written: Written = toml::from_str(text).map_err(|error| Wrong {
            span: error.span(),
            text: error.message().replace('\n', " "),
        })?;
        let root = folder.join(written.server_root.as_deref().unwrap_or("."));
        let root: PathBuf = root.components().collect();
        let max_clients = written.max_clients.as_ref();
        let timeout = written.timeout.as_ref();
        let spool_over = written.spool_over.as_ref();
        let settings = NormSettings {
            host: written.host.unwrap_or_else(|| "127.0.0.1".to_owned()),
            port: written.port.unwrap_or(PORT),
            max_clients: within("MaxClients", max_clients, 1..=CLIENTS_MAX, MAX_CLIENTS)?,
            timeout: Duration::from_secs_f64(within(
                "Timeout",
                timeout,
                TIMEOUT_MIN..=TIMEOUT_MAX,
                TIMEOUT,
            )?),
            log_level: written.log_level.as_ref().map_or(Ok(Level::Info), level)?,
            log_file: match written.log_file.as_deref() {
                None | Some("stderr") => LogFile::Stderr,
                Some(path) => LogFile::File(root.join(path)),
            },
            tmp_dir: tmp_dir(&root, written.tmp_dir.as_ref())?,
            timing: written.timing.unwrap_or(false),
            spool_over: size(spool_over, SPOOL_OVER, SPOOL_OVER_MAX)?,
            body_max: size(written.max_body.as_ref(), BODY_MAX, u64::MAX)?,
            threads: within("Threads", written.threads.as_ref(), 1..=THREADS_MAX, 1)?,
            nodes: nodes(&root, written.nodes)?,
            sleep_parallel: false,
            breaks: Breaks::default(),
            root,
        };
        Ok(settings)
    }
}

/// An error and its position in the text.
#[derive(Debug)]
struct Wrong {
    span: Option<Range<usize>>,
    text: String,
}

impl Wrong {
    fn at<T>(value: &Spanned<T>, text: impl Into<String>) -> Wrong {
        Wrong { span: Some(value.span()), text: text.into() }
    }

    fn render(&self, file: &str) -> String {
        match &self.span {
            Some(span) => {
                let before = &file.as_bytes()[..span.start.min(file.len())];
                let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                format!("line {line}: {}", self.text)
            }
            None => self.text.clone(),
        }
    }
}

fn within<T: Copy + PartialOrd + std::fmt::Display>(
    name: &str,
    value: Option<&Spanned<T>>,
    bounds: std::ops::RangeInclusive<T>,
    otherwise: T,
) -> Result<T, Wrong> {
    let Some(value) = value else { return Ok(otherwise) };
    if bounds.contains(value.get_ref()) {
        return Ok(*value.get_ref());
    }
    let (low, high) = (bounds.start(), bounds.end());
    Err(Wrong::at(value, format!("{name} must be {low} to {high}, not {}", value.get_ref())))
}

fn level(value: &Spanned<String>) -> Result<Level, Wrong> {
    let names = Level::NAMES.map(|(name, _)| name).join(", ");
    Level::parse(value.get_ref())
        .ok_or_else(|| Wrong::at(value, format!("LogLevel must be one of {names}")))
}

fn size(value: Option<&Spanned<String>>, otherwise: u64, max: u64) -> Result<u64, Wrong> {
    let Some(value) = value else { return Ok(otherwise) };
    let size = units::parse_size(value.get_ref());
    let size = size.map_err(|error| Wrong::at(value, error.to_string()))?;
    if size > max {
        return Err(Wrong::at(
            value,
            format!("it is too large: at most {}", units::show::bytes(max)),
        ));
    }
    Ok(size)
}

fn tmp_dir(root: &Path, value: Option<&Spanned<String>>) -> Result<PathBuf, Wrong> {
    match value {
        None => Ok(std::env::temp_dir()),
        Some(value) => folder(root, value),
    }
}

/// Returns a folder that must exist.
fn folder(root: &Path, value: &Spanned<String>) -> Result<PathBuf, Wrong> {
    let path = root.join(value.get_ref());
    if path.is_dir() {
        return Ok(path);
    }
    let text = format!("there is no folder {}: make it or name another", path.display());
    Err(Wrong::at(value, text))
}

fn nodes(root: &Path, written: Vec<Spanned<WrittenNode>>) -> Result<Vec<NodeSettings>, Wrong> {
    if let Some(beyond) = written.get(NODES_MAX) {
        return Err(Wrong::at(beyond, format!("at most {NODES_MAX} nodes")));
    }
    if written.is_empty() {
        let text = "there is no [[Node]]: give at least one with Path and Directory".to_owned();
        return Err(Wrong { span: None, text });
    }
    let mut nodes: Vec<NodeSettings> = Vec::new();
    for node in written {
        let made =
            NodeSettings { path: node_path(&node.get_ref().path)?, kind: kind(root, &node)? };
        if nodes.iter().any(|other| other.path == made.path) {
            let text = format!("a second node for {}: remove one", quoted(&made.path));
            return Err(Wrong::at(&node.get_ref().path, text));
        }
        nodes.push(made);
    }
    Ok(nodes)
}

fn node_path(value: &Spanned<String>) -> Result<String, Wrong> {
    let path = value.get_ref();
    let clean = route::clean_path(path).is_ok_and(|clean| clean == *path);
    if clean && (path == "/" || !path.ends_with('/')) {
        return Ok(path.clone());
    }
    let text = format!(
        "{} is not the path of a node: write one like /, /sub or /cgi/env, without dot segments \
         and without / at the end",
        quoted(path)
    );
    Err(Wrong::at(value, text))
}

fn kind(root: &Path, spanned: &Spanned<WrittenNode>) -> Result<NodeKind, Wrong> {
    let node = spanned.get_ref();
    let given = [
        node.directory.is_some(),
        node.cgi_bin.is_some(),
        node.built_in.is_some(),
        node.interpreter.is_some(),
    ];
    if given.iter().filter(|given| **given).count() != 1 {
        let text = "a node has exactly one of Directory, CgiBin, BuiltIn and Interpreter";
        return Err(Wrong::at(spanned, text));
    }
    let of_directory = [
        ("Fancy", node.fancy.is_some()),
        ("Icons", node.icons.is_some()),
        ("OddFiles", node.odd_files.is_some()),
        ("ProcessPerRequest", node.process_per_request.is_some()),
    ];
    if node.directory.is_none()
        && let Some((name, _)) = of_directory.iter().find(|(_, given)| *given)
    {
        return Err(Wrong::at(spanned, format!("{name} is for a node with a Directory")));
    }
    if let Some(directory) = &node.directory {
        return Ok(NodeKind::Directory(DirectorySettings {
            root: folder(root, directory)?,
            fancy: node.fancy.unwrap_or(false),
            icons: node.icons.clone().unwrap_or_else(|| "/icons".to_owned()),
            odd_files: node.odd_files.unwrap_or(false),
            process_per_request: node.process_per_request.unwrap_or(false),
        }));
    }
    if let Some(program) = &node.cgi_bin {
        return Ok(NodeKind::Cgi(root.join(program)));
    }
    if let Some(script) = &node.interpreter {
        let path = root.join(script.get_ref());
        if !path.is_file() {
            let text = format!("there is no script {}", path.display());
            return Err(Wrong::at(script, text));
        }
        return Ok(NodeKind::Interpreter(path));
    }
    let name = node.built_in.as_ref().expect("exactly one of the four is given");
    match name.get_ref().as_str() {
        "hw" => Ok(NodeKind::BuiltIn(BuiltIn::Hello)),
        "sleep" => Ok(NodeKind::BuiltIn(BuiltIn::Sleep)),
        other => {
            let text = format!("{} is not a built-in handler: hw or sleep", quoted(other));
            Err(Wrong::at(name, text))
        }
    }
}

#[cfg(test)]
mod tests;
