//! The options of `torture`.

use super::options::{Insecure, SHARED, SharedOptions, SharedRow, SharedRows};
use super::outputs::check_distinct_files;
use super::store::StoreArgs;
use super::torture_again::{ChainArgs, EmitArgs, JudgeArgs, ReplayArgs, ShrinkArgs};
use super::torture_overload::TortureOverload;
use super::torture_safety::{AuditCommand, ProveArgs, TortureSafety};
use super::torture_server::TortureServer;
use super::torture_typed::TypedOptions;
use super::{Sink, UsageError, parse};
use clap::{Args, Subcommand};
use dialogue::http2::Protocol;
use plan::{Arrivals, FileSource, Gaps, HttpVersion, Load, Plan};
use std::path::PathBuf;
use torture::judge::Severity;
use units::{Nanos, ParseError, Rate};
use url::Url;

/// Test how a server handles hostile and broken input
///
/// Each case cites its source, states which responses conform, and shows the bytes, so that anyone
/// can send them again. Only test servers that you own or may test: loopback is always allowed, a
/// private address needs --own for stress cases, and a public server must publish a proof of
/// permission.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "loadstone torture [OPTIONS] URL\n       loadstone torture list|explain ID|diff A B\n       loadstone torture prove URL|audit verify|audit show\n       loadstone torture replay|judge|shrink|emit DIR\n       loadstone torture chain URL --origin ADDR:PORT|--back URL",
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  loadstone torture http://localhost:8080/
  loadstone torture --only S-30,S-34 --post /upload http://localhost:8080/
  loadstone torture explain S-07

Exit codes: 0 no finding of the severity of --fail-on (high) or above; 1 such a
finding that is not waived; 2 usage, or refused; 3 nothing was tested; 4 the
server was lost; 5 a result was not written; 130 interrupted."
)]
pub struct TortureArgs {
    // parsing the others removes their values
    #[command(flatten)]
    pub typed: TypedOptions,
    #[command(subcommand)]
    pub ask: Option<TortureAsk>,
    /// The page requested between cases as a health check; it must respond, always with the same
    /// body
    #[arg(value_name = "URL", value_parser = target)]
    pub url: Option<Url>,
    #[command(flatten)]
    pub what: TortureWhat,
    #[command(flatten)]
    pub safety: TortureSafety,
    #[command(flatten)]
    pub overload: TortureOverload,
    #[command(flatten)]
    pub beside: TortureBeside,
    #[command(flatten)]
    pub server: TortureServer,
    #[command(flatten)]
    pub outputs: TortureOutputs,
}

/// Options that select cases and how they run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is tested")]
pub struct TortureWhat {
    /// Run only these cases or groups: S-07,S-30 or S
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub only: Vec<String>,
    #[command(flatten)]
    version: SharedOptions<TortureVersion>,
    /// Add your own cases: a file, or the .toml files of a folder; with --only X, run only these
    #[arg(long, value_name = "FILE|DIR")]
    pub cases: Vec<PathBuf>,
    /// A path that accepts request bodies; without it, cases that need one are skipped
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub post: Option<String>,
    /// Path of a WebSocket for group U [default: the tested page or /ws, if it speaks WebSocket]
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub ws_path: Option<String>,
    /// More pages of the same server for random data, one per line; - is standard input, for
    /// instance from loadstone workload crawl URL
    #[arg(long, value_name = "FILE|-")]
    pub pages: Option<String>,
    /// A page of 16 MiB or more, to test the server with a response that is not read
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub big: Option<String>,
    /// A file of this machine that the server must not serve, to see whether a path can leave its
    /// tree [default: /etc/hostname if --own names the server]
    #[arg(long, value_name = "FILE")]
    pub outside: Option<PathBuf>,
    /// Number of connections the server can serve at once, to compute the cost of denial
    #[arg(long, value_name = "N", value_parser = parse::count::<u64>)]
    pub slots: Option<u64>,
    /// Run a sample of the random data and syntax cases: 20 to 30 seconds, a minute at most
    #[arg(long, conflicts_with = "press")]
    pub quick: bool,
    /// Also run the stress cases: many slow connections, overload
    #[arg(long)]
    pub press: bool,
    /// Do not shrink failing random data, and do not search for the cause of a server failure
    #[arg(long)]
    pub no_shrink: bool,
    /// Judge the impact on well-behaved clients even if the idle server is noisy
    #[arg(long)]
    pub accept_noisy: bool,
    /// Run only this: random data grows and its gaps shrink until a well-behaved client fails or a
    /// bound is reached
    #[arg(long, conflicts_with_all = ["only", "quick", "press"])]
    pub escalate: bool,
    #[command(flatten)]
    seed: SharedOptions<TortureSeed>,
    /// Number of parallel executions of random data, 1 to 64: same bytes, same verdicts, less time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub workers: u64,
    /// Number of mutated requests that F-15 sends (1,000), within --fuzz-time (20s)
    #[arg(long, value_name = "N", value_parser = parse::count::<u64>)]
    pub fuzz_number: Option<u64>,
    /// Longest duration of F-15; without --fuzz-number, as many requests as fit into it
    #[arg(long, value_name = "SPAN", value_parser = units::parse_duration)]
    pub fuzz_time: Option<Nanos>,
    /// Time for all cases (60s with --quick, 15m otherwise, no limit with --press, --escalate or
    /// --only); cases that it does not reach are listed as not tested
    #[arg(long, value_name = "SPAN", value_parser = units::parse_duration)]
    pub budget: Option<Nanos>,
    /// Also send raw TCP segments (group P), through a network device that exists during the run
    /// (needs root); --only P does it too
    #[arg(long)]
    pub segments: bool,
    /// How long slow connections are held to find the server's timeout (175s)
    #[arg(long, value_name = "SPAN", value_parser = units::parse_duration)]
    pub wait_max: Option<Nanos>,
    /// Print what would be sent and where, without sending anything
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub(super) insecure: SharedOptions<Insecure>,
    #[command(flatten)]
    path: SharedOptions<TorturePath>,
}

#[derive(Debug)]
enum TortureVersion {}

impl SharedRows for TortureVersion {
    const ROWS: &'static [SharedRow] = &[SharedRow {
        name: "http",
        help: Some(
            "HTTP version: 1.1, 2 (ALPN over TLS, prior knowledge over cleartext) or 3 (QUIC) \
            [default: 2 if --only names only HTTP/2 cases (group H), 3 if only HTTP/3 cases \
            (group Q), 1.1 otherwise]",
        ),
        narrower: Some(protocol),
        ..SHARED
    }];
}

#[derive(Debug)]
enum TortureSeed {}

impl SharedRows for TortureSeed {
    const ROWS: &'static [SharedRow] = &[SharedRow { name: "seed", default: Some("1"), ..SHARED }];
}

#[derive(Debug)]
enum TorturePath {}

impl SharedRows for TorturePath {
    const ROWS: &'static [SharedRow] = &[SharedRow {
        name: "path",
        help: Some(
            "Send the cases and the background load through an emulated network path to a server \
            on this host: 3g, 'rtt=200ms, loss=2%' (needs root)",
        ),
        ..SHARED
    }];
}

/// Returns the given HTTP version, or `None`.
pub(super) fn version_of<R: SharedRows>(given: &SharedOptions<R>) -> Option<Protocol> {
    given.has("http").then(|| match given.value(|plan| plan.request.version) {
        HttpVersion::Http2 => Protocol::Http2,
        HttpVersion::Http3 => Protocol::Http3,
        HttpVersion::Http10 | HttpVersion::Http11 | HttpVersion::Auto => Protocol::Http1,
    })
}

impl TortureWhat {
    /// Overrides the given HTTP version.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.version.put("http", protocol.version());
    }

    pub fn seed(&self) -> u64 {
        self.seed.value(|plan| plan.seed)
    }

    pub fn is_insecure(&self) -> bool {
        self.insecure.is_insecure()
    }

    /// Returns the emulated network path for all traffic.
    pub fn path(&self) -> Option<wan::PathSpec> {
        self.path.value(|plan| plan.connection.path)
    }

    /// Returns the HTTP version of cases, probes and plain requests.
    pub fn protocol(&self) -> Protocol {
        let speak = |letter: &str| {
            let of =
                |name: &String| name.get(..1).is_some_and(|one| one.eq_ignore_ascii_case(letter));
            !self.only.is_empty() && self.only.iter().all(of)
        };
        version_of(&self.version).unwrap_or(match (speak("H"), speak("Q")) {
            (true, _) => Protocol::Http2,
            (_, true) => Protocol::Http3,
            _ => Protocol::Http1,
        })
    }
}

/// Checks that the catalog has cases for the version.
pub(super) fn protocol(text: &str) -> Result<(), ParseError> {
    match text {
        "1.1" | "2" | "3" => Ok(()),
        _ => Err(ParseError("the supported versions are 1.1, 2 and 3".to_owned())),
    }
}

/// Options of the background load.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Background load")]
pub struct TortureBeside {
    /// Background load on the same URL while the cases run, such as 100/s, to measure the impact of
    /// each case on it
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate, conflicts_with = "beside")]
    beside_rate: Option<Rate>,
    /// Background load from a plan; it lasts as long as the cases
    #[arg(long, value_name = "PLAN.toml")]
    beside: Option<String>,
}

/// Maximum number of connections of the background load; further calls wait.
const BACKGROUND_CONNECTIONS: u32 = 1_000;
/// Response timeout of the background load.
const BACKGROUND_TIMEOUT: Nanos = Nanos::from_secs(2);

/// Returns the background load and its name.
///
/// # Errors
/// Fails for an invalid plan or rate.
pub fn background_plan(
    args: &TortureArgs,
    url: &Url,
    files: &dyn FileSource,
) -> Result<Option<(Plan, String)>, UsageError> {
    match (&args.beside.beside, args.beside.beside_rate) {
        (Some(path), _) => Ok(Some((super::apply::read_plan(path, files)?, path.clone()))),
        (None, Some(rate)) => {
            let mut plan = Plan::for_url(url.clone());
            plan.load = Load::Open {
                arrivals: Arrivals { gaps: Gaps::Poisson, ..Arrivals::constant(rate) },
                session: None,
                connections_max: Some(BACKGROUND_CONNECTIONS),
                queue_max: None,
            };
            args.what.seed.apply(&mut plan, files)?;
            args.safety.fields.apply(&mut plan, files)?;
            args.what.insecure.apply(&mut plan, files)?;
            let mut what = args.what.clone();
            what.set_protocol(args.what.protocol());
            what.version.apply(&mut plan, files)?;
            plan.timeouts.connect = BACKGROUND_TIMEOUT;
            plan.timeouts.call = BACKGROUND_TIMEOUT;
            plan.driver.threads = Some(1);
            plan::validate(&plan)?;
            Ok(Some((plan, url.to_string())))
        }
        (None, None) => Ok(None),
    }
}

/// Options of the outputs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Results")]
pub struct TortureOutputs {
    /// Write the result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    /// Write the result as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Keep the evidence in a new folder below this one: transcripts, and failures to replay
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the result of every health check as CSV
    #[arg(long, value_name = "FILE")]
    pub probes: Option<PathBuf>,
    /// Accepted findings: a TOML file with case, reason and expiry date
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Print findings and the summary only
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Exit with code 1 for findings of this severity or above: critical, high, medium or low
    #[arg(long, value_name = "SEVERITY", default_value = "high", value_parser = severity,
        conflicts_with = "report_only")]
    pub fail_on: Severity,
    /// Exit with code 0 regardless of findings
    #[arg(long)]
    pub report_only: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl TortureOutputs {
    /// Checks that no two results go to one file.
    ///
    /// # Errors
    /// Fails with the conflicting options.
    pub fn check(&self) -> Result<(), UsageError> {
        check_distinct_files(&[
            ("--json", self.json.as_ref().and_then(Sink::file)),
            ("--html", self.html.as_ref()),
            ("--junit", self.junit.as_ref()),
            ("--probes", self.probes.as_ref()),
        ])
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum TortureAsk {
    /// List the cases
    List,
    /// Print what a case sends and expects, and why; or how findings are rated
    Explain {
        /// The case, such as S-07, or severity for the table of ratings
        id: String,
    },
    /// Compare two results: new findings, fixed findings, limits that moved
    ///
    /// A and B are results of the store, such as torture-12, a tag or last, or files written by
    /// --json. The exit code is 1 if something is worse in B.
    Diff(TortureDiff),
    /// Print the text that the owner of a public server publishes to permit a test
    Prove(ProveArgs),
    /// Verify or print the audit log
    Audit {
        #[command(subcommand)]
        ask: AuditCommand,
    },
    /// Send recorded failures again and report which are fixed
    Replay(ReplayArgs),
    /// Judge recorded conversations by the current rules, without sending anything
    Judge(JudgeArgs),
    /// Shrink a failure to the fewest bytes that still fail in the same way
    Shrink(ShrinkArgs),
    /// Print failures in a form that can be sent without Loadstone
    Emit(EmitArgs),
    /// Test a proxy in front of a server: how it changes requests, and whether both agree on where
    /// each request ends
    Chain(Box<ChainArgs>),
}

/// Two results and the outputs of their comparison.
#[derive(Args, Clone, Debug)]
pub struct TortureDiff {
    /// The result before: an id, a tag, last~1, or a file that --json wrote
    #[arg(value_name = "A")]
    pub a: String,
    /// The result after; - is standard input
    #[arg(value_name = "B")]
    pub b: String,
    /// Write the difference as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    /// Write the difference as Markdown, for a pull request
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Print only worse cases and the summary
    #[arg(short = 'q', long)]
    pub quiet: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl TortureDiff {
    /// Checks that no two results go to one file.
    ///
    /// # Errors
    /// Fails with the conflicting options.
    pub fn check(&self) -> Result<(), UsageError> {
        check_distinct_files(&[
            ("--json", self.json.as_ref().and_then(Sink::file)),
            ("--md", self.md.as_ref()),
        ])
    }
}

fn severity(text: &str) -> Result<Severity, String> {
    Severity::from_name(text).ok_or_else(|| {
        let all = Severity::ALL.map(Severity::id).join(", ");
        format!("{} is not a severity: {all} are", units::quoted(text))
    })
}

/// Parses the URL of a page.
pub(crate) fn page(text: &str) -> Result<Url, String> {
    match target(text)? {
        url if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ => Err("write it as http://host[:port]/path or https://…".to_owned()),
    }
}

/// Parses the URL of a page, or of a gRPC method.
pub(super) fn target(text: &str) -> Result<Url, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).map_err(|error| error.to_string())?;
    let known = matches!(url.scheme(), "http" | "https" | "grpc" | "grpcs");
    if !known || url.host_str().is_none_or(str::is_empty) {
        return Err("write it as http://host[:port]/path, https://…, or \
            grpc://host:port[/package.Service/Method]"
            .to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("omit the login: cases do not send it".to_owned());
    }
    Ok(url)
}

pub(super) fn path(text: &str) -> Result<String, String> {
    let plain = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    if plain { Ok(text.to_owned()) } else { Err("write it as /path, without spaces".to_owned()) }
}
