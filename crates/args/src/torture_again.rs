//! The options for kept failures: replay, judge, shrink, emit.

use super::options::{Insecure, SHARED, SharedOptions, SharedRow, SharedRows};
use super::parse;
use super::torture::{page, path, target};
use super::{Sink, TortureArgs, TortureSafety};
use clap::{Args, FromArgMatches};
use dialogue::http2::Protocol;
use std::net::SocketAddr;
use std::path::PathBuf;
use units::Nanos;
use url::Url;

/// Recorded failures and the server that they are sent to.
#[derive(Args, Clone, Debug)]
pub struct AgainArgs {
    /// The directory of a run, its failures, or one of them
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Send to this server and page instead of those of the run
    #[arg(long, value_name = "URL", value_parser = target)]
    pub to: Option<Url>,
    #[command(flatten)]
    pub insecure: SharedOptions<Insecure>,
    #[command(flatten)]
    pub safety: TortureSafety,
}

#[derive(Args, Clone, Debug)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub again: AgainArgs,
    /// Keep the pauses between writes, or send without pauses
    #[arg(long, value_name = "kept|asap", value_parser = ["kept", "asap"], default_value = "kept")]
    pub timing: String,
    /// Number of times each failure is sent
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub times: u32,
    /// Write the outcome of each as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
}

#[derive(Args, Clone, Debug)]
pub struct JudgeArgs {
    /// The directory of a run, or the folder of a failure
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Your own cases, in their current version: a file, or the .toml files of a folder
    #[arg(long, value_name = "FILE|DIR")]
    pub cases: Vec<PathBuf>,
    /// Write every judgment as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
}

#[derive(Args, Clone, Debug)]
pub struct ShrinkArgs {
    #[command(flatten)]
    pub again: AgainArgs,
    /// Maximum number of conversations for each failure
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = parse::count::<u64>)]
    pub executions: u64,
    /// Maximum time for each failure
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::parse_duration)]
    pub time: Nanos,
}

#[derive(Args, Clone, Debug)]
pub struct EmitArgs {
    /// The directory of a run, its failures, or one of them
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The form to print
    #[arg(long = "as", value_name = "sh|curl|nc|rust-test|pcap|case", value_parser = ["sh", "curl", "nc", "rust-test", "pcap", "case"])]
    pub form: String,
    /// Print the shrunk form of the failure, if there is one
    #[arg(long)]
    pub shrunk: bool,
    /// The id of a case (--as case)
    #[arg(long, value_name = "ID", default_value = "X-01")]
    pub id: String,
}

/// A proxy and the server behind it.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone torture chain http://localhost:8080/ --origin 127.0.0.1:9000
  loadstone torture chain http://localhost:8080/ --back http://localhost:8081/
  loadstone torture chain http://localhost:8080/ --origin 127.0.0.1:9000 --back http://localhost:8081/
  loadstone torture chain https://localhost:8443/ --http 2 --origin 127.0.0.1:9000 --insecure

Exit codes: 0 they agree; 1 they would disagree; 2 usage, or refused; 3 nothing
was tested; 4 it ended early; 5 a result was not written; 130 interrupted.")]
pub struct ChainArgs {
    /// A page that the proxy forwards to the server behind it
    #[arg(value_name = "URL", value_parser = page)]
    pub proxy: Url,
    /// Listen here as the server behind the proxy: shows what arrives, and how the proxy
    /// changed it
    #[arg(long, value_name = "ADDR:PORT")]
    pub origin: Option<SocketAddr>,
    /// The server behind the proxy: with --origin it receives what arrived there, without it the
    /// same requests as the proxy. All requests ask for the page of this URL
    #[arg(long, value_name = "URL", value_parser = page)]
    pub back: Option<Url>,
    /// A path that accepts request bodies; without it, the page of the URL
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub post: Option<String>,
    #[command(flatten)]
    version: SharedOptions<ChainVersion>,
    #[command(flatten)]
    pub insecure: SharedOptions<Insecure>,
    /// Write the outcome of each request as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    /// Print disagreements and the summary only
    #[arg(short = 'q', long)]
    pub quiet: bool,
    #[command(flatten)]
    pub safety: TortureSafety,
}

#[derive(Debug)]
enum ChainVersion {}

impl SharedRows for ChainVersion {
    const ROWS: &'static [SharedRow] = &[SharedRow {
        name: "http",
        help: Some(
            "HTTP version used with the proxy: 1.1, or 2 or 3 for requests that the proxy must \
            convert to HTTP/1.1 (2 over TLS by ALPN, over cleartext by prior knowledge; 3 over \
            QUIC) [default: 1.1]",
        ),
        narrower: Some(super::torture::protocol),
        ..SHARED
    }];
}

impl ChainArgs {
    /// Returns the given HTTP version for the proxy.
    pub fn protocol(&self) -> Option<Protocol> {
        super::torture::version_of(&self.version)
    }

    /// Returns the default options of a run against the proxy or the server.
    ///
    /// # Errors
    /// Fails for a URL that a run does not accept.
    pub fn run(&self, url: &Url) -> Result<TortureArgs, clap::Error> {
        let mut args = bare_run(url)?;
        args.what.insecure = self.insecure.clone();
        args.what.post = self.post.clone();
        args.safety = self.safety.clone();
        Ok(args)
    }
}

/// Returns a run against this server without options.
fn bare_run(url: &Url) -> Result<TortureArgs, clap::Error> {
    let command = TortureArgs::augment_args(clap::Command::new("torture")).no_binary_name(true);
    let words = [url.to_string()];
    TortureArgs::from_arg_matches(&command.try_get_matches_from(words)?)
}

impl AgainArgs {
    /// Returns the default options of a run against this server.
    ///
    /// # Errors
    /// Fails for a URL that a run does not accept.
    pub fn run(&self, url: &Url) -> Result<TortureArgs, clap::Error> {
        let mut args = bare_run(url)?;
        args.what.insecure = self.insecure.clone();
        args.safety = self.safety.clone();
        Ok(args)
    }
}
