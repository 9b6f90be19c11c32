//! A process of the server ended while many connections pressed: does one of them do that by itself?

use super::Plan;
use crate::search::Suspect;
use crate::{PLAIN_DEADLINE, Runner, habits};
use dialogue::talk::{Move, TalkScript};
use torture::case::Case;
use torture::judge;
use torture::judge::{FailureKind, Judgement, TestOutcome};
use torture::result::CaseResult;
use units::show;

/// Different conversations of one round that are tried by themselves.
const KINDS_MAX: usize = 4;

impl Runner<'_> {
    /// Tries each of the conversations that pressed by itself, and keeps the bytes of the one that did
    /// it; where none did, those of the most frequent one, and that it takes many.
    pub(crate) fn blame_pressure(&mut self, case: &Case, result: &mut CaseResult) {
        if self.settings.search.is_none() {
            return;
        }
        let mut kinds = kinds(&self.pressed);
        if kinds.is_empty() {
            // overload is made of plain requests
            let plain = habits::plain_request(self.target, "");
            kinds.push((0, self.bare(vec![Move::Send(plain)], PLAIN_DEADLINE)));
        }
        let Some((count, first)) = kinds.first().cloned() else { return };
        self.renew_budget();
        let mut tried = result.recovery != Some(None);
        for (_, script) in kinds.into_iter().take(KINDS_MAX) {
            if !tried {
                break;
            }
            let name = "a connection that pressed".to_owned();
            let suspect = Suspect { case: case.id.clone(), name, script, talk: None };
            match self.mostly(|runner| runner.lost_after(std::slice::from_ref(&suspect))) {
                Some(true) => return self.accuse(case, &suspect, result),
                Some(false) => {}
                None => tried = false,
            }
        }
        let name = match count {
            0 => "many plain requests".to_owned(),
            count => format!("{} connections at once", show::count(count)),
        };
        let why = match tried {
            true => {
                "a process of the server ended under them together: one by itself does not end it"
            }
            false => "a process of the server ended under them together: none was tried by itself",
        };
        self.keep_pressed(case, &name, first, why, result);
    }

    /// What the connections said that the server does not get over.
    pub(crate) fn keep_leaking(&mut self, case: &Case, result: &mut CaseResult) {
        let kinds = kinds(&self.pressed);
        let by_itself = |runner: &mut Self, (count, script): &(u64, TalkScript)| {
            if runner.case_is_over() {
                return false;
            }
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            let leaks = runner.leaks_again(case, script, count, &mut None);
            leaks.is_some_and(|leaks| !leaks.is_empty())
        };
        let guilty = match kinds.len() {
            0 | 1 => None,
            _ => kinds.iter().take(KINDS_MAX).find(|kind| by_itself(self, kind)).cloned(),
        };
        let Some((count, script)) = guilty.or_else(|| kinds.into_iter().next()) else { return };
        let name = format!("{} connections at once", show::count(count));
        let why = "what such connections take does not come back";
        self.keep_pressed(case, &name, script, why, result);
    }

    fn keep_pressed(
        &mut self,
        case: &Case,
        name: &str,
        script: TalkScript,
        why: &str,
        result: &mut CaseResult,
    ) {
        let start = self.world.now();
        let script = TalkScript { start, deadline: PLAIN_DEADLINE, ..script };
        let talk = self.hold(script.clone());
        let judgement = Judgement {
            outcome: result.outcome.max(TestOutcome::Fail),
            seen: judge::seen(&talk),
            expected: "plain requests answered as before".to_owned(),
            why: why.to_owned(),
            kind: Some(FailureKind::Lost),
        };
        self.keep_culprit(case, name, 1, (&script, talk), judgement, result);
    }
}

/// What was said, each once, with how many said it; the most frequent first.
fn kinds(plans: &[Plan]) -> Vec<(u64, TalkScript)> {
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
