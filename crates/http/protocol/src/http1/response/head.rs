//! One head: its end, and the facts of its message.

use super::ResponseError;
use crate::http1::fields::{is_token, list};
use crate::http1::timing::SERVER_TIMING;
use std::mem::MaybeUninit;

/// Facts of a head, independent of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Length of the head in bytes.
    pub(super) len: usize,
    pub(super) status: u16,
    pub(super) minor_version: u8,
    /// Persistence by version and Connection field only.
    pub(super) keep_alive: bool,
    pub(super) rule: BodyRule,
    /// True if there is a Server-Timing field.
    pub(super) timed: bool,
    /// True if there is a Set-Cookie field.
    pub(super) sets_cookies: bool,
}

/// End of the body, if the request permits a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BodyRule {
    #[default]
    None,
    Length(u64),
    Chunked,
    UntilClose,
    /// Cannot be known; harmless if the response has no body anyway.
    Faulty(&'static str),
}

/// Maximum number of fields in one head; real servers send fewer than 40.
const FIELDS_MAX: usize = 256;

impl Known {
    /// Returns whether the response is interim; 101 is final (RFC 9110 §15.2.2).
    pub(super) fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

/// Looks for the empty line that ends a head, across pieces. A bare LF ends a line as well
/// (RFC 9112 §2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Scan {
    #[default]
    InLine,
    AfterLf,
    AfterLfCr,
}

impl Scan {
    /// Returns the position after the empty line, if it is within `piece`.
    pub(super) fn find_end(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < piece.len() {
            let next = match (*self, piece[at]) {
                (Scan::InLine, _) => {
                    at += memchr::memchr(b'\n', &piece[at..])?;
                    Scan::AfterLf
                }
                (Scan::AfterLf | Scan::AfterLfCr, b'\n') => return Some(at + 1),
                (Scan::AfterLf, b'\r') => Scan::AfterLfCr,
                _ => Scan::InLine,
            };
            *self = next;
            at += 1;
        }
        None
    }
}

/// Parses a head that ends with its empty line.
pub(super) fn parse(head: &[u8]) -> Result<Known, ResponseError> {
    let mut slots = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    config.allow_spaces_after_header_name_in_responses(true);
    config.allow_multiple_spaces_in_response_status_delimiters(true);
    let end = config
        .parse_response_with_uninit_headers(&mut response, head, &mut slots)
        .map_err(error_of)?;
    if end != httparse::Status::Complete(head.len()) {
        return Err(ResponseError::BadFraming("the head does not end where its empty line is"));
    }
    let (Some(minor_version), Some(status)) = (response.version, response.code) else {
        return Err(ResponseError::NotHttp);
    };
    let mut facts = HeadFields::default();
    for field in response.headers.iter() {
        facts.take(field.name, field.value);
    }
    Ok(Known {
        len: head.len(),
        status,
        minor_version,
        keep_alive: facts.keep_alive(minor_version),
        rule: facts.rule(status),
        timed: facts.timed,
        sets_cookies: facts.sets_cookies,
    })
}

/// Parses like [`parse`], for a head whose status line may have any version: it is read as
/// HTTP/1.1.
pub(super) fn parse_any_version(head: &[u8]) -> Result<Known, ResponseError> {
    let parsed = parse(head);
    if !matches!(parsed, Err(ResponseError::NotHttp)) {
        return parsed;
    }
    let after = head.strip_prefix(b"HTTP/").ok_or(ResponseError::NotHttp)?;
    let end = memchr::memchr(b' ', after).ok_or(ResponseError::NotHttp)?;
    let (version, rest) = after.split_at(end);
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let dot = memchr::memchr(b'.', version).ok_or(ResponseError::NotHttp)?;
    if !digits(&version[..dot]) || !digits(&version[dot + 1..]) {
        return Err(ResponseError::NotHttp);
    }
    let known = parse(&[b"HTTP/1.1", rest].concat())?;
    Ok(Known { len: head.len(), ..known })
}

/// Returns whether `head`, which ends with its empty line, differs from a parsed head only in
/// values that [`parse`] ignores: then it has the same facts except for its length. Otherwise a
/// server with a date, a number or a time in each response would have every head parsed.
pub(super) fn is_equivalent(parsed: &[u8], head: &[u8]) -> bool {
    let (mut parsed, mut head) = (parsed, head);
    loop {
        let same = common_length(parsed, head);
        if same == parsed.len() || same == head.len() {
            return parsed.len() == head.len();
        }
        let line = memchr::memrchr(b'\n', &parsed[..same]).map_or(0, |lf| lf + 1);
        // no name: the status line, an obsolete fold, or a name that is not the same
        let Some(name_len) = memchr::memchr(b':', &parsed[line..same]) else { return false };
        let name = &parsed[line..line + name_len];
        if !is_token(name) || decides(name) {
            return false;
        }
        let ends = (memchr::memchr(b'\n', &parsed[same..]), memchr::memchr(b'\n', &head[same..]));
        let (Some(parsed_lf), Some(head_lf)) = ends else { return false };
        let value = &head[line + name_len + 1..same + head_lf];
        let value = value.strip_suffix(b"\r").unwrap_or(value);
        // what a value may hold (RFC 9110 §5.5)
        if !value.iter().all(|byte| matches!(byte, b'\t' | b' '..=0x7e | 0x80..)) {
            return false;
        }
        parsed = &parsed[same + parsed_lf + 1..];
        head = &head[same + head_lf + 1..];
    }
}

/// Returns the number of bytes from the start that are the same, eight at a time.
#[inline]
fn common_length(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    let words = words.take_while(|(one, other)| one == other).count() * 8;
    let bytes = one[words..].iter().zip(&other[words..]);
    words + bytes.take_while(|(one, other)| one == other).count()
}

/// Returns whether [`HeadFields::take`] examines the value of this name.
fn decides(name: &[u8]) -> bool {
    ["content-length", "transfer-encoding", "connection"]
        .iter()
        .any(|decisive| name.eq_ignore_ascii_case(decisive.as_bytes()))
}

fn error_of(error: httparse::Error) -> ResponseError {
    match error {
        httparse::Error::Version => ResponseError::NotHttp,
        httparse::Error::Status => ResponseError::BadFraming("the status line"),
        httparse::Error::TooManyHeaders => ResponseError::HeadTooLarge,
        httparse::Error::HeaderName => ResponseError::BadFraming("the name of a header field"),
        httparse::Error::HeaderValue => ResponseError::BadFraming("the value of a header field"),
        _ => ResponseError::BadFraming("a line end in the head"),
    }
}

/// The fields that decide framing and persistence.
#[derive(Debug, Default)]
struct HeadFields {
    length: Length,
    /// Transfer codings listed, except `identity`.
    codings: u32,
    /// True if `chunked` is the last of them.
    chunked_last: bool,
    /// True if `chunked` is among those before the last, where it is not allowed.
    chunked_inside: bool,
    close: bool,
    keep_alive: bool,
    timed: bool,
    sets_cookies: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    #[default]
    Unsaid,
    Declared(u64),
    Faulty(&'static str),
}

impl HeadFields {
    fn take(&mut self, name: &str, value: &[u8]) {
        if name.eq_ignore_ascii_case("content-length") {
            self.take_lengths(value);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            self.take_codings(value);
        } else if name.eq_ignore_ascii_case("connection") {
            for option in list(value) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case(SERVER_TIMING) {
            self.timed = true;
        } else if name.eq_ignore_ascii_case("set-cookie") {
            self.sets_cookies = true;
        }
    }

    /// Parses Content-Length. The same number repeated, in a list or in another field, is valid;
    /// different numbers are an error (RFC 9112 §6.3 item 5).
    fn take_lengths(&mut self, value: &[u8]) {
        let mut none = true;
        for text in list(value) {
            none = false;
            self.length = match (self.length, decimal(text)) {
                (Length::Faulty(what), _) => Length::Faulty(what),
                (_, None) => Length::Faulty("Content-Length is not a number"),
                (Length::Declared(declared), Some(length)) if declared != length => {
                    Length::Faulty("Content-Length is given twice and differs")
                }
                (_, Some(length)) => Length::Declared(length),
            };
        }
        if none {
            self.length = Length::Faulty("Content-Length is empty");
        }
    }

    /// Parses codings. RFC 2616 §3.6 had a coding `identity` without effect; old servers still use
    /// it.
    fn take_codings(&mut self, value: &[u8]) {
        for coding in list(value).filter(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
            self.codings += 1;
            self.chunked_inside |= self.chunked_last;
            self.chunked_last = coding.eq_ignore_ascii_case(b"chunked");
        }
    }

    /// Returns whether the connection persists (RFC 9112 §9.3). A message with both
    /// Transfer-Encoding and Content-Length, or with Transfer-Encoding in HTTP/1.0, is read, but
    /// its connection is not trusted again (§6.1).
    fn keep_alive(&self, minor_version: u8) -> bool {
        let doubtful = self.codings > 0 && (self.length != Length::Unsaid || minor_version == 0);
        let kept = if minor_version == 0 { self.keep_alive } else { true };
        kept && !self.close && !doubtful
    }

    /// Determines the end of the body (RFC 9112 §6.3): Transfer-Encoding takes precedence over
    /// Content-Length; with a final coding other than `chunked`, or with neither field, the body
    /// ends with the connection.
    fn rule(&self, status: u16) -> BodyRule {
        if matches!(status, 100..200 | 204 | 304) {
            return BodyRule::None;
        }
        if self.codings > 0 {
            let chunked = self.chunked_last && !self.chunked_inside;
            return if chunked { BodyRule::Chunked } else { BodyRule::UntilClose };
        }
        match self.length {
            Length::Unsaid => BodyRule::UntilClose,
            Length::Declared(length) => BodyRule::Length(length),
            Length::Faulty(what) => BodyRule::Faulty(what),
        }
    }
}

/// Parses 1*DIGIT within 64 bits; no sign, no space.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests;
