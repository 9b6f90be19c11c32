//! Requests, rendered once: the bytes of a whole message for a connection that stays open, the
//! bytes for the last call of a connection, and the position for a `Cookie` line.
//!
//! Refuses input that would break the message's framing: line ends or NUL in a field, a name that
//! is not a token, a wrong Content-Length.

mod check;

pub use check::RequestError;

use crate::http1::response::Asked;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
}

/// The request target (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// Path and query, beginning with `/`; or `*`.
    Origin(&'a str),
    /// A whole `http` URL without fragment, for a proxy.
    Absolute(&'a str),
    /// `host:port`, for CONNECT.
    Authority(&'a str),
}

/// Request before rendering. `None` values are not sent; a field in `headers` replaces the default
/// field of the same name.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// A token; its case is kept.
    pub method: &'a str,
    pub target: Target<'a>,
    pub version: Version,
    /// Value of the Host field: `host` or `host:port`.
    pub host: &'a str,
    /// Fields of the user, sent in this order after the default ones.
    pub headers: &'a [(String, String)],
    pub user_agent: Option<&'a str>,
    pub accept_encoding: Option<&'a str>,
    /// Value of the Authorization field; see [`basic_authorization`].
    pub authorization: Option<&'a str>,
    /// Sent with its Content-Length, even if empty.
    pub body: Option<&'a [u8]>,
}

/// A request as bytes. `bytes[..cookie_at]`, then a `Cookie: …` line with its CRLF, then
/// `bytes[cookie_at..]` is also a valid message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Bytes for a connection that stays open, which HTTP/1.0 requests by `Connection: keep-alive`.
    pub bytes: Vec<u8>,
    /// Bytes for the last call of a connection: HTTP/1.1 sends `Connection: close`.
    pub last: Vec<u8>,
    pub cookie_at: usize,
    pub cookie_at_last: usize,
    /// Facts of the request for the response reader.
    pub asked: Asked,
}

impl RequestHead<'_> {
    /// # Errors
    /// Fails for a part that would break the message's framing; the text names it and the fix.
    pub fn render(&self) -> Result<Rendered, RequestError> {
        check::head(self)?;
        let (keep, last) = match self.version {
            Version::Http10 => (Some("keep-alive"), None),
            Version::Http11 => (None, Some("close")),
        };
        let (bytes, cookie_at) = self.message(keep);
        let (last, cookie_at_last) = self.message(last);
        let asked = request_facts(self.method);
        Ok(Rendered { bytes, last, cookie_at, cookie_at_last, asked })
    }

    /// Returns the message, and where its field lines end.
    fn message(&self, connection: Option<&str>) -> (Vec<u8>, usize) {
        let body = self.body.unwrap_or_default();
        let mut out = Vec::with_capacity(512 + body.len());
        let (Target::Origin(target) | Target::Absolute(target) | Target::Authority(target)) =
            self.target;
        let version = match self.version {
            Version::Http10 => " HTTP/1.0\r\n",
            Version::Http11 => " HTTP/1.1\r\n",
        };
        for part in [self.method, " ", target, version] {
            out.extend_from_slice(part.as_bytes());
        }
        // RFC 9110 §7.2: Host should come first
        self.field(&mut out, "Host", Some(self.host));
        self.field(&mut out, "User-Agent", self.user_agent);
        self.field(&mut out, "Accept-Encoding", self.accept_encoding);
        self.field(&mut out, "Authorization", self.authorization);
        for (name, value) in self.headers {
            line(&mut out, name, value);
        }
        let length = self.content_length().map(|length| length.to_string());
        self.field(&mut out, "Content-Length", length.as_deref());
        self.field(&mut out, "Connection", connection);
        let cookie_at = out.len();
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
        (out, cookie_at)
    }

    /// Writes a default field, unless the user gave one with that name.
    fn field(&self, out: &mut Vec<u8>, name: &str, value: Option<&str>) {
        let given = self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if let Some(value) = value.filter(|_| !given) {
            line(out, name, value);
        }
    }

    /// Returns the value of Content-Length (RFC 9110 §8.6): without a body, 0 if the method
    /// suggests content; `None` if the field is not sent.
    fn content_length(&self) -> Option<usize> {
        let expected = matches!(self.method, "POST" | "PUT" | "PATCH");
        self.body.map(<[u8]>::len).or(expected.then_some(0))
    }
}

/// Returns facts about a request with this method, for the response reader.
pub fn request_facts(method: &str) -> Asked {
    match method {
        "HEAD" => Asked::Head,
        "CONNECT" => Asked::Connect,
        _ => Asked::Ordinary,
    }
}

/// Returns the Authorization value of the Basic scheme (RFC 7617), in UTF-8.
///
/// # Errors
/// Fails for a colon in the user name, or a control character: neither can be sent (RFC 7617 §2).
pub fn basic_authorization(user: &str, password: &str) -> Result<String, RequestError> {
    if user.contains(':') {
        return Err(RequestError::Credentials("the user name contains a colon"));
    }
    if user.chars().chain(password.chars()).any(char::is_control) {
        return Err(RequestError::Credentials("they contain a control character"));
    }
    Ok(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

fn line(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, ": ", value.trim_matches([' ', '\t']), "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests;
