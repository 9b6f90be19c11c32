//! Parses HTTP/3: pieces of streams as the QUIC driver delivers them, and the frames on each.
//! Results have the form of HTTP/2 frames: a reset stream is RST_STREAM, a close with a code is
//! GOAWAY, and bit 31 of the stream marks HTTP/3.

use super::super::{DATA, FOLLOW_UP, GOAWAY, HEADERS, RST_STREAM, SETTINGS};
use super::table::{SectionRead, ServerTable};
use super::{DATA_KEPT, FrameReader, FrameSeen, Got, PAYLOAD_KEPT, block};
use crate::http3::{
    self, DECODER_STREAM, OF_QUIC, OVER_QUIC, TablePermit, datagrams, packets, write,
};
use crate::replies::{HEAD_MAX, RESPONSES_MAX, keep_interim};
use ::protocol::http3::varint;
use conduit::streams::{self, Cutter, Head, PieceKind, REMEMBERED, SETTINGS_REDUCED, TRANSPORT};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Flag of a kept RST_STREAM that was STOP_SENDING.
pub(super) const STOPPED: u8 = 1;
/// Kept HTTP/3 GOAWAY, which has no code and is not an error: the first of our markers; the last is
/// [`packets::FRAME`].
const GOAWAY_KEPT: u8 = 0x70;
/// Maximum number of parsed streams; more are ignored.
const STREAMS_MAX: usize = 20_000;

/// Parser state of the streams of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamsRead {
    cutter: Cutter,
    code: Vec<u8>,
    /// The stream of the follow-up request.
    follow_up: Option<u64>,
    /// Incomplete datagram.
    datagram: Vec<u8>,
    streams: BTreeMap<u64, StreamRead>,
    table: ServerTable,
    /// SETTINGS of the server, and those remembered for accepted early data.
    settings: Option<Vec<(u64, u64)>>,
    remembered: Option<Vec<(u64, u64)>>,
}

/// Data of a stream that is not parsed yet.
#[derive(Clone, Debug, Default)]
struct StreamRead {
    buffer: Vec<u8>,
    /// Remaining bytes of a DATA frame.
    content: u64,
    /// Type of a unidirectional stream, once received.
    kind: Option<u64>,
    /// True if the next section is blocked on table entries.
    waits: bool,
    /// True if no more data will arrive.
    ends: bool,
}

/// Returns the number under which a stream is kept: the follow-up stream has that of HTTP/2.
fn kept(stream: u64, follow_up: Option<u64>) -> u32 {
    if follow_up == Some(stream) {
        return FOLLOW_UP;
    }
    u32::try_from(stream).unwrap_or(u32::MAX) & !OVER_QUIC
}

/// Returns the type under which a frame is kept. A frame without a meaning here must not be
/// mistaken for another: CANCEL_PUSH has the number of RST_STREAM, and a frame of unknown type,
/// which must be ignored (RFC 9114 section 9), may have that of one of our markers.
fn kept_kind(kind: u64) -> u8 {
    match (kind, u8::try_from(kind)) {
        (http3::HEADERS, _) => HEADERS,
        (http3::SETTINGS, _) => SETTINGS,
        (http3::GOAWAY, _) => GOAWAY_KEPT,
        (_, Ok(RST_STREAM | GOAWAY_KEPT..=packets::FRAME) | Err(_)) => u8::MAX,
        (_, Ok(other)) => other,
    }
}

/// Returns a code reduced to the 32 stored bits.
fn kept_code(code: u64) -> u32 {
    let low = u32::try_from(code & !TRANSPORT).unwrap_or(u32::MAX) & !OF_QUIC;
    if code & TRANSPORT != 0 { low | OF_QUIC } else { low }
}

/// Returns the settings if these bytes are a SETTINGS frame.
fn settings_in(frame: &[u8]) -> Option<Vec<(u64, u64)>> {
    let (kind, first) = varint::get(frame)?;
    let (length, second) = varint::get(&frame[first..])?;
    let payload = frame.get(first + second..)?.get(..usize::try_from(length).ok()?)?;
    (kind == http3::SETTINGS).then(|| http3::settings(payload))
}

/// Returns the settings at the start of a control stream, after its type.
fn remembered(control: &[u8]) -> Option<Vec<(u64, u64)>> {
    let (_, length) = varint::get(control)?;
    settings_in(&control[length..])
}

impl StreamsRead {
    pub(super) fn new(follow_up: Option<u64>, permit: TablePermit) -> StreamsRead {
        let table = ServerTable::new(permit);
        StreamsRead { follow_up, table, ..StreamsRead::default() }
    }
}

impl FrameReader {
    /// Takes pieces from the front of the buffer.
    ///
    /// # Errors
    /// Fails if nothing that follows can be parsed, with the reason.
    pub(super) fn take_pieces(
        &mut self,
        read: &mut StreamsRead,
        buffer: &mut Vec<u8>,
        got: &mut Got<'_>,
    ) -> Result<(), String> {
        let input = std::mem::take(buffer);
        let mut at = 0;
        while at < input.len() {
            at += read.cutter.open(&input[at..]).map_err(|_| "the stream could not be parsed")?;
            let Some(head) = read.cutter.current() else { break };
            let payload = read.cutter.payload(&input[at..]);
            at += payload.len();
            if matches!(head.kind, PieceKind::Datagram | PieceKind::Sent | PieceKind::Frame) {
                read.datagram.extend_from_slice(payload);
                if read.cutter.pass(payload.len()) {
                    let datagram = std::mem::take(&mut read.datagram);
                    match head.kind {
                        PieceKind::Frame if head.stream == REMEMBERED => {
                            read.remembered = remembered(&datagram);
                            self.compare_settings(read);
                        }
                        PieceKind::Frame => self.take_quic_frame(head.stream, &datagram),
                        _ => self.take_datagram(head, &datagram),
                    }
                }
            } else if head.kind == PieceKind::Data {
                let whole = read.cutter.pass(payload.len());
                self.take_bytes(read, head, payload, whole && head.last, got)?;
            } else {
                read.code.extend_from_slice(payload);
                if read.cutter.pass(payload.len()) {
                    let code = streams::code(&std::mem::take(&mut read.code)).unwrap_or(0);
                    self.take_signal(head, code, read.follow_up);
                }
            }
        }
        Ok(())
    }

    fn take_datagram(&mut self, head: Head, datagram: &[u8]) {
        let (kind, length) = match head.kind {
            PieceKind::Sent => (datagrams::SENT, u32::try_from(head.stream).unwrap_or(u32::MAX)),
            _ => (datagrams::CAME, datagram.len() as u32),
        };
        let flags = datagrams::kind_of(datagram);
        let payload = datagram[..datagram.len().min(PAYLOAD_KEPT)].to_vec();
        self.note(FrameSeen { kind, flags, stream: OVER_QUIC, length, payload });
    }

    fn take_quic_frame(&mut self, kind: u64, content: &[u8]) {
        let Some(flags) = packets::row(kind) else { return };
        let (length, payload) =
            (content.len() as u32, content[..content.len().min(PAYLOAD_KEPT)].to_vec());
        self.note(FrameSeen { kind: packets::FRAME, flags, stream: OVER_QUIC, length, payload });
    }

    fn take_signal(&mut self, head: Head, code: u64, follow_up: Option<u64>) {
        let (kind, flags, stream) = match head.kind {
            PieceKind::Reset => (RST_STREAM, 0, kept(head.stream, follow_up)),
            PieceKind::Stop => (RST_STREAM, STOPPED, kept(head.stream, follow_up)),
            PieceKind::Close => (GOAWAY, 0, 0),
            PieceKind::Data
            | PieceKind::Opened
            | PieceKind::Went
            | PieceKind::Allowed
            | PieceKind::Datagram
            | PieceKind::Initial
            | PieceKind::Sent
            | PieceKind::Packet
            | PieceKind::Limit
            | PieceKind::Port
            | PieceKind::Shake
            | PieceKind::Hello
            | PieceKind::Action
            | PieceKind::Frame => return,
        };
        let code = kept_code(code).to_be_bytes();
        let payload = if kind == GOAWAY { [&[0; 4], &code[..]].concat() } else { code.to_vec() };
        let length = payload.len() as u32;
        self.note(FrameSeen { kind, flags, stream: stream | OVER_QUIC, length, payload });
    }

    fn take_bytes(
        &mut self,
        read: &mut StreamsRead,
        head: Head,
        bytes: &[u8],
        ends: bool,
        got: &mut Got<'_>,
    ) -> Result<(), String> {
        if read.streams.len() >= STREAMS_MAX && !read.streams.contains_key(&head.stream) {
            return Ok(());
        }
        let mut stream = read.streams.remove(&head.stream).unwrap_or_default();
        stream.buffer.extend_from_slice(bytes);
        stream.ends |= ends;
        // unidirectional streams are the server's: only the control stream has frames
        if head.stream & 2 != 0 && stream.kind.is_none() {
            let Some((kind, length)) = varint::get(&stream.buffer) else {
                read.streams.insert(head.stream, stream);
                return Ok(());
            };
            stream.kind = Some(kind);
            stream.buffer.drain(..length);
        }
        // no entries arrive, but data continues
        let too_long = stream.waits && stream.buffer.len() > HEAD_MAX;
        let result = match stream.kind {
            _ if too_long => {
                stream = StreamRead::default();
                Err(format!(
                    "stream {} is blocked on table entries, and more data follows than we buffer",
                    head.stream
                ))
            }
            Some(http3::ENCODER) if head.stream & 2 != 0 => {
                read.table.instruct(&std::mem::take(&mut stream.buffer));
                self.parse_blocked_sections(read, got)
            }
            Some(kind) if head.stream & 2 != 0 && kind != http3::CONTROL => {
                stream.buffer.clear();
                Ok(())
            }
            _ => self.read_frames(read, head.stream, &mut stream, got),
        };
        read.streams.insert(head.stream, stream);
        self.settle_table(read);
        result
    }

    /// Parses the available frames of a stream.
    fn read_frames(
        &mut self,
        read: &mut StreamsRead,
        id: u64,
        stream: &mut StreamRead,
        got: &mut Got<'_>,
    ) -> Result<(), String> {
        let is_request = id & 2 == 0;
        let number = kept(id, read.follow_up);
        while let Some(used) = self.next_on((id, number), stream, &mut read.table, got)? {
            if !is_request && read.settings.is_none() {
                read.settings = settings_in(&stream.buffer[..used]);
                self.compare_settings(read);
            }
            stream.buffer.drain(..used);
        }
        if stream.ends && !stream.waits && is_request {
            self.complete(number, got);
        }
        Ok(())
    }

    /// Records the comparison once both are known. Remembered values must not be reduced after
    /// early data was accepted (RFC 9114 section 7.2.4.2).
    fn compare_settings(&mut self, read: &mut StreamsRead) {
        let (Some(before), Some(now)) = (&read.remembered, &read.settings) else { return };
        self.take_quic_frame(REMEMBERED, &[]);
        if http3::are_reduced(before, now) {
            self.take_quic_frame(SETTINGS_REDUCED, &[]);
        }
    }

    /// Parses blocked sections, and the data after them.
    fn parse_blocked_sections(
        &mut self,
        read: &mut StreamsRead,
        got: &mut Got<'_>,
    ) -> Result<(), String> {
        let waiting: Vec<u64> =
            read.streams.iter().filter(|(_, one)| one.waits).map(|(id, _)| *id).collect();
        for id in waiting {
            let Some(mut stream) = read.streams.remove(&id) else { continue };
            stream.waits = false;
            let result = self.read_frames(read, id, &mut stream, got);
            read.streams.insert(id, stream);
            result?;
        }
        Ok(())
    }

    /// Records violations of the server's table, and queues our instructions for it.
    fn settle_table(&mut self, read: &mut StreamsRead) {
        for what in read.table.new_faults() {
            self.take_quic_frame(what, &[]);
        }
        let owed = read.table.take_replies();
        if !owed.is_empty() {
            self.queue_reply(&write::stream_bytes(DECODER_STREAM, &owed, false));
        }
    }

    /// Parses one frame, or the available part of a DATA frame; `None` if nothing is complete.
    fn next_on(
        &mut self,
        (id, number): (u64, u32),
        stream: &mut StreamRead,
        table: &mut ServerTable,
        got: &mut Got<'_>,
    ) -> Result<Option<usize>, String> {
        let is_request = id & 2 == 0;
        if stream.waits {
            return Ok(None);
        }
        if stream.content > 0 {
            let count =
                stream.buffer.len().min(usize::try_from(stream.content).unwrap_or(usize::MAX));
            stream.content -= count as u64;
            self.content(number, &stream.buffer[..count], got);
            return Ok((count > 0).then_some(count));
        }
        let Some((kind, first)) = varint::get(&stream.buffer) else { return Ok(None) };
        let Some((length, second)) = varint::get(&stream.buffer[first..]) else { return Ok(None) };
        let head = first + second;
        if kind == http3::DATA && is_request {
            stream.content = length;
            if self.data_kept < DATA_KEPT {
                self.data_kept += 1;
                self.note_frame(DATA, number, length, &[]);
            }
            return Ok(Some(head));
        }
        if length > HEAD_MAX as u64 {
            return Err(format!("a frame of {length} bytes, more than we read"));
        }
        let Some(payload) = stream.buffer.get(head..head + length as usize) else {
            return Ok(None);
        };
        let section = match kind == http3::HEADERS && is_request {
            true => Some(table.section(id, payload)),
            false => None,
        };
        if matches!(section, Some(SectionRead::Waits)) {
            stream.waits = true;
            return Ok(None);
        }
        if kind == http3::SETTINGS && is_request {
            return Err(
                "SETTINGS on a request stream, H3_FRAME_UNEXPECTED (RFC 9114 section 7.2.4)"
                    .to_owned(),
            );
        }
        let seen = &payload[..payload.len().min(PAYLOAD_KEPT)];
        self.note_frame(kept_kind(kind), number, length, seen);
        match section {
            Some(SectionRead::Fields(fields)) => self.fields(number, &fields, got)?,
            Some(SectionRead::Unreadable(why)) => return Err(why.to_owned()),
            Some(SectionRead::Waits) | None => {}
        }
        self.goodbye |= kind == http3::GOAWAY && !is_request;
        Ok(Some(head + length as usize))
    }

    fn note_frame(&mut self, kind: u8, stream: u32, length: u64, payload: &[u8]) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let stream = stream | OVER_QUIC;
        let payload = payload.to_vec();
        self.note(FrameSeen { kind, flags: 0, stream, length, payload });
    }

    fn fields(
        &mut self,
        stream: u32,
        fields: &[(Vec<u8>, Vec<u8>)],
        got: &mut Got<'_>,
    ) -> Result<(), String> {
        if got.answers.iter().any(|answer| answer.stream == stream) {
            return Ok(());
        }
        let answer = block::response(stream, "3", fields).ok_or("a response without a status")?;
        if (100..200).contains(&answer.status) {
            keep_interim(got.interim, answer.status);
        } else if got.answers.len() < RESPONSES_MAX {
            got.answers.push(answer);
            self.digests.insert(stream, Sha256::new());
        }
        Ok(())
    }

    fn content(&mut self, stream: u32, bytes: &[u8], got: &mut Got<'_>) {
        let open = got.answers.iter_mut().rev().find(|answer| answer.stream == stream);
        if let (Some(answer), Some(digest)) = (open, self.digests.get_mut(&stream)) {
            answer.body_len += bytes.len() as u64;
            digest.update(bytes);
        }
    }
}
