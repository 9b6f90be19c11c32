//! Outcomes of WebSocket (RFC 6455), also as a stream of HTTP/2 (RFC 8441).

use super::{first, has_ended, http2};
use dialogue::http2::{FrameReader, SOCKET};
use dialogue::talk::{Move, Talk};
use std::borrow::Cow;
use websocket::frame::{CONTROL_MAX, Header, HeaderReader, Opcode};
use websocket::{apply_mask, close};

/// Field of an extended CONNECT (RFC 8441 section 4).
const PROTOCOL: &[u8] = b":protocol";
/// Maximum number of frames that are examined.
const FRAMES_MAX: usize = 4_096;

/// Frames of the server, and whether they conform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketFrames {
    pub(crate) frames: Vec<(Header, Vec<u8>)>,
    /// A frame that no server may send.
    is_faulty: bool,
}

/// Returns the bytes of the server after the handshake; `None` if the WebSocket was not opened.
fn content(talk: &Talk) -> Option<Cow<'_, [u8]>> {
    let Some(frames) = &talk.replies.frames else {
        let head = &first(talk).filter(|response| response.status == 101)?.head;
        let at = talk.raw.windows(head.len()).position(|part| part == head.as_slice())?;
        return Some(Cow::Borrowed(&talk.raw[at + head.len()..]));
    };
    let connects = |step: &Move| match step {
        // our field names are literals
        Move::Send(bytes) => bytes.windows(PROTOCOL.len()).any(|part| part == PROTOCOL),
        _ => false,
    };
    if frames.is_http3() || !talk.steps.iter().any(connects) {
        return None;
    }
    let mut responses = talk.replies.responses.iter();
    responses.find(|one| one.stream == SOCKET && (200..300).contains(&one.status))?;
    Some(Cow::Owned(FrameReader::content_of(SOCKET, &talk.raw)))
}

/// Returns whether the WebSocket was opened: by 101, or over HTTP/2 by a 2xx.
pub(crate) fn is_opened(talk: &Talk) -> bool {
    content(talk).is_some()
}

/// Returns whether the server refused to open the WebSocket.
pub(super) fn is_refused(talk: &Talk) -> bool {
    !is_opened(talk) && (first(talk).is_some() || is_over(talk))
}

/// Returns whether the server ended the connection, or over HTTP/2 the stream.
pub(super) fn is_over(talk: &Talk) -> bool {
    let frames = talk.replies.frames.as_ref();
    let ended = |frames: &FrameReader| {
        let mut responses = talk.replies.responses.iter();
        frames.is_reset(SOCKET) || responses.any(|one| one.stream == SOCKET && one.complete)
    };
    has_ended(talk) || frames.is_some_and(|frames| ended(frames) || http2::goaway(talk, &[]))
}

/// Returns the frames from the server; `None` if the WebSocket was not opened.
pub(crate) fn frames(talk: &Talk) -> Option<SocketFrames> {
    let bytes = content(talk)?;
    let mut rest = &*bytes;
    let mut found = SocketFrames::default();
    while found.frames.len() < FRAMES_MAX {
        match HeaderReader::default().take(&mut rest) {
            Ok(None) => break,
            Err(_) => {
                found.is_faulty = true;
                break;
            }
            Ok(Some(header)) => {
                let length = usize::try_from(header.length).unwrap_or(usize::MAX);
                let long = header.opcode.is_control() && (length > CONTROL_MAX || !header.fin);
                let reserved = matches!(header.opcode, Opcode::Reserved(_)) || header.rsv & 3 != 0;
                found.is_faulty |= header.mask.is_some() || long || reserved;
                let Some(payload) = rest.get(..length) else { break };
                let mut payload = payload.to_vec();
                if let Some(key) = header.mask {
                    apply_mask(key, 0, &mut payload);
                }
                rest = &rest[length..];
                found.frames.push((header, payload));
            }
        }
    }
    Some(found)
}

impl SocketFrames {
    fn has_pong(&self, payload: &[u8]) -> bool {
        let wanted =
            |(header, found): &(Header, Vec<u8>)| header.opcode == Opcode::Pong && found == payload;
        self.frames.iter().any(wanted)
    }

    /// Returns the code of the first Close frame: `None` without a frame; 1005 without a code.
    fn close_code(&self) -> Option<u16> {
        let (_, payload) = self.frames.iter().find(|(header, _)| header.opcode == Opcode::Close)?;
        Some(match payload[..] {
            [high, low, ..] => u16::from_be_bytes([high, low]),
            _ => close::NO_STATUS,
        })
    }
}

/// Returns whether a pong with this payload arrived.
pub(super) fn pong(talk: &Talk, payload: &[u8]) -> bool {
    frames(talk).is_some_and(|frames| frames.has_pong(payload))
}

/// Returns whether the server ended the connection or the stream, with a Close frame with one of
/// these codes.
pub(super) fn closed(talk: &Talk, codes: &[u16]) -> bool {
    let code = frames(talk).and_then(|frames| frames.close_code());
    is_over(talk) && code.is_some_and(|code| codes.contains(&code))
}

/// Returns whether the server failed the connection: it ended it, without a Close frame, which RFC
/// 6455 section 7.1.7 permits, or with one of these codes, or with any that reports an error.
pub(super) fn failed(talk: &Talk, codes: &[u16]) -> bool {
    let Some(frames) = frames(talk) else { return false };
    let normal = [close::NORMAL, close::GOING_AWAY, close::NO_STATUS];
    is_over(talk)
        && frames.close_code().is_none_or(|code| match codes {
            [] => !normal.contains(&code),
            codes => codes.contains(&code),
        })
}

/// Returns whether the server sent a Close frame.
pub(crate) fn sent_close(talk: &Talk) -> bool {
    frames(talk).is_some_and(|frames| frames.close_code().is_some())
}

/// Returns whether the server sent no empty message.
pub(super) fn sent_nothing_empty(talk: &Talk) -> bool {
    let is_empty = |(header, payload): &(Header, Vec<u8>)| {
        matches!(header.opcode, Opcode::Text | Opcode::Binary) && header.fin && payload.is_empty()
    };
    frames(talk).is_some_and(|frames| !frames.frames.iter().any(is_empty))
}

/// Returns whether every frame from the server is one that a server may send.
pub(super) fn has_valid_frames(talk: &Talk) -> bool {
    frames(talk).is_some_and(|frames| !frames.is_faulty)
}

/// Parses comma-separated codes of Close frames.
pub(super) fn parse_codes(text: &str) -> Option<Vec<u16>> {
    text.split(',').map(|code| code.parse().ok()).collect()
}

/// Describes the frames for a report: `pong`, `close 1002`.
pub(crate) fn seen(talk: &Talk) -> Vec<String> {
    let Some(frames) = frames(talk) else { return Vec::new() };
    let count = |opcode| frames.frames.iter().filter(|(header, _)| header.opcode == opcode).count();
    let mut parts = Vec::new();
    for (opcode, name) in [(Opcode::Pong, "pong"), (Opcode::Ping, "ping")] {
        match count(opcode) {
            0 => {}
            1 => parts.push(name.to_owned()),
            many => parts.push(format!("{many} {name}s")),
        }
    }
    let data = count(Opcode::Text) + count(Opcode::Binary) + count(Opcode::Continuation);
    if data > 0 {
        parts.push(format!("data in {data} {}", if data == 1 { "frame" } else { "frames" }));
    }
    match frames.close_code() {
        None => {}
        Some(close::NO_STATUS) => parts.push("close without a code".to_owned()),
        Some(code) => parts.push(format!("close {code}")),
    }
    if frames.is_faulty {
        parts.push("a frame that no server may send".to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::Class;
    use super::*;
    use crate::judge::Plain;
    use dialogue::replies::Replies;
    use dialogue::talk::TalkEnd;

    const HEAD: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x=\r\n\r\n";

    fn talk(bytes: &[u8], end: TalkEnd) -> Talk {
        let raw = [HEAD, bytes].concat();
        let mut replies = Replies::new(&["GET".to_owned()]);
        replies.take(&raw);
        Talk {
            start: units::Nanos::ZERO,
            connected: None,
            over: units::Nanos::ZERO,
            end,
            steps: Vec::new(),
            replies,
            before_follow_up: None,
            sent: 0,
            received: raw.len() as u64,
            raw,
            events: Vec::new(),
            all_sent: true,
        }
    }

    fn holds(class: &str, talk: &Talk) -> bool {
        Class::parse(class).unwrap().holds(talk, &Plain::default())
    }

    #[test]
    fn frames_of_a_server_are_judged() {
        let failed = talk(b"\x88\x02\x03\xea", TalkEnd::Closed);
        assert_eq!(crate::judge::seen(&failed), "101, close 1002, closed");
        for (class, expected) in [
            ("101 ws-failed:1002,1007", true),
            ("ws-failed", true),
            ("ws-failed:1009", false),
            ("ws-close:1000", false),
            ("ws-close:1002", true),
            ("ws-sound", true),
            ("ws-open ws-over ws-no-empty", true),
            ("ws-refused", false),
            ("is:sec-websocket-accept=x=", true),
            ("is:sec-websocket-accept=y", false),
            ("ws-pong:a", false),
            ("ws-no-pong:\\xff\\xfe", true),
        ] {
            assert_eq!(holds(class, &failed), expected, "{class}");
        }
        assert!(crate::judge::closes_socket(&failed));
        assert!(!crate::judge::closes_socket(&talk(b"\x8a\x00", TalkEnd::Closed)));
        let binary = talk(b"\x8a\x02\xff\xfe", TalkEnd::Silent);
        assert!(holds(r"ws-pong:\xff\xfe", &binary) && !holds("ws-pong:A", &binary));
        let alive = talk(b"\x8a\x01a\x81\x02hi", TalkEnd::Silent);
        assert!(holds("ws-pong:a ws-sound ws-no-pong:b", &alive) && !holds("ws-failed", &alive));
        let seen = "101, pong, data in 1 frame, nothing more, the connection stays open";
        assert_eq!(crate::judge::seen(&alive), seen);
        // RFC 6455 section 7.1.7: the Close frame may be omitted
        assert!(holds("ws-failed:1002", &talk(b"", TalkEnd::Closed)));
        for faulty in [&b"\x8a\x81\0\0\0\0a"[..], b"\x8a\x7e\x00\x01a", b"\x0a\x00", b"\x83\x00"] {
            assert!(!holds("ws-sound", &talk(faulty, TalkEnd::Silent)), "{faulty:?}");
        }
    }
}
