//! The handshake of a crafted connection: our ClientHello, early data, and our last handshake
//! messages, which may be held back.

use super::packet::NumberSpace;
use super::{FRAMES_MAX, Hand, HandOut, Limits, frames};
use crate::session::Tickets;
use conduit::streams::{
    AGAIN, BEFORE_FINISHED, EARLY, EARLY_ACCEPTED, EARLY_REJECTED, FINISH, FIRST, FRESH, HOLD,
    MUTE, RAISED, REDUCED, REMEMBERED, REPLAY, SPOILED, STALE, UPDATE,
};
use quinn_proto::{ConnectionIdGenerator, RandomConnectionIdGenerator, Side};

/// Bytes of a CRYPTO frame in addition to its data.
const CRYPTO_HEAD: usize = 16;

/// Options of a handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shake {
    options: u16,
    /// Transport parameters after the usual ones.
    pub(super) parameters: Vec<u8>,
}

impl Shake {
    /// Parses the encoding of [`conduit::streams::PieceKind::Shake`].
    pub(crate) fn parse(described: &[u8]) -> Shake {
        let [high, low, parameters @ ..] = described else { return Shake::default() };
        Shake { options: u16::from_be_bytes([*high, *low]), parameters: parameters.to_vec() }
    }

    pub(super) fn is(&self, option: u16) -> bool {
        self.options & option != 0
    }

    /// Returns the tickets that the connection uses and stores.
    pub(crate) fn tickets(&self) -> Tickets {
        match (self.is(EARLY), self.is(STALE)) {
            (false, _) => Tickets::None,
            (true, false) => Tickets::Sound,
            (true, true) => Tickets::Stale,
        }
    }

    /// Returns whether SETTINGS are compared with those of the connection on which the ticket was
    /// issued.
    pub(crate) fn compares(&self) -> bool {
        self.is(FRESH)
    }

    /// Returns whether a new ticket is required.
    pub(crate) fn is_fresh(&self) -> bool {
        self.is(FRESH | STALE)
    }
}

/// The state of a handshake that the worker controls.
#[derive(Debug, Default)]
pub(super) struct Shaking {
    pub(super) shake: Shake,
    /// Our ClientHello.
    hello: Vec<u8>,
    /// Our last handshake messages, if complete and held back.
    held: Option<Vec<u8>>,
    /// The worker has released them.
    finished: bool,
    /// Received data is ignored.
    pub(super) passes_over: bool,
    /// The arrival of response data was reported.
    reported: bool,
}

impl Shaking {
    pub(super) fn new(shake: Shake) -> Shaking {
        let passes_over = shake.is(REPLAY);
        Shaking { shake, passes_over, ..Shaking::default() }
    }

    pub(super) fn holds(&self) -> bool {
        self.held.is_some()
    }
}

impl Hand {
    /// Returns whether the worker may write.
    pub(crate) fn takes(&self) -> bool {
        let shake = &self.shaking.shake;
        self.is_established
            || shake.is(FIRST | MUTE)
            || shake.is(EARLY) && self.early.is_some()
            || self.shaking.holds()
    }

    /// Returns whether the server can read frames: in 1-RTT packets once it has our last handshake
    /// messages, and before in 0-RTT packets.
    pub(super) fn can_read_frames(&self) -> bool {
        let held = self.shaking.holds();
        self.spaces[NumberSpace::Data as usize].keys.is_some() && !held || self.early.is_some()
    }

    /// Sends TLS handshake messages, and takes new keys.
    pub(super) fn advance_handshake(&mut self) {
        loop {
            let known = |level: &NumberSpace| self.spaces[*level as usize].keys.is_some();
            let level =
                NumberSpace::ALL.into_iter().rev().find(known).unwrap_or(NumberSpace::Initial);
            let mut bytes = Vec::new();
            let keys = self.session.write_handshake(&mut bytes);
            let spoke = !bytes.is_empty();
            self.send_handshake_bytes(level, bytes);
            match (keys, level) {
                (Some(keys), NumberSpace::Initial) => self.spaces[1].keys = Some(keys),
                (Some(keys), _) => {
                    self.spaces[2].keys = Some(keys);
                    self.read_parameters();
                    self.settle_early();
                }
                (None, _) if !spoke => return,
                (None, _) => {}
            }
        }
    }

    fn send_handshake_bytes(&mut self, level: NumberSpace, mut bytes: Vec<u8>) {
        let shake = &self.shaking.shake;
        if bytes.is_empty() {
            return;
        }
        if level == NumberSpace::Initial && self.shaking.hello.is_empty() {
            self.shaking.hello.clone_from(&bytes);
            if shake.is(MUTE) {
                self.spaces[0].crypto_sent += bytes.len() as u64;
                return;
            }
        }
        if level == NumberSpace::Handshake {
            if shake.is(SPOILED)
                && let Some(last) = bytes.last_mut()
            {
                *last ^= 1;
            }
            if shake.is(HOLD) && !self.shaking.finished {
                self.shaking.held.get_or_insert_default().extend(bytes);
                return;
            }
        }
        self.send_crypto(level, &bytes);
    }

    fn send_crypto(&mut self, level: NumberSpace, sent: &[u8]) {
        let begin = self.spaces[level as usize].crypto_sent;
        self.send_crypto_at(level, begin, sent);
        self.spaces[level as usize].crypto_sent += sent.len() as u64;
    }

    fn send_crypto_at(&mut self, level: NumberSpace, begin: u64, sent: &[u8]) {
        for (row, part) in sent.chunks(FRAMES_MAX - CRYPTO_HEAD).enumerate() {
            let offset = begin + (row * (FRAMES_MAX - CRYPTO_HEAD)) as u64;
            self.send(level, &frames::crypto(offset, part), true);
        }
    }

    /// Sends some bytes of our ClientHello.
    pub(super) fn send_hello(&mut self, from: u64, to: u64) {
        let length = self.shaking.hello.len();
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(length);
        let from = place(from);
        let to = place(to);
        if from < to {
            let part = self.shaking.hello[from..to].to_vec();
            self.send_crypto_at(NumberSpace::Initial, from as u64, &part);
        }
    }

    fn read_parameters(&mut self) {
        if let Ok(Some(known)) = self.session.transport_parameters() {
            let before = std::mem::replace(&mut self.limits, Limits::new(&known));
            self.reset_tokens.extend(self.limits.reset_token.clone());
            if self.early.is_some() && self.session.early_data_accepted() == Some(true) {
                let pairs = before.remembered().into_iter().zip(self.limits.remembered());
                let mut raised = false;
                let mut reduced = false;
                for (old, new) in pairs {
                    raised |= new > old;
                    reduced |= new < old;
                }
                for (found, what) in [(raised, RAISED), (reduced, REDUCED)] {
                    if found {
                        self.report_frame(what, &[]);
                    }
                }
            }
        }
    }

    /// Handles the acceptance or rejection of early data: rejected data is sent again.
    fn settle_early(&mut self) {
        if self.early.is_none() {
            return;
        }
        self.spent = self.early.take();
        if self.session.early_data_accepted() == Some(true) {
            self.report_frame(EARLY_ACCEPTED, &[]);
            if let Some(control) = self.remembered.take() {
                self.report_frame(REMEMBERED, &control);
            }
            return;
        }
        self.report_frame(EARLY_REJECTED, &[]);
        let lost = std::mem::take(&mut self.spaces[NumberSpace::Data as usize].flight);
        self.ready.extend(lost.into_values().map(|one| one.frames));
    }

    /// Reports, once, that a part of a response arrived while our Finished was held back.
    pub(super) fn note_response(&mut self) {
        if self.shaking.holds() && !std::mem::replace(&mut self.shaking.reported, true) {
            self.report_frame(BEFORE_FINISHED, &[]);
        }
    }

    /// Performs an action of the worker, by its index in [`conduit::streams::ACTIONS`].
    pub(super) fn perform(&mut self, action: u64) {
        self.flush();
        match action {
            FINISH => {
                self.shaking.finished = true;
                if let Some(sent) = self.shaking.held.take() {
                    self.send_crypto(NumberSpace::Handshake, &sent);
                }
                self.send_postponed();
            }
            UPDATE => self.change_keys(),
            AGAIN => self.resend_all(),
            _ => {}
        }
    }

    /// Sends everything again as a second connection. Replies to the first are ignored.
    fn resend_all(&mut self) {
        let first_to = RandomConnectionIdGenerator::new(super::ID_LEN).generate_cid();
        self.spaces[0].keys = Some(self.session.initial_keys(&first_to, Side::Client));
        self.to = first_to.to_vec();
        self.first_to = first_to;
        self.named = false;
        self.token.clear();
        self.out.push_back(HandOut::Port);
        for level in [NumberSpace::Initial, NumberSpace::Data] {
            let sent = std::mem::take(&mut self.spaces[level as usize].flight);
            for one in sent.into_values() {
                self.send(level, &one.frames, true);
            }
        }
        self.shaking.passes_over = false;
    }
}
