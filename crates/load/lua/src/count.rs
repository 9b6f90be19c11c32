//! Counts the requests in a script's text: called once, for the first text.

/// Methods that wrk's parser accepts.
const METHODS: &[&str] = &[
    "DELETE",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "COPY",
    "LOCK",
    "MKCOL",
    "MOVE",
    "PROPFIND",
    "PROPPATCH",
    "SEARCH",
    "UNLOCK",
    "REPORT",
    "MKACTIVITY",
    "CHECKOUT",
    "MERGE",
    "M-SEARCH",
    "NOTIFY",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "PATCH",
    "PURGE",
    "MKCALENDAR",
];

/// Maximum number of requests in one text.
const REQUESTS_MAX: u16 = 10_000;

/// Counts the consecutive requests in `text`; an incomplete last request is ignored if there are
/// others.
///
/// # Errors
/// Fails with `REASON at LINE:COLUMN`, as wrk prints it.
pub(crate) fn requests(text: &[u8]) -> Result<u16, String> {
    let mut at = 0;
    let mut count = 0;
    loop {
        while matches!(text.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        match message(&text[at..]) {
            Ok(Some(length)) => {
                at += length;
                count += 1;
            }
            Ok(None) if count > 0 => return Ok(count),
            Ok(None) => return Err(describe("incomplete request", text, text.len())),
            Err((reason, offset)) => return Err(describe(reason, text, at + offset)),
        }
        if count > REQUESTS_MAX {
            return Err(describe("more than 10000 requests in one text", text, at));
        }
    }
}

/// Error in a text, and its byte offset.
type SyntaxError = (&'static str, usize);

/// Returns the length of the message at the start of the text; `None` if it is incomplete.
fn message(text: &[u8]) -> Result<Option<usize>, SyntaxError> {
    let Some(line) = request_line(text)? else { return Ok(None) };
    let Some(BodyFields { end, length, chunked }) = fields(text, line)? else { return Ok(None) };
    if chunked {
        let body = chunks(&text[end..]).map_err(|(reason, at)| (reason, end + at))?;
        return Ok(body.map(|body| end + body));
    }
    Ok(end.checked_add(length).filter(|end| *end <= text.len()))
}

/// Returns the offset after the request line; `None` if it is incomplete.
fn request_line(text: &[u8]) -> Result<Option<usize>, SyntaxError> {
    let end = text.iter().position(|byte| b" \r\n".contains(byte)).unwrap_or(text.len());
    let method = &text[..end];
    let common = |known: &&str| {
        known.bytes().zip(method).take_while(|(wanted, found)| wanted == *found).count()
    };
    if !METHODS.iter().any(|known| known.as_bytes() == method) {
        let matched = METHODS.iter().map(common).max().unwrap_or(0);
        if matched < method.len() || end < text.len() {
            return Err(("invalid HTTP method", matched));
        }
        return Ok(None);
    }
    match text.get(end) {
        None => return Ok(None),
        Some(b' ') => {}
        Some(_) => return Err(("invalid HTTP method", end)),
    }
    let Some(at) = url(text, end, method == b"CONNECT")? else { return Ok(None) };
    match text[at] {
        b' ' => version(text, at),
        // without a version it is HTTP/0.9
        _ => line_end(text, at, "LF character expected"),
    }
}

/// Parts of a URL, as wrk's parser distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UrlPart {
    Before,
    Scheme,
    Slash,
    SlashSlash,
    ServerStart,
    Server,
    ServerAt,
    Path,
    Query,
    Fragment,
}

/// Returns the offset of the space or line end after the URL.
fn url(text: &[u8], from: usize, connect: bool) -> Result<Option<usize>, SyntaxError> {
    let mut part = UrlPart::Before;
    for (at, byte) in text.iter().copied().enumerate().skip(from) {
        let fault = ("invalid URL", at);
        match (part, byte) {
            (UrlPart::Before, b' ') => {}
            (
                UrlPart::Before
                | UrlPart::Scheme
                | UrlPart::Slash
                | UrlPart::SlashSlash
                | UrlPart::ServerStart,
                b' ' | b'\r' | b'\n',
            ) => return Err(fault),
            (_, b' ' | b'\r' | b'\n') => return Ok(Some(at)),
            (UrlPart::Before, _) if connect => {
                part = UrlPart::ServerStart.next(byte).ok_or(fault)?;
            }
            _ => part = part.next(byte).ok_or(fault)?,
        }
    }
    Ok(None)
}

impl UrlPart {
    fn next(self, byte: u8) -> Option<UrlPart> {
        let plain = byte.is_ascii_graphic() && byte != b'?' && byte != b'#';
        Some(match (self, byte) {
            (UrlPart::Before, b'/' | b'*') => UrlPart::Path,
            (UrlPart::Before | UrlPart::Scheme, _) if byte.is_ascii_alphabetic() => UrlPart::Scheme,
            (UrlPart::Scheme, b':') => UrlPart::Slash,
            (UrlPart::Slash, b'/') => UrlPart::SlashSlash,
            (UrlPart::SlashSlash, b'/') => UrlPart::ServerStart,
            (UrlPart::ServerStart | UrlPart::Server | UrlPart::ServerAt, b'/') => UrlPart::Path,
            (UrlPart::ServerStart | UrlPart::Server | UrlPart::ServerAt, b'?') => UrlPart::Query,
            (UrlPart::ServerStart | UrlPart::Server, b'@') => UrlPart::ServerAt,
            (UrlPart::ServerStart | UrlPart::Server | UrlPart::ServerAt, _)
                if byte.is_ascii_alphanumeric() || b"-_.!~*'()%;:&=+$,[]".contains(&byte) =>
            {
                UrlPart::Server
            }
            (UrlPart::Path, b'?') => UrlPart::Query,
            (UrlPart::Path | UrlPart::Query, b'#') => UrlPart::Fragment,
            (UrlPart::Query, b'?') | (UrlPart::Fragment, b'?' | b'#') => self,
            (UrlPart::Path | UrlPart::Query | UrlPart::Fragment, _) if plain => self,
            _ => return None,
        })
    }
}

/// Parses from the spaces before `HTTP/` to the end of the line.
fn version(text: &[u8], from: usize) -> Result<Option<usize>, SyntaxError> {
    let blanks = text[from..].iter().take_while(|byte| **byte == b' ').count();
    let mut at = from + blanks;
    for wanted in *b"HTTP/" {
        match text.get(at) {
            None => return Ok(None),
            Some(found) if *found == wanted => at += 1,
            Some(_) if wanted == b'H' => return Err(("invalid constant string", at)),
            Some(_) => return Err(("strict mode assertion failed", at)),
        }
    }
    let bad = "invalid HTTP version";
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let major = digits(at);
    if text.get(at) == Some(&b'0') {
        return Err((bad, at));
    }
    at += major;
    match text.get(at) {
        None => return Ok(None),
        Some(b'.') if major > 0 => at += 1,
        Some(_) => return Err((bad, at)),
    }
    let minor = digits(at);
    at += minor;
    match text.get(at) {
        None => Ok(None),
        Some(b'\r' | b'\n') if minor > 0 => line_end(text, at, "LF character expected"),
        Some(_) => Err((bad, at)),
    }
}

/// Returns the offset after the line end that starts at `at`; `missing`: the reason for refusing a
/// lone CR.
fn line_end(text: &[u8], at: usize, missing: &'static str) -> Result<Option<usize>, SyntaxError> {
    match (text.get(at), text.get(at + 1)) {
        (Some(b'\n'), _) => Ok(Some(at + 1)),
        (_, None) => Ok(None),
        (_, Some(b'\n')) => Ok(Some(at + 2)),
        _ => Err((missing, at + 1)),
    }
}

/// Body length according to the fields of a head.
struct BodyFields {
    /// Offset after the empty line.
    end: usize,
    length: usize,
    chunked: bool,
}

/// Parses the fields that begin at `at`; `None` if the empty line is missing.
fn fields(text: &[u8], mut at: usize) -> Result<Option<BodyFields>, SyntaxError> {
    const NO_LF: &str = "strict mode assertion failed";
    let (mut length, mut chunked) = (0, false);
    loop {
        if matches!(text.get(at), Some(b'\r' | b'\n')) {
            return Ok(line_end(text, at, NO_LF)?.map(|end| BodyFields { end, length, chunked }));
        }
        let name_len = text[at..].iter().take_while(|byte| is_token(**byte)).count();
        let colon = at + name_len;
        match text.get(colon) {
            None => return Ok(None),
            Some(b':') if name_len > 0 => {}
            Some(_) => return Err(("invalid character in header", colon)),
        }
        let Some(value_end) = value(text, colon + 1)? else { return Ok(None) };
        let (name, value) = (&text[at..colon], &text[colon + 1..value_end]);
        if name.eq_ignore_ascii_case(b"content-length") {
            length = number(value)
                .map_err(|bad| ("invalid character in content-length header", colon + 1 + bad))?;
        }
        chunked |= name.eq_ignore_ascii_case(b"transfer-encoding")
            && value.trim_ascii().to_ascii_lowercase().ends_with(b"chunked");
        let Some(next) = line_end(text, value_end, NO_LF)? else { return Ok(None) };
        at = next;
    }
}

/// Returns the offset of the line end after a value, which may continue on a line that starts with
/// a blank.
fn value(text: &[u8], from: usize) -> Result<Option<usize>, SyntaxError> {
    let mut at = from;
    loop {
        match text.get(at) {
            None => return Ok(None),
            Some(b'\r' | b'\n') => {
                let next = line_end(text, at, "strict mode assertion failed")?;
                match next.and_then(|next| text.get(next)) {
                    Some(b' ' | b'\t') => at = next.unwrap_or(at),
                    _ => return Ok(Some(at)),
                }
            }
            Some(b'\t' | b' '..=0x7e | 0x80..) => at += 1,
            Some(_) => return Err(("invalid character in header", at)),
        }
    }
}

/// Parses a length; `Err`: offset of the first character that is not a digit.
fn number(value: &[u8]) -> Result<usize, usize> {
    let blanks = value.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let digits = value.trim_ascii();
    match digits.iter().position(|byte| !byte.is_ascii_digit()) {
        Some(bad) => Err(blanks + bad),
        None => std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or(blanks),
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the length of a chunked body, including its last empty line (no trailers); `None` if it
/// is incomplete.
fn chunks(text: &[u8]) -> Result<Option<usize>, SyntaxError> {
    let mut at = 0;
    loop {
        let Some(end) = text[at..].iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line = text[at..at + end].trim_ascii();
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size =
            std::str::from_utf8(digits).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let size = size.ok_or(("invalid character in chunk size header", at))?;
        let Some(next) = at.checked_add(end + 1 + 2).and_then(|next| next.checked_add(size)) else {
            return Ok(None);
        };
        at = next;
        if at > text.len() {
            return Ok(None);
        }
        if size == 0 {
            return Ok(Some(at));
        }
    }
}

fn describe(reason: &str, text: &[u8], at: usize) -> String {
    let before = &text[..at.min(text.len())];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
    format!("{reason} at {line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_and_errors_located() {
        let one = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
        let post = "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        let chunked = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let ok = |text: String| assert_eq!(requests(text.as_bytes()), Ok(3), "{text}");
        ok(format!("{one}{one}{one}"));
        ok(format!("{one}{post}{chunked}"));
        ok(format!("{post}{post}\r\n{one}GET / HT"));
        let describe = |text: &str| requests(text.as_bytes()).unwrap_err();
        assert_eq!(describe("garbage here\r\n\r\n"), "invalid HTTP method at 1:1");
        assert_eq!(describe(""), "incomplete request at 1:1");
        assert_eq!(describe("GEX / HTTP/1.1\r\n\r\n"), "invalid HTTP method at 1:3");
        assert_eq!(describe("GET / HTTP/1.1\r\nHost: h\r\n"), "incomplete request at 3:1");
        assert_eq!(describe("GET / FOO\r\n\r\n"), "invalid constant string at 1:7");
        assert_eq!(
            describe("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"),
            "incomplete request at 4:4"
        );
    }

    /// wrk 4.1.0's messages for these.
    #[test]
    fn targets_and_fields_are_held_to_wrks_rules() {
        let describe = |text: &str| requests(text.as_bytes()).unwrap_err();
        let target = |target: &str| describe(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(target("nil"), "invalid URL at 1:8");
        assert_eq!(target("noslash"), "invalid URL at 1:12");
        assert_eq!(target(""), "invalid URL at 1:10");
        assert_eq!(target("/a b"), "invalid constant string at 1:8");
        assert_eq!(target("/a\tb"), "invalid URL at 1:7");
        assert_eq!(target("/\u{e9}"), "invalid URL at 1:6");
        assert_eq!(target("?x"), "invalid URL at 1:5");
        assert_eq!(target("x?y"), "invalid URL at 1:6");
        let field = |line: &str| describe(&format!("GET / HTTP/1.1\r\n{line}\r\nHost: h\r\n\r\n"));
        assert_eq!(field(": v"), "invalid character in header at 2:1");
        assert_eq!(field("Sp : v"), "invalid character in header at 2:3");
        assert_eq!(field("A\tb: v"), "invalid character in header at 2:2");
        assert_eq!(field("\u{e9}: v"), "invalid character in header at 2:1");
        assert_eq!(field("A: b\u{1}c"), "invalid character in header at 2:5");
        assert_eq!(field("A: b\u{7f}c"), "invalid character in header at 2:5");
        assert_eq!(field("Host x"), "invalid character in header at 2:5");
        assert_eq!(
            field("Content-Length: x"),
            "invalid character in content-length header at 2:17"
        );
        for method in ["FOO", "get", ""] {
            assert_eq!(
                describe(&format!("{method} / HTTP/1.1\r\n\r\n")),
                "invalid HTTP method at 1:1"
            );
        }
        assert_eq!(describe("G T / HTTP/1.1\r\n\r\n"), "invalid HTTP method at 1:2");
        for text in [
            "GET * HTTP/1.1\r\n\r\n",
            "GET http://x/y HTTP/9.1\r\n\r\n",
            "GET https://x HTTP/1.1\r\n\r\n",
            "GET //x#b HTTP/1.1\r\nA: b\u{e9}\r\n\r\n",
            "CONNECT a:1 HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\nHost: x\n\n",
        ] {
            assert_eq!(requests(text.as_bytes()), Ok(1), "{text}");
        }
    }

    #[test]
    fn no_text_panics() {
        let text =
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab\r\n";
        for end in 0..text.len() {
            requests(&text[..end]).ok();
            requests(&text[end..]).ok();
        }
    }
}
