//! An outgoing response: its bytes, its pace, and the state of the connection afterwards.

use units::Nanos;

use super::request::{ExactRequest, Page, Version};
use crate::faults::{Misbehaviour, WrongLength};
use crate::head::{BodyFraming, ResponseHead, bodiless};
use crate::pattern;
use crate::route::{BEARER, NO_TOKEN};

/// Action after the last byte is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Keep,
    /// Closed so that the client gets the complete response (RFC 9112 §9.6).
    Close,
    /// Closed as if the process died.
    Drop,
}

#[derive(Clone, Debug)]
enum BodyPiece {
    Text(Vec<u8>),
    /// This many bytes of the pattern.
    Pattern(u64),
}

/// A response that is being sent.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    parts: Vec<BodyPiece>,
    len: u64,
    position: u64,
    /// Amount sent at once; the rest drips.
    prompt: u64,
    /// Instant at which the first byte was permitted to leave.
    begun: Option<Nanos>,
    pub(super) after: After,
    pub(super) status: Option<u16>,
    /// Length of the body as declared, for the log.
    pub(super) body_len: Option<u64>,
    /// True if the request is complete once this is sent; false for 100 (Continue).
    pub(super) is_final: bool,
}

/// The response to a request: 100 (Continue) only.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const HELLO: &str = "hello world";
const NO_SOCKET: &str = "WebSockets are not served: a fault of this site breaks responses or \
    counts connections. Use faults that only delay, fail or refuse requests.\n";
/// Difference between a wrong length and the correct one, in bytes.
const WRONG_BY: u64 = 5;
const WRONG_TEXT: &str = "extra";

/// Parameters of a response in addition to the request.
#[derive(Debug)]
pub(super) struct Making<'a> {
    pub(super) date: &'a str,
    pub(super) misbehaviour: Option<Misbehaviour>,
    /// Status that overrides that of the page.
    pub(super) error: Option<u16>,
    /// True for the connection's last response.
    pub(super) last: bool,
    pub(super) drips: bool,
}

impl Outgoing {
    /// Returns the response to `request`.
    pub(super) fn answer(request: &ExactRequest, making: &Making<'_>) -> Outgoing {
        let (status, mut body, extra) = content(request, making.error);
        let body_len = body.len();
        let (declared, sent) = match making.misbehaviour {
            Some(Misbehaviour::WrongLength(WrongLength::Short)) => (body_len, body_len + WRONG_BY),
            Some(Misbehaviour::WrongLength(WrongLength::Long)) => (body_len + WRONG_BY, body_len),
            _ => (body_len, body_len),
        };
        let has_length = !bodiless(status);
        let mut parts = Vec::with_capacity(4);
        if let (Page::Status { code: code @ 100..=199, .. }, None) = (&request.page, making.error) {
            parts.extend(interim(request.version, *code));
        }
        let connection = match (making.last, request.version) {
            (true, _) => Some("close"),
            (false, Version::Http10) => Some("keep-alive"),
            (false, Version::Http11) => None,
        };
        let framing = if has_length { BodyFraming::Length(declared) } else { BodyFraming::Unsaid };
        let head = ResponseHead { status, date: making.date, framing, connection, extra: &extra };
        // 101 is the last message in HTTP (RFC 9110 §15.2.2)
        if status != 101 {
            parts.push(BodyPiece::Text(head.render()));
        }
        let prompt = parts.iter().map(BodyPiece::len).sum();
        if has_length && !request.head_only {
            if sent > body_len {
                body.lengthen();
            }
            parts.extend((body.len() > 0).then_some(body));
        }
        let after = if making.last { After::Close } else { After::Keep };
        let body_len = has_length.then_some(declared);
        let mut outgoing = Outgoing::new(parts, Some(status), body_len, after);
        if making.drips {
            outgoing.prompt = prompt;
        }
        outgoing.misbehave(making.misbehaviour);
        outgoing
    }

    /// Returns a refusal, after which the connection is closed.
    pub(super) fn refusal(status: u16, date: &str) -> Outgoing {
        let text = format!("{status} {}\n", crate::head::reason(status));
        let framing = BodyFraming::Length(text.len() as u64);
        let plain = "Content-Type: text/plain\r\n";
        let head = ResponseHead { status, date, framing, connection: Some("close"), extra: plain };
        let body_len = Some(text.len() as u64);
        let parts = vec![BodyPiece::Text(head.render()), BodyPiece::Text(text.into_bytes())];
        Outgoing::new(parts, Some(status), body_len, After::Close)
    }

    pub(super) fn garbage(bytes: Vec<u8>) -> Outgoing {
        Outgoing::new(vec![BodyPiece::Text(bytes)], None, None, After::Close)
    }

    pub(super) fn interim_continue() -> Outgoing {
        let parts = vec![BodyPiece::Text(CONTINUE.to_vec())];
        Outgoing { is_final: false, ..Outgoing::new(parts, None, None, After::Keep) }
    }

    fn new(
        parts: Vec<BodyPiece>,
        status: Option<u16>,
        body_len: Option<u64>,
        after: After,
    ) -> Outgoing {
        let len = parts.iter().map(BodyPiece::len).sum();
        Outgoing {
            parts,
            len,
            position: 0,
            prompt: len,
            begun: None,
            after,
            status,
            body_len,
            is_final: true,
        }
    }

    fn misbehave(&mut self, misbehaviour: Option<Misbehaviour>) {
        match misbehaviour {
            Some(Misbehaviour::Twice) => {
                self.parts.extend_from_within(..);
                if self.prompt == self.len {
                    self.prompt *= 2;
                }
                self.len *= 2;
            }
            Some(Misbehaviour::Truncate) => {
                let body = match self.parts.as_slice() {
                    [_, .., last] => last.len(),
                    _ => self.len,
                };
                // at least one byte short, even for a body of one byte
                self.len -= body.div_ceil(2);
                self.prompt = self.prompt.min(self.len);
                self.after = After::Drop;
            }
            _ => {}
        }
    }

    /// Returns the number of bytes that drip, from which their duration follows.
    pub(super) fn dripping_len(&self) -> u64 {
        self.len - self.prompt
    }

    /// Sets the instant from which the body may be sent, at its rate.
    pub(super) fn begin_at(&mut self, at: Nanos) {
        self.begun = Some(at);
    }

    /// Returns the number of remaining bytes of the current part: first the head, then the body.
    pub(super) fn part_left(&self) -> u64 {
        let mut end = 0;
        for part in &self.parts {
            end += part.len();
            if end > self.position {
                break;
            }
        }
        end.saturating_sub(self.position)
    }

    pub(super) fn is_sent(&self) -> bool {
        self.position == self.len
    }

    /// Returns the number of bytes that may be written by `now`, at `drip` bytes per second.
    pub(super) fn allowed(&mut self, now: Nanos, drip: Option<u64>) -> u64 {
        let begun = *self.begun.get_or_insert(now);
        let Some(drip) = drip else { return self.len - self.position };
        let dripped = u128::from((now - begun).0) * u128::from(drip) / 1_000_000_000;
        let dripped = u64::try_from(dripped).unwrap_or(u64::MAX);
        (self.prompt.saturating_add(dripped).min(self.len)).saturating_sub(self.position)
    }

    /// Returns when more may be sent: one byte later, but at least `step` from now, so that a fast
    /// drip does not cost a wakeup per byte.
    pub(super) fn next_drip(&self, now: Nanos, drip: u64, step: Nanos) -> Nanos {
        let begun = self.begun.unwrap_or(now);
        let bytes = u128::from(self.position.saturating_sub(self.prompt) + 1);
        let ns = (bytes * 1_000_000_000).div_ceil(u128::from(drip));
        (begun + Nanos(u64::try_from(ns).unwrap_or(u64::MAX))).max(now + step)
    }

    /// Appends up to `max` of the bytes from the present position on.
    pub(super) fn copy(&self, max: u64, into: &mut Vec<u8>) -> u64 {
        let (mut skip, mut left) = (self.position, max.min(self.len - self.position));
        let wanted = left;
        for part in &self.parts {
            let len = part.len();
            if skip >= len {
                skip -= len;
                continue;
            }
            let taken = left.min(len - skip);
            part.copy(skip, taken, into);
            (skip, left) = (0, left - taken);
            if left == 0 {
                break;
            }
        }
        wanted - left
    }

    /// Returns whether `more` bytes would complete the response.
    pub(super) fn ends_after(&self, more: u64) -> bool {
        self.position + more == self.len
    }

    /// Records up to `sent` bytes as written; returns how many belonged to this response.
    pub(super) fn advance(&mut self, sent: u64) -> u64 {
        let own = sent.min(self.len - self.position);
        self.position += own;
        own
    }
}

impl BodyPiece {
    fn len(&self) -> u64 {
        match self {
            BodyPiece::Text(text) => text.len() as u64,
            BodyPiece::Pattern(len) => *len,
        }
    }

    /// Adds bytes to the body, so that the declared length is too short.
    fn lengthen(&mut self) {
        match self {
            BodyPiece::Text(text) => text.extend_from_slice(WRONG_TEXT.as_bytes()),
            BodyPiece::Pattern(len) => *len += WRONG_BY,
        }
    }

    fn copy(&self, from: u64, len: u64, into: &mut Vec<u8>) {
        match self {
            BodyPiece::Text(text) => {
                into.extend_from_slice(&text[from as usize..(from + len) as usize])
            }
            BodyPiece::Pattern(_) => {
                let (mut at, end) = (from, from + len);
                while at < end {
                    let slice = pattern::slice(at, end - at);
                    into.extend_from_slice(slice);
                    at += slice.len() as u64;
                }
            }
        }
    }
}

/// Returns the status, body and further header lines.
fn content(request: &ExactRequest, error: Option<u16>) -> (u16, BodyPiece, String) {
    let text = |text: &str| BodyPiece::Text(text.as_bytes().to_vec());
    let plain = "Content-Type: text/plain\r\n".to_owned();
    if let Some(status) = error {
        return (status, text(&format!("{status} on demand\n")), plain);
    }
    match &request.page {
        Page::Elsewhere { socket: true } => (501, text(NO_SOCKET), plain),
        Page::Hello | Page::Elsewhere { socket: false } => (200, text(HELLO), plain),
        Page::Bytes(len) => {
            (200, BodyPiece::Pattern(*len), "Content-Type: application/octet-stream\r\n".to_owned())
        }
        Page::Refused(why) => (400, text(why), plain),
        Page::Json(json) => (200, text(json), "Content-Type: application/json\r\n".to_owned()),
        Page::Unauthorized => {
            let challenge = format!("WWW-Authenticate: {BEARER}\r\n");
            (401, text(NO_TOKEN), plain + &challenge)
        }
        Page::Status { code: 101, .. } if request.version == Version::Http11 => {
            (101, text(""), String::new())
        }
        Page::Status { code: 100..=199, .. } => (200, text("after an interim response\n"), plain),
        Page::Status { code: code @ 300..=399, to } => {
            let location = format!("Location: {to}\r\n");
            let body = format!("{code}: see {to}\n");
            (*code, text(&body), plain + &location)
        }
        // 205 has an empty body (RFC 9110 §15.3.6)
        Page::Status { code: 205, .. } => (205, text(""), String::new()),
        Page::Status { code, .. } if bodiless(*code) => (*code, text(""), String::new()),
        Page::Status { code, .. } => {
            let body = format!("{code} {}\n", crate::head::reason(*code));
            (*code, text(&body), plain)
        }
    }
}

/// Returns the interim head that `/status/1xx` sends before its response; an HTTP/1.0 client must
/// not get one (RFC 9110 §15.2).
fn interim(version: Version, code: u16) -> Option<BodyPiece> {
    let upgrade = if code == 101 { "Connection: upgrade\r\nUpgrade: none\r\n" } else { "" };
    let head = format!("HTTP/1.1 {code} {}\r\n{upgrade}\r\n", crate::head::reason(code));
    (version == Version::Http11).then(|| BodyPiece::Text(head.into_bytes()))
}

#[cfg(test)]
mod tests;
