//! What passes between a face and the program that runs it.

use crate::{Extras, Idle};
use plan::{Plan, TlsPlan};
use protocol::http1::response::Leniency;
use record::run::RunRecord;
use sample::{CallRecord, Ends};
use stats::{CauseId, Second, Snapshot};
use std::net::IpAddr;
use units::Nanos;
use url::Url;
use workload::Guides;

/// What a face may ask of this machine while it reads arguments: the contents of files that they
/// name, above all.
pub trait Files {
    /// The whole of the file; `-` is a file of that name, as the tools have it.
    ///
    /// # Errors
    /// The operating system's number and sentence for it.
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError>;

    /// The contents of all plain files of a folder, at most [`FOLDER_FILES_MAX`] of them.
    ///
    /// # Errors
    /// As [`Files::read`], of the folder.
    fn read_folder(&self, path: &str) -> Result<Vec<Vec<u8>>, SystemError> {
        Err(SystemError { number: 20, text: format!("{path}: Not a directory") })
    }

    /// An address of a host.
    ///
    /// # Errors
    /// The resolver's sentence.
    fn resolve(&self, host: &str) -> Result<IpAddr, String> {
        host.parse().map_err(|_| format!("{host} has no address"))
    }

    /// Asks for a page and gives back what its elements refer to, in their order.
    ///
    /// # Errors
    /// One sentence on why there is no such page.
    fn look_at(&self, page: &PageRequest<'_>) -> Result<Vec<Reference>, String> {
        Err(format!("{} cannot be asked for", page.url))
    }

    /// Everything that comes in by standard input.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn read_input(&self) -> Result<Vec<u8>, SystemError> {
        Err(SystemError { number: 9, text: "Bad file descriptor".to_owned() })
    }

    /// Cores of this machine.
    fn cores(&self) -> u64 {
        1
    }

    /// The number of this process, for tools that print it; 0 where there is none.
    fn process_id(&self) -> u32 {
        0
    }

    /// When it is, in the calendar; the start of 1970 where there is no clock.
    fn now(&self) -> Date {
        Date::default()
    }

    /// A variable of the environment, where it is set.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// All variables of the environment.
    fn variables(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// A function that reads files while the run goes on, for scripts that open them.
    fn reader(&self) -> FileReader {
        Box::new(|path| Err(format!("{path}: no files here")))
    }
}

/// Reads a file by its path: its bytes, or the sentence of the operating system.
pub type FileReader = Box<dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync>;

/// Files of a folder that are read at most.
pub const FOLDER_FILES_MAX: usize = 1_000;

/// A page that has to be seen before the plan can be made.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    pub url: &'a Url,
    /// The request's bytes.
    pub request: &'a [u8],
    pub tls: &'a TlsPlan,
    /// From the request to the end of the response.
    pub timeout: Nanos,
}

/// What an element of a page refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// `img`, in small letters.
    pub element: String,
    pub url: Url,
}

/// An error of the operating system: its number, and the C library's sentence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemError {
    pub number: i32,
    pub text: String,
}

/// What a command line comes to.
#[derive(Debug)]
pub enum Reading {
    /// Nothing is run: help, a version, a native command, or something wrong.
    End(Ending),
    Run(Box<Job>),
    /// No load: connections that are kept open.
    Idle(Idle),
}

/// A plan to be run, and the face that watches and tells.
#[derive(Debug)]
pub struct Job {
    pub plan: Plan,
    pub needs: Needs,
    pub extras: Extras,
    /// Who makes the requests, in place of the plan's target.
    pub script: Option<Box<ScriptJob>>,
    /// Who tells the plan's users what to ask for, call by call; they may go anywhere.
    pub guides: Option<Box<dyn Guides>>,
    /// A file that is written while the run goes on.
    pub log: Option<RequestLog>,
    pub face: Box<dyn Face>,
}

/// A file to whose end [`Said::log`] is written. When it cannot be opened, `complaint` goes to
/// standard error, the tool ends with `code`, and nothing is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLog {
    pub path: String,
    pub complaint: String,
    pub code: u8,
    /// What is in the file is replaced.
    pub fresh: bool,
}

/// A script in Lua that makes the requests, and what it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptJob {
    /// Its name and text, or why it could not be read; none: its libraries alone.
    pub text: Option<(String, Result<Vec<u8>, String>)>,
    pub scheme: String,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: Option<String>,
    /// Path and query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub args: Vec<String>,
    /// `None`: GET.
    pub method: Option<String>,
    pub body: Option<Vec<u8>>,
    /// What it prints goes to standard error.
    pub aside: bool,
}

/// What one worker counted in one interval of [`plan::MeasurePlan::interval`].
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    pub worker: u32,
    pub start: Nanos,
    pub end: Nanos,
    pub snapshot: &'a Snapshot,
}

/// What a face wants to hear of the run, beside its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Face::calls`] gets every call; failed ones without delay.
    pub calls: bool,
    /// With so many calls of each worker comes the beginning of their response, head first.
    pub responses: u64,
    /// What is accepted beyond HTTP/1.x. Where responses without a head are accepted, the beginning of
    /// such a response comes with its call, and that of one cut short.
    pub lenient: Leniency,
    /// [`Face::ends`] gets every connection and every session that has ended.
    pub ends: bool,
}

/// Most of the tools take any version of HTTP in a status line.
pub(crate) const ANY_VERSION: Leniency =
    Leniency { headless: false, any_version: true, any_length: false };

/// Text on its way out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub out: String,
    pub err: String,
    /// For the file of [`Job::log`].
    pub log: String,
    pub wish: Wish,
}

/// What is to become of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    #[default]
    GoOn,
    /// Nothing more falls due; what is under way is followed to its outcome.
    Stop,
    /// What is under way is given up.
    Abandon,
}

/// How a tool ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Text for standard output, then for standard error.
    pub out: String,
    pub err: String,
    /// The other way round, which shows where both streams go to one terminal.
    pub err_first: bool,
    /// Files to be written, in this order, after the text.
    pub files: Vec<OutFile>,
    /// What we have to say to it: one sentence each, shown on a terminal or with `--notes`.
    pub notes: Vec<String>,
    pub code: u8,
}

/// A result file. When it cannot be written, `complaint: reason` goes to standard error, and the
/// tool ends with `code`; with code 0 it goes on to the next file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFile {
    pub path: String,
    pub text: String,
    /// Added to what is there, rather than put in its place.
    pub append: bool,
    pub complaint: String,
    pub code: u8,
}

/// Why a run could not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartTrouble {
    /// A name has no address; the resolver's own sentence.
    Name {
        host: String,
        text: String,
    },
    /// No socket can be bound to a local address.
    Bind(SystemError),
    /// More descriptors are needed than there are.
    Descriptors,
    /// Ciphers, certificates or keys cannot be used.
    Tls(String),
    /// `HOST:SERVICE REASON`: what a script looked up has no address; takes no connection.
    Lookup(String),
    Connect(String),
    /// A script went wrong: its name, the line, what was wrong. Also while the run goes on.
    Script(String),
    /// What a script wants to send is no request: `REASON at LINE:COLUMN`.
    Request(String),
    /// Anything else, as the native command says it.
    Other(String),
}

/// What a report does not hold and a tool prints.
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
    /// The run is about to begin: what its instants are in the calendar.
    fn dated(&mut self, _date: &Date) {}

    /// The plan left the protocol to the server ([`plan::HttpVersion::Auto`]), and it is settled:
    /// what the server chose by ALPN, if anything. `plan` speaks it. The plan that fits it and what the face
    /// wants to hear then; `None`: they are as before.
    fn negotiated(&mut self, _chosen: Option<&str>, _plan: &Plan) -> Option<(Plan, Needs)> {
        None
    }

    /// The run begins: names are resolved, nothing has been sent.
    fn begin(&mut self) -> Said {
        Said::default()
    }

    /// Calls that have ended; those of one worker in the order of their ends.
    fn calls(&mut self, _calls: &[CallRecord]) -> Said {
        Said::default()
    }

    /// Connections and sessions that have ended.
    fn ends(&mut self, _ends: &Ends) -> Said {
        Said::default()
    }

    /// A row of the series is complete ([`plan::MeasurePlan::interval`]).
    fn row(&mut self, _row: &Second, _total: &Snapshot) -> Said {
        Said::default()
    }

    /// One worker's interval, before it is merged into a row.
    fn interval(&mut self, _interval: &Interval<'_>) -> Said {
        Said::default()
    }

    /// What a script is told when the report is out.
    fn figures(&self) -> Option<&crate::wrk::WrkFigures> {
        None
    }

    /// So many of the connections have no descriptor. Whether the tool runs with the others, rather
    /// than say [`StartTrouble::Descriptors`].
    fn go_without(&mut self, _connections: u64) -> bool {
        false
    }

    /// The run could not begin; [`Face::begin`] has not been called unless a script went wrong later.
    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending;

    /// The run is over: what is still to be printed.
    fn report(&mut self, report: &RunRecord, facts: &Facts) -> Ending;
}

/// One sentence when it was the client, or its machine, that was measured; for [`Ending::notes`].
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
    /// Text on standard error and an exit code.
    pub fn error(text: impl Into<String>, code: u8) -> Ending {
        Ending { err: text.into(), code, ..Ending::default() }
    }

    /// Text on standard output, and all is well.
    pub fn text(text: impl Into<String>) -> Ending {
        Ending { out: text.into(), ..Ending::default() }
    }
}
