//! Probes on one kept connection: one call at a time, each timed from its due instant.

use super::{Pattern, ProbeCall};
use crate::habits;
use conduit::Close;
use dialogue::http2::write;
use dialogue::http3;
use dialogue::replies::Response;
use dialogue::talk::{Conversations, Move, Talk, TalkEnd, TalkScript};
use std::collections::{BTreeSet, VecDeque};
use units::Nanos;

/// Number of calls after which a connection is replaced, so that little is stored per connection.
const CALLS_MAX: usize = 500;
/// Lifetime of a connection, longer than servers keep one.
const LIFE: Nanos = Nanos::from_secs(86_400);

/// Result of a call.
#[derive(Debug)]
pub(super) struct KeptReading {
    pub(super) call: ProbeCall,
    pub(super) met: Met,
    /// Times from the due instant; the connection only if it was opened for this call.
    pub(super) connected: Option<Nanos>,
    pub(super) first_byte: Option<Nanos>,
    pub(super) over: Nanos,
}

#[derive(Debug)]
pub(super) enum Met {
    Response(Box<Response>),
    /// Start of a response.
    Half,
    /// The deadline passed.
    Nothing,
    /// The connection ended, or was never established.
    End(TalkEnd),
}

/// Outstanding call.
#[derive(Clone, Copy, Debug)]
struct Current {
    call: ProbeCall,
    /// Start of the connection, if it was opened for this call.
    opened_at: Option<Nanos>,
    connected: Option<Nanos>,
    first_byte: Option<Nanos>,
    /// The call was resent, because the server had closed the idle connection.
    again: bool,
}

impl Current {
    fn new(call: ProbeCall, again: bool) -> Current {
        Current { call, opened_at: None, connected: None, first_byte: None, again }
    }

    /// Records when the connection was established.
    /// `span`: from the start of its connection until it was established.
    fn connect(&mut self, span: Option<Nanos>) {
        if let (Some(at), Some(span)) = (self.opened_at, span) {
            self.connected = Some(at + span - self.call.due);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Nanos,
    /// True while it waits for the previous response: the server is slow, not this client.
    behind: bool,
    again: bool,
}

#[derive(Debug, Default)]
pub(super) struct KeptConnection {
    /// Connection, and the number of responses on it.
    place: Option<usize>,
    answered: usize,
    current: Option<Current>,
    /// Calls that are due and not yet sent.
    waiting: VecDeque<Waiting>,
    /// Connections that we abandoned and that are not over yet.
    dropped: BTreeSet<usize>,
}

impl KeptConnection {
    /// Adds a due call; returns false if there is no room for it.
    pub(super) fn queue(&mut self, due: Nanos, room: usize) -> bool {
        let free = self.waiting.len() < room;
        if free {
            let behind = !self.is_idle();
            self.waiting.push_back(Waiting { due, behind, again: false });
        }
        free
    }

    pub(super) fn owns(&self, place: usize) -> bool {
        self.place == Some(place) || self.dropped.contains(&place)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        usize::from(self.place.is_some()) + self.dropped.len()
    }

    /// Returns when the first waiting call times out.
    pub(super) fn expiry(&self, deadline: Nanos) -> Nanos {
        let current = self.current.map(|current| current.call.due);
        let first = self.waiting.front().map(|waiting| waiting.due);
        match current.into_iter().chain(first).min() {
            Some(due) => due + deadline,
            None => Nanos::NEVER,
        }
    }

    /// Handles the end of its connection; returns the result of the outstanding call.
    pub(super) fn ended(&mut self, now: Nanos, place: usize, talk: &Talk) -> Option<KeptReading> {
        if self.dropped.remove(&place) {
            return None;
        }
        self.place = None;
        let mut current = self.current.take()?;
        current.connect(talk.connected);
        let response = talk.replies.responses.get(self.answered);
        current.first_byte = current.first_byte.or(response.map(|_| now - current.call.due));
        let met = match response {
            Some(response) if response.complete => Met::Response(Box::new(response.clone())),
            // closed between two calls: any client retries on a new connection
            None if self.answered > 0 && !current.again && talk.end != TalkEnd::Ours => {
                let due = current.call.due;
                self.waiting.push_front(Waiting { due, behind: true, again: true });
                return None;
            }
            _ if talk.end == TalkEnd::Ours => return None,
            Some(_) => Met::Half,
            _ => Met::End(talk.end),
        };
        Some(found(current, met, now))
    }

    /// Reads available data, abandons late calls, and sends waiting ones.
    pub(super) fn turn(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        pattern: &Pattern,
        deadline: Nanos,
    ) -> Vec<KeptReading> {
        let mut all = Vec::new();
        all.extend(self.observe(now, stage));
        all.extend(self.expire(now, stage, deadline));
        if self.current.is_none()
            && let Some(Waiting { due, behind, again }) = self.waiting.pop_front()
        {
            let late = if behind { Nanos::ZERO } else { now - due };
            let call = ProbeCall { due, late };
            self.send(now, Current::new(call, again), stage, pattern);
        }
        all
    }

    fn observe(&mut self, now: Nanos, stage: &mut Conversations<'_>) -> Option<KeptReading> {
        let (place, current) = (self.place?, self.current.as_mut()?);
        current.connect(stage.connected(place));
        let response = stage.replies(place)?.responses.get(self.answered)?;
        current.first_byte.get_or_insert(now - current.call.due);
        if !response.complete {
            return None;
        }
        let (response, current) = (response.clone(), self.current.take()?);
        self.answered += 1;
        if !response.persistent || self.answered >= CALLS_MAX {
            self.drop_connection(stage);
        }
        Some(found(current, Met::Response(Box::new(response)), now))
    }

    fn expire(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        deadline: Nanos,
    ) -> Vec<KeptReading> {
        let mut all = Vec::new();
        let late = |due: Nanos| due + deadline <= now;
        if let Some(current) = self.current.take_if(|current| late(current.call.due)) {
            self.drop_connection(stage);
            all.push(found(current, Met::Nothing, now));
        }
        while let Some(waiting) = self.waiting.pop_front_if(|waiting| late(waiting.due)) {
            let call = ProbeCall { due: waiting.due, late: Nanos::ZERO };
            all.push(found(Current::new(call, waiting.again), Met::Nothing, now));
        }
        all
    }

    fn send(
        &mut self,
        now: Nanos,
        mut current: Current,
        stage: &mut Conversations<'_>,
        pattern: &Pattern,
    ) {
        let step = self.step(pattern);
        match self.place {
            Some(place) => stage.add_steps(place, vec![step]),
            None => {
                let script = TalkScript {
                    start: now,
                    steps: vec![step],
                    deadline: LIFE,
                    hold: true,
                    ..pattern.new.clone()
                };
                let place = stage.add(script);
                stage.watch(place);
                self.place = Some(place);
                self.answered = 0;
                current.opened_at = Some(now);
            }
        }
        self.current = Some(current);
    }

    /// Returns the next call. Over HTTP/2 each uses a separate stream, and the opening precedes the
    /// first.
    fn step(&self, pattern: &Pattern) -> Move {
        let protocol = pattern.new.protocol;
        if !protocol.has_frames() {
            return Move::Send(pattern.keep.clone());
        }
        let calls = if self.place.is_some() { self.answered as u32 } else { 0 };
        let call = habits::later_frame(protocol, &pattern.keep, calls);
        let opening = if protocol.is_http3() { http3::write::opening() } else { write::opening() };
        Move::Send(if calls == 0 { [opening, call].concat() } else { call })
    }

    fn drop_connection(&mut self, stage: &mut Conversations<'_>) {
        if let Some(place) = self.place.take() {
            stage.end(place, Close::Orderly);
            self.dropped.insert(place);
        }
    }
}

fn found(current: Current, met: Met, now: Nanos) -> KeptReading {
    let over = now - current.call.due;
    let Current { call, connected, first_byte, .. } = current;
    KeptReading { call, met, connected, first_byte, over }
}
