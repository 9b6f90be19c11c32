//! WebSocket: an upgrade over HTTP/1.1, then messages. A call is a message with its answer; the
//! plan's correlation rule decides which message from the server answers it. Answers may come in
//! any order, and some messages answer no call.

mod preset;
mod rest;
mod steps;

use super::{Event, Fault, Processed, Request};
use crate::decimal::{DIGITS_MAX, decimal_digits};
use crate::upgrade::offer;
use ::websocket::handshake::{self, ClientError, ClientOffer};
use ::websocket::{Masking, Payload, SocketEvent, SocketOptions, WebSocket, close};
use plan::{ID_MARK, MessageAnswer, Plan, ROOM_MARKS};
use preset::PresetTerms;
use protocol::http1::response::{Framing, ResponseFacts};
use regex::bytes::Regex;
pub(crate) use rest::RestingSocket;
use sample::{FailureClass, SocketClose, SocketCounts, SocketTime};
use std::collections::VecDeque;
use std::sync::Arc;
use steps::StepState;
use twox_hash::XxHash3_128;
use units::{Nanos, Purpose, Seed, Stream};
use workload::{Template, opcode};

/// Correlation keys of messages that timed out, kept to recognize their late answers.
const LATE_MAX: usize = 256;
/// Status of a call that has its answer: the status of the upgrade.
const STATUS: u16 = 101;

/// State shared by all WebSockets of a run.
#[derive(Debug)]
pub(crate) struct SocketTerms {
    offer: ClientOffer,
    /// The message, cut where the number of the call is inserted.
    pieces: Vec<Vec<u8>>,
    text: bool,
    rule: AnswerRule,
    preset: Option<PresetTerms>,
    /// Connections are only held open: only pings are sent.
    holds: bool,
    /// Messages are published for the members of rooms.
    publishes: bool,
    /// Calls are steps of journeys.
    stepped: bool,
    zero_masks: bool,
    /// Longest head of a response to the upgrade.
    head_max: usize,
    seed: Seed,
}

/// Correlation of answers.
#[derive(Debug)]
enum AnswerRule {
    Echo,
    Json(String),
    Regex(Box<Regex>),
    Next,
    None,
}

impl SocketTerms {
    /// Guides make the calls, and know what was negotiated with the server.
    pub(crate) fn guided(self) -> SocketTerms {
        SocketTerms { stepped: true, ..self }
    }

    /// # Errors
    /// Fails if an expression does not compile.
    pub(crate) fn new(plan: &Plan) -> Result<SocketTerms, String> {
        let message = plan.websocket_message();
        let rule = match &plan.websocket_answer() {
            MessageAnswer::Echo => AnswerRule::Echo,
            MessageAnswer::Json(pointer) => AnswerRule::Json(pointer.clone()),
            MessageAnswer::Regex(text) => {
                let regex = Regex::new(text);
                AnswerRule::Regex(Box::new(
                    regex.map_err(|error| format!("--ws-expect regex: {error}"))?,
                ))
            }
            MessageAnswer::Next => AnswerRule::Next,
            MessageAnswer::None => AnswerRule::None,
        };
        Ok(SocketTerms {
            offer: offer(plan),
            pieces: split_at_mark(message, ID_MARK.as_bytes()),
            text: std::str::from_utf8(message).is_ok(),
            rule,
            preset: plan.websocket.preset.map(PresetTerms::new).transpose()?,
            holds: plan.holds_websockets(),
            publishes: plan.websocket.rooms.is_some(),
            stepped: plan.journeys.is_some(),
            zero_masks: plan.websocket.mask == plan::MaskRule::Zero,
            head_max: plan.connection.head_max as usize,
            seed: Seed(plan.seed),
        })
    }

    /// Returns whether messages have answers.
    pub(crate) fn has_answers(&self) -> bool {
        !self.publishes && (!matches!(self.rule, AnswerRule::None) || self.holds)
    }

    /// Appends the message of call `index`.
    fn message(&self, index: u64, out: &mut Vec<u8>) {
        let mut digits = [0; DIGITS_MAX];
        let number = decimal_digits(index, &mut digits).as_bytes();
        for (row, piece) in self.pieces.iter().enumerate() {
            if row > 0 {
                out.extend_from_slice(number);
            }
            out.extend_from_slice(piece);
        }
    }

    /// Returns the key shared by a message and its answer, or `None` if there is no key, and the
    /// order decides.
    fn key(&self, payload: &[u8]) -> Option<u64> {
        let hash = |bytes: &[u8]| XxHash3_128::oneshot(bytes) as u64;
        match &self.rule {
            AnswerRule::Echo => Some(hash(payload)),
            AnswerRule::Json(pointer) => {
                let value = serde_json::from_slice::<serde_json::Value>(payload).ok()?;
                Some(hash(value.pointer(pointer)?.to_string().as_bytes()))
            }
            AnswerRule::Regex(regex) => {
                let found = regex.captures(payload)?;
                let part = found.get(1).or_else(|| found.get(0))?;
                Some(hash(part.as_bytes()))
            }
            AnswerRule::Next | AnswerRule::None => None,
        }
    }

    /// Returns the key of a server message that can be an answer.
    fn answer_key(&self, payload: &[u8]) -> Option<Option<u64>> {
        let key = self.key(payload);
        match &self.rule {
            AnswerRule::Echo | AnswerRule::Json(_) | AnswerRule::Regex(_) => key.map(Some),
            AnswerRule::Next => Some(None),
            AnswerRule::None => None,
        }
    }
}

fn split_at_mark(text: &[u8], mark: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
        pieces.push(rest[..at].to_vec());
        rest = &rest[at + mark.len()..];
    }
    pieces.push(rest.to_vec());
    pieces
}

/// A message that waits for its answer, or to be sent.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    index: u64,
    /// Key of the answer; `None` if any answer matches.
    key: Option<u64>,
}

#[derive(Debug)]
enum Phase {
    /// No bytes were sent yet.
    Fresh,
    /// The upgrade was sent, and this much of the response has arrived.
    Opening {
        key: String,
        head: Vec<u8>,
    },
    Open(Box<WebSocket>),
    /// No more bytes are sent or parsed.
    Over,
}

/// Events on a connection since the last query. A query follows each piece of input, so there is at
/// most one time and one message.
#[derive(Debug, Default)]
pub(crate) struct SocketNews {
    pub(crate) counts: SocketCounts,
    pub(crate) time: Option<SocketTime>,
    /// Key of the message received by a member of a room.
    pub(crate) delivery: Option<Option<u64>>,
}

/// Result of a check for calls that end without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conclusion {
    Done,
    /// Done once all its messages have left the client.
    Later,
    /// The call waits for an event, or there is no call.
    ByEvent,
}

/// End of a connection.
#[derive(Debug)]
pub(crate) struct SocketEnd {
    pub(crate) close: SocketClose,
    /// Protocol violation by the peer.
    pub(crate) violation: Option<String>,
}

#[derive(Debug)]
pub(crate) struct SocketSpeaker {
    terms: Arc<SocketTerms>,
    phase: Phase,
    calls: VecDeque<Outstanding>,
    /// Keys of calls that were withdrawn.
    late: VecDeque<u64>,
    /// Number of answers without a key that withdrawn calls still wait for.
    owed: u64,
    /// Positions of calls whose messages were sent after the query.
    opened: std::ops::Range<usize>,
    facts: ResponseFacts,
    news: SocketNews,
    end: Option<SocketEnd>,
    random: Stream,
    /// Instant at which the upgrade was sent, if known.
    asked_at: Nanos,
    /// Instant at which the last message from the server arrived.
    heard_at: Nanos,
    /// Instant at which the last byte before a close frame arrived.
    input_at: Nanos,
    /// Instant at which the heartbeat without a pong was sent.
    pinged_at: Nanos,
    scratch: Vec<u8>,
    /// True if the server does not accept messages of the application yet.
    greeting: bool,
    steps: Option<Box<StepState>>,
}

impl SocketSpeaker {
    pub(super) fn new(terms: Arc<SocketTerms>) -> SocketSpeaker {
        SocketSpeaker {
            phase: Phase::Fresh,
            calls: VecDeque::new(),
            late: VecDeque::new(),
            owed: 0,
            opened: 0..0,
            facts: ResponseFacts::default(),
            news: SocketNews::default(),
            end: None,
            random: terms.seed.stream(Purpose::Sockets, 0),
            asked_at: Nanos::ZERO,
            heard_at: Nanos::ZERO,
            input_at: Nanos::ZERO,
            pinged_at: Nanos::ZERO,
            scratch: Vec::new(),
            greeting: false,
            steps: terms.stepped.then(Box::default),
            terms,
        }
    }

    pub(super) fn start(&mut self, _out: &mut Vec<u8>) {
        let terms = self.terms.clone();
        let scratch = std::mem::take(&mut self.scratch);
        *self = SocketSpeaker { scratch, ..SocketSpeaker::new(terms) };
    }

    pub(super) fn capacity(&self, depth: u32) -> u32 {
        match &self.phase {
            Phase::Over => 0,
            Phase::Open(socket) if socket.is_closing() => 0,
            _ => depth,
        }
    }

    /// Sends the upgrade with the first call, whose message follows the 101.
    pub(super) fn send_request(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        if let Some(call) = request.template.socket.clone() {
            return self.submit_step(request, &call, out);
        }
        self.calls.push_back(Outstanding { index: request.index, key: None });
        match &self.phase {
            Phase::Fresh => self.write_upgrade(request, out),
            Phase::Open(_) if !self.greeting => self.send(self.calls.len() - 1, out),
            Phase::Open(_) | Phase::Opening { .. } | Phase::Over => {}
        }
    }

    fn write_upgrade(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        self.random = self.terms.seed.stream(Purpose::Sockets, request.index);
        let key = self.draw_key();
        steps::put_upgrade(request, &key, out);
        self.phase = Phase::Opening { key, head: Vec::new() };
    }

    fn draw_key(&mut self) -> String {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.random.next_u64().to_be_bytes());
        nonce[8..].copy_from_slice(&self.random.next_u64().to_be_bytes());
        handshake::key(nonce)
    }

    /// Sends the message of the call at this position.
    fn send(&mut self, place: usize, out: &mut Vec<u8>) {
        let (Phase::Open(socket), Some(call)) = (&mut self.phase, self.calls.get_mut(place)) else {
            return;
        };
        let before = out.len();
        self.scratch.clear();
        if self.terms.holds {
            let mut digits = [0; DIGITS_MAX];
            self.scratch.extend_from_slice(decimal_digits(call.index, &mut digits).as_bytes());
            call.key = Some(XxHash3_128::oneshot(&self.scratch) as u64);
            socket.ping(&self.scratch, out);
            self.news.counts.pings += 1;
            return;
        }
        self.terms.message(call.index, &mut self.scratch);
        call.key = self.terms.key(&self.scratch);
        socket.send(self.terms.text, &self.scratch, out);
        self.news.counts.sent += 1;
        self.news.counts.payload_sent += self.scratch.len() as u64;
        self.news.counts.wire_sent += (out.len() - before) as u64;
    }

    /// Processes the input of one event.
    pub(super) fn process(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Result<Processed, Fault> {
        match &self.phase {
            Phase::Opening { .. } => self.receive_head(input, now, out),
            Phase::Open(_) => self.receive_frames(input, now, out),
            Phase::Fresh => Err(Fault::Unasked),
            Phase::Over => Ok(Processed { consumed: input.len(), event: Event::Connection }),
        }
    }

    fn receive_head(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Result<Processed, Fault> {
        let Phase::Opening { key, head } = &mut self.phase else { return Err(Fault::Unasked) };
        let before = head.len();
        head.extend_from_slice(input);
        let offer = self.steps.as_ref().and_then(|it| it.offer.as_ref());
        let offer = offer.unwrap_or(&self.terms.offer);
        let read = handshake::read_response(head, key, offer);
        if read.as_ref().map_or(head.len(), |(size, _)| *size) > self.terms.head_max {
            return Err(self.refuse(FailureClass::UpgradeInvalid, "a head above --head-max"));
        }
        let Some((size, outcome)) = read else {
            return Ok(Processed { consumed: input.len(), event: Event::Connection });
        };
        let agreed = outcome.map_err(|error| {
            let class = match error {
                ClientError::Status(_) => FailureClass::UpgradeRefused,
                ClientError::NotHttp => FailureClass::NotHttp,
                _ => FailureClass::UpgradeInvalid,
            };
            self.refuse(class, &error.to_string())
        })?;
        let masking = match self.terms.zero_masks {
            true => Masking::Zero,
            false => Masking::Random(self.random.next_u64()),
        };
        let options = SocketOptions { deflate: agreed.deflate, ..SocketOptions::client(masking) };
        let head = match &mut self.phase {
            Phase::Opening { head, .. } => std::mem::take(head),
            _ => Vec::new(),
        };
        self.phase = Phase::Open(Box::new(WebSocket::new(&options)));
        self.news.counts.opened += 1;
        self.input_at = now;
        self.news.counts.compressed += u64::from(agreed.deflate.is_some());
        self.news.time = Some(SocketTime::Handshake(now - self.asked_at));
        let consumed = size - before;
        if self.steps.is_some() {
            let event = self.receive_step_open(&head[..size]);
            return Ok(Processed { consumed, event });
        }
        if !self.greet(out) {
            self.send_waiting(out);
        }
        Ok(Processed { consumed, event: Event::Connection })
    }

    /// Sends the messages of calls that waited for the server.
    fn send_waiting(&mut self, out: &mut Vec<u8>) {
        for place in 0..self.calls.len() {
            self.send(place, out);
        }
        self.opened = 0..self.calls.len();
    }

    fn refuse(&mut self, class: FailureClass, why: &str) -> Fault {
        self.end = Some(SocketEnd { close: SocketClose::Refused, violation: Some(why.to_owned()) });
        self.phase = Phase::Over;
        Fault::Broken { class }
    }

    fn receive_frames(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Result<Processed, Fault> {
        let Phase::Open(socket) = &mut self.phase else { return Err(Fault::Unasked) };
        let before = std::mem::replace(&mut self.input_at, now);
        let received = match socket.receive(input, out) {
            Ok(received) => received,
            Err(failure) => {
                let close = SocketClose::Violation(failure.code);
                let violation = Some(failure.to_string());
                self.end.get_or_insert(SocketEnd { close, violation });
                return Err(Fault::Broken { class: FailureClass::MessageProtocol });
            }
        };
        let event = match &received.event {
            SocketEvent::Nothing | SocketEvent::Ping => Event::Connection,
            SocketEvent::Pong => {
                let payload = socket.payload(&Payload::Held, input);
                match self.steps.as_ref().is_some_and(|steps| steps.listens) {
                    true => {
                        let event = steps::with_opcode(opcode::PONG, payload);
                        self.receive_step_message(event, 0)
                    }
                    false => {
                        let key = XxHash3_128::oneshot(payload) as u64;
                        self.receive_pong(key, now)
                    }
                }
            }
            SocketEvent::Close { code } => {
                self.input_at = before;
                let code = code.unwrap_or(close::NO_STATUS);
                let close = SocketClose::Server(code);
                self.end.get_or_insert(SocketEnd { close, violation: None });
                self.receive_step_close(code)
            }
            SocketEvent::Message { text, frames, wire, payload } => {
                let payload = socket.payload(payload, input);
                let (frames, wire, length) = (*frames, *wire, payload.len() as u64);
                let preset = self.terms.preset.as_ref();
                let own = preset.and_then(|preset| preset.meaning(payload, self.greeting));
                if let Some(own) = own {
                    self.process_preset_message(own, out)
                } else if let Some(steps) = &self.steps {
                    let kind = if *text { opcode::TEXT } else { opcode::BINARY };
                    let payload = match steps.listens {
                        true => steps::with_opcode(kind, payload),
                        false => payload.to_vec(),
                    };
                    self.count_message((frames, wire, length), now);
                    self.receive_step_message(payload, wire)
                } else {
                    let key = self.terms.answer_key(payload);
                    self.receive_message(key, (frames, wire, length), now)
                }
            }
        };
        Ok(Processed { consumed: received.consumed, event })
    }

    fn receive_message(
        &mut self,
        key: Option<Option<u64>>,
        (frames, wire, length): (u32, u64, u64),
        now: Nanos,
    ) -> Event {
        self.count_message((frames, wire, length), now);
        if self.terms.publishes {
            self.news.delivery = Some(key.flatten());
            return Event::Connection;
        }
        let Some(key) = key else {
            self.news.counts.unmatched += 1;
            return Event::Connection;
        };
        let Some(place) = self.place_of(key) else { return Event::Connection };
        self.answered(place, length, wire)
    }

    fn count_message(&mut self, (frames, wire, length): (u32, u64, u64), now: Nanos) {
        let news = &mut self.news;
        news.counts.received += 1;
        news.counts.frames_received += u64::from(frames);
        news.counts.payload_received += length;
        news.counts.wire_received += wire;
        if !self.heard_at.is_zero() {
            news.time = Some(SocketTime::Gap(now - self.heard_at));
        }
        self.heard_at = now;
    }

    /// Returns the position of the call that an answer with this key belongs to; counts unmatched
    /// answers.
    fn place_of(&mut self, key: Option<u64>) -> Option<usize> {
        let Some(key) = key else {
            if self.owed > 0 {
                self.owed -= 1;
                self.news.counts.late += 1;
                return None;
            }
            let found = (!self.calls.is_empty()).then_some(0);
            self.news.counts.unmatched += u64::from(found.is_none());
            return found;
        };
        // the order decides between equal keys, and for messages without a key
        let fits = |call: &Outstanding| call.key.is_none_or(|own| own == key);
        if let Some(place) = self.calls.iter().position(fits) {
            return Some(place);
        }
        if let Some(at) = self.late.iter().position(|known| *known == key) {
            self.late.remove(at);
            self.news.counts.late += 1;
        } else {
            self.news.counts.unmatched += 1;
        }
        None
    }

    fn answered(&mut self, place: usize, length: u64, wire: u64) -> Event {
        self.calls.remove(place);
        self.facts = ResponseFacts {
            status: STATUS,
            minor_version: 1,
            persistent: true,
            framing: Framing::Length,
            head_bytes: 0,
            body_bytes: length,
            framing_bytes: wire.saturating_sub(length),
            trailer_bytes: 0,
            interim: 0,
            timed: false,
            sets_cookies: false,
        };
        Event::Response { call: place, body: 0..0, done: true }
    }

    fn receive_pong(&mut self, key: u64, now: Nanos) -> Event {
        if self.terms.holds {
            let fits = |call: &Outstanding| call.key == Some(key);
            let Some(place) = self.calls.iter().position(fits) else { return Event::Connection };
            self.news.counts.pongs += 1;
            return self.answered(place, 0, 0);
        }
        if !self.pinged_at.is_zero() {
            self.news.counts.pongs += 1;
            self.news.time = Some(SocketTime::Ping(now - std::mem::take(&mut self.pinged_at)));
        }
        Event::Connection
    }

    /// Requests the upgrade of a connection without a call, as a member of a room.
    pub(crate) fn join(&mut self, template: &Template, room: u64, index: u64, out: &mut Vec<u8>) {
        let mut template = template.clone();
        let number = room.to_string();
        for mark in ROOM_MARKS {
            template.bytes =
                split_at_mark(&template.bytes, mark.as_bytes()).join(number.as_bytes());
        }
        // its cookies are at the end of the head, which has moved
        template.cookie_at = template.bytes.len();
        let request = Request { template: &template, last: false, cookie: None, index };
        self.write_upgrade(&request, out);
    }

    /// Returns the key of the message that was sent last, by which its receivers identify it.
    pub(crate) fn sent_key(&self) -> Option<u64> {
        self.calls.back()?.key
    }

    /// Sends a heartbeat.
    pub(crate) fn ping(&mut self, now: Nanos, out: &mut Vec<u8>) {
        if self.beat(out) {
            return;
        }
        if let Phase::Open(socket) = &mut self.phase {
            // an unanswered ping keeps its instant: its pong ends the whole wait
            if self.pinged_at.is_zero() {
                self.pinged_at = now;
            }
            self.news.counts.pings += 1;
            socket.ping(b"loadstone", out);
        }
    }

    /// Begins the closing handshake of a connection that is no longer needed.
    pub(crate) fn send_close(&mut self, out: &mut Vec<u8>) {
        if let Phase::Open(socket) = &mut self.phase
            && !socket.is_closing()
        {
            socket.close(Some(close::NORMAL), "", out);
            let close = SocketClose::Client(close::NORMAL);
            self.end.get_or_insert(SocketEnd { close, violation: None });
        }
    }

    /// Returns whether the handshake is complete and the connection has not ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Returns whether the client began the closing handshake.
    pub(crate) fn is_closed_by_client(&self) -> bool {
        self.end.as_ref().is_some_and(|end| matches!(end.close, SocketClose::Client(_)))
    }

    /// Notes that the client ends the connection without a close frame.
    pub(crate) fn reset(&mut self) {
        let close = SocketClose::Client(close::ABNORMAL);
        self.end.get_or_insert(SocketEnd { close, violation: None });
    }

    /// Notes that the connection is established, and the upgrade is sent at `now`.
    pub(crate) fn set_asked(&mut self, now: Nanos) {
        self.asked_at = now;
    }

    /// Concludes the oldest call, if it waits for no message; `sent`: all its messages have been
    /// sent.
    pub(crate) fn conclude_sent(&mut self, sent: bool) -> Conclusion {
        if self.steps.is_some() {
            return self.conclude_step(sent);
        }
        let open = matches!(self.phase, Phase::Open(_));
        match () {
            () if self.calls.is_empty() => Conclusion::ByEvent,
            () if !sent || !open || self.greeting => Conclusion::Later,
            () if self.terms.has_answers() => Conclusion::ByEvent,
            () => {
                self.answered(0, 0, 0);
                Conclusion::Done
            }
        }
    }

    pub(super) fn receive_end(&mut self) -> Result<(), FailureClass> {
        let class = match (&self.end, &self.phase) {
            (Some(SocketEnd { close: SocketClose::Server(_), .. }), _) => {
                FailureClass::SocketClosed
            }
            _ => FailureClass::ClosedEarly,
        };
        Err(class)
    }

    /// Abandons the call; a later answer is counted as late.
    pub(super) fn withdraw(&mut self, call: usize, _out: &mut Vec<u8>) -> bool {
        let Some(gone) = self.calls.remove(call) else { return true };
        if self.steps.is_some() {
            return self.withdraw_step();
        }
        match gone.key {
            _ if !matches!(self.phase, Phase::Open(_)) => {}
            None => self.owed += 1,
            Some(key) => {
                if self.late.len() == LATE_MAX {
                    self.late.pop_front();
                }
                self.late.push_back(key);
            }
        }
        true
    }

    pub(super) fn facts(&self) -> ResponseFacts {
        self.facts
    }

    /// Returns the head of the server's 101, after the step that opened the WebSocket.
    pub(super) fn head(&self) -> &[u8] {
        self.steps.as_ref().map_or(&[], |steps| &steps.head)
    }

    /// Returns nothing: an answer is either complete or absent.
    pub(super) fn partial(&self, _call: usize) -> Option<ResponseFacts> {
        None
    }

    pub(super) fn take_opened(&mut self) -> Option<usize> {
        self.opened.next()
    }

    pub(crate) fn take_news(&mut self) -> Option<SocketNews> {
        (!self.is_silent()).then(|| std::mem::take(&mut self.news))
    }

    /// Returns whether nothing happened since the last query.
    fn is_silent(&self) -> bool {
        self.news.counts == SocketCounts::default() && self.news.time.is_none()
    }

    /// Returns when the last byte before a close frame arrived.
    pub(crate) fn input_at(&self) -> Nanos {
        self.input_at
    }

    /// Returns how the connection ended; valid once it has ended.
    pub(crate) fn take_end(&mut self) -> Option<SocketEnd> {
        let lost = match &self.phase {
            Phase::Fresh => None,
            Phase::Opening { .. } => Some(SocketEnd {
                close: SocketClose::Refused,
                violation: Some("no response to the upgrade".to_owned()),
            }),
            Phase::Open(_) | Phase::Over => {
                Some(SocketEnd { close: SocketClose::Lost, violation: None })
            }
        };
        self.phase = Phase::Over;
        self.end.take().or(lost)
    }
}
