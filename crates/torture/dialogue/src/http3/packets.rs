//! QUIC packets within a connection (RFC 9000 sections 17 and 19) that no library would send: what
//! is sent, in the driver's form, and which frames were received.

use crate::http2::FrameSeen;
use crate::talk::Move;
use conduit::streams::{
    self, ACTIONS, AGAIN, EARLY, FRAMES, HEAD, LIMITS, PACKET_OPTIONS, PieceKind, SHAKE_OPTIONS,
};
use units::quoted;

/// Kept QUIC frame, whose flags are its row in [`FRAMES`].
pub const FRAME: u8 = 0x73;

/// Returns a packet with these frames. `options`: names of [`PACKET_OPTIONS`], joined by `+`, or
/// `none`.
///
/// # Errors
/// Fails for an invalid option.
pub fn packet(options: &str, frames: &[u8]) -> Result<Vec<u8>, String> {
    let bits = super::option_bits(options, &PACKET_OPTIONS, "a packet")?;
    let mut out = Vec::new();
    let payload = [&bits.to_be_bytes(), frames].concat();
    streams::put(&mut out, PieceKind::Packet, 0, &payload);
    Ok(out)
}

/// Returns the options of the handshake. `options`: names of [`SHAKE_OPTIONS`], joined by `+`, or
/// `none`; `parameters`: transport parameters after the usual ones.
///
/// # Errors
/// Fails for an invalid option.
pub fn handshake_options(options: &str, parameters: &[u8]) -> Result<Vec<u8>, String> {
    let bits = super::option_bits(options, &SHAKE_OPTIONS, "a handshake")?;
    let mut out = Vec::new();
    let payload = [&bits.to_be_bytes(), parameters].concat();
    streams::put(&mut out, PieceKind::Shake, 0, &payload);
    Ok(out)
}

/// Returns a range of bytes of our ClientHello.
pub fn hello(from: u64, to: u64) -> Vec<u8> {
    let mut out = Vec::new();
    streams::put_code(&mut out, PieceKind::Hello, from, Some(to));
    out
}

/// Returns an action of the connection by its name in [`ACTIONS`]; `None` if there is none.
pub fn action(name: &str) -> Option<Vec<u8>> {
    let row = ACTIONS.iter().position(|known| *known == name)?;
    let mut out = Vec::new();
    streams::put_code(&mut out, PieceKind::Action, 0, Some(row as u64));
    Some(out)
}

/// Returns the handshake options of these steps in the driver's form; `None` if an ordinary
/// connection is enough.
pub fn handshake(steps: &[Move]) -> Option<Vec<u8>> {
    let mut by_hand = None;
    for step in steps {
        let Move::Send(bytes) = step else { continue };
        let mut rest = &bytes[..];
        while let Some(head) = rest.first_chunk::<HEAD>().and_then(streams::Head::from_bytes) {
            let end = HEAD.saturating_add(head.length as usize).min(rest.len());
            if head.kind == PieceKind::Shake {
                return Some(rest[HEAD..end].to_vec());
            }
            if KINDS.contains(&head.kind) {
                by_hand = Some(Vec::new());
            }
            rest = &rest[end..];
        }
    }
    by_hand
}

/// Returns whether a connection with this handshake sends early data, which needs a ticket.
pub(crate) fn is_early(handshake: &[u8]) -> bool {
    handshake.first_chunk::<2>().is_some_and(|bits| u16::from_be_bytes(*bits) & EARLY != 0)
}

/// Returns how often these steps replay everything on another connection.
pub(crate) fn times_again(steps: &[Move]) -> u64 {
    let sent = steps.iter().filter_map(|step| match step {
        Move::Send(bytes) => Some(bytes),
        _ => None,
    });
    let mut times = 0;
    for bytes in sent {
        let mut rest = &bytes[..];
        while let Some(head) = rest.first_chunk::<HEAD>().and_then(streams::Head::from_bytes) {
            let end = HEAD.saturating_add(head.length as usize).min(rest.len());
            let action = streams::code(&rest[HEAD..end]);
            times += u64::from(head.kind == PieceKind::Action && action == Some(AGAIN));
            rest = &rest[end..];
        }
    }
    times
}

/// Pieces that need a crafted connection.
const KINDS: [PieceKind; 6] = [
    PieceKind::Packet,
    PieceKind::Limit,
    PieceKind::Port,
    PieceKind::Shake,
    PieceKind::Hello,
    PieceKind::Action,
];

/// Returns a piece whose frames test one of the server's [`LIMITS`].
///
/// # Errors
/// Fails for an unknown limit.
pub fn limit(name: &str, stream: u64) -> Result<Vec<u8>, String> {
    let row = LIMITS.iter().position(|known| *known == name);
    let row = row.ok_or_else(|| format!("{} is not a QUIC limit", quoted(name)))?;
    let mut out = Vec::new();
    streams::put_code(&mut out, PieceKind::Limit, stream, Some(row as u64));
    Ok(out)
}

/// Returns a piece after which pieces are sent from another local port.
pub fn port() -> Vec<u8> {
    let mut out = Vec::new();
    streams::put_code(&mut out, PieceKind::Port, 0, None);
    out
}

/// Returns whether the step sends something that needs a crafted connection.
pub fn is_crafted(step: &Move) -> bool {
    matches!(step, Move::Send(bytes) if super::heads(bytes).any(|head| KINDS.contains(&head.kind)))
}

/// Returns the row of a frame in [`FRAMES`]; `None` if it is not recorded.
pub(crate) fn row(kind: u64) -> Option<u8> {
    let row = FRAMES.iter().position(|(_, known)| *known == kind)?;
    u8::try_from(row).ok()
}

/// Returns the row of a frame with this name.
pub fn frame_row(name: &str) -> Option<u8> {
    FRAMES.iter().position(|(known, _)| *known == name).and_then(|row| u8::try_from(row).ok())
}

/// Returns the name of a frame by its row.
pub(crate) fn name(row: u8) -> &'static str {
    FRAMES.get(usize::from(row)).map_or("a frame", |(name, _)| name)
}

/// Violations of the server's QPACK table, by their names in [`FRAMES`]: a sentence with the
/// reference.
const TABLE_FAULTS: [(&str, &str); 6] = [
    ("table-capacity", "it set a table capacity beyond our limit (RFC 9204 section 4.3.1)"),
    ("table-instruction", "an invalid instruction for its table (RFC 9204 sections 3.2.2 and 4.3)"),
    (
        "table-reference",
        "a field section refers to a missing table entry (RFC 9204 sections 2.2.1 and 4.5.1)",
    ),
    (
        "table-blocked",
        "more streams are blocked on its table than we allow (RFC 9204 section 2.1.2)",
    ),
    (
        "table-evicted",
        "it evicted a table entry that could still be referenced (RFC 9204 section 2.1.1)",
    ),
    ("section-coding", "an undecodable field section (RFC 9204 sections 2.2 and 4.5)"),
];

/// Other recorded facts, each with a sentence.
const FACTS: [(&str, &str); 5] = [
    ("section-large", "a field section of more than 256 KiB, more than we read"),
    (
        "settings-reduced",
        "its SETTINGS allow less than those remembered for early data (RFC 9114 section 7.2.4.2)",
    ),
    (
        "beyond-limits",
        "it exceeded our flow-control or stream limits (RFC 9000 sections 4.1 and \
        4.6)",
    ),
    ("held-large", "more than 64 MiB arrived after a gap, more than we buffer"),
    ("broken-rules", "it violated QUIC or TLS"),
];

/// Describes a frame by its row.
pub(crate) fn describe(row: u8) -> &'static str {
    let name = name(row);
    let fault = TABLE_FAULTS.iter().chain(&FACTS).find(|(fault, _)| *fault == name);
    fault.map_or(name, |(_, text)| text)
}

/// Returns whether the server's QPACK table has no faults.
pub fn is_table_sound(frames: &[FrameSeen]) -> bool {
    let mut rows = TABLE_FAULTS.iter().filter_map(|(name, _)| frame_row(name));
    !rows.any(|row| has_frame(frames, row))
}

/// Returns whether this frame was received.
pub fn has_frame(frames: &[FrameSeen], row: u8) -> bool {
    frames.iter().any(|frame| frame.is_over_quic() && (frame.kind, frame.flags) == (FRAME, row))
}

/// Returns whether we closed the connection because of what the server sent; then the server did
/// not close it.
pub fn ended_by_us(frames: &[FrameSeen]) -> bool {
    let ends = ["beyond-limits", "held-large", "broken-rules"];
    let mut rows = ends.into_iter().filter_map(frame_row);
    rows.any(|row| has_frame(frames, row))
}

/// Returns whether we closed it because our buffer after a gap was full: the server violated no
/// rule.
pub fn gap_buffer_was_full(frames: &[FrameSeen]) -> bool {
    frame_row("held-large").is_some_and(|row| has_frame(frames, row))
}

/// Returns whether it is notable, that is, not part of every connection.
pub fn is_reported(frame: &FrameSeen) -> bool {
    let usual =
        ["NEW_TOKEN", "NEW_CONNECTION_ID", "RETIRE_CONNECTION_ID", "HANDSHAKE_DONE", "remembered"];
    !usual.contains(&name(frame.flags))
}

/// Returns whether PATH_RESPONSE with these eight bytes was received (section 8.2.2).
pub fn is_echoed(frames: &[FrameSeen], bytes: &[u8]) -> bool {
    let of = frames.iter().filter(|frame| frame.is_over_quic() && frame.kind == FRAME);
    of.filter(|frame| Some(frame.flags) == frame_row("PATH_RESPONSE"))
        .any(|frame| frame.payload == bytes)
}

/// Formats the options of a packet or a handshake, as in a case.
pub(super) fn options(bits: u16, known: &[(&str, u16)]) -> String {
    let set = known.iter().filter(|(_, bit)| bits & bit != 0);
    let names: Vec<&str> = set.map(|(name, _)| *name).collect();
    if names.is_empty() { String::new() } else { format!(", {}", names.join(", ")) }
}

/// Returns the name of a limit by its row.
pub(super) fn limit_name(row: u64) -> &'static str {
    usize::try_from(row).ok().and_then(|row| LIMITS.get(row).copied()).unwrap_or("a limit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http3::write;

    #[test]
    fn packets_are_described() {
        let made = packet("reserved+twice", b"\x01").unwrap();
        assert_eq!(made[HEAD..], [0, 2 | 16, 1]);
        let early =
            handshake(&[Move::Send(handshake_options("early+hold", b"").unwrap())]).unwrap();
        let other =
            handshake(&[Move::Send(handshake_options("hold", b"\x0a\x01\x15").unwrap())]).unwrap();
        assert!(is_early(&early) && !is_early(&other) && other.ends_with(b"\x0a\x01\x15"));
        let twice = [action("again").unwrap(), action("finish").unwrap(), action("again").unwrap()];
        assert_eq!(times_again(&[Move::Send(twice.concat()), Move::Close]), 2);
        assert_eq!(handshake(&[Move::Send(made.clone())]), Some(Vec::new()));
        assert_eq!(handshake(&[Move::Send(write::opening())]), None);
        assert_eq!(packet("big", b"").unwrap_err(), "\"big\" is not an option of a packet");
        assert_eq!(limit("stream-beyond", 4).unwrap()[HEAD..], 1_u64.to_be_bytes());
        assert_eq!(limit("sky", 4).unwrap_err(), "\"sky\" is not a QUIC limit");
    }

    #[test]
    fn hand_made_connection_steps_are_detected_anywhere() {
        let polite = Move::Send(write::opening());
        assert!(!is_crafted(&polite) && !is_crafted(&Move::Close));
        assert!(is_crafted(&Move::Send([write::opening(), port()].concat())));
    }

    #[test]
    fn received_frames_have_names() {
        let row = frame_row("PATH_RESPONSE").unwrap();
        let seen = FrameSeen {
            kind: FRAME,
            flags: row,
            stream: crate::http3::OVER_QUIC,
            length: 8,
            payload: b"lodstone".to_vec(),
        };
        assert_eq!(seen.to_string(), "PATH_RESPONSE");
        let frames = [seen];
        assert!(has_frame(&frames, row) && !has_frame(&frames, row + 1));
        assert!(is_echoed(&frames, b"lodstone") && !is_echoed(&frames, b"lodston3"));
    }
}
