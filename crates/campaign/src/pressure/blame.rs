//! A process of the server ended while many connections pressed: does one of them do that by itself?

use super::Plan;
use crate::trail::Suspect;
use crate::{PLAIN_DEADLINE, Runner, culprit, habits, search};
use dialogue::talk::{Move, TalkScript};
use torture::case::Case;
use torture::judge;
use torture::judge::{FailureKind, Judgement, TestOutcome};
use torture::result::CaseResult;
use units::show;

/// Different conversations of one round that are tried by themselves.
pub(crate) const KINDS_MAX: usize = 4;

/// Tries each of the conversations that pressed by itself, and keeps the bytes of the one that did
/// it; where none did, those of the most frequent one, and that it takes many.
pub(crate) fn blame(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) {
    if !runner.budget.is_wanted() {
        return;
    }
    let mut kinds = kinds(runner.pressed.plans());
    if kinds.is_empty() {
        // overload is made of plain requests
        let plain = habits::plain_request(runner.target, "");
        kinds.push((0, runner.bare(vec![Move::Send(plain)], PLAIN_DEADLINE)));
    }
    let Some((count, first)) = kinds.first().cloned() else { return };
    runner.budget.renew();
    let mut tried = result.recovery != Some(None);
    for (_, script) in kinds.into_iter().take(KINDS_MAX) {
        if !tried {
            break;
        }
        let name = "a connection that pressed".to_owned();
        let suspect = Suspect { case: case.id.clone(), name, script, talk: None };
        match search::mostly(runner, |runner| {
            search::lost_after(runner, std::slice::from_ref(&suspect))
        }) {
            Some(true) => return culprit::accuse(runner, case, &suspect, result),
            Some(false) => {}
            None => tried = false,
        }
    }
    let name = match count {
        0 => "many plain requests".to_owned(),
        count => format!("{} connections at once", show::count(count)),
    };
    let why = match tried {
        true => "a process of the server ended under them together: one by itself does not end it",
        false => "a process of the server ended under them together: none was tried by itself",
    };
    keep(runner, case, &name, first, why, result);
}

/// Keeps the bytes of a conversation that pressed.
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
        expected: "plain requests answered as before".to_owned(),
        why: why.to_owned(),
        kind: Some(FailureKind::Lost),
    };
    culprit::keep(runner, case, name, 1, (&script, talk), judgement, result);
}

/// What was said, each once, with how many said it; the most frequent first.
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
