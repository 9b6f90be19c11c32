use crate::support::{last, request, response, site, status, to_the_end};
use std::io::Write;

#[test]
fn hello_world_is_one_line_of_plain_text() {
    let site = site(|_, _| {});
    let response = site.get("/hw");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("\r\ncontent-type: text/plain\r\n"), "{response}");
    assert!(
        response.contains("\r\nserver: Loadstone/") && response.contains("\r\ndate: "),
        "{response}"
    );
    assert!(response.ends_with("\r\n\r\nhello world\n"), "{response}");
}

#[test]
fn connections_persist_by_http_version() {
    let site = site(|_, _| {});
    let mut stream = site.connect();
    for _ in 0..3 {
        stream.write_all(request("/hw").as_bytes()).unwrap();
        assert!(response(&mut stream).ends_with("hello world\n"));
    }
    let both = format!("{}{}", request("/hw"), last("/hw"));
    assert_eq!(site.send(both.as_bytes()).matches("hello world").count(), 2);
    assert!(site.send(b"GET /hw HTTP/1.0\r\n\r\n").ends_with("hello world\n"));
    let mut old = site.connect();
    for _ in 0..2 {
        old.write_all(b"GET /hw HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").unwrap();
        assert!(response(&mut old).to_lowercase().contains("connection: keep-alive"));
    }
}

#[test]
fn requests_that_are_wrong_get_the_status_of_their_fault() {
    let site = site(|_, _| {});
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(10_000));
    let longer = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(200_000));
    let wide = format!("GET /hw HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n", "a".repeat(200_000));
    let many = format!("GET /hw HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(200));
    let table: [(&str, u16); 24] = [
        ("GET /hw HTTP/1.1\r\n\r\n", 400),
        ("GET /hw HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET /hw HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET /hw HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("GET /hw HTTP/1.9\r\nHost: h\r\n\r\n", 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ("GET /hw HTTX/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /hw\r\n\r\n", 400),
        ("GET\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("\u{1}\u{2}\r\n\r\n", 400),
        ("GET /hw HTTP/1.1\r\nHost : h\r\n\r\n", 400),
        ("GET /hw HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", 400),
        ("POST /hw HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400),
        ("GET /% HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 400),
        ("GET /../hw HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 400),
        ("GET /gone HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 404),
        ("BREW /hw HTTP/1.1\r\nHost: h\r\n\r\n", 501),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501),
        ("DELETE /hw HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 405),
        (&long, 414),
        (&longer, 414),
        (&wide, 431),
        (&many, 431),
    ];
    for (request, code) in table {
        let response = site.send(request.as_bytes());
        let shown: String = request.chars().take(60).collect();
        assert_eq!(status(&response), code, "{shown:?} gave {response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{shown:?} gave {response}");
    }
    let refused = site.send(b"DELETE /hw HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(refused.contains("\r\nallow: GET, HEAD, OPTIONS\r\n"), "{refused}");
    let star = site.send(b"OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(status(&star) == 204 && star.contains("allow: GET, HEAD, POST"), "{star}");
}

#[test]
fn head_has_the_fields_of_get() {
    let site = site(|_, _| {});
    let response = site.send(b"HEAD /hw HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(response.contains("\r\ncontent-length: 12\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\n"), "{response}");
}

#[test]
fn a_pipelined_response_is_not_lost_before_a_bad_request() {
    let site = site(|_, _| {});
    let responses = site.send(format!("{}GET / HTTP/3.0\r\n\r\n", request("/hw")).as_bytes());
    assert!(responses.contains("hello world"), "{responses}");
    assert!(responses.contains("HTTP/1.1 505 "), "{responses}");
}

#[test]
fn expectations_are_met_or_refused() {
    let site = site(|_, _| {});
    let mut stream = site.connect();
    let head = "POST /hw HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 3\r\n";
    stream.write_all(format!("{head}Expect: 100-continue\r\n\r\n").as_bytes()).unwrap();
    let interim = {
        use std::io::Read;
        let mut bytes = [0; 25];
        stream.read_exact(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    assert_eq!(interim, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").unwrap();
    assert_eq!(status(&to_the_end(&mut stream)), 405);
    let refused = site.send(format!("{head}Expect: miracles\r\n\r\n").as_bytes());
    assert_eq!(status(&refused), 417);
}
