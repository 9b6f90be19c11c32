//! The options of `check`.

use super::options::{SHARED, SharedOptions, SharedRow, SharedRows};
use super::outputs::check_distinct_files;
use super::{Sink, UsageError, parse};
use clap::Args;
use plan::check::Given;
use std::path::PathBuf;
use url::Url;

/// Run the functional tests of a plan file against a site
///
/// A check plan (TOML) consists of steps: requests with expectations on their responses,
/// simultaneous requests, and files of the site with expectations on their contents. The result is
/// a tree of marks; the exit code is 1 if a step failed.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "loadstone check [OPTIONS] PLAN.toml\n       loadstone check --init [FILE]",
    after_help = "\
Examples:
  loadstone check --init norm.toml               the plan for the norm site
  loadstone check norm.toml --base http://host:2020
  loadstone check shop.toml --base https://host/ --http 2
  loadstone check norm.toml --set maxclients=1 --only MaxClients
  loadstone check norm.toml --root /srv/norm --junit result.xml"
)]
pub struct CheckArgs {
    /// The check plan; - is standard input
    #[arg(value_name = "PLAN.toml", required_unless_present = "init", conflicts_with = "init")]
    pub plan: Option<String>,
    /// URL of the site, instead of the plan's base
    #[arg(long, value_name = "URL", value_parser = base)]
    pub base: Option<Url>,
    /// Override a variable of the plan; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub set: Vec<(String, String)>,
    #[command(flatten)]
    version: SharedOptions<CheckVersion>,
    /// Run only steps with this text in their name; may be given several times
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Folder of the site's files on this machine: file and dir of steps are relative to it
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print the names of the steps and exit
    #[arg(long)]
    pub list: bool,
    /// Write the plan for the norm site, by default to check.toml; - is standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "check.toml")]
    pub init: Option<PathBuf>,
    #[command(flatten)]
    pub tls: SharedOptions<CheckTls>,
    /// Write the result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    /// Write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print only what failed, and the last line
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// Default version of steps.
#[derive(Debug)]
enum CheckVersion {}

impl SharedRows for CheckVersion {
    const ROWS: &'static [SharedRow] = &[SharedRow {
        name: "http",
        help: Some(
            "HTTP version of steps without a version: 1.0, 1.1, 2, 3 or auto [default: the plan's, or auto]",
        ),
        more: "auto is the server's choice of 2 or 1.1 (ALPN) over TLS, and 1.1 without TLS. 2 is negotiated by ALPN over TLS, and used by prior knowledge without TLS; 3 runs \
            over QUIC. A server without that version is an error; there is no fallback.",
        ..SHARED
    }];
}

#[derive(Debug)]
pub enum CheckTls {}

impl SharedRows for CheckTls {
    const ROWS: &'static [SharedRow] = &[
        SharedRow { name: "insecure", ..SHARED },
        // accepting any certificate is more permissive than this file
        SharedRow { name: "ca", without: &["insecure"], ..SHARED },
    ];
}

impl CheckArgs {
    pub fn given(&self) -> Given {
        let http =
            self.version.has("http").then(|| self.version.value(|plan| plan.request.version));
        Given { base: self.base.clone(), set: self.set.clone(), http }
    }

    /// Checks that the plan is not a URL, and that the results go to two different named files.
    ///
    /// # Errors
    /// Fails with the conflicting options.
    pub fn check(&self) -> Result<(), UsageError> {
        let is_url = |plan: &&String| plan.starts_with("http://") || plan.starts_with("https://");
        if let Some(url) = self.plan.as_ref().filter(is_url) {
            return Err(UsageError::new(format!(
                "{} is a URL, and a check takes a plan of expectations: loadstone check \
                 PLAN.toml --base URL; --init FILE writes one to start from",
                units::quoted(url)
            )));
        }
        check_distinct_files(&[
            ("--json", self.json.as_ref().and_then(Sink::file)),
            ("--junit", self.junit.as_ref()),
        ])
    }
}

/// Parses `name=value`.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

fn base(text: &str) -> Result<Url, units::ParseError> {
    plan::check::parse_base(text)
}
