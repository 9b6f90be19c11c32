//! Callbacks of libnghttp2. Each one only records its arguments; none can panic into C.
#![expect(unsafe_code, reason = "the library calls these from C")]

use crate::FRAME_HEADER;
use crate::code::NO_ERROR;
use crate::stream::{FIELD_OVERHEAD, OutstandingStream};
use libnghttp2_sys as ng;
use sample::Http2Facts;
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Number of bytes kept of a GOAWAY's debug data.
const REASON_MAX: usize = 200;

/// The fields that a session examines, with their lengths.
const STATUS: &[u8] = b":status";
const STATUS_LEN: usize = STATUS.len();
const SERVER_TIMING: &[u8] = b"server-timing";
const SERVER_TIMING_LEN: usize = SERVER_TIMING.len();

/// State that the callbacks write and [`Session`](crate::Session) reads between library calls.
#[derive(Debug, Default)]
pub(crate) struct CallbackState {
    pub(crate) keeps_heads: bool,
    /// True if the arriving fields are those of a response with a status of 400 or above.
    pub(crate) is_failure: bool,
    pub(crate) header_list_max: u32,
    /// Outstanding, in the order of their ids.
    pub(crate) streams: VecDeque<OutstandingStream>,
    /// Index of the last match: the next search is usually for the same stream.
    pub(crate) found: Cell<usize>,
    /// The input that the library is reading.
    pub(crate) input: Range<usize>,
    /// Response part of the current frame, until it is taken.
    pub(crate) news: Option<ResponseNews>,
    /// Content of the frame so far.
    pub(crate) frame_content: u64,
    /// Size of the arriving list of fields, and whether it belongs to an outstanding stream.
    pub(crate) list: u64,
    pub(crate) is_awaited: bool,
    /// Streams that ended without their whole response, and the code.
    pub(crate) gone: VecDeque<(i32, u32)>,
    /// Code and reason, if our side closed the connection.
    pub(crate) violation: Option<(u32, String)>,
    /// The library's last complaint.
    pub(crate) remark: Option<String>,
    pub(crate) going_away: bool,
    /// Streams started on the connection.
    pub(crate) begun: u64,
    /// True while a request is sent, so that sent bytes belong to it; otherwise they are counted in
    /// `late`, by stream.
    pub(crate) asking: bool,
    /// The stream whose request was sent last, with all of its fields.
    pub(crate) sent_last: i32,
    pub(crate) late: Vec<LateFrame>,
    pub(crate) settings_seen: bool,
    /// PING frames of our side since the last acknowledgment.
    pub(crate) unanswered_pings: u32,
    pub(crate) facts: Http2Facts,
}

/// End of a list of fields, content, or end of the stream.
#[derive(Clone, Debug)]
pub(crate) struct ResponseNews {
    pub(crate) id: i32,
    /// Content within the input.
    pub(crate) body: Range<usize>,
    pub(crate) ended: bool,
}

/// A frame of a request that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateFrame {
    pub(crate) id: i32,
    pub(crate) bytes: u64,
    /// The part opens the stream.
    pub(crate) begins: bool,
}

impl CallbackState {
    #[inline]
    pub(crate) fn place(&self, id: i32) -> Option<usize> {
        let found = self.found.get();
        if self.is_at(found, id) { Some(found) } else { self.search(id) }
    }

    #[inline]
    fn is_at(&self, place: usize, id: i32) -> bool {
        self.streams.get(place).is_some_and(|stream| stream.id == id)
    }

    /// Finds a stream. If the last match is another stream, the right one is the next, or the
    /// oldest if responses arrive in order.
    #[inline(never)]
    fn search(&self, id: i32) -> Option<usize> {
        let behind = self.found.get() + 1;
        let place = if self.is_at(behind, id) {
            behind
        } else if self.is_at(0, id) {
            0
        } else {
            self.streams.binary_search_by_key(&id, |stream| stream.id).ok()?
        };
        self.found.set(place);
        Some(place)
    }

    /// Removes a stream.
    #[inline]
    pub(crate) fn remove(&mut self, place: usize) -> Option<OutstandingStream> {
        // usually the oldest, so that nothing is moved
        if place == 0 { self.streams.pop_front() } else { self.streams.remove(place) }
    }

    /// Processes a field of a response.
    fn field(&mut self, id: i32, name: &[u8], value: &[u8]) {
        if name == STATUS {
            // a report shows the heads of failed responses, whatever else needs heads
            self.is_failure = value.first().is_some_and(|digit| *digit >= b'4');
        }
        let keeps = self.keeps_heads || self.is_failure;
        let Some(stream) = self.stream(id) else { return };
        match name {
            STATUS => return stream.status(value, keeps),
            SERVER_TIMING if stream.is_final() => stream.time(value),
            _ => {}
        }
        if keeps {
            stream.keep_field(name, value);
        }
    }

    fn receive_goaway(&mut self, code: u32, reason: &[u8]) {
        // a graceful shutdown sends it twice (RFC 9113 section 6.8)
        if code != NO_ERROR || !self.going_away {
            *self.facts.goaways.entry(code).or_default() += 1;
        }
        if code != NO_ERROR && !reason.is_empty() {
            let reason = &reason[..reason.len().min(REASON_MAX)];
            self.facts.add_goaway_reason(&String::from_utf8_lossy(reason), 1);
        }
        if code == NO_ERROR && !self.going_away {
            self.facts.goaway_streams = Some((self.begun, self.begun));
        }
        self.going_away = true;
    }

    #[inline]
    pub(crate) fn stream(&mut self, id: i32) -> Option<&mut OutstandingStream> {
        let place = self.place(id)?;
        self.streams.get_mut(place)
    }
}

/// Creates a set of callbacks; the library copies it into each session that is made with it.
///
/// # Safety
/// `callbacks` is a live object of the library.
pub(crate) unsafe fn set(callbacks: *mut ng::nghttp2_session_callbacks) {
    // SAFETY: the caller's; each callback has the signature that the library documents
    unsafe {
        ng::nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Some(on_begin));
        ng::nghttp2_session_callbacks_set_on_header_callback(callbacks, Some(on_header));
        ng::nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Some(on_frame));
        ng::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Some(on_data));
        ng::nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Some(on_close));
        ng::nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Some(on_sent));
        ng::nghttp2_session_callbacks_set_error_callback2(callbacks, Some(on_remark));
    }
}

/// Runs `note` on the state that `user` points to; a panic becomes the library's error.
///
/// # Safety
/// `user` points to the [`CallbackState`] of the session, and there is no other reference to it: a
/// session borrows none while it calls the library.
unsafe fn with(user: *mut c_void, note: impl FnOnce(&mut CallbackState) -> c_int) -> c_int {
    // SAFETY: the caller's
    let Some(state) = (unsafe { user.cast::<CallbackState>().as_mut() }) else {
        return ng::NGHTTP2_ERR_CALLBACK_FAILURE;
    };
    catch_unwind(AssertUnwindSafe(|| note(state))).unwrap_or(ng::NGHTTP2_ERR_CALLBACK_FAILURE)
}

/// Returns a slice of the library's memory.
///
/// # Safety
/// `data` points to `length` bytes that live as long as the callback.
unsafe fn slice<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's
    unsafe { std::slice::from_raw_parts(data, length) }
}

unsafe extern "C" fn on_begin(
    _session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    user: *mut c_void,
) -> c_int {
    // SAFETY: the library passes a whole frame and our own state
    unsafe {
        let id = (*frame).hd.stream_id;
        with(user, |state| {
            state.list = 0;
            state.is_failure = false;
            state.is_awaited = match state.stream(id) {
                Some(stream) => {
                    stream.begin_fields();
                    true
                }
                None => false,
            };
            0
        })
    }
}

unsafe extern "C" fn on_header(
    _session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    name: *const u8,
    name_len: usize,
    value: *const u8,
    value_len: usize,
    _flags: u8,
    user: *mut c_void,
) -> c_int {
    // SAFETY: the library passes a whole frame, two strings with their lengths, and our own state
    unsafe {
        let id = (*frame).hd.stream_id;
        with(user, |state| {
            let plain = (name_len + value_len) as u64;
            state.facts.fields_received += plain;
            if !state.is_awaited {
                return 0;
            }
            state.list += plain + FIELD_OVERHEAD;
            if state.list > u64::from(state.header_list_max) {
                return ng::NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
            }
            // most fields are counted and no more
            if state.keeps_heads
                || state.is_failure
                || matches!(name_len, STATUS_LEN | SERVER_TIMING_LEN)
            {
                state.field(id, slice(name, name_len), slice(value, value_len));
            }
            0
        })
    }
}

unsafe extern "C" fn on_data(
    _session: *mut ng::nghttp2_session,
    _flags: u8,
    id: i32,
    data: *const u8,
    length: usize,
    user: *mut c_void,
) -> c_int {
    // SAFETY: our own state
    unsafe {
        with(user, |state| {
            let at = (data as usize).wrapping_sub(state.input.start);
            let within = at.checked_add(length).is_some_and(|end| end <= state.input.len());
            if let Some(stream) = state.stream(id) {
                stream.facts.body_bytes += length as u64;
                let body = if within { at..at + length } else { 0..0 };
                state.news = Some(ResponseNews { id, body, ended: false });
                state.frame_content += length as u64;
            }
            0
        })
    }
}

unsafe extern "C" fn on_frame(
    session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    user: *mut c_void,
) -> c_int {
    // SAFETY: the library passes a whole frame, whose type determines the valid member, and our own
    // state
    unsafe {
        let head = (*frame).hd;
        let id = head.stream_id;
        let kind = u32::from(head.type_);
        let (code, reason) = match kind {
            ng::NGHTTP2_RST_STREAM => ((*frame).rst_stream.error_code, &[][..]),
            ng::NGHTTP2_GOAWAY => {
                let goaway = (*frame).goaway;
                (goaway.error_code, slice(goaway.opaque_data, goaway.opaque_data_len))
            }
            _ => (NO_ERROR, &[][..]),
        };
        let acknowledges = u32::from(head.flags) & ng::NGHTTP2_FLAG_ACK != 0;
        let streams_max = if kind == ng::NGHTTP2_SETTINGS {
            ng::nghttp2_session_get_remote_settings(
                session,
                ng::NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
            )
        } else {
            0
        };
        let ends = u32::from(head.flags) & ng::NGHTTP2_FLAG_END_STREAM != 0;
        with(user, |state| {
            match kind {
                ng::NGHTTP2_HEADERS => {
                    if let Some(stream) = state.stream(id) {
                        stream.end_fields();
                    }
                    state.news = Some(ResponseNews { id, body: 0..0, ended: ends });
                }
                ng::NGHTTP2_DATA if ends => {
                    let body = state.news.take().map_or(0..0, |news| news.body);
                    state.news = Some(ResponseNews { id, body, ended: true });
                }
                ng::NGHTTP2_RST_STREAM => {
                    *state.facts.resets.entry(code).or_default() += 1;
                    if let Some(stream) = state.stream(id) {
                        stream.reset = Some(code);
                    }
                }
                ng::NGHTTP2_GOAWAY => state.receive_goaway(code, reason),
                ng::NGHTTP2_SETTINGS if !acknowledges => {
                    state.settings_seen = true;
                    let least = state.facts.streams_max.map_or(streams_max, |m| m.min(streams_max));
                    state.facts.streams_max = Some(least);
                }
                ng::NGHTTP2_PING if !acknowledges => state.facts.pings += 1,
                ng::NGHTTP2_PING => {
                    state.facts.pings_answered += 1;
                    state.unanswered_pings = 0;
                }
                _ => {}
            }
            0
        })
    }
}

unsafe extern "C" fn on_close(
    _session: *mut ng::nghttp2_session,
    id: i32,
    code: u32,
    user: *mut c_void,
) -> c_int {
    // SAFETY: our own state
    unsafe {
        with(user, |state| {
            let whole = state.news.as_ref().is_some_and(|news| news.ended && news.id == id);
            if !whole && state.place(id).is_some() {
                state.gone.push_back((id, code));
            }
            0
        })
    }
}

unsafe extern "C" fn on_sent(
    _session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    user: *mut c_void,
) -> c_int {
    // SAFETY: as in `on_frame`; a GOAWAY's reason lives as long as the frame
    unsafe {
        let head = (*frame).hd;
        let goaway = u32::from(head.type_) == ng::NGHTTP2_GOAWAY;
        let (code, reason) = if goaway {
            let goaway = (*frame).goaway;
            (goaway.error_code, slice(goaway.opaque_data, goaway.opaque_data_len))
        } else {
            (NO_ERROR, &[][..])
        };
        with(user, |state| {
            if u32::from(head.type_) == ng::NGHTTP2_HEADERS {
                state.facts.coded_sent += head.length as u64;
                state.sent_last = head.stream_id;
                if !state.asking {
                    state.facts.held_back += 1;
                    if let Some(stream) = state.stream(head.stream_id) {
                        stream.begin();
                    }
                    let bytes = (head.length + FRAME_HEADER) as u64;
                    state.late.push(LateFrame { id: head.stream_id, bytes, begins: true });
                }
            }
            if code != NO_ERROR {
                let reason = &reason[..reason.len().min(REASON_MAX)];
                state.violation = Some((code, String::from_utf8_lossy(reason).into_owned()));
            }
            0
        })
    }
}

unsafe extern "C" fn on_remark(
    _session: *mut ng::nghttp2_session,
    _code: c_int,
    text: *const c_char,
    length: usize,
    user: *mut c_void,
) -> c_int {
    // SAFETY: the library passes a text with its length, and our own state
    unsafe {
        let text = slice(text.cast(), length.min(REASON_MAX));
        with(user, |state| {
            state.remark = Some(String::from_utf8_lossy(text).into_owned());
            0
        })
    }
}

/// Reads a request's body for the library.
pub(crate) unsafe extern "C" fn read_body(
    _session: *mut ng::nghttp2_session,
    id: i32,
    buffer: *mut u8,
    length: usize,
    flags: *mut u32,
    _source: *mut ng::nghttp2_data_source,
    user: *mut c_void,
) -> ng::nghttp2_ssize {
    let mut taken = 0;
    // SAFETY: the library passes `length` bytes to write to, a flag, and our own state
    unsafe {
        let code = with(user, |state| {
            let Some(stream) = state.stream(id) else {
                return ng::NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
            };
            let left = stream.body_left();
            taken = left.len().min(length);
            let held = stream.is_held();
            if held && taken == 0 {
                return ng::NGHTTP2_ERR_DEFERRED;
            }
            std::ptr::copy_nonoverlapping(left.as_ptr(), buffer, taken);
            if taken == left.len() && !held {
                *flags |= ng::NGHTTP2_DATA_FLAG_EOF;
            }
            stream.pass_body(taken);
            let counted = !stream.is_tunnel();
            if !state.asking && taken > 0 && counted {
                let bytes = (taken + FRAME_HEADER) as u64;
                state.late.push(LateFrame { id, bytes, begins: false });
            }
            0
        });
        if code != 0 { code as ng::nghttp2_ssize } else { taken as ng::nghttp2_ssize }
    }
}
