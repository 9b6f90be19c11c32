//! Data that a server may rightly wait for: silence after half a message is not a hang.

use super::has_ended;
use dialogue::talk::{Move, Talk, TalkEnd, is_raw};

/// The missing part of a message for a strict parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingPart {
    /// CR LF CR LF: a server need not accept LF as a line terminator (RFC 9112 section 2.2).
    EndOfHead,
    /// Content announced by Content-Length (RFC 9112 section 6.3).
    Content,
    /// The rest of a chunk, of its line, or of the trailers (RFC 9112 section 7.1).
    Chunks,
}

impl MissingPart {
    /// Returns the part as a noun phrase.
    pub fn text(self) -> &'static str {
        match self {
            MissingPart::EndOfHead => "the CR LF CR LF that ends a head",
            MissingPart::Content => "the content that Content-Length promises",
            MissingPart::Chunks => "the rest of the chunked content",
        }
    }
}

/// Returns whether everything was sent, including a complete message, without a response, and the
/// connection stays open.
pub fn is_hang(talk: &Talk) -> bool {
    is_silent(talk) && waits(talk).is_none()
}

/// Returns what the server may still wait for after everything was sent without a response.
pub fn part_still_awaited(talk: &Talk) -> Option<MissingPart> {
    waits(talk).filter(|_| is_silent(talk))
}

/// Returns whether the client waits for the interim response that must precede the content (RFC
/// 9110 section 10.1.1).
pub fn lacks_continue(talk: &Talk) -> bool {
    is_hang(talk) && awaits_continue(talk)
}

/// Returns whether a client waits that has sent only a head that expects 100 (Continue).
pub(super) fn awaits_continue(talk: &Talk) -> bool {
    talk.end == TalkEnd::Silent && is_held_back(talk)
}

/// Returns whether the server closed the connection of such a client, instead of a response.
pub(super) fn is_closed_before_content(talk: &Talk) -> bool {
    has_ended(talk) && is_held_back(talk)
}

/// Returns whether the client got nothing, and has sent only a head that expects 100 (Continue).
fn is_held_back(talk: &Talk) -> bool {
    if !has_no_response(talk) || !talk.replies.interim.is_empty() {
        return false;
    }
    let sent = crate::record::sent(&talk.steps);
    // content that the client holds back is not yet sent
    expectant_head(&sent).is_some_and(|head| head == sent.len() || head as u64 == talk.sent)
}

/// Returns whether the head expects 100 (Continue) before its content.
pub(super) fn expects_continue(talk: &Talk) -> bool {
    expectant_head(&crate::record::sent(&talk.steps)).is_some()
}

/// Returns the length of a head that expects 100 (Continue) before its content.
fn expectant_head(sent: &[u8]) -> Option<usize> {
    let end = find(sent, b"\r\n\r\n")?;
    let framing = ClaimedFraming::from_head(&sent[..end]);
    (framing.expects && (framing.length > 0 || framing.chunked)).then_some(end + 4)
}

/// Returns whether neither a response nor other bytes were received.
fn has_no_response(talk: &Talk) -> bool {
    talk.replies.responses.is_empty() && talk.replies.junk.is_none()
}

fn is_silent(talk: &Talk) -> bool {
    talk.end == TalkEnd::Silent && talk.all_sent && has_no_response(talk)
}

fn waits(talk: &Talk) -> Option<MissingPart> {
    if talk.replies.frames.is_some() {
        // a final PING always gets a reply
        return None;
    }
    if is_raw(&talk.steps) {
        // a case of TCP segments states where silence is correct
        return None;
    }
    // after a half-close nothing more can arrive
    let over = talk.steps.is_empty() || talk.steps.contains(&Move::HalfClose);
    let sent = crate::record::sent(&talk.steps);
    part_missing_from(&sent, !talk.replies.interim.is_empty()).filter(|_| !over)
}

/// Returns the missing part of the first message. An invalid message is complete: it must be
/// refused.
pub fn missing_part(sent: &[u8]) -> Option<MissingPart> {
    part_missing_from(sent, false)
}

/// Returns whether the first message is incomplete, after an interim response as well: a server
/// that responds while it reads cannot end its response.
pub(super) fn is_incomplete(talk: &Talk) -> bool {
    part_missing_from(&crate::record::sent(&talk.steps), true).is_some()
}

/// Returns the part that the sent requests lack. `encouraged`: the interim response for Expect was
/// received.
fn part_missing_from(sent: &[u8], encouraged: bool) -> Option<MissingPart> {
    let mut rest = sent;
    // an empty line before a request is ignored (RFC 9112 section 2.2)
    while let Some(after) = rest.strip_prefix(b"\r\n") {
        rest = after;
    }
    let Some(end) = find(rest, b"\r\n\r\n") else { return Some(MissingPart::EndOfHead) };
    content_lacks(&rest[..end], &rest[end + 4..], encouraged).or_else(|| {
        // a parser that accepts a bare LF may find the end of the head earlier
        let (head, content) = head_by_lf(rest)?;
        content_lacks(head, content, encouraged)
    })
}

fn content_lacks(head: &[u8], content: &[u8], encouraged: bool) -> Option<MissingPart> {
    let framing = ClaimedFraming::from_head(head);
    if framing.expects && content.is_empty() && !encouraged {
        // an interim response is due before the content (RFC 9110 section 10.1.1)
        return None;
    }
    if framing.length > content.len() as u128 {
        return Some(MissingPart::Content);
    }
    // some servers accept a bare LF: what they wait for counts too
    framing.chunked.then(|| chunks(content).or_else(|| chunks_by_lf(content))).flatten()
}

/// Framing declared by a head, for a lenient parser.
#[derive(Default)]
struct ClaimedFraming {
    length: u128,
    chunked: bool,
    /// The client waits for 100 (Continue) before the content: only 100-continue is expected, and
    /// not in HTTP/1.0, where it is ignored (RFC 9110 section 10.1.1). An unknown expectation may
    /// be ignored too.
    expects: bool,
}

impl ClaimedFraming {
    fn from_head(head: &[u8]) -> ClaimedFraming {
        let mut framing = ClaimedFraming::default();
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let (mut asked, mut plain) = (false, !first.trim_ascii_end().ends_with(b"HTTP/1.0"));
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let value = line[colon + 1..].trim_ascii();
            let name = line[..colon].trim_ascii();
            if name.eq_ignore_ascii_case(b"content-length") {
                framing.length = framing.length.max(number(value));
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                framing.chunked |= value.to_ascii_lowercase().ends_with(b"chunked");
            } else if name.eq_ignore_ascii_case(b"expect") {
                asked = true;
                plain &= value.eq_ignore_ascii_case(b"100-continue");
            }
        }
        framing.expects = asked && plain;
        framing
    }
}

/// Parses the leading digits of a value as a number of any size, or 0.
fn number(value: &[u8]) -> u128 {
    let digits = value.strip_prefix(b"+").unwrap_or(value);
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits
        .fold(0, |sum: u128, digit| sum.saturating_mul(10).saturating_add(u128::from(digit - b'0')))
}

/// Returns the missing part of chunked content, or `None` at its end or at an invalid chunk.
fn chunks(content: &[u8]) -> Option<MissingPart> {
    let mut rest = content;
    loop {
        let Some(end) = find(rest, b"\r\n") else { return Some(MissingPart::Chunks) };
        if end == 0 {
            // a parser that ignores an empty line waits for the next chunk
            rest = &rest[2..];
            continue;
        }
        let size = rest[..end].split(|byte| *byte == b';').next().unwrap_or_default();
        let size = chunk_size(size.trim_ascii_end())?;
        rest = &rest[end + 2..];
        if size == 0 {
            let whole = rest.starts_with(b"\r\n") || find(rest, b"\r\n\r\n").is_some();
            return (!whole).then_some(MissingPart::Chunks);
        }
        let Some(size) = usize::try_from(size).ok().filter(|size| *size <= rest.len()) else {
            return Some(MissingPart::Chunks);
        };
        rest = &rest[size..];
        if rest.len() < 2 {
            // two bytes are read before they are compared with CR LF
            return Some(MissingPart::Chunks);
        }
        rest = rest.strip_prefix(b"\r\n")?;
    }
}

/// Does the same for a parser that accepts a bare LF.
fn chunks_by_lf(content: &[u8]) -> Option<MissingPart> {
    let mut rest = content;
    loop {
        let Some((line, after)) = line_by_lf(rest) else { return Some(MissingPart::Chunks) };
        rest = after;
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = chunk_size(size.trim_ascii_end())?;
        if size == 0 {
            break;
        }
        let Some(size) = usize::try_from(size).ok().filter(|size| *size < rest.len()) else {
            return Some(MissingPart::Chunks);
        };
        rest = &rest[size..];
        let Some((end, after)) = line_by_lf(rest) else { return Some(MissingPart::Chunks) };
        if !end.is_empty() {
            return None;
        }
        rest = after;
    }
    while let Some((line, after)) = line_by_lf(rest) {
        if line.is_empty() {
            return None;
        }
        rest = after;
    }
    Some(MissingPart::Chunks)
}

/// Splits at the first empty line, for a parser that accepts a bare LF.
fn head_by_lf(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    loop {
        let (line, after) = line_by_lf(rest)?;
        if line.is_empty() {
            return Some((&bytes[..bytes.len() - rest.len()], after));
        }
        rest = after;
    }
}

/// Splits off a line without its end, CR LF or LF.
fn line_by_lf(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

/// Parses a chunk size, or returns `None` if it is invalid.
fn chunk_size(digits: &[u8]) -> Option<u128> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let fold = |sum: u128, digit: u32| sum.saturating_mul(16).saturating_add(u128::from(digit));
    let digits = digits.iter().map(digit).collect::<Option<Vec<u32>>>()?;
    (!digits.is_empty()).then(|| digits.into_iter().fold(0, fold))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|here| here == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_messages_lack_a_part_and_invalid_ones_do_not() {
        let chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let by_lf = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\n";
        let sized = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ";
        let head = Some(MissingPart::EndOfHead);
        let (content, rest) = (Some(MissingPart::Content), Some(MissingPart::Chunks));
        for (bytes, expected) in [
            ("", head),
            ("\r\n\r\n", head),
            ("\n", head),
            ("GET / HTTP/1.1", head),
            ("GET /\r\n", head),
            ("GET /\r\n\r\n", None),
            ("GET / HTTP/1.1\nHost: h\n\n", head),
            ("junk\r\n\r\n", None),
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", None),
            ("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\nGET", None),
            (&format!("{sized}5\r\n\r\nabcd"), content),
            (&format!("{sized}5\r\n\r\nabcde"), None),
            (&format!("{sized}5, 6\r\n\r\nabcd"), content),
            (&format!("{sized}five\r\n\r\n"), None),
            (&format!("{sized}18446744073709551617\r\n\r\nx"), content),
            (&format!("{sized}5\r\nExpect: 100-continue\r\n\r\n"), None),
            (&format!("{sized}5\r\nExpect: 100-continue\r\n\r\nab"), content),
            (&format!("{sized}5\r\nExpect: 100-\r\nExpect: 100-continue\r\n\r\n"), content),
            ("POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", content),
            (chunked, rest),
            (&format!("{chunked}1\nx\n0\n\n"), rest),
            (&format!("{chunked}1\r\nx\r\n0\r\n"), rest),
            (&format!("{chunked}1\r\nx\r\n0\r\n\r\n"), None),
            (&format!("{chunked}1;a=b\r\nx\r\n0\r\nT: 1\r\n\r\n"), None),
            (&format!("{chunked}1\r\nx\r\n0\r\nT: 1\r\n"), rest),
            (&format!("{chunked}10000000000000001\r\nx\r\n0\r\n\r\n"), rest),
            (&format!("{chunked}1\r\nx\r\n\r\n"), rest),
            (&format!("{chunked}zz\r\nx\r\n0\r\n\r\n"), None),
            (&format!("{chunked}\r\nx\r\n0\r\n\r\n"), None),
            (&format!("{chunked}1\r\nx0\r\n\r\n"), None),
            (&format!("{chunked}1\r\nx\r"), rest),
            (&format!("{chunked}1\r\nx\n"), rest),
            (&format!("{chunked}5;a=\0\nabcde\r\n0\r\nA: b\r\n"), rest),
            (&format!("{chunked}5;a=\0\nabcde\r\n0\r\nA: b\r\n\r\n"), None),
            // with a bare LF the head ends before the content, whose last line is missing
            (&format!("{by_lf}9\r\nabcd\r\n\r\n\r\r\n0\r\n"), rest),
            (&format!("{by_lf}9\r\nabcd\r\n\r\n\r\r\n0\r\n\r\n"), None),
        ] {
            assert_eq!(missing_part(bytes.as_bytes()), expected, "{}", bytes.escape_debug());
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            missing_part(&bytes);
            missing_part(&[b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat());
        }
    }
}
