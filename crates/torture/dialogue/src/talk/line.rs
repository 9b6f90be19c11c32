//! One conversation.

mod raw;

use super::{
    EVENTS_MAX, LineState, Move, RECEIVED_MAX, Talk, TalkEnd, TalkEvent, TalkScript, What,
};
use crate::governor::{Admission, Governor, Requests, SendPermit};
use crate::hello::{HANDSHAKE, Hello, name_of};
use crate::http2::{FOLLOW_UP, FrameReader, OWED_MAX, Protocol, SOCKET};
use crate::http3;
use crate::packets::PacketTalk;
use crate::replies::Replies;
use crate::talk::Awaited;
use crate::text::TEXT_MAX;
use conduit::{Close, Io, IoError, OpenOptions, Slot, TlsFactory, TlsSession};
use sample::FailureClass;
use units::Nanos;

/// Bytes read from a socket at a time, and reads per turn.
const READ_SIZE: usize = 64 << 10;
const READS_MAX: usize = 16;
/// HTTP/3: after this silence, sent data is considered read.
const QUIET: Nanos = Nanos::from_millis(200);
/// Maximum number of bytes waiting to be sent: a step's, and the queued replies.
const QUEUED_MAX: usize = TEXT_MAX + OWED_MAX;
/// Maximum number of bytes prepared at a time.
const PIECE_SIZE: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePhase {
    Waiting,
    Connecting,
    Handshake,
    Talking,
    /// Everything is sent.
    Listening,
    Over,
}

/// Received events by kind, each of which satisfies one waiting step: a step accepts what arrived
/// before it began, and two consecutive steps need two responses.
#[derive(Clone, Copy, Debug, Default)]
struct ReplyCounts {
    interim: usize,
    begun: usize,
    whole: usize,
}

#[derive(Debug)]
pub(super) struct Conversation {
    script: TalkScript,
    stage: LinePhase,
    /// True if it counts among the governor's open connections.
    admitted: bool,
    /// The next step; its bytes not encrypted yet, from `plain_at` on.
    step: usize,
    plain: Vec<u8>,
    plain_at: usize,
    /// Requests among the bytes, and bytes since the last response: both are limited.
    requests: Requests,
    /// Granted requests of which no byte was sent, and when they were granted.
    fresh: u64,
    fresh_at: Nanos,
    unanswered: u64,
    /// The next bytes wait for a window of the server.
    awaits_window: bool,
    /// The governor allows nothing before this instant.
    held_until: Option<Nanos>,
    /// Bytes, encrypted if needed, of which `out_at` are sent.
    out: Vec<u8>,
    out_at: usize,
    /// End of the pause of the current step.
    paused_until: Option<Nanos>,
    taken: ReplyCounts,
    reading: bool,
    /// True if there may be more to read without an event.
    more: bool,
    session: Option<Box<dyn TlsSession>>,
    replies: Replies,
    before_follow_up: Option<usize>,
    /// Instant at which the last byte was received.
    heard_at: Nanos,
    /// Nothing more can be written, but earlier data of the server may still be available.
    write_failed: Option<FailureClass>,
    connected: Option<Nanos>,
    patience: Nanos,
    over: Nanos,
    end: Option<TalkEnd>,
    sent: u64,
    /// Start of the last write: on a busy machine it may end after the response arrived.
    sent_at: Nanos,
    received: u64,
    raw: Vec<u8>,
    events: Vec<TalkEvent>,
    /// Steps were added, so there is something to do now.
    prompted: bool,
    /// True if the director wants to know about responses that begin or end, and whether one did.
    watched: bool,
    news: bool,
    /// The machine of raw TCP segments.
    raw_talk: Option<Box<PacketTalk>>,
}

impl Conversation {
    /// Creates a conversation. `patience`: time that the connection may take without using the
    /// script's time.
    pub(super) fn new(script: TalkScript, patience: Nanos) -> Conversation {
        Conversation {
            patience,
            stage: LinePhase::Waiting,
            admitted: false,
            step: 0,
            plain: Vec::new(),
            plain_at: 0,
            requests: Requests::new(script.protocol),
            fresh: 0,
            fresh_at: Nanos::ZERO,
            unanswered: 0,
            awaits_window: false,
            held_until: None,
            out: Vec::new(),
            out_at: 0,
            paused_until: None,
            taken: ReplyCounts::default(),
            reading: true,
            more: false,
            session: None,
            replies: match script.protocol {
                Protocol::Http1 => Replies::new(&script.methods),
                Protocol::Http2 | Protocol::Http2Raw => Replies::http2(),
                Protocol::Http3 | Protocol::Datagrams => {
                    let follow_up = script.follow_up.as_deref().and_then(http3::stream_of);
                    Replies::http3(follow_up, http3::table_permitted(&script.steps))
                }
            },
            before_follow_up: None,
            heard_at: Nanos::ZERO,
            write_failed: None,
            connected: None,
            over: Nanos::ZERO,
            end: None,
            sent: 0,
            sent_at: Nanos::ZERO,
            received: 0,
            raw: Vec::new(),
            events: Vec::new(),
            prompted: false,
            watched: false,
            news: false,
            raw_talk: None,
            script,
        }
    }

    /// Returns the next instant with something to do without an event.
    pub(super) fn due(&self) -> Nanos {
        let end = self.time_ends();
        let end = self.held_until.map_or(end, |until| until.min(end));
        let end = self.raw_talk.as_ref().map_or(end, |raw| raw.due().min(end));
        match self.stage {
            LinePhase::Waiting => self.script.start,
            _ if self.more => Nanos::ZERO,
            LinePhase::Talking if self.prompted => Nanos::ZERO,
            LinePhase::Talking => self.paused_until.map_or(end, |until| until.min(end)),
            LinePhase::Listening => self.settled_at().map_or(end, |at| at.min(end)),
            LinePhase::Connecting | LinePhase::Handshake => end,
            LinePhase::Over => Nanos::ZERO,
        }
    }

    fn time_ends(&self) -> Nanos {
        let connecting = matches!(self.stage, LinePhase::Connecting);
        let patience = if connecting { self.patience } else { Nanos::ZERO };
        self.script.start + self.script.deadline + patience
    }

    /// Adds steps; ignored if it is over.
    pub(super) fn append_steps(&mut self, steps: Vec<Move>) {
        self.script.steps.extend(steps);
        if self.stage == LinePhase::Listening {
            self.stage = LinePhase::Talking;
        }
        self.prompted = true;
    }

    pub(super) fn watch(&mut self) {
        self.watched = true;
    }

    /// Returns whether a response began or ended since the previous call. Responses of probes are
    /// passed to the governor.
    pub(super) fn take_news(&mut self, governor: &mut Governor) -> bool {
        let news = std::mem::take(&mut self.news);
        if let Some(response) = self.replies.responses.last().filter(|_| news && self.script.probe)
        {
            governor.note_response(response);
        }
        news
    }

    pub(super) fn replies(&self) -> &Replies {
        &self.replies
    }

    /// Returns whether its end shows that the server still responds: it is a probe on its own
    /// connection.
    pub(super) fn is_sign_of_life(&self) -> bool {
        self.script.probe && !self.watched
    }

    pub(super) fn was_admitted(&self) -> bool {
        self.admitted
    }

    /// Ends it because the time of its case is up.
    pub(super) fn cut_off(&mut self, now: Nanos) {
        if !self.script.probe {
            self.finish(TalkEnd::Bounded, now);
        }
    }

    pub(super) fn connected(&self) -> Option<Nanos> {
        self.connected
    }

    /// Returns whether its connection is not opened yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.stage == LinePhase::Waiting
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage == LinePhase::Over
    }

    pub(super) fn line_state(&self) -> LineState {
        match self.stage {
            LinePhase::Waiting => LineState::Waiting,
            LinePhase::Connecting | LinePhase::Handshake => LineState::Connecting,
            LinePhase::Talking | LinePhase::Listening => LineState::Open,
            LinePhase::Over => LineState::Over,
        }
    }

    pub(super) fn turn(
        &mut self,
        io: &mut impl Io,
        slot: Slot,
        tls: &mut Option<&mut dyn TlsFactory>,
        governor: &mut Governor,
    ) {
        let now = io.now();
        self.prompted = false;
        if self.stage == LinePhase::Waiting {
            return self.open(io, slot, tls, governor);
        }
        if now >= self.time_ends() {
            return self.time_is_up(now);
        }
        self.held_until = self.held_until.filter(|until| now < *until);
        if self.paused_until.is_some_and(|until| now >= until) {
            self.paused_until = None;
            self.step += 1;
            self.drop_earlier_replies();
        }
        if self.script.is_raw() {
            return self.perform_raw_steps(now);
        }
        if self.more {
            return self.ready(io, slot, governor);
        }
        self.continue_exchange(io, slot, governor);
    }

    pub(super) fn ready(&mut self, io: &mut impl Io, slot: Slot, governor: &mut Governor) {
        if matches!(self.stage, LinePhase::Waiting | LinePhase::Over) {
            return;
        }
        if self.stage == LinePhase::Connecting {
            // the QUIC handshake uses datagrams that are read before the connection is established;
            // early data, if possible, is sent before
            let waits = matches!(io.write(slot, &[]), Err(IoError::WouldBlock));
            if self.script.protocol.is_http3() && waits {
                self.listen(io, slot, governor);
            }
            if self.stage == LinePhase::Over {
                return;
            }
            match io.write(slot, &[]) {
                Ok(_) => {
                    self.set_established(io.now());
                    // early data is sent before the server's flight is read, which ends the time
                    // for it: on a busy machine that flight may have arrived already
                    self.continue_exchange(io, slot, governor);
                }
                Err(IoError::WouldBlock) => return,
                Err(IoError::Failed(class)) => {
                    return self.finish(TalkEnd::Unconnected(class), io.now());
                }
            }
        }
        self.flush(io, slot, governor);
        self.listen(io, slot, governor);
        self.continue_exchange(io, slot, governor);
    }

    pub(super) fn give_up(&mut self, io: &mut impl Io, slot: Slot, how: Close) {
        let what = if how == Close::Reset { What::ResetByUs } else { What::ClosedByUs };
        let now = io.now();
        self.note(now, what);
        if !self.script.is_raw() {
            io.close(slot, how);
        }
        self.finish(TalkEnd::Ours, now);
    }

    pub(super) fn into_talk(self) -> Talk {
        Talk {
            start: self.script.start,
            connected: self.connected,
            over: self.over,
            end: self.end.unwrap_or_default(),
            all_sent: self.step >= self.script.steps.len() && !self.has_unsent_steps(),
            replies: self.replies,
            steps: self.script.steps,
            before_follow_up: self.before_follow_up,
            sent: self.sent,
            received: self.received,
            raw: self.raw,
            events: self.events,
        }
    }

    fn open(
        &mut self,
        io: &mut impl Io,
        slot: Slot,
        tls: &mut Option<&mut dyn TlsFactory>,
        governor: &mut Governor,
    ) {
        let now = io.now();
        // one request each: more conversations need sockets
        if self.script.is_raw()
            && let Err(at) = governor.request(now, self.script.probe)
        {
            self.script.start = at.max(now + Nanos(1));
            return;
        }
        let by_hand = self.script.by_hand();
        // it may fetch a ticket first, and be replayed on other connections
        let others = by_hand.as_deref().map_or(0, |handshake| {
            let fetched = u64::from(http3::packets::is_early(handshake));
            fetched + http3::packets::times_again(&self.script.steps)
        });
        let peer = &self.script.peer;
        let probe = self.script.probe;
        match governor.admit_after(now, peer, probe, others) {
            Admission::Now => self.admitted = true,
            // its time begins when it may
            Admission::At(at) => {
                self.script.start = at.max(now + Nanos(1));
                return;
            }
            Admission::Never => return self.finish(TalkEnd::Bounded, now),
        }
        self.stage = LinePhase::Connecting;
        if self.script.is_raw() {
            return self.begin_raw(now);
        }
        if let Some(name) = &self.script.tls_name {
            let open = self.script.steps.contains(&Move::Renegotiate);
            let session = tls.as_mut().map(|factory| match open {
                true => factory.exposed_keys(name),
                false => factory.session(name),
            });
            match session {
                Some(Ok(session)) => self.session = Some(session),
                Some(Err(error)) => {
                    return self.finish(TalkEnd::Unconnected(error.class), io.now());
                }
                None => return self.finish(TalkEnd::Unconnected(FailureClass::Tls), io.now()),
            }
        }
        let bare = self.script.protocol == Protocol::Datagrams;
        let options = OpenOptions { bare, by_hand, ..self.script.options.clone() };
        if let Err(error) = io.open(slot, &self.script.peer, &options) {
            let class = match error {
                IoError::Failed(class) => class,
                IoError::WouldBlock => FailureClass::OtherIo,
            };
            return self.finish(TalkEnd::Unconnected(class), io.now());
        }
        // a writable event follows if the connect is pending
        match io.write(slot, &[]) {
            Ok(_) => {
                self.set_established(io.now());
                self.continue_exchange(io, slot, governor);
            }
            Err(IoError::WouldBlock) => {}
            Err(IoError::Failed(class)) => self.finish(TalkEnd::Unconnected(class), io.now()),
        }
    }

    fn set_established(&mut self, now: Nanos) {
        let took = now - self.script.start;
        self.connected = Some(took);
        // the time of the conversation starts with the connection
        self.script.deadline += took.min(self.patience);
        self.note(now, What::Connected);
        self.stage = match &mut self.session {
            Some(session) => {
                session.drain(&mut self.out);
                LinePhase::Handshake
            }
            None => LinePhase::Talking,
        };
    }

    /// Sends as much as possible, and checks whether the exchange is over.
    fn continue_exchange(&mut self, io: &mut impl Io, slot: Slot, governor: &mut Governor) {
        loop {
            self.flush(io, slot, governor);
            if self.has_unsent_steps() && self.write_failed.is_none() {
                return;
            }
            if self.stage != LinePhase::Talking || self.paused_until.is_some() {
                break;
            }
            if !self.take_step(io, slot, governor) {
                break;
            }
        }
        if self.stage == LinePhase::Listening {
            self.handle_end(io, slot, governor);
        }
    }

    /// Performs the next step; returns false if it must wait.
    fn take_step(&mut self, io: &mut impl Io, slot: Slot, governor: &mut Governor) -> bool {
        if !matches!(self.script.steps.get(self.step), Some(Move::Await(_))) {
            self.drop_earlier_replies();
        }
        let Some(step) = self.script.steps.get(self.step) else {
            self.stage = LinePhase::Listening;
            self.heard_at = self.heard_at.max(io.now());
            return false;
        };
        match step {
            Move::Send(bytes) => self.plain.extend_from_slice(bytes),
            Move::Pause(span) => {
                self.paused_until = Some(io.now() + *span);
                return false;
            }
            Move::Await(what) => {
                let what = *what;
                if !self.take_awaited(what) {
                    return false;
                }
            }
            Move::Urgent => io.send_urgent(slot, b'!'),
            Move::HalfClose => {
                io.shutdown_write(slot);
                self.note(io.now(), What::HalfClosed);
            }
            Move::Reset => {
                self.give_up(io, slot, Close::Reset);
                return false;
            }
            Move::Close => {
                self.give_up(io, slot, Close::Orderly);
                return false;
            }
            Move::StopReading => self.reading = false,
            // conversations with these have their own loop
            Move::Packet(_) => {}
            Move::Renegotiate => {
                if !self.resend_call() {
                    self.finish(TalkEnd::Ours, io.now());
                    return false;
                }
            }
            Move::Sip(bytes) => {
                let most = *bytes;
                self.step += 1;
                self.read_slowly(most, io, slot, governor);
                return self.stage == LinePhase::Talking;
            }
            Move::Read => {
                self.reading = true;
                self.step += 1;
                self.listen(io, slot, governor);
                return self.stage == LinePhase::Talking;
            }
        }
        self.step += 1;
        self.queue_replies();
        true
    }

    /// Requests a renegotiation within the session; returns false if that is impossible.
    fn resend_call(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        let Some(finished) = session.finished() else { return false };
        let name = self.script.tls_name.as_deref().and_then(name_of);
        let hello = Hello { name, again: Some(finished), ..Hello::default() };
        let asked = session.send_record(HANDSHAKE, &hello.message());
        session.drain(&mut self.out);
        asked
    }

    fn replied(&self) -> ReplyCounts {
        let resets = self.replies.frames.as_ref().map_or(0, |frames| frames.resets());
        ReplyCounts {
            interim: self.replies.interim.len(),
            begun: self.replies.responses.len(),
            whole: self.replies.whole() + resets,
        }
    }

    /// In frames replies have no order, and one stream may end twice, by its response and by a
    /// reset: data received before the last non-waiting step does not satisfy a waiting step.
    fn drop_earlier_replies(&mut self) {
        if self.replies.frames.is_some() {
            self.taken = self.replied();
        }
    }

    /// Consumes the event that a step waits for. Returns false if it has not arrived.
    fn take_awaited(&mut self, what: Awaited) -> bool {
        let goodbye = self.replies.frames.as_ref().is_some_and(|frames| frames.has_goaway());
        let now = self.replied();
        let taken = &mut self.taken;
        match what {
            Awaited::Interim if now.interim > taken.interim => {
                taken.interim += 1;
                true
            }
            Awaited::Interim if now.begun > taken.begun => {
                taken.begun += 1;
                true
            }
            // a handshake may be refused by a reset
            Awaited::Interim => goodbye || self.stream_ended(SOCKET),
            Awaited::Response if now.whole > taken.whole => {
                taken.whole += 1;
                taken.begun = taken.begun.max(taken.whole);
                // a response includes its interim ones
                taken.interim = taken.interim.max(self.replies.interim_before(taken.whole - 1));
                true
            }
            Awaited::Response => goodbye,
            Awaited::Settings => {
                self.replies.frames.as_ref().is_none_or(|frames| frames.has_settings())
            }
            Awaited::SocketEnd => goodbye || self.stream_ended(SOCKET),
            // the end is detected when reading
            Awaited::End => false,
        }
    }

    /// Returns whether bytes of earlier steps are still unsent.
    fn has_unsent_steps(&self) -> bool {
        self.out_at < self.out.len() || self.plain_at < self.plain.len()
    }

    /// Sends as much as permitted.
    fn flush(&mut self, io: &mut impl Io, slot: Slot, governor: &mut Governor) {
        let before = self.sent;
        while self.write_failed.is_none() && self.stage != LinePhase::Over {
            // use a single write if possible: servers must see exactly the pieces of the case
            while self.out.len() - self.out_at < PIECE_SIZE && self.make_ready(io.now(), governor) {
            }
            self.pass_bytes(io, slot, governor);
            let stuck =
                self.out_at < self.out.len() || self.held_until.is_some() || self.awaits_window;
            if stuck || !self.has_unsent_steps() {
                break;
            }
        }
        let count = self.sent - before;
        if count > 0 {
            self.note(self.sent_at, What::Sent(usize::try_from(count).unwrap_or(usize::MAX)));
        }
    }

    fn pass_bytes(&mut self, io: &mut impl Io, slot: Slot, governor: &mut Governor) {
        while self.write_failed.is_none()
            && self.out_at < self.out.len()
            && self.held_until.is_none()
        {
            let now = io.now();
            // bytes granted at another instant must be sent now
            if self.fresh > 0 && self.fresh_at != now {
                match governor.renew(self.fresh_at, now, self.fresh, self.script.probe) {
                    Ok(()) => self.fresh_at = now,
                    Err(at) => return self.wait_for_leave(now, at),
                }
            }
            let rest = &self.out[self.out_at..];
            let granted = match governor.grant(now, rest.len(), self.script.probe) {
                Ok(count) => count,
                Err(at) => return self.wait_for_leave(now, at),
            };
            match io.write(slot, &rest[..granted]) {
                Ok(count) => {
                    self.out_at += count;
                    self.sent += count as u64;
                    self.sent_at = now;
                    if self.fresh <= 1 || self.out_at == self.out.len() {
                        self.fresh = 0;
                    }
                    governor.sent(now, count);
                }
                Err(IoError::WouldBlock) => break,
                Err(IoError::Failed(class)) => self.write_failed = Some(class),
            }
        }
        if self.out_at == self.out.len() {
            self.out.clear();
            self.out_at = 0;
        }
    }

    /// Encrypts the next piece; returns false if there is none, or it may not be sent yet.
    fn make_ready(&mut self, now: Nanos, governor: &mut Governor) -> bool {
        if self.plain_at == self.plain.len() {
            self.plain.clear();
            self.plain_at = 0;
            return false;
        }
        if self.held_until.is_some() {
            return false;
        }
        let room = governor.message_max().saturating_sub(self.unanswered);
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(PIECE_SIZE);
        let end = self.plain.len().min(self.plain_at + room);
        let Some(end) = self.within_windows(end) else { return false };
        let piece = &self.plain[self.plain_at..end];
        if piece.is_empty() {
            self.finish(TalkEnd::Bounded, now);
            return false;
        }
        match self.requests.leave(piece, governor.writes()) {
            SendPermit::Bytes(count) => {
                let piece = &piece[..count];
                if self.script.protocol == Protocol::Http2
                    && let Some(frames) = &mut self.replies.frames
                {
                    frames.windows().pass(&self.plain[self.plain_at..], count);
                }
                match &mut self.session {
                    Some(session) => {
                        session.send(piece);
                        session.drain(&mut self.out);
                    }
                    None => self.out.extend_from_slice(piece),
                }
                self.plain_at += count;
                self.unanswered += count as u64;
                true
            }
            SendPermit::Ask if self.fresh > 0 && self.fresh_at != now => false,
            SendPermit::Ask => match governor.request(now, self.script.probe) {
                Ok(()) => {
                    self.requests.grant();
                    self.fresh += 1;
                    self.fresh_at = now;
                    true
                }
                Err(at) => {
                    self.wait_for_leave(now, at);
                    false
                }
            },
            SendPermit::Writes => {
                self.finish(TalkEnd::Bounded, now);
                false
            }
        }
    }

    /// Returns the end of the next piece that may be sent, up to `end`: a well-behaved client waits
    /// for the server's windows. `None` if they permit nothing.
    fn within_windows(&mut self, end: usize) -> Option<usize> {
        self.awaits_window = false;
        let windows = self.replies.frames.as_mut().map(|frames| frames.windows());
        let Some(windows) = windows.filter(|_| self.script.protocol == Protocol::Http2) else {
            return Some(end);
        };
        let most = end - self.plain_at;
        let count = windows.permitted(&self.plain[self.plain_at..], most);
        self.awaits_window = count == 0 && most > 0;
        (!self.awaits_window).then_some(self.plain_at + count)
    }

    /// Extends the deadline by the time that a limit costs.
    fn wait_for_leave(&mut self, now: Nanos, at: Nanos) {
        let at = at.max(now + Nanos(1));
        self.script.deadline += at - now;
        self.held_until = Some(at);
    }

    /// Reads until there is nothing more, or [`READS_MAX`] times: a server may send without end,
    /// and deadlines, stop requests and other conversations are handled before the next turn
    /// continues.
    fn listen(&mut self, io: &mut impl Io, slot: Slot, governor: &mut Governor) {
        self.more = false;
        let mut buffer = vec![0; READ_SIZE];
        for _ in 0..READS_MAX {
            if !self.reading || self.stage == LinePhase::Over {
                return;
            }
            match io.read(slot, &mut buffer) {
                Ok(0) => return self.ended(io.now(), None),
                Ok(count) => self.process(&buffer[..count], io, slot, governor),
                Err(IoError::WouldBlock) => return,
                Err(IoError::Failed(class)) => {
                    return self.ended(io.now(), Some(self.write_failed.unwrap_or(class)));
                }
            }
        }
        self.more = true;
    }

    /// Reads once, up to `most` bytes.
    fn read_slowly(&mut self, most: usize, io: &mut impl Io, slot: Slot, governor: &mut Governor) {
        let mut buffer = vec![0; most.clamp(1, READ_SIZE)];
        match io.read(slot, &mut buffer) {
            Ok(0) => self.ended(io.now(), None),
            Ok(count) => self.process(&buffer[..count], io, slot, governor),
            Err(IoError::WouldBlock) => {}
            Err(IoError::Failed(class)) => self.ended(io.now(), Some(class)),
        }
    }

    fn process(&mut self, bytes: &[u8], io: &mut impl Io, slot: Slot, governor: &mut Governor) {
        let now = io.now();
        self.heard_at = now;
        self.received += bytes.len() as u64;
        self.note(now, What::Received(bytes.len()));
        let Some(session) = &mut self.session else { return self.understand(bytes) };
        let mut plain = Vec::new();
        let fed = session.feed(bytes, &mut plain);
        session.drain(&mut self.out);
        let shaking = session.handshaking();
        let closed = session.closed();
        self.flush(io, slot, governor);
        self.understand(&plain);
        if let Err(error) = fed {
            let end = match self.stage {
                LinePhase::Handshake => TalkEnd::Unconnected(error.class),
                _ => TalkEnd::Broken(error.class),
            };
            return self.finish(end, now);
        }
        if self.stage == LinePhase::Handshake && !shaking {
            self.stage = LinePhase::Talking;
            self.note(now, What::Secure);
        }
        if closed {
            self.ended(now, None);
        }
    }

    fn understand(&mut self, plain: &[u8]) {
        let room = RECEIVED_MAX.saturating_sub(self.raw.len()).min(plain.len());
        self.raw.extend_from_slice(&plain[..room]);
        // invalid data is reported once: a server may send it without end
        let state = |all: &Replies| (all.responses.len(), all.whole(), all.junk.is_some());
        let before = state(&self.replies);
        self.replies.take(plain);
        let after = state(&self.replies);
        self.news |= self.watched && before != after;
        if after.1 > before.1 {
            self.unanswered = 0;
        }
        self.queue_replies();
    }

    /// Appends the replies of a well-behaved client to received frames after its pending data.
    fn queue_replies(&mut self) {
        // the server may send first, and nothing precedes the preface
        if self.step == 0 {
            return;
        }
        let Some(frames) = &mut self.replies.frames else { return };
        let owed = frames.take_replies();
        // over HTTP/3 the steps determine the replies; a client that does not read gets none
        let fits = self.plain.len() + owed.len() <= QUEUED_MAX;
        if fits && matches!(self.script.protocol, Protocol::Http2 | Protocol::Http3) {
            self.plain.extend(owed);
        }
    }

    /// Handles the server's close.
    fn ended(&mut self, now: Nanos, broken: Option<FailureClass>) {
        self.replies.end();
        let (what, end) = match broken {
            _ if matches!(self.stage, LinePhase::Connecting | LinePhase::Handshake) => {
                let class = broken.unwrap_or(FailureClass::Tls);
                (What::Broken(class), TalkEnd::Unconnected(class))
            }
            Some(class) => (What::Broken(class), TalkEnd::Broken(class)),
            None => (What::Ended, TalkEnd::Closed),
        };
        self.note(now, what);
        self.finish(end, now);
    }

    /// Returns when nothing more is expected on a connection after everything was sent.
    fn settled_at(&self) -> Option<Nanos> {
        if self.script.hold || !self.reading {
            return None;
        }
        if let Some(frames) = &self.replies.frames {
            return self.frames_settled_at(frames);
        }
        let wanted = match self.before_follow_up {
            Some(before) => before + 1,
            None => self.script.methods.len(),
        };
        let enough = self.replies.whole() >= wanted && !self.replies.unfinished();
        let last = self.replies.responses.last()?;
        let parting = last.complete && !last.persistent;
        match (enough, parting) {
            (_, true) => Some(self.heard_at + self.script.linger),
            (true, false) => Some(self.heard_at + self.script.grace),
            (false, false) => None,
        }
    }

    /// Does the same for HTTP/2: the follow-up has ended, or the PING before it was acknowledged,
    /// or otherwise as many streams have ended as requests were sent.
    fn frames_settled_at(&self, frames: &FrameReader) -> Option<Nanos> {
        if frames.has_goaway() || self.replies.junk.is_some() {
            return Some(self.heard_at + self.script.linger);
        }
        let ends = || self.replies.whole() + frames.resets();
        let settled = match (self.before_follow_up, &self.script.follow_up) {
            (Some(_), _) => self.stream_ended(FOLLOW_UP),
            // there is no PING in HTTP/3: after some silence the server has read everything
            (None, Some(_)) if frames.is_http3() => return Some(self.heard_at + QUIET),
            (None, Some(_)) => frames.pong(),
            (None, None) => ends() >= self.script.methods.len().max(1),
        };
        settled.then(|| self.heard_at + self.script.grace)
    }

    /// Returns whether the server ended or reset this stream of HTTP/2.
    fn stream_ended(&self, stream: u32) -> bool {
        let responses = &self.replies.responses;
        let whole = responses.iter().any(|response| response.stream == stream && response.complete);
        whole || self.replies.frames.as_ref().is_some_and(|frames| frames.is_reset(stream))
    }

    fn handle_end(&mut self, io: &mut impl Io, slot: Slot, governor: &mut Governor) {
        let now = io.now();
        if self.settled_at().is_none_or(|at| now < at) {
            return;
        }
        let goes_on = match &self.replies.frames {
            Some(frames) => !frames.has_goaway() && self.replies.junk.is_none(),
            None => self.replies.responses.last().is_some_and(|last| last.persistent),
        };
        let follow_up =
            self.script.follow_up.take().filter(|_| goes_on && self.write_failed.is_none());
        let Some(bytes) = follow_up else { return self.finish(TalkEnd::Open, now) };
        self.before_follow_up = Some(self.replies.responses.len());
        self.replies.expect("GET");
        self.heard_at = now;
        self.plain.extend_from_slice(&bytes);
        self.flush(io, slot, governor);
    }

    fn time_is_up(&mut self, now: Nanos) {
        let opening = self.raw_talk.as_ref().is_some_and(|raw| raw.is_opening());
        let end = match self.stage {
            _ if opening => TalkEnd::Unconnected(FailureClass::ConnectTimeout),
            LinePhase::Connecting => TalkEnd::Unconnected(FailureClass::ConnectTimeout),
            LinePhase::Handshake => TalkEnd::Unconnected(FailureClass::ClientTimeout),
            _ => TalkEnd::Silent,
        };
        self.finish(end, now);
    }

    fn finish(&mut self, end: TalkEnd, now: Nanos) {
        if self.end.is_none() {
            self.end = Some(end);
            self.over = now - self.script.start;
        }
        self.stage = LinePhase::Over;
    }

    fn note(&mut self, now: Nanos, what: What) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(TalkEvent { at: now - self.script.start, what });
        }
    }
}

#[cfg(test)]
mod tests;
