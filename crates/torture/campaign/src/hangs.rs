//! Hung requests of this run whose clients have disconnected; the server may not recover from them.

use dialogue::talk::{Talk, TalkEnd, TalkScript};
use torture::judge;
use torture::judge::TestOutcome;
use torture::record::Execution;

/// A hung request, as sent.
#[derive(Clone, Debug)]
pub(crate) struct HungRequest {
    pub(crate) case: String,
    pub(crate) name: String,
    pub(crate) script: TalkScript,
    pub(crate) talk: Talk,
    /// True if a conversation that started after the hang got a response: the server had not
    /// stopped.
    pub(crate) survived: bool,
}

/// Hung requests of this run, the first of each case.
#[derive(Debug, Default)]
pub(crate) struct HangsSeen(Vec<HungRequest>);

impl HangsSeen {
    /// Records the conversation if it hung and the case has no hung request yet.
    pub(crate) fn note_talk(&mut self, execution: &Execution<'_>) {
        let start = execution.talk.start;
        if execution.talk.replies.whole() > 0 {
            let before = |one: &&mut HungRequest| one.talk.start + one.talk.over <= start;
            self.0.iter_mut().filter(before).for_each(|one| one.survived = true);
        }
        let hung = execution.judgement.outcome == TestOutcome::Fail
            && execution.talk.end == TalkEnd::Silent
            && (judge::is_hang(execution.talk) || judge::is_unfinished(execution.talk));
        let id = &execution.case.id;
        if hung && !self.0.iter().any(|one| one.case == *id) {
            let (name, script) = (execution.name.to_owned(), execution.script.clone());
            let talk = execution.talk.clone();
            let case = id.clone();
            self.0.push(HungRequest { case, name, script, talk, survived: false });
        }
    }

    /// Returns at most `most` of them, in order.
    pub(crate) fn first(&self, most: usize) -> Vec<HungRequest> {
        self.0.iter().take(most).cloned().collect()
    }

    /// Returns the hung request of a case.
    pub(crate) fn of_case(&self, id: &str) -> Option<&HungRequest> {
        self.0.iter().find(|one| one.case == id)
    }
}
