use super::*;

fn parsed(text: &str) -> Parsed {
    parse(text.as_bytes(), &mut 0, 1_000)
}

fn whole(text: &str) -> ExactRequest {
    match parsed(text) {
        Parsed::Whole { request, head_len } => {
            assert_eq!(head_len, text.len());
            request
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plain_request_is_understood() {
    let request = whole("GET /bytes/7 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(request.line, "GET /bytes/7 HTTP/1.1");
    assert_eq!((request.page, request.body), (Page::Bytes(7), Skip::Length(0)));
    assert!(request.keep && !request.head_only && !request.expects);
    let old = whole("HEAD /status/301?to=/x HTTP/1.0\n\n");
    assert_eq!(old.page, Page::Status { code: 301, to: "/x".into() });
    assert!(!old.keep && old.head_only);
    assert!(whole("GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n").keep);
    assert!(!whole("GET / HTTP/1.1\r\nhost:a\r\nConnection: Close\r\n\r\n").keep);
    assert!(matches!(whole("GET /bytes/x HTTP/1.0\r\n\r\n").page, Page::Refused(_)));
    let Page::Json(login) = whole("GET /login?name=fred HTTP/1.0\r\n\r\n").page else { panic!() };
    let token = login.split('"').nth(7).unwrap();
    let me =
        |token| whole(&format!("GET /me HTTP/1.0\r\nAuthorization: bearer {token}\r\n\r\n")).page;
    assert_eq!(me(token), Page::Json("{\"name\": \"fred\"}\n".to_owned()));
    assert_eq!(me("fred.0"), Page::Unauthorized);
}

#[test]
fn any_split_yields_the_same_request() {
    let text = "\r\nPOST /hw HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    let mut scanned = 0;
    for end in 0..text.len() {
        let part = parse(&text.as_bytes()[..end], &mut scanned, 1_000);
        assert_eq!(part, Parsed::Partial, "{end}");
    }
    let Parsed::Whole { request, head_len } = parse(text.as_bytes(), &mut scanned, 1_000) else {
        panic!("not whole")
    };
    assert_eq!((request.body, head_len, scanned), (Skip::Length(3), text.len(), 0));
}

#[test]
fn errors_have_their_status() {
    let host = "Host: a\r\n";
    let table = [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\n{host}{host}\r\n"), 400),
        ("\x16\x03\x01\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/2.0\r\n\r\n".to_owned(), 505),
        (format!("GET / HTTP/1.1\r\n{host}Content-Length: x\r\n\r\n"), 400),
        (format!("GET / HTTP/1.1\r\n{host}Content-Length: 1001\r\n\r\n"), 413),
        (format!("GET / HTTP/1.1\r\n{host}Content-Length: 99999999999999999999\r\n\r\n"), 413),
        (format!("GET / HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400),
        (
            format!(
                "GET / HTTP/1.1\r\n{host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            400,
        ),
        (format!("GET / HTTP/1.1\r\n{host}Transfer-Encoding: gzip\r\n\r\n"), 501),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(200)), 431),
        (format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(HEAD_MAX)), 431),
        ("x".repeat(HEAD_MAX + 1), 431),
    ];
    for (text, status) in table {
        assert_eq!(parsed(&text), Parsed::Bad(status), "{}", &text[..text.len().min(80)]);
    }
}

fn skip_chunked(body: &[u8], body_max: u64) -> Result<(usize, bool), u16> {
    let at_once = Skip::Chunked(Chunks::new(body_max)).take(body);
    let mut split = Skip::Chunked(Chunks::new(body_max));
    let mut taken = 0;
    for byte in body {
        match split.take(&[*byte]) {
            Ok((1, over)) => {
                taken += 1;
                if over {
                    assert_eq!(at_once, Ok((taken, true)));
                    return at_once;
                }
            }
            other => {
                assert_eq!(at_once.map(|_| ()), other.map(|_| ()), "split at {taken}");
                return at_once;
            }
        }
    }
    assert_eq!(at_once, Ok((taken, false)));
    at_once
}

#[test]
fn chunked_bodies_end_at_their_last_chunk() {
    assert_eq!(skip_chunked(b"0\r\n\r\nGET", 10), Ok((5, true)));
    assert_eq!(skip_chunked(b"3\r\nabc\r\n0\r\n\r\n", 10), Ok((13, true)));
    assert_eq!(skip_chunked(b"A;x=y\r\n0123456789\r\n0\r\nA: b\r\n\r\nX", 10), Ok((30, true)));
    assert_eq!(skip_chunked(b"3\nabc\n0\n\n", 10), Ok((9, true)));
    assert_eq!(skip_chunked(b"3\r\nab", 10), Ok((5, false)));
}

#[test]
fn chunked_bodies_are_bounded_and_checked() {
    assert_eq!(skip_chunked(b"b\r\n", 10), Err(413));
    assert_eq!(skip_chunked(b"ffffffffffffffffff\r\n", u64::MAX), Err(413));
    assert_eq!(skip_chunked(b"\r\n", 10), Err(400));
    assert_eq!(skip_chunked(b"g\r\n", 10), Err(400));
    assert_eq!(skip_chunked(b"1\r\nabc", 10), Err(400));
    let endless = [b"1;".as_slice(), &vec![b'x'; HEAD_MAX + 200]].concat();
    assert_eq!(Skip::Chunked(Chunks::new(10)).take(&endless), Err(413));
}
