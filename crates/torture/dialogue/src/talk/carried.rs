//! Conversations carried from one play to the next, alongside everything else, so that long waits
//! do not delay other work.

use super::line::Conversation;
use super::{Talk, TalkScript};
use units::Nanos;

/// Conversations alongside all plays. A director neither sees nor counts them, and the time limit
/// of a case does not end them.
#[derive(Debug, Default)]
pub struct Carried {
    fresh: Vec<TalkScript>,
    lines: Vec<Option<Conversation>>,
    over: Vec<(usize, Talk)>,
    ends: bool,
}

impl Carried {
    /// Replaces the conversations: the next play starts them. Their positions in this list identify
    /// them.
    pub fn begin(&mut self, scripts: Vec<TalkScript>) {
        debug_assert!(self.is_empty(), "the previous conversations have ended");
        *self = Carried { fresh: scripts, ..Carried::default() };
    }

    /// Returns whether none is active.
    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.lines.iter().all(Option::is_none)
    }

    /// Takes those completed since the previous call, each with its position.
    pub fn take_over(&mut self) -> Vec<(usize, Talk)> {
        std::mem::take(&mut self.over)
    }

    /// Makes the next play end them all.
    pub fn release(&mut self) {
        self.fresh.clear();
        self.ends = true;
    }

    /// Passes them to a play, with whether it must end them. `patience` as in
    /// [`super::Conversations::patient`].
    pub(super) fn pass_to_play(&mut self, patience: Nanos) -> (Vec<Option<Conversation>>, bool) {
        let fresh = std::mem::take(&mut self.fresh).into_iter().map(|mut script| {
            script.deadline += Nanos(patience.0 / 4);
            Some(Conversation::new(script, patience))
        });
        let mut lines = std::mem::take(&mut self.lines);
        lines.extend(fresh);
        (lines, std::mem::take(&mut self.ends))
    }

    /// Takes them back from a play.
    pub(super) fn return_carried(
        &mut self,
        lines: impl Iterator<Item = Option<Conversation>>,
        over: Vec<(usize, Talk)>,
    ) {
        self.lines = lines.collect();
        self.over.extend(over);
    }
}
