//! Destinations of results.

use super::{Sink, UsageError};
use std::net::SocketAddr;
use std::path::PathBuf;
use store::StorePlace;

/// Checks that no two results share a file, and that each of these options names a file.
///
/// # Errors
/// Fails for conflicting options, or names that are not files.
pub(crate) fn check_distinct_files(options: &[(&str, Option<&PathBuf>)]) -> Result<(), UsageError> {
    let mut files: Vec<(&str, &PathBuf)> = Vec::new();
    for (option, path) in options {
        let Some(path) = path else { continue };
        if path.as_os_str().is_empty() {
            return Err(UsageError::new(format!("{option} needs the name of a file")));
        }
        if path.as_os_str() == "-" {
            return Err(UsageError::new(format!(
                "{option} takes a file; standard output is for the report, or for --json -"
            )));
        }
        if let Some((other, _)) = files.iter().find(|(_, known)| known == path) {
            return Err(UsageError::new(format!(
                "{other} and {option} name the same file, {}; give two",
                path.display()
            )));
        }
        files.push((option, path));
    }
    Ok(())
}

/// Outputs in addition to, or in place of, the report on standard output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Name of the run: the URL or the file as typed, without a password.
    pub name: String,
    /// Destination of the JSON; on standard output, it is the only output.
    pub json: Option<Sink>,
    pub csv: Option<PathBuf>,
    pub hdr: Option<PathBuf>,
    pub html: Option<PathBuf>,
    /// JUnit file with a test case per objective.
    pub junit: Option<PathBuf>,
    /// File for the report as Markdown.
    pub md: Option<PathBuf>,
    /// File with a line per call.
    pub log: Option<PathBuf>,
    /// True to print only the verdict and the headline.
    pub quiet: bool,
    /// True to print one line instead of the report.
    pub line: bool,
    /// True to show the full-screen view during the run.
    pub live: bool,
    /// Prometheus endpoint during the run, and push targets.
    pub metrics: Option<SocketAddr>,
    pub otlp: Option<live::metrics::Collector>,
    /// Server whose resources are watched.
    pub sut: Option<session::sut::SutTarget>,
    /// The table of quantiles, in full.
    pub percentiles: bool,
    /// True to print the complete report instead of one screen.
    pub full: bool,
    /// Print the plan made from the options, and exit.
    pub print_plan: bool,
    /// True if neither an option nor a plan file sets the HTTP version.
    pub version_open: bool,
    /// True if neither an option nor a plan file sets the proxy.
    pub proxy_open: bool,
    /// Store for the result; `None` without the option.
    pub store: Option<StorePlace>,
}

impl Outputs {
    /// Checks that no two results share a file, and that only JSON goes to standard output.
    pub fn check(&self) -> Result<(), UsageError> {
        check_distinct_files(&[
            ("--json", self.json.as_ref().and_then(Sink::file)),
            ("--csv", self.csv.as_ref()),
            ("--hdr", self.hdr.as_ref()),
            ("--html", self.html.as_ref()),
            ("--junit", self.junit.as_ref()),
            ("--md", self.md.as_ref()),
            ("--log", self.log.as_ref()),
        ])
    }
}
