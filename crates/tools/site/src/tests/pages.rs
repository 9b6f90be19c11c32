//! The correct pages.

use super::*;

/// Returns a page of text as hyper writes it.
fn text(status: &str, extra: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\nserver: loadstone\ncontent-type: text/plain\ncontent-length: {}\n\
         {extra}connection: close\ndate: *\n\n{body}",
        body.len()
    )
}

/// SPECweb99's dynamic pages contain the file, a visitor is shown an advertisement, and posted data
/// is in the log until it is reset.
#[test]
fn the_dynamic_pages_of_specweb99() {
    let site = site(&[("files", "specweb99-like:directories=2")]);
    let page = ask(&site, last("GET /specweb99?/file_set/dir00001/class1_0"));
    assert!(page.contains("<p>REMOTE_ADDR = 127.0.0.1\n"), "{page}");
    assert!(page.contains("QUERY_STRING = /file_set/dir00001/class1_0\n<pre>\n"), "{page}");
    assert!(!page.to_lowercase().contains("set-cookie"), "{page}");
    let file = ask(&site, last("GET /file_set/dir00001/class1_0"));
    let file = file.split_once("\n\n").unwrap().1;
    assert_eq!(file.len(), 1_024);
    assert!(page.contains(&format!("<pre>\n{file}\n</pre>")), "{page}");
    let cookie = "Host: a\r\nCookie: my_cookie=user_id=7&last_ad=3\r\nConnection: close\r\n";
    let get = format!("GET /specweb99?/x/file_set/dir00001/class1_0 HTTP/1.1\r\n{cookie}\r\n");
    let page = ask(&site, get);
    let wanted = workload::fileset::specweb99::Advertising::new(units::Seed(1))
        .choose(workload::fileset::specweb99::Visitor { user: 7, last_ad: 3 });
    assert!(page.contains(&format!("set-cookie: {wanted}\n")), "{page}");
    let body = "urlroot=&dir=00001&class=0&num=3&client=10000";
    let post = |body: &str| {
        let length = body.len();
        ask(
            &site,
            format!("POST /specweb99 HTTP/1.1\r\n{cookie}Content-Length: {length}\r\n\r\n{body}"),
        )
    };
    assert!(post(body).starts_with("HTTP/1.1 200 OK\n"));
    let log = || ask(&site, last("GET /specweb99?command/Fetch"));
    let read = |log: String| {
        workload::fileset::specweb99::read_log(
            log.split_once("\n\n").unwrap().1.trim_end_matches('\0'),
        )
    };
    let records = read(log()).unwrap();
    assert_eq!((records.len(), records[0].client, records[0].user), (1, 10_000, 7));
    ask(&site, last("GET /specweb99?command/Reset&maxload=3"));
    assert_eq!(read(log()), Ok(Vec::new()));
    for (request, status) in [
        (last("GET /specweb99?/file_set/dir00002/class1_0"), "404"),
        (last("GET /specweb99"), "404"),
        (last("DELETE /specweb99"), "405"),
        (last("GET /specweb99-cgi?/file_set/dir00001/class1_0"), "501"),
    ] {
        assert!(ask(&site, &request).starts_with(&format!("HTTP/1.1 {status} ")), "{request}");
    }
    assert!(post("dir=1").starts_with("HTTP/1.1 400 "));
    assert!(post(&"x".repeat(5_000)).starts_with("HTTP/1.1 413 "));
    assert!(post(&body.replace("00001", "00002")).starts_with("HTTP/1.1 404 "));
    assert_eq!(read(log()), Ok(Vec::new()));
}

#[test]
fn plain_pages_have_the_expected_content() {
    let site = site(&[]);
    assert_eq!(ask(&site, last("GET /hw")), text("200 OK", "", "hello world"));
    assert_eq!(ask(&site, last("GET /sleep?0.001")), text("200 OK", "", "Slept for 0.001 seconds"));
    assert_eq!(ask(&site, last("GET /redirect/0")), text("200 OK", "", "Arrived.\n"));
    assert_eq!(
        ask(&site, last("GET /nope")),
        text("404 Not Found", "", "There is no such page here; / lists what there is.\n")
    );
    let welcome = ask(&site, last("GET /"));
    assert!(welcome.contains("content-type: text/html; charset=utf-8\n"), "{welcome}");
    let listed =
        ["hw", "sleep", "timed", "bytes", "status", "echo", "chunked", "close", "cookie", "gzip"];
    for page in listed.iter().chain(&["auth", "redirect"]) {
        assert!(welcome.contains(&format!("href=\"/{page}")), "{page}");
    }
}

#[test]
fn a_timed_page_reports_its_duration() {
    let site = site(&[]);
    let response = ask(&site, last("GET /timed?2ms"));
    let (_, value) = response.split_once("server-timing: asked;dur=2, took;dur=").unwrap();
    let (took, rest) = value.split_once(';').unwrap();
    assert!(took.parse::<f64>().unwrap() >= 2.0, "{response}");
    assert!(rest.starts_with("desc=\"measured\"\n"), "{response}");
}

#[test]
fn every_link_of_the_welcome_page_leads_somewhere() {
    let site = site(&[("sleep-parallel", "")]);
    let welcome = ask(&site, last("GET /"));
    let links: Vec<&str> = welcome.split("href=\"/").skip(1).collect();
    assert!(links.len() > 10);
    for link in links {
        let target = link.split('"').next().unwrap().replace("sleep?3", "sleep?0");
        let response = ask(&site, last(&format!("GET /{target}")));
        let status = response.split(' ').nth(1).unwrap();
        let wanted = match target.as_str() {
            "status/404" => "404",
            "status/301?to=/hw" => "301",
            "redirect/3" => "302",
            "auth" | "digest" | "me" => "401",
            _ => "200",
        };
        assert_eq!(status, wanted, "{target}");
    }
}

#[test]
fn any_number_of_bytes_is_served() {
    let site = site(&[]);
    for len in [0, 1, 63, 64, 65, 65_536, 1_000_000] {
        let response = ask(&site, last(&format!("GET /bytes/{len}")));
        let (head, body) = response.split_once("\n\n").unwrap();
        assert!(head.contains(&format!("content-length: {len}\n")), "{head}");
        assert!(body == pattern(len), "{len}");
    }
    assert!(ask(&site, last("GET /bytes/1073741825")).starts_with("HTTP/1.1 400 Bad Request\n"));
}

#[test]
fn every_status_is_served() {
    let site = site(&[]);
    let mut client = Client::new(&site);
    for status in 200..600 {
        let response = client.send(request(&format!("GET /status/{status}"))).response(false);
        let start = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&start), "{response}");
        let (head, body) = response.split_once("\n\n").unwrap();
        assert_eq!(body.is_empty(), [204, 205, 304].contains(&status), "{response}");
        assert_eq!(head.contains("content-length"), ![204, 304].contains(&status), "{response}");
        assert_eq!(head.contains("\nlocation: /\n"), (300..400).contains(&status), "{response}");
    }
    let location = "location: /hw?x\n";
    assert_eq!(
        ask(&site, last("GET /status/301?to=/hw%3Fx")),
        text("301 Moved Permanently", location, "301: see /hw?x\n")
    );
    assert_eq!(
        ask(&site, last("GET /redirect/3")),
        text("302 Found", "location: /redirect/2\n", "302: see /redirect/2\n")
    );
}

#[test]
fn interim_responses_are_followed_by_the_final_one() {
    let site = site(&[]);
    let mut client = Client::new(&site);
    let interim = client.send(request("GET /status/103")).response(false);
    assert_eq!(interim, "HTTP/1.1 103 Early Hints\n\n");
    let plain = "Server: loadstone\nDate: *\nContent-Length: 26\n";
    assert_eq!(
        client.response(false),
        format!("HTTP/1.1 200 OK\n{plain}Content-Type: text/plain\n\nafter an interim response\n")
    );
    // the connection continues
    assert_eq!(client.send(last("GET /hw")).rest(), text("200 OK", "", "hello world"));
    assert_eq!(
        ask(&site, request("GET /status/101")),
        "HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: none\n\n"
    );
    let old = ask(&site, "GET /status/103 HTTP/1.0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200 OK\n"), "{old}");
}

#[test]
fn echo_returns_the_request() {
    let site = site(&[]);
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: x/y\r\nConnection: close\r\n";
    let xy = "HTTP/1.1 200 OK\nserver: loadstone\ncontent-length: 5\ncontent-type: x/y\n\
              connection: close\ndate: *\n\na\nb\0c";
    let sorted = |response: &str| {
        let (head, body) = response.split_once("\n\n").unwrap();
        let mut lines: Vec<&str> = head.lines().collect();
        lines.sort_unstable();
        (lines.join("\n"), body.to_owned())
    };
    let known = ask(&site, format!("{head}Content-Length: 5\r\n\r\na\nb\0c"));
    assert_eq!(sorted(&known), sorted(xy));
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n2;x=y\r\n\0c\r\n0\r\nT: u\r\n\r\n"
    );
    assert_eq!(sorted(&ask(&site, chunked)), sorted(xy));
    assert_eq!(
        ask(&site, "PUT /echo?headers HTTP/1.1\r\nHost: a\r\nX-Y: z\r\nConnection: close\r\n\r\n"),
        text("200 OK", "", "PUT /echo?headers HTTP/1.1\nhost: a\nx-y: z\nconnection: close\n")
    );
    assert!(ask(&site, last("GET /echo")).contains("content-length: 0\n"));
    let broken = format!("{head}Transfer-Encoding: chunked\r\n\r\nx\r\n");
    assert!(ask(&site, broken).starts_with("HTTP/1.1 400 Bad Request\n"));
}

#[test]
fn a_body_that_is_too_long_is_413() {
    let site = site(&[("body-max", "10")]);
    let too_long =
        text("413 Payload Too Large", "", "The body is longer than the limit of 10 bytes.\n");
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let length = format!("{head}Content-Length: 11\r\n\r\nhello world");
    assert_eq!(ask(&site, length), too_long);
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n");
    assert_eq!(ask(&site, chunked), too_long);
}

#[test]
fn a_uri_that_is_too_long_is_414() {
    let site = site(&[("uri-max", "8")]);
    let ask = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        ask(&site, request).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(ask("/hw?1234"), "HTTP/1.1 200 OK");
    assert_eq!(ask("/hw?12345"), "HTTP/1.1 414 URI Too Long");
    assert_eq!(ask("/12345678"), "HTTP/1.1 414 URI Too Long");
}

/// The largest permitted value still fits in a head.
#[test]
fn the_longest_measurable_uri_is_reported() {
    let site = site(&[("uri-max", "63K")]);
    for (length, status) in [(63 << 10, "404 "), ((63 << 10) + 1, "414 ")] {
        let path = format!("/{}", "x".repeat(length - 1));
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let response = ask(&site, request);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{response}");
    }
    let refused = Config::default().parse_option("uri-max", "65K").unwrap_err().to_string();
    assert!(refused.contains("the maximum is 63K"), "{refused}");
}

#[test]
fn chunked_and_close_delimited_bodies() {
    let site = site(&[]);
    let chunked = |extra: &str| {
        format!(
            "HTTP/1.1 200 OK\nserver: loadstone\ncontent-type: application/octet-stream\n\
             {extra}connection: close\ntransfer-encoding: chunked\ndate: *\n\n"
        )
    };
    assert_eq!(
        ask(&site, last("GET /chunked/10?pieces=3")),
        chunked("") + "3\n012\n3\n345\n4\n6789\n0\n\n"
    );
    assert_eq!(ask(&site, last("GET /chunked/0")), chunked("") + "0\n\n");
    assert_eq!(
        ask(&site, last("GET /chunked/4?pieces=2&trailer=1")),
        "HTTP/1.1 200 OK\nServer: loadstone\nDate: *\nTransfer-Encoding: chunked\nConnection: \
         close\nContent-Type: text/plain\nTrailer: X-Body-Length\n\n2\n01\n2\n23\n0\n\
         X-Body-Length: 4\n\n"
    );
    let close = "Server: loadstone\nDate: *\nConnection: close\nContent-Type: text/plain\n\n";
    assert_eq!(ask(&site, request("GET /close/5")), format!("HTTP/1.1 200 OK\n{close}01234"));
    let old = ask(&site, "GET /chunked/5 HTTP/1.0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200 OK\n") && old.ends_with("\n\n01234"), "{old}");
    assert!(!old.contains("transfer-encoding"), "{old}");
    let old = ask(&site, "GET /close/5 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200 OK\n") && old.ends_with("\n\n01234"), "{old}");
}

#[test]
fn a_trailer_leaves_the_connection_open() {
    let site = site(&[]);
    let pair = request("GET /chunked/2?trailer=1") + &last("GET /hw");
    let responses = ask(&site, pair);
    let end = format!("0\nX-Body-Length: 2\n\n{}", text("200 OK", "", "hello world"));
    assert!(responses.ends_with(&end), "{responses}");
}

#[test]
fn cookies_gzip_and_authorization_are_served() {
    let site = site(&[]);
    assert_eq!(
        ask(&site, last("GET /cookie?set=a=b")),
        text("200 OK", "set-cookie: a=b\n", "Set: a=b\n")
    );
    let with = |field: &str, target: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: a\r\n{field}\r\nConnection: close\r\n\r\n")
    };
    assert_eq!(ask(&site, with("Cookie: a=b; c=d", "/cookie")), text("200 OK", "", "a=b; c=d\n"));
    assert_eq!(ask(&site, last("GET /cookie")), text("200 OK", "", "No cookie was sent.\n"));
    let right = format!("Authorization: bAsic {}", crate::route::AUTH_TOKEN);
    assert_eq!(ask(&site, with(&right, "/auth")), text("200 OK", "", "Welcome, fred.\n"));
    for field in ["X: y", "Authorization: Basic eA==", "Authorization: Bearer x"] {
        let refused = ask(&site, with(field, "/auth"));
        assert!(refused.starts_with("HTTP/1.1 401 Unauthorized\n"), "{refused}");
        assert!(refused.contains("www-authenticate: Basic realm=\"loadstone site\"\n"));
    }
    let refused = ask(&site, last("GET /digest"));
    assert!(refused.contains("www-authenticate: Digest realm=\"loadstone site\""), "{refused}");
    let wrong = "Authorization: Digest username=\"fred\", nonce=\"x\", nc=00000001, response=\"\"";
    assert!(ask(&site, with(wrong, "/digest")).starts_with("HTTP/1.1 401 "));
    let mut client = Client::new(&site);
    let mut bytes = Vec::new();
    client.send(last("GET /gzip/100000")).0.read_to_end(&mut bytes).unwrap();
    let start = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert!(masked(&bytes[..start]).contains("content-encoding: gzip\n"));
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(&bytes[start..]).read_to_string(&mut unpacked).unwrap();
    assert!(unpacked == pattern(100_000));
}

#[test]
fn head_is_get_without_the_body() {
    let site = site(&[]);
    for target in [
        "/",
        "/hw",
        "/sleep?0",
        "/bytes/0",
        "/bytes/70000",
        "/status/200",
        "/status/204",
        "/status/301",
        "/echo",
        "/chunked/10?trailer=1",
        "/close/10",
        "/cookie",
        "/gzip/10",
        "/auth",
        "/redirect/1",
        "/nope",
        "/bytes/x",
    ] {
        let get = ask(&site, last(&format!("GET {target}")));
        let head = ask(&site, last(&format!("HEAD {target}")));
        // hyper puts the length of an empty body at another place
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let (get_head, _) = get.split_once("\n\n").unwrap();
        assert!(head.ends_with("\n\n"), "{head}");
        assert_eq!(sorted(head.trim_end()), sorted(get_head), "{target}");
    }
    // the chunked coding may be announced, or not (RFC 9110 §9.3.2)
    assert!(ask(&site, last("HEAD /chunked/10")).starts_with("HTTP/1.1 200 OK\n"));
}

#[test]
fn methods_that_make_no_sense_are_405() {
    let site = site(&[]);
    for method in ["POST", "DELETE", "BREW"] {
        let response = ask(&site, last(&format!("{method} /hw")));
        assert!(response.starts_with("HTTP/1.1 405 Method Not Allowed\n"), "{response}");
        assert!(response.contains("\nallow: GET, HEAD, OPTIONS\n"), "{response}");
    }
    for target in ["/hw", "*"] {
        let options = ask(&site, last(&format!("OPTIONS {target}")));
        assert!(options.starts_with("HTTP/1.1 204 No Content\n"), "{options}");
        assert!(options.contains("\nallow: GET, HEAD"), "{options}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let site = site(&[]);
    let mut client = Client::new(&site);
    client.send(request("GET /bytes/3") + &request("HEAD /hw") + &request("GET /status/204"));
    client.send(request("GET /status/103") + &request("GET /bytes/5") + &request("GET /close/4"));
    let responses = client.rest();
    let statuses: Vec<&str> = responses
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|response| response.split(' ').next().unwrap())
        .collect();
    assert_eq!(statuses, ["200", "200", "204", "103", "200", "200", "200"]);
    assert!(responses.ends_with("\n\n0123"), "{responses}");
    let served = site.stop().unwrap();
    assert_eq!((served.connections, served.requests, served.answered()), (1, 6, 6));
}

#[test]
fn http_1_0_is_closed_unless_kept() {
    let site = site(&[]);
    let mut client = Client::new(&site);
    for _ in 0..2 {
        let kept =
            client.send("GET /hw HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").response(false);
        assert!(kept.starts_with("HTTP/1.0 200 OK\n"), "{kept}");
        assert!(kept.contains("connection: keep-alive\n"), "{kept}");
    }
    let closed = client.send("GET /hw HTTP/1.0\r\n\r\n").rest();
    assert!(closed.ends_with("hello world"), "{closed}");
}

#[test]
fn invalid_requests_are_refused_and_counted() {
    let site = site(&[]);
    let bad = "HTTP/1.1 400 Bad Request\n";
    for text in ["\x16\x03\x01\0\0\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n"] {
        assert!(ask(&site, text).starts_with(bad), "{text:?}");
    }
    let no_host = ask(&site, "GET /hw HTTP/1.1\r\nConnection: close\r\n\r\n");
    let why = "An HTTP/1.1 request needs one Host field that names a host.\n";
    assert_eq!(no_host, text("400 Bad Request", "", why));
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    assert!(ask(&site, long).starts_with("HTTP/1.1 431 "));
    let endless = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(200_000));
    assert!(ask(&site, endless).starts_with("HTTP/1.1 431 "));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(200));
    assert!(ask(&site, many).starts_with("HTTP/1.1 431 "));
    // a partial request is not a request
    assert_eq!(Client::new(&site).send("GET / HT").no_more().rest(), "");
    let served = site.stop().unwrap();
    assert_eq!(served.responses.into_iter().collect::<Vec<_>>(), [(400, 3), (431, 3)]);
    assert_eq!((served.requests, served.connections), (6, 7));
}
