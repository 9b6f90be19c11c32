//! The options of what is done with kept failures.

use super::parse;
use super::torture::target;
use super::{Sink, TortureArgs, TortureSafety};
use clap::{Args, FromArgMatches};
use std::path::PathBuf;
use units::Nanos;
use url::Url;

/// Kept failures, and the server that they are sent to.
#[derive(Args, Clone, Debug)]
pub(crate) struct AgainArgs {
    /// A run directory, its failures, or one of them
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Send to this server and page, not to those of the run
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) to: Option<Url>,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) safety: TortureSafety,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) again: AgainArgs,
    /// Keep the pauses between the writes, or leave them out
    #[arg(long, value_name = "kept|asap", value_parser = ["kept", "asap"], default_value = "kept")]
    pub(crate) timing: String,
    /// Tries of each failure
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) times: u32,
    /// What became of each as JSON; with - standard output has nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) json: Option<Sink>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct JudgeArgs {
    /// A run directory, or the folder of a failure
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Cases of your own, as they are now: a file, or the .toml files of a folder
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) cases: Vec<PathBuf>,
    /// Every judgement as JSON; with - standard output has nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) json: Option<Sink>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ShrinkArgs {
    #[command(flatten)]
    pub(crate) again: AgainArgs,
    /// Conversations for each failure at most
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = parse::count::<u64>)]
    pub(crate) executions: u64,
    /// Time for each failure at most
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::parse_duration)]
    pub(crate) time: Nanos,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct EmitArgs {
    /// A run directory, its failures, or one of them
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The form
    #[arg(long = "as", value_name = "sh|curl|nc|rust-test|pcap|case", value_parser = ["sh", "curl", "nc", "rust-test", "pcap", "case"])]
    pub(crate) form: String,
    /// What it was shrunk to, where it was
    #[arg(long)]
    pub(crate) shrunk: bool,
    /// The id of a case (--as case)
    #[arg(long, value_name = "ID", default_value = "X-01")]
    pub(crate) id: String,
}

impl AgainArgs {
    /// The options of a run against this server that is told nothing else.
    ///
    /// # Errors
    /// The URL is none that a run takes.
    pub(crate) fn run(&self, url: &Url) -> Result<TortureArgs, clap::Error> {
        let command = TortureArgs::augment_args(clap::Command::new("torture")).no_binary_name(true);
        let words = [url.to_string()];
        let mut args = TortureArgs::from_arg_matches(&command.try_get_matches_from(words)?)?;
        args.what.insecure = self.insecure;
        args.safety = self.safety.clone();
        Ok(args)
    }
}
