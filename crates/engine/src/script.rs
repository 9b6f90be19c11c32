//! A worker whose requests a script makes. Where there is none, nothing of this is touched.

use crate::connection::Conn;
use crate::source::Source;
use crate::worker::Worker;
use conduit::{Peer, Slot};
use units::Nanos;
use wire::answer::{AnswerFacts, Asked};
use workload::{Script, ScriptError, Wants};

/// A body is kept for a script up to this many bytes; what lies beyond is cut off.
const BODY_MAX: usize = 16 << 20;

/// A worker's part of a script, and its first failure.
#[derive(Debug)]
pub(crate) struct Scripted {
    part: Box<dyn Script>,
    pub(crate) wants: Wants,
    failure: Option<ScriptError>,
}

impl Scripted {
    /// Appends the next request; says what was asked and how many answers come.
    pub(crate) fn request(&mut self, out: &mut Vec<u8>) -> (Asked, u16) {
        let made = self.part.request(out);
        (self.kept(made).unwrap_or_default(), self.wants.requests)
    }

    /// The wait before a user's next call.
    pub(crate) fn pause(&mut self) -> Nanos {
        if !self.wants.pauses {
            return Nanos::ZERO;
        }
        let made = self.part.pause();
        self.kept(made).unwrap_or(Nanos::ZERO)
    }

    pub(crate) fn peer(&mut self) -> Option<Peer> {
        self.part.peer()
    }

    pub(crate) fn stopped(&self) -> bool {
        self.part.stopped()
    }

    /// Keeps the first failure until the next turn ends the run by it.
    fn kept<T>(&mut self, result: Result<T, ScriptError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }
}

impl Worker {
    /// The same worker with its requests made by `script`; they go to the plan's first target.
    #[must_use]
    pub fn with_script(mut self, script: Box<dyn Script>) -> Worker {
        let wants = script.wants();
        let mut scripted = Scripted { part: script, wants, failure: None };
        if wants.pauses && matches!(self.source, Source::Closed { .. }) {
            self.people.put_off(|| scripted.pause());
        }
        self.looks = self.looks || wants.answers;
        self.script = Some(Box::new(scripted));
        self.attended = true;
        self
    }

    /// What went wrong with the script, once.
    pub(crate) fn script_failure(&mut self) -> Option<String> {
        let failure = self.script.as_mut()?.failure.take()?;
        Some(failure.0)
    }

    /// Somebody other than the plan wants to see bodies.
    pub(crate) fn wants_bodies(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.wants.answers)
            || self.guided.as_ref().is_some_and(|guided| guided.keeps_bodies)
    }

    pub(crate) fn wants_heads(&self) -> bool {
        self.wants_bodies() || self.guided.is_some()
    }

    /// An answer to a script's call is there. True when more of the call's answers are to come.
    pub(crate) fn script_answered(&mut self, slot: Slot, facts: &AnswerFacts, now: Nanos) -> bool {
        let Some(script) = &mut self.script else {
            self.keep_for_guide(slot);
            return false;
        };
        let conn = &mut self.conns[slot as usize];
        if script.wants.answers {
            let told = script.part.answer(facts.status, conn.reader.head(), &conn.body);
            script.kept(told);
            conn.body.clear();
        }
        let stopped = script.stopped();
        let more = take_one_of_many(conn, facts);
        if more {
            self.recorder.answer_before_last(facts.status, now);
        }
        if stopped {
            self.stop();
        }
        more
    }
}

/// Whether this was not the last answer of the connection's first call; then the next is awaited.
fn take_one_of_many(conn: &mut Conn, facts: &AnswerFacts) -> bool {
    let Some(call) = conn.calls.front_mut() else { return false };
    if call.answers_due <= 1 || !facts.persistent {
        return false;
    }
    call.answers_due -= 1;
    call.add(facts, facts.body_bytes);
    let asked = call.asked;
    conn.reader.start(asked);
    true
}

/// A piece of a body that a script wants.
pub(crate) fn keep_body(conn: &mut Conn, piece: &[u8]) {
    let room = BODY_MAX.saturating_sub(conn.body.len());
    conn.body.extend_from_slice(&piece[..piece.len().min(room)]);
}
