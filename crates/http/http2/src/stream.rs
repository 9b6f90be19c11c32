//! One stream: a request in progress and the received part of its response.

use std::sync::Arc;

/// Facts of a response. Its size on the wire is `head_bytes + body_bytes + framing_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// Status of the final response, 100 to 999; 0 before its fields arrive.
    pub status: u16,
    /// Frames with fields before the content, including their headers of nine bytes.
    pub head_bytes: u64,
    /// Size of the content.
    pub body_bytes: u64,
    /// Frame headers and padding around content, and frames with trailers.
    pub framing_bytes: u64,
    /// Of these, frames with trailers.
    pub trailer_bytes: u64,
    /// Number of interim responses.
    pub interim: u16,
    /// The response has a Server-Timing field.
    pub timed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct OutstandingStream {
    pub(crate) id: i32,
    pub(crate) facts: StreamFacts,
    /// True if the list of fields being received is the head of the final response.
    final_list: bool,
    /// True if all fields of the head of the final response were received.
    pub(crate) has_head: bool,
    /// Error code of the peer's RST_STREAM.
    pub(crate) reset: Option<u32>,
    /// Rarely used fields: a stream is moved when it completes, so it should be small.
    kept: Option<Box<KeptFields>>,
    unsent: Option<Box<UnsentRequest>>,
}

/// Fields of a response.
#[derive(Debug, Default)]
pub(crate) struct KeptFields {
    /// Head of the final response in the form of HTTP/1, if heads are kept.
    head: Vec<u8>,
    /// Trailers in the same form.
    trailers: Vec<u8>,
    /// Values of Server-Timing fields, separated by commas.
    timings: Vec<u8>,
}

/// Number of bytes reserved for a kept head and for trailers, so that most need not grow field by
/// field.
const HEAD_RESERVED: usize = 256;
const TRAILERS_RESERVED: usize = 64;
/// Maximum size of a head or of trailers whose memory is reused.
const REUSED_MAX: usize = 4 << 10;

/// Appends the parts of a line; reserves `first` bytes if the buffer has no memory yet.
fn append(buffer: &mut Vec<u8>, first: usize, parts: &[&[u8]]) {
    if buffer.capacity() == 0 {
        buffer.reserve(first);
    }
    parts.iter().for_each(|part| buffer.extend_from_slice(part));
}

/// The part that was not sent at submission.
#[derive(Debug, Default)]
struct UnsentRequest {
    /// Fields that nghttp2 had not sent when the request was submitted.
    text: Option<Arc<[u8]>>,
    /// True once nghttp2 has sent the fields.
    begun: bool,
    body: Option<Arc<[u8]>>,
    /// Number of body bytes that are sent.
    body_at: usize,
    /// Number of bytes at the end of the body that are not released.
    held: usize,
    tunnel: Option<TunnelBytes>,
}

/// Outgoing bytes of a stream that carries any bytes in both directions.
#[derive(Debug, Default)]
struct TunnelBytes {
    bytes: Vec<u8>,
    /// True if our side has ended the stream.
    ended: bool,
    /// True if the peer has ended the stream.
    peer_ended: bool,
    /// True if the bytes are a request's body: the end of the response then ends the stream.
    is_request: bool,
}

/// Returns the number of bytes of the message whose prefix begins there, including the prefix
/// (gRPC); at most all.
fn message_length(body: &[u8]) -> usize {
    let Some([_, length @ ..]) = body.first_chunk::<5>() else { return body.len() };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    length.saturating_add(5).min(body.len())
}

/// Result of releasing the next message of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleasedMessage {
    /// True if earlier messages are still unsent, because the peer's window is closed.
    pub held_back: bool,
    /// True if the message was the last one.
    pub last: bool,
}

/// Overhead of one field in the size of a list (RFC 9113 section 6.5.2).
pub(crate) const FIELD_OVERHEAD: u64 = 32;

/// Maximum size of Server-Timing values kept of one response, in bytes.
const TIMINGS_MAX: usize = 16 << 10;

impl OutstandingStream {
    /// Creates a request that was just submitted to the library.
    pub(crate) fn new(id: i32, body: Option<&Arc<[u8]>>) -> OutstandingStream {
        let unsent = body.map(|body| {
            Box::new(UnsentRequest { body: Some(body.clone()), ..UnsentRequest::default() })
        });
        OutstandingStream { id, unsent, ..OutstandingStream::default() }
    }

    /// Uses the memory of another stream for the fields of its response.
    pub(crate) fn keeping_in(self, kept: Option<Box<KeptFields>>) -> OutstandingStream {
        OutstandingStream { kept, ..self }
    }

    /// Returns the memory for fields, emptied, unless it is large.
    pub(crate) fn into_kept(self) -> Option<Box<KeptFields>> {
        let mut kept = self.kept?;
        let fields = [&mut kept.head, &mut kept.trailers, &mut kept.timings];
        let small = fields.iter().all(|field| field.capacity() <= REUSED_MAX);
        fields.into_iter().for_each(Vec::clear);
        small.then_some(kept)
    }

    /// Keeps the text of a request that was not sent at once for the life of the stream.
    #[cold]
    pub(crate) fn hold(&mut self, text: &Arc<[u8]>) {
        self.unsent.get_or_insert_default().text = Some(text.clone());
    }

    /// Marks a queued request as begun, once its fields are sent.
    pub(crate) fn begin(&mut self) {
        if let Some(unsent) = &mut self.unsent {
            unsent.begun = true;
        }
    }

    /// Returns whether the request is queued because of the peer's limit on concurrent streams.
    pub(crate) fn waits(&self) -> bool {
        self.unsent.as_ref().is_some_and(|unsent| unsent.text.is_some() && !unsent.begun)
    }

    /// Returns the unsent part of the request's body, up to the released length.
    pub(crate) fn body_left(&self) -> &[u8] {
        let Some(unsent) = &self.unsent else { return &[] };
        if let Some(tunnel) = &unsent.tunnel {
            return tunnel.bytes.get(unsent.body_at..).unwrap_or_default();
        }
        let Some(body) = &unsent.body else { return &[] };
        body.get(unsent.body_at..body.len() - unsent.held).unwrap_or_default()
    }

    /// Returns whether parts of the body are not released, or more bytes of a tunnel may follow.
    pub(crate) fn is_held(&self) -> bool {
        self.unsent.as_ref().is_some_and(|unsent| match &unsent.tunnel {
            Some(tunnel) => !tunnel.ended,
            None => unsent.held > 0,
        })
    }

    /// Makes it a stream that carries bytes in both directions.
    pub(crate) fn make_tunnel(&mut self) {
        self.unsent.get_or_insert_default().tunnel = Some(TunnelBytes::default());
    }

    /// Turns the stream into a request whose body starts with `body` and may grow.
    pub(crate) fn keep_open(&mut self, body: Option<&Arc<[u8]>>) {
        let bytes = body.map(|body| body.to_vec()).unwrap_or_default();
        let tunnel = TunnelBytes { bytes, is_request: true, ..TunnelBytes::default() };
        let unsent = self.unsent.get_or_insert_default();
        (unsent.body, unsent.tunnel) = (None, Some(tunnel));
    }

    /// Returns whether its bytes belong to a tunnel rather than to a request.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.tunnel().is_some_and(|tunnel| !tunnel.is_request)
    }

    fn tunnel(&self) -> Option<&TunnelBytes> {
        self.unsent.as_ref()?.tunnel.as_ref()
    }

    fn tunnel_mut(&mut self) -> Option<&mut TunnelBytes> {
        self.unsent.as_mut()?.tunnel.as_mut()
    }

    /// Queues bytes of a tunnel until `most` bytes wait. Returns the number of queued bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], most: usize) -> usize {
        let Some(unsent) = &mut self.unsent else { return 0 };
        let Some(tunnel) = unsent.tunnel.as_mut().filter(|tunnel| !tunnel.ended) else { return 0 };
        if unsent.body_at > most {
            // frees sent bytes of a queue that never becomes empty
            tunnel.bytes.drain(..unsent.body_at);
            unsent.body_at = 0;
        }
        let waiting = tunnel.bytes.len() - unsent.body_at;
        let count = bytes.len().min(most.saturating_sub(waiting));
        tunnel.bytes.extend_from_slice(&bytes[..count]);
        count
    }

    /// Ends our side of a tunnel after its queued bytes.
    pub(crate) fn end_tunnel(&mut self) {
        if let Some(tunnel) = self.tunnel_mut() {
            tunnel.ended = true;
        }
    }

    /// Records that the peer has ended its side. Returns true if it is a tunnel whose other side is
    /// still open.
    pub(crate) fn end_by_peer(&mut self) -> bool {
        self.tunnel_mut().is_some_and(|tunnel| {
            tunnel.peer_ended = true;
            !tunnel.ended && !tunnel.is_request
        })
    }

    pub(crate) fn is_ended_by_peer(&self) -> bool {
        self.tunnel().is_some_and(|tunnel| tunnel.peer_ended)
    }

    /// Holds all messages of the body but the first.
    pub(crate) fn hold_messages(&mut self) {
        if let Some(unsent) = &mut self.unsent
            && let Some(body) = &unsent.body
        {
            unsent.held = body.len() - message_length(body);
        }
    }

    /// Releases the next message, or `None` if all are released.
    pub(crate) fn release(&mut self) -> Option<ReleasedMessage> {
        let unsent = self.unsent.as_mut().filter(|unsent| unsent.held > 0)?;
        let body = unsent.body.as_deref()?;
        let from = body.len() - unsent.held;
        let held_back = unsent.body_at < from;
        unsent.held -= message_length(&body[from..]);
        Some(ReleasedMessage { held_back, last: unsent.held == 0 })
    }

    /// Marks this many bytes of it as sent.
    pub(crate) fn pass_body(&mut self, count: usize) {
        if let Some(unsent) = &mut self.unsent {
            unsent.body_at += count;
            if let Some(tunnel) = unsent.tunnel.as_mut()
                && unsent.body_at == tunnel.bytes.len()
            {
                // an idle tunnel keeps no memory
                tunnel.bytes = Vec::new();
                unsent.body_at = 0;
            }
        }
    }

    /// Returns the fields of the response so far, if heads are kept.
    pub(crate) fn head(&self) -> &[u8] {
        self.kept.as_ref().map_or(&[], |kept| &kept.head)
    }

    /// Returns the fields of the trailers, where heads are kept.
    pub(crate) fn trailers(&self) -> &[u8] {
        self.kept.as_ref().map_or(&[], |kept| &kept.trailers)
    }

    pub(crate) fn timings(&self) -> &[u8] {
        self.kept.as_ref().map_or(&[], |kept| &kept.timings)
    }

    /// Begins a list of fields.
    pub(crate) fn begin_fields(&mut self) {
        self.final_list = false;
    }

    /// Processes the status. `keeps`: heads are kept.
    pub(crate) fn status(&mut self, value: &[u8], keeps: bool) {
        // the library has checked that it is three digits
        let digit = |at: usize| u16::from(value.get(at).copied().unwrap_or_default() & 15);
        let status = digit(0) * 100 + digit(1) * 10 + digit(2);
        if status / 100 == 1 {
            self.facts.interim += 1;
            return;
        }
        self.final_list = true;
        self.facts.status = status;
        if keeps {
            self.keep(&[b"HTTP/2 ", value, b"\r\n"]);
        }
    }

    /// Adds another field to be kept.
    pub(crate) fn keep_field(&mut self, name: &[u8], value: &[u8]) {
        if self.final_list && !self.has_head {
            self.keep(&[name, b": ", value, b"\r\n"]);
        } else if self.has_head {
            let trailers = &mut self.kept.get_or_insert_default().trailers;
            append(trailers, TRAILERS_RESERVED, &[name, b": ", value, b"\r\n"]);
        }
    }

    fn keep(&mut self, line: &[&[u8]]) {
        append(&mut self.kept.get_or_insert_default().head, HEAD_RESERVED, line);
    }

    /// Returns whether the list of fields being received belongs to the final response, as its head
    /// or its trailers.
    pub(crate) fn is_final(&self) -> bool {
        self.final_list || self.has_head
    }

    /// Records the server's own timing of its work.
    #[cold]
    pub(crate) fn time(&mut self, value: &[u8]) {
        let timings = &mut self.kept.get_or_insert_default().timings;
        if timings.len() + value.len() < TIMINGS_MAX {
            self.facts.timed = true;
            timings.extend_from_slice(value);
            timings.push(b',');
        }
    }

    /// Ends the list of fields.
    pub(crate) fn end_fields(&mut self) {
        if self.final_list {
            self.has_head = true;
            if let Some(kept) = self.kept.as_mut().filter(|kept| !kept.head.is_empty()) {
                kept.head.extend_from_slice(b"\r\n");
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
