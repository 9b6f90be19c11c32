//! Frames, written.

use super::{
    ACK, END_HEADERS, END_STREAM, FRAME_HEAD, HEADERS, OCTETS, PING, PREFACE, SETTINGS,
    WINDOW_UPDATE,
};

/// What each stream may be sent before we give more; responses come whole.
const STREAM_WINDOW: u32 = 1 << 30;
/// What the connection may be sent beside the first 65,535 bytes.
const CONNECTION_WINDOW: u32 = (1 << 30) - 1;
const ENABLE_PUSH: u16 = 2;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// The head of a frame that says so many bytes follow, whether they do or not (RFC 9113 section 4.1).
/// A length above 24 bits loses its upper ones; the reserved bit of `stream` is sent as it is.
pub fn head(length: u32, kind: u8, flags: u8, stream: u32) -> [u8; FRAME_HEAD] {
    let [_, high, middle, low] = length.to_be_bytes();
    let [a, b, c, d] = stream.to_be_bytes();
    [high, middle, low, kind, flags, a, b, c, d]
}

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = head(payload.len() as u32, kind, flags, stream).to_vec();
    out.extend_from_slice(payload);
    out
}

/// What a well-behaved client begins with: the preface, SETTINGS, and a window for the whole connection.
pub fn opening() -> Vec<u8> {
    let mut settings = setting(ENABLE_PUSH, 0);
    settings.extend(setting(INITIAL_WINDOW_SIZE, STREAM_WINDOW));
    let mut out = PREFACE.to_vec();
    out.extend(frame(SETTINGS, 0, 0, &settings));
    out.extend(frame(WINDOW_UPDATE, 0, 0, &CONNECTION_WINDOW.to_be_bytes()));
    out
}

/// One setting, as a frame of SETTINGS holds it (RFC 9113 section 6.5.1).
pub fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// A field as a literal that no table keeps.
pub fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    hpack::literal(name, value, out);
}

/// A field as a literal that the dynamic table keeps.
pub fn kept_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    hpack::kept(name, value, out);
}

/// The server's SETTINGS are acknowledged.
pub fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// The PING that a conversation ends with.
pub fn ping() -> Vec<u8> {
    frame(PING, 0, 0, &OCTETS)
}

/// A request without a body, whole in one frame.
pub fn request(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, block)
}

/// A request of [`request`], for another stream.
pub fn on_stream(request: &[u8], stream: u32) -> Vec<u8> {
    let mut out = request.to_vec();
    if let Some(place) = out.get_mut(5..FRAME_HEAD) {
        place.copy_from_slice(&stream.to_be_bytes());
    }
    out
}

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub struct PseudoFields<'a> {
    pub method: &'a str,
    pub scheme: &'a str,
    pub authority: &'a str,
    pub path: &'a str,
}

/// Each field of a request: the pseudo-fields, then `fields`, which are lines as HTTP/1.1 has them, those
/// left out that HTTP/2 and HTTP/3 do without (RFC 9113 section 8.2.2, RFC 9114 section 4.2).
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

/// The block of a request with the fields of `each_field`. Everything is a literal that no table keeps.
pub fn request_block(asked: PseudoFields<'_>, fields: &str) -> Vec<u8> {
    let mut block = Vec::new();
    each_field(asked, fields, |name, value| hpack::literal(name, value, &mut block));
    block
}
