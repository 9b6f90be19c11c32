//! One stream: a request under way and what has come of its response.

use std::sync::Arc;

/// What is known of a response. Its bytes on the wire are `head_bytes + body_bytes + framing_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// Of the final response, 100 to 999; 0 before its fields are there.
    pub status: u16,
    /// Frames with fields before the content, their nine bytes each included.
    pub head_bytes: u64,
    /// Content.
    pub body_bytes: u64,
    /// Frame headers and padding around content, and frames with trailers.
    pub framing_bytes: u64,
    /// Of these, frames with trailers.
    pub trailer_bytes: u64,
    /// Interim responses.
    pub interim: u16,
    /// It has a Server-Timing field.
    pub timed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct OutstandingStream {
    pub(crate) id: i32,
    pub(crate) facts: StreamFacts,
    /// The fields of the final response as HTTP/1 would write them, where heads are kept.
    pub(crate) head: Vec<u8>,
    /// Values of Server-Timing fields, separated by commas.
    pub(crate) timings: Vec<u8>,
    /// Size of the list of fields that is coming in.
    list: u64,
    /// The list belongs to the final response, or to its trailers.
    final_list: bool,
    /// The final response's fields are all there.
    pub(crate) has_head: bool,
    /// The peer's RST_STREAM.
    pub(crate) reset: Option<u32>,
    pub(crate) body: Option<Arc<[u8]>>,
    /// The request's fields, which the library may still have to read.
    #[expect(dead_code, reason = "held for the library")]
    text: Option<Arc<[u8]>>,
    /// Bytes of the body that are sent.
    pub(crate) body_at: usize,
}

/// Overhead of one field in the size of a list (RFC 9113 section 6.5.2).
const FIELD_OVERHEAD: u64 = 32;

/// Bytes of Server-Timing values that are kept of one response.
const TIMINGS_MAX: usize = 16 << 10;

impl OutstandingStream {
    /// A request that was just handed to the library.
    pub(crate) fn new(id: i32, text: Arc<[u8]>, body: Option<Arc<[u8]>>) -> OutstandingStream {
        OutstandingStream { id, text: Some(text), body, ..OutstandingStream::default() }
    }

    /// A list of fields begins.
    pub(crate) fn begin_fields(&mut self) {
        self.list = 0;
        self.final_list = false;
    }

    /// Takes a field in. False: the list is longer than `list_max`.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8], keeps: bool, list_max: u32) -> bool {
        self.list += (name.len() + value.len()) as u64 + FIELD_OVERHEAD;
        if self.list > u64::from(list_max) {
            return false;
        }
        if name == b":status" {
            self.status(value, keeps);
        } else if keeps && self.final_list && !self.has_head {
            for part in [name, b": ", value, b"\r\n"] {
                self.head.extend_from_slice(part);
            }
        }
        if name == b"server-timing" && self.timings.len() + value.len() < TIMINGS_MAX {
            self.facts.timed = true;
            self.timings.extend_from_slice(value);
            self.timings.push(b',');
        }
        true
    }

    fn status(&mut self, value: &[u8], keeps: bool) {
        // the library has checked that it is three digits
        let status =
            value.iter().fold(0, |sum: u16, digit| sum.wrapping_mul(10) + u16::from(digit & 15));
        if status / 100 == 1 {
            self.facts.interim += 1;
            return;
        }
        self.final_list = true;
        self.facts.status = status;
        if keeps {
            self.head.extend_from_slice(b"HTTP/2 ");
            self.head.extend_from_slice(value);
            self.head.extend_from_slice(b"\r\n");
        }
    }

    /// The list of fields has ended.
    pub(crate) fn end_fields(&mut self) {
        if self.final_list {
            self.has_head = true;
            if !self.head.is_empty() {
                self.head.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Counts a frame's bytes that are not content.
    pub(crate) fn frame(&mut self, has_fields: bool, bytes: u64) {
        let facts = &mut self.facts;
        match (has_fields, self.has_head && !self.final_list) {
            (true, false) => facts.head_bytes += bytes,
            (true, true) => {
                facts.framing_bytes += bytes;
                facts.trailer_bytes += bytes;
            }
            (false, _) => facts.framing_bytes += bytes,
        }
    }
}
