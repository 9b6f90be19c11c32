//! Readable form of pieces of streams.

use super::packets;
use conduit::streams::{self, ACTIONS, HEAD, Head, PACKET_OPTIONS, PieceKind, SHAKE_OPTIONS};
use sample::http3_code_name;

/// Describes the pieces one after the other, each with its payload as formatted by `shown`; `None`
/// if these are not pieces, or are incomplete.
pub fn describe_pieces(mut bytes: &[u8], shown: impl Fn(&[u8]) -> String) -> Option<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let head = bytes.first_chunk::<HEAD>()?;
        let reserved = head[2] != 0 || head[3] != 0 || head[1] > 1;
        let head = Head::from_bytes(head).filter(|_| !reserved)?;
        let end = HEAD.checked_add(head.length as usize)?;
        let payload = bytes.get(HEAD..end)?;
        bytes = &bytes[end..];
        lines.extend(piece(head, payload, &shown));
    }
    Some(lines.join(" | "))
}

fn piece(head: Head, payload: &[u8], shown: &impl Fn(&[u8]) -> String) -> Option<String> {
    let stream = head.stream;
    let coded = |what: &str| {
        let code = streams::code(payload).unwrap_or(0) & !streams::TRANSPORT;
        format!("{what} {}", http3_code_name(code))
    };
    let end = if head.last { ", end of stream" } else { "" };
    Some(match head.kind {
        PieceKind::Data => format!("stream {stream}{end}: {}", shown(payload)),
        PieceKind::Reset => coded(&format!("stream {stream}: RESET_STREAM")),
        PieceKind::Stop => coded(&format!("stream {stream}: STOP_SENDING")),
        PieceKind::Close => coded("CONNECTION_CLOSE"),
        PieceKind::Datagram => format!("datagram: {}", shown(payload)),
        PieceKind::Initial => format!("Initial of {} bytes", size(payload)),
        // messages of our own QUIC driver are not shown
        PieceKind::Opened
        | PieceKind::Allowed
        | PieceKind::Sent
        | PieceKind::Went
        | PieceKind::Frame => return None,
        PieceKind::Packet => {
            let (odd, frames) = described(payload);
            format!("packet{}: {}", packets::options(odd, &PACKET_OPTIONS), shown(frames))
        }
        PieceKind::Limit => {
            let row = streams::code(payload).unwrap_or(u64::MAX);
            format!("stream {stream}: {}", packets::limit_name(row))
        }
        PieceKind::Port => "another local port".to_owned(),
        PieceKind::Shake => {
            let (options, parameters) = described(payload);
            let with = if parameters.is_empty() { "" } else { ", transport parameters: " };
            let options = packets::options(options, &SHAKE_OPTIONS);
            format!("handshake{options}{with}{}", shown(parameters))
        }
        PieceKind::Hello => {
            let end = streams::code(payload).unwrap_or(0);
            format!("ClientHello from byte {stream} to before {end}")
        }
        PieceKind::Action => {
            let row = streams::code(payload).and_then(|row| usize::try_from(row).ok());
            let name = row.and_then(|row| ACTIONS.get(row)).copied().unwrap_or("nothing");
            name.to_owned()
        }
    })
}

/// Splits off two bytes of options.
fn described(payload: &[u8]) -> (u16, &[u8]) {
    let options = payload.first_chunk::<2>().map_or(0, |bits| u16::from_be_bytes(*bits));
    (options, payload.get(2..).unwrap_or_default())
}

fn size(payload: &[u8]) -> u16 {
    payload.first_chunk::<2>().map_or(0, |size| u16::from_be_bytes(*size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http3::write;

    #[test]
    fn only_stream_pieces_are_described() {
        let plain = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let bytes = [
            write::stream_bytes(2, &[0, 4, 0], false),
            write::reset(0, 0x10c),
            write::stream_bytes(4, b"a", true),
        ];
        let bytes = bytes.concat();
        assert_eq!(
            describe_pieces(&bytes, plain).unwrap(),
            "stream 2: \\x00\\x04\\x00 | stream 0: RESET_STREAM H3_REQUEST_CANCELLED | stream 4, \
            end of stream: a"
        );
        assert_eq!(describe_pieces(&bytes[..bytes.len() - 1], plain), None, "cut");
        assert_eq!(describe_pieces(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", plain), None);
        assert_eq!(describe_pieces(b"\0\0\0\0", plain), None);
    }
}
