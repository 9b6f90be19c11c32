//! The library's own server side, driven by hand.
#![expect(unsafe_code, reason = "calls into libnghttp2")]

use libnghttp2_sys as ng;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr;

#[derive(Default)]
struct Seen {
    fields: BTreeMap<i32, Vec<String>>,
    received: BTreeMap<i32, usize>,
    resets: Vec<(i32, u32)>,
    /// Body of the current response.
    body: BTreeMap<i32, Vec<u8>>,
    trailers: BTreeMap<i32, Vec<(String, String)>>,
}

pub(super) struct Server {
    raw: *mut ng::nghttp2_session,
    seen: *mut Seen,
}

unsafe extern "C" fn on_header(
    _: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    name: *const u8,
    name_len: usize,
    value: *const u8,
    value_len: usize,
    _: u8,
    user: *mut c_void,
) -> c_int {
    // SAFETY: as the library documents it
    unsafe {
        let text = |data, length| String::from_utf8_lossy(std::slice::from_raw_parts(data, length));
        let line = format!("{} {}", text(name, name_len), text(value, value_len));
        (*user.cast::<Seen>()).fields.entry((*frame).hd.stream_id).or_default().push(line);
    }
    0
}

unsafe extern "C" fn on_data(
    _: *mut ng::nghttp2_session,
    _: u8,
    id: i32,
    _: *const u8,
    length: usize,
    user: *mut c_void,
) -> c_int {
    // SAFETY: as the library documents it
    unsafe { *(*user.cast::<Seen>()).received.entry(id).or_default() += length };
    0
}

unsafe extern "C" fn on_frame(
    _: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    user: *mut c_void,
) -> c_int {
    // SAFETY: as the library documents it
    unsafe {
        if u32::from((*frame).hd.type_) == ng::NGHTTP2_RST_STREAM {
            let reset = ((*frame).hd.stream_id, (*frame).rst_stream.error_code);
            (*user.cast::<Seen>()).resets.push(reset);
        }
    }
    0
}

unsafe extern "C" fn read(
    session: *mut ng::nghttp2_session,
    id: i32,
    buffer: *mut u8,
    length: usize,
    flags: *mut u32,
    _: *mut ng::nghttp2_data_source,
    user: *mut c_void,
) -> ng::nghttp2_ssize {
    // SAFETY: as the library documents it
    unsafe {
        let seen = &mut *user.cast::<Seen>();
        let body = seen.body.entry(id).or_default();
        let count = body.len().min(length);
        ptr::copy_nonoverlapping(body.as_ptr(), buffer, count);
        body.drain(..count);
        if body.is_empty() {
            *flags |= ng::NGHTTP2_DATA_FLAG_EOF;
            if let Some(trailers) = seen.trailers.remove(&id) {
                *flags |= ng::NGHTTP2_DATA_FLAG_NO_END_STREAM;
                let fields: Vec<_> = trailers.iter().map(|(n, v)| pair(n, v)).collect();
                ng::nghttp2_submit_trailer(session, id, fields.as_ptr(), fields.len());
            }
        }
        count as ng::nghttp2_ssize
    }
}

fn pair(name: &str, value: &str) -> ng::nghttp2_nv {
    ng::nghttp2_nv {
        name: name.as_ptr().cast_mut(),
        value: value.as_ptr().cast_mut(),
        namelen: name.len(),
        valuelen: value.len(),
        flags: 0,
    }
}

impl Server {
    pub(super) fn new(streams_max: u32) -> Server {
        let seen = Box::into_raw(Box::<Seen>::default());
        let mut raw = ptr::null_mut();
        // SAFETY: objects of the library, and a state that outlives the session
        unsafe {
            let mut callbacks = ptr::null_mut();
            ng::nghttp2_session_callbacks_new(&raw mut callbacks);
            ng::nghttp2_session_callbacks_set_on_header_callback(callbacks, Some(on_header));
            ng::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Some(on_data));
            ng::nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Some(on_frame));
            ng::nghttp2_session_server_new(&raw mut raw, callbacks, seen.cast());
            ng::nghttp2_session_callbacks_del(callbacks);
            let entry = ng::nghttp2_settings_entry { settings_id: 3, value: streams_max };
            ng::nghttp2_submit_settings(raw, 0, &raw const entry, 1);
        }
        Server { raw, seen }
    }

    /// Requests' bodies are never read.
    pub(super) fn with_closed_windows(self) -> Server {
        let entry = ng::nghttp2_settings_entry { settings_id: 4, value: 0 };
        // SAFETY: a live session
        unsafe { ng::nghttp2_submit_settings(self.raw, 0, &raw const entry, 1) };
        self
    }

    fn seen(&mut self) -> &mut Seen {
        // SAFETY: the library calls back only while it is called
        unsafe { &mut *self.seen }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        // SAFETY: a live session
        let read = unsafe { ng::nghttp2_session_mem_recv2(self.raw, bytes.as_ptr(), bytes.len()) };
        assert_eq!(read, bytes.len() as isize);
    }

    pub(super) fn drain(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            let mut data = ptr::null();
            // SAFETY: the returned memory is valid until the next call
            unsafe {
                let length = ng::nghttp2_session_mem_send2(self.raw, &raw mut data);
                if length <= 0 {
                    return out;
                }
                out.extend_from_slice(std::slice::from_raw_parts(data, length as usize));
            }
        }
    }

    pub(super) fn requests(&mut self) -> Vec<(i32, String)> {
        self.seen().fields.iter().map(|(id, lines)| (*id, lines.join(", "))).collect()
    }

    pub(super) fn received(&mut self, id: i32) -> usize {
        self.seen().received.get(&id).copied().unwrap_or(0)
    }

    pub(super) fn resets(&mut self) -> Vec<(i32, u32)> {
        self.seen().resets.clone()
    }

    pub(super) fn respond(&mut self, id: i32, status: &str, body: &[u8]) {
        self.respond_with(id, status, &[], body);
    }

    pub(super) fn respond_with(
        &mut self,
        id: i32,
        status: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) {
        self.seen().body.insert(id, body.to_vec());
        let mut fields = vec![pair(":status", status)];
        fields.extend(more.iter().map(|(name, value)| pair(name, value)));
        let source = ng::nghttp2_data_provider2 {
            source: ng::nghttp2_data_source { fd: 0 },
            read_callback: Some(read),
        };
        let source = if body.is_empty() { ptr::null() } else { &raw const source };
        // SAFETY: a live session, which copies all of it
        let sent = unsafe {
            ng::nghttp2_submit_response2(self.raw, id, fields.as_ptr(), fields.len(), source)
        };
        assert_eq!(sent, 0);
    }

    pub(super) fn respond_with_trailers(
        &mut self,
        id: i32,
        body: &[u8],
        trailers: &[(&str, &str)],
    ) {
        let trailers = trailers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        self.seen().trailers.insert(id, trailers);
        self.respond(id, "200", body);
    }

    pub(super) fn interim(&mut self, id: i32, status: &str) {
        self.interim_with(id, status, &[]);
    }

    pub(super) fn interim_with(&mut self, id: i32, status: &str, more: &[(&str, &str)]) {
        let more = more.iter().map(|(name, value)| pair(name, value));
        let fields: Vec<_> = [pair(":status", status)].into_iter().chain(more).collect();
        // SAFETY: a live session, which copies the fields
        unsafe {
            ng::nghttp2_submit_headers(
                self.raw,
                0,
                id,
                ptr::null(),
                fields.as_ptr(),
                fields.len(),
                ptr::null_mut(),
            );
        }
    }

    pub(super) fn reset(&mut self, id: i32, code: u32) {
        // SAFETY: a live session
        unsafe { ng::nghttp2_submit_rst_stream(self.raw, 0, id, code) };
    }

    pub(super) fn go_away(&mut self, last: i32, code: u32) {
        // SAFETY: a live session
        unsafe { ng::nghttp2_submit_goaway(self.raw, 0, last, code, ptr::null(), 0) };
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: both are owned
        unsafe {
            ng::nghttp2_session_del(self.raw);
            drop(Box::from_raw(self.seen));
        }
    }
}
