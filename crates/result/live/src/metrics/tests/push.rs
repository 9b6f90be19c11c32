//! Pushes to a collector that consists of a listener and a decoder.

use super::reading;
use crate::metrics::{Pushed, Pusher, parse_collector};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

/// Answers each push with one of `responses`; returns the received request line and message.
fn collector(
    responses: Vec<Vec<u8>>,
) -> (u16, thread::JoinHandle<Vec<(String, ExportMetricsServiceRequest)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let body = move || {
        let mut got = Vec::new();
        for response in responses {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                if line.trim_end().is_empty() {
                    break;
                }
                head.push(line.trim_end().to_ascii_lowercase());
            }
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.unwrap().parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            assert!(head.contains(&"content-type: application/x-protobuf".to_owned()), "{head:?}");
            let message = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
            stream.get_mut().write_all(&response).unwrap();
            got.push((head[0].clone(), message));
        }
        got
    };
    (port, thread::spawn(body))
}

fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn every_reading_arrives() {
    let (port, thread) = collector(vec![response("200 OK", b""), response("200 OK", b"")]);
    let to = parse_collector(&format!("http://127.0.0.1:{port}")).unwrap();
    let mut pusher = Pusher::start(to, None).unwrap();
    pusher.push(reading());
    pusher.push(reading());
    assert_eq!(pusher.end(), Pushed { taken: 2, ..Pushed::default() });
    let got = thread.join().unwrap();
    assert_eq!(got[0].0, "post /v1/metrics http/1.1");
    let metrics = &got[1].1.resource_metrics[0].scope_metrics[0].metrics;
    assert!(metrics.iter().any(|metric| metric.name == "loadstone.response_time"));
}

#[test]
fn failures_are_counted_and_reported() {
    let partly = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 3,
            error_message: "too\u{1b} ma\u{202e}\u{61c}\u{e0041}ny".into(),
        }),
    };
    let (port, thread) = collector(vec![
        response("503 Service Unavailable", b""),
        b"no HTTP at all\r\n\r\n".to_vec(),
        response("200 OK", &partly.encode_to_vec()),
    ]);
    let to = parse_collector(&format!("http://127.0.0.1:{port}/other?x=1")).unwrap();
    let mut pusher = Pusher::start(to, None).unwrap();
    for _ in 0..3 {
        pusher.push(reading());
    }
    let pushed = pusher.end();
    assert_eq!((pushed.taken, pushed.failed), (0, 3));
    assert_eq!(
        pushed.trouble.unwrap(),
        "3 figures were refused: too\\u{1b} ma\\u{202e}\\u{61c}\\u{e0041}ny"
    );
    assert_eq!(thread.join().unwrap()[0].0, "post /other?x=1 http/1.1");
}

#[test]
fn a_missing_server_is_counted() {
    let to = parse_collector("http://127.0.0.1:1").unwrap();
    let mut pusher = Pusher::start(to, None).unwrap();
    pusher.push(reading());
    let pushed = pusher.end();
    assert_eq!(pushed.failed, 1);
    assert!(pushed.trouble.unwrap().starts_with("cannot connect"), "told");
}

#[test]
fn addresses_of_collectors() {
    let read = |text: &str| {
        parse_collector(text).map_or_else(|error| error, |to| to.url().as_str().to_owned())
    };
    assert_eq!(read("http://h:4318"), "http://h:4318/v1/metrics");
    assert_eq!(read("http://h:4318/"), "http://h:4318/v1/metrics");
    assert_eq!(read("http://h/x"), "http://h/x");
    assert_eq!(read("https://h"), "https://h/v1/metrics");
    assert!(read("http://u:p@h").contains("login"));
    for bad in ["", "h:4318", "ftp://h", "http://"] {
        assert!(read(bad).contains("http://127.0.0.1:4318"), "{bad}: {}", read(bad));
    }
}
