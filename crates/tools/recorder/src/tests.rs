#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use super::*;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConnection, RootCertStore, ServerConnection, Stream};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Returns a client that trusts this authority.
fn trusting(authority: &LocalAuthority) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(builder.unwrap().with_root_certificates(roots).with_no_client_auth())
}

/// Reads a request from a connection: its head, and the body of its length.
fn request(stream: &mut impl Read) -> String {
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        all.push(byte[0]);
    }
    let head = String::from_utf8(all).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

/// Returns a server that answers each connection with a redirect to itself, a cookie, and the
/// request.
fn server(authority: Option<Arc<LocalAuthority>>) -> Url {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let scheme = if authority.is_some() { "https" } else { "http" };
    let origin = format!("{scheme}://{}", listener.local_addr().unwrap());
    let url = Url::parse(&origin).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let answer = |asked: String| {
                format!(
                    "HTTP/1.1 302 Found\r\nLocation: {origin}/next\r\nSet-Cookie: a=b; Domain=x; \
                     Secure; Path=/\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{asked}",
                    asked.len()
                )
            };
            match &authority {
                None => {
                    let asked = request(&mut stream);
                    stream.write_all(answer(asked).as_bytes()).unwrap();
                }
                Some(authority) => {
                    let config = authority.server("127.0.0.1").unwrap();
                    let mut tls = ServerConnection::new(config).unwrap();
                    let mut stream = Stream::new(&mut tls, &mut stream);
                    let asked = request(&mut stream);
                    stream.write_all(answer(asked).as_bytes()).unwrap();
                }
            }
        }
    });
    url
}

fn recorder(upstream: Option<Url>, tls: Arc<ClientConfig>) -> (RecordingProxy, Arc<ClientConfig>) {
    let authority = LocalAuthority::generate().unwrap();
    let trust = trusting(&authority);
    (
        RecordingProxy::start(RecorderConfig { listen: LOCAL, upstream, authority, tls }).unwrap(),
        trust,
    )
}

/// Sends one request, and returns everything received until the connection ends.
fn ask(stream: &mut (impl Read + Write), text: &str) -> String {
    stream.write_all(text.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).ok();
    String::from_utf8(all).unwrap()
}

fn no_tls() -> Arc<ClientConfig> {
    trusting(&LocalAuthority::generate().unwrap())
}

#[test]
fn a_reverse_proxy_keeps_both_sides() {
    let upstream = server(None);
    let (recorder, trust) = recorder(Some(upstream.clone()), no_tls());
    let address = recorder.address();
    let text = format!(
        "POST /a?b=c HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nAccept-Encoding: br\r\n\
         Content-Length: 3\r\nConnection: close\r\n\r\nx=1"
    );
    let answer = ask(&mut TcpStream::connect(address).unwrap(), &text);
    assert!(answer.starts_with("HTTP/1.1 302 Found\r\n"), "{answer}");
    // the client stays with the recorder, and the server sees its own address
    assert!(answer.contains(&format!("location: http://{address}/next\r\n")), "{answer}");
    assert!(answer.contains("set-cookie: a=b; Path=/\r\n"), "{answer}");
    assert!(answer.contains(&format!("origin: {}\r\n", upstream.origin().ascii_serialization())));
    assert!(!answer.contains("accept-encoding"), "{answer}");
    // the same port speaks TLS
    let mut stream = TcpStream::connect(address).unwrap();
    let mut tls = ClientConnection::new(trust, ServerName::try_from("127.0.0.1").unwrap()).unwrap();
    let text = format!("GET /s HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let answer = ask(&mut Stream::new(&mut tls, &mut stream), &text);
    assert!(answer.contains(&format!("location: https://{address}/next\r\n")), "{answer}");
    let (all, troubles) = recorder.stop();
    assert_eq!(troubles, Vec::<String>::new());
    let urls: Vec<_> = all.iter().map(|it| it.url.path()).collect();
    assert_eq!(urls, ["/a", "/s"]);
    let first = &all[0];
    assert_eq!((first.method.as_str(), &first.body[..]), ("POST", &b"x=1"[..]));
    assert!(first.headers.contains(&("accept-encoding".to_owned(), "br".to_owned())));
    let response = first.response.as_ref().unwrap();
    assert_eq!(response.status, 302);
    let har: serde_json::Value = serde_json::from_str(&to_har(&all, "0")).unwrap();
    let entry = &har["log"]["entries"][0];
    assert_eq!(entry["request"]["postData"]["text"], "x=1");
    assert_eq!(entry["request"]["queryString"][0]["value"], "c");
    assert_eq!(entry["response"]["content"]["mimeType"], "text/plain");
    assert_eq!(entry["response"]["redirectURL"], format!("{}next", upstream));
}

#[test]
fn clients_keep_the_name_by_which_they_reach_it() {
    let upstream = server(None);
    let (recorder, trust) = recorder(Some(upstream.clone()), no_tls());
    let port = recorder.address().port();
    for (host, seen) in [
        ("localhost", "localhost"),
        ("me.example", "me.example"),
        // not a host and a port: the address that it listens on
        ("a@b", "127.0.0.1"),
        ("a/b", "127.0.0.1"),
    ] {
        let text = format!(
            "GET / HTTP/1.1\r\nHost: {host}:{port}\r\nReferer: http://{seen}:{port}/p\r\n\
             Connection: close\r\n\r\n"
        );
        let answer = ask(&mut TcpStream::connect(recorder.address()).unwrap(), &text);
        assert!(answer.contains(&format!("location: http://{seen}:{port}/next\r\n")), "{answer}");
        assert!(answer.contains(&format!("referer: {upstream}p\r\n")), "{answer}");
    }
    // over TLS it has a certificate for the name of the handshake, and not for longer than needed
    let mut stream = TcpStream::connect(recorder.address()).unwrap();
    let mut tls = ClientConnection::new(trust, ServerName::try_from("localhost").unwrap()).unwrap();
    let text = format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    let answer = ask(&mut Stream::new(&mut tls, &mut stream), &text);
    assert!(answer.contains(&format!("location: https://localhost:{port}/next\r\n")), "{answer}");
    let leaf = tls.peer_certificates().unwrap()[0].to_vec();
    let times: Vec<_> = leaf.windows(13).filter_map(utc_time).collect();
    let days = (times[1] - times[0]).whole_days();
    assert!((90..=92).contains(&days), "{days}");
}

/// Parses a time in a certificate: two digits of the year, month, day, hour, minute and second.
fn utc_time(text: &[u8]) -> Option<time::OffsetDateTime> {
    let digits = text.strip_suffix(b"Z").filter(|it| it.iter().all(u8::is_ascii_digit))?;
    let part = |at: usize| (digits[at] - b'0') * 10 + digits[at + 1] - b'0';
    let month = time::Month::try_from(part(2)).ok()?;
    let day = time::Date::from_calendar_date(2000 + i32::from(part(0)), month, part(4)).ok()?;
    Some(day.with_hms(part(6), part(8), part(10)).ok()?.assume_utc())
}

#[test]
fn a_browser_s_proxy_records_sites_over_tls() {
    let theirs = Arc::new(LocalAuthority::generate().unwrap());
    let site = server(Some(theirs.clone()));
    let plain = server(None);
    let (recorder, trust) = recorder(None, trusting(&theirs));
    let address = recorder.address();
    let text = format!(
        "GET {plain}x HTTP/1.1\r\nHost: h\r\nProxy-Connection: close\r\nConnection: close\r\n\r\n"
    );
    let answer = ask(&mut TcpStream::connect(address).unwrap(), &text);
    assert!(
        answer.contains("\r\n\r\nGET /x HTTP/1.1\r\n") && !answer.contains("proxy-"),
        "{answer}"
    );
    // cookies and redirects of a site are its own
    assert!(answer.contains(&format!("location: {plain}next\r\n")), "{answer}");
    let mut stream = TcpStream::connect(address).unwrap();
    let place = site.socket_addrs(|| None).unwrap()[0];
    stream
        .write_all(format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n").as_bytes())
        .unwrap();
    assert!(request(&mut stream).starts_with("HTTP/1.1 200 OK"));
    let mut tls = ClientConnection::new(trust, ServerName::try_from("127.0.0.1").unwrap()).unwrap();
    let text = format!("GET /secret HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    let answer = ask(&mut Stream::new(&mut tls, &mut stream), &text);
    assert!(answer.contains("GET /secret HTTP/1.1"), "{answer}");
    let urls: Vec<_> = recorder.stop().0.iter().map(|it| it.url.to_string()).collect();
    assert_eq!(urls, [format!("{plain}x"), format!("{site}secret")]);
}

#[test]
fn unforwardable_requests_get_a_reason() {
    let (recorder, _) = recorder(None, no_tls());
    let address = recorder.address();
    for (line, found) in [
        ("GET / HTTP/1.1", "400 Bad Request"),
        ("GET /.loadstone/ca.pem HTTP/1.1", "-----BEGIN CERTIFICATE-----"),
        ("GET http://127.0.0.1:1/ HTTP/1.1", "no connection to 127.0.0.1:1"),
        ("GET http://h/ HTTP/1.1\r\nUpgrade: websocket", "does not forward upgraded connections"),
        ("CONNECT / HTTP/1.1", "400 Bad Request"),
    ] {
        let text = format!("{line}\r\nHost: h\r\nConnection: close\r\n\r\n");
        let answer = ask(&mut TcpStream::connect(address).unwrap(), &text);
        assert!(answer.contains(found), "{line}: {answer}");
    }
    let (all, troubles) = recorder.stop();
    assert_eq!((all.len(), all[0].response.is_none()), (1, true));
    assert_eq!(troubles.len(), 2, "{troubles:?}");
}

#[test]
fn an_authority_is_kept_as_two_texts() {
    let first = LocalAuthority::generate().unwrap();
    let again = LocalAuthority::from_pem(first.certificate(), first.key()).unwrap();
    let mut client =
        ClientConnection::new(trusting(&first), ServerName::try_from("a.example").unwrap())
            .unwrap();
    let mut server = ServerConnection::new(again.server("a.example").unwrap()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets().unwrap();
    }
    assert!(LocalAuthority::from_pem(first.certificate(), "no key").unwrap_err().contains("key"));
}
