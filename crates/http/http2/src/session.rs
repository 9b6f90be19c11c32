//! One connection's session: a safe interface to libnghttp2's.
#![expect(unsafe_code, reason = "calls into libnghttp2")]

use crate::callbacks::{self, CallbackState, LateFrame, ResponseNews};
use crate::code::{CANCEL, MALFORMED, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, section};
use crate::memory::Memory;
use crate::request::{BODY_QUEUE_MAX, Request};
use crate::stream::{KeptFields, OutstandingStream, ReleasedMessage, StreamFacts};
use crate::{FRAME_AT_FIRST, FRAME_HEADER, STREAMS_AT_FIRST, SessionSettings, TABLE_AT_FIRST};
use libnghttp2_sys as ng;
use sample::{Http2Facts, http2_code_name as code_name};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Frames without effect that a connection may carry, at once and each second after that.
const GLITCHES_MAX: u64 = 1_000_000;
const GLITCHES_PER_S: u64 = 100_000;
/// Payload of our PING frames.
const PING_DATA: &[u8; 8] = b"loadston";
/// The last stream id that a client has (RFC 9113 section 5.1.1).
const ID_LAST: i32 = i32::MAX;

/// Maximum number of bytes of a tunnel that wait for the peer's window.
pub const TUNNEL_QUEUE_MAX: usize = 64 << 10;

/// A client session. A stream is identified by its index among the outstanding ones, in the order
/// of their requests; a finished stream is removed and later ones move up.
#[derive(Debug)]
pub struct Session {
    raw: NonNull<ng::nghttp2_session>,
    /// Owned, both; pointers, because the library holds others.
    state: NonNull<CallbackState>,
    memory: NonNull<Memory>,
    frame: Frame,
    /// Last completed response, or the received part of an abandoned one.
    done: OutstandingStream,
    streams_max: u32,
    /// Priorities are sent in frames too.
    prioritises: bool,
    /// True if requests can be accepted.
    open: bool,
    /// True if nothing has been received yet.
    fresh: bool,
    /// HEADERS and DATA frames from the peer so far.
    answers: u64,
    /// A request had a body: the library may want to write although its queues are empty.
    uploads: bool,
    /// The fields of the last request, and the text that they point into.
    fields: Vec<ng::nghttp2_nv>,
    fields_of: Option<Arc<[u8]>>,
    /// Memory for fields of responses, at most [`SPARES_MAX`].
    #[expect(clippy::vec_box, reason = "the boxes move to streams and back")]
    spare: Vec<Box<KeptFields>>,
}

/// Maximum number of responses whose memory for fields is reused.
const SPARES_MAX: usize = 128;

// SAFETY: a session of the library may be used from any one thread at a time, and it is owned here
unsafe impl Send for Session {}

/// The partially received frame.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    header: [u8; FRAME_HEADER],
    have: usize,
    /// Remaining bytes of the payload.
    left: usize,
}

impl Frame {
    /// Reads missing bytes of the frame header; returns how many.
    #[inline]
    fn take_header(&mut self, input: &[u8]) -> usize {
        match input.first_chunk() {
            // nearly always a frame begins where the input does
            Some(header) if self.have == 0 => {
                self.header = *header;
                self.have = FRAME_HEADER;
                self.left = self.length();
                FRAME_HEADER
            }
            _ => self.take_part_of_header(input),
        }
    }

    #[inline(never)]
    fn take_part_of_header(&mut self, input: &[u8]) -> usize {
        let count = (FRAME_HEADER - self.have).min(input.len());
        self.header[self.have..self.have + count].copy_from_slice(&input[..count]);
        self.have += count;
        if count > 0 && self.have == FRAME_HEADER {
            self.left = self.length();
        }
        count
    }

    fn length(&self) -> usize {
        usize::from(self.header[0]) << 16
            | usize::from(self.header[1]) << 8
            | usize::from(self.header[2])
    }

    fn kind(&self) -> u32 {
        u32::from(self.header[3])
    }

    fn stream(&self) -> i32 {
        let [.., a, b, c, d] = self.header;
        i32::from_be_bytes([a & 0x7f, b, c, d])
    }
}

/// Result of a call of [`Session::feed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fed {
    /// Number of consumed input bytes: at most one frame.
    pub consumed: usize,
}

/// Piece of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of its stream before its removal.
    pub place: usize,
    /// Content within the input.
    pub body: Range<usize>,
    /// The response is whole; its stream has left.
    pub done: bool,
}

/// A stream that ended without a complete response, and was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    pub place: usize,
    pub code: u32,
    /// The peer has not processed the request: it is safe to send it again (RFC 9113 section 8.7).
    pub refused: bool,
    /// True if the peer reset the stream; otherwise our side did, because of data from the peer.
    pub by_peer: bool,
}

/// A part of a request that waited for the peer's window, or for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    pub place: usize,
    /// Number of bytes, including frame headers.
    pub bytes: u64,
    /// This is the first part of the request, which the peer's stream limit had held back.
    pub begins: bool,
}

impl Session {
    /// Creates a session whose preface and settings are ready in [`Session::drain`].
    pub fn new(settings: &SessionSettings) -> Session {
        let state = CallbackState {
            keeps_heads: settings.keeps_heads,
            is_failure: false,
            header_list_max: settings.header_list_max,
            ..CallbackState::default()
        };
        let state = NonNull::from(Box::leak(Box::new(state)));
        let memory = NonNull::from(Box::leak(Box::default()));
        let raw = client(state, memory, settings.encoder_table);
        let session = Session {
            raw,
            state,
            memory,
            frame: Frame::default(),
            done: OutstandingStream::default(),
            streams_max: STREAMS_AT_FIRST,
            prioritises: settings.prioritises,
            open: true,
            fresh: true,
            answers: 0,
            uploads: false,
            fields: Vec::new(),
            fields_of: None,
            spare: Vec::new(),
        };
        session.announce(settings);
        session
    }

    fn announce(&self, settings: &SessionSettings) {
        let entry = |id: ng::nghttp2_settings_id, value: u32| ng::nghttp2_settings_entry {
            settings_id: id as i32,
            value,
        };
        let mut entries = vec![
            entry(ng::NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            entry(ng::NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.stream_window),
            entry(ng::NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings.header_list_max),
        ];
        // a server confirms each announced table size, with three bytes of its first response
        if settings.header_table != TABLE_AT_FIRST {
            entries.push(entry(ng::NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.header_table));
        }
        if settings.frame_max != FRAME_AT_FIRST {
            entries.push(entry(ng::NGHTTP2_SETTINGS_MAX_FRAME_SIZE, settings.frame_max));
        }
        if settings.prioritises {
            entries.push(entry(ng::NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1));
        }
        let window = i32::try_from(settings.connection_window).unwrap_or(i32::MAX);
        let none = ng::NGHTTP2_FLAG_NONE as u8;
        // SAFETY: a live session; the entries are copied. Both calls fail only without memory, or
        // with values that `SessionSettings` does not permit
        unsafe {
            ng::nghttp2_submit_settings(self.raw.as_ptr(), none, entries.as_ptr(), entries.len());
            ng::nghttp2_session_set_local_window_size(self.raw.as_ptr(), none, 0, window);
        }
    }

    fn state(&self) -> &CallbackState {
        // SAFETY: owned by `self`, and the library calls back only within calls that take `&mut self`
        unsafe { self.state.as_ref() }
    }

    fn state_mut(&mut self) -> &mut CallbackState {
        // SAFETY: as in `state`
        unsafe { self.state.as_mut() }
    }

    /// Returns the number of streams that the peer permits at once; zero if it accepts no more.
    #[inline]
    pub fn capacity(&self) -> u32 {
        if self.open { self.streams_max } else { 0 }
    }

    /// Opens a stream; it becomes the last outstanding one. `cookie`: the value of a Cookie field
    /// in addition to those of the request. Its bytes are appended to `out`, within the peer's
    /// windows; the rest follows with [`Session::drain`].
    pub fn send_request(&mut self, request: &Request, cookie: Option<&str>, out: &mut Vec<u8>) {
        let id = self.submit(request, cookie);
        self.state_mut().asking = true;
        // the new request can usually be sent at once
        if self.send(out) {
            self.drain(out);
        }
        let state = self.state_mut();
        state.asking = false;
        if state.sent_last != id
            && let Some(stream) = state.streams.back_mut()
        {
            stream.hold(request.text());
        }
    }

    /// Submits a request to the library and returns its stream's id.
    fn submit(&mut self, request: &Request, cookie: Option<&str>) -> i32 {
        self.look_up_fields(request);
        let count = self.fields.len();
        self.fields.extend(cookie.map(|cookie| pair(b"cookie", cookie.as_bytes(), COPIED)));
        let source = ng::nghttp2_data_provider2 {
            source: ng::nghttp2_data_source { fd: 0 },
            read_callback: Some(callbacks::read_body),
        };
        let body = request.body();
        let sends = body.is_some() || request.is_tunnel() || request.is_open();
        let source = if sends { &raw const source } else { std::ptr::null() };
        // SAFETY: a live session; source and cookie are copied before the call returns. The library
        // reads the request's text when it sends it: the caller holds it during this call, then the
        // stream until it is withdrawn, and then the library drops the request without reading it
        let id = unsafe {
            ng::nghttp2_submit_request2(
                self.raw.as_ptr(),
                std::ptr::null(),
                self.fields.as_ptr(),
                self.fields.len(),
                source,
                std::ptr::null_mut(),
            )
        };
        self.fields.truncate(count);
        self.uploads |= sends;
        if self.prioritises {
            self.send_priority(id, request);
        }
        let mut stream = OutstandingStream::new(id, body).keeping_in(self.spare.pop());
        if request.is_paced() {
            stream.hold_messages();
        }
        if request.is_tunnel() {
            stream.make_tunnel();
        }
        if request.is_open() {
            stream.keep_open(body);
        }
        let plain = request.plain_bytes() + cookie.map_or(0, |cookie| cookie.len() as u64 + 6);
        let state = self.state_mut();
        state.facts.streams += 1;
        state.begun += 1;
        state.facts.fields_sent += plain;
        // an id below zero (no memory, no ids left) is never answered: its call times out
        state.streams.push_back(stream);
        let outstanding = state.streams.len() as u64;
        state.facts.streams_peak = state.facts.streams_peak.max(outstanding);
        // below zero where no id is left, or no memory
        self.open &= (1..ID_LAST).contains(&id);
        id
    }

    /// Releases the next message of a paced request; its bytes are appended to `out`, within the
    /// peer's windows. `None` if all are released, or the stream has ended.
    pub fn release(&mut self, place: usize, out: &mut Vec<u8>) -> Option<ReleasedMessage> {
        let stream = self.state_mut().streams.get_mut(place)?;
        let (id, released) = (stream.id, stream.release()?);
        self.resume(id);
        self.drain(out);
        Some(released)
    }

    /// Opens a stream for an extended CONNECT and returns its id; see [`Session::send_request`].
    pub fn open_tunnel(&mut self, request: &Request, out: &mut Vec<u8>) -> i32 {
        self.send_request(request, None, out);
        self.state().streams.back().map_or(0, |stream| stream.id)
    }

    /// Queues bytes on the stream of a tunnel, for [`Session::drain`], until [`TUNNEL_QUEUE_MAX`]
    /// bytes wait. Returns the number of queued bytes.
    pub fn push(&mut self, id: i32, bytes: &[u8]) -> usize {
        let Some(stream) = self.state_mut().stream(id) else { return 0 };
        let count = stream.push(bytes, TUNNEL_QUEUE_MAX);
        if count > 0 {
            self.resume(id);
        }
        count
    }

    /// Ends our side of a tunnel, after its queued bytes. The stream leaves by
    /// [`Session::take_gone`] or [`Session::take_part`] once both sides have ended.
    pub fn end_tunnel(&mut self, id: i32) {
        if let Some(stream) = self.state_mut().stream(id) {
            stream.end_tunnel();
            self.resume(id);
        }
    }

    /// Returns the number of bytes of a tunnel that wait for the peer's window.
    pub fn queued(&mut self, id: i32) -> usize {
        self.state_mut().stream(id).map_or(0, |stream| stream.body_left().len())
    }

    /// Returns whether the peer has ended its side of a tunnel.
    pub fn is_ended_by_peer(&mut self, id: i32) -> bool {
        self.state_mut().stream(id).is_some_and(|stream| stream.is_ended_by_peer())
    }

    /// Adds to the body of a request that was [kept open](Request::keep_open), and ends it if
    /// `ends`. The bytes are appended to `out`, within the peer's windows. Returns false without a
    /// change if too many bytes wait.
    pub fn extend(&mut self, place: usize, bytes: &[u8], ends: bool, out: &mut Vec<u8>) -> bool {
        let Some(stream) = self.state_mut().streams.get_mut(place) else { return true };
        if stream.body_left().len() + bytes.len() > BODY_QUEUE_MAX {
            return false;
        }
        stream.push(bytes, BODY_QUEUE_MAX);
        if ends {
            stream.end_tunnel();
        }
        let id = stream.id;
        self.resume(id);
        self.drain(out);
        true
    }

    fn resume(&mut self, id: i32) {
        // SAFETY: a live session. It fails if the stream is not deferred: then the library has not
        // read to the end of what was queued
        unsafe { ng::nghttp2_session_resume_data(self.raw.as_ptr(), id) };
    }

    /// Returns whether the peer accepts extended CONNECT (RFC 8441 section 3); `None` before its
    /// SETTINGS arrive.
    pub fn accepts_tunnels(&self) -> Option<bool> {
        // SAFETY: a live session, only read
        let value = unsafe {
            ng::nghttp2_session_get_remote_settings(
                self.raw.as_ptr(),
                ng::NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL,
            )
        };
        self.state().settings_seen.then_some(value == 1)
    }

    /// Prepares the fields of `request` in `self.fields`: a load repeats the same requests.
    fn look_up_fields(&mut self, request: &Request) {
        let text = request.text();
        if !self.fields_of.as_ref().is_some_and(|of| Arc::ptr_eq(of, text)) {
            self.fields.clear();
            self.fields.extend(request.fields().map(|(name, value)| pair(name, value, KEPT)));
            self.fields_of = Some(text.clone());
        }
    }

    /// Sends PRIORITY_UPDATE (RFC 9218 section 7.1) before the request: a later one might arrive
    /// after the response was sent. The library withholds it if the peer has not announced support.
    fn send_priority(&mut self, id: i32, request: &Request) {
        let priority = request.fields().find(|(name, _)| *name == b"priority");
        let Some((_, value)) = priority.filter(|_| id > 0) else { return };
        let none = ng::NGHTTP2_FLAG_NONE as u8;
        // SAFETY: a live session; the value is copied. It fails without memory or if the value
        // exceeds a frame; the field has the same value then
        unsafe {
            ng::nghttp2_submit_priority_update(
                self.raw.as_ptr(),
                none,
                id,
                value.as_ptr(),
                value.len(),
            );
        }
    }

    /// Appends pending output to `out`.
    #[inline]
    pub fn drain(&mut self, out: &mut Vec<u8>) {
        while self.may_have_to_send() && self.send_wanted(out) {}
    }

    /// Returns whether the library may have output. The checks are ordered by cost: this one, the
    /// library's `want_write`, and a send that finds nothing.
    #[inline]
    fn may_have_to_send(&self) -> bool {
        // SAFETY: a live session, only read
        self.uploads
            || unsafe { ng::nghttp2_session_get_outbound_queue_size(self.raw.as_ptr()) } > 0
    }

    /// Sends like [`Session::send`], if the library has output.
    #[cold]
    fn send_wanted(&mut self, out: &mut Vec<u8>) -> bool {
        // SAFETY: a live session, only read
        let wanted = unsafe { ng::nghttp2_session_want_write(self.raw.as_ptr()) } != 0;
        wanted && self.send(out)
    }

    /// Appends the next frame to `out`, including the continuation frames of a field list. Returns
    /// false if no frame is ready.
    fn send(&mut self, out: &mut Vec<u8>) -> bool {
        loop {
            let mut data = std::ptr::null();
            // SAFETY: a live session; the returned memory is valid until the next call
            let bytes = unsafe {
                let length = ng::nghttp2_session_mem_send2(self.raw.as_ptr(), &raw mut data);
                match usize::try_from(length) {
                    Ok(length) if length > 0 => std::slice::from_raw_parts(data, length),
                    _ => return false,
                }
            };
            out.extend_from_slice(bytes);
            if !is_continued(bytes) {
                return true;
            }
        }
    }

    /// Processes input of at most one frame. Then [`Session::take_gone`] and [`Session::take_part`]
    /// return its meaning, and [`Session::drain`] the replies.
    ///
    /// # Errors
    /// Fails if the connection is unusable afterwards: the reason, with the standard's section.
    pub fn feed(&mut self, input: &[u8]) -> Result<Fed, String> {
        let header = self.frame.take_header(input);
        if self.fresh && self.frame.have >= 7 {
            self.fresh = false;
            if self.frame.header.starts_with(b"HTTP/1.") {
                return Err("the server speaks HTTP/1.x where HTTP/2 was requested".to_owned());
            }
        }
        let payload = self.frame.left.min(input.len() - header);
        self.frame.left -= payload;
        let taken = &input[..header + payload];
        let start = taken.as_ptr() as usize;
        let state = self.state_mut();
        state.input = start..start + taken.len();
        state.news = None;
        // SAFETY: a live session and a slice that outlives the call
        let result = unsafe {
            ng::nghttp2_session_mem_recv2(self.raw.as_ptr(), taken.as_ptr(), taken.len())
        };
        if result < 0 {
            return Err(format!("{} (RFC 9113 section 5.4.1)", error_text(result)));
        }
        if self.frame.have == FRAME_HEADER && self.frame.left == 0 {
            self.end_frame();
        }
        Ok(Fed { consumed: taken.len() })
    }

    /// Counts the completely received frame.
    fn end_frame(&mut self) {
        self.frame.have = 0;
        let (kind, length, id) =
            (self.frame.kind(), self.frame.length() as u64, self.frame.stream());
        match kind {
            ng::NGHTTP2_DATA => {
                self.answers += 1;
                let state = self.state_mut();
                // content was counted as it arrived; the rest of the payload is padding
                let padding = length.saturating_sub(std::mem::take(&mut state.frame_content));
                if let Some(stream) = state.stream(id) {
                    stream.frame(false, FRAME_HEADER as u64 + padding);
                }
            }
            ng::NGHTTP2_HEADERS | ng::NGHTTP2_CONTINUATION => {
                self.answers += 1;
                let state = self.state_mut();
                state.facts.coded_received += length;
                if let Some(stream) = state.stream(id) {
                    stream.frame(true, FRAME_HEADER as u64 + length);
                }
            }
            _ => {
                let state = self.state_mut();
                state.facts.control_received += FRAME_HEADER as u64 + length;
                if matches!(kind, ng::NGHTTP2_SETTINGS | ng::NGHTTP2_GOAWAY) {
                    self.look_up_limits();
                }
            }
        }
    }

    /// Applies the peer's settings or GOAWAY to further requests.
    fn look_up_limits(&mut self) {
        let state = self.state();
        let (seen, away) = (state.settings_seen, state.going_away);
        // SAFETY: a live session, only read
        let streams_max = unsafe {
            ng::nghttp2_session_get_remote_settings(
                self.raw.as_ptr(),
                ng::NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
            )
        };
        if seen {
            self.streams_max = streams_max;
        }
        self.open &= !away;
    }

    /// Returns why our side has broken the connection off, after [`Session::drain`], with the
    /// section of the standard that the peer violated.
    #[inline]
    pub fn violation(&self) -> Option<String> {
        let state = self.state();
        let (code, reason) = state.violation.as_ref()?;
        Some(describe_violation(*code, reason, state.remark.as_deref()))
    }

    /// Takes a stream that ended without a complete response.
    pub fn take_gone(&mut self) -> Option<Gone> {
        let state = self.state_mut();
        while let Some((id, code)) = state.gone.pop_front() {
            let Some(place) = state.place(id) else { continue };
            let Some(stream) = state.remove(place) else { continue };
            let by_peer = stream.reset.is_some() || state.going_away && code == REFUSED_STREAM;
            let refused = by_peer && code == REFUSED_STREAM;
            state.facts.refused += u64::from(refused);
            self.finish(stream);
            return Some(Gone { place, code, refused, by_peer });
        }
        None
    }

    /// Stores the finished stream in place of the previous one.
    fn finish(&mut self, stream: OutstandingStream) {
        let before = std::mem::replace(&mut self.done, stream);
        if let Some(kept) = before.into_kept()
            && self.spare.len() < SPARES_MAX
        {
            self.spare.push(kept);
        }
    }

    /// Returns whether [`Session::take_part`] has a part.
    pub fn has_part(&self) -> bool {
        let state = self.state();
        state.news.as_ref().is_some_and(|news| state.place(news.id).is_some())
    }

    /// Returns the piece of a response that the frame was, or the part of a frame.
    pub fn take_part(&mut self) -> Option<Part> {
        let state = self.state_mut();
        let ResponseNews { id, body, ended: done } = state.news.take()?;
        let place = state.place(id)?;
        if done && state.streams.get_mut(place).is_some_and(OutstandingStream::end_by_peer) {
            return Some(Part { place, body, done: false });
        }
        if done && let Some(stream) = state.remove(place) {
            self.finish(stream);
            if !self.done.body_left().is_empty() || self.done.is_held() {
                // the response is complete: the peer does not want the rest of the request
                self.reset(id, NO_ERROR);
            }
        }
        Some(Part { place, body, done })
    }

    /// Returns the bytes of a request, including frame headers, that were sent after it was
    /// submitted.
    pub fn take_late(&mut self) -> Option<Late> {
        let state = self.state_mut();
        while let Some(LateFrame { id, bytes, begins }) = state.late.pop() {
            if let Some(place) = state.place(id) {
                return Some(Late { place, bytes, begins });
            }
        }
        None
    }

    /// Returns the id of the stream that was done last.
    pub fn done_id(&self) -> i32 {
        self.done.id
    }

    /// Abandons a stream: it is removed, and the peer is notified.
    pub fn withdraw(&mut self, place: usize) {
        let state = self.state_mut();
        if let Some(stream) = state.remove(place) {
            self.reset(stream.id, CANCEL);
        }
    }

    fn reset(&mut self, id: i32, code: u32) {
        // SAFETY: a live session; an unknown id is an error without effect
        unsafe {
            let none = ng::NGHTTP2_FLAG_NONE as u8;
            ng::nghttp2_submit_rst_stream(self.raw.as_ptr(), none, id, code);
        }
    }

    /// Sends a PING. Its bytes are appended to `out`.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        let none = ng::NGHTTP2_FLAG_NONE as u8;
        // SAFETY: a live session; eight bytes are copied. It fails only without memory
        unsafe { ng::nghttp2_submit_ping(self.raw.as_ptr(), none, PING_DATA.as_ptr()) };
        let state = self.state_mut();
        state.facts.pings_sent += 1;
        state.unanswered_pings += 1;
        self.drain(out);
    }

    /// Returns the number of our PING frames that the peer has not acknowledged since its last
    /// acknowledgment.
    pub fn unanswered_pings(&self) -> u32 {
        self.state().unanswered_pings
    }

    /// Returns the number of HEADERS and DATA frames from the peer so far.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Returns the facts of the last completed response, or of the received part of an abandoned
    /// one.
    #[inline]
    pub fn facts(&self) -> StreamFacts {
        self.done.facts
    }

    /// Returns the fields in the form of HTTP/1, if heads are kept.
    pub fn head(&self) -> &[u8] {
        self.done.head()
    }

    /// Returns the fields of its trailers, in the same form.
    pub fn trailers(&self) -> &[u8] {
        self.done.trailers()
    }

    /// Returns the values of its Server-Timing fields.
    pub fn timings(&self) -> &[u8] {
        self.done.timings()
    }

    /// Returns the fields of a response in progress, if heads are kept.
    pub fn head_of(&self, place: usize) -> &[u8] {
        self.state().streams.get(place).map_or(&[], OutstandingStream::head)
    }

    /// Returns the received part of an incomplete response; `None` before its first frame.
    pub fn partial(&self, place: usize) -> Option<StreamFacts> {
        let facts = self.state().streams.get(place)?.facts;
        (facts.head_bytes > 0).then_some(facts)
    }

    /// Returns whether the request is queued because of the peer's limit on concurrent streams.
    pub fn waits(&self, place: usize) -> bool {
        self.state().streams.get(place).is_some_and(OutstandingStream::waits)
    }

    /// Returns the number of outstanding streams.
    pub fn outstanding(&self) -> usize {
        self.state().streams.len()
    }

    /// Returns whether the peer accepts no further streams.
    pub fn is_going_away(&self) -> bool {
        self.state().going_away
    }

    /// Returns the counts so far and resets them.
    pub fn take_facts(&mut self) -> Http2Facts {
        std::mem::take(&mut self.state_mut().facts)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: all are owned; the session is freed first, because it points to the others
        unsafe {
            ng::nghttp2_session_del(self.raw.as_ptr());
            drop(Box::from_raw(self.state.as_ptr()));
            drop(Box::from_raw(self.memory.as_ptr()));
        }
    }
}

/// Flags of a field that the library copies, or reads in place when it sends it. Names are already
/// in lower case.
const COPIED: u8 = ng::NGHTTP2_NV_FLAG_NONE as u8;
const KEPT: u8 = (ng::NGHTTP2_NV_FLAG_NO_COPY_NAME | ng::NGHTTP2_NV_FLAG_NO_COPY_VALUE) as u8;

fn pair(name: &[u8], value: &[u8], flags: u8) -> ng::nghttp2_nv {
    ng::nghttp2_nv {
        name: name.as_ptr().cast_mut(),
        value: value.as_ptr().cast_mut(),
        namelen: name.len(),
        valuelen: value.len(),
        flags,
    }
}

/// Returns whether a frame of ours is part of a field list that continues in the next.
fn is_continued(frame: &[u8]) -> bool {
    let [_, _, _, kind, flags, ..] = *frame else { return false };
    matches!(u32::from(kind), ng::NGHTTP2_HEADERS | ng::NGHTTP2_CONTINUATION)
        && u32::from(flags) & ng::NGHTTP2_FLAG_END_HEADERS == 0
}

/// Returns the peer's violation: the code and reason with which our side closed the connection, and
/// the library's previous remark.
#[cold]
fn describe_violation(code: u32, reason: &str, remark: Option<&str>) -> String {
    let reason = match (reason, remark, code) {
        ("", Some(remark), PROTOCOL_ERROR) => remark,
        ("", None, PROTOCOL_ERROR) => MALFORMED,
        (reason, ..) => reason,
    };
    let section = section(code, reason);
    let name = code_name(code);
    let reason = if reason.is_empty() { name } else { format!("{name}: {reason}") };
    format!("{reason} (RFC 9113 section {section})")
}

/// Returns the library's text for an error.
fn error_text(error: ng::nghttp2_ssize) -> String {
    // SAFETY: it returns a static string
    let text = unsafe { std::ffi::CStr::from_ptr(ng::nghttp2_strerror(error as i32)) };
    text.to_string_lossy().into_owned()
}

/// Returns a client's session of the library, with our callbacks. `table`: bytes of our table for
/// fields.
fn client(
    state: NonNull<CallbackState>,
    memory: NonNull<Memory>,
    table: u32,
) -> NonNull<ng::nghttp2_session> {
    let user = state.as_ptr().cast();
    let mut memory = Memory::functions(memory);
    let mut callbacks = std::ptr::null_mut();
    let mut option = std::ptr::null_mut();
    let mut raw = std::ptr::null_mut();
    // SAFETY: the library makes the objects, and copies them into the session; state and memory outlive it
    unsafe {
        ng::nghttp2_session_callbacks_new(&raw mut callbacks);
        ng::nghttp2_option_new(&raw mut option);
        assert!(!callbacks.is_null() && !option.is_null(), "no memory for a session");
        callbacks::set(callbacks);
        ng::nghttp2_option_set_peer_max_concurrent_streams(option, STREAMS_AT_FIRST);
        // a server under load sends late frames of streams that were reset: not an attack
        ng::nghttp2_option_set_glitch_rate_limit(option, GLITCHES_MAX, GLITCHES_PER_S);
        if table != TABLE_AT_FIRST {
            ng::nghttp2_option_set_max_deflate_dynamic_table_size(option, table as usize);
        }
        ng::nghttp2_session_client_new3(&raw mut raw, callbacks, user, option, &raw mut memory);
        ng::nghttp2_session_callbacks_del(callbacks);
        ng::nghttp2_option_del(option);
    }
    let raw = NonNull::new(raw);
    assert!(raw.is_some(), "no memory for a session");
    raw.expect("looked at above")
}
