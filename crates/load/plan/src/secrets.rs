//! Finds and masks secrets by the names of their fields.

use std::ops::Range;

/// Values that are never secrets, regardless of their names.
pub(crate) const PLAIN: [&str; 6] = ["true", "false", "null", "none", "yes", "undefined"];

/// Words that a name of a secret has and the name of a host does not.
const NEVER_HOSTS: [&str; 6] = ["pass", "pwd", "secret", "key", "credential", "signature"];

/// Treatment of secrets in a printed plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// All secrets are printed, so that the run can be repeated.
    Shown,
    /// Passwords, tokens and keys are replaced by a placeholder; reading the file refuses it.
    Masked,
}

/// Replacement for a secret.
pub(crate) const MASK: &str = "***masked***";

/// Returns whether a header's value must be masked: headers that carry logins, by name or by
/// convention. The same names indicate secrets in queries, forms and JSON.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let known =
        ["proxy-authorization", "cookie", "auth", "x-auth", "sid", "sig", "pwd", "passwd", "jwt"];
    let hints = [
        "authorization",
        "token",
        "secret",
        "password",
        "passphrase",
        "credential",
        "api-key",
        "apikey",
        "access-key",
        "private-key",
        "session",
        "sessid",
        "csrf",
        "xsrf",
        "signature",
    ];
    // a number of tokens, as in `max_tokens`, is not a secret
    let counts =
        ["max", "min", "new", "total", "prompt", "completion", "input", "output", "cached"];
    let counted = name.strip_suffix("tokens").map(|of| of.trim_end_matches('-'));
    if counted.is_some_and(|of| counts.iter().any(|count| of.ends_with(count))) {
        return false;
    }
    known.contains(&name.as_str()) || hints.iter().any(|hint| name.contains(hint))
}

/// Returns content of a plan, such as a body or a message, with `mask` in place of the values whose
/// names indicate a secret. References to journey values are kept.
pub(crate) fn mask_content(content: &[u8], mask: &str) -> Vec<u8> {
    let mut masked = Vec::with_capacity(content.len());
    for chunk in content.utf8_chunks() {
        let text = chunk.valid();
        let mut secrets = named_values(text);
        secrets.retain(|range| !text[range.clone()].contains("{{"));
        masked.extend_from_slice(mask_ranges(text, secrets, mask).as_bytes());
        masked.extend_from_slice(chunk.invalid());
    }
    masked
}

/// Returns the text with `mask` in place of the values whose names indicate a secret.
pub(crate) fn mask_named(text: &str, mask: &str) -> String {
    mask_ranges(text, named_values(text), mask)
}

fn mask_ranges(text: &str, secrets: Vec<Range<usize>>, mask: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in secrets {
        out.push_str(&text[at..range.start]);
        out.push_str(mask);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Places of the values whose names indicate a secret: `"token": "…"`, `token=…`, `Cookie: …`.
pub(crate) fn named_values(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let marks = text.match_indices([':', '=']);
    for (at, mark) in marks {
        if all.last().is_some_and(|last| at < last.end) {
            continue;
        }
        let before = if mark == ":" { text[..at].trim_end() } else { &text[..at] };
        let unquoted = before.strip_suffix('"').map(|rest| rest.strip_suffix('\\').unwrap_or(rest));
        let quoted = unquoted.is_some();
        let name = last_word(unquoted.unwrap_or(before));
        if name.is_empty() || !is_secret_header(name) {
            continue;
        }
        let rest = &text[at + 1..];
        let start = at + 1 + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
        let value = &text[start..];
        // after a host, as in `session-api:8080`
        let like_port = mark == ":" && !quoted && start == at + 1 && starts_with_port(value);
        if like_port && may_be_host(name) {
            continue;
        }
        let range = if let Some(inside) = value.strip_prefix("\\\"") {
            start + 2..start + 2 + inside.find("\\\"").unwrap_or(inside.len())
        } else if let Some(inside) = value.strip_prefix('"') {
            start + 1..start + 1 + closing_quote(inside).unwrap_or(inside.len())
        } else if mark == ":" && !quoted {
            start..start + value.find(['\r', '\n', '<', '"']).unwrap_or(value.len())
        } else {
            let ends = |c: char| c.is_whitespace() || "&;,\"'<>()[]{}".contains(c);
            start..start + value.find(ends).unwrap_or(value.len())
        };
        if !range.is_empty() && !PLAIN.contains(&&text[range.clone()]) {
            all.push(range);
        }
    }
    all
}

/// Returns whether a name that indicates a secret may also be a host name.
fn may_be_host(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !NEVER_HOSTS.iter().any(|word| name.contains(word))
}

/// Returns whether a text starts with a port, which is at most 65,535.
fn starts_with_port(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let ends = |c: char| !c.is_alphanumeric() && c != '-' && c != '_';
    (1..=5).contains(&digits) && text[digits..].chars().next().is_none_or(ends)
}

/// Returns the name that a text ends with.
fn last_word(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
    let start = text.char_indices().rev().take_while(|(_, c)| is_part(*c)).last();
    start.map_or("", |(at, _)| &text[at..])
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_a_plan_is_masked_by_the_names_of_its_values() {
        for (content, wanted) in [
            (&b"user=ann&password=s3cret&n=1"[..], &b"user=ann&password=#&n=1"[..]),
            (b"{\"token\": \"a\\\"b\", \"n\": 1}", b"{\"token\": \"#\", \"n\": 1}"),
            (b"{\"token\": \"{{user.token}}\"}", b"{\"token\": \"{{user.token}}\"}"),
            (b"\xff\0password=x1\xfe", b"\xff\0password=#\xfe"),
            (b"{\"max_tokens\": 5}", b"{\"max_tokens\": 5}"),
        ] {
            let masked = mask_content(content, "#");
            assert_eq!(masked.escape_ascii().to_string(), wanted.escape_ascii().to_string());
        }
    }
}
