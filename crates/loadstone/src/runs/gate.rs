//! `loadstone runs gate`: the history of one name, and whether it got worse.

use super::to_read;
use crate::args::{HistoryArgs, Sink};
use crate::exit::{Code, Failure};
use crate::files;
use record::compare::Judgement;
use record::history::{HistoryRun, assemble};
use report::printable;
use store::Progress;

/// Judges the stored runs with this name. Exit code 1: worse; 4: too few runs.
pub(super) fn gate(args: &HistoryArgs) -> Result<Code, Failure> {
    let filter = args.filter(crate::wall_clock::unix_seconds())?;
    let store = to_read(&args.store)?;
    let entries = store.list(&filter).map_err(super::refused)?;
    // the filter matches a part of a name
    let mut runs: Vec<HistoryRun> = entries
        .into_iter()
        .filter(|entry| entry.name == args.name && entry.progress == Progress::Finished)
        .filter_map(|entry| {
            let headline = entry.headline?;
            let started_unix_s = entry.started_unix_s;
            Some(HistoryRun { id: entry.id.to_string(), started_unix_s, headline })
        })
        .take(args.last)
        .collect();
    if runs.is_empty() {
        return Err(Failure::usage(format!(
            "no finished run in the store has the name {}; loadstone runs list shows the names",
            printable(&args.name, 200)
        )));
    }
    runs.reverse();
    let record = assemble(&args.name, &runs);
    if let Some(sink) = &args.json {
        files::write_to(sink, &report::history::json(&record))
            .map_err(|error| Failure::not_written(&error))?;
    }
    if args.json != Some(Sink::Stdout) {
        files::write_stdout(&report::history::text(&record))
            .map_err(|error| Failure::not_written(&error))?;
    }
    Ok(match record.judgement {
        Judgement::Worse => Code::Missed,
        Judgement::TooFew => Code::Invalid,
        Judgement::Better | Judgement::NoneShown => Code::Done,
    })
}
