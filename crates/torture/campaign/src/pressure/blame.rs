//! A process of the server exited under many connections: tests whether a single connection causes
//! it.

use super::Plan;
use crate::attempts::Rate;
use crate::search::SearchEnd;
use crate::trail::Suspect;
use crate::{PLAIN_DEADLINE, Runner, culprit, scripts, search};
use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::judge;
use torture::judge::{FailureKind, Judgement, TestOutcome};
use torture::result::{CaseResult, Recovery};
use units::show;

/// Maximum number of different conversations of a round tested alone.
pub(crate) const KINDS_MAX: usize = 4;

/// Tests each conversation of the load separately, and records the bytes of the culprit; without a
/// culprit, the bytes of the most frequent one, with a note that many are needed.
pub(crate) fn blame(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) {
    if !runner.budget.is_wanted() {
        return;
    }
    let mut kinds = kinds(runner.pressed.plans());
    if kinds.is_empty() {
        // overload consists of plain requests
        kinds.push((0, scripts::plain(runner)));
    }
    let Some((count, first)) = kinds.first().cloned() else { return };
    runner.budget.renew();
    let mut ended = (result.recovery == Recovery::Never).then_some(SearchEnd::Lost);
    for (_, script) in kinds.into_iter().take(KINDS_MAX) {
        if ended.is_some() {
            break;
        }
        let name = "a connection of the load".to_owned();
        let suspect = Suspect { case: case.id.clone(), name, script, talk: None };
        match search::loss_rate(runner, std::slice::from_ref(&suspect)) {
            Ok(found) if found.rate.is_usual() => {
                return culprit::blame_conversation(runner, case, &suspect, found, result);
            }
            Ok(_) => {}
            Err(end) => ended = Some(end),
        }
    }
    let name = match count {
        0 => "many plain requests".to_owned(),
        count => format!("{} connections at once", show::count(count)),
    };
    let single = match ended {
        None => "a single one does not cause it",
        Some(SearchEnd::Spent) => "single ones were not all tested: the search was stopped early",
        Some(SearchEnd::Lost) => "single ones were not all tested: the server did not restart",
    };
    let why = format!("a process of the server exited under all of them; {single}");
    keep(runner, case, &name, first, &why, result);
}

/// Records the bytes of a conversation of the load.
pub(crate) fn keep(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    script: TalkScript,
    why: &str,
    result: &mut CaseResult,
) {
    let start = runner.now();
    let script = TalkScript { start, deadline: PLAIN_DEADLINE, ..script };
    let talk = runner.hold(script.clone());
    let judgement = Judgement {
        outcome: result.outcome.max(TestOutcome::Fail),
        seen: judge::seen(&talk),
        expected: "plain requests get their usual response".to_owned(),
        why: why.to_owned(),
        kind: Some(FailureKind::Lost),
        ..Judgement::default()
    };
    culprit::keep(runner, case, name, Rate::ONCE, (&script, talk), judgement, result);
}

/// Returns the distinct conversations with their counts, most frequent first.
pub(crate) fn kinds(plans: &[Plan]) -> Vec<(u64, TalkScript)> {
    let mut kinds: Vec<(u64, TalkScript)> = Vec::new();
    for (_, script) in plans.iter().flat_map(|plan| &plan.scripts) {
        match kinds.iter_mut().find(|(_, known)| known.steps == script.steps) {
            Some((count, _)) => *count += 1,
            None => kinds.push((1, script.clone())),
        }
    }
    kinds.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    kinds
}
