use super::*;
use crate::http2::write::{frame, settings_ack};
use crate::replies::Replies;
use proptest::prelude::*;

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        protocol::hpack::literal(name.as_bytes(), value.as_bytes(), &mut out);
    }
    out
}

/// Describes everything parsed in one line, which must not depend on how the input is split.
fn describe(input: &[u8]) -> String {
    let line = |pieces: &[&[u8]]| {
        let mut replies = Replies::http2();
        pieces.iter().for_each(|piece| replies.take(piece));
        let mut out: Vec<String> = replies.interim.iter().map(|one| format!("({one})")).collect();
        let frames = &replies.frames.as_ref().unwrap().frames;
        out.extend(frames.iter().map(FrameSeen::to_string));
        for answer in &replies.responses {
            let whole = if answer.complete { "" } else { "…" };
            let Response { status, stream, body_len, .. } = answer;
            out.push(format!("{stream}: {status} {body_len}{whole}"));
        }
        out.extend(replies.junk.iter().map(|(why, _)| why.clone()));
        out.join(", ")
    };
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    let whole = line(&[input]);
    assert_eq!(line(&bytes), whole);
    whole
}

#[test]
fn responses_on_streams_are_parsed() {
    let settings = frame(SETTINGS, 0, 0, &[]);
    let ok = block(&[(":status", "200"), ("server", "x")]);
    let input = [
        settings.clone(),
        settings_ack(),
        frame(HEADERS, END_HEADERS, 1, &block(&[(":status", "103")])),
        frame(HEADERS, 0, 3, &ok[..4]),
        frame(CONTINUATION, END_HEADERS, 3, &ok[4..]),
        frame(HEADERS, END_HEADERS | PADDED, 1, &[&[2], ok.as_slice(), &[0, 0]].concat()),
        frame(DATA, 0, 3, b"hel"),
        frame(DATA, END_STREAM | PADDED, 1, b"\x03hi\0\0\0"),
        frame(DATA, 0, 3, b"lo"),
        frame(HEADERS, END_HEADERS | END_STREAM, 3, &block(&[("x-trailer", "1")])),
        frame(RST_STREAM, 0, 5, &[0, 0, 0, 7]),
        frame(PING, ACK, 0, &OCTETS),
        frame(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 11]),
    ];
    let text = describe(&input.concat());
    for part in [
        "(103), SETTINGS 0 0 0, SETTINGS 1 0 0",
        "RST_STREAM REFUSED_STREAM, PING 1 0 8, GOAWAY ENHANCE_YOUR_CALM, 3: 200 5, 1: 200 2",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn invalid_http2_is_junk() {
    let settings = frame(SETTINGS, 0, 0, &[]);
    for (after, expected) in [
        (frame(CONTINUATION, 4, 1, b"x"), "a CONTINUATION without a header block"),
        (frame(HEADERS, 4, 1, &[0x80]), "an undecodable header block: an index without an entry"),
        (frame(HEADERS, 4, 1, &block(&[("a", "b")])), "a response without a status"),
        (frame(DATA, PADDED, 1, &[9]), "a frame with more padding than payload"),
        (write::head(16_385, DATA, 0, 1).to_vec(), "a frame of 16385 bytes, more than we allow"),
    ] {
        assert!(describe(&[settings.clone(), after].concat()).ends_with(expected), "{expected}");
    }
    assert_eq!(describe(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "it is HTTP/1.x");
    assert_eq!(describe(&frame(PING, 0, 0, &OCTETS)), "it does not begin with SETTINGS");
}

#[test]
fn required_replies_are_returned_once() {
    let mut reader = Replies::http2();
    reader.take(&[frame(SETTINGS, 0, 0, &[]), frame(PING, 0, 0, b"12345678")].concat());
    let frames = reader.frames.as_mut().unwrap();
    assert_eq!(frames.take_replies(), [settings_ack(), frame(PING, ACK, 0, b"12345678")].concat());
    assert!(frames.take_replies().is_empty());
}

proptest! {
    #[test]
    fn arbitrary_frames_do_not_panic(kind in 0u8..11, flags in any::<u8>(), stream in 0u32..4,
        payload in prop::collection::vec(any::<u8>(), 0..60), rest in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut replies = Replies::http2();
        replies.take(&frame(SETTINGS, 0, 0, &[]));
        replies.take(&frame(kind, flags, stream, &payload));
        replies.take(&rest);
        replies.end();
    }
}

/// Data over QUIC, however it is split: a response, and the ends of streams and of the connection.
#[test]
fn stream_pieces_are_parsed() {
    use crate::http3::write;
    use conduit::streams::{PieceKind, TRANSPORT, put_code};
    let control = write::stream_bytes(3, &[&[0][..], &write::frame(4, &[])].concat(), false);
    let fields = write::frame(1, b"\0\0\xd9\x23x-a\x01b");
    let unknown = write::frame(0x4242, b"grease");
    let response = [fields, unknown, write::frame(0, b"he"), write::frame(0, b"llo")].concat();
    let mut bytes =
        [control, write::stream_bytes(0, &response, true), write::reset(4, 0x10e)].concat();
    bytes.extend(write::stop(8, 0x10b));
    for (code, last) in [
        (0x105, "CONNECTION_CLOSE H3_FRAME_UNEXPECTED"),
        (0x200, "CONNECTION_CLOSE QPACK_DECOMPRESSION_FAILED"),
        (TRANSPORT | 0xa, "CONNECTION_CLOSE PROTOCOL_VIOLATION"),
        (TRANSPORT | 0x178, "CONNECTION_CLOSE TLS no_application_protocol"),
        (TRANSPORT | 0x1ff, "CONNECTION_CLOSE QUIC 0x1ff"),
    ] {
        let mut all = bytes.clone();
        put_code(&mut all, PieceKind::Close, 0, Some(code));
        for size in [1, 5, all.len()] {
            let mut replies = Replies::http3(Some(16), TablePermit::default());
            all.chunks(size).for_each(|piece| replies.take(piece));
            assert_eq!(replies.junk, None, "pieces of {size} bytes");
            let [answer] = &replies.responses[..] else { panic!("{:?}", replies.responses) };
            assert_eq!((answer.status, answer.body_len, answer.complete), (200, 5, true));
            assert!(answer.head.starts_with(b"HTTP/3 200\r\n"));
            let frames = replies.frames.as_ref().unwrap();
            assert!(frames.is_http3() && frames.has_goaway() && frames.is_reset(4));
            let text: Vec<String> = frames.frames.iter().map(FrameSeen::to_string).collect();
            let ends = ["RESET_STREAM H3_MESSAGE_ERROR", "STOP_SENDING H3_REQUEST_REJECTED", last];
            assert_eq!(text[text.len() - 3..], ends, "{text:?}");
        }
    }
}

/// SETTINGS on a request stream are not a connection-level message from the server (RFC 9114
/// section 7.2.4).
#[test]
fn settings_on_a_request_stream_are_junk() {
    use crate::http3::write;
    let request = [write::frame(4, &[]), write::frame(1, b"\0\0\xd9")].concat();
    let input = write::stream_bytes(0, &request, true);
    for size in [1, input.len()] {
        let mut replies = Replies::http3(None, TablePermit::default());
        input.chunks(size).for_each(|piece| replies.take(piece));
        let (why, _) = replies.junk.unwrap();
        assert!(why.contains("H3_FRAME_UNEXPECTED"), "{why}");
        let frames = replies.frames.unwrap();
        assert!(!frames.has_settings() && frames.frames.is_empty(), "{:?}", frames.frames);
        assert!(replies.responses.is_empty());
    }
}

/// CANCEL_PUSH (RFC 9114 section 7.2.3) has the number of HTTP/2's RST_STREAM; unknown types may
/// have those of our markers.
#[test]
fn http3_frames_are_not_mistaken_for_others() {
    use crate::http3::write;
    let settings = write::frame(4, &[]);
    let others =
        [0x3, 0x70, 0x71, 0x72, 0x73, 0x1_0003].map(|kind| write::frame(kind, b"\x80\x01\x01\x0c"));
    let control =
        write::stream_bytes(3, &[&b"\0"[..], &settings, &others.concat()].concat(), false);
    let mut replies = Replies::http3(None, TablePermit::default());
    replies.take(&control);
    let frames = replies.frames.unwrap();
    assert_eq!((frames.resets(), frames.has_goaway(), replies.junk), (0, false, None));
    let kinds: Vec<u8> = frames.frames.iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [SETTINGS, 255, 255, 255, 255, 255, 255]);
    assert_eq!(datagrams::sums(&frames.frames), (0, 0));
}
