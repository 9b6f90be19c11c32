//! `loadstone torture judge`: judges recorded conversations by the rules of this program; nothing
//! is sent.

use crate::exit::{Code, Failure};
use crate::files;
use args::JudgeArgs;
use record::document;
use record::torture::rejudged::{Rejudged, RejudgedRecord};
use report::torture::rejudged_text;
use std::path::{Path, PathBuf};
use torture::case::Case;
use torture::judge;
use world::evidence;

/// # Errors
/// Fails for evidence that cannot be read, and for a folder without transcripts.
pub(super) fn rejudge(args: &JudgeArgs, cases: &[Case]) -> Result<Code, Failure> {
    files::check_results(args.json.as_ref(), [])?;
    let mut rows = Vec::new();
    for path in transcripts(&args.folder)? {
        let kept = evidence::transcript(&path)?;
        let case = cases.iter().find(|case| case.id == kept.case);
        let now = case
            .and_then(|case| judge::again(case, &kept.name, &kept.script, &kept.talk, &kept.plain));
        rows.push(Rejudged {
            file: path.display().to_string(),
            kept_by: kept.loadstone,
            case: kept.case,
            name: kept.name,
            versions: (kept.version, case.map(|case| case.version)),
            then: kept.judgement,
            now,
        });
    }
    let record = RejudgedRecord::new(&rows);
    let json = args.json.as_ref().map(|sink| (sink, document::printed(&record)));
    files::write_results(json, [], || rejudged_text(&record))?;
    let judged = rows.iter().filter_map(|row| row.now.as_ref());
    let bad = judged.clone().any(|judgement| judgement.outcome.is_finding());
    Ok(match (judged.count(), bad) {
        (0, _) => Code::NoConnection,
        (_, true) => Code::Missed,
        (_, false) => Code::Done,
    })
}

/// Returns the transcripts of a run, or of one failure.
fn transcripts(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let one = folder.join("wire.lsw");
    if one.is_file() {
        return Ok(vec![one]);
    }
    let wire = folder.join("wire");
    let mut found = if wire.is_dir() { evidence::entries(&wire)? } else { Vec::new() };
    found.retain(|path| path.extension().is_some_and(|kind| kind == "lsw"));
    if found.is_empty() {
        let text = format!("{} contains no transcripts: name a run directory", folder.display());
        return Err(Failure { code: Code::NoConnection, text });
    }
    Ok(found)
}
