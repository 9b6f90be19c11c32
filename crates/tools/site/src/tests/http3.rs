//! The pages over HTTP/3, by a client of quinn and h3.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, Once};

use hyper::body::{Buf, Bytes};
use protocol::http3::{read_section, varint, write_section};
use quinn::crypto::rustls::QuicClientConfig;

use super::*;
use crate::Address;

/// A site and a client that trusts it.
struct OverQuic {
    site: Site,
    client: quinn::ClientConfig,
}

impl OverQuic {
    fn start(mut config: Config) -> OverQuic {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let name =
            format!("site-http3-{}-{:?}.pem", std::process::id(), std::thread::current().id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
        config.parse_option("http3", file.to_str().unwrap()).unwrap();
        let site = Site::start(config);
        std::fs::remove_file(file).unwrap();
        OverQuic { site: site.unwrap(), client: trusting(made.cert.der().clone()) }
    }

    /// Returns the status and body of the response to each request, in sequence on one connection.
    fn ask(&self, requests: &[(&str, &str, &str)]) -> Vec<(u16, String)> {
        within_patience(self.conversation(requests))
    }

    fn connect(&self, endpoint: &quinn::Endpoint) -> quinn::Connecting {
        let Address::Tcp(address) = *self.site.address() else { panic!("a port") };
        endpoint.connect_with(self.client.clone(), address, "localhost").unwrap()
    }

    async fn conversation(&self, requests: &[(&str, &str, &str)]) -> Vec<(u16, String)> {
        let endpoint = endpoint();
        let connection = h3_quinn::Connection::new(self.connect(&endpoint).await.unwrap());
        let (_driver, mut client) = h3::client::new(connection).await.unwrap();
        let mut responses = Vec::new();
        for (method, path, body) in requests {
            let request = hyper::Request::builder().method(*method);
            let request = request.uri(format!("https://localhost{path}")).body(()).unwrap();
            let mut stream = client.send_request(request).await.unwrap();
            if !body.is_empty() {
                stream.send_data(Bytes::from((*body).to_owned())).await.unwrap();
            }
            stream.finish().await.unwrap();
            let status = stream.recv_response().await.unwrap().status().as_u16();
            let mut got = Vec::new();
            while let Some(mut data) = stream.recv_data().await.unwrap() {
                got.extend_from_slice(&data.copy_to_bytes(data.remaining()));
            }
            responses.push((status, String::from_utf8(got).unwrap()));
        }
        responses
    }
}

fn within_patience<T>(asked: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, asked).await.expect("the site answers") })
}

fn endpoint() -> quinn::Endpoint {
    quinn::Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap()
}

fn trusting(cert: rustls_pki_types::CertificateDer<'static>) -> quinn::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.enable_early_data = true;
    quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()))
}

#[test]
fn bodies_that_are_held_are_bounded_over_http3() {
    let config = Config { held_max: 10, body_max: 12, ..config(&[]) };
    let over = OverQuic::start(config);
    let echo = |body| ("POST", "/echo", body);
    // buffered bytes are released with each response
    let got = over.ask(&[
        echo("ten bytes."),
        echo("ten bytes!"),
        echo("ten and one"),
        echo("ten again."),
    ]);
    let describe = |status, body: &str| (status, body.to_owned());
    assert_eq!(
        got,
        [
            describe(200, "ten bytes."),
            describe(200, "ten bytes!"),
            describe(503, ""),
            describe(200, "ten again.")
        ]
    );
    let served = over.site.stop().unwrap();
    assert_eq!(served.requests, 4);
    assert_eq!(served.responses.into_iter().collect::<Vec<(u16, u64)>>(), [(200, 3), (503, 1)]);
}

/// Returns a function that lists the panics of h3 and h3-quinn so far. The site's threads survive a
/// panic of one request, so that no socket shows it.
fn panics_of_h3() -> impl Fn() -> Vec<String> {
    static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            if place.contains("/h3-") {
                SEEN.lock().unwrap().push(place);
            }
            before(panic);
        }));
    });
    || SEEN.lock().unwrap().clone()
}

/// Returns a request's HEADERS: `method` and `path` as QPACK codes them.
fn head(method: u8, path: &[u8]) -> Vec<u8> {
    // https, and an authority by its name's place in the static table
    let mut section = vec![0, 0, method, 0xd7, 0x50, 9];
    section.extend_from_slice(b"localhost");
    section.extend_from_slice(path);
    [&[1, section.len() as u8], &section[..]].concat()
}

const GET: u8 = 0xd1;
const POST: u8 = 0xd4;
const ROOT: &[u8] = &[0xc1];
const ECHO: &[u8] = b"\x51\x05/echo";
/// A frame of a type without meaning (RFC 9114 section 7.2.8).
const GREASE: &[u8] = &[0x21, 3, b'a', b'b', b'c'];

/// Returns the head of a response; bytes after it are grease.
fn head_of(response: &[u8]) -> &[u8] {
    &response[..usize::from(response[1]) + 2]
}

#[test]
fn a_refusal_amid_a_body_is_answered_and_no_panic() {
    let panics = panics_of_h3();
    let over = OverQuic::start(Config { held_max: 10, body_max: 12, ..config(&[]) });
    // the frame whole and in part; its stream stays open
    for frame in [&b"\x00\x0bten and one"[..], b"\x00\x40\x64ten and one", b"\x00\x0cten and one"] {
        let (response, code) = within_patience(async {
            let endpoint = endpoint();
            let connection = over.connect(&endpoint).await.unwrap();
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            send.write_all(&[&head(POST, ECHO), frame].concat()).await.unwrap();
            (receive.read_to_end(1_000).await.unwrap(), send.stopped().await.unwrap())
        });
        assert_eq!(head_of(&response), [1, 3, 0, 0, 0xdc], "503");
        assert_eq!(code, Some(0_u32.into()), "no more of the body is wanted");
    }
    assert_eq!(over.site.stop().unwrap().responses, [(503, 3)].into());
    assert_eq!(panics(), Vec::<String>::new());
}

#[test]
fn too_early_after_grease_is_answered_without_panic() {
    let panics = panics_of_h3();
    let over = OverQuic::start(config(&[("early-data", "too-early")]));
    let whole = [GREASE, &head(GET, ROOT)].concat();
    let mut too_early = 0;
    for cut in 1..whole.len() {
        for response in within_patience(early(&over, &whole, cut)) {
            too_early += usize::from(head_of(&response) == [1, 4, 0, 0, 0xff, 7]);
        }
    }
    // all of them, unless the handshake completes on this machine before the site checks
    assert!(too_early > 0);
    over.site.stop().unwrap();
    assert_eq!(panics(), Vec::<String>::new());
}

/// Returns two responses on a connection with early data: to a request in one piece, then to a
/// request whose rest followed after that response.
async fn early(over: &OverQuic, whole: &[u8], cut: usize) -> [Vec<u8>; 2] {
    let endpoint = endpoint();
    let first = over.connect(&endpoint).await.unwrap();
    // a ticket follows the handshake, and so does a response
    let (send, receive) = first.open_bi().await.unwrap();
    ended(send, receive, &head(GET, ROOT)).await;
    let (connection, _) = over.connect(&endpoint).into_0rtt().expect("a ticket for early data");
    let (mut send, receive) = connection.open_bi().await.unwrap();
    send.write_all(&whole[..cut]).await.unwrap();
    let other = connection.open_bi().await.unwrap();
    [ended(other.0, other.1, whole).await, ended(send, receive, &whole[cut..]).await]
}

/// Returns the response to a request that ends with `rest`.
async fn ended(
    mut send: quinn::SendStream,
    mut receive: quinn::RecvStream,
    rest: &[u8],
) -> Vec<u8> {
    send.write_all(rest).await.unwrap();
    send.finish().unwrap();
    receive.read_to_end(100_000).await.unwrap()
}

/// Returns a frame of HTTP/3 (RFC 9114 section 7.1).
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    varint::put(&mut frame, payload.len() as u64);
    [&frame, payload].concat()
}

/// Returns a HEADERS frame with these fields, after those of every request.
fn fields(more: &[(&str, &str)]) -> Vec<u8> {
    let usual = [(":scheme", "https"), (":authority", "localhost")];
    let all = more.iter().take(1).chain(&usual).chain(more.iter().skip(1));
    frame(1, &write_section(all.map(|(name, value)| (name.as_bytes(), value.as_bytes()))))
}

/// Returns the status and the content of a response.
fn read_response(mut bytes: &[u8]) -> (String, Vec<u8>) {
    let (mut status, mut content) = (String::new(), Vec::new());
    while !bytes.is_empty() {
        let (kind, first) = varint::get(bytes).unwrap();
        let (length, second) = varint::get(&bytes[first..]).unwrap();
        let (payload, rest) = bytes[first + second..].split_at(length as usize);
        match kind {
            0 => content.extend_from_slice(payload),
            1 => {
                let fields = read_section(payload, 10_000).unwrap();
                let found = fields.iter().find(|(name, _)| name == b":status").unwrap();
                status = String::from_utf8(found.1.clone()).unwrap();
            }
            _ => {}
        }
        bytes = rest;
    }
    (status, content)
}

/// Opens a stream for each request, and returns the responses up to the ends of the streams.
async fn responses(over: &OverQuic, requests: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    let endpoint = endpoint();
    let connection = over.connect(&endpoint).await.unwrap();
    let mut streams = Vec::new();
    for request in requests {
        let (mut send, receive) = connection.open_bi().await.unwrap();
        send.write_all(request).await.unwrap();
        // a WebSocket ends by its close frame, the client's side stays open
        streams.push((send, receive));
    }
    let mut found = Vec::new();
    for (_, receive) in &mut streams {
        found.push(read_response(&receive.read_to_end(100_000).await.unwrap()));
    }
    found
}

const CONNECT: (&str, &str) = (":method", "CONNECT");
const WEBSOCKET: (&str, &str) = (":protocol", "websocket");
const VERSION: (&str, &str) = ("sec-websocket-version", "13");
/// A message and a close frame from a client, masked with zero keys.
const MESSAGE: &[u8] = b"\x81\x82\0\0\0\0hi";
const CLOSE: &[u8] = b"\x88\x82\0\0\0\0\x03\xe8";
const ECHO_AND_CLOSE: &[u8] = b"\x81\x02hi\x88\x02\x03\xe8";

#[test]
fn websockets_are_streams_of_http3() {
    let over = OverQuic::start(config(&[]));
    let path = |path: &'static str| (":path", path);
    let connect = fields(&[CONNECT, WEBSOCKET, path("/ws"), VERSION]);
    let content = [frame(0, MESSAGE), frame(0, CLOSE)].concat();
    let cut = [frame(0, &MESSAGE[..3]), frame(0, &MESSAGE[3..]), frame(0, CLOSE)].concat();
    let no_version = fields(&[CONNECT, WEBSOCKET, path("/ws"), ("sec-websocket-version", "12")]);
    let own_field = fields(&[(":method", "GET"), path("/ws"), ("loadstone-protocol", "websocket")]);
    let found = within_patience(responses(
        &over,
        &[
            [&connect[..], &content].concat(),
            [&connect[..], &cut].concat(),
            [
                &fields(&[CONNECT, WEBSOCKET, path("/ws?close=4001&after=1"), VERSION])[..],
                &frame(0, &MESSAGE.repeat(2)),
                // the answer to the site's close frame
                &frame(0, CLOSE),
            ]
            .concat(),
            fields(&[CONNECT, WEBSOCKET, path("/hw"), VERSION]),
            fields(&[CONNECT, (":protocol", "connect-udp"), path("/ws"), VERSION]),
            no_version,
        ],
    ));
    let statuses: Vec<&str> = found.iter().map(|(status, _)| &status[..]).collect();
    assert_eq!(statuses, ["200", "200", "200", "404", "501", "426"]);
    assert_eq!((&found[0].1[..], &found[1].1[..]), (ECHO_AND_CLOSE, ECHO_AND_CLOSE));
    assert!(found[2].1.starts_with(b"\x81\x02hi\x88\x0a\x0f\xa1"), "{:?}", found[2].1);
    let get = within_patience(async {
        let endpoint = endpoint();
        let connection = over.connect(&endpoint).await.unwrap();
        let (send, receive) = connection.open_bi().await.unwrap();
        read_response(&ended(send, receive, &own_field).await)
    });
    assert_eq!(get.0, "400", "a field of the client is no extended CONNECT");
    assert_eq!(over.site.stop().unwrap().requests, 7);
}

#[test]
fn settings_of_http3_permit_websockets() {
    let over = OverQuic::start(config(&[]));
    let settings = within_patience(async {
        let endpoint = endpoint();
        let connection = over.connect(&endpoint).await.unwrap();
        loop {
            let mut stream = connection.accept_uni().await.unwrap();
            let mut start = [0; 3];
            stream.read_exact(&mut start).await.unwrap();
            // the control stream, SETTINGS, a length
            if let [0, 4, length] = start {
                let mut settings = vec![0; length.into()];
                stream.read_exact(&mut settings).await.unwrap();
                return settings;
            }
        }
    });
    assert!(settings.windows(2).any(|pair| pair == [8, 1]), "{settings:?}");
}
