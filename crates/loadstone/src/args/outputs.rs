//! Destinations of results.

use super::UsageError;
use crate::files::Sink;
use std::net::SocketAddr;
use std::path::PathBuf;
use store::StorePlace;

/// Checks that no two results share a file, and that each of these options names a file.
///
/// # Errors
/// Fails for conflicting options, or names that are not files.
pub(crate) fn each_its_own(options: &[(&str, Option<&PathBuf>)]) -> Result<(), UsageError> {
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
pub(crate) struct Outputs {
    /// Name of the run: the URL or the file as typed, without a password.
    pub(crate) name: String,
    /// JSON on standard output excludes all other output.
    pub(crate) json: Option<Sink>,
    pub(crate) csv: Option<PathBuf>,
    pub(crate) hdr: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    /// JUnit file with a test case per objective.
    pub(crate) junit: Option<PathBuf>,
    /// File for the report as Markdown.
    pub(crate) md: Option<PathBuf>,
    /// File with a line per call.
    pub(crate) log: Option<PathBuf>,
    /// Prints only the verdict and the headline.
    pub(crate) quiet: bool,
    /// Prints one line instead of the report.
    pub(crate) line: bool,
    /// Shows the full-screen view during the run.
    pub(crate) live: bool,
    /// Prometheus endpoint during the run, and push targets.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) otlp: Option<live::metrics::Collector>,
    /// Server whose resources are watched.
    pub(crate) sut: Option<crate::sut::SutTarget>,
    /// The table of quantiles, in full.
    pub(crate) percentiles: bool,
    /// Prints the complete report instead of one screen.
    pub(crate) full: bool,
    /// Print the plan made from the options, and exit.
    pub(crate) print_plan: bool,
    /// True if neither an option nor a plan file sets the HTTP version.
    pub(crate) version_open: bool,
    /// True if neither an option nor a plan file sets the proxy.
    pub(crate) proxy_open: bool,
    /// Store for the result; `None` without the option.
    pub(crate) store: Option<StorePlace>,
}

impl Outputs {
    /// Checks that no two results share a file, and that only JSON goes to standard output.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        each_its_own(&[
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
