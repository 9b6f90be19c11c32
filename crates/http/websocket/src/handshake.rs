//! The opening handshake over HTTP/1.1 (RFC 6455 section 4): requests and responses written and
//! checked, as bytes.

use crate::deflate::{Agreed, DeflateOffer, choose};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// Appended to the key before hashing.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Maximum number of header fields of a head.
const FIELDS_MAX: usize = 128;

/// Returns the value of Sec-WebSocket-Key.
pub fn key(nonce: [u8; 16]) -> String {
    STANDARD.encode(nonce)
}

/// Returns the value of Sec-WebSocket-Accept for a key.
pub fn accept(key: &str) -> String {
    let mut sha1 = Sha1::new();
    sha1.update(key.as_bytes());
    sha1.update(GUID);
    STANDARD.encode(sha1.finalize())
}

/// Options that a client requests with the upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientOffer {
    /// Subprotocols, in order of preference.
    pub subprotocols: Vec<String>,
    pub deflate: Option<DeflateOffer>,
}

impl ClientOffer {
    /// Appends the fields of the handshake, each with its line end, to a request's head.
    pub fn write_fields(&self, key: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Upgrade: websocket\r\nConnection: Upgrade\r\n");
        out.extend_from_slice(b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\r\n");
        if !self.subprotocols.is_empty() {
            let list = self.subprotocols.join(", ");
            out.extend_from_slice(format!("Sec-WebSocket-Protocol: {list}\r\n").as_bytes());
        }
        if let Some(deflate) = &self.deflate {
            let value = deflate.value();
            out.extend_from_slice(format!("Sec-WebSocket-Extensions: {value}\r\n").as_bytes());
        }
    }
}

/// Choice of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    pub subprotocol: Option<String>,
    pub deflate: Option<Agreed>,
}

/// Reason why a client must not use the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// The bytes are no HTTP/1.1 response.
    NotHttp,
    /// The status is not 101.
    Status(u16),
    /// Upgrade or Connection is missing or has another value.
    NotUpgraded,
    /// Sec-WebSocket-Accept is missing or does not match our key.
    Accept,
    /// A subprotocol that was not offered.
    Subprotocol(String),
    /// An extension or parameter that was not offered.
    Extension(String),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientError::NotHttp => f.write_str("the response is not HTTP/1.1"),
            ClientError::Status(status) => write!(f, "the server answered {status}, not 101"),
            ClientError::NotUpgraded => {
                f.write_str("101 without Upgrade: websocket and Connection: Upgrade")
            }
            ClientError::Accept => f.write_str("Sec-WebSocket-Accept does not match the key"),
            ClientError::Subprotocol(name) => {
                write!(f, "the server chose the subprotocol {name:?}, which was not offered")
            }
            ClientError::Extension(name) => {
                write!(f, "the server chose the extension {name:?}, which was not offered")
            }
        }
    }
}

impl std::error::Error for ClientError {}

/// Parses the head of a server's response. `None` if it is incomplete. Returns the length of the
/// head with the outcome; the bytes after it belong to the connection.
pub fn read_response(
    input: &[u8],
    key: &str,
    offer: &ClientOffer,
) -> Option<(usize, Result<Agreement, ClientError>)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let size = match response.parse(input) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some((input.len(), Err(ClientError::NotHttp))),
    };
    Some((size, check_response(&response, key, offer)))
}

fn check_response(
    response: &httparse::Response<'_, '_>,
    key: &str,
    offer: &ClientOffer,
) -> Result<Agreement, ClientError> {
    let fields = &*response.headers;
    match response.code {
        Some(101) if response.version == Some(1) => {}
        Some(status) if status != 101 => return Err(ClientError::Status(status)),
        _ => return Err(ClientError::NotHttp),
    }
    if !has_token(fields, "upgrade", "websocket") || !has_token(fields, "connection", "upgrade") {
        return Err(ClientError::NotUpgraded);
    }
    let mut accepts = values(fields, "sec-websocket-accept");
    if accepts.next() != Some(accept(key).as_str()) || accepts.next().is_some() {
        return Err(ClientError::Accept);
    }
    let mut chosen = values(fields, "sec-websocket-protocol");
    let subprotocol = chosen.next().map(str::to_owned);
    if let Some(name) = &subprotocol
        && (!offer.subprotocols.contains(name) || chosen.next().is_some())
    {
        return Err(ClientError::Subprotocol(name.clone()));
    }
    let mut deflate = None;
    for element in values(fields, "sec-websocket-extensions").flat_map(|value| value.split(',')) {
        let settled = match (&offer.deflate, DeflateOffer::parse(element)) {
            (Some(offer), Some(answer)) if deflate.is_none() => offer.settle(&answer),
            _ => None,
        };
        let refused = || ClientError::Extension(element.trim().to_owned());
        deflate = Some(settled.ok_or_else(refused)?);
    }
    Ok(Agreement { subprotocol, deflate })
}

/// A client's request for a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRequest {
    pub path: String,
    pub key: String,
    pub subprotocols: Vec<String>,
    /// The server's answer to the first acceptable offer of permessage-deflate.
    pub deflate: Option<(DeflateOffer, Agreed)>,
}

/// Reason why a server refuses a request, as the status of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerError {
    /// 400: not a WebSocket request, or a malformed one.
    BadRequest,
    /// 426: the version is not 13.
    Version,
}

impl ServerError {
    /// Returns the complete response.
    pub fn response(self) -> &'static [u8] {
        match self {
            ServerError::BadRequest => {
                b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            }
            ServerError::Version => {
                b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\
                  Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n"
            }
        }
    }
}

/// Returns whether the head of a request requests the upgrade to WebSocket, whether or not its
/// details are correct.
pub fn asks_for_websocket(head: &[u8]) -> bool {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    request.parse(head).is_ok() && has_token(request.headers, "upgrade", "websocket")
}

/// Parses the head of a client's request. `None` if it is incomplete.
pub fn read_request(input: &[u8]) -> Option<(usize, Result<ServerRequest, ServerError>)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(input) {
        Ok(httparse::Status::Complete(size)) => Some((size, check_request(&request))),
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some((input.len(), Err(ServerError::BadRequest))),
    }
}

fn check_request(request: &httparse::Request<'_, '_>) -> Result<ServerRequest, ServerError> {
    let fields = &*request.headers;
    let asked = request.method == Some("GET")
        && request.version == Some(1)
        && has_token(fields, "upgrade", "websocket")
        && has_token(fields, "connection", "upgrade")
        && values(fields, "host").count() == 1;
    // one reader would take a body for the first bytes of the connection, and another would not
    let body = values(fields, "transfer-encoding").next().is_some()
        || values(fields, "content-length").any(|value| value != "0");
    if !asked || body {
        return Err(ServerError::BadRequest);
    }
    let mut versions = values(fields, "sec-websocket-version");
    if versions.next() != Some("13") || versions.next().is_some() {
        return Err(ServerError::Version);
    }
    let mut keys = values(fields, "sec-websocket-key");
    let key = keys.next().ok_or(ServerError::BadRequest)?;
    let valid = STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16);
    if !valid || keys.next().is_some() {
        return Err(ServerError::BadRequest);
    }
    let subprotocols = values(fields, "sec-websocket-protocol")
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty());
    let subprotocols: Vec<String> = subprotocols.collect();
    if !subprotocols.iter().all(|name| is_token(name)) {
        return Err(ServerError::BadRequest);
    }
    Ok(ServerRequest {
        path: request.path.unwrap_or("/").to_owned(),
        key: key.to_owned(),
        subprotocols,
        deflate: choose(values(fields, "sec-websocket-extensions")),
    })
}

impl ServerRequest {
    /// Renders the 101 response. `subprotocol` must be one of the offered subprotocols; `compress`:
    /// the offered compression is accepted.
    pub fn response(&self, subprotocol: Option<&str>, compress: bool) -> Vec<u8> {
        let mut text = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n",
            accept(&self.key)
        );
        if let Some(name) = subprotocol {
            text.push_str(&format!("Sec-WebSocket-Protocol: {name}\r\n"));
        }
        if let Some((answer, _)) = self.deflate.as_ref().filter(|_| compress) {
            text.push_str(&format!("Sec-WebSocket-Extensions: {}\r\n", answer.value()));
        }
        text.push_str("\r\n");
        text.into_bytes()
    }
}

/// Returns the values of a field that are text, without spaces around them.
fn values<'a>(
    fields: &'a [httparse::Header<'_>],
    name: &'static str,
) -> impl Iterator<Item = &'a str> {
    fields
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .filter_map(|field| std::str::from_utf8(field.value).ok())
        .map(str::trim)
}

/// Returns whether the name is a token (RFC 9110 section 5.6.2).
fn is_token(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte))
}

fn has_token(fields: &[httparse::Header<'_>], name: &'static str, token: &str) -> bool {
    values(fields, name)
        .flat_map(|value| value.split(','))
        .any(|element| element.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn response(fields: &str) -> Result<Agreement, ClientError> {
        let offer = ClientOffer {
            subprotocols: vec!["chat".into(), "v2".into()],
            deflate: DeflateOffer::parse("permessage-deflate"),
        };
        let head = format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n\u{1}\x00");
        let (size, outcome) = read_response(head.as_bytes(), KEY, &offer).unwrap();
        assert_eq!(size, head.len() - 2);
        outcome
    }

    const GOOD: &str = "upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo= \r\n";

    #[test]
    fn the_key_of_the_rfc_has_its_accept_value() {
        assert_eq!(accept(KEY), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(key(*b"the sample nonce"), KEY);
    }

    #[test]
    fn a_client_accepts_only_what_it_offered() {
        assert_eq!(response(GOOD), Ok(Agreement::default()));
        let chat = response(&format!("{GOOD}Sec-WebSocket-Protocol: v2\r\n")).unwrap();
        assert_eq!(chat.subprotocol.as_deref(), Some("v2"));
        let other = response(&format!("{GOOD}Sec-WebSocket-Protocol: mqtt\r\n"));
        assert_eq!(other, Err(ClientError::Subprotocol("mqtt".into())));
        let packed = format!("{GOOD}Sec-WebSocket-Extensions: permessage-deflate\r\n");
        assert!(response(&packed).unwrap().deflate.is_some());
        let twice = format!("{GOOD}Sec-WebSocket-Extensions: permessage-deflate, x-webkit\r\n");
        assert_eq!(response(&twice), Err(ClientError::Extension("x-webkit".into())));
        let wrong = GOOD.replace("s3p", "S3P");
        assert_eq!(response(&wrong), Err(ClientError::Accept));
        assert_eq!(response("Connection: Upgrade\r\n"), Err(ClientError::NotUpgraded));
    }

    #[test]
    fn other_responses_are_distinguished() {
        let offer = ClientOffer::default();
        let read = |head: &[u8]| read_response(head, KEY, &offer).map(|(_, outcome)| outcome);
        assert_eq!(read(b"HTTP/1.1 200 OK\r\n\r\n"), Some(Err(ClientError::Status(200))));
        assert_eq!(read(b"HTTP/1.1 101 Switching"), None);
        assert_eq!(read(b"SSH-2.0-OpenSSH\r\n\r\n"), Some(Err(ClientError::NotHttp)));
    }

    fn request(change: impl Fn(String) -> String) -> Result<ServerRequest, ServerError> {
        let mut fields = Vec::new();
        ClientOffer::default().write_fields(KEY, &mut fields);
        let fields = String::from_utf8(fields).unwrap();
        let head = change(format!("GET /chat HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        read_request(head.as_bytes()).unwrap().1
    }

    #[test]
    fn a_server_refuses_invalid_upgrades() {
        assert_eq!(request(|head| head).unwrap().path, "/chat");
        type Change = fn(String) -> String;
        let bad: [Change; 9] = [
            |head| head.replace("GET", "POST"),
            |head| head.replace("HTTP/1.1", "HTTP/1.0"),
            |head| head.replace("Connection: Upgrade", "Connection: close"),
            |head| head.replace("Host: a\r\n", ""),
            |head| head.replace("dGhl", "dGh"),
            |head| head.replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\n"),
            |head| head.replace("\r\n\r\n", "\r\nSec-WebSocket-Protocol: a, b c\r\n\r\n"),
            |head| head.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
            |head| {
                head.replace("\r\n\r\n", "\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
            },
        ];
        for change in bad {
            assert_eq!(request(change), Err(ServerError::BadRequest));
        }
        let version: [Change; 3] = [
            |head| head.replace("Version: 13", "Version: 12"),
            |head| head.replace("Version: 13", "Version: 13, 8"),
            |head| head.replace("Sec-WebSocket-Version: 13\r\n", ""),
        ];
        for change in version {
            assert_eq!(request(change), Err(ServerError::Version));
        }
    }
}
