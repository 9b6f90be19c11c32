//! The options of `survey`.

use super::outputs::each_its_own;
use super::{Sink, UsageError, parse};
use clap::Args;
use std::path::PathBuf;

/// Which software answers: one polite visit to each server of a list
///
/// By what each server says of itself and by how it behaves with harmless oddities. For servers that
/// you own; addresses of others need --yes-i-may and get one plain request each.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone survey hosts.txt
  loadstone survey --dns --csv - < name-servers.txt -
  loadstone survey --deadlines --html survey.html hosts.txt

Exit codes: 0 surveyed; 2 usage, or refused; 3 nobody was there; 5 a result was
not written; 130 interrupted.")]
pub(crate) struct SurveyArgs {
    /// A line per server, URL or host[:port]; - is standard input
    #[arg(value_name = "LIST")]
    pub(crate) list: String,
    /// Name servers in place of web servers
    #[arg(long, conflicts_with = "deadlines")]
    pub(crate) dns: bool,
    /// Servers that are visited at a time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) at_once: u32,
    /// New connections, or questions, a second
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) rate: u32,
    /// One plain request to each server, and nothing odd
    #[arg(long, conflicts_with = "deadlines")]
    pub(crate) plain: bool,
    /// Also how long each server bears an idle connection, and half a head: up to 75 s each
    #[arg(long)]
    pub(crate) deadlines: bool,
    /// Addresses of others are in the list, and I may ask them: one plain request each
    #[arg(long, requires = "owner")]
    pub(crate) yes_i_may: bool,
    /// Who owns the servers of the list, or let you ask: it goes into the audit log
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Who answers for the survey, for the servers' logs: goes out as From
    #[arg(long, value_name = "MAIL", value_parser = super::torture_safety::words)]
    pub(crate) contact: Option<String>,
    /// Write nothing into the audit log; for servers on this machine only
    #[arg(long)]
    pub(crate) no_audit: bool,
    /// The result as JSON; with - standard output has nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) json: Option<Sink>,
    /// A row per server as CSV
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) csv: Option<Sink>,
    /// The result as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// The table of software only
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

impl SurveyArgs {
    /// # Errors
    /// Two results for one file, or for standard output.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        let stdout = |sink: &Option<Sink>| matches!(sink, Some(Sink::Stdout));
        if stdout(&self.json) && stdout(&self.csv) {
            return Err(UsageError::new(
                "--json - and --csv - both write to standard output; give a file to one of them",
            ));
        }
        each_its_own(&[
            ("--json", self.json.as_ref().and_then(Sink::file)),
            ("--csv", self.csv.as_ref().and_then(Sink::file)),
            ("--html", self.html.as_ref()),
        ])
    }
}
