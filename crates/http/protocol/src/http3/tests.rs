//! The session against a server that the test plays: pieces in, outcomes out.

use super::*;
use crate::http3::{frame, qpack, varint};
use conduit::streams::{PieceKind, put_code, put_data};

const CONTROL: u64 = 3;

fn get() -> Coded {
    let fields: [(&[u8], &[u8]); 4] =
        [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"h"), (b":path", b"/")];
    Coded::new(fields.into_iter(), None)
}

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = qpack::PREFIX.to_vec();
    for (name, value) in fields {
        qpack::put_field(&mut out, name.as_bytes(), value.as_bytes());
    }
    out
}

fn framed(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put_head(&mut out, kind, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    framed(frame::HEADERS, &section(fields))
}

fn ok() -> Vec<u8> {
    head(&[(":status", "200")])
}

fn data(content: &[u8]) -> Vec<u8> {
    framed(frame::DATA, content)
}

fn piece(stream: u64, bytes: &[u8], last: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_data(&mut out, stream, bytes, last);
    out
}

fn coded(kind: PieceKind, stream: u64, code: Option<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    put_code(&mut out, kind, stream, code);
    out
}

/// Returns a valid start of a control stream.
fn settled() -> Vec<u8> {
    piece(CONTROL, &[vec![0], framed(frame::SETTINGS, &[])].concat(), false)
}

fn session(requests: usize) -> Session {
    let mut session =
        Session::new(&SessionSettings { keeps_heads: true, ..SessionSettings::default() });
    let mut out = Vec::new();
    session.start(&mut out);
    (0..requests).for_each(|_| session.send_request(&get(), None, &mut out));
    session
}

/// Describes the meaning of the input line by line; the last line is a violation, if there is one.
fn describe(session: &mut Session, input: &[u8]) -> Vec<String> {
    let (mut lines, mut out, mut at) = (Vec::new(), Vec::new(), 0);
    while at < input.len() {
        let fed = match session.feed(&input[at..], &mut out) {
            Ok(fed) => fed,
            Err(violation) => {
                lines.push(violation.to_string());
                return lines;
            }
        };
        while let Some(gone) = session.take_gone() {
            let GoneStream { place, code, refused, by_peer } = gone;
            lines.push(format!("{place} gone {code:#x} refused {refused} by peer {by_peer}"));
        }
        if let Some(Part { place, body, done }) = session.take_part() {
            let content = String::from_utf8_lossy(&input[at..][body]).into_owned();
            if done {
                lines.push(format!("{place} {content:?} done {}", session.facts().status));
            } else if !content.is_empty() {
                lines.push(format!("{place} {content:?}"));
            }
        }
        at += fed.consumed;
    }
    lines
}

#[test]
fn a_tunnel_ends_when_both_sides_have_ended() {
    let mut session = session(0);
    assert_eq!(session.accepts_tunnels(), None);
    let settings = [vec![0], framed(frame::SETTINGS, &[6, 9, 8, 1])].concat();
    assert!(describe(&mut session, &piece(CONTROL, &settings, false)).is_empty());
    assert_eq!(session.accepts_tunnels(), Some(true));
    let mut out = Vec::new();
    let ids = [0, 1].map(|_| session.open_tunnel(&get(), &mut out));
    assert_eq!((ids, session.outstanding()), ([0, 4], 2));
    // the server first, in the piece of its last bytes
    let lines = describe(&mut session, &piece(0, &[ok(), data(b"bye")].concat(), true));
    assert_eq!(lines, ["0 \"bye\""]);
    assert!(session.is_ended_by_peer(0) && session.outstanding() == 2);
    out.clear();
    session.end_tunnel(0, &mut out);
    session.end_tunnel(0, &mut out);
    assert_eq!(out, piece(0, &[], true));
    assert!(session.take_gone().is_some() && session.outstanding() == 1);
    // our side first
    out.clear();
    session.push(4, b"hi", &mut out);
    session.end_tunnel(4, &mut out);
    assert_eq!(out, [piece(4, &data(b"hi"), false), piece(4, &[], true)].concat());
    let lines = describe(&mut session, &piece(4, &ok(), true));
    assert_eq!((&lines[..], session.outstanding()), (&["0 \"\" done 200".to_owned()][..], 0));
}

#[test]
fn a_response_is_its_fields_and_its_content() {
    let mut session = session(1);
    let fields = head(&[(":status", "404"), ("server", "x"), ("server-timing", "db;dur=5")]);
    let trailers = head(&[("x-sum", "1")]);
    let bytes = [fields.clone(), data(b"hel"), data(b"lo"), trailers.clone()].concat();
    let lines = describe(&mut session, &piece(0, &bytes, true));
    assert_eq!(lines, ["0 \"hel\"", "0 \"lo\"", "0 \"\" done 404"]);
    let facts = session.facts();
    assert_eq!((facts.body_bytes, facts.head_bytes), (5, fields.len() as u64));
    assert_eq!(facts.trailer_bytes, trailers.len() as u64);
    assert_eq!(facts.framing_bytes, 4 + trailers.len() as u64);
    assert!(facts.timed && session.timings() == b"db;dur=5,");
    let text = String::from_utf8_lossy(session.head());
    assert_eq!(text, "HTTP/3 404\r\nserver: x\r\nserver-timing: db;dur=5\r\n\r\n");
    assert_eq!(session.outstanding(), 0);
}

/// Only the times are kept of trailers.
#[test]
fn times_in_trailers_are_the_response_s() {
    let mut session = session(1);
    let early = head(&[(":status", "103"), ("server-timing", "early;dur=7")]);
    let fields = head(&[(":status", "200"), ("server-timing", "db;dur=5")]);
    let trailers =
        head(&[("x-sum", "1"), ("server-timing", "total;dur=9"), ("content-length", "7")]);
    let bytes = [early, fields, data(b"hello"), trailers].concat();
    let lines = describe(&mut session, &piece(0, &bytes, true));
    assert_eq!(lines, ["0 \"hello\"", "0 \"\" done 200"]);
    assert!(session.facts().timed);
    assert_eq!(session.timings(), b"db;dur=5,total;dur=9,");
    assert_eq!(session.head(), b"HTTP/3 200\r\nserver-timing: db;dur=5\r\n\r\n");
}

/// The splits of the input do not change its meaning.
#[test]
fn bytes_parse_at_every_cut() {
    let bytes = [ok(), data(b"hello"), framed(0x21, b"unknown")].concat();
    let input = [settled(), piece(0, &bytes[..4], false), piece(0, &bytes[4..], true)].concat();
    for size in 1..input.len() {
        let (mut session, mut content) = (session(1), Vec::new());
        let mut done = false;
        for chunk in input.chunks(size) {
            let mut at = 0;
            while at < chunk.len() {
                let fed = session.feed(&chunk[at..], &mut Vec::new()).expect("a sound server");
                if let Some(part) = session.take_part() {
                    content.extend_from_slice(&chunk[at..][part.body]);
                    done |= part.done;
                }
                at += fed.consumed;
            }
        }
        assert!(done && content == b"hello", "pieces of {size} bytes: {content:?}");
    }
}

#[test]
fn responses_may_arrive_in_any_order() {
    let mut session = session(3);
    let input = [
        piece(8, &[ok(), data(b"c")].concat(), false),
        piece(4, &[ok(), data(b"b")].concat(), true),
        piece(8, &data(b"C"), true),
        piece(0, &ok(), true),
    ];
    let lines = describe(&mut session, &input.concat());
    assert_eq!(lines, ["2 \"c\"", "1 \"b\" done 200", "1 \"C\" done 200", "0 \"\" done 200"]);
}

#[test]
fn interim_responses_are_counted_and_forgotten() {
    let mut session = session(1);
    let early = head(&[(":status", "103"), ("content-length", "9"), ("link", "</a>")]);
    let lines = describe(&mut session, &piece(0, &[early, ok(), data(b"x")].concat(), true));
    assert_eq!(lines, ["0 \"x\" done 200"]);
    assert_eq!(session.facts().interim, 1);
    assert_eq!(session.head(), b"HTTP/3 200\r\n\r\n");
}

/// RFC 9114 section 4.1.2: a malformed response fails alone, and the connection continues.
#[test]
fn malformed_responses_fail_alone() {
    for (name, bytes) in [
        ("no status", head(&[("a", "b")])),
        ("status twice", head(&[(":status", "200"), (":status", "200")])),
        ("a request's field", head(&[(":status", "200"), (":path", "/")])),
        ("status after a field", head(&[("a", "b"), (":status", "200")])),
        ("status of letters", head(&[(":status", "2xx")])),
        ("upper case", head(&[(":status", "200"), ("Server", "x")])),
        ("line end in a value", head(&[(":status", "200"), ("a", "b\r\nc: d")])),
        ("a connection's field", head(&[(":status", "200"), ("transfer-encoding", "chunked")])),
        (
            "two lengths",
            head(&[(":status", "200"), ("content-length", "1"), ("content-length", "2")]),
        ),
        ("too little", [head(&[(":status", "200"), ("content-length", "2")]), data(b"x")].concat()),
        ("too much", [head(&[(":status", "200"), ("content-length", "0")]), data(b"x")].concat()),
        ("nothing", Vec::new()),
        ("interim alone", head(&[(":status", "100")])),
    ] {
        let mut session = session(2);
        let lines = describe(&mut session, &piece(0, &bytes, true));
        let last = lines.last().expect("an outcome");
        assert!(last.starts_with("0 gone 0x10e refused false by peer false"), "{name}: {lines:?}");
        let lines = describe(&mut session, &piece(4, &ok(), true));
        assert_eq!(lines, ["0 \"\" done 200"], "{name}: the other stream goes on");
    }
}

#[test]
fn a_list_of_fields_is_bounded() {
    let mut session = session(1);
    let fields = vec![("x", "v"); 4_000];
    let all: Vec<(&str, &str)> = [(":status", "200")].into_iter().chain(fields).collect();
    let lines = describe(&mut session, &piece(0, &head(&all), true));
    assert_eq!(lines, ["0 gone 0x107 refused false by peer false"]);
}

/// Violations that end the connection, with the section that they violate.
#[test]
fn violations_are_reported() {
    let control = |bytes: Vec<u8>| piece(CONTROL, &[vec![0], bytes].concat(), false);
    let settings = framed(frame::SETTINGS, &[]);
    for (input, code, section) in [
        (piece(0, &data(b"x"), false), "H3_FRAME_UNEXPECTED", "4.1"),
        (
            piece(0, &[ok(), head(&[("a", "b")]), data(b"x")].concat(), false),
            "H3_FRAME_UNEXPECTED",
            "4.1",
        ),
        (piece(0, &framed(frame::SETTINGS, &[]), false), "H3_FRAME_UNEXPECTED", "7.2"),
        (piece(0, &framed(0x6, &[]), false), "H3_FRAME_UNEXPECTED", "7.2.8"),
        (piece(0, &framed(frame::PUSH_PROMISE, &[0]), false), "H3_ID_ERROR", "7.2.5"),
        (piece(0, &ok()[..2], true), "H3_FRAME_ERROR", "7.1"),
        (
            piece(0, &framed(frame::HEADERS, &[1, 0]), false),
            "QPACK_DECOMPRESSION_FAILED",
            "RFC 9204",
        ),
        (piece(1, b"x", false), "H3_STREAM_CREATION_ERROR", "6.1"),
        (piece(CONTROL, &[1], false), "H3_ID_ERROR", "6.2.2"),
        (control(framed(frame::GOAWAY, &[0])), "H3_MISSING_SETTINGS", "6.2.1"),
        (control([settings.clone(), settings.clone()].concat()), "H3_FRAME_UNEXPECTED", "7.2"),
        (control(framed(frame::SETTINGS, &[2, 0])), "H3_SETTINGS_ERROR", "7.2.4"),
        (control(framed(frame::SETTINGS, &[6, 0, 6, 0])), "H3_SETTINGS_ERROR", "7.2.4"),
        (control(framed(frame::SETTINGS, &[6])), "H3_FRAME_ERROR", "7.2.4"),
        (
            control([settings.clone(), framed(frame::DATA, &[])].concat()),
            "H3_FRAME_UNEXPECTED",
            "7.2",
        ),
        (control([settings.clone(), framed(frame::GOAWAY, &[1])].concat()), "H3_ID_ERROR", "5.2"),
        (
            control([settings.clone(), framed(frame::GOAWAY, &[0, 0])].concat()),
            "H3_FRAME_ERROR",
            "7.1",
        ),
        ([settled(), piece(7, &[0], false)].concat(), "H3_STREAM_CREATION_ERROR", "6.2.1"),
        ([settled(), piece(CONTROL, &[], true)].concat(), "H3_CLOSED_CRITICAL_STREAM", "6.2.1"),
        (
            [settled(), coded(PieceKind::Reset, CONTROL, Some(0))].concat(),
            "H3_CLOSED_CRITICAL_STREAM",
            "6.2.1",
        ),
        (coded(PieceKind::Stop, 2, Some(0)), "H3_CLOSED_CRITICAL_STREAM", "6.2.1"),
        (piece(7, &[2, 0x3f], false), "QPACK_ENCODER_STREAM_ERROR", "RFC 9204 section 4.3"),
    ] {
        let lines = describe(&mut session(1), &input);
        let last = lines.last().cloned().unwrap_or_default();
        assert!(last.starts_with(code) && last.contains(section), "{code} {section}: {lines:?}");
    }
}

#[test]
fn goaway_returns_unprocessed_requests() {
    let mut session = session(3);
    assert!(session.is_open());
    let mut id = Vec::new();
    varint::put(&mut id, 4);
    let goaway = piece(CONTROL, &framed(frame::GOAWAY, &id), false);
    let lines = describe(&mut session, &[settled(), goaway].concat());
    assert_eq!(
        lines,
        ["1 gone 0x10b refused true by peer true", "1 gone 0x10b refused true by peer true"]
    );
    assert!(!session.is_open() && session.is_going_away() && session.outstanding() == 1);
    // a graceful shutdown sends it twice (RFC 9114 section 5.2)
    describe(&mut session, &piece(CONTROL, &framed(frame::GOAWAY, &id), false));
    assert_eq!(describe(&mut session, &piece(0, &ok(), true)), ["0 \"\" done 200"]);
    let facts = session.take_facts();
    assert_eq!((facts.goaways, facts.refused), (1, 2));
}

#[test]
fn resets_are_refusals_or_failures_by_their_code() {
    let mut session = session(2);
    let input = [coded(PieceKind::Reset, 4, Some(0x10b)), coded(PieceKind::Reset, 0, Some(0x102))];
    let lines = describe(&mut session, &input.concat());
    let expected =
        ["1 gone 0x10b refused true by peer true", "0 gone 0x102 refused false by peer true"];
    assert_eq!(lines, expected);
    assert_eq!(session.take_facts().resets, [(0x102, 1), (0x10b, 1)].into());
}

/// A server that has sent its response does not want the rest of the request (RFC 9114 section
/// 4.1).
#[test]
fn a_stop_without_error_is_not_a_failure() {
    let mut session = session(1);
    let input = [coded(PieceKind::Stop, 0, Some(code::NO_ERROR)), piece(0, &ok(), true)];
    assert_eq!(describe(&mut session, &input.concat()), ["0 \"\" done 200"]);
    assert!(session.take_facts().resets.is_empty());
}

#[test]
fn data_for_an_abandoned_stream_is_ignored() {
    let mut session = session(2);
    let mut out = Vec::new();
    session.withdraw(0, &mut out);
    let expected = [
        coded(PieceKind::Reset, 0, Some(code::REQUEST_CANCELLED)),
        coded(PieceKind::Stop, 0, Some(code::REQUEST_CANCELLED)),
    ];
    assert_eq!(out, expected.concat());
    let input = [piece(0, b"whatever", true), piece(4, &ok(), true)];
    assert_eq!(describe(&mut session, &input.concat()), ["0 \"\" done 200"]);
}

#[test]
fn streams_that_had_to_wait_are_named_once() {
    let mut session = session(2);
    let input = [coded(PieceKind::Allowed, 0, Some(1)), coded(PieceKind::Opened, 4, None)];
    describe(&mut session, &input[0]);
    assert_eq!([0, 1, 2].map(|place| session.waits(place)), [false, true, false]);
    describe(&mut session, &input[1]);
    assert_eq!([0, 1].map(|place| session.waits(place)), [false, false]);
    assert_eq!((session.take_opened(), session.take_opened()), (Some(1), None));
    let facts = session.take_facts();
    assert_eq!((facts.streams_max, facts.waited), (Some(1), 1));
}

/// A request's bytes are the same on every connection; a cookie is appended to its fields.
#[test]
fn a_request_is_coded_once() {
    let fields: [(&[u8], &[u8]); 2] = [(b":method", b"POST"), (b":path", b"/")];
    let request = Coded::new(fields.into_iter(), Some(b"body".as_slice().into()));
    let mut out = Vec::new();
    assert_eq!(request.put(None, &mut out), (17, 4));
    assert_eq!(out, [1, 4, 0, 0, 0xd4, 0xc1, 0, 4, b'b', b'o', b'd', b'y']);
    out.clear();
    assert_eq!(request.put(Some("a=b"), &mut out), (17 + 9, 9));
    assert_eq!(out[..6], [1, 9, 0, 0, 0xd4, 0xc1]);
    assert_eq!(out[6..10], [0x55, 3, b'a', b'=']);
}

#[test]
fn the_length_in_a_head_response_is_not_its_content() {
    let fields: [(&[u8], &[u8]); 1] = [(b":method", b"HEAD")];
    let mut session = Session::new(&SessionSettings::default());
    session.send_request(&Coded::new(fields.into_iter(), None), None, &mut Vec::new());
    let bytes = head(&[(":status", "200"), ("content-length", "1000")]);
    assert_eq!(describe(&mut session, &piece(0, &bytes, true)), ["0 \"\" done 200"]);
}
