//! Parses frames as they arrive, invalid ones too as far as possible.

mod streams;
mod table;

use super::block::{self, response};
use super::windows::SendWindows;
use super::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_HEAD, GOAWAY, HEADERS, KINDS, OCTETS,
    PADDED, PING, PRIORITIZED, RST_STREAM, SETTINGS, WINDOW_UPDATE, write,
};
use crate::http3::{OVER_QUIC, TablePermit, code_name, datagrams, packets};
use crate::replies::{HEAD_MAX, RESPONSES_MAX, Response, keep_interim};
use protocol::hpack::Decoder;
use sample::http2_code_name;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Maximum number of frames kept per connection, including the first `DATA_KEPT` of DATA.
pub const FRAMES_MAX: usize = 4_096;
/// Maximum number of DATA frames kept, without their content.
const DATA_KEPT: usize = 8;
/// Maximum number of payload bytes kept per frame.
const PAYLOAD_KEPT: usize = 64;
/// Maximum size of the trailers kept per response.
const TRAILERS_MAX: usize = 16 << 10;
/// Maximum size of acknowledgments kept for a peer that does not read them; any more are omitted.
pub(crate) const OWED_MAX: usize = 1 << 20;
/// SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 section 6.5.2).
const INITIAL_WINDOW_SIZE: u16 = 4;
/// Maximum frame size that we allow: the minimum (RFC 9113 section 4.2).
const FRAME_MAX: u32 = 16_384;
/// Table size that our SETTINGS permit by default (RFC 9113 section 6.5.2).
const TABLE: usize = 4_096;

const SETTING_NAMES: [(&str, u16); 6] = [
    ("HEADER_TABLE_SIZE", 1),
    ("MAX_CONCURRENT_STREAMS", 3),
    ("INITIAL_WINDOW_SIZE", 4),
    ("MAX_FRAME_SIZE", 5),
    ("MAX_HEADER_LIST_SIZE", 6),
    ("ENABLE_CONNECT_PROTOCOL", 8),
];

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSeen {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    /// Size of the payload, and its first bytes.
    pub length: u32,
    pub payload: Vec<u8>,
}

impl FrameSeen {
    /// Returns the error code of RST_STREAM or GOAWAY.
    pub fn code(&self) -> Option<u32> {
        let at = match self.kind {
            RST_STREAM => 0,
            GOAWAY => 4,
            _ => return None,
        };
        let bytes = self.payload.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Returns whether it acknowledges the final PING of a conversation.
    pub fn is_pong(&self) -> bool {
        self.kind == PING && self.flags & ACK != 0 && self.payload == OCTETS
    }

    /// Returns whether it represents an HTTP/3 or QUIC event in the form of an HTTP/2 frame.
    pub fn is_over_quic(&self) -> bool {
        self.stream & OVER_QUIC != 0
    }

    fn quic_name(&self) -> &'static str {
        match (self.kind, self.flags) {
            (RST_STREAM, streams::STOPPED) => "STOP_SENDING",
            (RST_STREAM, _) => "RESET_STREAM",
            _ => "CONNECTION_CLOSE",
        }
    }

    /// Returns the value of a setting (RFC 9113 section 6.5.1), the last one of several; `None` if
    /// it is absent.
    pub fn setting(&self, number: u16) -> Option<u32> {
        setting(&self.payload, number)
    }

    /// Returns the number of a setting with this name: RFC 9113 section 6.5.2, RFC 8441 section 3.
    pub fn setting_named(name: &str) -> Option<u16> {
        SETTING_NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }

    /// Returns whether it is the server's own SETTINGS.
    pub fn is_settings(&self) -> bool {
        self.kind == SETTINGS && self.flags & ACK == 0
    }
}

impl std::fmt::Display for FrameSeen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FrameSeen { kind, flags, stream, length, .. } = self;
        match (*kind, self.code()) {
            (datagrams::CAME, _) if self.is_over_quic() => f.write_str(&datagrams::describe(self)),
            (packets::FRAME, _) if self.is_over_quic() => f.write_str(packets::describe(*flags)),
            (RST_STREAM | GOAWAY, Some(code)) if self.is_over_quic() => {
                write!(f, "{} {}", self.quic_name(), code_name(code))
            }
            (RST_STREAM, Some(code)) => write!(f, "RST_STREAM {}", http2_code_name(code)),
            (GOAWAY, Some(code)) => write!(f, "GOAWAY {}", http2_code_name(code)),
            _ => match KINDS.iter().find(|(_, number)| number == kind) {
                Some((name, _)) => write!(f, "{name} {flags} {stream} {length}"),
                None => write!(f, "type {kind} {flags} {stream} {length}"),
            },
        }
    }
}

/// Incomplete header block: its stream, whether the stream ends with it, and its bytes so far.
#[derive(Clone, Debug)]
struct HeaderBlock {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
}

/// Destination of parsed data.
pub(crate) struct Got<'r> {
    pub(crate) interim: &'r mut Vec<u16>,
    pub(crate) answers: &'r mut Vec<Response>,
}

/// The parser of one connection.
#[derive(Clone, Debug)]
pub struct FrameReader {
    /// In the order of arrival, at most [`FRAMES_MAX`].
    pub frames: Vec<FrameSeen>,
    decoder: Decoder,
    block: Option<HeaderBlock>,
    /// Digests of streams with an incomplete response.
    digests: BTreeMap<u32, Sha256>,
    /// Acknowledgments that a well-behaved client must send.
    owed: Vec<u8>,
    settings_seen: bool,
    /// Windows for the content that we send.
    windows: SendWindows,
    /// The server accepts no further streams.
    goodbye: bool,
    resets: usize,
    pongs: usize,
    data_kept: usize,
    /// Parsers for pieces of streams.
    streams: Option<Box<streams::StreamsRead>>,
}

impl Default for FrameReader {
    fn default() -> FrameReader {
        FrameReader {
            frames: Vec::new(),
            decoder: Decoder::new(TABLE, HEAD_MAX),
            block: None,
            digests: BTreeMap::new(),
            owed: Vec::new(),
            settings_seen: false,
            windows: SendWindows::default(),
            goodbye: false,
            resets: 0,
            pongs: 0,
            data_kept: 0,
            streams: None,
        }
    }
}

impl FrameReader {
    /// Returns a parser of HTTP/3; the response on the follow-up stream is kept as that of
    /// [`FOLLOW_UP`](super::FOLLOW_UP). `permit`: limits of the server's QPACK table.
    pub fn http3(follow_up: Option<u64>, permit: TablePermit) -> FrameReader {
        let read = streams::StreamsRead::new(follow_up, permit);
        FrameReader { streams: Some(Box::new(read)), ..FrameReader::default() }
    }

    /// Returns whether the reader parses pieces of HTTP/3 streams.
    pub fn is_http3(&self) -> bool {
        self.streams.is_some() || self.frames.iter().any(FrameSeen::is_over_quic)
    }

    /// Returns earlier results, as recorded.
    pub fn kept(frames: Vec<FrameSeen>) -> FrameReader {
        let mut reader = FrameReader::default();
        frames.into_iter().for_each(|frame| reader.note(frame));
        reader
    }

    /// Returns whether the server's SETTINGS were received.
    pub fn has_settings(&self) -> bool {
        self.settings_seen
    }

    /// Returns whether GOAWAY was received.
    pub fn has_goaway(&self) -> bool {
        self.goodbye
    }

    /// Returns the code of the last GOAWAY, if any.
    pub fn goaway_code(&self) -> Option<u32> {
        self.frames.iter().rev().find(|frame| frame.kind == GOAWAY)?.code()
    }

    /// Returns whether the final PING of a conversation was acknowledged.
    pub fn pong(&self) -> bool {
        self.pongs > 0
    }

    /// Returns the number of reset streams.
    pub fn resets(&self) -> usize {
        self.resets
    }

    /// Returns the windows for the content that we send.
    pub(crate) fn windows(&mut self) -> &mut SendWindows {
        &mut self.windows
    }

    /// Returns the content of a stream in received bytes, up to the last complete frame. `raw` are
    /// the first bytes of a connection.
    pub fn content_of(stream: u32, raw: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        let mut rest = raw;
        while let Some(head) = rest.get(..FRAME_HEAD) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let own = u32::from_be_bytes([head[5] & 127, head[6], head[7], head[8]]) == stream;
            let Some(payload) = rest.get(FRAME_HEAD..FRAME_HEAD + length) else { break };
            if head[3] == DATA && own {
                content.extend_from_slice(unpadded(head[4], payload, 0).unwrap_or_default());
            }
            rest = &rest[FRAME_HEAD + length..];
        }
        content
    }

    /// Returns whether this stream was reset.
    pub fn is_reset(&self, stream: u32) -> bool {
        let of = |frame: &FrameSeen| frame.stream & !OVER_QUIC == stream;
        self.frames.iter().any(|frame| frame.kind == RST_STREAM && of(frame))
    }

    /// Takes the replies that a well-behaved client must send.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.owed)
    }

    /// Takes complete frames from the front of the buffer.
    ///
    /// # Errors
    /// Fails if nothing that follows can be parsed, with the reason.
    pub(crate) fn take(&mut self, buffer: &mut Vec<u8>, got: &mut Got<'_>) -> Result<(), String> {
        if let Some(mut read) = self.streams.take() {
            let result = self.take_pieces(&mut read, buffer, got);
            self.streams = Some(read);
            return result;
        }
        let mut at = 0;
        let result = loop {
            match self.next(&buffer[at..], got) {
                Ok(0) => break Ok(()),
                Ok(count) => at += count,
                Err(why) => break Err(why),
            }
        };
        buffer.drain(..at);
        result
    }

    /// Parses one frame; returns 0 if it is incomplete.
    fn next(&mut self, bytes: &[u8], got: &mut Got<'_>) -> Result<usize, String> {
        let Some(head) = bytes.get(..FRAME_HEAD) else { return Ok(0) };
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        if !self.settings_seen && head.starts_with(b"HTTP/") {
            return Err("it is HTTP/1.x".to_owned());
        }
        let first = (kind == SETTINGS && flags & ACK == 0) || kind == GOAWAY;
        if !self.settings_seen && !self.goodbye && !first {
            return Err("it does not begin with SETTINGS".to_owned());
        }
        if length > FRAME_MAX {
            return Err(format!("a frame of {length} bytes, more than we allow"));
        }
        let whole = FRAME_HEAD + length as usize;
        let Some(payload) = bytes.get(FRAME_HEAD..whole) else { return Ok(0) };
        let most = if kind == DATA { 0 } else { PAYLOAD_KEPT };
        if kind != DATA || self.data_kept < DATA_KEPT {
            self.data_kept += usize::from(kind == DATA);
            let payload = payload[..payload.len().min(most)].to_vec();
            self.note(FrameSeen { kind, flags, stream, length, payload });
        }
        self.understand((kind, flags, stream), payload, got)?;
        Ok(whole)
    }

    fn understand(
        &mut self,
        (kind, flags, stream): (u8, u8, u32),
        payload: &[u8],
        got: &mut Got<'_>,
    ) -> Result<(), String> {
        match kind {
            DATA => self.data(flags, stream, unpadded(flags, payload, 0)?, got),
            HEADERS => {
                let ends = flags & END_STREAM != 0;
                let skipped = if flags & PRIORITIZED == 0 { 0 } else { 5 };
                let bytes = unpadded(flags, payload, skipped)?.to_vec();
                self.block = Some(HeaderBlock { stream, ends, bytes });
                self.end_block(flags, got)?;
            }
            CONTINUATION => {
                let open = self.block.as_mut().filter(|block| block.stream == stream);
                let block = open.ok_or("a CONTINUATION without a header block")?;
                if block.bytes.len() + payload.len() > HEAD_MAX {
                    return Err("an unterminated header block".to_owned());
                }
                block.bytes.extend_from_slice(payload);
                self.end_block(flags, got)?;
            }
            SETTINGS if flags & ACK == 0 => {
                if let Some(size) = setting(payload, INITIAL_WINDOW_SIZE) {
                    self.windows.set_initial(size);
                }
                self.queue_reply(&write::settings_ack());
            }
            WINDOW_UPDATE => {
                if let Some(more) = payload.first_chunk() {
                    self.windows.open(stream, u32::from_be_bytes(*more) & 0x7fff_ffff);
                }
            }
            PING if flags & ACK == 0 => self.queue_reply(&write::frame(PING, ACK, 0, payload)),
            _ => {}
        }
        Ok(())
    }

    fn queue_reply(&mut self, acknowledgement: &[u8]) {
        if self.owed.len() + acknowledgement.len() <= OWED_MAX {
            self.owed.extend_from_slice(acknowledgement);
        }
    }

    fn note(&mut self, frame: FrameSeen) {
        self.settings_seen |= frame.is_settings();
        self.goodbye |= frame.kind == GOAWAY;
        self.resets += usize::from(frame.kind == RST_STREAM);
        self.pongs += usize::from(frame.is_pong());
        if self.frames.len() < FRAMES_MAX {
            self.frames.push(frame);
        }
    }

    fn end_block(&mut self, flags: u8, got: &mut Got<'_>) -> Result<(), String> {
        if flags & END_HEADERS == 0 {
            return Ok(());
        }
        let Some(HeaderBlock { stream, ends, bytes }) = self.block.take() else { return Ok(()) };
        let fields = self.decoder.decode(&bytes);
        let fields = fields.map_err(|why| format!("an undecodable header block: {why}"))?;
        let begun = got.answers.iter().any(|answer| answer.stream == stream);
        if !begun {
            let answer = response(stream, "2", &fields).ok_or("a response without a status")?;
            if (100..200).contains(&answer.status) {
                keep_interim(got.interim, answer.status);
                return Ok(());
            }
            if got.answers.len() < RESPONSES_MAX {
                got.answers.push(answer);
                self.digests.insert(stream, Sha256::new());
            }
        } else if let Some(answer) = got.answers.iter_mut().find(|one| one.stream == stream)
            && !answer.complete
        {
            answer.trailers = block::lines(&fields);
            answer.trailers.truncate(TRAILERS_MAX);
        }
        if ends {
            self.complete(stream, got);
        }
        Ok(())
    }

    fn data(&mut self, flags: u8, stream: u32, content: &[u8], got: &mut Got<'_>) {
        let open = got.answers.iter_mut().rev().find(|answer| answer.stream == stream);
        if let (Some(answer), Some(digest)) = (open, self.digests.get_mut(&stream)) {
            answer.body_len += content.len() as u64;
            digest.update(content);
        }
        if flags & END_STREAM != 0 {
            self.complete(stream, got);
        }
    }

    fn complete(&mut self, stream: u32, got: &mut Got<'_>) {
        let open = got.answers.iter_mut().rev().find(|answer| answer.stream == stream);
        if let (Some(answer), Some(digest)) = (open, self.digests.remove(&stream)) {
            answer.complete = true;
            answer.persistent = !self.goodbye;
            answer.digest = digest.finalize().into();
        }
    }
}

/// Returns the value of a setting in the payload of SETTINGS, the last one of several.
fn setting(payload: &[u8], number: u16) -> Option<u32> {
    let value = |six: &[u8]| {
        let (name, value) = six.split_first_chunk::<2>()?;
        (u16::from_be_bytes(*name) == number).then_some(u32::from_be_bytes(value.try_into().ok()?))
    };
    payload.chunks_exact(6).filter_map(value).next_back()
}

/// Returns a payload without its padding, and without the given number of leading bytes.
fn unpadded(flags: u8, payload: &[u8], skipped: usize) -> Result<&[u8], String> {
    let (padding, rest) = match (flags & PADDED, payload.split_first()) {
        (0, _) => (0, payload),
        (_, Some((length, rest))) => (usize::from(*length), rest),
        (_, None) => return Err("a padded frame without its padding length".to_owned()),
    };
    let end = rest.len().checked_sub(padding).ok_or("a frame with more padding than payload")?;
    rest.get(skipped.min(end)..end).ok_or_else(|| "a frame that is too short".to_owned())
}

#[cfg(test)]
mod tests;
