//! Conversations that go on from one play to the next, beside whatever else is played: what takes
//! minutes by itself does not keep everything else waiting.

use super::line::Conversation;
use super::{Talk, TalkScript};
use units::Nanos;

/// Conversations beside all plays. They are of no concern to a director: it neither hears of them nor
/// finds them among those that it counts, and the time of a case does not end them.
#[derive(Debug, Default)]
pub struct Carried {
    fresh: Vec<TalkScript>,
    lines: Vec<Option<Conversation>>,
    over: Vec<(usize, Talk)>,
    ends: bool,
}

impl Carried {
    /// Takes conversations on, in place of those that were: the next play begins them. Their places in
    /// this list tell them apart.
    pub fn begin(&mut self, scripts: Vec<TalkScript>) {
        debug_assert!(self.is_empty(), "the former ones are over");
        *self = Carried { fresh: scripts, ..Carried::default() };
    }

    /// Nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.lines.iter().all(Option::is_none)
    }

    /// Those that are over since this was asked last, each with its place.
    pub fn take_over(&mut self) -> Vec<(usize, Talk)> {
        std::mem::take(&mut self.over)
    }

    /// The next play ends them all.
    pub fn let_go(&mut self) {
        self.fresh.clear();
        self.ends = true;
    }

    /// What a play takes over, and whether it is to end it. `patience` as in [`super::Conversations::patient`].
    pub(super) fn pick_up(&mut self, patience: Nanos) -> (Vec<Option<Conversation>>, bool) {
        let fresh = std::mem::take(&mut self.fresh).into_iter().map(|mut script| {
            script.deadline += Nanos(patience.0 / 4);
            Some(Conversation::new(script, patience))
        });
        let mut lines = std::mem::take(&mut self.lines);
        lines.extend(fresh);
        (lines, std::mem::take(&mut self.ends))
    }

    /// What a play leaves behind.
    pub(super) fn put_down(
        &mut self,
        lines: impl Iterator<Item = Option<Conversation>>,
        over: Vec<(usize, Talk)>,
    ) {
        self.lines = lines.collect();
        self.over.extend(over);
    }
}
