//! A request in the form of its connection's protocol.

use super::ExchangeError;
use super::socket::SocketTalk;
use plan::HttpVersion;
use protocol::http1::request::RequestError;
use protocol::http1::response::Asked;
use sample::FailureClass;
use url::Url;
use workload::Template;

/// Hint for a server without HTTP/3.
pub(super) const OVER_TCP: &str = "Is HTTP/3 (QUIC, over UDP) served at this port, and does UDP \
    get through? --http 2 uses TCP.";
/// Hint for a server that supports HTTP/3.
pub(super) const ASK_OVER_TCP: &str = "--http 2 uses TCP.";
/// Hint for a server that may not support HTTP/2.
pub(super) const SPEAK_HTTP1: &str =
    "Does the server speak HTTP/2 on this port? --http 1.1 uses the older protocol.";

/// Request in the form of its protocol.
#[derive(Clone, Debug)]
pub enum Message {
    /// No request: only the connection with its TLS is needed.
    Handshake,
    /// Bytes for a connection of HTTP/1.x.
    Http1 { bytes: Vec<u8>, asked: Asked },
    /// An upgrade to WebSocket and the messages that follow it, on a connection of HTTP/1.1 or a
    /// stream of HTTP/2 or HTTP/3.
    Socket(Box<SocketTalk>),
    /// One stream of a connection.
    Http2 { request: http2::Request, cookie: Option<String>, last: bool },
    /// One stream of a QUIC connection.
    Http3 { request: protocol::http3::Coded, cookie: Option<String>, last: bool },
}

impl Message {
    /// Converts a complete HTTP/1 request for the version that carries it. `last`: the connection
    /// carries no further request.
    ///
    /// # Errors
    /// Fails with the reason why that version cannot carry it.
    pub(crate) fn translated(
        version: HttpVersion,
        url: &Url,
        bytes: Vec<u8>,
        asked: Asked,
        last: bool,
    ) -> Result<Message, RequestError> {
        if !version.has_streams() {
            return Ok(Message::Http1 { bytes, asked });
        }
        let (http2, http3) = crate::render::translated(version, url, &bytes)?;
        Ok(match (http2, http3) {
            (Some(request), _) => Message::Http2 { request, cookie: None, last },
            (None, Some(request)) => Message::Http3 { request, cookie: None, last },
            (None, None) => Message::Http1 { bytes, asked },
        })
    }

    /// Converts an HTTP/1.1 request to HTTP/2; `None` if HTTP/2 cannot express it.
    pub fn over_http2(&self, url: &Url) -> Option<Message> {
        let Message::Http1 { bytes, asked } = self else { return None };
        Message::translated(HttpVersion::Http2, url, bytes.clone(), *asked, false).ok()
    }

    /// Returns a template's request, as the last of its connection, with the value of a Cookie
    /// field. An exchange has no schedule for messages, so the request contains all of them.
    pub fn new(template: Template, cookie: Option<String>) -> Message {
        let last = true;
        if let Some(mut request) = template.http2 {
            request.send_at_once();
            return Message::Http2 { request, cookie, last };
        }
        if let Some(request) = template.http3 {
            return Message::Http3 { request, cookie, last };
        }
        let mut bytes = template.last;
        if let Some(cookie) = cookie {
            let line = format!("Cookie: {cookie}\r\n").into_bytes();
            bytes.splice(template.cookie_at_last..template.cookie_at_last, line);
        }
        Message::Http1 { bytes, asked: template.asked }
    }

    /// Returns the bytes of a request over HTTP/1.x; empty for other versions.
    #[cfg(test)]
    pub(crate) fn http1_bytes(&self) -> &[u8] {
        match self {
            Message::Http1 { bytes, .. } => bytes,
            _ => &[],
        }
    }

    /// Returns whether the request uses QUIC.
    pub fn is_http3(&self) -> bool {
        match self {
            Message::Http3 { .. } => true,
            Message::Socket(talk) => talk.version == HttpVersion::Http3,
            Message::Handshake | Message::Http1 { .. } | Message::Http2 { .. } => false,
        }
    }

    /// Returns whether it is a WebSocket over HTTP/2 or HTTP/3.
    pub fn is_tunneled(&self) -> bool {
        matches!(self, Message::Socket(talk) if talk.version.has_streams())
    }

    pub(super) fn is_handshake(&self) -> bool {
        matches!(self, Message::Handshake)
    }

    /// Returns whether our side closes the connection after the response. Over HTTP/1.x the server
    /// closes it, as the request asks.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Message::Handshake => true,
            Message::Http1 { .. } | Message::Socket(_) => false,
            Message::Http2 { last, .. } | Message::Http3 { last, .. } => *last,
        }
    }

    /// Returns a hint for the case that no connection is established.
    pub(super) fn unconnected_fix(&self) -> Option<&'static str> {
        self.is_http3().then_some(OVER_TCP)
    }

    /// Checks that TLS negotiated HTTP/2, if the request needs it.
    pub(super) fn disagreement(&self, agreed: &str) -> Option<ExchangeError> {
        matches!(self, Message::Http2 { .. }).then(|| not_http2(agreed)).flatten()
    }
}

/// Returns why a connection with this ALPN result (empty for none) cannot be used for HTTP/2;
/// `None` if it can.
fn not_http2(agreed: &str) -> Option<ExchangeError> {
    if agreed == http2::ALPN {
        return None;
    }
    let chosen = if agreed.is_empty() { "no protocol" } else { agreed };
    let text = format!("the server chose {chosen} where HTTP/2 (ALPN h2) was offered");
    Some(ExchangeError { class: FailureClass::Protocol, text, fix_text: Some(SPEAK_HTTP1) })
}
