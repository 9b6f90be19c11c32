//! Packets of QUIC among those of a connection (RFC 9000 sections 17 and 19), which no library would send: what is
//! said, as the driver takes it, and which frames came.

use crate::http2::FrameSeen;
use crate::talk::Move;
use conduit::streams::{self, FRAMES, LIMITS, PACKET_OPTIONS, PieceKind};
use units::quoted;

/// A kept frame of QUIC, whose flags are its row among [`FRAMES`].
pub const FRAME: u8 = 0x73;

/// A packet with these frames. `options`: names of [`PACKET_OPTIONS`], joined by `+`, or `none`.
///
/// # Errors
/// An option that is none.
pub fn packet(options: &str, frames: &[u8]) -> Result<Vec<u8>, String> {
    let bits = super::option_bits(options, &PACKET_OPTIONS, "a packet")?;
    let mut out = Vec::new();
    let payload = [&[bits], frames].concat();
    streams::put(&mut out, PieceKind::Packet, 0, &payload);
    Ok(out)
}

/// What touches one of the server's [`LIMITS`].
///
/// # Errors
/// A limit that is none.
pub fn limit(name: &str, stream: u64) -> Result<Vec<u8>, String> {
    let row = LIMITS.iter().position(|known| *known == name);
    let row = row.ok_or_else(|| format!("{} is no limit of QUIC", quoted(name)))?;
    let mut out = Vec::new();
    streams::put_code(&mut out, PieceKind::Limit, stream, Some(row as u64));
    Ok(out)
}

/// What follows goes out from another local port.
pub fn port() -> Vec<u8> {
    let mut out = Vec::new();
    streams::put_code(&mut out, PieceKind::Port, 0, None);
    out
}

/// The step says something that only a connection made by hand carries.
pub fn is_said(step: &Move) -> bool {
    let kinds = [PieceKind::Packet, PieceKind::Limit, PieceKind::Port];
    matches!(step, Move::Send(bytes) if super::heads(bytes).any(|head| kinds.contains(&head.kind)))
}

/// The row of a frame among [`FRAMES`]; `None`: nobody asks for it.
pub(crate) fn row(kind: u64) -> Option<u8> {
    let row = FRAMES.iter().position(|(_, known)| *known == kind)?;
    u8::try_from(row).ok()
}

/// The row of a frame with this name.
pub fn named(name: &str) -> Option<u8> {
    FRAMES.iter().position(|(known, _)| *known == name).and_then(|row| u8::try_from(row).ok())
}

/// The name of a frame by its row.
pub(crate) fn name(row: u8) -> &'static str {
    FRAMES.get(usize::from(row)).map_or("a frame", |(name, _)| name)
}

/// This frame came.
pub fn is_heard(frames: &[FrameSeen], row: u8) -> bool {
    frames.iter().any(|frame| frame.is_over_quic() && (frame.kind, frame.flags) == (FRAME, row))
}

/// It does not come of itself on every connection.
pub fn is_told(frame: &FrameSeen) -> bool {
    let usual = ["NEW_TOKEN", "NEW_CONNECTION_ID", "RETIRE_CONNECTION_ID", "HANDSHAKE_DONE"];
    !usual.contains(&name(frame.flags))
}

/// PATH_RESPONSE came, with these eight bytes (section 8.2.2).
pub fn is_echoed(frames: &[FrameSeen], bytes: &[u8]) -> bool {
    let of = frames.iter().filter(|frame| frame.is_over_quic() && frame.kind == FRAME);
    of.filter(|frame| Some(frame.flags) == named("PATH_RESPONSE"))
        .any(|frame| frame.payload == bytes)
}

/// The options of a packet, as a case has them.
pub(super) fn options(bits: u8) -> String {
    let set = PACKET_OPTIONS.iter().filter(|(_, bit)| bits & bit != 0);
    let names: Vec<&str> = set.map(|(name, _)| *name).collect();
    if names.is_empty() { String::new() } else { format!(", {}", names.join(", ")) }
}

/// The name of a limit by its row.
pub(super) fn limit_name(row: u64) -> &'static str {
    usize::try_from(row).ok().and_then(|row| LIMITS.get(row).copied()).unwrap_or("a limit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http3::write;
    use conduit::streams::HEAD;

    #[test]
    fn packets_are_described() {
        let made = packet("reserved+twice", b"\x01").unwrap();
        assert_eq!(made[HEAD..], [2 | 16, 1]);
        assert_eq!(packet("big", b"").unwrap_err(), "\"big\" is no option of a packet");
        assert_eq!(limit("stream-beyond", 4).unwrap()[HEAD..], 1_u64.to_be_bytes());
        assert_eq!(limit("sky", 4).unwrap_err(), "\"sky\" is no limit of QUIC");
    }

    #[test]
    fn what_needs_a_connection_by_hand_is_seen_wherever_it_stands() {
        let polite = Move::Send(write::opening());
        assert!(!is_said(&polite) && !is_said(&Move::Close));
        assert!(is_said(&Move::Send([write::opening(), port()].concat())));
    }

    #[test]
    fn frames_that_came_are_known_by_name() {
        let row = named("PATH_RESPONSE").unwrap();
        let seen = FrameSeen {
            kind: FRAME,
            flags: row,
            stream: crate::http3::OVER_QUIC,
            length: 8,
            payload: b"lodstone".to_vec(),
        };
        assert_eq!(seen.to_string(), "PATH_RESPONSE");
        let frames = [seen];
        assert!(is_heard(&frames, row) && !is_heard(&frames, row + 1));
        assert!(is_echoed(&frames, b"lodstone") && !is_echoed(&frames, b"lodston3"));
    }
}
