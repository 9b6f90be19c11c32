//! The options of `workload`.

use super::options::{SHARED, SharedOptions, SharedRow, SharedRows};
use super::{UsageError, parse};
use clap::{Args, Subcommand, ValueEnum};
use import::access_log::HashedPaths;
use plan::representative::TOP_PER_FILE;
use std::path::PathBuf;
use units::{Nanos, Seed};
use url::Url;
use workload::fileset::fit::FitModel;
use workload::fileset::{Matching, SequenceOptions, Spec};

/// Make a workload: the files of a server, and the requests for them
#[derive(Args, Clone, Debug)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    pub command: WorkloadCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub enum WorkloadCommand {
    Crawl(Box<CrawlArgs>),
    Files(FilesArgs),
    Sequence(SequenceArgs),
    Import(ImportArgs),
    Describe(DescribeArgs),
    Anonymise(AnonymiseArgs),
    Verify(VerifyArgs),
    Cgi(CgiArgs),
}

/// List the URLs that a site's pages lead to
///
/// Starts at a page and follows its links, within the same scheme, host and port only. Every URL
/// whose response has a status of 200 to 299 is a line of the list; broken links are reported on
/// standard error. Only GET is sent, and no forms.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone workload crawl http://localhost:8080/ -o list.txt
  loadstone run --urls list.txt --random -c 20
  loadstone workload crawl http://localhost:8080/ | loadstone torture.pl --urls - -t 100")]
pub struct CrawlArgs {
    /// The page to start at
    #[arg(value_name = "URL", value_parser = site)]
    pub url: Url,
    /// Write the list to this file; - is standard output
    #[arg(short = 'o', long, value_name = "FILE|-", value_parser = parse::sink, default_value = "-")]
    pub output: super::Sink,
    /// Maximum number of URLs requested
    #[arg(long, value_parser = parse::count::<u64>, value_name = "N", default_value = "1000")]
    pub calls_max: u64,
    /// Maximum number of links between the first page and another
    #[arg(long, value_name = "N", default_value = "10")]
    pub depth_max: u32,
    /// Number of requests in flight
    #[arg(long, value_parser = parse_together, value_name = "N", default_value = "4")]
    pub together: usize,
    /// Leave out images, scripts, style sheets and the like
    #[arg(long)]
    pub pages_only: bool,
    /// Time limit of each response
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "30s")]
    pub timeout: Nanos,
    #[command(flatten)]
    pub rows: SharedOptions<CrawlRows>,
    /// Do not report broken links and totals
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

#[derive(Debug)]
pub enum CrawlRows {}

impl SharedRows for CrawlRows {
    const ROWS: &'static [SharedRow] = &[
        SharedRow { name: "header", ..SHARED },
        SharedRow { name: "insecure", ..SHARED },
        // accepting any certificate is more permissive than this file
        SharedRow { name: "ca", without: &["insecure"], ..SHARED },
    ];
}

/// Maximum number of concurrent connections of a crawl.
const TOGETHER_MAX: usize = 100;

fn parse_together(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=TOGETHER_MAX).contains(number));
    number.ok_or_else(|| format!("give a number from 1 to {TOGETHER_MAX}"))
}

fn site(text: &str) -> Result<Url, String> {
    parse::bare_url(text, "give it as -H 'Authorization: …'")
}

/// Parses the server of an import. Returns an error with a hint for a second recording.
fn import_site(text: &str) -> Result<Url, String> {
    match text.to_ascii_lowercase().ends_with(".har") {
        true => {
            Err("this is a file, not the URL of a server; give a second recording with --second"
                .to_owned())
        }
        false => site(text),
    }
}

impl CrawlArgs {
    /// # Errors
    /// Fails for a time limit of 0; a list file that cannot be written.
    pub fn check(&self) -> Result<(), UsageError> {
        if self.timeout.is_zero() {
            return Err(UsageError::new("--timeout 0s allows no response; give more"));
        }
        Ok(())
    }

    /// Returns the file for the list; `None`: standard output.
    pub fn file(&self) -> Option<&PathBuf> {
        match &self.output {
            super::Sink::File(path) => Some(path),
            super::Sink::Stdout => None,
        }
    }
}

/// Make the files of a server
///
/// Sizes are those of a published model; contents are letters derived from the seed: the same
/// name, size and seed give the same bytes everywhere, and `loadstone site --files` serves them
/// without a disk.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
File sets:
  surge-like[:files=2000]          SURGE 1.2: pages, what is embedded in them, and single files
  specweb99-like[:connections=100] SPECweb99: 36 files in each directory; or :directories=N
  webstone-like                    WebStone 2: five files from 500 bytes to 5 MB
  webbench-like[:files=6010]       WebBench: eight classes of files, 60 MB

Examples:
  loadstone workload files surge-like --out /srv/www
  loadstone workload files specweb99-like:connections=500 --out files --seed 7")]
pub struct FilesArgs {
    /// The file set
    #[arg(value_name = "SET", value_parser = spec)]
    pub spec: Spec,
    /// The folder to write to; it is created, or must be empty
    #[arg(short = 'o', long, value_name = "DIR")]
    pub out: PathBuf,
    /// Seed of sizes and contents
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Do not report what was written
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// Make the sequence of requests for a file set
///
/// The name, size and seed are those of the file set. A list of URLs is for `run --urls`, where
/// --once ends the run with the list; sessions are for `httperf --wsesslog`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Presets:
  webmark    2,000 files of SURGE, 172,020 requests, no OFF times
  surge      2,000 files of SURGE, OFF times, sessions of 100 users

Examples:
  loadstone workload sequence webmark -o list.txt
  loadstone run http://localhost:8080/ --urls list.txt --once --rate 500/s
  loadstone workload sequence surge http://localhost:8080/ --format plan -o surge.toml
  loadstone workload sequence specweb99-like --requests 5000 --format sessions -o sessions.txt")]
pub struct SequenceArgs {
    /// A preset, or a file set as `workload files` takes it
    #[arg(value_name = "SET", value_parser = preset)]
    pub preset: Preset,
    /// URL to put before each path; without it, run needs a URL in addition to --urls
    #[arg(value_name = "BASE-URL", value_parser = site)]
    pub base: Option<Url>,
    /// Write the sequence to this file; - is standard output
    #[arg(short = 'o', long, value_name = "FILE|-", value_parser = parse::sink, default_value = "-")]
    pub output: super::Sink,
    /// One line per URL, httperf's session file, or a plan for run, whose users make a session each
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Total number of requests [default: all that SURGE's counts give; 100,000 for the others]
    #[arg(long, value_parser = parse::count::<u64>, value_name = "N")]
    pub requests: Option<u64>,
    /// SURGE: requests for the most popular file [default: ten times the number of files]
    #[arg(long, value_parser = parse::count::<u64>, value_name = "N")]
    pub top_count: Option<u64>,
    /// SURGE: target of the popularity match: the sizes in each group, or Pareto's law over all
    #[arg(long, value_name = "LAW")]
    pub matching: Option<MatchingArg>,
    /// SURGE: pause of a user between two pages; for sessions
    #[arg(long)]
    pub off_times: bool,
    /// SURGE: number of users that the steps are divided among, for sessions [default: 100]
    #[arg(long, value_parser = parse::count::<usize>, value_name = "N")]
    pub users: Option<usize>,
    /// The seed of the file set
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Do not report what was written
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// Output format of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Urls,
    Sessions,
    Plan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MatchingArg {
    Groups,
    Requests,
}

/// A file set, and the parameters in a preset's name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    pub spec: Spec,
    requests: Option<u64>,
    off_times: bool,
    format: Format,
}

/// WebMark's run, with its files and URIs.
const WEBMARK: (Spec, u64) = (Spec::Surge { files: 2_000 }, 172_020);
const USERS: usize = 100;

fn spec(text: &str) -> Result<Spec, String> {
    Spec::parse(text).map_err(|error| error.0)
}

fn preset(text: &str) -> Result<Preset, String> {
    let plain = |spec| Preset { spec, requests: None, off_times: false, format: Format::Urls };
    match text {
        "webmark" => Ok(Preset { requests: Some(WEBMARK.1), ..plain(WEBMARK.0) }),
        "surge" => Ok(Preset { off_times: true, format: Format::Sessions, ..plain(WEBMARK.0) }),
        _ => spec(text).map(plain).map_err(|why| format!("{why}; or one of webmark and surge")),
    }
}

impl SequenceArgs {
    pub fn format(&self) -> Format {
        self.format.unwrap_or(self.preset.format)
    }

    pub fn users(&self) -> usize {
        self.users.unwrap_or(USERS)
    }

    /// Returns the requests to generate.
    ///
    /// # Errors
    /// Fails for an option without effect on the file set or the format.
    pub fn options(&self) -> Result<SequenceOptions, UsageError> {
        let refuse = |text: &str| Err(UsageError::new(text.to_owned()));
        if self.format() == Format::Plan && self.base.is_none() {
            return refuse("a plan needs a server: give BASE-URL after the name");
        }
        let off_times =
            self.off_times || (self.preset.off_times && self.format != Some(Format::Urls));
        let Spec::Surge { files } = self.preset.spec else {
            let surge_only = [
                ("--top-count", self.top_count.is_some()),
                ("--matching", self.matching.is_some()),
                ("--off-times", self.off_times),
                ("--users", self.users.is_some()),
            ];
            if let Some((name, _)) = surge_only.iter().find(|(_, given)| *given) {
                return refuse(&format!("{name} is for surge-like only; omit it"));
            }
            let matching = Matching::Groups;
            return Ok(SequenceOptions {
                top: 1,
                matching,
                off_times: false,
                requests: self.requests,
            });
        };
        if self.format() == Format::Urls && (self.off_times || self.users.is_some()) {
            let name = if self.off_times { "--off-times" } else { "--users" };
            let text = format!(
                "{name} is for sessions, which a list of URLs does not have; add --format sessions \
                 or plan"
            );
            return refuse(&text);
        }
        let matching = match self.matching {
            Some(MatchingArg::Requests) => Matching::Requests,
            _ => Matching::Groups,
        };
        Ok(SequenceOptions {
            top: self.top_count.unwrap_or(files * TOP_PER_FILE),
            matching,
            off_times,
            requests: self.requests.or(self.preset.requests),
        })
    }
}

/// When the scripts of a Postman collection are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ScriptsWhen {
    Always,
    Never,
}

/// Make a plan from files of other tools: JMeter, Postman, HAR, curl, OpenAPI, logs and more
///
/// Reads Postman collections, JMeter test plans (JMX), Artillery scripts, .http files, Bruno, Insomnia,
/// vegeta targets, siege URLs, command lines of ab, siege, hey, vegeta, oha and wrk, HAR files, curl
/// commands, OpenAPI descriptions and access logs. The format is recognized by the content. What is not
/// imported is listed in the plan and again in the report.
///
/// An access log has the common or combined format, or JSON lines as Caddy, nginx and Apache write
/// them; its requests are repeated, at their times or faster. A HAR file is a visit, which each user
/// repeats with its pauses. From OpenAPI, each operation whose parameters have examples is requested.
/// What cannot be converted is counted.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone workload import access.log http://localhost:8080/ -o replay.toml
  loadstone run replay.toml
  zcat access.log.*.gz | loadstone workload import - http://localhost:8080/ --by visits --speed 10
  loadstone workload import shop.har http://localhost:8080/ -o visit.toml
  loadstone workload import requests.sh -o requests.toml
  loadstone workload import AzureLLMInferenceTrace_conv.csv http://localhost:8000/v1/chat/completions -o model.toml
  loadstone workload import shop.postman_collection.json --environment test.json -o shop.toml
  loadstone workload import shop.postman_collection.json http://localhost:8080/ --dry-run
  loadstone workload import shop.postman_collection.json --scripts --dry-run
  loadstone workload import plan.jmx -J users=50 -o plan.toml
  loadstone workload import 'bruno/my collection' -o bruno.toml")]
pub struct ImportArgs {
    /// The file; - is standard input; of Bruno also a folder
    #[arg(value_name = "FILE|-")]
    pub log: String,
    /// The server to send to instead of the recorded one; required for a log, which has none
    #[arg(value_name = "BASE-URL", value_parser = import_site)]
    pub base: Option<Url>,
    /// Format of the file [default: recognized by its first bytes]
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<ImportFrom>,
    /// Write the plan to this file; - is standard output
    #[arg(short = 'o', long, value_name = "FILE|-", value_parser = parse::sink, default_value = "-")]
    pub output: super::Sink,
    /// Send each request at its own time, whatever the server does; or start each client's visit at
    /// the time of its first request, and send each further request after the response to the one
    /// before and the log's pause [default: requests for a log, visits for a HAR file]
    #[arg(long, value_name = "WHAT")]
    pub by: Option<By>,
    /// Replay this many times faster than it was recorded [default: 1]
    #[arg(long, value_name = "TIMES", value_parser = speed)]
    speed: Option<f64>,
    /// Methods to repeat [default: GET and HEAD for a log, which has no bodies, and for OpenAPI;
    /// otherwise all]
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',')]
    pub methods: Option<Vec<String>>,
    /// Log: a client that is silent for longer than this begins a new visit [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pause: Option<Nanos>,
    /// HAR: hosts to send to besides the server of the first page
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// HAR: keep cookies and Authorization as they were recorded
    #[arg(long)]
    pub logins: bool,
    /// HAR: a second recording of the same visit; values that differ become captures or generated values
    #[arg(long, value_name = "FILE")]
    pub second: Option<String>,
    /// Token traces: the model that requests name [default: default]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Postman: an environment file with values of variables
    #[arg(long, value_name = "FILE")]
    pub environment: Option<String>,
    /// Postman: run the collection's scripts (`pm.test`, `pm.expect`, variables) in the JavaScript
    /// engine of k6 scripts instead of converting them by their form; by default if a line of them
    /// has no equivalent in a plan and all of them can be run
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    pub scripts: Option<ScriptsWhen>,
    /// Only the folder, block, scenario or request of this name
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Leave out requests with these methods: DELETE,PUT
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',')]
    pub skip_method: Vec<String>,
    /// JMeter: set a property that the plan reads with __P; may be given several times
    #[arg(short = 'J', long = "property", value_name = "NAME=VALUE", value_parser = property)]
    pub properties: Vec<(String, String)>,
    /// Run the plan once with one user and show which steps fail
    #[arg(long)]
    pub dry_run: bool,
    /// Do not report what was read
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

fn property(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| format!("{} has no value; write it as name=value", units::quoted(text)))
}

/// Format of a file of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportFrom {
    Log,
    Har,
    Curl,
    Openapi,
    /// A CSV file with the times and token counts of requests to a language model
    Tokens,
    Postman,
    Jmeter,
    Artillery,
    /// .http and .rest files
    Http,
    Bruno,
    Insomnia,
    Vegeta,
    Siege,
    /// A command line of ab, siege, hey, vegeta, oha, wrk or bombardier
    Command,
}

impl ImportFrom {
    /// Returns the format, if `import` converts it to a plan.
    pub fn foreign(self) -> Option<import::Format> {
        use import::Format;
        Some(match self {
            ImportFrom::Log
            | ImportFrom::Har
            | ImportFrom::Curl
            | ImportFrom::Openapi
            | ImportFrom::Tokens => return None,
            ImportFrom::Postman => Format::Postman,
            ImportFrom::Jmeter => Format::Jmeter,
            ImportFrom::Artillery => Format::Artillery,
            ImportFrom::Http => Format::HttpFile,
            ImportFrom::Bruno => Format::Bruno,
            ImportFrom::Insomnia => Format::Insomnia,
            ImportFrom::Vegeta => Format::Vegeta,
            ImportFrom::Siege => Format::Siege,
            ImportFrom::Command => Format::CommandLine,
        })
    }

    pub fn new(format: import::Format) -> ImportFrom {
        use import::Format;
        match format {
            Format::Postman => ImportFrom::Postman,
            Format::Jmeter => ImportFrom::Jmeter,
            Format::Artillery => ImportFrom::Artillery,
            Format::HttpFile => ImportFrom::Http,
            Format::Bruno => ImportFrom::Bruno,
            Format::Insomnia => ImportFrom::Insomnia,
            Format::Vegeta => ImportFrom::Vegeta,
            Format::Siege => ImportFrom::Siege,
            Format::CommandLine => ImportFrom::Command,
        }
    }
}

/// Methods with sufficient data in a log or a description.
const SAFE: [&str; 2] = ["GET", "HEAD"];
/// A client silent for longer starts a new visit.
const PAUSE: Nanos = Nanos::from_secs(30 * 60);

impl ImportArgs {
    pub fn speed(&self) -> f64 {
        self.speed.unwrap_or(1.0)
    }

    pub fn pause(&self) -> Nanos {
        self.pause.unwrap_or(PAUSE)
    }

    /// Fills in defaults for a file of this format.
    ///
    /// # Errors
    /// Fails for an option without effect on such a file, or a missing one.
    pub fn for_format(mut self, from: ImportFrom) -> Result<ImportArgs, UsageError> {
        for (name, given, formats, what) in [
            ("--hosts", !self.hosts.is_empty(), &[ImportFrom::Har][..], "a HAR file"),
            ("--logins", self.logins, &[ImportFrom::Har], "a HAR file"),
            ("--pause", self.pause.is_some(), &[ImportFrom::Log], "an access log"),
            ("--by", self.by.is_some(), &[ImportFrom::Log, ImportFrom::Har], "a file with times"),
            (
                "--speed",
                self.speed.is_some(),
                &[ImportFrom::Log, ImportFrom::Har, ImportFrom::Tokens],
                "a file with times",
            ),
            (
                "--methods",
                self.methods.is_some() && from == ImportFrom::Tokens,
                &[],
                "a file with methods",
            ),
            ("--model", self.model.is_some(), &[ImportFrom::Tokens], "a trace of tokens"),
            ("--second", self.second.is_some(), &[ImportFrom::Har], "a HAR file"),
            (
                "--environment",
                self.environment.is_some(),
                &[ImportFrom::Postman],
                "a Postman collection",
            ),
            ("--scripts", self.scripts.is_some(), &[ImportFrom::Postman], "a Postman collection"),
            ("-J", !self.properties.is_empty(), &[ImportFrom::Jmeter], "a JMeter test plan"),
        ] {
            if given && !formats.contains(&from) {
                let text = format!("{name} is for {what}, which this is not; leave it out");
                return Err(UsageError::new(text));
            }
        }
        let other = from.foreign().is_none();
        if self.methods.is_some() && !other {
            let text = "--methods is for recordings; here --skip-method excludes requests";
            return Err(UsageError::new(text));
        }
        if (self.only.is_some() || !self.skip_method.is_empty()) && other {
            let text = "--only and --skip-method are for files with named requests; --methods selects here";
            return Err(UsageError::new(text));
        }
        let selects = self.only.is_some() || !self.skip_method.is_empty();
        if self.scripts == Some(ScriptsWhen::Always) && selects {
            let text = "--only and --skip-method select steps of a plan; with --scripts the \
                        collection's own scripts decide what is requested";
            return Err(UsageError::new(text));
        }
        let own = self.by.is_some() || self.speed.is_some() || self.methods.is_some();
        if self.second.is_some() && (own || self.logins || !self.hosts.is_empty()) {
            let text = "--second makes a journey of two recordings: leave out --by, --speed, --methods, \
                        --hosts and --logins";
            return Err(UsageError::new(text));
        }
        if from == ImportFrom::Log && self.base.is_none() {
            let text = "an access log does not name its server; add its URL: \
                loadstone workload import FILE http://localhost:8080/";
            return Err(UsageError::new(text));
        }
        if from == ImportFrom::Tokens && self.base.is_none() {
            let text = "a token trace does not name its server; add its URL: loadstone workload \
                import FILE http://localhost:8000/v1/chat/completions";
            return Err(UsageError::new(text));
        }
        if matches!(from, ImportFrom::Log | ImportFrom::Openapi) && self.methods.is_none() {
            self.methods = Some(SAFE.map(str::to_owned).to_vec());
        }
        Ok(self)
    }
}

/// Arrivals at the times of the log: each request, or each visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Requests,
    Visits,
}

/// Describe the load in an access log
///
/// How requests arrive and how bursty they are, how long visits are and which load resembles them, how
/// popularity is distributed, statuses and sizes.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone workload describe access.log")]
pub struct DescribeArgs {
    /// The access log; - is standard input
    #[arg(value_name = "LOG|-")]
    pub log: String,
    /// A client that is silent for longer than this begins a new visit
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "30m")]
    pub pause: Nanos,
}

/// Remove personal data from an access log
///
/// Clients, values of queries and ids in paths become names made by a keyed hash, the same for the same
/// value: sessions, times and popularity stay as they were. User names, referers and user agents are
/// left out, and so is every line that is not a request. The result is a log that `import`, `describe` and
/// `verify` read.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone workload anonymise access.log -o shared.log
  zcat access.log.*.gz | loadstone workload anonymise - | loadstone workload describe -
  loadstone workload anonymise access.log --key-file key --paths all -o shared.log")]
pub struct AnonymiseArgs {
    /// The access log; - is standard input
    #[arg(value_name = "LOG|-")]
    pub log: String,
    /// Write the new log to this file; - is standard output
    #[arg(short = 'o', long, value_name = "FILE|-", value_parser = parse::sink, default_value = "-")]
    pub output: super::Sink,
    /// File with the key of the hash, 16 bytes or more, so that several logs get the same names
    /// [default: a random key, which is not kept]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Segments of paths to hash: those that look like ids, or all
    #[arg(long, value_name = "WHICH", value_enum, default_value = "ids")]
    paths: PathsArg,
    /// Do not report what was kept
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PathsArg {
    Ids,
    All,
}

impl AnonymiseArgs {
    pub fn hashed_paths(&self) -> HashedPaths {
        match self.paths {
            PathsArg::Ids => HashedPaths::Ids,
            PathsArg::All => HashedPaths::All,
        }
    }
}

/// Compare files, a sequence or an access log with a model
///
/// A folder is compared with the model's files; a list of URLs, sessions as `workload sequence` writes
/// them, or a server's log with its requests: sizes, popularity, temporal locality, OFF times and
/// arrivals, as far as each is known. The sequence that the model itself makes with the same size and
/// seed is shown next to it. The exit code is 1 if something does not fit, or nothing can be
/// compared.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone workload verify /srv/www --model surge-like
  loadstone workload verify list.txt --model surge-like
  loadstone workload verify access.log --model specweb99-like:connections=500 --html fit.html")]
pub struct VerifyArgs {
    /// A folder, a sequence or an access log; - is standard input
    #[arg(value_name = "FOLDER|FILE|-")]
    pub what: String,
    /// The model, as `workload files` takes it
    #[arg(long, value_name = "SET", value_parser = spec)]
    pub model: Spec,
    /// SURGE: requests for the most popular file [default: ten times the number of files]
    #[arg(long, value_parser = parse::count::<u64>, value_name = "N")]
    pub top_count: Option<u64>,
    /// SURGE: target of the popularity match [default: groups]
    #[arg(long, value_name = "LAW")]
    pub matching: Option<MatchingArg>,
    /// The seed of the model's own files and requests
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Write the result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<super::Sink>,
    /// Write the result as an HTML page, with its plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print only misfits and the total
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

impl VerifyArgs {
    pub fn fit_model(&self) -> FitModel {
        let files = if let Spec::Surge { files } = self.model { files } else { 1 };
        FitModel {
            spec: self.model,
            seed: Seed(self.seed),
            matching: match self.matching {
                Some(MatchingArg::Requests) => Matching::Requests,
                _ => Matching::Groups,
            },
            top: self.top_count.unwrap_or(files * TOP_PER_FILE),
        }
    }
}

/// Maximum factor of a replay.
const SPEED_MAX: f64 = 1e6;

fn speed(text: &str) -> Result<f64, String> {
    let times = text.parse::<f64>().ok().filter(|times| *times > 0.0 && *times <= SPEED_MAX);
    times.ok_or_else(|| format!("give a number above 0 and up to {SPEED_MAX}"))
}

/// Answer one request for SPECweb99's dynamic page, as a CGI program of a web server
///
/// The server passes the request in the environment (RFC 3875); the page goes to standard output.
/// `loadstone site --files specweb99-like` calls it for /specweb99-cgi; other servers can be
/// configured to.
#[derive(Args, Clone, Debug)]
pub struct CgiArgs {
    /// The file set, specweb99-like[:connections=100]
    #[arg(value_name = "SET", value_parser = spec)]
    spec: Spec,
    /// The seed of the file set
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}

impl CgiArgs {
    /// Returns the number of directories of the file set.
    ///
    /// # Errors
    /// Fails for a set without dynamic pages.
    pub fn directories(&self) -> Result<u64, UsageError> {
        match self.spec {
            Spec::Specweb99 { directories } => Ok(directories),
            other => Err(UsageError::new(format!(
                "{other} has no dynamic pages: give specweb99-like, with its size"
            ))),
        }
    }
}
