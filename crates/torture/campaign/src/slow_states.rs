//! Slow states of connections: the tested states, their results, and the states held during other
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
    /// Returns its name on the page of limits.
    pub(crate) fn text(self) -> &'static str {
        match self {
            SlowState::Silent => "silent",
            SlowState::Head => "half a head",
            SlowState::HeadDripped => "dripped head",
            SlowState::Body => "half a body",
            SlowState::BodyDripped => "dripped body",
            SlowState::Unread => "unread response",
            SlowState::Sipped => "response read at 1 KiB/s",
            SlowState::Idle => "idle after a response",
            SlowState::Handshake => "half a TLS handshake",
        }
    }

    /// Returns the same state without drips: only the comparison shows whether a timeout is
    /// absolute.
    pub(crate) fn without_drops(self) -> Option<SlowState> {
        match self {
            SlowState::HeadDripped => Some(SlowState::Head),
            SlowState::BodyDripped => Some(SlowState::Body),
            _ => None,
        }
    }

    /// Returns whether the server waits for a body.
    pub(crate) fn is_body(self) -> bool {
        matches!(self, SlowState::Body | SlowState::BodyDripped)
    }
}

/// A conversation to hold.
#[derive(Clone, Debug)]
pub(crate) struct WantedState {
    pub(crate) state: SlowState,
    pub(crate) name: String,
    pub(crate) script: TalkScript,
    /// Maximum time it is held.
    pub(crate) horizon: Nanos,
}

/// Held state with its result.
#[derive(Clone, Debug)]
pub(crate) struct HeldState {
    pub(crate) wanted: WantedState,
    pub(crate) talk: Talk,
}

/// Maximum number of times that states are held during other cases: each case that crashes the
/// server ends them.
const BEGUN_MAX: u32 = 4;

/// Observations of states so far.
#[derive(Debug, Default)]
pub(crate) struct SlowStates {
    held: Vec<HeldState>,
    /// Tested states.
    tried: Vec<SlowState>,
    /// True if the server has too few slots for all of them at once.
    serial: bool,
    /// States held alongside other cases, and how often that began.
    beside: Vec<WantedState>,
    begun: u32,
}

impl SlowStates {
    /// Returns the results of a state; empty if it was not held.
    pub(crate) fn held_in(&self, state: SlowState) -> Vec<HeldState> {
        self.held.iter().filter(|held| held.wanted.state == state).cloned().collect()
    }

    /// Returns the longest time before the server closed a state.
    pub(crate) fn longest(&self) -> Option<Nanos> {
        let ended =
            |held: &&HeldState| matches!(held.talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
        self.held.iter().filter(ended).map(|held| held.talk.over).max()
    }

    /// Returns whether states are held one after the other.
    pub(crate) fn is_serial(&self) -> bool {
        self.serial
    }

    /// Switches to that mode; states tested together are tested again.
    pub(crate) fn set_serial(&mut self) {
        self.serial = true;
        self.tried.clear();
    }

    pub(crate) fn tried_states(&self) -> &[SlowState] {
        &self.tried
    }

    /// Marks a state as tested.
    pub(crate) fn begin(&mut self, state: SlowState) {
        self.tried.push(state);
    }

    /// Discards the results of these states: they are tested again on request.
    pub(crate) fn forget(&mut self, states: &[SlowState]) {
        self.tried.retain(|tried| !states.contains(tried));
    }

    pub(crate) fn keep(&mut self, held: HeldState) {
        self.held.push(held);
    }

    /// Returns whether states are held alongside the cases.
    pub(crate) fn is_in_background(&self) -> bool {
        !self.beside.is_empty()
    }

    pub(crate) fn begin_background(&mut self, wanted: Vec<WantedState>) {
        self.beside = wanted;
        self.begun += 1;
    }

    /// Returns whether states may be held again after cases that closed them.
    pub(crate) fn may_hold_again(&self) -> bool {
        self.begun < BEGUN_MAX
    }

    /// Returns the instant at which the last of them is over.
    pub(crate) fn background_ends(&self) -> Nanos {
        let ends = self.beside.iter().map(|one| one.script.start + one.script.deadline);
        ends.max().unwrap_or(Nanos::ZERO)
    }

    /// Returns the names of the states held during other cases.
    pub(crate) fn background_names(&self) -> Vec<String> {
        self.beside.iter().map(|one| one.name.clone()).collect()
    }

    /// Stops holding them.
    pub(crate) fn end_background(&mut self) -> Vec<WantedState> {
        std::mem::take(&mut self.beside)
    }
}
