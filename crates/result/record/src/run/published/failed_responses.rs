//! Samples of failed responses: what the server sent, with secrets masked.

use super::rows::row_labels;
use crate::finished::RunReport;
use crate::ids;
use crate::words::MASK;
use plan::is_secret_header;
use sample::FailureClass;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::FailedResponse;
use std::borrow::Cow;
use units::show::safe;

/// Secrets of at least this length are masked wherever they occur.
const SECRET_MIN: usize = 4;
/// Characters of a line of the head, and of the body.
const LINE_MAX: usize = 300;
const BODY_MAX: usize = 600;

/// The start of a response whose call failed. Text of the server: untrusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FailedResponseRecord {
    /// Time of the response, from the start of the measured phase.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub at_s: f64,
    /// Name of the step, or URL.
    pub target: String,
    #[serde(with = "ids::failure_class")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::failure_class::schema")
    )]
    pub class: FailureClass,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(max = 999)))]
    pub status: u16,
    /// Status line and fields, secrets masked; long lines are cut.
    pub head: Vec<String>,
    /// The first bytes of the body, secrets masked; null if it is empty, encoded or unknown.
    pub body: Option<String>,
    /// Bytes of the body that were received.
    pub length: u64,
}

/// The samples of a run, the earliest first.
pub(super) fn all(report: &RunReport) -> Vec<FailedResponseRecord> {
    let total = &report.measurement.total;
    if total.failed_responses.is_empty() {
        return Vec::new();
    }
    let plan = &report.plan;
    let rows = plan.row_count().max(1);
    let labels = row_labels(plan, rows);
    let secrets = plan.secrets();
    let mut all = Vec::new();
    for ((class, status), samples) in &total.failed_responses.kinds {
        for sample in samples {
            let row = plan.row_of(sample.target as usize) as usize;
            let (head, body) = shown(sample, &secrets);
            all.push(FailedResponseRecord {
                at_s: sample.at.as_secs_f64(),
                target: labels.get(row).or(labels.last()).cloned().unwrap_or_default(),
                class: *class,
                status: *status,
                head,
                body,
                length: sample.length,
            });
        }
    }
    all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    all
}

fn shown(sample: &FailedResponse, secrets: &[String]) -> (Vec<String>, Option<String>) {
    let start = &sample.start[..];
    // the first part is missing where the head arrived in pieces
    let whole = start.starts_with(b"HTTP/");
    let end = if whole { start.windows(4).position(|at| at == b"\r\n\r\n") } else { Some(0) };
    let (head, body) = match end {
        Some(0) => (&[][..], start),
        Some(end) => (&start[..end], &start[end + 4..]),
        None => (start, &[][..]),
    };
    let head = String::from_utf8_lossy(head);
    let lines: Vec<&str> = head.split("\r\n").filter(|line| !line.is_empty()).collect();
    let field = |wanted: &str| lines.iter().find_map(|line| value_of(line, wanted));
    let chunked = lines.first().is_some_and(|line| line.starts_with("HTTP/1"))
        && field("transfer-encoding").is_some_and(|value| value.contains("chunked"));
    let coded = field("content-encoding").is_some_and(|value| !value.contains("identity"));
    let body = if chunked { unchunked(body) } else { Cow::Borrowed(body) };
    let text = String::from_utf8_lossy(&body);
    let body = (!coded && !text.is_empty()).then(|| {
        let masked = masked_values(&without(&text, secrets));
        readable(&masked, BODY_MAX)
    });
    let line = |line: &&str| readable(&without(&masked_field(line), secrets), LINE_MAX);
    (lines.iter().map(line).collect(), body)
}

fn value_of(line: &str, wanted: &str) -> Option<String> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_ascii_lowercase())
}

/// The content of chunks, as far as they are there.
fn unchunked(mut coded: &[u8]) -> Cow<'_, [u8]> {
    let mut content = Vec::new();
    while let Some(end) = coded.windows(2).position(|at| at == b"\r\n") {
        let size = std::str::from_utf8(&coded[..end]).unwrap_or_default();
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size @ 1..) = usize::from_str_radix(size, 16) else { break };
        let rest = &coded[end + 2..];
        content.extend_from_slice(&rest[..size.min(rest.len())]);
        coded = rest.get(size.saturating_add(2)..).unwrap_or_default();
    }
    Cow::Owned(content)
}

/// A field with its value masked if it may carry a login: of a cookie the value alone.
fn masked_field(line: &str) -> String {
    let Some((name, value)) = line.split_once(':') else { return line.to_owned() };
    if name.eq_ignore_ascii_case("set-cookie") {
        let (cookie, rest) = value.split_once(';').map_or((value, ""), |(a, b)| (a, b));
        let cookie = cookie.split('=').next().unwrap_or_default();
        let rest = if rest.is_empty() { String::new() } else { format!(";{rest}") };
        return format!("{name}:{cookie}={MASK}{rest}");
    }
    if is_secret_header(name) { format!("{name}: {MASK}") } else { line.to_owned() }
}

fn without(text: &str, secrets: &[String]) -> String {
    let long = secrets.iter().filter(|secret| secret.len() >= SECRET_MIN);
    long.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
}

/// JSON strings whose name indicates a secret are masked: `"token": "..."`.
fn masked_values(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('"') {
        let Some(end) = closing_quote(after) else { break };
        let (word, behind) = (&after[..end], &after[end + 1..]);
        out.push_str(before);
        out.push('"');
        out.push_str(word);
        out.push('"');
        rest = behind;
        let value = behind.trim_start().strip_prefix(':').map(str::trim_start);
        let quoted = value.and_then(|value| value.strip_prefix('"'));
        if let Some(quoted) = quoted.filter(|_| is_secret_header(word)) {
            out.push_str(&behind[..behind.len() - quoted.len()]);
            out.push_str(MASK);
            // a value that is cut off has no closing mark
            rest = closing_quote(quoted).map_or("", |end| &quoted[end..]);
            if let Some(behind) = rest.strip_prefix('"') {
                out.push('"');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// Text that is safe to show, with its line ends and tabs.
fn readable(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        match c {
            _ if count >= chars_max => {
                out.push('…');
                break;
            }
            '\n' | '\t' => out.push(c),
            '\r' => {}
            c => out.push_str(&safe(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_of(start: &str) -> (Vec<String>, Option<String>) {
        let sample = FailedResponse { start: start.into(), ..FailedResponse::default() };
        shown(&sample, &["hunter22".to_owned()])
    }

    #[test]
    fn secrets_of_a_sample_are_masked() {
        let (head, body) = shown_of(
            "HTTP/1.1 401 Unauthorized\r\nSet-Cookie: sid=abc; Path=/\r\nX-Api-Key: k\r\nX: hunter22\r\n\r\n\
             {\"access_token\" : \"a\\\"b\", \"name\": \"ann\", \"echo\": \"hunter22\", \"token\": \"cut",
        );
        let expected = [
            "HTTP/1.1 401 Unauthorized",
            "Set-Cookie: sid=***; Path=/",
            "X-Api-Key: ***",
            "X: ***",
        ];
        assert_eq!(head, expected);
        let body = body.unwrap();
        let expected = r#"{"access_token" : "***", "name": "ann", "echo": "***", "token": "***"#;
        assert_eq!(body, expected);
    }

    #[test]
    fn chunks_are_joined_and_control_characters_escaped() {
        let head = "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (_, body) = shown_of(&format!("{head}3\r\nab\x1b\r\n4\r\ncd"));
        assert_eq!(body.as_deref(), Some("ab\\u{1b}cd"));
        let (_, body) = shown_of(&format!("{head}zz\r\nab"));
        assert_eq!(body, None);
        let (head, body) = shown_of("HTTP/2 503\r\ncontent-encoding: gzip\r\n\r\n\x1f\x08");
        assert_eq!((head.len(), body), (2, None));
        let (head, body) = shown_of("half a body");
        assert_eq!((head.len(), body.as_deref()), (0, Some("half a body")));
    }
}
