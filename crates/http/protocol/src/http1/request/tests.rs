use super::*;

fn get<'a>(headers: &'a [(String, String)]) -> RequestHead<'a> {
    RequestHead {
        method: "GET",
        target: Target::Origin("/a?b=c"),
        version: Version::Http11,
        host: "h.example:8080",
        headers,
        user_agent: Some("loadstone/0"),
        accept_encoding: None,
        authorization: None,
        body: None,
    }
}

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_plain_get_has_a_form_that_closes_the_connection() {
    let rendered = get(&[]).render().unwrap();
    let start = "GET /a?b=c HTTP/1.1\r\nHost: h.example:8080\r\nUser-Agent: loadstone/0\r\n";
    assert_eq!(text(&rendered.bytes), format!("{start}\r\n"));
    assert_eq!(text(&rendered.last), format!("{start}Connection: close\r\n\r\n"));
    assert_eq!(rendered.asked, Asked::Ordinary);
}

#[test]
fn http_1_0_requests_keep_alive_except_for_the_last_call() {
    let rendered = RequestHead { version: Version::Http10, ..get(&[]) }.render().unwrap();
    assert!(text(&rendered.bytes).starts_with("GET /a?b=c HTTP/1.0\r\n"));
    assert!(text(&rendered.bytes).contains("\r\nConnection: keep-alive\r\n"));
    assert!(!text(&rendered.last).contains("Connection"));
}

#[test]
fn a_cookie_line_fits_at_its_position() {
    let mut put = RequestHead { method: "PUT", body: Some(b"\r\n\r\n"), ..get(&[]) };
    for version in [Version::Http10, Version::Http11] {
        put.version = version;
        let rendered = put.render().unwrap();
        for (bytes, at) in
            [(&rendered.bytes, rendered.cookie_at), (&rendered.last, rendered.cookie_at_last)]
        {
            let with = [&bytes[..at], b"Cookie: a=b\r\n", &bytes[at..]].concat();
            assert!(text(&with).ends_with("\r\nCookie: a=b\r\n\r\n\r\n\r\n"), "{}", text(&with));
        }
    }
}

#[test]
fn user_fields_keep_their_order_and_replace_ours() {
    let given = headers(&[
        ("X-B", "2"),
        ("host", "other"),
        ("X-A", " 1\t"),
        ("USER-AGENT", "me"),
        ("connection", "Keep-Alive"),
        ("X-B", "3"),
        ("authorization", "Bearer t"),
        ("accept-encoding", "br"),
    ]);
    let rendered = RequestHead {
        authorization: Some("Basic x"),
        accept_encoding: Some("gzip"),
        ..get(&given)
    }
    .render()
    .unwrap();
    let wanted = "GET /a?b=c HTTP/1.1\r\nX-B: 2\r\nhost: other\r\nX-A: 1\r\nUSER-AGENT: me\r\n\
        connection: Keep-Alive\r\nX-B: 3\r\nauthorization: Bearer t\r\naccept-encoding: br\r\n\r\n";
    assert_eq!(text(&rendered.bytes), wanted);
    assert_eq!(text(&rendered.last), wanted);
}

#[test]
fn bodies_and_empty_posts_have_a_length() {
    let post = RequestHead { method: "POST", body: Some(b"a=b"), ..get(&[]) };
    let bytes = post.render().unwrap().bytes;
    assert!(text(&bytes).ends_with("\r\nContent-Length: 3\r\n\r\na=b"));
    for method in ["POST", "PUT", "PATCH"] {
        let bytes = RequestHead { method, ..get(&[]) }.render().unwrap().bytes;
        assert!(text(&bytes).ends_with("\r\nContent-Length: 0\r\n\r\n"), "{method}");
    }
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        let bytes = RequestHead { method, ..get(&[]) }.render().unwrap().bytes;
        assert!(!text(&bytes).contains("Content-Length"), "{method}");
    }
    let given = headers(&[("content-length", "3")]);
    let bytes = RequestHead { headers: &given, ..post }.render().unwrap().bytes;
    assert!(text(&bytes).ends_with("\r\ncontent-length: 3\r\n\r\na=b"));
}

#[test]
fn every_target_form_has_its_response_rules() {
    let absolute = RequestHead { target: Target::Absolute("http://h.example/x"), ..get(&[]) };
    assert!(absolute.render().unwrap().bytes.starts_with(b"GET http://h.example/x HTTP/1.1\r\n"));
    let connect = RequestHead {
        method: "CONNECT",
        target: Target::Authority("[::1]:443"),
        host: "[::1]:443",
        ..get(&[])
    };
    let rendered = connect.render().unwrap();
    assert!(rendered.bytes.starts_with(b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n"));
    assert_eq!(rendered.asked, Asked::Connect);
    let head = RequestHead { method: "HEAD", ..get(&[]) };
    assert_eq!(head.render().unwrap().asked, Asked::Head);
    let lower = RequestHead { method: "head", ..get(&[]) };
    assert_eq!(lower.render().unwrap().asked, Asked::Ordinary, "methods know their case");
    let star = RequestHead { method: "OPTIONS", target: Target::Origin("*"), ..get(&[]) };
    assert!(star.render().unwrap().bytes.starts_with(b"OPTIONS * HTTP/1.1\r\n"));
}

/// Invalid parts are refused, and the text names them.
#[test]
fn parts_that_break_the_framing_are_refused_by_name() {
    let refused = |head: RequestHead<'_>, names: &str| {
        let shown = head.render().unwrap_err().to_string();
        assert!(shown.contains(names), "{shown} should name {names}");
    };
    for method in ["", "GE T", "GET\r\n", "GÉT", "G:", "GET\0"] {
        refused(RequestHead { method, ..get(&[]) }, "not a method");
    }
    for path in ["", "a", "/a b", "/a\r\nX: y", "/a#f", "/\u{e9}", "/\0", "/\x7f"] {
        refused(RequestHead { target: Target::Origin(path), ..get(&[]) }, "cannot be requested");
    }
    for target in [
        Target::Absolute("/a"),
        Target::Absolute("http://h/ x"),
        Target::Authority("h"),
        Target::Authority("http://h:1/"),
    ] {
        refused(RequestHead { target, ..get(&[]) }, "cannot be requested");
    }
    for host in ["a b", "a\r\n", "a\0"] {
        refused(RequestHead { host, ..get(&[]) }, "not a host");
    }
    for name in ["", "A B", "A:", "A\r\n", "\u{fc}", "A\0", " A", "A(b)"] {
        refused(get(&headers(&[(name, "x")])), "not the name of a header field");
    }
    for value in ["a\r\nb", "a\nb", "a\rb", "\0", "\x7f", "a\x0b"] {
        refused(get(&headers(&[("X-Y", value)])), "X-Y");
        refused(RequestHead { user_agent: Some(value), ..get(&[]) }, "User-Agent");
        refused(RequestHead { authorization: Some(value), ..get(&[]) }, "Authorization");
        refused(RequestHead { accept_encoding: Some(value), ..get(&[]) }, "Accept-Encoding");
    }
    for length in ["4", "+3", "", "3, 3", "x", "99999999999999999999999"] {
        let given = headers(&[("Content-Length", length)]);
        refused(RequestHead { body: Some(b"abc"), ..get(&given) }, "omit it");
    }
    refused(get(&headers(&[("Content-Length", "1")])), "omit it");
    refused(get(&headers(&[("transfer-encoding", "chunked")])), "omit it");
}

#[test]
fn values_may_contain_tabs_and_non_ascii_text() {
    let given = headers(&[("X-Y", "a\tb \u{fc}"), ("X-Empty", "")]);
    let rendered = get(&given).render().unwrap();
    assert!(text(&rendered.bytes).contains("X-Y: a\tb \u{fc}\r\nX-Empty: \r\n"));
}

#[test]
fn a_refused_value_is_not_shown() {
    let error = get(&headers(&[("X-Key", "secret\n")])).render().unwrap_err();
    assert!(!error.to_string().contains("secret"));
}

#[test]
fn basic_credentials_follow_rfc_7617() {
    let example = basic_authorization("Aladdin", "open sesame").unwrap();
    assert_eq!(example, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    let in_utf_8 = basic_authorization("test", "123\u{a3}").unwrap();
    assert_eq!(in_utf_8, "Basic dGVzdDoxMjPCow==", "RFC 7617 §2.1");
    assert_eq!(basic_authorization("", "a:b").unwrap(), "Basic OmE6Yg==");
    for (user, password) in [("a:b", "c"), ("a\n", "b"), ("a", "\0")] {
        let error = basic_authorization(user, password).unwrap_err();
        assert!(error.to_string().contains("Basic"), "{error}");
    }
}
