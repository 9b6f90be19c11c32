use super::*;

fn describe(bytes: &str) -> String {
    let reading = read(bytes.as_bytes());
    let faults: Vec<&str> = reading.faults.iter().map(|fault| fault.text()).collect();
    let end = match reading.end {
        MessageEnd::At(at) if at == bytes.len() => "whole".to_owned(),
        MessageEnd::At(at) => format!("whole, {} behind it", bytes.len() - at),
        MessageEnd::Later => "more to come".to_owned(),
        MessageEnd::Nowhere => "who knows".to_owned(),
    };
    let exact = if reading.is_exact(bytes.len()) { ", exact" } else { "" };
    format!("{}; {end}{exact}; {}", reading.framing.text(), faults.join(", "))
}

#[test]
fn request_framing_is_parsed_strictly() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\n";
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n");
    for (bytes, expected) in [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), "no content; whole, exact; "),
        ("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), "no content; whole, exact; "),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "no content; whole; "),
        ("GET / HTTP/1.1\r\nHost: h\r\n".to_owned(), "no content; more to come; "),
        (format!("{post}Content-Length: 2\r\n\r\nab"), "Content-Length 2; whole, exact; "),
        (format!("{post}Content-Length: 2\r\n\r\nabc"), "Content-Length 2; whole, 1 behind it; "),
        (format!("{post}Content-Length: 2\r\n\r\na"), "Content-Length 2; more to come; "),
        (
            format!("{post}Content-Length: +2\r\n\r\nab"),
            "no content; who knows; an invalid Content-Length",
        ),
        (
            format!("{post}Content-Length: 2\r\nContent-Length: 2\r\n\r\nab"),
            "no content; who knows; an invalid Content-Length",
        ),
        (
            format!("{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            "chunked; whole; both Content-Length and Transfer-Encoding",
        ),
        (
            format!("{post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
            "chunked; whole; an invalid Transfer-Encoding",
        ),
        (
            format!("{post}Transfer_Encoding: chunked\r\n\r\n"),
            "no content; whole; a field that resembles a framing field",
        ),
        (
            format!("{post}Transfer-Encoding : chunked\r\n\r\n"),
            "no content; whole; a line that is not a field",
        ),
        (
            format!("{post}X: a\r\n Transfer-Encoding: chunked\r\n\r\n"),
            "no content; whole; a folded field",
        ),
        (format!("{post}X: a\nY: b\r\n\r\n"), "no content; whole; a line without CR LF"),
        (format!("{chunked}2\r\nab\r\n0\r\n\r\n"), "chunked; whole, exact; "),
        (format!("{chunked}2;a=\"b;c\"\r\nab\r\n0;x\r\nT: 1\r\n\r\n"), "chunked; whole, exact; "),
        (format!("{chunked}2\r\nab"), "chunked; more to come; "),
        (format!("{chunked}2\r\nabc\r\n"), "chunked; who knows; a chunk not followed by CR LF"),
        (format!("{chunked}0x2\r\nab\r\n"), "chunked; who knows; an invalid chunk size"),
        (
            format!("{chunked}10000000000000000\r\nab\r\n"),
            "chunked; who knows; an invalid chunk \
            size",
        ),
        (format!("{chunked}2 ;a\r\nab\r\n0\r\n\r\n"), "chunked; who knows; an invalid chunk size"),
        (format!("{chunked}2;\r\nab\r\n0\r\n\r\n"), "chunked; whole; an invalid chunk extension"),
        (format!("{chunked}2\nab\n0\n\n"), "chunked; whole; a line without CR LF"),
        (format!("{chunked}0\r\nHost: i\r\n\r\n"), "chunked; whole; an invalid trailer"),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            "chunked; whole; Transfer-Encoding in HTTP/1.0",
        ),
        ("junk\r\n\r\n".to_owned(), "no content; whole; an invalid request line"),
    ] {
        assert_eq!(describe(&bytes), expected, "{}", bytes.escape_debug());
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        read(&bytes);
        let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        read(&[head, &bytes[..]].concat());
    }

    #[test]
    fn a_message_ends_within_its_bytes(bytes in "[ -~\r\n]{0,120}") {
        let all = format!("POST / HTTP/1.1\r\nHost: h\r\n{bytes}\r\n\r\n");
        if let MessageEnd::At(at) = read(all.as_bytes()).end {
            proptest::prop_assert!(at <= all.len());
        }
    }
}

#[test]
fn valid_pipelined_requests_are_counted() {
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx";
    let count = |text: String| valid_requests(text.as_bytes());
    assert_eq!(count(get.repeat(3)), Some(3));
    assert_eq!(count(post.to_owned() + get), Some(2));
    assert_eq!(count(post.to_owned() + "x"), None);
    assert_eq!(count("GET / HTTP/1.1\r\n\r\n".to_owned() + get), None);
    assert_eq!(count("\n".to_owned() + get), None);
}
