//! Encoding of frames, fields and pieces of streams.

use super::{
    CONTROL, CONTROL_STREAM, DECODER, DECODER_STREAM, ENCODER, ENCODER_STREAM, HEADERS, SETTINGS,
};
use crate::http2::write::{PseudoFields, each_field};
use ::protocol::http3::varint;
use conduit::streams::{self, PieceKind};

/// Appends an integer in QUIC encoding (RFC 9000 section 16); above 2^62 - 1 the upper bits are
/// lost.
pub fn varint(number: u64, out: &mut Vec<u8>) {
    varint::put(out, number & varint::MAX);
}

/// Returns a frame (RFC 9114 section 7.1) with a declared length, true or not.
pub fn framed(length: u64, kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(kind, &mut out);
    varint(length, &mut out);
    out.extend_from_slice(payload);
    out
}

pub fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    framed(payload.len() as u64, kind, payload)
}

/// Returns bytes of a stream; the first of them open the stream, `last` ends it.
pub fn stream_bytes(stream: u64, bytes: &[u8], last: bool) -> Vec<u8> {
    let mut out = Vec::new();
    streams::put_data(&mut out, stream, bytes, last);
    out
}

/// Returns a piece that sends RESET_STREAM.
pub fn reset(stream: u64, code: u64) -> Vec<u8> {
    piece(PieceKind::Reset, stream, code)
}

/// Returns a piece that sends STOP_SENDING.
pub fn stop(stream: u64, code: u64) -> Vec<u8> {
    piece(PieceKind::Stop, stream, code)
}

fn piece(kind: PieceKind, stream: u64, code: u64) -> Vec<u8> {
    let mut out = Vec::new();
    streams::put_code(&mut out, kind, stream, Some(code));
    out
}

/// Returns the start of a well-behaved client: a control stream with SETTINGS without a dynamic
/// table, and the two QPACK streams.
pub fn opening() -> Vec<u8> {
    let control = [vec![CONTROL as u8], frame(SETTINGS, &[])].concat();
    [
        stream_bytes(CONTROL_STREAM, &control, false),
        stream_bytes(ENCODER_STREAM, &[ENCODER as u8], false),
        stream_bytes(DECODER_STREAM, &[DECODER as u8], false),
    ]
    .concat()
}

/// Prefix of a field section without references to a dynamic table (RFC 9204 section 4.5.1).
pub const PREFIX: [u8; 2] = [0, 0];

/// Appends a field as a literal with a literal name, without Huffman (section 4.5.6).
pub fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    protocol::hpack::integer(0b0010_0000, 3, name.len() as u64, out);
    out.extend_from_slice(name);
    protocol::hpack::integer(0, 7, value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Returns the field section of a request with the same fields as the HTTP/2 block.
pub fn section(asked: PseudoFields<'_>, fields: &str) -> Vec<u8> {
    let mut section = PREFIX.to_vec();
    each_field(asked, fields, |name, value| field(name, value, &mut section));
    section
}

/// Returns a request without content, complete on its stream.
pub fn request(stream: u64, section: &[u8]) -> Vec<u8> {
    stream_bytes(stream, &frame(HEADERS, section), true)
}

/// Returns a request of [`request`] for another stream.
pub fn on_stream(request: &[u8], stream: u64) -> Vec<u8> {
    let mut out = request.to_vec();
    if let Some(place) = out.get_mut(8..streams::HEAD) {
        place.copy_from_slice(&stream.to_be_bytes());
    }
    out
}
