//! One stream with a request in progress, and the received part of its response.

use crate::http3::code::{
    DECOMPRESSION_FAILED, EXCESSIVE_LOAD, FRAME_ERROR, FRAME_UNEXPECTED, ID_ERROR, MESSAGE_ERROR,
};
use crate::http3::frame::{
    CANCEL_PUSH, DATA, FrameReader, GOAWAY, HEADERS, MAX_PUSH_ID, PUSH_PROMISE, SETTINGS,
    is_reserved,
};
use crate::http3::qpack::{SectionDecoder, Unreadable};
use crate::http3::{SessionSettings, Violation};
use std::ops::Range;

/// Facts of a response. Its size on the stream is `head_bytes + body_bytes + framing_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// Status of the final response, 100 to 999; 0 before its fields arrive.
    pub status: u16,
    /// HEADERS frames before the content, including types and lengths.
    pub head_bytes: u64,
    /// Size of the content.
    pub body_bytes: u64,
    /// Types and lengths of frames around content, frames of unknown types, and trailers.
    pub framing_bytes: u64,
    /// Bytes of trailers among them.
    pub trailer_bytes: u64,
    /// Number of interim responses.
    pub interim: u16,
    /// The response has a Server-Timing field.
    pub timed: bool,
}

/// Maximum size of Server-Timing values kept of one response, in bytes.
const TIMINGS_MAX: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) facts: StreamFacts,
    /// Fields of the final response as HTTP/1 would write them, if heads are kept.
    pub(crate) head: Vec<u8>,
    /// Fields of the trailers, if heads are kept.
    pub(crate) trailers: Vec<u8>,
    /// Values of Server-Timing fields, separated by commas.
    pub(crate) timings: Vec<u8>,
    reader: FrameReader,
    /// The partially received field section.
    section: Vec<u8>,
    /// True if the final response's fields are complete, or its trailers too.
    has_head: bool,
    has_trailers: bool,
    /// Number of content bytes that the response announces.
    announced: Option<u64>,
    /// True if more requests were outstanding before it than the peer initially permits, and it has
    /// not been sent since.
    pub(crate) is_beyond: bool,
    /// True if the response has no content, whatever it announces.
    headless: bool,
    pub(crate) tunnel: Tunnel,
}

/// State of a stream whose request was an extended CONNECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tunnel {
    /// The request was one.
    pub(crate) is_asked: bool,
    /// Our side has ended; the server's side has.
    pub(crate) ended: bool,
    pub(crate) peer_ended: bool,
}

/// Kind of a part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Number of consumed input bytes: at most one frame.
    pub(crate) consumed: usize,
    /// Content within them.
    pub(crate) content: Range<usize>,
    /// Bytes of names and values of a complete section, and of its encoding.
    pub(crate) fields: Option<(u64, u64)>,
}

/// Reason why a stream cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamFault {
    /// The connection cannot be used either.
    Connection(Violation),
    /// Only the stream is affected; our side abandons it with this code.
    Stream(u64),
}

impl StreamFault {
    const fn connection(code: u64, what: &'static str, section: &'static str) -> StreamFault {
        StreamFault::Connection(Violation::new(code, what, section))
    }
}

impl Stream {
    /// Prepares it for another request; buffers keep their memory.
    pub(crate) fn renew(&mut self, id: u64, headless: bool) {
        let emptied = |buffer: &mut Vec<u8>| {
            buffer.clear();
            std::mem::take(buffer)
        };
        let head = emptied(&mut self.head);
        let trailers = emptied(&mut self.trailers);
        let timings = emptied(&mut self.timings);
        let section = emptied(&mut self.section);
        *self = Stream { id, head, trailers, timings, section, headless, ..Stream::default() };
    }

    /// Processes the next bytes of the stream: at most one frame.
    pub(crate) fn process(
        &mut self,
        input: &[u8],
        decoder: &mut SectionDecoder,
        settings: &SessionSettings,
    ) -> Result<Stretch, StreamFault> {
        let head = self.reader.open(input);
        let Some((kind, left)) = self.reader.current() else {
            return Ok(Stretch { consumed: head, ..Stretch::default() });
        };
        if head > 0 {
            self.begin_frame(kind, left, settings)?;
        }
        let rest = &input[head..];
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
        let consumed = head + count;
        let mut stretch = Stretch { consumed, ..Stretch::default() };
        match kind {
            DATA => {
                stretch.content = head..consumed;
                self.facts.body_bytes += count as u64;
            }
            HEADERS => self.section.extend_from_slice(&rest[..count]),
            _ => self.facts.framing_bytes += count as u64,
        }
        if self.reader.pass(count) && kind == HEADERS {
            let coded = self.section.len() as u64;
            stretch.fields = Some((self.end_section(decoder, settings)?, coded));
        }
        Ok(stretch)
    }

    /// Checks whether a frame with a complete header is permitted here.
    fn begin_frame(
        &mut self,
        kind: u64,
        length: u64,
        settings: &SessionSettings,
    ) -> Result<(), StreamFault> {
        let unexpected =
            |what| Err(StreamFault::connection(FRAME_UNEXPECTED, what, "RFC 9114 section 4.1"));
        let head = self.reader.head_bytes();
        match kind {
            DATA if !self.has_head => {
                return unexpected("content before the fields of the response");
            }
            DATA | HEADERS if self.has_trailers => return unexpected("a frame after trailers"),
            HEADERS if self.is_open_tunnel() => {
                let what = "fields on a stream that is a tunnel";
                return Err(StreamFault::connection(
                    FRAME_UNEXPECTED,
                    what,
                    "RFC 9114 section 4.4",
                ));
            }
            HEADERS => {
                if length > u64::from(settings.section_max) {
                    return Err(StreamFault::Stream(EXCESSIVE_LOAD));
                }
                let bytes = head + length;
                if self.has_head {
                    self.facts.framing_bytes += bytes;
                    self.facts.trailer_bytes += bytes;
                } else {
                    self.facts.head_bytes += bytes;
                }
                return Ok(());
            }
            CANCEL_PUSH | SETTINGS | GOAWAY | MAX_PUSH_ID => {
                let what = "a control stream's frame on a request stream";
                return Err(StreamFault::connection(
                    FRAME_UNEXPECTED,
                    what,
                    "RFC 9114 section 7.2",
                ));
            }
            PUSH_PROMISE => {
                let what = "a push that was not allowed";
                return Err(StreamFault::connection(ID_ERROR, what, "RFC 9114 section 7.2.5"));
            }
            kind if is_reserved(kind) => {
                let what = "a frame type reserved by HTTP/2";
                return Err(StreamFault::connection(
                    FRAME_UNEXPECTED,
                    what,
                    "RFC 9114 section 7.2.8",
                ));
            }
            _ => {}
        }
        self.facts.framing_bytes += head;
        Ok(())
    }

    /// Ends a field section; returns its bytes before encoding.
    fn end_section(
        &mut self,
        decoder: &mut SectionDecoder,
        settings: &SessionSettings,
    ) -> Result<u64, StreamFault> {
        let section = std::mem::take(&mut self.section);
        let trailers = self.has_head;
        let mut status = None;
        let read = decoder.decode(&section, settings.section_max, |name, value| {
            self.field(name, value, trailers, &mut status, settings.keeps_heads)
        });
        self.section = section;
        self.section.clear();
        let plain = read.map_err(|broken| match broken {
            Unreadable::Coding => StreamFault::connection(
                DECOMPRESSION_FAILED,
                "fields that cannot be decompressed",
                "RFC 9204 section 2.2",
            ),
            Unreadable::TooLarge => StreamFault::Stream(EXCESSIVE_LOAD),
            Unreadable::Field => StreamFault::Stream(MESSAGE_ERROR),
        })?;
        match status {
            _ if trailers => self.has_trailers = true,
            None => return Err(StreamFault::Stream(MESSAGE_ERROR)),
            Some(100..=199) => {
                self.facts.interim += 1;
                (self.announced, self.facts.timed) = (None, false);
                self.timings.clear();
                self.head.clear();
            }
            Some(status) => {
                self.has_head = true;
                self.facts.status = status;
                if !self.head.is_empty() {
                    self.head.extend_from_slice(b"\r\n");
                }
            }
        }
        Ok(plain)
    }

    fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        trailers: bool,
        status: &mut Option<u16>,
        keeps: bool,
    ) -> Result<(), Unreadable> {
        if name.starts_with(b":") {
            // the only one that a response has, before all fields (RFC 9114 section 4.3.2)
            let wrong = trailers || name != b":status" || status.is_some();
            let number = if wrong { None } else { number_of_status(value) };
            *status = Some(number.ok_or(Unreadable::Field)?);
            if keeps || is_failure(*status) {
                self.head.clear();
                for part in [b"HTTP/3 ", value, b"\r\n"] {
                    self.head.extend_from_slice(part);
                }
            }
            return Ok(());
        }
        if !is_well_formed(name, value) || (!trailers && status.is_none()) {
            return Err(Unreadable::Field);
        }
        if keeps || (is_failure(*status) && !trailers) {
            let kept = if trailers { &mut self.trailers } else { &mut self.head };
            for part in [name, b": ", value, b"\r\n"] {
                kept.extend_from_slice(part);
            }
        }
        // the only trailer that is a fact of the response is server-timing
        if trailers && name != b"server-timing" {
            return Ok(());
        }
        match name {
            b"content-length" => {
                let length = number_of_length(value).ok_or(Unreadable::Field)?;
                if self.announced.replace(length).is_some_and(|before| before != length) {
                    return Err(Unreadable::Field);
                }
            }
            b"server-timing" if self.timings.len() + value.len() < TIMINGS_MAX => {
                self.facts.timed = true;
                self.timings.extend_from_slice(value);
                self.timings.push(b',');
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles the end of the stream by the peer; fails if the response is incomplete.
    pub(crate) fn end(&self) -> Result<(), StreamFault> {
        if !self.reader.is_between() {
            let what = "a stream that ends within a frame";
            return Err(StreamFault::connection(FRAME_ERROR, what, "RFC 9114 section 7.1"));
        }
        // RFC 9110 section 6.4.1: responses without content, regardless of their length field
        let bare = self.headless || matches!(self.facts.status, 204 | 304) || self.is_open_tunnel();
        let short = self.announced.is_some_and(|length| length != self.facts.body_bytes) && !bare;
        if !self.has_head || short {
            return Err(StreamFault::Stream(MESSAGE_ERROR));
        }
        Ok(())
    }

    /// Returns whether the server has accepted the extended CONNECT.
    pub(crate) fn is_open_tunnel(&self) -> bool {
        self.tunnel.is_asked && (200..300).contains(&self.facts.status)
    }

    /// Returns whether part of its response was received.
    pub(crate) fn has_started(&self) -> bool {
        self.facts.head_bytes + self.facts.framing_bytes > 0
    }
}

/// Returns whether the response has failed: reports show the heads of failed responses, even if
/// heads are not needed otherwise.
fn is_failure(status: Option<u16>) -> bool {
    status.is_some_and(|status| status >= 400)
}

/// Parses three digits, of which the first is not 0.
fn number_of_status(value: &[u8]) -> Option<u16> {
    let &[a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else { return None };
    Some([a, b, c].iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
}

fn number_of_length(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Returns whether names are in lower case, no byte could end a line, and no field concerns a
/// connection of HTTP/1 (RFC 9114 section 4.2).
fn is_well_formed(name: &[u8], value: &[u8]) -> bool {
    let sound = |byte: &u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && *byte != b':';
    !name.is_empty()
        && name.iter().all(sound)
        && !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
        && !matches!(
            name,
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade"
        )
}
