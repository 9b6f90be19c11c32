//! Bodies that are streams of events, each sent at its own time.

use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::time::{Instant, Sleep};

use super::model::Chat;
use crate::route::EventPlan;

/// Maximum number of late events that are sent together.
const TOGETHER_MAX: u64 = 1_000;

/// Content of the events.
#[derive(Debug)]
pub(super) enum EventText {
    /// Numbers of the events.
    Numbers,
    /// Tokens of a language model.
    Chat(Box<Chat>),
}

/// Each event is due at a time after the start, not after the previous event, so that no event
/// delays later ones.
#[derive(Debug)]
pub(super) struct Events {
    plan: EventPlan,
    text: EventText,
    /// True if the part ahead of the events was sent.
    begun: bool,
    start: Instant,
    next: u64,
    sleep: Pin<Box<Sleep>>,
}

impl Events {
    /// Creates a stream whose schedule begins now.
    pub(super) fn new(plan: EventPlan, text: EventText) -> Events {
        let start = Instant::now();
        let sleep = Box::pin(tokio::time::sleep_until(start + Duration::from_nanos(plan.first.0)));
        Events { plan, text, begun: false, start, next: 0, sleep }
    }

    /// Returns when an event is sent, relative to the start.
    fn offset(&self, event: u64) -> Duration {
        Duration::from_nanos(self.plan.first.0 + self.plan.every.0 * event)
    }

    /// Returns due data, which is empty after the last event.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        if self.next == self.plan.count {
            return Poll::Ready(Bytes::new());
        }
        if !std::mem::replace(&mut self.begun, true)
            && let EventText::Chat(chat) = &self.text
        {
            let mut text = String::new();
            chat.write_start(&mut text);
            return Poll::Ready(text.into());
        }
        ready!(self.sleep.as_mut().poll(cx));
        let passed = self.start.elapsed();
        let mut text = String::new();
        let from = self.next;
        while self.next < self.plan.count
            && self.next - from < TOGETHER_MAX
            && (self.next == from || self.offset(self.next) <= passed)
        {
            self.next += 1;
            match &self.text {
                EventText::Numbers => write_event(&mut text, &self.plan, self.next),
                EventText::Chat(chat) => chat.write_token(&mut text, self.next),
            }
        }
        let at = self.start + self.offset(self.next);
        self.sleep.as_mut().reset(at);
        Poll::Ready(text.into())
    }
}

/// Writes event `number`, counted from 1; after the last SSE event, the end mark of language model
/// servers.
fn write_event(text: &mut String, plan: &EventPlan, number: u64) {
    let written = match (plan.lines, number == plan.count) {
        (true, _) => writeln!(text, "{{\"n\":{number}}}"),
        (false, false) => write!(text, "id: {number}\ndata: {{\"n\":{number}}}\n\n"),
        (false, true) => {
            write!(text, "id: {number}\ndata: {{\"n\":{number}}}\n\ndata: [DONE]\n\n")
        }
    };
    written.expect("writing to a String cannot fail");
}
