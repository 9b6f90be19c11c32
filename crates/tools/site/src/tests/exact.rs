//! The exact loop: faults, delays, stalls.

use std::io;
use std::time::{Duration, Instant};

use units::Nanos;

use super::*;

const HEAD: &str = "HTTP/1.1 200 OK\nServer: loadstone\nDate: *\nContent-Length: 11\n";
const KEPT: &str = "Content-Type: text/plain\n\nhello world";
const CLOSED: &str = "Connection: close\nContent-Type: text/plain\n\nhello world";

fn kept() -> String {
    format!("{HEAD}{KEPT}")
}

fn closed() -> String {
    format!("{HEAD}{CLOSED}")
}

/// The exact loop without any fault.
const PLAIN: &[(&str, &str)] = &[("delay", "0")];

#[test]
fn plain_responses_are_right_here_too() {
    let site = site(PLAIN);
    assert_eq!(ask(&site, last("GET /hw")), closed());
    assert_eq!(ask(&site, last("POST /any?thing")), closed());
    assert_eq!(ask(&site, "GET /hw HTTP/1.0\n\n"), closed());
    let bytes = ask(&site, last("GET /bytes/200000"));
    assert!(bytes.ends_with(&format!("\n\n{}", pattern(200_000))));
    let mut client = Client::new(&site);
    let kept_old = client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").response(false);
    assert_eq!(kept_old, format!("{HEAD}Connection: keep-alive\n{KEPT}"));
    assert_eq!(client.send(request("GET /status/204")).response(false).lines().count(), 4);
    let head = client.send(request("HEAD /bytes/7")).response(true);
    assert!(head.contains("Content-Length: 7\n") && head.ends_with("\n\n"), "{head}");
    let refused = client.send(last("GET /bytes/x")).rest();
    assert!(refused.starts_with("HTTP/1.1 400 Bad Request\n"), "{refused}");
}

#[test]
fn pipelined_requests_and_bodies_in_between() {
    let site = site(PLAIN);
    let posts = "POST /hw HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
                 POST /hw HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let text = posts.to_owned() + &request("GET /hw").repeat(3_000) + &last("GET /hw");
    let mut client = Client::new(&site);
    let mut writer = client.0.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(text.as_bytes()).unwrap());
    let responses = client.rest();
    sender.join().unwrap();
    assert!(responses == kept().repeat(3_002) + &closed(), "{} bytes", responses.len());
}

#[test]
fn a_request_byte_by_byte_and_one_that_waits_for_100() {
    let site = site(PLAIN);
    let mut client = Client::new(&site);
    for byte in request("GET /hw").bytes() {
        client.send([byte]);
    }
    assert_eq!(client.response(false), kept());
    let head = "PUT /hw HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(client.send(head).response(false), "HTTP/1.1 100 Continue\n\n");
    assert_eq!(client.send("ab").response(false), kept());
    // a client that closes its own side still gets its responses
    assert_eq!(client.send(request("GET /hw").repeat(2)).no_more().rest(), kept().repeat(2));
}

#[test]
fn an_invalid_request_closes_the_connection() {
    let site = site(&[("delay", "0"), ("body-max", "10")]);
    let refused = |text: &str| {
        let response = ask(&site, text);
        assert!(response.contains("\nConnection: close\n"), "{response}");
        response.split(' ').nth(1).unwrap().to_owned()
    };
    let post = "POST / HTTP/1.1\r\nHost: a\r\n";
    let table = [
        ("\x16\x03\x01\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/3.0\r\n\r\n".to_owned(), "505"),
        (format!("{post}Content-Length: 11\r\n\r\n"), "413"),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n"), "413"),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\nx\r\n"), "400"),
        (format!("{post}X: {}", "x".repeat(100_000)), "431"),
    ];
    for (text, status) in &table {
        assert_eq!(refused(text), *status, "{}", &text[..text.len().min(80)]);
    }
    let served = site.stop().unwrap();
    assert_eq!((served.requests, served.answered()), (7, 7));
}

/// Returns the shortest and the longest duration of `count` responses to `line`, requested at once
/// on separate connections.
fn shortest_and_longest(site: &Site, count: usize, line: &str) -> (Duration, Duration) {
    let begin = Instant::now();
    let mut clients: Vec<Client> = (0..count).map(|_| Client::new(site)).collect();
    for client in &mut clients {
        client.send(last(line));
    }
    let mut times: Vec<Duration> = clients
        .iter_mut()
        .map(|client| {
            assert!(client.rest().contains(" 200 OK\n"));
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[0], times[count - 1])
}

#[test]
fn no_response_is_early() {
    let ms = Duration::from_millis;
    let delayed = site(&[("delay", "20ms")]);
    assert!(shortest_and_longest(&delayed, 3, "GET /hw").0 >= ms(20));
    let uniform = site(&[("delay", "10ms..20ms")]);
    assert!(shortest_and_longest(&uniform, 3, "GET /hw").0 >= ms(10));
    let queue = site(&[("service", "10ms")]);
    assert!(shortest_and_longest(&queue, 4, "GET /hw").1 >= ms(40));
    let serial = site(&[("delay", "10ms"), ("one-at-a-time", "")]);
    assert!(shortest_and_longest(&serial, 4, "GET /hw").1 >= ms(40));
    let lateness = serial.lateness();
    assert_eq!(lateness.responses, 4);
    assert!(lateness.p50 <= lateness.p99 && lateness.p99 <= lateness.max, "{lateness:?}");
    assert!(lateness.max > Nanos::ZERO);
}

/// Every page of the site under a fault that only takes time; the other server has most of them.
#[test]
fn every_page_is_served_with_a_delay() {
    let site = site(&[("delay", "3ms")]);
    let table = [
        ("GET /hw", "200 OK", "hello world"),
        ("GET /gzip/10", "200 OK", "content-encoding: gzip"),
        ("GET /chunked/9?pieces=3", "200 OK", "transfer-encoding: chunked"),
        ("GET /events?n=2&every=1ms&first=0ms", "200 OK", "data: "),
        ("GET /timed?0.001", "200 OK", "server-timing: "),
        ("GET /cookie?set=a=b", "200 OK", "set-cookie: a=b"),
        ("GET /redirect/2", "302 Found", "location: /redirect/1"),
        ("GET /auth", "401 Unauthorized", "www-authenticate: basic"),
        ("GET /close/5", "200 OK", "connection: close"),
        ("GET /ws", "400 Bad Request", "is a WebSocket"),
    ];
    for (line, status, part) in table {
        let begin = Instant::now();
        let response = ask(&site, last(line));
        assert!(begin.elapsed() >= Duration::from_millis(3), "{line}");
        let same = |part: &str| response.to_lowercase().contains(&part.to_lowercase());
        assert!(response.starts_with("HTTP/1.1 ") && same(status), "{line}: {response}");
        assert!(same(part), "{line}: {response}");
    }
    assert_eq!(site.stop().unwrap().requests, table.len() as u64);
}

#[test]
fn a_path_has_one_page_on_every_connection_despite_faults() {
    let site = site(&[("delay", "1ms")]);
    let mut client = Client::new(&site);
    client.send(request("GET /") + &request("GET /gzip/10") + &request("GET /"));
    client.send(request("GET /elsewhere"));
    let all: Vec<String> = (0..4).map(|_| client.response(false)).collect();
    let hello = |at: usize| all[at].ends_with("hello world");
    assert!(hello(0) && hello(2) && hello(3), "{all:#?}");
    assert!(all[1].contains("content-encoding: gzip"), "{}", all[1]);
}

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\
    Connection: upgrade\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A message and a close frame arrive together: in the segment of the upgrade, or in a later one.
#[test]
fn a_message_before_a_close_is_echoed_first() {
    let site = site(&[]);
    let frames = b"\x81\x82\0\0\0\0hi\x88\x82\0\0\0\0\x03\xe8";
    for waits in [false, true] {
        let mut client = Client::new(&site);
        if waits {
            client.send(UPGRADE);
            client.response(true);
            client.send(frames);
        } else {
            client.send([UPGRADE.as_bytes(), frames].concat());
            client.response(true);
        }
        let mut echoed = Vec::new();
        client.0.read_to_end(&mut echoed).unwrap();
        assert_eq!(echoed, b"\x81\x02hi\x88\x02\x03\xe8", "waits: {waits}");
    }
}

#[test]
fn a_websocket_is_opened_and_echoes_despite_faults() {
    let upgrade = UPGRADE;
    // the text "hi", masked with zeros
    let hi = b"\x81\x82\0\0\0\0hi";
    let site = site(&[("delay", "3ms")]);
    let mut client = Client::new(&site);
    let begin = Instant::now();
    // the first response is the loop's own, and precedes the upgrade
    client.send(request("GET /hw") + upgrade);
    assert!(client.response(false).ends_with("hello world"));
    let head = client.response(false);
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\n"), "{head}");
    assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    assert!(begin.elapsed() >= Duration::from_millis(3));
    client.send(hi);
    assert_eq!([client.byte(), client.byte(), client.byte(), client.byte()], *b"\x81\x02hi");
    drop(site);
    let failing = super::site(&[("error-share", "100%")]);
    let failed = Client::new(&failing).send(upgrade).response(false);
    assert!(failed.starts_with("HTTP/1.1 500 "), "{failed}");
    let resetting = super::site(&[("reset-share", "100%")]);
    let mut reset = Client::new(&resetting);
    reset.send(upgrade);
    let read = reset.0.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(read, Err(io::ErrorKind::ConnectionReset));
    // a fault of bytes or connections cannot be applied to a WebSocket
    let broken = super::site(&[("truncate", "")]);
    assert!(ask(&broken, upgrade).starts_with("HTTP/1.1 501 "));
}

#[test]
fn calls_over_http_1_are_answered_with_a_delay() {
    let site = site(&[("delay", "3ms")]);
    let table = [
        ("Content-Type: application/grpc-web+proto", "\0\0\0\0\0", "grpc-status: 0"),
        ("Content-Type: application/grpc-web-text", "AAAAAAA=", "application/grpc-web-text"),
        (
            "Connect-Protocol-Version: 1\r\nContent-Type: application/proto",
            "",
            "content-type: application/proto",
        ),
    ];
    for (fields, body, part) in table {
        let begin = Instant::now();
        let call = format!(
            "POST /loadstone.v1.Echo/Say HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let response = ask(&site, call).to_lowercase();
        assert!(response.starts_with("http/1.1 200 ok\n"), "{fields}: {response}");
        assert!(response.contains(part), "{fields}: {response}");
        assert!(begin.elapsed() >= Duration::from_millis(3), "{fields}");
    }
    // the same media type without a version of Connect is an ordinary page
    let page = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/proto\r\n\
                Content-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(ask(&site, page), closed());
}

/// Preface, empty SETTINGS, and a GET of `/` on stream 1 (RFC 9113).
const HTTP2_GET: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
    \0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01a";

#[test]
fn a_reset_of_http_2_ends_the_connection() {
    let resetting = site(&[("reset-share", "100%")]);
    let mut client = Client::new(&resetting);
    client.send(HTTP2_GET);
    let mut bytes = Vec::new();
    let end = client.0.read_to_end(&mut bytes).map_err(|error| error.kind());
    assert_eq!(end, Err(io::ErrorKind::ConnectionReset));
    // type 3: no single stream was reset before
    let is_rst_stream = |frame: &[u8]| frame == [0, 0, 4, 3, 0, 0, 0, 0, 1];
    assert!(!bytes.windows(9).any(is_rst_stream), "{bytes:?}");
    let served = resetting.stop().unwrap();
    assert_eq!((served.requests, served.unanswered), (1, 1));
}

#[test]
fn requests_that_wait_at_a_half_close_are_answered() {
    let site = site(&[("delay", "3ms")]);
    let both = request("GET /hw") + &request("GET /gzip/10");
    let answers = Client::new(&site).send(both).no_more().rest();
    assert!(answers.starts_with(&kept()), "{answers}");
    assert!(answers.to_lowercase().contains("content-encoding: gzip"), "{answers}");
    // more than the connection processes at once
    let many = request("GET /hw").repeat(1_100);
    let answers = Client::new(&site).send(many).no_more().rest();
    assert_eq!(answers.matches("hello world").count(), 1_100);
}

#[test]
fn responses_of_a_connection_keep_their_order_despite_delays() {
    let site = site(&[("delay", "exp:2ms")]);
    let lines: Vec<String> = (0..50).map(|len| request(&format!("GET /bytes/{len}"))).collect();
    let mut client = Client::new(&site);
    client.send(lines.concat());
    for len in 0..50 {
        assert!(client.response(false).contains(&format!("Content-Length: {len}\n")), "{len}");
    }
}

#[test]
fn a_stall_holds_everything_up() {
    let site = site(&[("stall", "50ms/100ms")]);
    let mut client = Client::new(&site);
    let most = Instant::now();
    // some request is in progress when a stall starts, unless the client itself was delayed; then
    // another stall follows
    let felt = std::iter::repeat_with(|| {
        let begin = Instant::now();
        assert_eq!(client.send(request("GET /hw")).response(false), kept());
        begin.elapsed()
    })
    .take_while(|_| most.elapsed() < PATIENCE)
    .any(|time| time >= Duration::from_millis(40));
    assert!(felt);
}

#[test]
fn stopping_does_not_wait_for_due_responses() {
    let site = site(&[("delay", "40m")]);
    let mut client = Client::new(&site);
    client.send(request("GET /hw"));
    drop(site);
    assert!(["", "[reset]"].contains(&client.rest().as_str()));
}

#[test]
fn shares_of_errors_and_resets_repeat_with_the_seed() {
    let draw = |seed: &str| {
        let site = site(&[("error-share", "30%"), ("reset-share", "20%"), ("seed", seed)]);
        let outcome = |_| {
            let response = ask(&site, last("GET /hw"));
            match response.as_str() {
                "[reset]" => 'r',
                _ if response.contains(" 500 ") => 'e',
                _ => '.',
            }
        };
        let outcomes: String = (0..100).map(outcome).collect();
        let served = site.stop().unwrap();
        let count = |kind| outcomes.matches(kind).count() as u64;
        assert_eq!(served.unanswered, count('r'));
        assert_eq!(served.responses[&500], count('e'));
        assert_eq!(served.responses[&200], count('.'));
        assert!((10..=32).contains(&count('r')) && (12..=38).contains(&count('e')), "{outcomes}");
        outcomes
    };
    assert_eq!(draw("1"), draw("1"));
    assert_ne!(draw("1"), draw("2"));
}

#[test]
fn connections_beyond_the_cap_are_closed_at_once() {
    let site = site(&[("connection-cap", "2")]);
    let mut inside: Vec<Client> = (0..2)
        .map(|_| {
            let mut client = Client::new(&site);
            client.send(request("GET /hw")).response(false);
            client
        })
        .collect();
    assert_eq!(Client::new(&site).rest(), "");
    assert_eq!(inside[1].send(request("GET /hw")).response(false), kept());
    assert_eq!(site.stop().unwrap().connections, 3);
}

#[test]
fn a_connection_closes_after_n_responses() {
    let site = site(&[("close-after", "2")]);
    let responses = ask(&site, request("GET /hw").repeat(5));
    assert_eq!(responses, kept() + &closed());
}

#[test]
fn a_drip_takes_its_time() {
    let site = site(&[("drip", "1000B/s")]);
    let begin = Instant::now();
    let response = ask(&site, last("GET /bytes/50"));
    assert!(response.ends_with(&format!("\n\n{}", pattern(50))), "{response}");
    assert!(begin.elapsed() >= Duration::from_millis(50));
    // a queue of slow bodies on one connection, and one of the server's
    let serial = crate::tests::site(&[("drip", "1000B/s"), ("one-at-a-time", "")]);
    let begin = Instant::now();
    let responses = ask(&serial, request("GET /bytes/20").repeat(2) + &last("GET /bytes/20"));
    assert_eq!(responses.matches(&pattern(20)).count(), 3);
    assert!(begin.elapsed() >= Duration::from_millis(60));
}

#[test]
fn lengths_are_wrong_as_ordered() {
    let short = site(&[("wrong-length", "short")]);
    assert_eq!(ask(&short, last("GET /hw")), closed() + "extra");
    assert!(ask(&short, last("GET /bytes/3")).ends_with("\n\n01234567"));
    let long = site(&[("wrong-length", "long")]);
    let more = |text: String| text.replace("Length: 11", "Length: 16");
    assert_eq!(ask(&long, last("GET /hw")), more(closed()));
    // the connection stays open, and the client waits for the rest: it receives the start of the
    // next response
    let mut client = Client::new(&long);
    client.send(request("GET /hw") + &last("GET /hw"));
    assert_eq!(client.rest(), more(kept()) + &more(closed()));
}

#[test]
fn garbage_is_not_http_and_ends() {
    let site = site(&[("garbage", "")]);
    let mut bytes = Vec::new();
    Client::new(&site).send(request("GET /hw").repeat(2)).0.read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() == 64 && !bytes.starts_with(b"HTTP"), "{bytes:?}");
    let served = site.stop().unwrap();
    assert_eq!((served.requests, served.unanswered, served.answered()), (1, 1, 0));
}

#[test]
fn never_answer_reads_and_stays_silent() {
    let site = site(&[("never-answer", "")]);
    let mut client = Client::new(&site);
    client.send(request("GET /hw") + &last("GET /hw")).no_more();
    assert_eq!(client.rest(), "");
    let served = site.stop().unwrap();
    assert_eq!((served.requests, served.unanswered, served.bytes_sent), (2, 2, 0));
}

#[test]
fn close_early_closes_once_the_request_is_read() {
    let site = site(&[("close-early", "")]);
    let mut client = Client::new(&site);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab").send("c");
    assert_eq!(client.rest(), "");
    assert_eq!(site.stop().unwrap().unanswered, 1);
}

#[test]
fn twice_and_truncate_break_the_response() {
    let twice = site(&[("twice", "")]);
    assert_eq!(ask(&twice, request("GET /hw") + &last("GET /hw")), {
        kept().repeat(2) + &closed().repeat(2)
    });
    let truncate = site(&[("truncate", "")]);
    assert_eq!(
        ask(&truncate, request("GET /hw")),
        format!("{HEAD}Content-Type: text/plain\n\nhello")
    );
    let served = twice.stop().unwrap();
    assert_eq!((served.requests, served.answered()), (2, 2));
}

#[test]
fn the_site_ends_after_n_requests() {
    let site = site(&[("die-after", "3")]);
    let address = site.address().to_string();
    let mut idle = Client::new(&site);
    assert_eq!(idle.send(request("GET /hw")).response(false), kept());
    let mut client = Client::new(&site);
    for _ in 0..2 {
        assert_eq!(client.send(request("GET /hw")).response(false), kept());
    }
    assert_eq!((client.rest(), idle.rest()), (String::new(), String::new()));
    assert!(site.wait(PATIENCE));
    let refused = TcpStream::connect(&address).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(site.stop().unwrap().answered(), 3);
}

#[test]
fn disconnecting_clients_are_harmless() {
    let site = site(&[("delay", "5ms")]);
    for _ in 0..20 {
        Client::new(&site).send(request("GET /bytes/1000000").repeat(3));
    }
    assert_eq!(ask(&site, last("GET /hw")), closed());
}
