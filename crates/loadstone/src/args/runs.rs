//! The options of `runs`: what is stored, and what to do with it.

use super::store::StoreArgs;
use super::{Sink, UsageError, parse};
use ::store::{Filter, ResultKind};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use time::{Date, Month, OffsetDateTime, Time};
use units::ParseError;

/// Look at kept results: list, show, tag, delete, move
///
/// A result is named by its id (run-12, or 12), by a tag, or counted from the last one: last,
/// last~1 for the one before it.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) task: RunsTask,
}

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum RunsTask {
    /// List what is kept, the latest first
    List(ListArgs),
    /// Show the report of a result again
    Show(ShowArgs),
    /// Give a result a name of its own
    Tag {
        /// The result: an id, a tag or last
        result: String,
        /// The name; a result that had it loses it
        tag: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Take a tag away; the result stays
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
        /// Delete several at once
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Write results to one file, which is a store itself
    Export {
        /// The file to make
        file: PathBuf,
        /// The results [default: all]
        #[arg(value_name = "RESULT")]
        results: Vec<String>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Take the results of an exported file, or of another store
    Import {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        store: StoreArgs,
    },
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ListArgs {
    /// Only those with this in their name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only results of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<KindName>,
    /// Only those begun since: 36h ago, 2026-11-20, or 2026-11-20T14:30 (UTC)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// The last N
    #[arg(short = 'n', long, value_parser = parse::count::<usize>, value_name = "N")]
    count: Option<usize>,
    /// The list as JSON; with - standard output has nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) json: Option<Sink>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindName {
    Run,
    Ramp,
    Compare,
    Torture,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// The result: an id, a tag or last
    #[arg(default_value = "last")]
    pub(crate) result: String,
    /// Everything as JSON; with - standard output has nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) json: Option<Sink>,
    /// The time series, the table of a ramp or a comparison, or the probes of a torture
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) csv: Option<Sink>,
    /// Verdict and headline only
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
    /// The table of quantiles in full
    #[arg(long)]
    pub(crate) percentiles: bool,
    /// Everything in text, and not one screen of it
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) full: bool,
    /// The plan that it was measured by, secrets masked, and nothing else
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) plan: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

impl ListArgs {
    /// # Errors
    /// A time that is none.
    pub(crate) fn filter(&self, now_unix_s: f64) -> Result<Filter, UsageError> {
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
    /// JSON and CSV both on standard output.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        match (&self.json, &self.csv) {
            (Some(Sink::Stdout), Some(Sink::Stdout)) => Err(UsageError::new(
                "--json - and --csv - both need standard output for themselves; give one a file",
            )),
            _ => Ok(()),
        }
    }
}

/// An instant in seconds since 1970-01-01 UTC: a span back from now, or a date with or without a
/// time of day.
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
            "--since: {} is no time; write 36h, 7d, 2026-11-20 or 2026-11-20T14:30 (UTC)",
            units::quoted(text)
        ))
    })
}

fn instant(text: &str) -> Option<OffsetDateTime> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i32>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()?;
    let mut time = time.trim_end_matches('Z').splitn(3, ':').map(|part| part.parse::<u8>().ok());
    let (hour, minute) = (time.next()??, time.next()??);
    let second = time.next().unwrap_or(Some(0))?;
    let time = Time::from_hms(hour, minute, second).ok()?;
    Some(OffsetDateTime::new_utc(date, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_when() {
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
