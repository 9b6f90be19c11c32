//! `loadstone runs gate`: reports whether the results of one name have become worse.

use super::to_read;
use crate::exit::{Code, Failure};
use crate::files;
use args::{HistoryArgs, Sink};
use record::compare::Judgement;
use record::history::assemble;
use report::printable;

/// Judges the stored runs with this name. Exit code 1: worse; 4: too few runs.
pub(super) fn gate(args: &HistoryArgs) -> Result<Code, Failure> {
    let since = args.since(crate::wall_clock::unix_seconds())?;
    let store = to_read(&args.store)?;
    let runs = store.history(&args.name, since, args.last).map_err(super::refused)?;
    if runs.is_empty() {
        return Err(Failure::usage(format!(
            "no finished run in the store has the name {}; loadstone runs list shows the names",
            printable(&args.name, 200)
        )));
    }
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
