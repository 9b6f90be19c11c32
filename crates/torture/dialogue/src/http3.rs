//! HTTP/3 by hand (RFC 9114): valid or invalid frames and field sections as bytes. On a connection
//! they are sent as pieces of streams, see [`conduit::streams`]; QUIC below is a library with valid
//! packets, unless steps use [`packets`]; the stream content may be invalid.

pub mod datagrams;
pub mod packets;
mod pieces_text;
pub mod write;

pub use pieces_text::describe_pieces;

use crate::talk::Move;
use ::protocol::http3::varint;
use conduit::streams::{HEAD, Head, PieceKind};
use sample::http3_code_name;
use std::ops::Range;
use units::quoted;

/// Bit 31 of a kept frame's stream, which marks QUIC: HTTP/2 stream numbers have 31 bits.
pub const OVER_QUIC: u32 = 1 << 31;
/// Marks kept codes of QUIC itself.
pub const OF_QUIC: u32 = 1 << 31;

/// QUIC codes by number (RFC 9000 section 20.1).
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

/// TLS alerts by number (RFC 8446 section 6), which are codes from [`ALERTS_BEGIN`] on (RFC 9001
/// section 4.8).
const ALERTS: [(&str, u32); 15] = [
    ("unexpected_message", 10),
    ("bad_record_mac", 20),
    ("handshake_failure", 40),
    ("bad_certificate", 42),
    ("illegal_parameter", 47),
    ("decode_error", 50),
    ("decrypt_error", 51),
    ("protocol_version", 70),
    ("internal_error", 80),
    ("missing_extension", 109),
    ("unsupported_extension", 110),
    ("unrecognized_name", 112),
    ("unknown_psk_identity", 115),
    ("certificate_required", 116),
    ("no_application_protocol", 120),
];
const ALERTS_BEGIN: u32 = 0x100;

/// Returns the kept form of the QUIC code or TLS alert with this name.
pub fn quic_code(name: &str) -> Option<u32> {
    let row = QUIC_CODES.iter().position(|known| *known == name);
    let code = row.and_then(|row| u32::try_from(row).ok());
    let alert = || ALERTS.iter().find(|(known, _)| *known == name);
    code.or_else(|| alert().map(|(_, number)| number + ALERTS_BEGIN)).map(|code| code | OF_QUIC)
}

/// Returns the name of a kept HTTP/3 or QUIC code.
pub fn code_name(kept: u32) -> String {
    if kept & OF_QUIC == 0 {
        return http3_code_name(u64::from(kept));
    }
    let code = kept & !OF_QUIC;
    if let Some(name) = QUIC_CODES.get(code as usize) {
        return (*name).to_owned();
    }
    let known = ALERTS.iter().find(|(_, number)| number + ALERTS_BEGIN == code);
    known.map_or_else(|| format!("QUIC {code:#x}"), |(name, _)| format!("TLS {name}"))
}

/// Frame types (RFC 9114 section 7.2).
pub const DATA: u64 = 0x0;
pub const HEADERS: u64 = 0x1;
pub const SETTINGS: u64 = 0x4;
pub const GOAWAY: u64 = 0x7;
pub const MAX_PUSH_ID: u64 = 0xd;

/// H3_REQUEST_CANCELLED (section 8.1).
pub const CANCELLED: u64 = 0x10c;

/// Frame types by name; types of HTTP/2 alone are reserved here (section 7.2.8).
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

/// Types of unidirectional streams (RFC 9114 section 6.2, RFC 9204 section 4.2).
pub const CONTROL: u64 = 0x0;
pub const ENCODER: u64 = 0x2;
pub const DECODER: u64 = 0x3;

/// Our first unidirectional streams (RFC 9000 section 2.1), as opened by a well-behaved client.
pub const CONTROL_STREAM: u64 = 2;
pub const ENCODER_STREAM: u64 = 6;
pub const DECODER_STREAM: u64 = 10;

/// The first possible stream of the valid follow-up request.
const FOLLOW_UP_STREAM: u64 = 16;

/// Returns the stream of the follow-up request for these steps, which use neither it nor a later
/// one.
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

/// Returns the complete headers of these pieces.
fn heads(bytes: &[u8]) -> impl Iterator<Item = Head> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let head = rest.first_chunk::<HEAD>().and_then(Head::from_bytes)?;
        rest = rest.get(HEAD + head.length as usize..).unwrap_or_default();
        Some(head)
    })
}

/// Returns the bits of options whose names are joined by `+`, or `none`. `what`: subject of the
/// options.
fn option_bits(names: &str, known: &[(&str, u16)], what: &str) -> Result<u16, String> {
    names.split('+').filter(|name| *name != "none").try_fold(0, |all, name| {
        let found = known.iter().find(|(one, _)| *one == name).map(|(_, bit)| all | bit);
        found.ok_or_else(|| format!("{} is not an option of {what}", quoted(name)))
    })
}

/// Returns the complete settings of a SETTINGS frame (RFC 9114 section 7.2.4).
pub fn settings(payload: &[u8]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut rest = payload;
    while let Some((id, first)) = varint::get(rest)
        && let Some((value, second)) = varint::get(&rest[first..])
    {
        found.push((id, value));
        rest = &rest[first + second..];
    }
    found
}

/// Settings that a server may not reduce after accepting early data, with numbers and defaults (RFC
/// 9114 section 7.2.4.1, RFC 9204 section 5, RFC 9220 section 5, RFC 9297 section 2.1.1).
const REMEMBERED: [(u64, u64); 5] = [(0x01, 0), (0x06, u64::MAX), (0x07, 0), (0x08, 0), (0x33, 0)];
/// Returns whether these settings allow less than the remembered ones. A nonzero table capacity
/// must be the same (RFC 9204 section 3.2.3).
pub(crate) fn are_reduced(before: &[(u64, u64)], now: &[(u64, u64)]) -> bool {
    REMEMBERED.iter().any(|(id, usual)| {
        let of = |settings: &[(u64, u64)]| {
            let found = settings.iter().find(|(known, _)| known == id);
            found.map_or(*usual, |(_, value)| *value)
        };
        let before = of(before);
        let now = of(now);
        let table = *id == TABLE_CAPACITY && before != 0;
        now < before || table && now != before
    })
}

/// Limits of the server's QPACK table in our SETTINGS (RFC 9204 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TablePermit {
    /// Capacity in bytes.
    pub capacity: u64,
    /// Maximum number of blocked streams.
    pub blocked: u64,
    /// Received sections are acknowledged on our decoder stream.
    pub acknowledges: bool,
}

const TABLE_CAPACITY: u64 = 1;
const BLOCKED_STREAMS: u64 = 7;

/// Returns the limits that the SETTINGS in these steps' control stream set. Sections are
/// acknowledged if the steps permit a table and open the decoder stream.
pub fn table_permitted(steps: &[Move]) -> TablePermit {
    let mut permit = TablePermit::default();
    for step in steps {
        let Move::Send(bytes) = step else { continue };
        let Some(ranges) = pieces(bytes) else { continue };
        for range in ranges {
            let piece = &bytes[range];
            let Some(head) = piece.first_chunk::<HEAD>().and_then(Head::from_bytes) else {
                continue;
            };
            let payload = &piece[HEAD..];
            match (head.kind, head.stream) {
                (PieceKind::Data, CONTROL_STREAM)
                    if payload.starts_with(&[CONTROL as u8, SETTINGS as u8]) =>
                {
                    let Some((length, used)) = varint::get(&payload[2..]) else { continue };
                    let end = payload.len().min(
                        usize::try_from(length).unwrap_or(usize::MAX).saturating_add(2 + used),
                    );
                    for (id, value) in settings(&payload[2 + used..end]) {
                        match id {
                            TABLE_CAPACITY => permit.capacity = value,
                            BLOCKED_STREAMS => permit.blocked = value,
                            _ => {}
                        }
                    }
                }
                (PieceKind::Data, DECODER_STREAM) => permit.acknowledges = true,
                _ => {}
            }
        }
    }
    permit.acknowledges &= permit.capacity > 0;
    permit
}

/// Returns the positions of these pieces, or `None` if they are not pieces, or incomplete.
pub fn pieces(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let head = rest.first_chunk::<HEAD>().and_then(Head::from_bytes)?;
        let end = at + HEAD + head.length as usize;
        found.push(at..end);
        at = end;
    }
    (at == bytes.len()).then_some(found)
}

/// Returns the stream of the first piece.
pub fn stream_of(pieces: &[u8]) -> Option<u64> {
    pieces.first_chunk::<HEAD>().and_then(Head::from_bytes).map(|head| head.stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_settings_are_detected() {
        let table = [
            (&[][..], &[][..], false),
            (&[(0x33, 1)], &[(0x33, 1)], false),
            (&[(0x33, 1)], &[(0x33, 0)], true),
            (&[(0x33, 1)], &[], true),
            (&[], &[(0x33, 1)], false),
            (&[(0x08, 1)], &[], true),
            // without the setting there is no limit
            (&[], &[(0x06, 1_000)], true),
            (&[(0x06, 1_000)], &[], false),
            (&[(0x01, 100)], &[(0x01, 200)], true),
            (&[], &[(0x01, 200)], false),
            (&[(0x21, 9)], &[], false),
        ];
        for (before, now, expected) in table {
            assert_eq!(are_reduced(before, now), expected, "{before:?}, then {now:?}");
        }
    }
}
