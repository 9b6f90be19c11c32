//! The evidence trail: recent conversations, and those before the server was first lost.

use crate::life::AffectedPart;
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use sample::Blame;
use std::collections::VecDeque;
use torture::case::Case;
use torture::record::Execution;

/// Maximum number of suspected conversations before a failure, and of their bytes.
pub const TAIL_MAX: usize = 32;
const TAIL_BYTES_MAX: usize = 8 << 20;

/// A suspected conversation.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub(crate) case: String,
    pub(crate) name: String,
    pub(crate) script: TalkScript,
    /// Its result; `None` if it was not kept.
    pub(crate) talk: Option<Talk>,
}

impl Suspect {
    /// A completed conversation of a case.
    pub(crate) fn of(case: &Case, name: &str, script: TalkScript, talk: Talk) -> Suspect {
        Suspect { case: case.id.clone(), name: name.to_owned(), script, talk: Some(talk) }
    }
}

#[derive(Debug)]
pub(crate) struct Trail {
    /// Whether conversations are kept, because a search may follow.
    is_kept: bool,
    last: VecDeque<Suspect>,
    /// The conversations before the server was first lost in the current case.
    before_loss: Option<Vec<Suspect>>,
}

impl Trail {
    pub(crate) fn new(is_kept: bool) -> Trail {
        Trail { is_kept, last: VecDeque::new(), before_loss: None }
    }

    pub(crate) fn begin_case(&mut self) {
        self.before_loss = None;
    }

    /// Returns whether the server was gone when a conversation of the case was to start.
    pub(crate) fn was_lost(&self) -> bool {
        self.before_loss.is_some()
    }

    /// Adds a completed conversation, with its effect on the server.
    pub(crate) fn observe(&mut self, execution: &Execution<'_>, affected: AffectedPart) {
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
        if affected != AffectedPart::Nothing {
            self.lose();
        }
    }

    /// Adds an unreported conversation that may have made the server fail.
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

    /// Marks the loss of the server: one of the last conversations caused it.
    fn lose(&mut self) {
        self.before_loss.get_or_insert_with(|| self.last.iter().cloned().collect());
    }

    /// Returns the conversations so far, in order.
    pub(crate) fn suspects(&self) -> Vec<Suspect> {
        self.last.iter().cloned().collect()
    }

    /// Returns the conversations before the loss, or all without a loss.
    pub(crate) fn take_tail(&mut self) -> Vec<Suspect> {
        self.before_loss.take().unwrap_or_else(|| self.suspects())
    }

    /// Returns the last such conversation before the loss, or of all.
    pub(crate) fn take_last(&mut self, fits: impl Fn(&Talk) -> bool) -> Option<Suspect> {
        let own = |suspect: &&Suspect| suspect.talk.as_ref().is_none_or(&fits);
        self.take_tail().iter().rev().find(own).cloned()
    }

    /// Discards conversations of a search.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
    }
}
