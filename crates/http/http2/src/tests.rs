//! The session against libnghttp2's own server side, in memory.

mod server;

use super::*;
use server::Server;

fn request(message: &str) -> Request {
    Request::from_http1(message.as_bytes(), "http").unwrap()
}

fn get() -> Request {
    request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// Feeds all input; returns the events as text.
fn feed_all(session: &mut Session, input: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let rest = &input[at..];
        match session.feed(rest) {
            Ok(fed) => at += fed.consumed,
            Err(why) => {
                lines.push(format!("broken: {why}"));
                return lines;
            }
        }
        while let Some(gone) = session.take_gone() {
            let how = if gone.refused { "refused" } else { "gone" };
            let sender = if gone.by_peer { "peer" } else { "us" };
            lines.push(format!("{how} {} {} by {sender}", gone.place, code_name(gone.code)));
        }
        if let Some(part) = session.take_part() {
            let body = String::from_utf8_lossy(&rest[part.body.clone()]).into_owned();
            let done = if part.done { " done" } else { "" };
            lines.push(format!("part {} {body:?}{done}", part.place));
        }
    }
    lines
}

/// Submits a request; returns the output.
fn send_request(session: &mut Session, request: &Request, cookie: Option<&str>) -> Vec<u8> {
    let mut out = Vec::new();
    session.send_request(request, cookie, &mut out);
    out
}

/// Returns output of the session now.
fn sent(session: &mut Session) -> Vec<u8> {
    let mut out = Vec::new();
    session.drain(&mut out);
    out
}

/// As RFC 9113 section 6.8 requires: first the largest identifier, then the last one that counts.
#[test]
fn a_repeated_graceful_goaway_counts_once() {
    let (mut session, mut server) = asked(1);
    server.go_away(0x7fff_ffff, 0);
    server.go_away(1, 0);
    feed_all(&mut session, &server.drain());
    assert_eq!(session.take_facts().goaways, [(0, 1)].into());
}

#[test]
fn a_goaway_with_an_error_keeps_its_reason() {
    let (mut session, mut server) = asked(1);
    feed_all(&mut session, &server.drain());
    let goaway = b"\0\0\x16\x07\0\0\0\0\0\0\0\0\x01\0\0\0\x0btoo_many_pings";
    feed_all(&mut session, goaway);
    let facts = session.take_facts();
    assert_eq!(facts.goaways, [(11, 1)].into());
    assert_eq!(facts.goaway_reasons, [("too_many_pings".to_owned(), 1)].into());
}

#[test]
fn a_ping_is_acknowledged() {
    let (mut session, mut server) = asked(1);
    let mut out = Vec::new();
    session.ping(&mut out);
    assert_eq!((out.len(), out[3], session.unanswered_pings()), (17, 6, 1));
    server.feed(&out);
    feed_all(&mut session, &server.drain());
    assert_eq!(session.unanswered_pings(), 0);
    let facts = session.take_facts();
    assert_eq!((facts.pings_sent, facts.pings_answered, facts.pings), (1, 1, 0));
}

/// Returns a session that has sent `count` requests, and a server that has read them.
fn asked(count: usize) -> (Session, Server) {
    let mut session =
        Session::new(&SessionSettings { keeps_heads: true, ..SessionSettings::default() });
    let mut bytes = sent(&mut session);
    (0..count).for_each(|_| session.send_request(&get(), None, &mut bytes));
    let mut server = Server::new(100);
    server.feed(&bytes);
    (session, server)
}

#[test]
fn preface_settings_and_request_leave_in_one_flight() {
    let mut session = Session::new(&SessionSettings::default());
    let bytes = send_request(&mut session, &get(), Some("a=b"));
    assert!(bytes.starts_with(PREFACE));
    let mut server = Server::new(7);
    server.feed(&bytes);
    assert_eq!(
        server.requests(),
        [(1, ":method GET, :scheme http, :authority h, :path /a, cookie a=b".to_owned())]
    );
    assert_eq!(session.capacity(), STREAMS_AT_FIRST);
    feed_all(&mut session, &server.drain());
    assert_eq!(session.capacity(), 7);
}

#[test]
fn responses_may_arrive_in_any_order() {
    let (mut session, mut server) = asked(3);
    server.respond(5, "200", b"third");
    server.respond(1, "404", b"");
    let events = feed_all(&mut session, &server.drain());
    assert_eq!(events, ["part 2 \"\"", "part 0 \"\" done", "part 1 \"third\" done"]);
    assert_eq!((session.facts().status, session.facts().body_bytes), (200, 5));
    assert_eq!(session.head(), b"HTTP/2 200\r\n\r\n");
    server.respond(3, "200", b"second");
    let events = feed_all(&mut session, &server.drain());
    assert_eq!(events, ["part 0 \"\"", "part 0 \"second\" done"]);
    let facts = session.facts();
    assert_eq!((facts.status, facts.body_bytes, facts.framing_bytes), (200, 6, 9));
    assert!(facts.head_bytes >= 10 && session.outstanding() == 0);
}

#[test]
fn input_may_be_cut_anywhere() {
    let (mut session, mut server) = asked(2);
    server.respond(1, "200", b"hello");
    server.respond(3, "200", b"world");
    let bytes = server.drain();
    let lines: Vec<String> =
        bytes.chunks(1).flat_map(|byte| feed_all(&mut session, byte)).collect();
    assert_eq!(lines.iter().filter(|line| line.ends_with("done")).count(), 2, "{lines:?}");
    assert_eq!((session.facts().body_bytes, session.facts().framing_bytes), (5, 9));
}

#[test]
fn a_reset_ends_only_its_stream() {
    let (mut session, mut server) = asked(3);
    server.reset(3, 2);
    server.reset(1, 7);
    let events = feed_all(&mut session, &server.drain());
    assert_eq!(events, ["gone 1 INTERNAL_ERROR by peer", "refused 0 REFUSED_STREAM by peer"]);
    server.respond(5, "200", b"x");
    assert_eq!(feed_all(&mut session, &server.drain()).last().unwrap(), "part 0 \"x\" done");
    let facts = session.take_facts();
    assert_eq!((facts.refused, facts.resets), (1, [(2, 1), (7, 1)].into()));
}

#[test]
fn goaway_refuses_unprocessed_streams() {
    let (mut session, mut server) = asked(3);
    server.go_away(1, 0);
    let events = feed_all(&mut session, &server.drain());
    assert_eq!(events, ["refused 1 REFUSED_STREAM by peer", "refused 1 REFUSED_STREAM by peer"]);
    assert!(session.is_going_away() && session.capacity() == 0);
    server.respond(1, "200", b"last");
    assert_eq!(feed_all(&mut session, &server.drain()).last().unwrap(), "part 0 \"last\" done");
}

#[test]
fn a_withdrawn_stream_is_reset_and_its_response_ignored() {
    let (mut session, mut server) = asked(2);
    session.withdraw(0);
    server.respond(1, "200", b"late");
    server.respond(3, "200", b"due");
    let late = server.drain();
    server.feed(&sent(&mut session));
    assert_eq!(server.resets(), [(1, 8)]);
    let events = feed_all(&mut session, &late);
    assert_eq!(events, ["part 0 \"\"", "part 0 \"due\" done"]);
}

#[test]
fn fields_longer_than_a_frame_leave_whole() {
    let mut session = Session::new(&SessionSettings::default());
    let long = "v".repeat(40_000);
    let message = format!("GET /long HTTP/1.1\r\nHost: h\r\nX-Long: {long}\r\n\r\n");
    // nothing except the call itself holds the request
    let mut bytes = send_request(&mut session, &request(&message), None);
    assert!(bytes.len() > 2 * FRAME_AT_FIRST as usize - 10_000, "{}", bytes.len());
    bytes.extend(send_request(&mut session, &get(), None));
    let mut server = Server::new(100);
    server.feed(&bytes);
    let requests = server.requests();
    assert!(requests[0].1.ends_with(&format!(":path /long, x-long {long}")));
    assert_eq!(requests[1].1, ":method GET, :scheme http, :authority h, :path /a");
    assert!(sent(&mut session).is_empty());
}

#[test]
fn a_request_leaves_when_a_stream_is_free() {
    let mut session = Session::new(&SessionSettings::default());
    let mut server = Server::new(1);
    server.feed(&send_request(&mut session, &get(), None));
    feed_all(&mut session, &server.drain());
    server.feed(&sent(&mut session));
    // the stream holds the only reference to the first one's text
    let held = request("GET /held HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(send_request(&mut session, &held, Some("a=b")).is_empty());
    drop(held);
    assert!(send_request(&mut session, &get(), None).is_empty());
    assert!(sent(&mut session).is_empty() && session.take_late().is_none());
    assert_eq!([0, 1, 2].map(|place| session.waits(place)), [false, true, true]);
    server.respond(1, "200", b"");
    feed_all(&mut session, &server.drain());
    let bytes = sent(&mut session);
    server.feed(&bytes);
    let (id, fields) = server.requests().pop().unwrap();
    assert_eq!(
        (id, fields.as_str()),
        (3, ":method GET, :scheme http, :authority h, :path /held, cookie a=b")
    );
    assert_eq!([0, 1].map(|place| session.waits(place)), [false, true]);
    let late = Late { place: 0, bytes: bytes.len() as u64, begins: true };
    assert_eq!((session.take_late(), session.take_late()), (Some(late), None));
}

#[test]
fn a_body_is_sent_as_the_window_allows() {
    let mut session = Session::new(&SessionSettings::default());
    let length = 100_000;
    let message = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{}",
        "b".repeat(length)
    );
    let bytes = send_request(&mut session, &request(&message), None);
    let mut server = Server::new(100);
    server.feed(&bytes);
    assert_eq!(server.received(1), 65_535, "the window that the standard begins with");
    feed_all(&mut session, &server.drain());
    server.feed(&sent(&mut session));
    assert_eq!(server.received(1), length);
    let late: u64 = std::iter::from_fn(|| session.take_late()).map(|late| late.bytes).sum();
    assert!(late as usize > length - 65_535 && late as usize <= length - 65_535 + 9 * 4, "{late}");
}

#[test]
fn a_response_before_the_request_is_whole_ends_both() {
    let mut session = Session::new(&SessionSettings::default());
    let message = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000\r\n\r\n{}",
        "b".repeat(90_000)
    );
    let bytes = send_request(&mut session, &request(&message), None);
    let mut server = Server::new(100).with_closed_windows();
    server.feed(&bytes);
    server.respond(1, "413", b"");
    assert_eq!(feed_all(&mut session, &server.drain()), ["part 0 \"\" done"]);
    server.feed(&sent(&mut session));
    assert_eq!(server.resets(), [(1, 0)]);
}

#[test]
fn fields_beyond_the_bound_reset_the_stream_alone() {
    let mut session =
        Session::new(&SessionSettings { header_list_max: 200, ..SessionSettings::default() });
    let mut server = Server::new(100);
    server.feed(&send_request(&mut session, &get(), None));
    server.feed(&send_request(&mut session, &get(), None));
    server.respond_with(1, "200", &[("x", &"y".repeat(500))], b"");
    server.respond(3, "200", b"");
    let bytes = server.drain();
    let mut events = feed_all(&mut session, &bytes);
    sent(&mut session);
    while let Some(gone) = session.take_gone() {
        events.push(format!("gone {} {}", gone.place, code_name(gone.code)));
        assert!(!gone.by_peer);
    }
    assert!(events.contains(&"gone 0 INTERNAL_ERROR".to_owned()), "{events:?}");
    assert!(events.iter().any(|line| line.ends_with("done")), "{events:?}");
    assert_eq!(session.violation(), None);
}

#[test]
fn interim_responses_and_trailers_are_counted_separately() {
    let (mut session, mut server) = asked(1);
    server.interim(1, "103");
    server.respond_with_trailers(1, b"body", &[("server-timing", "db;dur=1")]);
    let events = feed_all(&mut session, &server.drain());
    assert!(events.last().unwrap().ends_with("done"), "{events:?}");
    let facts = session.facts();
    assert_eq!((facts.status, facts.interim, facts.body_bytes), (200, 1, 4));
    assert!(facts.timed && facts.trailer_bytes > 9 && facts.framing_bytes > facts.trailer_bytes);
    assert_eq!(session.timings(), b"db;dur=1,");
}

/// As over HTTP/1 and HTTP/3, these are not times of this call's response.
#[test]
fn times_in_an_interim_response_are_not_the_response_s() {
    let (mut session, mut server) = asked(1);
    server.interim_with(1, "103", &[("server-timing", "early;dur=7")]);
    server.respond(1, "200", b"");
    let events = feed_all(&mut session, &server.drain());
    assert!(events.last().unwrap().ends_with("done"), "{events:?}");
    assert_eq!((session.facts().interim, session.facts().timed), (1, false));
    assert_eq!(session.timings(), b"");
}

#[test]
fn a_server_of_http1_is_reported() {
    let mut session = Session::new(&SessionSettings::default());
    send_request(&mut session, &get(), None);
    let why = session.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert!(why.contains("speaks HTTP/1.x"), "{why}");
}

#[test]
fn violations_cite_their_section() {
    for (bytes, expected, section) in [
        // DATA on stream 0, WINDOW_UPDATE of 0, SETTINGS of 5 bytes, CONTINUATION of nothing
        (&[0, 0, 1, 0, 0, 0, 0, 0, 0, b'x'][..], "PROTOCOL_ERROR: DATA: stream_id == 0", "6.1"),
        (&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0], "PROTOCOL_ERROR: WINDOW_UPDATE", "6.9"),
        (&[0, 0, 5, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5], "FRAME_SIZE_ERROR", "4.2"),
        // SETTINGS_INITIAL_WINDOW_SIZE of 2^31
        (
            &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x80, 0, 0, 0],
            "FLOW_CONTROL_ERROR: SETTINGS: too large",
            "6.5.2",
        ),
        (&[0, 0, 1, 9, 4, 0, 0, 0, 1, 0x88], "PROTOCOL_ERROR: CONTINUATION: unexpected", "6.10"),
        // HEADERS on a stream of the server's, and DATA before them
        (&[0, 0, 1, 1, 5, 0, 0, 0, 2, 0x88], "PROTOCOL_ERROR: request HEADERS", "5.1.1"),
        (&[0, 0, 1, 0, 1, 0, 0, 0, 1, b'x'], "PROTOCOL_ERROR: DATA: stream not opened", "8.1"),
    ] {
        let (mut session, mut server) = asked(1);
        let input = [&server.drain()[..], bytes].concat();
        feed_all(&mut session, &input);
        sent(&mut session);
        let why = session.violation().unwrap();
        let ends = format!("(RFC 9113 section {section})");
        assert!(why.starts_with(expected) && why.ends_with(&ends), "{why}");
    }
}

/// RFC 9113 section 8.1.1: a malformed response is a stream error.
#[test]
fn a_malformed_response_resets_its_stream_alone() {
    // HEADERS with :status 200 and content-length 6
    let six = [0, 0, 5, 1, 4, 0, 0, 0, 1, 0x88, 0x0f, 0x0d, 1, b'6'];
    let data = |flags: u8, content: &[u8]| {
        [&[0, 0, content.len() as u8, 0, flags, 0, 0, 0, 1], content].concat()
    };
    for (input, what) in [
        ([&six[..], &data(1, b"hello")].concat(), "less content than stated"),
        ([&six[..], &data(0, b"hel"), &data(1, b"lo")].concat(), "less, in two frames"),
        ([&six[..], &data(1, b"hello, you")].concat(), "more content"),
        ([&six[..], &data(0, b"hello, you"), &data(1, b"")].concat(), "more, and an end"),
        (vec![0, 0, 6, 1, 5, 0, 0, 0, 1, 0x88, 0, 1, b'A', 1, b'x'], "a name in upper case"),
        (vec![0, 0, 5, 1, 5, 0, 0, 0, 1, 0, 1, b'a', 1, b'x'], "no status"),
        (
            [&[0, 0, 5, 1, 4, 0, 0, 0, 1, 0, 1, b'a', 1, b'x'][..], &data(1, b"x")].concat(),
            "no status, content",
        ),
        (vec![0, 0, 5, 1, 5, 0, 0, 0, 1, 0x88, 0x0f, 0x0d, 1, b'6'], "no content at all"),
    ] {
        for step in [1, 5, input.len()] {
            let (mut session, mut server) = asked(2);
            feed_all(&mut session, &server.drain());
            let mut lines = Vec::new();
            for piece in input.chunks(step) {
                lines.extend(feed_all(&mut session, piece));
                server.feed(&sent(&mut session));
                while let Some(gone) = session.take_gone() {
                    assert!(!gone.by_peer && !gone.refused, "{what}");
                    lines.push(format!("gone {} {}", gone.place, code_name(gone.code)));
                }
            }
            assert_eq!(lines.last().unwrap(), "gone 0 PROTOCOL_ERROR", "{what}");
            assert_eq!((session.violation(), session.outstanding()), (None, 1), "{what}");
            server.respond(3, "200", b"good");
            let rest = feed_all(&mut session, &server.drain());
            assert_eq!(rest.last().unwrap(), "part 0 \"good\" done", "{what}");
        }
    }
}

/// Returns the types of the frames in `bytes`, with the stream and payload of those with a
/// priority.
fn priorities(mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while let [a, b, c, kind, _, _, _, _, stream, rest @ ..] = bytes {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let (payload, after) = rest.split_at(length);
        lines.push(match kind {
            1 => format!("HEADERS {stream}"),
            4 => format!("SETTINGS {}", payload.chunks(6).any(|it| it == [0, 9, 0, 0, 0, 1])),
            0x10 => {
                format!("PRIORITY_UPDATE {} {}", payload[3], String::from_utf8_lossy(&payload[4..]))
            }
            _ => format!("{kind}"),
        });
        bytes = after;
    }
    lines
}

/// RFC 9218 sections 2.1 and 7.1: both sides announce support, and the frame names the stream
/// before its request opens it.
#[test]
fn a_priority_frame_needs_both_sides() {
    let urgent = request("GET /a HTTP/1.1\r\nHost: h\r\nPriority: u=1, i\r\n\r\n");
    let takes_part = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1];
    for (prioritises, server_too) in [(true, true), (true, false), (false, true)] {
        let mut session =
            Session::new(&SessionSettings { prioritises, ..SessionSettings::default() });
        let opening = sent(&mut session);
        assert_eq!(priorities(&opening[PREFACE.len()..])[0], format!("SETTINGS {prioritises}"));
        let settings = if server_too { &takes_part[..] } else { &[0, 0, 0, 4, 0, 0, 0, 0, 0] };
        assert_eq!(feed_all(&mut session, settings), Vec::<String>::new());
        sent(&mut session);
        let both = prioritises && server_too;
        let frames = priorities(&send_request(&mut session, &urgent, None));
        let frame = both.then(|| "PRIORITY_UPDATE 1 u=1, i".to_owned());
        assert_eq!(frames, frame.into_iter().chain(["HEADERS 1".to_owned()]).collect::<Vec<_>>());
        // a request without a priority has the standard's default
        assert_eq!(priorities(&send_request(&mut session, &get(), None)), ["HEADERS 3"]);
    }
}

/// Lengths of the DATA frames in the output, and whether each ends its stream.
fn data_frames(mut bytes: &[u8]) -> Vec<(usize, bool)> {
    let mut all = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<9>() {
        let length = usize::from(header[1]) << 8 | usize::from(header[2]);
        if header[3] == 0 {
            all.push((length, header[4] & 1 == 1));
        }
        bytes = &rest[length..];
    }
    all
}

#[test]
fn messages_of_a_paced_request_leave_one_by_one() {
    let body = b"\0\0\0\0\x02ab\0\0\0\0\0\0\0\0\0\x01c";
    let head = format!("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut paced = Request::from_http1(&[head.as_bytes(), body].concat(), "http").unwrap();
    paced.pace();
    let mut session = Session::new(&SessionSettings::default());
    sent(&mut session);
    assert_eq!(data_frames(&send_request(&mut session, &paced, None)), [(7, false)]);
    assert!(sent(&mut session).is_empty());
    let mut out = Vec::new();
    let second = session.release(0, &mut out);
    assert_eq!(second, Some(ReleasedMessage { held_back: false, last: false }));
    assert_eq!(data_frames(&out), [(5, false)]);
    out.clear();
    let third = session.release(0, &mut out);
    assert_eq!(third, Some(ReleasedMessage { held_back: false, last: true }));
    assert_eq!(data_frames(&out), [(6, true)]);
    assert_eq!((session.release(0, &mut out), session.release(1, &mut out)), (None, None));
}

#[test]
fn an_open_request_grows_until_it_ends() {
    let head = "POST /a HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut open = request(head);
    open.keep_open();
    let mut session = Session::new(&SessionSettings::default());
    sent(&mut session);
    assert!(data_frames(&send_request(&mut session, &open, None)).is_empty());
    let mut extend = |bytes: &[u8], ends| {
        let mut out = Vec::new();
        assert!(session.extend(0, bytes, ends, &mut out));
        data_frames(&out)
    };
    assert_eq!(extend(b"abc", false), [(3, false)]);
    assert_eq!(extend(b"de", false), [(2, false)]);
    assert_eq!(extend(b"", true), [(0, true)]);
    // without a window from the server, the queue has a limit
    session.send_request(&open, None, &mut Vec::new());
    let many = vec![7; 16 << 20];
    assert!(session.extend(1, &many, false, &mut Vec::new()));
    assert!(session.extend(1, b"", false, &mut Vec::new()));
    assert!(!session.extend(1, &many, false, &mut Vec::new()));
}

/// The response is complete without the rest of the request (RFC 9113 section 8.1).
#[test]
fn a_response_ends_an_open_request() {
    let mut open = request("POST /a HTTP/1.1\r\nHost: h\r\n\r\n");
    open.keep_open();
    let mut session = Session::new(&SessionSettings::default());
    sent(&mut session);
    send_request(&mut session, &open, None);
    // SETTINGS; HEADERS with :status 200 and END_STREAM on stream 1
    let input = [&[0, 0, 0, 4, 0, 0, 0, 0, 0][..], &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88]].concat();
    assert_eq!(feed_all(&mut session, &input), ["part 0 \"\" done"]);
    let out = sent(&mut session);
    // RST_STREAM with NO_ERROR
    let reset = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    assert!(out.windows(reset.len()).any(|at| at == reset), "{out:?}");
    assert_eq!(session.outstanding(), 0);
}

/// Without a window from the server, further messages are held back until it grants one.
#[test]
fn released_messages_wait_for_the_window() {
    let message = [&[0, 0, 1, 0, 0][..], &[7; 1 << 16]].concat();
    let body = [&message[..], &message].concat();
    let head = format!("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut paced = Request::from_http1(&[head.as_bytes(), &body].concat(), "http").unwrap();
    paced.pace();
    let mut session = Session::new(&SessionSettings::default());
    sent(&mut session);
    let sum = |bytes: &[u8]| data_frames(bytes).iter().map(|(length, _)| length).sum::<usize>();
    assert_eq!(sum(&send_request(&mut session, &paced, None)), 65_535);
    let mut out = Vec::new();
    let released = session.release(0, &mut out);
    assert_eq!(released, Some(ReleasedMessage { held_back: true, last: true }));
    assert_eq!(sum(&out), 0);
    let grant = |stream: u8| [&[0, 0, 4, 8, 0, 0, 0, 0, stream][..], &[0, 2, 0, 0]].concat();
    // the server's preface, and windows for the stream and the connection
    let input = [&[0, 0, 0, 4, 0, 0, 0, 0, 0][..], &grant(0), &grant(1)].concat();
    feed_all(&mut session, &input);
    let rest = sent(&mut session);
    assert_eq!(65_535 + sum(&rest), body.len());
    assert!(data_frames(&rest).last().is_some_and(|(_, ends)| *ends));
}
