//! The pages over HTTP/3, by a client of quinn and h3.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, Once};

use hyper::body::{Buf, Bytes};
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
