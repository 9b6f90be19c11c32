//! The command line of every command, and its conversion to a plan. This crate opens no sockets
//! and reads files only through a [`plan::FileSource`].
#![forbid(unsafe_code)]

mod apply;
mod check;
mod compare;
mod disk;
#[cfg(feature = "fleet")]
mod fleet;
mod foreign;
mod gate;
mod grpc;
#[cfg(test)]
mod guide;
mod help;
mod init;
mod netpath;
mod once;
mod options;
#[cfg(test)]
mod options_page;
mod outputs;
mod pages;
mod parse;
mod proxy;
mod ramp;
mod record;
mod recorded;
mod report;
mod run;
mod runs;
mod short;
mod site;
mod small;
mod store;
mod survey;
mod torture;
mod torture_again;
mod torture_overload;
mod torture_safety;
mod torture_server;
mod torture_typed;
mod ui;
mod vary;
mod workload;

pub use check::CheckArgs;
pub use compare::{CompareArgs, CompareSide, CompareTask, LiveTask, StoredTask, differing_plans};
pub use disk::Disk;
#[cfg(feature = "fleet")]
pub use fleet::{
    FleetAgentArgs, FleetArgs, FleetCommand, FleetCredsArgs, FleetLocalArgs, FleetManagerArgs,
    FleetOperatorArgs, FleetTask, FleetWatchArgs,
};
pub use foreign::{hint, value_hint};
pub use gate::{Design, GateTask};
pub use grpc::plan_from_grpcurl;
pub use help::{FIRST_STEPS, command_for, topic_page};
pub use init::InitArgs;
pub use netpath::{NetpathArgs, NetpathCommand};
pub use once::OnceArgs;
pub use options::trust;
pub use outputs::Outputs;
pub use pages::{completions, man_page};
pub use proxy::use_environment;
pub use ramp::{RampArgs, RampTarget, RampTask};
pub use record::RecordArgs;
pub use recorded::{apply_request_options, set_login, set_targets};
pub use report::{BenchmarkName, ReportArgs};
pub use run::RunArgs;
pub use runs::{HistoryArgs, ListArgs, RunsArgs, RunsTask, ShowArgs};
pub use session::files::Sink;
pub use short::with_command;
pub use site::{NormTask, SiteArgs, SiteTask};
pub use small::{CalibrateArgs, DemoArgs, DemoScene};
pub use store::StoreArgs;
pub use survey::SurveyArgs;
pub use torture::{
    TortureArgs, TortureAsk, TortureDiff, TortureOutputs, TortureWhat, background_plan,
};
pub use torture_again::{AgainArgs, ChainArgs, EmitArgs, JudgeArgs, ReplayArgs, ShrinkArgs};
pub use torture_safety::{AuditCommand, ProveArgs, TortureSafety};
pub use torture_server::{Sut, TortureServer};
pub use torture_typed::TypedOptions;
pub use ui::UiArgs;
pub use vary::Vary;
pub use workload::{
    AnonymiseArgs, By, CgiArgs, CrawlArgs, DescribeArgs, FilesArgs, Format, ImportArgs, ImportFrom,
    ScriptsWhen, SequenceArgs, VerifyArgs, WorkloadArgs, WorkloadCommand,
};

use clap::{Parser, Subcommand};

/// Loads, measures and torture-tests web servers.
///
/// Response time is measured from the instant a request was due, nothing is dropped without being
/// counted, and every run ends with a verdict on its own validity: VALID, DEGRADED or INVALID.
#[derive(Debug, Parser)]
#[command(
    name = "loadstone",
    version,
    long_version = LONG_VERSION,
    max_term_width = 80,
    after_help = EXAMPLES,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<RunArgs>),
    Ramp(Box<RampArgs>),
    Compare(Box<CompareArgs>),
    #[cfg(feature = "fleet")]
    Fleet(FleetArgs),
    Demo(DemoArgs),
    Init(InitArgs),
    Once(Box<OnceArgs>),
    Runs(RunsArgs),
    /// Start the built-in reference server, with faults on demand, or the norm site
    Site(SiteArgs),
    Check(Box<CheckArgs>),
    Calibrate(CalibrateArgs),
    Torture(Box<TortureArgs>),
    Survey(Box<SurveyArgs>),
    Report(ReportArgs),
    Workload(WorkloadArgs),
    Record(Box<RecordArgs>),
    Netpath(Box<NetpathArgs>),
    Ui(UiArgs),
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// Usage error, for exit code 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// One sentence per problem; not empty.
    pub problems: Vec<String>,
}

impl UsageError {
    pub fn new(problem: impl Into<String>) -> UsageError {
        UsageError { problems: vec![problem.into()] }
    }

    /// Prefixes each problem with its file.
    pub fn within(self, file: &str) -> UsageError {
        let named = self.problems.into_iter().map(|problem| format!("{file}: {problem}"));
        UsageError { problems: named.collect() }
    }
}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for UsageError {}

impl From<UsageError> for session::exit::Failure {
    fn from(error: UsageError) -> session::exit::Failure {
        session::exit::Failure::usage(error.to_string())
    }
}

impl From<units::ParseError> for UsageError {
    fn from(error: units::ParseError) -> UsageError {
        UsageError::new(error.0)
    }
}

impl From<Vec<plan::Problem>> for UsageError {
    fn from(problems: Vec<plan::Problem>) -> UsageError {
        UsageError { problems: problems.into_iter().map(|problem| problem.text).collect() }
    }
}

#[cfg(feature = "h3")]
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nprotocols: HTTP/1.0 HTTP/1.1 HTTP/2 HTTP/3\nI/O: epoll\nTLS: rustls with aws-lc-rs, 1.2 and 1.3"
);
#[cfg(not(feature = "h3"))]
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nprotocols: HTTP/1.0 HTTP/1.1 HTTP/2\nI/O: epoll\nTLS: rustls with aws-lc-rs, 1.2 and 1.3"
);

const EXAMPLES: &str = "\
Examples:
  loadstone demo                                 see what it does, on itself
  loadstone init URL                             write a plan to start from
  loadstone run http://localhost:8080/           10 users for 10 seconds
  loadstone run -c 64 -d 30s URL                 64 users for 30 seconds
  loadstone run --rate 2000/s --slo 'p99<50ms' URL
                                                 an open load, an objective
  loadstone ramp URL                             knee, capacity, overload
  loadstone run --urls list.txt --random --json result.json
  loadstone site --listen 127.0.0.1:0            a server to try things on
  loadstone ab -n 1000 -c 20 URL                 as ApacheBench does it

Exit codes: 0 all well; 1 objective or expectation missed, or the server failed
or is gone; 2 usage or plan; 3 no connection; 4 the measurement is INVALID;
5 a result was not written; 130 interrupted.";

#[cfg(test)]
mod tests;
