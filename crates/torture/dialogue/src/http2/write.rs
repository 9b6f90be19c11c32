//! Encoding of frames.

use super::{
    ACK, DATA, END_HEADERS, END_STREAM, FRAME_HEAD, HEADERS, OCTETS, PING, PREFACE, SETTINGS,
    WINDOW_UPDATE,
};

/// Maximum size of our DATA frames: every server accepts it (RFC 9113 section 4.2).
const FRAME_MAX: usize = 16_384;
/// Initial window of each stream, large enough for complete responses.
pub const STREAM_WINDOW: u32 = 1 << 30;
/// Additional window of the connection beyond the first 65,535 bytes.
const CONNECTION_WINDOW: u32 = (1 << 30) - 1;
const ENABLE_PUSH: u16 = 2;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// Returns a frame header with this declared length, true or not (RFC 9113 section 4.1). A length
/// above 24 bits is truncated; the reserved bit of `stream` is sent as is.
pub fn head(length: u32, kind: u8, flags: u8, stream: u32) -> [u8; FRAME_HEAD] {
    let [_, high, middle, low] = length.to_be_bytes();
    let [a, b, c, d] = stream.to_be_bytes();
    [high, middle, low, kind, flags, a, b, c, d]
}

/// Returns a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = head(payload.len() as u32, kind, flags, stream).to_vec();
    out.extend_from_slice(payload);
    out
}

/// Returns the start of a well-behaved client: the preface, SETTINGS, and a window for the whole
/// connection.
pub fn opening() -> Vec<u8> {
    let mut settings = setting(ENABLE_PUSH, 0);
    settings.extend(setting(INITIAL_WINDOW_SIZE, STREAM_WINDOW));
    let mut out = PREFACE.to_vec();
    out.extend(frame(SETTINGS, 0, 0, &settings));
    out.extend(frame(WINDOW_UPDATE, 0, 0, &CONNECTION_WINDOW.to_be_bytes()));
    out
}

/// Returns SETTINGS that change the windows of all streams to this size (RFC 9113 section 6.9.2).
pub fn stream_window(size: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, size))
}

/// Returns one setting of a SETTINGS frame (RFC 9113 section 6.5.1).
pub fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// Appends a field as a literal without indexing.
pub fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    protocol::hpack::literal(name, value, out);
}

/// Appends a field as a literal with indexing.
pub fn kept_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    protocol::hpack::kept(name, value, out);
}

/// Returns the acknowledgment of the server's SETTINGS.
pub fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// Returns the final PING of a conversation.
pub fn ping() -> Vec<u8> {
    frame(PING, 0, 0, &OCTETS)
}

/// Returns a request without a body, complete in one frame.
pub fn request(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, block)
}

/// Returns the content of a request in DATA frames, the last of which ends the stream.
pub fn content(stream: u32, content: &[u8]) -> Vec<u8> {
    let mut pieces: Vec<&[u8]> = content.chunks(FRAME_MAX).collect();
    let last = pieces.pop().unwrap_or_default();
    let mut out: Vec<u8> =
        pieces.into_iter().flat_map(|piece| frame(DATA, 0, stream, piece)).collect();
    out.extend(frame(DATA, END_STREAM, stream, last));
    out
}

/// Returns content in DATA frames that leave the stream open.
pub fn data(stream: u32, content: &[u8]) -> Vec<u8> {
    content.chunks(FRAME_MAX).flat_map(|piece| frame(DATA, 0, stream, piece)).collect()
}

/// Returns the frames of a request for another stream.
pub fn on_stream(request: &[u8], stream: u32) -> Vec<u8> {
    let mut out = request.to_vec();
    let mut at = 0;
    while let Some(head) = out.get_mut(at..at + FRAME_HEAD) {
        head[5..].copy_from_slice(&stream.to_be_bytes());
        at += FRAME_HEAD + u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    }
    out
}

/// Returns the payload of the first frame.
pub fn first_payload(frames: &[u8]) -> &[u8] {
    let Some(head) = frames.get(..FRAME_HEAD) else { return &[] };
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    frames.get(FRAME_HEAD..FRAME_HEAD + length).unwrap_or_default()
}

/// Target of a request.
#[derive(Clone, Copy, Debug)]
pub struct PseudoFields<'a> {
    pub method: &'a str,
    pub scheme: &'a str,
    pub authority: &'a str,
    pub path: &'a str,
}

/// Calls `each` for the fields of a request: the pseudo-header fields, then `fields`, which are
/// HTTP/1.1 lines, without those forbidden in HTTP/2 and HTTP/3 (RFC 9113 section 8.2.2, RFC 9114
/// section 4.2).
pub(crate) fn each_field(
    asked: PseudoFields<'_>,
    fields: &str,
    mut each: impl FnMut(&[u8], &[u8]),
) {
    let pseudo = [
        (":method", asked.method),
        (":scheme", asked.scheme),
        (":authority", asked.authority),
        (":path", asked.path),
    ];
    for (name, value) in pseudo {
        each(name.as_bytes(), value.as_bytes());
    }
    for (name, value) in fields.lines().filter_map(|line| line.split_once(':')) {
        let name = name.trim().to_ascii_lowercase();
        if name != "connection" && name != "keep-alive" {
            each(name.as_bytes(), value.trim().as_bytes());
        }
    }
}

/// Returns the header block of a request with the fields of `each_field`, all as literals without
/// indexing.
pub fn request_block(asked: PseudoFields<'_>, fields: &str) -> Vec<u8> {
    let mut block = Vec::new();
    each_field(asked, fields, |name, value| protocol::hpack::literal(name, value, &mut block));
    block
}
