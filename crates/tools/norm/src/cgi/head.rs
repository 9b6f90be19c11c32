//! The header at the start of a script's response (RFC 3875 §6).

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION,
    SERVER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::StatusCode;

/// Maximum size of a header.
pub(super) const HEAD_MAX: usize = 64 << 10;
/// Maximum number of fields in a header.
const FIELDS_MAX: usize = 100;
/// Fields about the connection, which the script does not own (§6.3.4).
const OURS: [HeaderName; 7] = [CONNECTION, DATE, SERVER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Returns whether only the server writes this field, so that it is removed from a script's
/// response.
pub(crate) fn is_ours(name: &HeaderName) -> bool {
    OURS.contains(name) || name == "keep-alive" || *name == CONTENT_LENGTH
}

/// A script's response header.
#[derive(Debug)]
pub(super) struct CgiHead {
    pub(super) kind: Kind,
    /// Fields for the client, without Status, Content-Length and the server's own.
    pub(super) fields: HeaderMap,
    /// Content length, if the script announces it.
    pub(super) length: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A document or a client's redirect (§6.2.1, §6.2.3, §6.2.4).
    Document(StatusCode),
    /// A local redirect: path and query (§6.2.2).
    Elsewhere(String),
}

/// Returns the length of the header, including its empty line; `None` without an empty line.
pub(super) fn end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if at > HEAD_MAX {
            return None;
        }
        if matches!(line, b"\n" | b"\r\n") {
            return Some(at);
        }
    }
    None
}

/// Reads a header up to and including its empty line.
///
/// # Errors
/// Fails with the error, as a clause.
pub(super) fn parse(head: &[u8]) -> Result<CgiHead, String> {
    let mut read = Read::default();
    for (index, line) in head.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        if index == FIELDS_MAX {
            return Err(format!("more than {FIELDS_MAX} fields in the header"));
        }
        let (name, value) = field(line)
            .ok_or_else(|| format!("line {} of the header is not a field", index + 1))?;
        read.take(&name, value)?;
    }
    read.finish()
}

/// Returns the name and value. Lines are never continued (§6.3), so a line with a leading space is
/// invalid.
fn field(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
    Some((name, value))
}

#[derive(Default)]
struct Read {
    fields: HeaderMap,
    status: Option<StatusCode>,
    length: Option<u64>,
}

impl Read {
    fn take(&mut self, name: &HeaderName, value: HeaderValue) -> Result<(), String> {
        if name == "status" {
            let status =
                status(&value).ok_or_else(|| format!("{value:?} is not a valid Status"))?;
            return check_single(name, self.status.replace(status).is_some());
        }
        if *name == CONTENT_LENGTH {
            let text = value.to_str().ok().filter(|text| digits(text));
            let length = text.and_then(|text| text.parse().ok());
            let length =
                length.ok_or_else(|| format!("Content-Length {value:?} is not a number"))?;
            return check_single(name, self.length.replace(length).is_some());
        }
        if *name == CONTENT_TYPE || *name == LOCATION {
            return check_single(name, self.fields.insert(name, value).is_some());
        }
        // §6.3.5: extensions that we do not know
        let unknown = name.as_str().starts_with("x-cgi-");
        if !unknown && !is_ours(name) {
            self.fields.append(name, value);
        }
        Ok(())
    }

    fn finish(self) -> Result<CgiHead, String> {
        let Read { fields, status, length } = self;
        let location = fields.get(LOCATION);
        if location.is_none() && status.is_none() && !fields.contains_key(CONTENT_TYPE) {
            return Err("the header has no Content-Type, Location or Status".to_owned());
        }
        // with a status it means a client redirect
        if let Some(location) = location
            && status.is_none()
            && location.as_bytes().starts_with(b"/")
        {
            let path = location.to_str().map_err(|_| "Location is not plain text".to_owned())?;
            let kind = Kind::Elsewhere(path.to_owned());
            return Ok(CgiHead { kind, fields: HeaderMap::new(), length: None });
        }
        let usual = if location.is_some() { StatusCode::FOUND } else { StatusCode::OK };
        Ok(CgiHead { kind: Kind::Document(status.unwrap_or(usual)), fields, length })
    }
}

/// Checks that no CGI field occurs twice (§6.3).
fn check_single(name: &HeaderName, again: bool) -> Result<(), String> {
    if again { Err(format!("{name} appears twice in the header")) } else { Ok(()) }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses three digits and, usually, a phrase (§6.3.3). An interim response is not accepted.
fn status(value: &HeaderValue) -> Option<StatusCode> {
    let text = value.to_str().ok()?;
    let code = text.split(' ').next().filter(|code| code.len() == 3 && digits(code))?;
    let status = StatusCode::from_bytes(code.as_bytes()).ok()?;
    (200..600).contains(&status.as_u16()).then_some(status)
}
