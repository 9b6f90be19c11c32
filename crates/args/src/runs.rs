//! The options of `runs`, which manages stored results.

use super::store::StoreArgs;
use super::{Sink, UsageError, parse};
use ::store::{Filter, ResultKind};
use clap::{Args, Subcommand, ValueEnum};
use record::history::{RUNS_LAST, RUNS_MAX};
use std::path::PathBuf;
use time::{Date, Month, OffsetDateTime, Time};
use units::ParseError;

/// Manage stored results: list, show, tag, delete, export, import
///
/// A result is named by its id (run-12, or 12), by a tag, or counted from the last one: last,
/// last~1 for the one before it.
#[derive(Args, Clone, Debug)]
pub struct RunsArgs {
    #[command(subcommand)]
    pub task: RunsTask,
}

#[derive(Subcommand, Clone, Debug)]
pub enum RunsTask {
    /// List stored results, latest first
    List(ListArgs),
    /// Show the report of a stored result
    Show(ShowArgs),
    /// Find the latest change in the history of one name: exit code 1 if it is a worsening, 4 with
    /// fewer than eight runs
    Gate(HistoryArgs),
    /// Tag a result
    Tag {
        /// The result: an id, a tag or last
        result: String,
        /// The tag; it is removed from any other result
        tag: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Remove a tag; the result stays
    Untag {
        /// The tag
        tag: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Delete results by their ids
    Delete {
        /// Ids as the list shows them; tags and last are not taken
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Allow several results to be deleted at once
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Export results to one file, which is itself a store
    Export {
        /// The file to create
        file: PathBuf,
        /// The results [default: all]
        #[arg(value_name = "RESULT")]
        results: Vec<String>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Import results from an exported file or another store
    Import {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        store: StoreArgs,
    },
}

#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Only results whose name contains this text
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Only results with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only results of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<KindName>,
    /// Only results begun since: 36h (ago), 2026-11-20, or 2026-11-20T14:30 (UTC)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only the last N results
    #[arg(short = 'n', long, value_parser = parse::count::<usize>, value_name = "N")]
    count: Option<usize>,
    /// Write the list as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Args, Clone, Debug)]
pub struct HistoryArgs {
    /// Name of the runs, as the list shows it: a URL or a plan file
    pub name: String,
    /// Only the last N runs
    #[arg(long, value_parser = parse::count::<usize>, value_name = "N")]
    #[arg(default_value_t = RUNS_LAST)]
    pub last: usize,
    /// Only runs begun since: 30d (ago), 2026-11-20, or 2026-11-20T14:30 (UTC); gives an accepted
    /// change a new start
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Write the history and its changes as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl HistoryArgs {
    /// # Errors
    /// Fails for an invalid time, or too many runs.
    pub fn since(&self, now_unix_s: f64) -> Result<Option<f64>, UsageError> {
        if self.last > RUNS_MAX {
            return Err(UsageError::new(format!(
                "--last {}: at most {RUNS_MAX} runs are read",
                self.last
            )));
        }
        Ok(self.since.as_deref().map(|text| since(text, now_unix_s)).transpose()?)
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindName {
    Run,
    Ramp,
    Compare,
    Torture,
}

#[derive(Args, Clone, Debug)]
pub struct ShowArgs {
    /// The result: an id, a tag or last
    #[arg(default_value = "last")]
    pub result: String,
    /// Write the full result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    /// Write the time series, the table of a ramp or a comparison, or the health checks of a
    /// torture, as CSV
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub csv: Option<Sink>,
    /// Print the verdict and the headline only
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Print the full table of quantiles
    #[arg(long)]
    pub percentiles: bool,
    /// Print the full text report
    #[arg(long, conflicts_with = "quiet")]
    pub full: bool,
    /// Print only the plan of the measurement, with secrets masked
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub plan: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl ListArgs {
    /// # Errors
    /// Fails for an invalid time.
    pub fn filter(&self, now_unix_s: f64) -> Result<Filter, UsageError> {
        let since = self.since.as_deref().map(|text| since(text, now_unix_s)).transpose();
        Ok(Filter {
            name: self.name.clone(),
            tag: self.tag.clone(),
            kind: self.kind.map(|kind| match kind {
                KindName::Run => ResultKind::Run,
                KindName::Ramp => ResultKind::Ramp,
                KindName::Compare => ResultKind::Compare,
                KindName::Torture => ResultKind::Torture,
            }),
            since_unix_s: since?,
            count_max: self.count,
        })
    }
}

impl ShowArgs {
    /// # Errors
    /// Fails for JSON and CSV both on standard output, or in one file.
    pub fn check(&self) -> Result<(), UsageError> {
        match (&self.json, &self.csv) {
            (Some(Sink::Stdout), Some(Sink::Stdout)) => Err(UsageError::new(
                "--json - and --csv - both need standard output; give one of them a file",
            )),
            (json, csv) => super::outputs::check_distinct_files(&[
                ("--json", json.as_ref().and_then(Sink::file)),
                ("--csv", csv.as_ref().and_then(Sink::file)),
            ]),
        }
    }
}

/// Parses an instant in seconds since 1970-01-01 UTC: a span back from now, or a date with or
/// without a time of day.
fn since(text: &str, now_unix_s: f64) -> Result<f64, ParseError> {
    let text = text.trim();
    let span = text.strip_suffix("ago").unwrap_or(text).trim_end();
    if let Some(days) = span.strip_suffix('d').and_then(|days| days.parse::<f64>().ok()) {
        return Ok(now_unix_s - days.max(0.0) * 86_400.0);
    }
    if let Ok(span) = units::parse_duration(span) {
        return Ok(now_unix_s - span.as_secs_f64());
    }
    instant(text).map(|at| at.unix_timestamp() as f64).ok_or_else(|| {
        ParseError(format!(
            "--since: {} is not a time; write 36h, 7d, 2026-11-20 or 2026-11-20T14:30 (UTC)",
            units::quoted(text)
        ))
    })
}

fn instant(text: &str) -> Option<OffsetDateTime> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i32>().ok());
    let year = date.next()??;
    let month = date.next()??;
    let day = date.next()??;
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()?;
    let mut time = time.trim_end_matches('Z').splitn(3, ':').map(|part| part.parse::<u8>().ok());
    let hour = time.next()??;
    let minute = time.next()??;
    let second = time.next().unwrap_or(Some(0))?;
    let time = Time::from_hms(hour, minute, second).ok()?;
    Some(OffsetDateTime::new_utc(date, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_takes_spans_and_dates() {
        let now = 1_795_235_590.0;
        for (text, back) in
            [("36h ago", 129_600.0), ("10s", 10.0), ("7d", 604_800.0), ("90m", 5_400.0)]
        {
            assert!((since(text, now).unwrap() - (now - back)).abs() < 1e-6, "{text}");
        }
        for (text, at) in [
            ("2026-11-20", 1_795_132_800),
            ("2026-11-20T14:30", 1_795_185_000),
            ("2026-11-20 14:30:05Z", 1_795_185_005),
        ] {
            assert_eq!(since(text, now).unwrap() as i64, at, "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "2026-11-20T25:00", "2026-11", "-5d-"] {
            let error = since(text, now).unwrap_err();
            assert!(error.0.contains("write 36h, 7d, 2026-11-20"), "{text}: {}", error.0);
        }
    }
}
