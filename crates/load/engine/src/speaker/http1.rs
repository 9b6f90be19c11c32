//! HTTP/1.x: responses come in request order, so every event belongs to the oldest call.

use super::{Fault, ReadCaches, Request};
use protocol::http1::response::{
    Advance, Asked, Leniency, Limits, ResponseError, ResponseFacts, ResponseReader,
};
use protocol::http1::timing::{Malformed, Timing};
use sample::FailureClass;
use workload::Template;

#[derive(Debug)]
pub(crate) struct Http1 {
    reader: ResponseReader,
    /// The oldest call for which the reader is set. The reader is set when that call's first byte
    /// arrives, so that the facts and the head of the previous response are kept until then.
    reading: bool,
}

impl Http1 {
    pub(super) fn new(keeps_heads: bool, lenient: Leniency, limits: Limits) -> Http1 {
        let reader = ResponseReader::with_limits(keeps_heads, limits).lenient(lenient);
        Http1 { reader, reading: false }
    }

    pub(super) fn start(&mut self, _out: &mut Vec<u8>) {
        self.reading = false;
    }

    /// Returns the number of requests in a pipeline.
    #[inline]
    pub(super) fn capacity(&self, depth: u32) -> u32 {
        depth
    }

    #[inline]
    pub(super) fn send_request(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        let Request { template, last, cookie, .. } = *request;
        match cookie {
            None => out.extend_from_slice(if last { &template.last } else { &template.bytes }),
            Some(cookie) => ask_with_cookie(template, last, cookie, out),
        }
    }

    /// Processes a piece of the oldest call's response; `asked`: its request.
    #[inline(always)]
    pub(crate) fn process(
        &mut self,
        shared: &mut ReadCaches,
        asked: Asked,
        input: &[u8],
    ) -> Result<Advance, Fault> {
        let heads = &mut shared.heads;
        let advance = match self.reading {
            true => self.reader.advance(heads, input),
            false => self.reader.begin(asked, heads, input),
        };
        match advance {
            Ok(advance) => {
                self.reading = !advance.done;
                Ok(advance)
            }
            Err(error) => {
                // the received bytes of an unreadable response still count
                self.reading = true;
                Err(Fault::Broken { class: class_of(&error) })
            }
        }
    }

    pub(super) fn receive_end(&mut self) -> Result<(), FailureClass> {
        if !std::mem::take(&mut self.reading) {
            return Err(FailureClass::ClosedEarly);
        }
        let ended = self.reader.end_of_input();
        // the received bytes of a truncated response still count
        self.reading = ended.is_err();
        ended.map_err(|error| class_of(&error))
    }

    /// Refuses to withdraw: the response would still arrive, before those of later calls.
    pub(super) fn withdraw(&mut self, _call: usize, _out: &mut Vec<u8>) -> bool {
        false
    }

    #[inline]
    pub(super) fn facts(&self) -> ResponseFacts {
        self.reader.facts()
    }

    pub(super) fn head(&self) -> &[u8] {
        self.reader.head()
    }

    pub(super) fn timings(&self) -> impl Iterator<Item = Result<Timing<'_>, Malformed>> {
        self.reader.server_timings()
    }

    pub(super) fn partial(&self, call: usize) -> Option<ResponseFacts> {
        let begun = call == 0 && self.reading && self.reader.has_begun();
        begun.then(|| self.reader.facts_so_far())
    }
}

#[inline(never)]
fn ask_with_cookie(template: &Template, last: bool, cookie: &str, out: &mut Vec<u8>) {
    let (bytes, at) = if last {
        (&template.last, template.cookie_at_last)
    } else {
        (&template.bytes, template.cookie_at)
    };
    let (head, rest) = bytes.split_at(at);
    out.extend_from_slice(head);
    out.extend_from_slice(b"Cookie: ");
    out.extend_from_slice(cookie.as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(rest);
}

/// Returns the failure class for an unparsable response.
pub(crate) fn class_of(error: &ResponseError) -> FailureClass {
    match error {
        ResponseError::NotHttp => FailureClass::NotHttp,
        ResponseError::BadFraming(_) | ResponseError::HeadTooLarge => FailureClass::BadFraming,
        ResponseError::ClosedEarly => FailureClass::ClosedEarly,
        ResponseError::Truncated => FailureClass::Truncated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_above_the_limit_is_broken() {
        let head = format!("HTTP/1.1 204 OK\r\nA: {}\r\n\r\n", "x".repeat(2_000));
        let process = |head_max| {
            let limits = Limits { head_max, ..Limits::default() };
            let mut http1 = Http1::new(false, Leniency::default(), limits);
            http1.process(&mut ReadCaches::default(), Asked::Ordinary, head.as_bytes())
        };
        assert_eq!(process(1 << 10), Err(Fault::Broken { class: FailureClass::BadFraming }));
        assert!(process(head.len()).is_ok_and(|advance| advance.done));
    }
}
