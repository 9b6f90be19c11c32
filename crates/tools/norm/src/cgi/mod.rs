//! CGI/1.1 scripts (RFC 3875): a process for every request.
//!
//! `environment` makes the environment, `head` parses the script's response, `process` runs the
//! process, and `output` forwards its output to the client. A process never outlives its request:
//! it leads a process group that is killed when its leader ends, when a limit is reached, when the
//! client disconnects and when the server stops. Only a process that leaves the group by itself
//! (setsid) can escape that.
//!
//! Deliberately not supported: scripts that send their own status line (`nph-…`, §5: 501), and
//! query words without `=` as command line arguments (optional by §4.4; such arguments have exposed
//! too many interpreters' options to strangers).

mod environment;
mod head;
mod output;
pub(crate) mod per_request;
mod places;
mod process;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONTENT_LENGTH, HeaderValue, RETRY_AFTER};
use hyper::http::{Method, StatusCode};
use rustix::fs::Access;
use rustix::io::Errno;

use crate::breaks::{Break, Breaks};
use crate::exchange::{Ask, Content, Entity, Piece, Reply};
use head::{CgiHead, Kind};
use process::{CgiProcess, Input};

#[cfg(feature = "lua")]
pub(crate) use head::is_ours;
pub(crate) use places::Places;

/// Function that writes a line to the site's log.
pub(crate) type Complain = Arc<dyn Fn(&str) + Send + Sync>;

/// Resource limits of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CgiLimits {
    /// Timeout for the header; after that, for the next piece of output, or for the client to read
    /// one. At least 1 ms.
    pub(crate) time: Duration,
    /// Maximum size of a body in bytes; a longer one is truncated, and the connection closed.
    pub(crate) output: u64,
}

impl Default for CgiLimits {
    fn default() -> CgiLimits {
        CgiLimits { time: Duration::from_secs(10), output: 256 << 20 }
    }
}

/// Start parameters of a script.
#[derive(Clone)]
pub(crate) struct CgiSettings {
    /// The file to execute; it is started in the folder that holds it (§7.2).
    pub(crate) program: PathBuf,
    /// File system path of PATH_INFO: PATH_TRANSLATED (§4.1.6).
    pub(crate) root: Option<PathBuf>,
    /// SERVER_SOFTWARE, as in the Server field.
    pub(crate) software: String,
    /// Variables of our own environment that a script receives: [`passed_on`].
    pub(crate) passed: Vec<(OsString, OsString)>,
    pub(crate) limits: CgiLimits,
    /// Shared by all scripts of a server.
    pub(crate) places: Arc<Places>,
    /// Standard error and the failure.
    pub(crate) complain: Complain,
}

impl std::fmt::Debug for CgiSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CgiSettings").field("program", &self.program).finish_non_exhaustive()
    }
}

/// Returns PATH and SHELL of our own environment, or the POSIX defaults.
pub(crate) fn passed_on() -> Vec<(OsString, OsString)> {
    let usual = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("SHELL", "/bin/sh")];
    let value = |name: &str, usual: &str| std::env::var_os(name).unwrap_or_else(|| usual.into());
    usual.map(|(name, usual)| (OsString::from(name), value(name, usual))).into()
}

/// A node that answers with a program's output.
#[derive(Debug)]
pub(crate) struct CgiScript {
    settings: CgiSettings,
}

/// Reason why the script has no response.
#[derive(Debug)]
enum CgiFailure {
    Missing,
    Forbidden(&'static str),
    /// The name announces its own status line.
    NonParsed,
    Start(std::io::Error),
    Busy,
    /// The output does not begin with a header; the text states why.
    Head(String),
    Slow,
}

impl CgiScript {
    pub(crate) fn new(mut settings: CgiSettings) -> CgiScript {
        // the process starts in another folder than ours
        if let Ok(absolute) = std::path::absolute(&settings.program) {
            settings.program = absolute;
        }
        CgiScript { settings }
    }

    /// Starts the script and returns its response as soon as its header is complete. Never fails: a
    /// script error becomes a status of 400 or above and a log line.
    pub(crate) async fn answer(&self, ask: Ask, breaks: &Breaks) -> Reply {
        match self.run(ask, breaks).await {
            Ok(reply) => reply,
            Err(failure) => {
                let script = self.settings.program.display();
                (self.settings.complain)(&format!("CGI {script}: {failure}"));
                failure.reply()
            }
        }
    }

    async fn run(&self, ask: Ask, breaks: &Breaks) -> Result<Reply, CgiFailure> {
        let settings = &self.settings;
        startable(&settings.program)?;
        let place = settings.places.take(settings.limits.time).await.ok_or(CgiFailure::Busy)?;
        let mut command = Command::new(&settings.program);
        command.env_clear().envs(environment::variables(&ask, settings, breaks));
        if let Some(folder) = settings.program.parent() {
            command.current_dir(folder);
        }
        let bodiless = ask.method == Method::HEAD;
        // a spooled body goes from the tmp directory here; the open file stays readable
        let input = if breaks.has(Break::CgiStdin) { Input::None } else { input(ask.body)? };
        let complain = settings.complain.clone();
        let started = CgiProcess::start(command, input, place, complain).await;
        let mut process = started.map_err(CgiFailure::Start)?;
        let reading = tokio::time::timeout(settings.limits.time, process.head());
        let (head, rest) =
            reading.await.map_err(|_| CgiFailure::Slow)?.map_err(CgiFailure::Head)?;
        let CgiHead { kind, mut fields, length } = head;
        let status = match kind {
            Kind::Document(status) => status,
            Kind::Elsewhere(path) => {
                let content = Content::Elsewhere(path);
                return Ok(Reply { status: StatusCode::OK, headers: fields, content });
            }
        };
        let no_content = status == StatusCode::NO_CONTENT;
        if let Some(length) = length.filter(|_| !no_content) {
            fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let course = output::OutputRules {
            limits: settings.limits,
            length,
            bodiless: bodiless || no_content || status == StatusCode::NOT_MODIFIED,
            complain: settings.complain.clone(),
            name: settings.program.display().to_string(),
        };
        Ok(Reply { status, headers: fields, content: output::carry(process, rest, course) })
    }
}

/// Checks that the file is an executable program.
fn startable(program: &Path) -> Result<(), CgiFailure> {
    let name = program.file_name().unwrap_or_default().as_encoded_bytes();
    if name.starts_with(b"nph-") {
        return Err(CgiFailure::NonParsed);
    }
    let found = std::fs::metadata(program).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => CgiFailure::Forbidden("it cannot be accessed"),
        _ => CgiFailure::Missing,
    })?;
    if !found.is_file() {
        return Err(CgiFailure::Missing);
    }
    // like a file that may not be read: the server understood, and refuses (RFC 9110 §15.5.4)
    rustix::fs::access(program, Access::EXEC_OK)
        .map_err(|_| CgiFailure::Forbidden("it may not be executed"))
}

fn input(body: Entity) -> Result<Input, CgiFailure> {
    Ok(match body {
        Entity::None => Input::None,
        Entity::Memory(bytes) => Input::Pieces(vec![Piece::Bytes(bytes)]),
        Entity::Spooled(file) => Input::File(File::open(&file.path).map_err(CgiFailure::Start)?),
    })
}

impl CgiFailure {
    fn status(&self) -> StatusCode {
        match self {
            CgiFailure::Missing => StatusCode::NOT_FOUND,
            CgiFailure::Forbidden(_) => StatusCode::FORBIDDEN,
            CgiFailure::NonParsed => StatusCode::NOT_IMPLEMENTED,
            CgiFailure::Busy => StatusCode::SERVICE_UNAVAILABLE,
            CgiFailure::Head(_) => StatusCode::BAD_GATEWAY,
            CgiFailure::Slow => StatusCode::GATEWAY_TIMEOUT,
            // the peer's doing: fields longer than an environment may be, a zero byte in the path
            CgiFailure::Start(error)
                if error.raw_os_error() == Some(Errno::TOOBIG.raw_os_error()) =>
            {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            CgiFailure::Start(error) if error.kind() == ErrorKind::InvalidInput => {
                StatusCode::BAD_REQUEST
            }
            CgiFailure::Start(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn reply(&self) -> Reply {
        let status = self.status();
        let text = match self {
            CgiFailure::Missing => "There is no such script.",
            CgiFailure::Forbidden(_) => "The script may not be executed.",
            CgiFailure::NonParsed => "Scripts that write their own status line are not supported.",
            CgiFailure::Busy => "Too many scripts are running. Try again in a moment.",
            CgiFailure::Head(_) => "The script did not answer with a header.",
            CgiFailure::Slow => "The script did not answer in time.",
            CgiFailure::Start(_) if status == StatusCode::INTERNAL_SERVER_ERROR => {
                "The script cannot be started."
            }
            CgiFailure::Start(_) => "The request cannot be passed to the script.",
        };
        let mut reply = Reply::text(status, format!("{text}\n"));
        if matches!(self, CgiFailure::Busy) {
            reply.headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        reply
    }
}

impl std::fmt::Display for CgiFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CgiFailure::Missing => f.write_str("there is no such file"),
            CgiFailure::Forbidden(why) => f.write_str(why),
            CgiFailure::NonParsed => f.write_str("nph- scripts are not supported"),
            // the file itself is there: it was looked at a moment ago
            CgiFailure::Start(error) if error.kind() == ErrorKind::NotFound => {
                f.write_str("cannot be started: the interpreter of its first line is missing")
            }
            CgiFailure::Start(error) => write!(f, "cannot be started: {error}"),
            CgiFailure::Busy => f.write_str("the process limit is reached"),
            CgiFailure::Head(why) => f.write_str(why),
            CgiFailure::Slow => f.write_str("no header within the time limit; killed"),
        }
    }
}
