//! QUIC datagrams without a connection (RFC 9000 section 17): what is sent, in the driver's form,
//! and what was received, classified by the invariants of all QUIC versions (RFC 8999).

use crate::http2::FrameSeen;
use crate::talk::Move;
use conduit::streams::{self, INITIAL_OPTIONS, PieceKind};

/// Kept datagram, whose flags name its kind, with the number of bytes sent.
pub const CAME: u8 = 0x71;
pub const SENT: u8 = 0x72;

/// Kinds of datagrams, in the order of the flags of a kept datagram.
const NAMES: [&str; 6] =
    ["Initial", "0-RTT", "Handshake", "Retry", "Version Negotiation", "a short header"];
const NEGOTIATION: u8 = 4;
const SHORT: u8 = 5;

/// Returns a datagram, unchanged.
pub fn datagram(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    streams::put(&mut out, PieceKind::Datagram, 0, bytes);
    out
}

/// Returns a datagram of `size` bytes with an Initial packet (section 17.2.2), which the driver
/// protects: `frames`, and the options. `options`: names of [`INITIAL_OPTIONS`], joined by `+`, or
/// `none`.
///
/// # Errors
/// Fails for an invalid option.
pub fn initial(size: u16, options: &str, frames: &[u8]) -> Result<Vec<u8>, String> {
    let bits = super::option_bits(options, &INITIAL_OPTIONS, "an Initial")?;
    let mut out = Vec::new();
    let payload = [&size.to_be_bytes()[..], &bits.to_be_bytes()[1..], frames].concat();
    streams::put(&mut out, PieceKind::Initial, 0, &payload);
    Ok(out)
}

/// Returns whether the step sends only datagrams without a connection.
pub fn is_crafted(step: &Move) -> bool {
    let kinds = [PieceKind::Datagram as u8, PieceKind::Initial as u8];
    matches!(step, Move::Send(bytes) if bytes.first().is_some_and(|kind| kinds.contains(kind)))
}

/// Returns the kind of a datagram by its first bytes.
pub(crate) fn kind_of(datagram: &[u8]) -> u8 {
    match datagram {
        [first, 0, 0, 0, 0, ..] if first & 0x80 != 0 => NEGOTIATION,
        [first, ..] if first & 0x80 != 0 => first >> 4 & 3,
        _ => SHORT,
    }
}

/// Formats `Version Negotiation of 39 bytes`.
pub(crate) fn describe(frame: &FrameSeen) -> String {
    let name = NAMES.get(usize::from(frame.flags)).copied().unwrap_or("a datagram");
    format!("{name} of {} bytes", frame.length)
}

/// Returns the sums of sent and received bytes.
pub fn sums(frames: &[FrameSeen]) -> (u64, u64) {
    let sum = |kind: u8| {
        let of = frames.iter().filter(|frame| frame.kind == kind);
        of.map(|frame| u64::from(frame.length)).sum()
    };
    (sum(SENT), sum(CAME))
}

/// Returns whether a Version Negotiation packet was received (section 17.2.1), with the connection
/// IDs swapped, and a version other than the one sent.
pub fn negotiated(frames: &[FrameSeen]) -> bool {
    let Some(sent) = frames.iter().find(|frame| frame.kind == SENT) else { return false };
    let Some((version, to, from)) = invariant(&sent.payload) else { return false };
    frames.iter().filter(|frame| frame.kind == CAME && frame.flags == NEGOTIATION).any(|frame| {
        let Some((_, back_to, back_from)) = invariant(&frame.payload) else { return false };
        let head = 7 + back_to.len() + back_from.len();
        let others = frame.payload.get(head..).unwrap_or_default().chunks_exact(4);
        back_to == from && back_from == to && others.into_iter().any(|one| one != version)
    })
}

/// Returns version and both connection IDs of a long header (RFC 8999 section 5.1).
fn invariant(datagram: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let version = datagram.get(1..5)?;
    let to_end = 6 + usize::from(*datagram.get(5)?);
    let to = datagram.get(6..to_end)?;
    let from_end = to_end + 1 + usize::from(*datagram.get(to_end)?);
    Some((version, to, datagram.get(to_end + 1..from_end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(kind: u8, payload: &[u8]) -> FrameSeen {
        let (flags, length) = (kind_of(payload), payload.len() as u32);
        FrameSeen { kind, flags, stream: 0, length, payload: payload.to_vec() }
    }

    #[test]
    fn version_negotiation_swaps_the_connection_ids() {
        let sent = kept(SENT, b"\xc0\x1a\x2a\x3a\x4a\x02to\x04from\0\0");
        let answer = |bytes: &[u8]| negotiated(&[sent.clone(), kept(CAME, bytes)]);
        assert!(answer(b"\x80\0\0\0\0\x04from\x02to\0\0\0\x01"));
        assert!(!answer(b"\x80\0\0\0\0\x02to\x04from\0\0\0\x01"), "identifiers as they were sent");
        assert!(!answer(b"\x80\0\0\0\0\x04from\x02to"), "no version");
        assert!(
            !answer(b"\x80\0\0\0\0\x04from\x02to\x1a\x2a\x3a\x4a"),
            "the version that was sent"
        );
        assert!(!answer(b"\x80\0\0\0\x01\x04from\x02to\0\0\0\x01"), "no Version Negotiation");
        assert!(!answer(b"\x80\0\0"), "cut");
    }

    #[test]
    fn datagrams_are_classified_by_their_first_bytes() {
        for (bytes, name) in [
            (&b"\xc0\0\0\0\x01"[..], "Initial"),
            (b"\xe0\0\0\0\x01", "Handshake"),
            (b"\xf0\0\0\0\x01", "Retry"),
            (b"\xc0\0\0\0\0", "Version Negotiation"),
            (b"\x40", "a short header"),
            (b"", "a short header"),
        ] {
            let text = describe(&kept(CAME, bytes));
            assert_eq!(text, format!("{name} of {} bytes", bytes.len()));
        }
    }

    #[test]
    fn an_initial_is_described() {
        let made = initial(1_200, "hello+broken", b"\x01").unwrap();
        assert_eq!(made[streams::HEAD..], [0x04, 0xb0, 0b101, 1]);
        assert_eq!(initial(9, "none", b"").unwrap()[streams::HEAD..], [0, 9, 0]);
        assert_eq!(initial(9, "big", b"").unwrap_err(), "\"big\" is not an option of an Initial");
    }
}
