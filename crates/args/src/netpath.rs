//! The options of `netpath`.

use super::{Disk, UsageError, parse};
use clap::{Args, Subcommand};
use plan::FileSource;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use wan::{PathSpec, SpecFault, Trace, TraceSource};

/// Put any program behind an emulated Internet path
///
/// The program runs in a network namespace whose only exit is the emulated path. At its far end
/// are the servers of this host, including those that listen on 127.0.0.1 only, or the server that
/// --server starts. The outside world cannot be reached. The exit code is that of the program.
#[derive(Args, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "loadstone netpath [OPTIONS] -- PROGRAM [ARGUMENT...]\n       loadstone netpath check\n       loadstone netpath profiles",
    after_help = "\
Examples:
  loadstone netpath --profile 3g -- curl http://127.0.0.1:8080/
  loadstone netpath --rtt 100ms --loss 2% -- ab -n 100 http://127.0.0.1:8080/
  loadstone netpath --profile train --server 'nginx -g \"daemon off;\"' -- bash

A path as text: a profile's name, then items between commas, each for both
directions or, with up- or down- before it, for one:
  rtt=100ms delay=50ms jitter=10ms dist=uniform|normal|exp|pareto order=keep|free
  reorder=25%:5 loss=1% burst=4 loss=ge:P:R[:BAD[:GOOD]]
  loss=states:P13:P31:P32:P23:P14 loss=list:3:7 duplicate=1% corrupt=0.1%
  rate=5M overhead=38 bucket=15k trace=FILE queue=100p|64k|none
  drop=tail|head|codel[:5ms:100ms] outage=30s:2s[:fixed][:lose] webmark quantum=10ms"
)]
pub struct NetpathArgs {
    #[command(subcommand)]
    pub command: Option<NetpathCommand>,
    /// A profile or a description of the path: 3g, 'dsl, loss=1%', 'rtt=80ms, down-rate=8M'
    #[arg(long, value_name = "PATH", visible_alias = "path")]
    pub(super) profile: Option<String>,
    /// Round-trip time, half of it in each direction
    #[arg(long, value_name = "TIME")]
    pub(super) rtt: Option<String>,
    /// Delay of each direction
    #[arg(long, value_name = "TIME", conflicts_with = "rtt")]
    pub(super) delay: Option<String>,
    /// Jitter of the delay in each direction
    #[arg(long, value_name = "TIME")]
    pub(super) jitter: Option<String>,
    /// Packet loss in each direction
    #[arg(long, value_name = "SHARE")]
    pub(super) loss: Option<String>,
    /// Bits per second in each direction: 640k, 5M
    #[arg(long, value_name = "BITRATE")]
    pub(super) rate: Option<String>,
    /// Queue in front of the rate limit: 100p (packets) or 64k (bytes)
    #[arg(long, value_name = "LENGTH")]
    pub(super) queue: Option<String>,
    /// Seed for everything random
    #[arg(long, value_parser = parse::count::<u64>, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Start this server at the far end (sh -c) and wait until it listens before the program starts
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<String>,
    /// Leave 127.0.0.0/8 to the program itself; the server's address is then one of 198.19.0.0/16
    #[arg(long)]
    pub own_loopback: bool,
    /// Do not print a report on standard error
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required = true)]
    pub program: Vec<OsString>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum NetpathCommand {
    /// Measure the actual effect of a path on this machine, in about ten seconds
    Check,
    /// List the named profiles
    Profiles,
}

impl NetpathArgs {
    /// Returns the requested path.
    ///
    /// # Errors
    /// Fails if no path was given, or it is invalid.
    pub fn path(&self) -> Result<PathSpec, UsageError> {
        let text = self.text();
        if text.is_empty() {
            return Err(UsageError::new(
                "no path is given; write --profile 3g (`loadstone netpath profiles` lists them), or \
                 --rtt 100ms --loss 1% --rate 5M",
            ));
        }
        Ok(PathSpec::parse(&text, &Traces)?)
    }

    /// Returns the complete path as text; separate options take precedence.
    fn text(&self) -> String {
        let items = [
            ("rtt", &self.rtt),
            ("delay", &self.delay),
            ("jitter", &self.jitter),
            ("loss", &self.loss),
            ("rate", &self.rate),
            ("queue", &self.queue),
        ];
        let items = items
            .iter()
            .filter_map(|(key, value)| value.as_ref().map(|value| format!("{key}={value}")));
        self.profile.clone().into_iter().chain(items).collect::<Vec<_>>().join(", ")
    }
}

/// Cache of trace files. Each file is read once, because it may be long or a pipe; an option is
/// checked first, then applied, possibly to several targets.
pub(super) struct Traces;

static TRACES_READ: Mutex<BTreeMap<String, Arc<Trace>>> = Mutex::new(BTreeMap::new());

impl TraceSource for Traces {
    fn trace(&self, file: &str) -> Result<Arc<Trace>, String> {
        let mut known = TRACES_READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trace) = known.get(file) {
            return Ok(trace.clone());
        }
        let trace = Trace::parse_file(file, &Disk.read(file)?)?;
        known.insert(file.to_owned(), trace.clone());
        Ok(trace)
    }
}

impl From<SpecFault> for UsageError {
    fn from(fault: SpecFault) -> UsageError {
        UsageError::new(fault.0)
    }
}
