//! The firing range over HTTP/2 with prior knowledge (RFC 9113): one connection, correct except for
//! its switches.

mod call;
pub(super) mod request;
mod tunnel;

use super::socket::SocketConnection;
use super::{Act, Defect, Defects, page};
use call::{Call, CallEnd, FORGOTTEN};
use protocol::hpack::{Decoder, Field};
use request::{Http2Request, parse_request};
use std::collections::{BTreeMap, BTreeSet};
use units::Nanos;

/// Start of every HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
/// Maximum frame size in both directions.
const FRAME_MAX: usize = 16_384;
/// Size above which a frame crashes a server with this defect.
const FATAL_FRAME: usize = 40_000;
const STREAMS_MAX: usize = 100;
const TABLE: usize = 4_096;
/// Maximum total size of the fields of a request.
const FIELDS_BYTES: usize = 64 << 10;
const WINDOW: i64 = 65_535;
const WINDOW_MAX: i64 = (1 << 31) - 1;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITIZED: u8 = 0x20;

/// Maximum number of streams whose unread content is remembered.
const UNREAD_MAX: usize = 1_000;

const PROTOCOL_ERROR: u32 = 1;
const INTERNAL_ERROR: u32 = 2;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// An error of the connection or of one stream.
enum Breach {
    Connection(u32),
    Stream(u32, u32),
}

/// An open request, or its response.
#[derive(Debug)]
struct OpenStream {
    asked: Http2Request,
    /// Received content in bytes.
    got: u64,
    /// The client has ended the stream.
    ended: bool,
    window: i64,
    /// Unsent content of the response; `None` before the response.
    rest: Option<Vec<u8>>,
    /// A call of gRPC before its end.
    call: Option<Call>,
    /// A WebSocket.
    socket: Option<Box<SocketConnection>>,
    /// The header block of the trailers.
    trailers: Option<Vec<u8>>,
    /// The response has no end.
    stays: bool,
}

/// An open header block.
#[derive(Debug)]
struct OpenFields {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Frames {
    defects: Defects,
    buffer: Vec<u8>,
    begun: bool,
    settled: bool,
    decoder: Decoder,
    block: Option<OpenFields>,
    streams: BTreeMap<u32, OpenStream>,
    /// Streams reset by a client that still count.
    lost: usize,
    /// Streams of calls that ended before their content, which is ignored.
    unread: BTreeSet<u32>,
    now: Nanos,
    /// Calls and pings so far, and whether the client sent GOAWAY.
    calls: u32,
    pings: u32,
    left: bool,
    last: u32,
    window: i64,
    initial: i64,
    out: Vec<u8>,
    over: bool,
    pub(super) dead: bool,
}

/// The header of a frame, and its payload.
struct InFrame<'b> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'b [u8],
}

impl Frames {
    pub(super) fn new(defects: &Defects) -> Frames {
        Frames {
            defects: defects.clone(),
            buffer: Vec::new(),
            begun: false,
            settled: false,
            decoder: Decoder::new(TABLE, FIELDS_BYTES),
            block: None,
            streams: BTreeMap::new(),
            lost: 0,
            unread: BTreeSet::new(),
            now: Nanos::ZERO,
            calls: 0,
            pings: 0,
            left: false,
            last: 0,
            window: WINDOW,
            initial: WINDOW,
            out: Vec::new(),
            over: false,
            dead: false,
        }
    }

    /// Handles received bytes.
    pub(super) fn receive(&mut self, at: Nanos, bytes: &[u8]) -> Vec<Act> {
        self.now = at;
        self.buffer.extend_from_slice(bytes);
        while !self.over && !self.dead && self.step() {}
        self.acts()
    }

    /// Returns the earliest deadline of a call.
    pub(super) fn due(&self) -> Nanos {
        let calls = self.streams.values().filter_map(|stream| stream.call.as_ref());
        calls.filter_map(|call| call.ends_at).min().unwrap_or(Nanos::NEVER)
    }

    /// Ends the call with the earliest deadline.
    pub(super) fn expire(&mut self) -> Vec<Act> {
        let due = self.due();
        let is_due = |stream: &OpenStream| {
            stream.call.as_ref().is_some_and(|call| call.ends_at == Some(due))
        };
        let late = self.streams.iter().find(|(_, stream)| is_due(stream)).map(|(id, _)| *id);
        if let Some(id) = late {
            let end = Call::late(&self.defects);
            self.end_call(id, end);
        }
        self.acts()
    }

    /// Returns whether a call waits for its content.
    pub(super) fn is_inside_call(&self) -> bool {
        self.streams.values().any(|stream| stream.call.is_some() && !stream.ended)
    }

    fn acts(&mut self) -> Vec<Act> {
        let mut acts = Vec::new();
        let out = std::mem::take(&mut self.out);
        if !out.is_empty() && !self.dead {
            acts.push(Act::Send(out));
        }
        if self.over {
            acts.push(Act::Close);
        }
        acts
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.buffer.is_empty() && self.block.is_none()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    /// Advances one step; returns false if more data is needed.
    fn step(&mut self) -> bool {
        if !self.begun {
            let count = self.buffer.len().min(PREFACE.len());
            if self.buffer[..count] != PREFACE[..count] {
                self.wrong(Breach::Connection(PROTOCOL_ERROR));
                return false;
            }
            if count < PREFACE.len() {
                return false;
            }
            self.buffer.drain(..count);
            self.begun = true;
            let limit = [0, 3, 0, 0, 0, STREAMS_MAX as u8];
            let tunnels = !self.has(Defect::AnnouncesNoTunnels);
            let enabled = if tunnels { &tunnel::ENABLED[..] } else { &[] };
            self.put(SETTINGS, 0, 0, &[&limit, enabled].concat());
        }
        let Some(head) = self.buffer.get(..HEAD) else { return false };
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let kind = head[3];
        let flags = head[4];
        let stream = u32::from_be_bytes([head[5] & 127, head[6], head[7], head[8]]);
        if length > FRAME_MAX {
            self.dead |= length > FATAL_FRAME && self.has(Defect::DiesOfLongFrame);
            self.wrong(Breach::Connection(FRAME_SIZE_ERROR));
            return false;
        }
        if self.buffer.len() < HEAD + length {
            return false;
        }
        let bytes: Vec<u8> = self.buffer.drain(..HEAD + length).collect();
        let frame = InFrame { kind, flags, stream, payload: &bytes[HEAD..] };
        if let Err(wrong) = self.frame(&frame) {
            self.wrong(wrong);
        }
        true
    }

    fn wrong(&mut self, wrong: Breach) {
        match wrong {
            Breach::Connection(code) => {
                let payload = [self.last.to_be_bytes(), code.to_be_bytes()].concat();
                self.put(GOAWAY, 0, 0, &payload);
                self.over = true;
            }
            Breach::Stream(stream, code) => {
                self.put(RST_STREAM, 0, stream, &code.to_be_bytes());
                self.streams.remove(&stream);
            }
        }
    }

    fn put(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
        self.out.extend_from_slice(&[high, middle, low, kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    fn frame(&mut self, frame: &InFrame<'_>) -> Result<(), Breach> {
        let first = frame.kind == SETTINGS && frame.flags & ACK == 0;
        let foreign = match &self.block {
            Some(block) => frame.kind != CONTINUATION || frame.stream != block.stream,
            None => frame.kind == CONTINUATION,
        };
        if foreign || !self.settled && !first {
            return Err(Breach::Connection(PROTOCOL_ERROR));
        }
        self.settled = true;
        let needs_stream =
            matches!(frame.kind, DATA | HEADERS | PRIORITY | RST_STREAM | CONTINUATION);
        let needs_none = matches!(frame.kind, SETTINGS | PING | GOAWAY);
        if needs_stream && frame.stream == 0 || needs_none && frame.stream != 0 {
            return Err(Breach::Connection(PROTOCOL_ERROR));
        }
        let length = frame.payload.len();
        match frame.kind {
            DATA => self.data(frame),
            HEADERS => self.headers(frame),
            CONTINUATION => self.continuation(frame),
            PRIORITY if length != 5 => Err(Breach::Stream(frame.stream, FRAME_SIZE_ERROR)),
            RST_STREAM | WINDOW_UPDATE if length != 4 => Err(Breach::Connection(FRAME_SIZE_ERROR)),
            RST_STREAM => self.reset(frame.stream),
            WINDOW_UPDATE => self.window_update(frame),
            SETTINGS => self.settings(frame),
            PING if length != 8 => Err(Breach::Connection(FRAME_SIZE_ERROR)),
            PING if frame.flags & ACK == 0 => {
                self.pings += 1;
                if self.pings > 1 && self.has(Defect::CountsPings) {
                    return Err(Breach::Connection(ENHANCE_YOUR_CALM));
                }
                self.put(PING, ACK, 0, frame.payload);
                Ok(())
            }
            GOAWAY if length < 8 => Err(Breach::Connection(FRAME_SIZE_ERROR)),
            GOAWAY => {
                self.left = true;
                Ok(())
            }
            PUSH_PROMISE => Err(Breach::Connection(PROTOCOL_ERROR)),
            _ => Ok(()),
        }
    }

    fn is_idle_stream(&self, stream: u32) -> bool {
        stream > self.last || stream.is_multiple_of(2)
    }

    fn reset(&mut self, stream: u32) -> Result<(), Breach> {
        if self.is_idle_stream(stream) {
            return Err(Breach::Connection(PROTOCOL_ERROR));
        }
        self.reset_socket(stream)?;
        self.streams.remove(&stream);
        self.lost += usize::from(self.has(Defect::KeepsResetStreams));
        Ok(())
    }

    fn data(&mut self, frame: &InFrame<'_>) -> Result<(), Breach> {
        if self.is_idle_stream(frame.stream) {
            return Err(Breach::Connection(PROTOCOL_ERROR));
        }
        let content = match self.has(Defect::ReadsPadding) {
            true => frame.payload.get(usize::from(frame.flags & PADDED != 0)..).unwrap_or_default(),
            false => unpadded(frame, 0)?,
        };
        if self.unread.contains(&frame.stream) {
            return Ok(());
        }
        let content = content.to_vec();
        let Some(stream) = self.streams.get_mut(&frame.stream).filter(|stream| !stream.ended)
        else {
            return match self.has(Defect::ReadsOn) {
                true => Ok(()),
                false => Err(Breach::Stream(frame.stream, STREAM_CLOSED)),
            };
        };
        stream.got += content.len() as u64;
        stream.ended = frame.flags & END_STREAM != 0;
        let early = stream.call.as_mut().and_then(|call| call.take(&content, &self.defects));
        // consumed data is credited at once
        let taken = frame.payload.len() as u32;
        if taken > 0 {
            self.put(WINDOW_UPDATE, 0, 0, &taken.to_be_bytes());
            self.put(WINDOW_UPDATE, 0, frame.stream, &taken.to_be_bytes());
        }
        if let Some(end) = early {
            self.end_call(frame.stream, end);
            return Ok(());
        }
        let ends = frame.flags & END_STREAM != 0;
        if self.take_socket_content(frame.stream, &content, ends)? {
            return Ok(());
        }
        self.serve(frame.stream)
    }

    fn headers(&mut self, frame: &InFrame<'_>) -> Result<(), Breach> {
        let known = self.streams.contains_key(&frame.stream);
        if frame.stream.is_multiple_of(2) {
            return Err(Breach::Connection(PROTOCOL_ERROR));
        }
        if !known && frame.stream <= self.last {
            return Err(Breach::Connection(STREAM_CLOSED));
        }
        let skipped = if frame.flags & PRIORITIZED == 0 { 0 } else { 5 };
        let bytes = unpadded(frame, skipped)?.to_vec();
        self.last = self.last.max(frame.stream);
        let ends = frame.flags & END_STREAM != 0;
        self.block = Some(OpenFields { stream: frame.stream, ends, bytes });
        self.end_block(frame.flags)
    }

    fn continuation(&mut self, frame: &InFrame<'_>) -> Result<(), Breach> {
        let Some(block) = &mut self.block else { return Ok(()) };
        block.bytes.extend_from_slice(frame.payload);
        if block.bytes.len() > FIELDS_BYTES {
            return Err(Breach::Connection(ENHANCE_YOUR_CALM));
        }
        self.end_block(frame.flags)
    }

    fn end_block(&mut self, flags: u8) -> Result<(), Breach> {
        if flags & END_HEADERS == 0 {
            return Ok(());
        }
        let Some(OpenFields { stream, ends, bytes }) = self.block.take() else { return Ok(()) };
        let fields = self.decoder.decode(&bytes);
        if self.has(Defect::MixesTables) {
            self.decoder = Decoder::new(TABLE, FIELDS_BYTES);
        }
        let fields = fields.map_err(|_| Breach::Connection(COMPRESSION_ERROR))?;
        if let Some(open) = self.streams.get_mut(&stream) {
            let trailer = !fields.iter().any(|(name, _)| name.starts_with(b":"));
            if open.ended {
                return Err(Breach::Connection(STREAM_CLOSED));
            }
            if !ends || !trailer {
                return Err(Breach::Stream(stream, PROTOCOL_ERROR));
            }
            open.ended = true;
            return self.serve(stream);
        }
        if self.streams.len() + self.lost >= STREAMS_MAX {
            let canceled = self.has(Defect::CancelsExcess);
            return Err(Breach::Stream(stream, if canceled { CANCEL } else { REFUSED_STREAM }));
        }
        self.open(stream, ends, fields)
    }

    /// Opens a stream with the fields of its request.
    fn open(&mut self, stream: u32, ends: bool, mut fields: Vec<Field>) -> Result<(), Breach> {
        if self.has(Defect::CallsAnyTe) {
            fields.retain(|(name, _)| name != b"te");
        }
        if self.connect(stream, ends, &fields)? {
            return Ok(());
        }
        // no other tunnels: their requests have no :path (RFC 9113 section 8.5)
        let tunnel = |asked: &Http2Request| asked.method == b"CONNECT";
        let serves = self.defects.contains(&Defect::ServesConnect);
        let asked = parse_request(&fields).filter(|asked| serves || !tunnel(asked));
        let asked = asked.ok_or(Breach::Stream(stream, PROTOCOL_ERROR))?;
        let window = self.initial;
        let call =
            Call::begin(self.now, &asked.path, &asked.method, &fields, &self.defects).transpose();
        let (call, refused) = match call {
            Ok(call) => (call, None),
            Err(end) => (None, Some(end)),
        };
        let is_call = call.is_some();
        let (rest, trailers, stays) = (None, None, false);
        let open = OpenStream {
            asked,
            got: 0,
            ended: ends,
            window,
            rest,
            call,
            socket: None,
            trailers,
            stays,
        };
        self.streams.insert(stream, open);
        if let Some(end) = refused {
            self.end_call(stream, end);
            return Ok(());
        }
        self.calls += u32::from(is_call);
        let forgets = self.has(Defect::ForgetsCalls) && self.calls > FORGOTTEN
            || self.left && self.has(Defect::LeavesOnGoaway);
        if is_call && forgets {
            self.end_call(stream, CallEnd::Nothing);
            return Ok(());
        }
        self.serve(stream)
    }

    /// Responds to a complete request.
    fn serve(&mut self, id: u32) -> Result<(), Breach> {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.ended) else {
            return Ok(());
        };
        if let Some(call) = &stream.call {
            let end = call.finish(&self.defects);
            self.end_call(id, end);
            return Ok(());
        }
        let asked = &stream.asked;
        if asked.length.is_some_and(|length| length != stream.got) {
            return Err(Breach::Stream(id, PROTOCOL_ERROR));
        }
        let found = asked.path == page::PATH.as_bytes() || asked.path == page::POST.as_bytes();
        let body = if found { page::PAGE.as_bytes() } else { b"" };
        let status: &[u8] = if found { b"200" } else { b"404" };
        let head_only = asked.method == b"HEAD" || body.is_empty();
        let mut block = Vec::new();
        protocol::hpack::literal(b":status", status, &mut block);
        protocol::hpack::literal(b"content-length", body.len().to_string().as_bytes(), &mut block);
        stream.rest = Some(if head_only { Vec::new() } else { body.to_vec() });
        let flags = END_HEADERS | if head_only { END_STREAM } else { 0 };
        self.put(HEADERS, flags, id, &block);
        if head_only {
            self.streams.remove(&id);
        }
        self.send();
        Ok(())
    }

    /// Ends a call of gRPC with its response.
    fn end_call(&mut self, id: u32, end: CallEnd) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.call = None;
        if !stream.ended && self.unread.len() < UNREAD_MAX {
            self.unread.insert(id);
        }
        let mut block = Vec::new();
        let status = if let CallEnd::Http(status) = end { status } else { 200 };
        protocol::hpack::literal(b":status", status.to_string().as_bytes(), &mut block);
        if status == 200 {
            protocol::hpack::literal(b"content-type", b"application/grpc", &mut block);
        }
        match end {
            CallEnd::Connection(code) => return self.wrong(Breach::Connection(code)),
            CallEnd::Dead => return self.dead = true,
            CallEnd::Nothing => return,
            CallEnd::Http(_) => {}
            CallEnd::Failed(fields) => put_fields(&fields, &mut block),
            CallEnd::Reply(message, fields) => {
                let mut trailers = Vec::new();
                put_fields(&fields, &mut trailers);
                (stream.rest, stream.trailers) = (Some(message), Some(trailers));
            }
            CallEnd::Watched(message) => (stream.rest, stream.stays) = (Some(message), true),
        }
        if stream.rest.is_some() {
            self.put(HEADERS, END_HEADERS, id, &block);
            return self.send();
        }
        self.put(HEADERS, END_HEADERS | END_STREAM, id, &block);
        self.streams.remove(&id);
    }

    /// Sends as much of all responses as the windows allow.
    fn send(&mut self) {
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        for id in ids {
            if self.is_blocked(id) {
                continue;
            }
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            let Some(rest) = &mut stream.rest else { continue };
            let open = stream.socket.is_some() && self.defects.contains(&Defect::IgnoresWindows);
            let window = if open { WINDOW } else { stream.window.min(self.window) };
            let count = (window.clamp(0, FRAME_MAX as i64) as usize).min(rest.len());
            // a WebSocket may end without another frame
            let ends_empty = rest.is_empty() && !stream.stays;
            if count == 0 && !ends_empty {
                continue;
            }
            let cut = count < rest.len() && stream.trailers.is_some();
            if cut && self.defects.contains(&Defect::NeedsWideWindows) {
                self.wrong(Breach::Stream(id, INTERNAL_ERROR));
                continue;
            }
            let piece: Vec<u8> = rest.drain(..count).collect();
            let ended = rest.is_empty() && !stream.stays;
            stream.window -= count as i64;
            let trailers = if ended { stream.trailers.take() } else { None };
            self.window -= count as i64;
            let last = ended && trailers.is_none();
            self.put(DATA, if last { END_STREAM } else { 0 }, id, &piece);
            if let Some(block) = trailers {
                self.put(HEADERS, END_HEADERS | END_STREAM, id, &block);
            }
            if ended {
                self.streams.remove(&id);
            }
        }
    }

    fn window_update(&mut self, frame: &InFrame<'_>) -> Result<(), Breach> {
        let &[a, b, c, d] = frame.payload else { return Ok(()) };
        let more = i64::from(u32::from_be_bytes([a & 127, b, c, d]));
        if frame.stream != 0 && self.is_idle_stream(frame.stream) {
            return Err(Breach::Connection(PROTOCOL_ERROR));
        }
        let wrong = |code| match frame.stream {
            0 => Breach::Connection(code),
            stream => Breach::Stream(stream, code),
        };
        let window = match frame.stream {
            0 => &mut self.window,
            id => match self.streams.get_mut(&id) {
                Some(stream) => &mut stream.window,
                None => return Ok(()),
            },
        };
        if more == 0 {
            return Err(wrong(PROTOCOL_ERROR));
        }
        *window += more;
        if *window > WINDOW_MAX {
            return Err(wrong(FLOW_CONTROL_ERROR));
        }
        self.send();
        Ok(())
    }

    fn settings(&mut self, frame: &InFrame<'_>) -> Result<(), Breach> {
        let ack = frame.flags & ACK != 0;
        if ack && !frame.payload.is_empty() || !frame.payload.len().is_multiple_of(6) {
            return Err(Breach::Connection(FRAME_SIZE_ERROR));
        }
        if ack {
            return Ok(());
        }
        for one in frame.payload.chunks_exact(6) {
            let value = u32::from_be_bytes([one[2], one[3], one[4], one[5]]);
            match (u16::from_be_bytes([one[0], one[1]]), value) {
                (2, 2..) | (5, ..=16_383 | 16_777_216..) => {
                    return Err(Breach::Connection(PROTOCOL_ERROR));
                }
                (4, _) => self.set_window(i64::from(value))?,
                _ => {}
            }
        }
        self.put(SETTINGS, ACK, 0, &[]);
        self.send();
        Ok(())
    }

    /// Changes the windows of open streams too (RFC 9113 section 6.9.2).
    fn set_window(&mut self, value: i64) -> Result<(), Breach> {
        let more = value - self.initial;
        self.initial = value;
        let mut beyond = value > WINDOW_MAX;
        for stream in self.streams.values_mut() {
            stream.window += more;
            beyond |= stream.window > WINDOW_MAX;
        }
        if beyond { Err(Breach::Connection(FLOW_CONTROL_ERROR)) } else { Ok(()) }
    }
}

/// Returns a payload without its padding, and without the given number of leading bytes.
fn unpadded<'b>(frame: &InFrame<'b>, skipped: usize) -> Result<&'b [u8], Breach> {
    let (padding, rest) = match (frame.flags & PADDED, frame.payload.split_first()) {
        (0, _) => (0, frame.payload),
        (_, Some((length, rest))) => (usize::from(*length), rest),
        (_, None) => return Err(Breach::Connection(FRAME_SIZE_ERROR)),
    };
    let end = rest.len().checked_sub(padding).ok_or(Breach::Connection(PROTOCOL_ERROR))?;
    rest.get(skipped..end).ok_or(Breach::Connection(FRAME_SIZE_ERROR))
}

fn put_fields(fields: &[(&'static str, String)], block: &mut Vec<u8>) {
    fields.iter().for_each(|(name, value)| {
        protocol::hpack::literal(name.as_bytes(), value.as_bytes(), block);
    });
}
