//! The evidence trail: what was said lately, and what had been said when the server was first not there.

use crate::life::Struck;
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use sample::Blame;
use std::collections::VecDeque;
use torture::case::Case;
use torture::record::Execution;

/// Conversations before a failure that may have done it, and bytes of theirs that are kept.
pub const TAIL_MAX: usize = 32;
const TAIL_BYTES_MAX: usize = 8 << 20;

/// A conversation that may have done it.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub(crate) case: String,
    pub(crate) name: String,
    pub(crate) script: TalkScript,
    /// What came of it; `None` where that was not kept.
    pub(crate) talk: Option<Talk>,
}

impl Suspect {
    /// A conversation of a case that is over.
    pub(crate) fn of(case: &Case, name: &str, script: TalkScript, talk: Talk) -> Suspect {
        Suspect { case: case.id.clone(), name: name.to_owned(), script, talk: Some(talk) }
    }
}

#[derive(Debug)]
pub(crate) struct Trail {
    /// Somebody searches: otherwise nothing is kept.
    is_kept: bool,
    last: VecDeque<Suspect>,
    /// What had been said when the server was first not there in the case under way.
    before_loss: Option<Vec<Suspect>>,
}

impl Trail {
    pub(crate) fn new(is_kept: bool) -> Trail {
        Trail { is_kept, last: VecDeque::new(), before_loss: None }
    }

    pub(crate) fn begin_case(&mut self) {
        self.before_loss = None;
    }

    /// The server was not there when a conversation of the case was to begin.
    pub(crate) fn lost_touch(&self) -> bool {
        self.before_loss.is_some()
    }

    /// A conversation is over, and struck somebody of the server or not.
    pub(crate) fn hear(&mut self, execution: &Execution<'_>, struck: Struck) {
        if !self.is_kept {
            return;
        }
        match execution.talk.end {
            TalkEnd::Unconnected(class) if class.blame() == Blame::Driver => {}
            TalkEnd::Unconnected(_) => self.lose(),
            _ => {
                let (script, talk) = (execution.script.clone(), execution.talk.clone());
                self.add(Suspect::of(execution.case, execution.name, script, talk));
            }
        }
        if struck != Struck::Nobody {
            self.lose();
        }
    }

    /// A conversation that nobody heard of, and that may be why the server is lost.
    pub(crate) fn add(&mut self, suspect: Suspect) {
        if !self.is_kept {
            return;
        }
        self.last.push_back(suspect);
        let length = |step: &Move| match step {
            Move::Send(bytes) => bytes.len(),
            _ => 0,
        };
        let size = |one: &Suspect| -> usize { one.script.steps.iter().map(length).sum() };
        let mut bytes: usize = self.last.iter().map(size).sum();
        while self.last.len() > TAIL_MAX || bytes > TAIL_BYTES_MAX {
            bytes -= self.last.pop_front().map_or(0, |first| size(&first));
        }
    }

    /// The server is lost: one of those that were last did it.
    fn lose(&mut self) {
        self.before_loss.get_or_insert_with(|| self.last.iter().cloned().collect());
    }

    /// What was said before now, the last of it last.
    pub(crate) fn said(&self) -> Vec<Suspect> {
        self.last.iter().cloned().collect()
    }

    /// What was said before the loss, or before now where nobody was lost.
    pub(crate) fn take_tail(&mut self) -> Vec<Suspect> {
        self.before_loss.take().unwrap_or_else(|| self.said())
    }

    /// The last of what was said before the loss, or of all.
    pub(crate) fn take_last(&mut self) -> Option<Suspect> {
        let before = self.before_loss.take().and_then(|mut tail| tail.pop());
        before.or_else(|| self.last.back().cloned())
    }

    /// What was tried in a search is no part of what was said before.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
    }
}
