//! The endpoint over a socket, and its handling of `Accept`.

use super::openmetrics::read;
use super::reading;
use crate::metrics::endpoint::wants_protobuf;
use crate::metrics::{Board, Endpoint};
use std::io::{Read, Write};
use std::net::TcpStream;
use units::parse_listen;

fn get(endpoint: &Endpoint, path: &str, accept: &str) -> (String, Vec<u8>) {
    let url = endpoint.url();
    let authority = url.trim_start_matches("http://").trim_end_matches("/metrics");
    let mut stream = TcpStream::connect(authority).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    let at = response.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (String::from_utf8(response[..at].to_vec()).unwrap(), response[at + 4..].to_vec())
}

#[test]
fn it_serves_the_latest_reading() {
    let board = Board::default();
    let endpoint = Endpoint::start(parse_listen("0").unwrap(), board.clone()).unwrap();
    let (head, body) = get(&endpoint, "/metrics", "*/*");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, b"# EOF\n");
    board.pin(reading());
    let (head, body) = get(&endpoint, "/metrics", "text/plain");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(read(&String::from_utf8(body).unwrap()).contains_key("loadstone_calls_due"));
    let wanted = crate::metrics::PROTOBUF;
    let (head, body) = get(&endpoint, "/metrics", wanted);
    assert!(head.contains(wanted), "{head}");
    assert_eq!(body, crate::metrics::protobuf(&board.latest()));
    assert!(get(&endpoint, "/other", "*/*").0.starts_with("HTTP/1.1 404"));
    let taken = endpoint.url().rsplit_once(':').unwrap().1.trim_end_matches("/metrics").to_owned();
    let refused = Endpoint::start(parse_listen(&taken).unwrap(), board).unwrap_err();
    assert!(format!("{refused:#}").contains("cannot listen on 127.0.0.1:"), "{refused:#}");
}

#[test]
fn the_better_liked_format_is_sent() {
    // as Prometheus asks with native histograms switched on
    assert!(wants_protobuf(
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
         encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,\
         text/plain;version=0.0.4;q=0.4,*/*;q=0.3"
    ));
    // and without
    assert!(!wants_protobuf(
        "application/openmetrics-text;version=1.0.0;q=0.5,\
         application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
         encoding=delimited;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
    ));
    // another encoding or a refused one is not offered
    assert!(!wants_protobuf("application/vnd.google.protobuf"));
    assert!(!wants_protobuf(
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
         encoding=delimited;q=0"
    ));
    assert!(!wants_protobuf(""));
}
