//! Invalid requests, and the status that the RFC requires for each.

use std::time::SystemTime;

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};

use crate::exchange::{Content, Reply, SOFTWARE};

/// Longest target in bytes; RFC 9110 §4.1 recommends at least 8,000.
pub(crate) const TARGET_MAX: usize = 8_192;
/// Methods that some node serves.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::OPTIONS,
    Method::PATCH,
];

/// Returns the error in a request independent of its target, if any; also the response to `OPTIONS
/// *`, which concerns the whole server.
pub(crate) fn check(parts: &Parts) -> Option<Reply> {
    let headers = &parts.headers;
    if !METHODS.contains(&parts.method) {
        let text = format!("{} is not a method of this server.\n", parts.method);
        return Some(Reply::text(StatusCode::NOT_IMPLEMENTED, text));
    }
    if parts.uri.path_and_query().is_some_and(|target| target.as_str().len() > TARGET_MAX) {
        return Some(plain(StatusCode::URI_TOO_LONG));
    }
    if !is_right_host(headers, parts.version) {
        let text = "A request needs one Host field that names a host (RFC 9112 §3.2).\n";
        return Some(Reply::text(StatusCode::BAD_REQUEST, text));
    }
    // hyper has ensured that chunked is the last coding; the others it leaves to us
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        let text = "The only transfer coding here is chunked.\n";
        return Some(Reply::text(StatusCode::NOT_IMPLEMENTED, text));
    }
    let mut expected = headers.get_all(header::EXPECT).iter();
    if expected.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return Some(plain(StatusCode::EXPECTATION_FAILED));
    }
    (parts.method == Method::OPTIONS && parts.uri.path() == "*").then(options)
}

/// Returns whether Host is valid (RFC 9112 §3.2): exactly one field from HTTP/1.1 on, at most one
/// before, with a valid host.
fn is_right_host(headers: &HeaderMap, version: Version) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => version < Version::HTTP_11,
        (Some(host), None) => {
            let bytes = host.as_bytes();
            bytes.iter().all(|byte| is_host_byte(*byte)) && is_right_port(bytes)
        }
        (Some(_), Some(_)) => false,
    }
}

/// Returns whether the port is valid (RFC 3986 §3.2.3): the digits after the last colon, except
/// inside an IPv6 address.
fn is_right_port(host: &[u8]) -> bool {
    let behind = host.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    let none = behind.len() == host.len();
    none || behind.ends_with(b"]") || behind.iter().all(u8::is_ascii_digit)
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+,;=".contains(&byte)
}

fn options() -> Reply {
    let methods = METHODS.map(|method| method.to_string()).join(", ");
    let mut headers = HeaderMap::new();
    headers.insert(header::ALLOW, HeaderValue::from_str(&methods).expect("method names"));
    Reply { status: StatusCode::NO_CONTENT, headers, content: Content::Empty }
}

fn plain(status: StatusCode) -> Reply {
    Reply::text(status, text(status))
}

fn text(status: StatusCode) -> String {
    format!("{} {}\n", status.as_str(), status.canonical_reason().unwrap_or_default())
}

pub(crate) fn not_found() -> Reply {
    plain(StatusCode::NOT_FOUND)
}

pub(crate) fn bad_path(why: &str) -> Box<Reply> {
    Box::new(Reply::text(StatusCode::BAD_REQUEST, format!("{why}\n")))
}

pub(crate) fn too_large(body_max: u64) -> Reply {
    let text = format!("The body is longer than the limit of {body_max} bytes.\n");
    Reply::text(StatusCode::PAYLOAD_TOO_LARGE, text)
}

pub(crate) fn broken_body() -> Reply {
    Reply::text(StatusCode::BAD_REQUEST, "The body is incomplete or malformed.\n")
}

/// Returns whether a list of tokens contains one.
pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// Returns the status for a head that could not be parsed: `head` is its available part.
pub(crate) fn status_of_bytes(head: &[u8], too_large: bool) -> StatusCode {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if too_large {
        let target = line.len() > TARGET_MAX;
        return if target {
            StatusCode::URI_TOO_LONG
        } else {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        };
    }
    let last = line.trim_ascii_end().rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let other = match last {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] => {
            let digits = major.is_ascii_digit() && minor.is_ascii_digit();
            digits && !matches!((major, minor), (b'1', b'0' | b'1'))
        }
        _ => false,
    };
    if other { StatusCode::HTTP_VERSION_NOT_SUPPORTED } else { StatusCode::BAD_REQUEST }
}

/// Returns a complete response that ends its connection, for input that is not a request.
pub(crate) fn raw(status: StatusCode) -> String {
    let text = text(status);
    format!(
        "HTTP/1.1 {} {}\r\nDate: {}\r\nServer: {SOFTWARE}\r\nContent-Type: text/plain; \
         charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        status.as_str(),
        status.canonical_reason().unwrap_or_default(),
        httpdate::fmt_http_date(SystemTime::now()),
        text.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    #[test]
    fn invalid_heads_get_the_status_of_their_fault() {
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(10_000));
        let table: [(&[u8], bool, u16); 8] = [
            (b"GET / HTTP/2.0\r\n\r\n", false, 505),
            (b"GET / HTTP/1.2\r\n\r\n", false, 505),
            (b"GET / HTTP/1.1\r\nbad header\r\n", false, 400),
            (b"GET / HTTP/abc\r\n", false, 400),
            (b"GET /\r\n", false, 400),
            (b"", false, 400),
            (long.as_bytes(), true, 414),
            (b"GET / HTTP/1.1\r\nA: aaaa", true, 431),
        ];
        for (head, too_large, status) in table {
            let found = status_of_bytes(head, too_large).as_u16();
            assert_eq!(found, status, "{}", String::from_utf8_lossy(head));
        }
    }

    /// Returns the status with which a request is refused; 0 if it is accepted.
    fn refused(method: &str, target: &str, version: Version, fields: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(target).version(version);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        check(&parts).map_or(0, |reply| reply.status.as_u16())
    }

    #[test]
    fn requests_that_are_wrong_get_the_status_that_the_rfc_names() {
        let host = ("host", "localhost:2020");
        let (one, zero) = (Version::HTTP_11, Version::HTTP_10);
        let long = format!("/{}", "a".repeat(TARGET_MAX));
        assert_eq!(refused("GET", "/", one, &[host]), 0);
        assert_eq!(refused("GET", "/", one, &[("host", "")]), 0);
        assert_eq!(refused("GET", "/", zero, &[]), 0);
        assert_eq!(refused("GET", "/", one, &[]), 400);
        assert_eq!(refused("GET", "/", one, &[host, host]), 400);
        assert_eq!(refused("GET", "/", zero, &[host, host]), 400);
        assert_eq!(refused("GET", "/", one, &[("host", "a b")]), 400);
        assert_eq!(refused("GET", "/", one, &[("host", "a/b")]), 400);
        assert_eq!(refused("GET", "/", one, &[("host", "a:b")]), 400);
        assert_eq!(refused("GET", "/", one, &[("host", "[::1]")]), 0);
        assert_eq!(refused("GET", "/", one, &[("host", "[::1]:80")]), 0);
        assert_eq!(refused("BREW", "/", one, &[host]), 501);
        assert_eq!(refused("TRACE", "/", one, &[host]), 501);
        assert_eq!(refused("GET", &long, one, &[host]), 414);
        assert_eq!(refused("POST", "/", one, &[host, ("transfer-encoding", "chunked")]), 0);
        assert_eq!(refused("POST", "/", one, &[host, ("transfer-encoding", "gzip, chunked")]), 501);
        assert_eq!(refused("POST", "/", one, &[host, ("expect", "100-continue")]), 0);
        assert_eq!(refused("POST", "/", one, &[host, ("expect", "miracles")]), 417);
        assert_eq!(refused("OPTIONS", "*", one, &[host]), 204);
        assert_eq!(refused("OPTIONS", "/", one, &[host]), 0);
    }

    #[test]
    fn a_raw_response_is_complete() {
        let text = raw(StatusCode::REQUEST_TIMEOUT);
        assert!(text.starts_with("HTTP/1.1 408 Request Timeout\r\nDate: "));
        assert!(
            text.ends_with("Content-Length: 20\r\nConnection: close\r\n\r\n408 Request Timeout\n")
        );
    }
}
