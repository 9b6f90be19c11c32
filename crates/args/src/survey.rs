//! The options of `survey`.

use super::outputs::check_distinct_files;
use super::{Sink, UsageError, parse};
use clap::Args;
use std::path::PathBuf;

/// Identify the software of a list of servers, with a few requests to each
///
/// Servers are identified by their response fields and by their responses to harmless
/// oddities. Only for servers that you own; addresses of others need --yes-i-may and get one plain
/// request each.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone survey hosts.txt
  loadstone survey --dns --csv - < name-servers.txt -
  loadstone survey --deadlines --html survey.html hosts.txt

Exit codes: 0 surveyed; 2 usage, or refused; 3 nothing answered; 5 a result was
not written; 130 interrupted.")]
pub struct SurveyArgs {
    /// A line per server, URL or host[:port]; - is standard input
    #[arg(value_name = "LIST")]
    pub list: String,
    /// Survey name servers instead of web servers
    #[arg(long, conflicts_with = "deadlines")]
    pub dns: bool,
    /// Number of servers visited at the same time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub at_once: u32,
    /// Maximum number of new connections, or queries, per second
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub rate: u32,
    /// Send only one plain request to each server, nothing odd
    #[arg(long, conflicts_with = "deadlines")]
    pub plain: bool,
    /// Also measure how long each server keeps an idle connection and an incomplete request open:
    /// up to 75 s each
    #[arg(long)]
    pub deadlines: bool,
    /// The list has addresses of others, and I have permission to query them: one plain request
    /// each
    #[arg(long, requires = "owner")]
    pub yes_i_may: bool,
    /// Who owns the servers of the list, or gave permission; written to the audit log
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Contact for the servers' operators, sent as the From field
    #[arg(long, value_name = "MAIL", value_parser = super::torture_safety::words)]
    pub contact: Option<String>,
    /// Do not write the audit log; only for servers on this machine
    #[arg(long)]
    pub no_audit: bool,
    /// Write the result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    /// Write one row per server as CSV
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub csv: Option<Sink>,
    /// Write the result as an HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the table of software only
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

impl SurveyArgs {
    /// # Errors
    /// Fails for two results for one file, or for standard output.
    pub fn check(&self) -> Result<(), UsageError> {
        let stdout = |sink: &Option<Sink>| matches!(sink, Some(Sink::Stdout));
        if stdout(&self.json) && stdout(&self.csv) {
            return Err(UsageError::new(
                "--json - and --csv - both write to standard output; give a file to one of them",
            ));
        }
        check_distinct_files(&[
            ("--json", self.json.as_ref().and_then(Sink::file)),
            ("--csv", self.csv.as_ref().and_then(Sink::file)),
            ("--html", self.html.as_ref()),
        ])
    }
}
