//! The options of `workload`.

use super::{UsageError, parse};
use clap::{Args, Subcommand};
use plan::{Location, rules};
use std::path::PathBuf;
use units::Nanos;
use url::Url;

/// Make a workload: a list of URLs for `run --urls`
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    pub(crate) command: WorkloadCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    Crawl(Box<CrawlArgs>),
}

/// List the URLs that a site's pages lead to
///
/// Begins at a page and follows its links, within the same scheme, host and port alone. Every
/// address that answers with a status of 200 to 299 is a line of the list; broken links are told on
/// standard error. Only GET is sent, and no form.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone workload crawl http://localhost:8080/ -o list.txt
  loadstone run --urls list.txt --random -c 20
  loadstone workload crawl http://localhost:8080/ | loadstone torture.pl --urls - -t 100")]
pub(crate) struct CrawlArgs {
    /// The page to begin at
    #[arg(value_name = "URL", value_parser = site)]
    pub(crate) url: Url,
    /// The list; - is standard output
    #[arg(short = 'o', long, value_name = "FILE|-", value_parser = parse::sink, default_value = "-")]
    pub(crate) output: super::Sink,
    /// Addresses asked at most
    #[arg(long, value_parser = parse::count::<u64>, value_name = "N", default_value = "1000")]
    pub(crate) calls_max: u64,
    /// Links followed at most to come from the first page to another
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) depth_max: u32,
    /// Requests under way at the same time
    #[arg(long, value_parser = together, value_name = "N", default_value = "4")]
    pub(crate) together: usize,
    /// Leave out images, scripts, style sheets and the like
    #[arg(long)]
    pub(crate) pages_only: bool,
    /// For each answer
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "30s")]
    pub(crate) timeout: Nanos,
    /// A header 'Name: value'; may be given several times
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = rules::parse_header)]
    pub(crate) headers: Vec<(String, String)>,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Trust the certificates of this PEM file instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<String>,
    /// Say nothing of broken links and sums
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

/// Connections that a crawl may have at once.
const TOGETHER_MAX: usize = 100;

fn together(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=TOGETHER_MAX).contains(number));
    number.ok_or_else(|| format!("give a number from 1 to {TOGETHER_MAX}"))
}

fn site(text: &str) -> Result<Url, String> {
    let Location { url, auth } = plan::parse_url(text).map_err(|error| error.0)?;
    match auth {
        None => Ok(url),
        Some(_) => Err("a login in it is not sent; give it as -H 'Authorization: …'".to_owned()),
    }
}

impl CrawlArgs {
    /// # Errors
    /// A time limit of nothing; the list where no list can be.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        if self.timeout.is_zero() {
            return Err(UsageError::new("--timeout 0s lets no answer come; give more"));
        }
        Ok(())
    }

    /// The file of the list; `None`: standard output.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match &self.output {
            super::Sink::File(path) => Some(path),
            super::Sink::Stdout => None,
        }
    }
}
