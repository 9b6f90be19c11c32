//! A request in the form of HTTP/1, translated once: the same plan for every protocol.

use std::ops::Range;
use std::sync::Arc;

/// Maximum number of bytes of a request that wait for the peer's window, if its body grows.
pub(crate) const BODY_QUEUE_MAX: usize = 16 << 20;
/// Maximum number of fields of a request.
const FIELDS_MAX: usize = 256;

/// One request: fields with lowercase names, pseudo-fields first, and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Text shared with the streams of the request: the library reads it when the request is sent.
    text: Arc<[u8]>,
    fields: Vec<(Range<usize>, Range<usize>)>,
    body: Option<Arc<[u8]>>,
    /// The body is sent in parts, each when it is released.
    paced: bool,
    /// True if its stream carries bytes in both directions.
    tunnel: bool,
    /// Present if the body grows while it is sent.
    open: Option<BodyToCome>,
}

/// Part of a growing body that follows the one in the request, and waits for a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BodyToCome {
    bytes: Vec<u8>,
    /// True if nothing follows these bytes.
    ends: bool,
}

/// Reason why an HTTP/1 message cannot be sent over HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTranslated(pub String);

impl std::fmt::Display for NotTranslated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotTranslated {}

impl Request {
    /// Translates a whole request, head and body, for `scheme` (`http` or `https`), by RFC 9113
    /// sections 8.2.2 and 8.3.1: the start line and Host become pseudo-header fields, and fields of
    /// the HTTP/1 connection are removed.
    ///
    /// # Errors
    /// Fails for text that is not an HTTP/1 request, has a transfer coding, or requests a tunnel.
    pub fn from_http1(message: &[u8], scheme: &str) -> Result<Request, NotTranslated> {
        Request::translated(message, scheme, None)
    }

    /// Translates an upgrade of HTTP/1.1 to `protocol` into an extended CONNECT (RFC 8441 section
    /// 4). The fields of the upgrade that HTTP/2 has no use for are removed (section 5).
    ///
    /// # Errors
    /// As [`Request::from_http1`].
    pub fn extended_connect(
        message: &[u8],
        scheme: &str,
        protocol: &str,
    ) -> Result<Request, NotTranslated> {
        Request::translated(message, scheme, Some(protocol))
    }

    fn translated(
        message: &[u8],
        scheme: &str,
        protocol: Option<&str>,
    ) -> Result<Request, NotTranslated> {
        let refused = |why: &str| Err(NotTranslated(why.to_owned()));
        let mut lines = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Request::new(&mut lines);
        let Ok(httparse::Status::Complete(end)) = head.parse(message) else {
            return refused("it is not a complete HTTP/1 request");
        };
        let (method, path) = (head.method.unwrap_or_default(), head.path.unwrap_or_default());
        if method == "CONNECT" {
            return refused("CONNECT requests a tunnel, which is not supported over streams");
        }
        let mut request = GatheredFields { text: Vec::new(), fields: Vec::new() };
        match protocol {
            Some(protocol) => {
                request.add(b":method", b"CONNECT");
                request.add(b":protocol", protocol.as_bytes());
            }
            None => request.add(b":method", method.as_bytes()),
        }
        request.add(b":scheme", scheme.as_bytes());
        let host = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case("host"));
        if let Some(host) = host {
            request.add(b":authority", host.value);
        }
        request.add(b":path", path.as_bytes());
        for field in head.headers.iter() {
            let name = field.name.to_ascii_lowercase();
            match name.as_str() {
                "transfer-encoding" => {
                    return refused("HTTP/2 and HTTP/3 have no Transfer-Encoding: omit it");
                }
                "host" | "connection" | "keep-alive" | "proxy-connection" | "upgrade" => {}
                "sec-websocket-key" if protocol.is_some() => {}
                "te" if !field.value.eq_ignore_ascii_case(b"trailers") => {}
                _ => request.add(name.as_bytes(), field.value),
            }
        }
        let body = &message[end..];
        let body = (!body.is_empty()).then(|| body.into());
        let tunnel = protocol.is_some();
        Ok(Request {
            text: request.text.into(),
            fields: request.fields,
            body,
            paced: false,
            tunnel,
            open: None,
        })
    }

    /// Sends only the first length-prefixed message of the body (gRPC) with the request; the others
    /// are sent when [`crate::Session::release`] is called.
    pub fn pace(&mut self) {
        self.paced = true;
    }

    /// Sends the whole body with the request. Reverts [`Request::pace`].
    pub fn send_at_once(&mut self) {
        self.paced = false;
    }

    /// Lets the body grow after the request is sent, by [`crate::Session::extend`].
    pub fn keep_open(&mut self) {
        self.open = Some(BodyToCome::default());
    }

    /// Returns whether the body may grow after the request is sent.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Keeps more of a growing body until its request has a connection. Returns false without a
    /// change if too many bytes wait.
    pub fn keep_more(&mut self, bytes: &[u8], ends: bool) -> bool {
        let Some(more) = &mut self.open else { return true };
        let waiting = self.body.as_ref().map_or(0, |body| body.len()) + more.bytes.len();
        if waiting + bytes.len() > BODY_QUEUE_MAX {
            return false;
        }
        more.bytes.extend_from_slice(bytes);
        more.ends |= ends;
        true
    }

    /// Returns the kept bytes of a growing body, once, and whether nothing follows them. `None`
    /// if there is nothing to send.
    pub fn take_more(&mut self) -> Option<(Vec<u8>, bool)> {
        let more = std::mem::take(self.open.as_mut()?);
        (more.ends || !more.bytes.is_empty()).then_some((more.bytes, more.ends))
    }

    pub(crate) fn is_paced(&self) -> bool {
        self.paced
    }

    pub(crate) fn is_tunnel(&self) -> bool {
        self.tunnel
    }

    /// Returns the names and values in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|(name, value)| (&self.text[name.clone()], &self.text[value.clone()]))
    }

    /// Returns the text of all names and values, in which the fields are ranges.
    pub(crate) fn text(&self) -> &Arc<[u8]> {
        &self.text
    }

    pub fn body(&self) -> Option<&Arc<[u8]>> {
        self.body.as_ref()
    }

    /// Returns the number of bytes of names and values, uncompressed.
    pub fn plain_bytes(&self) -> u64 {
        self.text.len() as u64
    }
}

/// Fields of a request, while they are gathered.
struct GatheredFields {
    text: Vec<u8>,
    fields: Vec<(Range<usize>, Range<usize>)>,
}

impl GatheredFields {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        let middle = self.text.len();
        self.text.extend_from_slice(value);
        self.fields.push((start..middle, middle..self.text.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &str) -> Vec<String> {
        let request = Request::from_http1(message.as_bytes(), "https").unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        request.fields().map(|(name, value)| format!("{}={}", text(name), text(value))).collect()
    }

    #[test]
    fn start_line_and_host_become_pseudo_fields() {
        let message = "GET /a?b HTTP/1.1\r\nUser-Agent: x\r\nHost: h:8\r\nConnection: close\r\n\
                       TE: gzip\r\nAccept: */*\r\n\r\n";
        let expected = [
            ":method=GET",
            ":scheme=https",
            ":authority=h:8",
            ":path=/a?b",
            "user-agent=x",
            "accept=*/*",
        ];
        assert_eq!(fields(message), expected);
        assert!(fields("GET / HTTP/1.1\r\nTE: trailers\r\n\r\n").contains(&"te=trailers".into()));
    }

    #[test]
    fn a_body_is_sent_with_its_request() {
        let message = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
        let request = Request::from_http1(message, "http").unwrap();
        assert_eq!(request.body().map(|body| body.to_vec()), Some(b"hi".to_vec()));
    }

    #[test]
    fn an_upgrade_becomes_an_extended_connect() {
        let message = b"GET /chat?x HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\
            Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a\r\n\
            Origin: http://h\r\n\r\n";
        let request = Request::extended_connect(message, "http", "websocket").unwrap();
        let text: Vec<_> = request
            .fields()
            .map(|(name, value)| {
                format!("{} {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
            })
            .collect();
        assert_eq!(
            text.join(", "),
            ":method CONNECT, :protocol websocket, :scheme http, :authority h, :path /chat?x, \
             sec-websocket-version 13, origin http://h"
        );
    }

    #[test]
    fn messages_invalid_in_http2_are_refused() {
        for (message, expected) in [
            ("nonsense", "not a complete HTTP/1 request"),
            ("GET / HTTP/1.1\r\nHost: h\r\n", "not a complete HTTP/1 request"),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
            ("CONNECT h:1 HTTP/1.1\r\n\r\n", "tunnel"),
        ] {
            let why = Request::from_http1(message.as_bytes(), "http").unwrap_err();
            assert!(why.0.contains(expected), "{message}: {why}");
        }
    }
}
