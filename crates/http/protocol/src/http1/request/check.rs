//! Rejects bytes in a request that a server could interpret as the end of a line, of a field or of
//! the message.

use super::{RequestHead, Target};
use crate::http1::fields::is_token;

/// Reason why a request is not rendered. Each text names the input and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The method is not a token (RFC 9110 §9.1).
    Method(String),
    /// A request target with a space, a control character, or of another form than is needed.
    Target(String),
    /// The host with a space or a control character.
    Host(String),
    /// A field name that is not a token (RFC 9110 §5.1).
    HeaderName(String),
    /// A control character in the value of this field (RFC 9110 §5.5). Values are not shown: they
    /// may be secrets.
    HeaderValue { name: String, byte: u8 },
    /// A user's Content-Length that differs from the length of the body.
    ContentLength { given: String, body: usize },
    /// The body is sent unchanged, with its length.
    TransferEncoding,
    /// The plan's HTTP version cannot carry it: the reason.
    Translated { version: &'static str, why: String },
    /// Credentials that the Basic scheme cannot carry.
    Credentials(&'static str),
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestError::Method(method) => write!(
                f,
                "{method:?} is not a method: use letters, digits and !#$%&'*+-.^_`|~ only, as in GET"
            ),
            RequestError::Target(target) => write!(
                f,
                "{target:?} cannot be requested: percent-encode spaces and all characters outside visible ASCII (%XX), and omit the #fragment"
            ),
            RequestError::Host(host) => {
                write!(f, "{host:?} is not a host: write a name or an address, and a port if need be")
            }
            RequestError::HeaderName(name) => write!(
                f,
                "{name:?} is not the name of a header field: use letters, digits and !#$%&'*+-.^_`|~ only, as in \"Accept: text/html\""
            ),
            RequestError::HeaderValue { name, byte } => write!(
                f,
                "the value of header field {name} contains the control character 0x{byte:02x}: remove it"
            ),
            RequestError::ContentLength { given, body } => write!(
                f,
                "header field Content-Length: {given:?} is not the length of the body, {body}: omit it, it is added automatically"
            ),
            RequestError::TransferEncoding => f.write_str(
                "header field Transfer-Encoding cannot be given: the body is sent with its length; omit it",
            ),
            RequestError::Translated { version, why } => {
                write!(f, "the request cannot be sent over {version}: {why}")
            }
            RequestError::Credentials(what) => {
                write!(f, "user name and password cannot be sent by the Basic scheme: {what}")
            }
        }
    }
}

impl std::error::Error for RequestError {}

pub(super) fn head(head: &RequestHead<'_>) -> Result<(), RequestError> {
    if !is_token(head.method.as_bytes()) {
        return Err(RequestError::Method(head.method.to_owned()));
    }
    target(head.target)?;
    if !head.host.bytes().all(is_visible) {
        return Err(RequestError::Host(head.host.to_owned()));
    }
    let ours = [
        ("User-Agent", head.user_agent),
        ("Accept-Encoding", head.accept_encoding),
        ("Authorization", head.authorization),
    ];
    for (name, text) in ours {
        value(name, text.unwrap_or_default())?;
    }
    let body = head.body.map_or(0, <[u8]>::len);
    head.headers.iter().try_for_each(|(name, text)| field(name, text, body))
}

fn target(target: Target<'_>) -> Result<(), RequestError> {
    let (text, formed) = match target {
        Target::Origin(text) => (text, text.starts_with('/') || text == "*"),
        Target::Absolute(text) => (text, text.contains("://")),
        Target::Authority(text) => (text, text.contains(':') && !text.contains('/')),
    };
    let clean = text.bytes().all(|byte| is_visible(byte) && byte != b'#');
    if formed && clean { Ok(()) } else { Err(RequestError::Target(text.to_owned())) }
}

fn field(name: &str, text: &str, body: usize) -> Result<(), RequestError> {
    if !is_token(name.as_bytes()) {
        return Err(RequestError::HeaderName(name.to_owned()));
    }
    value(name, text)?;
    // RFC 9112 §6: these two decide where the message ends
    if name.eq_ignore_ascii_case("transfer-encoding") {
        return Err(RequestError::TransferEncoding);
    }
    let given = text.trim_matches([' ', '\t']);
    let digits = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    let true_length = digits && given.parse() == Ok(body);
    if name.eq_ignore_ascii_case("content-length") && !true_length {
        return Err(RequestError::ContentLength { given: given.to_owned(), body });
    }
    Ok(())
}

fn value(name: &str, text: &str) -> Result<(), RequestError> {
    let control = text.bytes().find(|byte| byte.is_ascii_control() && *byte != b'\t');
    control.map_or(Ok(()), |byte| Err(RequestError::HeaderValue { name: name.to_owned(), byte }))
}

fn is_visible(byte: u8) -> bool {
    byte.is_ascii_graphic()
}
