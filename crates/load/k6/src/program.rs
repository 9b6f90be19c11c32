//! A script with its files and all state that its users share.

use crate::grpc_tls::GrpcTlsTable;
use crate::metrics::{MetricKind, Registry};
use crate::options::Options;
use ::grpc::Schema;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use url::Url;

/// Reads a file; returns its bytes, or the message of the operating system.
pub type ReadFile = Box<dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync>;

/// Line of the script's console, or of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub level: &'static str,
    pub text: String,
    /// Fields printed after the text, sorted by name. `source` is `console` or `stacktrace`.
    pub fields: Vec<(&'static str, String)>,
}

impl LogLine {
    /// Returns a line without fields.
    pub fn new(level: &'static str, text: impl Into<String>) -> LogLine {
        LogLine { level, text: text.into(), fields: Vec::new() }
    }
}

/// Arrays by name, with each element as JSON.
type SharedArrays = BTreeMap<String, Arc<Vec<String>>>;

/// Maximum number of lines waiting to be printed.
const LOG_LINES_MAX: usize = 100_000;
/// Maximum number of URLs that a thread keeps parsed.
const URLS_MAX: usize = 1_000;
/// Maximum number of sets of descriptors of gRPC.
const SCHEMAS_MAX: usize = 1_000;

/// A file of the script as written, and as run.
#[derive(Clone, Debug)]
struct SourceText {
    written: Arc<str>,
    /// The text without types, for TypeScript.
    run: Arc<str>,
}

/// Script, with all state that its users share.
pub struct Program {
    /// Normalized path of the script.
    pub entry: String,
    pub env: BTreeMap<String, String>,
    read: ReadFile,
    texts: Mutex<BTreeMap<String, Result<SourceText, String>>>,
    /// Module system of each text, by key: true for ES modules, false for CommonJS.
    modules: Mutex<BTreeMap<String, bool>>,
    blobs: Mutex<BTreeMap<String, Arc<Vec<u8>>>>,
    /// Compiled modules by key; `None` if a module cannot be compiled.
    codes: Mutex<BTreeMap<String, Option<Arc<Vec<u8>>>>>,
    /// gRPC descriptors, with the keys of their sources.
    schemas: Mutex<Vec<(String, Arc<Schema>)>>,
    /// TLS of gRPC connections by server.
    pub(crate) grpc_tls: Arc<GrpcTlsTable>,
    shared: Mutex<SharedArrays>,
    registry: Mutex<Registry>,
    frozen: OnceLock<Registry>,
    pub(crate) options: OnceLock<Options>,
    log: Mutex<Vec<LogLine>>,
    /// True if the log has lines. Users read this after each request and lock the log only if it is
    /// set.
    has_lines: AtomicBool,
    /// Number of lines beyond the maximum since the log was last read.
    lines_dropped: AtomicU64,
    pub counts: ProgramCounts,
}

/// Counters over all users.
#[derive(Debug, Default)]
pub struct ProgramCounts {
    pub completed: AtomicU64,
    pub interrupted: AtomicU64,
    pub active: AtomicU64,
    /// The first instant of the test, on the clock of the engine.
    pub origin: AtomicU64,
    /// Maximum number of users.
    pub users: AtomicU64,
    /// True after `test.fail()`.
    pub marked_failed: AtomicBool,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("entry", &self.entry).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Program {
    pub fn new(entry: &str, env: BTreeMap<String, String>, read: ReadFile) -> Program {
        Program {
            entry: entry_path(entry),
            env,
            read,
            texts: Mutex::default(),
            modules: Mutex::default(),
            blobs: Mutex::default(),
            codes: Mutex::default(),
            schemas: Mutex::default(),
            grpc_tls: Arc::default(),
            shared: Mutex::default(),
            registry: Mutex::new(Registry::built_in()),
            frozen: OnceLock::new(),
            options: OnceLock::new(),
            log: Mutex::default(),
            has_lines: AtomicBool::new(false),
            lines_dropped: AtomicU64::new(0),
            counts: ProgramCounts::default(),
        }
    }

    /// Returns the metrics while they can still change.
    pub fn registry(&self) -> MutexGuard<'_, Registry> {
        locked(&self.registry)
    }

    /// Returns the metrics of a test whose options are known.
    pub fn metrics(&self) -> &Registry {
        self.frozen.get_or_init(|| locked(&self.registry).clone())
    }

    /// Returns the row of a metric that a script declares.
    ///
    /// # Errors
    /// Fails like [`Registry::declare`]; also fails if the metric was not declared when the options
    /// were read.
    pub fn declare(&self, name: &str, kind: MetricKind, is_time: bool) -> Result<usize, String> {
        let Some(frozen) = self.frozen.get() else {
            return self.registry().declare(name, kind, is_time);
        };
        match frozen.find(name) {
            Some(_) => frozen.clone().declare(name, kind, is_time),
            None => Err(format!(
                "metric '{name}' was not declared by the first user; declare the same metrics in \
                 the init context of all users"
            )),
        }
    }

    pub(crate) fn shared(&self) -> MutexGuard<'_, SharedArrays> {
        locked(&self.shared)
    }

    /// Returns whether the script is a CommonJS file rather than a module.
    pub(crate) fn is_common_js(&self) -> bool {
        self.text(&self.entry).is_ok_and(|text| !self.is_module(&self.entry, &text))
    }

    pub fn options(&self) -> Option<&Options> {
        self.options.get()
    }

    /// Returns the text of a module; for TypeScript, with types removed.
    ///
    /// # Errors
    /// Fails if the module cannot be read, or is not UTF-8.
    pub fn text(&self, path: &str) -> Result<Arc<str>, String> {
        if let Some(known) = locked(&self.texts).get(path) {
            return known.clone().map(|text| text.run);
        }
        let made = self.read_text(path);
        locked(&self.texts).insert(path.to_owned(), made.clone());
        made.map(|text| text.run)
    }

    /// Returns why the script itself cannot be read; `None` if it can.
    pub(crate) fn unreadable_entry(&self) -> Option<String> {
        self.text(&self.entry).err()?;
        let why = (self.read)(&self.entry).err()?;
        Some(format!("cannot read {}: {why}", self.entry))
    }

    fn read_text(&self, path: &str) -> Result<SourceText, String> {
        let bytes = (self.read)(path).map_err(|why| format!("cannot read {path}: {why}"))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let start = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + start.iter().filter(|byte| **byte == b'\n').count();
            format!("{path}:{line}: the script is not UTF-8; save it in that encoding")
        })?;
        let written: Arc<str> = text.into();
        let run = match path.ends_with(".ts") {
            true => {
                crate::typescript::strip(&written).map_err(|why| format!("{path}{why}"))?.into()
            }
            false => written.clone(),
        };
        Ok(SourceText { written, run })
    }

    /// Returns whether the text of a key is a module; it is examined for the first user.
    pub(crate) fn is_module(&self, key: &str, text: &str) -> bool {
        let mut modules = locked(&self.modules);
        *modules.entry(key.to_owned()).or_insert_with(|| crate::scan::is_module(text))
    }

    /// Returns the bytecode of a module, compiled for the first user that needs it.
    pub(crate) fn code(
        &self,
        key: &str,
        compile: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Arc<Vec<u8>>> {
        let mut codes = locked(&self.codes);
        codes.entry(key.to_owned()).or_insert_with(|| compile().map(Arc::new)).clone()
    }

    /// Returns the gRPC descriptors of a key with their index in the list of the program. They are
    /// compiled for the first user that needs them.
    ///
    /// # Errors
    /// Fails if they cannot be compiled, or there are too many.
    pub(crate) fn schema(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<Schema, String>,
    ) -> Result<(usize, Arc<Schema>), String> {
        let mut all = locked(&self.schemas);
        if let Some(number) = all.iter().position(|(known, _)| known == key) {
            return Ok((number, all[number].1.clone()));
        }
        if all.len() >= SCHEMAS_MAX {
            return Err(format!("a script has at most {SCHEMAS_MAX} sets of descriptors"));
        }
        let schema = Arc::new(make()?);
        all.push((key.to_owned(), schema.clone()));
        Ok((all.len() - 1, schema))
    }

    /// Returns the gRPC descriptors of a key with their index, if they were compiled.
    pub(crate) fn schema_known(&self, key: &str) -> Option<(usize, Arc<Schema>)> {
        let all = locked(&self.schemas);
        let number = all.iter().position(|(known, _)| known == key)?;
        Some((number, all[number].1.clone()))
    }

    pub(crate) fn schema_at(&self, number: usize) -> Option<Arc<Schema>> {
        locked(&self.schemas).get(number).map(|(_, schema)| schema.clone())
    }

    /// Returns the bytes of a file that the script opens, read once for all users.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn open(&self, from: &str, path: &str) -> Result<Arc<Vec<u8>>, String> {
        let path = normalize(from, path.strip_prefix("file://").unwrap_or(path));
        if let Some(known) = locked(&self.blobs).get(&path) {
            return Ok(known.clone());
        }
        let bytes = (self.read)(&path).map_err(|why| format!("cannot open {path}: {why}"))?;
        let bytes = Arc::new(bytes);
        locked(&self.blobs).insert(path, bytes.clone());
        Ok(bytes)
    }

    /// Returns the texts of the script and of the files that it has imported.
    pub fn all_texts(&self) -> Vec<Arc<str>> {
        locked(&self.texts).values().flatten().map(|text| text.run.clone()).collect()
    }

    /// Returns the script and the files that it has imported, by path.
    pub(crate) fn modules_read(&self) -> Vec<(String, Arc<str>)> {
        let texts = locked(&self.texts);
        let read = texts.iter().filter_map(|(path, text)| {
            let text = text.as_ref().ok()?;
            Some((path.clone(), text.run.clone()))
        });
        read.collect()
    }

    /// Returns the paths of files that were imported or opened, without the script itself.
    ///
    /// # Errors
    /// Fails if one of the files is not text.
    pub fn files_read(&self) -> Result<Vec<(String, String)>, String> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (path, text) in locked(&self.texts).iter() {
            all.push((path.clone(), text.as_ref().map_err(Clone::clone)?.written.to_string()));
        }
        for (path, bytes) in locked(&self.blobs).iter() {
            let text = std::str::from_utf8(bytes).map_err(|_| {
                format!("{path} is not UTF-8 text, which the files of a plan's script must be")
            })?;
            if all.iter().all(|(known, _)| known != path) {
                all.push((path.clone(), text.to_owned()));
            }
        }
        all.retain(|(path, _)| *path != self.entry);
        Ok(all)
    }

    /// Logs a line. An empty `source` is omitted.
    pub fn log(&self, level: &'static str, source: &'static str, text: impl Into<String>) {
        let mut line = LogLine::new(level, text);
        line.fields.extend((!source.is_empty()).then(|| ("source", source.to_owned())));
        self.log_line(line);
    }

    pub fn log_line(&self, line: LogLine) {
        let mut lines = locked(&self.log);
        match lines.len() < LOG_LINES_MAX {
            true => lines.push(line),
            false => drop(self.lines_dropped.fetch_add(1, Ordering::Relaxed)),
        }
        self.has_lines.store(true, Ordering::Release);
    }

    /// Returns the lines since the previous call.
    pub fn take_log(&self) -> Vec<LogLine> {
        if !self.has_lines.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut lines = locked(&self.log);
        self.has_lines.store(false, Ordering::Release);
        let mut taken = std::mem::take(&mut *lines);
        match self.lines_dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            count => taken.push(LogLine::new(
                "warning",
                format!("{count} further lines are not shown; log fewer lines"),
            )),
        }
        taken
    }
}

thread_local! {
    /// URLs of requests by their texts; `None` for those that cannot be requested. Users of other
    /// threads would wait for a shared list.
    static URLS: RefCell<BTreeMap<String, Option<Arc<Url>>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns the URL of a request, without its fragment; `None` if it cannot be requested. URLs are
/// kept, as scripts repeat them.
pub(crate) fn request_url(text: &str) -> Option<Arc<Url>> {
    URLS.with_borrow_mut(|urls| {
        if let Some(known) = urls.get(text) {
            return known.clone();
        }
        let parsed = Url::parse(text).ok();
        let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = parsed.filter(|url| url.host_str().is_some()).map(|mut url| {
            url.set_fragment(None);
            Arc::new(url)
        });
        if urls.len() >= URLS_MAX {
            urls.clear();
        }
        urls.insert(text.to_owned(), url.clone());
        url
    })
}

/// Returns the path from which a script of this name is read.
pub fn entry_path(name: &str) -> String {
    normalize("", name)
}

/// Resolves `path` relative to the file `from`, without `.` and `..`.
pub(crate) fn normalize(from: &str, path: &str) -> String {
    let base = if path.starts_with('/') { "" } else { from.rsplit_once('/').map_or("", |it| it.0) };
    let rooted = path.starts_with('/') || base.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if rooted { format!("/{joined}") } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_requests_are_kept_up_to_a_limit() {
        let url = request_url("http://h/a#b").unwrap();
        assert_eq!(url.as_str(), "http://h/a");
        assert!(Arc::ptr_eq(&url, &request_url("http://h/a#b").unwrap()));
        for text in ["ws://h/", "h/a", "data:x", ""] {
            assert!(request_url(text).is_none(), "{text}");
        }
        for number in 0..2 * URLS_MAX {
            assert!(request_url(&format!("http://h/{number}")).is_some());
            assert!(URLS.with_borrow(BTreeMap::len) <= URLS_MAX);
        }
    }
}
