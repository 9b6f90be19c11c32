//! Requests sent together, in virtual time: when they are sent, and the response to each.

use conduit::Peer;
use engine::exchange::{BODY_MAX, ExchangeOutcome, Message, Request, ResponseLimits, Terms};
use protocol::http1::response::Asked;
use sample::FailureClass;
use sim::{Action, Admission, Client, ClosureServer, Server, World, exchange, exchange_with_terms};
use std::net::SocketAddr;
use units::Nanos;

const CONNECT: Nanos = Nanos::from_secs(5);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn request(bytes: &[u8]) -> Request {
    Request {
        peers: vec![Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 1)))],
        tls_name: None,
        tunnel: None,
        message: Message::Http1 { bytes: bytes.to_vec(), asked: Asked::Ordinary },
        timeout: Nanos::from_secs(2),
    }
}

fn world<F>(react: F) -> World
where
    F: FnMut(Nanos, Client, &[u8]) -> Vec<(Nanos, Action)> + 'static,
{
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    World::new(server, Nanos::from_millis(10), Nanos::from_secs(1_000))
}

/// Returns the status and body, or the class of the failure.
fn describe(heard: &ExchangeOutcome) -> String {
    match &heard.result {
        Ok(reply) => format!("{} {}", reply.facts.status, String::from_utf8_lossy(&reply.body)),
        Err(trouble) => trouble.class.id().to_owned(),
    }
}

fn single(react: impl FnMut(Nanos, Client, &[u8]) -> Vec<(Nanos, Action)> + 'static) -> String {
    describe(&exchange(world(react), vec![request(b"x")], CONNECT).0[0])
}

#[test]
fn a_response_is_the_same_however_it_is_cut() {
    for cut in 0..OK.len() {
        let described = single(move |now, _, _| {
            let later = now + Nanos::from_millis(1);
            vec![
                (now, Action::Bytes(OK[..cut].to_vec())),
                (later, Action::Bytes(OK[cut..].to_vec())),
            ]
        });
        assert_eq!(described, "200 hello", "cut at {cut}");
    }
}

#[test]
fn requests_wait_until_every_connection_is_established() {
    /// The second connection is established later: its first attempt is never answered.
    struct Slow;
    impl Server for Slow {
        fn connect(&mut self, _: Nanos, client: Client) -> Admission {
            if client.slot == 1 { Admission::Ignore } else { Admission::Accept }
        }
        fn receive(&mut self, now: Nanos, _: Client, _: &[u8]) -> Vec<(Nanos, Action)> {
            // 5 s of waiting for the other connection, and half the round trip
            assert_eq!(now, Nanos::from_secs(1_005) + Nanos::from_millis(10));
            vec![(now, Action::Bytes(OK.to_vec()))]
        }
    }
    let world = World::new(Box::new(Slow), Nanos::from_millis(10), Nanos::from_secs(1_000));
    let requests = vec![request(b"a"), request(b"b")];
    let (heard, _) = exchange(world, requests, CONNECT);
    assert_eq!(describe(&heard[0]), "200 hello");
    // time counts from the moment the requests were sent
    assert_eq!(heard[0].took, Nanos::from_millis(20));
    assert_eq!(describe(&heard[1]), "connect-timo");
    assert!(heard[0].connected && !heard[1].connected);
}

#[test]
fn responses_are_returned_in_request_order() {
    let react = |now: Nanos, client: Client, _: &[u8]| {
        let span = Nanos::from_millis(if client.slot == 0 { 300 } else { 100 });
        vec![(now + span, Action::Bytes(OK.to_vec()))]
    };
    let (heard, took) = exchange(world(react), vec![request(b"a"), request(b"b")], CONNECT);
    let times: Vec<Nanos> = heard.iter().map(|heard| heard.took).collect();
    assert_eq!(times, [Nanos::from_millis(320), Nanos::from_millis(120)]);
    // and 20 ms for the connections
    assert_eq!(took, Nanos::from_millis(340));
}

#[test]
fn failures_have_their_class() {
    assert_eq!(single(|now, _, _| vec![(now, Action::End)]), "closed-early");
    assert_eq!(single(|now, _, _| vec![(now, Action::Reset)]), "connreset");
    assert_eq!(single(|_, _, _| vec![]), "client-timo");
    let bytes = |text: &'static [u8]| {
        single(move |now, _, _| {
            vec![(now, Action::Bytes(text.to_vec())), (now + Nanos(1), Action::End)]
        })
    };
    assert_eq!(bytes(b"SSH-2.0\r\n"), "not-http");
    assert_eq!(bytes(&OK[..OK.len() - 1]), "truncated");
    assert_eq!(bytes(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), "bad-framing");
    assert_eq!(bytes(b"HTTP/1.1 200 OK\r\n\r\nuntil the end"), "200 until the end");
    let refuse =
        Box::new(ClosureServer { admit: Admission::Refuse, react: |_, _, _: &[u8]| vec![] });
    let world = World::new(refuse, Nanos::ZERO, Nanos::from_secs(1));
    let (heard, _) = exchange(world, vec![request(b"x")], CONNECT);
    assert_eq!(describe(&heard[0]), FailureClass::Refused.id());
}

/// Uses a proxy with this response to CONNECT, and a server's response in the tunnel.
fn through_a_proxy(sent: &'static [u8]) -> (ExchangeOutcome, Nanos) {
    let react = move |now: Nanos, _: Client, bytes: &[u8]| match bytes {
        b"CONNECT" if sent == b"end" => vec![(now, Action::End)],
        b"CONNECT" if sent == b"reset" => vec![(now, Action::Reset)],
        b"CONNECT" => vec![(now, Action::Bytes(sent.to_vec()))],
        b"x" => vec![(now, Action::Bytes(OK.to_vec()))],
        _ => panic!("{bytes:?} is no request"),
    };
    let tunnel = Some(b"CONNECT".to_vec());
    let (mut heard, took) =
        exchange(world(react), vec![Request { tunnel, ..request(b"x") }], CONNECT);
    (heard.remove(0), took)
}

#[test]
fn a_proxy_tunnel_is_requested_first() {
    let (heard, took) = through_a_proxy(b"HTTP/1.1 200 Connected\r\n\r\n");
    assert_eq!(describe(&heard), "200 hello");
    // the request follows the tunnel setup
    assert_eq!((heard.took, took), (Nanos::from_millis(20), Nanos::from_millis(60)));
    for (sent, why, after) in [
        (&b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"[..], "answered CONNECT with 403", 40),
        (b"HTTP/1.1 407 No\r\n", "did not answer CONNECT in time", 5_000),
        (b"SSH-2.0\r\n", "not HTTP", 40),
        (b"end", "ended before a response began", 40),
        (b"reset", "connection reset", 40),
    ] {
        let (heard, took) = through_a_proxy(sent);
        let trouble = heard.result.unwrap_err();
        assert_eq!(trouble.class, FailureClass::Proxy, "{trouble:?}");
        assert!(trouble.text.contains(why) && !heard.connected, "{trouble:?}");
        assert_eq!(took.max(Nanos::from_millis(40)), Nanos::from_millis(after), "{why}");
    }
}

#[test]
fn each_address_has_its_time() {
    /// The first address never responds, and the second does.
    struct SecondOnly(u32);
    impl Server for SecondOnly {
        fn connect(&mut self, _: Nanos, _: Client) -> Admission {
            self.0 += 1;
            if self.0 == 1 { Admission::Ignore } else { Admission::Accept }
        }
        fn receive(&mut self, now: Nanos, _: Client, _: &[u8]) -> Vec<(Nanos, Action)> {
            vec![(now, Action::Bytes(OK.to_vec()))]
        }
    }
    let peers = [1, 2].map(|port| Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], port)))).to_vec();
    let both = Request { peers, ..request(b"x") };
    let there = || World::new(Box::new(SecondOnly(0)), Nanos::from_millis(10), Nanos::from_secs(1));
    let (heard, took) = exchange(there(), vec![both], CONNECT);
    assert_eq!((describe(&heard[0]), took), ("200 hello".to_owned(), Nanos::from_millis(5_040)));
    let (heard, _) = exchange(there(), vec![request(b"x")], CONNECT);
    let trouble = heard[0].result.as_ref().unwrap_err();
    assert_eq!(trouble.text, "127.0.0.1:1: no connection within the connect timeout");
}

#[test]
fn a_handshake_may_be_all_that_is_wanted() {
    let react = |_, _, bytes: &[u8]| panic!("{bytes:?} was sent");
    let handshake = Request { message: Message::Handshake, ..request(b"") };
    let (heard, took) = exchange(world(react), vec![handshake], CONNECT);
    assert!(heard[0].connected && heard[0].result.is_ok(), "{heard:?}");
    assert_eq!(took, Nanos::from_millis(20));
}

/// Makes an exchange under these limits with a server that sends each piece this number of
/// milliseconds after the request.
fn within(limits: ResponseLimits, pieces: Vec<(u64, Vec<u8>)>) -> ExchangeOutcome {
    let react = move |now: Nanos, _: Client, _: &[u8]| {
        let sent = pieces.iter().cloned();
        sent.map(|(after, bytes)| (now + Nanos::from_millis(after), Action::Bytes(bytes))).collect()
    };
    let terms = Terms { limits, ..Terms::default() };
    exchange_with_terms(world(react), vec![request(b"x")], CONNECT, terms).0.remove(0)
}

#[test]
fn a_response_may_be_held_to_its_first_byte_and_its_progress() {
    let slow = || {
        let (first, rest) = OK.split_at(5);
        vec![(200, first.to_vec()), (700, rest.to_vec())]
    };
    let limits = |first_byte: Option<u64>, progress: Option<u64>| ResponseLimits {
        first_byte: first_byte.map(Nanos::from_millis),
        progress: progress.map(Nanos::from_millis),
        ..ResponseLimits::default()
    };
    for (limits, sent, took) in [
        (limits(None, None), "200 hello", 720),
        (limits(Some(300), None), "200 hello", 720),
        (limits(Some(150), None), "first-byte-timo", 150),
        (limits(None, Some(600)), "200 hello", 720),
        // 220 ms to the first byte, and from there
        (limits(None, Some(400)), "progress-timo", 620),
        (limits(Some(300), Some(400)), "progress-timo", 620),
        (limits(Some(300), Some(100)), "progress-timo", 100),
        // the whole response has 2 s
        (limits(Some(9_000), None), "200 hello", 720),
    ] {
        let heard = within(limits, slow());
        assert_eq!((describe(&heard), heard.took), (sent.to_owned(), Nanos::from_millis(took)));
    }
    // until the response starts, in place of the other limit
    for (answer, progress, sent, took) in [
        (400, 600, "200 hello", 720),
        (100, 9_000, "progress-timo", 100),
        (400, 100, "progress-timo", 320),
    ] {
        let answer = Some(Nanos::from_millis(answer));
        let limits = ResponseLimits { answer, ..limits(None, Some(progress)) };
        let heard = within(limits, slow());
        assert_eq!((describe(&heard), heard.took), (sent.to_owned(), Nanos::from_millis(took)));
    }
    let silent = within(limits(Some(9_000), Some(9_000)), Vec::new());
    assert_eq!((describe(&silent), silent.took), ("client-timo".to_owned(), Nanos::from_secs(2)));
}

#[test]
fn bodies_are_kept_up_to_the_requested_length() {
    let kept = |body_kept| ResponseLimits { body_kept, ..ResponseLimits::default() };
    let whole = within(kept(Some(2)), vec![(0, OK.to_vec())]).result.unwrap();
    assert_eq!((&whole.body[..], whole.facts.body_bytes), (&b"he"[..], 5));
    let endless = || {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 2 * BODY_MAX);
        vec![(0, head.into_bytes()), (1, vec![b'a'; BODY_MAX]), (2, b"abc".to_vec())]
    };
    let cut = within(kept(Some(3)), endless()).result.unwrap();
    assert_eq!((cut.facts.status, &cut.body[..]), (200, &b"aaa"[..]));
    assert!(cut.facts.body_bytes > BODY_MAX as u64);
    assert_eq!(describe(&within(kept(None), endless())), FailureClass::Length.id());
}

#[test]
fn a_connection_that_the_server_closes_at_once_is_closed_early() {
    /// A server beyond its connection limit: it accepts, and closes before any request.
    struct Cap;
    impl Server for Cap {
        fn receive(&mut self, now: Nanos, client: Client, _: &[u8]) -> Vec<(Nanos, Action)> {
            match client.slot {
                0 => vec![(now, Action::Bytes(OK.to_vec()))],
                _ => vec![(now, Action::End)],
            }
        }
    }
    let world = World::new(Box::new(Cap), Nanos::from_millis(1), Nanos::from_secs(1));
    let requests = vec![request(b"a"), request(b"b"), request(b"c")];
    let lines: Vec<String> = exchange(world, requests, CONNECT).0.iter().map(describe).collect();
    assert_eq!(lines, ["200 hello", "closed-early", "closed-early"]);
}

#[test]
fn an_announced_close_is_awaited() {
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let ends = |after: u64| {
        let react = move |now: Nanos, _: Client, _: &[u8]| {
            let end = (now + Nanos::from_millis(after), Action::End);
            vec![(now, Action::Bytes(closing.to_vec())), end]
        };
        let (heard, took) = exchange(world(react), vec![request(b"x")], CONNECT);
        assert_eq!((describe(&heard[0]).as_str(), heard[0].took), ("200 ", Nanos::from_millis(20)));
        took
    };
    assert_eq!(ends(100), Nanos::from_millis(40 + 100));
    // and at most half a second of it
    assert_eq!(ends(10_000), Nanos::from_millis(40 + 500));
}

#[test]
fn requests_go_out_in_pieces_where_the_transport_takes_no_more() {
    let mut seen = Vec::new();
    let react = move |now: Nanos, _: Client, bytes: &[u8]| {
        seen.extend_from_slice(bytes);
        let whole = seen == b"0123456789";
        if whole { vec![(now, Action::Bytes(OK.to_vec()))] } else { vec![] }
    };
    let mut world = world(react);
    world.limit_writes(3);
    let (heard, _) = exchange(world, vec![request(b"0123456789")], CONNECT);
    assert_eq!(describe(&heard[0]), "200 hello");
}
