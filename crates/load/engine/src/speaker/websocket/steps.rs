//! WebSockets that steps of journeys open: one call at a time opens one, sends, waits for messages
//! or closes it. Messages that arrive between calls wait for the next one.

use super::{Conclusion, Event, Outstanding, Phase, Request, SocketEnd, SocketSpeaker};
use crate::upgrade::KEY_MARK;
use sample::SocketClose;
use std::collections::VecDeque;
use std::sync::Arc;
use workload::{SocketAction, SocketCall};

/// Maximum number of messages that wait for a call, and of their bytes: beyond that the oldest are
/// dropped and counted as unmatched.
const WAITING_MAX: usize = 10_000;
const WAITING_BYTES_MAX: usize = 4 << 20;

/// State of a WebSocket of a journey, in addition to that of any.
#[derive(Debug, Default)]
pub(super) struct StepState {
    /// The call under way.
    asked: Option<Arc<SocketCall>>,
    /// Messages that it still waits for.
    left: u32,
    /// Its response is there, and was not reported by an event.
    is_ready: bool,
    /// Content of its response.
    answer: Vec<u8>,
    /// Head of the server's 101, while the call that opened the WebSocket is the last.
    pub(super) head: Vec<u8>,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
}

impl SocketSpeaker {
    /// The first call opens the WebSocket; all others use it.
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
            SocketAction::Connect => self.write_upgrade(request, out),
            SocketAction::Send { text, answer } => {
                if answer.is_some() {
                    self.skip_waiting();
                }
                self.send_message(*text, &request.template.bytes, out);
                self.be_ready_if(answer.is_none());
            }
            SocketAction::Expect(_) => self.look_through_waiting(),
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

    fn be_ready_if(&mut self, ready: bool) {
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
                return self.be_ready_if(true);
            }
        }
    }

    /// Compares a message with what the call in flight waits for. Returns true if it was the last
    /// one.
    fn takes_message(&mut self, payload: Vec<u8>) -> bool {
        let Some(steps) = &mut self.steps else { return false };
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

    /// A message of the server; its event, if it completes the response to the call under way.
    pub(super) fn receive_step_message(&mut self, payload: Vec<u8>, wire: u64) -> Event {
        let Some(steps) = &mut self.steps else { return Event::Connection };
        let awaits = steps.asked.as_ref().is_some_and(|call| call.action.awaited().is_some());
        // messages after the complete response of a call are left to the next call
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

    /// The server's close frame: the response to a call that closes.
    pub(super) fn receive_step_close(&mut self) -> Event {
        let Some(steps) = &self.steps else { return Event::Connection };
        let closes = |call: &Arc<SocketCall>| matches!(call.action, SocketAction::Close { .. });
        if self.calls.is_empty() || !steps.asked.as_ref().is_some_and(closes) {
            return Event::Connection;
        }
        let event = self.answered_step(0, 0);
        self.facts.persistent = false;
        event
    }

    /// The 101 of a call that opens a WebSocket.
    pub(super) fn receive_step_open(&mut self, head: &[u8]) -> Event {
        let Some(steps) = &mut self.steps else { return Event::Connection };
        steps.head.clear();
        steps.head.extend_from_slice(head);
        let cookies = protocol::http1::fields::set_cookies(head).next().is_some();
        if self.calls.is_empty() {
            return Event::Connection;
        }
        let event = self.answered_step(0, 0);
        self.facts.head_bytes = head.len() as u64;
        self.facts.sets_cookies = cookies;
        event
    }

    /// Reports that the call under way has its response without an event; `sent`: all that it sent
    /// has gone out.
    pub(super) fn conclude_step(&mut self, sent: bool) -> Conclusion {
        let Some(steps) = self.steps.as_ref().filter(|steps| steps.is_ready) else {
            return Conclusion::ByEvent;
        };
        if !sent || self.calls.is_empty() {
            return if sent { Conclusion::ByEvent } else { Conclusion::Later };
        }
        let length = steps.answer.len() as u64;
        self.be_ready_if(false);
        self.answered_step(length, 0);
        Conclusion::Done
    }

    /// Content of the response to the call that ended last; `None`: not a WebSocket of a journey.
    pub(crate) fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.steps.as_mut().map(|steps| std::mem::take(&mut steps.answer))
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
    out.extend_from_slice(&super::cut(head, KEY_MARK.as_bytes()).join(key.as_bytes()));
    if let Some(cookie) = request.cookie {
        for part in ["Cookie: ", cookie, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(rest);
}
