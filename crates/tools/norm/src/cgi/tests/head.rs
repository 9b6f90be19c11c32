use crate::cgi::head::{CgiHead, HEAD_MAX, Kind, end, parse};
use proptest::prelude::*;

/// Returns the header as understood, on one line.
fn read(text: &str) -> String {
    let CgiHead { kind, fields, length } = match parse(text.as_bytes()) {
        Ok(head) => head,
        Err(error) => return format!("wrong: {error}"),
    };
    let mut shown = match kind {
        Kind::Document(status) => status.as_u16().to_string(),
        Kind::Elsewhere(path) => format!("elsewhere {path}"),
    };
    for (name, value) in &fields {
        shown.push_str(&format!(" | {name}: {}", String::from_utf8_lossy(value.as_bytes())));
    }
    if let Some(length) = length {
        shown.push_str(&format!(" | {length} bytes"));
    }
    shown
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(read(text), *expected, "{text:?}");
    }
}

#[test]
fn documents_and_redirects_are_distinguished() {
    check(&[
        ("Content-Type: text/plain\n\n", "200 | content-type: text/plain"),
        ("Content-Type: text/plain\r\n\r\n", "200 | content-type: text/plain"),
        (
            "content-type:text/plain\nX-A: 1\nX-A: 2\n\n",
            "200 | content-type: text/plain | x-a: 1 | x-a: 2",
        ),
        ("Status: 404 Not Found\nContent-Type: a/b\n\n", "404 | content-type: a/b"),
        ("Status: 204\n\n", "204"),
        ("Content-Type: a/b\nContent-Length: 12\n\n", "200 | content-type: a/b | 12 bytes"),
        ("Location: http://a.example/b\n\n", "302 | location: http://a.example/b"),
        ("Location: /b?c\n\n", "elsewhere /b?c"),
        ("Location: /b\nStatus: 301 Moved\n\n", "301 | location: /b"),
        ("Location: b\nContent-Type: a/b\n\n", "302 | location: b | content-type: a/b"),
    ]);
}

#[test]
fn the_servers_own_fields_and_unknown_extensions_are_left_out() {
    let fields = "Connection: close\nTransfer-Encoding: chunked\nDate: x\nServer: y\nKeep-Alive: 1\n\
                  Upgrade: z\nTrailer: t\nTE: u\nX-CGI-Secret: s\n";
    check(&[(&format!("Content-Type: a/b\n{fields}\n"), "200 | content-type: a/b")]);
}

#[test]
fn an_invalid_header_is_reported() {
    check(&[
        ("\n", "wrong: the header has no Content-Type, Location or Status"),
        ("X-A: 1\n\n", "wrong: the header has no Content-Type, Location or Status"),
        ("hello world\n\n", "wrong: line 1 of the header is not a field"),
        ("<p>Location: here\n\n", "wrong: line 1 of the header is not a field"),
        ("Content-Type: a/b\n folded\n\n", "wrong: line 2 of the header is not a field"),
        ("Content-Type: a/b\nX-A: \u{1}\n\n", "wrong: line 2 of the header is not a field"),
        (": a/b\n\n", "wrong: line 1 of the header is not a field"),
        ("Status: 99\n\n", "wrong: \"99\" is not a valid Status"),
        ("Status: 100 Continue\n\n", "wrong: \"100 Continue\" is not a valid Status"),
        ("Status: 600\n\n", "wrong: \"600\" is not a valid Status"),
        ("Status: 200OK\n\n", "wrong: \"200OK\" is not a valid Status"),
        ("Status:\n\n", "wrong: \"\" is not a valid Status"),
        ("Status: 200\nStatus: 200\n\n", "wrong: status appears twice in the header"),
        ("Content-Type: a\nContent-Type: b\n\n", "wrong: content-type appears twice in the header"),
        ("Location: a\nLocation: b\n\n", "wrong: location appears twice in the header"),
        ("Content-Length: -1\n\n", "wrong: Content-Length \"-1\" is not a number"),
        ("Content-Length: +1\n\n", "wrong: Content-Length \"+1\" is not a number"),
        (
            "Content-Length: 99999999999999999999\n\n",
            "wrong: Content-Length \"99999999999999999999\" is not a number",
        ),
        (
            "Content-Length: 1\nContent-Length: 1\n\n",
            "wrong: content-length appears twice in the header",
        ),
    ]);
    let many = format!("Content-Type: a/b\n{}\n", "X-A: 1\n".repeat(100));
    assert_eq!(read(&many), "wrong: more than 100 fields in the header");
}

#[test]
fn a_header_ends_at_its_empty_line_and_has_a_limit() {
    assert_eq!(end(b""), None);
    assert_eq!(end(b"a: b\n"), None);
    assert_eq!(end(b"a: b\r\n\r"), None);
    assert_eq!(end(b"a: b\n\nrest\n\n"), Some(6));
    assert_eq!(end(b"a: b\r\n\r\nrest"), Some(8));
    assert_eq!(end(b"a: b\n\r\nrest"), Some(7));
    assert_eq!(end(b"\nrest"), Some(1));
    let long = |count: usize| [vec![b'a'; count], b"\n\n".to_vec()].concat();
    assert_eq!(end(&long(HEAD_MAX - 2)), Some(HEAD_MAX));
    assert_eq!(end(&long(HEAD_MAX - 1)), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Some(end) = end(&bytes) {
            prop_assert!(end <= bytes.len());
            prop_assert_eq!(bytes[end - 1], b'\n');
        }
        // reported whether valid or not
        prop_assert!(parse(&bytes).is_ok_and(|head| head.fields.len() <= 100) || parse(&bytes).is_err());
    }

    #[test]
    fn lines_that_look_like_a_header_are_understood_or_refused(
        lines in proptest::collection::vec(
            (
                "(Status|Location|Content-Type|Content-Length|X-CGI-A|Connection|[A-Za-z-]{1,8})",
                "[:= ]{0,2}",
                "[ -~]{0,20}",
            ),
            0..8,
        ),
    ) {
        let text: String = lines.iter().map(|(name, mark, value)| format!("{name}{mark}{value}\n")).collect();
        let text = format!("{text}\n");
        prop_assert_eq!(end(text.as_bytes()), Some(text.len()));
        if let Ok(CgiHead { kind: Kind::Document(status), fields, .. }) = parse(text.as_bytes()) {
            prop_assert!((200..600).contains(&status.as_u16()));
            for ours in ["connection", "content-length", "status", "x-cgi-a"] {
                prop_assert!(!fields.contains_key(ours));
            }
        }
    }

    #[test]
    fn written_data_is_read_back(
        status in 200u16..600,
        kind in "[a-z]{1,8}/[a-z]{1,8}",
        length in any::<u64>(),
        ends in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        let text = format!("Status: {status} x{ends}Content-Type: {kind}{ends}Content-Length: {length}{ends}{ends}");
        prop_assert_eq!(read(&text), format!("{status} | content-type: {kind} | {length} bytes"));
    }
}
