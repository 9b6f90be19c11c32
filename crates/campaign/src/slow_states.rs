//! Slow states of connections: those that were tried, what became of them, and those that are held beside the
//! cases.

use dialogue::talk::{Talk, TalkEnd, TalkScript};
use units::Nanos;

/// A state in which a server waits for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SlowState {
    Silent,
    Head,
    HeadDripped,
    Body,
    BodyDripped,
    Unread,
    Sipped,
    Idle,
    Handshake,
}

impl SlowState {
    /// What it is called on the page of limits.
    pub(crate) fn text(self) -> &'static str {
        match self {
            SlowState::Silent => "silent",
            SlowState::Head => "half a head",
            SlowState::HeadDripped => "head, dripped",
            SlowState::Body => "half a body",
            SlowState::BodyDripped => "body, dripped",
            SlowState::Unread => "response not read",
            SlowState::Sipped => "response read at 1 KiB/s",
            SlowState::Idle => "idle after a response",
            SlowState::Handshake => "half a TLS handshake",
        }
    }

    /// The same without drops: only the two together tell whether a deadline is absolute.
    pub(crate) fn without_drops(self) -> Option<SlowState> {
        match self {
            SlowState::HeadDripped => Some(SlowState::Head),
            SlowState::BodyDripped => Some(SlowState::Body),
            _ => None,
        }
    }

    /// The server waits for a body.
    pub(crate) fn is_body(self) -> bool {
        matches!(self, SlowState::Body | SlowState::BodyDripped)
    }
}

/// A conversation that is to be held.
#[derive(Clone, Debug)]
pub(crate) struct WantedState {
    pub(crate) state: SlowState,
    pub(crate) name: String,
    pub(crate) script: TalkScript,
    /// How long it is held at most.
    pub(crate) horizon: Nanos,
}

/// A state that was held, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct HeldState {
    pub(crate) wanted: WantedState,
    pub(crate) talk: Talk,
}

/// What was seen of the states so far.
#[derive(Debug, Default)]
pub(crate) struct SlowStates {
    held: Vec<HeldState>,
    /// The states that were tried.
    tried: Vec<SlowState>,
    /// The server has too few slots for all of them at once.
    serial: bool,
    /// What is held beside other cases.
    beside: Vec<WantedState>,
}

impl SlowStates {
    /// What became of a state; nothing when it was not held.
    pub(crate) fn of(&self, state: SlowState) -> Vec<HeldState> {
        self.held.iter().filter(|held| held.wanted.state == state).cloned().collect()
    }

    /// The longest that the server bore a state before it ended it.
    pub(crate) fn longest(&self) -> Option<Nanos> {
        let ended =
            |held: &&HeldState| matches!(held.talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
        self.held.iter().filter(ended).map(|held| held.talk.over).max()
    }

    /// They are held one after the other.
    pub(crate) fn is_serial(&self) -> bool {
        self.serial
    }

    /// From now on they are; what was tried together is tried again.
    pub(crate) fn be_serial(&mut self) {
        self.serial = true;
        self.tried.clear();
    }

    pub(crate) fn tried(&self) -> &[SlowState] {
        &self.tried
    }

    /// A state is tried now.
    pub(crate) fn begin(&mut self, state: SlowState) {
        self.tried.push(state);
    }

    /// What was tried of these says nothing: they are tried again where they are asked for.
    pub(crate) fn forget(&mut self, states: &[SlowState]) {
        self.tried.retain(|tried| !states.contains(tried));
    }

    pub(crate) fn keep(&mut self, held: HeldState) {
        self.held.push(held);
    }

    /// States are held beside the cases.
    pub(crate) fn is_beside(&self) -> bool {
        !self.beside.is_empty()
    }

    pub(crate) fn begin_beside(&mut self, wanted: Vec<WantedState>) {
        self.beside = wanted;
    }

    /// They are held no longer.
    pub(crate) fn end_beside(&mut self) -> Vec<WantedState> {
        std::mem::take(&mut self.beside)
    }
}
