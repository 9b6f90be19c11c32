use super::*;

/// Result of an input: every finished response, then the final state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Read {
    responses: Vec<(ResponseFacts, Vec<u8>)>,
    /// Facts and body of the response that is not done.
    open: (ResponseFacts, Vec<u8>),
    error: Option<ResponseError>,
    /// Bytes not consumed.
    rest: usize,
}

fn read_in_pieces(asked: Asked, limits: Limits, pieces: &[&[u8]], responses_max: usize) -> Read {
    let (mut reader, mut cache) = (ResponseReader::with_limits(false, limits), HeadCache::new());
    let mut read = Read { responses: Vec::new(), open: Default::default(), error: None, rest: 0 };
    let mut body = Vec::new();
    reader.start(asked);
    for piece in pieces {
        let mut input = *piece;
        while !input.is_empty() && read.responses.len() < responses_max {
            let advance = match reader.advance(&mut cache, input) {
                Ok(advance) => advance,
                Err(error) => {
                    return Read { open: (reader.facts(), body), error: Some(error), ..read };
                }
            };
            body.extend_from_slice(&input[advance.body.clone()]);
            input = &input[advance.consumed..];
            if advance.done {
                read.responses.push((reader.facts(), std::mem::take(&mut body)));
                reader.start(asked);
            } else {
                assert!(advance.consumed > 0, "stuck before {:?}", input.escape_ascii());
            }
        }
        read.rest += input.len();
    }
    read.open = (reader.facts(), body);
    read
}

/// Reads whole, byte by byte, and cut in two at every place; all must agree.
fn read_limited(asked: Asked, limits: Limits, input: &[u8], responses_max: usize) -> Read {
    let whole = read_in_pieces(asked, limits, &[input], responses_max);
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(read_in_pieces(asked, limits, &bytes, responses_max), whole, "byte by byte");
    for cut in (1..input.len()).take(600) {
        let (one, two) = input.split_at(cut);
        let cut_read = read_in_pieces(asked, limits, &[one, two], responses_max);
        assert_eq!(cut_read, whole, "cut at {cut} of {:?}", input.escape_ascii().to_string());
    }
    whole
}

/// Reads one complete response and nothing after it.
fn response(asked: Asked, input: &[u8]) -> (ResponseFacts, Vec<u8>) {
    let mut read = read_limited(asked, Limits::default(), input, 1);
    assert_eq!((read.error, read.rest), (None, 0), "{}", input.escape_ascii());
    assert_eq!(read.responses.len(), 1, "not done: {}", input.escape_ascii());
    let (facts, body) = read.responses.remove(0);
    let on_the_wire = facts.head_bytes + facts.body_bytes + facts.framing_bytes;
    assert_eq!(on_the_wire, input.len() as u64, "every byte is counted once");
    assert_eq!(facts.body_bytes, body.len() as u64);
    (facts, body)
}

/// Reads a response that only the end of the connection ends.
fn until_close(input: &[u8]) -> (ResponseFacts, Vec<u8>) {
    let read = read_limited(Asked::Ordinary, Limits::default(), input, 1);
    assert_eq!((read.error, read.responses.len(), read.rest), (None, 0, 0));
    let (mut reader, mut cache) = (ResponseReader::new(false), HeadCache::new());
    reader.start(Asked::Ordinary);
    reader.advance(&mut cache, input).unwrap();
    assert_eq!(reader.end_of_input(), Ok(()));
    assert_eq!(reader.facts(), read.open.0);
    assert!(!reader.facts().persistent);
    read.open
}

fn error(input: &[u8]) -> ResponseError {
    let read = read_limited(Asked::Ordinary, Limits::default(), input, 1);
    read.error.unwrap_or_else(|| panic!("accepted: {}", input.escape_ascii()))
}

fn bad_framing(input: &[u8], why: &str) {
    match error(input) {
        ResponseError::BadFraming(text) => assert!(text.contains(why), "{text}"),
        other => panic!("{other:?} for {}", input.escape_ascii()),
    }
}

fn with_fields(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}").into_bytes()
}

mod framing {
    use super::*;

    #[test]
    fn a_length_ends_the_body() {
        let (facts, body) =
            response(Asked::Ordinary, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        let wanted = ResponseFacts {
            status: 200,
            minor_version: 1,
            persistent: true,
            framing: Framing::Length,
            head_bytes: 38,
            body_bytes: 5,
            framing_bytes: 0,
            trailer_bytes: 0,
            interim: 0,
            timed: false,
            sets_cookies: false,
        };
        assert_eq!((facts, &*body), (wanted, &b"hello"[..]));
        let (facts, _) = response(Asked::Ordinary, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(facts.framing, Framing::Length);
    }

    #[test]
    fn a_field_that_sets_a_cookie_is_announced() {
        for (field, sets) in [("SET-Cookie: a=b", true), ("Cookie: a=b", false), ("X: y", false)] {
            let text = format!("HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: 0\r\n\r\n");
            // also where a head like it is known
            for _ in 0..3 {
                let (facts, _) = response(Asked::Ordinary, text.as_bytes());
                assert_eq!(facts.sets_cookies, sets, "{field}");
            }
        }
    }

    #[test]
    fn trailers_are_counted_with_the_empty_line_behind_them() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (trailers, bytes) in [("\r\n", 2), ("X-Trail: 1\r\n\r\n", 14), ("A: b\n\n", 6)] {
            let input = format!("{head}2\r\nab\r\n0\r\n{trailers}");
            let (facts, _) = response(Asked::Ordinary, input.as_bytes());
            assert_eq!(facts.trailer_bytes, bytes, "{trailers:?}");
            assert_eq!(facts.framing_bytes, 3 + 2 + 3 + bytes);
        }
    }

    #[test]
    fn bytes_after_a_response_are_left_for_the_next() {
        let one = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
        let two = b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n";
        let three = b"HTTP/1.1 204 No Content\r\n\r\n";
        let all = [&one[..], two, three, one].concat();
        let read = read_limited(Asked::Ordinary, Limits::default(), &all, 9);
        let seen: Vec<_> =
            read.responses.iter().map(|(facts, body)| (facts.status, body.as_slice())).collect();
        assert_eq!(seen, [(200, &b"a"[..]), (404, b"b"), (204, b""), (200, b"a")]);
        let first = read_limited(Asked::Ordinary, Limits::default(), &all, 1);
        assert_eq!(first.rest, all.len() - one.len());
    }

    #[test]
    fn responses_without_a_body_by_rule() {
        for (asked, head) in [
            (Asked::Head, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
            (Asked::Head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (Asked::Head, "HTTP/1.1 200 OK\r\n\r\n"),
            (Asked::Head, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
            (Asked::Ordinary, "HTTP/1.1 204 No Content\r\n\r\n"),
            (Asked::Ordinary, "HTTP/1.1 204 No\r\nContent-Length: 7\r\n\r\n"),
            (Asked::Ordinary, "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"),
            (Asked::Ordinary, "HTTP/1.1 304 Not Modified\r\n\r\n"),
        ] {
            let (facts, _) = response(asked, head.as_bytes());
            assert_eq!((facts.framing, facts.persistent), (Framing::None, true), "{head}");
        }
    }

    #[test]
    fn a_tunnel_begins_where_the_head_ends() {
        for status in [200, 204, 299] {
            let head = format!("HTTP/1.1 {status} OK\r\nContent-Length: 9\r\n\r\n");
            let (facts, _) = response(Asked::Connect, head.as_bytes());
            assert_eq!((facts.framing, facts.persistent), (Framing::None, false));
        }
        let refused = b"HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno";
        let (facts, body) = response(Asked::Connect, refused);
        assert_eq!((facts.framing, facts.persistent, &*body), (Framing::Length, true, &b"no"[..]));
    }

    #[test]
    fn without_any_framing_the_connections_end_is_the_end() {
        let (facts, body) = until_close(b"HTTP/1.1 200 OK\r\n\r\nall that comes");
        assert_eq!((facts.framing, &*body), (Framing::UntilClose, &b"all that comes"[..]));
        until_close(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nx");
        until_close(b"HTTP/1.1 200 OK\r\n\r\n");
    }

    #[test]
    fn transfer_encoding_overrides_length_and_ends_the_connection() {
        let input =
            with_fields("Content-Length: 99\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n");
        let (facts, _) = response(Asked::Ordinary, &input);
        assert_eq!((facts.framing, facts.persistent), (Framing::Chunked, false), "RFC 9112 §6.1");
        let input = with_fields("Transfer-Encoding: chunked\r\nContent-Length: x\r\n", "0\r\n\r\n");
        assert!(!response(Asked::Ordinary, &input).0.persistent);
        let old = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        assert!(!response(Asked::Ordinary, old).0.persistent);
    }

    #[test]
    fn the_last_transfer_coding_decides() {
        for chunked in [
            "chunked",
            "CHUNKED",
            "gzip, chunked",
            "gzip,\r\n chunked",
            "identity, chunked",
            ",chunked,",
        ] {
            let input =
                with_fields(&format!("Transfer-Encoding: {chunked}\r\n"), "1\r\nx\r\n0\r\n\r\n");
            assert_eq!(response(Asked::Ordinary, &input).0.framing, Framing::Chunked, "{chunked}");
        }
        let two =
            with_fields("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n");
        assert_eq!(response(Asked::Ordinary, &two).0.framing, Framing::Chunked);
        for other in ["gzip", "chunked, gzip", "chunked, chunked", "chunked;q=1", "x", "xchunked"] {
            let input =
                with_fields(&format!("Transfer-Encoding: {other}\r\nContent-Length: 1\r\n"), "xy");
            assert_eq!(until_close(&input).0.framing, Framing::UntilClose, "{other}");
        }
        for none in ["identity", "", ","] {
            let fields = format!("Transfer-Encoding: {none}\r\nContent-Length: 1\r\n");
            let (facts, _) = response(Asked::Ordinary, &with_fields(&fields, "x"));
            assert_eq!((facts.framing, facts.persistent), (Framing::Length, true), "{none}");
        }
    }

    #[test]
    fn equal_lengths_are_valid_and_different_ones_invalid() {
        for same in [
            "Content-Length: 2\r\nContent-Length: 2\r\n",
            "Content-Length: 2, 2\r\n",
            "Content-Length: 2,\r\n 02\r\nCONTENT-LENGTH : 2\r\n",
            "Content-Length:2\r\n",
            "Content-Length: \t 2 \t\r\n",
        ] {
            assert_eq!(response(Asked::Ordinary, &with_fields(same, "ab")).1, b"ab", "{same}");
        }
        for differ in ["Content-Length: 2\r\nContent-Length: 3\r\n", "Content-Length: 2, 3\r\n"] {
            bad_framing(&with_fields(differ, "ab"), "twice");
        }
        for no_number in ["-1", "+1", "1x", "0x1", "1 1", "1.0", "18446744073709551616", "\"1\""] {
            bad_framing(
                &with_fields(&format!("Content-Length: {no_number}\r\n"), "a"),
                "not a number",
            );
        }
        bad_framing(&with_fields("Content-Length:\r\n", ""), "empty");
        bad_framing(
            &with_fields("Content-Length: x\r\nContent-Length: 1\r\n", "a"),
            "not a number",
        );
    }

    #[test]
    fn the_largest_length_is_read_without_overflow() {
        let input = with_fields("Content-Length: 18446744073709551615\r\n", "abc");
        let read = read_limited(Asked::Ordinary, Limits::default(), &input, 1);
        assert_eq!((read.error, read.open.0.body_bytes), (None, 3));
    }
}

mod persistence {
    use super::*;

    #[test]
    fn version_and_connection_field_decide() {
        for (minor, fields, persistent) in [
            (1, "", true),
            (1, "Connection: keep-alive\r\n", true),
            (1, "Connection: close\r\n", false),
            (1, "connection: CLOSE\r\n", false),
            (1, "Connection: upgrade, close\r\n", false),
            (1, "Connection: upgrade\r\nConnection:\r\n close\r\n", false),
            (1, "Connection: close, keep-alive\r\n", false),
            (1, "Connection: closed\r\n", true),
            (1, "X-Connection: close\r\n", true),
            (0, "", false),
            (0, "Connection: keep-alive\r\n", true),
            (0, "Connection: Keep-Alive, x\r\n", true),
            (0, "Connection: keep-alive, close\r\n", false),
            (0, "Keep-Alive: timeout=5\r\n", false),
        ] {
            let input = format!("HTTP/1.{minor} 200 OK\r\n{fields}Content-Length: 1\r\n\r\nx");
            let (facts, _) = response(Asked::Ordinary, input.as_bytes());
            assert_eq!(facts.persistent, persistent, "{input}");
            assert_eq!(facts.minor_version, minor);
        }
    }
}

mod heads {
    use super::*;

    #[test]
    fn interim_responses_are_skipped_and_counted() {
        let input = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 5\r\n\r\n\
            HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        let (facts, body) = response(Asked::Ordinary, input);
        assert_eq!((facts.status, facts.interim, &*body), (200, 2, &b"x"[..]));
    }

    #[test]
    fn switching_protocols_is_final() {
        let (facts, _) =
            response(Asked::Ordinary, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
        assert_eq!((facts.framing, facts.persistent, facts.interim), (Framing::None, false, 0));
    }

    #[test]
    fn interim_responses_have_a_bound() {
        let continues = |count| {
            [&b"HTTP/1.1 100 C\r\n\r\n".repeat(count)[..], b"HTTP/1.1 204 N\r\n\r\n"].concat()
        };
        let limits = Limits { interim_max: 3, ..Limits::default() };
        let read = read_limited(Asked::Ordinary, limits, &continues(3), 1);
        assert_eq!(read.responses[0].0.interim, 3);
        let read = read_limited(Asked::Ordinary, limits, &continues(4), 1);
        assert_eq!(read.error, Some(ResponseError::BadFraming("too many interim (1xx) responses")));
    }

    #[test]
    fn heads_have_a_bound_to_the_byte() {
        let input = with_fields("Content-Length: 1\r\nX: yyyyyyyyyy\r\n", "z");
        let head = input.len() - 1;
        let exact = Limits { head_max: head, ..Limits::default() };
        assert_eq!(read_limited(Asked::Ordinary, exact, &input, 1).responses.len(), 1);
        let below = Limits { head_max: head - 1, ..Limits::default() };
        let read = read_limited(Asked::Ordinary, below, &input, 1);
        assert_eq!(read.error, Some(ResponseError::HeadTooLarge));
        let endless = [b"HTTP/1.1 200 ".to_vec(), vec![b'a'; 200]].concat();
        let read = read_limited(Asked::Ordinary, below, &endless, 1);
        assert_eq!(read.error, Some(ResponseError::HeadTooLarge));
    }

    #[test]
    fn fields_have_a_bound() {
        let input = with_fields(&"A: b\r\n".repeat(300), "");
        assert_eq!(error(&input), ResponseError::HeadTooLarge);
        let input = with_fields(&format!("{}Content-Length: 0\r\n", "A: b\r\n".repeat(200)), "");
        response(Asked::Ordinary, &input);
    }

    #[test]
    fn sloppy_heads_are_tolerated() {
        for input in [
            "HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\nx",
            "\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            "\r\n\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1  200 OK\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 200 caf\u{e9}\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nX-Folded: a\r\n  b\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\nx",
        ] {
            let (facts, body) = response(Asked::Ordinary, input.as_bytes());
            assert_eq!((facts.status, &*body), (200, &b"x"[..]), "{input:?}");
        }
    }

    #[test]
    fn unknown_statuses_are_responses() {
        for status in [199, 299, 555, 600, 999] {
            let input = format!("HTTP/1.1 {status} ?\r\nContent-Length: 0\r\n\r\n");
            if status == 199 {
                let read = read_limited(Asked::Ordinary, Limits::default(), input.as_bytes(), 1);
                assert_eq!(read.open.0.interim, 1);
            } else {
                assert_eq!(response(Asked::Ordinary, input.as_bytes()).0.status, status);
            }
        }
    }

    #[test]
    fn empty_lines_before_the_response_have_a_bound() {
        let usual = b"HTTP/1.1 204 N\r\n\r\n";
        let (facts, _) = response(Asked::Ordinary, &[&b"\r\n".repeat(32)[..], usual].concat());
        assert_eq!(facts.head_bytes, 64 + usual.len() as u64);
        assert_eq!(error(&b"\r\n".repeat(33)), ResponseError::NotHttp);
        let lines = b"\r\n".repeat(32);
        let each = [&lines[..], b"HTTP/1.1 100 C\r\n\r\n", &lines, usual].concat();
        assert_eq!(response(Asked::Ordinary, &each).0.interim, 1, "the bound is for each head");
    }

    #[test]
    fn broken_heads_have_a_reason() {
        bad_framing(b"HTTP/1.1 abc OK\r\n\r\n", "status line");
        bad_framing(b"HTTP/1.1 20\r\n\r\n", "status line");
        bad_framing(&with_fields("no colon\r\n", ""), "name of a header field");
        bad_framing(&with_fields("X: a\0b\r\n", ""), "value of a header field");
        bad_framing(b"HTTP/1.1 200 OK\rX: y\r\n\r\n", "");
    }

    #[test]
    fn another_version_is_another_protocol() {
        for line in
            ["HTTP/2.0 200 OK", "HTTP/0.9 200 OK", "HTTP/1.12 200 OK", "HTTP/ 200 OK", "HTTP/1 200"]
        {
            assert_eq!(
                error(format!("{line}\r\n\r\n").as_bytes()),
                ResponseError::NotHttp,
                "{line}"
            );
        }
    }

    #[test]
    fn non_http_is_detected_at_its_first_wrong_byte() {
        for input in
            ["<html>", "SSH-2.0-x\r\n", "h", "HTX", "HTTP1", "\0", "\u{ff}", "\r\nx", "\r\n\rhtt"]
        {
            assert_eq!(error(input.as_bytes()), ResponseError::NotHttp, "{input:?}");
        }
        let mut reader = ResponseReader::new(false);
        let mut cache = HeadCache::new();
        reader.start(Asked::Ordinary);
        assert!(reader.advance(&mut cache, b"HTT").is_ok());
        assert_eq!(reader.advance(&mut cache, b"x"), Err(ResponseError::NotHttp));
        assert!(reader.has_begun());
        assert_eq!(
            reader.advance(&mut cache, b"HTTP/1.1"),
            Ok(nothing()),
            "the end after an error"
        );
    }
}

mod chunks {
    use super::*;

    fn chunked(body: &str) -> Vec<u8> {
        with_fields("Transfer-Encoding: chunked\r\n", body)
    }

    #[test]
    fn chunks_make_one_body() {
        for (body, wanted, framing) in [
            ("0\r\n\r\n", "", 5),
            ("5\r\nhello\r\n0\r\n\r\n", "hello", 10),
            ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", 15),
            ("00005\r\nhello\r\n000\r\n\r\n", "hello", 16),
            ("A\r\n0123456789\r\n0a\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", 16),
            ("5\nhello\n0\n\n", "hello", 6),
            ("5;a=b\r\nhello\r\n0;c=\"d\"\r\n\r\n", "hello", 20),
            ("5 \t;x\r\nhello\r\n0 \r\n\r\n", "hello", 15),
            ("5\r\n\r\n\r\n\r\r\n0\r\n\r\n", "\r\n\r\n\r", 10),
            ("1\r\nx\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n", "x", 26),
            ("0\r\nX: 1\n\n", "", 9),
        ] {
            let (facts, content) = response(Asked::Ordinary, &chunked(body));
            assert_eq!(String::from_utf8(content).unwrap(), wanted, "{body:?}");
            assert_eq!((facts.framing_bytes, facts.persistent), (framing, true), "{body:?}");
        }
    }

    #[test]
    fn broken_chunks_have_a_reason() {
        for (body, why) in [
            ("x\r\n", "not a hexadecimal"),
            ("\r\n", "not a hexadecimal"),
            (";x\r\n", "not a hexadecimal"),
            ("-1\r\n", "not a hexadecimal"),
            ("0x5\r\nhello", "not a hexadecimal"),
            (" 5\r\nhello", "not a hexadecimal"),
            ("5\rhello", "not a hexadecimal"),
            ("10000000000000000\r\n", "above 64 bits"),
            ("5\r\nhelloo", "does not end"),
            ("5\r\nhello\rx", "does not end"),
            ("5\r\nhello0\r\n\r\n", "does not end"),
            ("0\r\n\rx", "bare CR"),
        ] {
            bad_framing(&chunked(body), why);
        }
    }

    #[test]
    fn the_data_before_a_broken_chunk_is_delivered() {
        let read = read_limited(Asked::Ordinary, Limits::default(), &chunked("2\r\nab\r\nzz"), 1);
        assert_eq!(read.open.1, b"ab");
        assert!(matches!(read.error, Some(ResponseError::BadFraming(_))));
    }

    #[test]
    fn the_largest_chunk_is_read_without_overflow() {
        let input = chunked("ffffffffffffffff\r\nabc");
        let read = read_limited(Asked::Ordinary, Limits::default(), &input, 1);
        assert_eq!((read.error, read.open.1.as_slice()), (None, &b"abc"[..]));
    }

    #[test]
    fn size_lines_have_a_bound_to_the_byte() {
        let limits = Limits { chunk_line_max: 12, ..Limits::default() };
        for (line, ok) in [
            ("1;34567890\r\n", true),
            ("1;345678901\r\n", false),
            ("00000000001\n", true),
            ("000000000001\n", false),
        ] {
            let input = chunked(&format!("{line}x\r\n0\r\n\r\n"));
            let read = read_limited(Asked::Ordinary, limits, &input, 1);
            assert_eq!(read.error.is_none(), ok, "{line:?}: {read:?}");
            assert_eq!(read.responses.len(), usize::from(ok));
        }
    }

    #[test]
    fn trailers_have_a_bound_to_the_byte() {
        let limits = Limits { trailer_max: 10, ..Limits::default() };
        for (trailers, ok) in [
            ("A: bcd\r\n\r\n", true),
            ("A: bcde\r\n\r\n", false),
            ("A:b\r\nC:\n\n", true),
            ("A:b\r\nC:d\n\n", true),
            ("A:b\r\nC:de\n\n", false),
            ("\r\n", true),
        ] {
            let input = chunked(&format!("0\r\n{trailers}"));
            let read = read_limited(Asked::Ordinary, limits, &input, 1);
            assert_eq!(read.error.is_none(), ok, "{trailers:?}: {read:?}");
        }
    }

    #[test]
    fn one_call_returns_one_piece_and_its_framing() {
        let input = chunked("2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n");
        let (mut reader, mut cache) = (ResponseReader::new(false), HeadCache::new());
        reader.start(Asked::Ordinary);
        let one = reader.advance(&mut cache, &input).unwrap();
        assert_eq!((&input[one.body], one.done), (&b"ab"[..], false));
        let rest = &input[one.consumed..];
        let two = reader.advance(&mut cache, rest).unwrap();
        assert_eq!((&rest[two.body.clone()], two.done), (&b"cde"[..], true));
        assert_eq!(two.consumed, rest.len());
    }
}

mod ends {
    use super::*;

    fn end_after(asked: Asked, input: &[u8]) -> Result<(), ResponseError> {
        let (mut reader, mut cache) = (ResponseReader::new(false), HeadCache::new());
        reader.start(asked);
        let mut rest = input;
        while !rest.is_empty() {
            rest = &rest[reader.advance(&mut cache, rest).unwrap().consumed..];
        }
        reader.end_of_input()
    }

    #[test]
    fn the_kinds_of_connection_end_are_distinguished() {
        for (input, wanted) in [
            ("", Err(ResponseError::ClosedEarly)),
            ("\r\n", Err(ResponseError::ClosedEarly)),
            ("H", Err(ResponseError::NotHttp)),
            ("HTTP", Err(ResponseError::NotHttp)),
            ("HTTP/", Err(ResponseError::Truncated)),
            ("HTTP/1.1 200 OK\r\n", Err(ResponseError::Truncated)),
            ("HTTP/1.1 100 C\r\n\r\n", Err(ResponseError::Truncated)),
            ("HTTP/1.1 100 C\r\n\r\nHT", Err(ResponseError::Truncated)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx", Err(ResponseError::Truncated)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", Err(ResponseError::Truncated)),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
                Err(ResponseError::Truncated),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", Ok(())),
            ("HTTP/1.1 200 OK\r\n\r\nx", Ok(())),
        ] {
            assert_eq!(end_after(Asked::Ordinary, input.as_bytes()), wanted, "{input:?}");
        }
    }

    #[test]
    fn an_end_ends_one_response_once() {
        let done = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(end_after(Asked::Ordinary, done.as_bytes()), Err(ResponseError::ClosedEarly));
        assert_eq!(ResponseReader::new(false).end_of_input(), Err(ResponseError::ClosedEarly));
    }

    #[test]
    fn without_a_start_nothing_is_consumed() {
        let (mut reader, mut cache) = (ResponseReader::new(false), HeadCache::new());
        assert_eq!(reader.advance(&mut cache, b"HTTP/1.1 200 OK\r\n"), Ok(nothing()));
        assert!(!reader.has_begun());
    }

    #[test]
    fn begun_is_true_after_the_first_byte() {
        let (mut reader, mut cache) = (ResponseReader::new(false), HeadCache::new());
        let input = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        for _ in 0..2 {
            reader.start(Asked::Ordinary);
            assert!(!reader.has_begun());
            reader.advance(&mut cache, b"\r\n").unwrap();
            assert!(!reader.has_begun());
            reader.start(Asked::Ordinary);
            reader.advance(&mut cache, input).unwrap();
            assert!(reader.has_begun());
        }
    }
}

mod headless {
    use super::*;

    const HEADLESS: Leniency = Leniency { headless: true, any_version: false, any_length: false };

    /// Reads in pieces of this number of bytes up to the end of the connection.
    fn read(input: &[u8], step: usize) -> (ResponseFacts, Result<(), ResponseError>) {
        let mut cache = HeadCache::new();
        let mut reader = ResponseReader::new(true).lenient(HEADLESS);
        reader.start(Asked::Ordinary);
        for piece in input.chunks(step) {
            let advance = reader.advance(&mut cache, piece).unwrap();
            assert_eq!((advance.consumed, advance.done), (piece.len(), false));
            assert!(reader.facts_so_far().head_bytes + reader.facts().body_bytes > 0);
        }
        let ended = reader.end_of_input();
        (reader.facts(), ended)
    }

    #[test]
    fn all_its_bytes_are_body_up_to_the_end() {
        let over = "\r\n".repeat(40);
        for input in
            ["x", "HT", "HTT!", "hello\r\n\r\nthere", "\r\n\nhello", "HTTP/2 200 OK\r\n\r\n", &over]
        {
            for step in 1..=input.len() {
                let (facts, ended) = read(input.as_bytes(), step);
                let wanted = ResponseFacts {
                    framing: Framing::UntilClose,
                    body_bytes: input.len() as u64,
                    ..ResponseFacts::default()
                };
                assert_eq!((facts, ended), (wanted, Ok(())), "{input:?} by {step}");
                assert!(facts.is_headless());
            }
        }
    }

    #[test]
    fn a_response_with_a_head_is_read_as_usual() {
        for step in [1, 7, 100] {
            let (facts, ended) = read(b"HTTP/1.0 200 OK\r\n\r\nbody", step);
            assert_eq!((facts.status, facts.head_bytes, facts.body_bytes), (200, 19, 4));
            assert_eq!((facts.is_headless(), ended), (false, Ok(())));
            let (facts, ended) = read(b"HTTP/1.0 200 OK\r\nA", step);
            assert_eq!((facts.head_bytes, ended), (18, Err(ResponseError::Truncated)));
        }
        let mut reader = ResponseReader::new(false).lenient(HEADLESS);
        reader.start(Asked::Ordinary);
        assert_eq!(reader.end_of_input(), Err(ResponseError::ClosedEarly));
        // an interim head promises HTTP/1.x
        reader.start(Asked::Ordinary);
        let input = b"HTTP/1.1 100 C\r\n\r\nhello";
        assert_eq!(reader.advance(&mut HeadCache::new(), input), Err(ResponseError::NotHttp));
    }
}

mod cache {
    use super::*;

    fn input(date: usize) -> Vec<u8> {
        with_fields(&format!("Date: {date}\r\nContent-Length: 5\r\n"), "hello")
    }

    #[test]
    fn a_repeated_head_and_its_body_take_one_call() {
        let (mut reader, mut cache) = (ResponseReader::new(false), HeadCache::new());
        let input = input(1);
        for _ in 0..3 {
            reader.start(Asked::Ordinary);
            let advance = reader.advance(&mut cache, &input).unwrap();
            let body = input.len() - 5..input.len();
            assert_eq!(advance, Advance { consumed: input.len(), body, done: true });
            assert_eq!((reader.facts().body_bytes, reader.facts().status), (5, 200));
        }
    }

    /// Heads known, forgotten, and known again give the same results as a fresh cache, for each
    /// request.
    #[test]
    fn a_warm_cache_changes_nothing() {
        let mut cache = HeadCache::new();
        let mut heads: Vec<Vec<u8>> = (0..7).map(input).collect();
        heads.push(b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".to_vec());
        heads.push(with_fields("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n"));
        heads.push(b"HTTP/1.0 204 N\r\n\r\n".to_vec());
        heads.push(with_fields(&format!("X: {}\r\nContent-Length: 0\r\n", "y".repeat(5_000)), ""));
        heads.push(with_fields("Content-Length: x\r\n", ""));
        heads.push(with_fields("", "until close"));
        for round in 0..60 {
            for keep_head in [false, true] {
                for asked in [Asked::Ordinary, Asked::Head, Asked::Connect] {
                    let input = &heads[(round * 7 + round / 5) % heads.len()];
                    let mut warm = ResponseReader::new(keep_head);
                    let mut cold = ResponseReader::new(keep_head);
                    warm.start(asked);
                    cold.start(asked);
                    let one = warm.advance(&mut cache, input);
                    let other = cold.advance(&mut HeadCache::new(), input);
                    assert_eq!(one, other);
                    assert_eq!((warm.facts(), warm.head()), (cold.facts(), cold.head()));
                }
            }
        }
    }

    #[test]
    fn a_known_head_alone_is_not_taken_for_a_longer_one() {
        let (mut reader, mut cache) = (ResponseReader::new(false), HeadCache::new());
        for fields in [
            "Content-Length: 1\r\n",
            "Content-Length: 1\r\nConnection: close\r\n",
            "Content-Length: 1\r\n",
        ] {
            reader.start(Asked::Ordinary);
            let advance = reader.advance(&mut cache, &with_fields(fields, "x")).unwrap();
            assert!(advance.done);
            assert_eq!(reader.facts().persistent, !fields.contains("close"));
        }
    }

    /// Bytes before a known head, in an earlier call, stay counted.
    #[test]
    fn a_known_head_keeps_the_count_of_earlier_bytes() {
        let mut cache = HeadCache::new();
        for before in ["\r\n", "HTTP/1.1 100 C\r\n\r\n"] {
            for _ in 0..2 {
                let mut reader = ResponseReader::new(false);
                reader.start(Asked::Ordinary);
                assert_eq!(
                    reader.advance(&mut cache, before.as_bytes()).unwrap().consumed,
                    before.len()
                );
                assert!(reader.advance(&mut cache, &input(1)).unwrap().done);
                let facts = reader.facts();
                let on_the_wire = facts.head_bytes + facts.body_bytes;
                assert_eq!(on_the_wire, (before.len() + input(1).len()) as u64, "{before:?}");
                assert_eq!(facts.interim, u16::from(before.len() > 2));
            }
        }
    }

    #[test]
    fn kept_heads_are_the_final_ones_raw() {
        let final_head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nContent-Length: 3\r\n\r\n";
        let input = [&b"\r\nHTTP/1.1 103 H\r\nLink: x\r\n\r\n"[..], final_head, b"abc"].concat();
        let mut cache = HeadCache::new();
        for step in 1..=input.len() {
            let mut reader = ResponseReader::new(true);
            for _ in 0..2 {
                reader.start(Asked::Ordinary);
                assert_eq!(reader.head(), b"");
                let mut done = false;
                for piece in input.chunks(step) {
                    let mut rest = piece;
                    while !rest.is_empty() {
                        let advance = reader.advance(&mut cache, rest).unwrap();
                        if !advance.body.is_empty() {
                            assert_eq!(reader.head(), final_head, "known while the body comes");
                        }
                        rest = &rest[advance.consumed..];
                        done |= advance.done;
                    }
                }
                assert!(done);
                assert_eq!(reader.head(), final_head);
            }
        }
    }

    #[test]
    fn a_reader_is_small_and_frees_large_buffers() {
        assert!(size_of::<ResponseReader>() <= 200, "{}", size_of::<ResponseReader>());
        let mut cache = HeadCache::new();
        let input = with_fields(&format!("X: {}\r\nContent-Length: 0\r\n", "y".repeat(20_000)), "");
        for keep_head in [false, true] {
            let mut reader = ResponseReader::new(keep_head);
            reader.start(Asked::Ordinary);
            for piece in input.chunks(1_000) {
                reader.advance(&mut cache, piece).unwrap();
            }
            assert_eq!(reader.facts().head_bytes, input.len() as u64);
            reader.start(Asked::Ordinary);
            assert!(reader.buffer.capacity() <= BUFFER_KEPT_MAX);
        }
    }
}

mod timings {
    use super::*;

    /// Returns the names of a response's timings; `!` for malformed ones. Read at once, by bytes,
    /// and split in two.
    fn names(asked: Asked, input: &[u8]) -> String {
        let mut cache = HeadCache::new();
        let mut read = |pieces: &[&[u8]]| {
            let mut reader = ResponseReader::new(false);
            reader.start(asked);
            assert_eq!(reader.server_timings().count(), 0);
            let mut done = false;
            for piece in pieces {
                let mut rest = *piece;
                while !rest.is_empty() {
                    let advance = reader.advance(&mut cache, rest).unwrap();
                    rest = &rest[advance.consumed..];
                    done |= advance.done;
                }
            }
            assert!(done);
            assert_eq!(reader.head(), b"", "kept for its timings only");
            let name = |timing: Result<Timing<'_>, Malformed>| {
                timing.map_or_else(|Malformed| "!".to_owned(), |timing| timing.name.to_owned())
            };
            let names: Vec<String> = reader.server_timings().map(name).collect();
            assert!(reader.facts().timed || names.is_empty(), "nobody would look");
            names.join(" ")
        };
        let whole = read(&[input]);
        assert_eq!(read(&[input]), whole, "with a warm cache");
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(read(&bytes), whole, "byte by byte");
        for cut in 1..input.len() {
            let (one, two) = input.split_at(cut);
            assert_eq!(read(&[one, two]), whole, "cut at {cut}");
        }
        whole
    }

    #[test]
    fn fields_of_the_final_head_and_trailers_are_read() {
        let length = |fields: &str| with_fields(&format!("{fields}Content-Length: 2\r\n"), "hi");
        for (input, expected) in [
            (length(""), ""),
            (length("Server-Timing: a;dur=1, b\r\nX: y\r\nSERVER-TIMING: c;dur\r\n"), "a b !"),
            (length("Server-Timing:\r\n"), ""),
            (with_fields("Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"), ""),
            (
                with_fields(
                    "Transfer-Encoding: chunked\r\nServer-Timing: a\r\n",
                    "2\r\nhi\r\n0\r\nX: y\r\nServer-Timing: b;dur=1\r\n folded, c\n\r\n",
                ),
                "a ! c",
            ),
            (
                [
                    &b"HTTP/1.1 103 Hints\r\nServer-Timing: interim\r\n\r\n"[..],
                    &length("Server-Timing: final\r\n"),
                ]
                .concat(),
                "final",
            ),
        ] {
            assert_eq!(names(Asked::Ordinary, &input), expected, "{}", input.escape_ascii());
        }
        let head = b"HTTP/1.1 200 OK\r\nServer-Timing: a\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(names(Asked::Head, head), "a");
    }

    #[test]
    fn fields_do_not_leak_into_the_next_response() {
        let (mut reader, mut cache) = (ResponseReader::new(false), HeadCache::new());
        let timed = with_fields("Server-Timing: a\r\nContent-Length: 0\r\n", "");
        let plain = with_fields("Content-Length: 0\r\n", "");
        for round in 0..12 {
            let (input, count) = if round % 3 == 0 { (&timed, 1) } else { (&plain, 0) };
            reader.start(Asked::Ordinary);
            assert!(reader.advance(&mut cache, input).unwrap().done);
            assert_eq!(reader.server_timings().count(), count, "round {round}");
            assert_eq!(reader.facts().timed, count == 1);
        }
    }
}

#[test]
fn errors_read_as_sentences() {
    for error in [
        ResponseError::NotHttp,
        ResponseError::BadFraming("the status line"),
        ResponseError::HeadTooLarge,
        ResponseError::ClosedEarly,
        ResponseError::Truncated,
    ] {
        assert!(error.to_string().starts_with("the "), "{error}");
    }
}

/// Leniency of old clients, which this reader has only on request.
mod lenient {
    use super::*;

    fn read(lenient: Leniency, input: &[u8]) -> (ResponseFacts, bool) {
        let mut cache = HeadCache::new();
        let mut reader = ResponseReader::new(false).lenient(lenient);
        reader.start(Asked::Ordinary);
        let advance = reader.advance(&mut cache, input).unwrap();
        (reader.facts(), advance.done)
    }

    fn refused(input: &[u8]) -> ResponseError {
        let mut reader = ResponseReader::new(false);
        reader.start(Asked::Ordinary);
        reader.advance(&mut HeadCache::new(), input).unwrap_err()
    }

    #[test]
    fn a_status_line_of_any_version_is_read_as_one_of_http_1_1() {
        let lenient = Leniency { any_version: true, ..Leniency::default() };
        for version in ["2.0", "0.9", "1.7", "10.3"] {
            let input = format!("HTTP/{version} 200 OK\r\nContent-Length: 1\r\n\r\nx");
            let (facts, done) = read(lenient, input.as_bytes());
            assert_eq!((facts.status, facts.body_bytes, facts.persistent), (200, 1, true));
            assert_eq!((facts.head_bytes as usize, done), (input.len() - 1, true));
            assert_eq!(refused(input.as_bytes()), ResponseError::NotHttp, "{version}");
        }
        for version in ["2", "2.", "a.b", "1.1.1", ""] {
            let input = format!("HTTP/{version} 200 OK\r\n\r\n");
            let mut reader = ResponseReader::new(false).lenient(lenient);
            reader.start(Asked::Ordinary);
            assert!(reader.advance(&mut HeadCache::new(), input.as_bytes()).is_err(), "{version}");
        }
    }

    #[test]
    fn a_body_of_invalid_length_ends_with_the_received_bytes() {
        let lenient = Leniency { any_length: true, ..Leniency::default() };
        let head = "HTTP/1.1 200 OK\r\nContent-Length: abc\r\n";
        let kept = format!("{head}\r\nhello");
        let (facts, done) = read(lenient, kept.as_bytes());
        assert_eq!((facts.body_bytes, facts.persistent, done), (5, true, true));
        let (facts, done) = read(lenient, format!("{head}\r\n").as_bytes());
        assert_eq!((facts.body_bytes, facts.persistent, done), (0, true, true));
        let closed = format!("{head}Connection: close\r\n\r\nhello");
        let (facts, done) = read(lenient, closed.as_bytes());
        assert_eq!((facts.framing, done), (Framing::UntilClose, false));
        assert!(matches!(refused(kept.as_bytes()), ResponseError::BadFraming(_)));
    }
}
