//! Checks of every response, regardless of the request: RFC 9110 and RFC 9112 bind the sender of
//! each message. No additional requests are sent.

use crate::case::RequirementLevel;
use crate::framing::is_token;
use dialogue::replies::Response;
use httpdate::HttpDate;

/// A rule that a response violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LintRule {
    pub level: RequirementLevel,
    /// The violation.
    pub text: &'static str,
    /// The specification.
    pub reference: &'static str,
    /// The field whose absence violates it, in lower case.
    pub missing: Option<&'static str>,
}

/// Violated rules so far.
#[derive(Debug, Default)]
struct BrokenRules(Vec<LintRule>);

impl BrokenRules {
    fn add_broken(
        &mut self,
        broken: bool,
        level: RequirementLevel,
        text: &'static str,
        reference: &'static str,
    ) {
        if broken {
            self.0.push(LintRule { level, text, reference, missing: None });
        }
    }

    /// Adds a rule that requires a field.
    fn require_field(
        &mut self,
        broken: bool,
        field: &'static str,
        level: RequirementLevel,
        text: &'static str,
        reference: &'static str,
    ) {
        if broken {
            self.0.push(LintRule { level, text, reference, missing: Some(field) });
        }
    }
}

/// Fields that may appear only once because their values are not lists (RFC 9110 section 5.3).
const SINGLE: [&str; 9] = [
    "age",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "location",
    "retry-after",
];

/// Fields whose value is a date (RFC 9110 section 5.6.7).
const DATES: [&str; 2] = ["date", "last-modified"];

/// Returns the violated rules. `http_10`: the request was HTTP/1.0.
pub fn lint(response: &Response, http_10: bool) -> Vec<LintRule> {
    let mut found = BrokenRules::default();
    let status = response.status;
    let has = |name: &str| response.has_field(name);
    syntax(&lines(&response.head), &mut found);
    let twice = SINGLE.iter().any(|name| response.field(name).count() > 1);
    found.add_broken(
        twice,
        RequirementLevel::Must,
        "a field that is not a list appears twice",
        "RFC 9110 section 5.3",
    );
    framing(response, http_10, &mut found);
    dates(response, &mut found);
    let text = "206 has neither Content-Range nor multipart/byteranges";
    found.add_broken(
        status == 206 && !is_part(response),
        RequirementLevel::Must,
        text,
        "RFC 9110 section 15.3.7",
    );
    let demands = [
        (401, "www-authenticate", "401 has no WWW-Authenticate", "RFC 9110 section 15.5.2"),
        (405, "allow", "405 has no Allow", "RFC 9110 section 15.5.6"),
        (407, "proxy-authenticate", "407 has no Proxy-Authenticate", "RFC 9110 section 15.5.8"),
        (426, "upgrade", "426 has no Upgrade", "RFC 9110 section 15.5.22"),
    ];
    for (code, field, text, reference) in demands {
        let broken = status == code && !has(field);
        found.require_field(broken, field, RequirementLevel::Must, text, reference);
    }
    let moved = matches!(status, 301 | 302 | 303 | 307 | 308) && !has("location");
    let (level, text) = (RequirementLevel::Should, "a redirection has no Location");
    found.require_field(moved, "location", level, text, "RFC 9110 section 15.4");
    let unranged = status == 416 && !has("content-range");
    let text = "416 has no Content-Range";
    found.require_field(unranged, "content-range", level, text, "RFC 9110 section 15.5.17");
    let untyped = response.body_len > 0 && !has("content-type");
    let text = "content has no Content-Type";
    found.require_field(untyped, "content-type", level, text, "RFC 9110 section 8.3");
    found.0
}

/// Checks the syntax of the status line and of the field lines.
fn syntax(lines: &[&[u8]], found: &mut BrokenRules) {
    let bare = lines.iter().any(|line| !line.ends_with(b"\r\n"));
    found.add_broken(
        bare,
        RequirementLevel::Must,
        "a line of the head does not end with CRLF",
        "RFC 9112 section 2.1",
    );
    let first = lines.first().copied().unwrap_or_default();
    let text = "the status line is not version, space, three digits, space, reason";
    found.add_broken(
        !is_status_line(content(first)),
        RequirementLevel::Must,
        text,
        "RFC 9112 section 4",
    );
    let rest = || lines.iter().skip(1).map(|line| content(line));
    let fields = || rest().filter(|line| !line.is_empty());
    let folded = fields().any(|line| matches!(line[0], b' ' | b'\t'));
    found.add_broken(folded, RequirementLevel::Must, "a field is folded", "RFC 9112 section 5.2");
    let misnamed = fields().any(|line| !matches!(line[0], b' ' | b'\t') && !is_named(line));
    found.add_broken(
        misnamed,
        RequirementLevel::Must,
        "a field line has no valid name",
        "RFC 9112 section 5.1",
    );
    let dirty = fields().any(|line| line.iter().any(|byte| is_control(*byte)));
    found.add_broken(
        dirty,
        RequirementLevel::Must,
        "a field has a control character",
        "RFC 9110 section 5.5",
    );
}

/// Checks the fields that frame the message.
fn framing(response: &Response, http_10: bool, found: &mut BrokenRules) {
    let (coded, sized) =
        (response.has_field("transfer-encoding"), response.has_field("content-length"));
    let text = "Content-Length and Transfer-Encoding are both present";
    found.add_broken(coded && sized, RequirementLevel::Must, text, "RFC 9112 section 6.2");
    let number = |value: &str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let bad = response.field("content-length").any(|value| !number(value));
    found.add_broken(
        bad,
        RequirementLevel::Must,
        "Content-Length is not a number",
        "RFC 9110 section 8.6",
    );
    let bare = response.status == 204;
    found.add_broken(
        bare && sized,
        RequirementLevel::Must,
        "204 has a Content-Length",
        "RFC 9110 section 8.6",
    );
    found.add_broken(
        bare && coded,
        RequirementLevel::Must,
        "204 has a Transfer-Encoding",
        "RFC 9112 section 6.1",
    );
    let text = "the response to HTTP/1.0 has a Transfer-Encoding";
    found.add_broken(http_10 && coded, RequirementLevel::Must, text, "RFC 9112 section 6.1");
}

fn dates(response: &Response, found: &mut BrokenRules) {
    let dated = matches!(response.status, 200..=499);
    found.require_field(
        dated && !response.has_field("date"),
        "date",
        RequirementLevel::Must,
        "Date is missing",
        "RFC 9110 section 6.6.1",
    );
    let wrong = DATES.iter().any(|name| response.field(name).any(|value| !is_date(value)));
    found.add_broken(
        wrong,
        RequirementLevel::Must,
        "a date is not in the required format",
        "RFC 9110 section 5.6.7",
    );
    let instant =
        |name| response.field(name).next().and_then(|value| value.parse::<HttpDate>().ok());
    let (changed, now) = (instant("last-modified"), instant("date"));
    let ahead = changed.zip(now).is_some_and(|(changed, now)| changed > now);
    let text = "Last-Modified is later than Date";
    found.add_broken(ahead, RequirementLevel::Must, text, "RFC 9110 section 8.8.2.1");
}

fn is_part(response: &Response) -> bool {
    let kind = |value: &str| value.to_ascii_lowercase().starts_with("multipart/byteranges");
    response.has_field("content-range") || response.field("content-type").any(kind)
}

/// Splits a head into lines with their ends, including the final empty line.
fn lines(head: &[u8]) -> Vec<&[u8]> {
    head.split_inclusive(|byte| *byte == b'\n').collect()
}

fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Matches `HTTP/1.1 200 OK`; the reason may be empty, but its space is required.
fn is_status_line(line: &[u8]) -> bool {
    let version = line.len() > 12
        && line.starts_with(b"HTTP/")
        && line[5].is_ascii_digit()
        && line[6] == b'.'
        && line[7].is_ascii_digit();
    version
        && line[8] == b' '
        && line[9..12].iter().all(u8::is_ascii_digit)
        && line[12] == b' '
        && !line[13..].iter().any(|byte| is_control(*byte))
}

/// Returns whether the line starts with a token directly followed by a colon (RFC 9110 section
/// 5.6.2).
fn is_named(line: &[u8]) -> bool {
    let end = line.iter().position(|byte| *byte == b':');
    end.is_some_and(|end| is_token(&line[..end]))
}

/// Returns whether the byte is a control character other than tab, including DEL.
fn is_control(byte: u8) -> bool {
    byte < b' ' && byte != b'\t' || byte == 0x7f
}

/// Returns whether this is `Sun, 06 Nov 1994 08:49:37 GMT`, the only format to send.
fn is_date(value: &str) -> bool {
    value.parse::<HttpDate>().is_ok_and(|date| date.to_string() == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

    fn broken(head: &str, body_len: u64, http_10: bool) -> Vec<&'static str> {
        let status = head.split(' ').nth(1).and_then(|text| text.get(..3)?.parse().ok());
        let response = Response {
            status: status.unwrap_or(200),
            head: head.as_bytes().to_vec(),
            body_len,
            ..Response::default()
        };
        lint(&response, http_10).into_iter().map(|rule| rule.text).collect()
    }

    #[test]
    fn valid_responses_violate_no_rule() {
        let table = [
            format!(
                "HTTP/1.1 200 OK\r\n{DATE}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n"
            ),
            format!("HTTP/1.1 204 \r\n{DATE}\r\n"),
            format!("HTTP/1.0 304 Not Modified\r\n{DATE}ETag: \"a\"\r\nVary: a\r\nVary: b\r\n\r\n"),
            format!("HTTP/1.1 405 No\u{e9}\r\n{DATE}Allow: GET\r\nX:\ta\u{e9} \r\n\r\n"),
            "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".to_owned(),
        ];
        for head in table {
            assert_eq!(broken(&head, 0, false), Vec::<&str>::new(), "{head}");
        }
    }

    #[test]
    fn each_rule_detects_its_violation() {
        let date = |more: &str| format!("HTTP/1.1 200 OK\r\n{DATE}{more}\r\n");
        let code = |code: u16| format!("HTTP/1.1 {code} X\r\n{DATE}\r\n");
        let (chunked, coded) = ("Transfer-Encoding: chunked\r\n", "Content-Length: 1\r\n");
        let table = [
            (date("X: a\n"), "a line of the head does not end with CRLF"),
            (
                date("").replace("200 OK", "200"),
                "the status line is not version, space, three digits, space, reason",
            ),
            (date("X: a\r\n b\r\n"), "a field is folded"),
            (date("X : a\r\n"), "a field line has no valid name"),
            (date("no colon\r\n"), "a field line has no valid name"),
            (date("X: a\x01\r\n"), "a field has a control character"),
            (date(&coded.repeat(2)), "a field that is not a list appears twice"),
            (
                date(&format!("{chunked}{coded}")),
                "Content-Length and Transfer-Encoding are both present",
            ),
            (date("Content-Length: +1\r\n"), "Content-Length is not a number"),
            (code(204).replace("Date", "Content-Length: 0\r\nDate"), "204 has a Content-Length"),
            (code(204).replace("Date", &format!("{chunked}Date")), "204 has a Transfer-Encoding"),
            ("HTTP/1.1 404 X\r\n\r\n".to_owned(), "Date is missing"),
            (
                date("Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT\r\n"),
                "a date is not in the required format",
            ),
            (
                date("Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n"),
                "Last-Modified is later than Date",
            ),
            (code(206), "206 has neither Content-Range nor multipart/byteranges"),
            (code(401), "401 has no WWW-Authenticate"),
            (code(405), "405 has no Allow"),
            (code(407), "407 has no Proxy-Authenticate"),
            (code(426), "426 has no Upgrade"),
            (code(302), "a redirection has no Location"),
            (code(416), "416 has no Content-Range"),
        ];
        for (head, rule) in table {
            assert_eq!(broken(&head, 0, false), [rule], "{head}");
        }
        assert_eq!(broken(&date(""), 1, false), ["content has no Content-Type"]);
        let response = broken(&date(chunked), 0, true);
        assert_eq!(response, ["the response to HTTP/1.0 has a Transfer-Encoding"]);
    }

    proptest::proptest! {
        #[test]
        fn no_head_panics(head: Vec<u8>, status: u16) {
            lint(&Response { status, head, ..Response::default() }, true);
        }
    }
}
