//! A tiny multiplexed protocol for testing the interface: frames of four bytes, each with the
//! number of its stream, so that responses may come in any order and interleaved.
//!
//! ```text
//! number kind length 0   then `length` bytes of content
//! ```
//!
//! A client sends a request with kind `?`, and withdraws with `x`. A server answers with `.` (more
//! of this response follows) or `!` (its end), refuses a stream with `r`, abandons one with `x`,
//! requests an echo `P` with `p`, and announces with `g` that it accepts no more streams.

use super::{Event, Fault, Processed, Request};
use protocol::http1::response::ResponseFacts;
use sample::FailureClass;

const HEADER: usize = 4;
/// Streams that the peer allows at once.
pub(crate) const STREAMS_MAX: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct Numbered {
    next: u8,
    /// The outstanding streams, in the order of their calls.
    streams: Vec<NumberedStream>,
    /// The peer accepts no further streams.
    going_away: bool,
    facts: ResponseFacts,
}

#[derive(Clone, Copy, Debug)]
struct NumberedStream {
    number: u8,
    facts: ResponseFacts,
}

pub(crate) fn frame(number: u8, kind: u8, content: &[u8]) -> Vec<u8> {
    [&[number, kind, content.len() as u8, 0], content].concat()
}

impl Numbered {
    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        *self = Numbered::default();
        out.extend(frame(0, b'h', b""));
    }

    pub(super) fn capacity(&self, depth: u32) -> u32 {
        if self.going_away { 0 } else { depth.min(STREAMS_MAX) }
    }

    pub(super) fn send_request(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        self.next += 1;
        self.streams.push(NumberedStream { number: self.next, facts: ResponseFacts::default() });
        out.extend(frame(self.next, b'?', request.template.method.as_bytes()));
    }

    pub(super) fn process(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Processed, Fault> {
        let [number, kind, length, _, ref rest @ ..] = *input else {
            // the tests cut only between frames
            return Err(Fault::Broken { class: FailureClass::BadFraming });
        };
        let length = usize::from(length);
        if rest.len() < length {
            return Err(Fault::Broken { class: FailureClass::BadFraming });
        }
        let consumed = HEADER + length;
        let heard = |event| Ok(Processed { consumed, event });
        match kind {
            b'p' => {
                out.extend(frame(number, b'P', b""));
                return heard(Event::Connection);
            }
            b'g' => {
                self.going_away = true;
                return heard(Event::Connection);
            }
            _ => {}
        }
        let Some(call) = self.streams.iter().position(|stream| stream.number == number) else {
            return Err(Fault::Unasked);
        };
        match kind {
            b'.' | b'!' => {
                let done = kind == b'!';
                let facts = &mut self.streams[call].facts;
                (facts.status, facts.persistent) = (200, true);
                facts.framing_bytes += HEADER as u64;
                facts.body_bytes += length as u64;
                if done {
                    self.facts = self.streams.remove(call).facts;
                }
                heard(Event::Response { call, body: HEADER..consumed, done })
            }
            b'r' => {
                self.streams.remove(call);
                heard(Event::Refused { call })
            }
            _ => {
                self.facts = self.streams.remove(call).facts;
                heard(Event::Failed { call, class: FailureClass::Reset })
            }
        }
    }

    pub(super) fn receive_end(&mut self) -> Result<(), FailureClass> {
        Err(FailureClass::ClosedEarly)
    }

    pub(super) fn withdraw(&mut self, call: usize, out: &mut Vec<u8>) -> bool {
        let stream = self.streams.remove(call);
        out.extend(frame(stream.number, b'x', b""));
        true
    }

    pub(super) fn facts(&self) -> ResponseFacts {
        self.facts
    }

    pub(super) fn head(&self) -> &[u8] {
        &[]
    }

    pub(super) fn partial(&self, call: usize) -> Option<ResponseFacts> {
        let facts = self.streams.get(call)?.facts;
        (facts.status != 0).then_some(facts)
    }
}
