//! Conditional requests (RFC 9110 §13).

use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::Method;

/// Validators of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validators<'a> {
    /// A strong entity tag, with its quotation marks.
    pub(super) etag: &'a str,
    /// Last-Modified in seconds since 1970; `None` if the file's time is not an HTTP date.
    pub(super) modified: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreconditionResult {
    /// Result; `ranges` is false if the Range field must be ignored (If-Range).
    Go { ranges: bool },
    /// 304 (Not Modified).
    NotModified,
    /// 412 (Precondition Failed).
    Failed,
}

/// Evaluates the preconditions in their order (§13.2.2).
pub(super) fn judge(
    method: &Method,
    headers: &HeaderMap,
    now: Validators<'_>,
) -> PreconditionResult {
    let reads = method == Method::GET || method == Method::HEAD;
    if headers.contains_key(header::IF_MATCH) {
        if !listed(headers, &header::IF_MATCH, now.etag, Comparison::Strong) {
            return PreconditionResult::Failed;
        }
    } else if changed_since(headers, &header::IF_UNMODIFIED_SINCE, now) == Some(true) {
        return PreconditionResult::Failed;
    }
    if headers.contains_key(header::IF_NONE_MATCH) {
        if listed(headers, &header::IF_NONE_MATCH, now.etag, Comparison::Weak) {
            return if reads {
                PreconditionResult::NotModified
            } else {
                PreconditionResult::Failed
            };
        }
    } else if reads && changed_since(headers, &header::IF_MODIFIED_SINCE, now) == Some(false) {
        return PreconditionResult::NotModified;
    }
    PreconditionResult::Go { ranges: method == Method::GET && if_range_holds(headers, now) }
}

/// Returns whether If-Range holds (§13.1.5): a tag by strong comparison, a date by exact match.
fn if_range_holds(headers: &HeaderMap, now: Validators<'_>) -> bool {
    if !headers.contains_key(header::IF_RANGE) {
        return true;
    }
    let Some(text) = only(headers, &header::IF_RANGE) else { return false };
    match seconds(text) {
        Some(date) => now.modified == Some(date),
        None => text == now.etag,
    }
}

/// Returns whether the file changed after the date in the field; `None` if the field must be
/// ignored.
fn changed_since(headers: &HeaderMap, field: &HeaderName, now: Validators<'_>) -> Option<bool> {
    let date = seconds(only(headers, field)?)?;
    now.modified.map(|modified| modified > date)
}

/// Returns the value of a field that may occur only once.
fn only<'a>(headers: &'a HeaderMap, field: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(field).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then(|| value.trim())
}

fn seconds(date: &str) -> Option<u64> {
    let time: SystemTime = httpdate::parse_http_date(date).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// Comparison of entity tags (§8.8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// Weak tags never match.
    Strong,
    /// The mark of weakness does not matter.
    Weak,
}

/// Returns whether the field lists this tag, or is `*`.
fn listed(headers: &HeaderMap, field: &HeaderName, etag: &str, how: Comparison) -> bool {
    headers.get_all(field).iter().any(|value| {
        let list = value.as_bytes().trim_ascii();
        list == b"*" || Tags(list).any(|tag| tag.is(etag, how))
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Tag<'a> {
    weak: bool,
    /// Tag with its quotation marks.
    opaque: &'a [u8],
}

impl Tag<'_> {
    fn is(&self, etag: &str, how: Comparison) -> bool {
        self.opaque == etag.as_bytes() && (how == Comparison::Weak || !self.weak)
    }
}

/// Entity tags of a list; stops at the first invalid one.
struct Tags<'a>(&'a [u8]);

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        while let [b' ' | b'\t' | b',', rest @ ..] = self.0 {
            self.0 = rest;
        }
        let weak = self.0.starts_with(b"W/");
        let text = if weak { &self.0[2..] } else { self.0 };
        let inner = text.strip_prefix(b"\"")?;
        let len = inner.iter().position(|byte| *byte == b'"')?;
        let is_tag_text =
            |byte: &u8| *byte == 0x21 || (0x23..=0x7e).contains(byte) || *byte >= 0x80;
        if !inner[..len].iter().all(is_tag_text) {
            return None;
        }
        let (opaque, rest) = text.split_at(len + 2);
        self.0 = rest;
        Some(Tag { weak, opaque })
    }
}

#[cfg(test)]
mod tests;
