//! Requests that hung in this run, whose clients have left: what a server may not get over.

use dialogue::talk::{Talk, TalkEnd, TalkScript};
use torture::judge;
use torture::judge::TestOutcome;
use torture::record::Execution;

/// A request that hung, as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct HungRequest {
    pub(crate) case: String,
    pub(crate) name: String,
    pub(crate) script: TalkScript,
    pub(crate) talk: Talk,
}

/// Requests that hung in this run, the first of each case.
#[derive(Debug, Default)]
pub(crate) struct HangsSeen(Vec<HungRequest>);

impl HangsSeen {
    /// Keeps it where it hung and the case has none yet.
    pub(crate) fn see(&mut self, execution: &Execution<'_>) {
        let hung = execution.judgement.outcome == TestOutcome::Fail
            && execution.talk.end == TalkEnd::Silent
            && judge::is_hang(execution.talk);
        let id = &execution.case.id;
        if hung && !self.0.iter().any(|one| one.case == *id) {
            let (name, script) = (execution.name.to_owned(), execution.script.clone());
            let talk = execution.talk.clone();
            self.0.push(HungRequest { case: id.clone(), name, script, talk });
        }
    }

    /// So many of them at most, in their order.
    pub(crate) fn first(&self, most: usize) -> Vec<HungRequest> {
        self.0.iter().take(most).cloned().collect()
    }

    /// The one of a case.
    pub(crate) fn of_case(&self, id: &str) -> Option<&HungRequest> {
        self.0.iter().find(|one| one.case == id)
    }
}
