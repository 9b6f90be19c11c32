//! The options of `run`, by part of the plan. `-h` shows the common ones, `--help` all.

use super::Sink;
use super::options::GivenOptions;
use super::parse;
use clap::Args;
use std::path::PathBuf;

/// Load a server and measure it
///
/// In a closed load (-c), users call, wait for the response, think and call again. In an open load
/// (--rate), calls are due at their own instants, however slow the server is. Options override the
/// settings of a PLAN.toml.
#[derive(Args, Clone, Debug, Default)]
#[command(
    override_usage = "loadstone run [OPTIONS] URL|PLAN.toml|SCRIPT.js\n       loadstone run [OPTIONS] --urls FILE [BASE-URL]\n       loadstone run [OPTIONS] --script FILE URL [-- ARGUMENT...]",
    after_help = "\
Quantities: times 500ms 10s 1m30s, rates 2000/s 120/m, sizes 64k 1M.
All options: --help. By topic: --help=TOPIC, with load, request, pass, login,
timeouts, connections, tls, http2, http3, grpc, websocket, paths, net,
measuring or output."
)]
pub struct RunArgs {
    /// http(s)://host/path, host[:port][/path], a plan file ending in .toml, or a script of k6 ending
    /// in .js or .ts
    #[arg(value_name = "URL|PLAN.toml")]
    pub(super) target: Option<String>,
    /// Arguments of a script; for one of k6, variables as NAME=VALUE
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(super) script_args: Vec<String>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// Options that `run` shares with the commands that consist of runs.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct CommonArgs {
    /// Given options of the table `plan::options`.
    #[command(flatten)]
    pub(super) given: GivenOptions,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Write the full result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(super) json: Option<Sink>,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write the objectives (--slo) as JUnit XML, a test case for each
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Write the report as Markdown; append it if FILE is $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) md: Option<PathBuf>,
    /// Write the time series as CSV
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) csv: Option<PathBuf>,
    /// Write the histograms as an HdrHistogram log
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) hdr: Option<PathBuf>,
    /// Write one line per call
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) log: Option<PathBuf>,
    /// Print the verdict and the headline only
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
    /// Print the full text report: phases, connections, bytes, the client's own cost and more
    #[arg(long, conflicts_with = "quiet")]
    pub(super) full: bool,
    /// Print one line for a log instead of the report
    #[arg(long, conflicts_with_all = ["quiet", "full"])]
    pub(super) line: bool,
    /// Show a full-screen live view; q stops the run
    #[arg(long, conflicts_with = "quiet")]
    pub(super) live: bool,
    /// Serve live metrics for Prometheus at http://ADDRESS:PORT/metrics [default address:
    /// 127.0.0.1]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = units::parse_listen, hide_short_help = true)]
    pub(super) metrics: Option<std::net::SocketAddr>,
    /// Push metrics to an OTLP collector every second: http://127.0.0.1:4318, or https://
    #[arg(long, value_name = "URL", value_parser = live::metrics::parse_collector, hide_short_help = true)]
    pub(super) otlp: Option<live::metrics::Collector>,
    /// Watch the server's CPU, memory, descriptors and listen queue: a process number on this
    /// machine, or the URL of a node exporter
    #[arg(long, value_name = "PID|URL", value_parser = session::sut::parse, hide_short_help = true)]
    pub(super) sut: Option<session::sut::SutTarget>,
    /// Print the resulting plan and exit without running it
    #[arg(long, hide_short_help = true)]
    pub(super) print_plan: bool,
    #[command(flatten)]
    pub(super) store: super::StoreArgs,
}
