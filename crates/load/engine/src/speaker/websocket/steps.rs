//! WebSockets that steps of journeys open. One call at a time opens one, sends, waits for
//! messages, or closes it. Messages that arrive between calls are kept for the next call.

use super::{Conclusion, Event, Outstanding, Phase, Request, SocketEnd, SocketSpeaker};
use crate::upgrade::KEY_MARK;
use ::websocket::handshake::ClientOffer;
use protocol::http1::fields;
use sample::SocketClose;
use std::collections::VecDeque;
use std::sync::Arc;
use workload::{SocketAction, SocketCall, opcode};

/// Maximum number of messages that wait for a call, and of their bytes: beyond that the oldest are
/// dropped and counted as unmatched.
const WAITING_MAX: usize = 10_000;
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Additional state of a journey's WebSocket.
#[derive(Debug, Default)]
pub(super) struct StepState {
    /// Call in flight.
    asked: Option<Arc<SocketCall>>,
    /// Number of messages that the call still waits for.
    left: u32,
    /// The call's response has arrived without an event.
    is_ready: bool,
    /// Content of the call's response.
    answer: Vec<u8>,
    /// Head of the server's 101, while the call that opened the WebSocket is the last call.
    pub(super) head: Vec<u8>,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// The calls listen: messages begin with their opcodes, and pongs and closes are messages too.
    pub(super) listens: bool,
    /// Subprotocols of the request that opened the WebSocket; `None` for those of the plan.
    pub(super) offer: Option<ClientOffer>,
}

/// Returns a message after its opcode, as bytes.
pub(super) fn with_opcode(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut heard = Vec::with_capacity(payload.len() + 1);
    heard.push(opcode);
    heard.extend_from_slice(payload);
    heard
}

impl StepState {
    /// Returns whether the call in flight waits for any frame from the server.
    fn is_listening(&self) -> bool {
        self.asked.as_ref().is_some_and(|call| matches!(call.action, SocketAction::Listen))
    }
}

/// Returns the subprotocols that a request offers.
fn offer_of(request: &[u8]) -> ClientOffer {
    let names = fields::all(request, "sec-websocket-protocol");
    let names: Vec<String> =
        names.map(|value| String::from_utf8_lossy(value).into_owned()).collect();
    let names = names.iter().flat_map(|value| value.split(',')).map(|name| name.trim().to_owned());
    ClientOffer { subprotocols: names.collect(), deflate: None }
}

impl SocketSpeaker {
    /// Submits a call: the first opens the WebSocket, all others use it.
    pub(super) fn submit_step(
        &mut self,
        request: &Request<'_>,
        call: &Arc<SocketCall>,
        out: &mut Vec<u8>,
    ) {
        self.calls.push_back(Outstanding { index: request.index, key: None });
        let Some(steps) = &mut self.steps else { return };
        steps.asked = Some(call.clone());
        steps.left = call.action.awaited().map_or(0, |awaited| awaited.count);
        steps.is_ready = false;
        steps.answer.clear();
        steps.head.clear();
        match &call.action {
            SocketAction::Connect => {
                steps.listens = call.listens;
                steps.offer = call.listens.then(|| offer_of(&request.template.bytes));
                self.write_upgrade(request, out);
            }
            SocketAction::Send { text, answer } => {
                if answer.is_some() {
                    self.skip_waiting();
                }
                self.send_message(*text, &request.template.bytes, out);
                self.set_readiness(answer.is_none());
            }
            SocketAction::Expect(_) => self.look_through_waiting(),
            SocketAction::Listen => {
                let first = steps.waiting.pop_front();
                steps.is_ready = first.is_some();
                steps.answer = first.unwrap_or_default();
                steps.waiting_bytes -= steps.answer.len();
            }
            SocketAction::Ping => {
                if let Phase::Open(socket) = &mut self.phase {
                    socket.ping(&request.template.bytes, out);
                    self.news.counts.pings += 1;
                }
                self.set_readiness(true);
            }
            SocketAction::Close { code } => self.close_by_step(*code, out),
        }
    }

    fn send_message(&mut self, text: bool, payload: &[u8], out: &mut Vec<u8>) {
        let Phase::Open(socket) = &mut self.phase else { return };
        let before = out.len();
        socket.send(text, payload, out);
        self.news.counts.sent += 1;
        self.news.counts.payload_sent += payload.len() as u64;
        self.news.counts.wire_sent += (out.len() - before) as u64;
    }

    fn close_by_step(&mut self, code: u16, out: &mut Vec<u8>) {
        let Phase::Open(socket) = &mut self.phase else { return };
        socket.close(Some(code), "", out);
        let close = SocketClose::Client(code);
        self.end.get_or_insert(SocketEnd { close, violation: None });
    }

    fn set_readiness(&mut self, ready: bool) {
        if let Some(steps) = &mut self.steps {
            steps.is_ready = ready;
        }
    }

    /// Drops messages that arrived before a message was sent: they are not answers to it.
    fn skip_waiting(&mut self) {
        let Some(steps) = &mut self.steps else { return };
        self.news.counts.unmatched += steps.waiting.len() as u64;
        steps.waiting.clear();
        steps.waiting_bytes = 0;
    }

    fn look_through_waiting(&mut self) {
        loop {
            let Some(steps) = &mut self.steps else { return };
            let Some(payload) = steps.waiting.pop_front() else { return };
            steps.waiting_bytes -= payload.len();
            if self.takes_message(payload) {
                return self.set_readiness(true);
            }
        }
    }

    /// Compares a message with the expectation of the call in flight. Returns true if it was the
    /// last one.
    fn takes_message(&mut self, payload: Vec<u8>) -> bool {
        let Some(steps) = &mut self.steps else { return false };
        if steps.is_listening() {
            steps.answer = payload;
            return true;
        }
        let asked = steps.asked.as_ref().and_then(|call| call.action.awaited());
        if !asked.is_some_and(|awaited| awaited.takes(&payload)) {
            self.news.counts.unmatched += 1;
            return false;
        }
        steps.left = steps.left.saturating_sub(1);
        if steps.left > 0 {
            return false;
        }
        steps.answer = payload;
        true
    }

    /// Processes a message from the server; returns an event if the message completes the response
    /// to the call in flight.
    pub(super) fn receive_step_message(&mut self, payload: Vec<u8>, wire: u64) -> Event {
        let Some(steps) = &mut self.steps else { return Event::Connection };
        let awaits = steps.asked.as_ref().is_some_and(|call| call.action.awaited().is_some());
        let awaits = awaits || steps.is_listening();
        // messages after the complete response of a call are kept for the next call
        if self.calls.is_empty() || !awaits || steps.is_ready {
            steps.waiting_bytes += payload.len();
            steps.waiting.push_back(payload);
            while steps.waiting.len() > WAITING_MAX || steps.waiting_bytes > WAITING_BYTES_MAX {
                let Some(dropped) = steps.waiting.pop_front() else { break };
                steps.waiting_bytes -= dropped.len();
                self.news.counts.unmatched += 1;
            }
            return Event::Connection;
        }
        let length = payload.len() as u64;
        match self.takes_message(payload) {
            true => self.answered_step(length, wire),
            false => Event::Connection,
        }
    }

    pub(super) fn answered_step(&mut self, length: u64, wire: u64) -> Event {
        if let Some(steps) = &mut self.steps {
            steps.asked = None;
        }
        self.answered(0, length, wire)
    }

    /// Handles the server's close frame: the response to a call that closes, and a message for one
    /// that listens.
    pub(super) fn receive_step_close(&mut self, code: u16) -> Event {
        let Some(steps) = &self.steps else { return Event::Connection };
        let closes = |call: &Arc<SocketCall>| matches!(call.action, SocketAction::Close { .. });
        let asked = !self.calls.is_empty() && steps.asked.as_ref().is_some_and(closes);
        if steps.listens && !asked {
            let event =
                self.receive_step_message(with_opcode(opcode::CLOSE, &code.to_be_bytes()), 0);
            self.facts.persistent &= matches!(event, Event::Connection);
            return event;
        }
        if !asked {
            return Event::Connection;
        }
        let event = self.answered_step(0, 0);
        self.facts.persistent = false;
        event
    }

    /// Handles the 101 of a call that opens a WebSocket.
    pub(super) fn receive_step_open(&mut self, head: &[u8]) -> Event {
        let Some(steps) = &mut self.steps else { return Event::Connection };
        steps.head.clear();
        steps.head.extend_from_slice(head);
        let cookies = fields::set_cookies(head).next().is_some();
        if self.calls.is_empty() {
            return Event::Connection;
        }
        let event = self.answered_step(0, 0);
        self.facts.head_bytes = head.len() as u64;
        self.facts.sets_cookies = cookies;
        event
    }

    /// Concludes the call in flight if it has its response without an event; `sent`: everything has
    /// been sent.
    pub(super) fn conclude_step(&mut self, sent: bool) -> Conclusion {
        let Some(steps) = self.steps.as_ref().filter(|steps| steps.is_ready) else {
            return Conclusion::ByEvent;
        };
        if !sent || self.calls.is_empty() {
            return if sent { Conclusion::ByEvent } else { Conclusion::Later };
        }
        let length = steps.answer.len() as u64;
        self.set_readiness(false);
        self.answered_step(length, 0);
        Conclusion::Done
    }

    /// Returns the content of the response to the call that ended last; `None` if it is not a
    /// WebSocket of a journey.
    pub(crate) fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.steps.as_mut().map(|steps| std::mem::take(&mut steps.answer))
    }

    /// Takes messages that still wait for a call when the connection ends.
    pub(crate) fn take_left_over(&mut self) -> Vec<Vec<u8>> {
        let steps = self.steps.as_mut().filter(|steps| steps.listens);
        steps.map(|steps| std::mem::take(&mut steps.waiting).into()).unwrap_or_default()
    }

    /// Abandons the call. Returns false if the WebSocket is useless without it.
    pub(super) fn withdraw_step(&mut self) -> bool {
        let open = matches!(&self.phase, Phase::Open(socket) if !socket.is_closing());
        if let Some(steps) = &mut self.steps {
            steps.asked = None;
            steps.is_ready = false;
        }
        open
    }
}

/// Replaces the key in the bytes of an upgrade, and adds the cookies.
pub(super) fn put_upgrade(request: &Request<'_>, key: &str, out: &mut Vec<u8>) {
    let bytes = &request.template.bytes;
    let (head, rest) = bytes.split_at(request.template.cookie_at.min(bytes.len()));
    out.extend_from_slice(&super::split_at_mark(head, KEY_MARK.as_bytes()).join(key.as_bytes()));
    if let Some(cookie) = request.cookie {
        for part in ["Cookie: ", cookie, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(rest);
}
