//! The cases of the Autobahn test suite as data, against both sides of a session, and in every
//! direction against tungstenite. Groups as in Autobahn|Testsuite 25.10.1.

use websocket::deflate::{Agreed, DeflateOffer};
use websocket::frame::{HeaderReader, Opcode, RSV1, write_frame};
use websocket::{Masking, Payload, Side, SocketEvent, SocketOptions, WebSocket, close};

/// A frame of the fuzzing side.
#[derive(Clone, Debug)]
struct Sent {
    fin: bool,
    rsv: u8,
    opcode: u8,
    payload: Vec<u8>,
}

fn frame(fin: bool, opcode: u8, payload: impl AsRef<[u8]>) -> Sent {
    Sent { fin, rsv: 0, opcode, payload: payload.as_ref().to_vec() }
}

fn text(payload: impl AsRef<[u8]>) -> Sent {
    frame(true, 1, payload)
}

fn closing(payload: impl AsRef<[u8]>) -> Sent {
    frame(true, 8, payload)
}

/// Expected reply of the side under test.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Pong(Vec<u8>),
    /// A close frame with this code.
    Close(Option<u16>),
}

struct Case {
    id: String,
    sent: Vec<Sent>,
    wanted: Vec<Reply>,
}

fn case(id: impl Into<String>, sent: Vec<Sent>, wanted: Vec<Reply>) -> Case {
    Case { id: id.into(), sent, wanted }
}

/// Runs an endpoint that echoes, as Autobahn demands, with the input split into pieces of `cut`
/// bytes; returns its output.
fn echo(role: Side, deflate: Option<Agreed>, input: &[u8], cut: usize) -> Vec<u8> {
    let mut options = match role {
        Side::Client => SocketOptions::client(Masking::Random(1)),
        Side::Server => SocketOptions::server(),
    };
    options.deflate = deflate;
    let mut session = WebSocket::new(&options);
    let mut out = Vec::new();
    'input: for piece in input.chunks(cut.max(1)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let Ok(received) = session.receive(rest, &mut out) else { break 'input };
            if let SocketEvent::Message { text, payload, .. } = &received.event {
                let message = session.payload(payload, rest).to_vec();
                session.send(*text, &message, &mut out);
            }
            rest = &rest[received.consumed..];
        }
    }
    out
}

fn encode(sent: &[Sent], masked: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, it) in sent.iter().enumerate() {
        let key = masked.then_some([at as u8, 0x55, 0xaa, 7]);
        write_frame(Opcode::from_bits(it.opcode), it.fin, it.rsv, key, &it.payload, &mut out);
    }
    out
}

/// Reads replies by the frame layer alone, so that the session does not judge itself.
fn decode(mut bytes: &[u8], masked: bool) -> Vec<Reply> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let header =
            HeaderReader::default().take(&mut bytes).expect("a frame").expect("whole frames");
        assert_eq!(header.mask.is_some(), masked, "masks by role");
        let (payload, rest) = bytes.split_at(header.length as usize);
        bytes = rest;
        let mut payload = payload.to_vec();
        if let Some(key) = header.mask {
            websocket::apply_mask(key, 0, &mut payload);
        }
        assert!(header.fin && header.rsv == 0);
        replies.push(match header.opcode {
            Opcode::Text => Reply::Text(payload),
            Opcode::Binary => Reply::Binary(payload),
            Opcode::Pong => Reply::Pong(payload),
            Opcode::Close => {
                Reply::Close(payload.get(..2).map(|code| u16::from_be_bytes([code[0], code[1]])))
            }
            other => panic!("unexpected {other:?}"),
        });
    }
    replies
}

/// Runs a case in both directions, whole, in chops, and byte by byte where that is quick.
fn check(case: &Case) {
    for role in [Side::Client, Side::Server] {
        let input = encode(&case.sent, role == Side::Server);
        let mut cuts = vec![usize::MAX, 997, 7];
        if input.len() < 5_000 {
            cuts.push(1);
        }
        for cut in cuts {
            let replies =
                decode(&echo(role, None, &input, cut.min(input.len())), role == Side::Client);
            assert_eq!(replies, case.wanted, "case {} as {role:?}, cut {cut}", case.id);
        }
    }
}

fn fails(code: u16) -> Vec<Reply> {
    vec![Reply::Close(Some(code))]
}

const PROTOCOL: u16 = close::PROTOCOL_ERROR;

#[test]
fn group_1_messages_of_every_length_are_echoed() {
    for (row, length) in [0, 125, 126, 127, 128, 65_535, 65_536].into_iter().enumerate() {
        let payload = vec![b'*'; length];
        check(&case(
            format!("1.1.{row}"),
            vec![text(&payload)],
            vec![Reply::Text(payload.clone())],
        ));
        let binary = vec![frame(true, 2, &payload)];
        check(&case(format!("1.2.{row}"), binary, vec![Reply::Binary(payload)]));
    }
}

#[test]
fn group_2_pings_are_answered_in_order_and_long_ones_refused() {
    for payload in [&b""[..], b"Hello", &[0, 0xff, 0xfe, 0xfd, 0xfc], &[0xfe; 125]] {
        check(&case("2.1", vec![frame(true, 9, payload)], vec![Reply::Pong(payload.to_vec())]));
    }
    check(&case("2.5", vec![frame(true, 9, [0xfe; 126])], fails(PROTOCOL)));
    check(&case("2.7", vec![frame(true, 10, "")], vec![]));
    let unsolicited = vec![frame(true, 10, "unsolicited"), frame(true, 9, "ping")];
    check(&case("2.9", unsolicited, vec![Reply::Pong(b"ping".to_vec())]));
    let ten: Vec<_> = (0..10).map(|n| frame(true, 9, format!("payload-{n}"))).collect();
    let pongs = (0..10).map(|n| Reply::Pong(format!("payload-{n}").into_bytes()));
    check(&case("2.10", ten, pongs.collect()));
}

#[test]
fn group_3_reserved_bits_fail_the_connection() {
    for rsv in 1..8 {
        let bad = Sent { rsv, ..text("Hello") };
        let wanted = [Reply::Text(b"one".to_vec()), Reply::Close(Some(PROTOCOL))];
        check(&case(format!("3.{rsv}"), vec![text("one"), bad, frame(true, 9, "")], wanted.into()));
        let ping = Sent { rsv, ..frame(true, 9, "x") };
        check(&case(format!("3.{rsv} ping"), vec![ping], fails(PROTOCOL)));
    }
}

#[test]
fn group_4_reserved_opcodes_fail_the_connection() {
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        let wanted = [Reply::Text(b"one".to_vec()), Reply::Close(Some(PROTOCOL))];
        let sent = vec![text("one"), frame(true, opcode, "x"), frame(true, 9, "")];
        check(&case(format!("4 {opcode}"), sent, wanted.into()));
    }
}

#[test]
fn group_5_fragments() {
    let whole = || Reply::Text(b"fragment1fragment2".to_vec());
    let first = || frame(false, 1, "fragment1");
    let last = || frame(true, 0, "fragment2");
    let ping = || frame(true, 9, "ping");
    let pong = || Reply::Pong(b"ping".to_vec());
    let bad = || fails(PROTOCOL);
    let table = [
        ("5.1", vec![frame(false, 9, "a"), frame(true, 0, "b")], bad()),
        ("5.2", vec![frame(false, 10, "a"), frame(true, 0, "b")], bad()),
        ("5.3", vec![first(), last()], vec![whole()]),
        ("5.6", vec![first(), ping(), last()], vec![pong(), whole()]),
        ("5.9", vec![frame(true, 0, "non-continuation"), text("Hello")], bad()),
        ("5.12", vec![frame(false, 0, "non-continuation"), text("Hello")], bad()),
        (
            "5.15",
            vec![first(), last(), frame(false, 0, "3"), text("x")],
            vec![whole(), bad().remove(0)],
        ),
        ("5.18", vec![first(), text("fragment2")], bad()),
        (
            "5.19",
            vec![first(), ping(), frame(false, 0, "x"), ping(), last()],
            vec![pong(), pong(), Reply::Text(b"fragment1xfragment2".to_vec())],
        ),
    ];
    for (id, sent, wanted) in table {
        check(&case(id, sent, wanted));
    }
}

#[test]
fn group_6_1_to_6_4_text_over_fragments() {
    let empty = [frame(false, 1, ""), frame(false, 0, ""), frame(true, 0, "")];
    check(&case("6.1.1", vec![text("")], vec![Reply::Text(vec![])]));
    check(&case("6.1.2", empty.to_vec(), vec![Reply::Text(vec![])]));
    let valid = "Hello-µ@ßöäüàá-UTF-8!!".as_bytes();
    for cut in 0..=valid.len() {
        let sent = vec![frame(false, 1, &valid[..cut]), frame(true, 0, &valid[cut..])];
        check(&case(format!("6.2 cut {cut}"), sent, vec![Reply::Text(valid.to_vec())]));
    }
    let single: Vec<_> = valid.iter().map(|byte| frame(false, 0, [*byte])).collect();
    let sent = [vec![frame(false, 1, "")], single, vec![frame(true, 0, "")]].concat();
    check(&case("6.2.3", sent, vec![Reply::Text(valid.to_vec())]));
    // the second fragment is wrong, and the last never comes
    let greek = "κόσμε".as_bytes();
    for wrong in [&[0xf4, 0x90, 0x80, 0x80][..], &[0xed, 0xa0], &[0xff]] {
        let sent = vec![frame(false, 1, greek), frame(false, 0, wrong)];
        check(&case("6.4", sent, fails(close::INVALID_PAYLOAD)));
    }
}

#[test]
fn group_6_5_to_6_23_passes_the_table_of_utf8() {
    let valid: [&[u8]; 12] = [
        "κόσμε".as_bytes(),
        b"\x00",
        b"\xc2\x80",
        b"\xe0\xa0\x80",
        b"\xf0\x90\x80\x80",
        b"\x7f",
        b"\xdf\xbf",
        b"\xef\xbf\xbf",
        b"\xf4\x8f\xbf\xbf",
        b"\xed\x9f\xbf",
        b"\xee\x80\x80",
        b"\xef\xbf\xbd",
    ];
    let mut cases: Vec<(Vec<u8>, bool)> = valid.iter().map(|it| (it.to_vec(), true)).collect();
    // 34 non-characters are valid
    for plane in 0..=0x10_u32 {
        for low in [0xfffe, 0xffff] {
            let one = char::from_u32(plane << 16 | low).unwrap();
            cases.push((one.to_string().into_bytes(), true));
        }
    }
    let kosme = "κόσμε".as_bytes();
    for cut in 1..kosme.len() {
        cases.push((kosme[..cut].to_vec(), std::str::from_utf8(&kosme[..cut]).is_ok()));
    }
    let invalid: [&[u8]; 28] = [
        b"\xf8\x88\x80\x80\x80",
        b"\xfc\x84\x80\x80\x80\x80",
        b"\xf7\xbf\xbf\xbf",
        b"\xfb\xbf\xbf\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\x80",
        b"\xbf",
        b"\x80\xbf\x80\xbf",
        b"\xc0 ",
        b"\xe0 ",
        b"\xf0 ",
        b"\xc0",
        b"\xe0\x80",
        b"\xf0\x80\x80",
        b"\xdf",
        b"\xef\xbf",
        b"\xf7\xbf\xbf",
        b"\xfe",
        b"\xff",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xf0\x8f\xbf\xbf",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xed\xa0\x80\xed\xb0\x80",
    ];
    cases.extend(invalid.iter().map(|it| (it.to_vec(), false)));
    for high in 0xa0..=0xbf {
        cases.push((vec![0xed, high, 0x80], false));
    }
    for (bytes, valid) in cases {
        let wanted = match valid {
            true => vec![Reply::Text(bytes.clone())],
            false => fails(close::INVALID_PAYLOAD),
        };
        check(&case(format!("6 {bytes:02x?}"), vec![text(&bytes)], wanted));
    }
}

#[test]
fn group_7_closes_as_expected() {
    let code = |code: u16| code.to_be_bytes().to_vec();
    let normal = || vec![Reply::Close(Some(1000))];
    for after in [closing(code(1000)), frame(true, 9, "ping"), text("late"), frame(true, 0, "x")] {
        check(&case("7.1", vec![closing(code(1000)), after], normal()));
    }
    let big = vec![b'*'; 256 << 10];
    let wanted = vec![Reply::Text(big.clone()), Reply::Close(Some(1000))];
    check(&case("7.1.6", vec![text(&big), closing(code(1000)), frame(true, 9, "")], wanted));
    check(&case("7.3.1", vec![closing("")], vec![Reply::Close(None)]));
    check(&case("7.3.2", vec![closing("a")], fails(PROTOCOL)));
    check(&case("7.3.4", vec![closing([&code(1000)[..], b"Hello World!"].concat())], normal()));
    check(&case("7.3.5", vec![closing([&code(1000)[..], &[b'*'; 123]].concat())], normal()));
    check(&case("7.3.6", vec![closing([&code(1000)[..], &[b'*'; 124]].concat())], fails(PROTOCOL)));
    let bad_reason = [&code(1000)[..], b"\xce\xba\xe1\xbd\xb9\xed\xa0\x80"].concat();
    check(&case("7.5.1", vec![closing(bad_reason)], fails(close::INVALID_PAYLOAD)));
    for good in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        check(&case("7.7", vec![closing(code(good))], vec![Reply::Close(Some(good))]));
    }
    for bad in [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535] {
        check(&case("7.9", vec![closing(code(bad))], fails(PROTOCOL)));
    }
}

#[test]
fn group_9_large_messages_fragments_and_round_trips() {
    for size in [64 << 10, 1 << 20, 16 << 20] {
        let payload: Vec<u8> = (0..size).map(|at| at as u8).collect();
        for role in [Side::Client, Side::Server] {
            let input = encode(&[frame(true, 2, &payload)], role == Side::Server);
            let replies = decode(&echo(role, None, &input, 65_536), role == Side::Client);
            assert!(replies == [Reply::Binary(payload.clone())], "9.2 {size} {role:?}");
        }
    }
    let payload = vec![b'*'; 1 << 20];
    for size in [64, 256, 4 << 10, 256 << 10] {
        let count = payload.len() / size;
        let pieces: Vec<_> = payload
            .chunks(size)
            .enumerate()
            .map(|(at, piece)| frame(at + 1 == count, if at == 0 { 1 } else { 0 }, piece))
            .collect();
        let input = encode(&pieces, true);
        let replies = decode(&echo(Side::Server, None, &input, 1 << 16), false);
        assert!(replies == [Reply::Text(payload.clone())], "9.3 {size}");
    }
    for length in [0, 16, 64, 256, 1024, 4096] {
        let many: Vec<_> = (0..1_000).map(|_| frame(true, 2, vec![7; length])).collect();
        let replies = decode(&echo(Side::Server, None, &encode(&many, true), 1 << 14), false);
        assert_eq!(replies.len(), 1_000, "9.7 {length}");
    }
}

#[test]
fn group_10_a_message_can_be_sent_in_frames() {
    let payload = vec![b'*'; 65_536];
    let (mut client, mut server) = pair(None);
    let mut wire = Vec::new();
    client.send_in_frames(true, &payload, 1_300, &mut wire);
    let received = server.receive(&wire, &mut Vec::new()).unwrap();
    let SocketEvent::Message { text: true, frames: 51, wire: bytes, payload: held } =
        received.event
    else {
        panic!("{received:?}")
    };
    assert_eq!((bytes as usize, received.consumed), (wire.len(), wire.len()));
    assert!(server.payload(&held, &wire) == payload);
}

fn pair(deflate: Option<Agreed>) -> (WebSocket, WebSocket) {
    let client = SocketOptions { deflate, ..SocketOptions::client(Masking::Random(3)) };
    let server = SocketOptions { deflate, ..SocketOptions::server() };
    (WebSocket::new(&client), WebSocket::new(&server))
}

fn carry(
    from: &mut WebSocket,
    to: &mut WebSocket,
    message: &[u8],
    frame: usize,
    cut: usize,
) -> usize {
    let mut wire = Vec::new();
    from.send_in_frames(true, message, frame, &mut wire);
    let mut got = None;
    for piece in wire.chunks(cut) {
        let mut rest = piece;
        while !rest.is_empty() {
            let received = to.receive(rest, &mut Vec::new()).expect("frames in order");
            if let SocketEvent::Message { payload, .. } = &received.event {
                got = Some(to.payload(payload, rest).to_vec());
            }
            rest = &rest[received.consumed..];
        }
    }
    assert!(got.as_deref() == Some(message), "{} bytes", message.len());
    wire.len()
}

#[test]
fn groups_12_and_13_compression_with_every_agreement() {
    let offers = [
        "permessage-deflate",
        "permessage-deflate; server_no_context_takeover",
        "permessage-deflate; client_no_context_takeover",
        "permessage-deflate; server_max_window_bits=9",
        "permessage-deflate; server_max_window_bits=15; client_max_window_bits=9",
        "permessage-deflate; client_max_window_bits=8",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=9; client_max_window_bits",
    ];
    let kinds: [fn(usize) -> Vec<u8>; 5] = [
        |n| vec![b'*'; n],
        |n| (0..n).map(|at| b'a' + (at * at % 26) as u8).collect(),
        |n| b"{\"id\":1234,\"name\":\"value\"},".iter().copied().cycle().take(n).collect(),
        |n| {
            (0..n as u64)
                .map(|at| 32 + (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as u8)
                .collect()
        },
        |n| "κόσμε".bytes().cycle().take(n - n % "κόσμε".len()).collect(),
    ];
    for offer in offers {
        let (_, agreed) = websocket::deflate::choose([offer]).unwrap();
        let (mut client, mut server) = pair(Some(agreed));
        for kind in kinds {
            for length in [0, 16, 64, 256, 1_024, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072] {
                let message = kind(length);
                for (frame, cut) in [(usize::MAX, 65_536), (256, 997)] {
                    carry(&mut client, &mut server, &message, frame, cut);
                    carry(&mut server, &mut client, &message, frame, cut);
                }
            }
        }
    }
    let (_, agreed) = DeflateOffer::default().accept().unwrap();
    let (mut client, mut server) = pair(Some(agreed));
    for round in 0..1_000 {
        carry(&mut client, &mut server, format!("message {}", round % 7).as_bytes(), 64, 1_000);
    }
}

#[test]
fn compression_rules_are_enforced() {
    let (_, agreed) = DeflateOffer::default().accept().unwrap();
    let refuse = |sent: &[Sent], code: u16| {
        for role in [Side::Client, Side::Server] {
            let input = encode(sent, role == Side::Server);
            let replies =
                decode(&echo(role, Some(agreed), &input, input.len()), role == Side::Client);
            assert_eq!(replies, fails(code), "{sent:?}");
        }
    };
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    refuse(&[Sent { rsv: RSV1, ..frame(true, 9, "x") }], PROTOCOL);
    let continued = Sent { rsv: RSV1, ..frame(true, 0, &hello[3..]) };
    refuse(&[Sent { rsv: RSV1, ..frame(false, 1, &hello[..3]) }, continued], PROTOCOL);
    refuse(&[Sent { rsv: 2, ..text(hello) }], PROTOCOL);
    refuse(&[Sent { rsv: RSV1, ..text([0xff; 20]) }], close::INVALID_PAYLOAD);
}

#[test]
fn masks_and_limits_are_enforced() {
    let mut out = Vec::new();
    let mut server = WebSocket::new(&SocketOptions::server());
    let failure = server.receive(&encode(&[text("x")], false), &mut out).unwrap_err();
    assert_eq!(failure.why, "an unmasked frame from a client");
    let mut client = WebSocket::new(&SocketOptions::client(Masking::Zero));
    let failure = client.receive(&encode(&[text("x")], true), &mut out).unwrap_err();
    assert_eq!(failure.why, "a masked frame from a server");
    let mut options = SocketOptions::client(Masking::Zero);
    (options.limits.message_max, options.limits.frames_max) = (10, 3);
    // announced and never sent: nothing is allocated
    let failure =
        WebSocket::new(&options).receive(&[0x82, 127, 0x7f, 0, 0, 0, 0, 0, 0, 0], &mut out);
    assert_eq!(failure.unwrap_err().code, close::TOO_BIG);
    let many: Vec<_> = (0..4).map(|at| frame(false, if at == 0 { 2 } else { 0 }, "")).collect();
    let failure = WebSocket::new(&options).receive(&encode(&many, false), &mut out);
    assert_eq!(failure.unwrap_err().why, "a message of more frames than the limit");
}

mod tungstenite_peer {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Cursor, Read, Write};
    use tungstenite::protocol::{Message, Role as TheirRole, WebSocket as TheirSocket};

    /// Input that was recorded, and output that is kept.
    struct Wire {
        input: Cursor<Vec<u8>>,
        output: Vec<u8>,
    }

    impl Read for Wire {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.input.read(buffer)? {
                0 => Err(std::io::ErrorKind::WouldBlock.into()),
                count => Ok(count),
            }
        }
    }

    impl Write for Wire {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.output.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn peer(role: TheirRole, input: Vec<u8>) -> TheirSocket<Wire> {
        let wire = Wire { input: Cursor::new(input), output: Vec::new() };
        TheirSocket::from_raw_socket(wire, role, None)
    }

    fn ours(bytes: &[u8], role: Side, cut: usize) -> (Vec<(bool, Vec<u8>)>, bool) {
        let options = match role {
            Side::Client => SocketOptions::client(Masking::Zero),
            Side::Server => SocketOptions::server(),
        };
        let mut session = WebSocket::new(&options);
        let mut messages = Vec::new();
        for piece in bytes.chunks(cut) {
            let mut rest = piece;
            while !rest.is_empty() {
                let Ok(received) = session.receive(rest, &mut Vec::new()) else {
                    return (messages, false);
                };
                if let SocketEvent::Message { text, payload, .. } = &received.event {
                    messages.push((*text, session.payload(payload, rest).to_vec()));
                }
                rest = &rest[received.consumed..];
            }
        }
        (messages, true)
    }

    fn theirs(bytes: Vec<u8>, role: TheirRole) -> (Vec<(bool, Vec<u8>)>, bool) {
        let mut socket = peer(role, bytes);
        let mut messages = Vec::new();
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => messages.push((true, text.as_bytes().to_vec())),
                Ok(Message::Binary(bytes)) => messages.push((false, bytes.to_vec())),
                Ok(_) => {}
                Err(tungstenite::Error::Io(_) | tungstenite::Error::ConnectionClosed) => {
                    return (messages, true);
                }
                Err(_) => return (messages, false),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn tungstenite_reads_our_frames(
            messages in proptest::collection::vec(("\\PC{0,200}", 1..40_usize), 0..6),
            client in any::<bool>(),
        ) {
            let options = match client {
                true => SocketOptions::client(Masking::Random(9)),
                false => SocketOptions::server(),
            };
            let mut session = WebSocket::new(&options);
            let mut wire = Vec::new();
            for (text, frame) in &messages {
                session.send_in_frames(true, text.as_bytes(), *frame, &mut wire);
                session.ping(b"between", &mut wire);
            }
            let role = if client { TheirRole::Server } else { TheirRole::Client };
            let wanted: Vec<_> =
                messages.iter().map(|(text, _)| (true, text.clone().into_bytes())).collect();
            prop_assert_eq!(theirs(wire, role), (wanted, true));
        }

        #[test]
        fn we_read_frames_of_tungstenite(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..6),
            client in any::<bool>(),
            cut in 1..50_usize,
        ) {
            let role = if client { TheirRole::Client } else { TheirRole::Server };
            let mut socket = peer(role, Vec::new());
            for message in &messages {
                socket.write(Message::Binary(message.clone().into())).unwrap();
            }
            socket.flush().unwrap();
            let wire = std::mem::take(&mut socket.get_mut().output);
            let role = if client { Side::Server } else { Side::Client };
            let wanted: Vec<_> = messages.into_iter().map(|message| (false, message)).collect();
            prop_assert_eq!(ours(&wire, role, cut), (wanted, true));
        }

        /// Frames drawn at random, most of them wrong somewhere: both accept the same messages.
        #[test]
        fn both_accept_and_refuse_the_same_frames(
            frames in proptest::collection::vec(
                (any::<bool>(), 0..11_u8, prop_oneof![9 => Just(0_u8), 1 => 0..8_u8],
                 proptest::collection::vec(prop_oneof![Just(b'a'), any::<u8>()], 0..8)),
                1..6,
            ),
            cut in 1..9_usize,
        ) {
            // a close frame ends their reading with other words than ours
            prop_assume!(frames.iter().all(|(_, opcode, ..)| *opcode != 8));
            let sent: Vec<_> = frames
                .into_iter()
                .map(|(fin, opcode, rsv, payload)| Sent { fin, rsv, opcode, payload })
                .collect();
            let wire = encode(&sent, true);
            let (mine, my_end) = ours(&wire, Side::Server, cut);
            let (their, their_end) = theirs(wire, TheirRole::Server);
            prop_assert_eq!(mine, their);
            prop_assert_eq!(my_end, their_end);
        }
    }
}

#[test]
fn no_input_panics_or_consumes_more_than_it_has() {
    let corpus = [
        &b"\x81\x05Hello"[..],
        b"\x89\x00\x88\x02\x03\xe8",
        b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00",
    ];
    for seed in corpus {
        for at in 0..seed.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = seed.to_vec();
                bytes[at] = value;
                let mut session = WebSocket::new(&SocketOptions::client(Masking::Zero));
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let Ok(received) = session.receive(rest, &mut Vec::new()) else { break };
                    assert!(received.consumed <= rest.len() && received.consumed > 0);
                    if let SocketEvent::Message { payload: Payload::Input(range), .. } =
                        received.event
                    {
                        assert!(range.end <= received.consumed);
                    }
                    rest = &rest[received.consumed..];
                }
            }
        }
    }
}
