//! The firing range over HTTP/3 (RFC 9114), as pieces of streams: one connection, correct except
//! for its switches.

mod frame;
mod own_table;

use super::frames::request::{Http2Request, parse_request};
use super::{Act, Defect, Defects, page};
use conduit::streams::{self, Cutter, Head, PieceKind};
use frame::{FrameBuffer, Met};
use own_table::OwnTable;
use protocol::hpack::Field;
use protocol::http3::{DynamicTable, TableSection, varint};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of simultaneous requests per connection.
const STREAMS_MAX: usize = 100;
/// Maximum total size of the fields of a request.
const FIELDS_BYTES: u32 = 64 << 10;
/// Our control stream, and its start: the type, and SETTINGS with SETTINGS_QPACK_MAX_TABLE_CAPACITY
/// (RFC 9204 section 5). No section may be blocked.
const CONTROL_STREAM: u64 = 3;
const CONTROL_BEGINS: [u8; 6] = [0, 4, 3, 1, 0x50, 0];
/// Allowed table capacity in bytes.
const TABLE: u64 = 4_096;
/// Our next unidirectional stream, and the type of the decoder stream.
const NEXT_STREAM: u64 = 7;
const DECODER: u8 = 3;
const TABLE_CAPACITY: u64 = 1;
const BLOCKED_STREAMS: u64 = 7;

const DATA: u64 = 0;
const HEADERS: u64 = 1;
const CANCEL_PUSH: u64 = 3;
const SETTINGS: u64 = 4;
const GOAWAY: u64 = 7;
const MAX_PUSH_ID: u64 = 0xd;
/// Settings defined in HTTP/2 only (section 7.2.4.1).
const HTTP2_SETTINGS: [u64; 4] = [2, 3, 4, 5];

// Codes (RFC 9114 section 8.1, RFC 9204 section 6).
const STREAM_CREATION_ERROR: u64 = 0x103;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;
const EXCESSIVE_LOAD: u64 = 0x107;
const ID_ERROR: u64 = 0x108;
const SETTINGS_ERROR: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const REQUEST_REJECTED: u64 = 0x10b;
const REQUEST_INCOMPLETE: u64 = 0x10d;
const MESSAGE_ERROR: u64 = 0x10e;
const DECOMPRESSION_FAILED: u64 = 0x200;
const ENCODER_STREAM_ERROR: u64 = 0x201;
const DECODER_STREAM_ERROR: u64 = 0x202;

/// An error of the connection or of one stream.
enum QuicBreach {
    Connection(u64),
    Stream(u64),
}

type Checked = Result<(), QuicBreach>;

/// An open request.
#[derive(Debug, Default)]
struct OpenRequest {
    frames: FrameBuffer,
    asked: Option<Http2Request>,
    /// Received content in bytes.
    got: u64,
    trailed: bool,
    /// A worker waits for table entries forever.
    stuck: bool,
    /// Number of sections that referred to the table.
    referred: u32,
}

/// Purpose of a unidirectional stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OneWayPurpose {
    Control,
    Encoder,
    Decoder,
    /// Unknown type: the data is ignored.
    Unknown,
}

#[derive(Debug, Default)]
struct OneWay {
    purpose: Option<OneWayPurpose>,
    bytes: Vec<u8>,
    frames: FrameBuffer,
}

/// State of the control stream.
#[derive(Debug, Default)]
struct ControlSeen {
    settled: bool,
    goaway: Option<u64>,
    pushes: Option<u64>,
}

#[derive(Debug)]
pub(super) struct QuicStreams {
    defects: Defects,
    cutter: Cutter,
    code: Vec<u8>,
    begun: bool,
    requests: BTreeMap<u64, OpenRequest>,
    /// Completed requests: further data of them is ignored.
    done: BTreeSet<u64>,
    /// Requests canceled by a client that still count.
    lost: usize,
    one_way: BTreeMap<u64, OneWay>,
    control: ControlSeen,
    table: DynamicTable,
    own_table: OwnTable,
    /// The decoder stream, and the encoder stream of our own table, once open; streams are opened
    /// in order.
    decoder_stream: Option<u64>,
    encoder_stream: Option<u64>,
    next_stream: u64,
    out: Vec<u8>,
    over: bool,
    pub(super) dead: bool,
    /// Workers blocked forever since the previous call.
    pub(super) hung: u32,
}

impl QuicStreams {
    pub(super) fn new(defects: &Defects) -> QuicStreams {
        QuicStreams {
            defects: defects.clone(),
            cutter: Cutter::default(),
            code: Vec::new(),
            begun: false,
            requests: BTreeMap::new(),
            done: BTreeSet::new(),
            lost: 0,
            one_way: BTreeMap::new(),
            control: ControlSeen::default(),
            table: DynamicTable::new(match defects.contains(&Defect::GrowsTables) {
                true => u64::from(u32::MAX),
                false => TABLE,
            }),
            own_table: OwnTable::default(),
            decoder_stream: None,
            encoder_stream: None,
            next_stream: NEXT_STREAM,
            out: Vec::new(),
            over: false,
            dead: false,
            hung: 0,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    /// Handles received pieces, or parts of them.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Vec<Act> {
        if !std::mem::replace(&mut self.begun, true) {
            streams::put_data(&mut self.out, CONTROL_STREAM, &CONTROL_BEGINS, false);
        }
        let mut at = 0;
        while at < bytes.len() && !self.over && !self.dead {
            let Ok(taken) = self.cutter.open(&bytes[at..]) else {
                self.over = true;
                break;
            };
            at += taken;
            let Some(head) = self.cutter.current() else { break };
            let payload = self.cutter.payload(&bytes[at..]);
            at += payload.len();
            let whole = self.cutter.pass(payload.len());
            if let Err(wrong) = self.piece(head, payload, whole) {
                self.wrong(head.stream, wrong);
            }
        }
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

    fn wrong(&mut self, stream: u64, wrong: QuicBreach) {
        match wrong {
            QuicBreach::Connection(code) => {
                streams::put_code(&mut self.out, PieceKind::Close, 0, Some(code));
                self.over = true;
            }
            QuicBreach::Stream(code) => {
                streams::put_code(&mut self.out, PieceKind::Reset, stream, Some(code));
                streams::put_code(&mut self.out, PieceKind::Stop, stream, Some(code));
                self.end(stream);
            }
        }
    }

    fn end(&mut self, stream: u64) {
        self.requests.remove(&stream);
        self.done.insert(stream);
    }

    fn piece(&mut self, head: Head, payload: &[u8], whole: bool) -> Checked {
        match head.kind {
            PieceKind::Data => {
                let ends = whole && head.last;
                match head.stream % 4 {
                    0 => self.request_bytes(head.stream, payload, ends),
                    2 => self.one_way_bytes(head.stream, payload, ends),
                    _ => Ok(()),
                }
            }
            PieceKind::Reset | PieceKind::Stop => {
                self.code.extend_from_slice(payload);
                if whole {
                    self.code.clear();
                    return self.given_up(head);
                }
                Ok(())
            }
            PieceKind::Close => {
                self.over = whole;
                Ok(())
            }
            // pieces of the driver itself, or without a connection
            _ => Ok(()),
        }
    }

    /// Handles RESET_STREAM and STOP_SENDING.
    fn given_up(&mut self, head: Head) -> Checked {
        let critical =
            |one: &OneWay| one.purpose.is_some_and(|known| known != OneWayPurpose::Unknown);
        let stream = head.stream;
        match (head.kind, stream % 4) {
            (_, 0) => {
                let open = self.requests.contains_key(&stream);
                self.lost += usize::from(open && self.has(Defect::KeepsCancelledStreams));
                self.end(stream);
            }
            (PieceKind::Stop, _) if stream == CONTROL_STREAM => {
                return Err(QuicBreach::Connection(CLOSED_CRITICAL_STREAM));
            }
            (PieceKind::Reset, 2) if self.one_way.get(&stream).is_some_and(critical) => {
                return Err(QuicBreach::Connection(CLOSED_CRITICAL_STREAM));
            }
            _ => {}
        }
        Ok(())
    }

    fn request_bytes(&mut self, id: u64, bytes: &[u8], ends: bool) -> Checked {
        if self.done.contains(&id) {
            return Ok(());
        }
        if !self.requests.contains_key(&id) && self.requests.len() + self.lost >= STREAMS_MAX {
            return Err(QuicBreach::Stream(REQUEST_REJECTED));
        }
        let mut open = self.requests.remove(&id).unwrap_or_default();
        open.frames.put(bytes);
        while let Some(met) = open.frames.next(FIELDS_BYTES as usize) {
            self.request_frame(&mut open, met)?;
        }
        for _ in 0..std::mem::take(&mut open.referred) {
            // Section Acknowledgement (RFC 9204 section 4.4.1)
            self.acknowledge(0b1000_0000, 7, id);
        }
        if ends {
            return self.serve(id, &open);
        }
        self.requests.insert(id, open);
        Ok(())
    }

    fn request_frame(&mut self, open: &mut OpenRequest, met: Met) -> Checked {
        match met {
            Met::Begins(DATA) if open.asked.is_none() || open.trailed => {
                self.dead |= open.asked.is_none() && self.has(Defect::DiesOfDataFirst);
                Err(QuicBreach::Connection(FRAME_UNEXPECTED))
            }
            Met::Begins(_) => Ok(()),
            Met::Content(count) => {
                open.got += count;
                Ok(())
            }
            Met::Whole(HEADERS, section) if !open.trailed => self.section(open, &section),
            Met::Whole(..) => Err(QuicBreach::Connection(FRAME_UNEXPECTED)),
            Met::TooLong => Err(QuicBreach::Connection(EXCESSIVE_LOAD)),
        }
    }

    fn section(&mut self, open: &mut OpenRequest, section: &[u8]) -> Checked {
        let failed = QuicBreach::Connection(DECOMPRESSION_FAILED);
        let fields = match self.table.section(section, FIELDS_BYTES) {
            Ok(TableSection::Fields(fields, refers)) => {
                open.referred += u32::from(refers.is_some());
                fields
            }
            Ok(TableSection::Waits(_)) if self.has(Defect::HangsOnInsertCount) => {
                self.hung += 1;
                open.stuck = true;
                return Ok(());
            }
            _ => return Err(failed),
        };
        if open.asked.is_some() {
            open.trailed = true;
            let pseudo = fields.iter().any(|(name, _)| name.starts_with(b":"));
            return if pseudo { Err(QuicBreach::Stream(MESSAGE_ERROR)) } else { Ok(()) };
        }
        let named =
            |(name, value): &Field| (name == b":authority" || name == b"host") && !value.is_empty();
        let asked = parse_request(&fields).filter(|_| fields.iter().any(named));
        // no tunnels: their requests have no :path (RFC 9114 section 4.4)
        let asked = asked.filter(|asked| asked.method != b"CONNECT");
        open.asked = Some(asked.ok_or(QuicBreach::Stream(MESSAGE_ERROR))?);
        Ok(())
    }

    /// Responds to a complete request.
    fn serve(&mut self, id: u64, open: &OpenRequest) -> Checked {
        if !open.frames.is_between() {
            return Err(QuicBreach::Connection(FRAME_ERROR));
        }
        if open.stuck {
            return Ok(());
        }
        let asked = open.asked.as_ref().ok_or(QuicBreach::Stream(REQUEST_INCOMPLETE))?;
        if asked.length.is_some_and(|length| length != open.got) {
            return Err(QuicBreach::Stream(MESSAGE_ERROR));
        }
        let found = asked.path == page::PATH.as_bytes() || asked.path == page::POST.as_bytes();
        let body = if found { page::PAGE.as_bytes() } else { b"" };
        let status: &[u8] = if found { b"200" } else { b"404" };
        let (mut section, refers) = self.own_table.refer(id, &self.defects);
        put_field(b":status", status, &mut section);
        put_field(b"content-length", body.len().to_string().as_bytes(), &mut section);
        section.extend(refers);
        let mut sent = frame(HEADERS, &section);
        if asked.method != b"HEAD" && !body.is_empty() {
            sent.extend(frame(DATA, body));
        }
        streams::put_data(&mut self.out, id, &sent, true);
        let renewed = self.own_table.renew(&self.defects);
        self.instruct(&renewed);
        self.end(id);
        Ok(())
    }

    fn one_way_bytes(&mut self, id: u64, bytes: &[u8], ends: bool) -> Checked {
        let mut one = self.one_way.remove(&id).unwrap_or_default();
        one.bytes.extend_from_slice(bytes);
        if one.purpose.is_none()
            && let Some((kind, length)) = varint::get(&one.bytes)
        {
            one.bytes.drain(..length);
            one.purpose = Some(self.purpose(kind)?);
        }
        match one.purpose {
            Some(OneWayPurpose::Control) => {
                one.frames.put(&std::mem::take(&mut one.bytes));
                while let Some(met) = one.frames.next(FIELDS_BYTES as usize) {
                    self.control_frame(met)?;
                }
            }
            Some(OneWayPurpose::Encoder) => self.encoder(&mut one.bytes)?,
            Some(OneWayPurpose::Decoder) => self.own_table.process(&mut one.bytes)?,
            Some(OneWayPurpose::Unknown) => one.bytes.clear(),
            None => {}
        }
        if ends && one.purpose.is_some_and(|purpose| purpose != OneWayPurpose::Unknown) {
            return Err(QuicBreach::Connection(CLOSED_CRITICAL_STREAM));
        }
        self.one_way.insert(id, one);
        Ok(())
    }

    /// Handles instructions for the table (RFC 9204 section 4.3).
    fn encoder(&mut self, bytes: &mut Vec<u8>) -> Checked {
        match self.table.instruct(&std::mem::take(bytes)) {
            Ok(0) => Ok(()),
            // Insert Count Increment (section 4.4.3)
            Ok(count) => {
                self.acknowledge(0, 6, count);
                Ok(())
            }
            Err(_) => rule(self.has(Defect::PassesOverInstructions), ENCODER_STREAM_ERROR),
        }
    }

    /// Sends instructions for our own table.
    fn instruct(&mut self, sent: &[u8]) {
        if !sent.is_empty() {
            let stream = self.encoder_stream.unwrap_or(self.next_stream);
            if self.encoder_stream.replace(stream).is_none() {
                self.next_stream += 4;
            }
            streams::put_data(&mut self.out, stream, sent, false);
        }
    }

    fn acknowledge(&mut self, first: u8, prefix: u32, number: u64) {
        let mut bytes = Vec::new();
        let stream = self.decoder_stream.unwrap_or(self.next_stream);
        if self.decoder_stream.replace(stream).is_none() {
            self.next_stream += 4;
            bytes.push(DECODER);
        }
        protocol::hpack::integer(first, prefix, number, &mut bytes);
        streams::put_data(&mut self.out, stream, &bytes, false);
    }

    /// Returns the purpose of a stream of this type; unique ones may not be repeated.
    fn purpose(&self, kind: u64) -> Result<OneWayPurpose, QuicBreach> {
        let purpose = match kind {
            0 => OneWayPurpose::Control,
            1 => return Err(QuicBreach::Connection(STREAM_CREATION_ERROR)),
            2 => OneWayPurpose::Encoder,
            3 => OneWayPurpose::Decoder,
            _ => return Ok(OneWayPurpose::Unknown),
        };
        match self.one_way.values().any(|one| one.purpose == Some(purpose)) {
            true => Err(QuicBreach::Connection(STREAM_CREATION_ERROR)),
            false => Ok(purpose),
        }
    }

    fn control_frame(&mut self, met: Met) -> Checked {
        let (kind, payload) = match met {
            Met::Begins(DATA) => return Err(QuicBreach::Connection(FRAME_UNEXPECTED)),
            Met::Begins(_) if !self.control.settled => {
                return Err(QuicBreach::Connection(MISSING_SETTINGS));
            }
            Met::Begins(_) | Met::Content(_) => return Ok(()),
            Met::Whole(kind, payload) => (kind, payload),
            Met::TooLong => return Err(QuicBreach::Connection(EXCESSIVE_LOAD)),
        };
        if std::mem::replace(&mut self.control.settled, true) == (kind == SETTINGS) {
            let code = if kind == SETTINGS { FRAME_UNEXPECTED } else { MISSING_SETTINGS };
            return Err(QuicBreach::Connection(code));
        }
        match kind {
            SETTINGS => {
                let (capacity, blocked) = settings(&payload)?;
                self.own_table.capacity = capacity;
                self.own_table.blocked = blocked;
                let begun = self.own_table.begin(&self.defects);
                self.instruct(&begun);
                Ok(())
            }
            GOAWAY => {
                let id = only(&payload)?;
                let before = self.control.goaway.replace(id);
                rule(before.is_none_or(|before| id <= before), ID_ERROR)
            }
            MAX_PUSH_ID => {
                let id = only(&payload)?;
                let before = self.control.pushes.replace(id);
                rule(before.is_none_or(|before| id >= before), ID_ERROR)
            }
            CANCEL_PUSH => {
                let id = only(&payload)?;
                rule(self.control.pushes.is_some_and(|most| id <= most), ID_ERROR)
            }
            _ => Err(QuicBreach::Connection(FRAME_UNEXPECTED)),
        }
    }
}

fn rule(kept: bool, code: u64) -> Checked {
    if kept { Ok(()) } else { Err(QuicBreach::Connection(code)) }
}

/// Returns the only number in a frame.
fn only(payload: &[u8]) -> Result<u64, QuicBreach> {
    let whole = varint::get(payload).filter(|(_, length)| *length == payload.len());
    whole.map(|(number, _)| number).ok_or(QuicBreach::Connection(FRAME_ERROR))
}

/// Returns the limits for our table: bytes, and blocked streams.
fn settings(payload: &[u8]) -> Result<(u64, u64), QuicBreach> {
    let mut rest = payload;
    let mut seen = BTreeMap::new();
    while !rest.is_empty() {
        let broken = || QuicBreach::Connection(FRAME_ERROR);
        let (setting, length) = varint::get(rest).ok_or_else(broken)?;
        let (value, used) = varint::get(&rest[length..]).ok_or_else(broken)?;
        rest = &rest[length + used..];
        let new = seen.insert(setting, value).is_none();
        rule(!HTTP2_SETTINGS.contains(&setting) && new, SETTINGS_ERROR)?;
    }
    let of = |setting| seen.get(&setting).copied().unwrap_or(0);
    Ok((of(TABLE_CAPACITY), of(BLOCKED_STREAMS)))
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::put(&mut out, kind);
    varint::put(&mut out, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

/// Appends a literal with a literal name (section 4.5.6).
fn put_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    protocol::hpack::integer(0b0010_0000, 3, name.len() as u64, out);
    out.extend_from_slice(name);
    protocol::hpack::integer(0, 7, value.len() as u64, out);
    out.extend_from_slice(value);
}
