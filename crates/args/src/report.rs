//! The options of `report`.

use super::{Sink, StoreArgs, UsageError, parse};
use clap::Args;
use std::path::PathBuf;

/// Maximum number of compared results: more lines in a chart are indistinguishable.
const RESULTS_MAX: usize = 18;

/// Show stored results again: as text, a page, JSON, CSV or Markdown
///
/// A result is named by its id, such as run-12, by a tag, or as last or last~1, the one before; or it
/// is a file: one that loadstone runs export wrote, or a record in JSON, which needs no store. Several
/// of one kind are shown side by side.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  loadstone report last                          the text of the latest result
  loadstone report run-12 --html run.html        its page
  loadstone report before after --html two.html  two tagged runs side by side
  loadstone report last --md - | gh pr comment -F -
  loadstone report colleague.db --json -         what another machine exported
  loadstone report run.json --html run.html      the page of a record that --json wrote")]
pub struct ReportArgs {
    /// Results of the store, files with exported ones, or a record in JSON: of a run, a ramp, a comparison,
    /// a torture or a check
    #[arg(value_name = "RESULT|FILE", required = true)]
    pub results: Vec<String>,
    /// Write one HTML page, which loads nothing and works without scripts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write everything as JSON, several results as a list; - is standard output
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    /// Write the time series of a run, the steps of a ramp, the figures of a comparison, or the probes of a
    /// torture, as CSV; - is standard output
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub csv: Option<Sink>,
    /// Write Markdown for a pull request; - is standard output
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub md: Option<Sink>,
    /// Write the objectives of a run, the cases of a torture or the steps of a check as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print a run of a closed load, or the steps of a ramp over users, with the figures of WebStone or
    /// WebBench, as those compute them
    #[arg(long = "as", value_name = "BENCHMARK", conflicts_with_all = ["html", "json", "csv", "md", "junit", "quiet", "percentiles", "full"])]
    pub benchmark: Option<BenchmarkName>,
    /// Print the verdict and the headline only
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Print the full table of quantiles
    #[arg(long)]
    pub percentiles: bool,
    /// Print the full text report
    #[arg(long, conflicts_with = "quiet")]
    pub full: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Benchmark whose figures are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BenchmarkName {
    Webstone,
    Webbench,
}

impl ReportArgs {
    /// # Errors
    /// Fails for too many results, two outputs on standard output or in one file, or a page for
    /// standard output.
    pub fn check(&self) -> Result<(), UsageError> {
        if self.results.len() > RESULTS_MAX {
            return Err(UsageError::new(format!(
                "{} results are too many for one report: give at most {RESULTS_MAX}",
                self.results.len()
            )));
        }
        let page = self.html.clone().map(Sink::File);
        let junit = self.junit.clone().map(Sink::File);
        if self.html.as_ref().is_some_and(|path| path.as_os_str() == "-") {
            return Err(UsageError::new("--html takes a file; write the page to one"));
        }
        let outputs = [
            ("--html", page.as_ref()),
            ("--json", self.json.as_ref()),
            ("--csv", self.csv.as_ref()),
            ("--md", self.md.as_ref()),
            ("--junit", junit.as_ref()),
        ];
        let mut known: Vec<(&str, &Sink)> = Vec::new();
        for (option, sink) in outputs.into_iter().filter_map(|(name, sink)| Some((name, sink?))) {
            if matches!(sink, Sink::File(path) if path.as_os_str().is_empty()) {
                return Err(UsageError::new(format!("{option} needs the name of a file")));
            }
            if let Some((other, _)) = known.iter().find(|(_, taken)| *taken == sink) {
                let place = match sink {
                    Sink::Stdout => "standard output".to_owned(),
                    Sink::File(path) => path.display().to_string(),
                };
                return Err(UsageError::new(format!(
                    "{other} and {option} both go to {place}; give different files"
                )));
            }
            known.push((option, sink));
        }
        Ok(())
    }

    /// Returns whether something is written in place of the text.
    pub fn has_outputs(&self) -> bool {
        let files = self.html.is_some() || self.junit.is_some();
        files || self.json.is_some() || self.csv.is_some() || self.md.is_some()
    }
}
