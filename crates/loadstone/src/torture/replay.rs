//! `loadstone torture replay`: sends failures again.

use super::scene;
use crate::exit::{Code, Failure};
use crate::files;
use args::ReplayArgs;
use campaign::{Settings, Timing, Watcher, Watchers};
use record::document;
use record::torture::replay::{Replay, ReplayRecord, ReplayRow};
use report::torture::replay_text;
use torture::case::Case;
use torture::result::{ReplayResult, ReplayVerdict};
use world::evidence;

/// # Errors
/// Fails for evidence that cannot be read, or a server that may not be tested.
pub(super) fn replay(args: &ReplayArgs, cases: &[Case]) -> Result<Code, Failure> {
    files::check_results(args.json.as_ref(), [])?;
    let folders = evidence::folders(&args.again.folder)?;
    let kept = evidence::read(&folders, cases)?;
    let mut scene = scene::scene(&args.again, &kept)?;
    let timing = if args.timing == "asap" { Timing::Asap } else { Timing::Kept };
    let failures: Vec<campaign::Failure> = kept.iter().map(|one| one.failure.clone()).collect();
    let mut writer = scene.writer();
    let mut watchers = Watchers::default();
    watchers.0.extend(writer.iter_mut().map(|one| one as &mut dyn Watcher));
    let result = campaign::replay(
        &scene.reached.target,
        &Settings::default(),
        &failures,
        (args.times, timing),
        &mut scene.sockets,
        &mut watchers,
    );
    let code = exit_code(&result);
    scene.end(result.ended_early.clone(), code);
    let mut notes: Vec<String> = kept.iter().flat_map(|one| one.notes.clone()).collect();
    notes.sort();
    notes.dedup();
    let rows: Vec<ReplayRow<'_>> = kept
        .iter()
        .enumerate()
        .map(|(index, one)| ReplayRow {
            folder: one.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            kept: &one.failure.transcript,
            version: one.failure.case.version,
            row: result.rows.get(index),
        })
        .collect();
    let (target, class) = (scene.url.as_str(), scene.reached.class);
    let replay = Replay { target, class, rows: &rows, notes: &notes, result: &result };
    let record = ReplayRecord::new(&replay);
    let json = args.json.as_ref().map(|sink| (sink, document::printed(&record)));
    files::write_results(json, [], || replay_text(&record))?;
    Ok(code)
}

fn exit_code(result: &ReplayResult) -> Code {
    let is = |verdict: ReplayVerdict| result.rows.iter().any(|row| row.verdict == verdict);
    match result {
        ReplayResult { interrupted: true, .. } => Code::Interrupted,
        ReplayResult { rows, .. } if rows.is_empty() => Code::NoConnection,
        ReplayResult { ended_early: Some(_), .. } => Code::Invalid,
        _ if is(ReplayVerdict::Failing) || is(ReplayVerdict::Flaky) => Code::Missed,
        _ if is(ReplayVerdict::Unlearned) => Code::NoConnection,
        _ => Code::Done,
    }
}
