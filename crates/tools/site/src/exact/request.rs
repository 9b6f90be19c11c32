//! Reads requests: heads with httparse, bodies only to find their ends. Data from a peer is never
//! kept beyond [`HEAD_MAX`].

use crate::head::unix_ms;
use crate::proper::is_http1_call;
use crate::route::{
    AUTH_TOKEN, Route, bearer_of, credentials, is_current, login_text, name_text, origin_form,
    token_text,
};

/// The longest request head in bytes.
pub(super) const HEAD_MAX: usize = 64 * 1024;
/// Maximum number of header fields; more are refused with 431.
const FIELDS_MAX: usize = 128;

/// Facts of a request that the exact loop needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExactRequest {
    /// The request line, for the log.
    pub(super) line: String,
    pub(super) page: Page,
    /// True for HEAD, whose response has no body.
    pub(super) head_only: bool,
    pub(super) version: Version,
    /// True if the client wants the connection kept open.
    pub(super) keep: bool,
    pub(super) body: Skip,
    /// True if the client waits for 100 before it sends the body (RFC 9110 §10.1.1).
    pub(super) expects: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http10,
    Http11,
}

/// Pages served by the exact loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// "hello world", for any path.
    Hello,
    /// A page that only the other server has.
    Elsewhere {
        socket: bool,
    },
    Bytes(u64),
    Status {
        code: u16,
        to: String,
    },
    /// Pages `/login` and `/me`.
    Json(String),
    /// `/me` without a token of `/login`.
    Unauthorized,
    /// A parameter out of its bounds.
    Refused(String),
}

impl ExactRequest {
    /// Returns whether only the other server has the page.
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self.page, Page::Elsewhere { .. })
    }
}

/// Result of reading a head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Partial,
    /// To be refused with this status, and the connection closed.
    Bad(u16),
    Whole {
        request: ExactRequest,
        head_len: usize,
    },
}

/// Parses the head at the front of `input`. `scanned`: number of bytes known to contain no end of a
/// head; kept between calls, so that a head that arrives byte by byte costs no more than one in one
/// piece.
pub(super) fn parse(input: &[u8], scanned: &mut usize, body_max: u64) -> Parsed {
    if !head_ends(input, scanned) {
        return if input.len() > HEAD_MAX { Parsed::Bad(431) } else { Parsed::Partial };
    }
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    match head.parse(input) {
        // an empty line before a request is skipped (RFC 9112 §2.2), so the end found was not its own
        Ok(httparse::Status::Partial) => {
            if input.len() > HEAD_MAX {
                Parsed::Bad(431)
            } else {
                Parsed::Partial
            }
        }
        Ok(httparse::Status::Complete(head_len)) if head_len > HEAD_MAX => Parsed::Bad(431),
        Ok(httparse::Status::Complete(head_len)) => {
            *scanned = 0;
            match understand(&head, body_max) {
                Ok(request) => Parsed::Whole { request, head_len },
                Err(status) => Parsed::Bad(status),
            }
        }
        Err(httparse::Error::TooManyHeaders) => Parsed::Bad(431),
        Err(httparse::Error::Version) => Parsed::Bad(505),
        Err(_) => Parsed::Bad(400),
    }
}

/// Returns whether `input` contains an empty line; lines may end in LF alone (RFC 9112 §2.2).
fn head_ends(input: &[u8], scanned: &mut usize) -> bool {
    let from = scanned.saturating_sub(3).min(input.len());
    let found = input[from..].windows(2).enumerate().any(|(index, pair)| {
        pair == b"\n\n" || pair == b"\n\r" && input.get(from + index + 2) == Some(&b'\n')
    });
    if !found {
        *scanned = input.len();
    }
    found
}

fn understand(head: &httparse::Request<'_, '_>, body_max: u64) -> Result<ExactRequest, u16> {
    let method = head.method.ok_or(400_u16)?;
    let target = head.path.ok_or(400_u16)?;
    let version = match head.version {
        Some(0) => Version::Http10,
        _ => Version::Http11,
    };
    let values = |name: &'static str| {
        let named = head.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value)
    };
    // RFC 9112 §3.2: one Host field, exactly, from HTTP/1.1 on
    let hosts = values("host").count();
    if hosts > 1 || hosts == 0 && version == Version::Http11 {
        return Err(400);
    }
    let has = |name: &'static str, token: &str| {
        let listed = values(name).flat_map(|value| value.split(|byte| *byte == b','));
        listed.map(<[u8]>::trim_ascii).any(|found| found.eq_ignore_ascii_case(token.as_bytes()))
    };
    let keep = match version {
        Version::Http10 => has("connection", "keep-alive") && !has("connection", "close"),
        Version::Http11 => !has("connection", "close"),
    };
    let body = body_of(values("content-length"), values("transfer-encoding"), version, body_max)?;
    let page = match Route::parse(&origin_form(target)) {
        Ok(Route::Bytes(len)) => Page::Bytes(len),
        Ok(Route::Status { code, to }) => Page::Status { code, to },
        Ok(Route::Login { name }) => Page::Json(login_text(&name)),
        Ok(Route::Token(lifetime)) if method == "POST" => {
            let login = values("authorization").find_map(|value| std::str::from_utf8(value).ok());
            match login.and_then(|field| credentials(field, "basic")) {
                Some(AUTH_TOKEN) => Page::Json(token_text(lifetime, unix_ms())),
                _ => Page::Unauthorized,
            }
        }
        Ok(Route::Me) => {
            let field = values("authorization").find_map(|value| std::str::from_utf8(value).ok());
            match field.and_then(bearer_of) {
                Some(name) if is_current(name, unix_ms()) => Page::Json(name_text(name)),
                _ => Page::Unauthorized,
            }
        }
        _ if is_call(head) => Page::Elsewhere { socket: false },
        Ok(Route::Socket(_)) => Page::Elsewhere { socket: true },
        Err(refusal) if refusal.status == 400 => Page::Refused(refusal.text),
        Err(_) | Ok(Route::Welcome | Route::Hello | Route::Token(_)) => Page::Hello,
        Ok(_) => Page::Elsewhere { socket: false },
    };
    Ok(ExactRequest {
        line: format!("{method} {target} HTTP/1.{}", u8::from(version == Version::Http11)),
        page,
        head_only: method == "HEAD",
        version,
        keep,
        body,
        expects: version == Version::Http11 && has("expect", "100-continue"),
    })
}

/// Returns whether a request is a call of gRPC-Web or Connect, which the other server answers.
fn is_call(head: &httparse::Request<'_, '_>) -> bool {
    let value = |name: &str| {
        let mut fields = head.headers.iter();
        let found = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let is_connect = value("connect-protocol-version").is_some();
    head.method == Some("POST")
        && value("content-type").is_some_and(|kind| is_http1_call(kind, is_connect))
}

/// Determines the body strictly by RFC 9112 §6.3: both lengths, two different lengths or an unknown
/// coding are refused.
fn body_of<'a>(
    lengths: impl Iterator<Item = &'a [u8]>,
    codings: impl Iterator<Item = &'a [u8]>,
    version: Version,
    body_max: u64,
) -> Result<Skip, u16> {
    let mut length = None;
    for value in lengths {
        let text = std::str::from_utf8(value).map_err(|_| 400_u16)?;
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(400);
        }
        // all digits, so only its size can be wrong
        let parsed: u64 = text.parse().map_err(|_| 413_u16)?;
        if length.is_some_and(|known| known != parsed) {
            return Err(400);
        }
        length = Some(parsed);
    }
    let codings: Vec<&[u8]> = codings.collect();
    match (codings.as_slice(), length) {
        ([], Some(length)) if length > body_max => Err(413),
        ([], Some(length)) => Ok(Skip::Length(length)),
        ([], None) => Ok(Skip::Length(0)),
        ([coding], None) if version == Version::Http11 => {
            if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                Ok(Skip::Chunked(Chunks::new(body_max)))
            } else {
                Err(501)
            }
        }
        _ => Err(400),
    }
}

/// The rest of an unwanted body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    Length(u64),
    Chunked(Chunks),
}

/// State of a chunked body (RFC 9112 §7.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    at: At,
    /// Limit on remaining body bytes.
    left: u64,
    /// Limit on remaining bytes of size lines, extensions and trailers.
    syntax_left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Size { value: u64, digits: bool },
    Extension { value: u64 },
    Data(u64),
    DataEnd,
    Trailer { line_len: u64 },
    Done,
}

impl Skip {
    /// Consumes the body's bytes at the front of `input`: returns their number, and whether the
    /// body is over. `Err`: status of the refusal.
    pub(super) fn take(&mut self, input: &[u8]) -> Result<(usize, bool), u16> {
        match self {
            Skip::Length(left) => {
                let taken = (*left).min(input.len() as u64);
                *left -= taken;
                Ok((taken as usize, *left == 0))
            }
            Skip::Chunked(chunks) => {
                let mut taken = 0;
                while chunks.at != At::Done && taken < input.len() {
                    taken += chunks.step(&input[taken..])?;
                }
                Ok((taken, chunks.at == At::Done))
            }
        }
    }
}

impl Chunks {
    fn new(body_max: u64) -> Chunks {
        // generous for bodies in chunks of one byte, which need six bytes of syntax each
        let syntax_left = body_max.saturating_mul(8).saturating_add(HEAD_MAX as u64);
        Chunks { at: At::Size { value: 0, digits: false }, left: body_max, syntax_left }
    }

    /// Runs one step on a non-empty `input`; returns the number of consumed bytes, at least one.
    fn step(&mut self, input: &[u8]) -> Result<usize, u16> {
        let byte = input[0];
        if let At::Data(len) = self.at {
            let taken = len.min(input.len() as u64);
            self.at = if taken == len { At::DataEnd } else { At::Data(len - taken) };
            return Ok(taken as usize);
        }
        self.syntax_left = self.syntax_left.checked_sub(1).ok_or(413_u16)?;
        self.at = match self.at {
            At::Size { value, digits } => match (char::from(byte).to_digit(16), byte) {
                (Some(digit), _) => {
                    let value = value.checked_mul(16).ok_or(413_u16)? + u64::from(digit);
                    At::Size { value, digits: true }
                }
                (None, b'\n') if digits => self.after_size(value)?,
                (None, b'\r' | b';' | b' ' | b'\t') if digits => At::Extension { value },
                _ => return Err(400),
            },
            At::Extension { value } if byte == b'\n' => self.after_size(value)?,
            At::Extension { value } => At::Extension { value },
            At::DataEnd => match byte {
                b'\r' => At::DataEnd,
                b'\n' => At::Size { value: 0, digits: false },
                _ => return Err(400),
            },
            At::Trailer { line_len: 0 } if byte == b'\n' => At::Done,
            At::Trailer { .. } if byte == b'\n' => At::Trailer { line_len: 0 },
            At::Trailer { line_len } if byte == b'\r' => At::Trailer { line_len },
            At::Trailer { line_len } => At::Trailer { line_len: line_len + 1 },
            At::Data(_) | At::Done => self.at,
        };
        Ok(1)
    }

    fn after_size(&mut self, value: u64) -> Result<At, u16> {
        self.left = self.left.checked_sub(value).ok_or(413_u16)?;
        Ok(if value == 0 { At::Trailer { line_len: 0 } } else { At::Data(value) })
    }
}

#[cfg(test)]
mod tests;
