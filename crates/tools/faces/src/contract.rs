//! Interface between a face and the program that runs it.

use crate::{Extras, Idle};
use plan::{Plan, TlsPlan};
use protocol::http1::response::Leniency;
use record::run::RunRecord;
use sample::{CallRecord, Ends};
use stats::{CauseId, Second, Snapshot};
use std::net::IpAddr;
use units::Nanos;
use url::Url;
use workload::{Guides, RequestMakers};

/// Requests of a face to this machine while it parses arguments: above all the contents of files.
pub trait Files {
    /// Returns the whole file; `-` is the name of a file, as in the tools.
    ///
    /// # Errors
    /// Fails with the operating system's number and sentence for it.
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError>;

    /// Returns the contents of all plain files of a folder, up to [`FOLDER_FILES_MAX`] files.
    ///
    /// # Errors
    /// Fails like [`Files::read`], for the folder.
    fn read_folder(&self, path: &str) -> Result<Vec<Vec<u8>>, SystemError> {
        Err(SystemError { number: 20, text: format!("{path}: Not a directory") })
    }

    /// Returns an address of a host.
    ///
    /// # Errors
    /// Fails with the resolver's sentence.
    fn resolve(&self, host: &str) -> Result<IpAddr, String> {
        host.parse().map_err(|_| format!("{host} has no address"))
    }

    /// Requests a page and returns the references of its elements, in order.
    ///
    /// # Errors
    /// Fails with one sentence on why the page does not exist.
    fn look_at(&self, page: &PageRequest<'_>) -> Result<Vec<Reference>, String> {
        Err(format!("{} cannot be requested", page.url))
    }

    /// Returns the descriptors of the service of gRPC that the plan's first URL names, from its
    /// server's reflection: a serialized FileDescriptorSet.
    ///
    /// # Errors
    /// Fails if the descriptors are not available; the text states why.
    fn describe(&self, plan: &Plan) -> Result<Vec<u8>, String> {
        let place = plan.targets.first().map(|target| target.url.to_string());
        Err(format!("{} cannot be requested", place.unwrap_or_default()))
    }

    /// Returns all of standard input.
    ///
    /// # Errors
    /// Fails like [`Files::read`].
    fn read_input(&self) -> Result<Vec<u8>, SystemError> {
        Err(SystemError { number: 9, text: "Bad file descriptor".to_owned() })
    }

    /// Returns the number of cores of this machine.
    fn cores(&self) -> u64 {
        1
    }

    /// Returns the number of this process, for tools that print it; 0 if unknown.
    fn process_id(&self) -> u32 {
        0
    }

    /// Returns the current date and time; the start of 1970 without a clock.
    fn now(&self) -> Date {
        Date::default()
    }

    /// Returns an environment variable, if it is set.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// Returns all variables of the environment.
    fn variables(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns a function that reads files during the run, for scripts that open them.
    fn reader(&self) -> FileReader {
        Box::new(|path| Err(format!("{path}: no files here")))
    }
}

/// Reads a file by its path: its bytes, or the sentence of the operating system.
pub type FileReader = Box<dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync>;

/// Maximum number of files read from a folder.
pub const FOLDER_FILES_MAX: usize = 1_000;

/// A page that must be fetched before the plan can be built.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    pub url: &'a Url,
    /// The request's bytes.
    pub request: &'a [u8],
    pub tls: &'a TlsPlan,
    /// Time limit from the request to the end of the response.
    pub timeout: Nanos,
}

/// Reference of an element of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Element, in lower case: `img`.
    pub element: String,
    pub url: Url,
}

/// An error of the operating system: its number, and the C library's sentence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemError {
    pub number: i32,
    pub text: String,
}

/// Result of a command line.
#[derive(Debug)]
pub enum Reading {
    /// No run: help, a version, a native command, or an error.
    End(Ending),
    Run(Box<Job>),
    /// No load: connections that are kept open.
    Idle(Idle),
}

/// A plan to be run, and the face that observes and prints.
#[derive(Debug)]
pub struct Job {
    pub plan: Plan,
    pub needs: Needs,
    pub extras: Extras,
    /// Source of requests that replaces the plan's target.
    pub script: Option<Box<ScriptJob>>,
    /// Guide of the plan's users, call by call; they may use any server.
    pub guides: Option<Box<dyn Guides>>,
    /// Makes the content of requests, call by call.
    pub makers: Option<Box<dyn RequestMakers>>,
    /// A file that is written during the run.
    pub log: Option<RequestLog>,
    pub face: Box<dyn Face>,
}

impl Job {
    /// Returns a job that makes the requests of its plan, and writes no file during the run.
    pub(crate) fn new(plan: Plan, needs: Needs, extras: Extras, face: Box<dyn Face>) -> Job {
        Job { plan, needs, extras, script: None, guides: None, makers: None, log: None, face }
    }
}

/// File to which [`FaceOutput::log`] is appended. If it cannot be opened, `complaint` is printed on
/// standard error, the tool ends with `code`, and the run does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLog {
    pub path: String,
    pub complaint: String,
    pub code: u8,
    /// True to replace the content of the file.
    pub fresh: bool,
}

/// A Lua script that creates the requests, and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptJob {
    /// Name of the script and its text, or the reason why it could not be read; `None` if only the
    /// script's libraries are loaded.
    pub text: Option<(String, Result<Vec<u8>, String>)>,
    pub scheme: String,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: Option<String>,
    /// Path and query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub args: Vec<String>,
    /// Method; `None` for GET.
    pub method: Option<String>,
    pub body: Option<Vec<u8>>,
    /// True to print the script's output on standard error.
    pub aside: bool,
}

/// Counts of one worker in an interval of [`plan::MeasurePlan::interval`].
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    pub worker: u32,
    pub start: Nanos,
    pub end: Nanos,
    pub snapshot: &'a Snapshot,
}

/// Data that a face needs from the run, in addition to its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// True if [`Face::calls`] receives every call; it receives failed ones without delay.
    pub calls: bool,
    /// Number of calls of each worker for which the start of the response is passed, head first.
    pub responses: u64,
    /// Leniency beyond HTTP/1.x. If responses without a head are accepted, the start of such a
    /// response, or of a truncated one, is passed with its call.
    pub lenient: Leniency,
    /// True if [`Face::ends`] receives every connection and every session that has ended.
    pub ends: bool,
}

/// Most of the tools take any version of HTTP in a status line.
pub(crate) const ANY_VERSION: Leniency =
    Leniency { headless: false, any_version: true, any_length: false };

/// Output text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaceOutput {
    pub out: String,
    pub err: String,
    /// Text for the file of [`Job::log`].
    pub log: String,
    pub wish: FaceDecision,
}

/// Decision of a face about the rest of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaceDecision {
    #[default]
    GoOn,
    /// No more calls are due; calls in flight are followed to their outcome.
    Stop,
    /// Calls in flight are abandoned.
    Abandon,
}

/// End of a tool's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Text for standard output, then for standard error.
    pub out: String,
    pub err: String,
    /// Prints standard error first, which matters if both streams are the same terminal.
    pub err_first: bool,
    /// Files to be written, in this order, after the text.
    pub files: Vec<OutFile>,
    /// Notes of this program: one sentence each, shown on a terminal or with `--notes`.
    pub notes: Vec<String>,
    pub code: u8,
}

/// Result file. If it cannot be written, `complaint: reason` goes to standard error, and the tool
/// ends with `code`; with code 0 it continues with the next file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFile {
    pub path: String,
    pub text: String,
    /// Appends to an existing file instead of replacing it.
    pub append: bool,
    pub complaint: String,
    pub code: u8,
}

/// Reason why a run could not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartTrouble {
    /// A name has no address; the resolver's own sentence.
    Name { host: String, text: String },
    /// No socket can be bound to a local address.
    Bind(SystemError),
    /// More descriptors are needed than available.
    Descriptors,
    /// Ciphers, certificates or keys cannot be used.
    Tls(String),
    /// `HOST:SERVICE REASON` for a script's host without an address.
    Lookup(String),
    /// `HOST:SERVICE REASON` for a script's host that accepts no connection.
    Connect(String),
    /// A script error: its name, the line, the message. Also during the run.
    Script(String),
    /// A script's request is invalid: `REASON at LINE:COLUMN`.
    Request(String),
    /// Any other error, as printed by the native command.
    Other(String),
}

impl StartTrouble {
    /// Returns the message of the error.
    pub(crate) fn text(&self) -> &str {
        match self {
            StartTrouble::Descriptors => "too many open files",
            StartTrouble::Bind(error) => &error.text,
            StartTrouble::Name { text, .. }
            | StartTrouble::Tls(text)
            | StartTrouble::Lookup(text)
            | StartTrouble::Connect(text)
            | StartTrouble::Script(text)
            | StartTrouble::Request(text)
            | StartTrouble::Other(text) => text,
        }
    }
}

/// Data that a tool prints and a report lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The first due instant, on the clock of samples; the report dates it.
    pub origin: Nanos,
    /// Seconds that the machine's local time is ahead of UTC.
    pub utc_offset_s: i32,
    /// Descriptors that this process may have open.
    pub descriptors: u64,
    /// The number of the signal that ended the run, or 0.
    pub signal: usize,
}

/// An instant on the clock of samples, and when it is in the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Date {
    pub at: Nanos,
    /// Seconds since 1970, UTC.
    pub unix_s: f64,
    /// Seconds that the machine's local time is ahead of UTC.
    pub utc_offset_s: i32,
}

/// A tool while its plan is run.
pub trait Face: std::fmt::Debug {
    /// Sets the calendar time of the run's clock; called before the run begins.
    fn set_date(&mut self, _date: &Date) {}

    /// Returns the adjusted plan and the data that the face needs, after the protocol of
    /// [`plan::HttpVersion::Auto`] was resolved to the server's choice by ALPN, if any; `plan` uses
    /// it. `None` for an unchanged plan.
    fn negotiated(&mut self, _chosen: Option<&str>, _plan: &Plan) -> Option<(Plan, Needs)> {
        None
    }

    /// Called when the run begins: names are resolved, nothing has been sent.
    fn begin(&mut self) -> FaceOutput {
        FaceOutput::default()
    }

    /// Receives ended calls; those of one worker in the order of their ends.
    fn calls(&mut self, _calls: &[CallRecord]) -> FaceOutput {
        FaceOutput::default()
    }

    /// Receives ended connections and sessions.
    fn ends(&mut self, _ends: &Ends) -> FaceOutput {
        FaceOutput::default()
    }

    /// Receives a complete row of the series ([`plan::MeasurePlan::interval`]).
    fn row(&mut self, _row: &Second, _total: &Snapshot) -> FaceOutput {
        FaceOutput::default()
    }

    /// Receives one worker's interval, before it is merged into a row.
    fn interval(&mut self, _interval: &Interval<'_>) -> FaceOutput {
        FaceOutput::default()
    }

    /// Returns data for a script after the report was printed.
    fn figures(&self) -> Option<&crate::wrk::WrkFigures> {
        None
    }

    /// Reports that there are no descriptors for this number of the connections. Returns whether
    /// the tool runs with the others, instead of failing with [`StartTrouble::Descriptors`].
    fn run_without_connections(&mut self, _connections: u64) -> bool {
        false
    }

    /// Reports that the run could not begin; [`Face::begin`] has not been called, unless a script
    /// failed later.
    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending;

    /// Returns the final output after the run.
    fn report(&mut self, report: &RunRecord, facts: &Facts) -> Ending;
}

/// Returns a sentence if the client or its machine was measured instead of the server; for
/// [`Ending::notes`].
pub fn client_note(report: &RunRecord) -> Option<String> {
    const OURS: [CauseId; 9] = [
        CauseId::DriverCpu,
        CauseId::NotOffered,
        CauseId::Slip,
        CauseId::Ports,
        CauseId::Descriptors,
        CauseId::ForeignCpu,
        CauseId::SharedCores,
        CauseId::PathOverload,
        CauseId::PathLate,
    ];
    let cause = report.verdict.causes.iter().find(|cause| OURS.contains(&cause.id))?;
    Some(format!("{}: {}", report.verdict.state.id(), cause.text))
}

impl Ending {
    /// Returns an ending with this text on standard error and this exit code.
    pub fn error(text: impl Into<String>, code: u8) -> Ending {
        Ending { err: text.into(), code, ..Ending::default() }
    }

    /// Returns a successful ending with this text on standard output.
    pub fn text(text: impl Into<String>) -> Ending {
        Ending { out: text.into(), ..Ending::default() }
    }
}
