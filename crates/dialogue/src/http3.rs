//! HTTP/3 by hand (RFC 9114): frames and field sections as bytes, whether they may be sent or not. On a
//! connection they go in pieces of streams, as [`conduit::streams`] has them; QUIC below is a library's
//! and its packets right, unless steps say [`packets`] of their own; what is on the streams need not be.

pub mod datagrams;
pub mod packets;
mod told;
pub mod write;

pub use told::told;

use crate::talk::Move;
use ::http3::varint;
use conduit::streams::{HEAD, Head, PieceKind};
use sample::http3_code_name;
use std::ops::Range;
use units::quoted;

/// Bit 31 of a kept frame's stream says that it came over QUIC: streams of HTTP/2 have 31 bits.
pub const OVER_QUIC: u32 = 1 << 31;
/// Codes of QUIC itself have this bit in what is kept.
pub const OF_QUIC: u32 = 1 << 31;

/// Codes of QUIC by number (RFC 9000 section 20.1).
const QUIC_CODES: [&str; 17] = [
    "NO_ERROR",
    "INTERNAL_ERROR",
    "CONNECTION_REFUSED",
    "FLOW_CONTROL_ERROR",
    "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR",
    "FINAL_SIZE_ERROR",
    "FRAME_ENCODING_ERROR",
    "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR",
    "PROTOCOL_VIOLATION",
    "INVALID_TOKEN",
    "APPLICATION_ERROR",
    "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR",
    "AEAD_LIMIT_REACHED",
    "NO_VIABLE_PATH",
];

/// The code of QUIC with this name, as it is kept.
pub fn quic_code(name: &str) -> Option<u32> {
    let row = QUIC_CODES.iter().position(|known| *known == name)?;
    u32::try_from(row).ok().map(|code| code | OF_QUIC)
}

/// The name of a code of HTTP/3 or of QUIC, as it is kept.
pub fn code_name(kept: u32) -> String {
    if kept & OF_QUIC == 0 {
        return http3_code_name(u64::from(kept));
    }
    let code = kept & !OF_QUIC;
    let known = QUIC_CODES.get(code as usize);
    // from 0x100 on it is an alert of TLS
    known.map_or_else(|| format!("QUIC {code:#x}"), |name| (*name).to_owned())
}

/// Types of frames (RFC 9114 section 7.2).
pub const DATA: u64 = 0x0;
pub const HEADERS: u64 = 0x1;
pub const SETTINGS: u64 = 0x4;
pub const GOAWAY: u64 = 0x7;
pub const MAX_PUSH_ID: u64 = 0xd;

/// H3_REQUEST_CANCELLED (section 8.1).
pub const CANCELLED: u64 = 0x10c;

/// Types of frames by their names; those of HTTP/2 alone are reserved here (section 7.2.8).
pub const KINDS: [(&str, u64); 12] = [
    ("DATA", DATA),
    ("HEADERS", HEADERS),
    ("PRIORITY", 0x2),
    ("CANCEL_PUSH", 0x3),
    ("SETTINGS", SETTINGS),
    ("PUSH_PROMISE", 0x5),
    ("PING", 0x6),
    ("GOAWAY", GOAWAY),
    ("WINDOW_UPDATE", 0x8),
    ("CONTINUATION", 0x9),
    ("MAX_PUSH_ID", MAX_PUSH_ID),
    ("PRIORITY_UPDATE", 0xf_0700),
];

/// Types of streams in one direction (RFC 9114 section 6.2, RFC 9204 section 4.2).
pub const CONTROL: u64 = 0x0;
pub const ENCODER: u64 = 0x2;
pub const DECODER: u64 = 0x3;

/// Our first streams in one direction (RFC 9000 section 2.1): what a polite client opens.
pub const CONTROL_STREAM: u64 = 2;
pub const ENCODER_STREAM: u64 = 6;
pub const DECODER_STREAM: u64 = 10;

/// The first stream on which the valid request may go that follows a case.
const FOLLOW_UP_STREAM: u64 = 16;

/// The stream of the valid request that follows these steps: none of them speaks on it or on a later one.
pub fn follow_up_stream(steps: &[Move]) -> u64 {
    let mut next = FOLLOW_UP_STREAM;
    for step in steps {
        let Move::Send(bytes) = step else { continue };
        for head in heads(bytes) {
            if head.kind == PieceKind::Data && head.stream.is_multiple_of(4) {
                next = next.max(head.stream.saturating_add(4));
            }
        }
    }
    next
}

/// The heads of these pieces, as far as they are whole.
fn heads(bytes: &[u8]) -> impl Iterator<Item = Head> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let head = rest.first_chunk::<HEAD>().and_then(Head::from_bytes)?;
        rest = rest.get(HEAD + head.length as usize..).unwrap_or_default();
        Some(head)
    })
}

/// The bits of options whose names are joined by `+`, or `none`. `what`: of what they are options.
fn option_bits(names: &str, known: &[(&str, u8)], what: &str) -> Result<u8, String> {
    names.split('+').filter(|name| *name != "none").try_fold(0, |all, name| {
        let found = known.iter().find(|(one, _)| *one == name).map(|(_, bit)| all | bit);
        found.ok_or_else(|| format!("{} is no option of {what}", quoted(name)))
    })
}

/// The settings of a SETTINGS frame, as far as they are whole (RFC 9114 section 7.2.4).
pub fn settings(payload: &[u8]) -> Vec<(u64, u64)> {
    let (mut found, mut rest) = (Vec::new(), payload);
    while let Some((id, first)) = varint::get(rest)
        && let Some((value, second)) = varint::get(&rest[first..])
    {
        found.push((id, value));
        rest = &rest[first + second..];
    }
    found
}

/// Where each of these pieces stands; `None`: they are none, or not whole.
pub fn pieces(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let head = rest.first_chunk::<HEAD>().and_then(Head::from_bytes)?;
        let end = at + HEAD + head.length as usize;
        found.push(at..end);
        at = end;
    }
    (at == bytes.len()).then_some(found)
}

/// The stream on which the first of these pieces speaks.
pub fn stream_of(pieces: &[u8]) -> Option<u64> {
    pieces.first_chunk::<HEAD>().and_then(Head::from_bytes).map(|head| head.stream)
}
